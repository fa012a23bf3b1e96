/* A module as PTX text again. Registers are renamed by number; whatever scopes the body had are gone, so variables get
 * names of their own where two share one. */
#include "ir.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vocabulary.h"

typedef struct dump {
    char *text;
    size_t length, capacity;
    bool failed;
    const ptx_module *module;
    const ptx_function *function; /* whose body is written */
    const ptx_variable **own;     /* all variables of that body: function->variables, then its .global and .const */
    uint32_t own_count;
    uint8_t *clash;       /* of each of these: the name is taken, so a number goes with it */
    bool of_halves;       /* the instruction selects .h10, not .b3210 */
    const char **strings; /* for .debug_str, in the order in which .loc directives name them */
    size_t string_count, string_capacity;
    uint32_t *latest; /* of each place (ptx_location.place), the location written last */
} dump;

/* ---- the text -------------------------------------------------------------------------------- */

static bool reserve(dump *out, size_t more)
{
    if (out->failed)
        return false;
    if (out->length + more < out->capacity)
        return true;
    size_t capacity = out->capacity < 4096 ? 4096 : out->capacity * 2;
    while (capacity <= out->length + more)
        capacity *= 2;
    char *text = realloc(out->text, capacity);
    out->failed = text == NULL;
    if (text == NULL)
        return false;
    out->text = text;
    out->capacity = capacity;
    return true;
}

static void put(dump *out, const char *text)
{
    const size_t length = strlen(text);
    if (!reserve(out, length + 1))
        return;
    memcpy(out->text + out->length, text, length + 1);
    out->length += length;
}

