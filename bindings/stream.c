#include "stream.h"

#include "context.h"
#include "device.h"
#include "errors.h"
#include "event.h"
#include "options.h"
#include "parse.h"
#include "release.h"
#include "wait.h"

#include <limits.h>

/* ---- helpers ---------------------------------------------------------------------------------------------------- */

/* NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD: never created, never closed. */
static int is_default(CUstream native)
{
    return (uintptr_t)native <= (uintptr_t)CU_STREAM_PER_THREAD;
}

PyObject *stream_from_core(module_state *state, cc_stream *core)
{
    stream_object *self = PyObject_New(stream_object, state->stream_type);
    if (self == NULL) {
        cc_stream_release(core);
        return NULL;
    }
    self->core = core;
    self->native = cc_stream_native(core);
    self->serial = cc_stream_serial(core);
    self->context = NULL;
    self->weak_references = NULL;
    return (PyObject *)self;
}

PyObject *stream_default(module_state *state, CUstream native, cc_context *context)
{
    cc_error error;
    cc_stream *core;
    if (cc_stream_wrap(native, context, NULL, NULL, &core, &error) < 0)
        return raise_error(state, &error);
    PyObject *stream = stream_from_core(state, core);
    if (stream != NULL && context != NULL)
        stream_cast(stream)->context = cc_context_native(context);
    return stream;
}

cc_stream *stream_hold(PyObject *stream)
{
    cc_stream *core;
    Py_BEGIN_CRITICAL_SECTION(stream);
    core = stream_cast(stream)->core;
    if (core != NULL)
        cc_stream_retain(core);
    Py_END_CRITICAL_SECTION();
    if (core == NULL) {
        raise_closed(state_of_final(stream), "stream");
        return NULL;
    }
    /* The default streams are there before the driver is. */
    if (is_default(stream_cast(stream)->native) && !cc_driver_is_open() && open_driver(state_of_final(stream)) < 0) {
        cc_stream_release(core);
        return NULL;
    }
    return core;
}

static int stream_is_closed(PyObject *stream)
{
    int is_closed;
    Py_BEGIN_CRITICAL_SECTION(stream);
    is_closed = stream_cast(stream)->core == NULL;
    Py_END_CRITICAL_SECTION();
    return is_closed;
}

/* ---- streams of other libraries: __cuda_stream__() -------------------------------------------------------------- */

static int refuse_stream(module_state *state, PyObject *object)
{
    (void)state;
    PyErr_Format(PyExc_TypeError, "stream must be a Stream or an object with __cuda_stream__(), not %.100s",
                 Py_TYPE(object)->tp_name);
    return -1;
}

static int read_protocol_tuple(PyObject *pair, CUstream *native)
{
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
        PyErr_Format(PyExc_TypeError, "__cuda_stream__() must return a tuple (0, handle), not %R", pair);
        return -1;
    }
    uint64_t version, handle;
    if (address_from_object(PyTuple_GET_ITEM(pair, 0), "the version of __cuda_stream__()", &version) < 0)
        return -1;
    if (version != 0) {
        PyErr_Format(PyExc_NotImplementedError, "version %llu of the __cuda_stream__ protocol; only 0 is known",
                     (unsigned long long)version);
        return -1;
    }
    if (address_from_object(PyTuple_GET_ITEM(pair, 1), "the handle of __cuda_stream__()", &handle) < 0)
        return -1;
    *native = (CUstream)(uintptr_t)handle;
    return 0;
}

static int call_protocol(module_state *state, PyObject *object, CUstream *native)
{
    PyObject *method = PyObject_GetAttr(object, state->str_cuda_stream);
    if (method == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        return refuse_stream(state, object);
    }
    /* Early versions of the protocol had an attribute in place of the method. */
    PyObject *pair = PyCallable_Check(method) ? PyObject_CallNoArgs(method) : Py_NewRef(method);
    Py_DECREF(method);
    if (pair == NULL)
        return -1;
    const int status = read_protocol_tuple(pair, native);
    Py_DECREF(pair);
    return status;
}

