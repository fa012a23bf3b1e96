#include "event.h"

#include "context.h"
#include "device.h"
#include "errors.h"
#include "options.h"
#include "parse.h"
#include "release.h"
#include "wait.h"

typedef struct event_object {
    PyObject_HEAD
    cc_event *core; /* NULL after close() */
    CUevent native; /* native and flags stay after close() */
    unsigned flags;
    PyObject *weak_references;
} event_object;

#define event_cast(object) ((event_object *)(object))

static const char ipc_text[] = "events cannot be shared between processes yet";

/* ---- helpers, for other files ----------------------------------------------------------------------------------- */

static int read_flags(module_state *state, PyObject *options, unsigned *flags)
{
    static const char *const names[] = {"timing_enabled", "blocking_sync", "ipc_enabled"};
    PyObject *values[3];
    if (options_read(options, "EventOptions", names, values, 3) < 0)
        return -1;
    const int timing = options_flag(values[0], "EventOptions", names[0], 0);
    const int blocking = timing < 0 ? -1 : options_flag(values[1], "EventOptions", names[1], 0);
    const int ipc = blocking < 0 ? -1 : options_flag(values[2], "EventOptions", names[2], 0);
    options_drop(values, 3);
    if (ipc > 0)
        raise_not_supported(state, ipc_text);
    if (ipc != 0)
        return -1;
    *flags = (timing ? 0u : (unsigned)CU_EVENT_DISABLE_TIMING) | (blocking ? (unsigned)CU_EVENT_BLOCKING_SYNC : 0u);
    return 0;
}

PyObject *event_create(module_state *state, cc_context *context, PyObject *options)
{
    unsigned flags = CU_EVENT_DISABLE_TIMING;
    if (options != NULL && options != Py_None && read_flags(state, options, &flags) < 0)
        return NULL;
    event_object *self = PyObject_New(event_object, state->event_type);
    if (self == NULL)
        return NULL;
    cc_error error;
    self->core = NULL;
    self->flags = flags;
    self->weak_references = NULL;
    if (cc_event_create(context, flags, &self->core, &error) < 0) {
        self->core = NULL;
        Py_DECREF(self);
        return raise_error(state, &error);
    }
    self->native = cc_event_native(self->core);
    return (PyObject *)self;
}

cc_event *event_hold(PyObject *event)
{
    cc_event *core;
    Py_BEGIN_CRITICAL_SECTION(event);
    core = event_cast(event)->core;
    if (core != NULL)
        cc_event_retain(core);
    Py_END_CRITICAL_SECTION();
    if (core == NULL)
        raise_closed(state_of_final(event), "event");
    return core;
}

/* For calls that keep the GIL: there nobody can close the event meanwhile, and it need not be held. */
static cc_event *event_use(PyObject *event)
{
#ifdef Py_GIL_DISABLED
    return event_hold(event);
#else
    cc_event *core = event_cast(event)->core;
    if (core == NULL)
        raise_closed(state_of_final(event), "event");
    return core;
#endif
}

static void event_unuse(cc_event *core)
{
#ifdef Py_GIL_DISABLED
    cc_event_release(core);
#else
    (void)core;
#endif
}

static int event_is_closed(PyObject *event)
{
    int is_closed;
    Py_BEGIN_CRITICAL_SECTION(event);
    is_closed = event_cast(event)->core == NULL;
    Py_END_CRITICAL_SECTION();
    return is_closed;
}

/* ---- new, dealloc ----------------------------------------------------------------------------------------------- */

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type, (void)args, (void)keywords;
    PyErr_SetString(PyExc_TypeError, "an Event is not made directly: use Device.create_event() or Stream.record()");
    return NULL;
}

