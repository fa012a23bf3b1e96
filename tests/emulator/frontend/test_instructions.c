/* Instructions and operands: what the engine is handed for each way of writing them. */
#include "check.h"

static const ptx_instruction *at(const ptx_module *module, uint32_t index)
{
    const ptx_function *function = kernel(module);
    if (index >= function->instruction_count)
        exit(1);
    return &function->instructions[index];
}

static const ptx_operand *operand(const ptx_module *module, uint32_t index, uint8_t which)
{
    const ptx_instruction *instruction = at(module, index);
    if (which >= instruction->operand_count)
        exit(1);
    return &instruction->operands[which];
}

static const char *register_name(const ptx_module *module, const ptx_operand *from)
{
    return from->kind == PTX_OPERAND_REGISTER ? kernel(module)->registers[from->reg].name : "not a register";
}

static void mnemonics(void)
{
    ptx_module *module = parse_body("", "fma.rn.ftz.sat.f32 %f1, %f2, %f3, %f4;\n"
                                        "setp.lo.and.u32 %p1|%p2, %r1, %r2, !%p3;\n"
                                        "mul .lo .s32 %r1, %r2, %r3;\n"
                                        "ld.relaxed.gpu.global.L1::no_allocate.v2.u64 {%rd1, %rd2}, [%rd3+16];\n"
                                        "@!%p1 atom.global.add.gpu.release.u32 %r1, [%rd1], 1;\n"
                                        "bar.sync 0;\n");
    EXPECT_EQUAL(PTX_OP_FMA, at(module, 0)->op);
    EXPECT_EQUAL(PTX_MOD_RN, ptx_modifier_of(at(module, 0), PTX_CLASS_ROUNDING));
    EXPECT(ptx_has(at(module, 0), PTX_MOD_FTZ) && ptx_has(at(module, 0), PTX_MOD_SAT));
    EXPECT(!ptx_has(at(module, 0), PTX_MOD_RZ));
    EXPECT_EQUAL(PTX_F32, ptx_type_of(at(module, 0), 0));
    EXPECT_EQUAL(PTX_NO_TYPE, ptx_type_of(at(module, 0), 1));
    EXPECT_EQUAL(4, at(module, 0)->operand_count);
    EXPECT(at(module, 0)->operands[0].destination && !at(module, 0)->operands[1].destination);

    EXPECT_EQUAL(PTX_MOD_LO, ptx_modifier_of(at(module, 1), PTX_CLASS_COMPARISON));
    EXPECT_EQUAL(PTX_MOD_NONE, ptx_modifier_of(at(module, 1), PTX_CLASS_HALF));
    EXPECT_EQUAL(PTX_MOD_AND, ptx_modifier_of(at(module, 1), PTX_CLASS_OPERATION));
    EXPECT_EQUAL(PTX_OPERAND_PAIR, operand(module, 1, 0)->kind);
    EXPECT_TEXT("%p2", register_name(module, &operand(module, 1, 0)->elements[1]));
    EXPECT(operand(module, 1, 0)->elements[1].destination);
    EXPECT(operand(module, 1, 3)->negated);
    EXPECT_EQUAL(PTX_PRED, operand(module, 1, 3)->type);

    EXPECT_TEXT("mul.lo.s32", at(module, 2)->mnemonic->spelling);
    EXPECT_EQUAL(PTX_MOD_LO, ptx_modifier_of(at(module, 2), PTX_CLASS_HALF));

    EXPECT_EQUAL(PTX_SPACE_GLOBAL, at(module, 3)->mnemonic->space);
    EXPECT_EQUAL(2, at(module, 3)->mnemonic->vector);
    EXPECT_EQUAL(PTX_MOD_RELAXED, ptx_modifier_of(at(module, 3), PTX_CLASS_SEMANTICS));
    EXPECT_EQUAL(PTX_MOD_GPU, ptx_modifier_of(at(module, 3), PTX_CLASS_SCOPE));
    EXPECT_EQUAL(PTX_OPERAND_VECTOR, operand(module, 3, 0)->kind);
    EXPECT_EQUAL(2, operand(module, 3, 0)->count);
    EXPECT_EQUAL(PTX_U64, operand(module, 3, 0)->elements[1].type);
    EXPECT_EQUAL(PTX_OPERAND_ADDRESS, operand(module, 3, 1)->kind);
    EXPECT_EQUAL(16, operand(module, 3, 1)->bits);

    EXPECT(at(module, 4)->guard_negated && at(module, 4)->guard == at(module, 1)->operands[0].elements[0].reg);
    EXPECT_EQUAL(PTX_MOD_ADD, ptx_modifier_of(at(module, 4), PTX_CLASS_OPERATION));
    EXPECT_EQUAL(PTX_OP_BAR_SYNC, at(module, 5)->op);
    EXPECT_EQUAL(PTX_NO_REGISTER, at(module, 5)->guard);
    EXPECT_EQUAL(7, at(module, 0)->line);
    EXPECT_EQUAL(14, at(module, 6)->line); /* ret, after an empty line */
    EXPECT(kernel(module)->unsupported == NULL);
    ptx_module_free(module);
}

