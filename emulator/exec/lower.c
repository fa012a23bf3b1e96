/* A kernel and all it can call, from PTX to bytecode: once, when it is first launched.
 *
 * Each instruction becomes one of the two tables' worth: `full` runs where a fragment holds every live lane of its
 * warp, `masked` elsewhere, at the same index. */
#include <cuda.h>
#include <stdlib.h>

#include "lower.h"

/* ---- emitting ---------------------------------------------------------------------------------------------------- */

bool em_lower_out_of_memory(lowering *self)
{
    if (!self->failed)
        em_fail(self->detail, CUDA_ERROR_OUT_OF_MEMORY, "no host memory to prepare kernel '%s'",
                self->kernel->info.name);
    self->failed = true;
    return false;
}

bool em_refuse(lowering *self, const char *why)
{
    if (self->failed)
        return false;
    self->failed = true;
    char *text = ptx_dump_instruction(self->program->ptx, self->ptx, self->at);
    em_fail(self->detail, CUDA_ERROR_NOT_SUPPORTED,
            "the emulator does not have '%s'%s%s: PTX line %u of '%s', which kernel '%s' %s%s%s",
            self->at->mnemonic->spelling, why != NULL ? " " : "", why != NULL ? why : "", self->at->line,
            self->ptx->name, self->kernel->info.name, self->ptx == self->kernel->function ? "is" : "can call",
            text != NULL ? ":\n  " : "", text != NULL ? text : "");
    free(text);
    return false;
}

void *em_lower_own(lowering *self, size_t bytes)
{
    em_program *program = self->program;
    void **owned = realloc(program->owned, (program->owned_count + 1) * sizeof *owned);
    if (owned != NULL)
        program->owned = owned;
    void *made = owned != NULL ? calloc(1, bytes != 0 ? bytes : 1) : NULL;
    if (made == NULL) {
        em_lower_out_of_memory(self);
        return NULL;
    }
    owned[program->owned_count++] = made;
    return made;
}

draft *em_emit(lowering *self, em_handlers handlers)
{
    if (self->failed)
        return NULL;
    if (self->count == self->capacity) {
        const uint32_t capacity = self->capacity != 0 ? 2 * self->capacity : 256;
        draft *drafts = realloc(self->drafts, capacity * sizeof *drafts);
        if (drafts == NULL) {
            em_lower_out_of_memory(self);
            return NULL;
        }
        self->drafts = drafts;
        self->capacity = capacity;
    }
    draft *made = &self->drafts[self->count++];
    *made = (draft){.insn = {.guard = EM_TRUE_OFFSET},
                    .handlers = handlers,
                    .origin = {.ptx = self->at, .function = self->function, .order = self->order}};
    if (handlers.full == NULL) /* a hole in a table of the engine: this shape of the instruction is not there */
        em_refuse(self, "in this shape");
    return made;
}

draft *em_emit_guarded(lowering *self, em_handlers handlers)
{
    draft *made = em_emit(self, handlers);
    if (made != NULL) {
        made->insn.guard = self->guard;
        made->insn.guard_flip = self->guard_flip;
    }
    return made;
}

void em_fix_up(lowering *self, uint32_t at, uint32_t target)
{
    if (self->fixup_count == self->fixup_capacity) {
        const uint32_t capacity = self->fixup_capacity != 0 ? 2 * self->fixup_capacity : 64;
        fixup *fixups = realloc(self->fixups, capacity * sizeof *fixups);
        if (fixups == NULL) {
            em_lower_out_of_memory(self);
            return;
        }
        self->fixups = fixups;
        self->fixup_capacity = capacity;
    }
    self->fixups[self->fixup_count++] = (fixup){at, target};
}

/* ---- one instruction
 * ---------------------------------------------------------------------------------------------------- */

static void set_guard(lowering *self, const ptx_instruction *instruction)
{
    self->guard = EM_TRUE_OFFSET;
    self->guard_flip = 0;
    if (instruction->guard == PTX_NO_REGISTER)
        return;
    self->guard = self->known[instruction->guard].is_known
                      ? em_row_constant(self, &self->known[instruction->guard].constant)
                      : self->function->registers[instruction->guard];
    self->guard_flip = instruction->guard_negated ? EM_ALL_LANES : 0;
}

static void lower_instruction(lowering *self, const ptx_instruction *instruction)
{
    self->at = instruction;
    memset(self->temporaries_used, 0, sizeof self->temporaries_used);
    set_guard(self, instruction);
    if (instruction->op == PTX_OP_UNSUPPORTED)
        em_refuse(self, NULL);
    else if (!em_lower_control(self) && !em_lower_memory(self) && !em_lower_move(self) &&
             !em_lower_matrix(self) && !em_lower_form(self))
        em_refuse(self, NULL);
    em_forget_patterns(self);
}

/* ---- one function
 * ----------------------------------------------------------------------------------------------------------- */

