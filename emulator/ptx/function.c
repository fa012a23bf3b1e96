/* Functions: header, performance directives, the statements of a body. */
#include "parser.h"

#include <string.h>

void ptx_note_variable(ptx_parser *parser, ptx_symbol *symbol)
{
    const ptx_variable *variable = symbol->variable;
    if (symbol->used_by == parser->serial || (variable->owner == parser->function && variable->owner != NULL))
        return;
    symbol->used_by = parser->serial;
    *(const ptx_variable **)ptx_push(parser, &parser->used) = variable;
}

void ptx_note_call(ptx_parser *parser, ptx_symbol *symbol)
{
    if (symbol->used_by == parser->serial)
        return;
    symbol->used_by = parser->serial;
    *(const ptx_function **)ptx_push(parser, &parser->callees) = symbol->function;
}

/* ---- headers --------------------------------------------------------------------------------- */

/* ( .param .b32 a, .reg .f32 b ). `declare`: their names are known in the body. */
static ptx_variable **parse_parameters(ptx_parser *parser, bool results, bool declare, uint32_t *count)
{
    ptx_list *list = &parser->body_variables; /* empty between bodies, and restored below inside one */
    const size_t first = list->count;
    ptx_expect(parser, '(');
    while (!ptx_at_mark(parser, ')')) {
        ptx_token name;
        ptx_variable *variable = ptx_parse_parameter(parser, &name);
        variable->is_parameter = !results;
        variable->is_result = results;
        variable->index = (uint32_t)(list->count - first);
        *(ptx_variable **)ptx_push(parser, list) = variable;
        const bool unnamed = name.length == 1 && *name.start == '_';
        if (declare && !unnamed && variable->space == PTX_SPACE_REGISTER) {
            ptx_symbol *symbol = ptx_declare(parser, &name, PTX_SYMBOL_REGISTER, parser->depth);
            symbol->type = variable->type;
            symbol->vector = 1;
            variable->reg = ptx_register_number(parser, symbol);
        } else if (declare && !unnamed) {
            ptx_declare(parser, &name, PTX_SYMBOL_VARIABLE, parser->depth)->variable = variable;
        }
        if (!ptx_take_mark(parser, ','))
            break;
    }
    ptx_expect(parser, ')');
    *count = (uint32_t)(list->count - first);
    ptx_variable **copy = ptx_copy_list(parser, list, first);
    list->count = first;
    return copy;
}

static void place_all(ptx_parser *parser, ptx_variable **variables, uint32_t count, uint64_t *frame, uint32_t *align)
{
    for (uint32_t i = 0; i < count; i++)
        if (variables[i]->space == PTX_SPACE_PARAM)
            ptx_place(parser, frame, align, variables[i]);
}

static void lay_out(ptx_parser *parser, ptx_function *function)
{
    function->parameter_align = function->frame_align = function->local_align = 1;
    if (function->is_entry) {
        place_all(parser, function->parameters, function->parameter_count, &function->parameter_bytes,
                  &function->parameter_align);
        return;
    }
    place_all(parser, function->parameters, function->parameter_count, &function->parameter_frame,
              &function->frame_align);
    place_all(parser, function->results, function->result_count, &function->parameter_frame, &function->frame_align);
    parser->scopes[parser->depth].parameter_frame = function->parameter_frame;
}

static void parse_three(ptx_parser *parser, uint32_t counts[3])
{
    counts[0] = ptx_expect_count(parser, "a number of threads or blocks");
    counts[1] = counts[2] = 1;
    for (int i = 1; i < 3 && ptx_take_mark(parser, ','); i++)
        counts[i] = ptx_expect_count(parser, "a number of threads or blocks");
}

static void parse_pragmas(ptx_parser *parser)
{
    do {
        if (parser->token.kind != PTX_TOKEN_STRING)
            ptx_fail(parser, &parser->token, ".pragma takes strings");
        ptx_advance(parser);
    } while (ptx_take_mark(parser, ','));
    ptx_expect(parser, ';');
}

static void parse_attribute_list(ptx_parser *parser) /* .attribute(.unified(1, 2)) of a function */
{
    uint32_t depth = 0;
    do {
        depth += ptx_at_mark(parser, '(') ? 1u : 0u;
        depth -= ptx_at_mark(parser, ')') ? 1u : 0u;
        if (parser->token.kind == PTX_TOKEN_END)
            ptx_expect(parser, ')');
        ptx_advance(parser);
    } while (depth > 0);
}

