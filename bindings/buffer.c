#include "buffer.h"

#include "errors.h"
#include "parse.h"
#include "release.h"
#include "stream.h"

static const char ipc_text[] = "buffers cannot be shared between processes yet";

/* ---- helpers, for other files ----------------------------------------------------------------------------------- */

/* Our own resources refer to no Python object; a subclass may. */
static int may_be_in_a_cycle(const module_state *state, PyObject *resource, PyObject *keeper)
{
    if (keeper != NULL)
        return 1;
    return resource != NULL && !Py_IS_TYPE(resource, state->device_memory_resource_type) &&
           !Py_IS_TYPE(resource, state->pinned_memory_resource_type);
}

/* Takes over `core`. The collector only tracks what can be part of a reference cycle. */
static buffer_object *make(module_state *state, PyTypeObject *type, cc_buffer *core, PyObject *resource,
                           PyObject *keeper)
{
    const int is_plain = type == state->buffer_type;
    buffer_object *self = is_plain ? PyObject_GC_New(buffer_object, type) : (buffer_object *)type->tp_alloc(type, 0);
    if (self == NULL) {
        cc_buffer_release(core);
        return NULL;
    }
    const cc_buffer_info *info = cc_buffer_read(core);
    self->core = self->owned = core;
    self->pins = 0;
    self->pointer = info->pointer;
    self->size = info->size;
    self->memory_resource = Py_XNewRef(resource);
    self->keeper = Py_XNewRef(keeper);
    self->weak_references = NULL;
    /* A resource without a keeper is one of ours, and what those allocate is for kernels. */
    self->kernels_may_use = resource != NULL && keeper == NULL;
    if (is_plain && may_be_in_a_cycle(state, resource, keeper))
        PyObject_GC_Track(self);
    return self;
}

PyObject *buffer_from_core(module_state *state, cc_buffer *core, PyObject *memory_resource, PyObject *keeper)
{
    return (PyObject *)make(state, state->buffer_type, core, memory_resource, keeper);
}

PyObject *managed_buffer_from_core(module_state *state, cc_buffer *core, PyObject *memory_resource)
{
    return (PyObject *)make(state, state->managed_buffer_type, core, memory_resource, NULL);
}

cc_buffer *buffer_hold(PyObject *buffer)
{
    cc_buffer *core;
    Py_BEGIN_CRITICAL_SECTION(buffer);
    core = buffer_cast(buffer)->core;
    if (core != NULL)
        cc_buffer_retain(core);
    Py_END_CRITICAL_SECTION();
    if (core == NULL)
        raise_closed(state_of(buffer), "buffer");
    return core;
}

static int buffer_is_closed(PyObject *buffer)
{
    int is_closed;
    Py_BEGIN_CRITICAL_SECTION(buffer);
    is_closed = buffer_cast(buffer)->core == NULL;
    Py_END_CRITICAL_SECTION();
    return is_closed;
}

/* What an open Buffer holds, taken together under its lock; new references. */
typedef struct parts {
    cc_buffer *core;
    PyObject *resource, *keeper;
} parts;

static int take_parts(PyObject *op, parts *taken)
{
    buffer_object *self = buffer_cast(op);
    Py_BEGIN_CRITICAL_SECTION(op);
    taken->core = self->core;
    if (self->core != NULL) {
        cc_buffer_retain(self->core);
        taken->resource = Py_XNewRef(self->memory_resource);
        taken->keeper = Py_XNewRef(self->keeper);
    }
    Py_END_CRITICAL_SECTION();
    if (taken->core != NULL)
        return 0;
    raise_closed(state_of(op), "buffer");
    return -1;
}

PyObject *buffer_slice(PyObject *op, size_t start, size_t size)
{
    parts taken;
    if (take_parts(op, &taken) < 0)
        return NULL;
    module_state *state = state_of(op);
    const int is_managed = PyObject_TypeCheck(op, state->managed_buffer_type);
    PyTypeObject *type = is_managed ? state->managed_buffer_type : state->buffer_type;
    buffer_object *slice = make(state, type, taken.core, taken.resource, taken.keeper);
    Py_XDECREF(taken.resource);
    Py_XDECREF(taken.keeper);
    if (slice == NULL)
        return NULL;
    slice->pointer = buffer_cast(op)->pointer + start;
    slice->size = size;
    return (PyObject *)slice;
}

