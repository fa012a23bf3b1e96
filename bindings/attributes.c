/* KernelAttributes: what a kernel needs of a device, and the little of it that can be set. */
#include "kernel.h"

#include "device.h"
#include "errors.h"

typedef struct attributes_object {
    PyObject_HEAD
    PyObject *kernel;
    cc_device *device; /* NULL: the current one at each use */
} attributes_object;

#define attributes_cast(object) ((attributes_object *)(object))

typedef struct attribute_row {
    CUfunction_attribute attribute;
    bool is_flag;
    const char *name;
} attribute_row;

/* ---- for other files --------------------------------------------------------------------------------------------- */

PyObject *kernel_attributes_of(module_state *state, PyObject *kernel, cc_device *device)
{
    attributes_object *self = PyObject_New(attributes_object, state->kernel_attributes_type);
    if (self == NULL)
        return NULL;
    self->kernel = Py_NewRef(kernel);
    self->device = device;
    return (PyObject *)self;
}

/* ---- new, dealloc ------------------------------------------------------------------------------------------------ */

static PyObject *attributes_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type, (void)args, (void)keywords;
    PyErr_SetString(PyExc_TypeError, "KernelAttributes are not made directly: use Kernel.attributes");
    return NULL;
}

static void attributes_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    Py_DECREF(attributes_cast(op)->kernel);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static cc_device *device_of(module_state *state, const attributes_object *self)
{
    if (self->device != NULL)
        return self->device;
    const device_object *device = device_current(state);
    return device == NULL ? NULL : device->core;
}

static PyObject *attributes_get(PyObject *op, void *closure)
{
    const attribute_row *row = closure;
    module_state *state = state_of(op);
    cc_kernel *kernel = kernel_cast(attributes_cast(op)->kernel)->core;
    cc_device *device = device_of(state, attributes_cast(op));
    if (device == NULL)
        return NULL;
    cc_error error;
    int status, value;
    Py_BEGIN_ALLOW_THREADS; /* the first question loads the code on the device */
    status = cc_kernel_attribute(kernel, device, row->attribute, &value, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0)
        return raise_error(state, &error);
    return row->is_flag ? PyBool_FromLong(value) : PyLong_FromLong(value);
}

static int read_value(const attribute_row *row, PyObject *object, int *value)
{
    if (object == NULL) {
        PyErr_Format(PyExc_TypeError, "KernelAttributes.%s cannot be deleted", row->name);
        return -1;
    }
    if (row->is_flag ? !PyBool_Check(object) : PyBool_Check(object) || !PyIndex_Check(object)) {
        PyErr_Format(PyExc_TypeError, "KernelAttributes.%s must be %s, not %.100s", row->name,
                     row->is_flag ? "a bool" : "an int", Py_TYPE(object)->tp_name);
        return -1;
    }
    PyObject *number = PyNumber_Index(object);
    if (number == NULL)
        return -1;
    int overflow;
    const long long wide = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow != 0 || wide < INT_MIN || wide > INT_MAX) {
        PyErr_Format(PyExc_OverflowError, "KernelAttributes.%s must be between %d and %d", row->name, INT_MIN, INT_MAX);
        return -1;
    }
    *value = (int)wide;
    return 0;
}

static int attributes_set(PyObject *op, PyObject *object, void *closure)
{
    const attribute_row *row = closure;
    module_state *state = state_of(op);
    cc_kernel *kernel = kernel_cast(attributes_cast(op)->kernel)->core;
    int value;
    if (read_value(row, object, &value) < 0)
        return -1;
    cc_device *device = device_of(state, attributes_cast(op));
    if (device == NULL)
        return -1;
    cc_error error;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_kernel_set_attribute(kernel, device, row->attribute, value, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0)
        raise_error_about(state, &error, row->name);
    return status;
}

#define ROW(attribute, is_flag, name) ((void *)&(attribute_row){CU_FUNC_ATTRIBUTE_##attribute, is_flag, name})
#define READ(name, attribute, doc)                                                                                     \
    {                                                                                                                  \
        name, attributes_get, NULL, doc, ROW(attribute, false, name)                                                   \
    }
#define READ_FLAG(name, attribute, doc)                                                                                \
    {                                                                                                                  \
        name, attributes_get, NULL, doc, ROW(attribute, true, name)                                                    \
    }
