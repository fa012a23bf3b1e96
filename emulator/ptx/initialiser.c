/* Initial values: constants, and addresses that the loader fills in. */
#include "parser.h"

#include <string.h>

#define LARGEST_INITIALISER (UINT64_C(256) << 20)

struct shape {
    ptx_variable *variable;
    uint64_t stride[18]; /* bytes of one item of each level of braces; the last is the element */
    uint64_t extent[18]; /* bytes that a level's braces may fill; UINT64_MAX: no bound (s[] = ...) */
    unsigned levels;     /* that may have braces */
    uint64_t element;
};

static unsigned char *bytes_at(ptx_parser *parser, const ptx_token *where, uint64_t offset, uint64_t size)
{
    if (offset > LARGEST_INITIALISER || size > LARGEST_INITIALISER)
        ptx_fail(parser, where, "this initial value is too large");
    while (parser->bytes.count < offset + size)
        ptx_push(parser, &parser->bytes);
    return (unsigned char *)parser->bytes.items + offset;
}

static ptx_symbol *named_object(ptx_parser *parser)
{
    const ptx_token name = ptx_expect_name(parser, "a constant, or the name of a variable or function");
    ptx_symbol *symbol = ptx_lookup(parser, &name);
    if (symbol == NULL || (symbol->kind != PTX_SYMBOL_VARIABLE && symbol->kind != PTX_SYMBOL_FUNCTION))
        ptx_fail(parser, &name, "'%.*s' is not a variable or function declared before", (int)name.length, name.start);
    return symbol;
}

static bool at_generic(const ptx_parser *parser)
{
    return parser->token.kind == PTX_TOKEN_NAME && parser->token.length == 7 &&
           memcmp(parser->token.start, "generic", 7) == 0;
}

/* name, generic(name), either with + constant */
static void parse_address(ptx_parser *parser, const struct shape *shape, uint64_t offset, uint64_t mask)
{
    const ptx_token where = parser->token;
    const bool generic = at_generic(parser);
    if (generic) {
        ptx_advance(parser);
        ptx_expect(parser, '(');
    }
    ptx_symbol *symbol = named_object(parser);
    if (generic)
        ptx_expect(parser, ')');
    int64_t addend = 0;
    if (ptx_take_mark(parser, '+'))
        addend = ptx_parse_integer(parser);
    else if (ptx_at_mark(parser, '-'))
        addend = ptx_parse_integer(parser);
    const ptx_kind kind = ptx_type_kind(shape->variable->type);
    if (kind != PTX_KIND_BITS && kind != PTX_KIND_UNSIGNED && kind != PTX_KIND_SIGNED)
        ptx_fail(parser, &where, "an address does not fit in .%s", ptx_type_name(shape->variable->type));

    bytes_at(parser, &where, offset, shape->element);
    ptx_relocation *made = ptx_push(parser, &parser->relocations);
    made->offset = offset;
    made->addend = addend;
    made->mask = mask;
    made->width = (uint8_t)shape->element;
    made->generic = generic;
    if (symbol->kind == PTX_SYMBOL_VARIABLE) {
        made->variable = symbol->variable;
    } else {
        made->function = symbol->function;
        symbol->function->address_taken = true;
    }
}

static void write_constant(ptx_parser *parser, const ptx_token *where, const struct shape *shape, uint64_t offset,
                           ptx_constant value)
{
    const ptx_type type = shape->variable->type;
    uint64_t bits;
    if (value.kind <= PTX_UNSIGNED_CONSTANT && (type == PTX_F32 || type == PTX_F64)) { /* .f32 x = 1 */
        const double number = value.kind == PTX_SIGNED_CONSTANT ? (double)(int64_t)value.bits : (double)value.bits;
        value.kind = PTX_DOUBLE_CONSTANT;
        memcpy(&value.bits, &number, sizeof number);
    }
    if (!ptx_convert_constant(value, type, &bits))
        ptx_fail(parser, where, "this constant does not fit in .%s", ptx_type_name(type));
    unsigned char *at = bytes_at(parser, where, offset, shape->element);
    memcpy(at, &bits, shape->element < sizeof bits ? shape->element : sizeof bits);
}

