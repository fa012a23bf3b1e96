/* The approximate operations: nearer to the exact value than PTX asks, with the special cases of the hardware.
 *
 * Polynomials in f64 over a reduced argument, so that their own error stays below half a place of f32 and loops over
 * lanes vectorise without a library. */
#include "op.h"
#include "values.h"

EM_INLINE double odd_series(double y, double c3, double c5, double c7, double c9, double c11, double c13)
{
    const double s = y * y;
    return y + y * s * (c3 + s * (c5 + s * (c7 + s * (c9 + s * (c11 + s * c13)))));
}

/* ---- ex2, lg2 --------------------------------------------------------------------------------------------------- */

/* 2^n for -1022 <= n <= 1023 as a double holds it. */
EM_INLINE double power_of_two(double n)
{
    /* The low bits of n + 1.5 * 2^52 are n. */
    const uint64_t bits = em_bits_of_double(n + 0x1.8p52);
    return em_double_of((bits + 1023u) << 52);
}

EM_INLINE double exp2_of(double x)
{
    const double at_least = x < -300.0 ? -300.0 : x;
    const double limited = at_least > 300.0 ? 300.0 : at_least; /* f32 overflows and underflows well inside */
    const double whole = em_integral_f64(limited, EM_ROUND_NEAREST);
    const double y = (limited - whole) * 0x1.62e42fefa39efp-1; /* ln 2 */
    const double series =
        1.0 + y * (1.0 + y * (1.0 / 2 + y * (1.0 / 6 + y * (1.0 / 24 + y * (1.0 / 120 + y * (1.0 / 720 + y / 5040))))));
    return x == x ? series * power_of_two(whole) : x;
}

EM_INLINE float ex2(float x)
{
    return em_canonical((float)exp2_of((double)x));
}

