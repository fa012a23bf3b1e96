/* Declarations, scopes, functions, line information: everything around the instructions. */
#include "check.h"

static const ptx_variable *variable(const ptx_module *module, const char *name)
{
    const ptx_variable *found = ptx_find_variable(module, name);
    if (found == NULL) {
        printf("no variable %s\n", name);
        exit(1);
    }
    return found;
}

static const ptx_function *function(const ptx_module *module, const char *name)
{
    const ptx_function *found = ptx_find_function(module, name);
    if (found == NULL) {
        printf("no function %s\n", name);
        exit(1);
    }
    return found;
}

static void header(void)
{
    ptx_error error;
    static const char text[] = ".version 8.10\n.target sm_103f, texmode_independent, debug\n.address_size 64\n";
    ptx_module *module = parse_bytes(text, sizeof text, &error); /* with the zero at its end */
    EXPECT(module != NULL);
    EXPECT_EQUAL(8, module->version_major);
    EXPECT_EQUAL(10, module->version_minor);
    EXPECT_EQUAL(103, module->target);
    EXPECT_EQUAL('f', module->target_suffix);
    EXPECT_EQUAL(64, module->address_size);
    EXPECT(module->debug && module->texmode_independent);
    ptx_module_free(module);
    module = parse_bytes(".version 1.4 .target sm_13", 26, &error);
    EXPECT(module != NULL && module->version == 14 && module->address_size == 32);
    ptx_module_free(module);
    ptx_module_free(NULL);
}

static void variables(void)
{
    ptx_module *module = parse(".global .align 16 .v2 .f32 pair = {1.0, 0f40000000};\n"
                               ".visible .const .u16 words[3] = {1, 0x102, -1};\n"
                               ".global .u32 grid[2][3] = {{1, 2}, {3}};\n"
                               ".global .u32 flat[2][2] = {1, 2, 3};\n"
                               ".global .b8 text[] = {104, 105, 0};\n"
                               ".extern .shared .align 8 .b8 dynamic[];\n"
                               ".global .u64 table[3] = {pair, generic(words)+4, 7};\n"
                               ".global .u8 low[2] = {0xFF(pair), 0xFF00(generic(pair)+8)};\n"
                               ".weak .global .attribute(.managed) .u32 shared_with_host, other = 5;\n"
                               ".common .global .f64 d; .global .f32 one = 1;\n"
                               ".global .texref t; .global .samplerref smp = {filter_mode = nearest};\n"
                               ".extern .global .u32 later; .global .u32 later = 9;\n"
                               ".global .attribute(.unified(1, 2)) .u32 u;\n");
    const ptx_variable *pair = variable(module, "pair");
    EXPECT_EQUAL(8, pair->size);
    EXPECT_EQUAL(16, pair->align);
    EXPECT_EQUAL(2, pair->vector);
    EXPECT_EQUAL(8, pair->initialised);
    EXPECT(memcmp(pair->bytes, "\0\0\x80\x3f\0\0\0\x40", 8) == 0);
    const ptx_variable *words = variable(module, "words");
    EXPECT(memcmp(words->bytes, "\1\0\2\1\xff\xff", 6) == 0);
    EXPECT_EQUAL(PTX_SPACE_CONST, words->space);
    EXPECT_EQUAL(PTX_LINKAGE_VISIBLE, words->linkage);
    EXPECT_EQUAL(2, words->align);
    const ptx_variable *grid = variable(module, "grid");
    EXPECT_EQUAL(24, grid->size);
    EXPECT_EQUAL(16, grid->initialised);
    EXPECT(memcmp(grid->bytes, "\1\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0", 16) == 0);
    EXPECT_EQUAL(12, variable(module, "flat")->initialised);
    EXPECT_EQUAL(3, variable(module, "text")->size);
    EXPECT(!variable(module, "text")->is_unsized);
    EXPECT(variable(module, "dynamic")->is_unsized && variable(module, "dynamic")->size == 0);
    EXPECT_EQUAL(8, variable(module, "dynamic")->align);

    const ptx_variable *table = variable(module, "table");
    EXPECT_EQUAL(2, table->relocation_count);
    EXPECT(table->relocations[0].variable == pair && !table->relocations[0].generic);
    EXPECT_EQUAL(8, table->relocations[0].width);
    EXPECT_EQUAL(8, table->relocations[1].offset);
    EXPECT_EQUAL(4, table->relocations[1].addend);
    EXPECT(table->relocations[1].generic && table->relocations[1].variable == words);
    EXPECT_EQUAL(7, table->bytes[16]);
    const ptx_variable *low = variable(module, "low");
    EXPECT_EQUAL(0xFF, low->relocations[0].mask);
    EXPECT_EQUAL(0xFF00, low->relocations[1].mask);
    EXPECT_EQUAL(8, low->relocations[1].addend);
    EXPECT_EQUAL(1, low->relocations[1].width);

    EXPECT(variable(module, "shared_with_host")->managed && variable(module, "other")->managed);
    EXPECT_EQUAL(PTX_LINKAGE_WEAK, variable(module, "other")->linkage);
    EXPECT_EQUAL(5, variable(module, "other")->bytes[0]);
    EXPECT_EQUAL(PTX_LINKAGE_COMMON, variable(module, "d")->linkage);
    EXPECT_EQUAL(0x3f, variable(module, "one")->bytes[3]);
    EXPECT_EQUAL(PTX_TEXREF, variable(module, "t")->type);
    EXPECT_TEXT("{filter_mode = nearest}", variable(module, "smp")->fields);
    EXPECT_EQUAL(9, variable(module, "later")->bytes[0]);
    EXPECT_EQUAL(PTX_LINKAGE_INTERNAL, variable(module, "later")->linkage);
    EXPECT(variable(module, "u")->unified && !variable(module, "u")->managed);
    for (uint32_t i = 0; i < module->variable_count; i++)
        EXPECT_EQUAL(i, module->variables[i]->index);
    ptx_module_free(module);
}

