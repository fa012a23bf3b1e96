#ifndef CUDA_CORE_BINDINGS_CONTEXT_H
#define CUDA_CORE_BINDINGS_CONTEXT_H

#include "module.h"

/* A Context that takes over the reference `core`, which is dropped on failure too. */
PyObject *context_from_core(module_state *state, cc_context *core);
/* A new reference into core, or NULL with ClosedError. */
cc_context *context_hold(PyObject *context);
int context_is_closed(PyObject *context);

#endif
