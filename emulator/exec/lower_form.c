/* Instructions that a listed form serves: operands in order to the fields of the bytecode. */
#include "lower.h"

enum { DESTINATIONS = 2, SOURCES = 5 };

typedef struct operand_shape {
    draft made;
    destination to[DESTINATIONS];
    unsigned destinations, sources;
} operand_shape;

static void add_destination(lowering *self, operand_shape *form, const ptx_operand *operand)
{
    if (form->destinations == DESTINATIONS) {
        em_refuse(self, "with this many results");
        return;
    }
    const destination to = em_destination(self, operand, (ptx_type)operand->type);
    if (form->destinations == 0)
        form->made.insn.d = to.row;
    else
        form->made.insn.e = to.row;
    form->to[form->destinations++] = to;
}

static void put_source(lowering *self, operand_shape *form, uint32_t row)
{
    em_insn *insn = &form->made.insn;
    uint32_t *const fields[SOURCES] = {&insn->a, &insn->b, &insn->c, &insn->f, &insn->slot};
    if (form->sources == SOURCES)
        em_refuse(self, "with this many operands");
    else
        *fields[form->sources++] = row;
}

static void add_address(lowering *self, operand_shape *form, const ptx_operand *operand)
{
    place found;
    if (form->sources != 0) {
        em_refuse(self, "with an address in this position");
        return;
    }
    if (!em_address(self, operand, (ptx_space)self->at->mnemonic->space, &found))
        return;
    if (found.is_parameter) {
        em_refuse(self, "on a parameter");
        return;
    }
    put_source(self, form, found.row);
    form->made.insn.imm = found.displacement;
    form->made.insn.space = (uint16_t)found.space;
    form->made.insn.slot = self->program->slot_count++;
}

static void add_operand(lowering *self, operand_shape *form, const ptx_operand *operand)
{
    if (operand->kind == PTX_OPERAND_ADDRESS) {
        add_address(self, form, operand);
    } else if (operand->kind == PTX_OPERAND_PAIR) {
        for (uint32_t i = 0; i < operand->count; i++)
            add_destination(self, form, &operand->elements[i]);
    } else if (operand->destination) {
        add_destination(self, form, operand);
    } else {
        put_source(self, form, em_source(self, operand, (ptx_type)operand->type));
    }
}

/* An atomic on a vector is one on each element: PTX promises no more. Results wait in temporaries until all sources
 * have been read. */
static void lower_vector_atomic(lowering *self, em_handlers handlers)
{
    enum { ELEMENTS = 8 };
    const ptx_instruction *at = self->at;
    const bool gives = at->op == PTX_OP_ATOM;
    const ptx_operand *const results = &at->operands[0], *const address = &at->operands[gives ? 1 : 0];
    const ptx_operand *const sources = address + 1;
    const ptx_type type = ptx_type_of(at, 0);
    const unsigned bytes = em_type_bytes(type), count = sources->count;
    place where;
    if (sources->kind != PTX_OPERAND_VECTOR || count > ELEMENTS || (gives && results->count != count) ||
        !em_address(self, address, (ptx_space)at->mnemonic->space, &where) || where.is_parameter) {
        em_refuse(self, "in this shape");
        return;
    }
    uint32_t given[ELEMENTS], old[ELEMENTS];
    for (unsigned i = 0; i < count; i++) {
        given[i] = em_source(self, &sources->elements[i], type);
        old[i] = gives ? em_row_temporary(self, bytes) : em_row_scratch(self, bytes);
    }
    for (unsigned i = 0; i < count && !self->failed; i++) {
        draft *made = em_emit_guarded(self, handlers);
        if (made == NULL)
            return;
        made->insn.d = old[i];
        made->insn.a = where.row;
        made->insn.b = made->insn.c = given[i];
        made->insn.imm = where.displacement + (int64_t)i * bytes;
        made->insn.space = (uint16_t)where.space;
        made->insn.slot = self->program->slot_count++;
    }
    for (unsigned i = 0; gives && i < count && !self->failed; i++) {
        const destination to = em_destination(self, &results->elements[i], type);
        draft *made = em_emit_guarded(self, self->isa->move->copy[em_log2(bytes)]);
        if (made == NULL)
            return;
        made->insn.d = to.row;
        made->insn.a = old[i];
        em_destination_done(self, &to);
    }
}

/* The least or greatest of three is that of two, and the third. */
static void lower_three(lowering *self, em_handlers handlers)
{
    const ptx_operand *const operands = self->at->operands;
    const ptx_type type = ptx_type_of(self->at, 0);
    uint32_t given[3];
    for (unsigned i = 0; i < 3; i++)
        given[i] = em_source(self, &operands[i + 1], type);
    const destination to = em_destination(self, &operands[0], type);
    const uint32_t of_two = em_row_temporary(self, em_type_bytes(type));
    for (unsigned i = 0; i < 2; i++) {
        draft *made = em_emit_guarded(self, handlers);
        if (made == NULL)
            return;
        made->insn.a = i == 0 ? given[0] : of_two;
        made->insn.b = given[i + 1];
        made->insn.d = i == 0 ? of_two : to.row;
        made->insn.ptx = self->at;
    }
    em_destination_done(self, &to);
}

bool em_lower_form(lowering *self)
{
    const ptx_instruction *at = self->at;
    em_handlers handlers;
    if (!em_form_find(at, &handlers))
        return false;
    if (at->mnemonic->vector > 1) {
        lower_vector_atomic(self, handlers);
        return true;
    }
    if ((at->op == PTX_OP_MIN || at->op == PTX_OP_MAX) && at->operand_count == 4) {
        lower_three(self, handlers);
        return true;
    }
    operand_shape form = {0};
    bool has_address = false;
    for (unsigned i = 0; i < at->operand_count && !self->failed; i++) {
        add_operand(self, &form, &at->operands[i]);
        has_address |= at->operands[i].kind == PTX_OPERAND_ADDRESS;
    }
    /* Fields without an operand name rows that may be written, or read, without harm. */
    em_insn *insn = &form.made.insn;
    const uint32_t scratch = em_row_scratch(self, 0);
    if (form.destinations == 0) /* red is an atom whose result nobody wants */
        insn->d = has_address ? em_row_scratch(self, em_type_bytes(ptx_type_of(at, 0))) : scratch;
    if (form.destinations < 2)
        insn->e = scratch;
    if (form.sources < 3)
        insn->c = scratch;
    if (!has_address)
        insn->ptx = at;
    draft *made = em_emit_guarded(self, handlers);
    if (made == NULL)
        return true;
    const em_insn guarded = made->insn;
    made->insn = *insn;
    made->insn.guard = guarded.guard;
    made->insn.guard_flip = guarded.guard_flip;
    for (unsigned i = 0; i < form.destinations; i++)
        em_destination_done(self, &form.to[i]);
    return true;
}