/* Names without '%', and a range name that ends in a digit. */
static void registers(void)
{
    ptx_module *module =
        parse(".visible .entry k() { .reg .b32 r, r1<20>, x<3>; .reg .pred p; .reg .b64 never<4000000000>;\n"
              "mov.b32 r, 1; mov.b32 r12, r; mov.b32 x2, r115; @p mov.b32 x0, x2; ret; }");
    const ptx_function *entry = kernel(module);
    EXPECT_EQUAL(6, entry->register_count);
    EXPECT_TEXT("r", entry->registers[0].name);
    EXPECT_TEXT("r12", entry->registers[1].name);
    EXPECT_TEXT("x2", entry->registers[2].name);
    EXPECT_TEXT("r115", entry->registers[3].name);
    EXPECT_EQUAL(PTX_PRED, entry->registers[entry->instructions[3].guard].type);
    for (uint32_t i = 0; i < entry->register_count; i++)
        EXPECT(entry->registers[i].type == (i == entry->instructions[3].guard ? PTX_PRED : PTX_B32));
    ptx_module_free(module);
}

static void scoped_bodies(void)
{
    ptx_module *module =
        parse_body(".global .u32 x;\n",
                   "{ .reg .b32 t; mov.b32 t, 1; { .reg .f32 t; mov.f32 t, 0f00000000; } mov.b32 %r1, t; }\n"
                   "{ .reg .f32 %r<4>; mov.f32 %r1, 0f3F800000; mov.f32 %f1, %r1; }\n"
                   "mov.b32 %r2, %r1;\n"
                   "{fma.rn.f32 %f1, %f2, %f3, %f4;}\n"
                   "{ again: bra again; }\n{ bra again; again: }\n"
                   "{ .param .b64 one; .param .b64 two; st.param.b64 [two], %rd1; } { .param .b32 one; st.param.b32 "
                   "[one], %r1; }\n"
                   ".local .align 16 .b8 depot[24]; .local .u32 l; .shared .u16 sh[5]; .global .u32 inner = 3;\n"
                   "{ .shared .u16 x; mov.u64 %rd2, x; } mov.u64 %rd3, x;\n"
                   ".pragma \"nounroll\";\n");
    const ptx_function *entry = kernel(module);
    const ptx_instruction *list = entry->instructions;
    EXPECT_EQUAL(PTX_B32, entry->registers[list[0].operands[0].reg].type);
    EXPECT_EQUAL(PTX_F32, entry->registers[list[1].operands[0].reg].type);
    EXPECT_EQUAL(list[0].operands[0].reg, list[2].operands[1].reg);
    EXPECT_EQUAL(PTX_F32, entry->registers[list[3].operands[0].reg].type); /* the %r1 of the braces */
    EXPECT_EQUAL(list[2].operands[0].reg, list[5].operands[1].reg);        /* the %r1 outside */
    EXPECT_EQUAL(PTX_OP_FMA, list[6].op);
    EXPECT_EQUAL(7, list[7].operands[0].bits); /* each `again` is the one of its braces */
    EXPECT_EQUAL(9, list[8].operands[0].bits);

    EXPECT_EQUAL(7, entry->variable_count); /* one, two, one, depot, l, sh, x */
    EXPECT_EQUAL(0, entry->variables[0]->offset);
    EXPECT_EQUAL(8, entry->variables[1]->offset);
    EXPECT_EQUAL(0, entry->variables[2]->offset); /* scopes that follow each other share the frame */
    EXPECT_EQUAL(16, entry->parameter_frame);
    EXPECT_EQUAL(8, entry->frame_align);
    EXPECT_EQUAL(32, entry->parameter_bytes);
    EXPECT_EQUAL(24, entry->variables[4]->offset);
    EXPECT_EQUAL(28, entry->local_bytes);
    EXPECT_EQUAL(16, entry->local_align);
    EXPECT_EQUAL(10, entry->variables[5]->size);
    EXPECT(list[11].operands[1].variable == entry->variables[6]);
    EXPECT(list[12].operands[1].variable == variable(module, "x"));
    EXPECT(ptx_find_variable(module, "inner") == NULL); /* of the body, not of the module */
    EXPECT_EQUAL(2, module->variable_count);
    EXPECT(module->variables[1]->owner == entry && module->variables[1]->bytes[0] == 3);
    ptx_module_free(module);
}

