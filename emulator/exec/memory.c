/* Loads and stores of a warp. Compiled once for each instruction set.
 *
 * The quick ways: all 32 lanes at consecutive addresses, or all at one, inside the range that this instruction hit
 * last. Anything else (masks, mixed ranges, local memory, faults) goes through em_locate, one lane at a time. */
#include "engine.h"

typedef struct wide {
    _Alignas(16) uint64_t low, high;
} wide;

typedef uint8_t type_0;
typedef uint16_t type_1;
typedef uint32_t type_2;
typedef uint64_t type_3;
typedef wide type_4;

/* ---- where all 32 lanes look ------------------------------------------------------------------------------------- */

typedef enum layout { CONSECUTIVE, SAME, SCATTERED, UNKNOWN } layout;

/* UNKNOWN: ask em_locate. SCATTERED: warp->pointers is set. Otherwise *first is lane 0's place. */
static inline __attribute__((always_inline)) layout look_flat(const em_insn *insn, unsigned char *rows, em_warp *warp,
                                                              const uint32_t size, unsigned char **first)
{
    const uint64_t *addresses = EM_ROW(uint64_t, insn->a);
    const em_slot *slot = &warp->slots[insn->slot];
    const uint64_t start = addresses[0], displacement = (uint64_t)insn->imm;
    uint64_t apart = 0, differ = 0;
    EM_EACH_LANE
    {
        const uint64_t distance = addresses[lane] - start;
        apart |= distance ^ (uint64_t)((uint32_t)lane * size);
        differ |= distance;
    }
    const uint64_t offset = start + displacement - slot->base;
    *first = (unsigned char *)(uintptr_t)(start + displacement);
    if (__builtin_expect(apart == 0 || differ == 0, 1)) {
        const uint64_t span = apart == 0 ? (uint64_t)size * EM_LANES : size;
        if (__builtin_expect(offset < slot->size && slot->size - offset >= span &&
                                 ((start + displacement) & (size - 1)) == 0 &&
                                 atomic_load_explicit(slot->live, memory_order_relaxed),
                             1))
            return apart == 0 ? CONSECUTIVE : SAME;
        return UNKNOWN;
    }
    if (slot->size < size || !atomic_load_explicit(slot->live, memory_order_relaxed))
        return UNKNOWN;
    uint64_t uneven = 0, outside = 0;
    const uint64_t base = slot->base, last = slot->size - size;
    EM_EACH_LANE
    {
        const uint64_t address = addresses[lane] + displacement;
        uneven |= address;
        outside |= address - base > last ? 1 : 0;
        warp->pointers[lane] = (unsigned char *)(uintptr_t)address;
    }
    return (uneven & (size - 1)) == 0 && outside == 0 ? SCATTERED : UNKNOWN;
}

static inline __attribute__((always_inline)) layout look_shared(const em_insn *insn, unsigned char *rows, em_warp *warp,
                                                                const uint32_t size, unsigned char **first)
{
    const uint32_t *addresses = EM_ROW(uint32_t, insn->a);
    const uint32_t start = addresses[0], displacement = (uint32_t)insn->imm;
    uint32_t apart = 0, differ = 0;
    EM_EACH_LANE
    {
        const uint32_t distance = addresses[lane] - start;
        apart |= distance ^ ((uint32_t)lane * size);
        differ |= distance;
    }
    const uint32_t offset = start + displacement;
    *first = warp->shared + offset;
    if (__builtin_expect(apart == 0 || differ == 0, 1)) {
        const uint64_t span = apart == 0 ? (uint64_t)size * EM_LANES : size;
        if (__builtin_expect(offset + span <= warp->shared_bytes && (offset & (size - 1)) == 0, 1))
            return apart == 0 ? CONSECUTIVE : SAME;
        return UNKNOWN;
    }
    if (warp->shared_bytes < size)
        return UNKNOWN;
    uint32_t uneven = 0, outside = 0;
    const uint32_t last = (uint32_t)(warp->shared_bytes - size);
    unsigned char *const shared = warp->shared;
    EM_EACH_LANE
    {
        const uint32_t address = addresses[lane] + displacement;
        uneven |= address;
        outside |= address > last ? 1 : 0;
        warp->pointers[lane] = shared + address;
    }
    return (uneven & (size - 1)) == 0 && outside == 0 ? SCATTERED : UNKNOWN;
}

/* ---- elements ------------------------------------------------------------------------------------------------------- */