__attribute__((format(printf, 2, 3))) static void print(dump *out, const char *format, ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put(out, text);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void put_register(dump *out, uint32_t number)
{
    print(out, "%%r%u", number);
}

/* Position in out->own; own_count: it is not of the body that is written. */
static uint32_t position(const dump *out, const ptx_variable *variable)
{
    if (out->own_count == 0 || variable->owner != out->function || variable->is_parameter || variable->is_result)
        return out->own_count;
    if (variable->index < out->own_count && out->own[variable->index] == variable)
        return variable->index;
    for (uint32_t i = out->function->variable_count; i < out->own_count; i++)
        if (out->own[i] == variable)
            return i;
    return out->own_count;
}

static void put_variable(dump *out, const ptx_variable *variable)
{
    const uint32_t at = position(out, variable);
    put(out, variable->name);
    if (at < out->own_count && out->clash[at])
        print(out, "$%u", at);
}

static void put_label(dump *out, uint32_t target)
{
    print(out, "$L%u", target);
}

/* ---- operands -------------------------------------------------------------------------------- */

static void put_constant(dump *out, ptx_type type, uint64_t bits)
{
    if (type == PTX_F32)
        print(out, "0f%08X", (unsigned)bits);
    else if (type == PTX_F64)
        print(out, "0d%016llX", (unsigned long long)bits);
    else if (bits < 10)
        print(out, "%u", (unsigned)bits);
    else
        print(out, "0x%llX", (unsigned long long)bits);
}

static void put_offset(dump *out, uint64_t offset, bool alone)
{
    if (alone)
        print(out, "%lld", (long long)offset);
    else if (offset != 0)
        print(out, "+%lld", (long long)offset);
}

static void put_special(dump *out, const ptx_operand *operand)
{
    const ptx_special special = (ptx_special)operand->bits;
    if (special == PTX_SPECIAL_PM)
        print(out, "%%pm%u", operand->component);
    else if (special == PTX_SPECIAL_PM_64)
        print(out, "%%pm%u_64", operand->component);
    else if (special == PTX_SPECIAL_ENVREG)
        print(out, "%%envreg%u", operand->component);
    else
        put(out, ptx_special_name(special));
    if (ptx_special_components(special) == 4 && operand->component < 4)
        print(out, ".%c", "xyzw"[operand->component]);
}

static void put_selected_register(dump *out, const ptx_operand *operand)
{
    if (operand->negated)
        put(out, operand->reg < out->function->register_count && out->function->registers[operand->reg].type == PTX_PRED
                     ? "!"
                     : "-");
    put_register(out, operand->reg);
    if (operand->selector >= PTX_SELECT_B0 && operand->selector <= PTX_SELECT_B3)
        print(out, ".b%d", operand->selector - PTX_SELECT_B0);
    else if (operand->selector == PTX_SELECT_H0 || operand->selector == PTX_SELECT_H1)
        print(out, ".h%d", operand->selector - PTX_SELECT_H0);
    else if (operand->selector == PTX_SELECT_MASK)
        print(out, out->of_halves ? ".h%x" : ".b%x", operand->selector_mask);
}

static void put_operand(dump *out, const ptx_operand *operand);

static void put_elements(dump *out, const ptx_operand *operand, const char *before, const char *between,
                         const char *after)
{
    put(out, before);
    for (uint32_t i = 0; i < operand->count; i++) {
        if (i > 0)
            put(out, between);
        put_operand(out, &operand->elements[i]);
    }
    put(out, after);
}

static void put_base(dump *out, const ptx_operand *operand)
{
    const bool alone = operand->variable == NULL && operand->reg == PTX_NO_REGISTER;
    if (operand->variable != NULL)
        put_variable(out, operand->variable);
    else if (!alone)
        put_register(out, operand->reg);
    put_offset(out, operand->bits, alone);
}

/* The first part of [texture, coordinates] is an address without brackets of its own. */
static void put_texture(dump *out, const ptx_operand *operand)
{
    put(out, "[");
    put_base(out, &operand->elements[0]);
    for (uint32_t i = 1; i < operand->count; i++) {
        put(out, ", ");
        put_operand(out, &operand->elements[i]);
    }
    put(out, "]");
}

static void put_operand(dump *out, const ptx_operand *operand)
{
    switch ((ptx_operand_kind)operand->kind) {
    case PTX_OPERAND_NONE:
        return;
    case PTX_OPERAND_REGISTER:
        put_selected_register(out, operand);
        return;
    case PTX_OPERAND_VECTOR:
        put_elements(out, operand, "{", ", ", "}");
        return;
    case PTX_OPERAND_PAIR:
        put_elements(out, operand, "", "|", "");
        return;
    case PTX_OPERAND_LIST:
        put_elements(out, operand, "(", ", ", ")");
        return;
    case PTX_OPERAND_TEXTURE:
        put_texture(out, operand);
        return;
    case PTX_OPERAND_IMMEDIATE:
        put_constant(out, (ptx_type)operand->type, operand->bits);
        return;
    case PTX_OPERAND_SPECIAL:
        put_special(out, operand);
        return;
    case PTX_OPERAND_ADDRESS:
        put(out, "[");
        put_base(out, operand);
        put(out, "]");
        return;
    case PTX_OPERAND_VARIABLE:
        put_variable(out, operand->variable);
        put_offset(out, operand->bits, false);
        return;
    case PTX_OPERAND_LABEL:
        put_label(out, (uint32_t)operand->bits);
        return;
    case PTX_OPERAND_FUNCTION:
        put(out, operand->function->name);
        return;
    case PTX_OPERAND_TARGETS:
        print(out, "$T%u", operand->targets->index);
        return;
    case PTX_OPERAND_PROTOTYPE:
        print(out, "$P%u", operand->prototype->index);
        return;
    case PTX_OPERAND_SINK:
        put(out, "_");
        return;
    case PTX_OPERAND_TEXT:
        put(out, operand->text);
        return;
    }
}

static void put_call(dump *out, const ptx_instruction *instruction)
{
    const ptx_operand *operands = instruction->operands;
    if (operands[0].count > 0) {
        put_operand(out, &operands[0]);
        put(out, ", ");
    }
    put_operand(out, &operands[1]);
    if (operands[2].count > 0) {
        put(out, ", ");
        put_operand(out, &operands[2]);
    }
    if (operands[3].kind != PTX_OPERAND_NONE) {
        put(out, ", ");
        put_operand(out, &operands[3]);
    }
}

static void put_instruction(dump *out, const ptx_instruction *instruction)
{
    if (instruction->guard != PTX_NO_REGISTER) {
        put(out, instruction->guard_negated ? "@!" : "@");
        put_register(out, instruction->guard);
        put(out, " ");
    }
    const ptx_opcode op = instruction->mnemonic->op;
    out->of_halves = op >= PTX_OP_VADD2 && op <= PTX_OP_VSET2;
    put(out, instruction->mnemonic->spelling);
    if (instruction->operand_count > 0)
        put(out, " ");
    if (op == PTX_OP_CALL)
        put_call(out, instruction);
    else
        for (uint8_t i = 0; i < instruction->operand_count; i++) {
            if (i > 0)
                put(out, ", ");
            put_operand(out, &instruction->operands[i]);
        }
    put(out, ";");
}

/* ---- variables ------------------------------------------------------------------------------- */

static uint64_t bytes_of(const ptx_variable *variable, uint64_t offset, unsigned size)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < size && i < 8 && offset + i < variable->initialised; i++)
        bits |= (uint64_t)variable->bytes[offset + i] << (8 * i);
    return bits;
}

