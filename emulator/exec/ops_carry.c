/* Carry chains: EM_CARRY is the carry out of the top bit, one bit a lane. A difference is the sum a + ~b + 1, so its
 * carry says that there was no borrow: the flag that one family sets means this to the other too. */
#include "op.h"
#include "values.h"

/* `carry` is what comes in (0 or 1), `out` what goes out; both are computed before the destination, which may be one
 * of the sources, is written. */
#define CHAIN(name, T, carried, result_expression, out_expression)                                                     \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        T *const d_row = EM_ROW(T, insn->d);                                                                           \
        const T *const a_row = EM_ROW(T, insn->a);                                                                     \
        const T *const b_row = EM_ROW(T, insn->b);                                                                     \
        const T *const c_row = EM_ROW(T, insn->c);                                                                     \
        const em_mask carries = (carried) ? EM_CARRY : 0;                                                              \
        em_mask out = 0;                                                                                               \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const T carry = (T)(carries >> lane & 1u), a = a_row[lane], b = b_row[lane], c = c_row[lane];              \
            const T result = (T)(result_expression);                                                                   \
            out |= (em_mask)((out_expression) ? 1 : 0) << lane;                                                        \
            EM_PUT(d_row, result);                                                                                     \
            (void)b;                                                                                                   \
            (void)c;                                                                                                   \
            (void)carry;                                                                                               \
        }                                                                                                              \
        EM_PUT_PREDICATE(EM_CARRY_OFFSET, out);                                                                        \
    }

/* The same without a carry out. */
#define CHAIN_END(name, T, result_expression)                                                                          \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        T *const d_row = EM_ROW(T, insn->d);                                                                           \
        const T *const a_row = EM_ROW(T, insn->a);                                                                     \
        const T *const b_row = EM_ROW(T, insn->b);                                                                     \
        const T *const c_row = EM_ROW(T, insn->c);                                                                     \
        const em_mask carries = EM_CARRY;                                                                              \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const T carry = (T)(carries >> lane & 1u), a = a_row[lane], b = b_row[lane], c = c_row[lane];              \
            (void)c;                                                                                                   \
            EM_PUT(d_row, (T)(result_expression));                                                                     \
        }                                                                                                              \
    }

/* A sum wrapped where it is below a term, or equal to it with a carry in. */
#define ADDED(a)           (result < (a) || (carry != 0 && result == (a)))
#define NOT_BORROWED(a, b) ((a) > (b) || (carry != 0 && (a) == (b)))

EM_INLINE uint32_t high_u32(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

EM_INLINE uint32_t high_s32(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)((int64_t)(int32_t)a * (int32_t)b) >> 32);
}

