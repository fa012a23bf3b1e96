/* mov, cvta, isspacep. */
#include "lower.h"

static void copy(lowering *self, uint32_t from, uint32_t to, unsigned bytes)
{
    const em_move_table *move = self->isa->move;
    draft *made = em_emit_guarded(self, bytes == 0 ? move->copy_predicate : move->copy[em_log2(bytes)]);
    if (made != NULL) {
        made->insn.a = from;
        made->insn.d = to;
    }
}

/* mov.b64 %rd, {%r1, %r2} */
static void pack(lowering *self, const ptx_operand *to, const ptx_operand *from, unsigned bytes)
{
    const unsigned count = from->count, part = count != 0 ? bytes / count : 0;
    if ((count != 2 && count != 4) || part == 0) {
        em_refuse(self, "with this vector");
        return;
    }
    uint32_t rows[4];
    for (unsigned i = 0; i < count; i++)
        rows[i] = em_source_signed(self, &from->elements[i], part, false);
    const ptx_type type = ptx_type_of(self->at, 0);
    const destination made = em_destination(self, to, type);
    draft *packed = em_emit_guarded(self, self->isa->move->pack[em_log2(part)][count == 4]);
    if (packed == NULL)
        return;
    packed->insn.d = made.row;
    packed->insn.a = rows[0];
    packed->insn.b = rows[1];
    if (count == 4) {
        packed->insn.c = rows[2];
        packed->insn.f = rows[3];
    }
    em_destination_done(self, &made);
}

static ptx_type bits_type(unsigned bytes)
{
    return bytes == 1 ? PTX_B8 : bytes == 2 ? PTX_B16 : bytes == 4 ? PTX_B32 : PTX_B64;
}

/* mov.b64 {%r1, %r2}, %rd */
static void unpack(lowering *self, const ptx_operand *to, const ptx_operand *from, unsigned bytes)
{
    const unsigned count = to->count, part = count != 0 ? bytes / count : 0;
    if ((count != 2 && count != 4) || part == 0) {
        em_refuse(self, "with this vector");
        return;
    }
    const uint32_t row = em_source_signed(self, from, bytes, false);
    destination made[4] = {{0}};
    for (unsigned i = 0; i < count; i++)
        made[i] = em_destination(self, &to->elements[i], bits_type(part));
    draft *unpacked = em_emit_guarded(self, self->isa->move->unpack[em_log2(part)][count == 4]);
    if (unpacked == NULL)
        return;
    unpacked->insn.a = row;
    unpacked->insn.d = made[0].row;
    unpacked->insn.e = made[1].row;
    if (count == 4) {
        unpacked->insn.b = made[2].row;
        unpacked->insn.c = made[3].row;
    }
    for (unsigned i = 0; i < count; i++)
        em_destination_done(self, &made[i]);
}

static void lower_mov(lowering *self)
{
    const ptx_instruction *at = self->at;
    const ptx_operand *to = &at->operands[0], *from = &at->operands[1];
    const ptx_type type = ptx_type_of(at, 0);
    const unsigned bytes = em_type_bytes(type);
    if (from->kind == PTX_OPERAND_VECTOR) {
        pack(self, to, from, bytes);
    } else if (to->kind == PTX_OPERAND_VECTOR) {
        unpack(self, to, from, bytes);
    } else {
        const uint32_t row = em_source_signed(self, from, bytes, ptx_type_kind(type) == PTX_KIND_SIGNED);
        const destination made = em_destination(self, to, type);
        copy(self, row, made.row, bytes);
        em_destination_done(self, &made);
    }
}

static uint64_t window_of(ptx_space space)
{
    return space == PTX_SPACE_SHARED ? EM_SHARED_WINDOW : space == PTX_SPACE_LOCAL ? EM_LOCAL_WINDOW : 0;
}

static void lower_cvta(lowering *self)
{
    const ptx_instruction *at = self->at;
    const uint64_t window = window_of((ptx_space)at->mnemonic->space);
    const destination made = em_destination(self, &at->operands[0], PTX_U64);
    const uint32_t row = em_source(self, &at->operands[1], PTX_U64);
    if (window == 0) {
        copy(self, row, made.row, 8);
    } else {
        draft *add = em_emit_guarded(self, self->isa->move->add_immediate[1]);
        if (add != NULL) {
            add->insn.a = row;
            add->insn.d = made.row;
            add->insn.imm = (int64_t)(ptx_has(at, PTX_MOD_TO) ? 0 - window : window);
        }
    }
    em_destination_done(self, &made);
}

static void lower_isspacep(lowering *self)
{
    const ptx_instruction *at = self->at;
    const ptx_space space = (ptx_space)at->mnemonic->space;
    const uint32_t row = em_source(self, &at->operands[1], PTX_U64);
    const destination made = em_destination(self, &at->operands[0], PTX_PRED);
    const em_move_table *move = self->isa->move;
    const em_handlers handlers = space == PTX_SPACE_GLOBAL  ? move->in_no_window
                                 : space == PTX_SPACE_CONST ? em_control.in_constant
                                                            : move->in_window;
    draft *emitted = em_emit_guarded(self, handlers);
    if (emitted != NULL) {
        emitted->insn.a = row;
        emitted->insn.d = made.row;
        emitted->insn.imm = (int64_t)(space == PTX_SPACE_PARAM ? EM_PARAM_WINDOW : window_of(space));
    }
}

bool em_lower_move(lowering *self)
{
    switch (self->at->op) {
    case PTX_OP_MOV:
        lower_mov(self);
        return true;
    case PTX_OP_CVTA:
        lower_cvta(self);
        return true;
    case PTX_OP_ISSPACEP:
        lower_isspacep(self);
        return true;
    case PTX_OP_CREATEPOLICY: { /* a policy is a hint: any value will do */
        const destination made = em_destination(self, &self->at->operands[0], PTX_B64);
        copy(self, em_row_bits(self, 8, 0), made.row, 8);
        return true;
    }
    default:
        return false;
    }
}
