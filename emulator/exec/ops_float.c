/* f32 arithmetic. A NaN result is always the same NaN; .ftz flushes operands and result, .sat clamps to [0, 1]. */
#include "op.h"
#include "values.h"

/* What is done to a result, and whether subnormal numbers are flushed, for each combination of .ftz and .sat. */
#define RESULT_plain(value)   em_canonical(value)
#define RESULT_ftz(value)     em_canonical(value)
#define RESULT_sat(value)     em_saturate(value)
#define RESULT_ftz_sat(value) em_saturate(value)
#define FLUSH_plain           false
#define FLUSH_ftz             true
#define FLUSH_sat             false
#define FLUSH_ftz_sat         true

#define SUM        (a + b)
#define DIFFERENCE (a - b)
#define PRODUCT    (a * b)
#define QUOTIENT   (a / b)
#define RECIPROCAL (1.0f / a)
#define ROOT       __builtin_sqrtf(a)

/* The expression over a, b, c in the environment that rounding and treatment ask for. */
#define COMPUTED(name, of, how, mode)                                                                                  \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        const uint64_t old = em_enter(mode, FLUSH_##how);                                                              \
        float *const d_row = EM_ROW(float, insn->d);                                                                   \
        const float *const a_row = EM_ROW(float, insn->a);                                                             \
        const float *const b_row = EM_ROW(float, insn->b);                                                             \
        const float *const c_row = EM_ROW(float, insn->c);                                                             \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const float a = a_row[lane], b = b_row[lane], c = c_row[lane];                                             \
            (void)b;                                                                                                   \
            (void)c;                                                                                                   \
            EM_PUT(d_row, RESULT_##how(of));                                                                           \
        }                                                                                                              \
        em_leave(mode, FLUSH_##how, old);                                                                              \
    }
