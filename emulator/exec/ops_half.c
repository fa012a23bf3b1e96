/* Arithmetic on f16, bf16 and pairs of them: exact or sufficiently wide in f32 or f64, then rounded once.
 *
 * A sum of two halves in f32 has more than twice a half's precision, so rounding it again is harmless; a product is
 * exact; a fused product and sum goes through f64 with what is lost kept in the last bit. */
#define EM_ALL_RARE
#include "rare.h"
#include "values.h"

/* ---- one value: treatments as in ops_float.c, and .relu --------------------------------------------------------- */

#define IN_plain(half)    (half)
#define IN_sat(half)      (half)
#define IN_relu(half)     (half)
#define IN_ftz(half)      em_flush_f16(half)
#define IN_ftz_sat(half)  em_flush_f16(half)
#define IN_ftz_relu(half) em_flush_f16(half)

EM_INLINE uint16_t round_f16(float value)
{
    return em_f16_of_float(value, EM_ROUND_NEAREST);
}

EM_INLINE uint16_t round_bf16(float value)
{
    return em_bf16_of_float(value, EM_ROUND_NEAREST);
}

/* Flushed is what would be below 2^-14 if exponents had no end: half a place below that still rounds up to it. */
EM_INLINE float flush_to_f16(float value)
{
    const bool small = em_magnitude(value) < 0x1p-14f - 0x1p-26f;
    return small ? em_float_of(em_bits_of_float(value) & 0x80000000u) : value;
}

#define OUT_plain(round, value)    round(value)
#define OUT_sat(round, value)      round(em_saturate(value))
#define OUT_relu(round, value)     round(em_rectified(value))
#define OUT_ftz(round, value)      round(flush_to_f16(value))
#define OUT_ftz_sat(round, value)  round(em_saturate(flush_to_f16(value)))
#define OUT_ftz_relu(round, value) round(em_rectified(flush_to_f16(value)))

EM_INLINE float sum_of(float a, float b)
{
    return a + b;
}

EM_INLINE float difference_of(float a, float b)
{
    return a - b;
}

/* In f64, because a product of bf16 can be too small for f32. */
EM_INLINE float product_of(float a, float b)
{
    return em_float_to_odd((double)a * (double)b);
}

EM_INLINE float fused(float a, float b, float c)
{
    return em_float_to_odd(em_add_to_odd((double)a * (double)b, (double)c));
}