/* Whether several ways lead to a block, one of them by falling into it: then those who fall must look for others. */
static bool needs_head(const ptx_function *ptx, uint32_t block)
{
    const ptx_block *before = block != 0 ? &ptx->blocks[block - 1] : NULL;
    if (before == NULL || before->end == before->first)
        return false;
    bool falls = false;
    unsigned ways = 0;
    for (uint32_t i = 0; i < before->successor_count; i++)
        falls |= before->successors[i] == block;
    for (uint32_t i = 0; falls && ways < 2 && i < ptx->block_count; i++) {
        for (uint32_t s = 0; s < ptx->blocks[i].successor_count; s++)
            ways += ptx->blocks[i].successors[s] == block;
    }
    return falls && ways >= 2;
}

static void lower_blocks(lowering *self, uint32_t first_order, const uint8_t *heads)
{
    const ptx_function *ptx = self->ptx;
    for (uint32_t b = 0; b < ptx->block_count && !self->failed; b++) {
        const ptx_block *block = &ptx->blocks[b];
        self->order = first_order + block->order;
        if (heads[b] && block->first < ptx->instruction_count) {
            self->at = &ptx->instructions[block->first];
            draft *head = em_emit(self, em_control.head);
            if (head != NULL)
                head->insn.b = self->order;
        }
        for (uint32_t i = block->first; i < block->end && !self->failed; i++) {
            self->starts[i] = self->count;
            if (!self->skipped[i])
                lower_instruction(self, &ptx->instructions[i]);
        }
    }
}

/* The end of the text returns. */
static void lower_end(lowering *self, uint32_t order)
{
    self->order = order;
    self->at = NULL;
    self->starts[self->ptx->instruction_count] = self->count;
    draft *end = em_emit(self, self->ptx->is_entry ? em_control.exit : em_calls.ret);
    if (end != NULL)
        end->insn.imm = (int64_t)(intptr_t)self->function;
}

static void resolve_fixups(lowering *self)
{
    for (uint32_t i = 0; i < self->fixup_count; i++) {
        const fixup *fixed = &self->fixups[i];
        const uint32_t target = self->starts[fixed->target];
        em_insn *insn = &self->drafts[fixed->at].insn;
        if (self->drafts[fixed->at].handlers.masked == em_control.brx.masked) {
            em_targets *targets = (em_targets *)(uintptr_t)insn->imm;
            for (uint32_t t = 0; t < targets->count; t++)
                targets->target[t] = self->starts[targets->target[t]];
            continue;
        }
        insn->imm = ((int64_t)target - (int64_t)fixed->at) * (int64_t)sizeof(em_insn);
        insn->b = self->drafts[target].origin.order;
        insn->aux = target <= fixed->at;
    }
}

/* Constants that change with the block go last, so that they alone are filled again. */
static void sort_constants(em_function *function)
{
    uint32_t front = 0;
    for (uint32_t i = 0; i < function->constant_count; i++) {
        if (function->constants[i].kind == EM_CONSTANT_BLOCK)
            continue;
        const em_constant kept = function->constants[i];
        function->constants[i] = function->constants[front];
        function->constants[front++] = kept;
    }
    function->block_constants = front;
}

static void begin_function(lowering *self, em_function *function)
{
    const ptx_function *ptx = function->ptx;
    self->function = function;
    self->ptx = ptx;
    self->at = ptx->instruction_count != 0 ? &ptx->instructions[0] : NULL;
    self->fixup_count = 0;
    self->constant_capacity = 0;
    self->constant_table_size = 0;
    self->next_row = 64;
    self->next_predicate = 12; /* behind the true predicate, the carry and the scratch predicate */
    self->predicate_end = 64;
    self->scratch = 0;
    memset(self->temporary_count, 0, sizeof self->temporary_count);
    self->known = calloc(ptx->register_count + 1, sizeof *self->known);
    self->skipped = calloc(ptx->instruction_count + 1, sizeof *self->skipped);
    self->starts = calloc(ptx->instruction_count + 1, sizeof *self->starts);
    self->uses = calloc(ptx->instruction_count + 1, sizeof *self->uses);
    self->patterns = calloc(ptx->register_count + 1, sizeof *self->patterns);
    self->analysed = calloc(ptx->register_count + 1, sizeof *self->analysed);
    if (self->uses == NULL || self->patterns == NULL || self->analysed == NULL || self->known == NULL ||
        self->skipped == NULL || self->starts == NULL) {
        em_lower_out_of_memory(self);
        return;
    }
    function->local_row = ptx->is_entry ? em_row_bits(self, 4, 0) : em_row_new(self, 4);
    function->return_row = ptx->is_entry ? 0 : em_row_new(self, 8);
    em_find_known(self);
    em_find_uses(self);
    for (uint32_t i = 0; i < ptx->register_count; i++) {
        if (!self->known[i].is_known)
            function->registers[i] = em_row_new(self, em_type_bytes(ptx->registers[i].type));
    }
}

static void end_function(lowering *self)
{
    sort_constants(self->function);
    self->function->frame_bytes = self->next_row;
    free(self->known);
    free(self->skipped);
    free(self->starts);
    free(self->uses);
    free(self->patterns);
    free(self->analysed);
    free(self->constant_table);
    self->known = NULL;
    self->skipped = NULL;
    self->starts = NULL;
    self->uses = NULL;
    self->patterns = NULL;
    self->analysed = NULL;
    self->constant_table = NULL;
}

