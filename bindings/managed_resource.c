#include "resource.h"

#include "device.h"
#include "errors.h"
#include "options.h"
#include "parse.h"

#include <limits.h>

/* ---- init ------------------------------------------------------------------------------------------------------- */

static int refuse_location(const char *type, const char *wanted)
{
    PyErr_Format(PyExc_ValueError, "with preferred_location_type '%s' preferred_location must be %s", type, wanted);
    return -1;
}

/* Without a type: a device's number, or -1 for the host. */
static int read_untyped(long id, CUmemLocation *location)
{
    if (id < -1) {
        PyErr_SetString(PyExc_ValueError, "preferred_location must be a device's number, -1 for the host, or None");
        return -1;
    }
    location->type = id < 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    location->id = id < 0 ? 0 : (int)id;
    return 0;
}

static int read_typed(const device_object *device, const char *type, int has_id, long id, CUmemLocation *location)
{
    cc_error error;
    location->id = has_id ? (int)id : 0;
    if (strcmp(type, "device") == 0) {
        location->type = CU_MEM_LOCATION_TYPE_DEVICE;
        return has_id && id >= 0 ? 0 : refuse_location(type, "a device's number");
    }
    if (strcmp(type, "host") == 0) {
        location->type = CU_MEM_LOCATION_TYPE_HOST;
        return has_id ? refuse_location(type, "None") : 0;
    }
    if (strcmp(type, "host_numa") != 0) {
        PyErr_Format(PyExc_ValueError,
                     "preferred_location_type must be 'device', 'host', 'host_numa' or None, not '%.100s'", type);
        return -1;
    }
    location->type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (has_id)
        return id >= 0 ? 0 : refuse_location(type, "a NUMA node's number or None");
    if (cc_device_attribute(device->core, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, &location->id, &error) == 0)
        return 0;
    raise_error(state_of((PyObject *)device), &error);
    return -1;
}

static int read_id(PyObject *value, long *id)
{
    if (PyBool_Check(value) || !PyIndex_Check(value)) {
        PyErr_Format(PyExc_TypeError, "preferred_location must be an int or None, not %.100s", Py_TYPE(value)->tp_name);
        return -1;
    }
    *id = PyLong_AsLong(value);
    if (*id == -1 && PyErr_Occurred())
        return -1;
    if (*id <= INT_MAX && *id >= INT_MIN)
        return 0;
    PyErr_SetString(PyExc_OverflowError, "preferred_location is too large");
    return -1;
}

static int read_options(const device_object *device, PyObject *options, CUmemLocation *location)
{
    static const char *const names[] = {"preferred_location", "preferred_location_type"};
    PyObject *values[2];
    long id = 0;
    if (options_read(options, "ManagedMemoryResourceOptions", names, values, 2) < 0)
        return -1;
    int status = values[0] == NULL ? 0 : read_id(values[0], &id);
    if (status == 0 && values[1] != NULL) {
        const char *type = PyUnicode_Check(values[1]) ? PyUnicode_AsUTF8(values[1]) : NULL;
        if (type == NULL && !PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "preferred_location_type must be a str or None, not %.100s",
                         Py_TYPE(values[1])->tp_name);
        status = type == NULL ? -1 : read_typed(device, type, values[0] != NULL, id, location);
    } else if (status == 0 && values[0] != NULL) {
        status = read_untyped(id, location);
    }
    options_drop(values, 2);
    return status;
}

static int managed_memory_resource_init(PyObject *op, PyObject *args, PyObject *keywords)
{
    static const parameter_name parameters[] = {NAME("options")};
    static const signature wanted = SIGNATURE("ManagedMemoryResource", parameters, 1, 0);
    PyObject *given[1];
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_NONE};
    if (parse_call(&wanted, args, keywords, given) < 0)
        return -1;
    module_state *state = state_of(op);
    const device_object *device = device_current(state);
    if (device == NULL || read_options(device, given[0], &location) < 0)
        return -1;
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id >= state->device_count) {
        PyErr_Format(PyExc_ValueError, "there is no device %d", location.id);
        return -1;
    }
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        device = device_cast(state->devices[location.id]);
    cc_error error;
    cc_pool *pool;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_pool_create_managed(device->core, location, &pool, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0) {
        raise_error(state, &error);
        return -1;
    }
    pool_resource_cast(op)->location = location;
    pool_resource_set(op, pool);
    return 0;
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static PyObject *managed_memory_resource_get_device_id(PyObject *op, void *unused)
{
    (void)unused;
    const CUmemLocation location = pool_resource_cast(op)->location;
    return PyLong_FromLong(location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : -1);
}

static PyObject *managed_memory_resource_get_preferred(PyObject *op, void *unused)
{
    (void)unused;
    const CUmemLocation location = pool_resource_cast(op)->location;
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return Py_BuildValue("si", "device", location.id);
    if (location.type == CU_MEM_LOCATION_TYPE_HOST)
        return Py_BuildValue("sO", "host", Py_None);
    if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
        return Py_BuildValue("si", "host_numa", location.id);
    Py_RETURN_NONE;
}

static PyGetSetDef managed_memory_resource_attributes[] = {
    {"device_id", managed_memory_resource_get_device_id, NULL,
     "The number of the device that is preferred; -1 where none is (int).", NULL},
    {"preferred_location", managed_memory_resource_get_preferred, NULL,
     "Where the memory should be: ('device', number), ('host', None), ('host_numa', node), or None.", NULL},
    {"is_host_accessible", resource_get_true, NULL, "True: the host can use the memory directly (bool).", NULL},
    {"is_managed", resource_get_true, NULL, "True: the memory moves between host and device (bool).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(managed_memory_resource_doc,
             "ManagedMemoryResource(options=None)\n--\n\n"
             "Managed memory in stream order, from a pool: host and kernels use it at the same address.\n\n"
             "options: ManagedMemoryResourceOptions, a dict of its fields, or None.\n"
             "allocate() gives a ManagedBuffer. Raises NotSupportedError (needs driver 13.0), ValueError, TypeError,\n"
             "CUDAError. A context manager: leaving the block closes it. Driver: cuMemPoolCreate.");

static PyType_Slot managed_memory_resource_slots[] = {
    {Py_tp_doc, (void *)managed_memory_resource_doc},
    {Py_tp_init, managed_memory_resource_init},
    {Py_tp_dealloc, pool_resource_dealloc},
    {Py_tp_getset, managed_memory_resource_attributes},
    {0, NULL},
};

PyType_Spec managed_memory_resource_spec = {
    .name = "cuda_core.ManagedMemoryResource",
    .basicsize = sizeof(pool_resource_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = managed_memory_resource_slots,
};
