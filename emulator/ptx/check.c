/* Operands against the form of their mnemonic: number, kinds, types. Constants take the type they are read under. */
#include "parser.h"

#include <stdio.h>
#include <string.h>

typedef enum verdict {
    FITS,
    WRONG_TYPE, /* the right kind of operand, of the wrong type: an error */
    WRONG_KIND  /* nothing of the kind stands here in this form */
} verdict;

/* ---- registers and constants ----------------------------------------------------------------- */

static bool is_packed_integer(ptx_type type)
{
    return type == PTX_U16X2 || type == PTX_S16X2 || type == PTX_U8X4 || type == PTX_S8X4;
}

static bool is_integer(ptx_type type)
{
    const ptx_kind kind = ptx_type_kind(type);
    return kind == PTX_KIND_UNSIGNED || kind == PTX_KIND_SIGNED || is_packed_integer(type);
}

/* Whether a register of one type can stand where an instruction reads or writes another. */
static bool register_fits(ptx_type own, ptx_type wanted, bool wider)
{
    const ptx_kind own_kind = ptx_type_kind(own), wanted_kind = ptx_type_kind(wanted);
    const unsigned own_size = ptx_type_size(own), wanted_size = ptx_type_size(wanted);
    if (own == wanted)
        return true;
    if (own_kind == PTX_KIND_PREDICATE || wanted_kind == PTX_KIND_PREDICATE)
        return false;
    if (own_size != wanted_size && !(wider && own_size > wanted_size))
        return false;
    if (own_kind == PTX_KIND_BITS || wanted_kind == PTX_KIND_BITS)
        return true;
    if (is_integer(wanted))
        return is_integer(own);
    return wanted_kind == PTX_KIND_FLOAT && own_kind == PTX_KIND_FLOAT && own_size == wanted_size;
}

static ptx_type own_type(const ptx_parser *parser, const ptx_operand *operand)
{
    return PTX_ITEM(parser->registers, ptx_register, operand->reg).type;
}

static verdict judge_register(const ptx_parser *parser, const ptx_slot *slot, const ptx_operand *operand,
                              const ptx_mnemonic *mnemonic)
{
    const ptx_type own = own_type(parser, operand);
    const bool video = mnemonic->op >= PTX_OP_VADD && mnemonic->op <= PTX_OP_VSET4;
    if (slot->role == 'i')
        return WRONG_KIND;
    if (operand->negated && own != PTX_PRED && mnemonic->op != PTX_OP_VMAD)
        return WRONG_KIND;
    if (operand->negated && strchr("dDP", slot->role) != NULL)
        return WRONG_KIND;
    if (operand->selector != PTX_SELECT_ALL && !video)
        return WRONG_KIND;
    if (slot->type == PTX_OWN_TYPE)
        return own == PTX_PRED ? WRONG_TYPE : FITS;
    if (slot->type == PTX_ADDRESS_TYPE)
        return register_fits(own, PTX_U32, false) || register_fits(own, PTX_U64, false) ? FITS : WRONG_TYPE;
    return register_fits(own, (ptx_type)slot->type, slot->wider) ? FITS : WRONG_TYPE;
}

/* Of an operand with no type of its own in the form. */
static ptx_type natural_type(const ptx_operand *constant)
{
    return constant->component == PTX_SINGLE_CONSTANT   ? PTX_F32
           : constant->component == PTX_DOUBLE_CONSTANT ? PTX_F64
                                                        : PTX_B64;
}

static ptx_type constant_type(const ptx_slot *slot, const ptx_operand *operand)
{
    return slot->type == PTX_OWN_TYPE || slot->type == PTX_ADDRESS_TYPE ? natural_type(operand) : (ptx_type)slot->type;
}

static verdict judge_constant(const ptx_slot *slot, const ptx_operand *operand)
{
    uint64_t bits;
    if (strchr("smip", slot->role) == NULL)
        return WRONG_KIND;
    const ptx_constant constant = {operand->component, operand->bits};
    return ptx_convert_constant(constant, constant_type(slot, operand), &bits) ? FITS : WRONG_TYPE;
}

static verdict judge_special(const ptx_slot *slot, const ptx_operand *operand)
{
    if (slot->role != 'm' || operand->component == 0xff)
        return WRONG_KIND;
    const ptx_type own = ptx_special_type((ptx_special)operand->bits), wanted = (ptx_type)slot->type;
    const ptx_kind kind = ptx_type_kind(wanted);
    if (own == PTX_PRED || wanted == PTX_PRED)
        return own == wanted ? FITS : WRONG_TYPE;
    const bool integer = kind == PTX_KIND_BITS || kind == PTX_KIND_UNSIGNED || kind == PTX_KIND_SIGNED;
    return integer && ptx_type_bits(wanted) <= ptx_type_bits(own) ? FITS : WRONG_TYPE;
}