/* context: for the default streams, which have none of their own; NULL: the current one. */
static int wrap_foreign(module_state *state, PyObject *object, cc_context *context, cc_stream **core)
{
    CUstream native;
    if (open_driver(state) < 0 || call_protocol(state, object, &native) < 0)
        return -1;
    held *owner = held_object(state, object);
    if (owner == NULL)
        return -1;
    cc_error error;
    if (cc_stream_wrap(native, is_default(native) ? context : NULL, held_release, owner, core, &error) == 0)
        return 0;
    held_release(owner);
    raise_error(state, &error);
    return -1;
}

int stream_from_object(module_state *state, PyObject *object, cc_stream **core)
{
    if (Py_IS_TYPE(object, state->stream_type)) {
        *core = stream_hold(object);
        return *core == NULL ? -1 : 0;
    }
    if (object == Py_None)
        return refuse_stream(state, object);
    return wrap_foreign(state, object, NULL, core);
}

PyObject *stream_wrap_object(module_state *state, cc_context *context, PyObject *object)
{
    cc_stream *core;
    /* One of ours is shared: whoever closes either of the two, the CUstream lives as long as the other. */
    if (Py_IS_TYPE(object, state->stream_type) && !is_default(stream_cast(object)->native))
        core = stream_hold(object);
    else if (wrap_foreign(state, object, context, &core) < 0)
        core = NULL;
    return core == NULL ? NULL : stream_from_core(state, core);
}

/* ---- new streams ------------------------------------------------------------------------------------------------ */

static int read_priority(PyObject *value, int *priority)
{
    if (value == NULL) {
        *priority = 0;
        return 0;
    }
    if (!PyLong_Check(value) || PyBool_Check(value)) {
        PyErr_Format(PyExc_TypeError, "StreamOptions.priority must be an int or None, not %.100s",
                     Py_TYPE(value)->tp_name);
        return -1;
    }
    int overflow;
    const long number = PyLong_AsLongAndOverflow(value, &overflow);
    if (overflow != 0 || number < INT_MIN || number > INT_MAX) {
        PyErr_Format(PyExc_ValueError, "StreamOptions.priority %S is out of range", value);
        return -1;
    }
    *priority = (int)number;
    return 0;
}

static int read_stream_options(PyObject *options, unsigned *flags, int *priority)
{
    static const char *const names[] = {"nonblocking", "priority"};
    PyObject *values[2];
    if (options_read(options, "StreamOptions", names, values, 2) < 0)
        return -1;
    const int nonblocking = options_flag(values[0], "StreamOptions", "nonblocking", 1);
    const int status = nonblocking < 0 ? -1 : read_priority(values[1], priority);
    options_drop(values, 2);
    *flags = nonblocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    return status;
}

PyObject *stream_create(module_state *state, cc_context *context, PyObject *options)
{
    unsigned flags = CU_STREAM_NON_BLOCKING;
    int priority = 0;
    if (options != NULL && options != Py_None && read_stream_options(options, &flags, &priority) < 0)
        return NULL;
    cc_error error;
    cc_stream *core;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_stream_create(context, flags, priority, &core, &error);
    Py_END_ALLOW_THREADS;
    return status < 0 ? raise_error(state, &error) : stream_from_core(state, core);
}

/* ---- new, dealloc ----------------------------------------------------------------------------------------------- */

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type, (void)args, (void)keywords;
    PyErr_SetString(PyExc_TypeError,
                    "a Stream is not made directly: use Device.create_stream(), or Stream.from_handle()");
    return NULL;
}

/* cuStreamDestroy takes the driver's locks, which a thread that waits for the GIL may hold. A stream of somebody else's
 * gives back a Python object instead. */
static void destroy(cc_stream *core)
{
    if (core == NULL || !cc_stream_is_owned(core)) {
        cc_stream_release(core);
        return;
    }
    Py_BEGIN_ALLOW_THREADS;
    cc_stream_release(core);
    Py_END_ALLOW_THREADS;
}

