/* Calls and returns.
 *
 * A thread's activations lie one behind the other in its columns of the warp's stack, and its local bytes likewise in
 * its local memory, so a frame's place follows from the depth alone and lanes that come to one function by different
 * ways can join there. Each lane keeps its own return address. */
#include <cuda.h>
#include <stdlib.h>

#include "engine.h"

static inline unsigned char *lane_local(const em_warp *warp, const em_function *function, const unsigned char *rows,
                                        unsigned lane)
{
    uint32_t base;
    memcpy(&base, rows + function->local_row + lane * sizeof base, sizeof base);
    return warp->local + lane * warp->local_stride + base;
}

/* Where the caller keeps an argument or result of a lane. */
static unsigned char *place_of(const em_argument *argument, const em_call *call, unsigned char *rows,
                               const em_warp *warp, unsigned lane)
{
    if (argument->is_row)
        return rows + argument->place + lane * argument->size;
    return lane_local(warp, call->caller, rows, lane) + argument->place;
}

/* Where the callee has it: a .reg parameter is a row of its frame. */
static unsigned char *place_in_callee(const ptx_variable *formal, const em_function *callee, unsigned char *rows,
                                      const em_warp *warp, unsigned lane, uint32_t size)
{
    if (formal->space == PTX_SPACE_REGISTER)
        return rows + callee->registers[formal->reg] + lane * size;
    return lane_local(warp, callee, rows, lane) + callee->parameter_frame + formal->offset;
}

void em_argument_read(const em_call *call, const unsigned char *rows, const em_warp *warp, unsigned lane,
                      uint32_t index, void *value, uint32_t size)
{
    memset(value, 0, size);
    if (index >= call->argument_count)
        return;
    const em_argument *argument = &call->arguments[index];
    const unsigned char *from = argument->is_row ? rows + argument->place + lane * argument->size
                                                 : lane_local(warp, call->caller, rows, lane) + argument->place;
    memcpy(value, from, size < argument->size ? size : argument->size);
}

void em_result_write(const em_call *call, unsigned char *rows, const em_warp *warp, unsigned lane, const void *value,
                     uint32_t size)
{
    if (call->result_count == 0)
        return;
    const em_argument *result = &call->results[0];
    memcpy(place_of(result, call, rows, warp, lane), value, size < result->size ? size : result->size);
}

static bool grow_stack(em_warp *warp, uint32_t needed)
{
    if (needed <= warp->stack_bytes)
        return true;
    if (needed > EM_STACK_LIMIT)
        return false;
    uint32_t bytes = warp->stack_bytes * 2 > needed ? warp->stack_bytes * 2 : needed;
    bytes = (bytes + 63) & ~63u;
    unsigned char *grown = aligned_alloc(64, bytes);
    if (grown == NULL)
        return false;
    memcpy(grown, warp->stack, warp->stack_bytes);
    free(warp->stack);
    warp->stack = grown;
    warp->stack_bytes = bytes;
    return true;
}

/* Makes the callee's frame for the lanes of `mask`. The caller's rows may move: rows are found again from the stack. */
static bool enter(const em_insn *insn, em_warp *warp, em_mask mask, const em_call *call, const em_function *callee)
{
    const em_function *caller = call->caller;
    const uint32_t caller_base = warp->current->base, base = caller_base + caller->frame_bytes;
    if (!grow_stack(warp, base + callee->frame_bytes))
        return false;
    unsigned char *caller_rows = warp->stack + caller_base, *rows = warp->stack + base;
    const uint32_t *caller_local = (const uint32_t *)(const void *)(caller_rows + caller->local_row);
    uint32_t *local = EM_ROW(uint32_t, callee->local_row);
    const em_insn **return_to = EM_ROW(const em_insn *, callee->return_row);
    const em_insn *after = em_masked_pc(warp->program, insn) + 1;
    EM_EACH_LANE_OF(mask)
    {
        local[lane] = caller_local[lane] + caller->local_bytes;
        return_to[lane] = after;
        if ((uint64_t)local[lane] + callee->local_bytes > warp->local_bytes)
            return false;
    }
    em_frame_fill(callee, warp, rows, mask);
    for (uint32_t i = 0; i < call->argument_count && i < callee->ptx->parameter_count; i++) {
        const em_argument *argument = &call->arguments[i];
        const ptx_variable *formal = callee->ptx->parameters[i];
        EM_EACH_LANE_OF(mask)
        memcpy(place_in_callee(formal, callee, rows, warp, (unsigned)lane, argument->size),
               place_of(argument, call, caller_rows, warp, (unsigned)lane), argument->size);
    }
    return true;
}

