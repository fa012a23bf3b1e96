/* atom and red: real atomics of the host, plain operations where nothing else runs. Lanes go in order.
 *
 * The order and scope words are taken as the strongest there is. `red` is `atom` whose result goes to the frame's
 * scratch row. */
#include "op.h"
#include "values.h"
#include "engine.h"

/* Whether a lane's bytes are in shared memory, however its address was spelt. */
EM_INLINE bool is_shared(const em_warp *warp, const void *pointer)
{
    return (uint64_t)((const unsigned char *)pointer - warp->shared) < warp->shared_bytes;
}

/* `next` is made of `old` and the operands b and c. */
#define ATOMIC(name, T, expression)                                                                                    \
    EM_OP_STATUS(name)                                                                                                 \
    {                                                                                                                  \
        const em_status status = em_locate(insn, rows, warp, mask, sizeof(T), EM_READ_WRITE);                          \
        if (status != EM_GO)                                                                                           \
            return status;                                                                                             \
        warp->fuel -= EM_FUEL_OF_SPINNING;                                                                             \
        T *const d_row = EM_ROW(T, insn->d);                                                                           \
        const T *const b_row = EM_ROW(T, insn->b);                                                                     \
        const T *const c_row = EM_ROW(T, insn->c);                                                                     \
        const bool alone = warp->alone;                                                                                \
        EM_EACH_LANE_OF(mask)                                                                                          \
        {                                                                                                              \
            T *const pointer = (T *)(void *)warp->pointers[lane];                                                      \
            const T b = b_row[lane], c = c_row[lane];                                                                  \
            T old = __atomic_load_n(pointer, __ATOMIC_RELAXED), next = (T)(expression);                                \
            if (alone) {                                                                                               \
                *pointer = next;                                                                                       \
            } else {                                                                                                   \
                while (!__atomic_compare_exchange_n(pointer, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))   \
                    next = (T)(expression);                                                                            \
            }                                                                                                          \
            (void)b;                                                                                                   \
            (void)c;                                                                                                   \
            d_row[lane] = old;                                                                                         \
        }                                                                                                              \
        return EM_GO;                                                                                                  \
    }

/* Where the host has the operation itself. */
#define ATOMIC_DIRECT(name, T, function, expression)                                                                   \
    EM_OP_STATUS(name)                                                                                                 \
    {                                                                                                                  \
        const em_status status = em_locate(insn, rows, warp, mask, sizeof(T), EM_READ_WRITE);                          \
        if (status != EM_GO)                                                                                           \
            return status;                                                                                             \
        warp->fuel -= EM_FUEL_OF_SPINNING;                                                                             \
        T *const d_row = EM_ROW(T, insn->d);                                                                           \
        const T *const b_row = EM_ROW(T, insn->b);                                                                     \
        const bool alone = warp->alone;                                                                                \
        EM_EACH_LANE_OF(mask)                                                                                          \
        {                                                                                                              \
            T *const pointer = (T *)(void *)warp->pointers[lane];                                                      \
            const T b = b_row[lane];                                                                                   \
            T old;                                                                                                     \
            if (alone) {                                                                                               \
                old = *pointer;                                                                                        \
                *pointer = (T)(expression);                                                                            \
            } else {                                                                                                   \
                old = function(pointer, b, __ATOMIC_SEQ_CST);                                                          \
            }                                                                                                          \
            d_row[lane] = old;                                                                                         \
        }                                                                                                              \
        return EM_GO;                                                                                                  \
    }

/* ---- integers --------------------------------------------------------------------------------------------------- */

#define LESSER(T, x, y)  ((T)(x) < (T)(y) ? (x) : (y))
#define GREATER(T, x, y) ((T)(x) > (T)(y) ? (x) : (y))