static void constants(void)
{
    static const struct {
        const char *instruction;
        uint64_t bits;
        ptx_type type;
    } cases[] = {
        {"mov.u32 %r1, 0x1F;", 0x1F, PTX_U32},
        {"mov.u32 %r1, 017;", 15, PTX_U32},
        {"mov.u32 %r1, 0b101;", 5, PTX_U32},
        {"mov.s32 %r1, -1;", 0xFFFFFFFF, PTX_S32},
        {"mov.u16 %h1, 70000;", 70000 - 65536, PTX_U16},
        {"mov.s64 %rd1, -2;", UINT64_MAX - 1, PTX_S64},
        {"mov.u64 %rd1, 18446744073709551615;", UINT64_MAX, PTX_U64},
        {"mov.u32 %r1, 7U;", 7, PTX_U32},
        {"mov.u32 %r1, WARP_SZ*2+1;", 65, PTX_U32},
        {"mov.u32 %r1, (1<<4)|0xF00;", 0xF10, PTX_U32},
        {"mov.u32 %r1, 10-2-3;", 5, PTX_U32},
        {"mov.u32 %r1, 7/2*2;", 6, PTX_U32},
        {"mov.s32 %r1, -7/2;", 0xFFFFFFFD, PTX_S32},
        {"mov.s32 %r1, -7%3;", 0xFFFFFFFF, PTX_S32},
        {"mov.u64 %rd1, -8>>1;", UINT64_MAX - 3, PTX_U64},
        {"mov.u64 %rd1, 0xFFFFFFFFFFFFFFF8>>1;", UINT64_C(0x7FFFFFFFFFFFFFFC), PTX_U64},
        {"mov.u32 %r1, 1>2?3:4;", 4, PTX_U32},
        {"mov.u32 %r1, !0&&~0;", 1, PTX_U32},
        {"mov.u32 %r1, -1<1U;", 0, PTX_U32},
        {"mov.u32 %r1, (.s64)0xFFFFFFFFFFFFFFFF<1;", 1, PTX_U32},
        {"mov.u32 %r1, 1.5>1.0;", 1, PTX_U32},
        {"mov.f32 %f1, 0f3F800000;", 0x3F800000, PTX_F32},
        {"mov.f32 %f1, 1.0;", 0x3F800000, PTX_F32},
        {"mov.f32 %f1, -1.5e1;", 0xC1700000, PTX_F32},
        {"mov.f32 %f1, .5;", 0x3F000000, PTX_F32},
        {"mov.f32 %f1, 0d3FF0000000000000;", 0x3F800000, PTX_F32},
        {"mov.f32 %f1, 1e300;", 0x7F800000, PTX_F32},
        {"mov.f32 %f1, 16777217.0;", 0x4B800000, PTX_F32},
        {"mov.f64 %d1, 0D7FF0000000000000;", UINT64_C(0x7FF0000000000000), PTX_F64},
        {"mov.f64 %d1, 0f3F800000;", UINT64_C(0x3FF0000000000000), PTX_F64},
        {"mov.f64 %d1, 0.1;", UINT64_C(0x3FB999999999999A), PTX_F64},
        {"mov.f64 %d1, 1.0/4.0-1.0;", UINT64_C(0xBFE8000000000000), PTX_F64},
        {"mov.b32 %r1, 0f40000000;", 0x40000000, PTX_B32},
        {"mov.b64 %rd1, 2.0;", UINT64_C(0x4000000000000000), PTX_B64},
        {"mov.pred %p1, -1;", 1, PTX_PRED},
        {"mov.pred %p1, 0;", 0, PTX_PRED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ptx_module *module = parse_body("", cases[i].instruction);
        const ptx_operand *constant = operand(module, 0, 1);
        if (constant->kind != PTX_OPERAND_IMMEDIATE || constant->bits != cases[i].bits ||
            constant->type != cases[i].type) {
            failures++;
            printf("%s: 0x%llx as .%s\n", cases[i].instruction, (unsigned long long)constant->bits,
                   ptx_type_name((ptx_type)constant->type));
        }
        ptx_module_free(module);
    }
}

static void addresses(void)
{
    ptx_module *module =
        parse_body(".global .u32 g[8];\n.shared .align 4 .b8 t[64];\n", "ld.global.u32 %r1, [%rd1+-4];\n"
                                                                        "ld.global.u32 %r1, [g+8];\n"
                                                                        "ld.global.u32 %r1, g[2];\n"
                                                                        "mov.u64 %rd1, g+4;\n"
                                                                        "ld.param.u64 %rd1, [a];\n"
                                                                        "ld.param.u32 %r1, [s+4*3];\n"
                                                                        "ld.local.u32 %r1, [16];\n"
                                                                        "mov.u64 %rd2, k;\n"
                                                                        "cvta.shared.u64 %rd2, t;\n");
    EXPECT_EQUAL((uint64_t)-4, operand(module, 0, 1)->bits);
    EXPECT(operand(module, 0, 1)->variable == NULL && operand(module, 0, 1)->reg != PTX_NO_REGISTER);
    EXPECT_TEXT("g", operand(module, 1, 1)->variable->name);
    EXPECT_EQUAL(8, operand(module, 1, 1)->bits);
    EXPECT_EQUAL(PTX_NO_REGISTER, operand(module, 1, 1)->reg);
    EXPECT_EQUAL(PTX_OPERAND_ADDRESS, operand(module, 2, 1)->kind);
    EXPECT_EQUAL(8, operand(module, 2, 1)->bits);
    EXPECT_EQUAL(PTX_OPERAND_VARIABLE, operand(module, 3, 1)->kind);
    EXPECT_EQUAL(4, operand(module, 3, 1)->bits);
    EXPECT(operand(module, 4, 1)->variable == kernel(module)->parameters[0]);
    EXPECT_EQUAL(12, operand(module, 5, 1)->bits);
    EXPECT_EQUAL(8, operand(module, 5, 1)->variable->offset);
    EXPECT_EQUAL(16, operand(module, 6, 1)->bits);
    EXPECT(operand(module, 6, 1)->variable == NULL && operand(module, 6, 1)->reg == PTX_NO_REGISTER);
    EXPECT_EQUAL(PTX_OPERAND_FUNCTION, operand(module, 7, 1)->kind);
    EXPECT(kernel(module)->address_taken);
    EXPECT_EQUAL(2, kernel(module)->used_count);
    EXPECT_TEXT("g", kernel(module)->used[0]->name);
    EXPECT_TEXT("t", kernel(module)->used[1]->name);
    ptx_module_free(module);
}

static void special_registers(void)
{
    ptx_module *module = parse_body("", "mov.u32 %r1, %ctaid.z;\nmov.b32 %r1, %envreg31;\nmov.u64 %rd1, %clock64;\n"
                                        "mov.u16 %h1, %tid.x;\nmov.u32 %r1, %lanemask_lt;\nmov.u64 %rd1, %pm3_64;\n");
    EXPECT_EQUAL(PTX_OPERAND_SPECIAL, operand(module, 0, 1)->kind);
    EXPECT_EQUAL(PTX_SPECIAL_CTAID, operand(module, 0, 1)->bits);
    EXPECT_EQUAL(2, operand(module, 0, 1)->component);
    EXPECT_EQUAL(PTX_SPECIAL_ENVREG, operand(module, 1, 1)->bits);
    EXPECT_EQUAL(31, operand(module, 1, 1)->component);
    EXPECT_EQUAL(PTX_SPECIAL_CLOCK64, operand(module, 2, 1)->bits);
    EXPECT_EQUAL(PTX_U16, operand(module, 3, 1)->type);
    EXPECT_EQUAL(PTX_SPECIAL_LANEMASK_LT, operand(module, 4, 1)->bits);
    EXPECT_EQUAL(PTX_SPECIAL_PM_64, operand(module, 5, 1)->bits);
    EXPECT_EQUAL(3, operand(module, 5, 1)->component);
    ptx_module_free(module);
}

static void vectors(void)
{
    ptx_module *module = parse_body("", ".reg .v4 .f32 %v; .reg .b8 %b<4>;\n"
                                        "mov.b64 %rd1, {%r1, 5};\n"
                                        "mov.b64 {%r1, _}, %rd2;\n"
                                        "mov.b32 %r1, {%b0, %b1, %b2, %b3};\n"
                                        "ld.global.v4.f32 %v, [%rd1];\n"
                                        "add.f32 %f1, %v.x, %v.w;\n"
                                        "ld.global.v4.u8 {%h1, %r1, _, %rd1}, [%rd1];\n"
                                        "suld.b.1d.b32.trap {%r1}, [%rd1, {%r2}];\n"
                                        "tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %f1, %f2, %f3}];\n"
                                        "vadd.s32.u32.s32.sat %r1, %r2.b3, %r3.h1;\n"
                                        "vadd4.u32.u32.u32 %r1.b310, %r2.b7654, %r3, %r4;\n"
                                        "vmad.s32.s32.s32 %r1, %r2, %r3, -%r4;\n");
    EXPECT_EQUAL(PTX_B32, operand(module, 0, 1)->elements[1].type);
    EXPECT_EQUAL(5, operand(module, 0, 1)->elements[1].bits);
    EXPECT_EQUAL(PTX_B64, operand(module, 0, 1)->type);
    EXPECT_EQUAL(PTX_OPERAND_SINK, operand(module, 1, 0)->elements[1].kind);
    EXPECT(operand(module, 1, 0)->elements[0].destination);
    EXPECT_EQUAL(PTX_B8, operand(module, 2, 1)->elements[3].type);
    EXPECT_EQUAL(4, operand(module, 3, 0)->count);
    EXPECT_EQUAL(operand(module, 3, 0)->elements[3].reg, operand(module, 4, 2)->reg);
    EXPECT_EQUAL(PTX_U8, operand(module, 5, 0)->elements[3].type);
    EXPECT_EQUAL(PTX_OPERAND_REGISTER, operand(module, 6, 0)->kind);
    EXPECT_EQUAL(PTX_OPERAND_TEXTURE, operand(module, 6, 1)->kind);
    const ptx_operand *texture = operand(module, 7, 1);
    EXPECT_EQUAL(2, texture->count);
    EXPECT_EQUAL(PTX_U32, texture->elements[1].elements[0].type);
    EXPECT_EQUAL(PTX_F32, texture->elements[1].elements[1].type);
    EXPECT_EQUAL(PTX_SELECT_B3, operand(module, 8, 1)->selector);
    EXPECT_EQUAL(PTX_SELECT_H1, operand(module, 8, 2)->selector);
    EXPECT_EQUAL(PTX_SELECT_MASK, operand(module, 9, 0)->selector);
    EXPECT_EQUAL(0x310, operand(module, 9, 0)->selector_mask);
    EXPECT_EQUAL(0x7654, operand(module, 9, 1)->selector_mask);
    EXPECT(operand(module, 10, 3)->negated);
    ptx_module_free(module);
}

/* Both spellings, old and new forms, forms of several operand counts. */
static void alternatives(void)
{
    ptx_module *module = parse_body("", "vote.sync.all.pred %p1, %p2, -1;\nvote.all.sync.pred %p1, !%p2, %r1;\n"
                                        "vote.ballot.b32 %r1, %p1;\nshfl.idx.b32 %r1, %r2, 0, 31;\n"
                                        "shfl.sync.bfly.b32 %f1|%p1, %f2, 1, 31, -1;\n"
                                        "bar.red.popc.u32 %r1, 0, %p1;\nbar.red.popc.u32 %r1, 0, 64, !%p1;\n"
                                        "barrier.cta.sync.aligned 1, %r1;\n"
                                        "cp.async.ca.shared.global [%r1], [%rd1], 4, %r2;\n"
                                        "cp.async.cg.shared.global.L2::cache_hint [%r1], [%rd1], 16, %rd2;\n"
                                        "lop3.and.b32 _|%p1, %r1, %r2, %r3, 0x80, %p2;\n"
                                        "min.NaN.f32 %f1, %f2, %f3;\n"
                                        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, "
                                        "{%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};\n");
    EXPECT_EQUAL(PTX_MOD_ALL, ptx_modifier_of(at(module, 1), PTX_CLASS_VOTE));
    EXPECT(ptx_has(at(module, 1), PTX_MOD_SYNC) && !ptx_has(at(module, 2), PTX_MOD_SYNC));
    EXPECT_EQUAL(0xFFFFFFFF, operand(module, 0, 2)->bits);
    EXPECT_EQUAL(4, at(module, 3)->operand_count);
    EXPECT_EQUAL(PTX_B32, operand(module, 4, 0)->elements[0].type);
    EXPECT_EQUAL(PTX_PRED, operand(module, 5, 2)->type);
    EXPECT_EQUAL(PTX_U32, operand(module, 6, 2)->type);
    EXPECT_EQUAL(PTX_OP_BARRIER_CTA_SYNC, at(module, 7)->op);
    EXPECT_EQUAL(PTX_U32, operand(module, 8, 3)->type);
    EXPECT_EQUAL(PTX_B64, operand(module, 9, 3)->type);
    EXPECT_EQUAL(PTX_OPERAND_SINK, operand(module, 10, 0)->elements[0].kind);
    EXPECT(ptx_has(at(module, 11), PTX_MOD_NAN));
    EXPECT_EQUAL(16, at(module, 12)->mnemonic->shape[0]);
    EXPECT_EQUAL(8, at(module, 12)->mnemonic->shape[1]);
    EXPECT_EQUAL(16, at(module, 12)->mnemonic->shape[2]);
    EXPECT_EQUAL(PTX_F16, ptx_type_of(at(module, 12), 1));
    EXPECT(kernel(module)->unsupported == NULL);
    ptx_module_free(module);
}

static void unsupported(void)
{
    ptx_module *module = parse_body("", "frobnicate.sync.b32 %r1, {undefined, [x+1], \"s;\"} /* no */ , {1;2};\n"
                                        "add.nonsense.u32 %r1, %r2, %r3;\nadd.rn.u32 %r1, %r2, %r3;\n");
    EXPECT_EQUAL(PTX_OP_UNSUPPORTED, at(module, 0)->op);
    EXPECT_TEXT("frobnicate.sync.b32", at(module, 0)->mnemonic->spelling);
    EXPECT_TEXT("%r1, {undefined, [x+1], \"s;\"} , {1;2}", operand(module, 0, 0)->text);
    EXPECT_EQUAL(PTX_OP_UNSUPPORTED, at(module, 1)->op);
    EXPECT_EQUAL(PTX_OP_UNSUPPORTED, at(module, 2)->op);
    EXPECT_EQUAL(8, at(module, 1)->line);
    EXPECT(kernel(module)->unsupported == at(module, 0));
    EXPECT_EQUAL(PTX_OP_RET, at(module, 3)->op);
    ptx_module_free(module);

    /* A form that a newer PTX may have and these tables lack is refused at the launch, not at the load. */
    module = parse(".version 99.0\n.visible .entry k() { .reg .u32 %r<3>; add.u32 %r1, %r2, 1, 2; ret; }");
    EXPECT_EQUAL(PTX_OP_UNSUPPORTED, at(module, 0)->op);
    EXPECT_EQUAL(990, module->version);
    ptx_module_free(module);
}

static void dumped(void)
{
    ptx_module *module = parse_body(".global .u32 g[8];\n", "@!%p1 ld.global.v2.f32 {%f1, _}, [g+8];\n"
                                                            "setp.gt.or.f32 %p1|_, %f1, 0f40000000, !%p1;\n");
    char *text = ptx_dump_instruction(module, kernel(module), at(module, 0));
    EXPECT_TEXT("@!%r0 ld.global.v2.f32 {%r1, _}, [g+8];", text);
    free(text);
    text = ptx_dump_instruction(module, kernel(module), at(module, 1));
    EXPECT_TEXT("setp.gt.or.f32 %r0|_, %r1, 0f40000000, !%r0;", text);
    free(text);
    ptx_module_free(module);
}

int main(void)
{
    mnemonics();
    constants();
    addresses();
    special_registers();
    vectors();
    alternatives();
    unsupported();
    dumped();
    return report();
}
