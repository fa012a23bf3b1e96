/* Handlers of control flow within a function, fences, clocks and what else only the engine can do. */
#include <cuda.h>
#include <sched.h>
#include <time.h>

#include "engine.h"

static inline const em_insn *target_of(const em_insn *insn)
{
    return (const em_insn *)(const void *)((const char *)insn + insn->imm);
}

/* ---- branches: imm is the distance in bytes, b the target's order, aux set where it goes back
 * --------------------------- */

static inline em_status jump(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask, bool full)
{
    const em_insn *target = target_of(insn);
    if (insn->aux != 0 && --warp->fuel < 0) {
        em_park(warp, target);
        return EM_YIELD;
    }
    if (!full && insn->b >= warp->limit) {
        em_park(warp, target);
        return EM_RESCHEDULE;
    }
    return target->run(target, rows, warp, mask);
}

EM_HANDLER(bra_full)
{
    return jump(insn, rows, warp, mask, true);
}

EM_HANDLER(bra_masked)
{
    return jump(insn, rows, warp, mask, false);
}

/* Threads part. One way may carry on at once: the one whose block comes first. */
static em_status part(const em_insn *insn, em_warp *warp, em_mask taken)
{
    em_split(warp, taken, target_of(insn), warp->current->base);
    em_park(warp, insn + 1);
    if (insn->aux != 0 && --warp->fuel < 0)
        return EM_YIELD;
    return EM_RESCHEDULE;
}

EM_HANDLER(bra_if_full)
{
    const em_mask taken = em_guarded(insn, rows, mask);
    if (taken == 0)
        EM_NEXT;
    if (taken == mask)
        return jump(insn, rows, warp, mask, true);
    return part(insn, warp, taken);
}

EM_HANDLER(bra_if_masked)
{
    const em_mask taken = em_guarded(insn, rows, mask);
    if (taken == 0)
        EM_NEXT;
    if (taken == mask)
        return jump(insn, rows, warp, mask, false);
    return part(insn, warp, taken);
}

/* Falling into a block that others branch to. */
EM_HANDLER(head_masked)
{
    if (insn->b >= warp->limit) {
        em_park(warp, insn + 1);
        return EM_RESCHEDULE;
    }
    EM_NEXT;
}

EM_HANDLER(head_full)
{
    EM_NEXT;
}

/* Lanes whose row `values` equals that of the lowest lane of `mask`. */
static em_mask lanes_alike(const uint32_t *values, em_mask mask)
{
    const uint32_t first = values[__builtin_ctz(mask)];
    em_mask alike = 0;
    EM_EACH_LANE_OF(mask)
    alike |= (em_mask)(values[lane] == first) << lane;
    return alike;
}

/* brx.idx: one target a turn; the other lanes come here again. imm: em_targets. */
EM_HANDLER(brx_masked)
{
    const em_mask acting = em_guarded(insn, rows, mask);
    if (acting == 0)
        EM_NEXT;
    const em_targets *targets = (const em_targets *)(uintptr_t)insn->imm;
    const uint32_t *index = EM_ROW(uint32_t, insn->a);
    const uint32_t which = index[__builtin_ctz(acting)];
    if (which >= targets->count)
        return em_raise(insn, warp, acting, CUDA_ERROR_INVALID_PC, "brx.idx: index %u of %u targets", which,
                        targets->count);
    const em_mask alike = lanes_alike(index, acting);
    const uint32_t base = warp->current->base;
    if (mask != acting)
        em_split(warp, mask & ~acting, insn + 1, base);
    if (acting != alike)
        em_split(warp, acting & ~alike, insn, base);
    em_park(warp, warp->program->masked + targets->target[which]);
    if (--warp->fuel < 0)
        return EM_YIELD;
    return EM_RESCHEDULE;
}

/* ---- the end
 * ------------------------------------------------------------------------------------------------------------- */

EM_HANDLER(exit_masked)
{
    const em_mask leaving = em_guarded(insn, rows, mask);
    if (leaving == 0)
        EM_NEXT;
    return em_exit_lanes(warp, leaving, insn + 1);
}

EM_HANDLER(trap_masked)
{
    const em_mask acting = em_guarded(insn, rows, mask);
    if (acting == 0)
        EM_NEXT;
    return em_raise(insn, warp, acting, CUDA_ERROR_LAUNCH_FAILED, "trap instruction");
}

