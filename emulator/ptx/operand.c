/* Operands as they are written; what the instruction makes of them is check.c's. */
#include "parser.h"

#include <string.h>

enum { LARGEST_VECTOR = 512 };

static ptx_operand blank(ptx_operand_kind kind)
{
    return (ptx_operand){.kind = (uint8_t)kind, .reg = PTX_NO_REGISTER};
}

static bool is_sink(const ptx_token *token)
{
    return token->kind == PTX_TOKEN_NAME && token->length == 1 && *token->start == '_';
}

/* All components of a vector register, or the one register. */
ptx_operand ptx_register_operand(ptx_parser *parser, ptx_symbol *symbol)
{
    const uint32_t number = ptx_register_number(parser, symbol);
    ptx_operand made = blank(PTX_OPERAND_REGISTER);
    if (symbol->vector == 1) {
        made.reg = number;
        return made;
    }
    made.kind = PTX_OPERAND_VECTOR;
    made.count = symbol->vector;
    made.elements = ptx_take(parser, symbol->vector * sizeof *made.elements);
    for (uint32_t i = 0; i < symbol->vector; i++) {
        made.elements[i] = blank(PTX_OPERAND_REGISTER);
        made.elements[i].reg = number + i;
    }
    return made;
}

/* x y z w, or r g b a; -1 for another word */
static int component_of(const ptx_token *word)
{
    if (word->length != 2)
        return -1;
    static const char names[] = "xyzwrgba";
    const char *found = strchr(names, word->start[1]);
    return found == NULL ? -1 : (int)(found - names) % 4;
}

/* .b0 to .b3, .h0, .h1, and the masks of the SIMD video instructions: .b3210, .h10 */
static bool select_part(const ptx_token *word, ptx_operand *operand)
{
    const char kind = word->start[1];
    const size_t digits = word->length - 2;
    if (word->length < 3 || (kind != 'b' && kind != 'h') || digits > 4)
        return false;
    const int limit = kind == 'b' ? (digits == 1 ? 4 : 8) : (digits == 1 ? 2 : 4);
    for (size_t i = 0; i < digits; i++) {
        const char digit = word->start[2 + i];
        if (digit < '0' || digit >= '0' + limit)
            return false;
        operand->selector_mask = (uint16_t)(operand->selector_mask << 4 | (digit - '0'));
    }
    if (digits > 1)
        operand->selector = PTX_SELECT_MASK;
    else
        operand->selector = (uint8_t)((kind == 'b' ? PTX_SELECT_B0 : PTX_SELECT_H0) + operand->selector_mask);
    return true;
}

static ptx_operand parse_register(ptx_parser *parser, ptx_symbol *symbol)
{
    ptx_operand made = ptx_register_operand(parser, symbol);
    if (parser->token.kind != PTX_TOKEN_WORD)
        return made;
    const ptx_token word = parser->token;
    const int component = component_of(&word);
    if (made.kind == PTX_OPERAND_VECTOR) {
        if (component < 0 || component >= symbol->vector)
            ptx_fail(parser, &word, "'%s' has %d components", symbol->name->text, symbol->vector);
        made = made.elements[component];
    } else if (!select_part(&word, &made)) {
        ptx_fail(parser, &word, "'%s' has no such part", symbol->name->text);
    }
    ptx_advance(parser);
    return made;
}

static ptx_operand parse_special(ptx_parser *parser, const ptx_token *name, ptx_special special, unsigned index)
{
    const bool vector = ptx_special_components(special) == 4;
    ptx_operand made = blank(PTX_OPERAND_SPECIAL);
    made.bits = special;
    made.component = (uint8_t)index;
    if (vector && parser->token.kind == PTX_TOKEN_WORD) {
        const int component = component_of(&parser->token);
        if (component < 0)
            ptx_fail(parser, &parser->token, "'%.*s' has the components .x .y .z .w", (int)name->length, name->start);
        made.component = (uint8_t)component;
        ptx_advance(parser);
    } else if (vector) {
        made.component = 0xff;
    }
    return made;
}

