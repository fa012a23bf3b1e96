#ifndef CUDA_CORE_BINDINGS_DEVICE_H
#define CUDA_CORE_BINDINGS_DEVICE_H

#include "module.h"

typedef struct device_object {
    PyObject_HEAD
    cc_device *core; /* never NULL, never freed */
    int ordinal;
    cc_context *primary;         /* NULL until first needed; then kept for the life of the process */
    struct device_frame *frames; /* what `with device:` restores, innermost first, of all threads */
    PyObject *context;           /* these are made when first asked for; NULL until then */
    PyObject *default_stream;
    PyObject *memory_resource;
    PyObject *properties;
    PyObject *name;
    PyObject *uuid;
    PyObject *compute_capability;
    PyObject *arch;
    PyObject *weak_references;
} device_object;

#define device_cast(object) ((device_object *)(object))

PyObject *device_vectorcall(PyObject *type, PyObject *const *args, size_t flags, PyObject *names);
PyObject *device_new_core(module_state *state, cc_device *core);
/* The Device of an ordinal, of a context. New references. */
PyObject *device_from_ordinal(module_state *state, int ordinal);
PyObject *device_from_core(module_state *state, const cc_device *core);
/* What an argument means: a Device or an int. Borrowed; NULL with TypeError or ValueError. */
device_object *device_from_object(module_state *state, PyObject *object, const char *what);
/* The Device of the current context, else device 0. Borrowed. */
device_object *device_current(module_state *state);
/* The primary context, made at first need with the GIL given up. Borrowed; NULL with an exception. */
cc_context *device_primary(module_state *state, device_object *device);
/* New reference to the device's memory resource, its default pool unless it was set. */
PyObject *device_memory_resource_of(module_state *state, device_object *device);
PyObject *device_default_stream_of(module_state *state, device_object *device);

/* properties.c */
PyObject *device_properties_new(module_state *state, cc_device *core);

#endif