static verdict judge_object(const ptx_slot *slot) /* the address of a variable or function, as a value */
{
    if (slot->role != 'm')
        return WRONG_KIND;
    const ptx_kind kind = ptx_type_kind((ptx_type)slot->type);
    const bool integer = kind == PTX_KIND_BITS || kind == PTX_KIND_UNSIGNED || kind == PTX_KIND_SIGNED;
    return integer && ptx_type_bits((ptx_type)slot->type) >= 32 ? FITS : WRONG_TYPE;
}

/* ---- whole operands -------------------------------------------------------------------------- */

/* mov.b64 {a, b}, c and back: what one element is; NO_TYPE where the parts do not make up the type. */
static ptx_type part_type(const ptx_mnemonic *mnemonic, uint32_t count)
{
    const ptx_type whole = (ptx_type)mnemonic->types[0];
    if (mnemonic->op != PTX_OP_MOV || ptx_type_kind(whole) != PTX_KIND_BITS || (count != 2 && count != 4 && count != 8))
        return PTX_NO_TYPE;
    switch (ptx_type_bits(whole) / count) {
    case 8:
        return PTX_B8;
    case 16:
        return PTX_B16;
    case 32:
        return PTX_B32;
    case 64:
        return PTX_B64;
    default:
        return PTX_NO_TYPE;
    }
}

/* What stands for one element of a vector operand; false: no vector belongs here. */
static bool element_slot(const ptx_slot *slot, const ptx_mnemonic *mnemonic, uint32_t count, ptx_slot *element)
{
    *element = *slot;
    element->vector = 1;
    element->pair = element->pair_required = false;
    if (element->role == 'd')
        element->role = 'D';
    if (element->role == 'm')
        element->role = 's';
    if (slot->vector == 1 && count > 1) {
        element->type = (uint8_t)part_type(mnemonic, count);
        return element->type != PTX_NO_TYPE;
    }
    return slot->vector == 0 || slot->vector == count; /* {a} may stand for a: suld.b.1d.b32 {%r1}, ... */
}

static verdict judge(const ptx_parser *parser, const ptx_slot *slot, const ptx_operand *operand,
                     const ptx_mnemonic *mnemonic);

static verdict judge_elements(const ptx_parser *parser, const ptx_slot *slot, const ptx_operand *operand,
                              const ptx_mnemonic *mnemonic)
{
    ptx_slot element;
    verdict worst = FITS;
    if (!element_slot(slot, mnemonic, operand->count, &element))
        return WRONG_KIND;
    for (uint32_t i = 0; i < operand->count; i++) {
        const ptx_operand *part = &operand->elements[i];
        const verdict found = part->kind == PTX_OPERAND_VECTOR ? WRONG_KIND : judge(parser, &element, part, mnemonic);
        if (found > worst)
            worst = found;
    }
    return worst;
}

static const ptx_slot predicate_slot = {.role = 'P', .type = PTX_PRED, .vector = 1};

static verdict judge_pair(const ptx_parser *parser, const ptx_slot *slot, const ptx_operand *operand,
                          const ptx_mnemonic *mnemonic)
{
    ptx_slot first = *slot;
    first.pair = first.pair_required = false;
    if (!slot->pair || operand->elements[0].kind == PTX_OPERAND_PAIR)
        return WRONG_KIND;
    const verdict left = judge(parser, &first, &operand->elements[0], mnemonic);
    const verdict right = judge(parser, &predicate_slot, &operand->elements[1], mnemonic);
    return left > right ? left : right;
}

static verdict judge_address(const ptx_operand *operand, const ptx_mnemonic *mnemonic)
{
    const bool names_space = mnemonic->op == PTX_OP_LD || mnemonic->op == PTX_OP_ST || mnemonic->op == PTX_OP_ATOM ||
                             mnemonic->op == PTX_OP_RED || mnemonic->op == PTX_OP_LDU;
    if (operand->kind != PTX_OPERAND_ADDRESS && operand->kind != PTX_OPERAND_VARIABLE)
        return WRONG_KIND;
    if (!names_space || operand->variable == NULL || operand->variable->space == mnemonic->space)
        return FITS;
    /* A generic access may name a variable of a space that generic addresses reach so. */
    const ptx_space space = operand->variable->space;
    if (mnemonic->space != PTX_SPACE_GENERIC || space == PTX_SPACE_PARAM || space == PTX_SPACE_CONST)
        return WRONG_TYPE;
    return FITS;
}