#define SET(name, attribute, doc)                                                                                      \
    {                                                                                                                  \
        name, attributes_get, attributes_set, doc, ROW(attribute, false, name)                                         \
    }
#define SET_FLAG(name, attribute, doc)                                                                                 \
    {                                                                                                                  \
        name, attributes_get, attributes_set, doc, ROW(attribute, true, name)                                          \
    }

static PyGetSetDef attributes_attributes[] = {
    READ("max_threads_per_block", MAX_THREADS_PER_BLOCK, "Threads a block may have with this kernel (int)."),
    READ("shared_size_bytes", SHARED_SIZE_BYTES, "Bytes of static shared memory a block (int)."),
    READ("const_size_bytes", CONST_SIZE_BYTES, "Bytes of constant memory that the user allocated (int)."),
    READ("local_size_bytes", LOCAL_SIZE_BYTES, "Bytes of local memory a thread (int)."),
    READ("num_regs", NUM_REGS, "Registers a thread (int)."),
    READ("ptx_version", PTX_VERSION, "PTX virtual architecture, 80 for 8.0 (int)."),
    READ("binary_version", BINARY_VERSION, "Architecture of the machine code, 80 for 8.0 (int)."),
    READ_FLAG("cache_mode_ca", CACHE_MODE_CA, "Compiled with -Xptxas --dlcm=ca (bool)."),
    SET("max_dynamic_shared_size_bytes", MAX_DYNAMIC_SHARED_SIZE_BYTES,
        "Bytes of dynamic shared memory that a launch may ask for (int). Settable, up to the device's opt-in limit."),
    SET("preferred_shared_memory_carveout", PREFERRED_SHARED_MEMORY_CARVEOUT,
        "Percent of the L1 cache that is wanted as shared memory, -1 for no wish (int). Settable."),
    READ_FLAG("cluster_size_must_be_set", CLUSTER_SIZE_MUST_BE_SET, "Launches must name a cluster (bool)."),
    SET("required_cluster_width", REQUIRED_CLUSTER_WIDTH, "Blocks of a cluster in x, 0 for any (int). Settable."),
    SET("required_cluster_height", REQUIRED_CLUSTER_HEIGHT, "Blocks of a cluster in y, 0 for any (int). Settable."),
    SET("required_cluster_depth", REQUIRED_CLUSTER_DEPTH, "Blocks of a cluster in z, 0 for any (int). Settable."),
    SET_FLAG("non_portable_cluster_size_allowed", NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
             "Clusters may be larger than every device of the architecture takes (bool). Settable."),
    SET("cluster_scheduling_policy_preference", CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        "The CUclusterSchedulingPolicy that is wanted (int). Settable."),
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- as a mapping by device -------------------------------------------------------------------------------------- */

static PyObject *attributes_subscript(PyObject *op, PyObject *key)
{
    module_state *state = state_of(op);
    const device_object *device = device_from_object(state, key, "device");
    return device == NULL ? NULL : kernel_attributes_of(state, attributes_cast(op)->kernel, device->core);
}

static PyObject *attributes_repr(PyObject *op)
{
    const attributes_object *self = attributes_cast(op);
    if (self->device == NULL)
        return PyUnicode_FromFormat("<KernelAttributes of %R>", self->kernel);
    return PyUnicode_FromFormat("<KernelAttributes of %R on device %d>", self->kernel, cc_device_ordinal(self->device));
}

/* ---- spec -------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(attributes_doc, "What a kernel needs of a device: of the current one, or of attributes[device].\n\n"
                             "Driver: cuKernelGetAttribute, cuKernelSetAttribute.");

static PyType_Slot attributes_slots[] = {
    {Py_tp_doc, (void *)attributes_doc},
    {Py_tp_new, attributes_new},
    {Py_tp_dealloc, attributes_dealloc},
    {Py_tp_repr, attributes_repr},
    {Py_mp_subscript, attributes_subscript},
    {Py_tp_getset, attributes_attributes},
    {0, NULL},
};

PyType_Spec kernel_attributes_spec = {
    .name = "cuda_core.KernelAttributes",
    .basicsize = sizeof(attributes_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = attributes_slots,
};
