#include "resource.h"

#include "buffer.h"
#include "device.h"
#include "errors.h"
#include "parse.h"

/* ---- helpers ---------------------------------------------------------------------------------------------------- */

/* Page-locked memory is every device's; the context that it is made in is only a means. */
static cc_context *some_context(module_state *state)
{
    device_object *device = device_current(state);
    return device == NULL ? NULL : device_primary(state, device);
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(allocate_doc,
             "allocate($self, /, size, *, stream=None)\n--\n\n"
             "A new Buffer of `size` bytes of page-locked host memory, at once.\n\n"
             "size: int, bytes; 0 is allowed. stream: not used.\n"
             "Raises ValueError (negative size), OverflowError, OutOfMemoryError. Driver: cuMemHostAlloc.");

static PyObject *legacy_pinned_allocate(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                        PyObject *names)
{
    static const parameter_name parameters[] = {NAME("size"), NAME("stream")};
    static const signature wanted = SIGNATURE("LegacyPinnedMemoryResource.allocate", parameters, 1, REQUIRED(0));
    module_state *state = state_of_class(class);
    PyObject *given[2];
    size_t size;
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    if (size_from_object(given[0], "size", &size) < 0 || resource_check_stream(state, given[1]) < 0)
        return NULL;
    cc_context *context = some_context(state);
    if (context == NULL)
        return NULL;
    cc_error error;
    cc_buffer *core;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_buffer_allocate_pinned(context, size, &core, &error);
    Py_END_ALLOW_THREADS;
    return status < 0 ? raise_error(state, &error) : buffer_from_core(state, core, op, NULL);
}

PyDoc_STRVAR(deallocate_doc, "deallocate($self, /, ptr, size, *, stream=None)\n--\n\n"
                             "Free page-locked memory that no Buffer owns; Buffer.close() frees a Buffer's.\n\n"
                             "ptr: int; size: int, bytes; stream: where given, its queued work is waited for first.\n"
                             "Raises CUDAError. Driver: cuMemFreeHost.");

static PyObject *legacy_pinned_deallocate(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                          PyObject *names)
{
    (void)op;
    static const parameter_name parameters[] = {NAME("ptr"), NAME("size"), NAME("stream")};
    static const signature wanted =
        SIGNATURE("LegacyPinnedMemoryResource.deallocate", parameters, 2, REQUIRED(0) | REQUIRED(1));
    module_state *state = state_of_class(class);
    PyObject *given[3];
    uint64_t pointer;
    size_t size;
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    if (address_from_object(given[0], "ptr", &pointer) < 0 || size_from_object(given[1], "size", &size) < 0)
        return NULL;
    cc_context *context = some_context(state);
    if (context == NULL || resource_wait_for(state, given[2]) < 0)
        return NULL;
    if (pointer == 0) /* what allocate(0) gives */
        Py_RETURN_NONE;
    cc_error error;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_pinned_free(context, (CUdeviceptr)pointer, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0)
        return raise_error(state, &error);
    Py_RETURN_NONE;
}

static PyMethodDef legacy_pinned_methods[] = {
    {"allocate", FUNCTION(legacy_pinned_allocate), METH_CLASS_CALL, allocate_doc},
    {"deallocate", FUNCTION(legacy_pinned_deallocate), METH_CLASS_CALL, deallocate_doc},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static PyObject *legacy_pinned_get_device_id(PyObject *op, void *unused)
{
    (void)op, (void)unused;
    return PyLong_FromLong(-1);
}

static PyGetSetDef legacy_pinned_attributes[] = {
    {"is_device_accessible", resource_get_true, NULL, "True: kernels can use the memory (bool).", NULL},
    {"is_host_accessible", resource_get_true, NULL, "True: the host can use the memory directly (bool).", NULL},
    {"device_id", legacy_pinned_get_device_id, NULL, "-1: the memory is the host's (int).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(legacy_pinned_doc, "LegacyPinnedMemoryResource()\n--\n\n"
                                "Page-locked host memory, outside any pool and any stream's order; on every driver.\n\n"
                                "Driver: cuMemHostAlloc, cuMemFreeHost.");

static PyType_Slot legacy_pinned_slots[] = {
    {Py_tp_doc, (void *)legacy_pinned_doc},
    {Py_tp_methods, legacy_pinned_methods},
    {Py_tp_getset, legacy_pinned_attributes},
    {0, NULL},
};

PyType_Spec legacy_pinned_memory_resource_spec = {
    .name = "cuda_core.LegacyPinnedMemoryResource",
    .basicsize = sizeof(memory_resource_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = legacy_pinned_slots,
};