ATOMIC_DIRECT(atom_add_32, uint32_t, __atomic_fetch_add, old + b)
ATOMIC_DIRECT(atom_add_64, uint64_t, __atomic_fetch_add, old + b)
ATOMIC_DIRECT(atom_and_32, uint32_t, __atomic_fetch_and, old &b)
ATOMIC_DIRECT(atom_and_64, uint64_t, __atomic_fetch_and, old &b)
ATOMIC_DIRECT(atom_or_32, uint32_t, __atomic_fetch_or, old | b)
ATOMIC_DIRECT(atom_or_64, uint64_t, __atomic_fetch_or, old | b)
ATOMIC_DIRECT(atom_xor_32, uint32_t, __atomic_fetch_xor, old ^ b)
ATOMIC_DIRECT(atom_xor_64, uint64_t, __atomic_fetch_xor, old ^ b)
ATOMIC_DIRECT(atom_exch_32, uint32_t, __atomic_exchange_n, b)
ATOMIC_DIRECT(atom_exch_64, uint64_t, __atomic_exchange_n, b)
ATOMIC(atom_min_u32, uint32_t, LESSER(uint32_t, old, b))
ATOMIC(atom_min_s32, uint32_t, LESSER(int32_t, old, b))
ATOMIC(atom_min_u64, uint64_t, LESSER(uint64_t, old, b))
ATOMIC(atom_min_s64, uint64_t, LESSER(int64_t, old, b))
ATOMIC(atom_max_u32, uint32_t, GREATER(uint32_t, old, b))
ATOMIC(atom_max_s32, uint32_t, GREATER(int32_t, old, b))
ATOMIC(atom_max_u64, uint64_t, GREATER(uint64_t, old, b))
ATOMIC(atom_max_s64, uint64_t, GREATER(int64_t, old, b))
ATOMIC(atom_inc, uint32_t, old >= b ? 0u : old + 1u)
ATOMIC(atom_dec, uint32_t, old == 0 || old > b ? b : old - 1u)
ATOMIC(atom_cas_16, uint16_t, old == b ? c : old)
ATOMIC(atom_cas_32, uint32_t, old == b ? c : old)
ATOMIC(atom_cas_64, uint64_t, old == b ? c : old)

/* ---- floats ----------------------------------------------------------------------------------------------------- */

/* f32 in global memory is flushed, operands and sum, in shared memory it is not. f64 in global memory hands a NaN on
 * as it is, the operand's before the one in memory; in shared memory memory's first, quieted. */
EM_INLINE uint32_t add_f32(uint32_t old, uint32_t b, bool shared)
{
    if (shared)
        return em_bits_of_float(em_canonical(em_float_of(old) + em_float_of(b)));
    const float sum = em_canonical(em_float_of(em_flush_bits(old)) + em_float_of(em_flush_bits(b)));
    return em_flush_bits(em_bits_of_float(sum));
}

EM_INLINE bool is_nan_f64(uint64_t bits)
{
    return (bits & 0x7fffffffffffffffull) > 0x7ff0000000000000ull;
}

EM_INLINE uint64_t add_f64(uint64_t old, uint64_t b, bool shared)
{
    const uint64_t quiet = 0x0008000000000000ull;
    if (is_nan_f64(old) || is_nan_f64(b)) {
        if (shared)
            return (is_nan_f64(old) ? old : b) | quiet;
        return is_nan_f64(b) ? b : old;
    }
    const double sum = em_double_of(old) + em_double_of(b);
    return sum == sum ? em_bits_of_double(sum) : EM_F64_NAN;
}

ATOMIC(atom_add_f32, uint32_t, add_f32(old, b, is_shared(warp, pointer)))
ATOMIC(atom_add_f64, uint64_t, add_f64(old, b, is_shared(warp, pointer)))

EM_INLINE float chosen(ptx_modifier operation, float a, float b)
{
    return operation == PTX_MOD_ADD ? a + b : operation == PTX_MOD_MIN ? em_lesser(a, b) : em_greater(a, b);
}

EM_INLINE uint32_t joined_f16(ptx_modifier operation, uint32_t a, uint32_t b)
{
    const float value = chosen(operation, em_float_of_f16((uint16_t)a), em_float_of_f16((uint16_t)b));
    return em_f16_of_float(value, EM_ROUND_NEAREST);
}

EM_INLINE uint32_t joined_bf16(ptx_modifier operation, uint32_t a, uint32_t b)
{
    const float value = chosen(operation, em_float_of_bf16((uint16_t)a), em_float_of_bf16((uint16_t)b));
    return em_bf16_of_float(value, EM_ROUND_NEAREST);
}

