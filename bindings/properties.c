#include "device.h"

#include "errors.h"
#include "parse.h"

typedef struct device_properties_object {
    PyObject_HEAD
    cc_device *core; /* never NULL, never freed; core keeps what it has read */
    PyObject *weak_references;
} device_properties_object;

#define device_properties_cast(object) ((device_properties_object *)(object))

/* ---- the table -------------------------------------------------------------------------------------------------- */

typedef enum property_kind { NUMBER, FLAG } property_kind;

typedef struct property {
    const char *name;
    CUdevice_attribute attribute;
    property_kind kind;
} property;

static const property properties[] = {
#define PROPERTY(name, attribute, kind, documentation) {#name, CU_DEVICE_ATTRIBUTE_##attribute, kind},
#include "properties.def"
#undef PROPERTY
};
#define PROPERTY_COUNT ((Py_ssize_t)(sizeof properties / sizeof properties[0]))

/* A driver that is older than an attribute refuses it: such a device has none of it. */
static PyObject *read_property(PyObject *op, const property *row)
{
    cc_error error;
    int value;
    if (cc_device_attribute(device_properties_cast(op)->core, row->attribute, &value, &error) < 0) {
        if (error.domain != CC_DOMAIN_DRIVER || error.code != CUDA_ERROR_INVALID_VALUE)
            return raise_error(state_of(op), &error);
        cc_error_clear(&error);
        value = 0;
    }
    return row->kind == FLAG ? PyBool_FromLong(value) : PyLong_FromLong(value);
}

static const property *find_property(PyObject *name)
{
    for (Py_ssize_t i = 0; PyUnicode_Check(name) && i < PROPERTY_COUNT; i++) {
        if (PyUnicode_CompareWithASCIIString(name, properties[i].name) == 0)
            return &properties[i];
    }
    return NULL;
}

/* ---- for other files -------------------------------------------------------------------------------------------- */

PyObject *device_properties_new(module_state *state, cc_device *core)
{
    device_properties_object *self = PyObject_New(device_properties_object, state->device_properties_type);
    if (self == NULL)
        return NULL;
    self->core = core;
    self->weak_references = NULL;
    return (PyObject *)self;
}

/* ---- new, dealloc ----------------------------------------------------------------------------------------------- */

static PyObject *device_properties_refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type, (void)args, (void)keywords;
    PyErr_SetString(PyExc_TypeError, "DeviceProperties are not made directly: use Device.properties");
    return NULL;
}

static void device_properties_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    if (device_properties_cast(op)->weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- methods: a mapping ----------------------------------------------------------------------------------------- */

static Py_ssize_t device_properties_length(PyObject *op)
{
    (void)op;
    return PROPERTY_COUNT;
}

static PyObject *device_properties_subscript(PyObject *op, PyObject *name)
{
    const property *row = find_property(name);
    if (row != NULL)
        return read_property(op, row);
    PyErr_SetObject(PyExc_KeyError, name);
    return NULL;
}

static int device_properties_contains(PyObject *op, PyObject *name)
{
    (void)op;
    return find_property(name) != NULL;
}

typedef PyObject *(*row_function)(PyObject *op, const property *row);

static PyObject *row_name(PyObject *op, const property *row)
{
    (void)op;
    return PyUnicode_FromString(row->name);
}

static PyObject *row_item(PyObject *op, const property *row)
{
    PyObject *value = read_property(op, row);
    return value == NULL ? NULL : Py_BuildValue("sN", row->name, value);
}

static PyObject *list_rows(PyObject *op, row_function function)
{
    PyObject *list = PyList_New(PROPERTY_COUNT);
    for (Py_ssize_t i = 0; list != NULL && i < PROPERTY_COUNT; i++) {
        PyObject *entry = function(op, &properties[i]);
        if (entry == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, entry);
    }
    return list;
}

static PyObject *device_properties_keys(PyObject *op, PyObject *unused)
{
    (void)unused;
    return list_rows(op, row_name);
}

static PyObject *device_properties_values(PyObject *op, PyObject *unused)
{
    (void)unused;
    return list_rows(op, read_property);
}

static PyObject *device_properties_items(PyObject *op, PyObject *unused)
{
    (void)unused;
    return list_rows(op, row_item);
}

static PyObject *device_properties_get(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("key"), NAME("default")};
    static const signature wanted = SIGNATURE("DeviceProperties.get", parameters, 2, REQUIRED(0));
    PyObject *given[2];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    const property *row = find_property(given[0]);
    if (row != NULL)
        return read_property(op, row);
    return Py_NewRef(given[1] == NULL ? Py_None : given[1]);
}

