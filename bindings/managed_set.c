#include "managed.h"

#include "errors.h"

typedef struct accessed_by_object {
    PyObject_HEAD
    PyObject *buffer; /* a reference */
} accessed_by_object;

#define accessed_by_cast(object) ((accessed_by_object *)(object))

/* ---- for other files -------------------------------------------------------------------------------------------- */

/* What the set can do beside its five methods is that of collections.abc.MutableSet. */
static PyObject *make_class(module_state *state)
{
    PyObject *abc = PyImport_ImportModule("collections.abc");
    PyObject *base = abc == NULL ? NULL : PyObject_GetAttrString(abc, "MutableSet");
    PyObject *made = NULL;
    if (base != NULL)
        made = PyObject_CallFunction((PyObject *)Py_TYPE(base), "s(OO){s()ss}", "AccessedBySetProxy",
                                     (PyObject *)state->accessed_by_type, base, "__slots__", "__module__", "cuda_core");
    Py_XDECREF(base);
    Py_XDECREF(abc);
    return made;
}

PyObject *accessed_by_new(module_state *state, PyObject *buffer)
{
    if (state->accessed_by_class == NULL) {
        PyObject *made = make_class(state);
        if (made == NULL)
            return NULL;
        Py_BEGIN_CRITICAL_SECTION(state->accessed_by_type); /* another thread may have made its own meanwhile */
        if (state->accessed_by_class == NULL) {
            state->accessed_by_class = made;
            made = NULL;
        }
        Py_END_CRITICAL_SECTION();
        Py_XDECREF(made);
    }
    PyTypeObject *type = (PyTypeObject *)state->accessed_by_class;
    PyObject *op = type->tp_alloc(type, 0);
    if (op != NULL)
        accessed_by_cast(op)->buffer = Py_NewRef(buffer);
    return op;
}

/* ---- dealloc ---------------------------------------------------------------------------------------------------- */

static int accessed_by_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(accessed_by_cast(op)->buffer);
    return 0;
}

static int accessed_by_clear(PyObject *op)
{
    Py_CLEAR(accessed_by_cast(op)->buffer);
    return 0;
}

static void accessed_by_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    accessed_by_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- what it holds ---------------------------------------------------------------------------------------------- */

/* A set of Device and Host, as the driver has them now. New reference. */
static PyObject *snapshot(PyObject *op)
{
    return PyObject_CallMethod(accessed_by_cast(op)->buffer, "_accessors", NULL);
}

static Py_ssize_t accessed_by_length(PyObject *op)
{
    PyObject *now = snapshot(op);
    const Py_ssize_t length = now == NULL ? -1 : PySet_GET_SIZE(now);
    Py_XDECREF(now);
    return length;
}

static int accessed_by_contains(PyObject *op, PyObject *location)
{
    PyObject *now = snapshot(op);
    const int yes = now == NULL ? -1 : PySet_Contains(now, location);
    Py_XDECREF(now);
    return yes;
}

static PyObject *accessed_by_iterate(PyObject *op)
{
    PyObject *now = snapshot(op);
    PyObject *iterator = now == NULL ? NULL : PyObject_GetIter(now);
    Py_XDECREF(now);
    return iterator;
}

static PyObject *accessed_by_repr(PyObject *op)
{
    PyObject *now = snapshot(op);
    PyObject *text = now == NULL ? NULL : PyUnicode_FromFormat("AccessedBySetProxy(%R)", now);
    Py_XDECREF(now);
    return text;
}

static PyObject *advise(PyObject *op, PyObject *object, CUmem_advise advice)
{
    CUmemLocation location;
    if (location_from_object(state_of(op), object, "who accesses managed memory", &location) < 0 ||
        managed_advise(accessed_by_cast(op)->buffer, advice, location) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *accessed_by_add(PyObject *op, PyObject *location)
{
    return advise(op, location, CU_MEM_ADVISE_SET_ACCESSED_BY);
}

static PyObject *accessed_by_discard(PyObject *op, PyObject *location)
{
    const int is_member = accessed_by_contains(op, location);
    if (is_member < 0)
        return NULL;
    if (is_member)
        return advise(op, location, CU_MEM_ADVISE_UNSET_ACCESSED_BY);
    Py_RETURN_NONE;
}

/* Of a | b and its like: an ordinary set, since only a buffer's own is live. */
static PyObject *accessed_by_from_iterable(PyObject *class, PyObject *items)
{
    (void)class;
    return PySet_New(items);
}

static PyMethodDef accessed_by_methods[] = {
    {"add", accessed_by_add, METH_O,
     "add($self, location, /)\n--\n\nAdvise that a Device or Host accesses it. Driver: cuMemAdvise."},
    {"discard", accessed_by_discard, METH_O,
     "discard($self, location, /)\n--\n\nTake the advice back, where it was given. Driver: cuMemAdvise."},
    {"_from_iterable", accessed_by_from_iterable, METH_O | METH_CLASS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot accessed_by_slots[] = {
    {Py_tp_doc, (void *)"Who accesses a ManagedBuffer: a live set of Device and Host."},
    {Py_tp_dealloc, accessed_by_dealloc},
    {Py_tp_traverse, accessed_by_traverse},
    {Py_tp_clear, accessed_by_clear},
    {Py_tp_repr, accessed_by_repr},
    {Py_tp_iter, accessed_by_iterate},
    {Py_sq_length, accessed_by_length},
    {Py_sq_contains, accessed_by_contains},
    {Py_tp_methods, accessed_by_methods},
    {0, NULL},
};

PyType_Spec accessed_by_spec = {
    .name = "cuda_core._AccessedBy",
    .basicsize = sizeof(accessed_by_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = accessed_by_slots,
};
