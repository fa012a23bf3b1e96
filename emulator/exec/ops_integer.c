/* Integer arithmetic. Where two's complement makes signed and unsigned the same, one handler serves both. */
#include "op.h"
#include "values.h"

/* ---- sums, differences, products -------------------------------------------------------------------------------- */

EM_BINARY(add_16, uint16_t, uint16_t, uint16_t, a + b)
EM_BINARY(add_32, uint32_t, uint32_t, uint32_t, a + b)
EM_BINARY(add_64, uint64_t, uint64_t, uint64_t, a + b)
EM_BINARY(sub_16, uint16_t, uint16_t, uint16_t, a - b)
EM_BINARY(sub_32, uint32_t, uint32_t, uint32_t, a - b)
EM_BINARY(sub_64, uint64_t, uint64_t, uint64_t, a - b)
EM_BINARY(add_16x2, uint32_t, uint32_t, uint32_t, ((a + b) & 0xffffu) | ((a & 0xffff0000u) + (b & 0xffff0000u)))

/* The sum overflowed where it has neither operand's sign; the limit is that of the first operand's sign. */
EM_INLINE int32_t add_clamped(int32_t a, int32_t b)
{
    const uint32_t sum = (uint32_t)a + (uint32_t)b;
    const uint32_t overflow = ((uint32_t)a ^ sum) & ((uint32_t)b ^ sum);
    const uint32_t limit = 0x7fffffffu + ((uint32_t)a >> 31);
    return (int32_t)((overflow >> 31) != 0 ? limit : sum);
}

EM_INLINE int32_t sub_clamped(int32_t a, int32_t b)
{
    const uint32_t difference = (uint32_t)a - (uint32_t)b;
    const uint32_t overflow = ((uint32_t)a ^ (uint32_t)b) & ((uint32_t)a ^ difference);
    const uint32_t limit = 0x7fffffffu + ((uint32_t)a >> 31);
    return (int32_t)((overflow >> 31) != 0 ? limit : difference);
}

EM_BINARY(add_sat_s32, int32_t, int32_t, int32_t, add_clamped(a, b))
EM_BINARY(sub_sat_s32, int32_t, int32_t, int32_t, sub_clamped(a, b))

