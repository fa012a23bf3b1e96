#ifndef CUDA_CORE_BINDINGS_STREAM_H
#define CUDA_CORE_BINDINGS_STREAM_H

#include "module.h"

typedef struct stream_object {
    PyObject_HEAD
    cc_stream *core;   /* NULL after close() */
    CUstream native;   /* stays after close(), so that hash and equality stay */
    uint64_t serial;   /* of core */
    CUcontext context; /* of a default stream that belongs to one device; else NULL */
    PyObject *weak_references;
} stream_object;

#define stream_cast(object) ((stream_object *)(object))

/* A Stream that takes over the reference `core`, which is dropped on failure too. */
PyObject *stream_from_core(module_state *state, cc_stream *core);
/* The stream an argument stands for: a Stream, or an object with __cuda_stream__(). New reference into core; -1 with
 * TypeError or ClosedError. */
int stream_from_object(module_state *state, PyObject *object, cc_stream **core);
/* The same for a known Stream: a new reference into core, or NULL with ClosedError. */
cc_stream *stream_hold(PyObject *stream);
/* The default stream `native` of a context, or with context NULL of whatever context is current. */
PyObject *stream_default(module_state *state, CUstream native, cc_context *context);
/* A new stream; options: None or NULL, a StreamOptions, or a dictionary. */
PyObject *stream_create(module_state *state, cc_context *context, PyObject *options);
/* A Stream of another library's stream, which it keeps alive. */
PyObject *stream_wrap_object(module_state *state, cc_context *context, PyObject *object);

#endif
