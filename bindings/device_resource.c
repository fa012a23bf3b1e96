#include "resource.h"

#include "device.h"
#include "errors.h"
#include "options.h"
#include "parse.h"

/* ---- for other files -------------------------------------------------------------------------------------------- */

static int set_default_pool(module_state *state, PyObject *op, cc_device *device)
{
    cc_error error;
    cc_pool *pool;
    int status;
    Py_BEGIN_ALLOW_THREADS; /* makes the primary context where there is none */
    status = cc_pool_device_default(device, &pool, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0)
        raise_error(state, &error);
    else
        pool_resource_set(op, pool);
    return status;
}

PyObject *device_memory_resource_default(module_state *state, cc_device *device)
{
    PyTypeObject *type = state->device_memory_resource_type;
    PyObject *op = type->tp_alloc(type, 0);
    if (op != NULL && set_default_pool(state, op, device) < 0)
        Py_CLEAR(op);
    return op;
}

/* ---- init ------------------------------------------------------------------------------------------------------- */

static int read_options(module_state *state, PyObject *options, size_t *max_size)
{
    static const char *const names[] = {"ipc_enabled", "max_size"};
    PyObject *values[2];
    if (options_read(options, "DeviceMemoryResourceOptions", names, values, 2) < 0)
        return -1;
    int status = options_flag(values[0], "DeviceMemoryResourceOptions", names[0], 0);
    if (status > 0) {
        raise_not_supported(state, "memory pools cannot be shared between processes yet: leave ipc_enabled False");
        status = -1;
    }
    if (status == 0)
        status = pool_max_size(values[1], "DeviceMemoryResourceOptions", max_size);
    options_drop(values, 2);
    return status;
}

static int set_new_pool(module_state *state, PyObject *op, cc_device *device, PyObject *options)
{
    size_t max_size;
    if (read_options(state, options, &max_size) < 0)
        return -1;
    cc_error error;
    cc_pool *pool;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_pool_create_device(device, max_size, &pool, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0)
        raise_error(state, &error);
    else
        pool_resource_set(op, pool);
    return status;
}