/* Between the parameters and the body. */
static void parse_directives(ptx_parser *parser, ptx_function *function)
{
    while (parser->token.kind == PTX_TOKEN_WORD) {
        if (ptx_take_word(parser, "maxntid"))
            parse_three(parser, function->max_threads);
        else if (ptx_take_word(parser, "reqntid"))
            parse_three(parser, function->required_threads);
        else if (ptx_take_word(parser, "reqnctapercluster"))
            parse_three(parser, function->required_cluster);
        else if (ptx_take_word(parser, "minnctapersm"))
            function->min_blocks = ptx_expect_count(parser, "a number of blocks");
        else if (ptx_take_word(parser, "maxnreg"))
            function->max_registers = ptx_expect_count(parser, "a number of registers");
        else if (ptx_take_word(parser, "maxclusterrank"))
            function->max_cluster_rank = ptx_expect_count(parser, "a number of blocks");
        else if (ptx_take_word(parser, "maxnctapersm") || ptx_take_word(parser, "abi_preserve") ||
                 ptx_take_word(parser, "abi_preserve_control") || ptx_take_word(parser, "local_maxnreg"))
            ptx_expect_count(parser, "a number"); /* advice for ptxas only */
        else if (ptx_take_word(parser, "explicitcluster"))
            function->explicit_cluster = true;
        else if (ptx_take_word(parser, "blocksareclusters"))
            function->blocks_are_clusters = true;
        else if (ptx_take_word(parser, "noreturn"))
            function->noreturn = true;
        else if (ptx_take_word(parser, "pragma"))
            parse_pragmas(parser);
        else
            ptx_fail(parser, &parser->token, "unknown directive '%.*s' of a function",
                     (int)(parser->token.length < 60 ? parser->token.length : 60), parser->token.start);
    }
}

/* The function of that name: new, or declared before. */
static ptx_function *find_or_make(ptx_parser *parser, const ptx_token *name)
{
    const ptx_symbol *earlier = ptx_lookup(parser, name);
    while (earlier != NULL && earlier->depth > 0)
        earlier = earlier->shadowed;
    if (earlier != NULL && earlier->kind != PTX_SYMBOL_FUNCTION)
        ptx_fail(parser, name, "'%s' is declared twice, first on line %u", earlier->name->text, earlier->line);
    if (earlier != NULL)
        return earlier->function;
    ptx_symbol *symbol = ptx_declare(parser, name, PTX_SYMBOL_FUNCTION, 0);
    ptx_function *function = ptx_take(parser, sizeof *function);
    symbol->function = function;
    function->name = symbol->name->text;
    function->index = (uint32_t)parser->functions.count;
    *(ptx_function **)ptx_push(parser, &parser->functions) = function;
    return function;
}

/* A definition, or the first declaration, says what the function is; a later declaration must agree. */
static void merge(ptx_parser *parser, const ptx_token *name, ptx_function *function, ptx_function *header)
{
    if (function->line != 0 &&
        (function->is_entry != header->is_entry || function->parameter_count != header->parameter_count ||
         function->result_count != header->result_count))
        ptx_fail(parser, name, "'%s' was declared otherwise on line %u", function->name, function->line);
    if (function->has_body && header->has_body)
        ptx_fail(parser, name, "'%s' has a body already, on line %u", function->name, function->line);
    if (function->has_body)
        return;
    header->name = function->name;
    header->index = function->index;
    header->address_taken = function->address_taken;
    header->noreturn |= function->noreturn;
    *function = *header;
    for (uint32_t i = 0; i < function->parameter_count; i++)
        function->parameters[i]->owner = function;
    for (uint32_t i = 0; i < function->result_count; i++)
        function->results[i]->owner = function;
}

/* ---- statements of a body -------------------------------------------------------------------- */

static bool at_label(const ptx_parser *parser)
{
    ptx_lexer probe = parser->lexer;
    return ptx_lexer_skip(&probe) && probe.at < probe.end && *probe.at == ':';
}

static void parse_branch_targets(ptx_parser *parser, ptx_targets *made)
{
    size_t count = 0;
    ptx_lexer start = parser->lexer;
    const ptx_token first = parser->token;
    do {
        ptx_expect_name(parser, "a label");
        count++;
    } while (ptx_take_mark(parser, ','));
    uint32_t *labels = ptx_take(parser, count * sizeof *labels);
    parser->lexer = start; /* twice over the names: where the numbers go must not move once it is referred to */
    parser->token = first;
    for (size_t i = 0; i < count; i++) {
        const ptx_token label = ptx_expect_name(parser, "a label");
        ptx_refer_to_label(parser, &label, NULL, &labels[i]);
        ptx_take_mark(parser, ',');
    }
    made->labels = labels;
    made->count = (uint32_t)count;
}