/* ---- new, dealloc ----------------------------------------------------------------------------------------------- */

static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type, (void)args, (void)keywords;
    PyErr_SetString(PyExc_TypeError,
                    "a Buffer is not made directly: use Device.allocate(), MemoryResource.allocate() or "
                    "Buffer.from_handle()");
    return NULL;
}

/* cuMemFreeAsync waits where the stream's queue is full. */
static void let_go(cc_buffer *core)
{
    if (core == NULL)
        return;
    Py_BEGIN_ALLOW_THREADS;
    cc_buffer_release(core);
    Py_END_ALLOW_THREADS;
}

static int buffer_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(buffer_cast(op)->memory_resource);
    Py_VISIT(buffer_cast(op)->keeper);
    return 0;
}

void buffer_drop(PyObject *op)
{
    buffer_object *self = buffer_cast(op);
    cc_buffer *owned = NULL;
    PyObject *resource = NULL, *keeper = NULL;
    Py_BEGIN_CRITICAL_SECTION(op);
    self->core = NULL;
    if (self->pins == 0) {
        owned = self->owned;
        resource = self->memory_resource;
        keeper = self->keeper;
        self->owned = NULL;
        self->memory_resource = NULL;
        self->keeper = NULL;
    }
    Py_END_CRITICAL_SECTION();
    let_go(owned);
    Py_XDECREF(keeper); /* may call deallocate() of the resource */
    Py_XDECREF(resource);
}

static int buffer_clear(PyObject *op)
{
    buffer_drop(op);
    return 0;
}

static void buffer_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (buffer_cast(op)->weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    buffer_drop(op);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- methods: from_handle --------------------------------------------------------------------------------------- */

PyDoc_STRVAR(
    from_handle_doc,
    "from_handle($type, /, ptr, size, mr=None, owner=None)\n--\n\n"
    "A Buffer of memory that somebody else allocated.\n\n"
    "ptr: the address (int, or an object that converts to int); size: int, bytes; both may be 0.\n"
    "mr: the MemoryResource that allocated it: its deallocate(ptr, size, stream=...) is called once, when the\n"
    "Buffer and its slices are closed.\n"
    "owner: any object, kept alive as long; nothing is called.\n"
    "Raises ValueError (negative size, or both mr and owner given), OverflowError, TypeError.");

static PyObject *wrap(PyTypeObject *class, CUdeviceptr pointer, size_t size, PyObject *resource, PyObject *owner)
{
    module_state *state = state_of_type(class);
    cc_error error;
    cc_buffer *core;
    const int status = resource != NULL ? cc_buffer_wrap_ordered(pointer, size, &core, &error)
                                        : cc_buffer_wrap(pointer, size, NULL, NULL, &core, &error);
    if (status < 0)
        return raise_error(state, &error);
    PyObject *keeper = resource != NULL ? allocation_new(state, resource, core) : Py_XNewRef(owner);
    if (resource != NULL && keeper == NULL) {
        cc_buffer_release(core);
        return NULL;
    }
    buffer_object *buffer = make(state, class, core, resource, keeper);
    Py_XDECREF(keeper);
    return (PyObject *)buffer;
}

static PyObject *buffer_from_handle(PyObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("ptr"), NAME("size"), NAME("mr"), NAME("owner")};
    static const signature wanted = SIGNATURE("Buffer.from_handle", parameters, 4, REQUIRED(0) | REQUIRED(1));
    module_state *state = state_of_type((PyTypeObject *)class);
    PyObject *given[4];
    uint64_t pointer;
    size_t size;
    if (parse_arguments(&wanted, args, count, names, given) < 0 || open_driver(state) < 0)
        return NULL;
    if (address_from_object(given[0], "ptr", &pointer) < 0 || size_from_object(given[1], "size", &size) < 0)
        return NULL;
    PyObject *resource = none_to_null(given[2]), *owner = none_to_null(given[3]);
    if (resource != NULL && owner != NULL) {
        PyErr_SetString(PyExc_ValueError, "give mr or owner, not both: one of them is in charge of the memory");
        return NULL;
    }
    if (resource != NULL && !PyObject_TypeCheck(resource, state->memory_resource_type)) {
        PyErr_Format(PyExc_TypeError, "mr must be a MemoryResource or None, not %.100s", Py_TYPE(resource)->tp_name);
        return NULL;
    }
    return wrap((PyTypeObject *)class, (CUdeviceptr)pointer, size, resource, owner);
}

