/* Loads and stores of a warp. Compiled once for each instruction set.
 *
 * The quick ways: each half of the warp at consecutive addresses, or at one, inside the range that this instruction hit
 * last. Anything else (masks, mixed ranges, local memory, faults) goes through em_locate, one lane at a time. */
#include "engine.h"

typedef struct wide {
    _Alignas(16) uint64_t low;
    uint64_t high;
} wide;

typedef uint8_t type_0;
typedef uint16_t type_1;
typedef uint32_t type_2;
typedef uint64_t type_3;
typedef wide type_4;

/* ---- where 16 lanes look ----------------------------------------------------------------------------------------- */

/* Half a warp, because tiles of 16 by 16 threads are what kernels use most: each half has a row of its own. */
enum { HALF = EM_LANES / 2 };

typedef enum pattern { CONSECUTIVE, SAME, NEITHER } pattern;

static inline __attribute__((always_inline)) pattern pattern_of(bool consecutive, bool same)
{
    return consecutive ? CONSECUTIVE : same ? SAME : NEITHER;
}

static inline __attribute__((always_inline)) pattern pattern_4(const uint32_t *row, const uint32_t size)
{
#if defined(__AVX512F__)
    const __m512i apart = _mm512_sub_epi32(_mm512_loadu_si512(row), _mm512_set1_epi32((int)row[0]));
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i wanted = _mm512_mullo_epi32(lanes, _mm512_set1_epi32((int)size));
    return pattern_of(_mm512_cmpneq_epi32_mask(apart, wanted) == 0, _mm512_test_epi32_mask(apart, apart) == 0);
#elif defined(__AVX2__)
    const __m256i first = _mm256_set1_epi32((int)row[0]), step = _mm256_set1_epi32((int)size);
    const __m256i low = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(const void *)row), first);
    const __m256i high = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(row + 8)), first);
    const __m256i wanted_low = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), step);
    const __m256i wanted_high = _mm256_mullo_epi32(_mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15), step);
    const __m256i uneven = _mm256_or_si256(_mm256_xor_si256(low, wanted_low), _mm256_xor_si256(high, wanted_high));
    const __m256i differ = _mm256_or_si256(low, high);
    return pattern_of(_mm256_testz_si256(uneven, uneven) != 0, _mm256_testz_si256(differ, differ) != 0);
#else
    uint32_t uneven = 0, differ = 0;
    for (uint32_t i = 0; i < HALF; i++) {
        const uint32_t apart = row[i] - row[0];
        uneven |= apart ^ (i * size);
        differ |= apart;
    }
    return pattern_of(uneven == 0, differ == 0);
#endif
}

static inline __attribute__((always_inline)) pattern pattern_8(const uint64_t *row, const uint32_t size)
{
#if defined(__AVX512F__)
    const __m512i first = _mm512_set1_epi64((long long)row[0]), lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i low = _mm512_sub_epi64(_mm512_loadu_si512(row), first);
    const __m512i high = _mm512_sub_epi64(_mm512_loadu_si512(row + 8), first);
    const __m512i wanted_low = _mm512_mul_epu32(lanes, _mm512_set1_epi64(size));
    const __m512i wanted_high = _mm512_add_epi64(wanted_low, _mm512_set1_epi64(8 * (long long)size));
    const __m512i differ = _mm512_or_si512(low, high);
    const __m512i uneven = _mm512_or_si512(_mm512_xor_si512(low, wanted_low), _mm512_xor_si512(high, wanted_high));
    return pattern_of(_mm512_test_epi64_mask(uneven, uneven) == 0, _mm512_test_epi64_mask(differ, differ) == 0);
#elif defined(__AVX2__)
    const __m256i first = _mm256_set1_epi64x((long long)row[0]);
    __m256i uneven = _mm256_setzero_si256(), differ = uneven;
    for (int i = 0; i < HALF; i += 4) {
        const __m256i apart = _mm256_sub_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(row + i)), first);
        const long long at = (long long)size * i;
        const __m256i wanted = _mm256_setr_epi64x(at, at + size, at + 2 * (long long)size, at + 3 * (long long)size);
        uneven = _mm256_or_si256(uneven, _mm256_xor_si256(apart, wanted));
        differ = _mm256_or_si256(differ, apart);
    }
    return pattern_of(_mm256_testz_si256(uneven, uneven) != 0, _mm256_testz_si256(differ, differ) != 0);