static void put_relocation(dump *out, const ptx_relocation *made)
{
    if (made->mask != UINT64_MAX)
        print(out, "0x%llX(", (unsigned long long)made->mask);
    if (made->generic)
        put(out, "generic(");
    if (made->variable != NULL)
        put_variable(out, made->variable);
    else
        put(out, made->function->name);
    if (made->generic)
        put(out, ")");
    put_offset(out, (uint64_t)made->addend, false);
    if (made->mask != UINT64_MAX)
        put(out, ")");
}

static void put_initialiser(dump *out, const ptx_variable *variable)
{
    const unsigned size = ptx_type_size(variable->type);
    const bool braces = variable->is_array || variable->vector > 1;
    uint32_t next = 0;
    put(out, braces ? " = {" : " = ");
    for (uint64_t offset = 0; offset < variable->initialised; offset += size) {
        if (offset > 0)
            put(out, ", ");
        if (next < variable->relocation_count && variable->relocations[next].offset == offset)
            put_relocation(out, &variable->relocations[next++]);
        else
            put_constant(out, variable->type, bytes_of(variable, offset, size));
    }
    put(out, braces ? "}" : "");
}

static const char *const linkages[] = {"", ".visible ", ".extern ", ".weak ", ".common "};

/* Everything up to the name: ".visible .global .align 4 .v2 .f32 " */
static void put_specifiers(dump *out, const ptx_variable *variable)
{
    put(out, linkages[variable->linkage]);
    print(out, ".%s ", ptx_space_name(variable->space));
    if (variable->managed)
        put(out, ".attribute(.managed) ");
    if (variable->unified)
        put(out, ".attribute(.unified(0, 0)) ");
    if (variable->space != PTX_SPACE_REGISTER)
        print(out, ".align %u ", variable->align);
    if (variable->vector > 1)
        print(out, ".v%u ", variable->vector);
    print(out, ".%s ", ptx_type_name(variable->type));
    if (variable->is_pointer) {
        put(out, ".ptr ");
        if (variable->pointer_space != PTX_SPACE_GENERIC)
            print(out, ".%s ", ptx_space_name(variable->pointer_space));
        print(out, ".align %u ", variable->pointer_align);
    }
}

static void put_declared(dump *out, const ptx_variable *variable)
{
    put_specifiers(out, variable);
    if (variable->reg != PTX_NO_REGISTER)
        put_register(out, variable->reg);
    else
        put_variable(out, variable);
    if (variable->is_unsized)
        put(out, "[]");
    else if (variable->is_array)
        print(out, "[%llu]", (unsigned long long)variable->count);
}

static void put_declaration(dump *out, const ptx_variable *variable)
{
    put_declared(out, variable);
    if (variable->fields != NULL) {
        put(out, " = ");
        put(out, variable->fields);
    } else if (variable->bytes != NULL) {
        put_initialiser(out, variable);
    }
    put(out, ";\n");
}

/* ---- functions ------------------------------------------------------------------------------- */

