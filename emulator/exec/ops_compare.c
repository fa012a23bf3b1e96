/* setp, set, selp, slct, testp. A comparison of rows is a mask; the handlers differ in what they make of it. */
#include "rare.h"
#include "values.h"

/* Bit n from the top bit of byte n. */
EM_INLINE em_mask mask_of_bytes(const uint8_t *bytes)
{
#if defined(__AVX2__)
    return (em_mask)_mm256_movemask_epi8(_mm256_load_si256((const __m256i *)(const void *)bytes));
#elif defined(__SSE2__)
    const unsigned low = (unsigned)_mm_movemask_epi8(_mm_load_si128((const __m128i *)(const void *)bytes));
    const unsigned high = (unsigned)_mm_movemask_epi8(_mm_load_si128((const __m128i *)(const void *)(bytes + 16)));
    return low | high << 16;
#else
    em_mask mask = 0;
    for (int lane = 0; lane < EM_LANES; lane++)
        mask |= (em_mask)(bytes[lane] >> 7) << lane;
    return mask;
#endif
}

/* Where PTX's p comes from: the comparison joined with a third operand, q with its opposite. */
EM_INLINE em_mask joined(ptx_modifier join, em_mask results, em_mask third)
{
    switch (join) {
    case PTX_MOD_AND:
        return results & third;
    case PTX_MOD_OR:
        return results | third;
    case PTX_MOD_XOR:
        return results ^ third;
    default:
        return results;
    }
}

EM_INLINE ptx_modifier join_of(const em_insn *insn)
{
    return ptx_modifier_of(insn->ptx, PTX_CLASS_OPERATION);
}

/* set: true is all ones in an integer and 1.0 in a float. */
EM_INLINE void set_row(const em_insn *insn, unsigned char *rows, em_mask results, em_mask mask, bool full)
{
    const ptx_type type = ptx_type_of(insn->ptx, 0);
    if (type == PTX_F16 || type == PTX_BF16 || type == PTX_U16 || type == PTX_S16) {
        const uint16_t truth = type == PTX_F16 ? 0x3c00 : type == PTX_BF16 ? 0x3f80 : 0xffff;
        uint16_t *const d_row = EM_ROW(uint16_t, insn->d);
        EM_EACH_LANE
        {
            EM_PUT(d_row, (results >> lane & 1u) != 0 ? truth : (uint16_t)0);
        }
    } else {
        const uint32_t truth = type == PTX_F32 ? 0x3f800000u : 0xffffffffu;
        uint32_t *const d_row = EM_ROW(uint32_t, insn->d);
        EM_EACH_LANE
        {
            EM_PUT(d_row, (results >> lane & 1u) != 0 ? truth : 0u);
        }
    }
}

/* ---- one type and one comparison -------------------------------------------------------------------------------- */

