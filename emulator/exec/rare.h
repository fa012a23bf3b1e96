/* Operations too rare to be compiled twice: one handler serves whole and partial warps.
 *
 *     EM_OP_RARE(name) { ... }      as EM_OP, listed with EM_FORM_ONE
 *
 * A file of nothing else defines EM_ALL_RARE first; its EM_OP and EM_FORM, and what stands on them, are then these. */
#ifndef CUDA_CORE_EMULATOR_RARE_H
#define CUDA_CORE_EMULATOR_RARE_H

#include "op.h"

#define EM_OP_RARE(name)                                                                                               \
    static inline __attribute__((always_inline)) void name##_body(const em_insn *insn, unsigned char *rows,            \
                                                                  em_warp *warp, const em_mask mask, const bool full); \
    EM_HANDLER(name##_masked)                                                                                          \
    {                                                                                                                  \
        name##_body(insn, rows, warp, em_guarded(insn, rows, mask), false);                                            \
        EM_NEXT;                                                                                                       \
    }                                                                                                                  \
    static inline __attribute__((always_inline)) void name##_body(                                                     \
        __attribute__((unused)) const em_insn *insn, __attribute__((unused)) unsigned char *rows,                      \
        __attribute__((unused)) em_warp *warp, __attribute__((unused)) const em_mask mask,                             \
        __attribute__((unused)) const bool full)

#ifdef EM_ALL_RARE
#undef EM_OP
#define EM_OP(name) EM_OP_RARE(name)
#undef EM_FORM
#define EM_FORM EM_FORM_ONE
#endif

#endif