static void parse_offset(ptx_parser *parser, ptx_operand *operand)
{
    if (ptx_take_mark(parser, '+') || ptx_at_mark(parser, '-'))
        operand->bits += (uint64_t)ptx_parse_integer(parser);
}

/* name, name + 8, name[2] */
static ptx_operand parse_variable(ptx_parser *parser, ptx_symbol *symbol, bool in_address)
{
    ptx_operand made = blank(in_address ? PTX_OPERAND_ADDRESS : PTX_OPERAND_VARIABLE);
    made.variable = symbol->variable;
    ptx_note_variable(parser, symbol);
    if (ptx_take_mark(parser, '[')) {
        const uint64_t element = (uint64_t)ptx_type_size(made.variable->type) * made.variable->vector;
        made.bits = (uint64_t)ptx_parse_integer(parser) * element;
        ptx_expect(parser, ']');
    }
    parse_offset(parser, &made);
    return made;
}

static ptx_operand parse_name(ptx_parser *parser)
{
    const ptx_token name = ptx_expect_name(parser, "an operand");
    if (is_sink(&name))
        return blank(PTX_OPERAND_SINK);
    ptx_symbol *symbol = ptx_lookup(parser, &name);
    ptx_special special;
    unsigned index;
    if (symbol == NULL && ptx_special_named(name.start, name.length, &special, &index))
        return parse_special(parser, &name, special, index);
    if (symbol == NULL)
        ptx_fail(parser, &name, "'%.*s' is not declared", (int)(name.length < 100 ? name.length : 100), name.start);
    ptx_operand made = {0};
    switch (symbol->kind) {
    case PTX_SYMBOL_REGISTER:
        return parse_register(parser, symbol);
    case PTX_SYMBOL_VARIABLE:
        return parse_variable(parser, symbol, false);
    case PTX_SYMBOL_FUNCTION:
        made = blank(PTX_OPERAND_FUNCTION);
        made.function = symbol->function;
        symbol->function->address_taken = true;
        return made;
    case PTX_SYMBOL_TARGETS:
        made = blank(PTX_OPERAND_TARGETS);
        made.targets = symbol->targets;
        return made;
    default:
        ptx_fail(parser, &name, "'%.*s' cannot be an operand", (int)name.length, name.start);
    }
}

static ptx_operand parse_constant_operand(ptx_parser *parser)
{
    const ptx_constant value = ptx_parse_constant(parser);
    ptx_operand made = blank(PTX_OPERAND_IMMEDIATE);
    made.bits = value.bits;
    made.component = (uint8_t)value.kind; /* until check.c converts it */
    return made;
}

static ptx_operand collect(ptx_parser *parser, ptx_operand_kind kind, size_t first)
{
    ptx_operand made = blank(kind);
    made.count = (uint32_t)(parser->operands.count - first);
    made.elements = ptx_copy_list(parser, &parser->operands, first);
    parser->operands.count = first;
    return made;
}

static ptx_operand parse_vector(ptx_parser *parser)
{
    const size_t first = parser->operands.count;
    ptx_enter(parser);
    ptx_expect(parser, '{');
    do {
        if (parser->operands.count - first >= LARGEST_VECTOR)
            ptx_fail(parser, &parser->token, "a vector of more than %d elements", LARGEST_VECTOR);
        const ptx_operand element = ptx_parse_operand(parser);
        *(ptx_operand *)ptx_push(parser, &parser->operands) = element;
    } while (ptx_take_mark(parser, ','));
    ptx_expect(parser, '}');
    ptx_leave(parser);
    return collect(parser, PTX_OPERAND_VECTOR, first);
}