#define ATOMIC_HALVES(name, operation)                                                                                 \
    ATOMIC(name##_f16, uint16_t, joined_f16(operation, old, b))                                                        \
    ATOMIC(name##_bf16, uint16_t, joined_bf16(operation, old, b))                                                      \
    ATOMIC(name##_f16x2, uint32_t, joined_f16(operation, old, b) | joined_f16(operation, old >> 16, b >> 16) << 16)    \
    ATOMIC(name##_bf16x2, uint32_t, joined_bf16(operation, old, b) | joined_bf16(operation, old >> 16, b >> 16) << 16)
ATOMIC_HALVES(atom_add, PTX_MOD_ADD)
ATOMIC_HALVES(atom_min, PTX_MOD_MIN)
ATOMIC_HALVES(atom_max, PTX_MOD_MAX)

/* ---- 128 bits --------------------------------------------------------------------------------------------------- */

typedef unsigned __int128 wide;

static wide exchanged_wide(wide *pointer, wide expected, wide desired)
{
    return __sync_val_compare_and_swap(pointer, expected, desired);
}

EM_OP_STATUS(atom_cas_128)
{
    const em_status status = em_locate(insn, rows, warp, mask, sizeof(wide), EM_READ_WRITE);
    if (status != EM_GO)
        return status;
    warp->fuel -= EM_FUEL_OF_SPINNING;
    EM_EACH_LANE_OF(mask)
    {
        wide expected, desired;
        memcpy(&expected, rows + insn->b + 16 * lane, sizeof expected);
        memcpy(&desired, rows + insn->c + 16 * lane, sizeof desired);
        const wide old = exchanged_wide((wide *)(void *)warp->pointers[lane], expected, desired);
        memcpy(rows + insn->d + 16 * lane, &old, sizeof old);
    }
    return EM_GO;
}

EM_OP_STATUS(atom_exch_128)
{
    const em_status status = em_locate(insn, rows, warp, mask, sizeof(wide), EM_READ_WRITE);
    if (status != EM_GO)
        return status;
    warp->fuel -= EM_FUEL_OF_SPINNING;
    EM_EACH_LANE_OF(mask)
    {
        wide *const pointer = (wide *)(void *)warp->pointers[lane];
        wide desired, seen = 0;
        memcpy(&desired, rows + insn->b + 16 * lane, sizeof desired);
        wide old = exchanged_wide(pointer, seen, seen); /* reads: writes nothing but a zero over a zero */
        do {
            seen = old;
            old = exchanged_wide(pointer, seen, desired);
        } while (old != seen);
        memcpy(rows + insn->d + 16 * lane, &old, sizeof old);
    }
    return EM_GO;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define FORM(name, type, ...)                                                                                          \
    EM_FORM_ONE(name, ATOM, EM_TYPES(type), EM_MODIFIERS(__VA_ARGS__)),                                                \
        EM_FORM_ONE(name, RED, EM_TYPES(type), EM_MODIFIERS(__VA_ARGS__))
#define FORMS_HALVES(name, word)                                                                                       \
    FORM(name##_f16, F16, word, NOFTZ), FORM(name##_bf16, BF16, word, NOFTZ), FORM(name##_f16x2, F16X2, word, NOFTZ),  \
        FORM(name##_bf16x2, BF16X2, word, NOFTZ)

const em_form EM_ISA_NAME(em_forms_atomic)[] = {
    FORM(atom_add_32, U32, ADD),   FORM(atom_add_32, S32, ADD),   FORM(atom_add_64, U64, ADD),
    FORM(atom_add_64, S64, ADD),   FORM(atom_add_f32, F32, ADD),  FORM(atom_add_f64, F64, ADD),
    FORM(atom_and_32, B32, AND),   FORM(atom_and_64, B64, AND),   FORM(atom_or_32, B32, OR),
    FORM(atom_or_64, B64, OR),     FORM(atom_xor_32, B32, XOR),   FORM(atom_xor_64, B64, XOR),
    FORM(atom_exch_32, B32, EXCH), FORM(atom_exch_64, B64, EXCH), FORM(atom_exch_128, B128, EXCH),
    FORM(atom_min_u32, U32, MIN),  FORM(atom_min_s32, S32, MIN),  FORM(atom_min_u64, U64, MIN),
    FORM(atom_min_s64, S64, MIN),  FORM(atom_max_u32, U32, MAX),  FORM(atom_max_s32, S32, MAX),
    FORM(atom_max_u64, U64, MAX),  FORM(atom_max_s64, S64, MAX),  FORM(atom_inc, U32, INC),
    FORM(atom_dec, U32, DEC),      FORM(atom_cas_16, B16, CAS),   FORM(atom_cas_32, B32, CAS),
    FORM(atom_cas_64, B64, CAS),   FORM(atom_cas_128, B128, CAS), FORMS_HALVES(atom_add, ADD),
    FORMS_HALVES(atom_min, MIN),   FORMS_HALVES(atom_max, MAX),   EM_FORM_END,
};
