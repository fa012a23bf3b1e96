/* Words of the language to enumerators, from the .def tables. The other way round is in ir.h (ptx_*_name). */
#ifndef CUDA_CORE_PTX_VOCABULARY_H
#define CUDA_CORE_PTX_VOCABULARY_H

#include "ir.h"

/* A word need not be terminated. Unknown words give UNSUPPORTED, NO_TYPE, MOD_NONE. */
ptx_opcode ptx_opcode_of(const char *word, size_t length);
ptx_type ptx_type_named(const char *word, size_t length);
ptx_modifier ptx_modifier_named(const char *word, size_t length);
/* Whole name with its '%'. `component` is the index of %pm3 and %envreg7, else 0. False: no special register. */
bool ptx_special_named(const char *word, size_t length, ptx_special *special, unsigned *component);

ptx_class ptx_class_of(ptx_modifier modifier);
unsigned ptx_special_components(ptx_special special);
ptx_space ptx_space_of(ptx_modifier modifier); /* GENERIC where the modifier names no space */

/* strtod in the C locale whatever the program's is; the whole of `text` must be a number. */
bool ptx_text_to_double(const char *text, double *value);

#endif