EM_INLINE uint64_t mul_hi_u64(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

EM_INLINE uint64_t mul_hi_s64(uint64_t a, uint64_t b)
{
    return (uint64_t)((__int128)(int64_t)a * (int64_t)b >> 64);
}

#define LOW_16(a, b)   ((uint32_t)(a) * (uint32_t)(b))
#define HIGH_U16(a, b) ((uint32_t)(a) * (uint32_t)(b) >> 16)
#define HIGH_S16(a, b) ((int32_t)(a) * (int32_t)(b) >> 16)
#define HIGH_U32(a, b) ((uint32_t)((uint64_t)(a) * (b) >> 32))
#define HIGH_S32(a, b) ((uint32_t)((uint64_t)((int64_t)(int32_t)(a) * (int32_t)(b)) >> 32))
#define WIDE_S16(a, b) ((uint32_t)((int32_t)(int16_t)(a) * (int32_t)(int16_t)(b)))
#define WIDE_S32(a, b) ((uint64_t)((int64_t)(int32_t)(a) * (int32_t)(b)))

EM_BINARY(mul_lo_16, uint16_t, uint16_t, uint16_t, LOW_16(a, b))
EM_BINARY(mul_lo_32, uint32_t, uint32_t, uint32_t, a *b)
EM_BINARY(mul_lo_64, uint64_t, uint64_t, uint64_t, a *b)
EM_BINARY(mul_hi_u16, uint16_t, uint16_t, uint16_t, HIGH_U16(a, b))
/* Rows of int16_t: from a cast of uint16_t gcc 12 makes the high half of an unsigned product. */
EM_BINARY(mul_hi_s16, int16_t, int16_t, int16_t, HIGH_S16(a, b))
EM_BINARY(mul_hi_u32, uint32_t, uint32_t, uint32_t, HIGH_U32(a, b))
EM_BINARY(mul_hi_s32, uint32_t, uint32_t, uint32_t, HIGH_S32(a, b))
EM_BINARY(mul_hi_u64, uint64_t, uint64_t, uint64_t, mul_hi_u64(a, b))
EM_BINARY(mul_hi_s64, uint64_t, uint64_t, uint64_t, mul_hi_s64(a, b))
EM_BINARY(mul_wide_u16, uint32_t, uint16_t, uint16_t, LOW_16(a, b))
EM_BINARY(mul_wide_s16, uint32_t, uint16_t, uint16_t, WIDE_S16(a, b))
EM_BINARY(mul_wide_u32, uint64_t, uint32_t, uint32_t, (uint64_t)a *b)
EM_BINARY(mul_wide_s32, uint64_t, uint32_t, uint32_t, WIDE_S32(a, b))

EM_TERNARY(mad_lo_16, uint16_t, uint16_t, uint16_t, uint16_t, LOW_16(a, b) + c)
EM_TERNARY(mad_lo_32, uint32_t, uint32_t, uint32_t, uint32_t, a *b + c)
EM_TERNARY(mad_lo_64, uint64_t, uint64_t, uint64_t, uint64_t, a *b + c)
EM_TERNARY(mad_hi_u16, uint16_t, uint16_t, uint16_t, uint16_t, HIGH_U16(a, b) + c)
EM_TERNARY(mad_hi_s16, int16_t, int16_t, int16_t, int16_t, HIGH_S16(a, b) + c)
EM_TERNARY(mad_hi_u32, uint32_t, uint32_t, uint32_t, uint32_t, HIGH_U32(a, b) + c)
EM_TERNARY(mad_hi_s32, uint32_t, uint32_t, uint32_t, uint32_t, HIGH_S32(a, b) + c)
EM_TERNARY(mad_hi_u64, uint64_t, uint64_t, uint64_t, uint64_t, mul_hi_u64(a, b) + c)
EM_TERNARY(mad_hi_s64, uint64_t, uint64_t, uint64_t, uint64_t, mul_hi_s64(a, b) + c)
EM_TERNARY(mad_hi_sat_s32, int32_t, int32_t, int32_t, int32_t, add_clamped((int32_t)HIGH_S32(a, b), c))
EM_TERNARY(mad_wide_u16, uint32_t, uint16_t, uint16_t, uint32_t, LOW_16(a, b) + c)
EM_TERNARY(mad_wide_s16, uint32_t, uint16_t, uint16_t, uint32_t, WIDE_S16(a, b) + c)
EM_TERNARY(mad_wide_u32, uint64_t, uint32_t, uint32_t, uint64_t, (uint64_t)a *b + c)
EM_TERNARY(mad_wide_s32, uint64_t, uint32_t, uint32_t, uint64_t, WIDE_S32(a, b) + c)

/* 24 bits of each operand; .hi is bits 47..16 of the 48-bit product. */
EM_INLINE uint64_t product_u24(uint32_t a, uint32_t b)
{
    return (uint64_t)(a & 0xffffffu) * (b & 0xffffffu);
}

EM_INLINE uint64_t product_s24(uint32_t a, uint32_t b)
{
    return (uint64_t)((int64_t)((int32_t)(a << 8) >> 8) * ((int32_t)(b << 8) >> 8));
}

EM_BINARY(mul24_lo_u32, uint32_t, uint32_t, uint32_t, product_u24(a, b))
EM_BINARY(mul24_lo_s32, uint32_t, uint32_t, uint32_t, product_s24(a, b))
EM_BINARY(mul24_hi_u32, uint32_t, uint32_t, uint32_t, product_u24(a, b) >> 16)
EM_BINARY(mul24_hi_s32, uint32_t, uint32_t, uint32_t, product_s24(a, b) >> 16)
EM_TERNARY(mad24_lo_u32, uint32_t, uint32_t, uint32_t, uint32_t, product_u24(a, b) + c)
EM_TERNARY(mad24_lo_s32, uint32_t, uint32_t, uint32_t, uint32_t, product_s24(a, b) + c)
EM_TERNARY(mad24_hi_u32, uint32_t, uint32_t, uint32_t, uint32_t, (product_u24(a, b) >> 16) + c)
EM_TERNARY(mad24_hi_s32, uint32_t, uint32_t, uint32_t, uint32_t, (product_s24(a, b) >> 16) + c)
EM_TERNARY(mad24_hi_sat_s32, int32_t, uint32_t, uint32_t, int32_t,
           add_clamped((int32_t)(uint32_t)(product_s24(a, b) >> 16), c))

/* ---- differences, extremes, signs ------------------------------------------------------------------------------- */

#define DISTANCE(T, U, a, b) ((T)(a) < (T)(b) ? (U)(b) - (U)(a) : (U)(a) - (U)(b))
#define LESSER(a, b)         ((a) < (b) ? (a) : (b))
#define GREATER(a, b)        ((a) > (b) ? (a) : (b))

EM_TERNARY(sad_u16, uint16_t, uint16_t, uint16_t, uint16_t, DISTANCE(uint16_t, uint32_t, a, b) + c)
EM_TERNARY(sad_s16, uint16_t, uint16_t, uint16_t, uint16_t, DISTANCE(int16_t, uint32_t, a, b) + c)
EM_TERNARY(sad_u32, uint32_t, uint32_t, uint32_t, uint32_t, DISTANCE(uint32_t, uint32_t, a, b) + c)
EM_TERNARY(sad_s32, uint32_t, uint32_t, uint32_t, uint32_t, DISTANCE(int32_t, uint32_t, a, b) + c)
EM_TERNARY(sad_u64, uint64_t, uint64_t, uint64_t, uint64_t, DISTANCE(uint64_t, uint64_t, a, b) + c)
EM_TERNARY(sad_s64, uint64_t, uint64_t, uint64_t, uint64_t, DISTANCE(int64_t, uint64_t, a, b) + c)

EM_BINARY(min_u16, uint16_t, uint16_t, uint16_t, LESSER(a, b))
EM_BINARY(min_s16, int16_t, int16_t, int16_t, LESSER(a, b))
EM_BINARY(min_u32, uint32_t, uint32_t, uint32_t, LESSER(a, b))
EM_BINARY(min_s32, int32_t, int32_t, int32_t, LESSER(a, b))
EM_BINARY(min_u64, uint64_t, uint64_t, uint64_t, LESSER(a, b))
EM_BINARY(min_s64, int64_t, int64_t, int64_t, LESSER(a, b))
EM_BINARY(max_u16, uint16_t, uint16_t, uint16_t, GREATER(a, b))
EM_BINARY(max_s16, int16_t, int16_t, int16_t, GREATER(a, b))
EM_BINARY(max_u32, uint32_t, uint32_t, uint32_t, GREATER(a, b))
EM_BINARY(max_s32, int32_t, int32_t, int32_t, GREATER(a, b))
EM_BINARY(max_u64, uint64_t, uint64_t, uint64_t, GREATER(a, b))
EM_BINARY(max_s64, int64_t, int64_t, int64_t, GREATER(a, b))
EM_BINARY(min_relu_s32, int32_t, int32_t, int32_t, GREATER(LESSER(a, b), 0))
EM_BINARY(max_relu_s32, int32_t, int32_t, int32_t, GREATER(GREATER(a, b), 0))

/* Two 16-bit halves with T each, joined again. */
#define HALVES(T, choose, a, b)                                                                                        \
    ((uint32_t)(uint16_t)choose((T)(a), (T)(b)) | (uint32_t)(uint16_t)choose((T)((a) >> 16), (T)((b) >> 16)) << 16)
#define LESSER_RELU(a, b)  GREATER(LESSER(a, b), 0)
#define GREATER_RELU(a, b) GREATER(GREATER(a, b), 0)

EM_BINARY(min_u16x2, uint32_t, uint32_t, uint32_t, HALVES(uint16_t, LESSER, a, b))
EM_BINARY(min_s16x2, uint32_t, uint32_t, uint32_t, HALVES(int16_t, LESSER, a, b))
EM_BINARY(max_u16x2, uint32_t, uint32_t, uint32_t, HALVES(uint16_t, GREATER, a, b))
EM_BINARY(max_s16x2, uint32_t, uint32_t, uint32_t, HALVES(int16_t, GREATER, a, b))
EM_BINARY(min_relu_s16x2, uint32_t, uint32_t, uint32_t, HALVES(int16_t, LESSER_RELU, a, b))
EM_BINARY(max_relu_s16x2, uint32_t, uint32_t, uint32_t, HALVES(int16_t, GREATER_RELU, a, b))

#define NEGATED(U, a) ((U)0 - (U)(a))
EM_UNARY(abs_s16, uint16_t, int16_t, a < 0 ? NEGATED(uint32_t, a) : (uint32_t)a)
EM_UNARY(abs_s32, uint32_t, int32_t, a < 0 ? NEGATED(uint32_t, a) : (uint32_t)a)
EM_UNARY(abs_s64, uint64_t, int64_t, a < 0 ? NEGATED(uint64_t, a) : (uint64_t)a)
EM_UNARY(neg_16, uint16_t, uint16_t, NEGATED(uint32_t, a))
EM_UNARY(neg_32, uint32_t, uint32_t, NEGATED(uint32_t, a))
EM_UNARY(neg_64, uint64_t, uint64_t, NEGATED(uint64_t, a))

/* ---- quotients -------------------------------------------------------------------------------------------------- */

/* Division by zero gives all ones, as quotient and as remainder; the most negative number over -1 wraps. */

/* Exact: a quotient of 32-bit integers is at least 2^-32 below the next integer, and f64 keeps 53 bits. The value is
 * shifted into s32's range because that is the conversion every vector unit has. */
EM_INLINE uint32_t quotient_u32(uint32_t a, uint32_t b)
{
    const double dividend = (double)(int32_t)(a ^ 0x80000000u) + 0x1p31;
    const double divisor = (double)(int32_t)((b == 0 ? 1u : b) ^ 0x80000000u) + 0x1p31;
    const double quotient = dividend / divisor;
    const bool high = quotient >= 0x1p31;
    const uint32_t whole = (uint32_t)(int32_t)(high ? quotient - 0x1p31 : quotient) ^ (high ? 0x80000000u : 0u);
    return b == 0 ? 0xffffffffu : whole;
}

EM_INLINE uint32_t magnitude_32(uint32_t a)
{
    return (int32_t)a < 0 ? 0u - a : a;
}

EM_INLINE uint32_t quotient_s32(uint32_t a, uint32_t b)
{
    const uint32_t q = quotient_u32(magnitude_32(a), magnitude_32(b));
    const uint32_t signed_q = (int32_t)(a ^ b) < 0 ? 0u - q : q;
    return b == 0 ? 0xffffffffu : signed_q;
}

EM_INLINE uint64_t quotient_u64(uint64_t a, uint64_t b)
{
    return b == 0 ? UINT64_MAX : a / b;
}

EM_INLINE uint64_t quotient_s64(uint64_t a, uint64_t b)
{
    if (b == 0 || b == UINT64_MAX)
        return b == 0 ? UINT64_MAX : 0u - a;
    return (uint64_t)((int64_t)a / (int64_t)b);
}

EM_INLINE uint32_t remainder_u32(uint32_t a, uint32_t b)
{
    return b == 0 ? 0xffffffffu : a - quotient_u32(a, b) * b;
}

EM_INLINE uint32_t remainder_s32(uint32_t a, uint32_t b)
{
    return b == 0 ? 0xffffffffu : a - quotient_s32(a, b) * b;
}

EM_INLINE uint64_t remainder_u64(uint64_t a, uint64_t b)
{
    return b == 0 ? UINT64_MAX : a % b;
}

EM_INLINE uint64_t remainder_s64(uint64_t a, uint64_t b)
{
    if (b == 0 || b == UINT64_MAX)
        return b == 0 ? UINT64_MAX : 0;
    return (uint64_t)((int64_t)a % (int64_t)b);
}

#define SIGNED_16(a) ((uint32_t)(int32_t)(int16_t)(a))

EM_BINARY(div_u16, uint16_t, uint16_t, uint16_t, quotient_u32(a, b))
EM_BINARY(div_s16, uint16_t, uint16_t, uint16_t, quotient_s32(SIGNED_16(a), SIGNED_16(b)))
EM_BINARY(div_u32, uint32_t, uint32_t, uint32_t, quotient_u32(a, b))
EM_BINARY(div_s32, uint32_t, uint32_t, uint32_t, quotient_s32(a, b))
EM_BINARY(div_u64, uint64_t, uint64_t, uint64_t, quotient_u64(a, b))
EM_BINARY(div_s64, uint64_t, uint64_t, uint64_t, quotient_s64(a, b))
EM_BINARY(rem_u16, uint16_t, uint16_t, uint16_t, remainder_u32(a, b))
EM_BINARY(rem_s16, uint16_t, uint16_t, uint16_t, remainder_s32(SIGNED_16(a), SIGNED_16(b)))
EM_BINARY(rem_u32, uint32_t, uint32_t, uint32_t, remainder_u32(a, b))
EM_BINARY(rem_s32, uint32_t, uint32_t, uint32_t, remainder_s32(a, b))
EM_BINARY(rem_u64, uint64_t, uint64_t, uint64_t, remainder_u64(a, b))
EM_BINARY(rem_s64, uint64_t, uint64_t, uint64_t, remainder_s64(a, b))

/* ---- dot products ----------------------------------------------------------------------------------------------- */

#define BYTE(T, a, n) ((int32_t)(T)((a) >> (8 * (n))))
#define DOT4(A, B, a, b)                                                                                               \
    (uint32_t)(BYTE(A, a, 0) * BYTE(B, b, 0) + BYTE(A, a, 1) * BYTE(B, b, 1) + BYTE(A, a, 2) * BYTE(B, b, 2) +         \
               BYTE(A, a, 3) * BYTE(B, b, 3))
#define DOT2(A, B, a, b, first)                                                                                        \
    (uint32_t)((int32_t)(A)(a)*BYTE(B, b, first) + (int32_t)(A)((a) >> 16) * BYTE(B, b, (first) + 1))

EM_TERNARY(dp4a_uu, uint32_t, uint32_t, uint32_t, uint32_t, DOT4(uint8_t, uint8_t, a, b) + c)
EM_TERNARY(dp4a_us, uint32_t, uint32_t, uint32_t, uint32_t, DOT4(uint8_t, int8_t, a, b) + c)
EM_TERNARY(dp4a_su, uint32_t, uint32_t, uint32_t, uint32_t, DOT4(int8_t, uint8_t, a, b) + c)
EM_TERNARY(dp4a_ss, uint32_t, uint32_t, uint32_t, uint32_t, DOT4(int8_t, int8_t, a, b) + c)
EM_TERNARY(dp2a_lo_uu, uint32_t, uint32_t, uint32_t, uint32_t, DOT2(uint16_t, uint8_t, a, b, 0) + c)
EM_TERNARY(dp2a_lo_us, uint32_t, uint32_t, uint32_t, uint32_t, DOT2(uint16_t, int8_t, a, b, 0) + c)
EM_TERNARY(dp2a_lo_su, uint32_t, uint32_t, uint32_t, uint32_t, DOT2(int16_t, uint8_t, a, b, 0) + c)
EM_TERNARY(dp2a_lo_ss, uint32_t, uint32_t, uint32_t, uint32_t, DOT2(int16_t, int8_t, a, b, 0) + c)
EM_TERNARY(dp2a_hi_uu, uint32_t, uint32_t, uint32_t, uint32_t, DOT2(uint16_t, uint8_t, a, b, 2) + c)
EM_TERNARY(dp2a_hi_us, uint32_t, uint32_t, uint32_t, uint32_t, DOT2(uint16_t, int8_t, a, b, 2) + c)
EM_TERNARY(dp2a_hi_su, uint32_t, uint32_t, uint32_t, uint32_t, DOT2(int16_t, uint8_t, a, b, 2) + c)
EM_TERNARY(dp2a_hi_ss, uint32_t, uint32_t, uint32_t, uint32_t, DOT2(int16_t, int8_t, a, b, 2) + c)

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define FORMS_SAME(name, opcode, ...)                                                                                  \
    EM_FORM(name##_16, opcode, EM_TYPES(U16), EM_MODIFIERS(__VA_ARGS__)),                                              \
        EM_FORM(name##_16, opcode, EM_TYPES(S16), EM_MODIFIERS(__VA_ARGS__)),                                          \
        EM_FORM(name##_32, opcode, EM_TYPES(U32), EM_MODIFIERS(__VA_ARGS__)),                                          \
        EM_FORM(name##_32, opcode, EM_TYPES(S32), EM_MODIFIERS(__VA_ARGS__)),                                          \
        EM_FORM(name##_64, opcode, EM_TYPES(U64), EM_MODIFIERS(__VA_ARGS__)),                                          \
        EM_FORM(name##_64, opcode, EM_TYPES(S64), EM_MODIFIERS(__VA_ARGS__))
#define FORMS_NARROW(name, opcode, ...)                                                                                \
    EM_FORM(name##_u16, opcode, EM_TYPES(U16), EM_MODIFIERS(__VA_ARGS__)),                                             \
        EM_FORM(name##_s16, opcode, EM_TYPES(S16), EM_MODIFIERS(__VA_ARGS__)),                                         \
        EM_FORM(name##_u32, opcode, EM_TYPES(U32), EM_MODIFIERS(__VA_ARGS__)),                                         \
        EM_FORM(name##_s32, opcode, EM_TYPES(S32), EM_MODIFIERS(__VA_ARGS__))
#define FORMS_APART(name, opcode, ...)                                                                                 \
    FORMS_NARROW(name, opcode, __VA_ARGS__), EM_FORM(name##_u64, opcode, EM_TYPES(U64), EM_MODIFIERS(__VA_ARGS__)),    \
        EM_FORM(name##_s64, opcode, EM_TYPES(S64), EM_MODIFIERS(__VA_ARGS__))
#define FORMS_24(name, opcode, half)                                                                                   \
    EM_FORM(name##_u32, opcode, EM_TYPES(U32), EM_MODIFIERS(half)),                                                    \
        EM_FORM(name##_s32, opcode, EM_TYPES(S32), EM_MODIFIERS(half))
#define FORMS_DOT(name, opcode, modifier)                                                                              \
    EM_FORM(name##_uu, opcode, EM_TYPES(U32, U32), EM_MODIFIERS(modifier)),                                            \
        EM_FORM(name##_us, opcode, EM_TYPES(U32, S32), EM_MODIFIERS(modifier)),                                        \
        EM_FORM(name##_su, opcode, EM_TYPES(S32, U32), EM_MODIFIERS(modifier)),                                        \
        EM_FORM(name##_ss, opcode, EM_TYPES(S32, S32), EM_MODIFIERS(modifier))

const em_form EM_ISA_NAME(em_forms_integer)[] = {
    FORMS_SAME(add, ADD, NONE),
    FORMS_SAME(sub, SUB, NONE),
    EM_FORM(add_sat_s32, ADD, EM_TYPES(S32), EM_MODIFIERS(SAT)),
    EM_FORM(sub_sat_s32, SUB, EM_TYPES(S32), EM_MODIFIERS(SAT)),
    EM_FORM(add_16x2, ADD, EM_TYPES(U16X2), EM_NONE),
    EM_FORM(add_16x2, ADD, EM_TYPES(S16X2), EM_NONE),
    FORMS_SAME(mul_lo, MUL, LO),
    FORMS_APART(mul_hi, MUL, HI),
    FORMS_NARROW(mul_wide, MUL, WIDE),
    FORMS_SAME(mad_lo, MAD, LO),
    FORMS_APART(mad_hi, MAD, HI),
    FORMS_NARROW(mad_wide, MAD, WIDE),
    EM_FORM(mad_hi_sat_s32, MAD, EM_TYPES(S32), EM_MODIFIERS(HI, SAT)),
    FORMS_24(mul24_lo, MUL24, LO),
    FORMS_24(mul24_hi, MUL24, HI),
    FORMS_24(mad24_lo, MAD24, LO),
    FORMS_24(mad24_hi, MAD24, HI),
    EM_FORM(mad24_hi_sat_s32, MAD24, EM_TYPES(S32), EM_MODIFIERS(HI, SAT)),
    FORMS_APART(sad, SAD, NONE),
    FORMS_APART(min, MIN, NONE),
    FORMS_APART(max, MAX, NONE),
    EM_FORM(min_relu_s32, MIN, EM_TYPES(S32), EM_MODIFIERS(RELU)),
    EM_FORM(max_relu_s32, MAX, EM_TYPES(S32), EM_MODIFIERS(RELU)),
    EM_FORM(min_u16x2, MIN, EM_TYPES(U16X2), EM_NONE),
    EM_FORM(min_s16x2, MIN, EM_TYPES(S16X2), EM_NONE),
    EM_FORM(max_u16x2, MAX, EM_TYPES(U16X2), EM_NONE),
    EM_FORM(max_s16x2, MAX, EM_TYPES(S16X2), EM_NONE),
    EM_FORM(min_relu_s16x2, MIN, EM_TYPES(S16X2), EM_MODIFIERS(RELU)),
    EM_FORM(max_relu_s16x2, MAX, EM_TYPES(S16X2), EM_MODIFIERS(RELU)),
    EM_FORM(abs_s16, ABS, EM_TYPES(S16), EM_NONE),
    EM_FORM(abs_s32, ABS, EM_TYPES(S32), EM_NONE),
    EM_FORM(abs_s64, ABS, EM_TYPES(S64), EM_NONE),
    EM_FORM(neg_16, NEG, EM_TYPES(S16), EM_NONE),
    EM_FORM(neg_32, NEG, EM_TYPES(S32), EM_NONE),
    EM_FORM(neg_64, NEG, EM_TYPES(S64), EM_NONE),
    FORMS_APART(div, DIV, NONE),
    FORMS_APART(rem, REM, NONE),
    FORMS_DOT(dp4a, DP4A, NONE),
    FORMS_DOT(dp2a_lo, DP2A, LO),
    FORMS_DOT(dp2a_hi, DP2A, HI),
    EM_FORM_END,
};
