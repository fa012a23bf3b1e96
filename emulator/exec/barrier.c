/* bar.sync, bar.arrive, bar.red, bar.warp.sync: 16 named barriers a block, counted by thread.
 *
 * Where the instruction gives a thread count, PTX counts whole warps: the lanes a warp lacks (a partial last warp, or
 * threads that exited) are counted when its first thread arrives. Without a count the barrier waits for every thread
 * of the block that has not exited. */
#include <cuda.h>

#include "engine.h"

static void write_result(em_warp *warp, const em_fragment *fragment, const em_barrier *barrier)
{
    const em_insn *insn = fragment->pc;
    unsigned char *rows = warp->stack + fragment->base;
    const unsigned kind = insn->aux & ~(unsigned)EM_BARRIER_COUNTED;
    if (kind == EM_BARRIER_POPC) {
        uint32_t *to = EM_ROW(uint32_t, insn->d);
        EM_EACH_LANE_OF(fragment->mask)
        to[lane] = barrier->contributed_true;
    } else if (kind == EM_BARRIER_AND || kind == EM_BARRIER_OR) {
        const bool result =
            kind == EM_BARRIER_AND ? barrier->contributed_true == barrier->contributed : barrier->contributed_true != 0;
        em_mask *to = &EM_PREDICATE(insn->d);
        *to = (*to & ~fragment->mask) | (result ? fragment->mask : 0);
    }
}

static void release(em_block *block, uint32_t number)
{
    em_barrier *barrier = &block->barriers[number];
    for (uint32_t w = 0; w < block->warp_count; w++) {
        em_warp *warp = &block->warps[w];
        for (uint32_t i = 0; i < warp->fragment_count; i++) {
            em_fragment *fragment = &warp->fragments[i];
            if (fragment->state != EM_AT_BARRIER || fragment->barrier != number)
                continue;
            write_result(warp, fragment, barrier);
            fragment->pc++;
            fragment->state = EM_RUNNABLE;
        }
    }
    *barrier = (em_barrier){0};
    block->barriers_in_use &= ~(1u << number);
}

static void check(em_block *block, uint32_t number)
{
    const em_barrier *barrier = &block->barriers[number];
    if (barrier->arrived >= (barrier->expected != 0 ? barrier->expected : block->live_threads))
        release(block, number);
}

void em_barrier_recheck(em_block *block, em_warp *warp, em_mask exited)
{
    for (uint32_t left = block->barriers_in_use; left != 0; left &= left - 1) {
        const uint32_t number = (uint32_t)__builtin_ctz(left);
        em_barrier *barrier = &block->barriers[number];
        em_mask *lanes = &barrier->lanes[warp->index];
        if (barrier->expected != 0 && *lanes != 0) {
            barrier->arrived += (uint32_t)__builtin_popcount(exited & ~*lanes);
            *lanes |= exited;
        }
        check(block, number);
    }
}

static void arrive(em_block *block, const em_warp *warp, em_mask lanes, uint32_t number, uint32_t expected)
{
    em_barrier *barrier = &block->barriers[number];
    barrier->arrived += (uint32_t)__builtin_popcount(lanes);
    if (expected != 0) {
        barrier->expected = expected;
        if (barrier->lanes[warp->index] == 0) {
            barrier->arrived += (uint32_t)__builtin_popcount(~warp->live);
            barrier->lanes[warp->index] = ~warp->live;
        }
    }
    barrier->lanes[warp->index] |= lanes;
    block->barriers_in_use |= 1u << number;
}

/* Lanes with the barrier number and count of the lowest one. */
static em_mask lanes_alike(const uint32_t *numbers, const uint32_t *counts, em_mask mask)
{
    const int first = __builtin_ctz(mask);
    em_mask alike = 0;
    EM_EACH_LANE_OF(mask)
    alike |= (em_mask)(numbers[lane] == numbers[first] && counts[lane] == counts[first]) << lane;
    return alike;
}

