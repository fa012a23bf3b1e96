#include "context.h"

#include "device.h"
#include "errors.h"
#include "parse.h"
#include "stream.h"

typedef struct context_object {
    PyObject_HEAD
    cc_context *core; /* NULL after close() */
    CUcontext native; /* stays after close(), so that hash and equality stay */
    PyObject *weak_references;
} context_object;

#define context_cast(object) ((context_object *)(object))

/* ---- for other files -------------------------------------------------------------------------------------------- */

PyObject *context_from_core(module_state *state, cc_context *core)
{
    context_object *self = PyObject_New(context_object, state->context_type);
    if (self == NULL) {
        cc_context_release(core);
        return NULL;
    }
    self->core = core;
    self->native = cc_context_native(core);
    self->weak_references = NULL;
    return (PyObject *)self;
}

cc_context *context_hold(PyObject *context)
{
    cc_context *core;
    Py_BEGIN_CRITICAL_SECTION(context);
    core = context_cast(context)->core;
    if (core != NULL)
        cc_context_retain(core);
    Py_END_CRITICAL_SECTION();
    if (core == NULL)
        raise_closed(state_of_final(context), "context");
    return core;
}

int context_is_closed(PyObject *context)
{
    int is_closed;
    Py_BEGIN_CRITICAL_SECTION(context);
    is_closed = context_cast(context)->core == NULL;
    Py_END_CRITICAL_SECTION();
    return is_closed;
}

/* ---- new, dealloc ----------------------------------------------------------------------------------------------- */

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type, (void)args, (void)keywords;
    PyErr_SetString(PyExc_TypeError, "a Context is not made directly: use Device.context");
    return NULL;
}

static void context_dealloc(PyObject *op)
{
    context_object *self = context_cast(op);
    PyTypeObject *type = Py_TYPE(op);
    if (self->weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    cc_context_release(self->core);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(close_doc, "close($self, /)\n--\n\n"
                        "Let go of the context.\n\n"
                        "Objects made in it keep it; a device's primary context stays for the life of the process.\n"
                        "Closing twice is allowed; any other use after it raises ClosedError.");

static PyObject *context_close(PyObject *op, PyObject *unused)
{
    (void)unused;
    cc_context *core;
    Py_BEGIN_CRITICAL_SECTION(op);
    core = context_cast(op)->core;
    context_cast(op)->core = NULL;
    Py_END_CRITICAL_SECTION();
    cc_context_release(core);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(create_stream_doc, "create_stream($self, /, options=None)\n--\n\n"
                                "A new Stream in this context.\n\n"
                                "options: StreamOptions, a dict of its fields, or None.\n"
                                "Raises CUDAError. Driver: cuStreamCreateWithPriority.");

static PyObject *context_create_stream(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                       PyObject *names)
{
    static const parameter_name parameters[] = {NAME("options")};
    static const signature wanted = SIGNATURE("Context.create_stream", parameters, 1, 0);
    PyObject *given[1] = {NULL};
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    cc_context *core = context_hold(op);
    if (core == NULL)
        return NULL;
    PyObject *stream = stream_create(state_of_class(class), core, given[0]);
    cc_context_release(core);
    return stream;
}

static PyObject *context_enter(PyObject *op, PyObject *unused)
{
    (void)unused;
    if (context_is_closed(op))
        return raise_closed(state_of_final(op), "context");
    return Py_NewRef(op);
}

static PyObject *context_exit(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    (void)args, (void)count;
    return context_close(op, NULL);
}

static PyObject *context_compare(PyObject *op, PyObject *other, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || !Py_IS_TYPE(other, Py_TYPE(op)))
        Py_RETURN_NOTIMPLEMENTED;
    const int same = op == other || (context_cast(op)->native == context_cast(other)->native &&
                                     !context_is_closed(op) && !context_is_closed(other));
    return PyBool_FromLong(operation == Py_EQ ? same : !same);
}

static Py_hash_t context_hash(PyObject *op)
{
    return _Py_HashPointer(context_cast(op)->native);
}

static PyObject *context_repr(PyObject *op)
{
    char text[24];
    return PyUnicode_FromFormat("<Context %s%s>", address_text((uintptr_t)context_cast(op)->native, text),
                                context_is_closed(op) ? ", closed" : "");
}

static PyMethodDef context_methods[] = {
    {"close", context_close, METH_NOARGS, close_doc},
    {"create_stream", FUNCTION(context_create_stream), METH_CLASS_CALL, create_stream_doc},
    {"__enter__", context_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nThe context itself."},
    {"__exit__", FUNCTION(context_exit), METH_FASTCALL,
     "__exit__($self, exc_type=None, exc_val=None, exc_tb=None, /)\n--\n\nCloses the context."},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static PyObject *context_get_handle(PyObject *op, void *unused)
{
    (void)unused;
    if (context_is_closed(op))
        return raise_closed(state_of_final(op), "context");
    return PyLong_FromVoidPtr(context_cast(op)->native);
}

static PyObject *context_get_device(PyObject *op, void *unused)
{
    (void)unused;
    cc_context *core = context_hold(op);
    if (core == NULL)
        return NULL;
    PyObject *device = device_from_core(state_of_final(op), cc_context_device(core));
    cc_context_release(core);
    return device;
}

static PyObject *context_get_is_closed(PyObject *op, void *unused)
{
    (void)unused;
    return PyBool_FromLong(context_is_closed(op));
}

static PyObject *context_get_is_green(PyObject *op, void *unused)
{
    (void)unused;
    if (context_is_closed(op))
        return raise_closed(state_of_final(op), "context");
    Py_RETURN_FALSE;
}

static PyGetSetDef context_attributes[] = {
    {"handle", context_get_handle, NULL, "The CUcontext (int).", NULL},
    {"device", context_get_device, NULL, "The Device that the context is of.", NULL},
    {"is_green", context_get_is_green, NULL, "True where the context has only a part of the device (bool).", NULL},
    {"is_closed", context_get_is_closed, NULL, "True after close() (bool).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef context_members[] = {WEAKREF_MEMBER(context_object), {NULL, 0, 0, 0, NULL}};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(context_doc, "A CUDA context: what a device keeps for this process. From Device.context.\n\n"
                          "Contexts of the same handle are equal. A context manager: leaving the block closes it.");

static PyType_Slot context_slots[] = {
    {Py_tp_doc, (void *)context_doc}, {Py_tp_new, context_new},
    {Py_tp_dealloc, context_dealloc}, {Py_tp_repr, context_repr},
    {Py_tp_hash, context_hash},       {Py_tp_richcompare, context_compare},
    {Py_tp_methods, context_methods}, {Py_tp_getset, context_attributes},
    {Py_tp_members, context_members}, {0, NULL},
};

PyType_Spec context_spec = {
    .name = "cuda_core.Context",
    .basicsize = sizeof(context_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = context_slots,
};
