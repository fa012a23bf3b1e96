#ifndef CUDA_CORE_BINDINGS_KERNEL_H
#define CUDA_CORE_BINDINGS_KERNEL_H

#include "module.h"

typedef struct kernel_object {
    PyObject_HEAD
    cc_kernel *core;               /* never NULL: a Kernel is not closed */
    const cc_signature *signature; /* core's, which lives as long as the kernel; NULL until first needed */
    PyObject *name;                /* as it was asked for: "saxpy<float>", or the name in the code */
    PyObject *weak_references;
} kernel_object;

#define kernel_cast(object) ((kernel_object *)(object))

/* Makes the named tuples that kernels return, and puts them into the module. */
int kernel_ready(module_state *state, PyObject *module);

/* A Kernel that takes over the reference `core`, which is dropped on failure too. `name` NULL: core's own. */
PyObject *kernel_from_core(module_state *state, cc_kernel *core, PyObject *name);
/* The parameters the kernel was compiled with; NULL with an exception. */
const cc_signature *kernel_signature_slowly(module_state *state, kernel_object *kernel);

static inline const cc_signature *kernel_signature(module_state *state, kernel_object *kernel)
{
    const cc_signature *known = __atomic_load_n(&kernel->signature, __ATOMIC_ACQUIRE);
    return known != NULL ? known : kernel_signature_slowly(state, kernel);
}

/* Kernel.attributes and Kernel.occupancy; device NULL: the current one at each use. */
PyObject *kernel_attributes_of(module_state *state, PyObject *kernel, cc_device *device);
PyObject *kernel_occupancy_of(module_state *state, PyObject *kernel);

#endif