PyDoc_STRVAR(from_ipc_descriptor_doc, "from_ipc_descriptor($type, /, mr, ipc_descriptor, *, stream)\n--\n\n"
                                      "Buffers cannot be shared between processes yet: raises NotSupportedError.");

static PyObject *buffer_from_ipc_descriptor(PyObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("mr"), NAME("ipc_descriptor"), NAME("stream")};
    static const signature wanted =
        SIGNATURE("Buffer.from_ipc_descriptor", parameters, 2, REQUIRED(0) | REQUIRED(1) | REQUIRED(2));
    PyObject *given[3];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    return raise_not_supported(state_of_type((PyTypeObject *)class), ipc_text);
}

/* ---- methods: close --------------------------------------------------------------------------------------------- */

void buffer_allocated_on(module_state *state, PyObject *buffer, PyObject *stream)
{
    parts taken;
    cc_stream *core_stream;
    if (take_parts(buffer, &taken) < 0) {
        PyErr_Clear(); /* closed already: nobody asks for its stream */
        return;
    }
    if (stream_from_object(state, stream, &core_stream) == 0) {
        cc_buffer_used_on(taken.core, core_stream);
        cc_stream_release(core_stream);
    }
    PyErr_Clear(); /* what the resource made of it is the resource's */
    cc_buffer_release(taken.core);
    Py_XDECREF(taken.resource);
    Py_XDECREF(taken.keeper);
}

/* Of a slice, only the use on the stream is noted: the whole is freed in its own order, and after it. */
static int free_in_order_of(module_state *state, PyObject *op, PyObject *stream)
{
    cc_stream *core_stream;
    parts taken;
    if (take_parts(op, &taken) < 0)
        return -1;
    int status = stream_from_object(state, stream, &core_stream);
    if (status == 0) {
        cc_error error;
        const cc_buffer_info *whole = cc_buffer_read(taken.core);
        if (whole->pointer != buffer_cast(op)->pointer || whole->size != buffer_cast(op)->size)
            cc_buffer_used_on(taken.core, core_stream);
        else if ((status = cc_buffer_set_free_stream(taken.core, core_stream, &error)) < 0)
            raise_error(state, &error);
        if (status == 0 && taken.keeper != NULL && Py_IS_TYPE(taken.keeper, state->allocation_type))
            allocation_set_stream(taken.keeper, stream);
        cc_stream_release(core_stream);
    }
    cc_buffer_release(taken.core);
    Py_XDECREF(taken.resource);
    Py_XDECREF(taken.keeper);
    return status;
}

PyDoc_STRVAR(
    close_doc,
    "close($self, /, stream=None)\n--\n\n"
    "Give the memory back.\n\n"
    "stream: the Stream, or object with __cuda_stream__(), after whose queued work the memory is free; None: the\n"
    "one that the memory was used on last. Slices and exported views keep the memory until they are gone, too.\n"
    "Closing twice is allowed; any other use raises ClosedError. A closed stream raises ClosedError and leaves\n"
    "the buffer open. Driver: cuMemFreeAsync.");