EM_HANDLER(brkpt_masked)
{
    const em_mask acting = em_guarded(insn, rows, mask);
    if (acting == 0)
        EM_NEXT;
    return em_raise(insn, warp, acting, CUDA_ERROR_LAUNCH_FAILED, "breakpoint instruction with no debugger");
}

/* ---- order and time
 * -------------------------------------------------------------------------------------------------------- */

EM_HANDLER(fence_masked)
{
    if (em_guarded(insn, rows, mask) != 0)
        atomic_thread_fence(memory_order_seq_cst);
    EM_NEXT;
}

EM_HANDLER(nothing_masked)
{
    EM_NEXT;
}

EM_HANDLER(nanosleep_masked)
{
    if (em_guarded(insn, rows, mask) == 0)
        EM_NEXT;
    em_may_wait(warp);
    em_park(warp, insn + 1);
    return EM_YIELD;
}

/* A special register that changes while the kernel runs. b: ptx_special, aux: component, c: bytes of the row. */
EM_HANDLER(special_masked)
{
    const em_mask acting = em_guarded(insn, rows, mask);
    const uint64_t value = em_special_value(warp, insn->b, insn->aux, 0);
    if (insn->c == 8) {
        uint64_t *to = EM_ROW(uint64_t, insn->d);
        EM_EACH_LANE_OF(acting)
        to[lane] = value;
    } else {
        uint32_t *to = EM_ROW(uint32_t, insn->d);
        EM_EACH_LANE_OF(acting)
        to[lane] = (uint32_t)value;
    }
    EM_NEXT;
}

/* ---- who is here
 * -------------------------------------------------------------------------------------------------------------- */

EM_HANDLER(activemask_masked)
{
    const em_mask acting = em_guarded(insn, rows, mask);
    uint32_t *to = EM_ROW(uint32_t, insn->d);
    EM_EACH_LANE_OF(acting)
    to[lane] = mask;
    EM_NEXT;
}

/* elect.sync d|p, members: the lowest member leads. */
EM_HANDLER(elect_masked)
{
    const em_mask acting = em_guarded(insn, rows, mask);
    const em_status status = em_converge(insn, rows, warp, acting, insn->a);
    if (status != EM_GO)
        return status;
    const em_mask *members = EM_ROW(em_mask, insn->a);
    uint32_t *leaders = EM_ROW(uint32_t, insn->d);
    em_mask elected = 0;
    EM_EACH_LANE_OF(acting)
    {
        const em_mask present = members[lane] & acting;
        const unsigned leader = present != 0 ? (unsigned)__builtin_ctz(present) : (unsigned)lane;
        leaders[lane] = leader;
        elected |= (em_mask)(leader == (unsigned)lane) << lane;
    }
    EM_PREDICATE(insn->e) = (EM_PREDICATE(insn->e) & ~acting) | elected;
    EM_NEXT;
}

/* isspacep.const */
EM_HANDLER(in_constant_masked)
{
    const em_mask acting = em_guarded(insn, rows, mask);
    const uint64_t *addresses = EM_ROW(uint64_t, insn->a);
    em_mask results = 0;
    EM_EACH_LANE_OF(acting)
    {
        const em_range *range = em_heap_find(addresses[lane]);
        results |= (em_mask)(range != NULL && range->kind == EM_CONSTANT) << lane;
    }
    EM_PREDICATE(insn->d) = (EM_PREDICATE(insn->d) & ~acting) | results;
    EM_NEXT;
}

const em_control_table em_control = {
    .bra = {bra_full, bra_masked},
    .bra_if = {bra_if_full, bra_if_masked},
    .head = {head_full, head_masked},
    .brx = {brx_masked, brx_masked},
    .exit = {exit_masked, exit_masked},
    .trap = {trap_masked, trap_masked},
    .brkpt = {brkpt_masked, brkpt_masked},
    .fence = {fence_masked, fence_masked},
    .nothing = {nothing_masked, nothing_masked},
    .nanosleep = {nanosleep_masked, nanosleep_masked},
    .special = {special_masked, special_masked},
    .activemask = {activemask_masked, activemask_masked},
    .elect = {elect_masked, elect_masked},
    .in_constant = {in_constant_masked, in_constant_masked},
};