#define COMPARE(name, T, expression)                                                                                   \
    EM_INLINE em_mask relation_##name(const em_insn *insn, const unsigned char *rows)                                  \
    {                                                                                                                  \
        const T *const a_row = EM_ROW(const T, insn->a);                                                               \
        const T *const b_row = EM_ROW(const T, insn->b);                                                               \
        _Alignas(32) uint8_t bytes[EM_LANES];                                                                          \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const T a = a_row[lane], b = b_row[lane];                                                                  \
            bytes[lane] = (expression) ? 0xff : 0;                                                                     \
        }                                                                                                              \
        return mask_of_bytes(bytes);                                                                                   \
    }                                                                                                                  \
    EM_OP(setp_##name)                                                                                                 \
    {                                                                                                                  \
        const em_mask results = relation_##name(insn, rows);                                                           \
        EM_PUT_PREDICATE(insn->e, ~results);                                                                           \
        EM_PUT_PREDICATE(insn->d, results);                                                                            \
    }                                                                                                                  \
    EM_OP(setp_joined_##name)                                                                                          \
    {                                                                                                                  \
        const em_mask results = relation_##name(insn, rows), third = EM_PREDICATE(insn->c);                            \
        const ptx_modifier join = join_of(insn);                                                                       \
        EM_PUT_PREDICATE(insn->e, joined(join, ~results, third));                                                      \
        EM_PUT_PREDICATE(insn->d, joined(join, results, third));                                                       \
    }                                                                                                                  \
    EM_OP_RARE(set_##name)                                                                                             \
    {                                                                                                                  \
        const em_mask results = relation_##name(insn, rows);                                                           \
        set_row(insn, rows, joined(join_of(insn), results, EM_PREDICATE(insn->c)), mask, full);                        \
    }

#define COMPARE_EQUALITY(type, T)                                                                                      \
    COMPARE(eq_##type, T, a == b)                                                                                      \
    COMPARE(ne_##type, T, a != b)
#define COMPARE_ORDER(type, T)                                                                                         \
    COMPARE(lt_##type, T, a < b)                                                                                       \
    COMPARE(le_##type, T, a <= b)                                                                                      \
    COMPARE(gt_##type, T, a > b)                                                                                       \
    COMPARE(ge_##type, T, a >= b)
#define COMPARE_FLOAT(type, T, f)                                                                                      \
    COMPARE(eq_##type, T, f(a) == f(b))                                                                                \
    COMPARE(ne_##type, T, f(a) < f(b) || f(a) > f(b))                                                                  \
    COMPARE(lt_##type, T, f(a) < f(b))                                                                                 \
    COMPARE(le_##type, T, f(a) <= f(b))                                                                                \
    COMPARE(gt_##type, T, f(a) > f(b))                                                                                 \
    COMPARE(ge_##type, T, f(a) >= f(b))                                                                                \
    COMPARE(equ_##type, T, !(f(a) < f(b) || f(a) > f(b)))                                                              \
    COMPARE(neu_##type, T, f(a) != f(b))                                                                               \
    COMPARE(ltu_##type, T, !(f(a) >= f(b)))                                                                            \
    COMPARE(leu_##type, T, !(f(a) > f(b)))                                                                             \
    COMPARE(gtu_##type, T, !(f(a) <= f(b)))                                                                            \
    COMPARE(geu_##type, T, !(f(a) < f(b)))                                                                             \
    COMPARE(num_##type, T, a == a && b == b)                                                                           \
    COMPARE(nan_##type, T, a != a || b != b)
#define AS_IT_IS(value) (value)

COMPARE_EQUALITY(16, uint16_t)
COMPARE_EQUALITY(32, uint32_t)
COMPARE_EQUALITY(64, uint64_t)
COMPARE_ORDER(u16, uint16_t)
COMPARE_ORDER(s16, int16_t)
COMPARE_ORDER(u32, uint32_t)
COMPARE_ORDER(s32, int32_t)
COMPARE_ORDER(u64, uint64_t)
COMPARE_ORDER(s64, int64_t)
COMPARE_FLOAT(f32, float, AS_IT_IS)
COMPARE_FLOAT(f32_ftz, float, em_flush)
COMPARE_FLOAT(f64, double, AS_IT_IS)

/* ---- halves: one handler a type, the comparison decided at run time --------------------------------------------- */

typedef float widening(uint16_t half);

EM_INLINE float widen_f16(uint16_t half)
{
    return em_float_of_f16(half);
}

EM_INLINE float widen_f16_ftz(uint16_t half)
{
    return em_float_of_f16(em_flush_f16(half));
}

EM_INLINE float widen_bf16(uint16_t half)
{
    return em_float_of_bf16(half);
}

/* The masks that every float comparison is made of. */
EM_INLINE em_mask relation_of_masks(ptx_modifier comparison, em_mask less, em_mask equal, em_mask unordered)
{
    const em_mask more = ~(less | equal | unordered);
    switch (comparison) {
    case PTX_MOD_EQ:
        return equal;
    case PTX_MOD_NE:
        return less | more;
    case PTX_MOD_LT:
        return less;
    case PTX_MOD_LE:
        return less | equal;
    case PTX_MOD_GT:
        return more;
    case PTX_MOD_GE:
        return more | equal;
    case PTX_MOD_EQU:
        return equal | unordered;
    case PTX_MOD_NEU:
        return ~equal;
    case PTX_MOD_LTU:
        return less | unordered;
    case PTX_MOD_LEU:
        return ~more;
    case PTX_MOD_GTU:
        return more | unordered;
    case PTX_MOD_GEU:
        return ~less;
    case PTX_MOD_NUM:
        return ~unordered;
    default: /* PTX_MOD_NAN is filed as a flag in the table of words */
        return unordered;
    }
}

/* Halves `stride` uint16_t apart, from `first` on. */
EM_INLINE em_mask relation_of_halves(const em_insn *insn, const unsigned char *rows, int first, int stride,
                                     widening *widen)
{
    const uint16_t *const a_row = EM_ROW(const uint16_t, insn->a);
    const uint16_t *const b_row = EM_ROW(const uint16_t, insn->b);
    em_mask less = 0, equal = 0, unordered = 0;
    for (int lane = 0; lane < EM_LANES; lane++) {
        const float a = widen(a_row[first + stride * lane]), b = widen(b_row[first + stride * lane]);
        less |= (em_mask)(a < b) << lane;
        equal |= (em_mask)(a == b) << lane;
        unordered |= (em_mask)(a != a || b != b) << lane;
    }
    return relation_of_masks(ptx_modifier_of(insn->ptx, PTX_CLASS_COMPARISON), less, equal, unordered);
}

#define COMPARE_HALVES(type, widen)                                                                                    \
    EM_OP_RARE(setp_##type)                                                                                            \
    {                                                                                                                  \
        const em_mask results = relation_of_halves(insn, rows, 0, 1, widen), third = EM_PREDICATE(insn->c);            \
        const ptx_modifier join = join_of(insn);                                                                       \
        EM_PUT_PREDICATE(insn->e, joined(join, ~results, third));                                                      \
        EM_PUT_PREDICATE(insn->d, joined(join, results, third));                                                       \
    }                                                                                                                  \
    EM_OP_RARE(set_##type)                                                                                             \
    {                                                                                                                  \
        const em_mask results = relation_of_halves(insn, rows, 0, 1, widen);                                           \
        set_row(insn, rows, joined(join_of(insn), results, EM_PREDICATE(insn->c)), mask, full);                        \
    }                                                                                                                  \
    EM_OP_RARE(setp_##type##x2)                                                                                        \
    {                                                                                                                  \
        const em_mask low = relation_of_halves(insn, rows, 0, 2, widen), third = EM_PREDICATE(insn->c);                \
        const em_mask high = relation_of_halves(insn, rows, 1, 2, widen);                                              \
        const ptx_modifier join = join_of(insn);                                                                       \
        EM_PUT_PREDICATE(insn->e, joined(join, high, third));                                                          \
        EM_PUT_PREDICATE(insn->d, joined(join, low, third));                                                           \
    }                                                                                                                  \
    EM_OP_RARE(set_##type##x2)                                                                                         \
    {                                                                                                                  \
        const ptx_modifier join = join_of(insn);                                                                       \
        const em_mask third = EM_PREDICATE(insn->c);                                                                   \
        const em_mask low = joined(join, relation_of_halves(insn, rows, 0, 2, widen), third);                          \
        const em_mask high = joined(join, relation_of_halves(insn, rows, 1, 2, widen), third);                         \
        const ptx_type result = ptx_type_of(insn->ptx, 0);                                                             \
        const uint32_t truth = result == PTX_F16X2 ? 0x3c00u : result == PTX_BF16X2 ? 0x3f80u : 0xffffu;               \
        uint32_t *const d_row = EM_ROW(uint32_t, insn->d);                                                             \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            EM_PUT(d_row, (low >> lane & 1u) * truth | (high >> lane & 1u) * (truth << 16));                           \
        }                                                                                                              \
    }
COMPARE_HALVES(f16, widen_f16)
COMPARE_HALVES(f16_ftz_, widen_f16_ftz)
COMPARE_HALVES(bf16, widen_bf16)

/* ---- selection -------------------------------------------------------------------------------------------------- */

#define SELECT(name, T)                                                                                                \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        T *const d_row = EM_ROW(T, insn->d);                                                                           \
        const T *const a_row = EM_ROW(T, insn->a);                                                                     \
        const T *const b_row = EM_ROW(T, insn->b);                                                                     \
        const em_mask chosen = EM_PREDICATE(insn->c);                                                                  \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const T a = a_row[lane], b = b_row[lane];                                                                  \
            EM_PUT(d_row, (chosen >> lane & 1u) != 0 ? a : b);                                                         \
        }                                                                                                              \
    }
SELECT(selp_16, uint16_t)
SELECT(selp_32, uint32_t)
SELECT(selp_64, uint64_t)

/* a where c >= 0; -0 counts as 0, a NaN as negative. */
EM_TERNARY(slct_16_s32, uint16_t, uint16_t, uint16_t, int32_t, c >= 0 ? a : b)
EM_TERNARY(slct_32_s32, uint32_t, uint32_t, uint32_t, int32_t, c >= 0 ? a : b)
EM_TERNARY(slct_64_s32, uint64_t, uint64_t, uint64_t, int32_t, c >= 0 ? a : b)
EM_TERNARY(slct_16_f32, uint16_t, uint16_t, uint16_t, float, c >= 0.0f ? a : b)
EM_TERNARY(slct_32_f32, uint32_t, uint32_t, uint32_t, float, c >= 0.0f ? a : b)
EM_TERNARY(slct_64_f32, uint64_t, uint64_t, uint64_t, float, c >= 0.0f ? a : b)
EM_TERNARY(slct_16_f32_ftz, uint16_t, uint16_t, uint16_t, float, em_flush(c) >= 0.0f ? a : b)
EM_TERNARY(slct_32_f32_ftz, uint32_t, uint32_t, uint32_t, float, em_flush(c) >= 0.0f ? a : b)
EM_TERNARY(slct_64_f32_ftz, uint64_t, uint64_t, uint64_t, float, em_flush(c) >= 0.0f ? a : b)

/* ---- testp ------------------------------------------------------------------------------------------------------ */

#define TEST(name, T, expression)                                                                                      \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        const T *const a_row = EM_ROW(T, insn->a);                                                                     \
        _Alignas(32) uint8_t bytes[EM_LANES];                                                                          \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const T a = a_row[lane] & (T) ~((T)1 << (8 * sizeof(T) - 1));                                              \
            bytes[lane] = (expression) ? 0xff : 0;                                                                     \
        }                                                                                                              \
        const em_mask results = mask_of_bytes(bytes);                                                                  \
        EM_PUT_PREDICATE(insn->d, results);                                                                            \
    }
/* Zero is normal. */
#define TESTS(type, T, infinity, least)                                                                                \
    TEST(testp_finite_##type, T, a < (infinity))                                                                       \
    TEST(testp_infinite_##type, T, a == (infinity))                                                                    \
    TEST(testp_number_##type, T, a <= (infinity))                                                                      \
    TEST(testp_notanumber_##type, T, a > (infinity))                                                                   \
    TEST(testp_normal_##type, T, a < (infinity) && (a >= (least) || a == 0))                                           \
    TEST(testp_subnormal_##type, T, a < (least) && a != 0)
TESTS(f32, uint32_t, 0x7f800000u, 0x00800000u)
TESTS(f64, uint64_t, 0x7ff0000000000000ull, 0x0010000000000000ull)

/* ---- the table -------------------------------------------------------------------------------------------------- */

/* One comparison of one type: setp with and without a join; set to each result type. `...`: further modifiers. */
#define FORMS_JOINED(form, handler, opcode, type, other, word, ...)                                                    \
    form(handler, opcode, EM_TYPES(type, other), EM_MODIFIERS(word, AND, __VA_ARGS__)),                                \
        form(handler, opcode, EM_TYPES(type, other), EM_MODIFIERS(word, OR, __VA_ARGS__)),                             \
        form(handler, opcode, EM_TYPES(type, other), EM_MODIFIERS(word, XOR, __VA_ARGS__))
#define FORMS_SET(handler, result, type, word, ...)                                                                    \
    EM_FORM_ONE(handler, SET, EM_TYPES(result, type), EM_MODIFIERS(word, __VA_ARGS__)),                                \
        FORMS_JOINED(EM_FORM_ONE, handler, SET, result, type, word, __VA_ARGS__)
#define FORMS_COMPARISON(name, type, word, ...)                                                                        \
    EM_FORM(setp_##name, SETP, EM_TYPES(type), EM_MODIFIERS(word, __VA_ARGS__)),                                       \
        FORMS_JOINED(EM_FORM, setp_joined_##name, SETP, type, NO_TYPE, word, __VA_ARGS__),                             \
        FORMS_SET(set_##name, U32, type, word, __VA_ARGS__), FORMS_SET(set_##name, S32, type, word, __VA_ARGS__),      \
        FORMS_SET(set_##name, F32, type, word, __VA_ARGS__)
#define FORMS_EQUALITY(bits, type)                                                                                     \
    FORMS_COMPARISON(eq_##bits, type, EQ, NONE), FORMS_COMPARISON(ne_##bits, type, NE, NONE)
#define FORMS_ORDER(name, type)                                                                                        \
    FORMS_COMPARISON(lt_##name, type, LT, NONE), FORMS_COMPARISON(le_##name, type, LE, NONE),                          \
        FORMS_COMPARISON(gt_##name, type, GT, NONE), FORMS_COMPARISON(ge_##name, type, GE, NONE)
#define FORMS_UNSIGNED(name, type)                                                                                     \
    FORMS_ORDER(name, type), FORMS_COMPARISON(lt_##name, type, LO, NONE), FORMS_COMPARISON(le_##name, type, LS, NONE), \
        FORMS_COMPARISON(gt_##name, type, HI, NONE), FORMS_COMPARISON(ge_##name, type, HS, NONE)
#define FORMS_FLOAT(name, type, ...)                                                                                   \
    FORMS_COMPARISON(eq_##name, type, EQ, __VA_ARGS__), FORMS_COMPARISON(ne_##name, type, NE, __VA_ARGS__),            \
        FORMS_COMPARISON(lt_##name, type, LT, __VA_ARGS__), FORMS_COMPARISON(le_##name, type, LE, __VA_ARGS__),        \
        FORMS_COMPARISON(gt_##name, type, GT, __VA_ARGS__), FORMS_COMPARISON(ge_##name, type, GE, __VA_ARGS__),        \
        FORMS_COMPARISON(equ_##name, type, EQU, __VA_ARGS__), FORMS_COMPARISON(neu_##name, type, NEU, __VA_ARGS__),    \
        FORMS_COMPARISON(ltu_##name, type, LTU, __VA_ARGS__), FORMS_COMPARISON(leu_##name, type, LEU, __VA_ARGS__),    \
        FORMS_COMPARISON(gtu_##name, type, GTU, __VA_ARGS__), FORMS_COMPARISON(geu_##name, type, GEU, __VA_ARGS__),    \
        FORMS_COMPARISON(num_##name, type, NUM, __VA_ARGS__), FORMS_COMPARISON(nan_##name, type, NAN, __VA_ARGS__)
/* Halves: every result type that set knows, every comparison. */
#define FORMS_HALF(name, type, packed, word, ...)                                                                      \
    EM_FORM_ONE(setp_##name, SETP, EM_TYPES(type), EM_MODIFIERS(word, __VA_ARGS__)),                                   \
        FORMS_JOINED(EM_FORM_ONE, setp_##name, SETP, type, NO_TYPE, word, __VA_ARGS__),                                \
        EM_FORM_ONE(setp_##name##x2, SETP, EM_TYPES(packed), EM_MODIFIERS(word, __VA_ARGS__)),                         \
        FORMS_JOINED(EM_FORM_ONE, setp_##name##x2, SETP, packed, NO_TYPE, word, __VA_ARGS__),                          \
        FORMS_SET(set_##name, U16, type, word, __VA_ARGS__), FORMS_SET(set_##name, S16, type, word, __VA_ARGS__),      \
        FORMS_SET(set_##name, U32, type, word, __VA_ARGS__), FORMS_SET(set_##name, S32, type, word, __VA_ARGS__),      \
        FORMS_SET(set_##name, type, type, word, __VA_ARGS__),                                                          \
        FORMS_SET(set_##name##x2, packed, packed, word, __VA_ARGS__),                                                  \
        FORMS_SET(set_##name##x2, U32, packed, word, __VA_ARGS__),                                                     \
        FORMS_SET(set_##name##x2, S32, packed, word, __VA_ARGS__)
#define FORMS_HALVES(name, type, packed, ...)                                                                          \
    FORMS_HALF(name, type, packed, EQ, __VA_ARGS__), FORMS_HALF(name, type, packed, NE, __VA_ARGS__),                  \
        FORMS_HALF(name, type, packed, LT, __VA_ARGS__), FORMS_HALF(name, type, packed, LE, __VA_ARGS__),              \
        FORMS_HALF(name, type, packed, GT, __VA_ARGS__), FORMS_HALF(name, type, packed, GE, __VA_ARGS__),              \
        FORMS_HALF(name, type, packed, EQU, __VA_ARGS__), FORMS_HALF(name, type, packed, NEU, __VA_ARGS__),            \
        FORMS_HALF(name, type, packed, LTU, __VA_ARGS__), FORMS_HALF(name, type, packed, LEU, __VA_ARGS__),            \
        FORMS_HALF(name, type, packed, GTU, __VA_ARGS__), FORMS_HALF(name, type, packed, GEU, __VA_ARGS__),            \
        FORMS_HALF(name, type, packed, NUM, __VA_ARGS__), FORMS_HALF(name, type, packed, NAN, __VA_ARGS__)
#define FORMS_SELECT(bits, type)                                                                                       \
    EM_FORM(selp_##bits, SELP, EM_TYPES(type), EM_NONE),                                                               \
        EM_FORM(slct_##bits##_s32, SLCT, EM_TYPES(type, S32), EM_NONE),                                                \
        EM_FORM(slct_##bits##_f32, SLCT, EM_TYPES(type, F32), EM_NONE),                                                \
        EM_FORM(slct_##bits##_f32_ftz, SLCT, EM_TYPES(type, F32), EM_MODIFIERS(FTZ))
#define FORMS_TEST(name, type)                                                                                         \
    EM_FORM(testp_finite_##name, TESTP, EM_TYPES(type), EM_MODIFIERS(FINITE)),                                         \
        EM_FORM(testp_infinite_##name, TESTP, EM_TYPES(type), EM_MODIFIERS(INFINITE)),                                 \
        EM_FORM(testp_number_##name, TESTP, EM_TYPES(type), EM_MODIFIERS(NUMBER)),                                     \
        EM_FORM(testp_notanumber_##name, TESTP, EM_TYPES(type), EM_MODIFIERS(NOTANUMBER)),                             \
        EM_FORM(testp_normal_##name, TESTP, EM_TYPES(type), EM_MODIFIERS(NORMAL)),                                     \
        EM_FORM(testp_subnormal_##name, TESTP, EM_TYPES(type), EM_MODIFIERS(SUBNORMAL))

const em_form EM_ISA_NAME(em_forms_compare)[] = {
    FORMS_EQUALITY(16, B16),
    FORMS_EQUALITY(16, U16),
    FORMS_EQUALITY(16, S16),
    FORMS_EQUALITY(32, B32),
    FORMS_EQUALITY(32, U32),
    FORMS_EQUALITY(32, S32),
    FORMS_EQUALITY(64, B64),
    FORMS_EQUALITY(64, U64),
    FORMS_EQUALITY(64, S64),
    FORMS_UNSIGNED(u16, U16),
    FORMS_UNSIGNED(u32, U32),
    FORMS_UNSIGNED(u64, U64),
    FORMS_ORDER(s16, S16),
    FORMS_ORDER(s32, S32),
    FORMS_ORDER(s64, S64),
    FORMS_FLOAT(f32, F32, NONE),
    FORMS_FLOAT(f32_ftz, F32, FTZ),
    FORMS_FLOAT(f64, F64, NONE),
    FORMS_HALVES(f16, F16, F16X2, NONE),
    FORMS_HALVES(f16_ftz_, F16, F16X2, FTZ),
    FORMS_HALVES(bf16, BF16, BF16X2, NONE),
    FORMS_SELECT(16, B16),
    FORMS_SELECT(16, U16),
    FORMS_SELECT(16, S16),
    FORMS_SELECT(32, B32),
    FORMS_SELECT(32, U32),
    FORMS_SELECT(32, S32),
    FORMS_SELECT(32, F32),
    FORMS_SELECT(64, B64),
    FORMS_SELECT(64, U64),
    FORMS_SELECT(64, S64),
    FORMS_SELECT(64, F64),
    FORMS_TEST(f32, F32),
    FORMS_TEST(f64, F64),
    EM_FORM_END,
};
