/* ld, st and their relatives. */
#include "lower.h"

static const unsigned vector_index[] = {[1] = 0, [2] = 1, [4] = 2, [8] = 3};

static bool is_strong(const ptx_instruction *instruction)
{
    const ptx_modifier semantics = ptx_modifier_of(instruction, PTX_CLASS_SEMANTICS);
    return (semantics != PTX_MOD_NONE && semantics != PTX_MOD_WEAK) || ptx_has(instruction, PTX_MOD_MMIO);
}

/* Elements of a vector operand, or the operand itself. */
static const ptx_operand *elements_of(const ptx_operand *operand, unsigned *count)
{
    if (operand->kind != PTX_OPERAND_VECTOR) {
        *count = 1;
        return operand;
    }
    *count = operand->count;
    return operand->elements;
}

static void put_rows(em_insn *insn, const uint32_t *rows, unsigned count)
{
    insn->d = rows[0];
    if (count > 1)
        insn->e = rows[1];
    if (count > 2)
        insn->b = rows[2];
    if (count > 3)
        insn->c = rows[3];
}

/* The access itself. Rows of a v8 take the next instruction's fields too. */
static void emit_access(lowering *self, em_handlers handlers, const place *where, uint32_t pattern,
                        const uint32_t *rows, unsigned count)
{
    draft *made = em_emit_guarded(self, handlers);
    if (made == NULL)
        return;
    made->insn.a = where->row;
    made->insn.f = pattern;
    made->insn.imm = where->displacement;
    made->insn.space = (uint16_t)where->space;
    made->insn.slot = self->program->slot_count++;
    put_rows(&made->insn, rows, count < 4 ? count : 4);
    if (count == 8 && (made = em_emit(self, em_control.trap)) != NULL)
        put_rows(&made->insn, rows + 4, 4);
}

typedef const em_handlers by_path[EM_PATH_COUNT][EM_SIZES][4];

/* The plain access, or the one that knows the pattern of its address. */
static void emit_weak(lowering *self, by_path plain, by_path known, const ptx_operand *address, const place *where,
                      unsigned size, const uint32_t *rows, unsigned count)
{
    const unsigned vector = vector_index[count];
    const bool knows = known[where->path][size][vector].full != NULL;
    const uint32_t pattern = knows ? em_pattern_of(self, address, where) : 0;
    emit_access(self, pattern != 0 ? known[where->path][size][vector] : plain[where->path][size][vector], where,
                pattern, rows, count);
}

static void load_parameter(lowering *self, const place *where, unsigned bytes, const uint32_t *rows, unsigned count)
{
    const int64_t end = where->displacement + (int64_t)bytes * count;
    if (where->displacement < 0 || end > (int64_t)self->ptx->parameter_bytes) {
        em_refuse(self, "outside the kernel's parameters");
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        draft *made = em_emit_guarded(self, self->isa->memory->load_parameter[em_log2(bytes)]);
        if (made == NULL)
            return;
        made->insn.imm = where->displacement + (int64_t)i * bytes;
        made->insn.d = rows[i];
    }
}

/* An access that no thread of this program can do rightly is left to fail at run time, as on a GPU. */
static void lower_load(lowering *self)
{
    const ptx_instruction *at = self->at;
    const ptx_type type = ptx_type_of(at, 0);
    const unsigned bytes = ptx_type_size(type), size = em_log2(bytes);
    unsigned count;
    const ptx_operand *elements = elements_of(&at->operands[0], &count);
    place where;
    destination to[8];
    uint32_t rows[8];
    if (type == PTX_PRED || bytes > 16 || count > 8 ||
        !em_address(self, &at->operands[1], (ptx_space)at->mnemonic->space, &where)) {
        em_refuse(self, "in this shape");
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        to[i] = em_destination(self, &elements[i], type);
        rows[i] = to[i].row;
    }
    const em_memory_table *memory = self->isa->memory;
    if (where.is_parameter)
        load_parameter(self, &where, bytes, rows, count);
    else if (is_strong(at))
        emit_access(self, memory->load_strong[size][vector_index[count]], &where, 0, rows, count);
    else
        emit_weak(self, memory->load, memory->load_known, &at->operands[1], &where, size, rows, count);
    for (unsigned i = 0; i < count; i++)
        em_destination_done(self, &to[i]);
}

static void lower_store(lowering *self)
{
    const ptx_instruction *at = self->at;
    const ptx_type type = ptx_type_of(at, 0);
    const unsigned bytes = ptx_type_size(type), size = em_log2(bytes);
    unsigned count;
    const ptx_operand *elements = elements_of(&at->operands[1], &count);
    place where;
    uint32_t rows[8];
    if (type == PTX_PRED || bytes > 16 || count > 8 ||
        !em_address(self, &at->operands[0], (ptx_space)at->mnemonic->space, &where)) {
        em_refuse(self, "in this shape");
        return;
    }
    if (where.is_parameter) {
        em_refuse(self, "to a parameter of the kernel");
        return;
    }
    for (unsigned i = 0; i < count; i++)
        rows[i] = em_source(self, &elements[i], type);
    const em_memory_table *memory = self->isa->memory;
    if (is_strong(at))
        emit_access(self, memory->store_strong[size][vector_index[count]], &where, 0, rows, count);
    else
        emit_weak(self, memory->store, memory->store_known, &at->operands[0], &where, size, rows, count);
}

bool em_lower_memory(lowering *self)
{
    switch (self->at->op) {
    case PTX_OP_LD:
    case PTX_OP_LDU:
        lower_load(self);
        return true;
    case PTX_OP_ST:
        lower_store(self);
        return true;
    case PTX_OP_PREFETCH: /* hints: nothing to be seen of them */
    case PTX_OP_PREFETCHU:
    case PTX_OP_APPLYPRIORITY:
    case PTX_OP_DISCARD:
        return true;
    default:
        return false;
    }
}