static verdict judge(const ptx_parser *parser, const ptx_slot *slot, const ptx_operand *operand,
                     const ptx_mnemonic *mnemonic)
{
    if (slot->role == '*')
        return FITS;
    if (slot->role == 'A')
        return judge_address(operand, mnemonic);
    if (slot->role == 'X')
        return operand->kind == PTX_OPERAND_TEXTURE ? FITS : WRONG_KIND;
    if (slot->role == 'T')
        return operand->kind == PTX_OPERAND_TARGETS && operand->targets->labels != NULL ? FITS : WRONG_KIND;
    if (operand->kind == PTX_OPERAND_PAIR)
        return judge_pair(parser, slot, operand, mnemonic);
    if (slot->pair_required)
        return WRONG_KIND;
    if (operand->kind == PTX_OPERAND_VECTOR)
        return judge_elements(parser, slot, operand, mnemonic);
    if (slot->vector > 1)
        return WRONG_KIND;
    switch ((ptx_operand_kind)operand->kind) {
    case PTX_OPERAND_REGISTER:
        return judge_register(parser, slot, operand, mnemonic);
    case PTX_OPERAND_IMMEDIATE:
        return judge_constant(slot, operand);
    case PTX_OPERAND_SPECIAL:
        return judge_special(slot, operand);
    case PTX_OPERAND_VARIABLE:
    case PTX_OPERAND_FUNCTION:
        return judge_object(slot);
    case PTX_OPERAND_SINK:
        return slot->role == 'D' || slot->role == 'P' ? FITS : WRONG_KIND;
    default:
        return WRONG_KIND;
    }
}

/* ---- taking the form's types ----------------------------------------------------------------- */

static void settle(const ptx_parser *parser, const ptx_slot *slot, ptx_operand *operand, const ptx_mnemonic *mnemonic);

static void settle_constant(const ptx_slot *slot, ptx_operand *operand)
{
    const ptx_constant constant = {operand->component, operand->bits};
    ptx_type type = constant_type(slot, operand);
    if (!ptx_convert_constant(constant, type, &operand->bits)) { /* only where the form takes anything */
        type = natural_type(operand);
        ptx_convert_constant(constant, type, &operand->bits);
    }
    operand->type = (uint8_t)type;
    operand->component = 0;
}

/* [texture, sampler, {coordinates}]: the parts take the type of a coordinate, the layer of an array is an integer. */
static void settle_texture(const ptx_parser *parser, const ptx_slot *slot, ptx_operand *operand,
                           const ptx_mnemonic *mnemonic)
{
    const ptx_modifier geometry = (ptx_modifier)mnemonic->by_class[PTX_CLASS_GEOMETRY];
    const bool layered = geometry == PTX_MOD_GEOMETRY_A1D || geometry == PTX_MOD_GEOMETRY_A2D ||
                         geometry == PTX_MOD_GEOMETRY_ACUBE || geometry == PTX_MOD_GEOMETRY_A2DMS;
    const ptx_slot part = {.role = '*', .type = slot->type, .vector = 0};
    const ptx_slot own = {.role = '*', .type = PTX_OWN_TYPE, .vector = 1};
    for (uint32_t i = 0; i < operand->count; i++) {
        ptx_operand *element = &operand->elements[i];
        const bool sampler = i == 1 && operand->count > 2 && element->kind == PTX_OPERAND_REGISTER;
        settle(parser, sampler ? &own : &part, element, mnemonic);
        if (i > 0 && layered && element->kind == PTX_OPERAND_VECTOR && element->count > 0)
            element->elements[0].type = PTX_U32;
    }
}

static void settle_elements(const ptx_parser *parser, const ptx_slot *slot, ptx_operand *operand,
                            const ptx_mnemonic *mnemonic)
{
    ptx_slot element;
    if (!element_slot(slot, mnemonic, operand->count, &element))
        element = *slot; /* a form that takes anything */
    for (uint32_t i = 0; i < operand->count; i++)
        settle(parser, operand->kind == PTX_OPERAND_PAIR && i == 1 ? &predicate_slot : &element, &operand->elements[i],
               mnemonic);
    operand->type = operand->count > 0 ? operand->elements[0].type : PTX_NO_TYPE;
    if (slot->vector == 1 && operand->kind == PTX_OPERAND_VECTOR && slot->role != '*')
        operand->type = slot->type; /* mov.b64 {a, b}: the whole */
}