static void put_parameters(dump *out, ptx_variable *const *variables, uint32_t count)
{
    put(out, "(");
    for (uint32_t i = 0; i < count; i++) {
        put(out, i > 0 ? ", " : "");
        put_declared(out, variables[i]);
    }
    put(out, ")");
}

static void put_three(dump *out, const char *directive, const uint32_t counts[3])
{
    if (counts[0] != 0)
        print(out, " .%s %u, %u, %u", directive, counts[0], counts[1], counts[2]);
}

static void put_one(dump *out, const char *directive, uint32_t count)
{
    if (count != 0)
        print(out, " .%s %u", directive, count);
}

/* ptxas takes performance directives with a body only. */
static void put_header(dump *out, const ptx_function *function, bool with_body)
{
    put(out, linkages[function->linkage]);
    put(out, function->is_entry ? ".entry " : ".func ");
    if (function->result_count > 0)
        put_parameters(out, function->results, function->result_count);
    put(out, function->name);
    put_parameters(out, function->parameters, function->parameter_count);
    put(out, function->noreturn ? " .noreturn" : "");
    if (!with_body)
        return;
    put_three(out, "maxntid", function->max_threads);
    put_three(out, "reqntid", function->required_threads);
    put_three(out, "reqnctapercluster", function->required_cluster);
    put_one(out, "minnctapersm", function->min_blocks);
    put_one(out, "maxnreg", function->max_registers);
    put_one(out, "maxclusterrank", function->max_cluster_rank);
    put(out, function->explicit_cluster ? " .explicitcluster" : "");
    put(out, function->blocks_are_clusters ? " .blocksareclusters" : "");
}

/* The number under which a string will stand in .debug_str. */
static size_t add_string(dump *out, const char *string)
{
    if (out->string_count == out->string_capacity) {
        const size_t capacity = out->string_capacity == 0 ? 64 : out->string_capacity * 2;
        const char **strings = realloc(out->strings, capacity * sizeof *strings);
        out->failed |= strings == NULL;
        if (strings == NULL)
            return 0;
        out->strings = strings;
        out->string_capacity = capacity;
    }
    out->strings[out->string_count] = string;
    return out->string_count++;
}

static void put_one_location(dump *out, uint32_t index)
{
    const ptx_location *location = &out->module->locations[index];
    print(out, "\t.loc %u %u %u", location->file_number, location->line, location->column);
    if (location->function != NULL) {
        const ptx_location *call = &out->module->locations[location->inlined_at];
        print(out, ", function_name $str%zu", add_string(out, location->function));
        print(out, ", inlined_at %u %u %u", call->file_number, call->line, call->column);
    }
    put(out, "\n");
    out->latest[location->place] = index;
}

/* A call that code was inlined at is named by its place, so it must be the latest .loc of that place. */
static void put_location(dump *out, uint32_t index)
{
    enum { DEEPEST = 64 };
    const ptx_location *locations = out->module->locations;
    uint32_t chain[DEEPEST];
    int depth = 0;
    for (chain[depth++] = index; depth < DEEPEST && locations[index].function != NULL; chain[depth++] = index) {
        index = locations[index].inlined_at;
        if (index == 0 || out->latest[locations[index].place] == index)
            break;
    }
    while (depth-- > 0)
        put_one_location(out, chain[depth]);
}

static void put_target_lists(dump *out, const ptx_function *function)
{
    for (uint32_t i = 0; i < function->target_list_count; i++) {
        const ptx_targets *list = function->targets[i];
        print(out, "$T%u", i);
        put(out, list->labels != NULL ? ": .branchtargets " : ": .calltargets ");
        for (uint32_t j = 0; j < list->count; j++) {
            put(out, j > 0 ? ", " : "");
            if (list->labels != NULL)
                put_label(out, list->labels[j]);
            else
                put(out, list->functions[j]->name);
        }
        put(out, ";\n");
    }
    for (uint32_t i = 0; i < function->prototype_count; i++) {
        const ptx_prototype *prototype = function->prototypes[i];
        print(out, "$P%u", i);
        put(out, ": .callprototype ");
        put_parameters(out, prototype->results, prototype->result_count);
        put(out, " _ ");
        put_parameters(out, prototype->parameters, prototype->parameter_count);
        put(out, prototype->noreturn ? " .noreturn;\n" : ";\n");
    }
}

