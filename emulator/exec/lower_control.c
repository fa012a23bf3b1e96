/* Branches, calls, barriers, and what else control.c, call.c and barrier.c carry out. */
#include "lower.h"

/* ---- branches
 * -------------------------------------------------------------------------------------------------------- */

static void lower_bra(lowering *self)
{
    const ptx_operand *target = &self->at->operands[0];
    const bool guarded = self->at->guard != PTX_NO_REGISTER;
    draft *made = em_emit_guarded(self, guarded ? em_control.bra_if : em_control.bra);
    if (made == NULL)
        return;
    made->keeps_full = true;
    em_fix_up(self, self->count - 1, (uint32_t)target->bits);
}

static void lower_brx(lowering *self)
{
    const ptx_targets *list = self->at->operands[1].kind == PTX_OPERAND_TARGETS ? self->at->operands[1].targets : NULL;
    if (list == NULL || list->labels == NULL) {
        em_refuse(self, "without a list of labels");
        return;
    }
    em_targets *targets = em_lower_own(self, sizeof *targets + list->count * sizeof targets->target[0]);
    if (targets == NULL)
        return;
    targets->count = list->count;
    memcpy(targets->target, list->labels, list->count * sizeof targets->target[0]);
    const uint32_t row = em_source(self, &self->at->operands[0], PTX_U32);
    draft *made = em_emit_guarded(self, em_control.brx);
    if (made == NULL)
        return;
    made->insn.a = row;
    made->insn.imm = (int64_t)(intptr_t)targets;
    em_fix_up(self, self->count - 1, 0);
}

/* ---- calls
 * ---------------------------------------------------------------------------------------------------------------- */

/* Where the caller keeps an argument or result. A .param variable lies in the parameter frame of its own body. */
static bool place_argument(lowering *self, const ptx_operand *operand, const ptx_variable *formal, em_argument *made)
{
    const uint32_t formal_bytes = formal != NULL ? (formal->type == PTX_PRED ? 0 : (uint32_t)formal->size)
                                                 : em_type_bytes((ptx_type)operand->type);
    if ((operand->kind == PTX_OPERAND_VARIABLE || operand->kind == PTX_OPERAND_ADDRESS) &&
        operand->variable->space == PTX_SPACE_PARAM) {
        const uint32_t own = (uint32_t)operand->variable->size;
        made->place = self->function->parameter_frame + (uint32_t)operand->variable->offset + (uint32_t)operand->bits;
        made->size = formal != NULL && formal_bytes < own ? formal_bytes : own;
        return true;
    }
    if (formal_bytes == 0 || formal_bytes > 16)
        return em_refuse(self, "with an argument of this type");
    made->is_row = true;
    made->size = formal_bytes;
    if (operand->destination || operand->kind == PTX_OPERAND_SINK) {
        if (operand->kind == PTX_OPERAND_REGISTER &&
            em_type_bytes(self->ptx->registers[operand->reg].type) != formal_bytes)
            return em_refuse(self, "with a result of another width");
        made->place = operand->kind == PTX_OPERAND_REGISTER ? self->function->registers[operand->reg]
                                                            : em_row_scratch(self, formal_bytes);
        return true;
    }
    made->place = em_source_signed(self, operand, formal_bytes, false);
    return !self->failed;
}

static em_argument *place_arguments(lowering *self, const ptx_operand *list, ptx_variable *const *formals,
                                    uint32_t formal_count)
{
    em_argument *made = em_lower_own(self, list->count * sizeof *made);
    for (uint32_t i = 0; made != NULL && i < list->count; i++) {
        if (!place_argument(self, &list->elements[i], i < formal_count ? formals[i] : NULL, &made[i]))
            return NULL;
    }
    return made;
}

static void emit_call(lowering *self, em_call *call, uint32_t address)
{
    draft *made = em_emit_guarded(self, em_calls.call);
    if (made == NULL)
        return;
    made->insn.imm = (int64_t)(intptr_t)call;
    made->insn.a = address;
    made = em_emit(self, em_calls.after);
    if (made != NULL) {
        made->insn.imm = (int64_t)(intptr_t)call;
        made->insn.a = address;
    }
}

