/* Logic, shifts and the operations on single bits and bytes. */
#include "op.h"
#include "values.h"

/* ---- and, or, xor, not ------------------------------------------------------------------------------------------ */

EM_BINARY(and_16, uint16_t, uint16_t, uint16_t, a &b)
EM_BINARY(and_32, uint32_t, uint32_t, uint32_t, a &b)
EM_BINARY(and_64, uint64_t, uint64_t, uint64_t, a &b)
EM_BINARY(or_16, uint16_t, uint16_t, uint16_t, a | b)
EM_BINARY(or_32, uint32_t, uint32_t, uint32_t, a | b)
EM_BINARY(or_64, uint64_t, uint64_t, uint64_t, a | b)
EM_BINARY(xor_16, uint16_t, uint16_t, uint16_t, a ^ b)
EM_BINARY(xor_32, uint32_t, uint32_t, uint32_t, a ^ b)
EM_BINARY(xor_64, uint64_t, uint64_t, uint64_t, a ^ b)
EM_UNARY(not_16, uint16_t, uint16_t, ~a)
EM_UNARY(not_32, uint32_t, uint32_t, ~a)
EM_UNARY(not_64, uint64_t, uint64_t, ~a)
EM_UNARY(cnot_16, uint16_t, uint16_t, a == 0)
EM_UNARY(cnot_32, uint32_t, uint32_t, a == 0)
EM_UNARY(cnot_64, uint64_t, uint64_t, a == 0)

#define PREDICATE(name, expression)                                                                                    \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        const em_mask a = EM_PREDICATE(insn->a), b = EM_PREDICATE(insn->b);                                            \
        (void)b;                                                                                                       \
        EM_PUT_PREDICATE(insn->d, (expression));                                                                       \
    }
PREDICATE(and_pred, a &b)
PREDICATE(or_pred, a | b)
PREDICATE(xor_pred, a ^ b)
PREDICATE(not_pred, ~a)

/* Any function of three bits: entries 7..0 of `table`, chosen by a, then b, then c. */
typedef struct lookup {
    uint32_t low[4], flip[4]; /* value for c = 0, and what changes with c = 1, by (a, b) */
} lookup;

EM_INLINE lookup lookup_of(uint32_t table)
{
    lookup made;
    for (unsigned entry = 0; entry < 4; entry++) {
        made.low[entry] = 0u - (table >> (2 * entry) & 1u);
        made.flip[entry] = made.low[entry] ^ (0u - (table >> (2 * entry + 1) & 1u));
    }
    return made;
}

EM_INLINE uint32_t looked_up(const lookup *table, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t r0 = table->low[0] ^ (c & table->flip[0]), r1 = table->low[1] ^ (c & table->flip[1]);
    const uint32_t r2 = table->low[2] ^ (c & table->flip[2]), r3 = table->low[3] ^ (c & table->flip[3]);
    const uint32_t without_a = r0 ^ (b & (r0 ^ r1)), with_a = r2 ^ (b & (r2 ^ r3));
    return without_a ^ (a & (without_a ^ with_a));
}

EM_OP(lop3)
{
    uint32_t *const d_row = EM_ROW(uint32_t, insn->d);
    const uint32_t *const a_row = EM_ROW(uint32_t, insn->a);
    const uint32_t *const b_row = EM_ROW(uint32_t, insn->b);
    const uint32_t *const c_row = EM_ROW(uint32_t, insn->c);
    const lookup table = lookup_of(EM_ROW(uint32_t, insn->f)[0]);
    EM_EACH_LANE
    {
        EM_PUT(d_row, looked_up(&table, a_row[lane], b_row[lane], c_row[lane]));
    }
}