/* Registers that are parameters are declared by the header. */
static void put_registers(dump *out, const ptx_function *function)
{
    for (uint32_t i = 0; i < function->register_count; i++) {
        bool is_parameter = false;
        for (uint32_t j = 0; j < function->parameter_count; j++)
            is_parameter |= function->parameters[j]->reg == i;
        for (uint32_t j = 0; j < function->result_count; j++)
            is_parameter |= function->results[j]->reg == i;
        if (!is_parameter)
            print(out, "\t.reg .%s %%r%u;\n", ptx_type_name(function->registers[i].type), i);
    }
}

static void put_body_variables(dump *out)
{
    for (uint32_t i = 0; i < out->own_count; i++) {
        put(out, "\t");
        put_declaration(out, out->own[i]);
    }
}

static void put_instructions(dump *out, const ptx_function *function)
{
    uint32_t location = 0;
    uint8_t *labelled = calloc((size_t)function->instruction_count + 1, 1);
    if (labelled == NULL) {
        out->failed = true;
        return;
    }
    for (uint32_t i = 0; i < function->label_count; i++)
        labelled[function->labels[i].target] = 1;
    for (uint32_t i = 0; i <= function->instruction_count; i++) {
        if (labelled[i]) {
            put_label(out, i);
            put(out, ":\n");
        }
        if (i == function->instruction_count)
            break;
        const ptx_instruction *instruction = &function->instructions[i];
        if (instruction->location != location && instruction->location != 0) {
            location = instruction->location;
            put_location(out, location);
        }
        put(out, "\t");
        put_instruction(out, instruction);
        put(out, "\n");
    }
    free(labelled);
}

typedef struct taken { /* a name, and which variable of the body has it; UINT32_MAX: something else */
    const char *name;
    uint32_t index;
} taken;

static int by_name(const void *left, const void *right)
{
    const taken *a = left, *b = right;
    const int order = strcmp(a->name, b->name);
    if (order != 0 || a->index == b->index)
        return order;
    return a->index == UINT32_MAX || (b->index != UINT32_MAX && a->index < b->index) ? -1 : 1;
}

static uint32_t list_names(const dump *out, taken *names)
{
    const ptx_function *function = out->function;
    uint32_t count = 0;
    for (uint32_t i = 0; i < out->own_count; i++)
        names[count++] = (taken){out->own[i]->name, i};
    for (uint32_t i = 0; i < function->parameter_count; i++)
        names[count++] = (taken){function->parameters[i]->name, UINT32_MAX};
    for (uint32_t i = 0; i < function->result_count; i++)
        names[count++] = (taken){function->results[i]->name, UINT32_MAX};
    for (uint32_t i = 0; i < function->used_count; i++)
        names[count++] = (taken){function->used[i]->name, UINT32_MAX};
    for (uint32_t i = 0; i < function->callee_count; i++)
        names[count++] = (taken){function->callees[i]->name, UINT32_MAX};
    return count;
}

static bool list_own(dump *out)
{
    const ptx_function *function = out->function;
    uint32_t count = function->variable_count;
    for (uint32_t i = 0; i < out->module->variable_count; i++)
        count += out->module->variables[i]->owner == function ? 1u : 0u;
    out->own = malloc(sizeof *out->own * ((size_t)count + 1));
    out->clash = calloc((size_t)count + 1, 1);
    if (out->own == NULL || out->clash == NULL)
        return false;
    for (uint32_t i = 0; i < function->variable_count; i++)
        out->own[out->own_count++] = function->variables[i];
    for (uint32_t i = 0; i < out->module->variable_count; i++)
        if (out->module->variables[i]->owner == function)
            out->own[out->own_count++] = out->module->variables[i];
    return true;
}