static PyObject *device_properties_iterate(PyObject *op)
{
    PyObject *names = list_rows(op, row_name);
    PyObject *iterator = names == NULL ? NULL : PyObject_GetIter(names);
    Py_XDECREF(names);
    return iterator;
}

static PyObject *device_properties_repr(PyObject *op)
{
    return PyUnicode_FromFormat("<DeviceProperties of device %d>", cc_device_ordinal(device_properties_cast(op)->core));
}

static PyMethodDef device_properties_methods[] = {
    {"keys", device_properties_keys, METH_NOARGS, "keys($self, /)\n--\n\nThe names of the properties (list of str)."},
    {"values", device_properties_values, METH_NOARGS,
     "values($self, /)\n--\n\nThe values of the properties, in the order of keys() (list)."},
    {"items", device_properties_items, METH_NOARGS, "items($self, /)\n--\n\nPairs of name and value (list of tuple)."},
    {"get", FUNCTION(device_properties_get), METH_KEYWORD_CALL,
     "get($self, /, key, default=None)\n--\n\nThe property named `key`, or `default` where there is none."},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes: one a property --------------------------------------------------------------------------------- */

static PyObject *device_properties_get_one(PyObject *op, void *row)
{
    return read_property(op, row);
}

#define TYPE_OF_NUMBER " (int). Driver: cuDeviceGetAttribute."
#define TYPE_OF_FLAG   " (bool). Driver: cuDeviceGetAttribute."

/* Rows are the indexes into `properties`: a getset's closure is not const, and reads only. */
enum {
#define PROPERTY(name, attribute, kind, documentation) ROW_##name,
#include "properties.def"
#undef PROPERTY
};

static PyGetSetDef device_properties_attributes[] = {
#define PROPERTY(name, attribute, kind, documentation)                                                                 \
    {#name, device_properties_get_one, NULL, documentation TYPE_OF_##kind, (void *)&properties[ROW_##name]},
#include "properties.def"
#undef PROPERTY
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef device_properties_members[] = {WEAKREF_MEMBER(device_properties_object), {NULL, 0, 0, 0, NULL}};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(
    device_properties_doc,
    "The attributes of a device, each read from the driver when it is first asked for. From Device.properties.\n\n"
    "Also a mapping of them: dict(device.properties). An attribute that the driver does not know yet is 0 or\n"
    "False. Driver: cuDeviceGetAttribute.");

static PyType_Slot device_properties_slots[] = {
    {Py_tp_doc, (void *)device_properties_doc},     {Py_tp_new, device_properties_refuse_new},
    {Py_tp_dealloc, device_properties_dealloc},     {Py_tp_repr, device_properties_repr},
    {Py_tp_iter, device_properties_iterate},        {Py_mp_length, device_properties_length},
    {Py_mp_subscript, device_properties_subscript}, {Py_sq_contains, device_properties_contains},
    {Py_tp_methods, device_properties_methods},     {Py_tp_getset, device_properties_attributes},
    {Py_tp_members, device_properties_members},     {0, NULL},
};

PyType_Spec device_properties_spec = {
    .name = "cuda_core.DeviceProperties",
    .basicsize = sizeof(device_properties_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_MAPPING,
    .slots = device_properties_slots,
};
