/* The module: what stands outside functions, and the parser's own helpers. */
#include "parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NEWEST_MAJOR = 9, /* the newest PTX whose forms the tables were held against */
    NEWEST_MINOR = 5
};

/* ---- failing --------------------------------------------------------------------------------- */

static char printable(char c)
{
    return c == '\t' ? ' ' : c < 32 || c > 126 ? '?' : c;
}

/* The source line of a token and a caret under it; long lines are cut on both sides. */
static void write_excerpt(const ptx_parser *parser, const ptx_token *where, ptx_error *error)
{
    const char *first = where->start, *last = where->start;
    while (first > parser->lexer.text && first[-1] != '\n')
        first--;
    while (last < parser->lexer.end && *last != '\n' && *last != '\r')
        last++;
    error->column = (unsigned)(where->start - first) + 1;
    enum { WIDTH = 100 };
    if (where->start - first > WIDTH * 3 / 4)
        first = where->start - WIDTH * 3 / 4;
    if (last - first > WIDTH)
        last = first + WIDTH;
    size_t at = 0;
    for (const char *c = first; c < last; c++)
        error->excerpt[at++] = printable(*c);
    error->excerpt[at++] = '\n';
    for (const char *c = first; c < where->start; c++)
        error->excerpt[at++] = ' ';
    error->excerpt[at++] = '^';
    error->excerpt[at] = '\0';
}

void ptx_fail(ptx_parser *parser, const ptx_token *where, const char *format, ...)
{
    ptx_error *error = parser->error;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    for (char *c = error->message; *c != '\0'; c++)
        *c = printable(*c);
    if (where != NULL) {
        error->line = where->line;
        write_excerpt(parser, where, error);
    }
    longjmp(parser->failed, 1);
}

void ptx_fail_memory(ptx_parser *parser)
{
    parser->error->out_of_memory = true;
    snprintf(parser->error->message, sizeof parser->error->message, "out of memory");
    longjmp(parser->failed, 1);
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *ptx_take(ptx_parser *parser, size_t size)
{
    void *taken = ptx_arena_take(parser->arena, size);
    if (taken == NULL)
        ptx_fail_memory(parser);
    return taken;
}

void *ptx_push(ptx_parser *parser, ptx_list *list)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        void *items = realloc(list->items, capacity * list->item);
        if (items == NULL)
            ptx_fail_memory(parser);
        list->items = items;
        list->capacity = capacity;
    }
    void *item = (char *)list->items + list->count++ * list->item;
    memset(item, 0, list->item);
    return item;
}

void *ptx_copy_list(ptx_parser *parser, const ptx_list *list, size_t first)
{
    const size_t size = (list->count - first) * list->item;
    void *copy = ptx_take(parser, size);
    if (size > 0)
        memcpy(copy, (const char *)list->items + first * list->item, size);
    return copy;
}

