/* Values of PTX's types beyond what C has: flushed and saturated floats, halves, rounding to integers.
 *
 * All of it is branch-free over the bits, so that a loop over lanes vectorises. `math.h` stays out: its NAN would
 * replace the modifier of that name in the form tables. */
#ifndef CUDA_CORE_EMULATOR_VALUES_H
#define CUDA_CORE_EMULATOR_VALUES_H

#include "lanes.h"

#define EM_INLINE static inline __attribute__((always_inline, unused))

#define EM_F32_NAN 0x7fffffffu /* what every f32 operation gives for a NaN */
#define EM_F64_NAN 0xfff8000000000000ull
#define EM_F16_NAN 0x7fffu /* of bf16 too */

/* ---- the host's floating-point environment ---------------------------------------------------------------------- */

/* Before and after the arithmetic of a handler; nothing at all for rounding to nearest without .ftz. The host's own
 * flushing is used because it tests the result as the GPU does: rounded as if exponents had no end. */
EM_INLINE uint64_t em_enter(em_rounding mode, bool flush)
{
    uint64_t old = 0;
    if (mode != EM_ROUND_NEAREST || flush)
        old = em_rounding_set(mode);
    if (flush) {
#if defined(__x86_64__)
        _mm_setcsr(_mm_getcsr() | 0x8040u); /* FTZ, DAZ */
        __asm__ volatile("" ::: "memory");
#elif defined(__aarch64__)
        uint64_t control;
        __asm__ volatile("mrs %0, fpcr" : "=r"(control)::"memory");
        __asm__ volatile("msr fpcr, %0" ::"r"(control | 1ull << 24) : "memory");
#endif
    }
    return old;
}

EM_INLINE void em_leave(em_rounding mode, bool flush, uint64_t old)
{
    if (mode != EM_ROUND_NEAREST || flush)
        em_rounding_restore(old);
}

/* ---- f32 -------------------------------------------------------------------------------------------------------- */

EM_INLINE float em_canonical(float value)
{
    return value == value ? value : em_float_of(EM_F32_NAN);
}

/* Subnormal numbers become zero of the same sign. */
EM_INLINE uint32_t em_flush_bits(uint32_t bits)
{
    return (bits & 0x7f800000u) != 0 ? bits : bits & 0x80000000u;
}

EM_INLINE float em_flush(float value)
{
    return em_float_of(em_flush_bits(em_bits_of_float(value)));
}

/* .sat: [0, 1], NaN and -0 give +0. */
EM_INLINE float em_saturate(float value)
{
    const float low = value > 0.0f ? value : 0.0f;
    return low < 1.0f ? low : 1.0f;
}

EM_INLINE double em_saturate_f64(double value)
{
    const double low = value > 0.0 ? value : 0.0;
    return low < 1.0 ? low : 1.0;
}

/* -0 is below +0, so equal operands join their signs. A NaN gives way to a number. */
EM_INLINE float em_lesser(float a, float b)
{
    const float equal = em_float_of(em_bits_of_float(a) | em_bits_of_float(b));
    const float less = a < b ? a : b;
    const float ordered = a == b ? equal : less;
    return em_canonical(b == b ? (a == a ? ordered : b) : a);
}

EM_INLINE float em_greater(float a, float b)
{
    const float equal = em_float_of(em_bits_of_float(a) & em_bits_of_float(b));
    const float more = a > b ? a : b;
    const float ordered = a == b ? equal : more;
    return em_canonical(b == b ? (a == a ? ordered : b) : a);
}

/* .NaN: a NaN wins. */
EM_INLINE float em_or_nan(float a, float b, float chosen)
{
    return a == a && b == b ? chosen : em_float_of(EM_F32_NAN);
}

/* .xorsign.abs: of the magnitudes, with the product's sign. */
EM_INLINE float em_magnitude(float value)
{
    return em_float_of(em_bits_of_float(value) & 0x7fffffffu);
}

EM_INLINE float em_with_xor_sign(float a, float b, float chosen)
{
    const uint32_t sign = (em_bits_of_float(a) ^ em_bits_of_float(b)) & 0x80000000u;
    return chosen == chosen ? em_float_of(em_bits_of_float(chosen) | sign) : chosen;
}