/* The function at the address that the lowest lane calls; `alike` receives the lanes that call the same. */
static const em_function *callee_at(const em_insn *insn, const unsigned char *rows, const em_warp *warp, em_mask mask,
                                    em_mask *alike)
{
    uint64_t addresses[EM_LANES];
    memcpy(addresses, rows + insn->a, sizeof addresses);
    const uint64_t first = addresses[__builtin_ctz(mask)];
    *alike = 0;
    EM_EACH_LANE_OF(mask)
    *alike |= (em_mask)(addresses[lane] == first) << lane;
    const uint64_t number = (first - EM_FUNCTION_WINDOW) >> EM_FUNCTION_SHIFT;
    if (number == 0 || number > warp->program->ptx->function_count || (first & ((1 << EM_FUNCTION_SHIFT) - 1)) != 0)
        return NULL;
    return warp->program->by_index[number - 1];
}

/* imm: em_call. The next instruction is `after`, the one behind it where lanes that do not call go on. */
EM_HANDLER(call_masked)
{
    em_mask acting = em_guarded(insn, rows, mask);
    if (acting == 0)
        return insn[2].run(insn + 2, rows, warp, mask);
    const em_call *call = (const em_call *)(uintptr_t)insn->imm;
    const em_function *callee = call->callee;
    const uint32_t base = warp->current->base;
    if (mask != acting)
        em_split(warp, mask & ~acting, insn + 2, base);
    if (callee == NULL) {
        em_mask alike;
        callee = callee_at(insn, rows, warp, acting, &alike);
        if (callee == NULL)
            return em_raise(insn, warp, alike, CUDA_ERROR_INVALID_PC,
                            "indirect call of an address that is no function");
        if (alike != acting)
            em_split(warp, acting & ~alike, insn, base);
        acting = alike;
    }
    if (!enter(insn, warp, acting, call, callee))
        return em_raise(insn, warp, acting, CUDA_ERROR_HARDWARE_STACK_ERROR, "stack overflow in a call of '%s'",
                        callee->ptx->name);
    warp->current->base = base + call->caller->frame_bytes;
    const em_insn *entry = warp->program->masked + callee->entry;
    if (acting == warp->live) {
        entry = em_full_pc(warp->program, entry);
        return entry->run(entry, warp->stack + warp->current->base, warp, acting);
    }
    em_park(warp, entry);
    return EM_RESCHEDULE;
}

/* Lanes back from a call: the results are still in the callee's frame. a: row of the callee (0: imm says). */
EM_HANDLER(after_masked)
{
    const em_call *call = (const em_call *)(uintptr_t)insn->imm;
    const em_function *caller = call->caller;
    unsigned char *callee_rows = rows + caller->frame_bytes;
    for (uint32_t i = 0; i < call->result_count; i++) {
        EM_EACH_LANE_OF(mask)
        {
            const em_function *callee = call->callee;
            if (callee == NULL) {
                uint64_t address;
                memcpy(&address, rows + insn->a + (unsigned)lane * sizeof address, sizeof address);
                callee = warp->program->by_index[((address - EM_FUNCTION_WINDOW) >> EM_FUNCTION_SHIFT) - 1];
            }
            if (i < callee->ptx->result_count)
                memcpy(place_of(&call->results[i], call, rows, warp, (unsigned)lane),
                       place_in_callee(callee->ptx->results[i], callee, callee_rows, warp, (unsigned)lane,
                                       call->results[i].size),
                       call->results[i].size);
        }
    }
    EM_NEXT;
}

/* imm: em_function. */
EM_HANDLER(ret_masked)
{
    const em_mask acting = em_guarded(insn, rows, mask);
    if (acting == 0)
        EM_NEXT;
    const em_function *function = (const em_function *)(uintptr_t)insn->imm;
    const em_insn *const *return_to = EM_ROW(const em_insn *, function->return_row);
    const em_insn *target = return_to[__builtin_ctz(acting)];
    em_mask alike = 0;
    EM_EACH_LANE_OF(acting)
    alike |= (em_mask)(return_to[lane] == target) << lane;
    const em_program *program = warp->program;
    const uint32_t base = warp->current->base;
    if (mask != acting)
        em_split(warp, mask & ~acting, insn + 1, base);
    if (acting != alike)
        em_split(warp, acting & ~alike, insn, base);
    warp->current->base = base - program->origins[target - program->masked].function->frame_bytes;
    if (alike == warp->live) {
        target = em_full_pc(program, target);
        return target->run(target, warp->stack + warp->current->base, warp, alike);
    }
    em_park(warp, target);
    return EM_RESCHEDULE;
}

EM_HANDLER(builtin_masked)
{
    const em_mask acting = em_guarded(insn, rows, mask);
    if (acting != 0) {
        const em_call *call = (const em_call *)(uintptr_t)insn->imm;
        const em_status status = call->builtin(insn, rows, warp, acting, call);
        if (status != EM_GO)
            return status;
    }
    EM_NEXT;
}

const em_call_table em_calls = {
    .call = {call_masked, call_masked},
    .after = {after_masked, after_masked},
    .ret = {ret_masked, ret_masked},
    .builtin = {builtin_masked, builtin_masked},
};