/* d|p: p also says whether the result, joined with q, is not zero. */
#define LOP3_PREDICATE(name, join)                                                                                     \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        uint32_t *const d_row = EM_ROW(uint32_t, insn->d);                                                             \
        const uint32_t *const a_row = EM_ROW(uint32_t, insn->a);                                                       \
        const uint32_t *const b_row = EM_ROW(uint32_t, insn->b);                                                       \
        const uint32_t *const c_row = EM_ROW(uint32_t, insn->c);                                                       \
        const lookup table = lookup_of(EM_ROW(uint32_t, insn->f)[0]);                                                  \
        const em_mask q = EM_PREDICATE(insn->slot);                                                                    \
        em_mask results = 0;                                                                                           \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const uint32_t value = looked_up(&table, a_row[lane], b_row[lane], c_row[lane]);                           \
            results |= (em_mask)(value != 0 ? 1 : 0) << lane;                                                          \
            EM_PUT(d_row, value);                                                                                      \
        }                                                                                                              \
        EM_PUT_PREDICATE(insn->e, results join q);                                                                     \
    }
LOP3_PREDICATE(lop3_and, &)
LOP3_PREDICATE(lop3_or, |)

/* ---- shifts: the amount is u32 whatever the type, and clamps at the width --------------------------------------- */

EM_BINARY(shl_16, uint16_t, uint16_t, uint32_t, b > 15 ? 0u : (uint32_t)a << (b & 15))
EM_BINARY(shl_32, uint32_t, uint32_t, uint32_t, b > 31 ? 0u : a << (b & 31))
EM_BINARY(shl_64, uint64_t, uint64_t, uint32_t, b > 63 ? 0u : a << (b & 63))
EM_BINARY(shr_u16, uint16_t, uint16_t, uint32_t, b > 15 ? 0u : (uint32_t)a >> (b & 15))
EM_BINARY(shr_u32, uint32_t, uint32_t, uint32_t, b > 31 ? 0u : a >> (b & 31))
EM_BINARY(shr_u64, uint64_t, uint64_t, uint32_t, b > 63 ? 0u : a >> (b & 63))
EM_BINARY(shr_s16, int16_t, int16_t, uint32_t, (int32_t)a >> (b > 15 ? 15u : b))
EM_BINARY(shr_s32, int32_t, int32_t, uint32_t, a >> (b > 31 ? 31u : b))
EM_BINARY(shr_s64, int64_t, int64_t, uint32_t, a >> (b > 63 ? 63u : b))

/* b:a shifted as 64 bits. */
EM_INLINE uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t count)
{
    return (uint32_t)((((uint64_t)b << 32 | a) << count) >> 32);
}

EM_INLINE uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t count)
{
    return (uint32_t)(((uint64_t)b << 32 | a) >> count);
}

EM_TERNARY(shf_l_clamp, uint32_t, uint32_t, uint32_t, uint32_t, funnel_left(a, b, c > 32 ? 32 : c))
EM_TERNARY(shf_r_clamp, uint32_t, uint32_t, uint32_t, uint32_t, funnel_right(a, b, c > 32 ? 32 : c))
EM_TERNARY(shf_l_wrap, uint32_t, uint32_t, uint32_t, uint32_t, funnel_left(a, b, c & 31))
EM_TERNARY(shf_r_wrap, uint32_t, uint32_t, uint32_t, uint32_t, funnel_right(a, b, c & 31))

/* ---- counting and finding --------------------------------------------------------------------------------------- */

EM_INLINE uint32_t count_ones(uint32_t a)
{
    a = a - (a >> 1 & 0x55555555u);
    a = (a & 0x33333333u) + (a >> 2 & 0x33333333u);
    a = (a + (a >> 4)) & 0x0f0f0f0fu;
    return a * 0x01010101u >> 24;
}

EM_INLINE uint32_t leading_zeros(uint32_t a)
{
    /* Ones from the highest set bit down: their count is what is left of 32. */
    a |= a >> 1;
    a |= a >> 2;
    a |= a >> 4;
    a |= a >> 8;
    a |= a >> 16;
    return 32u - count_ones(a);
}

EM_INLINE uint32_t leading_zeros_64(uint64_t a)
{
    return a == 0 ? 64u : (uint32_t)__builtin_clzll(a);
}

