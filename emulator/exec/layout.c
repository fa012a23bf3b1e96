/* What a kernel can reach through calls, and how much shared and local memory that takes. */
#include <stdlib.h>

#include "engine.h"

static const ptx_function *real(const ptx_function *function)
{
    while (function->alias_of != NULL)
        function = function->alias_of;
    return function;
}

static uint32_t align_up(uint32_t value, uint32_t align)
{
    return (value + align - 1) & ~(align - 1);
}

uint32_t em_layout_frame(const ptx_function *function, uint32_t *parameter_frame)
{
    const uint32_t align = function->parameter_frame != 0 && function->frame_align > 16 ? function->frame_align : 16;
    *parameter_frame = align_up((uint32_t)function->local_bytes, align);
    const uint32_t end = *parameter_frame + (uint32_t)function->parameter_frame;
    return align_up(end, function->local_align > align ? function->local_align : align);
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

static bool find_functions(em_layout *layout, const ptx_module *module, const ptx_function *kernel)
{
    bool *seen = calloc(module->function_count, sizeof *seen);
    layout->functions = calloc(module->function_count, sizeof *layout->functions);
    if (seen == NULL || layout->functions == NULL) {
        free(seen);
        return false;
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
    return true;
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

static bool add_shared(em_layout *layout, const ptx_variable *variable)
{
    if (variable->space != PTX_SPACE_SHARED || known(layout, variable))
        return true;
    const uint32_t count = layout->shared_count + 1;
    const ptx_variable **shared = realloc(layout->shared, count * sizeof *shared);
    if (shared == NULL)
        return false;
    layout->shared = shared;
    uint32_t *offsets = realloc(layout->shared_offsets, count * sizeof *offsets);
    if (offsets == NULL)
        return false;
    layout->shared_offsets = offsets;
    uint32_t offset = 0;
    if (variable->is_unsized) {
        layout->uses_dynamic = true;
        if (variable->align > layout->dynamic_align)
            layout->dynamic_align = variable->align;
    } else {
        offset = align_up(layout->static_shared, variable->align);
        layout->static_shared = offset + (uint32_t)variable->size;
    }
    shared[layout->shared_count] = variable;
    offsets[layout->shared_count] = offset;
    layout->shared_count = count;
    return true;
}

static bool find_shared(em_layout *layout)
{
    layout->dynamic_align = 16;
    for (uint32_t i = 0; i < layout->function_count; i++) {
        const ptx_function *function = layout->functions[i];
        for (uint32_t v = 0; v < function->variable_count; v++) {
            if (!add_shared(layout, function->variables[v]))
                return false;
        }
        for (uint32_t v = 0; v < function->used_count; v++) {
            if (!add_shared(layout, function->used[v]))
                return false;
        }
    }
    return true;
}

/* ---- local memory
 * -------------------------------------------------------------------------------------------------------- */

enum { UNVISITED, OPEN, CLOSED };
enum { LONGEST_CHAIN = 4096 }; /* of calls that is followed: the host's own stack is spent on it */

/* Bytes of the deepest chain of calls from a function; false: there is a cycle, a call of an unknown function, or a
 * chain that is too long to be followed. */
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
    uint32_t below = 0, parameter_frame;
    for (uint32_t i = 0; i < function->callee_count; i++) {
        uint32_t depth;
        if (!depth_of(function->callees[i], above + 1, state, deepest, &depth))
            return false;
        if (depth > below)
            below = depth;
    }
    state[function->index] = CLOSED;
    *result = deepest[function->index] = below + em_layout_frame(function, &parameter_frame);
    return true;
}

static bool find_local(em_layout *layout, const ptx_module *module)
{
    uint8_t *state = calloc(module->function_count, sizeof *state);
    uint32_t *deepest = calloc(module->function_count, sizeof *deepest);
    const bool enough = state != NULL && deepest != NULL;
    if (enough && !depth_of(layout->functions[0], 0, state, deepest, &layout->local_bytes))
        layout->local_bytes = EM_RECURSION_LOCAL;
    free(state);
    free(deepest);
    return enough;
}

bool em_layout_make(em_layout *layout, const ptx_module *module, const ptx_function *kernel)
{
    *layout = (em_layout){0};
    if (find_functions(layout, module, kernel) && find_shared(layout) && find_local(layout, module))
        return true;
    em_layout_free(layout);
    return false;
}

void em_layout_free(em_layout *layout)
{
    free(layout->functions);
    free(layout->shared);
    free(layout->shared_offsets);
    *layout = (em_layout){0};
}