#define DIRECTED(name, of, how)                                                                                        \
    COMPUTED(name##_rz_##how, of, how, EM_ROUND_ZERO)                                                                  \
    COMPUTED(name##_rm_##how, of, how, EM_ROUND_DOWN)                                                                  \
    COMPUTED(name##_rp_##how, of, how, EM_ROUND_UP)
#define ROUNDED(name, of, how)                                                                                         \
    COMPUTED(name##_rn_##how, of, how, EM_ROUND_NEAREST)                                                               \
    DIRECTED(name, of, how)
/* em_fma's substitute for the instruction is for rounding to nearest; directed, a build without it calls the library.
 */
#define FMA(how)                                                                                                       \
    COMPUTED(fma_rn_##how, em_fma(a, b, c), how, EM_ROUND_NEAREST)                                                     \
    DIRECTED(fma, em_fma_directed(a, b, c), how)

ROUNDED(add, SUM, plain)
ROUNDED(add, SUM, ftz)
ROUNDED(add, SUM, sat)
ROUNDED(add, SUM, ftz_sat)
ROUNDED(sub, DIFFERENCE, plain)
ROUNDED(sub, DIFFERENCE, ftz)
ROUNDED(sub, DIFFERENCE, sat)
ROUNDED(sub, DIFFERENCE, ftz_sat)
ROUNDED(mul, PRODUCT, plain)
ROUNDED(mul, PRODUCT, ftz)
ROUNDED(mul, PRODUCT, sat)
ROUNDED(mul, PRODUCT, ftz_sat)
ROUNDED(div, QUOTIENT, plain)
ROUNDED(div, QUOTIENT, ftz)
ROUNDED(rcp, RECIPROCAL, plain)
ROUNDED(rcp, RECIPROCAL, ftz)
ROUNDED(sqrt, ROOT, plain)
ROUNDED(sqrt, ROOT, ftz)
FMA(plain)
FMA(ftz)
FMA(sat)
FMA(ftz_sat)

/* ---- signs and extremes ----------------------------------------------------------------------------------------- */

EM_INLINE float absolute(float value)
{
    return em_canonical(em_float_of(em_bits_of_float(value) & 0x7fffffffu));
}

EM_INLINE float negated(float value)
{
    return em_canonical(em_float_of(em_bits_of_float(value) ^ 0x80000000u));
}

EM_UNARY(abs_plain, float, float, absolute(a))
EM_UNARY(abs_ftz, float, float, absolute(em_flush(a)))
EM_UNARY(neg_plain, float, float, negated(a))
EM_UNARY(neg_ftz, float, float, negated(em_flush(a)))
EM_BINARY(copysign_f32, uint32_t, uint32_t, uint32_t, (a & 0x80000000u) | (b & 0x7fffffffu))

#define OPERAND_plain(value) (value)
#define OPERAND_ftz(value)   em_flush(value)
#define EXTREMES(name, choose, how)                                                                                    \
    EM_BINARY(name##_##how, float, float, float, choose(OPERAND_##how(a), OPERAND_##how(b)))                           \
    EM_BINARY(name##_nan_##how, float, float, float, em_or_nan(a, b, choose(OPERAND_##how(a), OPERAND_##how(b))))      \
    EM_BINARY(name##_xorsign_##how, float, float, float,                                                               \
              em_with_xor_sign(a, b, choose(em_magnitude(OPERAND_##how(a)), em_magnitude(OPERAND_##how(b)))))          \
    EM_BINARY(                                                                                                         \
        name##_nan_xorsign_##how, float, float, float,                                                                 \
        em_or_nan(a, b,                                                                                                \
                  em_with_xor_sign(a, b, choose(em_magnitude(OPERAND_##how(a)), em_magnitude(OPERAND_##how(b))))))
/* .abs alone, which PTX has for three operands. */
#define EXTREMES_OF_MAGNITUDES(name, choose, how)                                                                      \
    EM_BINARY(name##_abs_##how, float, float, float,                                                                   \
              choose(em_magnitude(OPERAND_##how(a)), em_magnitude(OPERAND_##how(b))))                                  \
    EM_BINARY(name##_nan_abs_##how, float, float, float,                                                               \
              em_or_nan(a, b, choose(em_magnitude(OPERAND_##how(a)), em_magnitude(OPERAND_##how(b)))))
EXTREMES_OF_MAGNITUDES(min, em_lesser, plain)
EXTREMES_OF_MAGNITUDES(min, em_lesser, ftz)
EXTREMES_OF_MAGNITUDES(max, em_greater, plain)
EXTREMES_OF_MAGNITUDES(max, em_greater, ftz)
EXTREMES(min, em_lesser, plain)
EXTREMES(min, em_lesser, ftz)
EXTREMES(max, em_greater, plain)
EXTREMES(max, em_greater, ftz)

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define F32 EM_TYPES(F32)
#define FORMS_ROUNDED(name, opcode, how, ...)                                                                          \
    EM_FORM(name##_rn_##how, opcode, F32, EM_MODIFIERS(RN, __VA_ARGS__)),                                              \
        EM_FORM(name##_rz_##how, opcode, F32, EM_MODIFIERS(RZ, __VA_ARGS__)),                                          \
        EM_FORM(name##_rm_##how, opcode, F32, EM_MODIFIERS(RM, __VA_ARGS__)),                                          \
        EM_FORM(name##_rp_##how, opcode, F32, EM_MODIFIERS(RP, __VA_ARGS__))
#define FORMS_FLUSHED(name, opcode) FORMS_ROUNDED(name, opcode, plain, NONE), FORMS_ROUNDED(name, opcode, ftz, FTZ)
#define FORMS_ALL(name, opcode)                                                                                        \
    FORMS_FLUSHED(name, opcode), FORMS_ROUNDED(name, opcode, sat, SAT), FORMS_ROUNDED(name, opcode, ftz_sat, FTZ, SAT)
/* Without a rounding: to nearest. */
#define FORMS_UNNAMED(name, opcode)                                                                                    \
    EM_FORM(name##_rn_plain, opcode, F32, EM_NONE), EM_FORM(name##_rn_ftz, opcode, F32, EM_MODIFIERS(FTZ)),            \
        EM_FORM(name##_rn_sat, opcode, F32, EM_MODIFIERS(SAT)),                                                        \
        EM_FORM(name##_rn_ftz_sat, opcode, F32, EM_MODIFIERS(FTZ, SAT))
#define FORMS_EXTREMES(name, opcode)                                                                                   \
    EM_FORM(name##_plain, opcode, F32, EM_NONE), EM_FORM(name##_ftz, opcode, F32, EM_MODIFIERS(FTZ)),                  \
        EM_FORM(name##_nan_plain, opcode, F32, EM_MODIFIERS(NAN)),                                                     \
        EM_FORM(name##_nan_ftz, opcode, F32, EM_MODIFIERS(FTZ, NAN)),                                                  \
        EM_FORM(name##_abs_plain, opcode, F32, EM_MODIFIERS(ABS)),                                                     \
        EM_FORM(name##_abs_ftz, opcode, F32, EM_MODIFIERS(FTZ, ABS)),                                                  \
        EM_FORM(name##_nan_abs_plain, opcode, F32, EM_MODIFIERS(NAN, ABS)),                                            \
        EM_FORM(name##_nan_abs_ftz, opcode, F32, EM_MODIFIERS(FTZ, NAN, ABS)),                                         \
        EM_FORM(name##_xorsign_plain, opcode, F32, EM_MODIFIERS(XORSIGN, ABS)),                                        \
        EM_FORM(name##_xorsign_ftz, opcode, F32, EM_MODIFIERS(FTZ, XORSIGN, ABS)),                                     \
        EM_FORM(name##_nan_xorsign_plain, opcode, F32, EM_MODIFIERS(NAN, XORSIGN, ABS)),                               \
        EM_FORM(name##_nan_xorsign_ftz, opcode, F32, EM_MODIFIERS(FTZ, NAN, XORSIGN, ABS))

const em_form EM_ISA_NAME(em_forms_float)[] = {
    FORMS_ALL(add, ADD),
    FORMS_UNNAMED(add, ADD),
    FORMS_ALL(sub, SUB),
    FORMS_UNNAMED(sub, SUB),
    FORMS_ALL(mul, MUL),
    FORMS_UNNAMED(mul, MUL),
    FORMS_ALL(fma, FMA),
    FORMS_ALL(fma, MAD),
    FORMS_FLUSHED(div, DIV),
    FORMS_FLUSHED(rcp, RCP),
    FORMS_FLUSHED(sqrt, SQRT),
    EM_FORM(abs_plain, ABS, F32, EM_NONE),
    EM_FORM(abs_ftz, ABS, F32, EM_MODIFIERS(FTZ)),
    EM_FORM(neg_plain, NEG, F32, EM_NONE),
    EM_FORM(neg_ftz, NEG, F32, EM_MODIFIERS(FTZ)),
    EM_FORM(copysign_f32, COPYSIGN, F32, EM_NONE),
    FORMS_EXTREMES(min, MIN),
    FORMS_EXTREMES(max, MAX),
    EM_FORM_END,
};