EM_INLINE uint32_t reverse_bits(uint32_t a)
{
    a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
    a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
    a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
    a = (a >> 8 & 0x00ff00ffu) | (a & 0x00ff00ffu) << 8;
    return a >> 16 | a << 16;
}

EM_INLINE uint64_t reverse_bits_64(uint64_t a)
{
    return (uint64_t)reverse_bits((uint32_t)a) << 32 | reverse_bits((uint32_t)(a >> 32));
}

EM_UNARY(popc_32, uint32_t, uint32_t, count_ones(a))
EM_UNARY(popc_64, uint32_t, uint64_t, count_ones((uint32_t)a) + count_ones((uint32_t)(a >> 32)))
EM_UNARY(clz_32, uint32_t, uint32_t, leading_zeros(a))
EM_UNARY(clz_64, uint32_t, uint64_t, leading_zeros_64(a))
EM_UNARY(brev_32, uint32_t, uint32_t, reverse_bits(a))
EM_UNARY(brev_64, uint64_t, uint64_t, reverse_bits_64(a))

/* The highest bit that is not the sign: its number, or with .shiftamt the shift that brings it to the top. */
#define VARYING_32(a)       ((a) ^ (uint32_t)((int32_t)(a) >> 31))
#define VARYING_64(a)       ((a) ^ (uint64_t)((int64_t)(a) >> 63))
#define FOUND(bits, zeros)  ((zeros) == (bits) ? 0xffffffffu : (bits)-1u - (zeros))
#define AMOUNT(bits, zeros) ((zeros) == (bits) ? 0xffffffffu : (zeros))
EM_UNARY(bfind_u32, uint32_t, uint32_t, FOUND(32u, leading_zeros(a)))
EM_UNARY(bfind_s32, uint32_t, uint32_t, FOUND(32u, leading_zeros(VARYING_32(a))))
EM_UNARY(bfind_u64, uint32_t, uint64_t, FOUND(64u, leading_zeros_64(a)))
EM_UNARY(bfind_s64, uint32_t, uint64_t, FOUND(64u, leading_zeros_64(VARYING_64(a))))
EM_UNARY(bfind_shiftamt_u32, uint32_t, uint32_t, AMOUNT(32u, leading_zeros(a)))
EM_UNARY(bfind_shiftamt_s32, uint32_t, uint32_t, AMOUNT(32u, leading_zeros(VARYING_32(a))))
EM_UNARY(bfind_shiftamt_u64, uint32_t, uint64_t, AMOUNT(64u, leading_zeros_64(a)))
EM_UNARY(bfind_shiftamt_s64, uint32_t, uint64_t, AMOUNT(64u, leading_zeros_64(VARYING_64(a))))

/* The offset-th set bit of `bits` from `base` on, upward or downward. */
EM_INLINE uint32_t find_nth(uint32_t bits, uint32_t base, int32_t offset)
{
    if (base > 31)
        return 0xffffffffu;
    if (offset == 0)
        return (bits >> base & 1u) != 0 ? base : 0xffffffffu;
    uint32_t left = offset < 0 ? 0u - (uint32_t)offset : (uint32_t)offset;
    for (int position = (int)base; position >= 0 && position < 32; position += offset < 0 ? -1 : 1) {
        left -= bits >> position & 1u;
        if (left == 0)
            return (uint32_t)position;
    }
    return 0xffffffffu;
}

EM_OP(fns)
{
    uint32_t *const d_row = EM_ROW(uint32_t, insn->d);
    const uint32_t *const a_row = EM_ROW(uint32_t, insn->a);
    const uint32_t *const b_row = EM_ROW(uint32_t, insn->b);
    const int32_t *const c_row = EM_ROW(int32_t, insn->c);
    for (int lane = 0; lane < EM_LANES; lane++)
        EM_PUT(d_row, find_nth(a_row[lane], b_row[lane], c_row[lane]));
}

/* ---- fields: position and length are 8 bits of 32, but saturate for 64 ------------------------------------------ */

EM_INLINE uint64_t low_ones(uint32_t count)
{
    return count > 63 ? UINT64_MAX : (1ull << (count & 63)) - 1u;
}

