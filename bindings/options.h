/* Options come as an object with attributes (a dataclass), as a dictionary, or as None. */
#ifndef CUDA_CORE_BINDINGS_OPTIONS_H
#define CUDA_CORE_BINDINGS_OPTIONS_H

#include "module.h"

/* Fills values[i] with a new reference to the option names[i], or NULL where it is not given or is None.
 * `class_name` is the dataclass, named in messages. Unknown keys of a dictionary: TypeError naming them.
 * 0, or -1 with an exception and no reference kept. */
int options_read(PyObject *options, const char *class_name, const char *const *names, PyObject **values, size_t count);
void options_drop(PyObject **values, size_t count);
/* 1, 0, or -1 with an exception: only a bool is taken, since a guess like "off" would be true. */
int options_flag(PyObject *value, const char *class_name, const char *name, int otherwise);

#endif