static const char calls_text[] =
    ".extern .func (.param .b32 status) vprintf (.param .b64 format, .param .b64 arguments);\n"
    ".func (.param .align 8 .b8 out[16]) later (.param .b32 a, .param .align 8 .b8 b[12], .param .f64 c);\n"
    ".func (.reg .u32 sum) regs (.reg .u32 left, .reg .f32 right) .noreturn { mov.u32 sum, left; ret; }\n"
    ".visible .func bare .abi_preserve 4 .pragma \"x\"; { ret; }\n"
    ".func again (.param .b32 n) { .param .b32 pass; call again, (pass); call.uni bare; ret; }\n"
    ".weak .entry k (.param .u64 .ptr .global .align 16 p, .param .u64 .ptr q, .param .u8 c, .param .f64 d)\n"
    ".maxntid 256, 2 .reqntid 8,4,2 .minnctapersm 3 .maxnreg 64 .reqnctapercluster 2,1,1 .explicitcluster\n"
    "{ .reg .u32 %r<4>; .reg .f32 %f<2>; .reg .b64 %rd<3>; .param .b64 x; .param .b32 y;\n"
    ".param .align 8 .b8 big[16]; .param .align 8 .b8 s[12]; .param .f64 w;\n"
    "call.uni (y), vprintf, (x, x);\n"
    "call (%r1), regs, (%r2, 0f3F800000);\n"
    "call (big), later, (7, s, w);\n"
    "proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[12]) .noreturn;\n"
    "list: .calltargets again, again;\n"
    "mov.u64 %rd1, again;\n"
    "call (y), %rd1, (%rd2, s), proto;\n"
    "call %rd1, (y), list;\n"
    "t: .branchtargets B, A, B;\n"
    "brx.idx %r1, t;\n"
    "A: ret; B: exit; }\n"
    ".func (.param .align 8 .b8 out[16]) later (.param .b32 a, .param .align 8 .b8 b[12], .param .f64 c) { ret; }\n"
    ".func second (.param .b32 n);\n.alias second, again;\n";