static void event_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    if (event_cast(op)->weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    cc_event_release(event_cast(op)->core);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(close_doc, "close($self, /)\n--\n\n"
                        "Destroy the event; who waits for it still does.\n\n"
                        "Closing twice is allowed; any other use after it raises ClosedError. Driver: cuEventDestroy.");

static PyObject *event_close(PyObject *op, PyObject *unused)
{
    (void)unused;
    cc_event *core;
    Py_BEGIN_CRITICAL_SECTION(op);
    core = event_cast(op)->core;
    event_cast(op)->core = NULL;
    Py_END_CRITICAL_SECTION();
    cc_event_release(core);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    sync_doc,
    "sync($self, /)\n--\n\n"
    "Wait until the work that the event was recorded after is done; at once where it was never recorded.\n\n"
    "A signal handler that raises (Ctrl-C) ends the wait in the main thread; the work goes on. Raises CUDAError for\n"
    "an error in that work. Driver: cuEventSynchronize, cuEventQuery.");

static PyObject *event_sync(PyObject *op, PyObject *unused)
{
    (void)unused;
    cc_event *core = event_hold(op);
    if (core == NULL)
        return NULL;
    cc_error error;
    bool done = false;
    int status = 0;
    /* As in Stream.sync(): an event that is done costs no more than the question. */
    if (cc_event_query(core, &done, &error) < 0)
        cc_error_clear(&error);
    if (!done) {
        waiting waiter;
        status = cc_event_wait(core, wait_begin(&waiter), &error);
        wait_end(&waiter);
    }
    if (status == 0 && cc_context_has_pending(cc_event_context(core)))
        release_finished(state_of_final(op), cc_event_context(core));
    cc_event_release(core);
    if (status < 0)
        return raise_error(state_of_final(op), &error);
    if (status > 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(from_ipc_descriptor_doc, "from_ipc_descriptor($type, /, ipc_descriptor)\n--\n\n"
                                      "Events cannot be shared between processes yet: raises NotSupportedError.");

static PyObject *event_from_ipc_descriptor(PyObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("ipc_descriptor")};
    static const signature wanted = SIGNATURE("Event.from_ipc_descriptor", parameters, 1, REQUIRED(0));
    PyObject *given[1];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    return raise_not_supported(state_of_class((PyTypeObject *)class), ipc_text);
}

static PyObject *event_enter(PyObject *op, PyObject *unused)
{
    (void)unused;
    if (event_is_closed(op))
        return raise_closed(state_of_final(op), "event");
    return Py_NewRef(op);
}

static PyObject *event_exit(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    (void)args, (void)count;
    return event_close(op, NULL);
}

/* end - start: milliseconds */
static PyObject *event_subtract(PyObject *end, PyObject *start)
{
    PyTypeObject *type = Py_TYPE(end);
    if (!Py_IS_TYPE(start, type))
        Py_RETURN_NOTIMPLEMENTED;
    cc_event *last = event_use(end);
    if (last == NULL)
        return NULL;
    cc_event *first = event_use(start);
    if (first == NULL) {
        event_unuse(last);
        return NULL;
    }
    cc_error error;
    float milliseconds;
    const int status = cc_event_elapsed(first, last, &milliseconds, &error);
    event_unuse(first);
    event_unuse(last);
    return status < 0 ? raise_error(state_of_final(end), &error) : PyFloat_FromDouble((double)milliseconds);
}

/* `end -= start` gives the float that `end - start` does. */
static PyObject *event_inplace_subtract(PyObject *end, PyObject *start)
{
    (void)end, (void)start;
    Py_RETURN_NOTIMPLEMENTED;
}

static PyObject *event_compare(PyObject *op, PyObject *other, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || !Py_IS_TYPE(other, Py_TYPE(op)))
        Py_RETURN_NOTIMPLEMENTED;
    const int same = op == other || (event_cast(op)->native == event_cast(other)->native && !event_is_closed(op) &&
                                     !event_is_closed(other));
    return PyBool_FromLong(same == (operation == Py_EQ));
}

static Py_hash_t event_hash(PyObject *op)
{
    return _Py_HashPointer(event_cast(op)->native);
}

static PyObject *event_repr(PyObject *op)
{
    char text[24];
    return PyUnicode_FromFormat("<Event %s%s>", address_text((uintptr_t)event_cast(op)->native, text),
                                event_is_closed(op) ? ", closed" : "");
}

static PyMethodDef event_methods[] = {
    {"close", event_close, METH_NOARGS, close_doc},
    {"sync", event_sync, METH_NOARGS, sync_doc},
    {"from_ipc_descriptor", FUNCTION(event_from_ipc_descriptor), METH_KEYWORD_CALL | METH_CLASS,
     from_ipc_descriptor_doc},
    {"__enter__", event_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nThe event itself."},
    {"__exit__", FUNCTION(event_exit), METH_FASTCALL,
     "__exit__($self, exc_type=None, exc_val=None, exc_tb=None, /)\n--\n\nCloses the event."},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static PyObject *event_get_is_done(PyObject *op, void *unused)
{
    (void)unused;
    cc_event *core = event_use(op);
    if (core == NULL)
        return NULL;
    cc_error error;
    bool done;
    const int status = cc_event_query(core, &done, &error);
    event_unuse(core);
    return status < 0 ? raise_error(state_of_final(op), &error) : PyBool_FromLong(done);
}

static PyObject *event_get_handle(PyObject *op, void *unused)
{
    (void)unused;
    if (event_is_closed(op))
        return raise_closed(state_of_final(op), "event");
    return PyLong_FromVoidPtr(event_cast(op)->native);
}

static PyObject *event_get_context(PyObject *op, void *unused)
{
    (void)unused;
    cc_event *core = event_use(op);
    if (core == NULL)
        return NULL;
    PyObject *context = context_from_core(state_of_final(op), cc_context_retain(cc_event_context(core)));
    event_unuse(core);
    return context;
}

static PyObject *event_get_device(PyObject *op, void *unused)
{
    (void)unused;
    cc_event *core = event_use(op);
    if (core == NULL)
        return NULL;
    PyObject *device = device_from_core(state_of_final(op), cc_context_device(cc_event_context(core)));
    event_unuse(core);
    return device;
}

static PyObject *event_get_is_timing_enabled(PyObject *op, void *unused)
{
    (void)unused;
    return PyBool_FromLong((event_cast(op)->flags & CU_EVENT_DISABLE_TIMING) == 0);
}

static PyObject *event_get_is_blocking_sync(PyObject *op, void *unused)
{
    (void)unused;
    return PyBool_FromLong((event_cast(op)->flags & CU_EVENT_BLOCKING_SYNC) != 0);
}

static PyObject *event_get_is_ipc_enabled(PyObject *op, void *unused)
{
    (void)unused;
    return PyBool_FromLong((event_cast(op)->flags & CU_EVENT_INTERPROCESS) != 0);
}

static PyObject *event_get_ipc_descriptor(PyObject *op, void *unused)
{
    (void)unused;
    return raise_not_supported(state_of_final(op), ipc_text);
}

static PyObject *event_get_is_closed(PyObject *op, void *unused)
{
    (void)unused;
    return PyBool_FromLong(event_is_closed(op));
}

static PyGetSetDef event_attributes[] = {
    {"is_done", event_get_is_done, NULL,
     "True where the work that the event was recorded after is done (bool). Driver: cuEventQuery.", NULL},
    {"handle", event_get_handle, NULL, "The CUevent (int).", NULL},
    {"context", event_get_context, NULL, "The Context that the event was made in.", NULL},
    {"device", event_get_device, NULL, "The Device that the event was made on.", NULL},
    {"is_timing_enabled", event_get_is_timing_enabled, NULL, "True where `end - start` can use the event (bool).",
     NULL},
    {"is_blocking_sync", event_get_is_blocking_sync, NULL,
     "True where sync() lets the processor sleep, False where it polls (bool).", NULL},
    {"is_ipc_enabled", event_get_is_ipc_enabled, NULL, "True where other processes can use the event (bool).", NULL},
    {"ipc_descriptor", event_get_ipc_descriptor, NULL,
     "Events cannot be shared between processes yet: raises NotSupportedError.", NULL},
    {"is_closed", event_get_is_closed, NULL, "True after close() (bool).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef event_members[] = {WEAKREF_MEMBER(event_object), {NULL, 0, 0, 0, NULL}};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(
    event_doc,
    "A mark in a stream of work. From Device.create_event() or Stream.record().\n\n"
    "`end - start` is the time between two events in milliseconds (float; both made with timing_enabled=True,\n"
    "recorded, and done). A context manager: leaving the block closes it. Driver: cuEventElapsedTime.");

static PyType_Slot event_slots[] = {
    {Py_tp_doc, (void *)event_doc},   {Py_tp_new, event_new},
    {Py_tp_dealloc, event_dealloc},   {Py_tp_repr, event_repr},
    {Py_tp_hash, event_hash},         {Py_tp_richcompare, event_compare},
    {Py_nb_subtract, event_subtract}, {Py_nb_inplace_subtract, event_inplace_subtract},
    {Py_tp_methods, event_methods},   {Py_tp_getset, event_attributes},
    {Py_tp_members, event_members},   {0, NULL},
};

PyType_Spec event_spec = {
    .name = "cuda_core.Event",
    .basicsize = sizeof(event_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = event_slots,
};