static void lower_call(lowering *self)
{
    const ptx_operand *operands = self->at->operands, *callee = &operands[1];
    em_call *call = em_lower_own(self, sizeof *call);
    if (call == NULL)
        return;
    const ptx_function *function = callee->kind == PTX_OPERAND_FUNCTION ? callee->function : NULL;
    while (function != NULL && function->alias_of != NULL)
        function = function->alias_of;
    const ptx_prototype *prototype = operands[3].kind == PTX_OPERAND_PROTOTYPE ? operands[3].prototype : NULL;
    call->caller = self->function;
    if (function != NULL) {
        call->callee = self->program->by_index[function->index];
        call->arguments = place_arguments(self, &operands[2], function->parameters, function->parameter_count);
        call->results = place_arguments(self, &operands[0], function->results, function->result_count);
    } else {
        call->arguments = place_arguments(self, &operands[2], prototype != NULL ? prototype->parameters : NULL,
                                          prototype != NULL ? prototype->parameter_count : 0);
        call->results = place_arguments(self, &operands[0], prototype != NULL ? prototype->results : NULL,
                                        prototype != NULL ? prototype->result_count : 0);
    }
    call->argument_count = operands[2].count;
    call->result_count = operands[0].count;
    if (self->failed)
        return;
    if (function == NULL) {
        emit_call(self, call, em_source(self, callee, PTX_U64));
    } else if (call->callee != NULL) {
        emit_call(self, call, 0);
    } else if ((call->builtin = em_builtin_named(function->name)) != NULL) {
        draft *made = em_emit_guarded(self, em_calls.builtin);
        if (made != NULL)
            made->insn.imm = (int64_t)(intptr_t)call;
    } else {
        em_refuse(self, "of a function that the module does not define");
    }
}

static void lower_ret(lowering *self)
{
    draft *made = em_emit_guarded(self, self->ptx->is_entry ? em_control.exit : em_calls.ret);
    if (made != NULL)
        made->insn.imm = (int64_t)(intptr_t)self->function;
}

/* ---- barriers
 * ---------------------------------------------------------------------------------------------------------------- */

/* bar.sync a {, b}; bar.arrive a, b; bar.red.op {d|p}, a {, b}, {!}c */
static void lower_bar(lowering *self, em_barrier_kind kind)
{
    const ptx_instruction *at = self->at;
    const ptx_operand *operands = at->operands;
    const bool reduces = kind >= EM_BARRIER_POPC;
    const unsigned first = reduces ? 1 : 0, last = at->operand_count - (reduces ? 1u : 0u);
    em_insn insn = {0};
    destination to = {0};
    if (at->operand_count < first + 1) {
        em_refuse(self, "without a barrier");
        return;
    }
    insn.a = em_source(self, &operands[first], PTX_U32);
    insn.aux = (uint16_t)kind;
    em_constant number;
    const bool constant = em_operand_constant(self, &operands[first], 4, &number) && number.kind == EM_CONSTANT_BITS;
    insn.imm = constant ? (int64_t)number.bits : -1;
    insn.f = self->order;
    if (first + 1 < last && operands[first + 1].kind != PTX_OPERAND_NONE) {
        insn.b = em_source(self, &operands[first + 1], PTX_U32);
        insn.aux |= EM_BARRIER_COUNTED;
    }
    if (reduces) {
        insn.c = em_source(self, &operands[last], PTX_PRED);
        to = em_destination(self, &operands[0], kind == EM_BARRIER_POPC ? PTX_U32 : PTX_PRED);
        insn.d = to.row;
    }
    draft *made = em_emit_guarded(self, em_bar);
    if (made == NULL)
        return;
    insn.guard = made->insn.guard;
    insn.guard_flip = made->insn.guard_flip;
    made->insn = insn;
    if (reduces)
        em_destination_done(self, &to);
}

