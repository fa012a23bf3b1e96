#include "resource.h"

#include "device.h"
#include "errors.h"
#include "options.h"
#include "parse.h"

#include <limits.h>

/* ---- init ------------------------------------------------------------------------------------------------------- */

static int read_numa_id(PyObject *value, int *numa_id)
{
    size_t number;
    *numa_id = -1;
    if (value == NULL)
        return 0;
    if (size_from_object(value, "PinnedMemoryResourceOptions.numa_id", &number) < 0)
        return -1;
    if (number > INT_MAX) {
        PyErr_SetString(PyExc_OverflowError, "PinnedMemoryResourceOptions.numa_id is too large");
        return -1;
    }
    *numa_id = (int)number;
    return 0;
}

static int read_options(module_state *state, PyObject *options, size_t *max_size, int *numa_id)
{
    static const char *const names[] = {"ipc_enabled", "max_size", "numa_id"};
    PyObject *values[3];
    if (options_read(options, "PinnedMemoryResourceOptions", names, values, 3) < 0)
        return -1;
    int status = options_flag(values[0], "PinnedMemoryResourceOptions", names[0], 0);
    if (status > 0) {
        raise_not_supported(state, "memory pools cannot be shared between processes yet: leave ipc_enabled False");
        status = -1;
    }
    if (status == 0)
        status = pool_max_size(values[1], "PinnedMemoryResourceOptions", max_size);
    if (status == 0)
        status = read_numa_id(values[2], numa_id);
    options_drop(values, 3);
    return status;
}

static int pinned_memory_resource_init(PyObject *op, PyObject *args, PyObject *keywords)
{
    static const parameter_name parameters[] = {NAME("options")};
    static const signature wanted = SIGNATURE("PinnedMemoryResource", parameters, 1, 0);
    PyObject *given[1];
    size_t max_size = 0;
    int numa_id = -1;
    if (parse_call(&wanted, args, keywords, given) < 0)
        return -1;
    module_state *state = state_of(op);
    if (read_options(state, given[0], &max_size, &numa_id) < 0)
        return -1;
    const device_object *device = device_current(state);
    if (device == NULL)
        return -1;
    cc_error error;
    cc_pool *pool;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_pool_create_pinned(device->core, numa_id, max_size, &pool, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0) {
        raise_error(state, &error);
        return -1;
    }
    pool_resource_cast(op)->numa_id = numa_id;
    pool_resource_set(op, pool);
    return 0;
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(from_allocation_handle_doc,
             "from_allocation_handle($type, /, alloc_handle)\n--\n\n"
             "Memory pools cannot be shared between processes yet: raises NotSupportedError.");

static PyObject *pinned_memory_resource_from_allocation_handle(PyObject *class, PyObject *const *args, Py_ssize_t count,
                                                               PyObject *names)
{
    static const parameter_name parameters[] = {NAME("alloc_handle")};
    static const signature wanted =
        SIGNATURE("PinnedMemoryResource.from_allocation_handle", parameters, 1, REQUIRED(0));
    PyObject *given[1];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    return raise_not_supported(state_of_type((PyTypeObject *)class),
                               "memory pools cannot be shared between processes yet");
}

static PyMethodDef pinned_memory_resource_methods[] = {
    {"from_allocation_handle", FUNCTION(pinned_memory_resource_from_allocation_handle), METH_KEYWORD_CALL | METH_CLASS,
     from_allocation_handle_doc},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static PyObject *pinned_memory_resource_get_device_id(PyObject *op, void *unused)
{
    (void)op, (void)unused;
    return PyLong_FromLong(-1);
}

static PyObject *pinned_memory_resource_get_is_host_accessible(PyObject *op, void *unused)
{
    (void)op, (void)unused;
    Py_RETURN_TRUE;
}

static PyGetSetDef pinned_memory_resource_attributes[] = {
    {"device_id", pinned_memory_resource_get_device_id, NULL, "-1: the memory is the host's (int).", NULL},
    {"is_host_accessible", pinned_memory_resource_get_is_host_accessible, NULL,
     "True: the host can use the memory directly (bool).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef pinned_memory_resource_members[] = {
    {"numa_id", T_INT, offsetof(pool_resource_object, numa_id), READONLY,
     "The host's NUMA node that the memory is on; -1 where it is bound to none (int)."},
    {NULL, 0, 0, 0, NULL},
};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(pinned_memory_resource_doc,
             "PinnedMemoryResource(options=None)\n--\n\n"
             "Page-locked host memory in stream order, from a pool; host and kernels can use it.\n\n"
             "options: PinnedMemoryResourceOptions, a dict of its fields, or None.\n"
             "Raises NotSupportedError (needs driver 12.6 or newer), CUDAError. A context manager: leaving the block\n"
             "closes it. Driver: cuMemPoolCreate.");

static PyType_Slot pinned_memory_resource_slots[] = {
    {Py_tp_doc, (void *)pinned_memory_resource_doc},
    {Py_tp_init, pinned_memory_resource_init},
    {Py_tp_dealloc, pool_resource_dealloc},
    {Py_tp_methods, pinned_memory_resource_methods},
    {Py_tp_getset, pinned_memory_resource_attributes},
    {Py_tp_members, pinned_memory_resource_members},
    {0, NULL},
};

PyType_Spec pinned_memory_resource_spec = {
    .name = "cuda_core.PinnedMemoryResource",
    .basicsize = sizeof(pool_resource_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = pinned_memory_resource_slots,
};
