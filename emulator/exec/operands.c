/* Operands of PTX to rows. */
#include <stdlib.h>

#include "lower.h"

/* ---- constants --------------------------------------------------------------------------------------------------- */

static bool changes_while_running(unsigned special)
{
    switch (special) {
    case PTX_SPECIAL_CLOCK:
    case PTX_SPECIAL_CLOCK_HI:
    case PTX_SPECIAL_CLOCK64:
    case PTX_SPECIAL_GLOBALTIMER:
    case PTX_SPECIAL_GLOBALTIMER_LO:
    case PTX_SPECIAL_GLOBALTIMER_HI:
        return true;
    default:
        return false;
    }
}

static bool changes_with_block(unsigned special)
{
    switch (special) {
    case PTX_SPECIAL_CTAID:
    case PTX_SPECIAL_SMID:
    case PTX_SPECIAL_CLUSTERID:
    case PTX_SPECIAL_CLUSTER_CTAID:
    case PTX_SPECIAL_CLUSTER_CTARANK:
        return true;
    default:
        return false;
    }
}

static bool special_constant(const ptx_operand *operand, unsigned bytes, em_constant *constant)
{
    const unsigned special = (unsigned)operand->bits;
    if (operand->component == 0xff || changes_while_running(special))
        return false;
    *constant = (em_constant){.kind = changes_with_block(special) ? EM_CONSTANT_BLOCK : EM_CONSTANT_LAUNCH,
                              .size = (uint8_t)bytes,
                              .special = (uint8_t)special,
                              .component = operand->component};
    return true;
}

static bool shared_offset(const lowering *self, const ptx_variable *variable, em_constant *constant)
{
    const em_layout *layout = &self->kernel->layout;
    for (uint32_t i = 0; i < layout->shared_count; i++) {
        if (layout->shared[i] != variable)
            continue;
        constant->kind = variable->is_unsized ? EM_CONSTANT_DYNAMIC_SHARED : EM_CONSTANT_BITS;
        constant->bits = layout->shared_offsets[i];
        return true;
    }
    return false;
}

/* Address of a variable in its own space, where it is the same in every activation. */
static bool variable_constant(const lowering *self, const ptx_variable *variable, uint64_t offset, unsigned bytes,
                              em_constant *constant)
{
    *constant = (em_constant){.kind = EM_CONSTANT_BITS, .size = (uint8_t)bytes};
    switch (variable->space) {
    case PTX_SPACE_GLOBAL:
    case PTX_SPACE_CONST:
        constant->bits = em_variable_address(self->kernel->module, variable) + offset;
        return true;
    case PTX_SPACE_SHARED:
        if (!shared_offset(self, variable, constant))
            return false;
        constant->bits += offset;
        return true;
    case PTX_SPACE_LOCAL:
        constant->bits = variable->offset + offset;
        return self->ptx->is_entry;
    case PTX_SPACE_PARAM:
        if (!self->ptx->is_entry)
            return false;
        constant->bits = variable->offset + offset +
                         (variable->is_parameter ? EM_PARAM_WINDOW : EM_LOCAL_WINDOW + self->function->parameter_frame);
        return true;
    default:
        return false;
    }
}

static uint64_t function_address(const ptx_function *function)
{
    while (function->alias_of != NULL)
        function = function->alias_of;
    return EM_FUNCTION_WINDOW + ((uint64_t)(function->index + 1) << EM_FUNCTION_SHIFT);
}

bool em_operand_constant(lowering *self, const ptx_operand *operand, unsigned bytes, em_constant *constant)
{
    switch (operand->kind) {
    case PTX_OPERAND_REGISTER:
        if (operand->negated || !self->known[operand->reg].is_known || self->known[operand->reg].constant.size != bytes)
            return false;
        *constant = self->known[operand->reg].constant;
        return true;
    case PTX_OPERAND_IMMEDIATE:
        *constant = (em_constant){.kind = EM_CONSTANT_BITS, .size = (uint8_t)bytes, .bits = operand->bits};
        if (bytes != 0 && bytes < 8)
            constant->bits &= (UINT64_C(1) << (8 * bytes)) - 1;
        if (bytes == 0)
            constant->bits = (operand->bits != 0) != operand->negated;
        return bytes <= 8;
    case PTX_OPERAND_SPECIAL:
        return special_constant(operand, bytes, constant);
    case PTX_OPERAND_VARIABLE:
        return variable_constant(self, operand->variable, operand->bits, bytes, constant);
    case PTX_OPERAND_FUNCTION:
        *constant = (em_constant){
            .kind = EM_CONSTANT_BITS, .size = (uint8_t)bytes, .bits = function_address(operand->function)};
        return true;
    default:
        return false;
    }
}