#define TWO_F16(of, how, a, b)  OUT_##how(round_f16, of(em_float_of_f16(IN_##how(a)), em_float_of_f16(IN_##how(b))))
#define TWO_BF16(of, how, a, b) OUT_##how(round_bf16, of(em_float_of_bf16(a), em_float_of_bf16(b)))
#define THREE_F16(how, a, b, c)                                                                                        \
    OUT_##how(round_f16,                                                                                               \
              fused(em_float_of_f16(IN_##how(a)), em_float_of_f16(IN_##how(b)), em_float_of_f16(IN_##how(c))))
#define THREE_BF16(how, a, b, c)                                                                                       \
    OUT_##how(round_bf16, fused(em_float_of_bf16(a), em_float_of_bf16(b), em_float_of_bf16(c)))

/* ---- singles and pairs ------------------------------------------------------------------------------------------ */

#define LOW(value)      ((uint16_t)(value))
#define HIGH(value)     ((uint16_t)((value) >> 16))
#define JOIN(low, high) ((uint32_t)(uint16_t)(low) | (uint32_t)(uint16_t)(high) << 16)

/* `function` is a macro or function of uint16_t values. */
#define HALF_ONE(name, function)                                                                                       \
    EM_UNARY(name, uint16_t, uint16_t, function(a))                                                                    \
    EM_UNARY(name##x2, uint32_t, uint32_t, JOIN(function(LOW(a)), function(HIGH(a))))
#define HALF_TWO(name, function)                                                                                       \
    EM_BINARY(name, uint16_t, uint16_t, uint16_t, function(a, b))                                                      \
    EM_BINARY(name##x2, uint32_t, uint32_t, uint32_t, JOIN(function(LOW(a), LOW(b)), function(HIGH(a), HIGH(b))))
#define HALF_THREE(name, function)                                                                                     \
    EM_TERNARY(name, uint16_t, uint16_t, uint16_t, uint16_t, function(a, b, c))                                        \
    EM_TERNARY(name##x2, uint32_t, uint32_t, uint32_t, uint32_t,                                                       \
               JOIN(function(LOW(a), LOW(b), LOW(c)), function(HIGH(a), HIGH(b), HIGH(c))))

#define NAMED(name, expression)                                                                                        \
    EM_INLINE uint16_t name(uint16_t a, uint16_t b)                                                                    \
    {                                                                                                                  \
        return (expression);                                                                                           \
    }
#define NAMED_THREE(name, expression)                                                                                  \
    EM_INLINE uint16_t name(uint16_t a, uint16_t b, uint16_t c)                                                        \
    {                                                                                                                  \
        return (expression);                                                                                           \
    }

#define ARITHMETIC(how)                                                                                                \
    NAMED(add_of_f16_##how, TWO_F16(sum_of, how, a, b))                                                                \
    NAMED(sub_of_f16_##how, TWO_F16(difference_of, how, a, b))                                                         \
    NAMED(mul_of_f16_##how, TWO_F16(product_of, how, a, b))                                                            \
    NAMED_THREE(fma_of_f16_##how, THREE_F16(how, a, b, c))                                                             \
    HALF_TWO(add_##how##_f16, add_of_f16_##how)                                                                        \
    HALF_TWO(sub_##how##_f16, sub_of_f16_##how)                                                                        \
    HALF_TWO(mul_##how##_f16, mul_of_f16_##how)                                                                        \
    HALF_THREE(fma_##how##_f16, fma_of_f16_##how)
ARITHMETIC(plain)
ARITHMETIC(ftz)
ARITHMETIC(sat)
ARITHMETIC(ftz_sat)
NAMED_THREE(fma_of_f16_relu, THREE_F16(relu, a, b, c))
NAMED_THREE(fma_of_f16_ftz_relu, THREE_F16(ftz_relu, a, b, c))
HALF_THREE(fma_relu_f16, fma_of_f16_relu)
HALF_THREE(fma_ftz_relu_f16, fma_of_f16_ftz_relu)

NAMED(add_of_bf16, TWO_BF16(sum_of, plain, a, b))
NAMED(sub_of_bf16, TWO_BF16(difference_of, plain, a, b))
NAMED(mul_of_bf16, TWO_BF16(product_of, plain, a, b))
NAMED_THREE(fma_of_bf16, THREE_BF16(plain, a, b, c))
NAMED_THREE(fma_of_bf16_relu, THREE_BF16(relu, a, b, c))
HALF_TWO(add_bf16, add_of_bf16)
HALF_TWO(sub_bf16, sub_of_bf16)
HALF_TWO(mul_bf16, mul_of_bf16)
HALF_THREE(fma_bf16, fma_of_bf16)
HALF_THREE(fma_relu_bf16, fma_of_bf16_relu)

/* ---- signs ------------------------------------------------------------------------------------------------------ */

EM_INLINE uint16_t canonical_f16(uint16_t half)
{
    return (half & 0x7fffu) > 0x7c00u ? EM_F16_NAN : half;
}

EM_INLINE uint16_t canonical_bf16(uint16_t half)
{
    return (half & 0x7fffu) > 0x7f80u ? EM_F16_NAN : half;
}

#define ABS_F16(a)     canonical_f16((uint16_t)((a)&0x7fffu))
#define NEG_F16(a)     canonical_f16((uint16_t)((a) ^ 0x8000u))
#define ABS_F16_FTZ(a) ABS_F16(em_flush_f16(a))
#define NEG_F16_FTZ(a) NEG_F16(em_flush_f16(a))
#define ABS_BF16(a)    canonical_bf16((uint16_t)((a)&0x7fffu))
#define NEG_BF16(a)    canonical_bf16((uint16_t)((a) ^ 0x8000u))
HALF_ONE(abs_plain_f16, ABS_F16)
HALF_ONE(neg_plain_f16, NEG_F16)
HALF_ONE(abs_ftz_f16, ABS_F16_FTZ)
HALF_ONE(neg_ftz_f16, NEG_F16_FTZ)
HALF_ONE(abs_bf16, ABS_BF16)
HALF_ONE(neg_bf16, NEG_BF16)

/* ---- extremes: in f32, exactly ---------------------------------------------------------------------------------- */

EM_INLINE uint16_t exact_f16(float value)
{
    return em_f16_of_float(value, EM_ROUND_ZERO);
}

EM_INLINE uint16_t exact_bf16(float value)
{
    return em_bf16_of_float(value, EM_ROUND_ZERO);
}

#define EXTREME_FUNCTIONS(name, widen, exact)                                                                          \
    NAMED(name##_lesser, exact(em_lesser(widen(a), widen(b))))                                                         \
    NAMED(name##_greater, exact(em_greater(widen(a), widen(b))))                                                       \
    NAMED(name##_lesser_nan, exact(em_or_nan(widen(a), widen(b), em_lesser(widen(a), widen(b)))))                      \
    NAMED(name##_greater_nan, exact(em_or_nan(widen(a), widen(b), em_greater(widen(a), widen(b)))))                    \
    NAMED(name##_lesser_xorsign,                                                                                       \
          exact(em_with_xor_sign(widen(a), widen(b), em_lesser(em_magnitude(widen(a)), em_magnitude(widen(b))))))      \
    NAMED(name##_greater_xorsign,                                                                                      \
          exact(em_with_xor_sign(widen(a), widen(b), em_greater(em_magnitude(widen(a)), em_magnitude(widen(b))))))     \
    NAMED(name##_lesser_nan_xorsign, exact(em_or_nan(widen(a), widen(b), widen(name##_lesser_xorsign(a, b)))))         \
    NAMED(name##_greater_nan_xorsign, exact(em_or_nan(widen(a), widen(b), widen(name##_greater_xorsign(a, b)))))

EM_INLINE float widen_ftz(uint16_t half)
{
    return em_float_of_f16(em_flush_f16(half));
}

EXTREME_FUNCTIONS(plain, em_float_of_f16, exact_f16)
EXTREME_FUNCTIONS(flushed, widen_ftz, exact_f16)
EXTREME_FUNCTIONS(brain, em_float_of_bf16, exact_bf16)

#define EXTREMES(suffix, functions)                                                                                    \
    HALF_TWO(min_##suffix, functions##_lesser)                                                                         \
    HALF_TWO(max_##suffix, functions##_greater)                                                                        \
    HALF_TWO(min_nan_##suffix, functions##_lesser_nan)                                                                 \
    HALF_TWO(max_nan_##suffix, functions##_greater_nan)                                                                \
    HALF_TWO(min_xorsign_##suffix, functions##_lesser_xorsign)                                                         \
    HALF_TWO(max_xorsign_##suffix, functions##_greater_xorsign)                                                        \
    HALF_TWO(min_nan_xorsign_##suffix, functions##_lesser_nan_xorsign)                                                 \
    HALF_TWO(max_nan_xorsign_##suffix, functions##_greater_nan_xorsign)
EXTREMES(plain_f16, plain)
EXTREMES(ftz_f16, flushed)
EXTREMES(bf16, brain)

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define FORM_F16(name, opcode, ...)                                                                                    \
    EM_FORM(name##_f16, opcode, EM_TYPES(F16), EM_MODIFIERS(__VA_ARGS__)),                                             \
        EM_FORM(name##_f16x2, opcode, EM_TYPES(F16X2), EM_MODIFIERS(__VA_ARGS__))
#define FORM_BF16(name, opcode, ...)                                                                                   \
    EM_FORM(name##_bf16, opcode, EM_TYPES(BF16), EM_MODIFIERS(__VA_ARGS__)),                                           \
        EM_FORM(name##_bf16x2, opcode, EM_TYPES(BF16X2), EM_MODIFIERS(__VA_ARGS__))
#define FORMS_TREATED(name, opcode, word)                                                                              \
    FORM_F16(name##_plain, opcode, word), FORM_F16(name##_ftz, opcode, FTZ, word),                                     \
        FORM_F16(name##_sat, opcode, SAT, word), FORM_F16(name##_ftz_sat, opcode, FTZ, SAT, word)
#define FORMS_EXTREME(name, opcode)                                                                                    \
    FORM_F16(name##_plain, opcode, NONE), FORM_F16(name##_ftz, opcode, FTZ), FORM_F16(name##_nan_plain, opcode, NAN),  \
        FORM_F16(name##_nan_ftz, opcode, FTZ, NAN), FORM_F16(name##_xorsign_plain, opcode, XORSIGN, ABS),              \
        FORM_F16(name##_xorsign_ftz, opcode, FTZ, XORSIGN, ABS),                                                       \
        FORM_F16(name##_nan_xorsign_plain, opcode, NAN, XORSIGN, ABS),                                                 \
        FORM_F16(name##_nan_xorsign_ftz, opcode, FTZ, NAN, XORSIGN, ABS), FORM_BF16(name, opcode, NONE),               \
        FORM_BF16(name##_nan, opcode, NAN), FORM_BF16(name##_xorsign, opcode, XORSIGN, ABS),                           \
        FORM_BF16(name##_nan_xorsign, opcode, NAN, XORSIGN, ABS)

const em_form EM_ISA_NAME(em_forms_half)[] = {
    FORMS_TREATED(add, ADD, NONE),
    FORMS_TREATED(add, ADD, RN),
    FORMS_TREATED(sub, SUB, NONE),
    FORMS_TREATED(sub, SUB, RN),
    FORMS_TREATED(mul, MUL, NONE),
    FORMS_TREATED(mul, MUL, RN),
    FORMS_TREATED(fma, FMA, RN),
    FORM_F16(fma_relu, FMA, RN, RELU),
    FORM_F16(fma_ftz_relu, FMA, RN, FTZ, RELU),
    FORM_BF16(add, ADD, NONE),
    FORM_BF16(add, ADD, RN),
    FORM_BF16(sub, SUB, NONE),
    FORM_BF16(sub, SUB, RN),
    FORM_BF16(mul, MUL, NONE),
    FORM_BF16(mul, MUL, RN),
    FORM_BF16(fma, FMA, RN),
    FORM_BF16(fma_relu, FMA, RN, RELU),
    FORM_F16(abs_plain, ABS, NONE),
    FORM_F16(abs_ftz, ABS, FTZ),
    FORM_F16(neg_plain, NEG, NONE),
    FORM_F16(neg_ftz, NEG, FTZ),
    FORM_BF16(abs, ABS, NONE),
    FORM_BF16(neg, NEG, NONE),
    FORMS_EXTREME(min, MIN),
    FORMS_EXTREME(max, MAX),
    EM_FORM_END,
};
