/* mbarrier: a barrier in one 64-bit word of shared memory, changed by compare and exchange.
 *
 * PTX leaves the word's layout open. Here: arrivals that are still missing (20 bits), arrivals a phase expects (20),
 * bytes that asynchronous copies still owe (21, two's complement), phase (3). A phase ends when neither arrivals nor
 * bytes are missing; a token is the word as it was before the arrival, so its phase is the one to wait for. */
#include <cuda.h>

#include "engine.h"
#include "rare.h"
#include "values.h"

enum {
    ARRIVALS_BITS = 20,
    EXPECTED_SHIFT = 20,
    BYTES_SHIFT = 40,
    BYTES_BITS = 21,
    PHASE_SHIFT = 61,
    MOST_ARRIVALS = (1 << ARRIVALS_BITS) - 1,
};

static uint32_t missing_of(uint64_t word)
{
    return (uint32_t)word & MOST_ARRIVALS;
}

static uint32_t expected_of(uint64_t word)
{
    return (uint32_t)(word >> EXPECTED_SHIFT) & MOST_ARRIVALS;
}

static int32_t bytes_of(uint64_t word)
{
    return (int32_t)((int64_t)(word << (64 - BYTES_SHIFT - BYTES_BITS)) >> (64 - BYTES_BITS));
}

static uint32_t phase_of(uint64_t word)
{
    return (uint32_t)(word >> PHASE_SHIFT);
}

static uint64_t word_of(uint32_t missing, uint32_t expected, int32_t bytes, uint32_t phase)
{
    const uint64_t owed = (uint32_t)bytes & ((1u << BYTES_BITS) - 1u);
    return missing | (uint64_t)expected << EXPECTED_SHIFT | owed << BYTES_SHIFT | (uint64_t)phase << PHASE_SHIFT;
}

/* The word with its phase ended where nothing is missing. */
static uint64_t settled(uint32_t missing, uint32_t expected, int32_t bytes, uint32_t phase)
{
    if (missing == 0 && bytes == 0)
        return word_of(expected, expected, 0, (phase + 1) & 7u);
    return word_of(missing, expected, bytes, phase);
}

/* What one instruction does to a word: arrivals, of how many for good, and bytes owed or paid. */
typedef struct change {
    uint32_t arrivals, dropped;
    int32_t bytes;
} change;

static uint64_t changed(uint64_t word, change by)
{
    return settled(missing_of(word) - by.arrivals, expected_of(word) - by.dropped, bytes_of(word) + by.bytes,
                   phase_of(word));
}

static em_status too_many(const em_insn *insn, em_warp *warp, int lane, uint64_t word)
{
    return em_raise(insn, warp, 1u << lane, CUDA_ERROR_LAUNCH_FAILED,
                    "an arrival at an mbarrier that expects %u and still misses %u: it was not initialised, or more "
                    "threads arrive than it was initialised for",
                    expected_of(word), missing_of(word));
}

