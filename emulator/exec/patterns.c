/* Address registers that several accesses of a block use: how their lanes lie is found out once, by an `analyse` before
 * the first. */
#include <stdlib.h>

#include "lower.h"

static const ptx_operand *address_of(const ptx_instruction *instruction)
{
    if (instruction->op != PTX_OP_LD && instruction->op != PTX_OP_LDU && instruction->op != PTX_OP_ST)
        return NULL;
    const ptx_operand *address = &instruction->operands[instruction->op == PTX_OP_ST ? 0 : 1];
    return address->kind == PTX_OPERAND_ADDRESS && address->reg != PTX_NO_REGISTER ? address : NULL;
}

static void forget(const ptx_operand *operand, uint32_t *left)
{
    if (operand->kind == PTX_OPERAND_REGISTER && operand->destination)
        left[operand->reg] = 0;
    if (operand->kind != PTX_OPERAND_VECTOR && operand->kind != PTX_OPERAND_PAIR && operand->kind != PTX_OPERAND_LIST)
        return;
    for (uint32_t i = 0; i < operand->count; i++) {
        if (operand->elements[i].kind == PTX_OPERAND_REGISTER)
            left[operand->elements[i].reg] = 0;
    }
}

/* Walks each block backwards: `left` counts the accesses after this point that see the register as it is. */
void em_find_uses(lowering *self)
{
    const ptx_function *ptx = self->ptx;
    uint32_t *left = calloc(ptx->register_count + 1, sizeof *left);
    if (left == NULL) {
        em_lower_out_of_memory(self);
        return;
    }
    for (uint32_t b = 0; b < ptx->block_count; b++) {
        const ptx_block *block = &ptx->blocks[b];
        for (uint32_t i = block->end; i-- > block->first;) {
            const ptx_instruction *instruction = &ptx->instructions[i];
            for (unsigned o = 0; o < instruction->operand_count; o++)
                forget(&instruction->operands[o], left);
            const ptx_operand *address = address_of(instruction);
            if (address != NULL && instruction->guard == PTX_NO_REGISTER) {
                left[address->reg]++;
                self->uses[i] = left[address->reg] < UINT8_MAX ? (uint8_t)left[address->reg] : UINT8_MAX;
            }
        }
        for (uint32_t i = block->first; i < block->end; i++) {
            const ptx_operand *address = address_of(&ptx->instructions[i]);
            if (address != NULL)
                left[address->reg] = 0;
        }
    }
    free(left);
}

uint32_t em_pattern_of(lowering *self, const ptx_operand *address, const place *where)
{
    const uint32_t reg = address->reg;
    const uint32_t block = self->at->block + 1;
    const bool quick = where->path == EM_PATH_FLAT || where->path == EM_PATH_SHARED;
    if (reg == PTX_NO_REGISTER || !quick || self->at->guard != PTX_NO_REGISTER)
        return 0;
    /* Bit 31 tells the paths apart: their addresses differ in width. */
    const uint32_t mark = block | (where->path == EM_PATH_SHARED ? 1u << 31 : 0);
    if (self->analysed[reg] == mark)
        return self->patterns[reg];
    if (self->uses[self->at - self->ptx->instructions] < 2)
        return 0;
    if (self->patterns[reg] == 0)
        self->patterns[reg] = em_row_new(self, 2);
    draft *made = em_emit(self, self->isa->memory->analyse[where->path]);
    if (made == NULL)
        return 0;
    made->insn.a = where->row;
    made->insn.d = self->patterns[reg];
    self->analysed[reg] = mark;
    return self->patterns[reg];
}

void em_forget_patterns(lowering *self)
{
    for (unsigned o = 0; o < self->at->operand_count; o++)
        forget(&self->at->operands[o], self->analysed);
}