#else
    uint64_t uneven = 0, differ = 0;
    for (uint32_t i = 0; i < HALF; i++) {
        const uint64_t apart = row[i] - row[0];
        uneven |= apart ^ (i * size);
        differ |= apart;
    }
    return pattern_of(uneven == 0, differ == 0);
#endif
}

/* Where a half begins, or NULL: not all of it is where this instruction hit last, or it is not aligned. */
static inline __attribute__((always_inline)) unsigned char *begin_flat(const em_insn *insn, em_warp *warp,
                                                                       uint64_t address, uint32_t size, uint32_t span)
{
    const em_slot *slot = &warp->slots[insn->slot];
    const uint64_t place = address + (uint64_t)insn->imm, offset = place - slot->base;
    const bool good = offset < slot->size && slot->size - offset >= span && (place & (size - 1)) == 0 &&
                      atomic_load_explicit(slot->live, memory_order_relaxed);
    return __builtin_expect(good, 1) ? (unsigned char *)(uintptr_t)place : NULL;
}

static inline __attribute__((always_inline)) unsigned char *begin_shared(const em_insn *insn, em_warp *warp,
                                                                         uint32_t address, uint32_t size, uint32_t span)
{
    const uint32_t offset = address + (uint32_t)insn->imm;
    const bool good = (uint64_t)offset + span <= warp->shared_bytes && (offset & (size - 1)) == 0;
    return __builtin_expect(good, 1) ? warp->shared + offset : NULL;
}

/* Fills warp->pointers for 32 lanes; false: ask em_locate. */
static inline __attribute__((always_inline)) bool scatter_flat(const em_insn *insn, unsigned char *rows, em_warp *warp,
                                                               uint32_t size)
{
    const em_slot *slot = &warp->slots[insn->slot];
    if (slot->size < size || !atomic_load_explicit(slot->live, memory_order_relaxed))
        return false;
    const uint64_t *addresses = EM_ROW(uint64_t, insn->a);
    const uint64_t displacement = (uint64_t)insn->imm, base = slot->base, last = slot->size - size;
    uint64_t uneven = 0, outside = 0;
    EM_EACH_LANE
    {
        const uint64_t address = addresses[lane] + displacement;
        uneven |= address;
        outside |= address - base > last ? 1 : 0;
        warp->pointers[lane] = (unsigned char *)(uintptr_t)address;
    }
    return (uneven & (size - 1)) == 0 && outside == 0;
}

static inline __attribute__((always_inline)) bool scatter_shared(const em_insn *insn, unsigned char *rows,
                                                                 em_warp *warp, uint32_t size)
{
    if (warp->shared_bytes < size)
        return false;
    const uint32_t *addresses = EM_ROW(uint32_t, insn->a);
    const uint32_t displacement = (uint32_t)insn->imm, last = (uint32_t)(warp->shared_bytes - size);
    unsigned char *const shared = warp->shared;
    uint32_t uneven = 0, outside = 0;
    EM_EACH_LANE
    {
        const uint32_t address = addresses[lane] + displacement;
        uneven |= address;
        outside |= address > last ? 1 : 0;
        warp->pointers[lane] = shared + address;
    }
    return (uneven & (size - 1)) == 0 && outside == 0;
}

#define ADDRESS_flat   uint64_t
#define ADDRESS_shared uint32_t
#define PATTERN_flat   pattern_8
#define PATTERN_shared pattern_4