static em_barrier_kind reduction_of(const ptx_instruction *instruction)
{
    const ptx_modifier operation = ptx_modifier_of(instruction, PTX_CLASS_OPERATION);
    return operation == PTX_MOD_AND ? EM_BARRIER_AND : operation == PTX_MOD_OR ? EM_BARRIER_OR : EM_BARRIER_POPC;
}

/* ---- one operand
 * ---------------------------------------------------------------------------------------------------------------- */

static void lower_bar_warp(lowering *self)
{
    const uint32_t row = em_source(self, &self->at->operands[0], PTX_B32);
    draft *made = em_emit_guarded(self, em_bar_warp);
    if (made != NULL)
        made->insn.a = row;
}

static void lower_activemask(lowering *self)
{
    const destination to = em_destination(self, &self->at->operands[0], PTX_B32);
    draft *made = em_emit_guarded(self, em_control.activemask);
    if (made != NULL)
        made->insn.d = to.row;
    em_destination_done(self, &to);
}

static void lower_elect(lowering *self)
{
    const ptx_operand *pair = &self->at->operands[0];
    if (pair->kind != PTX_OPERAND_PAIR || pair->count != 2) {
        em_refuse(self, "in this shape");
        return;
    }
    const uint32_t row = em_source(self, &self->at->operands[1], PTX_B32);
    const destination to = em_destination(self, &pair->elements[0], PTX_B32),
                      elected = em_destination(self, &pair->elements[1], PTX_PRED);
    draft *made = em_emit_guarded(self, em_control.elect);
    if (made == NULL)
        return;
    made->insn.a = row;
    made->insn.d = to.row;
    made->insn.e = elected.row;
    em_destination_done(self, &to);
}

bool em_lower_control(lowering *self)
{
    switch (self->at->op) {
    case PTX_OP_BRA:
        lower_bra(self);
        return true;
    case PTX_OP_BRX_IDX:
        lower_brx(self);
        return true;
    case PTX_OP_CALL:
        lower_call(self);
        return true;
    case PTX_OP_RET:
        lower_ret(self);
        return true;
    case PTX_OP_EXIT:
        em_emit_guarded(self, em_control.exit);
        return true;
    case PTX_OP_TRAP:
        em_emit_guarded(self, em_control.trap);
        return true;
    case PTX_OP_BRKPT:
        em_emit_guarded(self, em_control.brkpt);
        return true;
    case PTX_OP_MEMBAR:
    case PTX_OP_FENCE:
        em_emit_guarded(self, em_control.fence);
        return true;
    case PTX_OP_NANOSLEEP:
        em_emit_guarded(self, em_control.nanosleep);
        return true;
    case PTX_OP_PMEVENT:
    case PTX_OP_SETMAXNREG:
    case PTX_OP_GRIDDEPCONTROL: /* launches do not overlap: those before are complete */
        return true;
    case PTX_OP_ACTIVEMASK:
        lower_activemask(self);
        return true;
    case PTX_OP_ELECT:
        lower_elect(self);
        return true;
    case PTX_OP_BAR_WARP_SYNC:
        lower_bar_warp(self);
        return true;
    case PTX_OP_BAR_SYNC:
    case PTX_OP_BAR_CTA_SYNC:
    case PTX_OP_BARRIER_SYNC:
    case PTX_OP_BARRIER_CTA_SYNC:
        lower_bar(self, EM_BARRIER_SYNC);
        return true;
    case PTX_OP_BAR_ARRIVE:
    case PTX_OP_BAR_CTA_ARRIVE:
    case PTX_OP_BARRIER_ARRIVE:
    case PTX_OP_BARRIER_CTA_ARRIVE:
        lower_bar(self, EM_BARRIER_ARRIVE);
        return true;
    case PTX_OP_BAR_RED:
    case PTX_OP_BAR_CTA_RED:
    case PTX_OP_BARRIER_RED:
    case PTX_OP_BARRIER_CTA_RED:
        lower_bar(self, reduction_of(self->at));
        return true;
    default:
        return false;
    }
}
