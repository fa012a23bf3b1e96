#ifndef CUDA_CORE_BINDINGS_MANAGED_H
#define CUDA_CORE_BINDINGS_MANAGED_H

#include "buffer.h"

/* host.c: a Host of a location that is not a device's. New reference. */
PyObject *host_from_location(module_state *state, CUmemLocation location);
/* What a Device or a Host means; -1 with TypeError. */
int location_from_object(module_state *state, PyObject *object, const char *what, CUmemLocation *location);

/* managed_set.c: the live set of who accesses a ManagedBuffer. */
PyObject *accessed_by_new(module_state *state, PyObject *buffer);

/* managed_buffer.c */
int managed_advise(PyObject *buffer, CUmem_advise advice, CUmemLocation location);

#endif
