/* The video instructions: parts of registers, extended, computed on, saturated, then merged or accumulated.
 *
 * They are rare, so one handler serves all forms of an operation and asks the instruction what to do; a lane at a
 * time, in 64 bits. */
#include "op.h"
#include "values.h"

/* ---- shared by scalar and SIMD forms ---------------------------------------------------------------------------- */

typedef struct range {
    int64_t low, high;
} range;

static range range_of(bool is_signed, unsigned bits)
{
    const range made = {is_signed ? -(INT64_C(1) << (bits - 1)) : 0, (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1};
    return made;
}

static int64_t clamp_to(int64_t value, range limits)
{
    return value < limits.low ? limits.low : value > limits.high ? limits.high : value;
}

/* `bits` of value from `position` on, by the type's sign. */
static int64_t part_of(uint32_t value, unsigned position, unsigned bits, bool is_signed)
{
    const uint64_t field = (uint64_t)(value >> position) << (64 - bits);
    return is_signed ? (int64_t)field >> (64 - bits) : (int64_t)(field >> (64 - bits));
}

static bool is_signed_type(const em_insn *insn, unsigned index)
{
    return ptx_type_of(insn->ptx, index) == PTX_S32;
}

static int64_t computed(ptx_opcode opcode, int64_t a, int64_t b)
{
    switch (opcode) {
    case PTX_OP_VADD:
    case PTX_OP_VADD2:
    case PTX_OP_VADD4:
        return a + b;
    case PTX_OP_VSUB:
    case PTX_OP_VSUB2:
    case PTX_OP_VSUB4:
        return a - b;
    case PTX_OP_VABSDIFF:
    case PTX_OP_VABSDIFF2:
    case PTX_OP_VABSDIFF4:
        return a < b ? b - a : a - b;
    case PTX_OP_VMIN:
    case PTX_OP_VMIN2:
    case PTX_OP_VMIN4:
        return a < b ? a : b;
    case PTX_OP_VMAX:
    case PTX_OP_VMAX2:
    case PTX_OP_VMAX4:
        return a > b ? a : b;
    default: /* vavrg: halves round away from zero */
        return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    }
}

static bool compared(ptx_modifier comparison, int64_t a, int64_t b)
{
    switch (comparison) {
    case PTX_MOD_EQ:
        return a == b;
    case PTX_MOD_NE:
        return a != b;
    case PTX_MOD_LT:
        return a < b;
    case PTX_MOD_LE:
        return a <= b;
    case PTX_MOD_GT:
        return a > b;
    default:
        return a >= b;
    }
}

/* ---- scalar forms ----------------------------------------------------------------------------------------------- */

static void place_of(ptx_selector selector, unsigned *position, unsigned *bits)
{
    *position = 0;
    *bits = 32;
    if (selector >= PTX_SELECT_B0 && selector <= PTX_SELECT_B3) {
        *position = 8 * (unsigned)(selector - PTX_SELECT_B0);
        *bits = 8;
    } else if (selector == PTX_SELECT_H0 || selector == PTX_SELECT_H1) {
        *position = 16 * (unsigned)(selector - PTX_SELECT_H0);
        *bits = 16;
    }
}

typedef struct scalar {
    unsigned a_position, a_bits, b_position, b_bits, d_position, d_bits;
    bool a_signed, b_signed, d_signed, saturate, merge;
    ptx_modifier second; /* add, min, max with c, or none */
} scalar;

static scalar scalar_of(const em_insn *insn, bool has_result_type)
{
    const ptx_operand *const operands = insn->ptx->operands;
    scalar made;
    place_of((ptx_selector)operands[1].selector, &made.a_position, &made.a_bits);
    place_of((ptx_selector)operands[2].selector, &made.b_position, &made.b_bits);
    place_of((ptx_selector)operands[0].selector, &made.d_position, &made.d_bits);
    const unsigned first = has_result_type ? 1 : 0;
    made.a_signed = is_signed_type(insn, first);
    made.b_signed = is_signed_type(insn, first + 1);
    made.d_signed = has_result_type && is_signed_type(insn, 0);
    made.saturate = ptx_has(insn->ptx, PTX_MOD_SAT);
    made.merge = insn->ptx->operand_count > 3;
    made.second = ptx_modifier_of(insn->ptx, PTX_CLASS_OPERATION);
    return made;
}

static uint32_t finished(const scalar *how, int64_t value, uint32_t c)
{
    const int64_t limited = how->saturate ? clamp_to(value, range_of(how->d_signed, how->d_bits)) : value;
    const uint32_t result = (uint32_t)limited;
    const bool less = how->d_signed ? (int32_t)result < (int32_t)c : result < c;
    switch (how->second) {
    case PTX_MOD_ADD:
        return result + c;
    case PTX_MOD_MIN:
        return less ? result : c;
    case PTX_MOD_MAX:
        return less ? c : result;
    default:
        break;
    }
    if (!how->merge || how->d_bits == 32)
        return result;
    const uint32_t field = ((1u << how->d_bits) - 1u) << how->d_position;
    return (c & ~field) | (result << how->d_position & field);
}

#define SCALAR(name, has_result_type, expression)                                                                      \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        uint32_t *const d_row = EM_ROW(uint32_t, insn->d);                                                             \
        const uint32_t *const a_row = EM_ROW(uint32_t, insn->a);                                                       \
        const uint32_t *const b_row = EM_ROW(uint32_t, insn->b);                                                       \
        const uint32_t *const c_row = EM_ROW(uint32_t, insn->c);                                                       \
        const scalar how = scalar_of(insn, has_result_type);                                                           \
        EM_EACH_LANE_OF(mask)                                                                                          \
        {                                                                                                              \
            const int64_t a = part_of(a_row[lane], how.a_position, how.a_bits, how.a_signed);                          \
            const int64_t b = part_of(b_row[lane], how.b_position, how.b_bits, how.b_signed);                          \
            d_row[lane] = finished(&how, (expression), c_row[lane]);                                                   \
        }                                                                                                              \
    }

