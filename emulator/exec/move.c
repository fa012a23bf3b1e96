/* Moves between rows: copies, changes of width, packing of vectors. Compiled once for each instruction set. */
#include "engine.h"

typedef struct wide {
    _Alignas(16) uint64_t low;
    uint64_t high;
} wide;

/* ---- copies ------------------------------------------------------------------------------------------------------ */

EM_UNARY(copy_0, uint8_t, uint8_t, a)
EM_UNARY(copy_1, uint16_t, uint16_t, a)
EM_UNARY(copy_2, uint32_t, uint32_t, a)
EM_UNARY(copy_3, uint64_t, uint64_t, a)

EM_OP(copy_4)
{
    wide *const to = EM_ROW(wide, insn->d);
    const wide *const from = EM_ROW(wide, insn->a);
    EM_EACH_LANE_OF(full ? EM_ALL_LANES : mask)
    to[lane] = from[lane];
}

EM_OP(copy_predicate)
{
    EM_PUT_PREDICATE(insn->d, EM_PREDICATE(insn->a));
}

EM_OP(not_predicate)
{
    EM_PUT_PREDICATE(insn->d, ~EM_PREDICATE(insn->a));
}

/* ---- changes of width
 * ------------------------------------------------------------------------------------------------- */

#define RESIZE(from, to, A, S, D)                                                                                      \
    EM_UNARY(resize_0_##from##_##to, D, A, a)                                                                          \
    EM_UNARY(resize_1_##from##_##to, D, S, a)

RESIZE(0, 1, uint8_t, int8_t, uint16_t)
RESIZE(0, 2, uint8_t, int8_t, uint32_t)
RESIZE(0, 3, uint8_t, int8_t, uint64_t)
RESIZE(1, 0, uint16_t, int16_t, uint8_t)
RESIZE(1, 2, uint16_t, int16_t, uint32_t)
RESIZE(1, 3, uint16_t, int16_t, uint64_t)
RESIZE(2, 0, uint32_t, int32_t, uint8_t)
RESIZE(2, 1, uint32_t, int32_t, uint16_t)
RESIZE(2, 3, uint32_t, int32_t, uint64_t)
RESIZE(3, 0, uint64_t, int64_t, uint8_t)
RESIZE(3, 1, uint64_t, int64_t, uint16_t)
RESIZE(3, 2, uint64_t, int64_t, uint32_t)

#define WIDEN(from, A, S)                                                                                              \
    EM_OP(resize_0_##from##_4)                                                                                         \
    {                                                                                                                  \
        wide *const to = EM_ROW(wide, insn->d);                                                                        \
        const A *const a = EM_ROW(A, insn->a);                                                                         \
        EM_EACH_LANE_OF(full ? EM_ALL_LANES : mask)                                                                    \
        to[lane] = (wide){a[lane], 0};                                                                                 \
    }                                                                                                                  \
    EM_OP(resize_1_##from##_4)                                                                                         \
    {                                                                                                                  \
        wide *const to = EM_ROW(wide, insn->d);                                                                        \
        const S *const a = EM_ROW(S, insn->a);                                                                         \
        EM_EACH_LANE_OF(full ? EM_ALL_LANES : mask)                                                                    \
        to[lane] = (wide){(uint64_t)(int64_t)a[lane], a[lane] < 0 ? UINT64_MAX : 0};                                   \
    }
WIDEN(0, uint8_t, int8_t)
WIDEN(1, uint16_t, int16_t)
WIDEN(2, uint32_t, int32_t)
WIDEN(3, uint64_t, int64_t)

#define NARROW(to_size, D)                                                                                             \
    EM_OP(resize_0_4_##to_size)                                                                                        \
    {                                                                                                                  \
        D *const to = EM_ROW(D, insn->d);                                                                              \
        const wide *const a = EM_ROW(wide, insn->a);                                                                   \
        EM_EACH_LANE_OF(full ? EM_ALL_LANES : mask)                                                                    \
        to[lane] = (D)a[lane].low;                                                                                     \
    }
NARROW(0, uint8_t)
NARROW(1, uint16_t)
NARROW(2, uint32_t)
NARROW(3, uint64_t)

/* ---- addresses
 * ------------------------------------------------------------------------------------------------------------ */

EM_UNARY(add_immediate_2, uint32_t, uint32_t, a + (uint32_t)insn->imm)
EM_UNARY(add_immediate_3, uint64_t, uint64_t, a + (uint64_t)insn->imm)
EM_UNARY(narrow_address, uint32_t, uint64_t, a > UINT32_MAX ? UINT32_MAX : a)

EM_OP(in_window)
{
    const uint64_t *const a = EM_ROW(uint64_t, insn->a);
    const uint64_t base = (uint64_t)insn->imm;
    em_mask results = 0;
    EM_EACH_LANE
    {
        results |= (em_mask)(a[lane] - base < EM_WINDOW_BYTES ? 1 : 0) << lane;
    }
    EM_PUT_PREDICATE(insn->d, results);
}

EM_OP(in_no_window)
{
    const uint64_t *const a = EM_ROW(uint64_t, insn->a);
    em_mask results = 0;
    EM_EACH_LANE
    {
        results |= (em_mask)(a[lane] < EM_SHARED_WINDOW ? 1 : 0) << lane;
    }
    EM_PUT_PREDICATE(insn->d, results);
}

/* ---- vectors: mov.b64 %rd, {%r1, %r2} and back
 * ------------------------------------------------------------------------------- */

#define PACK2(size, D, T)                                                                                              \
    EM_BINARY(pack_##size##_2, D, T, T, (D)a | (D)((D)b << (8 * sizeof(T))))                                           \
    EM_OP(unpack_##size##_2)                                                                                           \
    {                                                                                                                  \
        T *const low = EM_ROW(T, insn->d), *const high = EM_ROW(T, insn->e);                                           \
        const D *const a = EM_ROW(D, insn->a);                                                                         \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const D value = a[lane];                                                                                   \
            EM_PUT(low, (T)value);                                                                                     \
            EM_PUT(high, (T)(value >> (8 * sizeof(T))));                                                               \
        }                                                                                                              \
    }
PACK2(0, uint16_t, uint8_t)
PACK2(1, uint32_t, uint16_t)
PACK2(2, uint64_t, uint32_t)

#define PACK4(size, D, T)                                                                                              \
    EM_OP(pack_##size##_4)                                                                                             \
    {                                                                                                                  \
        D *const d = EM_ROW(D, insn->d);                                                                               \
        const T *const a = EM_ROW(T, insn->a), *const b = EM_ROW(T, insn->b), *const c = EM_ROW(T, insn->c),           \
                       *const f = EM_ROW(T, insn->f);                                                                  \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            EM_PUT(d, (D)a[lane] | (D)b[lane] << (8 * sizeof(T)) | (D)c[lane] << (16 * sizeof(T)) |                    \
                          (D)f[lane] << (24 * sizeof(T)));                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    EM_OP(unpack_##size##_4)                                                                                           \
    {                                                                                                                  \
        T *const d = EM_ROW(T, insn->d), *const e = EM_ROW(T, insn->e), *const b = EM_ROW(T, insn->b),                 \
                 *const c = EM_ROW(T, insn->c);                                                                        \
        const D *const a = EM_ROW(D, insn->a);                                                                         \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const D value = a[lane];                                                                                   \
            EM_PUT(d, (T)value);                                                                                       \
            EM_PUT(e, (T)(value >> (8 * sizeof(T))));                                                                  \
            EM_PUT(b, (T)(value >> (16 * sizeof(T))));                                                                 \
            EM_PUT(c, (T)(value >> (24 * sizeof(T))));                                                                 \
        }                                                                                                              \
    }
PACK4(0, uint32_t, uint8_t)
PACK4(1, uint64_t, uint16_t)

EM_OP(pack_3_2)
{
    wide *const d = EM_ROW(wide, insn->d);
    const uint64_t *const a = EM_ROW(uint64_t, insn->a), *const b = EM_ROW(uint64_t, insn->b);
    EM_EACH_LANE_OF(full ? EM_ALL_LANES : mask)
    d[lane] = (wide){a[lane], b[lane]};
}

EM_OP(unpack_3_2)
{
    uint64_t *const d = EM_ROW(uint64_t, insn->d), *const e = EM_ROW(uint64_t, insn->e);
    const wide *const a = EM_ROW(wide, insn->a);
    EM_EACH_LANE_OF(full ? EM_ALL_LANES : mask)
    {
        const wide value = a[lane];
        d[lane] = value.low;
        e[lane] = value.high;
    }
}

EM_OP(pack_2_4)
{
    wide *const d = EM_ROW(wide, insn->d);
    const uint32_t *const a = EM_ROW(uint32_t, insn->a), *const b = EM_ROW(uint32_t, insn->b),
                          *const c = EM_ROW(uint32_t, insn->c), *const f = EM_ROW(uint32_t, insn->f);
    EM_EACH_LANE_OF(full ? EM_ALL_LANES : mask)
    d[lane] = (wide){a[lane] | (uint64_t)b[lane] << 32, c[lane] | (uint64_t)f[lane] << 32};
}

EM_OP(unpack_2_4)
{
    uint32_t *const d = EM_ROW(uint32_t, insn->d), *const e = EM_ROW(uint32_t, insn->e),
                    *const b = EM_ROW(uint32_t, insn->b), *const c = EM_ROW(uint32_t, insn->c);
    const wide *const a = EM_ROW(wide, insn->a);
    EM_EACH_LANE_OF(full ? EM_ALL_LANES : mask)
    {
        const wide value = a[lane];
        d[lane] = (uint32_t)value.low;
        e[lane] = (uint32_t)(value.low >> 32);
        b[lane] = (uint32_t)value.high;
        c[lane] = (uint32_t)(value.high >> 32);
    }
}

/* ---- the table
 * ---------------------------------------------------------------------------------------------------------------- */

#define PAIR(name)                                                                                                     \
    {                                                                                                                  \
        name##_full, name##_masked                                                                                     \
    }
const em_move_table EM_ISA_NAME(em_move) = {
    .copy = {PAIR(copy_0), PAIR(copy_1), PAIR(copy_2), PAIR(copy_3), PAIR(copy_4)},
    .copy_predicate = PAIR(copy_predicate),
    .resize = {{{{0}, PAIR(resize_0_0_1), PAIR(resize_0_0_2), PAIR(resize_0_0_3), PAIR(resize_0_0_4)},
                {PAIR(resize_0_1_0), {0}, PAIR(resize_0_1_2), PAIR(resize_0_1_3), PAIR(resize_0_1_4)},
                {PAIR(resize_0_2_0), PAIR(resize_0_2_1), {0}, PAIR(resize_0_2_3), PAIR(resize_0_2_4)},
                {PAIR(resize_0_3_0), PAIR(resize_0_3_1), PAIR(resize_0_3_2), {0}, PAIR(resize_0_3_4)},
                {PAIR(resize_0_4_0), PAIR(resize_0_4_1), PAIR(resize_0_4_2), PAIR(resize_0_4_3), {0}}},
               {{{0}, PAIR(resize_1_0_1), PAIR(resize_1_0_2), PAIR(resize_1_0_3), PAIR(resize_1_0_4)},
                {PAIR(resize_1_1_0), {0}, PAIR(resize_1_1_2), PAIR(resize_1_1_3), PAIR(resize_1_1_4)},
                {PAIR(resize_1_2_0), PAIR(resize_1_2_1), {0}, PAIR(resize_1_2_3), PAIR(resize_1_2_4)},
                {PAIR(resize_1_3_0), PAIR(resize_1_3_1), PAIR(resize_1_3_2), {0}, PAIR(resize_1_3_4)},
                {PAIR(resize_0_4_0), PAIR(resize_0_4_1), PAIR(resize_0_4_2), PAIR(resize_0_4_3), {0}}}},
    .not_predicate = PAIR(not_predicate),
    .add_immediate = {PAIR(add_immediate_2), PAIR(add_immediate_3)},
    .narrow_address = PAIR(narrow_address),
    .pack = {{PAIR(pack_0_2), PAIR(pack_0_4)},
             {PAIR(pack_1_2), PAIR(pack_1_4)},
             {PAIR(pack_2_2), PAIR(pack_2_4)},
             {PAIR(pack_3_2)}},
    .unpack = {{PAIR(unpack_0_2), PAIR(unpack_0_4)},
               {PAIR(unpack_1_2), PAIR(unpack_1_4)},
               {PAIR(unpack_2_2), PAIR(unpack_2_4)},
               {PAIR(unpack_3_2)}},
    .in_window = PAIR(in_window),
    .in_no_window = PAIR(in_no_window),
};
