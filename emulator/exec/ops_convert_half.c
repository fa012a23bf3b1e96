/* cvt to and from f16 and bf16, the packed formats, and cvt.pack. */
#define EM_ALL_RARE
#include "rare.h"
#include "values.h"

/* ---- single values ---------------------------------------------------------------------------------------------- */

EM_INLINE float from_f16(uint16_t a)
{
    return em_float_of_f16(a);
}

EM_INLINE float from_bf16(uint16_t a)
{
    return em_float_of_bf16(a);
}

/* f64 once to half: through f32 with what is lost kept in its last bit. A NaN keeps the top of its payload. */
EM_INLINE uint16_t f16_of_double(double a, em_rounding mode)
{
    const uint64_t bits = em_bits_of_double(a);
    const uint16_t nan = (uint16_t)(bits >> 48 & 0x8000u) | 0x7e00u | (uint16_t)(bits >> 42 & 0x3ffu);
    return a == a ? em_f16_of_float(em_float_to_odd(a), mode) : nan;
}

EM_INLINE uint16_t bf16_of_double(double a, em_rounding mode)
{
    const uint64_t bits = em_bits_of_double(a);
    const uint16_t nan = (uint16_t)(bits >> 48 & 0x8000u) | 0x7fc0u | (uint16_t)(bits >> 45 & 0x7fu);
    return a == a ? em_bf16_of_float(em_float_to_odd(a), mode) : nan;
}

EM_INLINE uint16_t f16_saturated(double a, em_rounding mode)
{
    return f16_of_double(em_saturate_f64(a), mode);
}

/* Everything beyond 2^17 overflows f16 alike, and what is below is exact in f32. */
EM_INLINE float f16_range_signed(int64_t a)
{
    const int64_t at_least = a < -0x20000 ? -0x20000 : a;
    return (float)(int32_t)(at_least > 0x20000 ? 0x20000 : at_least);
}

EM_INLINE float f16_range_unsigned(uint64_t a)
{
    return (float)(int32_t)(a > 0x20000u ? 0x20000u : a);
}

/* 64 bits to f32 with what is lost kept in the last bit. */
EM_INLINE float odd_of_signed(int64_t a)
{
    const int64_t top = a >> 12 | ((a & 0xfff) != 0 ? 1 : 0);
    const bool wide = a >= 0x10000000000000 || a <= -0x10000000000000;
    return em_float_to_odd(wide ? (double)top * 4096.0 : (double)a);
}

EM_INLINE float odd_of_unsigned(uint64_t a)
{
    const int64_t top = (int64_t)(a >> 12 | ((a & 0xfff) != 0 ? 1u : 0u));
    return em_float_to_odd(a >= 0x10000000000000u ? (double)top * 4096.0 : (double)(int64_t)a);
}

/* .satfinite: infinity gives the largest number there is. `half` was rounded already. */
EM_INLINE uint16_t f16_finite(uint16_t half)
{
    return (half & 0x7fffu) == 0x7c00u ? (uint16_t)((half & 0x8000u) | 0x7bffu) : half;
}

EM_INLINE uint16_t bf16_finite(uint16_t half)
{
    return (half & 0x7fffu) == 0x7f80u ? (uint16_t)((half & 0x8000u) | 0x7f7fu) : half;
}

/* ---- to f16 and bf16; .ftz changes nothing: even a subnormal f32 is rounded up or down -------------------------- */

