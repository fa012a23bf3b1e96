#ifndef CUDA_CORE_BINDINGS_EVENT_H
#define CUDA_CORE_BINDINGS_EVENT_H

#include "module.h"

/* A new Event; options: None or NULL, an EventOptions, or a dictionary. */
PyObject *event_create(module_state *state, cc_context *context, PyObject *options);
/* A new reference into core, or NULL with ClosedError. */
cc_event *event_hold(PyObject *event);

#endif
