#include "managed.h"

#include "device.h"
#include "errors.h"
#include "parse.h"

#include <limits.h>

typedef struct host_object {
    PyObject_HEAD
    int numa_id; /* -1: none in particular */
    char is_current;
} host_object;

#define host_cast(object) ((host_object *)(object))

/* ---- for other files -------------------------------------------------------------------------------------------- */

static PyObject *make(PyTypeObject *type, int numa_id, int is_current)
{
    PyObject *op = type->tp_alloc(type, 0);
    if (op != NULL) {
        host_cast(op)->numa_id = numa_id;
        host_cast(op)->is_current = (char)is_current;
    }
    return op;
}

PyObject *host_from_location(module_state *state, CUmemLocation location)
{
    const int is_node = location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    return make(state->host_type, is_node ? location.id : -1, location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
}

int location_from_object(module_state *state, PyObject *object, const char *what, CUmemLocation *location)
{
    if (PyObject_TypeCheck(object, state->device_type)) {
        location->type = CU_MEM_LOCATION_TYPE_DEVICE;
        location->id = device_cast(object)->ordinal;
        return 0;
    }
    if (!PyObject_TypeCheck(object, state->host_type)) {
        PyErr_Format(PyExc_TypeError, "%s must be a Device or a Host, not %.100s", what, Py_TYPE(object)->tp_name);
        return -1;
    }
    const host_object *host = host_cast(object);
    location->type = host->is_current     ? CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
                     : host->numa_id >= 0 ? CU_MEM_LOCATION_TYPE_HOST_NUMA
                                          : CU_MEM_LOCATION_TYPE_HOST;
    location->id = host->numa_id < 0 ? 0 : host->numa_id;
    return 0;
}

/* ---- new -------------------------------------------------------------------------------------------------------- */

static PyObject *host_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static const parameter_name parameters[] = {NAME("numa_id"), NAME("is_numa_current")};
    static const signature wanted = SIGNATURE("Host", parameters, 1, 0);
    PyObject *given[2];
    size_t number = 0;
    if (parse_call(&wanted, args, keywords, given) < 0)
        return NULL;
    PyObject *numa_id = none_to_null(given[0]);
    const int is_current = given[1] == NULL ? 0 : PyObject_IsTrue(given[1]);
    if (is_current < 0 || (numa_id != NULL && size_from_object(numa_id, "numa_id", &number) < 0))
        return NULL;
    if (numa_id != NULL && is_current) {
        PyErr_SetString(PyExc_ValueError, "give numa_id or is_numa_current, not both");
        return NULL;
    }
    if (number > INT_MAX) {
        PyErr_SetString(PyExc_OverflowError, "numa_id is too large");
        return NULL;
    }
    return make(type, numa_id == NULL ? -1 : (int)number, is_current);
}

static void host_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

static PyObject *host_numa_current(PyObject *class, PyObject *unused)
{
    (void)unused;
    return make((PyTypeObject *)class, -1, 1);
}

static PyObject *host_get_numa_id(PyObject *op, void *unused)
{
    (void)unused;
    if (host_cast(op)->numa_id < 0)
        Py_RETURN_NONE;
    return PyLong_FromLong(host_cast(op)->numa_id);
}

static PyObject *host_get_is_numa_current(PyObject *op, void *unused)
{
    (void)unused;
    return PyBool_FromLong(host_cast(op)->is_current);
}

static PyObject *host_reduce(PyObject *op, PyObject *unused)
{
    (void)unused;
    PyObject *class = (PyObject *)Py_TYPE(op);
    if (host_cast(op)->is_current) {
        PyObject *maker = PyObject_GetAttrString(class, "numa_current");
        return maker == NULL ? NULL : Py_BuildValue("N()", maker);
    }
    return Py_BuildValue("O(N)", class, host_get_numa_id(op, NULL));
}

static PyObject *host_compare(PyObject *op, PyObject *other, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || !PyObject_TypeCheck(other, state_of(op)->host_type))
        Py_RETURN_NOTIMPLEMENTED;
    const host_object *a = host_cast(op), *b = host_cast(other);
    return PyBool_FromLong((a->numa_id == b->numa_id && a->is_current == b->is_current) == (operation == Py_EQ));
}

static Py_hash_t host_hash(PyObject *op)
{
    return (Py_hash_t)1000003 * (host_cast(op)->numa_id + 2) + host_cast(op)->is_current;
}

static PyObject *host_repr(PyObject *op)
{
    if (host_cast(op)->is_current)
        return PyUnicode_FromString("Host.numa_current()");
    if (host_cast(op)->numa_id < 0)
        return PyUnicode_FromString("Host()");
    return PyUnicode_FromFormat("Host(numa_id=%d)", host_cast(op)->numa_id);
}

static PyMethodDef host_methods[] = {
    {"numa_current", host_numa_current, METH_NOARGS | METH_CLASS,
     "numa_current($type, /)\n--\n\nThe NUMA node of the thread that makes the call it is given to."},
    {"__reduce__", host_reduce, METH_NOARGS, "__reduce__($self, /)\n--\n\nHelper for pickle."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef host_attributes[] = {
    {"numa_id", host_get_numa_id, NULL, "The NUMA node (int), or None: no one in particular.", NULL},
    {"is_numa_current", host_get_is_numa_current, NULL, "True: the calling thread's NUMA node (bool).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(host_doc, "Host(numa_id=None, *, is_numa_current=False)\n--\n\n"
                       "The host as a place for managed memory: any of its memory, a NUMA node's, or that of the\n"
                       "calling thread's node. Hosts of the same place are equal.\n\n"
                       "Raises ValueError (negative, or both given), OverflowError, TypeError.");

static PyType_Slot host_slots[] = {
    {Py_tp_doc, (void *)host_doc}, {Py_tp_new, host_new},           {Py_tp_dealloc, host_dealloc},
    {Py_tp_repr, host_repr},       {Py_tp_hash, host_hash},         {Py_tp_richcompare, host_compare},
    {Py_tp_methods, host_methods}, {Py_tp_getset, host_attributes}, {0, NULL},
};

PyType_Spec host_spec = {
    .name = "cuda_core.Host",
    .basicsize = sizeof(host_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = host_slots,
};
