/* Rows of a frame: registers, constants, temporaries; and registers that always hold one value. */
#include <stdlib.h>

#include "lower.h"

unsigned em_log2(unsigned bytes)
{
    return (unsigned)__builtin_ctz(bytes);
}

unsigned em_type_bytes(ptx_type type)
{
    return type == PTX_PRED ? 0 : ptx_type_size(type);
}

/* ---- allocation -------------------------------------------------------------------------------------------------- */

uint32_t em_row_new(lowering *self, unsigned bytes)
{
    if (bytes == 0) {
        if (self->next_predicate == self->predicate_end) {
            self->next_predicate = self->next_row;
            self->next_row += 64;
            self->predicate_end = self->next_row;
        }
        self->next_predicate += (uint32_t)sizeof(em_mask);
        return self->next_predicate - (uint32_t)sizeof(em_mask);
    }
    const uint32_t row = self->next_row;
    self->next_row += (bytes * EM_LANES + 63) & ~63u;
    return row;
}

uint32_t em_row_temporary(lowering *self, unsigned bytes)
{
    const unsigned kind = bytes == 0 ? EM_SIZES : em_log2(bytes);
    const uint32_t index = self->temporaries_used[kind]++;
    if (index < self->temporary_count[kind])
        return self->temporaries[kind][index];
    const uint32_t row = em_row_new(self, bytes);
    if (index < sizeof self->temporaries[kind] / sizeof self->temporaries[kind][0]) {
        self->temporaries[kind][index] = row;
        self->temporary_count[kind] = index + 1;
    }
    return row;
}

uint32_t em_row_scratch(lowering *self, unsigned bytes)
{
    if (bytes == 0)
        return 8; /* a word of the frame's head */
    if (self->scratch == 0)
        self->scratch = em_row_new(self, 16);
    return self->scratch;
}

/* ---- constants
 * ------------------------------------------------------------------------------------------------------- */

static uint32_t hash_of(const em_constant *constant)
{
    uint64_t hash = constant->bits * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= constant->kind | (uint64_t)constant->size << 8 | (uint64_t)constant->special << 16 |
            (uint64_t)constant->component << 24;
    return (uint32_t)((hash * UINT64_C(0xff51afd7ed558ccd)) >> 33);
}

static bool same(const em_constant *one, const em_constant *other)
{
    return one->kind == other->kind && one->size == other->size && one->special == other->special &&
           one->component == other->component && one->bits == other->bits;
}

static bool grow_constants(lowering *self)
{
    em_function *function = self->function;
    const uint32_t capacity = self->constant_capacity != 0 ? 2 * self->constant_capacity : 32;
    em_constant *constants = realloc(function->constants, capacity * sizeof *constants);
    if (constants == NULL)
        return false;
    function->constants = constants;
    self->constant_capacity = capacity;
    free(self->constant_table);
    self->constant_table_size = 2 * capacity;
    self->constant_table = calloc(self->constant_table_size, sizeof *self->constant_table);
    if (self->constant_table == NULL)
        return false;
    for (uint32_t i = 0; i < function->constant_count; i++) {
        uint32_t at = hash_of(&constants[i]) & (self->constant_table_size - 1);
        while (self->constant_table[at] != 0)
            at = (at + 1) & (self->constant_table_size - 1);
        self->constant_table[at] = i + 1;
    }
    return true;
}

uint32_t em_row_constant(lowering *self, const em_constant *wanted)
{
    em_function *function = self->function;
    if (function->constant_count == self->constant_capacity && !grow_constants(self)) {
        em_lower_out_of_memory(self);
        return 0;
    }
    uint32_t at = hash_of(wanted) & (self->constant_table_size - 1);
    for (; self->constant_table[at] != 0; at = (at + 1) & (self->constant_table_size - 1)) {
        const em_constant *known = &function->constants[self->constant_table[at] - 1];
        if (same(known, wanted))
            return known->offset;
    }
    em_constant *made = &function->constants[function->constant_count++];
    *made = *wanted;
    made->offset = em_row_new(self, wanted->size);
    self->constant_table[at] = function->constant_count;
    return made->offset;
}

uint32_t em_row_bits(lowering *self, unsigned bytes, uint64_t bits)
{
    if (bytes == 0 && bits != 0)
        return EM_TRUE_OFFSET;
    if (bytes < 8 && bytes != 0)
        bits &= (UINT64_C(1) << (8 * bytes)) - 1;
    const em_constant wanted = {.kind = EM_CONSTANT_BITS, .size = (uint8_t)bytes, .bits = bits};
    return em_row_constant(self, &wanted);
}

/* ---- registers that always hold one value
 * -------------------------------------------------------------------------------- */

/* A register that one unguarded instruction writes, with what is constant for a thread, is that constant's row, and the
 * instruction is left out. A use that comes before the instruction would read an undefined value anyway. */