/* ---- elements ---------------------------------------------------------------------------------------------------- */

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
        const em_status status = load_general_##size##_##count(insn, rows, warp, em_guarded(insn, rows, mask));        \
        if (__builtin_expect(status != EM_GO, 0))                                                                      \
            return status;                                                                                             \
        CONTINUE(count);                                                                                               \
    }                                                                                                                  \
    EM_HANDLER(store_general_##size##_##count##_masked)                                                                \
    {                                                                                                                  \
        const em_status status = store_general_##size##_##count(insn, rows, warp, em_guarded(insn, rows, mask));       \
        if (__builtin_expect(status != EM_GO, 0))                                                                      \
            return status;                                                                                             \
        CONTINUE(count);                                                                                               \
    }                                                                                                                  \
    EM_HANDLER(load_strong_##size##_##count##_masked)                                                                  \
    {                                                                                                                  \
        em_may_wait(warp);                                                                                             \
        const em_status status = load_general_##size##_##count(insn, rows, warp, em_guarded(insn, rows, mask));        \
        if (__builtin_expect(status != EM_GO, 0))                                                                      \
            return status;                                                                                             \
        atomic_thread_fence(memory_order_acquire);                                                                     \
        CONTINUE(count);                                                                                               \
    }                                                                                                                  \
    EM_HANDLER(store_strong_##size##_##count##_masked)                                                                 \
    {                                                                                                                  \
        atomic_thread_fence(memory_order_release);                                                                     \
        const em_status status = store_general_##size##_##count(insn, rows, warp, em_guarded(insn, rows, mask));       \
        if (__builtin_expect(status != EM_GO, 0))                                                                      \
            return status;                                                                                             \
        CONTINUE(count);                                                                                               \
    }

/* One value to 16 elements. Written out, because compilers split a loop of 16 into words, and a vector that is loaded
 * from a row stored in words waits for all of them. */
static inline __attribute__((always_inline)) void splat_0(type_0 *to, type_0 value)
{
    memset(to, value, HALF);
}

#if defined(__AVX512F__)
#define STORE_ALIKE(T, broadcast)                                                                                      \
    for (unsigned at = 0; at < HALF; at += 64 / sizeof(T))                                                             \
    _mm512_storeu_si512(to + at, broadcast)
#define ALIKE_2 _mm512_set1_epi32((int)value)
#define ALIKE_3 _mm512_set1_epi64((long long)value)
#elif defined(__AVX2__)
#define STORE_ALIKE(T, broadcast)                                                                                      \
    for (unsigned at = 0; at < HALF; at += 32 / sizeof(T))                                                             \
    _mm256_storeu_si256((__m256i *)(void *)(to + at), broadcast)
#define ALIKE_2 _mm256_set1_epi32((int)value)
#define ALIKE_3 _mm256_set1_epi64x((long long)value)
#else
#define STORE_ALIKE(T, broadcast) EM_VECTORIZE for (unsigned at = 0; at < HALF; at++) to[at] = value
#endif

static inline __attribute__((always_inline)) void splat_1(type_1 *to, type_1 value)
{
    for (unsigned at = 0; at < HALF; at++)
        to[at] = value;
}

static inline __attribute__((always_inline)) void splat_2(type_2 *to, type_2 value)
{
    STORE_ALIKE(type_2, ALIKE_2);
}

static inline __attribute__((always_inline)) void splat_3(type_3 *to, type_3 value)
{
    STORE_ALIKE(type_3, ALIKE_3);
}

/* The quick ways, for the full table. What they cannot do goes on in a function of its own: they need no frame. */
#define QUICK_REST(T, size, count, path)                                                                               \
    static __attribute__((noinline)) em_status load_##path##_##size##_##count##_rest(                                  \
        const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask)                                         \
    {                                                                                                                  \
        if (mask == EM_ALL_LANES && scatter_##path(insn, rows, warp, (uint32_t)sizeof(T) * (count))) {                 \
            for (unsigned n = 0; n < (count); n++) {                                                                   \
                T *const to = EM_ROW(T, element_row(insn, n));                                                         \
                for (unsigned lane = 0; lane < EM_LANES; lane++)                                                       \
                    to[lane] = ((const T *)(const void *)warp->pointers[lane])[n];                                     \
            }                                                                                                          \
        } else {                                                                                                       \
            const em_status status = load_general_##size##_##count(insn, rows, warp, mask);                            \
            if (status != EM_GO)                                                                                       \
                return status;                                                                                         \
        }                                                                                                              \
        CONTINUE(count);                                                                                               \
    }                                                                                                                  \
    static __attribute__((noinline)) em_status store_##path##_##size##_##count##_rest(                                 \
        const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask)                                         \
    {                                                                                                                  \
        if (mask == EM_ALL_LANES && scatter_##path(insn, rows, warp, (uint32_t)sizeof(T) * (count))) {                 \
            for (unsigned n = 0; n < (count); n++) {                                                                   \
                const T *const from = EM_ROW(T, element_row(insn, n));                                                 \
                for (unsigned lane = 0; lane < EM_LANES; lane++)                                                       \
                    ((T *)(void *)warp->pointers[lane])[n] = from[lane];                                               \
            }                                                                                                          \
        } else {                                                                                                       \
            const em_status status = store_general_##size##_##count(insn, rows, warp, mask);                           \
            if (status != EM_GO)                                                                                       \
                return status;                                                                                         \
        }                                                                                                              \
        CONTINUE(count);                                                                                               \
    }

/* The pattern of both halves: found out here, or by an earlier `analyse` of the same register. */
#define LOOK_AFRESH(path, bytes)                                                                                       \
    const ADDRESS_##path *const addresses = EM_ROW(ADDRESS_##path, insn->a);                                           \
    const ADDRESS_##path start_low = addresses[0], start_high = addresses[HALF];                                       \
    const pattern low = PATTERN_##path(addresses, bytes), high = PATTERN_##path(addresses + HALF, bytes)
#define LOOK_KNOWN(path, bytes)                                                                                        \
    const em_pattern *const known = (const em_pattern *)(const void *)(rows + insn->f);                                \
    const ADDRESS_##path start_low = (ADDRESS_##path)known->start[0], start_high = (ADDRESS_##path)known->start[1];    \
    const pattern low = pattern_of(known->stride[0] == (int64_t)(bytes), known->stride[0] == 0);                       \
    const pattern high = pattern_of(known->stride[1] == (int64_t)(bytes), known->stride[1] == 0)

/* One element a lane: each half by itself. */
#define QUICK_ONE(T, size, path, suffix, LOOK)                                                                         \
    EM_HANDLER(load_##path##_##size##_1##suffix)                                                                       \
    {                                                                                                                  \
        const uint32_t bytes = (uint32_t)sizeof(T);                                                                    \
        LOOK(path, bytes);                                                                                             \
        const unsigned char *const from_low =                                                                          \
            begin_##path(insn, warp, start_low, bytes, low == CONSECUTIVE ? bytes * HALF : bytes);                     \
        const unsigned char *const from_high =                                                                         \
            begin_##path(insn, warp, start_high, bytes, high == CONSECUTIVE ? bytes * HALF : bytes);                   \
        if (__builtin_expect(low == NEITHER || high == NEITHER || from_low == NULL || from_high == NULL ||             \
                                 mask != EM_ALL_LANES,                                                                 \
                             0))                                                                                       \
            return load_##path##_##size##_1_rest(insn, rows, warp, mask);                                              \
        T *const to = EM_ROW(T, insn->d);                                                                              \
        if (low == CONSECUTIVE)                                                                                        \
            memcpy(to, from_low, sizeof(T) * HALF);                                                                    \
        else                                                                                                           \
            splat_##size(to, *(const T *)(const void *)from_low);                                                      \
        if (high == CONSECUTIVE)                                                                                       \
            memcpy(to + HALF, from_high, sizeof(T) * HALF);                                                            \
        else                                                                                                           \
            splat_##size(to + HALF, *(const T *)(const void *)from_high);                                              \
        EM_NEXT;                                                                                                       \
    }                                                                                                                  \
    EM_HANDLER(store_##path##_##size##_1##suffix)                                                                      \
    {                                                                                                                  \
        const uint32_t bytes = (uint32_t)sizeof(T);                                                                    \
        LOOK(path, bytes);                                                                                             \
        unsigned char *const to_low = begin_##path(insn, warp, start_low, bytes, bytes * HALF);                        \
        unsigned char *const to_high = begin_##path(insn, warp, start_high, bytes, bytes * HALF);                      \
        if (__builtin_expect(low != CONSECUTIVE || high != CONSECUTIVE || to_low == NULL || to_high == NULL ||         \
                                 mask != EM_ALL_LANES,                                                                 \
                             0))                                                                                       \
            return store_##path##_##size##_1_rest(insn, rows, warp, mask);                                             \
        const T *const from = EM_ROW(T, insn->d);                                                                      \
        memcpy(to_low, from, sizeof(T) * HALF);                                                                        \
        memcpy(to_high, from + HALF, sizeof(T) * HALF);                                                                \
        EM_NEXT;                                                                                                       \
    }

/* Vectors: all 32 lanes side by side, or all at one address. */
#define QUICK_MANY(T, size, count, path, suffix, LOOK)                                                                 \
    EM_HANDLER(load_##path##_##size##_##count##suffix)                                                                 \
    {                                                                                                                  \
        const uint32_t bytes = (uint32_t)sizeof(T) * (count);                                                          \
        LOOK(path, bytes);                                                                                             \
        const bool consecutive = low == CONSECUTIVE && high == CONSECUTIVE;                                            \
        const bool joined = start_high - start_low == (consecutive ? bytes * HALF : 0);                                \
        const T *const from = (const T *)(const void *)begin_##path(insn, warp, start_low, bytes,                      \
                                                                    consecutive ? bytes * EM_LANES : bytes);           \
        if (__builtin_expect(low == NEITHER || high != low || !joined || from == NULL || mask != EM_ALL_LANES, 0))     \
            return load_##path##_##size##_##count##_rest(insn, rows, warp, mask);                                      \
        ELEMENTS(T, count);                                                                                            \
        if (consecutive) {                                                                                             \
            EM_EACH_LANE                                                                                               \
            {                                                                                                          \
                for (unsigned n = 0; n < (count); n++)                                                                 \
                    row[n][lane] = from[(unsigned)lane * (count) + n];                                                 \
            }                                                                                                          \
        } else {                                                                                                       \
            for (unsigned n = 0; n < (count); n++) {                                                                   \
                splat_##size(row[n], from[n]);                                                                         \
                splat_##size(row[n] + HALF, from[n]);                                                                  \
            }                                                                                                          \
        }                                                                                                              \
        CONTINUE(count);                                                                                               \
    }                                                                                                                  \
    EM_HANDLER(store_##path##_##size##_##count##suffix)                                                                \
    {                                                                                                                  \
        const uint32_t bytes = (uint32_t)sizeof(T) * (count);                                                          \
        LOOK(path, bytes);                                                                                             \
        const bool joined = start_high - start_low == bytes * HALF;                                                    \
        T *const to = (T *)(void *)begin_##path(insn, warp, start_low, bytes, bytes * EM_LANES);                       \
        if (__builtin_expect(low != CONSECUTIVE || high != low || !joined || to == NULL || mask != EM_ALL_LANES, 0))   \
            return store_##path##_##size##_##count##_rest(insn, rows, warp, mask);                                     \
        ELEMENTS(T, count);                                                                                            \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            for (unsigned n = 0; n < (count); n++)                                                                     \
                to[(unsigned)lane * (count) + n] = row[n][lane];                                                       \
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

#define EACH_QUICK_ONE(DO, path)                                                                                       \
    DO(type_0, 0, path)                                                                                                \
    DO(type_1, 1, path)                                                                                                \
    DO(type_2, 2, path)                                                                                                \
    DO(type_3, 3, path)
#define EACH_QUICK_MANY(DO, path)                                                                                      \
    DO(type_2, 2, 2, path)                                                                                             \
    DO(type_2, 2, 4, path)                                                                                             \
    DO(type_3, 3, 2, path)

#define BOTH_ONE(T, size, path)                                                                                        \
    QUICK_REST(T, size, 1, path)                                                                                       \
    QUICK_ONE(T, size, path, _full, LOOK_AFRESH)                                                                       \
    QUICK_ONE(T, size, path, _known, LOOK_KNOWN)
#define BOTH_MANY(T, size, count, path)                                                                                \
    QUICK_REST(T, size, count, path)                                                                                   \
    QUICK_MANY(T, size, count, path, _full, LOOK_AFRESH)                                                               \
    QUICK_MANY(T, size, count, path, _known, LOOK_KNOWN)

EACH_QUICK_ONE(BOTH_ONE, flat)
EACH_QUICK_ONE(BOTH_ONE, shared)
EACH_QUICK_MANY(BOTH_MANY, flat)
EACH_QUICK_MANY(BOTH_MANY, shared)

/* ---- what is known of a register that several accesses of a block use
 * ------------------------------------------------ */

#define ANALYSE(path)                                                                                                  \
    EM_HANDLER(analyse_##path##_full)                                                                                  \
    {                                                                                                                  \
        const ADDRESS_##path *const addresses = EM_ROW(ADDRESS_##path, insn->a);                                       \
        em_pattern *const known = (em_pattern *)(void *)(rows + insn->d);                                              \
        for (unsigned half = 0; half < 2; half++) {                                                                    \
            const ADDRESS_##path *const from = addresses + half * HALF;                                                \
            const ADDRESS_##path stride = from[1] - from[0];                                                           \
            known->start[half] = from[0];                                                                              \
            known->stride[half] =                                                                                      \
                stride <= 16 && PATTERN_##path(from, (uint32_t)stride) != NEITHER ? (int64_t)stride : EM_NO_STRIDE;    \
        }                                                                                                              \
        EM_NEXT;                                                                                                       \
    }                                                                                                                  \
    EM_HANDLER(analyse_##path##_masked)                                                                                \
    {                                                                                                                  \
        em_pattern *const known = (em_pattern *)(void *)(rows + insn->d);                                              \
        known->stride[0] = known->stride[1] = EM_NO_STRIDE;                                                            \
        EM_NEXT;                                                                                                       \
    }
ANALYSE(flat)
ANALYSE(shared)

/* ---- parameters of a kernel
 * --------------------------------------------------------------------------------------------- */

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

/* ---- the table
 * -------------------------------------------------------------------------------------------------------------- */

#define AT(count) ((count) == 1 ? 0 : (count) == 2 ? 1 : (count) == 4 ? 2 : 3)
#define LOAD_ROW(T, size, count)                                                                                       \
    [size][AT(count)] = {load_general_##size##_##count##_masked, load_general_##size##_##count##_masked},
#define STORE_ROW(T, size, count)                                                                                      \
    [size][AT(count)] = {store_general_##size##_##count##_masked, store_general_##size##_##count##_masked},
#define LOAD_STRONG_ROW(T, size, count)                                                                                \
    [size][AT(count)] = {load_strong_##size##_##count##_masked, load_strong_##size##_##count##_masked},
#define STORE_STRONG_ROW(T, size, count)                                                                               \
    [size][AT(count)] = {store_strong_##size##_##count##_masked, store_strong_##size##_##count##_masked},
#define QUICK_LOAD_ROW(T, size, count, path)                                                                           \
    [size][AT(count)] = {load_##path##_##size##_##count##_full, load_general_##size##_##count##_masked},
#define QUICK_STORE_ROW(T, size, count, path)                                                                          \
    [size][AT(count)] = {store_##path##_##size##_##count##_full, store_general_##size##_##count##_masked},
#define KNOWN_LOAD_ROW(T, size, count, path)                                                                           \
    [size][AT(count)] = {load_##path##_##size##_##count##_known, load_general_##size##_##count##_masked},
#define KNOWN_STORE_ROW(T, size, count, path)                                                                          \
    [size][AT(count)] = {store_##path##_##size##_##count##_known, store_general_##size##_##count##_masked},
#define ONE_KNOWN_LOAD_ROW(T, size, path)  KNOWN_LOAD_ROW(T, size, 1, path)
#define ONE_KNOWN_STORE_ROW(T, size, path) KNOWN_STORE_ROW(T, size, 1, path)
#define ONE_LOAD_ROW(T, size, path)        QUICK_LOAD_ROW(T, size, 1, path)
#define ONE_STORE_ROW(T, size, path)       QUICK_STORE_ROW(T, size, 1, path)
#define SLOW_ROW(row)                                                                                                  \
    row(type_0, 0, 2) row(type_0, 0, 4) row(type_0, 0, 8) row(type_1, 1, 2) row(type_1, 1, 4) row(type_1, 1, 8)        \
        row(type_2, 2, 8) row(type_3, 3, 4) row(type_4, 4, 1)

const em_memory_table EM_ISA_NAME(em_memory) = {
    .load = {[EM_PATH_FLAT] = {EACH_QUICK_ONE(ONE_LOAD_ROW, flat) EACH_QUICK_MANY(QUICK_LOAD_ROW, flat)
                                   SLOW_ROW(LOAD_ROW)},
             [EM_PATH_SHARED] = {EACH_QUICK_ONE(ONE_LOAD_ROW, shared) EACH_QUICK_MANY(QUICK_LOAD_ROW, shared)
                                     SLOW_ROW(LOAD_ROW)},
             [EM_PATH_LOCAL] = {EACH_SHAPE(LOAD_ROW)}},
    .store = {[EM_PATH_FLAT] = {EACH_QUICK_ONE(ONE_STORE_ROW, flat) EACH_QUICK_MANY(QUICK_STORE_ROW, flat)
                                    SLOW_ROW(STORE_ROW)},
              [EM_PATH_SHARED] = {EACH_QUICK_ONE(ONE_STORE_ROW, shared) EACH_QUICK_MANY(QUICK_STORE_ROW, shared)
                                      SLOW_ROW(STORE_ROW)},
              [EM_PATH_LOCAL] = {EACH_SHAPE(STORE_ROW)}},
    .load_known = {[EM_PATH_FLAT] = {EACH_QUICK_ONE(ONE_KNOWN_LOAD_ROW, flat) EACH_QUICK_MANY(KNOWN_LOAD_ROW, flat)},
                   [EM_PATH_SHARED] = {EACH_QUICK_ONE(ONE_KNOWN_LOAD_ROW, shared)
                                           EACH_QUICK_MANY(KNOWN_LOAD_ROW, shared)}},
    .store_known = {[EM_PATH_FLAT] = {EACH_QUICK_ONE(ONE_KNOWN_STORE_ROW, flat) EACH_QUICK_MANY(KNOWN_STORE_ROW, flat)},
                    [EM_PATH_SHARED] = {EACH_QUICK_ONE(ONE_KNOWN_STORE_ROW, shared)
                                            EACH_QUICK_MANY(KNOWN_STORE_ROW, shared)}},
    .analyse = {[EM_PATH_FLAT] = {analyse_flat_full, analyse_flat_masked},
                [EM_PATH_SHARED] = {analyse_shared_full, analyse_shared_masked}},
    .load_strong = {EACH_SHAPE(LOAD_STRONG_ROW)},
    .store_strong = {EACH_SHAPE(STORE_STRONG_ROW)},
    .load_parameter = {{load_parameter_0_full, load_parameter_0_masked},
                       {load_parameter_1_full, load_parameter_1_masked},
                       {load_parameter_2_full, load_parameter_2_masked},
                       {load_parameter_3_full, load_parameter_3_masked},
                       {load_parameter_4_full, load_parameter_4_masked}},
};
