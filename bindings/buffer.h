#ifndef CUDA_CORE_BINDINGS_BUFFER_H
#define CUDA_CORE_BINDINGS_BUFFER_H

#include "module.h"

typedef struct buffer_object {
    PyObject_HEAD
    cc_buffer *core;     /* NULL after close() */
    CUdeviceptr pointer; /* pointer and size stay after close(), so that the hash stays */
    size_t size;
    PyObject *memory_resource; /* or NULL */
    PyObject *keeper; /* what keeps memory of others alive: the owner of from_handle, or an allocation_object; or NULL */
    PyObject *weak_references;
} buffer_object;

#define buffer_cast(object) ((buffer_object *)(object))

static inline int buffer_check(const module_state *state, PyObject *object)
{
    return Py_IS_TYPE(object, state->buffer_type) || PyObject_TypeCheck(object, state->buffer_type);
}

/* A Buffer that takes over the reference `core`, which is dropped on failure too. */
PyObject *buffer_from_core(module_state *state, cc_buffer *core, PyObject *memory_resource, PyObject *keeper);
/* A new reference into core, or NULL with ClosedError. */
cc_buffer *buffer_hold(PyObject *buffer);

#endif