/* Row of element `index` of a vector. */
static inline uint32_t element_row(const em_insn *insn, unsigned index)
{
    if (index >= 4)
        insn++;
    switch (index & 3) {
    case 0:
        return insn->d;
    case 1:
        return insn->e;
    case 2:
        return insn->b;
    default:
        return insn->c;
    }
}

#define ELEMENTS(T, count)                                                                                             \
    T *row[count];                                                                                                     \
    for (unsigned n = 0; n < (count); n++)                                                                             \
    row[n] = EM_ROW(T, element_row(insn, n))

#define CONTINUE(count) return insn[(count) == 8 ? 2 : 1].run(insn + ((count) == 8 ? 2 : 1), rows, warp, mask)

/* The general way: any lanes, any path. `strong`: each element by one host access, in order. */
#define GENERAL(T, size, count)                                                                                        \
    static em_status load_general_##size##_##count(const em_insn *insn, unsigned char *rows, em_warp *warp,            \
                                                   em_mask acting)                                                     \
    {                                                                                                                  \
        const em_status status = em_locate(insn, rows, warp, acting, sizeof(T) * (count), EM_READ);                    \
        if (status != EM_GO)                                                                                           \
            return status;                                                                                             \
        ELEMENTS(T, count);                                                                                            \
        EM_EACH_LANE_OF(acting)                                                                                        \
        {                                                                                                              \
            const T *from = (const T *)(const void *)warp->pointers[lane];                                             \
            for (unsigned n = 0; n < (count); n++)                                                                     \
                row[n][lane] = *(const volatile T *)&from[n];                                                          \
        }                                                                                                              \
        return EM_GO;                                                                                                  \
    }                                                                                                                  \
    static em_status store_general_##size##_##count(const em_insn *insn, unsigned char *rows, em_warp *warp,           \
                                                    em_mask acting)                                                    \
    {                                                                                                                  \
        const em_status status = em_locate(insn, rows, warp, acting, sizeof(T) * (count), EM_WRITE);                   \
        if (status != EM_GO)                                                                                           \
            return status;                                                                                             \
        ELEMENTS(T, count);                                                                                            \
        EM_EACH_LANE_OF(acting)                                                                                        \
        {                                                                                                              \
            T *to = (T *)(void *)warp->pointers[lane];                                                                 \
            for (unsigned n = 0; n < (count); n++)                                                                     \
                *(volatile T *)&to[n] = row[n][lane];                                                                  \
        }                                                                                                              \
        return EM_GO;                                                                                                  \
    }                                                                                                                  \
    EM_HANDLER(load_general_##size##_##count##_masked)                                                                 \
    {                                                                                                                  \
        const em_status status =                                                                                       \
            load_general_##size##_##count(insn, rows, warp, em_guarded(insn, rows, mask));                             \
        if (__builtin_expect(status != EM_GO, 0))                                                                      \
            return status;                                                                                             \
        CONTINUE(count);                                                                                               \
    }                                                                                                                  \
    EM_HANDLER(store_general_##size##_##count##_masked)                                                                \
    {                                                                                                                  \
        const em_status status =                                                                                       \
            store_general_##size##_##count(insn, rows, warp, em_guarded(insn, rows, mask));                            \
        if (__builtin_expect(status != EM_GO, 0))                                                                      \
            return status;                                                                                             \
        CONTINUE(count);                                                                                               \
    }                                                                                                                  \
    EM_HANDLER(load_strong_##size##_##count##_masked)                                                                  \
    {                                                                                                                  \
        warp->fuel -= EM_FUEL_OF_SPINNING;                                                                             \
        const em_status status =                                                                                       \
            load_general_##size##_##count(insn, rows, warp, em_guarded(insn, rows, mask));                             \
        if (__builtin_expect(status != EM_GO, 0))                                                                      \
            return status;                                                                                             \
        atomic_thread_fence(memory_order_acquire);                                                                     \
        CONTINUE(count);                                                                                               \
    }                                                                                                                  \
    EM_HANDLER(store_strong_##size##_##count##_masked)                                                                 \
    {                                                                                                                  \
        atomic_thread_fence(memory_order_release);                                                                     \
        const em_status status =                                                                                       \
            store_general_##size##_##count(insn, rows, warp, em_guarded(insn, rows, mask));                            \
        if (__builtin_expect(status != EM_GO, 0))                                                                      \
            return status;                                                                                             \
        CONTINUE(count);                                                                                               \
    }

/* The quick ways, for the full table. */
#define QUICK(T, size, count, path)                                                                                    \
    EM_HANDLER(load_##path##_##size##_##count##_full)                                                                  \
    {                                                                                                                  \
        unsigned char *first = NULL;                                                                                   \
        const layout found = mask != EM_ALL_LANES                                                                      \
                                 ? UNKNOWN                                                                             \
                                 : look_##path(insn, rows, warp, (uint32_t)sizeof(T) * (count), &first);               \
        const T *from = (const T *)(const void *)first;                                                                \
        if (__builtin_expect(found == CONSECUTIVE, 1)) {                                                               \
            ELEMENTS(T, count);                                                                                        \
            EM_EACH_LANE                                                                                               \
            {                                                                                                          \
                for (unsigned n = 0; n < (count); n++)                                                                 \
                    row[n][lane] = from[(unsigned)lane * (count) + n];                                                 \
            }                                                                                                          \
        } else if (found == SAME) {                                                                                    \
            for (unsigned n = 0; n < (count); n++) {                                                                   \
                T *const to = EM_ROW(T, element_row(insn, n));                                                         \
                const T value = from[n];                                                                               \
                EM_EACH_LANE                                                                                           \
                {                                                                                                      \
                    to[lane] = value;                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        } else if (found == SCATTERED) {                                                                               \
            for (unsigned n = 0; n < (count); n++) {                                                                   \
                T *const to = EM_ROW(T, element_row(insn, n));                                                         \
                for (unsigned lane = 0; lane < EM_LANES; lane++)                                                       \
                    to[lane] = ((const T *)(const void *)warp->pointers[lane])[n];                                     \
            }                                                                                                          \
        } else {                                                                                                       \
            const em_status status = load_general_##size##_##count(insn, rows, warp, mask);                            \
            if (__builtin_expect(status != EM_GO, 0))                                                                  \
                return status;                                                                                         \
        }                                                                                                              \
        CONTINUE(count);                                                                                               \
    }                                                                                                                  \
    EM_HANDLER(store_##path##_##size##_##count##_full)                                                                 \
    {                                                                                                                  \
        unsigned char *first = NULL;                                                                                   \
        const layout found = mask != EM_ALL_LANES                                                                      \
                                 ? UNKNOWN                                                                             \
                                 : look_##path(insn, rows, warp, (uint32_t)sizeof(T) * (count), &first);               \
        T *to = (T *)(void *)first;                                                                                    \
        if (__builtin_expect(found == CONSECUTIVE, 1)) {                                                               \
            ELEMENTS(T, count);                                                                                        \
            EM_EACH_LANE                                                                                               \
            {                                                                                                          \
                for (unsigned n = 0; n < (count); n++)                                                                 \
                    to[(unsigned)lane * (count) + n] = row[n][lane];                                                   \
            }                                                                                                          \
        } else if (found == SCATTERED) {                                                                               \
            for (unsigned n = 0; n < (count); n++) {                                                                   \
                const T *const from = EM_ROW(T, element_row(insn, n));                                                 \
                for (unsigned lane = 0; lane < EM_LANES; lane++)                                                       \
                    ((T *)(void *)warp->pointers[lane])[n] = from[lane];                                               \
            }                                                                                                          \
        } else if (found == SAME) {                                                                                    \
            for (unsigned n = 0; n < (count); n++)                                                                     \
                to[n] = EM_ROW(T, element_row(insn, n))[EM_LANES - 1];                                                 \
        } else {                                                                                                       \
            const em_status status = store_general_##size##_##count(insn, rows, warp, mask);                           \
            if (__builtin_expect(status != EM_GO, 0))                                                                  \
                return status;                                                                                         \
        }                                                                                                              \
        CONTINUE(count);                                                                                               \
    }

#define EACH_SHAPE(DO)                                                                                                 \
    DO(type_0, 0, 1)                                                                                                   \
    DO(type_0, 0, 2)                                                                                                   \
    DO(type_0, 0, 4)                                                                                                   \
    DO(type_0, 0, 8)                                                                                                   \
    DO(type_1, 1, 1)                                                                                                   \
    DO(type_1, 1, 2)                                                                                                   \
    DO(type_1, 1, 4)                                                                                                   \
    DO(type_1, 1, 8)                                                                                                   \
    DO(type_2, 2, 1)                                                                                                   \
    DO(type_2, 2, 2)                                                                                                   \
    DO(type_2, 2, 4)                                                                                                   \
    DO(type_2, 2, 8)                                                                                                   \
    DO(type_3, 3, 1)                                                                                                   \
    DO(type_3, 3, 2)                                                                                                   \
    DO(type_3, 3, 4)                                                                                                   \
    DO(type_4, 4, 1)

EACH_SHAPE(GENERAL)

#define EACH_QUICK(DO, path)                                                                                           \
    DO(type_0, 0, 1, path)                                                                                             \
    DO(type_1, 1, 1, path)                                                                                             \
    DO(type_2, 2, 1, path)                                                                                             \
    DO(type_2, 2, 2, path)                                                                                             \
    DO(type_2, 2, 4, path)                                                                                             \
    DO(type_3, 3, 1, path)                                                                                             \
    DO(type_3, 3, 2, path)

EACH_QUICK(QUICK, flat)
EACH_QUICK(QUICK, shared)

/* ---- parameters of a kernel --------------------------------------------------------------------------------------------- */

#define PARAMETER(T, size)                                                                                             \
    EM_OP(load_parameter_##size)                                                                                       \
    {                                                                                                                  \
        T value;                                                                                                       \
        memcpy(&value, warp->block->grid->parameters + insn->imm, sizeof value);                                       \
        T *const to = EM_ROW(T, insn->d);                                                                              \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            EM_PUT(to, value);                                                                                         \
        }                                                                                                              \
    }
PARAMETER(type_0, 0)
PARAMETER(type_1, 1)
PARAMETER(type_2, 2)
PARAMETER(type_3, 3)

EM_OP(load_parameter_4)
{
    wide *const to = EM_ROW(wide, insn->d);
    EM_EACH_LANE_OF(mask)
    memcpy(&to[lane], warp->block->grid->parameters + insn->imm, sizeof(wide));
}

/* ---- the table -------------------------------------------------------------------------------------------------------------- */

#define AT(count) ((count) == 1 ? 0 : (count) == 2 ? 1 : (count) == 4 ? 2 : 3)
#define LOAD_ROW(T, size, count) [size][AT(count)] = {load_general_##size##_##count##_masked,                          \
                                                      load_general_##size##_##count##_masked},
#define STORE_ROW(T, size, count) [size][AT(count)] = {store_general_##size##_##count##_masked,                        \
                                                       store_general_##size##_##count##_masked},
#define LOAD_STRONG_ROW(T, size, count) [size][AT(count)] = {load_strong_##size##_##count##_masked,                    \
                                                             load_strong_##size##_##count##_masked},
#define STORE_STRONG_ROW(T, size, count) [size][AT(count)] = {store_strong_##size##_##count##_masked,                  \
                                                              store_strong_##size##_##count##_masked},
#define QUICK_LOAD_ROW(T, size, count, path)                                                                           \
    [size][AT(count)] = {load_##path##_##size##_##count##_full, load_general_##size##_##count##_masked},
#define QUICK_STORE_ROW(T, size, count, path)                                                                          \
    [size][AT(count)] = {store_##path##_##size##_##count##_full, store_general_##size##_##count##_masked},
#define SLOW_ROW(row)                                                                                                  \
    row(type_0, 0, 2) row(type_0, 0, 4) row(type_0, 0, 8) row(type_1, 1, 2) row(type_1, 1, 4) row(type_1, 1, 8)        \
        row(type_2, 2, 8) row(type_3, 3, 4) row(type_4, 4, 1)

const em_memory_table EM_ISA_NAME(em_memory)= {
    .load = {[EM_PATH_FLAT] = {EACH_QUICK(QUICK_LOAD_ROW, flat) SLOW_ROW(LOAD_ROW)},
             [EM_PATH_SHARED] = {EACH_QUICK(QUICK_LOAD_ROW, shared) SLOW_ROW(LOAD_ROW)},
             [EM_PATH_LOCAL] = {EACH_SHAPE(LOAD_ROW)}},
    .store = {[EM_PATH_FLAT] = {EACH_QUICK(QUICK_STORE_ROW, flat) SLOW_ROW(STORE_ROW)},
              [EM_PATH_SHARED] = {EACH_QUICK(QUICK_STORE_ROW, shared) SLOW_ROW(STORE_ROW)},
              [EM_PATH_LOCAL] = {EACH_SHAPE(STORE_ROW)}},
    .load_strong = {EACH_SHAPE(LOAD_STRONG_ROW)},
    .store_strong = {EACH_SHAPE(STORE_STRONG_ROW)},
    .load_parameter = {{load_parameter_0_full, load_parameter_0_masked},
                       {load_parameter_1_full, load_parameter_1_masked},
                       {load_parameter_2_full, load_parameter_2_masked},
                       {load_parameter_3_full, load_parameter_3_masked},
                       {load_parameter_4_full, load_parameter_4_masked}},
};
