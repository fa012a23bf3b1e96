/* Basic blocks, their order, post-dominators. */
#include "check.h"

static const ptx_block *block_of(const ptx_function *function, uint32_t instruction)
{
    return &function->blocks[function->instructions[instruction].block];
}

static void branch_and_join(void)
{
    ptx_module *module = parse_body("", "@%p1 bra other;\n"           /* 0 */
                                        "mov.u32 %r1, 1; bra join;\n" /* 1 2 */
                                        "other: mov.u32 %r1, 2;\n"    /* 3 */
                                        "join: mov.u32 %r2, %r1;\n"); /* 4, ret 5 */
    const ptx_function *function = kernel(module);
    EXPECT_EQUAL(4, function->block_count);
    const ptx_block *head = block_of(function, 0), *join = block_of(function, 4);
    EXPECT_EQUAL(0, head->order);
    EXPECT_EQUAL(2, head->successor_count);
    EXPECT_EQUAL(3, join->order);
    EXPECT(block_of(function, 1)->order != block_of(function, 3)->order);
    EXPECT_EQUAL(join - function->blocks, head->post_dominator);
    EXPECT_EQUAL(join - function->blocks, block_of(function, 1)->post_dominator);
    EXPECT_EQUAL(PTX_NO_BLOCK, join->post_dominator);
    EXPECT_EQUAL(4, join->first);
    EXPECT_EQUAL(6, join->end);
    EXPECT(!head->loop_head && head->reachable);
    ptx_module_free(module);
}

/* Whichever way the branch is written, the body of a loop comes before what follows the loop. */
static void loops(void)
{
    static const char *const bodies[] = {
        "head: setp.eq.s32 %p1, %r1, 0; @%p1 bra after; mov.u32 %r1, 2; bra head; after: mov.u32 %r2, 1;",
        "head: setp.eq.s32 %p1, %r1, 0; @!%p1 bra body; bra after; after: mov.u32 %r2, 1; bra out;"
        " body: mov.u32 %r1, 2; bra head; out: mov.u32 %r3, 3;",
        "bra head; after: mov.u32 %r2, 1; bra out; head: setp.eq.s32 %p1, %r1, 0; @%p1 bra after;"
        " mov.u32 %r1, 2; bra head; out: mov.u32 %r3, 3;",
    };
    for (size_t i = 0; i < 3; i++) {
        ptx_module *module = parse_body("", bodies[i]);
        const ptx_function *function = kernel(module);
        const ptx_block *head = NULL, *body = NULL, *after = NULL;
        for (uint32_t j = 0; j < function->instruction_count; j++) {
            const ptx_instruction *instruction = &function->instructions[j];
            if (instruction->op == PTX_OP_SETP)
                head = block_of(function, j);
            else if (instruction->op == PTX_OP_MOV && instruction->operands[1].bits == 2)
                body = block_of(function, j);
            else if (instruction->op == PTX_OP_MOV && instruction->operands[1].bits == 1)
                after = block_of(function, j);
        }
        EXPECT(head != NULL && body != NULL && after != NULL);
        EXPECT(head->order < body->order && body->order < after->order);
        EXPECT(head->loop_head && !body->loop_head && !after->loop_head);
        EXPECT_EQUAL(head - function->blocks, body->post_dominator);
        ptx_module_free(module);
    }
}

static void unreachable_and_endless(void)
{
    ptx_module *module = parse_body("", "bra live;\n"                                                /* 0 */
                                        "dead: mov.u32 %r1, 1; bra dead;\n"                          /* 1 2 */
                                        "live: @%p1 exit;\n"                                         /* 3 */
                                        "@%p2 bra out;\n"                                            /* 4 */
                                        "spin: bra spin;\n"                                          /* 5 */
                                        "out: t: .branchtargets live, live, out2; brx.idx %r1, t;\n" /* 6 */
                                        "out2: mov.u32 %r1, 3;\n");                                  /* 7, ret 8 */
    const ptx_function *function = kernel(module);
    EXPECT(!block_of(function, 1)->reachable);
    EXPECT_EQUAL(function->block_count - 1, block_of(function, 1)->order);
    EXPECT_EQUAL(2, block_of(function, 6)->successor_count);
    EXPECT(block_of(function, 3)->loop_head && block_of(function, 5)->loop_head);
    EXPECT_EQUAL(PTX_NO_BLOCK, block_of(function, 5)->post_dominator);
    EXPECT_EQUAL(PTX_NO_BLOCK, block_of(function, 3)->post_dominator); /* it may exit here */
    EXPECT_EQUAL(1, block_of(function, 5)->successor_count);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < function->block_count; i++)
        seen |= UINT64_C(1) << function->blocks[i].order;
    EXPECT_EQUAL((UINT64_C(1) << function->block_count) - 1, seen); /* each number once */
    ptx_module_free(module);
}

static void edges_of_the_text(void)
{
    ptx_module *module = parse(".func k() { }\n.func f() { .reg .pred p; @p bra end; end: }\n");
    const ptx_function *empty = kernel(module), *falls = ptx_find_function(module, "f");
    EXPECT_EQUAL(0, empty->block_count);
    EXPECT_EQUAL(1, falls->block_count);
    EXPECT_EQUAL(1, falls->instructions[0].operands[0].bits); /* past the last instruction */
    EXPECT_EQUAL(0, falls->blocks[0].successor_count);
    ptx_module_free(module);
}

/* Order is linear work: a chain of many loops, and one branch to all of them. */
static void large(void)
{
    enum { LOOPS = 20000 };
    char *text = malloc(LOOPS * 64 + 4096);
    if (text == NULL)
        exit(2);
    size_t length = (size_t)sprintf(text, "%s.entry k() { .reg .u32 i; .reg .pred p; t: .branchtargets L0", preamble);
    for (int i = 1; i < LOOPS; i++)
        length += (size_t)sprintf(text + length, ",L%d", i);
    length += (size_t)sprintf(text + length, "; brx.idx i, t;\n");
    for (int i = 0; i < LOOPS; i++)
        length += (size_t)sprintf(text + length, "L%d: @p bra L%d;\n", i, i / 2);
    length += (size_t)sprintf(text + length, "ret; }\n");
    ptx_error error;
    ptx_module *module = parse_bytes(text, length, &error);
    EXPECT(module != NULL);
    EXPECT_EQUAL(LOOPS + 2, kernel(module)->block_count);
    EXPECT_EQUAL(LOOPS, kernel(module)->blocks[0].successor_count);
    ptx_module_free(module);
    free(text);
}

int main(void)
{
    branch_and_join();
    loops();
    unreachable_and_endless();
    edges_of_the_text();
    large();
    return report();
}