EM_INLINE uint32_t low_ones_32(uint32_t count)
{
    return count > 31 ? 0xffffffffu : (1u << (count & 31)) - 1u;
}

EM_INLINE uint32_t extract_u32(uint32_t a, uint32_t position, uint32_t length)
{
    return (position > 31 ? 0u : a >> (position & 31)) & low_ones_32(length);
}

EM_INLINE uint32_t extract_s32(uint32_t a, uint32_t position, uint32_t length)
{
    const uint32_t field = (uint32_t)((int32_t)a >> (position > 31 ? 31u : position));
    const uint32_t unused = length > 31 ? 0u : 32u - length;
    return length == 0 ? 0u : (uint32_t)((int32_t)(field << (unused & 31)) >> (unused & 31));
}

EM_INLINE uint64_t extract_u64(uint64_t a, uint32_t position, uint32_t length)
{
    return (position > 63 ? 0u : a >> (position & 63)) & low_ones(length);
}

EM_INLINE uint64_t extract_s64(uint64_t a, uint32_t position, uint32_t length)
{
    const uint64_t field = (uint64_t)((int64_t)a >> (position > 63 ? 63u : position));
    const uint32_t unused = length > 63 ? 0u : 64u - length;
    return length == 0 ? 0u : (uint64_t)((int64_t)(field << (unused & 63)) >> (unused & 63));
}

EM_TERNARY(bfe_u32, uint32_t, uint32_t, uint32_t, uint32_t, extract_u32(a, b & 0xff, c & 0xff))
EM_TERNARY(bfe_s32, uint32_t, uint32_t, uint32_t, uint32_t, extract_s32(a, b & 0xff, c & 0xff))
EM_TERNARY(bfe_u64, uint64_t, uint64_t, uint32_t, uint32_t, extract_u64(a, b, c))
EM_TERNARY(bfe_s64, uint64_t, uint64_t, uint32_t, uint32_t, extract_s64(a, b, c))

#define INSERT(name, T, bits, kept, ones)                                                                              \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        T *const d_row = EM_ROW(T, insn->d);                                                                           \
        const T *const a_row = EM_ROW(T, insn->a);                                                                     \
        const T *const b_row = EM_ROW(T, insn->b);                                                                     \
        const uint32_t *const position_row = EM_ROW(uint32_t, insn->c);                                                \
        const uint32_t *const length_row = EM_ROW(uint32_t, insn->f);                                                  \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const uint32_t position = position_row[lane] & (kept);                                                     \
            const bool inside = position < (bits);                                                                     \
            const T field = inside ? ones(length_row[lane] & (kept)) << (position & ((bits)-1)) : 0u;                  \
            const T moved = a_row[lane] << (position & ((bits)-1));                                                    \
            EM_PUT(d_row, (b_row[lane] & ~field) | (moved & field));                                                   \
        }                                                                                                              \
    }
INSERT(bfi_32, uint32_t, 32u, 0xffu, low_ones_32)
INSERT(bfi_64, uint64_t, 64u, 0xffffffffu, low_ones)

/* szext: keep `b` bits of a and extend; bmsk: b ones from bit a. */
EM_BINARY(szext_clamp_u32, uint32_t, uint32_t, uint32_t, a &low_ones_32(b))
EM_BINARY(szext_clamp_s32, uint32_t, uint32_t, uint32_t, extract_s32(a, 0, b))
EM_BINARY(szext_wrap_u32, uint32_t, uint32_t, uint32_t, a &low_ones_32(b & 31))
EM_BINARY(szext_wrap_s32, uint32_t, uint32_t, uint32_t, extract_s32(a, 0, b & 31))
EM_BINARY(bmsk_clamp, uint32_t, uint32_t, uint32_t, a > 31 ? 0u : low_ones_32(b) << (a & 31))
EM_BINARY(bmsk_wrap, uint32_t, uint32_t, uint32_t, low_ones_32(b & 31) << (a & 31))

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