/* ---- sources
 * ------------------------------------------------------------------------------------------------------------ */

static uint32_t register_row(lowering *self, uint32_t reg)
{
    if (self->known[reg].is_known)
        return em_row_constant(self, &self->known[reg].constant);
    return self->function->registers[reg];
}

static uint32_t resized(lowering *self, uint32_t row, unsigned from, unsigned to, bool is_signed)
{
    const uint32_t result = em_row_temporary(self, to);
    draft *made = em_emit(self, self->isa->move->resize[is_signed][em_log2(from)][em_log2(to)]);
    if (made != NULL) {
        made->insn.a = row;
        made->insn.d = result;
    }
    return result;
}

static uint32_t special_row(lowering *self, const ptx_operand *operand, unsigned bytes)
{
    const uint32_t row = em_row_temporary(self, bytes < 4 ? 4 : bytes);
    draft *made = em_emit(self, em_control.special);
    if (made != NULL) {
        made->insn.b = (uint32_t)operand->bits;
        made->insn.aux = operand->component;
        made->insn.c = bytes < 4 ? 4 : bytes;
        made->insn.d = row;
    }
    return bytes < 4 ? resized(self, row, 4, bytes, false) : row;
}

/* Address of a local or parameter variable of a .func: its activation's local bytes plus an offset. */
static uint32_t activation_address(lowering *self, const ptx_operand *operand, unsigned bytes)
{
    const ptx_variable *variable = operand->variable;
    uint64_t offset = variable->offset + operand->bits;
    if (variable->space == PTX_SPACE_PARAM)
        offset += EM_LOCAL_WINDOW + self->function->parameter_frame;
    uint32_t row = self->function->local_row;
    if (bytes == 8)
        row = resized(self, row, 4, 8, false);
    const uint32_t result = em_row_temporary(self, bytes);
    draft *made = em_emit(self, self->isa->move->add_immediate[bytes == 8]);
    if (made != NULL) {
        made->insn.a = row;
        made->insn.d = result;
        made->insn.imm = (int64_t)offset;
    }
    return result;
}

uint32_t em_source_signed(lowering *self, const ptx_operand *operand, unsigned bytes, bool is_signed)
{
    em_constant constant;
    if (operand->kind == PTX_OPERAND_REGISTER) {
        uint32_t row = register_row(self, operand->reg);
        const unsigned own = em_type_bytes(self->ptx->registers[operand->reg].type);
        if (bytes == 0 && operand->negated) {
            const uint32_t result = em_row_temporary(self, 0);
            draft *made = em_emit(self, self->isa->move->not_predicate);
            if (made != NULL) {
                made->insn.a = row;
                made->insn.d = result;
            }
            return result;
        }
        if (own != bytes && own != 0 && bytes != 0)
            row = resized(self, row, own, bytes, is_signed);
        else if (own != bytes)
            em_refuse(self, "with a predicate where it takes a number");
        return row;
    }
    if (em_operand_constant(self, operand, bytes, &constant))
        return em_row_constant(self, &constant);
    switch (operand->kind) {
    case PTX_OPERAND_NONE:
    case PTX_OPERAND_SINK:
        return em_row_scratch(self, bytes);
    case PTX_OPERAND_SPECIAL:
        if (operand->component != 0xff && bytes != 0)
            return special_row(self, operand, bytes);
        break;
    case PTX_OPERAND_VARIABLE:
        if (bytes == 4 || bytes == 8)
            return activation_address(self, operand, bytes);
        break;
    default:
        break;
    }
    em_refuse(self, "with an operand of this kind");
    return em_row_scratch(self, bytes);
}

uint32_t em_source(lowering *self, const ptx_operand *operand, ptx_type type)
{
    return em_source_signed(self, operand, em_type_bytes(type), ptx_type_kind(type) == PTX_KIND_SIGNED);
}

/* ---- destinations
 * ----------------------------------------------------------------------------------------------------------- */