/* ---- f16 and bf16: the bits in a uint16_t ----------------------------------------------------------------------- */

EM_INLINE float em_float_of_f16(uint16_t half)
{
    const uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
    /* 2^112 moves the exponent from f16's bias to f32's, and normalises subnormals, exactly. */
    uint32_t bits = em_bits_of_float(em_float_of(magnitude) * 0x1p112f);
    bits = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : bits;
    return em_float_of(bits | (uint32_t)(half & 0x8000u) << 16);
}

EM_INLINE float em_float_of_bf16(uint16_t half)
{
    return em_float_of((uint32_t)half << 16);
}

/* Drops the low `shift` bits of a magnitude as `mode` says. */
EM_INLINE uint32_t em_round_magnitude(uint32_t magnitude, uint32_t shift, uint32_t negative, em_rounding mode)
{
    const uint32_t kept = magnitude >> shift;
    const uint32_t rest = magnitude & ((1u << shift) - 1u);
    const uint32_t half = 1u << (shift - 1u);
    switch (mode) {
    case EM_ROUND_NEAREST:
        return kept + ((rest + (kept & 1u)) > half ? 1u : 0u);
    case EM_ROUND_UP:
        return kept + ((rest != 0 ? 1u : 0u) & (negative ^ 1u));
    case EM_ROUND_DOWN:
        return kept + ((rest != 0 ? 1u : 0u) & negative);
    default:
        return kept;
    }
}

EM_INLINE uint16_t em_f16_of_float(float value, em_rounding mode)
{
    const uint32_t bits = em_bits_of_float(value);
    const uint32_t magnitude = bits & 0x7fffffffu, negative = bits >> 31, exponent = magnitude >> 23;
    const bool small = exponent < 113; /* below 2^-14: subnormal in f16 */
    const uint32_t mantissa = (magnitude & 0x7fffffu) | (exponent != 0 ? 0x800000u : 0u);
    const uint32_t distance = 126u - (exponent > 101 ? exponent : 101u);
    const uint32_t shift = small ? distance : 13u;
    uint32_t half = em_round_magnitude(small ? mantissa : magnitude - (112u << 23), shift, negative, mode);
    const uint32_t finite = mode == EM_ROUND_NEAREST ? 0u
                            : mode == EM_ROUND_UP    ? negative
                            : mode == EM_ROUND_DOWN  ? negative ^ 1u
                                                     : 1u; /* what is too large becomes the largest number */
    const uint32_t overflow = magnitude == 0x7f800000u ? 0x7c00u : 0x7c00u - finite;
    half = half >= 0x7c00u ? overflow : half;
    half = magnitude > 0x7f800000u ? EM_F16_NAN : half | negative << 15;
    return (uint16_t)half;
}

EM_INLINE uint16_t em_bf16_of_float(float value, em_rounding mode)
{
    const uint32_t bits = em_bits_of_float(value);
    const uint32_t magnitude = bits & 0x7fffffffu, negative = bits >> 31;
    const uint32_t half = em_round_magnitude(magnitude, 16, negative, mode) | negative << 15;
    return (uint16_t)(magnitude > 0x7f800000u ? EM_F16_NAN : half);
}

/* f64 to f32 so that rounding again to half is the same as rounding once: what is lost is kept in the last bit. */
EM_INLINE float em_float_to_odd(double value)
{
    const float nearest = (float)value;
    uint32_t bits = em_bits_of_float(nearest);
    const double back = (double)nearest;
    const double magnitude_back = back < 0.0 ? -back : back, magnitude = value < 0.0 ? -value : value;
    bits = magnitude_back > magnitude ? bits - 1u : bits;
    bits = magnitude_back != magnitude && value == value ? bits | 1u : bits;
    return em_float_of(bits);
}

EM_INLINE uint16_t em_flush_f16(uint16_t half)
{
    return (uint16_t)((half & 0x7c00u) != 0 ? half : half & 0x8000u);
}