static int64_t shifted(const em_insn *insn, int64_t a, int64_t b)
{
    const bool wrap = ptx_has(insn->ptx, PTX_MOD_WRAP);
    const int64_t count = wrap ? b & 31 : b > 32 ? 32 : b;
    if (insn->ptx->op == PTX_OP_VSHR)
        return a >> count;
    /* 65 bits at most; what does not fit in 64 keeps its low half and its side of the range. */
    const int64_t left = (int64_t)((uint64_t)a << count);
    return a > 0 && left < 0 ? (left & UINT32_MAX) | INT64_C(1) << 62 : left;
}

SCALAR(video, true, computed((ptx_opcode)insn->ptx->op, a, b))
SCALAR(video_shift, true, shifted(insn, a, b))
SCALAR(vset, false, compared(ptx_modifier_of(insn->ptx, PTX_CLASS_COMPARISON), a, b))

/* A negated factor or addend is its complement plus one; .po adds one alone. */
static uint32_t multiplied(const em_insn *insn, const scalar *how, int64_t a, int64_t b, uint32_t c)
{
    const ptx_operand *const operands = insn->ptx->operands;
    const bool negate_product = operands[1].negated != operands[2].negated, negate_c = operands[3].negated;
    const bool is_signed = how->a_signed || how->b_signed || negate_product || negate_c;
    const bool plus_one = ptx_has(insn->ptx, PTX_MOD_PO);
    __int128 product = (__int128)a * b;
    if (!plus_one && negate_product)
        product = ~product;
    const uint32_t addend = !plus_one && !negate_product && negate_c ? ~c : c;
    const int64_t last = plus_one || negate_product || negate_c ? 1 : 0;
    const __int128 sum = product + (is_signed ? (int64_t)(int32_t)addend : (int64_t)addend) + last;
    const int64_t scaled = (int64_t)(sum >> (ptx_has(insn->ptx, PTX_MOD_SHR7)    ? 7
                                             : ptx_has(insn->ptx, PTX_MOD_SHR15) ? 15
                                                                                 : 0));
    if (!how->saturate)
        return (uint32_t)scaled;
    if (is_signed)
        return (uint32_t)clamp_to(scaled, range_of(true, 32));
    return (uint64_t)scaled > UINT32_MAX ? UINT32_MAX : (uint32_t)scaled;
}

EM_OP(vmad)
{
    uint32_t *const d_row = EM_ROW(uint32_t, insn->d);
    const uint32_t *const a_row = EM_ROW(uint32_t, insn->a);
    const uint32_t *const b_row = EM_ROW(uint32_t, insn->b);
    const uint32_t *const c_row = EM_ROW(uint32_t, insn->c);
    const scalar how = scalar_of(insn, true);
    EM_EACH_LANE_OF(mask)
    {
        const int64_t a = part_of(a_row[lane], how.a_position, how.a_bits, how.a_signed);
        const int64_t b = part_of(b_row[lane], how.b_position, how.b_bits, how.b_signed);
        d_row[lane] = multiplied(insn, &how, a, b, c_row[lane]);
    }
}

/* ---- SIMD forms: two halves or four bytes ----------------------------------------------------------------------- */

typedef struct parts {
    unsigned count, bits;
    uint16_t a_parts, b_parts; /* which part of b:a each takes, 4 bits a part, lowest first */
    unsigned written;          /* one bit a part */
    bool a_signed, b_signed, d_signed, saturate, accumulate;
    ptx_modifier comparison;
} parts;