/* Names that the scopes of the body use twice, or that what is outside has too. */
static void find_clashes(dump *out)
{
    const ptx_function *function = out->function;
    taken *names = NULL;
    out->own_count = 0;
    if (list_own(out)) {
        const size_t most = (size_t)out->own_count + function->parameter_count + function->result_count +
                            function->used_count + function->callee_count;
        names = malloc(sizeof *names * (most + 1));
    }
    out->failed |= names == NULL;
    if (names == NULL)
        return;
    const uint32_t count = list_names(out, names);
    qsort(names, count, sizeof *names, by_name);
    for (uint32_t i = 1; i < count; i++)
        if (names[i].index != UINT32_MAX)
            out->clash[names[i].index] = strcmp(names[i].name, names[i - 1].name) == 0;
    free(names);
}

static void put_function(dump *out, const ptx_function *function)
{
    out->function = function;
    find_clashes(out);
    put_header(out, function, true);
    put(out, "\n{\n");
    put_registers(out, function);
    put_body_variables(out);
    put_target_lists(out, function);
    put_instructions(out, function);
    put(out, "}\n");
    free(out->own);
    free(out->clash);
    out->own = NULL;
    out->clash = NULL;
    out->own_count = 0;
    out->function = NULL;
}

/* ---- modules --------------------------------------------------------------------------------- */

static void put_preamble(dump *out)
{
    const ptx_module *module = out->module;
    print(out, ".version %d.%d\n.target sm_%d", module->version_major, module->version_minor, module->target);
    if (module->target_suffix != '\0')
        print(out, "%c", module->target_suffix);
    put(out, module->texmode_independent ? ", texmode_independent" : "");
    put(out, module->debug ? ", debug" : "");
    print(out, "\n.address_size %d\n", module->address_size);
    for (uint32_t i = 0; i < module->file_count; i++) {
        print(out, ".file %u \"", module->files[i].number);
        put(out, module->files[i].name);
        put(out, "\"\n");
    }
}

static void put_strings(dump *out)
{
    put(out, out->string_count > 0 ? ".section .debug_str\n{\n" : "");
    for (size_t i = 0; i < out->string_count; i++) {
        print(out, "$str%zu:\n.b8 ", i);
        for (const char *name = out->strings[i]; *name != '\0'; name++)
            print(out, "%u,", (unsigned char)*name);
        put(out, "0\n");
    }
    put(out, out->string_count > 0 ? "}\n" : "");
}

static void put_functions(dump *out, bool entries, bool bodies)
{
    for (uint32_t i = 0; i < out->module->function_count; i++) {
        const ptx_function *function = out->module->functions[i];
        if (function->is_entry != entries || (bodies && !function->has_body))
            continue;
        if (bodies) {
            put_function(out, function);
            continue;
        }
        put_header(out, function, false);
        put(out, ";\n");
    }
}

char *ptx_dump(const ptx_module *module)
{
    dump out = {.module = module};
    out.latest = calloc(module->location_count, sizeof *out.latest);
    if (out.latest == NULL)
        return NULL;
    put_preamble(&out);
    put_functions(&out, false, false);
    put_functions(&out, true, false);
    for (uint32_t i = 0; i < module->variable_count; i++)
        if (module->variables[i]->owner == NULL)
            put_declaration(&out, module->variables[i]);
    put_functions(&out, false, true);
    put_functions(&out, true, true);
    for (uint32_t i = 0; i < module->function_count; i++)
        if (module->functions[i]->alias_of != NULL) {
            put(&out, ".alias ");
            put(&out, module->functions[i]->name);
            put(&out, ", ");
            put(&out, module->functions[i]->alias_of->name);
            put(&out, ";\n");
        }
    put_strings(&out);
    free(out.strings);
    free(out.latest);
    if (!out.failed)
        return out.text;
    free(out.text);
    return NULL;
}

char *ptx_dump_instruction(const ptx_module *module, const ptx_function *function, const ptx_instruction *instruction)
{
    dump out = {.module = module, .function = function};
    put_instruction(&out, instruction);
    if (!out.failed)
        return out.text;
    free(out.text);
    return NULL;
}