/* Byte `index` (0 to 7) of b:a, or eight copies of its sign where bit 3 of `index` is set. */
EM_INLINE uint32_t pick_byte(uint32_t a, uint32_t b, uint32_t index)
{
    const uint32_t from = (index & 4) != 0 ? b : a;
    const uint32_t byte = from >> (8 * (index & 3)) & 0xffu;
    return (index & 8) != 0 ? (0u - (byte >> 7)) & 0xffu : byte;
}

EM_INLINE uint32_t permute(uint32_t a, uint32_t b, uint32_t i0, uint32_t i1, uint32_t i2, uint32_t i3)
{
    return pick_byte(a, b, i0) | pick_byte(a, b, i1) << 8 | pick_byte(a, b, i2) << 16 | pick_byte(a, b, i3) << 24;
}

EM_INLINE uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

EM_INLINE uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

EM_TERNARY(prmt, uint32_t, uint32_t, uint32_t, uint32_t, permute(a, b, c & 15, c >> 4 & 15, c >> 8 & 15, c >> 12 & 15))
EM_TERNARY(prmt_f4e, uint32_t, uint32_t, uint32_t, uint32_t,
           permute(a, b, c & 3, (c & 3) + 1, (c & 3) + 2, (c & 3) + 3))
EM_TERNARY(prmt_b4e, uint32_t, uint32_t, uint32_t, uint32_t,
           permute(a, b, c & 3, ((c & 3) + 7) & 7, ((c & 3) + 6) & 7, ((c & 3) + 5) & 7))
EM_TERNARY(prmt_rc8, uint32_t, uint32_t, uint32_t, uint32_t, permute(a, b, c & 3, c & 3, c & 3, c & 3))
EM_TERNARY(prmt_ecl, uint32_t, uint32_t, uint32_t, uint32_t,
           permute(a, b, c & 3, greater(c & 3, 1), greater(c & 3, 2), 3))
EM_TERNARY(prmt_ecr, uint32_t, uint32_t, uint32_t, uint32_t,
           permute(a, b, 0, lesser(c & 3, 1), lesser(c & 3, 2), c & 3))