static void settle(const ptx_parser *parser, const ptx_slot *slot, ptx_operand *operand, const ptx_mnemonic *mnemonic)
{
    const bool typed = slot->type != PTX_OWN_TYPE && slot->type != PTX_ADDRESS_TYPE;
    operand->destination = slot->role == 'd' || slot->role == 'D' || slot->role == 'P';
    switch ((ptx_operand_kind)operand->kind) {
    case PTX_OPERAND_PAIR: {
        ptx_slot first = *slot;
        first.vector = first.vector == 1 ? 0 : first.vector;
        settle_elements(parser, &first, operand, mnemonic);
        return;
    }
    case PTX_OPERAND_VECTOR:
        settle_elements(parser, slot, operand, mnemonic);
        if (slot->vector == 1 && operand->count == 1 && slot->role != '*')
            *operand = operand->elements[0];
        return;
    case PTX_OPERAND_TEXTURE:
        settle_texture(parser, slot, operand, mnemonic);
        return;
    case PTX_OPERAND_IMMEDIATE:
        settle_constant(slot, operand);
        return;
    case PTX_OPERAND_REGISTER:
        operand->type = typed && slot->role != '*' ? slot->type : (uint8_t)own_type(parser, operand);
        return;
    case PTX_OPERAND_VARIABLE:
        if (slot->role == 'A') /* ld.global.u32 %r1, name[2] */
            operand->kind = PTX_OPERAND_ADDRESS;
        operand->type = typed ? slot->type : PTX_B64;
        return;
    case PTX_OPERAND_ADDRESS:
        operand->type = PTX_NO_TYPE;
        return;
    default:
        operand->type = typed ? slot->type : PTX_NO_TYPE;
        return;
    }
}

/* ---- forms ----------------------------------------------------------------------------------- */

static const ptx_slot anything = {.role = '*', .type = PTX_OWN_TYPE, .vector = 1};

static const ptx_slot *slot_at(const ptx_form *form, unsigned index)
{
    if (form->any && index >= form->count - 1u)
        return &form->slots[form->count - 1];
    return index < form->count ? &form->slots[index] : NULL;
}

/* The verdict on all operands; `at` is the first that does not fit. */
static verdict judge_form(const ptx_parser *parser, const ptx_form *form, const ptx_instruction *instruction,
                          unsigned *at)
{
    verdict worst = FITS;
    for (unsigned i = 0; i < instruction->operand_count; i++) {
        const ptx_slot *slot = slot_at(form, i);
        const verdict found =
            slot == NULL ? WRONG_KIND : judge(parser, slot, &instruction->operands[i], instruction->mnemonic);
        if (found > worst) {
            worst = found;
            *at = i;
        }
    }
    for (unsigned i = instruction->operand_count; i < form->count; i++) {
        if (!form->slots[i].optional && form->slots[i].role != '*') {
            *at = instruction->operand_count;
            return WRONG_KIND;
        }
    }
    return worst;
}

_Noreturn static void report_type(ptx_parser *parser, const ptx_instruction *instruction, const ptx_form *form,
                                  unsigned at)
{
    const ptx_operand *operand = &instruction->operands[at];
    const ptx_slot *slot = slot_at(form, at);
    const char *spelling = instruction->mnemonic->spelling;
    const ptx_token *where = &parser->operand_at[at];
    if (slot->role == 'A')
        ptx_fail(parser, where, "'%s' is in .%s memory, which '%s' does not access", operand->variable->name,
                 ptx_space_name(operand->variable->space), spelling);
    if (operand->kind == PTX_OPERAND_REGISTER && slot->type < PTX_TYPE_COUNT)
        ptx_fail(parser, where, "operand %u of '%s' is .%s, this register is .%s", at + 1, spelling,
                 ptx_type_name((ptx_type)slot->type), ptx_type_name(own_type(parser, operand)));
    if (operand->kind == PTX_OPERAND_IMMEDIATE && slot->type < PTX_TYPE_COUNT)
        ptx_fail(parser, where, "operand %u of '%s' is .%s, this constant is not", at + 1, spelling,
                 ptx_type_name((ptx_type)slot->type));
    ptx_fail(parser, where, "operand %u of '%s' has the wrong type", at + 1, spelling);
}