static void count_writes(const ptx_operand *operand, uint32_t *writes)
{
    if (operand->kind == PTX_OPERAND_REGISTER && operand->destination) {
        writes[operand->reg]++;
        return;
    }
    if (operand->kind != PTX_OPERAND_VECTOR && operand->kind != PTX_OPERAND_PAIR && operand->kind != PTX_OPERAND_LIST)
        return;
    for (uint32_t i = 0; i < operand->count; i++) {
        const ptx_operand *element = &operand->elements[i];
        if (element->kind == PTX_OPERAND_REGISTER && (element->destination || operand->destination))
            writes[element->reg]++;
    }
}

static bool known_load(lowering *self, const ptx_instruction *instruction, unsigned bytes, em_constant *constant)
{
    const ptx_operand *address = &instruction->operands[1];
    const ptx_variable *variable = address->kind == PTX_OPERAND_ADDRESS ? address->variable : NULL;
    if (!self->ptx->is_entry || instruction->mnemonic->vector > 1 || variable == NULL ||
        address->reg != PTX_NO_REGISTER || !variable->is_parameter || variable->owner != self->ptx ||
        variable->space != PTX_SPACE_PARAM || ptx_type_size(ptx_type_of(instruction, 0)) != bytes)
        return false;
    const uint64_t offset = variable->offset + address->bits;
    if (bytes > 8 || offset % bytes != 0 || offset + bytes > self->ptx->parameter_bytes)
        return false;
    *constant = (em_constant){.kind = EM_CONSTANT_PARAMETER, .size = (uint8_t)bytes, .bits = offset};
    return true;
}

/* cvta.to of what is an address already, and cvta of a constant one. */
static bool known_address(lowering *self, const ptx_instruction *instruction, unsigned bytes, em_constant *constant)
{
    if (bytes != 8 || !em_operand_constant(self, &instruction->operands[1], bytes, constant))
        return false;
    const ptx_space space = (ptx_space)instruction->mnemonic->space;
    if (space == PTX_SPACE_GLOBAL || space == PTX_SPACE_CONST || space == PTX_SPACE_PARAM)
        return true;
    if (constant->kind != EM_CONSTANT_BITS && constant->kind != EM_CONSTANT_DYNAMIC_SHARED)
        return false;
    const uint64_t window = space == PTX_SPACE_SHARED ? EM_SHARED_WINDOW : EM_LOCAL_WINDOW;
    constant->bits += ptx_has(instruction, PTX_MOD_TO) ? 0 - window : window;
    return space == PTX_SPACE_SHARED || space == PTX_SPACE_LOCAL;
}

static bool known_result(lowering *self, const ptx_instruction *instruction, em_constant *constant)
{
    const ptx_operand *to = &instruction->operands[0];
    const unsigned bytes = em_type_bytes(self->ptx->registers[to->reg].type);
    switch (instruction->op) {
    case PTX_OP_LD:
        return instruction->mnemonic->space == PTX_SPACE_PARAM && known_load(self, instruction, bytes, constant);
    case PTX_OP_MOV:
        return em_type_bytes(ptx_type_of(instruction, 0)) == bytes &&
               em_operand_constant(self, &instruction->operands[1], bytes, constant);
    case PTX_OP_CVTA:
        return known_address(self, instruction, bytes, constant);
    default:
        return false;
    }
}

void em_find_known(lowering *self)
{
    const ptx_function *ptx = self->ptx;
    uint32_t *writes = calloc(ptx->register_count + 1, sizeof *writes);
    if (writes == NULL) {
        em_lower_out_of_memory(self);
        return;
    }
    for (uint32_t i = 0; i < ptx->instruction_count; i++) {
        for (unsigned o = 0; o < ptx->instructions[i].operand_count; o++)
            count_writes(&ptx->instructions[i].operands[o], writes);
    }
    for (uint32_t i = 0; i < ptx->parameter_count; i++) {
        if (ptx->parameters[i]->reg != PTX_NO_REGISTER)
            writes[ptx->parameters[i]->reg] += 2;
    }
    for (uint32_t i = 0; i < ptx->result_count; i++) {
        if (ptx->results[i]->reg != PTX_NO_REGISTER)
            writes[ptx->results[i]->reg] += 2;
    }
    for (uint32_t i = 0; i < ptx->instruction_count && !self->failed; i++) {
        const ptx_instruction *instruction = &ptx->instructions[i];
        const ptx_operand *to = instruction->operand_count != 0 ? &instruction->operands[0] : NULL;
        em_constant constant;
        if (instruction->guard != PTX_NO_REGISTER || to == NULL || to->kind != PTX_OPERAND_REGISTER ||
            !to->destination || writes[to->reg] != 1 || !known_result(self, instruction, &constant))
            continue;
        self->known[to->reg] = (known_value){true, constant};
        self->skipped[i] = true;
    }
    free(writes);
}
