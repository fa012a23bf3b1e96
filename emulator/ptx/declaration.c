/* Variables, registers, parameters: a state space, attributes, a type, and one or more names. */
#include "parser.h"

#include <string.h>

enum { MAX_RANK = 16 };

#define LARGEST_OBJECT (UINT64_C(1) << 46)

/* What stands before the names: .global .align 8 .v2 .f32 */
typedef struct declaration {
    ptx_space space;
    ptx_linkage linkage;
    ptx_type type;
    uint8_t vector;
    uint32_t align; /* 0: natural */
    bool managed, unified;
    bool is_pointer;
    ptx_space pointer_space;
    uint32_t pointer_align;
} declaration;

bool ptx_at_space(const ptx_parser *parser, ptx_space *space)
{
    static const struct {
        const char *word;
        ptx_space space;
    } spaces[] = {{"reg", PTX_SPACE_REGISTER}, {"global", PTX_SPACE_GLOBAL}, {"shared", PTX_SPACE_SHARED},
                  {"local", PTX_SPACE_LOCAL},  {"const", PTX_SPACE_CONST},   {"param", PTX_SPACE_PARAM},
                  {"tex", PTX_SPACE_TEX}};
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        if (ptx_at_word(parser, spaces[i].word)) {
            *space = spaces[i].space;
            return true;
        }
    }
    return false;
}

static uint32_t parse_align(ptx_parser *parser)
{
    const ptx_token where = parser->token;
    const uint32_t align = ptx_expect_count(parser, "an alignment");
    if (align == 0 || (align & (align - 1)) != 0)
        ptx_fail(parser, &where, "an alignment is a power of two");
    return align;
}

/* .attribute(.managed), .attribute(.unified(1, 2)); both may stand in one list. */
static void parse_attributes(ptx_parser *parser, declaration *made)
{
    ptx_expect(parser, '(');
    do {
        if (ptx_take_word(parser, "managed")) {
            made->managed = true;
        } else if (ptx_take_word(parser, "unified")) {
            made->unified = true;
            ptx_expect(parser, '(');
            ptx_parse_integer(parser);
            ptx_expect(parser, ',');
            ptx_parse_integer(parser);
            ptx_expect(parser, ')');
        } else {
            ptx_fail(parser, &parser->token, "expected .managed or .unified");
        }
    } while (ptx_take_mark(parser, ','));
    ptx_expect(parser, ')');
}

/* .ptr [.space] [.align N], after the type of a kernel parameter */
static void parse_pointer(ptx_parser *parser, declaration *made)
{
    made->is_pointer = true;
    made->pointer_align = 4;
    if (ptx_at_space(parser, &made->pointer_space))
        ptx_advance(parser);
    if (ptx_take_word(parser, "align"))
        made->pointer_align = parse_align(parser);
}

static declaration parse_specifiers(ptx_parser *parser)
{
    declaration made = {.vector = 1};
    ptx_at_space(parser, &made.space);
    const ptx_token where = parser->token;
    ptx_advance(parser);
    if (made.space == PTX_SPACE_CONST && ptx_take_mark(parser, '[')) { /* .const[bank] of old modules */
        ptx_parse_integer(parser);
        ptx_expect(parser, ']');
    }
    while (parser->token.kind == PTX_TOKEN_WORD) {
        const ptx_token word = parser->token;
        const ptx_type type = ptx_type_named(word.start + 1, word.length - 1);
        ptx_advance(parser);
        if (type != PTX_NO_TYPE && made.type == PTX_NO_TYPE)
            made.type = type;
        else if (word.length == 6 && memcmp(word.start, ".align", 6) == 0)
            made.align = parse_align(parser);
        else if (word.length == 3 && word.start[1] == 'v' && strchr("248", word.start[2]) != NULL)
            made.vector = (uint8_t)(word.start[2] - '0');
        else if (word.length == 10 && memcmp(word.start, ".attribute", 10) == 0)
            parse_attributes(parser, &made);
        else if (word.length == 4 && memcmp(word.start, ".ptr", 4) == 0)
            parse_pointer(parser, &made);
        else
            ptx_fail(parser, &word, "unexpected '%.*s' in a declaration", (int)(word.length < 60 ? word.length : 60),
                     word.start);
    }
    if (made.type == PTX_NO_TYPE)
        ptx_fail(parser, &where, "this declaration has no type");
    if (made.type == PTX_PRED && made.space != PTX_SPACE_REGISTER)
        ptx_fail(parser, &where, "predicates live in registers only");
    if (ptx_type_bits(made.type) < 8 && made.type != PTX_PRED)
        ptx_fail(parser, &where, "a variable cannot be of type .%s", ptx_type_name(made.type));
    return made;
}

