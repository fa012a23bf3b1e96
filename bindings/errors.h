/* The only place where a status of core/ becomes a Python exception. A pending exception is never overwritten. */
#ifndef CUDA_CORE_BINDINGS_ERRORS_H
#define CUDA_CORE_BINDINGS_ERRORS_H

#include "module.h"

/* Makes the exceptions and puts them into the module. */
int errors_ready(module_state *state, PyObject *module);

/* The exception for a filled cc_error, which is cleared. NULL always. */
PyObject *raise_error(module_state *state, cc_error *error);
/* The same with "<prefix>: " before the text; for what core cannot know, such as an argument's index. */
PyObject *raise_error_about(module_state *state, cc_error *error, const char *prefix);
/* ClosedError: "<what> was closed". NULL always. */
PyObject *raise_closed(module_state *state, const char *what);
/* NotSupportedError with the text. NULL always. */
PyObject *raise_not_supported(module_state *state, const char *text);

/* For destructors, where nothing can be raised: sys.unraisablehook gets the pending exception. */
void report_unraisable(PyObject *object);

#endif