static void report_kind(ptx_parser *parser, const ptx_instruction *instruction, unsigned at, const ptx_token *where)
{
    const char *spelling = instruction->mnemonic->spelling;
    if (at >= instruction->operand_count)
        ptx_fail(parser, where, "'%s' takes more than %u operands", spelling, instruction->operand_count);
    if (instruction->operands[at].kind == PTX_OPERAND_SPECIAL)
        ptx_fail(parser, &parser->operand_at[at], "a special register is read by mov or cvt only");
    ptx_fail(parser, &parser->operand_at[at], "'%s' takes no operand like this here", spelling);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void check_passed(ptx_parser *parser, const ptx_token *where, ptx_operand *list, ptx_variable *const *expected,
                         uint32_t count, const char *what)
{
    if (list->count != count)
        ptx_fail(parser, where, "this call passes %u %s, the function has %u", list->count, what, count);
    for (uint32_t i = 0; i < count; i++) {
        ptx_operand *operand = &list->elements[i];
        const ptx_variable *variable = expected[i];
        const bool result = variable->is_result;
        const ptx_slot slot = {.role = result ? 'D' : 's', .type = (uint8_t)variable->type, .vector = 1};
        bool fits = operand->kind == PTX_OPERAND_SINK && result;
        if (operand->kind == PTX_OPERAND_REGISTER)
            fits = !variable->is_array && !operand->negated && operand->selector == PTX_SELECT_ALL &&
                   register_fits(own_type(parser, operand), variable->type, false);
        else if (operand->kind == PTX_OPERAND_IMMEDIATE)
            fits = !variable->is_array && judge_constant(&slot, operand) == FITS;
        else if (operand->kind == PTX_OPERAND_VARIABLE)
            fits = operand->variable->space == PTX_SPACE_PARAM && operand->bits == 0 &&
                   (variable->is_unsized || operand->variable->size == variable->size);
        if (!fits)
            ptx_fail(parser, where, "one of the %s of this call does not fit '.%s %s' of the function", what,
                     ptx_type_name(variable->type), variable->name);
        if (operand->kind == PTX_OPERAND_IMMEDIATE)
            settle_constant(&slot, operand);
        operand->type = (uint8_t)variable->type;
        operand->destination = result;
    }
}

static void check_call(ptx_parser *parser, ptx_instruction *instruction, const ptx_token *where)
{
    ptx_operand *operands = instruction->operands;
    const ptx_operand *signature = &operands[3];
    const ptx_function *function = operands[1].kind == PTX_OPERAND_FUNCTION ? operands[1].function : NULL;
    if (function == NULL && signature->kind == PTX_OPERAND_TARGETS)
        function = signature->targets->functions[0];
    if (operands[1].kind == PTX_OPERAND_REGISTER) {
        operands[1].type = (uint8_t)own_type(parser, &operands[1]);
        if (!register_fits((ptx_type)operands[1].type, PTX_U64, false) &&
            !register_fits((ptx_type)operands[1].type, PTX_U32, false))
            ptx_fail(parser, where, "an indirect call takes the address from an integer register");
        if (signature->kind == PTX_OPERAND_NONE)
            ptx_fail(parser, where, "an indirect call names a .callprototype or .calltargets");
    }
    if (function != NULL) {
        check_passed(parser, where, &operands[0], function->results, function->result_count, "results");
        check_passed(parser, where, &operands[2], function->parameters, function->parameter_count, "arguments");
    } else {
        const ptx_prototype *prototype = signature->prototype;
        check_passed(parser, where, &operands[0], prototype->results, prototype->result_count, "results");
        check_passed(parser, where, &operands[2], prototype->parameters, prototype->parameter_count, "arguments");
    }
    operands[0].destination = true;
}

void ptx_check_operands(ptx_parser *parser, ptx_instruction *instruction, const ptx_token *where)
{
    if (instruction->op == PTX_OP_CALL) {
        check_call(parser, instruction, where);
        return;
    }
    if (instruction->op == PTX_OP_BRA)
        return;
    const ptx_form *chosen = NULL;
    const ptx_form *typed = NULL; /* the first that only types speak against */
    unsigned at = 0, typed_at = 0;
    for (const ptx_form *form = instruction->mnemonic->form; form != NULL && chosen == NULL; form = form->next) {
        unsigned here = 0;
        const verdict found = judge_form(parser, form, instruction, &here);
        if (found == FITS) {
            chosen = form;
        } else if (found == WRONG_TYPE && typed == NULL) {
            typed = form;
            typed_at = here;
        } else if (here > at) {
            at = here;
        }
    }
    if (chosen == NULL && typed != NULL)
        report_type(parser, instruction, typed, typed_at);
    if (chosen == NULL && parser->known_version)
        report_kind(parser, instruction, at, where);
    if (chosen == NULL)
        instruction->op = PTX_OP_UNSUPPORTED;
    for (unsigned i = 0; i < instruction->operand_count; i++)
        settle(parser, chosen == NULL ? &anything : slot_at(chosen, i), &instruction->operands[i],
               instruction->mnemonic);
}