static PyObject *buffer_close(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                              PyObject *names)
{
    static const parameter_name parameters[] = {NAME("stream")};
    static const signature wanted = SIGNATURE("Buffer.close", parameters, 1, 0);
    PyObject *given[1];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    PyObject *stream = none_to_null(given[0]);
    if (stream != NULL && !buffer_is_closed(op) && free_in_order_of(state_of_class(class), op, stream) < 0)
        return NULL;
    buffer_drop(op);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(set_deallocation_stream_doc,
             "set_deallocation_stream($self, /, stream)\n--\n\n"
             "Say after which stream's queued work the memory is free, whatever else uses it.\n\n"
             "stream: a Stream, or an object with __cuda_stream__(). Raises TypeError, ClosedError.");

static PyObject *buffer_set_deallocation_stream(PyObject *op, PyTypeObject *class, PyObject *const *args,
                                                Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("stream")};
    static const signature wanted = SIGNATURE("Buffer.set_deallocation_stream", parameters, 1, REQUIRED(0));
    PyObject *given[1];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    if (free_in_order_of(state_of_class(class), op, given[0]) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *buffer_enter(PyObject *op, PyObject *unused)
{
    (void)unused;
    if (buffer_is_closed(op))
        return raise_closed(state_of(op), "buffer");
    return Py_NewRef(op);
}

static PyObject *buffer_exit(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    (void)args, (void)count;
    buffer_drop(op);
    Py_RETURN_FALSE;
}

/* ---- what the memory is ----------------------------------------------------------------------------------------- */

/* A resource says what its memory is; a subclass that does not leaves it to the driver. New reference, or NULL: with an
 * exception, or without one where the driver is to be asked. */
static PyObject *ask_resource(PyObject *op, PyObject *resource, const char *name)
{
    (void)op;
    if (resource == NULL)
        return NULL;
    PyObject *answer = PyObject_GetAttrString(resource, name);
    if (answer == NULL && PyErr_ExceptionMatches(PyExc_NotImplementedError))
        PyErr_Clear();
    return answer;
}

typedef PyObject *(*placement_reader)(const cc_placement *placement);

static PyObject *read_placement(PyObject *op, const char *name, placement_reader read)
{
    parts taken;
    if (take_parts(op, &taken) < 0)
        return NULL;
    PyObject *answer = ask_resource(op, taken.resource, name);
    if (answer == NULL && !PyErr_Occurred()) {
        cc_error error;
        cc_placement placement;
        answer = cc_buffer_placement(taken.core, &placement, &error) < 0 ? raise_error(state_of(op), &error)
                                                                         : read(&placement);
    }
    cc_buffer_release(taken.core);
    Py_XDECREF(taken.resource);
    Py_XDECREF(taken.keeper);
    return answer;
}

static PyObject *read_device(const cc_placement *placement)
{
    return PyLong_FromLong(placement->device);
}

static PyObject *read_device_accessible(const cc_placement *placement)
{
    return PyBool_FromLong(placement->device_accessible);
}

static PyObject *read_host_accessible(const cc_placement *placement)
{
    return PyBool_FromLong(placement->host_accessible);
}

static PyObject *read_managed(const cc_placement *placement)
{
    return PyBool_FromLong(placement->managed);
}

/* 1, 0, or -1 with an exception */
static int is_host_accessible(PyObject *op)
{
    PyObject *answer = read_placement(op, "is_host_accessible", read_host_accessible);
    const int yes = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return yes;
}

int buffer_reaches_kernels(PyObject *op)
{
    buffer_object *self = buffer_cast(op);
    if (__atomic_load_n(&self->kernels_may_use, __ATOMIC_RELAXED))
        return 1;
    PyObject *answer = read_placement(op, "is_device_accessible", read_device_accessible);
    const int yes = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (yes == 1)
        __atomic_store_n(&self->kernels_may_use, true, __ATOMIC_RELAXED);
    return yes;
}

/* ---- buffer protocol, sequence ---------------------------------------------------------------------------------- */

static int require_host_access(PyObject *op, PyObject *exception)
{
    const int yes = is_host_accessible(op);
    if (yes == 0)
        PyErr_SetString(exception, "the host cannot read device memory directly: use copy_to(), to bytearray(n) or an "
                                   "array, and synchronise the stream");
    return yes == 1 ? 0 : -1;
}

/* The view belongs to a slice of everything, so that the memory outlives a close() of this Buffer. */
static int buffer_get_view(PyObject *op, Py_buffer *view, int flags)
{
    view->obj = NULL;
    if (require_host_access(op, PyExc_BufferError) < 0)
        return -1;
    PyObject *exporter = buffer_slice(op, 0, buffer_cast(op)->size);
    if (exporter == NULL)
        return -1;
    const buffer_object *self = buffer_cast(exporter);
    const int status =
        PyBuffer_FillInfo(view, exporter, (void *)(uintptr_t)self->pointer, (Py_ssize_t)self->size, 0, flags);
    Py_DECREF(exporter);
    return status;
}

#if PY_VERSION_HEX < 0x030C0000
static PyObject *buffer_dunder_buffer(PyObject *op, PyObject *flags)
{
    const long value = PyLong_AsLong(flags);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    return PyMemoryView_FromObject(op);
}
#endif

static Py_ssize_t buffer_length(PyObject *op)
{
    if (buffer_is_closed(op)) {
        raise_closed(state_of(op), "buffer");
        return -1;
    }
    return (Py_ssize_t)buffer_cast(op)->size;
}

/* len() is there, but `if buffer:` goes on to mean `if buffer is not None:`, for empty and closed ones too. */
static int buffer_bool(PyObject *op)
{
    (void)op;
    return 1;
}

static PyObject *byte_at(PyObject *op, Py_ssize_t index)
{
    const Py_ssize_t size = buffer_length(op);
    if (size < 0)
        return NULL;
    if (index < 0)
        index += size;
    if (index < 0 || index >= size) {
        PyErr_SetString(PyExc_IndexError, "buffer index out of range");
        return NULL;
    }
    if (require_host_access(op, PyExc_TypeError) < 0)
        return NULL;
    if (buffer_pin(op) == NULL)
        return raise_closed(state_of(op), "buffer");
    const unsigned char byte = ((const unsigned char *)(uintptr_t)buffer_cast(op)->pointer)[index];
    buffer_unpin(op);
    return PyLong_FromLong(byte);
}

static PyObject *buffer_subscript(PyObject *op, PyObject *key)
{
    if (PyIndex_Check(key)) {
        const Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
        return index == -1 && PyErr_Occurred() ? NULL : byte_at(op, index);
    }
    if (!PySlice_Check(key)) {
        PyErr_Format(PyExc_TypeError, "buffer indices must be integers or slices, not %.100s", Py_TYPE(key)->tp_name);
        return NULL;
    }
    const Py_ssize_t size = buffer_length(op);
    Py_ssize_t start, stop, step;
    if (size < 0 || PySlice_Unpack(key, &start, &stop, &step) < 0)
        return NULL;
    if (step != 1) {
        PyErr_SetString(PyExc_ValueError, "a slice of a buffer is one range of bytes: its step must be 1");
        return NULL;
    }
    const Py_ssize_t length = PySlice_AdjustIndices(size, &start, &stop, step);
    return buffer_slice(op, (size_t)start, (size_t)length);
}

static PyObject *buffer_iterate(PyObject *op)
{
    if (require_host_access(op, PyExc_TypeError) < 0)
        return NULL;
    PyObject *view = PyMemoryView_FromObject(op);
    PyObject *iterator = view == NULL ? NULL : PyObject_GetIter(view);
    Py_XDECREF(view);
    return iterator;
}

/* ---- comparison ------------------------------------------------------------------------------------------------- */

static PyObject *buffer_compare(PyObject *op, PyObject *other, int operation)
{
    if (operation != Py_EQ && operation != Py_NE)
        Py_RETURN_NOTIMPLEMENTED;
    if (!Py_IS_TYPE(other, Py_TYPE(op)) && !buffer_check(state_of(op), other))
        Py_RETURN_NOTIMPLEMENTED;
    const buffer_object *a = buffer_cast(op), *b = buffer_cast(other);
    const int same =
        a == b || (a->pointer == b->pointer && a->size == b->size && !buffer_is_closed(op) && !buffer_is_closed(other));
    return PyBool_FromLong(same == (operation == Py_EQ));
}

static Py_hash_t buffer_hash(PyObject *op)
{
    const uint64_t mixed = (uint64_t)buffer_cast(op)->pointer * UINT64_C(0x9E3779B97F4A7C15) + buffer_cast(op)->size;
    const Py_hash_t hash = (Py_hash_t)(mixed ^ (mixed >> 32));
    return hash == -1 ? -2 : hash;
}

static PyObject *buffer_repr(PyObject *op)
{
    const buffer_object *self = buffer_cast(op);
    char text[24];
    return PyUnicode_FromFormat("<Buffer of %zu bytes at %s%s>", self->size, address_text(self->pointer, text),
                                buffer_is_closed(op) ? ", closed" : "");
}

PyDoc_STRVAR(array_doc, "__array__($self, /, dtype=None, copy=None)\n--\n\n"
                        "A NumPy array of the bytes (uint8), which shares the memory where the host can access it.\n\n"
                        "Raises BufferError for memory of the device: NumPy would make an array of one object of it.");

static PyObject *buffer_array(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                              PyObject *names)
{
    static const parameter_name parameters[] = {NAME("dtype"), NAME("copy")};
    static const signature wanted = SIGNATURE("Buffer.__array__", parameters, 2, 0);
    (void)class;
    PyObject *given[2];
    if (parse_arguments(&wanted, args, count, names, given) < 0 || require_host_access(op, PyExc_BufferError) < 0)
        return NULL;
    PyObject *copy = none_to_null(given[1]);
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *bytes = numpy == NULL ? NULL : PyObject_CallMethod(numpy, "frombuffer", "Os", op, "u1");
    PyObject *convert = bytes == NULL ? NULL : PyObject_GetAttrString(numpy, copy == NULL ? "asarray" : "array");
    PyObject *by_position = convert == NULL ? NULL : PyTuple_Pack(1, bytes);
    PyObject *by_name =
        by_position == NULL ? NULL : Py_BuildValue("{s:O}", "dtype", given[0] == NULL ? Py_None : given[0]);
    PyObject *array = NULL;
    if (by_name != NULL && (copy == NULL || PyDict_SetItemString(by_name, "copy", copy) == 0))
        array = PyObject_Call(convert, by_position, by_name);
    Py_XDECREF(by_name);
    Py_XDECREF(by_position);
    Py_XDECREF(convert);
    Py_XDECREF(bytes);
    Py_XDECREF(numpy);
    return array;
}

static PyMethodDef buffer_methods[] = {
    {"from_handle", FUNCTION(buffer_from_handle), METH_KEYWORD_CALL | METH_CLASS, from_handle_doc},
    {"from_ipc_descriptor", FUNCTION(buffer_from_ipc_descriptor), METH_KEYWORD_CALL | METH_CLASS,
     from_ipc_descriptor_doc},
    {"close", FUNCTION(buffer_close), METH_CLASS_CALL, close_doc},
    {"set_deallocation_stream", FUNCTION(buffer_set_deallocation_stream), METH_CLASS_CALL, set_deallocation_stream_doc},
    {"copy_to", FUNCTION(buffer_copy_to), METH_CLASS_CALL, buffer_copy_to_doc},
    {"copy_from", FUNCTION(buffer_copy_from), METH_CLASS_CALL, buffer_copy_from_doc},
    {"fill", FUNCTION(buffer_fill), METH_CLASS_CALL, buffer_fill_doc},
    {"__array__", FUNCTION(buffer_array), METH_CLASS_CALL, array_doc},
    {"__dlpack__", FUNCTION(buffer_dlpack), METH_CLASS_CALL, buffer_dlpack_doc},
    {"__dlpack_device__", buffer_dlpack_device, METH_NOARGS, buffer_dlpack_device_doc},
    {"__enter__", buffer_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nThe buffer itself."},
    {"__exit__", FUNCTION(buffer_exit), METH_FASTCALL,
     "__exit__($self, exc_type=None, exc_val=None, exc_tb=None, /)\n--\n\nCloses the buffer."},
#if PY_VERSION_HEX < 0x030C0000
    {"__buffer__", buffer_dunder_buffer, METH_O,
     "__buffer__($self, flags, /)\n--\n\nA memoryview of memory that the host can access."},
#endif
    {NULL, NULL, 0, NULL},
};

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static PyObject *buffer_get_handle(PyObject *op, void *unused)
{
    (void)unused;
    if (buffer_is_closed(op))
        return raise_closed(state_of(op), "buffer");
    return PyLong_FromUnsignedLongLong(buffer_cast(op)->pointer);
}

static PyObject *buffer_get_size(PyObject *op, void *unused)
{
    (void)unused;
    if (buffer_is_closed(op))
        return raise_closed(state_of(op), "buffer");
    return PyLong_FromSize_t(buffer_cast(op)->size);
}

static PyObject *buffer_get_device_id(PyObject *op, void *unused)
{
    (void)unused;
    return read_placement(op, "device_id", read_device);
}

static PyObject *buffer_get_is_device_accessible(PyObject *op, void *unused)
{
    (void)unused;
    return read_placement(op, "is_device_accessible", read_device_accessible);
}

static PyObject *buffer_get_is_host_accessible(PyObject *op, void *unused)
{
    (void)unused;
    return read_placement(op, "is_host_accessible", read_host_accessible);
}

static PyObject *buffer_get_is_managed(PyObject *op, void *unused)
{
    (void)unused;
    return read_placement(op, "is_managed", read_managed);
}

static PyObject *buffer_get_is_mapped(PyObject *op, void *unused)
{
    (void)unused;
    if (buffer_is_closed(op))
        return raise_closed(state_of(op), "buffer");
    Py_RETURN_FALSE;
}

static PyObject *buffer_get_memory_resource(PyObject *op, void *unused)
{
    (void)unused;
    parts taken;
    if (take_parts(op, &taken) < 0)
        return NULL;
    cc_buffer_release(taken.core);
    Py_XDECREF(taken.keeper);
    return taken.resource == NULL ? Py_NewRef(Py_None) : taken.resource;
}

static PyObject *buffer_get_owner(PyObject *op, void *unused)
{
    (void)unused;
    parts taken;
    if (take_parts(op, &taken) < 0)
        return NULL;
    cc_buffer_release(taken.core);
    Py_XDECREF(taken.resource);
    if (taken.keeper != NULL && !Py_IS_TYPE(taken.keeper, state_of(op)->allocation_type))
        return taken.keeper;
    Py_XDECREF(taken.keeper);
    Py_RETURN_NONE;
}

static PyObject *buffer_get_ipc_descriptor(PyObject *op, void *unused)
{
    (void)unused;
    return raise_not_supported(state_of(op), ipc_text);
}

static PyObject *buffer_get_is_closed(PyObject *op, void *unused)
{
    (void)unused;
    return PyBool_FromLong(buffer_is_closed(op));
}

static PyGetSetDef buffer_attributes[] = {
    {"handle", buffer_get_handle, NULL, "The address of the first byte (int); 0 for an empty buffer.", NULL},
    {"size", buffer_get_size, NULL, "The size in bytes (int); len() says the same.", NULL},
    {"device_id", buffer_get_device_id, NULL,
     "The number of the device that the memory is on; -1 for host memory (int).", NULL},
    {"is_device_accessible", buffer_get_is_device_accessible, NULL, "True where kernels can use the memory (bool).",
     NULL},
    {"is_host_accessible", buffer_get_is_host_accessible, NULL,
     "True where the host can use the memory, as memoryview(buffer) then does (bool).", NULL},
    {"is_managed", buffer_get_is_managed, NULL, "True where the memory moves between host and device (bool).", NULL},
    {"is_mapped", buffer_get_is_mapped, NULL, "True where the memory is another process's (bool).", NULL},
    {"memory_resource", buffer_get_memory_resource, NULL, "The MemoryResource that the memory is from, or None.", NULL},
    {"owner", buffer_get_owner, NULL, "The object given to from_handle() as owner, or None.", NULL},
    {"ipc_descriptor", buffer_get_ipc_descriptor, NULL,
     "Buffers cannot be shared between processes yet: raises NotSupportedError.", NULL},
    {"is_closed", buffer_get_is_closed, NULL, "True after close() (bool).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef buffer_members[] = {WEAKREF_MEMBER(buffer_object), {NULL, 0, 0, 0, NULL}};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(
    buffer_doc,
    "A range of bytes that kernels can use. From Device.allocate(), MemoryResource.allocate() or from_handle().\n\n"
    "buffer[a:b] is a Buffer of those bytes that shares the memory and keeps it. Where the host can access the\n"
    "memory, memoryview(buffer), buffer[i] and iteration work, too. A context manager: leaving the block closes\n"
    "it. Buffers of the same address and size are equal.");

static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, (void *)buffer_doc},
    {Py_tp_new, buffer_new},
    {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_traverse, buffer_traverse},
    {Py_tp_clear, buffer_clear},
    {Py_tp_repr, buffer_repr},
    {Py_tp_hash, buffer_hash},
    {Py_tp_richcompare, buffer_compare},
    {Py_tp_iter, buffer_iterate},
    {Py_nb_bool, buffer_bool},
    {Py_mp_length, buffer_length},
    {Py_mp_subscript, buffer_subscript},
    {Py_bf_getbuffer, buffer_get_view},
    {Py_tp_methods, buffer_methods},
    {Py_tp_getset, buffer_attributes},
    {Py_tp_members, buffer_members},
    {0, NULL},
};

PyType_Spec buffer_spec = {
    .name = "cuda_core.Buffer",
    .basicsize = sizeof(buffer_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = buffer_slots,
};
