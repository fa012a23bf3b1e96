#ifndef CUDA_CORE_BINDINGS_LAUNCHCONFIG_H
#define CUDA_CORE_BINDINGS_LAUNCHCONFIG_H

#include "module.h"

typedef struct launch_config_object {
    PyObject_HEAD
    cc_launch_config core; /* grid counts blocks here */
    unsigned grid[3];      /* as it was given: counts clusters where there are any */
    PyObject *weak_references;
} launch_config_object;

#define launch_config_cast(object) ((launch_config_object *)(object))

PyObject *launch_config_vectorcall(PyObject *type, PyObject *const *args, size_t flags, PyObject *names);
/* The LaunchConfig an argument stands for: itself, or one made of a dictionary. New reference; NULL with TypeError or
 * what LaunchConfig raises. */
PyObject *launch_config_from_object(module_state *state, PyObject *object);

#endif