static void stream_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    if (stream_cast(op)->weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    destroy(stream_cast(op)->core);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(from_handle_doc, "from_handle($type, /, handle)\n--\n\n"
                              "A Stream for a CUstream that somebody else owns and keeps alive while it is used.\n\n"
                              "handle: int, or an object that converts to int.\n"
                              "Closing it leaves the CUstream alone. Raises TypeError, OverflowError.");

static PyObject *stream_from_handle(PyObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("handle")};
    static const signature wanted = SIGNATURE("Stream.from_handle", parameters, 1, REQUIRED(0));
    module_state *state = state_of_class((PyTypeObject *)class);
    PyObject *given[1];
    uint64_t handle;
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    if (address_from_object(given[0], "handle", &handle) < 0 || open_driver(state) < 0)
        return NULL;
    return stream_default(state, (CUstream)(uintptr_t)handle, NULL);
}

PyDoc_STRVAR(close_doc,
             "close($self, /)\n--\n\n"
             "Let go of the stream. Work that is queued in it still runs.\n\n"
             "A stream made by create_stream() is destroyed, one of another library's is left alone, and the\n"
             "default streams stay open. Closing twice is allowed; any other use raises ClosedError.\n"
             "Driver: cuStreamDestroy.");

static PyObject *stream_close(PyObject *op, PyObject *unused)
{
    (void)unused;
    if (is_default(stream_cast(op)->native))
        Py_RETURN_NONE;
    cc_stream *core;
    Py_BEGIN_CRITICAL_SECTION(op);
    core = stream_cast(op)->core;
    stream_cast(op)->core = NULL;
    Py_END_CRITICAL_SECTION();
    destroy(core);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(sync_doc, "sync($self, /)\n--\n\n"
                       "Wait until all work queued in the stream is done.\n\n"
                       "A signal handler that raises (Ctrl-C) ends the wait in the main thread; the work goes on, and the stream\n"
                       "can be used as before. Raises CUDAError for an error in that work. Driver: cuStreamSynchronize,\n"
                       "cuStreamQuery.");

/* Host memory that finished copies used goes back to its owner. */
static void collect(module_state *state, cc_stream *core)
{
    cc_error error;
    cc_context *context;
    if (cc_stream_context(core, &context, &error) == 0)
        release_finished(state, context);
    else
        cc_error_clear(&error);
}

static int synchronize(PyObject *op)
{
    cc_stream *core = stream_hold(op);
    if (core == NULL)
        return -1;
    module_state *state = state_of_final(op);
    cc_error error;
    bool done = false;
    int status = 0;
    /* Where there is nothing to wait for, the question costs as much as the wait, and the GIL can stay. What is wrong
     * with the stream is said by the wait. */
    if (cc_stream_query(core, &done, &error) < 0)
        cc_error_clear(&error);
    if (!done) {
        waiting waiter;
        status = cc_stream_wait(core, wait_begin(&waiter), &error);
        wait_end(&waiter);
    }
    if (status <= 0)
        collect(state, core);
    cc_stream_release(core);
    if (status < 0)
        raise_error(state, &error);
    return status == 0 ? 0 : -1;
}

static PyObject *stream_sync(PyObject *op, PyObject *unused)
{
    (void)unused;
    if (synchronize(op) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    record_doc,
    "record($self, /, event=None, options=None)\n--\n\n"
    "Record an event: it is done when the work queued in the stream until now is done.\n\n"
    "event: the Event to record; None: a new one.\n"
    "options: EventOptions or a dict of its fields, for a new event only.\n"
    "Returns the event. Raises ValueError where both are given, ClosedError, CUDAError. Driver: cuEventRecord.");

static PyObject *new_event_for(module_state *state, cc_stream *core, PyObject *options)
{
    cc_error error;
    cc_context *context;
    if (cc_stream_context(core, &context, &error) < 0)
        return raise_error(state, &error);
    return event_create(state, context, options);
}

static int record_event(module_state *state, cc_stream *core, PyObject *event)
{
    cc_event *event_core = event_hold(event);
    if (event_core == NULL)
        return -1;
    cc_error error;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_event_record(event_core, core, &error);
    Py_END_ALLOW_THREADS;
    cc_event_release(event_core);
    if (status < 0)
        raise_error(state, &error);
    return status;
}

/* The Event to record in: the one given, or a new one. New reference. */
static PyObject *event_to_record(module_state *state, cc_stream *core, PyObject *event, PyObject *options)
{
    if (event == NULL || event == Py_None)
        return new_event_for(state, core, options);
    if (!Py_IS_TYPE(event, state->event_type)) {
        PyErr_Format(PyExc_TypeError, "event must be an Event or None, not %.100s", Py_TYPE(event)->tp_name);
        return NULL;
    }
    if (options != NULL && options != Py_None) {
        PyErr_SetString(PyExc_ValueError, "options are for a new event: they cannot be given together with event");
        return NULL;
    }
    return Py_NewRef(event);
}

static PyObject *stream_record(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                               PyObject *names)
{
    static const parameter_name parameters[] = {NAME("event"), NAME("options")};
    static const signature wanted = SIGNATURE("Stream.record", parameters, 2, 0);
    module_state *state = state_of_class(class);
    PyObject *given[2];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    cc_stream *core = stream_hold(op);
    if (core == NULL)
        return NULL;
    PyObject *event = event_to_record(state, core, given[0], given[1]);
    if (event != NULL && record_event(state, core, event) < 0)
        Py_CLEAR(event);
    cc_stream_release(core);
    return event;
}

PyDoc_STRVAR(wait_doc,
             "wait($self, /, event_or_stream)\n--\n\n"
             "Let all later work of this stream wait; the host does not.\n\n"
             "event_or_stream: an Event, or a Stream or object with __cuda_stream__(), whose work queued until now is\n"
             "waited for. Raises TypeError, ClosedError, CUDAError. Driver: cuStreamWaitEvent.");

static int wait_for_event(module_state *state, cc_stream *core, PyObject *event)
{
    cc_event *event_core = event_hold(event);
    if (event_core == NULL)
        return -1;
    cc_error error;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_stream_wait_event(core, event_core, &error);
    Py_END_ALLOW_THREADS;
    cc_event_release(event_core);
    if (status < 0)
        raise_error(state, &error);
    return status;
}

static int wait_for_stream(module_state *state, cc_stream *core, PyObject *stream)
{
    cc_stream *other;
    if (!Py_IS_TYPE(stream, state->stream_type) && !PyObject_HasAttrString(stream, "__cuda_stream__")) {
        PyErr_Format(PyExc_TypeError,
                     "event_or_stream must be an Event, a Stream or an object with __cuda_stream__(), not %.100s",
                     Py_TYPE(stream)->tp_name);
        return -1;
    }
    if (stream_from_object(state, stream, &other) < 0)
        return -1;
    cc_error error;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_stream_wait_stream(core, other, &error);
    Py_END_ALLOW_THREADS;
    cc_stream_release(other);
    if (status < 0)
        raise_error(state, &error);
    return status;
}

static PyObject *stream_wait(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                             PyObject *names)
{
    static const parameter_name parameters[] = {NAME("event_or_stream")};
    static const signature wanted = SIGNATURE("Stream.wait", parameters, 1, REQUIRED(0));
    module_state *state = state_of_class(class);
    PyObject *given[1];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    cc_stream *core = stream_hold(op);
    if (core == NULL)
        return NULL;
    const int status = Py_IS_TYPE(given[0], state->event_type) ? wait_for_event(state, core, given[0])
                                                               : wait_for_stream(state, core, given[0]);
    cc_stream_release(core);
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *stream_protocol(PyObject *op, PyObject *unused)
{
    (void)unused;
    if (stream_is_closed(op))
        return raise_closed(state_of_final(op), "stream");
    return Py_BuildValue("iN", 0, PyLong_FromVoidPtr(stream_cast(op)->native));
}

static PyObject *stream_enter(PyObject *op, PyObject *unused)
{
    (void)unused;
    if (stream_is_closed(op))
        return raise_closed(state_of_final(op), "stream");
    return Py_NewRef(op);
}

PyDoc_STRVAR(exit_doc, "__exit__($self, exc_type=None, exc_val=None, exc_tb=None, /)\n--\n\n"
                       "Waits for the queued work, unless the block raised, and closes the stream.");

static PyObject *stream_exit(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    const int block_raised = count > 0 && args[0] != Py_None;
    int status = 0;
    if (!block_raised && !stream_is_closed(op)) /* the block may have closed it */
        status = synchronize(op);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_XDECREF(stream_close(op, NULL));
    PyErr_Restore(type, value, traceback);
    if (status < 0)
        return NULL;
    Py_RETURN_FALSE;
}

/* ---- comparison ------------------------------------------------------------------------------------------------- */

/* By handle, while both are open: the driver gives the handle of a destroyed stream out again. */
static int are_same(PyObject *a, PyObject *b)
{
    const stream_object *left = stream_cast(a), *right = stream_cast(b);
    if (left->serial == right->serial)
        return 1;
    if (left->native != right->native || stream_is_closed(a) || stream_is_closed(b))
        return 0;
    return left->context == NULL || right->context == NULL || left->context == right->context;
}

static PyObject *stream_compare(PyObject *op, PyObject *other, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || !Py_IS_TYPE(other, Py_TYPE(op)))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong(are_same(op, other) == (operation == Py_EQ));
}

static Py_hash_t stream_hash(PyObject *op)
{
    return _Py_HashPointer(stream_cast(op)->native);
}

static PyObject *stream_repr(PyObject *op)
{
    const CUstream native = stream_cast(op)->native;
    if (native == CU_STREAM_LEGACY)
        return PyUnicode_FromString("<Stream legacy default>");
    if (native == CU_STREAM_PER_THREAD)
        return PyUnicode_FromString("<Stream per-thread default>");
    char text[24];
    return PyUnicode_FromFormat("<Stream %s%s>", address_text((uintptr_t)native, text),
                                stream_is_closed(op) ? ", closed" : "");
}

static PyMethodDef stream_methods[] = {
    {"from_handle", FUNCTION(stream_from_handle), METH_KEYWORD_CALL | METH_CLASS, from_handle_doc},
    {"close", stream_close, METH_NOARGS, close_doc},
    {"sync", stream_sync, METH_NOARGS, sync_doc},
    {"record", FUNCTION(stream_record), METH_CLASS_CALL, record_doc},
    {"wait", FUNCTION(stream_wait), METH_CLASS_CALL, wait_doc},
    {"__cuda_stream__", stream_protocol, METH_NOARGS,
     "__cuda_stream__($self, /)\n--\n\n(0, handle): version of the protocol and CUstream, for other libraries."},
    {"__enter__", stream_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nThe stream itself."},
    {"__exit__", FUNCTION(stream_exit), METH_FASTCALL, exit_doc},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static PyObject *stream_get_handle(PyObject *op, void *unused)
{
    (void)unused;
    if (stream_is_closed(op))
        return raise_closed(state_of_final(op), "stream");
    return PyLong_FromVoidPtr(stream_cast(op)->native);
}

static PyObject *stream_get_is_nonblocking(PyObject *op, void *unused)
{
    (void)unused;
    cc_stream *core = stream_hold(op);
    if (core == NULL)
        return NULL;
    cc_error error;
    unsigned flags;
    const int status = cc_stream_flags(core, &flags, &error);
    cc_stream_release(core);
    return status < 0 ? raise_error(state_of_final(op), &error)
                      : PyBool_FromLong((flags & CU_STREAM_NON_BLOCKING) != 0);
}

static PyObject *stream_get_priority(PyObject *op, void *unused)
{
    (void)unused;
    cc_stream *core = stream_hold(op);
    if (core == NULL)
        return NULL;
    cc_error error;
    int priority;
    const int status = cc_stream_priority(core, &priority, &error);
    cc_stream_release(core);
    return status < 0 ? raise_error(state_of_final(op), &error) : PyLong_FromLong(priority);
}

static PyObject *stream_get_is_done(PyObject *op, void *unused)
{
    (void)unused;
    cc_stream *core = stream_hold(op);
    if (core == NULL)
        return NULL;
    cc_error error;
    bool done;
    const int status = cc_stream_query(core, &done, &error);
    cc_stream_release(core);
    return status < 0 ? raise_error(state_of_final(op), &error) : PyBool_FromLong(done);
}

/* The stream's context: a new reference into core, or NULL with an exception. */
static cc_context *context_of(PyObject *op)
{
    cc_stream *core = stream_hold(op);
    if (core == NULL)
        return NULL;
    cc_error error;
    cc_context *context;
    const int status = cc_stream_context(core, &context, &error);
    if (status == 0)
        cc_context_retain(context);
    cc_stream_release(core);
    if (status < 0)
        raise_error(state_of_final(op), &error);
    return status < 0 ? NULL : context;
}

static PyObject *stream_get_context(PyObject *op, void *unused)
{
    (void)unused;
    cc_context *context = context_of(op);
    return context == NULL ? NULL : context_from_core(state_of_final(op), context);
}

static PyObject *stream_get_device(PyObject *op, void *unused)
{
    (void)unused;
    cc_context *context = context_of(op);
    if (context == NULL)
        return NULL;
    PyObject *device = device_from_core(state_of_final(op), cc_context_device(context));
    cc_context_release(context);
    return device;
}

static PyObject *stream_get_is_closed(PyObject *op, void *unused)
{
    (void)unused;
    return PyBool_FromLong(stream_is_closed(op));
}

static PyGetSetDef stream_attributes[] = {
    {"handle", stream_get_handle, NULL, "The CUstream (int).", NULL},
    {"is_nonblocking", stream_get_is_nonblocking, NULL,
     "True where the stream does not wait for the legacy default stream (bool). Driver: cuStreamGetFlags.", NULL},
    {"priority", stream_get_priority, NULL,
     "The priority (int): smaller numbers go first. Driver: cuStreamGetPriority.", NULL},
    {"is_done", stream_get_is_done, NULL,
     "True where all work queued in the stream is done (bool). Driver: cuStreamQuery.", NULL},
    {"context", stream_get_context, NULL, "The Context of the stream. Driver: cuStreamGetCtx.", NULL},
    {"device", stream_get_device, NULL, "The Device that the stream's work runs on.", NULL},
    {"is_closed", stream_get_is_closed, NULL, "True after close() (bool).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef stream_members[] = {WEAKREF_MEMBER(stream_object), {NULL, 0, 0, 0, NULL}};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(
    stream_doc,
    "A queue of work for a device. From Device.create_stream() or Stream.from_handle().\n\n"
    "Work in one stream runs in order; work in different streams may run at the same time.\n"
    "A context manager: leaving the block waits for the queued work, so that its errors are raised there, and\n"
    "closes the stream; a block that raises is left at once. Streams of the same handle are equal.");

static PyType_Slot stream_slots[] = {
    {Py_tp_doc, (void *)stream_doc}, {Py_tp_new, stream_new},
    {Py_tp_dealloc, stream_dealloc}, {Py_tp_repr, stream_repr},
    {Py_tp_hash, stream_hash},       {Py_tp_richcompare, stream_compare},
    {Py_tp_methods, stream_methods}, {Py_tp_getset, stream_attributes},
    {Py_tp_members, stream_members}, {0, NULL},
};

PyType_Spec stream_spec = {
    .name = "cuda_core.Stream",
    .basicsize = sizeof(stream_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = stream_slots,
};
