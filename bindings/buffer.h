#ifndef CUDA_CORE_BINDINGS_BUFFER_H
#define CUDA_CORE_BINDINGS_BUFFER_H

#include "module.h"

/* `pointer` and `size` say what the Buffer covers. `core` only owns the memory: a slice shares it with what it was cut
 * from, so use on a stream through any of them (cc_buffer_used_on) moves the point where the memory is freed. */
typedef struct buffer_object {
    PyObject_HEAD
    cc_buffer *core;     /* NULL after close() */
    cc_buffer *owned;    /* the reference: let go of by close(), or by the last one that has the Buffer pinned then */
    Py_ssize_t pins;     /* calls that use the memory without the GIL */
    CUdeviceptr pointer; /* pointer and size stay after close(), so that the hash stays */
    size_t size;
    PyObject *memory_resource; /* or NULL */
    PyObject *keeper; /* what keeps memory of others alive: the owner of from_handle, or an allocation; or NULL */
    PyObject *weak_references;
    bool kernels_may_use; /* known so; false: buffer_reaches_kernels finds out */
} buffer_object;

#define buffer_cast(object) ((buffer_object *)(object))

static inline int buffer_check(const module_state *state, PyObject *object)
{
    return Py_IS_TYPE(object, state->buffer_type) || PyObject_TypeCheck(object, state->buffer_type);
}

/* A Buffer of all of `core`, whose reference it takes over, and drops on failure too. */
PyObject *buffer_from_core(module_state *state, cc_buffer *core, PyObject *memory_resource, PyObject *keeper);
/* The same of managed memory. */
PyObject *managed_buffer_from_core(module_state *state, cc_buffer *core, PyObject *memory_resource);
/* A new reference into core, or NULL with ClosedError. */
cc_buffer *buffer_hold(PyObject *buffer);
/* What close() does: lets go of everything, unless the Buffer is pinned. */
void buffer_drop(PyObject *buffer);

/* For calls that use the memory without the GIL: until buffer_unpin a close() by another thread leaves alone the memory
 * and all that keeps it, owners that are Python objects too. It costs no locked instruction, as references into core
 * would. Borrowed; NULL, without an exception, where the Buffer is closed. The caller has a reference to the Buffer. */
static inline cc_buffer *buffer_pin(PyObject *buffer)
{
    cc_buffer *core;
    Py_BEGIN_CRITICAL_SECTION(buffer);
    core = buffer_cast(buffer)->core;
    if (core != NULL)
        buffer_cast(buffer)->pins++;
    Py_END_CRITICAL_SECTION();
    return core;
}

static inline void buffer_unpin(PyObject *buffer)
{
    int was_closed;
    Py_BEGIN_CRITICAL_SECTION(buffer);
    was_closed = --buffer_cast(buffer)->pins == 0 && buffer_cast(buffer)->core == NULL;
    Py_END_CRITICAL_SECTION();
    if (was_closed)
        buffer_drop(buffer);
}

/* Whether kernels can use the memory, as is_device_accessible says: 1, 0 or -1 with an exception. Asks what may be
 * written in Python, until the answer was yes. */
int buffer_reaches_kernels(PyObject *buffer);

/* Notes the stream that a resource written in Python was asked to allocate on. */
void buffer_allocated_on(module_state *state, PyObject *buffer, PyObject *stream);

/* buffer_copy.c: the methods that move bytes */
PyObject *buffer_copy_to(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *buffer_copy_from(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *buffer_fill(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names);
extern const char buffer_copy_to_doc[], buffer_copy_from_doc[], buffer_fill_doc[];

/* buffer_dlpack.c */
PyObject *buffer_dlpack(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *buffer_dlpack_device(PyObject *op, PyObject *unused);
extern const char buffer_dlpack_doc[], buffer_dlpack_device_doc[];

/* A Buffer of a part, or of everything: it shares the memory, which lives until both are closed. */
PyObject *buffer_slice(PyObject *buffer, size_t start, size_t size);

/* allocation.c: memory of a MemoryResource written in Python. The last reference calls its deallocate(). */
PyObject *allocation_new(module_state *state, PyObject *resource, cc_buffer *core);
void allocation_set_stream(PyObject *allocation, PyObject *stream);

#endif