/* Digits as written, highest part first; `otherwise` where there are none. */
static uint16_t parts_of(const ptx_operand *operand, uint16_t otherwise)
{
    return operand->selector == PTX_SELECT_MASK ? operand->selector_mask : otherwise;
}

static unsigned written_of(const ptx_operand *operand, unsigned count)
{
    if (operand->selector >= PTX_SELECT_B0 && operand->selector <= PTX_SELECT_B3)
        return 1u << (operand->selector - PTX_SELECT_B0);
    if (operand->selector == PTX_SELECT_H0 || operand->selector == PTX_SELECT_H1)
        return 1u << (operand->selector - PTX_SELECT_H0);
    if (operand->selector != PTX_SELECT_MASK)
        return (1u << count) - 1u;
    unsigned written = 0;
    unsigned digits = operand->selector_mask;
    do { /* a digit 0 can only be the last, so what is left tells when to stop */
        written |= 1u << (digits & 15u);
        digits >>= 4;
    } while (digits != 0);
    return written;
}

static parts simd_of(const em_insn *insn, unsigned count, bool is_set)
{
    const ptx_operand *const operands = insn->ptx->operands;
    parts made;
    made.count = count;
    made.bits = 32 / count;
    made.a_parts = parts_of(&operands[1], count == 2 ? 0x10 : 0x3210);
    made.b_parts = parts_of(&operands[2], count == 2 ? 0x32 : 0x7654);
    made.written = written_of(&operands[0], count);
    const unsigned first = is_set ? 0 : 1;
    made.a_signed = is_signed_type(insn, first);
    made.b_signed = is_signed_type(insn, first + 1);
    made.d_signed = !is_set && is_signed_type(insn, 0);
    made.saturate = ptx_has(insn->ptx, PTX_MOD_SAT);
    made.accumulate = ptx_has(insn->ptx, PTX_MOD_ADD);
    made.comparison = is_set ? ptx_modifier_of(insn->ptx, PTX_CLASS_COMPARISON) : PTX_MOD_NONE;
    return made;
}

static int64_t picked(const parts *how, unsigned digit, uint32_t a, uint32_t b, bool is_signed)
{
    const uint32_t from = digit >= how->count ? b : a;
    return part_of(from, how->bits * (digit & (how->count - 1)), how->bits, is_signed);
}

static uint32_t simd_lane(const parts *how, ptx_opcode opcode, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t field = (uint32_t)((UINT64_C(1) << how->bits) - 1u);
    uint32_t result = c;
    for (unsigned part = 0; part < how->count; part++) {
        if ((how->written >> part & 1u) == 0)
            continue;
        const int64_t left = picked(how, how->a_parts >> (4 * part) & 15u, a, b, how->a_signed);
        const int64_t right = picked(how, how->b_parts >> (4 * part) & 15u, a, b, how->b_signed);
        int64_t value =
            how->comparison != PTX_MOD_NONE ? compared(how->comparison, left, right) : computed(opcode, left, right);
        if (how->saturate)
            value = clamp_to(value, range_of(how->d_signed, how->bits));
        if (how->accumulate)
            result += (uint32_t)value;
        else
            result = (result & ~(field << (how->bits * part))) | ((uint32_t)value & field) << (how->bits * part);
    }
    return result;
}

#define SIMD(name, count, is_set)                                                                                      \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        uint32_t *const d_row = EM_ROW(uint32_t, insn->d);                                                             \
        const uint32_t *const a_row = EM_ROW(uint32_t, insn->a);                                                       \
        const uint32_t *const b_row = EM_ROW(uint32_t, insn->b);                                                       \
        const uint32_t *const c_row = EM_ROW(uint32_t, insn->c);                                                       \
        const parts how = simd_of(insn, count, is_set);                                                                \
        EM_EACH_LANE_OF(mask)                                                                                          \
        {                                                                                                              \
            d_row[lane] = simd_lane(&how, (ptx_opcode)insn->ptx->op, a_row[lane], b_row[lane], c_row[lane]);           \
        }                                                                                                              \
    }
SIMD(video2, 2, false)
SIMD(video4, 4, false)
SIMD(vset2, 2, true)
SIMD(vset4, 4, true)

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define FORM(name, opcode, d, a, b, ...) EM_FORM(name, opcode, EM_TYPES(d, a, b), EM_MODIFIERS(__VA_ARGS__))
#define FORMS_TYPES(name, opcode, ...)                                                                                 \
    FORM(name, opcode, U32, U32, U32, __VA_ARGS__), FORM(name, opcode, U32, U32, S32, __VA_ARGS__),                    \
        FORM(name, opcode, U32, S32, U32, __VA_ARGS__), FORM(name, opcode, U32, S32, S32, __VA_ARGS__),                \
        FORM(name, opcode, S32, U32, U32, __VA_ARGS__), FORM(name, opcode, S32, U32, S32, __VA_ARGS__),                \
        FORM(name, opcode, S32, S32, U32, __VA_ARGS__), FORM(name, opcode, S32, S32, S32, __VA_ARGS__)