static void parse_element(ptx_parser *parser, const struct shape *shape, uint64_t offset)
{
    const ptx_token where = parser->token;
    if (!ptx_starts_constant(parser)) {
        parse_address(parser, shape, offset, UINT64_MAX);
        return;
    }
    const ptx_constant value = ptx_parse_constant(parser);
    if (ptx_take_mark(parser, '(')) { /* 0xFF00(name): one byte of an address */
        if (value.kind > PTX_UNSIGNED_CONSTANT || value.bits == 0)
            ptx_fail(parser, &where, "a mask is an integer other than zero");
        parse_address(parser, shape, offset, value.bits);
        ptx_expect(parser, ')');
        return;
    }
    write_constant(parser, &where, shape, offset, value);
}

/* Braces of one level. Inner braces fill one item each, bare elements go on where the last ended, as in C. */
static uint64_t parse_braces(ptx_parser *parser, const struct shape *shape, unsigned level, uint64_t offset)
{
    const uint64_t first = offset, extent = shape->extent[level];
    ptx_enter(parser);
    ptx_expect(parser, '{');
    while (!ptx_at_mark(parser, '}')) {
        const bool inner = ptx_at_mark(parser, '{');
        const uint64_t size = inner ? shape->stride[level] : shape->element;
        if (offset - first >= extent || size > extent - (offset - first) || (inner && level + 1 >= shape->levels))
            ptx_fail(parser, &parser->token, "more initial values than '%s' has elements", shape->variable->name);
        if (inner)
            parse_braces(parser, shape, level + 1, offset);
        else
            parse_element(parser, shape, offset);
        offset += size;
        if (!ptx_take_mark(parser, ','))
            break;
    }
    ptx_expect(parser, '}');
    ptx_leave(parser);
    return offset - first;
}

/* Fields of a sampler or texture reference are kept as text: only the obsolete independent mode has them. */
static void parse_opaque(ptx_parser *parser, ptx_variable *variable)
{
    const char *start = parser->token.start;
    const char *end = start;
    ptx_expect(parser, '{');
    for (uint32_t depth = 1; depth > 0; ptx_advance(parser)) {
        if (parser->token.kind == PTX_TOKEN_END)
            ptx_expect(parser, '}');
        depth += ptx_at_mark(parser, '{') ? 1u : 0u;
        depth -= ptx_at_mark(parser, '}') ? 1u : 0u;
        end = parser->token.start + parser->token.length;
    }
    variable->fields = ptx_text(parser, start, (size_t)(end - start));
}

static struct shape shape_of(const ptx_variable *declared, ptx_variable *variable, const uint64_t *dimensions,
                             unsigned rank)
{
    struct shape made = {.variable = variable, .element = ptx_type_size(declared->type)};
    made.levels = rank + (declared->vector > 1 ? 1 : 0);
    uint64_t size = made.element;
    for (unsigned level = made.levels; level > 0; level--) {
        const uint64_t count = level > rank ? declared->vector : dimensions[level - 1];
        made.stride[level - 1] = size;
        size *= count; /* cannot overflow: declaration.c bounded the product */
        made.extent[level - 1] = size;
    }
    if (declared->is_unsized)
        made.extent[0] = UINT64_MAX;
    return made;
}

void ptx_parse_initialiser(ptx_parser *parser, ptx_variable *variable, const uint64_t *dimensions, unsigned rank)
{
    const ptx_token where = parser->token;
    if (variable->space != PTX_SPACE_GLOBAL && variable->space != PTX_SPACE_CONST)
        ptx_fail(parser, &where, "only .global and .const variables have initial values");
    if (ptx_type_kind(variable->type) == PTX_KIND_OPAQUE) {
        parse_opaque(parser, variable);
        return;
    }
    const struct shape shape = shape_of(variable, variable, dimensions, rank);
    parser->bytes.count = parser->relocations.count = 0;
    uint64_t filled = shape.element;
    if (shape.levels == 0 && ptx_take_mark(parser, '{')) { /* .u32 x = {1} */
        parse_element(parser, &shape, 0);
        ptx_expect(parser, '}');
    } else if (shape.levels == 0) {
        parse_element(parser, &shape, 0);
    } else {
        filled = parse_braces(parser, &shape, 0, 0);
    }
    if (variable->is_unsized) {
        const uint64_t item = shape.stride[0];
        if (item == 0)
            ptx_fail(parser, &where, "an array of no elements");
        variable->count = (filled + item - 1) / item * (item / (shape.element * variable->vector));
        variable->size = variable->count * shape.element * variable->vector;
        variable->is_unsized = false;
    }
    variable->initialised = parser->bytes.count;
    variable->bytes = ptx_copy_list(parser, &parser->bytes, 0);
    variable->relocation_count = (uint32_t)parser->relocations.count;
    variable->relocations = ptx_copy_list(parser, &parser->relocations, 0);
}
