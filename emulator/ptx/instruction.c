/* One instruction: guard, mnemonic, operands. */
#include "parser.h"

#include <string.h>

enum { LONGEST_MNEMONIC = 240 };

static void parse_guard(ptx_parser *parser, ptx_instruction *made)
{
    ptx_expect(parser, '@');
    made->guard_negated = ptx_take_mark(parser, '!');
    const ptx_token name = ptx_expect_name(parser, "a predicate register");
    ptx_symbol *symbol = ptx_lookup(parser, &name);
    if (symbol == NULL)
        ptx_fail(parser, &name, "'%.*s' is not declared", (int)name.length, name.start);
    if (symbol->kind != PTX_SYMBOL_REGISTER || symbol->type != PTX_PRED)
        ptx_fail(parser, &name, "a guard is a predicate register, '%.*s' is not", (int)name.length, name.start);
    made->guard = ptx_register_number(parser, symbol);
}

/* The mnemonic as one word from the text; blanks may stand before its dots. Leaves the token after it. */
static ptx_mnemonic *parse_mnemonic(ptx_parser *parser)
{
    const ptx_token first = parser->token;
    if (first.kind != PTX_TOKEN_NAME)
        ptx_fail(parser, &first, "expected an instruction");
    char joined[LONGEST_MNEMONIC];
    size_t length = first.length;
    const char *spelling = first.start;
    const char *end = first.start + first.length; /* of what is in one piece so far */
    if (length >= LONGEST_MNEMONIC)
        ptx_fail(parser, &first, "expected an instruction");
    for (;;) {
        ptx_advance(parser);
        if (parser->token.kind != PTX_TOKEN_WORD)
            break;
        if (length + parser->token.length >= LONGEST_MNEMONIC)
            ptx_fail(parser, &first, "this mnemonic is too long");
        if (spelling != joined && parser->token.start != end) {
            memcpy(joined, spelling, length);
            spelling = joined;
        }
        if (spelling == joined)
            memcpy(joined + length, parser->token.start, parser->token.length);
        length += parser->token.length;
        end = parser->token.start + parser->token.length;
    }
    return ptx_find_mnemonic(parser, spelling, length);
}

/* What the tables do not know is kept as text: up to the ';', blanks and comments squeezed out. */
static void keep_text(ptx_parser *parser, ptx_instruction *made)
{
    const char *end = parser->token.start;
    uint32_t braces = 0;
    parser->bytes.count = 0;
    for (; braces > 0 || !ptx_at_mark(parser, ';'); ptx_advance(parser)) {
        if (parser->token.kind == PTX_TOKEN_END || (braces == 0 && ptx_at_mark(parser, '}')))
            ptx_expect(parser, ';');
        braces += ptx_at_mark(parser, '{') ? 1u : 0u;
        braces -= ptx_at_mark(parser, '}') ? 1u : 0u;
        const size_t quote = parser->token.kind == PTX_TOKEN_STRING ? 1 : 0;
        if (parser->token.start - quote != end)
            *(char *)ptx_push(parser, &parser->bytes) = ' ';
        end = parser->token.start + parser->token.length + quote;
        for (const char *c = parser->token.start - quote; c < end; c++)
            *(char *)ptx_push(parser, &parser->bytes) = *c;
    }
    made->operands = ptx_take(parser, sizeof *made->operands);
    made->operand_count = 1;
    made->operands[0].kind = PTX_OPERAND_TEXT;
    made->operands[0].reg = PTX_NO_REGISTER;
    made->operands[0].text = ptx_text(parser, parser->bytes.items, parser->bytes.count);
}

/* ---- branches and calls ---------------------------------------------------------------------- */

static void parse_branch(ptx_parser *parser, ptx_instruction *made)
{
    made->operands = ptx_take(parser, sizeof *made->operands);
    made->operand_count = 1;
    const ptx_token label = ptx_expect_name(parser, "a label");
    made->operands[0].kind = PTX_OPERAND_LABEL;
    made->operands[0].reg = PTX_NO_REGISTER;
    ptx_refer_to_label(parser, &label, &made->operands[0].bits, NULL);
}

static ptx_operand parse_list(ptx_parser *parser)
{
    const size_t first = parser->operands.count;
    ptx_expect(parser, '(');
    while (!ptx_at_mark(parser, ')')) {
        const ptx_operand item = ptx_parse_operand(parser);
        *(ptx_operand *)ptx_push(parser, &parser->operands) = item;
        if (!ptx_take_mark(parser, ','))
            break;
    }
    ptx_expect(parser, ')');
    ptx_operand list = {.kind = PTX_OPERAND_LIST, .reg = PTX_NO_REGISTER};
    list.count = (uint32_t)(parser->operands.count - first);
    list.elements = ptx_copy_list(parser, &parser->operands, first);
    parser->operands.count = first;
    return list;
}