static void parse_call_targets(ptx_parser *parser, ptx_targets *made)
{
    const ptx_function **functions = NULL;
    uint32_t capacity = 0;
    do {
        const ptx_token name = ptx_expect_name(parser, "a function");
        ptx_symbol *symbol = ptx_lookup(parser, &name);
        if (symbol == NULL || symbol->kind != PTX_SYMBOL_FUNCTION)
            ptx_fail(parser, &name, "'%.*s' is not a function declared before", (int)name.length, name.start);
        symbol->function->address_taken = true;
        ptx_note_call(parser, symbol);
        if (made->count == capacity) {
            capacity = capacity == 0 ? 8 : capacity * 2;
            const ptx_function **larger = ptx_take(parser, capacity * sizeof *larger);
            if (made->count > 0)
                memcpy(larger, functions, made->count * sizeof *larger);
            functions = larger;
        }
        functions[made->count++] = symbol->function;
    } while (ptx_take_mark(parser, ','));
    made->functions = functions;
}

/* name: .branchtargets L1, L2;   name: .calltargets f, g; */
static void parse_targets(ptx_parser *parser, const ptx_token *name, bool calls)
{
    ptx_targets *made = ptx_take(parser, sizeof *made);
    ptx_symbol *symbol = ptx_declare(parser, name, PTX_SYMBOL_TARGETS, parser->depth);
    made->name = symbol->name->text;
    symbol->targets = made;
    if (calls)
        parse_call_targets(parser, made);
    else
        parse_branch_targets(parser, made);
    made->index = (uint32_t)parser->targets.count;
    *(ptx_targets **)ptx_push(parser, &parser->targets) = made;
    ptx_expect(parser, ';');
}

/* name: .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn; */
static void parse_prototype(ptx_parser *parser, const ptx_token *name)
{
    ptx_prototype *made = ptx_take(parser, sizeof *made);
    ptx_symbol *symbol = ptx_declare(parser, name, PTX_SYMBOL_PROTOTYPE, parser->depth);
    symbol->prototype = made;
    made->name = symbol->name->text;
    ptx_variable **parameters = NULL, **results = NULL;
    if (ptx_at_mark(parser, '('))
        results = parse_parameters(parser, true, false, &made->result_count);
    ptx_expect_name(parser, "'_'");
    if (ptx_at_mark(parser, '('))
        parameters = parse_parameters(parser, false, false, &made->parameter_count);
    uint64_t frame = 0;
    uint32_t align = 1;
    place_all(parser, parameters, made->parameter_count, &frame, &align);
    place_all(parser, results, made->result_count, &frame, &align);
    made->parameters = parameters;
    made->results = results;
    made->parameter_frame = (uint32_t)(frame < UINT32_MAX ? frame : UINT32_MAX);
    ptx_function ignored = {0};
    parse_directives(parser, &ignored);
    made->noreturn = ignored.noreturn;
    made->index = (uint32_t)parser->prototypes.count;
    *(ptx_prototype **)ptx_push(parser, &parser->prototypes) = made;
    ptx_expect(parser, ';');
}

static void parse_labelled(ptx_parser *parser)
{
    const ptx_token name = parser->token;
    ptx_advance(parser);
    ptx_expect(parser, ':');
    if (ptx_take_word(parser, "branchtargets"))
        parse_targets(parser, &name, false);
    else if (ptx_take_word(parser, "calltargets"))
        parse_targets(parser, &name, true);
    else if (ptx_take_word(parser, "callprototype"))
        parse_prototype(parser, &name);
    else
        ptx_define_label(parser, &name);
}

static void parse_body_directive(ptx_parser *parser)
{
    ptx_space space;
    ptx_linkage linkage = PTX_LINKAGE_INTERNAL;
    if (ptx_take_word(parser, "loc")) {
        ptx_parse_loc(parser);
    } else if (ptx_take_word(parser, "file")) {
        ptx_parse_file(parser);
    } else if (ptx_take_word(parser, "pragma")) {
        parse_pragmas(parser);
    } else if (ptx_take_word(parser, "section")) {
        ptx_parse_section(parser);
    } else {
        if (ptx_take_word(parser, "extern"))
            linkage = PTX_LINKAGE_EXTERN;
        if (!ptx_at_space(parser, &space))
            ptx_fail(parser, &parser->token, "unknown directive '%.*s'",
                     (int)(parser->token.length < 60 ? parser->token.length : 60), parser->token.start);
        ptx_parse_variables(parser, linkage);
    }
}