/* a + b in f64 with the lost part kept in the last bit, by the exact error of the sum. For rounding to nearest only. */
EM_INLINE double em_add_to_odd(double a, double b)
{
    const double sum = a + b;
    const double b_part = sum - a;
    const double error = (a - (sum - b_part)) + (b - b_part);
    uint64_t bits = em_bits_of_double(sum);
    /* Toward zero first (an error of the other sign means that the sum was rounded away), then odd. */
    const bool inexact = error > 0.0 || error < 0.0;
    const bool away = (error > 0.0) == (sum < 0.0);
    bits = inexact && (bits & 1u) == 0 ? (away ? bits - 1u : bits + 1u) : bits;
    return em_double_of(bits);
}

/* .relu: below zero, and -0, gives +0; a NaN stays one. */
EM_INLINE float em_rectified(float value)
{
    return value <= 0.0f ? 0.0f : value;
}

/* a * b + c rounded once as the host is set. */
EM_INLINE float em_fma_directed(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

/* The same in rounding to nearest. */
EM_INLINE float em_fma(float a, float b, float c)
{
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    return (float)em_add_to_odd((double)a * (double)b, (double)c); /* the product is exact */
#endif
}

/* ---- rounding to an integer ------------------------------------------------------------------------------------- */

/* Adding and taking away 2^23 rounds to nearest; a step of one corrects that where it went the wrong way. Zeros keep
 * the sign of what they came from; NaN, infinity and what has no fraction stay. */
EM_INLINE float em_integral(float value, em_rounding mode)
{
    const uint32_t sign = em_bits_of_float(value) & 0x80000000u;
    const float magnitude = em_float_of(em_bits_of_float(value) & 0x7fffffffu);
    const float limit = mode == EM_ROUND_ZERO ? magnitude : value;
    const float rounded = (magnitude + 0x1p23f) - 0x1p23f;
    float whole = mode == EM_ROUND_ZERO ? rounded : em_float_of(em_bits_of_float(rounded) | sign);
    if (mode == EM_ROUND_DOWN || mode == EM_ROUND_ZERO)
        whole = whole > limit ? whole - 1.0f : whole;
    if (mode == EM_ROUND_UP)
        whole = whole < limit ? whole + 1.0f : whole;
    return magnitude < 0x1p23f ? em_float_of(em_bits_of_float(whole) | sign) : value;
}

EM_INLINE double em_integral_f64(double value, em_rounding mode)
{
    const uint64_t sign = em_bits_of_double(value) & 0x8000000000000000ull;
    const double magnitude = em_double_of(em_bits_of_double(value) & 0x7fffffffffffffffull);
    const double limit = mode == EM_ROUND_ZERO ? magnitude : value;
    const double rounded = (magnitude + 0x1p52) - 0x1p52;
    double whole = mode == EM_ROUND_ZERO ? rounded : em_double_of(em_bits_of_double(rounded) | sign);
    if (mode == EM_ROUND_DOWN || mode == EM_ROUND_ZERO)
        whole = whole > limit ? whole - 1.0 : whole;
    if (mode == EM_ROUND_UP)
        whole = whole < limit ? whole + 1.0 : whole;
    return magnitude < 0x1p52 ? em_double_of(em_bits_of_double(whole) | sign) : value;
}

/* ---- float to integer ------------------------------------------------------------------------------------------- */

/* Out of range gives the nearest limit. A NaN gives 0 for 32 bits and fewer, the top bit alone for 64 bits and
 * whenever it was an f64. The conversions of C stay in the range where they are defined. */
EM_INLINE int32_t em_f32_clamped(float value, float low, float high)
{
    const float at_least = value < low ? low : value;
    const float limited = at_least > high ? high : at_least;
    return (int32_t)(value == value ? limited : 0.0f);
}

EM_INLINE int32_t em_f32_s32(float value)
{
    const bool fits = value >= -0x1p31f && value < 0x1p31f;
    const int32_t whole = (int32_t)(fits ? value : 0.0f);
    return value >= 0x1p31f ? INT32_MAX : value < -0x1p31f ? INT32_MIN : whole;
}

EM_INLINE uint32_t em_f32_u32(float value)
{
    const float lowered = value >= 0x1p31f ? value - 0x1p31f : value;
    const bool fits = lowered >= 0.0f && lowered < 0x1p31f;
    const uint32_t whole = (uint32_t)(int32_t)(fits ? lowered : 0.0f) | (value >= 0x1p31f ? 0x80000000u : 0u);
    return value >= 0x1p32f ? UINT32_MAX : whole;
}

EM_INLINE int64_t em_f64_s64(double value)
{
    const bool fits = value >= -0x1p63 && value < 0x1p63;
    const int64_t whole = (int64_t)(fits ? value : -0x1p63);
    return value >= 0x1p63 ? INT64_MAX : whole;
}

EM_INLINE uint64_t em_f64_u64(double value)
{
    const double lowered = value >= 0x1p63 ? value - 0x1p63 : value;
    const bool fits = lowered >= 0.0 && lowered < 0x1p63;
    const uint64_t whole = (uint64_t)(int64_t)(fits ? lowered : 0.0) | (value >= 0x1p63 ? 1ull << 63 : 0u);
    return value >= 0x1p64 ? UINT64_MAX : value == value ? whole : 1ull << 63;
}

EM_INLINE uint8_t em_f32_to_u8(float value, em_rounding mode)
{
    return (uint8_t)em_f32_clamped(em_integral(value, mode), 0.0f, 255.0f);
}

EM_INLINE int8_t em_f32_to_s8(float value, em_rounding mode)
{
    return (int8_t)em_f32_clamped(em_integral(value, mode), -128.0f, 127.0f);
}

EM_INLINE uint16_t em_f32_to_u16(float value, em_rounding mode)
{
    return (uint16_t)em_f32_clamped(em_integral(value, mode), 0.0f, 65535.0f);
}

EM_INLINE int16_t em_f32_to_s16(float value, em_rounding mode)
{
    return (int16_t)em_f32_clamped(em_integral(value, mode), -32768.0f, 32767.0f);
}

EM_INLINE int32_t em_f32_to_s32(float value, em_rounding mode)
{
    return em_f32_s32(mode == EM_ROUND_ZERO ? value : em_integral(value, mode));
}

EM_INLINE uint32_t em_f32_to_u32(float value, em_rounding mode)
{
    return em_f32_u32(em_integral(value, mode));
}

EM_INLINE int64_t em_f32_to_s64(float value, em_rounding mode)
{
    return em_f64_s64((double)em_integral(value, mode));
}

EM_INLINE uint64_t em_f32_to_u64(float value, em_rounding mode)
{
    return em_f64_u64((double)em_integral(value, mode));
}

/* The limits of 32 bits and fewer are exact in f64, so one clamp serves them. */
EM_INLINE double em_f64_clamped(double value, em_rounding mode, double low, double high, double nan)
{
    const double whole = em_integral_f64(value, mode);
    const double at_least = whole < low ? low : whole;
    const double limited = at_least > high ? high : at_least;
    return value == value ? limited : nan;
}

EM_INLINE uint8_t em_f64_to_u8(double value, em_rounding mode)
{
    return (uint8_t)(int32_t)em_f64_clamped(value, mode, 0.0, 255.0, 128.0);
}

EM_INLINE int8_t em_f64_to_s8(double value, em_rounding mode)
{
    return (int8_t)(int32_t)em_f64_clamped(value, mode, -128.0, 127.0, -128.0);
}

EM_INLINE uint16_t em_f64_to_u16(double value, em_rounding mode)
{
    return (uint16_t)(int32_t)em_f64_clamped(value, mode, 0.0, 65535.0, 32768.0);
}

EM_INLINE int16_t em_f64_to_s16(double value, em_rounding mode)
{
    return (int16_t)(int32_t)em_f64_clamped(value, mode, -32768.0, 32767.0, -32768.0);
}

EM_INLINE int32_t em_f64_to_s32(double value, em_rounding mode)
{
    return (int32_t)em_f64_clamped(value, mode, -0x1p31, 0x1p31 - 1.0, -0x1p31);
}

EM_INLINE uint32_t em_f64_to_u32(double value, em_rounding mode)
{
    const double limited = em_f64_clamped(value, mode, 0.0, 0x1p32 - 1.0, 0x1p31);
    return (uint32_t)(int32_t)(limited - 0x1p31) ^ 0x80000000u;
}

EM_INLINE int64_t em_f64_to_s64(double value, em_rounding mode)
{
    return em_f64_s64(em_integral_f64(value, mode));
}

EM_INLINE uint64_t em_f64_to_u64(double value, em_rounding mode)
{
    return em_f64_u64(em_integral_f64(value, mode));
}

#endif
