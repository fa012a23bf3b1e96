/* What a kernel can reach through calls, and how much shared and local memory that takes. What is more than a GPU has
 * is refused here, so that whoever reads a layout can count in 32 bits. */
#include <cuda.h>
#include <stdlib.h>

#include "engine.h"

enum {
    MOST_SHARED = 48 << 10, /* bytes a block that are declared; more is dynamic */
    MOST_LOCAL = 512 << 10, /* bytes a thread */
};

static const ptx_function *real(const ptx_function *function)
{
    while (function->alias_of != NULL)
        function = function->alias_of;
    return function;
}

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

uint64_t em_layout_frame(const ptx_function *function, uint64_t *parameter_frame)
{
    const uint32_t align = function->parameter_frame != 0 && function->frame_align > 16 ? function->frame_align : 16;
    *parameter_frame = align_up(function->local_bytes, align);
    const uint64_t end = *parameter_frame + function->parameter_frame;
    return align_up(end, function->local_align > align ? function->local_align : align);
}

static int out_of_memory(const ptx_function *kernel, em_detail *detail)
{
    return em_fail(detail, CUDA_ERROR_OUT_OF_MEMORY, "no host memory for kernel '%s'", kernel->name);
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* Appends what `function` may call; the list grows while it is walked, so all of it is found. */
static void reach(em_layout *layout, bool *seen, const ptx_function *function)
{
    function = real(function);
    if (!function->has_body || seen[function->index])
        return;
    seen[function->index] = true;
    layout->functions[layout->function_count++] = function;
}

static int find_functions(em_layout *layout, const ptx_module *module, const ptx_function *kernel, em_detail *detail)
{
    bool *seen = calloc(module->function_count, sizeof *seen);
    layout->functions = calloc(module->function_count, sizeof *layout->functions);
    if (seen == NULL || layout->functions == NULL) {
        free(seen);
        return out_of_memory(kernel, detail);
    }
    reach(layout, seen, kernel);
    for (uint32_t i = 0; i < layout->function_count; i++) {
        const ptx_function *caller = layout->functions[i];
        for (uint32_t c = 0; c < caller->callee_count; c++)
            reach(layout, seen, caller->callees[c]);
        for (uint32_t f = 0; caller->calls_indirectly && f < module->function_count; f++) {
            if (module->functions[f]->address_taken)
                reach(layout, seen, module->functions[f]);
        }
    }
    free(seen);
    return 0;
}

/* ---- shared variables
 * ------------------------------------------------------------------------------------------------ */

static bool known(const em_layout *layout, const ptx_variable *variable)
{
    for (uint32_t i = 0; i < layout->shared_count; i++) {
        if (layout->shared[i] == variable)
            return true;
    }
    return false;
}

static int too_much_shared(const em_layout *layout, const ptx_variable *variable, uint64_t bytes, em_detail *detail)
{
    return em_fail(detail, CUDA_ERROR_INVALID_PTX,
                   "%u:1: kernel '%s' uses %llu bytes of shared memory with '%s'; a block has %d, more is to be dynamic",
                   variable->line, layout->functions[0]->name, (unsigned long long)bytes, variable->name, MOST_SHARED);
}

static int place_shared(em_layout *layout, const ptx_variable *variable, uint32_t *offset, em_detail *detail)
{
    if (variable->is_unsized) {
        layout->uses_dynamic = true;
        if (variable->align > layout->dynamic_align)
            layout->dynamic_align = variable->align;
        *offset = 0;
        return 0;
    }
    const uint64_t begin = align_up(layout->static_shared, variable->align), end = begin + variable->size;
    if (end > MOST_SHARED)
        return too_much_shared(layout, variable, end, detail);
    *offset = (uint32_t)begin;
    layout->static_shared = (uint32_t)end;
    return 0;
}

static int add_shared(em_layout *layout, const ptx_variable *variable, em_detail *detail)
{
    if (variable->space != PTX_SPACE_SHARED || known(layout, variable))
        return 0;
    const uint32_t count = layout->shared_count + 1;
    const ptx_variable **shared = realloc(layout->shared, count * sizeof *shared);
    if (shared == NULL)
        return out_of_memory(layout->functions[0], detail);
    layout->shared = shared;
    uint32_t *offsets = realloc(layout->shared_offsets, count * sizeof *offsets);
    if (offsets == NULL)
        return out_of_memory(layout->functions[0], detail);
    layout->shared_offsets = offsets;
    shared[layout->shared_count] = variable;
    const int failed = place_shared(layout, variable, &offsets[layout->shared_count], detail);
    layout->shared_count = count;
    return failed;
}

/* Dynamic memory begins behind what is declared, aligned. */
static int check_dynamic(const em_layout *layout, em_detail *detail)
{
    const uint64_t begin = align_up(layout->static_shared, layout->dynamic_align);
    for (uint32_t i = 0; begin > MOST_SHARED && i < layout->shared_count; i++) {
        if (layout->shared[i]->align == layout->dynamic_align)
            return too_much_shared(layout, layout->shared[i], begin, detail);
    }
    return 0;
}

static int find_shared(em_layout *layout, em_detail *detail)
{
    layout->dynamic_align = 16;
    int failed = 0;
    for (uint32_t i = 0; i < layout->function_count; i++) {
        const ptx_function *function = layout->functions[i];
        for (uint32_t v = 0; failed == 0 && v < function->variable_count; v++)
            failed = add_shared(layout, function->variables[v], detail);
        for (uint32_t v = 0; failed == 0 && v < function->used_count; v++)
            failed = add_shared(layout, function->used[v], detail);
    }
    return failed != 0 ? failed : check_dynamic(layout, detail);
}

/* ---- local memory
 * -------------------------------------------------------------------------------------------------------- */

enum { UNVISITED, OPEN, CLOSED };
enum { LONGEST_CHAIN = 4096 }; /* of calls that is followed: the host's own stack is spent on it */

/* Bytes of the deepest chain of calls from a function; false: there is a cycle, a call of an unknown function, or a
 * chain that is too long to be followed. No frame is larger than MOST_LOCAL, and no chain is longer than LONGEST_CHAIN:
 * 32 bits hold the sum. */
static bool depth_of(const ptx_function *function, unsigned above, uint8_t *state, uint32_t *deepest, uint32_t *result)
{
    function = real(function);
    if (!function->has_body) {
        *result = 0;
        return true;
    }
    if (state[function->index] == CLOSED) {
        *result = deepest[function->index];
        return true;
    }
    if (state[function->index] == OPEN || function->calls_indirectly || above == LONGEST_CHAIN)
        return false;
    state[function->index] = OPEN;
    uint32_t below = 0;
    for (uint32_t i = 0; i < function->callee_count; i++) {
        uint32_t depth;
        if (!depth_of(function->callees[i], above + 1, state, deepest, &depth))
            return false;
        if (depth > below)
            below = depth;
    }
    state[function->index] = CLOSED;
    uint64_t parameter_frame;
    *result = deepest[function->index] = below + (uint32_t)em_layout_frame(function, &parameter_frame);
    return true;
}

static int check_local(const em_layout *layout, const ptx_function *function, uint64_t bytes, em_detail *detail)
{
    if (bytes <= MOST_LOCAL)
        return 0;
    return em_fail(detail, CUDA_ERROR_INVALID_PTX,
                   "%u:1: kernel '%s' uses %llu bytes of local memory in '%s' and what it calls; a thread has %d",
                   function->line, layout->functions[0]->name, (unsigned long long)bytes, function->name, MOST_LOCAL);
}

static int find_local(em_layout *layout, const ptx_module *module, em_detail *detail)
{
    const ptx_function *kernel = layout->functions[0];
    uint64_t parameter_frame;
    for (uint32_t i = 0; i < layout->function_count; i++) {
        const ptx_function *function = layout->functions[i];
        const int failed = check_local(layout, function, em_layout_frame(function, &parameter_frame), detail);
        if (failed != 0)
            return failed;
    }
    uint8_t *state = calloc(module->function_count, sizeof *state);
    uint32_t *deepest = calloc(module->function_count, sizeof *deepest);
    const bool enough = state != NULL && deepest != NULL;
    if (enough && !depth_of(kernel, 0, state, deepest, &layout->local_bytes))
        layout->local_bytes = EM_RECURSION_LOCAL + (uint32_t)em_layout_frame(kernel, &parameter_frame);
    free(state);
    free(deepest);
    return enough ? check_local(layout, kernel, layout->local_bytes, detail) : out_of_memory(kernel, detail);
}

int em_layout_make(em_layout *layout, const ptx_module *module, const ptx_function *kernel, em_detail *detail)
{
    *layout = (em_layout){0};
    int failed = find_functions(layout, module, kernel, detail);
    if (failed == 0)
        failed = find_shared(layout, detail);
    if (failed == 0)
        failed = find_local(layout, module, detail);
    if (failed != 0)
        em_layout_free(layout);
    return failed;
}

void em_layout_free(em_layout *layout)
{
    free(layout->functions);
    free(layout->shared);
    free(layout->shared_offsets);
    *layout = (em_layout){0};
}