/* ---- registers ------------------------------------------------------------------------------- */

static void declare_register(ptx_parser *parser, const declaration *what, const ptx_token *name)
{
    const bool range = ptx_at_mark(parser, '<');
    ptx_symbol *symbol = ptx_declare(parser, name, range ? PTX_SYMBOL_RANGE : PTX_SYMBOL_REGISTER, parser->depth);
    symbol->type = what->type;
    symbol->vector = what->vector;
    if (!range)
        return;
    ptx_advance(parser);
    symbol->count = ptx_expect_count(parser, "a number of registers");
    ptx_expect(parser, '>');
    if (parser->depth > 1)
        parser->inner_ranges = true;
}

/* ---- variables ------------------------------------------------------------------------------- */

static unsigned parse_dimensions(ptx_parser *parser, ptx_variable *variable, uint64_t dimensions[MAX_RANK])
{
    unsigned rank = 0;
    while (ptx_take_mark(parser, '[')) {
        const ptx_token where = parser->token;
        int64_t count = 0;
        if (rank == MAX_RANK)
            ptx_fail(parser, &where, "more than %d dimensions", MAX_RANK);
        if (ptx_at_mark(parser, ']') && rank == 0)
            variable->is_unsized = true;
        else
            count = ptx_parse_integer(parser);
        if (count < 0 || (uint64_t)count > LARGEST_OBJECT)
            ptx_fail(parser, &where, "an array cannot have this length");
        ptx_expect(parser, ']');
        dimensions[rank++] = (uint64_t)count;
    }
    variable->is_array = rank > 0;
    return rank;
}

static void set_size(ptx_parser *parser, const ptx_token *where, ptx_variable *variable, const uint64_t *dimensions,
                     unsigned rank)
{
    const uint64_t element = (uint64_t)ptx_type_size(variable->type) * variable->vector;
    uint64_t bound = element; /* the product with zeros left out, so that no stride of it overflows */
    variable->count = 1;
    for (unsigned i = 0; i < rank; i++) {
        if (dimensions[i] != 0 && bound > LARGEST_OBJECT / dimensions[i])
            ptx_fail(parser, where, "this array is too large");
        bound *= dimensions[i] == 0 ? 1 : dimensions[i];
        variable->count *= dimensions[i];
    }
    variable->size = variable->count * element;
}

static ptx_variable *make_variable(ptx_parser *parser, const declaration *what, const ptx_token *name)
{
    ptx_variable *variable = ptx_take(parser, sizeof *variable);
    variable->name = ptx_intern(parser, name->start, name->length)->text;
    variable->line = name->line;
    variable->space = what->space;
    variable->linkage = what->linkage;
    variable->type = what->type;
    variable->vector = what->vector;
    variable->align = what->align != 0 ? what->align : ptx_type_size(what->type) * what->vector;
    variable->managed = what->managed;
    variable->unified = what->unified;
    variable->is_pointer = what->is_pointer;
    variable->pointer_space = what->pointer_space;
    variable->pointer_align = what->pointer_align;
    variable->reg = PTX_NO_REGISTER;
    return variable;
}

void ptx_place(ptx_parser *parser, uint64_t *frame, uint32_t *frame_align, ptx_variable *variable)
{
    variable->offset = (*frame + variable->align - 1) & ~(uint64_t)(variable->align - 1);
    *frame = variable->offset + variable->size;
    if (*frame > LARGEST_OBJECT)
        ptx_fail(parser, NULL, "the variables on the stack of a function are too large together");
    if (variable->align > *frame_align)
        *frame_align = variable->align;
}