EM_INLINE uint64_t high_u64(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

EM_INLINE uint64_t high_s64(uint64_t a, uint64_t b)
{
    return (uint64_t)((__int128)(int64_t)a * (int64_t)b >> 64);
}

CHAIN(add_cc_32, uint32_t, false, a + b, result < a)
CHAIN(add_cc_64, uint64_t, false, a + b, result < a)
CHAIN(addc_cc_32, uint32_t, true, a + b + carry, ADDED(a))
CHAIN(addc_cc_64, uint64_t, true, a + b + carry, ADDED(a))
CHAIN_END(addc_32, uint32_t, a + b + carry)
CHAIN_END(addc_64, uint64_t, a + b + carry)
CHAIN(sub_cc_32, uint32_t, false, a - b, a >= b)
CHAIN(sub_cc_64, uint64_t, false, a - b, a >= b)
CHAIN(subc_cc_32, uint32_t, true, a - b - 1 + carry, NOT_BORROWED(a, b))
CHAIN(subc_cc_64, uint64_t, true, a - b - 1 + carry, NOT_BORROWED(a, b))
CHAIN_END(subc_32, uint32_t, a - b - 1 + carry)
CHAIN_END(subc_64, uint64_t, a - b - 1 + carry)

CHAIN(mad_lo_cc_32, uint32_t, false, a *b + c, result < c)
CHAIN(mad_lo_cc_64, uint64_t, false, a *b + c, result < c)
CHAIN(mad_hi_cc_u32, uint32_t, false, high_u32(a, b) + c, result < c)
CHAIN(mad_hi_cc_s32, uint32_t, false, high_s32(a, b) + c, result < c)
CHAIN(mad_hi_cc_u64, uint64_t, false, high_u64(a, b) + c, result < c)
CHAIN(mad_hi_cc_s64, uint64_t, false, high_s64(a, b) + c, result < c)
CHAIN(madc_lo_cc_32, uint32_t, true, a *b + c + carry, ADDED(c))
CHAIN(madc_lo_cc_64, uint64_t, true, a *b + c + carry, ADDED(c))
CHAIN(madc_hi_cc_u32, uint32_t, true, high_u32(a, b) + c + carry, ADDED(c))
CHAIN(madc_hi_cc_s32, uint32_t, true, high_s32(a, b) + c + carry, ADDED(c))
CHAIN(madc_hi_cc_u64, uint64_t, true, high_u64(a, b) + c + carry, ADDED(c))
CHAIN(madc_hi_cc_s64, uint64_t, true, high_s64(a, b) + c + carry, ADDED(c))
CHAIN_END(madc_lo_32, uint32_t, a *b + c + carry)
CHAIN_END(madc_lo_64, uint64_t, a *b + c + carry)
CHAIN_END(madc_hi_u32, uint32_t, high_u32(a, b) + c + carry)
CHAIN_END(madc_hi_s32, uint32_t, high_s32(a, b) + c + carry)
CHAIN_END(madc_hi_u64, uint64_t, high_u64(a, b) + c + carry)
CHAIN_END(madc_hi_s64, uint64_t, high_s64(a, b) + c + carry)

#define FORMS_SAME(name, opcode, ...)                                                                                  \
    EM_FORM(name##_32, opcode, EM_TYPES(U32), EM_MODIFIERS(__VA_ARGS__)),                                              \
        EM_FORM(name##_32, opcode, EM_TYPES(S32), EM_MODIFIERS(__VA_ARGS__)),                                          \
        EM_FORM(name##_64, opcode, EM_TYPES(U64), EM_MODIFIERS(__VA_ARGS__)),                                          \
        EM_FORM(name##_64, opcode, EM_TYPES(S64), EM_MODIFIERS(__VA_ARGS__))
#define FORMS_APART(name, opcode, ...)                                                                                 \
    EM_FORM(name##_u32, opcode, EM_TYPES(U32), EM_MODIFIERS(__VA_ARGS__)),                                             \
        EM_FORM(name##_s32, opcode, EM_TYPES(S32), EM_MODIFIERS(__VA_ARGS__)),                                         \
        EM_FORM(name##_u64, opcode, EM_TYPES(U64), EM_MODIFIERS(__VA_ARGS__)),                                         \
        EM_FORM(name##_s64, opcode, EM_TYPES(S64), EM_MODIFIERS(__VA_ARGS__))

const em_form EM_ISA_NAME(em_forms_carry)[] = {
    FORMS_SAME(add_cc, ADD, CC),
    FORMS_SAME(addc_cc, ADDC, CC),
    FORMS_SAME(addc, ADDC, NONE),
    FORMS_SAME(sub_cc, SUB, CC),
    FORMS_SAME(subc_cc, SUBC, CC),
    FORMS_SAME(subc, SUBC, NONE),
    FORMS_SAME(mad_lo_cc, MAD, LO, CC),
    FORMS_APART(mad_hi_cc, MAD, HI, CC),
    FORMS_SAME(madc_lo_cc, MADC, LO, CC),
    FORMS_APART(madc_hi_cc, MADC, HI, CC),
    FORMS_SAME(madc_lo, MADC, LO),
    FORMS_APART(madc_hi, MADC, HI),
    EM_FORM_END,
};