static void parse_statement(ptx_parser *parser)
{
    const ptx_token token = parser->token;
    if (ptx_take_mark(parser, '{'))
        ptx_open_scope(parser, &token);
    else if (ptx_at_mark(parser, '}') && parser->depth > 1) {
        ptx_close_scope(parser);
        ptx_advance(parser);
    } else if (ptx_take_mark(parser, ';'))
        ;
    else if (token.kind == PTX_TOKEN_WORD)
        parse_body_directive(parser);
    else if (token.kind == PTX_TOKEN_NAME && at_label(parser))
        parse_labelled(parser);
    else
        ptx_parse_instruction(parser);
}

static void finish_body(ptx_parser *parser, ptx_function *function)
{
    function->registers = ptx_copy_list(parser, &parser->registers, 0);
    function->register_count = (uint32_t)parser->registers.count;
    function->variables = ptx_copy_list(parser, &parser->body_variables, 0);
    function->variable_count = (uint32_t)parser->body_variables.count;
    function->instructions = ptx_copy_list(parser, &parser->instructions, 0);
    function->instruction_count = (uint32_t)parser->instructions.count;
    function->labels = ptx_copy_list(parser, &parser->labels, 0);
    function->label_count = (uint32_t)parser->labels.count;
    function->targets = ptx_copy_list(parser, &parser->targets, 0);
    function->target_list_count = (uint32_t)parser->targets.count;
    function->prototypes = ptx_copy_list(parser, &parser->prototypes, 0);
    function->prototype_count = (uint32_t)parser->prototypes.count;
    function->callees = ptx_copy_list(parser, &parser->callees, 0);
    function->callee_count = (uint32_t)parser->callees.count;
    function->used = ptx_copy_list(parser, &parser->used, 0);
    function->used_count = (uint32_t)parser->used.count;
    for (uint32_t i = 0; i < function->instruction_count && function->unsupported == NULL; i++)
        if (function->instructions[i].op == PTX_OP_UNSUPPORTED)
            function->unsupported = &function->instructions[i];
    if (!ptx_build_blocks(parser->arena, function))
        ptx_fail_memory(parser);
}

static void clear_lists(ptx_parser *parser)
{
    ptx_list *const lists[] = {&parser->registers, &parser->body_variables, &parser->instructions,
                               &parser->labels,    &parser->targets,        &parser->prototypes,
                               &parser->callees,   &parser->used,           &parser->pending};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        lists[i]->count = 0;
    parser->inner_ranges = false;
    parser->location = 0;
    parser->serial++;
}

void ptx_parse_function(ptx_parser *parser, ptx_linkage linkage)
{
    ptx_function header = {.linkage = linkage, .line = parser->token.line, .is_entry = ptx_at_word(parser, "entry")};
    ptx_token where = parser->token;
    ptx_advance(parser);
    clear_lists(parser);
    ptx_open_scope(parser, &where);
    if (ptx_take_word(parser, "attribute"))
        parse_attribute_list(parser);
    if (!header.is_entry && ptx_at_mark(parser, '('))
        header.results = parse_parameters(parser, true, true, &header.result_count);
    const ptx_token name = ptx_expect_name(parser, "the name of a function");
    ptx_function *function = find_or_make(parser, &name);
    if (ptx_at_mark(parser, '('))
        header.parameters = parse_parameters(parser, false, true, &header.parameter_count);
    parse_directives(parser, &header);
    lay_out(parser, &header);
    where = parser->token;
    header.has_body = ptx_take_mark(parser, '{');
    merge(parser, &name, function, &header);
    if (header.has_body) {
        parser->function = function;
        while (parser->depth > 1 || !ptx_at_mark(parser, '}')) {
            if (parser->token.kind == PTX_TOKEN_END)
                ptx_fail(parser, &where, "the body of '%s' has no end", function->name);
            parse_statement(parser);
        }
        ptx_close_scope(parser);
        finish_body(parser, function);
        parser->function = NULL;
        ptx_advance(parser);
        return;
    }
    ptx_close_scope(parser);
    ptx_take_mark(parser, ';');
}