EM_TERNARY(prmt_rc16, uint32_t, uint32_t, uint32_t, uint32_t,
           permute(a, b, (c & 1) * 2, (c & 1) * 2 + 1, (c & 1) * 2, (c & 1) * 2 + 1))

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define FORMS_BITS(name, opcode)                                                                                       \
    EM_FORM(name##_16, opcode, EM_TYPES(B16), EM_NONE), EM_FORM(name##_32, opcode, EM_TYPES(B32), EM_NONE),            \
        EM_FORM(name##_64, opcode, EM_TYPES(B64), EM_NONE)
#define FORMS_INTEGERS(name, opcode, ...)                                                                              \
    EM_FORM(name##_u32, opcode, EM_TYPES(U32), EM_MODIFIERS(__VA_ARGS__)),                                             \
        EM_FORM(name##_s32, opcode, EM_TYPES(S32), EM_MODIFIERS(__VA_ARGS__)),                                         \
        EM_FORM(name##_u64, opcode, EM_TYPES(U64), EM_MODIFIERS(__VA_ARGS__)),                                         \
        EM_FORM(name##_s64, opcode, EM_TYPES(S64), EM_MODIFIERS(__VA_ARGS__))

const em_form EM_ISA_NAME(em_forms_logic)[] = {
    FORMS_BITS(and, AND),
    FORMS_BITS(or, OR),
    FORMS_BITS(xor, XOR),
    FORMS_BITS(not, NOT),
    FORMS_BITS(cnot, CNOT),
    EM_FORM(and_pred, AND, EM_TYPES(PRED), EM_NONE),
    EM_FORM(or_pred, OR, EM_TYPES(PRED), EM_NONE),
    EM_FORM(xor_pred, XOR, EM_TYPES(PRED), EM_NONE),
    EM_FORM(not_pred, NOT, EM_TYPES(PRED), EM_NONE),
    EM_FORM(lop3, LOP3, EM_TYPES(B32), EM_NONE),
    EM_FORM(lop3_and, LOP3, EM_TYPES(B32), EM_MODIFIERS(AND)),
    EM_FORM(lop3_or, LOP3, EM_TYPES(B32), EM_MODIFIERS(OR)),
    FORMS_BITS(shl, SHL),
    EM_FORM(shr_u16, SHR, EM_TYPES(B16), EM_NONE),
    EM_FORM(shr_u16, SHR, EM_TYPES(U16), EM_NONE),
    EM_FORM(shr_s16, SHR, EM_TYPES(S16), EM_NONE),
    EM_FORM(shr_u32, SHR, EM_TYPES(B32), EM_NONE),
    EM_FORM(shr_u64, SHR, EM_TYPES(B64), EM_NONE),
    FORMS_INTEGERS(shr, SHR, NONE),
    EM_FORM(shf_l_clamp, SHF, EM_TYPES(B32), EM_MODIFIERS(L, CLAMP)),
    EM_FORM(shf_r_clamp, SHF, EM_TYPES(B32), EM_MODIFIERS(R, CLAMP)),
    EM_FORM(shf_l_wrap, SHF, EM_TYPES(B32), EM_MODIFIERS(L, WRAP)),
    EM_FORM(shf_r_wrap, SHF, EM_TYPES(B32), EM_MODIFIERS(R, WRAP)),
    EM_FORM(popc_32, POPC, EM_TYPES(B32), EM_NONE),
    EM_FORM(popc_64, POPC, EM_TYPES(B64), EM_NONE),
    EM_FORM(clz_32, CLZ, EM_TYPES(B32), EM_NONE),
    EM_FORM(clz_64, CLZ, EM_TYPES(B64), EM_NONE),
    EM_FORM(brev_32, BREV, EM_TYPES(B32), EM_NONE),
    EM_FORM(brev_64, BREV, EM_TYPES(B64), EM_NONE),
    FORMS_INTEGERS(bfind, BFIND, NONE),
    FORMS_INTEGERS(bfind_shiftamt, BFIND, SHIFTAMT),
    EM_FORM(fns, FNS, EM_TYPES(B32), EM_NONE),
    FORMS_INTEGERS(bfe, BFE, NONE),
    EM_FORM(bfi_32, BFI, EM_TYPES(B32), EM_NONE),
    EM_FORM(bfi_64, BFI, EM_TYPES(B64), EM_NONE),
    EM_FORM(szext_clamp_u32, SZEXT, EM_TYPES(U32), EM_MODIFIERS(CLAMP)),
    EM_FORM(szext_clamp_s32, SZEXT, EM_TYPES(S32), EM_MODIFIERS(CLAMP)),
    EM_FORM(szext_wrap_u32, SZEXT, EM_TYPES(U32), EM_MODIFIERS(WRAP)),
    EM_FORM(szext_wrap_s32, SZEXT, EM_TYPES(S32), EM_MODIFIERS(WRAP)),
    EM_FORM(bmsk_clamp, BMSK, EM_TYPES(B32), EM_MODIFIERS(CLAMP)),
    EM_FORM(bmsk_wrap, BMSK, EM_TYPES(B32), EM_MODIFIERS(WRAP)),
    EM_FORM(prmt, PRMT, EM_TYPES(B32), EM_NONE),
    EM_FORM(prmt_f4e, PRMT, EM_TYPES(B32), EM_MODIFIERS(F4E)),
    EM_FORM(prmt_b4e, PRMT, EM_TYPES(B32), EM_MODIFIERS(B4E)),
    EM_FORM(prmt_rc8, PRMT, EM_TYPES(B32), EM_MODIFIERS(RC8)),
    EM_FORM(prmt_ecl, PRMT, EM_TYPES(B32), EM_MODIFIERS(ECL)),
    EM_FORM(prmt_ecr, PRMT, EM_TYPES(B32), EM_MODIFIERS(ECR)),
    EM_FORM(prmt_rc16, PRMT, EM_TYPES(B32), EM_MODIFIERS(RC16)),
    EM_FORM_END,
};