EM_HANDLER(bar_masked)
{
    const em_mask acting = em_guarded(insn, rows, mask);
    if (acting == 0)
        EM_NEXT;
    em_block *block = warp->block;
    const uint32_t *numbers = EM_ROW(uint32_t, insn->a);
    const bool counted = (insn->aux & EM_BARRIER_COUNTED) != 0;
    const unsigned kind = insn->aux & ~(unsigned)EM_BARRIER_COUNTED;
    const uint32_t *counts = counted ? EM_ROW(uint32_t, insn->b) : numbers;
    const int first = __builtin_ctz(acting);
    const uint32_t number = numbers[first], expected = counted ? counts[first] : 0;
    if (number >= EM_BARRIERS)
        return em_raise(insn, warp, acting, CUDA_ERROR_ILLEGAL_INSTRUCTION, "barrier %u: there are 16", number);
    if (counted && (expected == 0 || expected % EM_LANES != 0))
        return em_raise(insn, warp, acting, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                        "barrier %u with %u threads: the count must be a multiple of 32", number, expected);
    const em_mask alike = lanes_alike(numbers, counts, acting);
    const uint32_t base = warp->current->base;
    if (mask != acting)
        em_split(warp, mask & ~acting, insn + 1, base);
    if (acting != alike)
        em_split(warp, acting & ~alike, insn, base);
    arrive(block, warp, alike, number, expected);
    if (kind >= EM_BARRIER_POPC) {
        em_barrier *barrier = &block->barriers[number];
        barrier->contributed += (uint32_t)__builtin_popcount(alike);
        barrier->contributed_true += (uint32_t)__builtin_popcount(alike & EM_PREDICATE(insn->c));
    }
    if (kind == EM_BARRIER_ARRIVE) {
        em_park(warp, insn + 1);
    } else {
        em_park(warp, insn);
        warp->current->state = EM_AT_BARRIER;
        warp->current->barrier = (uint8_t)number;
    }
    check(block, number);
    return EM_RESCHEDULE;
}

/* The common case, bar.sync of a constant barrier: one fragment a warp. imm: the barrier, -1 where it is not constant;
 * f: order of the instruction's block. */
EM_HANDLER(bar_full)
{
    em_block *block = warp->block;
    if (insn->aux != EM_BARRIER_SYNC || insn->imm < 0 || insn->imm >= EM_BARRIERS)
        return bar_masked(insn, rows, warp, mask);
    const uint32_t number = (uint32_t)insn->imm, here = (uint32_t)__builtin_popcount(mask);
    em_barrier *barrier = &block->barriers[number];
    if (barrier->expected != 0)
        return bar_masked(insn, rows, warp, mask);
    if (barrier->arrived + here >= block->live_threads) { /* the last to come need not wait */
        if (barrier->arrived != 0)
            release(block, number);
        EM_NEXT;
    }
    barrier->arrived += here;
    block->barriers_in_use |= 1u << number;
    em_fragment *current = warp->current;
    current->pc = em_masked_pc(warp->program, insn);
    current->order = insn->f;
    current->state = EM_AT_BARRIER;
    current->barrier = (uint8_t)number;
    return EM_RESCHEDULE;
}

/* bar.warp.sync members (row a). */
EM_HANDLER(bar_warp_masked)
{
    const em_mask acting = em_guarded(insn, rows, mask);
    if (acting == 0 || acting == warp->live)
        EM_NEXT;
    const em_mask *members = EM_ROW(em_mask, insn->a);
    EM_EACH_LANE_OF(acting)
    {
        if ((members[lane] >> lane & 1) == 0)
            return em_raise(insn, warp, 1u << lane, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                            "the thread is not in its own member mask 0x%08x", members[lane]);
        warp->members[lane] = members[lane];
    }
    em_fragment *current = warp->current;
    if (mask != acting)
        em_split(warp, mask & ~acting, insn + 1, current->base);
    em_park(warp, insn + 1);
    current->state = EM_AT_WARP_BARRIER;
    em_warp_barrier_recheck(warp);
    return EM_RESCHEDULE;
}

const em_handlers em_bar = {bar_full, bar_masked};
const em_handlers em_bar_warp = {bar_warp_masked, bar_warp_masked};