const char *ptx_text(ptx_parser *parser, const char *start, size_t length)
{
    char *text = ptx_take(parser, length + 1);
    if (length > 0)
        memcpy(text, start, length);
    return text;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

void ptx_advance(ptx_parser *parser)
{
    parser->token = ptx_lexer_next(&parser->lexer);
    if (parser->token.kind == PTX_TOKEN_INVALID)
        ptx_fail(parser, &parser->token, "%s", parser->token.what);
}

bool ptx_at_mark(const ptx_parser *parser, unsigned mark)
{
    return parser->token.kind == PTX_TOKEN_MARK && parser->token.mark == mark;
}

bool ptx_at_word(const ptx_parser *parser, const char *word)
{
    const size_t length = strlen(word);
    return parser->token.kind == PTX_TOKEN_WORD && parser->token.length == length + 1 &&
           memcmp(parser->token.start + 1, word, length) == 0;
}

bool ptx_take_mark(ptx_parser *parser, unsigned mark)
{
    if (!ptx_at_mark(parser, mark))
        return false;
    ptx_advance(parser);
    return true;
}

bool ptx_take_word(ptx_parser *parser, const char *word)
{
    if (!ptx_at_word(parser, word))
        return false;
    ptx_advance(parser);
    return true;
}

void ptx_expect(ptx_parser *parser, unsigned mark)
{
    if (ptx_take_mark(parser, mark))
        return;
    if (parser->token.kind == PTX_TOKEN_END)
        ptx_fail(parser, &parser->token, "expected '%c', but the text ends here", (int)mark);
    ptx_fail(parser, &parser->token, "expected '%c' before '%.*s'", (int)mark,
             (int)(parser->token.length < 40 ? parser->token.length : 40), parser->token.start);
}

ptx_token ptx_expect_name(ptx_parser *parser, const char *what)
{
    const ptx_token name = parser->token;
    if (name.kind != PTX_TOKEN_NAME)
        ptx_fail(parser, &name, "expected %s", what);
    ptx_advance(parser);
    return name;
}

uint32_t ptx_expect_count(ptx_parser *parser, const char *what)
{
    const ptx_token number = parser->token;
    if (number.kind != PTX_TOKEN_INTEGER || number.bits > UINT32_MAX)
        ptx_fail(parser, &number, "expected %s", what);
    ptx_advance(parser);
    return (uint32_t)number.bits;
}

void ptx_enter(ptx_parser *parser)
{
    if (++parser->nesting > PTX_MAX_DEPTH)
        ptx_fail(parser, &parser->token, "nested more than %d deep", PTX_MAX_DEPTH);
}

void ptx_leave(ptx_parser *parser)
{
    parser->nesting--;
}

void ptx_skip_statement(ptx_parser *parser)
{
    uint32_t braces = 0;
    for (; parser->token.kind != PTX_TOKEN_END; ptx_advance(parser)) {
        if (ptx_at_mark(parser, '{')) {
            braces++;
        } else if (ptx_at_mark(parser, '}')) {
            if (braces-- == 0)
                break;
        } else if (braces == 0 && ptx_at_mark(parser, ';')) {
            ptx_advance(parser);
            return;
        }
    }
    ptx_expect(parser, ';');
}

/* ---- directives of the module ---------------------------------------------------------------- */

/* .version 9.0: one token for the lexer, and not a decimal number (8.10 is after 8.9). */
static void parse_version(ptx_parser *parser)
{
    ptx_module *module = parser->module;
    const ptx_token token = parser->token;
    int parts[2] = {0, 0};
    int part = 0;
    for (size_t i = 0; i < token.length; i++) {
        const char c = token.start[i];
        if (c == '.' && part == 0 && i > 0)
            part = 1;
        else if (ptx_is_digit(c) && parts[part] < 1000)
            parts[part] = parts[part] * 10 + (c - '0');
        else
            ptx_fail(parser, &token, ".version takes a number such as 8.0");
    }
    if (part == 0 || parts[0] == 0)
        ptx_fail(parser, &token, ".version takes a number such as 8.0");
    module->version_major = parts[0];
    module->version_minor = parts[1];
    module->version = parts[0] * 10 + parts[1];
    parser->known_version = parts[0] < NEWEST_MAJOR || (parts[0] == NEWEST_MAJOR && parts[1] <= NEWEST_MINOR);
    ptx_advance(parser);
}

static bool parse_sm(ptx_module *module, const ptx_token *token)
{
    if (token->length < 4 || memcmp(token->start, "sm_", 3) != 0)
        return false;
    size_t at = 3;
    int number = 0;
    for (; at < token->length && ptx_is_digit(token->start[at]) && number < 10000; at++)
        number = number * 10 + (token->start[at] - '0');
    if (at == 3 || token->length - at > 1)
        return false;
    const char suffix = at < token->length ? token->start[at] : '\0';
    if (suffix != '\0' && suffix != 'a' && suffix != 'f')
        return false;
    module->target = number;
    module->target_suffix = suffix;
    return true;
}

static void parse_target(ptx_parser *parser)
{
    do {
        const ptx_token name = ptx_expect_name(parser, "a target such as sm_80");
        const char *const options[] = {"texmode_unified", "texmode_independent", "texmode_raw", "debug",
                                       "map_f64_to_f32"};
        size_t option = 0;
        while (option < 5 &&
               (strlen(options[option]) != name.length || memcmp(options[option], name.start, name.length) != 0))
            option++;
        if (option == 1)
            parser->module->texmode_independent = true;
        else if (option == 3)
            parser->module->debug = true;
        else if (option == 5 && !parse_sm(parser->module, &name))
            ptx_fail(parser, &name, "unknown target '%.*s'", (int)name.length, name.start);
    } while (ptx_take_mark(parser, ','));
}

static void parse_address_size(ptx_parser *parser)
{
    const ptx_token where = parser->token;
    const uint32_t size = ptx_expect_count(parser, "32 or 64");
    if (size != 32 && size != 64)
        ptx_fail(parser, &where, ".address_size is 32 or 64");
    parser->module->address_size = (int)size;
}

/* .alias name, aliasee; both declared before. Calls of the name go to the other function. */
static void parse_alias(ptx_parser *parser)
{
    ptx_function *pair[2];
    for (int i = 0; i < 2; i++) {
        const ptx_token name = ptx_expect_name(parser, "the name of a function");
        const ptx_symbol *symbol = ptx_lookup(parser, &name);
        if (symbol == NULL || symbol->kind != PTX_SYMBOL_FUNCTION)
            ptx_fail(parser, &name, "'%.*s' is not a function declared before", (int)name.length, name.start);
        pair[i] = symbol->function;
        if (i == 0)
            ptx_expect(parser, ',');
        else if (pair[0]->has_body || pair[0]->alias_of != NULL || !pair[1]->has_body)
            ptx_fail(parser, &name, ".alias gives a second name to a function that has a body");
    }
    pair[0]->alias_of = pair[1];
    ptx_expect(parser, ';');
}

static void parse_pragma(ptx_parser *parser)
{
    do {
        if (parser->token.kind != PTX_TOKEN_STRING)
            ptx_fail(parser, &parser->token, ".pragma takes strings");
        ptx_advance(parser);
    } while (ptx_take_mark(parser, ','));
    ptx_expect(parser, ';');
}

static ptx_linkage parse_linkage(ptx_parser *parser)
{
    if (ptx_take_word(parser, "visible"))
        return PTX_LINKAGE_VISIBLE;
    if (ptx_take_word(parser, "extern"))
        return PTX_LINKAGE_EXTERN;
    if (ptx_take_word(parser, "weak"))
        return PTX_LINKAGE_WEAK;
    if (ptx_take_word(parser, "common"))
        return PTX_LINKAGE_COMMON;
    return PTX_LINKAGE_INTERNAL;
}

static void parse_directive(ptx_parser *parser)
{
    ptx_space space;
    if (parser->token.kind != PTX_TOKEN_WORD)
        ptx_fail(parser, &parser->token, "expected a directive, such as .entry or .global");
    if (ptx_take_word(parser, "version"))
        parse_version(parser);
    else if (ptx_take_word(parser, "target"))
        parse_target(parser);
    else if (ptx_take_word(parser, "address_size"))
        parse_address_size(parser);
    else if (ptx_take_word(parser, "file"))
        ptx_parse_file(parser);
    else if (ptx_take_word(parser, "loc"))
        ptx_parse_loc(parser);
    else if (ptx_take_word(parser, "section"))
        ptx_parse_section(parser);
    else if (ptx_take_word(parser, "alias"))
        parse_alias(parser);
    else if (ptx_take_word(parser, "pragma"))
        parse_pragma(parser);
    else {
        const ptx_linkage linkage = parse_linkage(parser);
        if (ptx_at_word(parser, "entry") || ptx_at_word(parser, "func"))
            ptx_parse_function(parser, linkage);
        else if (ptx_at_space(parser, &space))
            ptx_parse_variables(parser, linkage);
        else
            ptx_fail(parser, &parser->token, "unknown directive '%.*s'",
                     (int)(parser->token.length < 60 ? parser->token.length : 60), parser->token.start);
    }
}

static void parse_module(ptx_parser *parser)
{
    ptx_module *module = parser->module;
    ptx_push(parser, &parser->locations);
    ptx_advance(parser);
    if (!ptx_at_word(parser, "version"))
        ptx_fail(parser, &parser->token, "a PTX module begins with .version");
    while (parser->token.kind != PTX_TOKEN_END)
        if (!ptx_take_mark(parser, ';'))
            parse_directive(parser);
    if (module->target == 0)
        ptx_fail(parser, &parser->token, "the module has no .target");
    ptx_finish_locations(parser);

    module->variables = ptx_copy_list(parser, &parser->variables, 0);
    module->variable_count = (uint32_t)parser->variables.count;
    module->functions = ptx_copy_list(parser, &parser->functions, 0);
    module->function_count = (uint32_t)parser->functions.count;
    module->files = ptx_copy_list(parser, &parser->files, 0);
    module->file_count = (uint32_t)parser->files.count;
    module->locations = ptx_copy_list(parser, &parser->locations, 0);
    module->location_count = (uint32_t)parser->locations.count;
    module->mnemonics = ptx_copy_list(parser, &parser->mnemonics, 0);
    module->mnemonic_count = (uint32_t)parser->mnemonics.count;
}

/* ---- the interface --------------------------------------------------------------------------- */

static void prepare_lists(ptx_parser *parser, ptx_list **lists)
{
    const struct {
        ptx_list *list;
        size_t item;
    } all[] = {
        {&parser->variables, sizeof(ptx_variable *)},
        {&parser->functions, sizeof(ptx_function *)},
        {&parser->files, sizeof(ptx_file)},
        {&parser->locations, sizeof(ptx_location)},
        {&parser->mnemonics, sizeof(ptx_mnemonic *)},
        {&parser->registers, sizeof(ptx_register)},
        {&parser->body_variables, sizeof(ptx_variable *)},
        {&parser->instructions, sizeof(ptx_instruction)},
        {&parser->labels, sizeof(ptx_label)},
        {&parser->targets, sizeof(ptx_targets *)},
        {&parser->prototypes, sizeof(ptx_prototype *)},
        {&parser->callees, sizeof(ptx_function *)},
        {&parser->used, sizeof(ptx_variable *)},
        {&parser->pending, sizeof(ptx_pending)},
        {&parser->bytes, 1},
        {&parser->relocations, sizeof(ptx_relocation)},
        {&parser->operands, sizeof(ptx_operand)},
        {&parser->inlined, sizeof(ptx_inlined)},
    };
    const size_t count = sizeof all / sizeof all[0];
    for (size_t i = 0; i < count; i++) {
        all[i].list->item = all[i].item;
        lists[i] = all[i].list;
    }
    lists[count] = NULL;
}

ptx_module *ptx_parse(const char *text, size_t length, ptx_error *error)
{
    memset(error, 0, sizeof *error);
    ptx_list *lists[32];
    ptx_parser *parser = calloc(1, sizeof *parser);
    ptx_arena *arena = ptx_arena_create();
    ptx_module *module = arena == NULL ? NULL : ptx_arena_take(arena, sizeof *module);
    if (parser == NULL || module == NULL) {
        ptx_arena_destroy(arena);
        free(parser);
        error->out_of_memory = true;
        snprintf(error->message, sizeof error->message, "out of memory");
        return NULL;
    }
    prepare_lists(parser, lists);
    parser->arena = module->arena = arena;
    parser->module = module;
    parser->error = error;
    module->address_size = 32;
    ptx_lexer_start(&parser->lexer, text, length);

    volatile bool parsed = false;
    if (setjmp(parser->failed) == 0) {
        parse_module(parser);
        parsed = true;
    }
    for (ptx_list **list = lists; *list != NULL; list++)
        free((*list)->items);
    free(parser->names);
    free(parser);
    if (parsed)
        return module;
    ptx_arena_destroy(arena);
    return NULL;
}

void ptx_module_free(ptx_module *module)
{
    if (module != NULL)
        ptx_arena_destroy(module->arena);
}

const ptx_function *ptx_find_function(const ptx_module *module, const char *name)
{
    for (uint32_t i = 0; i < module->function_count; i++)
        if (strcmp(module->functions[i]->name, name) == 0)
            return module->functions[i];
    return NULL;
}

const ptx_variable *ptx_find_variable(const ptx_module *module, const char *name)
{
    for (uint32_t i = 0; i < module->variable_count; i++)
        if (module->variables[i]->owner == NULL && strcmp(module->variables[i]->name, name) == 0)
            return module->variables[i];
    return NULL;
}