static void functions(void)
{
    ptx_module *module = parse(calls_text);
    EXPECT_EQUAL(7, module->function_count);
    EXPECT(!function(module, "vprintf")->has_body && function(module, "later")->has_body);
    EXPECT(function(module, "regs")->noreturn && function(module, "bare")->has_body);
    EXPECT(function(module, "second")->alias_of == function(module, "again"));
    const ptx_function *later = function(module, "later");
    EXPECT_EQUAL(0, later->parameters[0]->offset);
    EXPECT_EQUAL(8, later->parameters[1]->offset);
    EXPECT_EQUAL(24, later->parameters[2]->offset);
    EXPECT_EQUAL(32, later->results[0]->offset);
    EXPECT_EQUAL(48, later->parameter_frame);
    EXPECT(later->results[0]->owner == later && later->results[0]->is_result);
    const ptx_function *regs = function(module, "regs");
    EXPECT_EQUAL(0, regs->results[0]->reg);
    EXPECT_EQUAL(1, regs->parameters[0]->reg);
    EXPECT_EQUAL(2, regs->parameters[1]->reg);
    EXPECT_EQUAL(PTX_SPACE_REGISTER, regs->parameters[1]->space);
    EXPECT_EQUAL(1, regs->instructions[0].operands[1].reg);
    EXPECT_EQUAL(0, regs->parameter_frame);
    const ptx_function *again = function(module, "again");
    EXPECT_EQUAL(2, again->callee_count);
    EXPECT(again->callees[0] == again && again->callees[1] == function(module, "bare"));

    const ptx_function *entry = kernel(module);
    EXPECT(entry->is_entry && entry->linkage == PTX_LINKAGE_WEAK);
    EXPECT(entry->parameters[0]->is_pointer && entry->parameters[0]->pointer_space == PTX_SPACE_GLOBAL);
    EXPECT_EQUAL(16, entry->parameters[0]->pointer_align);
    EXPECT(entry->parameters[1]->is_pointer && entry->parameters[1]->pointer_space == PTX_SPACE_GENERIC);
    EXPECT_EQUAL(16, entry->parameters[2]->offset);
    EXPECT_EQUAL(24, entry->parameters[3]->offset);
    EXPECT_EQUAL(32, entry->parameter_bytes);
    EXPECT(entry->max_threads[0] == 256 && entry->max_threads[1] == 2 && entry->max_threads[2] == 1);
    EXPECT(entry->required_threads[0] == 8 && entry->required_threads[2] == 2);
    EXPECT(entry->min_blocks == 3 && entry->max_registers == 64 && entry->explicit_cluster);
    EXPECT_EQUAL(2, entry->required_cluster[0]);

    const ptx_instruction *list = entry->instructions;
    EXPECT_EQUAL(PTX_OP_CALL, list[0].op);
    EXPECT_EQUAL(4, list[0].operand_count);
    EXPECT_EQUAL(1, list[0].operands[0].count);
    EXPECT(list[0].operands[1].function == function(module, "vprintf"));
    EXPECT_EQUAL(2, list[0].operands[2].count);
    EXPECT_EQUAL(PTX_OPERAND_NONE, list[0].operands[3].kind);
    EXPECT_EQUAL(PTX_OPERAND_REGISTER, list[1].operands[0].elements[0].kind);
    EXPECT(list[1].operands[0].elements[0].destination);
    EXPECT_EQUAL(0x3F800000, list[1].operands[2].elements[1].bits);
    EXPECT_EQUAL(PTX_B32, list[2].operands[2].elements[0].type);
    EXPECT_EQUAL(PTX_OPERAND_REGISTER, list[4].operands[1].kind);
    EXPECT_EQUAL(PTX_OPERAND_PROTOTYPE, list[4].operands[3].kind);
    EXPECT(list[4].operands[3].prototype->noreturn);
    EXPECT_EQUAL(8, list[4].operands[3].prototype->parameters[1]->offset);
    EXPECT_EQUAL(20, list[4].operands[3].prototype->results[0]->offset);
    EXPECT_EQUAL(2, list[5].operands[3].targets->count);
    EXPECT(list[5].operands[3].targets->functions[1] == again);
    EXPECT(entry->calls_indirectly && again->address_taken && !later->address_taken);
    EXPECT_EQUAL(4, entry->callee_count);
    const ptx_targets *targets = list[6].operands[1].targets;
    EXPECT_EQUAL(3, targets->count);
    EXPECT(targets->labels[0] == 8 && targets->labels[1] == 7 && targets->labels[2] == 8);
    ptx_module_free(module);
}

static void locations(void)
{
    ptx_module *module = parse(".visible .entry k() { .reg .b32 %r<2>;\n"
                               "mov.b32 %r1, 1;\n.loc 1 12 3\nmov.b32 %r1, 2;\n"
                               ".loc 2 40 5, function_name $names+5, inlined_at 1 12 3\nmov.b32 %r1, 3;\n"
                               ".loc 7 1 1\nret; }\n"
                               ".file 1 \"a.cu\"\n.file 2 \"b.cuh\", 123, 456\n"
                               ".section .debug_str { unused: .b8 1,2,0\n $names: .b8 111,110,101,45,0\n"
                               ".b8 116,119,111\n.b8 0\n }\n"
                               ".section .debug_info { .b32 $names\n .b8 1 { nested } \n.b64 .debug_abbrev+3 }\n");
    const ptx_instruction *list = kernel(module)->instructions;
    EXPECT_EQUAL(0, list[0].location);
    const ptx_location *first = &module->locations[list[1].location], *second = &module->locations[list[2].location];
    EXPECT_TEXT("a.cu", first->file);
    EXPECT(first->line == 12 && first->column == 3 && first->function == NULL && first->inlined_at == 0);
    EXPECT_TEXT("b.cuh", second->file);
    EXPECT_TEXT("two", second->function);
    EXPECT_EQUAL(list[1].location, second->inlined_at);
    EXPECT_TEXT("", module->locations[list[3].location].file);
    EXPECT_EQUAL(7, module->locations[list[3].location].file_number);
    EXPECT_EQUAL(2, module->file_count);
    ptx_module_free(module);
}

static void comments(void)
{
    ptx_module *module = parse("# 1 \"file\"\n@@DWARF .section old\n/* a\n * b */ .visible // c\n.entry k()\r\n"
                               "{ /**/ ret; // the end\n}\n");
    EXPECT_EQUAL(9, kernel(module)->instructions[0].line);
    ptx_module_free(module);
}

int main(void)
{
    header();
    variables();
    registers();
    scoped_bodies();
    functions();
    locations();
    comments();
    return report();
}
