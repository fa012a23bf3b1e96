/* cvt between integers, f32 and f64. Halves and packed formats are in ops_convert_half.c. */
#include "op.h"
#include "values.h"

/* ---- integer to integer: the low bits, or the nearest value there is -------------------------------------------- */

#define TRUNCATED(S, T)                                                                                                \
    EM_UNARY(cvt_8_##S, uint8_t, T, a)                                                                                 \
    EM_UNARY(cvt_16_##S, uint16_t, T, a)                                                                               \
    EM_UNARY(cvt_32_##S, uint32_t, T, a)                                                                               \
    EM_UNARY(cvt_64_##S, uint64_t, T, a)

EM_INLINE int64_t clamp_signed(int64_t value, int64_t low, int64_t high)
{
    const int64_t at_least = value < low ? low : value;
    return at_least > high ? high : at_least;
}

EM_INLINE uint64_t clamp_unsigned(uint64_t value, uint64_t high)
{
    return value > high ? high : value;
}

#define CLAMPED_SIGNED(S, T)                                                                                           \
    EM_UNARY(cvt_sat_u8_##S, uint8_t, T, clamp_signed(a, 0, UINT8_MAX))                                                \
    EM_UNARY(cvt_sat_u16_##S, uint16_t, T, clamp_signed(a, 0, UINT16_MAX))                                             \
    EM_UNARY(cvt_sat_u32_##S, uint32_t, T, clamp_signed(a, 0, UINT32_MAX))                                             \
    EM_UNARY(cvt_sat_u64_##S, uint64_t, T, clamp_signed(a, 0, INT64_MAX))                                              \
    EM_UNARY(cvt_sat_s8_##S, int8_t, T, clamp_signed(a, INT8_MIN, INT8_MAX))                                           \
    EM_UNARY(cvt_sat_s16_##S, int16_t, T, clamp_signed(a, INT16_MIN, INT16_MAX))                                       \
    EM_UNARY(cvt_sat_s32_##S, int32_t, T, clamp_signed(a, INT32_MIN, INT32_MAX))
#define CLAMPED_UNSIGNED(S, T)                                                                                         \
    EM_UNARY(cvt_sat_u8_##S, uint8_t, T, clamp_unsigned(a, UINT8_MAX))                                                 \
    EM_UNARY(cvt_sat_u16_##S, uint16_t, T, clamp_unsigned(a, UINT16_MAX))                                              \
    EM_UNARY(cvt_sat_u32_##S, uint32_t, T, clamp_unsigned(a, UINT32_MAX))                                              \
    EM_UNARY(cvt_sat_s8_##S, int8_t, T, clamp_unsigned(a, INT8_MAX))                                                   \
    EM_UNARY(cvt_sat_s16_##S, int16_t, T, clamp_unsigned(a, INT16_MAX))                                                \
    EM_UNARY(cvt_sat_s32_##S, int32_t, T, clamp_unsigned(a, INT32_MAX))                                                \
    EM_UNARY(cvt_sat_s64_##S, int64_t, T, clamp_unsigned(a, INT64_MAX))

TRUNCATED(u8, uint8_t)
TRUNCATED(u16, uint16_t)
TRUNCATED(u32, uint32_t)
TRUNCATED(u64, uint64_t)
TRUNCATED(s8, int8_t)
TRUNCATED(s16, int16_t)
TRUNCATED(s32, int32_t)
TRUNCATED(s64, int64_t)
CLAMPED_UNSIGNED(u8, uint8_t)
CLAMPED_UNSIGNED(u16, uint16_t)
CLAMPED_UNSIGNED(u32, uint32_t)
CLAMPED_UNSIGNED(u64, uint64_t)
CLAMPED_SIGNED(s8, int8_t)
CLAMPED_SIGNED(s16, int16_t)
CLAMPED_SIGNED(s32, int32_t)
CLAMPED_SIGNED(s64, int64_t)

/* ---- float to integer: always the nearest value there is, .sat or not ------------------------------------------- */

/* Rounded the way `mode` says (em_f32_to_* and em_f64_to_* are in values.h), all types and modes. */
#define INTEGERS_OF(S, T, prefix, f, r, mode)                                                                          \
    EM_UNARY(cvt_##r##_u8_##S, uint8_t, T, prefix##_to_u8(f(a), mode))                                                 \
    EM_UNARY(cvt_##r##_u16_##S, uint16_t, T, prefix##_to_u16(f(a), mode))                                              \
    EM_UNARY(cvt_##r##_u32_##S, uint32_t, T, prefix##_to_u32(f(a), mode))                                              \
    EM_UNARY(cvt_##r##_u64_##S, uint64_t, T, prefix##_to_u64(f(a), mode))                                              \
    EM_UNARY(cvt_##r##_s8_##S, int8_t, T, prefix##_to_s8(f(a), mode))                                                  \
    EM_UNARY(cvt_##r##_s16_##S, int16_t, T, prefix##_to_s16(f(a), mode))                                               \
    EM_UNARY(cvt_##r##_s32_##S, int32_t, T, prefix##_to_s32(f(a), mode))                                               \
    EM_UNARY(cvt_##r##_s64_##S, int64_t, T, prefix##_to_s64(f(a), mode))
#define INTEGERS_ALL(S, T, prefix, f)                                                                                  \
    INTEGERS_OF(S, T, prefix, f, rni, EM_ROUND_NEAREST)                                                                \
    INTEGERS_OF(S, T, prefix, f, rzi, EM_ROUND_ZERO)                                                                   \
    INTEGERS_OF(S, T, prefix, f, rmi, EM_ROUND_DOWN)                                                                   \
    INTEGERS_OF(S, T, prefix, f, rpi, EM_ROUND_UP)
#define AS_IT_IS(value) (value)

INTEGERS_ALL(f32, float, em_f32, AS_IT_IS)
INTEGERS_ALL(ftz_f32, float, em_f32, em_flush)
INTEGERS_ALL(f64, double, em_f64, AS_IT_IS)

/* ---- integer to float ------------------------------------------------------------------------------------------- */

/* What fits is exact in every rounding; the rest is rounded by the host. An unsigned value has no -0, which some
 * vector code makes when rounding down. */
EM_INLINE float positive(float value)
{
    return em_float_of(em_bits_of_float(value) & 0x7fffffffu);
}

EM_INLINE double positive_f64(double value)
{
    return em_double_of(em_bits_of_double(value) & 0x7fffffffffffffffull);
}

#define EXACT(D, T, S, A, saturate)                                                                                    \
    EM_UNARY(cvt_##D##_##S, T, A, (T)a)                                                                                \
    EM_UNARY(cvt_sat_##D##_##S, T, A, saturate((T)a))
#define ROUNDED(D, T, S, A, f, saturate)                                                                               \
    EM_UNARY(cvt_rn_##D##_##S, T, A, f((T)a))                                                                          \
    EM_UNARY_ROUNDED(cvt_rz_##D##_##S, EM_ROUND_ZERO, T, A, f((T)a))                                                   \
    EM_UNARY_ROUNDED(cvt_rm_##D##_##S, EM_ROUND_DOWN, T, A, f((T)a))                                                   \
    EM_UNARY_ROUNDED(cvt_rp_##D##_##S, EM_ROUND_UP, T, A, f((T)a))                                                     \
    EM_UNARY(cvt_sat_##D##_##S, T, A, saturate((T)a))

EXACT(f32, float, u8, uint8_t, em_saturate)
EXACT(f32, float, s8, int8_t, em_saturate)
EXACT(f32, float, u16, uint16_t, em_saturate)
EXACT(f32, float, s16, int16_t, em_saturate)
ROUNDED(f32, float, u32, uint32_t, positive, em_saturate)
ROUNDED(f32, float, s32, int32_t, AS_IT_IS, em_saturate)
ROUNDED(f32, float, u64, uint64_t, positive, em_saturate)
ROUNDED(f32, float, s64, int64_t, AS_IT_IS, em_saturate)
EXACT(f64, double, u8, uint8_t, em_saturate_f64)
EXACT(f64, double, s8, int8_t, em_saturate_f64)
EXACT(f64, double, u16, uint16_t, em_saturate_f64)
EXACT(f64, double, s16, int16_t, em_saturate_f64)
EXACT(f64, double, u32, uint32_t, em_saturate_f64)
EXACT(f64, double, s32, int32_t, em_saturate_f64)
ROUNDED(f64, double, u64, uint64_t, positive_f64, em_saturate_f64)
ROUNDED(f64, double, s64, int64_t, AS_IT_IS, em_saturate_f64)

/* ---- float to float --------------------------------------------------------------------------------------------- */

EM_UNARY(cvt_f32_f32, uint32_t, uint32_t, a)
EM_UNARY(cvt_ftz_f32_f32, float, float, em_canonical(em_flush(a)))
EM_UNARY(cvt_sat_f32_f32, float, float, em_saturate(a))
EM_UNARY(cvt_ftz_sat_f32_f32, float, float, em_saturate(em_flush(a)))
EM_UNARY(cvt_f64_f64, uint64_t, uint64_t, a)
EM_UNARY(cvt_sat_f64_f64, double, double, em_saturate_f64(a))

/* Integers as floats. */
EM_INLINE double quieted(double value)
{
    return value == value ? value : em_double_of(em_bits_of_double(value) | 0x0008000000000000ull);
}

#define INTEGRAL(r, mode)                                                                                              \
    EM_UNARY(cvt_##r##_f32_f32, float, float, em_canonical(em_integral(a, mode)))                                      \
    EM_UNARY(cvt_##r##_ftz_f32_f32, float, float, em_canonical(em_integral(em_flush(a), mode)))                        \
    EM_UNARY(cvt_##r##_sat_f32_f32, float, float, em_saturate(em_integral(a, mode)))                                   \
    EM_UNARY(cvt_##r##_ftz_sat_f32_f32, float, float, em_saturate(em_integral(em_flush(a), mode)))                     \
    EM_UNARY(cvt_##r##_f64_f64, double, double, quieted(em_integral_f64(a, mode)))                                     \
    EM_UNARY(cvt_##r##_sat_f64_f64, double, double, em_saturate_f64(em_integral_f64(a, mode)))
INTEGRAL(rni, EM_ROUND_NEAREST)
INTEGRAL(rzi, EM_ROUND_ZERO)
INTEGRAL(rmi, EM_ROUND_DOWN)
INTEGRAL(rpi, EM_ROUND_UP)

/* Host conversions keep a NaN's payload and quiet it, as the GPU's do. */
EM_UNARY(cvt_f64_f32, double, float, (double)a)
EM_UNARY(cvt_ftz_f64_f32, double, float, (double)em_canonical(em_flush(a)))
EM_UNARY(cvt_sat_f64_f32, double, float, em_saturate_f64((double)a))
EM_UNARY(cvt_ftz_sat_f64_f32, double, float, em_saturate_f64((double)em_flush(a)))

#define NARROWED_AS(name, mode, flush, f)                                                                              \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        const uint64_t old = em_enter(mode, flush);                                                                    \
        float *const d_row = EM_ROW(float, insn->d);                                                                   \
        const double *const a_row = EM_ROW(double, insn->a);                                                           \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            EM_PUT(d_row, f((float)a_row[lane]));                                                                      \
        }                                                                                                              \
        em_leave(mode, flush, old);                                                                                    \
    }
#define NARROWED(r, mode)                                                                                              \
    NARROWED_AS(cvt_##r##_f32_f64, mode, false, AS_IT_IS)                                                              \
    NARROWED_AS(cvt_##r##_ftz_f32_f64, mode, true, AS_IT_IS)                                                           \
    NARROWED_AS(cvt_##r##_sat_f32_f64, mode, false, em_saturate)                                                       \
    NARROWED_AS(cvt_##r##_ftz_sat_f32_f64, mode, true, em_saturate)
NARROWED(rn, EM_ROUND_NEAREST)
NARROWED(rz, EM_ROUND_ZERO)
NARROWED(rm, EM_ROUND_DOWN)
NARROWED(rp, EM_ROUND_UP)

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define FORM(name, to, from, ...) EM_FORM(name, CVT, EM_TYPES(to, from), EM_MODIFIERS(__VA_ARGS__))
#define FORMS_TRUNCATED(name, from)                                                                                    \
    FORM(cvt_8_##name, U8, from, NONE), FORM(cvt_8_##name, S8, from, NONE), FORM(cvt_16_##name, U16, from, NONE),      \
        FORM(cvt_16_##name, S16, from, NONE), FORM(cvt_32_##name, U32, from, NONE),                                    \
        FORM(cvt_32_##name, S32, from, NONE), FORM(cvt_64_##name, U64, from, NONE),                                    \
        FORM(cvt_64_##name, S64, from, NONE)
#define FORMS_CLAMPED(name, from)                                                                                      \
    FORM(cvt_sat_u8_##name, U8, from, SAT), FORM(cvt_sat_u16_##name, U16, from, SAT),                                  \
        FORM(cvt_sat_u32_##name, U32, from, SAT), FORM(cvt_sat_s8_##name, S8, from, SAT),                              \
        FORM(cvt_sat_s16_##name, S16, from, SAT), FORM(cvt_sat_s32_##name, S32, from, SAT)
#define FORMS_OF_UNSIGNED(name, from)                                                                                  \
    FORMS_TRUNCATED(name, from), FORMS_CLAMPED(name, from), FORM(cvt_64_##name, U64, from, SAT),                       \
        FORM(cvt_sat_s64_##name, S64, from, SAT)
#define FORMS_OF_SIGNED(name, from)                                                                                    \
    FORMS_TRUNCATED(name, from), FORMS_CLAMPED(name, from), FORM(cvt_sat_u64_##name, U64, from, SAT),                  \
        FORM(cvt_64_##name, S64, from, SAT)

#define FORMS_INTEGER(r, name, from, ...)                                                                              \
    FORM(cvt_##r##_u8_##name, U8, from, __VA_ARGS__), FORM(cvt_##r##_u16_##name, U16, from, __VA_ARGS__),              \
        FORM(cvt_##r##_u32_##name, U32, from, __VA_ARGS__), FORM(cvt_##r##_u64_##name, U64, from, __VA_ARGS__),        \
        FORM(cvt_##r##_s8_##name, S8, from, __VA_ARGS__), FORM(cvt_##r##_s16_##name, S16, from, __VA_ARGS__),          \
        FORM(cvt_##r##_s32_##name, S32, from, __VA_ARGS__), FORM(cvt_##r##_s64_##name, S64, from, __VA_ARGS__)
#define FORMS_INTEGERS(name, from, ...)                                                                                \
    FORMS_INTEGER(rni, name, from, RNI, __VA_ARGS__), FORMS_INTEGER(rzi, name, from, RZI, __VA_ARGS__),                \
        FORMS_INTEGER(rmi, name, from, RMI, __VA_ARGS__), FORMS_INTEGER(rpi, name, from, RPI, __VA_ARGS__)

#define FORMS_SATURATED(name, to, from)                                                                                \
    FORM(name, to, from, RN, SAT), FORM(name, to, from, RZ, SAT), FORM(name, to, from, RM, SAT),                       \
        FORM(name, to, from, RP, SAT)
#define FORMS_EXACT(to_name, to, from_name, from)                                                                      \
    FORM(cvt_##to_name##_##from_name, to, from, RN), FORM(cvt_##to_name##_##from_name, to, from, RZ),                  \
        FORM(cvt_##to_name##_##from_name, to, from, RM), FORM(cvt_##to_name##_##from_name, to, from, RP),              \
        FORMS_SATURATED(cvt_sat_##to_name##_##from_name, to, from)
#define FORMS_ROUNDED(to_name, to, from_name, from)                                                                    \
    FORM(cvt_rn_##to_name##_##from_name, to, from, RN), FORM(cvt_rz_##to_name##_##from_name, to, from, RZ),            \
        FORM(cvt_rm_##to_name##_##from_name, to, from, RM), FORM(cvt_rp_##to_name##_##from_name, to, from, RP),        \
        FORMS_SATURATED(cvt_sat_##to_name##_##from_name, to, from)

#define FORMS_INTEGRAL(r, word)                                                                                        \
    FORM(cvt_##r##_f32_f32, F32, F32, word), FORM(cvt_##r##_ftz_f32_f32, F32, F32, word, FTZ),                         \
        FORM(cvt_##r##_sat_f32_f32, F32, F32, word, SAT), FORM(cvt_##r##_ftz_sat_f32_f32, F32, F32, word, FTZ, SAT),   \
        FORM(cvt_##r##_f64_f64, F64, F64, word), FORM(cvt_##r##_sat_f64_f64, F64, F64, word, SAT)
#define FORMS_NARROWED(r, word)                                                                                        \
    FORM(cvt_##r##_f32_f64, F32, F64, word), FORM(cvt_##r##_ftz_f32_f64, F32, F64, word, FTZ),                         \
        FORM(cvt_##r##_sat_f32_f64, F32, F64, word, SAT), FORM(cvt_##r##_ftz_sat_f32_f64, F32, F64, word, FTZ, SAT)

const em_form EM_ISA_NAME(em_forms_convert)[] = {
    FORMS_OF_UNSIGNED(u8, U8),
    FORMS_OF_UNSIGNED(u16, U16),
    FORMS_OF_UNSIGNED(u32, U32),
    FORMS_OF_UNSIGNED(u64, U64),
    FORMS_OF_SIGNED(s8, S8),
    FORMS_OF_SIGNED(s16, S16),
    FORMS_OF_SIGNED(s32, S32),
    FORMS_OF_SIGNED(s64, S64),
    FORMS_INTEGERS(f32, F32, NONE),
    FORMS_INTEGERS(f32, F32, SAT),
    FORMS_INTEGERS(ftz_f32, F32, FTZ),
    FORMS_INTEGERS(ftz_f32, F32, FTZ, SAT),
    FORMS_INTEGERS(f64, F64, NONE),
    FORMS_INTEGERS(f64, F64, SAT),
    FORMS_EXACT(f32, F32, u8, U8),
    FORMS_EXACT(f32, F32, s8, S8),
    FORMS_EXACT(f32, F32, u16, U16),
    FORMS_EXACT(f32, F32, s16, S16),
    FORMS_ROUNDED(f32, F32, u32, U32),
    FORMS_ROUNDED(f32, F32, s32, S32),
    FORMS_ROUNDED(f32, F32, u64, U64),
    FORMS_ROUNDED(f32, F32, s64, S64),
    FORMS_EXACT(f64, F64, u8, U8),
    FORMS_EXACT(f64, F64, s8, S8),
    FORMS_EXACT(f64, F64, u16, U16),
    FORMS_EXACT(f64, F64, s16, S16),
    FORMS_EXACT(f64, F64, u32, U32),
    FORMS_EXACT(f64, F64, s32, S32),
    FORMS_ROUNDED(f64, F64, u64, U64),
    FORMS_ROUNDED(f64, F64, s64, S64),
    FORM(cvt_f32_f32, F32, F32, NONE),
    FORM(cvt_ftz_f32_f32, F32, F32, FTZ),
    FORM(cvt_sat_f32_f32, F32, F32, SAT),
    FORM(cvt_ftz_sat_f32_f32, F32, F32, FTZ, SAT),
    FORM(cvt_f64_f64, F64, F64, NONE),
    FORM(cvt_sat_f64_f64, F64, F64, SAT),
    FORMS_INTEGRAL(rni, RNI),
    FORMS_INTEGRAL(rzi, RZI),
    FORMS_INTEGRAL(rmi, RMI),
    FORMS_INTEGRAL(rpi, RPI),
    FORM(cvt_f64_f32, F64, F32, NONE),
    FORM(cvt_ftz_f64_f32, F64, F32, FTZ),
    FORM(cvt_sat_f64_f32, F64, F32, SAT),
    FORM(cvt_ftz_sat_f64_f32, F64, F32, FTZ, SAT),
    FORMS_NARROWED(rn, RN),
    FORMS_NARROWED(rz, RZ),
    FORMS_NARROWED(rm, RM),
    FORMS_NARROWED(rp, RP),
    EM_FORM_END,
};