static int device_memory_resource_init(PyObject *op, PyObject *args, PyObject *keywords)
{
    static const parameter_name parameters[] = {NAME("device_id"), NAME("options")};
    static const signature wanted = SIGNATURE("DeviceMemoryResource", parameters, 2, REQUIRED(0));
    PyObject *given[2];
    if (parse_call(&wanted, args, keywords, given) < 0)
        return -1;
    module_state *state = state_of(op);
    const device_object *device = device_from_object(state, given[0], "device_id");
    if (device == NULL)
        return -1;
    if (given[1] == NULL || given[1] == Py_None)
        return set_default_pool(state, op, device->core);
    return set_new_pool(state, op, device->core, given[1]);
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(from_allocation_handle_doc,
             "from_allocation_handle($type, /, device_id, alloc_handle)\n--\n\n"
             "Memory pools cannot be shared between processes yet: raises NotSupportedError.");

static PyObject *device_memory_resource_from_allocation_handle(PyObject *class, PyObject *const *args, Py_ssize_t count,
                                                               PyObject *names)
{
    static const parameter_name parameters[] = {NAME("device_id"), NAME("alloc_handle")};
    static const signature wanted =
        SIGNATURE("DeviceMemoryResource.from_allocation_handle", parameters, 2, REQUIRED(0) | REQUIRED(1));
    PyObject *given[2];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    return raise_not_supported(state_of_type((PyTypeObject *)class),
                               "memory pools cannot be shared between processes yet");
}

static PyObject *device_memory_resource_repr(PyObject *op)
{
    cc_pool *pool = pool_hold(op);
    if (pool == NULL) {
        PyErr_Clear();
        return PyUnicode_FromFormat("<%s, closed>", Py_TYPE(op)->tp_name);
    }
    PyObject *text =
        PyUnicode_FromFormat("<%s of device %d, %s pool>", Py_TYPE(op)->tp_name,
                             cc_device_ordinal(cc_pool_device(pool)), cc_pool_is_owned(pool) ? "own" : "default");
    cc_pool_release(pool);
    return text;
}

static PyMethodDef device_memory_resource_methods[] = {
    {"from_allocation_handle", FUNCTION(device_memory_resource_from_allocation_handle), METH_KEYWORD_CALL | METH_CLASS,
     from_allocation_handle_doc},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static PyObject *device_memory_resource_get_device_id(PyObject *op, void *unused)
{
    (void)unused;
    cc_pool *pool = pool_hold(op);
    if (pool == NULL)
        return NULL;
    const int ordinal = cc_device_ordinal(cc_pool_device(pool));
    cc_pool_release(pool);
    return PyLong_FromLong(ordinal);
}

static PyObject *device_memory_resource_get_is_host_accessible(PyObject *op, void *unused)
{
    (void)op, (void)unused;
    Py_RETURN_FALSE;
}

static int may_access(module_state *state, cc_pool *pool, int ordinal, bool *may)
{
    cc_error error;
    if (cc_pool_get_access(pool, device_cast(state->devices[ordinal])->core, may, &error) == 0)
        return 0;
    raise_error(state, &error);
    return -1;
}

static PyObject *list_peers(module_state *state, cc_pool *pool)
{
    const int own = cc_device_ordinal(cc_pool_device(pool));
    PyObject *list = PyList_New(0);
    for (int i = 0; list != NULL && i < state->device_count; i++) {
        bool may = false;
        int status = i == own ? 0 : may_access(state, pool, i, &may);
        if (status == 0 && may) {
            PyObject *number = PyLong_FromLong(i);
            status = number == NULL ? -1 : PyList_Append(list, number);
            Py_XDECREF(number);
        }
        if (status < 0)
            Py_CLEAR(list);
    }
    PyObject *tuple = list == NULL ? NULL : PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

static PyObject *device_memory_resource_get_peers(PyObject *op, void *unused)
{
    (void)unused;
    cc_pool *pool = pool_hold(op);
    if (pool == NULL)
        return NULL;
    PyObject *peers = list_peers(state_of(op), pool);
    cc_pool_release(pool);
    return peers;
}

/* A tuple, which nobody can change while it is read. New reference. */
static PyObject *peers_of(PyObject *sequence)
{
    PyObject *items = PySequence_Fast(sequence, "peer_accessible_by must be a sequence of Device or int");
    if (items == NULL || PyTuple_CheckExact(items))
        return items;
    PyObject *tuple = PyList_AsTuple(items);
    Py_DECREF(items);
    return tuple;
}

/* wanted[i] for each device of the sequence; a peer that cannot reach the pool's device is refused. */
static int read_peers(module_state *state, cc_pool *pool, PyObject *sequence, char *wanted)
{
    PyObject *items = peers_of(sequence);
    int status = items == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; status == 0 && i < PyTuple_GET_SIZE(items); i++) {
        const device_object *peer = device_from_object(state, PyTuple_GET_ITEM(items, i), "a peer");
        cc_error error;
        bool can = true;
        if (peer == NULL) {
            status = -1;
        } else if (peer->core != cc_pool_device(pool) &&
                   cc_device_can_access_peer(peer->core, cc_pool_device(pool), &can, &error) < 0) {
            raise_error(state, &error);
            status = -1;
        } else if (!can) {
            PyErr_Format(PyExc_ValueError, "device %d cannot access the memory of device %d", peer->ordinal,
                         cc_device_ordinal(cc_pool_device(pool)));
            status = -1;
        } else {
            wanted[peer->ordinal] = 1;
        }
    }
    Py_XDECREF(items);
    return status;
}

static int apply_peers(module_state *state, cc_pool *pool, const char *wanted)
{
    const int own = cc_device_ordinal(cc_pool_device(pool));
    for (int i = 0; i < state->device_count; i++) {
        bool may;
        if (i == own)
            continue;
        if (may_access(state, pool, i, &may) < 0)
            return -1;
        cc_error error;
        if (may == (wanted[i] != 0))
            continue;
        if (cc_pool_set_access(pool, device_cast(state->devices[i])->core, wanted[i] != 0, &error) < 0) {
            raise_error(state, &error);
            return -1;
        }
    }
    return 0;
}

static int device_memory_resource_set_peers(PyObject *op, PyObject *value, void *unused)
{
    (void)unused;
    module_state *state = state_of(op);
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "peer_accessible_by can be set, but not deleted");
        return -1;
    }
    cc_pool *pool = pool_hold(op);
    if (pool == NULL)
        return -1;
    int status = -1;
    char *wanted = PyMem_Calloc((size_t)state->device_count, 1);
    if (wanted == NULL)
        PyErr_NoMemory();
    else if (read_peers(state, pool, value, wanted) == 0)
        status = apply_peers(state, pool, wanted);
    PyMem_Free(wanted);
    cc_pool_release(pool);
    return status;
}

static PyGetSetDef device_memory_resource_attributes[] = {
    {"device_id", device_memory_resource_get_device_id, NULL, "The number of the device (int).", NULL},
    {"is_host_accessible", device_memory_resource_get_is_host_accessible, NULL,
     "False: the host cannot use the memory directly (bool).", NULL},
    {"peer_accessible_by", device_memory_resource_get_peers, device_memory_resource_set_peers,
     "The numbers of the other devices whose kernels can use the memory (tuple of int); set to a sequence of Device "
     "or\n"
     "int. Driver: cuMemPoolGetAccess, cuMemPoolSetAccess.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(
    device_memory_resource_doc,
    "DeviceMemoryResource(device_id, options=None)\n--\n\n"
    "Device memory in stream order, from a pool.\n\n"
    "device_id: a Device or its number (int).\n"
    "options: None for the device's default pool, which other libraries share; DeviceMemoryResourceOptions, or a\n"
    "dict of its fields, for a pool of its own.\n"
    "Raises ValueError (no such device), NotSupportedError (no pools), CUDAError. A context manager: leaving the\n"
    "block closes it. Driver: cuDeviceGetDefaultMemPool, cuMemPoolCreate.");

static PyType_Slot device_memory_resource_slots[] = {
    {Py_tp_doc, (void *)device_memory_resource_doc},
    {Py_tp_init, device_memory_resource_init},
    {Py_tp_dealloc, pool_resource_dealloc},
    {Py_tp_repr, device_memory_resource_repr},
    {Py_tp_methods, device_memory_resource_methods},
    {Py_tp_getset, device_memory_resource_attributes},
    {0, NULL},
};

PyType_Spec device_memory_resource_spec = {
    .name = "cuda_core.DeviceMemoryResource",
    .basicsize = sizeof(pool_resource_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = device_memory_resource_slots,
};
