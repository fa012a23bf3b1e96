#ifndef CUDA_CORE_BINDINGS_OBJECTCODE_H
#define CUDA_CORE_BINDINGS_OBJECTCODE_H

#include "module.h"

/* An ObjectCode. code: bytes, or a str that is the path of a file; format: "cubin", "ptx", ...; mapping: a dict of str
 * to str, which the object takes as its own. */
PyObject *object_code_make(module_state *state, const char *format, PyObject *code, PyObject *name, PyObject *mapping);
/* The loaded library of an ObjectCode, loading it at first need. Borrowed; NULL with TypeError or what loading raises.
 */
cc_library *object_code_library(module_state *state, PyObject *object);

#endif