#define TO_HALF_INTEGER(r, mode, S, T, range, odd)                                                                     \
    EM_UNARY(cvt_##r##_f16_##S, uint16_t, T, em_f16_of_float(range(a), mode))                                          \
    EM_UNARY(cvt_##r##_sat_f16_##S, uint16_t, T, em_f16_of_float(em_saturate(range(a)), mode))                         \
    EM_UNARY(cvt_##r##_bf16_##S, uint16_t, T, em_bf16_of_float(odd(a), mode))

#define TO_HALF(r, mode)                                                                                               \
    TO_HALF_INTEGER(r, mode, u8, uint8_t, f16_range_unsigned, odd_of_unsigned)                                         \
    TO_HALF_INTEGER(r, mode, u16, uint16_t, f16_range_unsigned, odd_of_unsigned)                                       \
    TO_HALF_INTEGER(r, mode, u32, uint32_t, f16_range_unsigned, odd_of_unsigned)                                       \
    TO_HALF_INTEGER(r, mode, u64, uint64_t, f16_range_unsigned, odd_of_unsigned)                                       \
    TO_HALF_INTEGER(r, mode, s8, int8_t, f16_range_signed, odd_of_signed)                                              \
    TO_HALF_INTEGER(r, mode, s16, int16_t, f16_range_signed, odd_of_signed)                                            \
    TO_HALF_INTEGER(r, mode, s32, int32_t, f16_range_signed, odd_of_signed)                                            \
    TO_HALF_INTEGER(r, mode, s64, int64_t, f16_range_signed, odd_of_signed)                                            \
    EM_UNARY(cvt_##r##_f16_f32, uint16_t, float, em_f16_of_float(a, mode))                                             \
    EM_UNARY(cvt_##r##_sat_f16_f32, uint16_t, float, em_f16_of_float(em_saturate(a), mode))                            \
    EM_UNARY(cvt_##r##_f16_f64, uint16_t, double, f16_of_double(a, mode))                                              \
    EM_UNARY(cvt_##r##_sat_f16_f64, uint16_t, double, f16_saturated(a, mode))                                          \
    EM_UNARY(cvt_##r##_f16_bf16, uint16_t, uint16_t, em_f16_of_float(from_bf16(a), mode))                              \
    EM_UNARY(cvt_##r##_bf16_f32, uint16_t, float, em_bf16_of_float(a, mode))                                           \
    EM_UNARY(cvt_##r##_bf16_f64, uint16_t, double, bf16_of_double(a, mode))                                            \
    EM_UNARY(cvt_##r##_bf16_f16, uint16_t, uint16_t, em_bf16_of_float(from_f16(a), mode))
TO_HALF(rn, EM_ROUND_NEAREST)
TO_HALF(rz, EM_ROUND_ZERO)
TO_HALF(rm, EM_ROUND_DOWN)
TO_HALF(rp, EM_ROUND_UP)

/* f32 alone or in pairs, the first operand above: .relu and .satfinite. */
#define PAIR(half, a, b)       ((uint32_t)(half(b)) | (uint32_t)(half(a)) << 16)
#define F16_rn(a)              em_f16_of_float(a, EM_ROUND_NEAREST)
#define F16_rz(a)              em_f16_of_float(a, EM_ROUND_ZERO)
#define BF16_rn(a)             em_bf16_of_float(a, EM_ROUND_NEAREST)
#define BF16_rz(a)             em_bf16_of_float(a, EM_ROUND_ZERO)
#define F16_relu_rn(a)         F16_rn(em_rectified(a))
#define F16_relu_rz(a)         F16_rz(em_rectified(a))
#define BF16_relu_rn(a)        BF16_rn(em_rectified(a))
#define BF16_relu_rz(a)        BF16_rz(em_rectified(a))
#define F16_finite_rn(a)       f16_finite(F16_rn(a))
#define F16_finite_rz(a)       f16_finite(F16_rz(a))
#define BF16_finite_rn(a)      bf16_finite(BF16_rn(a))
#define BF16_finite_rz(a)      bf16_finite(BF16_rz(a))
#define F16_relu_finite_rn(a)  f16_finite(F16_relu_rn(a))
#define F16_relu_finite_rz(a)  f16_finite(F16_relu_rz(a))
#define BF16_relu_finite_rn(a) bf16_finite(BF16_relu_rn(a))
#define BF16_relu_finite_rz(a) bf16_finite(BF16_relu_rz(a))

#define ONE_OF_F32(how)                                                                                                \
    EM_UNARY(cvt_f16_##how, uint16_t, float, F16_##how(a))                                                             \
    EM_UNARY(cvt_bf16_##how, uint16_t, float, BF16_##how(a))
#define TWO_OF_F32(how)                                                                                                \
    EM_BINARY(cvt_f16x2_##how, uint32_t, float, float, PAIR(F16_##how, a, b))                                          \
    EM_BINARY(cvt_bf16x2_##how, uint32_t, float, float, PAIR(BF16_##how, a, b))
TWO_OF_F32(rn)
TWO_OF_F32(rz)
ONE_OF_F32(relu_rn)
TWO_OF_F32(relu_rn)
ONE_OF_F32(relu_rz)
TWO_OF_F32(relu_rz)
ONE_OF_F32(finite_rn)
TWO_OF_F32(finite_rn)
ONE_OF_F32(finite_rz)
TWO_OF_F32(finite_rz)
ONE_OF_F32(relu_finite_rn)
TWO_OF_F32(relu_finite_rn)
ONE_OF_F32(relu_finite_rz)
TWO_OF_F32(relu_finite_rz)

/* ---- from f16 and bf16 ------------------------------------------------------------------------------------------ */

/* A NaN's payload survives into f64 but not into f32; one of bf16 is f32's own. */
EM_INLINE double double_of_f16(uint16_t a)
{
    const uint64_t nan = (uint64_t)(a & 0x8000u) << 48 | 0x7ff8000000000000ull | (uint64_t)(a & 0x3ffu) << 42;
    return (a & 0x7fffu) > 0x7c00u ? em_double_of(nan) : (double)from_f16(a);
}

EM_UNARY(cvt_f32_f16, float, uint16_t, em_canonical(from_f16(a)))
EM_UNARY(cvt_sat_f32_f16, float, uint16_t, em_saturate(from_f16(a)))
EM_UNARY(cvt_f64_f16, double, uint16_t, double_of_f16(a))
EM_UNARY(cvt_sat_f64_f16, double, uint16_t, em_saturate_f64(double_of_f16(a)))
EM_UNARY(cvt_f32_bf16, uint32_t, uint16_t, (uint32_t)a << 16)
EM_UNARY(cvt_f64_bf16, double, uint16_t, (double)from_bf16(a))
EM_UNARY(cvt_f16_f16, uint16_t, uint16_t, (a & 0x7fffu) > 0x7c00u ? EM_F16_NAN : a)
EM_UNARY(cvt_sat_f16_f16, uint16_t, uint16_t, em_f16_of_float(em_saturate(from_f16(a)), EM_ROUND_ZERO))
EM_UNARY(cvt_bf16_bf16, uint16_t, uint16_t, a)

#define OF_HALF_INTEGER(r, mode, S, from)                                                                              \
    EM_UNARY(cvt_##r##_u8_##S, uint8_t, uint16_t, em_f32_to_u8(from(a), mode))                                         \
    EM_UNARY(cvt_##r##_u16_##S, uint16_t, uint16_t, em_f32_to_u16(from(a), mode))                                      \
    EM_UNARY(cvt_##r##_u32_##S, uint32_t, uint16_t, em_f32_to_u32(from(a), mode))                                      \
    EM_UNARY(cvt_##r##_u64_##S, uint64_t, uint16_t, em_f32_to_u64(from(a), mode))                                      \
    EM_UNARY(cvt_##r##_s8_##S, int8_t, uint16_t, em_f32_to_s8(from(a), mode))                                          \
    EM_UNARY(cvt_##r##_s16_##S, int16_t, uint16_t, em_f32_to_s16(from(a), mode))                                       \
    EM_UNARY(cvt_##r##_s32_##S, int32_t, uint16_t, em_f32_to_s32(from(a), mode))                                       \
    EM_UNARY(cvt_##r##_s64_##S, int64_t, uint16_t, em_f32_to_s64(from(a), mode))
#define OF_HALF(r, mode)                                                                                               \
    OF_HALF_INTEGER(r, mode, f16, from_f16)                                                                            \
    OF_HALF_INTEGER(r, mode, bf16, from_bf16)                                                                          \
    EM_UNARY(cvt_##r##_f16_f16, uint16_t, uint16_t, em_f16_of_float(em_integral(from_f16(a), mode), EM_ROUND_ZERO))    \
    EM_UNARY(cvt_##r##_sat_f16_f16, uint16_t, uint16_t,                                                                \
             em_f16_of_float(em_saturate(em_integral(from_f16(a), mode)), EM_ROUND_ZERO))                              \
    EM_UNARY(cvt_##r##_bf16_bf16, uint16_t, uint16_t, em_bf16_of_float(em_integral(from_bf16(a), mode), EM_ROUND_ZERO))
OF_HALF(rni, EM_ROUND_NEAREST)
OF_HALF(rzi, EM_ROUND_ZERO)
OF_HALF(rmi, EM_ROUND_DOWN)
OF_HALF(rpi, EM_ROUND_UP)

/* ---- tf32: f32 with 10 bits of mantissa ------------------------------------------------------------------------- */

EM_INLINE uint32_t tf32_nearest_away(uint32_t a)
{
    const bool special = (a & 0x7f800000u) == 0x7f800000u; /* a NaN is only cut off */
    return (special ? a : a + 0x1000u) & 0xffffe000u;
}

EM_INLINE uint32_t tf32_of(float a, em_rounding mode)
{
    const uint32_t bits = em_bits_of_float(a);
    const uint32_t kept = em_round_magnitude(bits & 0x7fffffffu, 13, bits >> 31, mode) << 13;
    return a == a ? kept | (bits & 0x80000000u) : 0x7fffe000u;
}

EM_UNARY(cvt_rna_tf32, uint32_t, uint32_t, tf32_nearest_away(a))
EM_UNARY(cvt_rn_tf32, uint32_t, float, tf32_of(a, EM_ROUND_NEAREST))
EM_UNARY(cvt_rz_tf32, uint32_t, float, tf32_of(a, EM_ROUND_ZERO))
EM_UNARY(cvt_rn_relu_tf32, uint32_t, float, tf32_of(em_rectified(a), EM_ROUND_NEAREST))
EM_UNARY(cvt_rz_relu_tf32, uint32_t, float, tf32_of(em_rectified(a), EM_ROUND_ZERO))

/* ---- eight-bit floats ------------------------------------------------------------------------------------------- */

/* To nearest, beyond the largest to the largest; `least` is the f32 exponent field of the smallest normal number. */
EM_INLINE uint32_t small_float(float value, uint32_t least, uint32_t mantissa_bits, uint32_t largest)
{
    const uint32_t bits = em_bits_of_float(value), magnitude = bits & 0x7fffffffu, exponent = magnitude >> 23;
    const uint32_t drop = 23u - mantissa_bits;
    const uint32_t mantissa = (magnitude & 0x7fffffu) | (exponent != 0 ? 0x800000u : 0u);
    const uint32_t below = least > exponent ? least - exponent : 0u;
    const uint32_t shift = drop + below > 25u ? 25u : drop + below;
    const uint32_t rounded =
        em_round_magnitude(below != 0 ? mantissa : magnitude - ((least - 1u) << 23), shift, 0, EM_ROUND_NEAREST);
    const uint32_t limited = rounded > largest ? largest : rounded;
    return magnitude > 0x7f800000u ? 0x7fu : limited | (bits >> 31) << 7;
}

#define E4M3(a)                   small_float(a, 121, 3, 0x7e)
#define E5M2(a)                   small_float(a, 113, 2, 0x7b)
#define E4M3_relu(a)              E4M3(em_rectified(a))
#define E5M2_relu(a)              E5M2(em_rectified(a))
#define BYTES(convert, high, low) (convert(low) | convert(high) << 8)
#define LOW_HALF(a)               from_f16((uint16_t)(a))
#define HIGH_HALF(a)              from_f16((uint16_t)((a) >> 16))

EM_INLINE uint16_t f16_of_e4m3(uint32_t byte)
{
    const uint32_t magnitude = byte & 0x7fu;
    const float value =
        magnitude >= 8u ? em_float_of((magnitude << 20) + (120u << 23)) : (float)(int)magnitude * 0x1p-9f;
    const uint16_t half = em_f16_of_float(value, EM_ROUND_NEAREST);
    return magnitude == 0x7fu ? EM_F16_NAN : (uint16_t)(half | (byte & 0x80u) << 8);
}

EM_INLINE uint16_t f16_of_e5m2(uint32_t byte)
{
    return (byte & 0x7fu) > 0x7cu ? EM_F16_NAN : (uint16_t)(byte << 8);
}

EM_INLINE uint32_t rectified_halves(uint32_t pair)
{
    const uint32_t low = (pair & 0x8000u) != 0 ? 0u : pair & 0xffffu;
    const uint32_t high = (pair & 0x80000000u) != 0 ? 0u : pair & 0xffff0000u;
    return low | high; /* a NaN here is always the positive one */
}

#define HALVES(convert, a) ((uint32_t)convert((a)&0xffu) | (uint32_t)convert((uint32_t)(a) >> 8) << 16)

EM_BINARY(cvt_e4m3x2_f32, uint16_t, float, float, BYTES(E4M3, a, b))
EM_BINARY(cvt_e5m2x2_f32, uint16_t, float, float, BYTES(E5M2, a, b))
EM_BINARY(cvt_relu_e4m3x2_f32, uint16_t, float, float, BYTES(E4M3_relu, a, b))
EM_BINARY(cvt_relu_e5m2x2_f32, uint16_t, float, float, BYTES(E5M2_relu, a, b))
EM_UNARY(cvt_e4m3x2_f16x2, uint16_t, uint32_t, BYTES(E4M3, HIGH_HALF(a), LOW_HALF(a)))
EM_UNARY(cvt_e5m2x2_f16x2, uint16_t, uint32_t, BYTES(E5M2, HIGH_HALF(a), LOW_HALF(a)))
EM_UNARY(cvt_relu_e4m3x2_f16x2, uint16_t, uint32_t, BYTES(E4M3_relu, HIGH_HALF(a), LOW_HALF(a)))
EM_UNARY(cvt_relu_e5m2x2_f16x2, uint16_t, uint32_t, BYTES(E5M2_relu, HIGH_HALF(a), LOW_HALF(a)))
EM_UNARY(cvt_f16x2_e4m3x2, uint32_t, uint16_t, HALVES(f16_of_e4m3, a))
EM_UNARY(cvt_f16x2_e5m2x2, uint32_t, uint16_t, HALVES(f16_of_e5m2, a))
EM_UNARY(cvt_relu_f16x2_e4m3x2, uint32_t, uint16_t, rectified_halves(HALVES(f16_of_e4m3, a)))
EM_UNARY(cvt_relu_f16x2_e5m2x2, uint32_t, uint16_t, rectified_halves(HALVES(f16_of_e5m2, a)))

/* ---- cvt.pack: a above b above what fits of c ------------------------------------------------------------------- */

EM_INLINE uint32_t clamped(int32_t a, int32_t low, int32_t high, uint32_t bits)
{
    const int32_t at_least = a < low ? low : a;
    return (uint32_t)(at_least > high ? high : at_least) & ((1u << bits) - 1u);
}

#define PACK(name, bits, low, high)                                                                                    \
    EM_TERNARY(name, uint32_t, int32_t, int32_t, uint32_t,                                                             \
               clamped(b, low, high, bits) | clamped(a, low, high, bits) << (bits) | c << (2 * (bits)))
EM_BINARY(pack_u16, uint32_t, int32_t, int32_t, clamped(b, 0, 65535, 16) | clamped(a, 0, 65535, 16) << 16)
EM_BINARY(pack_s16, uint32_t, int32_t, int32_t, clamped(b, -32768, 32767, 16) | clamped(a, -32768, 32767, 16) << 16)
PACK(pack_u8, 8, 0, 255)
PACK(pack_s8, 8, -128, 127)
PACK(pack_u4, 4, 0, 15)
PACK(pack_s4, 4, -8, 7)
PACK(pack_u2, 2, 0, 3)
PACK(pack_s2, 2, -2, 1)

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define FORM(name, to, from, ...) EM_FORM(name, CVT, EM_TYPES(to, from), EM_MODIFIERS(__VA_ARGS__))
#define FORMS_OF_INTEGER(r, word, name, from)                                                                          \
    FORM(cvt_##r##_f16_##name, F16, from, word), FORM(cvt_##r##_sat_f16_##name, F16, from, word, SAT),                 \
        FORM(cvt_##r##_bf16_##name, BF16, from, word)
#define FORMS_TO_HALF(r, word)                                                                                         \
    FORMS_OF_INTEGER(r, word, u8, U8), FORMS_OF_INTEGER(r, word, u16, U16), FORMS_OF_INTEGER(r, word, u32, U32),       \
        FORMS_OF_INTEGER(r, word, u64, U64), FORMS_OF_INTEGER(r, word, s8, S8), FORMS_OF_INTEGER(r, word, s16, S16),   \
        FORMS_OF_INTEGER(r, word, s32, S32), FORMS_OF_INTEGER(r, word, s64, S64),                                      \
        FORM(cvt_##r##_f16_f32, F16, F32, word), FORM(cvt_##r##_f16_f32, F16, F32, word, FTZ),                         \
        FORM(cvt_##r##_sat_f16_f32, F16, F32, word, SAT), FORM(cvt_##r##_sat_f16_f32, F16, F32, word, FTZ, SAT),       \
        FORM(cvt_##r##_f16_f64, F16, F64, word), FORM(cvt_##r##_sat_f16_f64, F16, F64, word, SAT),                     \
        FORM(cvt_##r##_f16_bf16, F16, BF16, word), FORM(cvt_##r##_bf16_f32, BF16, F32, word),                          \
        FORM(cvt_##r##_bf16_f64, BF16, F64, word), FORM(cvt_##r##_bf16_f16, BF16, F16, word)
#define FORMS_SINGLE(how, ...) FORM(cvt_f16_##how, F16, F32, __VA_ARGS__), FORM(cvt_bf16_##how, BF16, F32, __VA_ARGS__)
#define FORMS_PAIR(how, ...)                                                                                           \
    FORM(cvt_f16x2_##how, F16X2, F32, __VA_ARGS__), FORM(cvt_bf16x2_##how, BF16X2, F32, __VA_ARGS__)
#define FORMS_INTEGER(r, word, name, from, ...)                                                                        \
    FORM(cvt_##r##_u8_##name, U8, from, word, __VA_ARGS__), FORM(cvt_##r##_u16_##name, U16, from, word, __VA_ARGS__),  \
        FORM(cvt_##r##_u32_##name, U32, from, word, __VA_ARGS__),                                                      \
        FORM(cvt_##r##_u64_##name, U64, from, word, __VA_ARGS__),                                                      \
        FORM(cvt_##r##_s8_##name, S8, from, word, __VA_ARGS__),                                                        \
        FORM(cvt_##r##_s16_##name, S16, from, word, __VA_ARGS__),                                                      \
        FORM(cvt_##r##_s32_##name, S32, from, word, __VA_ARGS__),                                                      \
        FORM(cvt_##r##_s64_##name, S64, from, word, __VA_ARGS__)
#define FORMS_OF_HALF(r, word)                                                                                         \
    FORMS_INTEGER(r, word, f16, F16, NONE), FORMS_INTEGER(r, word, f16, F16, SAT),                                     \
        FORMS_INTEGER(r, word, bf16, BF16, NONE), FORMS_INTEGER(r, word, bf16, BF16, SAT),                             \
        FORM(cvt_##r##_f16_f16, F16, F16, word), FORM(cvt_##r##_sat_f16_f16, F16, F16, word, SAT),                     \
        FORM(cvt_##r##_bf16_bf16, BF16, BF16, word)
#define FORMS_BYTES(name, type)                                                                                        \
    FORM(cvt_##name##_f32, type, F32, RN, SATFINITE), FORM(cvt_relu_##name##_f32, type, F32, RN, SATFINITE, RELU),     \
        FORM(cvt_##name##_f16x2, type, F16X2, RN, SATFINITE),                                                          \
        FORM(cvt_relu_##name##_f16x2, type, F16X2, RN, SATFINITE, RELU), FORM(cvt_f16x2_##name, F16X2, type, RN),      \
        FORM(cvt_relu_f16x2_##name, F16X2, type, RN, RELU)
#define FORM_PACK(name, type) EM_FORM(pack_##name, CVT_PACK, EM_TYPES(type, S32, B32), EM_MODIFIERS(SAT))

const em_form EM_ISA_NAME(em_forms_convert_half)[] = {
    FORMS_TO_HALF(rn, RN),
    FORMS_TO_HALF(rz, RZ),
    FORMS_TO_HALF(rm, RM),
    FORMS_TO_HALF(rp, RP),
    FORMS_SINGLE(relu_rn, RN, RELU),
    FORMS_SINGLE(relu_rz, RZ, RELU),
    FORMS_SINGLE(finite_rn, RN, SATFINITE),
    FORMS_SINGLE(finite_rz, RZ, SATFINITE),
    FORMS_SINGLE(relu_finite_rn, RN, RELU, SATFINITE),
    FORMS_SINGLE(relu_finite_rz, RZ, RELU, SATFINITE),
    FORMS_PAIR(rn, RN),
    FORMS_PAIR(rz, RZ),
    FORMS_PAIR(relu_rn, RN, RELU),
    FORMS_PAIR(relu_rz, RZ, RELU),
    FORMS_PAIR(finite_rn, RN, SATFINITE),
    FORMS_PAIR(finite_rz, RZ, SATFINITE),
    FORMS_PAIR(relu_finite_rn, RN, RELU, SATFINITE),
    FORMS_PAIR(relu_finite_rz, RZ, RELU, SATFINITE),
    FORM(cvt_f32_f16, F32, F16, NONE),
    FORM(cvt_f32_f16, F32, F16, FTZ),
    FORM(cvt_sat_f32_f16, F32, F16, SAT),
    FORM(cvt_sat_f32_f16, F32, F16, FTZ, SAT),
    FORM(cvt_f64_f16, F64, F16, NONE),
    FORM(cvt_sat_f64_f16, F64, F16, SAT),
    FORM(cvt_f32_bf16, F32, BF16, NONE),
    FORM(cvt_f64_bf16, F64, BF16, NONE),
    FORM(cvt_f16_f16, F16, F16, NONE),
    FORM(cvt_sat_f16_f16, F16, F16, SAT),
    FORM(cvt_bf16_bf16, BF16, BF16, NONE),
    FORMS_OF_HALF(rni, RNI),
    FORMS_OF_HALF(rzi, RZI),
    FORMS_OF_HALF(rmi, RMI),
    FORMS_OF_HALF(rpi, RPI),
    FORM(cvt_rna_tf32, TF32, F32, RNA),
    FORM(cvt_rn_tf32, TF32, F32, RN),
    FORM(cvt_rz_tf32, TF32, F32, RZ),
    FORM(cvt_rn_relu_tf32, TF32, F32, RN, RELU),
    FORM(cvt_rz_relu_tf32, TF32, F32, RZ, RELU),
    FORMS_BYTES(e4m3x2, E4M3X2),
    FORMS_BYTES(e5m2x2, E5M2X2),
    EM_FORM(pack_u16, CVT_PACK, EM_TYPES(U16, S32), EM_MODIFIERS(SAT)),
    EM_FORM(pack_s16, CVT_PACK, EM_TYPES(S16, S32), EM_MODIFIERS(SAT)),
    FORM_PACK(u8, U8),
    FORM_PACK(s8, S8),
    FORM_PACK(u4, U4),
    FORM_PACK(s4, S4),
    FORM_PACK(u2, U2),
    FORM_PACK(s2, S2),
    EM_FORM_END,
};
