/* Names, what they mean in each scope, and labels. */
#include "parser.h"

#include <stdlib.h>
#include <string.h>

/* ---- spellings ------------------------------------------------------------------------------- */

static uint32_t hash_of(const char *text, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash ^ hash >> 15;
}

static void grow_names(ptx_parser *parser)
{
    const size_t slots = parser->name_slots == 0 ? 1024 : parser->name_slots * 2;
    ptx_name **names = calloc(slots, sizeof *names);
    if (names == NULL)
        ptx_fail_memory(parser);
    for (size_t i = 0; i < parser->name_slots; i++) {
        if (parser->names[i] == NULL)
            continue;
        size_t slot = parser->names[i]->hash & (slots - 1);
        while (names[slot] != NULL)
            slot = (slot + 1) & (slots - 1);
        names[slot] = parser->names[i];
    }
    free(parser->names);
    parser->names = names;
    parser->name_slots = slots;
}

/* The slot that holds the spelling, or where it would go. */
static ptx_name **name_slot(const ptx_parser *parser, const char *text, size_t length, uint32_t hash)
{
    size_t slot = hash & (parser->name_slots - 1);
    for (;; slot = (slot + 1) & (parser->name_slots - 1)) {
        ptx_name *name = parser->names[slot];
        if (name == NULL || (name->hash == hash && name->length == length && memcmp(name->text, text, length) == 0))
            return &parser->names[slot];
    }
}