/* Applies `by` for one lane; the word as it was goes to `before`. */
static em_status apply(const em_insn *insn, em_warp *warp, int lane, change by, uint64_t *before)
{
    uint64_t *const pointer = (uint64_t *)(void *)warp->pointers[lane];
    uint64_t word = __atomic_load_n(pointer, __ATOMIC_RELAXED);
    do {
        if (by.arrivals > missing_of(word) || by.dropped > expected_of(word))
            return too_many(insn, warp, lane, word);
    } while (
        !__atomic_compare_exchange_n(pointer, &word, changed(word, by), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    *before = word;
    return EM_GO;
}

static em_status locate(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask)
{
    warp->fuel -= EM_FUEL_OF_SPINNING;
    return em_locate(insn, rows, warp, mask, sizeof(uint64_t), EM_READ_WRITE);
}

EM_OP_STATUS(init)
{
    const em_status status = locate(insn, rows, warp, mask);
    if (status != EM_GO)
        return status;
    const uint32_t *const counts = EM_ROW(uint32_t, insn->b);
    EM_EACH_LANE_OF(mask)
    {
        if (counts[lane] == 0 || counts[lane] > MOST_ARRIVALS)
            return em_raise(insn, warp, 1u << lane, CUDA_ERROR_LAUNCH_FAILED,
                            "an mbarrier for %u arrivals: 1 to %d are possible", counts[lane], MOST_ARRIVALS);
        __atomic_store_n((uint64_t *)(void *)warp->pointers[lane], word_of(counts[lane], counts[lane], 0, 0),
                         __ATOMIC_SEQ_CST);
    }
    return EM_GO;
}

EM_OP_STATUS(inval)
{
    const em_status status = locate(insn, rows, warp, mask);
    if (status != EM_GO)
        return status;
    EM_EACH_LANE_OF(mask)
    {
        __atomic_store_n((uint64_t *)(void *)warp->pointers[lane], UINT64_C(0), __ATOMIC_SEQ_CST);
    }
    return EM_GO;
}

/* `b_count` is the row's value, or 1 where the operand is left out: no operand has the frame's first row. */
#define CHANGE(name, arrivals_, dropped_, bytes_)                                                                      \
    EM_OP_STATUS(name)                                                                                                 \
    {                                                                                                                  \
        const em_status status = locate(insn, rows, warp, mask);                                                       \
        if (status != EM_GO)                                                                                           \
            return status;                                                                                             \
        uint64_t *const d_row = EM_ROW(uint64_t, insn->d);                                                             \
        EM_EACH_LANE_OF(mask)                                                                                          \
        {                                                                                                              \
            const uint32_t b_count = insn->b != 0 ? EM_ROW(uint32_t, insn->b)[lane] : 1u;                              \
            const change by = {(arrivals_), (dropped_), (bytes_)};                                                     \
            uint64_t before = 0;                                                                                       \
            const em_status applied = apply(insn, warp, lane, by, &before);                                            \
            if (applied != EM_GO)                                                                                      \
                return applied;                                                                                        \
            d_row[lane] = before;                                                                                      \
            (void)b_count;                                                                                             \
        }                                                                                                              \
        return EM_GO;                                                                                                  \
    }
CHANGE(arrive, b_count, 0, 0)
CHANGE(arrive_drop, b_count, b_count, 0)
CHANGE(arrive_expect, 1, 0, (int32_t)b_count)
CHANGE(arrive_drop_expect, 1, 1, (int32_t)b_count)
CHANGE(expect, 0, 0, (int32_t)b_count)
CHANGE(complete, 0, 0, -(int32_t)b_count)
/* cp.async copies at once, so by the time it says that they are done it can arrive; without .noinc it adds an arrival
 * for itself first, and nothing is left to do. */
CHANGE(copies_arrive, 1, 0, 0)

EM_OP_STATUS(nothing)
{
    return EM_GO;
}

#define WAIT(name, T, expression)                                                                                      \
    EM_OP_STATUS(name)                                                                                                 \
    {                                                                                                                  \
        const em_status status = locate(insn, rows, warp, mask);                                                       \
        if (status != EM_GO)                                                                                           \
            return status;                                                                                             \
        const T *const b_row = EM_ROW(T, insn->b);                                                                     \
        em_mask done = 0;                                                                                              \
        EM_EACH_LANE_OF(mask)                                                                                          \
        {                                                                                                              \
            const uint64_t word = __atomic_load_n((uint64_t *)(void *)warp->pointers[lane], __ATOMIC_SEQ_CST);         \
            const T b = b_row[lane];                                                                                   \
            done |= (em_mask)((expression) ? 1 : 0) << lane;                                                           \
        }                                                                                                              \
        EM_PUT_PREDICATE_MASKED(insn->d, done);                                                                        \
        return EM_GO;                                                                                                  \
    }
WAIT(wait_token, uint64_t, phase_of(word) != phase_of(b))
WAIT(wait_parity, uint32_t, (phase_of(word) & 1u) != (b & 1u))

EM_OP_RARE(pending_count)
{
    uint32_t *const d_row = EM_ROW(uint32_t, insn->d);
    const uint64_t *const a_row = EM_ROW(uint64_t, insn->a);
    for (int lane = 0; lane < EM_LANES; lane++)
        EM_PUT(d_row, missing_of(a_row[lane]));
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define FORM(name, opcode, ...) EM_FORM_ONE(name, opcode, EM_TYPES(B64), EM_MODIFIERS(__VA_ARGS__))

const em_form EM_ISA_NAME(em_forms_mbarrier)[] = {
    FORM(init, MBARRIER_INIT, NONE),
    FORM(inval, MBARRIER_INVAL, NONE),
    FORM(arrive, MBARRIER_ARRIVE, NONE),
    FORM(arrive, MBARRIER_ARRIVE, NOCOMPLETE),
    FORM(arrive_expect, MBARRIER_ARRIVE, EXPECT_TX),
    FORM(arrive_drop, MBARRIER_ARRIVE_DROP, NONE),
    FORM(arrive_drop, MBARRIER_ARRIVE_DROP, NOCOMPLETE),
    FORM(arrive_drop_expect, MBARRIER_ARRIVE_DROP, EXPECT_TX),
    FORM(expect, MBARRIER_EXPECT_TX, NONE),
    FORM(complete, MBARRIER_COMPLETE_TX, NONE),
    FORM(copies_arrive, CP_ASYNC_MBARRIER_ARRIVE, NOINC),
    FORM(nothing, CP_ASYNC_MBARRIER_ARRIVE, NONE),
    FORM(wait_token, MBARRIER_TEST_WAIT, NONE),
    FORM(wait_parity, MBARRIER_TEST_WAIT, PARITY),
    FORM(wait_token, MBARRIER_TRY_WAIT, NONE),
    FORM(wait_parity, MBARRIER_TRY_WAIT, PARITY),
    FORM(pending_count, MBARRIER_PENDING_COUNT, NONE),
    EM_FORM_END,
};