/* [%rd1 + 8], [name + 4], [16]; and the first part of [texture, coordinates] */
static ptx_operand parse_base(ptx_parser *parser)
{
    ptx_operand made = blank(PTX_OPERAND_ADDRESS);
    if (ptx_starts_constant(parser)) {
        made.bits = (uint64_t)ptx_parse_integer(parser);
        return made;
    }
    const ptx_token name = ptx_expect_name(parser, "an address");
    ptx_symbol *symbol = ptx_lookup(parser, &name);
    if (symbol == NULL)
        ptx_fail(parser, &name, "'%.*s' is not declared", (int)(name.length < 100 ? name.length : 100), name.start);
    if (symbol->kind == PTX_SYMBOL_VARIABLE)
        return parse_variable(parser, symbol, true);
    const bool is_register = symbol->kind == PTX_SYMBOL_REGISTER && symbol->vector == 1;
    const ptx_kind kind = is_register ? ptx_type_kind(symbol->type) : PTX_KIND_NONE;
    const unsigned bits = ptx_type_bits(symbol->type);
    if ((kind != PTX_KIND_BITS && kind != PTX_KIND_UNSIGNED && kind != PTX_KIND_SIGNED) || (bits != 32 && bits != 64))
        ptx_fail(parser, &name, "an address is a 32 or 64-bit integer register or a variable, '%s' is not",
                 symbol->name->text);
    made.reg = ptx_register_number(parser, symbol);
    parse_offset(parser, &made);
    return made;
}

static ptx_operand parse_address(ptx_parser *parser)
{
    const size_t first = parser->operands.count;
    ptx_enter(parser);
    ptx_expect(parser, '[');
    ptx_operand made = parse_base(parser);
    if (ptx_at_mark(parser, ',')) {
        *(ptx_operand *)ptx_push(parser, &parser->operands) = made;
        while (ptx_take_mark(parser, ',')) {
            const ptx_operand part = ptx_parse_operand(parser);
            *(ptx_operand *)ptx_push(parser, &parser->operands) = part;
        }
        made = collect(parser, PTX_OPERAND_TEXTURE, first);
    }
    ptx_expect(parser, ']');
    ptx_leave(parser);
    return made;
}

/* !p and -%r1; everything else that begins so is a constant. */
static bool negates_register(const ptx_parser *parser)
{
    if (!ptx_at_mark(parser, '!') && !ptx_at_mark(parser, '-'))
        return false;
    ptx_lexer probe = parser->lexer;
    const ptx_token next = ptx_lexer_next(&probe);
    return next.kind == PTX_TOKEN_NAME && !(next.length == 7 && memcmp(next.start, "WARP_SZ", 7) == 0);
}

static ptx_operand parse_single(ptx_parser *parser)
{
    if (negates_register(parser)) {
        const ptx_token where = parser->token;
        ptx_advance(parser);
        ptx_operand made = parse_name(parser);
        if (made.kind != PTX_OPERAND_REGISTER && made.kind != PTX_OPERAND_SPECIAL)
            ptx_fail(parser, &where, "only a register can be negated");
        made.negated = true;
        return made;
    }
    if (ptx_at_mark(parser, '{'))
        return parse_vector(parser);
    if (ptx_at_mark(parser, '['))
        return parse_address(parser);
    if (ptx_starts_constant(parser))
        return parse_constant_operand(parser);
    if (parser->token.kind != PTX_TOKEN_NAME)
        ptx_fail(parser, &parser->token, "expected an operand");
    return parse_name(parser);
}

ptx_operand ptx_parse_operand(ptx_parser *parser)
{
    const ptx_operand left = parse_single(parser);
    if (!ptx_take_mark(parser, '|'))
        return left;
    const size_t first = parser->operands.count;
    const ptx_operand right = parse_single(parser);
    *(ptx_operand *)ptx_push(parser, &parser->operands) = left;
    *(ptx_operand *)ptx_push(parser, &parser->operands) = right;
    return collect(parser, PTX_OPERAND_PAIR, first);
}