destination em_destination(lowering *self, const ptx_operand *operand, ptx_type type)
{
    destination made = {.bytes = em_type_bytes(type), .is_signed = ptx_type_kind(type) == PTX_KIND_SIGNED};
    if (operand->kind != PTX_OPERAND_REGISTER) {
        if (operand->kind != PTX_OPERAND_SINK && operand->kind != PTX_OPERAND_NONE)
            em_refuse(self, "with a destination of this kind");
        made.final_bytes = made.bytes;
        made.row = made.final_row = em_row_scratch(self, made.bytes);
        return made;
    }
    made.final_row = made.row = self->function->registers[operand->reg];
    made.final_bytes = em_type_bytes(self->ptx->registers[operand->reg].type);
    if (made.bytes != made.final_bytes) {
        if (made.bytes == 0 || made.final_bytes == 0)
            em_refuse(self, "with a predicate where it takes a number");
        else
            made.row = em_row_temporary(self, made.bytes);
    }
    return made;
}

void em_destination_done(lowering *self, const destination *made)
{
    if (made->row == made->final_row || self->failed)
        return;
    draft *resize = em_emit_guarded(
        self, self->isa->move->resize[made->is_signed][em_log2(made->bytes)][em_log2(made->final_bytes)]);
    if (resize != NULL) {
        resize->insn.a = made->row;
        resize->insn.d = made->final_row;
    }
}

/* ---- addresses
 * ------------------------------------------------------------------------------------------------------------------ */

/* A register that holds an address of the path's width. */
static uint32_t address_row(lowering *self, uint32_t reg, em_path path)
{
    const unsigned own = em_type_bytes(self->ptx->registers[reg].type), wanted = path == EM_PATH_FLAT ? 8 : 4;
    const uint32_t row = register_row(self, reg);
    if (own == wanted)
        return row;
    if (own == 8 && wanted == 4) {
        em_constant narrow = self->known[reg].constant;
        if (self->known[reg].is_known && narrow.kind <= EM_CONSTANT_DYNAMIC_SHARED && narrow.bits <= UINT32_MAX &&
            (narrow.kind == EM_CONSTANT_BITS || narrow.kind == EM_CONSTANT_DYNAMIC_SHARED)) {
            narrow.size = 4;
            return em_row_constant(self, &narrow);
        }
        const uint32_t result = em_row_temporary(self, 4);
        draft *made = em_emit(self, self->isa->move->narrow_address);
        if (made != NULL) {
            made->insn.a = row;
            made->insn.d = result;
        }
        return result;
    }
    if (own == 0) {
        em_refuse(self, "with a predicate as an address");
        return row;
    }
    return resized(self, row, own, wanted, false);
}

static bool variable_address(lowering *self, const ptx_operand *operand, place *found)
{
    const ptx_variable *variable = operand->variable;
    em_constant constant;
    found->displacement = (int64_t)operand->bits;
    switch (variable->space) {
    case PTX_SPACE_PARAM:
        if (self->ptx->is_entry && variable->is_parameter) {
            found->is_parameter = true;
            found->displacement += (int64_t)variable->offset;
            return true;
        }
        found->displacement += self->function->parameter_frame;
        /* the parameter frame is local memory */
        __attribute__((fallthrough));
    case PTX_SPACE_LOCAL:
        found->path = EM_PATH_LOCAL;
        found->space = PTX_SPACE_LOCAL;
        found->row = self->function->local_row;
        found->displacement += (int64_t)variable->offset;
        return true;
    case PTX_SPACE_SHARED:
        found->path = EM_PATH_SHARED;
        found->space = PTX_SPACE_SHARED;
        if (!variable_constant(self, variable, 0, 4, &constant))
            return em_refuse(self, "with a shared variable that has no place");
        found->row = em_row_constant(self, &constant);
        return true;
    default:
        found->path = EM_PATH_FLAT;
        if (!variable_constant(self, variable, 0, 8, &constant))
            return em_refuse(self, "with the address of a variable of this space");
        found->row = em_row_constant(self, &constant);
        return true;
    }
}

bool em_address(lowering *self, const ptx_operand *operand, ptx_space space, place *found)
{
    *found = (place){.space = space};
    if (operand->kind != PTX_OPERAND_ADDRESS)
        return em_refuse(self, "with an address of this kind");
    if (operand->variable != NULL && operand->reg == PTX_NO_REGISTER)
        return variable_address(self, operand, found);
    if (operand->variable != NULL)
        return em_refuse(self, "with a variable and a register in one address");
    found->path = space == PTX_SPACE_SHARED ? EM_PATH_SHARED : space == PTX_SPACE_LOCAL ? EM_PATH_LOCAL : EM_PATH_FLAT;
    found->displacement = (int64_t)operand->bits;
    if (operand->reg == PTX_NO_REGISTER)
        found->row = em_row_bits(self, found->path == EM_PATH_FLAT ? 8 : 4, 0);
    else
        found->row = address_row(self, operand->reg, found->path);
    return !self->failed;
}