/* Of a positive f32, which is never subnormal as an f64. */
EM_INLINE double log2_of(double x)
{
    /* Less the bits of sqrt(1/2), biased to stay positive: the mantissa then lies from there to sqrt(2). */
    const uint64_t lowered = em_bits_of_double(x) - 0x3fe6a09e667f3bcdull + (1024ull << 52);
    const double exponent = em_double_of((lowered >> 52) | 0x4330000000000000ull) - (0x1p52 + 1024.0);
    const double m = em_double_of((lowered & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
    const double s = (m - 1.0) / (m + 1.0);
    const double log_m = odd_series(s, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13);
    return exponent + log_m * 0x1.71547652b82fep+1; /* 2 / ln 2 */
}

EM_INLINE float lg2(float x)
{
    const float logarithm = (float)log2_of((double)x);
    const float at_limit = x == 0.0f ? -__builtin_inff() : x; /* infinity and NaN as they are */
    const float finite = x > 0.0f && x <= 0x1.fffffep127f ? logarithm : at_limit;
    return em_canonical(x < 0.0f ? em_float_of(EM_F32_NAN) : finite);
}

/* ---- sin, cos --------------------------------------------------------------------------------------------------- */

/* The hardware takes turns: x / 2 pi as an f32 rounded toward zero. So large arguments lose what it loses. */
EM_INLINE double turns_of(float x)
{
    const double product = (double)em_flush(x) * 0x1.45f306p-3; /* 1 / 2 pi as an f32 */
    const float nearest = (float)product;
    const bool away = (double)em_magnitude(nearest) > (product < 0.0 ? -product : product);
    const float turns = em_float_of(em_bits_of_float(nearest) - (away ? 1u : 0u));
    return (double)turns - em_integral_f64((double)turns, EM_ROUND_NEAREST); /* infinity gives NaN */
}

/* Of at most a quarter turn either way. */
EM_INLINE double sine_of_turns(double turns)
{
    return odd_series(turns * 0x1.921fb54442d18p+2, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
                      1.0 / 6227020800.0);
}

EM_INLINE float sine(float x)
{
    const double turns = turns_of(x);
    const double folded = turns > 0.25 ? 0.5 - turns : turns < -0.25 ? -0.5 - turns : turns;
    const float result = (float)sine_of_turns(folded);
    return em_canonical(turns == 0.0 ? em_float_of(em_bits_of_float(x) & 0x80000000u) : result);
}

EM_INLINE float cosine(float x)
{
    const double turns = turns_of(x);
    return em_canonical((float)sine_of_turns(0.25 - (turns < 0.0 ? -turns : turns)));
}

/* ---- tanh ------------------------------------------------------------------------------------------------------- */

EM_INLINE float hyperbolic_tangent(float x)
{
    const double magnitude = (double)em_magnitude(x);
    const double limited = magnitude > 20.0 ? 20.0 : magnitude;
    const double e = exp2_of(limited * 0x1.71547652b82fep+1); /* e^(2x) */
    const float large = (float)((e - 1.0) / (e + 1.0));
    const float result = magnitude < 0x1p-12 ? em_magnitude(x) : large;
    return em_canonical(x == x ? em_float_of(em_bits_of_float(result) | (em_bits_of_float(x) & 0x80000000u)) : x);
}

/* ---- reciprocals, roots, quotients ------------------------------------------------------------------------------ */

EM_INLINE float reciprocal(float x)
{
    return em_canonical(1.0f / x);
}

EM_INLINE float root(float x)
{
    return em_canonical(__builtin_sqrtf(x));
}

EM_INLINE float reciprocal_root(float x)
{
    return em_canonical((float)(1.0 / __builtin_sqrt((double)x)));
}

/* By way of the reciprocal, which is flushed to zero for a divisor above 2^126. */
EM_INLINE float quotient(float a, float b)
{
    const float zero = em_float_of(em_bits_of_float(b) & 0x80000000u);
    return em_canonical(em_magnitude(b) > 0x1p126f && em_magnitude(b) < __builtin_inff() ? a * zero : a / b);
}

/* rcp and rsqrt of f64: of the upper word, to the upper word. */
EM_INLINE uint64_t upper_word(double exact, uint64_t operand)
{
    const bool is_nan = (operand >> 32 & 0x7fffffffu) > 0x7ff00000u;
    const uint64_t bits = (em_bits_of_double(exact) + 0x80000000u) & 0xffffffff00000000ull;
    const uint64_t flushed = (bits & 0x7ff0000000000000ull) != 0 ? bits : bits & 0x8000000000000000ull;
    return is_nan || exact != exact ? 0x7fffffff00000000ull : flushed;
}

EM_INLINE double upper_operand(uint64_t operand)
{
    const uint64_t word = operand & 0xffffffff00000000ull;
    return em_double_of((word & 0x7ff0000000000000ull) != 0 ? word : word & 0x8000000000000000ull);
}

EM_INLINE double reciprocal_root_f64(double x)
{
    const double result = 1.0 / __builtin_sqrt(x);
    const double nan = x == x ? em_double_of(EM_F64_NAN) : em_double_of(em_bits_of_double(x) | 0x0008000000000000ull);
    return result == result ? result : nan;
}

/* ---- handlers --------------------------------------------------------------------------------------------------- */

#define APPROXIMATE(name, function)                                                                                    \
    EM_UNARY(name, float, float, function(a))                                                                          \
    EM_UNARY(name##_ftz, float, float, em_flush(function(em_flush(a))))
APPROXIMATE(ex2_f32, ex2)
APPROXIMATE(lg2_f32, lg2)
APPROXIMATE(sin_f32, sine)
APPROXIMATE(cos_f32, cosine)
APPROXIMATE(rcp_f32, reciprocal)
APPROXIMATE(sqrt_f32, root)
APPROXIMATE(rsqrt_f32, reciprocal_root)
EM_UNARY(tanh_f32, float, float, hyperbolic_tangent(a))
EM_BINARY(div_approx, float, float, float, quotient(a, b))
EM_BINARY(div_approx_ftz, float, float, float, em_flush(quotient(em_flush(a), em_flush(b))))
EM_BINARY(div_full, float, float, float, em_canonical(a / b))
EM_BINARY(div_full_ftz, float, float, float, em_flush(em_canonical(em_flush(a) / em_flush(b))))
EM_UNARY(rcp_f64, uint64_t, uint64_t, upper_word(1.0 / upper_operand(a), a))
EM_UNARY(rsqrt_ftz_f64, uint64_t, uint64_t, upper_word(1.0 / __builtin_sqrt(upper_operand(a)), a))
EM_UNARY(rsqrt_f64, double, double, reciprocal_root_f64(a))

EM_INLINE uint32_t tanh_f16_of(uint32_t half)
{
    return em_f16_of_float(hyperbolic_tangent(em_float_of_f16((uint16_t)half)), EM_ROUND_NEAREST);
}

EM_INLINE uint32_t ex2_f16_of(uint32_t half)
{
    return em_f16_of_float(ex2(em_float_of_f16((uint16_t)half)), EM_ROUND_NEAREST);
}

EM_INLINE uint32_t tanh_bf16_of(uint32_t half)
{
    return em_bf16_of_float(hyperbolic_tangent(em_float_of_bf16((uint16_t)half)), EM_ROUND_NEAREST);
}

EM_INLINE uint32_t ex2_bf16_of(uint32_t half)
{
    const float result = em_flush(ex2(em_flush(em_float_of_bf16((uint16_t)half))));
    return em_bf16_of_float(result, EM_ROUND_NEAREST);
}

#define HALVES(name, function)                                                                                         \
    EM_UNARY(name, uint16_t, uint16_t, function(a))                                                                    \
    EM_UNARY(name##x2, uint32_t, uint32_t, function(a) | function(a >> 16) << 16)
HALVES(tanh_f16, tanh_f16_of)
HALVES(tanh_bf16, tanh_bf16_of)
HALVES(ex2_f16, ex2_f16_of)
HALVES(ex2_bf16, ex2_bf16_of)

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define FORMS(name, opcode)                                                                                            \
    EM_FORM(name##_f32, opcode, EM_TYPES(F32), EM_MODIFIERS(APPROX)),                                                  \
        EM_FORM(name##_f32_ftz, opcode, EM_TYPES(F32), EM_MODIFIERS(APPROX, FTZ))

const em_form EM_ISA_NAME(em_forms_approx)[] = {
    FORMS(ex2, EX2),
    FORMS(lg2, LG2),
    FORMS(sin, SIN),
    FORMS(cos, COS),
    FORMS(rcp, RCP),
    FORMS(sqrt, SQRT),
    FORMS(rsqrt, RSQRT),
    EM_FORM(tanh_f32, TANH, EM_TYPES(F32), EM_MODIFIERS(APPROX)),
    EM_FORM(div_approx, DIV, EM_TYPES(F32), EM_MODIFIERS(APPROX)),
    EM_FORM(div_approx_ftz, DIV, EM_TYPES(F32), EM_MODIFIERS(APPROX, FTZ)),
    EM_FORM(div_full, DIV, EM_TYPES(F32), EM_MODIFIERS(FULL)),
    EM_FORM(div_full_ftz, DIV, EM_TYPES(F32), EM_MODIFIERS(FULL, FTZ)),
    EM_FORM(rcp_f64, RCP, EM_TYPES(F64), EM_MODIFIERS(APPROX, FTZ)),
    EM_FORM(rsqrt_f64, RSQRT, EM_TYPES(F64), EM_MODIFIERS(APPROX)),
    EM_FORM(rsqrt_ftz_f64, RSQRT, EM_TYPES(F64), EM_MODIFIERS(APPROX, FTZ)),
    EM_FORM(tanh_f16, TANH, EM_TYPES(F16), EM_MODIFIERS(APPROX)),
    EM_FORM(tanh_f16x2, TANH, EM_TYPES(F16X2), EM_MODIFIERS(APPROX)),
    EM_FORM(tanh_bf16, TANH, EM_TYPES(BF16), EM_MODIFIERS(APPROX)),
    EM_FORM(tanh_bf16x2, TANH, EM_TYPES(BF16X2), EM_MODIFIERS(APPROX)),
    EM_FORM(ex2_f16, EX2, EM_TYPES(F16), EM_MODIFIERS(APPROX)),
    EM_FORM(ex2_f16x2, EX2, EM_TYPES(F16X2), EM_MODIFIERS(APPROX)),
    EM_FORM(ex2_bf16, EX2, EM_TYPES(BF16), EM_MODIFIERS(APPROX, FTZ)),
    EM_FORM(ex2_bf16x2, EX2, EM_TYPES(BF16X2), EM_MODIFIERS(APPROX, FTZ)),
    EM_FORM_END,
};