/* Where a variable of a body or of the module is kept. */
static void file_variable(ptx_parser *parser, ptx_variable *variable)
{
    ptx_function *function = parser->function;
    const bool of_module = function == NULL || variable->space == PTX_SPACE_GLOBAL ||
                           variable->space == PTX_SPACE_CONST || variable->space == PTX_SPACE_TEX;
    ptx_list *list = of_module ? &parser->variables : &parser->body_variables;
    variable->owner = function;
    variable->index = (uint32_t)list->count;
    *(ptx_variable **)ptx_push(parser, list) = variable;
    if (variable->space == PTX_SPACE_LOCAL && function != NULL)
        ptx_place(parser, &function->local_bytes, &function->local_align, variable);
    if (variable->space == PTX_SPACE_PARAM) {
        uint64_t frame = parser->scopes[parser->depth].parameter_frame;
        ptx_place(parser, &frame, &function->frame_align, variable);
        parser->scopes[parser->depth].parameter_frame = frame;
        if (frame > function->parameter_frame)
            function->parameter_frame = frame;
    }
}

/* A second declaration of a variable of the module: allowed where one of the two is .extern. True: `earlier` stays. */
static bool same_variable(ptx_parser *parser, const ptx_token *name, ptx_variable *earlier, ptx_variable *later)
{
    if (earlier->space != later->space || earlier->type != later->type ||
        (earlier->linkage != PTX_LINKAGE_EXTERN && later->linkage != PTX_LINKAGE_EXTERN))
        ptx_fail(parser, name, "'%s' is declared twice, first on line %u", earlier->name, earlier->line);
    if (later->linkage == PTX_LINKAGE_EXTERN)
        return true;
    const uint32_t index = earlier->index;
    *earlier = *later; /* those who named it so far keep their pointer */
    earlier->index = index;
    return true;
}

static void declare_variable(ptx_parser *parser, const declaration *what, const ptx_token *name)
{
    uint64_t dimensions[MAX_RANK] = {0};
    ptx_variable *variable = make_variable(parser, what, name);
    const unsigned rank = parse_dimensions(parser, variable, dimensions);
    const bool of_body_only = what->space == PTX_SPACE_PARAM;
    if (of_body_only && parser->function == NULL)
        ptx_fail(parser, name, ".param variables belong in functions");
    set_size(parser, name, variable, dimensions, rank);

    ptx_symbol *earlier = parser->function == NULL ? ptx_lookup(parser, name) : NULL;
    if (earlier != NULL && earlier->kind != PTX_SYMBOL_VARIABLE)
        ptx_fail(parser, name, "'%s' is declared twice, first on line %u", variable->name, earlier->line);
    ptx_symbol *symbol = earlier != NULL ? earlier : ptx_declare(parser, name, PTX_SYMBOL_VARIABLE, parser->depth);
    if (earlier == NULL)
        symbol->variable = variable; /* before the initialiser, which may name it */
    if (ptx_take_mark(parser, '=')) {
        ptx_parse_initialiser(parser, variable, dimensions, rank);
    } else if (variable->is_unsized && what->linkage != PTX_LINKAGE_EXTERN) {
        ptx_fail(parser, name, "an array without a length is .extern or has an initial value");
    }
    if (earlier == NULL || !same_variable(parser, name, earlier->variable, variable))
        file_variable(parser, variable);
}

void ptx_parse_variables(ptx_parser *parser, ptx_linkage linkage)
{
    declaration what = parse_specifiers(parser);
    what.linkage = linkage;
    if (what.space == PTX_SPACE_REGISTER && parser->function == NULL)
        ptx_fail(parser, &parser->token, "registers belong in functions");
    do {
        const ptx_token name = ptx_expect_name(parser, "a name");
        if (what.space == PTX_SPACE_REGISTER)
            declare_register(parser, &what, &name);
        else
            declare_variable(parser, &what, &name);
    } while (ptx_take_mark(parser, ','));
    ptx_expect(parser, ';');
}

/* One parameter or result of a function, .param or .reg. The caller declares the name: prototypes do not. */
ptx_variable *ptx_parse_parameter(ptx_parser *parser, ptx_token *name)
{
    ptx_space space;
    if (!ptx_at_space(parser, &space) || (space != PTX_SPACE_PARAM && space != PTX_SPACE_REGISTER))
        ptx_fail(parser, &parser->token, "expected .param or .reg");
    const declaration what = parse_specifiers(parser);
    *name = ptx_expect_name(parser, "the name of a parameter");
    ptx_variable *variable = make_variable(parser, &what, name);
    uint64_t dimensions[MAX_RANK] = {0};
    const unsigned rank = parse_dimensions(parser, variable, dimensions);
    set_size(parser, name, variable, dimensions, rank);
    if (space == PTX_SPACE_REGISTER && (rank > 0 || what.vector > 1))
        ptx_fail(parser, name, "a register parameter is a scalar");
    return variable;
}