static ptx_operand parse_callee(ptx_parser *parser)
{
    const ptx_token name = ptx_expect_name(parser, "the function to call");
    ptx_symbol *symbol = ptx_lookup(parser, &name);
    if (symbol == NULL)
        ptx_fail(parser, &name, "'%.*s' is not declared", (int)name.length, name.start);
    if (symbol->kind == PTX_SYMBOL_FUNCTION) {
        ptx_note_call(parser, symbol);
        return (ptx_operand){.kind = PTX_OPERAND_FUNCTION, .reg = PTX_NO_REGISTER, .function = symbol->function};
    }
    if (symbol->kind != PTX_SYMBOL_REGISTER || symbol->vector != 1)
        ptx_fail(parser, &name, "'%.*s' cannot be called", (int)name.length, name.start);
    parser->function->calls_indirectly = true;
    return ptx_register_operand(parser, symbol);
}

static ptx_operand parse_call_signature(ptx_parser *parser)
{
    const ptx_token name = ptx_expect_name(parser, "a .calltargets list or a .callprototype");
    const ptx_symbol *symbol = ptx_lookup(parser, &name);
    if (symbol != NULL && symbol->kind == PTX_SYMBOL_TARGETS && symbol->targets->functions != NULL)
        return (ptx_operand){.kind = PTX_OPERAND_TARGETS, .reg = PTX_NO_REGISTER, .targets = symbol->targets};
    if (symbol == NULL || symbol->kind != PTX_SYMBOL_PROTOTYPE)
        ptx_fail(parser, &name, "'%.*s' is not a .calltargets list or .callprototype of this function",
                 (int)name.length, name.start);
    return (ptx_operand){.kind = PTX_OPERAND_PROTOTYPE, .reg = PTX_NO_REGISTER, .prototype = symbol->prototype};
}

/* call (results), callee, (arguments), signature; all but the callee may be absent. */
static void parse_call(ptx_parser *parser, ptx_instruction *made)
{
    const ptx_operand empty = {.kind = PTX_OPERAND_LIST, .reg = PTX_NO_REGISTER};
    ptx_operand *operands = ptx_take(parser, 4 * sizeof *operands);
    made->operands = operands;
    made->operand_count = 4;
    operands[0] = operands[2] = empty;
    operands[3].reg = PTX_NO_REGISTER;
    if (ptx_at_mark(parser, '(')) {
        operands[0] = parse_list(parser);
        ptx_expect(parser, ',');
    }
    operands[1] = parse_callee(parser);
    if (ptx_take_mark(parser, ',')) {
        const bool arguments = ptx_at_mark(parser, '(');
        if (arguments)
            operands[2] = parse_list(parser);
        if (!arguments || ptx_take_mark(parser, ','))
            operands[3] = parse_call_signature(parser);
    }
}

static void parse_operands(ptx_parser *parser, ptx_instruction *made)
{
    parser->operands.count = 0;
    while (!ptx_at_mark(parser, ';')) {
        if (parser->operands.count == PTX_MAX_OPERANDS)
            ptx_fail(parser, &parser->token, "more operands than any instruction has");
        parser->operand_at[parser->operands.count] = parser->token;
        const ptx_operand operand = ptx_parse_operand(parser);
        *(ptx_operand *)ptx_push(parser, &parser->operands) = operand;
        if (!ptx_take_mark(parser, ','))
            break;
    }
    made->operand_count = (uint8_t)parser->operands.count;
    made->operands = ptx_copy_list(parser, &parser->operands, 0);
}

void ptx_parse_instruction(ptx_parser *parser)
{
    ptx_instruction made = {.guard = PTX_NO_REGISTER, .line = parser->token.line, .location = parser->location};
    if (ptx_at_mark(parser, '@'))
        parse_guard(parser, &made);
    const ptx_token where = parser->token;
    made.mnemonic = parse_mnemonic(parser);
    made.op = (uint16_t)made.mnemonic->op;
    parser->operands.count = 0;
    if (made.op == PTX_OP_UNSUPPORTED)
        keep_text(parser, &made);
    else if (made.op == PTX_OP_BRA)
        parse_branch(parser, &made);
    else if (made.op == PTX_OP_CALL)
        parse_call(parser, &made);
    else
        parse_operands(parser, &made);
    ptx_expect(parser, ';');
    if (made.op != PTX_OP_UNSUPPORTED)
        ptx_check_operands(parser, &made, &where);
    *(ptx_instruction *)ptx_push(parser, &parser->instructions) = made;
}