static uint32_t lower_function(lowering *self, em_function *function, uint32_t first_order)
{
    const ptx_function *ptx = function->ptx;
    uint8_t *heads = calloc(ptx->block_count + 1, 1);
    begin_function(self, function);
    if (heads == NULL)
        em_lower_out_of_memory(self);
    if (!self->failed) {
        for (uint32_t b = 1; b < ptx->block_count; b++)
            heads[b] = needs_head(ptx, b);
        function->entry = self->count;
        lower_blocks(self, first_order, heads);
        lower_end(self, first_order + ptx->block_count);
        if (!self->failed)
            resolve_fixups(self);
    }
    end_function(self);
    free(heads);
    return first_order + ptx->block_count + 1;
}

/* ---- the program
 * ---------------------------------------------------------------------------------------------------------------- */

static bool make_functions(lowering *self)
{
    em_program *program = self->program;
    const em_layout *layout = &self->kernel->layout;
    const ptx_module *ptx = program->ptx;
    program->functions = calloc(layout->function_count, sizeof *program->functions);
    program->by_index = calloc(ptx->function_count, sizeof *program->by_index);
    if (program->functions == NULL || program->by_index == NULL)
        return em_lower_out_of_memory(self);
    for (uint32_t i = 0; i < layout->function_count; i++) {
        const ptx_function *from = layout->functions[i];
        em_function *made = calloc(1, sizeof *made);
        if (made == NULL)
            return em_lower_out_of_memory(self);
        program->functions[program->function_count++] = made;
        program->by_index[from->index] = made;
        made->ptx = from;
        made->program = program;
        made->registers = calloc(from->register_count + 1, sizeof *made->registers);
        if (made->registers == NULL)
            return em_lower_out_of_memory(self);
        uint64_t parameter_frame;
        made->local_bytes = (uint32_t)em_layout_frame(from, &parameter_frame);
        made->parameter_frame = (uint32_t)parameter_frame;
    }
    for (uint32_t i = 0; i < ptx->function_count; i++) {
        const ptx_function *function = ptx->functions[i];
        if (function->alias_of != NULL)
            program->by_index[i] = program->by_index[function->alias_of->index];
    }
    return true;
}

/* Lays both tables out. */
static bool finish(lowering *self)
{
    em_program *program = self->program;
    program->count = self->count;
    program->masked = calloc(2 * (size_t)self->count, sizeof *program->masked);
    program->origins = calloc(self->count, sizeof *program->origins);
    if (program->masked == NULL || program->origins == NULL)
        return em_lower_out_of_memory(self);
    program->full = program->masked + self->count;
    for (uint32_t i = 0; i < self->count; i++) {
        const draft *from = &self->drafts[i];
        const bool guarded = from->insn.guard != EM_TRUE_OFFSET || from->insn.guard_flip != 0;
        program->masked[i] = program->full[i] = from->insn;
        program->masked[i].run = from->handlers.masked;
        program->full[i].run = guarded && !from->keeps_full ? from->handlers.masked : from->handlers.full;
        program->origins[i] = from->origin;
    }
    return true;
}

int em_lower(em_kernel *kernel, em_program **program, em_detail *detail)
{
    const em_layout *layout = &kernel->layout;
    em_program *made = calloc(1, sizeof *made);
    detail->code = 0;
    if (made == NULL)
        return em_fail(detail, CUDA_ERROR_OUT_OF_MEMORY, "no host memory to prepare kernel '%s'", kernel->info.name);
    made->ptx = kernel->module->ptx;
    made->kernel = kernel;
    made->static_shared = layout->static_shared;
    made->dynamic_align = layout->dynamic_align;
    made->uses_dynamic = layout->uses_dynamic;
    made->local_bytes = layout->local_bytes;
    made->uses_local = layout->local_bytes != 0;
    made->slot_count = 1;
    lowering self = {.kernel = kernel, .program = made, .isa = em_isa_chosen(), .detail = detail};
    uint32_t order = 0;
    if (self.isa == NULL)
        em_lower_out_of_memory(&self);
    if (!self.failed && make_functions(&self)) {
        for (uint32_t i = 0; i < made->function_count && !self.failed; i++)
            order = lower_function(&self, made->functions[i], order);
    }
    if (!self.failed)
        finish(&self);
    free(self.drafts);
    free(self.fixups);
    if (self.failed) {
        em_program_free(made);
        return detail->code;
    }
    *program = made;
    return 0;
}

void em_program_free(em_program *program)
{
    if (program == NULL)
        return;
    for (uint32_t i = 0; i < program->function_count; i++) {
        free(program->functions[i]->constants);
        free(program->functions[i]->registers);
        free(program->functions[i]);
    }
    for (uint32_t i = 0; i < program->owned_count; i++)
        free(program->owned[i]);
    free(program->owned);
    free(program->functions);
    free(program->by_index);
    free(program->masked);
    free(program->origins);
    free(program);
}