#define FORMS_SATURATED(name, opcode, ...)                                                                             \
    FORMS_TYPES(name, opcode, __VA_ARGS__), FORMS_TYPES(name, opcode, SAT, __VA_ARGS__)
#define FORMS_SCALAR(opcode)                                                                                           \
    FORMS_SATURATED(video, opcode, NONE), FORMS_SATURATED(video, opcode, ADD), FORMS_SATURATED(video, opcode, MIN),    \
        FORMS_SATURATED(video, opcode, MAX)
#define FORMS_SHIFT(opcode, bounds)                                                                                    \
    FORMS_SATURATED(video_shift, opcode, bounds), FORMS_SATURATED(video_shift, opcode, bounds, ADD),                   \
        FORMS_SATURATED(video_shift, opcode, bounds, MIN), FORMS_SATURATED(video_shift, opcode, bounds, MAX)
#define FORMS_VMAD(...)                                                                                                \
    FORMS_SATURATED(vmad, VMAD, __VA_ARGS__), FORMS_SATURATED(vmad, VMAD, SHR7, __VA_ARGS__),                          \
        FORMS_SATURATED(vmad, VMAD, SHR15, __VA_ARGS__)
#define FORMS_SIMD(name, opcode) FORMS_SATURATED(name, opcode, NONE), FORMS_TYPES(name, opcode, ADD)

#define FORMS_COMPARED(name, opcode, word, ...)                                                                        \
    EM_FORM(name, opcode, EM_TYPES(U32, U32), EM_MODIFIERS(word, __VA_ARGS__)),                                        \
        EM_FORM(name, opcode, EM_TYPES(U32, S32), EM_MODIFIERS(word, __VA_ARGS__)),                                    \
        EM_FORM(name, opcode, EM_TYPES(S32, U32), EM_MODIFIERS(word, __VA_ARGS__)),                                    \
        EM_FORM(name, opcode, EM_TYPES(S32, S32), EM_MODIFIERS(word, __VA_ARGS__))
#define FORMS_VSET(name, opcode, ...)                                                                                  \
    FORMS_COMPARED(name, opcode, EQ, __VA_ARGS__), FORMS_COMPARED(name, opcode, NE, __VA_ARGS__),                      \
        FORMS_COMPARED(name, opcode, LT, __VA_ARGS__), FORMS_COMPARED(name, opcode, LE, __VA_ARGS__),                  \
        FORMS_COMPARED(name, opcode, GT, __VA_ARGS__), FORMS_COMPARED(name, opcode, GE, __VA_ARGS__)

const em_form EM_ISA_NAME(em_forms_video)[] = {
    FORMS_SCALAR(VADD),
    FORMS_SCALAR(VSUB),
    FORMS_SCALAR(VABSDIFF),
    FORMS_SCALAR(VMIN),
    FORMS_SCALAR(VMAX),
    FORMS_SHIFT(VSHL, CLAMP),
    FORMS_SHIFT(VSHL, WRAP),
    FORMS_SHIFT(VSHR, CLAMP),
    FORMS_SHIFT(VSHR, WRAP),
    FORMS_VMAD(NONE),
    FORMS_VMAD(PO),
    FORMS_VSET(vset, VSET, NONE),
    FORMS_VSET(vset, VSET, ADD),
    FORMS_VSET(vset, VSET, MIN),
    FORMS_VSET(vset, VSET, MAX),
    FORMS_SIMD(video2, VADD2),
    FORMS_SIMD(video2, VSUB2),
    FORMS_SIMD(video2, VAVRG2),
    FORMS_SIMD(video2, VABSDIFF2),
    FORMS_SIMD(video2, VMIN2),
    FORMS_SIMD(video2, VMAX2),
    FORMS_SIMD(video4, VADD4),
    FORMS_SIMD(video4, VSUB4),
    FORMS_SIMD(video4, VAVRG4),
    FORMS_SIMD(video4, VABSDIFF4),
    FORMS_SIMD(video4, VMIN4),
    FORMS_SIMD(video4, VMAX4),
    FORMS_VSET(vset2, VSET2, NONE),
    FORMS_VSET(vset2, VSET2, ADD),
    FORMS_VSET(vset4, VSET4, NONE),
    FORMS_VSET(vset4, VSET4, ADD),
    EM_FORM_END,
};
