/* The fragments of a warp: which one runs, where they part and where they meet.
 *
 * The deepest in calls goes first, then the one whose block comes first in reverse post-order, so that those behind
 * catch up with those ahead and merge. A fragment that used up its fuel lets the others have a turn, oldest first:
 * lanes that spin on a lock must not keep the lane that holds it from running. */
#include <cuda.h>

#include "engine.h"

void em_warp_start(em_warp *warp, em_mask lanes)
{
    const em_grid *grid = warp->block->grid;
    warp->live = warp->existing = lanes;
    warp->fragment_count = 1;
    warp->turn = 0;
    warp->rotate = false;
    warp->fragments[0] = (em_fragment){.pc = grid->program->masked + grid->entry->entry, .mask = lanes};
    warp->current = warp->fragments;
}

static void place(em_fragment *fragment, const em_program *program, const em_insn *pc)
{
    fragment->pc = em_masked_pc(program, pc);
    fragment->order = program->origins[fragment->pc - program->masked].order;
}

void em_park(em_warp *warp, const em_insn *pc)
{
    place(warp->current, warp->program, pc);
}

em_fragment *em_split(em_warp *warp, em_mask lanes, const em_insn *pc, uint32_t base)
{
    em_fragment *made = &warp->fragments[warp->fragment_count++];
    *made = (em_fragment){.mask = lanes, .base = base, .turn = warp->current->turn, .state = EM_RUNNABLE};
    place(made, warp->program, pc);
    warp->current->mask &= ~lanes;
    return made;
}

static void drop(em_warp *warp, em_fragment *fragment)
{
    *fragment = warp->fragments[--warp->fragment_count];
}

static bool goes_before(const em_fragment *one, const em_fragment *other, bool by_turn)
{
    if (by_turn && one->turn != other->turn)
        return one->turn < other->turn;
    if (one->base != other->base)
        return one->base > other->base;
    if (one->order != other->order)
        return one->order < other->order;
    return one->pc < other->pc;
}

/* Joins all fragments that are where fragments[at] is; returns its index after that. */
static uint32_t merge(em_warp *warp, uint32_t at)
{
    for (uint32_t i = 0; i < warp->fragment_count;) {
        em_fragment *kept = &warp->fragments[at], *other = &warp->fragments[i];
        if (i == at || other->state != kept->state || other->pc != kept->pc || other->base != kept->base) {
            i++;
            continue;
        }
        kept->mask |= other->mask;
        if (at == warp->fragment_count - 1)
            at = i;
        drop(warp, other);
    }
    return at;
}

static bool pick(em_warp *warp)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < warp->fragment_count; i++) {
        const em_fragment *fragment = &warp->fragments[i];
        if (fragment->state == EM_RUNNABLE &&
            (best == UINT32_MAX || goes_before(fragment, &warp->fragments[best], warp->rotate)))
            best = i;
    }
    if (best == UINT32_MAX)
        return false;
    if (warp->fragment_count > 1)
        best = merge(warp, best);
    warp->current = &warp->fragments[best];
    warp->limit = UINT32_MAX;
    if (!warp->rotate) {
        for (uint32_t i = 0; i < warp->fragment_count; i++) {
            const em_fragment *other = &warp->fragments[i];
            if (i != best && other->state == EM_RUNNABLE && other->base == warp->current->base &&
                other->order < warp->limit)
                warp->limit = other->order;
        }
    }
    warp->rotate = false;
    return true;
}

em_turn em_warp_run(em_warp *warp)
{
    while (pick(warp)) {
        const em_fragment *current = warp->current;
        const em_insn *pc = current->pc;
        if (current->mask == warp->live)
            pc = em_full_pc(warp->program, pc);
        switch (pc->run(pc, warp->stack + current->base, warp, current->mask)) {
        case EM_FAULTED:
            return EM_TURN_FAULTED;
        case EM_YIELD:
            warp->current->turn = ++warp->turn;
            warp->rotate = true;
            return EM_TURN_YIELDED;
        default:
            break;
        }
    }
    return warp->live == 0 ? EM_TURN_DONE : EM_TURN_BLOCKED;
}

em_status em_exit_lanes(em_warp *warp, em_mask lanes, const em_insn *next)
{
    em_block *block = warp->block;
    warp->live &= ~lanes;
    block->live_threads -= (uint32_t)__builtin_popcount(lanes);
    if (warp->current->mask == lanes) {
        drop(warp, warp->current);
    } else {
        warp->current->mask &= ~lanes;
        em_park(warp, next);
    }
    if (warp->fragment_count > 0)
        em_sync_recheck(warp);
    em_barrier_recheck(block, warp, lanes);
    return EM_RESCHEDULE;
}

/* ---- .sync
 * ------------------------------------------------------------------------------------------------------------ */

/* Threads that wait for lanes at a `.sync` look again after lanes exited. */
void em_sync_recheck(em_warp *warp)
{
    for (uint32_t i = 0; i < warp->fragment_count; i++) {
        if (warp->fragments[i].state == EM_AT_SYNC)
            warp->fragments[i].state = EM_RUNNABLE;
    }
    em_warp_barrier_recheck(warp);
}

em_status em_converge_slow(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask, uint32_t members)
{
    const em_mask *member_masks = EM_ROW(em_mask, members);
    em_mask ready = 0;
    EM_EACH_LANE_OF(mask)
    {
        if ((member_masks[lane] >> lane & 1) == 0)
            return em_raise(insn, warp, 1u << lane, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                            "the thread is not in its own member mask 0x%08x", member_masks[lane]);
        if ((member_masks[lane] & warp->live & ~mask) == 0)
            ready |= 1u << lane;
    }
    if (ready == mask)
        return EM_GO;
    em_fragment *waiting = warp->current;
    if (waiting->mask != mask)
        em_split(warp, waiting->mask & ~mask, insn + 1, waiting->base);
    if (ready != 0)
        em_split(warp, ready, insn, waiting->base);
    em_park(warp, insn);
    waiting->state = EM_AT_SYNC;
    const em_mask before = waiting->mask;
    const uint32_t at = merge(warp, (uint32_t)(waiting - warp->fragments));
    if (warp->fragments[at].mask != before)
        warp->fragments[at].state = EM_RUNNABLE;
    return EM_RESCHEDULE;
}

/* bar.warp.sync meets by warp, not by instruction: its threads may stand at different ones. */
void em_warp_barrier_recheck(em_warp *warp)
{
    em_mask waiting = 0, ready = 0;
    for (uint32_t i = 0; i < warp->fragment_count; i++) {
        if (warp->fragments[i].state == EM_AT_WARP_BARRIER)
            waiting |= warp->fragments[i].mask;
    }
    EM_EACH_LANE_OF(waiting)
    {
        if ((warp->members[lane] & warp->live & ~waiting) == 0)
            ready |= 1u << lane;
    }
    const uint32_t count = warp->fragment_count;
    for (uint32_t i = 0; i < count && ready != 0; i++) {
        em_fragment *fragment = &warp->fragments[i];
        const em_mask released = fragment->mask & ready;
        if (fragment->state != EM_AT_WARP_BARRIER || released == 0)
            continue;
        if (released == fragment->mask) {
            fragment->state = EM_RUNNABLE;
            continue;
        }
        em_fragment *made = &warp->fragments[warp->fragment_count++];
        *made = *fragment;
        made->mask = released;
        made->state = EM_RUNNABLE;
        fragment->mask &= ~released;
    }
}
