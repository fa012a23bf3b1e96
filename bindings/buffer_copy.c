#include "buffer.h"

#include "errors.h"
#include "parse.h"
#include "release.h"
#include "resource.h"
#include "stream.h"
#include "wait.h"

#include <string.h>

/* ---- helpers ---------------------------------------------------------------------------------------------------- */

/* A Buffer and a stream, which stay for one call. */
typedef struct work {
    module_state *state;
    buffer_object *buffer;
    cc_buffer *core;
    cc_stream *stream;
} work;

static int work_begin(work *self, module_state *state, PyObject *buffer, PyObject *stream)
{
    self->state = state;
    self->buffer = buffer_cast(buffer);
    self->core = buffer_pin(buffer);
    if (self->core == NULL) {
        raise_closed(state, "buffer");
        return -1;
    }
    if (stream_from_object(state, stream, &self->stream) == 0)
        return 0;
    buffer_unpin(buffer);
    return -1;
}

/* The use is noted once the work is queued: what waits for this stream from then on waits for the work, too. */
static void work_end(work *self, int status)
{
    if (status == 0)
        cc_buffer_used_on(self->core, self->stream);
    cc_stream_release(self->stream);
    buffer_unpin((PyObject *)self->buffer);
}

static int check_sizes(size_t destination, size_t source)
{
    if (destination == source)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "a copy needs equal sizes: the source has %zu bytes, the destination %zu; slice the larger one, as in "
                 "buffer[:%zu]",
                 source, destination, destination < source ? destination : source);
    return -1;
}

static int finish(work *self, int status, cc_error *error)
{
    if (status < 0)
        raise_error(self->state, error);
    return status;
}

/* Host memory whose copy is done goes back to its owner. */
static void collect(work *self)
{
    cc_error error;
    cc_context *context;
    if (cc_stream_context(self->stream, &context, &error) == 0)
        release_finished(self->state, context);
    else
        cc_error_clear(&error);
}

/* ---- copies between buffers ------------------------------------------------------------------------------------- */

static int copy_between(work *self, PyObject *other, int to_other)
{
    buffer_object *peer = buffer_cast(other);
    cc_buffer *peer_core = buffer_pin(other);
    if (peer_core == NULL) {
        raise_closed(self->state, "buffer");
        return -1;
    }
    const buffer_object *destination = to_other ? peer : self->buffer;
    const buffer_object *source = to_other ? self->buffer : peer;
    int status = check_sizes(destination->size, source->size);
    if (status == 0) {
        cc_error error;
        Py_BEGIN_ALLOW_THREADS;
        status = cc_copy(destination->pointer, source->pointer, source->size, self->stream, &error);
        Py_END_ALLOW_THREADS;
        if (finish(self, status, &error) == 0)
            cc_buffer_used_on(peer_core, self->stream);
    }
    buffer_unpin(other);
    return status;
}

/* ---- copies from and to the host -------------------------------------------------------------------------------- */

