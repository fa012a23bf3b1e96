#ifndef CUDA_CORE_BINDINGS_RESOURCE_H
#define CUDA_CORE_BINDINGS_RESOURCE_H

#include "module.h"

/* A DeviceMemoryResource of the device's default pool. */
PyObject *device_memory_resource_default(module_state *state, cc_device *device);
/* resource.allocate(size, stream=stream) of any MemoryResource; a Buffer (checked). */
PyObject *resource_allocate(module_state *state, PyObject *resource, PyObject *size, PyObject *stream);

#endif