ptx_name *ptx_intern(ptx_parser *parser, const char *text, size_t length)
{
    if (parser->name_count * 2 >= parser->name_slots)
        grow_names(parser);
    const uint32_t hash = hash_of(text, length);
    ptx_name **slot = name_slot(parser, text, length, hash);
    if (*slot == NULL) {
        ptx_name *name = ptx_take(parser, sizeof *name);
        name->text = ptx_text(parser, text, length);
        name->length = (uint32_t)length;
        name->hash = hash;
        *slot = name;
        parser->name_count++;
    }
    return *slot;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

ptx_symbol *ptx_declare(ptx_parser *parser, const ptx_token *token, ptx_symbol_kind kind, uint32_t depth)
{
    ptx_name *name = ptx_intern(parser, token->start, token->length);
    ptx_symbol **top = kind == PTX_SYMBOL_RANGE ? &name->range : &name->symbol;
    if (token->length == 1 && *token->start == '_')
        ptx_fail(parser, token, "'_' cannot be declared");
    if (*top != NULL && (*top)->depth == depth)
        ptx_fail(parser, token, "'%s' is declared twice, first on line %u", name->text, (*top)->line);
    ptx_symbol *symbol = ptx_take(parser, sizeof *symbol);
    symbol->kind = kind;
    symbol->depth = depth;
    symbol->line = token->line;
    symbol->name = name;
    symbol->number = PTX_NO_REGISTER;
    symbol->shadowed = *top;
    symbol->next_of_scope = parser->scopes[depth].symbols;
    parser->scopes[depth].symbols = symbol;
    *top = symbol;
    return symbol;
}

/* %r12 of `.reg .b32 %r<100>`: becomes a symbol of its own where it is first named, so ranges cost nothing. */
static ptx_symbol *from_range(ptx_parser *parser, const ptx_token *token, const ptx_symbol *exact)
{
    size_t digits = 0;
    while (digits < token->length - 1 && ptx_is_digit(token->start[token->length - 1 - digits]))
        digits++;
    for (; digits > 0; digits--) { /* %r1<10> makes %r12 too: the longest prefix of a range wins last */
        const char *number = token->start + token->length - digits;
        if ((*number == '0' && digits > 1) || digits > 10)
            continue;
        const size_t length = token->length - digits;
        ptx_name **slot = name_slot(parser, token->start, length, hash_of(token->start, length));
        const ptx_symbol *range = *slot == NULL ? NULL : (*slot)->range;
        uint64_t index = 0;
        for (size_t i = 0; i < digits; i++)
            index = index * 10 + (uint64_t)(number[i] - '0');
        if (range == NULL || index >= range->count || (exact != NULL && range->depth <= exact->depth))
            continue;
        ptx_symbol *symbol = ptx_declare(parser, token, PTX_SYMBOL_REGISTER, range->depth);
        symbol->type = range->type;
        symbol->vector = range->vector;
        return symbol;
    }
    return NULL;
}

ptx_symbol *ptx_lookup(ptx_parser *parser, const ptx_token *token)
{
    if (parser->name_slots == 0)
        return NULL;
    ptx_name *name = *name_slot(parser, token->start, token->length, hash_of(token->start, token->length));
    ptx_symbol *exact = name == NULL ? NULL : name->symbol;
    const bool ends_in_digit = ptx_is_digit(token->start[token->length - 1]);
    if (ends_in_digit && (exact == NULL || parser->inner_ranges)) {
        ptx_symbol *ranged = from_range(parser, token, exact);
        if (ranged != NULL)
            return ranged;
    }
    return exact;
}

void ptx_open_scope(ptx_parser *parser, const ptx_token *where)
{
    if (parser->depth + 1 >= PTX_MAX_DEPTH)
        ptx_fail(parser, where, "braces nested more than %d deep", PTX_MAX_DEPTH);
    ptx_scope *scope = &parser->scopes[++parser->depth];
    scope->symbols = NULL;
    scope->first_pending = parser->pending.count;
    scope->parameter_frame = parser->depth > 1 ? scope[-1].parameter_frame : 0;
}

/* References to labels are settled here, innermost scope first; the rest wait for the scope around. */
static void settle_labels(ptx_parser *parser, const ptx_scope *scope)
{
    size_t kept = scope->first_pending;
    for (size_t i = scope->first_pending; i < parser->pending.count; i++) {
        const ptx_pending pending = PTX_ITEM(parser->pending, ptx_pending, i);
        const ptx_symbol *symbol = pending.name->symbol;
        if (symbol == NULL || symbol->kind != PTX_SYMBOL_LABEL || symbol->depth != parser->depth) {
            if (parser->depth == 1)
                ptx_fail(parser, &pending.where, "no label '%s' here", pending.name->text);
            PTX_ITEM(parser->pending, ptx_pending, kept++) = pending;
        } else if (pending.operand != NULL) {
            *pending.operand = symbol->target;
        } else {
            *pending.list = symbol->target;
        }
    }
    parser->pending.count = kept;
}

void ptx_close_scope(ptx_parser *parser)
{
    ptx_scope *scope = &parser->scopes[parser->depth];
    settle_labels(parser, scope);
    for (ptx_symbol *symbol = scope->symbols; symbol != NULL; symbol = symbol->next_of_scope) {
        if (symbol->kind == PTX_SYMBOL_RANGE)
            symbol->name->range = symbol->shadowed;
        else
            symbol->name->symbol = symbol->shadowed;
    }
    scope->symbols = NULL;
    parser->depth--;
}

/* ---- labels and registers -------------------------------------------------------------------- */

void ptx_define_label(ptx_parser *parser, const ptx_token *token)
{
    ptx_symbol *symbol = ptx_declare(parser, token, PTX_SYMBOL_LABEL, parser->depth);
    ptx_label *label = ptx_push(parser, &parser->labels);
    label->name = symbol->name->text;
    symbol->target = label->target = (uint32_t)parser->instructions.count;
}

void ptx_refer_to_label(ptx_parser *parser, const ptx_token *token, uint64_t *operand, uint32_t *list)
{
    ptx_pending *pending = ptx_push(parser, &parser->pending);
    pending->name = ptx_intern(parser, token->start, token->length);
    pending->operand = operand;
    pending->list = list;
    pending->where = *token;
}

uint32_t ptx_register_number(ptx_parser *parser, ptx_symbol *symbol)
{
    if (symbol->number == PTX_NO_REGISTER) {
        symbol->number = (uint32_t)parser->registers.count;
        for (unsigned i = 0; i < symbol->vector; i++) {
            ptx_register *made = ptx_push(parser, &parser->registers);
            made->name = symbol->name->text;
            made->type = symbol->type;
        }
    }
    return symbol->number;
}