static int get_host_memory(PyObject *object, Py_buffer *view, int writable)
{
    if (!PyObject_CheckBuffer(object)) {
        PyErr_Format(
            PyExc_TypeError,
            "the other side of a copy must be a Buffer or an object with the buffer protocol (bytes, bytearray, "
            "array.array, a NumPy array), not %.100s",
            Py_TYPE(object)->tp_name);
        return -1;
    }
    if (PyObject_GetBuffer(object, view, PyBUF_STRIDES | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return -1;
    if (PyBuffer_IsContiguous(view, 'C'))
        return 0;
    /* Fortran's order has no gaps, but its bytes would reach the kernel transposed. */
    PyErr_Format(PyExc_ValueError, "this %.100s is not C-contiguous: use numpy.ascontiguousarray(...)%s",
                 Py_TYPE(object)->tp_name, writable ? " before, and copy to that" : "");
    PyBuffer_Release(view);
    return -1;
}

static int start_host_copy(work *self, Py_buffer *view, held *record, int to_host)
{
    cc_error error;
    int status;
    const CUdeviceptr device = self->buffer->pointer;
    void *host = view->buf;
    const size_t size = self->buffer->size;
    waiting waiter;
    const cc_watch *watch = wait_begin(&waiter);
    status = cc_host_copy_wait(host, size, to_host, self->stream, watch, &error);
    if (status == 0)
        status = to_host ? cc_copy_to_host(host, device, size, self->stream, held_release, record, &error)
                         : cc_copy_from_host(device, host, size, self->stream, held_release, record, &error);
    wait_end(&waiter);
    if (status != 0)
        held_release(record);
    return status > 0 ? -1 : finish(self, status, &error);
}

/* The view keeps the host object alive, and its size fixed, until the copy is done. */
static int copy_with_host(work *self, PyObject *other, int to_host)
{
    Py_buffer view;
    if (get_host_memory(other, &view, to_host) < 0)
        return -1;
    const size_t host_size = (size_t)view.len;
    held *record = NULL;
    if (check_sizes(to_host ? host_size : self->buffer->size, to_host ? self->buffer->size : host_size) == 0)
        record = held_view(self->state, &view);
    if (record == NULL) {
        PyBuffer_Release(&view);
        return -1;
    }
    const int status = start_host_copy(self, &view, record, to_host);
    collect(self);
    return status;
}

static int copy(module_state *state, PyObject *op, PyObject *other, PyObject *stream, int to_other)
{
    work self;
    if (work_begin(&self, state, op, stream) < 0)
        return -1;
    const int status =
        buffer_check(state, other) ? copy_between(&self, other, to_other) : copy_with_host(&self, other, to_other);
    work_end(&self, status);
    return status;
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

const char buffer_copy_to_doc[] =
    "copy_to($self, /, dst=None, *, stream)\n--\n\n"
    "Copy all bytes of this buffer to another place, in the order of a stream.\n\n"
    "dst: a Buffer, or a writable C-contiguous object with the buffer protocol, of the same size; None: a new Buffer "
    "from\n"
    "the same memory resource. A host object is kept alive until the copy is done; its contents are there once the\n"
    "stream was synchronised.\n"
    "stream: a Stream, or an object with __cuda_stream__().\n"
    "Returns dst. Raises ValueError (sizes), TypeError, BufferError, ClosedError, CUDAError. Driver: cuMemcpyAsync.";

/* A new Buffer of the same size and resource. */
static PyObject *sibling(module_state *state, PyObject *op, PyObject *stream)
{
    PyObject *resource = PyObject_GetAttrString(op, "memory_resource");
    if (resource == NULL)
        return NULL;
    if (resource == Py_None) {
        Py_DECREF(resource);
        PyErr_SetString(PyExc_ValueError, "dst is needed: this buffer has no memory resource to allocate one from");
        return NULL;
    }
    PyObject *size = PyLong_FromSize_t(buffer_cast(op)->size);
    PyObject *fresh = size == NULL ? NULL : resource_allocate(state, resource, size, stream);
    Py_XDECREF(size);
    Py_DECREF(resource);
    return fresh;
}

PyObject *buffer_copy_to(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("dst"), NAME("stream")};
    static const signature wanted = SIGNATURE("Buffer.copy_to", parameters, 1, REQUIRED(1));
    PyObject *given[2];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    module_state *state = state_of_class(class);
    PyObject *destination =
        given[0] == NULL || given[0] == Py_None ? sibling(state, op, given[1]) : Py_NewRef(given[0]);
    if (destination != NULL && copy(state, op, destination, given[1], 1) < 0)
        Py_CLEAR(destination);
    return destination;
}

const char buffer_copy_from_doc[] =
    "copy_from($self, /, src, *, stream)\n--\n\n"
    "Fill this buffer with the bytes of another object, in the order of a stream.\n\n"
    "src: a Buffer, or a C-contiguous object with the buffer protocol, of the same size. A host object is kept alive "
    "until\n"
    "the copy is done; changing it before may change what is copied.\n"
    "stream: a Stream, or an object with __cuda_stream__().\n"
    "Raises ValueError (sizes), TypeError, BufferError, ClosedError, CUDAError. Driver: cuMemcpyAsync.";

PyObject *buffer_copy_from(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("src"), NAME("stream")};
    static const signature wanted = SIGNATURE("Buffer.copy_from", parameters, 1, REQUIRED(0) | REQUIRED(1));
    PyObject *given[2];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    if (copy(state_of_class(class), op, given[0], given[1], 0) < 0)
        return NULL;
    Py_RETURN_NONE;
}

const char buffer_fill_doc[] =
    "fill($self, /, value, *, stream)\n--\n\n"
    "Set all bytes, in the order of a stream.\n\n"
    "value: an int from 0 to 255, for each byte; or an object of 1, 2 or 4 bytes with the buffer protocol (bytes, a "
    "NumPy\n"
    "scalar) that is repeated: the size must be a multiple of it.\n"
    "stream: a Stream, or an object with __cuda_stream__().\n"
    "Raises OverflowError, ValueError, TypeError, ClosedError, CUDAError. Driver: cuMemsetD8Async, D16, D32.";

static int read_byte(PyObject *value, uint32_t *pattern)
{
    int overflow;
    const long number = PyLong_AsLongAndOverflow(value, &overflow);
    if (overflow != 0 || number < 0 || number > 255) {
        PyErr_Format(PyExc_OverflowError, "a fill value of type int must be between 0 and 255, not %S", value);
        return -1;
    }
    *pattern = (uint32_t)number;
    return 0;
}

static int read_pattern(PyObject *value, uint32_t *pattern, size_t *size)
{
    *pattern = 0;
    *size = 1;
    if (PyLong_Check(value))
        return read_byte(value, pattern);
    if (!PyObject_CheckBuffer(value)) {
        PyErr_Format(PyExc_TypeError, "value must be an int or an object of 1, 2 or 4 bytes, not %.100s",
                     Py_TYPE(value)->tp_name);
        return -1;
    }
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0)
        return -1;
    int status = 0;
    if (view.len == 1 || view.len == 2 || view.len == 4) {
        *size = (size_t)view.len;
        memcpy(pattern, view.buf, *size); /* the device has the host's byte order */
    } else {
        PyErr_Format(PyExc_ValueError, "a fill value must have 1, 2 or 4 bytes, not %zd", view.len);
        status = -1;
    }
    PyBuffer_Release(&view);
    return status;
}

static int fill(work *self, uint32_t pattern, size_t pattern_size)
{
    const size_t size = self->buffer->size;
    if (size % pattern_size != 0) {
        PyErr_Format(PyExc_ValueError,
                     "a buffer of %zu bytes cannot be filled with a value of %zu bytes: its size must "
                     "be a multiple",
                     size, pattern_size);
        return -1;
    }
    cc_error error;
    int status;
    const CUdeviceptr pointer = self->buffer->pointer;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_fill(pointer, size, pattern, pattern_size, self->stream, &error);
    Py_END_ALLOW_THREADS;
    return finish(self, status, &error);
}

PyObject *buffer_fill(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("value"), NAME("stream")};
    static const signature wanted = SIGNATURE("Buffer.fill", parameters, 1, REQUIRED(0) | REQUIRED(1));
    PyObject *given[2];
    uint32_t pattern;
    size_t pattern_size;
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    if (read_pattern(given[0], &pattern, &pattern_size) < 0)
        return NULL;
    work self;
    if (work_begin(&self, state_of_class(class), op, given[1]) < 0)
        return NULL;
    const int status = fill(&self, pattern, pattern_size);
    work_end(&self, status);
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}
