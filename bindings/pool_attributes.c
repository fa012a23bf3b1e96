#include "resource.h"

#include "errors.h"

typedef struct pool_attributes_object {
    PyObject_HEAD
    cc_pool *core; /* never NULL */
    PyObject *weak_references;
} pool_attributes_object;

#define pool_attributes_cast(object) ((pool_attributes_object *)(object))

/* ---- the table -------------------------------------------------------------------------------------------------- */

typedef enum row_kind { FLAG, BYTES, HIGH_MARK, READ_ONLY } row_kind;

typedef struct row {
    const char *name;
    CUmemPool_attribute attribute;
    row_kind kind;
} row;

static row follow_events = {"reuse_follow_event_dependencies", CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, FLAG};
static row opportunistic = {"reuse_allow_opportunistic", CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, FLAG};
static row internal = {"reuse_allow_internal_dependencies", CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, FLAG};
static row threshold = {"release_threshold", CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, BYTES};
static row reserved_current = {"reserved_mem_current", CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, READ_ONLY};
static row reserved_high = {"reserved_mem_high", CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, HIGH_MARK};
static row used_current = {"used_mem_current", CU_MEMPOOL_ATTR_USED_MEM_CURRENT, READ_ONLY};
static row used_high = {"used_mem_high", CU_MEMPOOL_ATTR_USED_MEM_HIGH, HIGH_MARK};

/* ---- for other files -------------------------------------------------------------------------------------------- */

PyObject *pool_attributes_new(module_state *state, cc_pool *core)
{
    pool_attributes_object *self = PyObject_New(pool_attributes_object, state->pool_attributes_type);
    if (self == NULL) {
        cc_pool_release(core);
        return NULL;
    }
    self->core = core;
    self->weak_references = NULL;
    return (PyObject *)self;
}

static void pool_attributes_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    if (pool_attributes_cast(op)->weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    cc_pool_release(pool_attributes_cast(op)->core);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static PyObject *get_row(PyObject *op, void *closure)
{
    const row *wanted = closure;
    cc_error error;
    uint64_t value;
    if (cc_pool_attribute(pool_attributes_cast(op)->core, wanted->attribute, &value, &error) < 0)
        return raise_error(state_of(op), &error);
    return wanted->kind == FLAG ? PyBool_FromLong(value != 0) : PyLong_FromUnsignedLongLong(value);
}

static int value_of_row(const row *wanted, PyObject *value, uint64_t *number)
{
    if (value == NULL) {
        PyErr_Format(PyExc_AttributeError, "%s can be set, but not deleted", wanted->name);
        return -1;
    }
    if (wanted->kind == FLAG) {
        if (!PyBool_Check(value))
            PyErr_Format(PyExc_TypeError, "%s must be a bool, not %.100s", wanted->name, Py_TYPE(value)->tp_name);
        *number = value == Py_True;
        return PyBool_Check(value) ? 0 : -1;
    }
    if (address_from_object(value, wanted->name, number) < 0)
        return -1;
    if (wanted->kind == HIGH_MARK && *number != 0) {
        PyErr_Format(PyExc_ValueError, "%s can only be set to 0, which starts it anew", wanted->name);
        return -1;
    }
    return 0;
}

static int set_row(PyObject *op, PyObject *value, void *closure)
{
    const row *wanted = closure;
    uint64_t number;
    if (value_of_row(wanted, value, &number) < 0)
        return -1;
    cc_error error;
    if (cc_pool_set_attribute(pool_attributes_cast(op)->core, wanted->attribute, number, &error) == 0)
        return 0;
    raise_error(state_of(op), &error);
    return -1;
}

/* "name=value, ..." of all rows */
static PyObject *list_rows(PyObject *op)
{
    row *const rows[] = {&follow_events,    &opportunistic, &internal,     &threshold,
                         &reserved_current, &reserved_high, &used_current, &used_high};
    PyObject *text = PyUnicode_FromString("");
    for (size_t i = 0; text != NULL && i < sizeof rows / sizeof rows[0]; i++) {
        PyObject *value = get_row(op, rows[i]);
        PyObject *longer =
            value == NULL ? NULL : PyUnicode_FromFormat("%U%s%s=%S", text, i == 0 ? "" : ", ", rows[i]->name, value);
        Py_XDECREF(value);
        Py_DECREF(text);
        text = longer;
    }
    return text;
}

static PyObject *pool_attributes_repr(PyObject *op)
{
    PyObject *rows = list_rows(op);
    PyObject *text = rows == NULL ? NULL : PyUnicode_FromFormat("<memory pool attributes: %U>", rows);
    Py_XDECREF(rows);
    return text;
}

static PyGetSetDef pool_attributes_attributes[] = {
    {"reuse_follow_event_dependencies", get_row, set_row,
     "Memory freed in another stream is reused where an event orders the two (bool).", &follow_events},
    {"reuse_allow_opportunistic", get_row, set_row,
     "Memory freed in another stream is reused where that work happens to be done (bool).", &opportunistic},
    {"reuse_allow_internal_dependencies", get_row, set_row,
     "The driver may make streams wait for each other in order to reuse memory (bool).", &internal},
    {"release_threshold", get_row, set_row,
     "Bytes that the pool keeps when a stream or event is synchronised, and does not give back (int).", &threshold},
    {"reserved_mem_current", get_row, NULL, "Bytes that the pool holds now (int).", &reserved_current},
    {"reserved_mem_high", get_row, set_row, "Bytes that it held at most (int); setting 0 starts anew.", &reserved_high},
    {"used_mem_current", get_row, NULL, "Bytes of the pool in use now (int).", &used_current},
    {"used_mem_high", get_row, set_row, "Bytes in use at most (int); setting 0 starts anew.", &used_high},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef pool_attributes_members[] = {WEAKREF_MEMBER(pool_attributes_object), {NULL, 0, 0, 0, NULL}};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(pool_attributes_doc, "The attributes of a memory pool, read at each access. From the `attributes` of a\n"
                                  "memory resource. Driver: cuMemPoolGetAttribute, cuMemPoolSetAttribute.");

static PyType_Slot pool_attributes_slots[] = {
    {Py_tp_doc, (void *)pool_attributes_doc}, {Py_tp_dealloc, pool_attributes_dealloc},
    {Py_tp_repr, pool_attributes_repr},       {Py_tp_getset, pool_attributes_attributes},
    {Py_tp_members, pool_attributes_members}, {0, NULL},
};

PyType_Spec pool_attributes_spec = {
    .name = "cuda_core._MemPoolAttributes",
    .basicsize = sizeof(pool_attributes_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = pool_attributes_slots,
};
