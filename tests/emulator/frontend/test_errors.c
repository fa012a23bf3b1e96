/* What is refused, where the error points, and what it says. */
#include "check.h"

/* In a body; column 0: not looked at. The first line of the body is 7. */
static const struct {
    const char *body;
    unsigned line, column;
    const char *says;
} bodies[] = {
    {"add.s32 %r1, %r2, %r9;", 7, 19, "'%r9' is not declared"},
    {"add.s32 %r1, %r2, %rd1;", 7, 19, "operand 3 of 'add.s32' is .s32, this register is .b64"},
    {"add.s32 %f1, %r2, %r3;", 7, 9, "operand 1 of 'add.s32' is .s32, this register is .f32"},
    {"add.f32 %f1, %f2, 1;", 7, 19, "operand 3 of 'add.f32' is .f32, this constant is not"},
    {"add.s32 %r1, %r2, 1.0;", 7, 19, "this constant is not"},
    {"mov.b64 %rd1, 0f3F800000;", 7, 15, "this constant is not"},
    {"add.f32 %u1, %f2, %f3;", 7, 9, "this register is .u32"},
    {"ld.global.f32 %d1, [%rd1];", 7, 15, "this register is .f64"},
    {"ld.global.b32 %h1, [%rd1];", 7, 15, "this register is .b16"},
    {"shl.b64 %rd1, %rd2, %rd3;", 7, 21, "operand 3 of 'shl.b64' is .u32"},
    {"add.s32 %r1, %r2;", 7, 1, "'add.s32' takes more than 2 operands"},
    {"add.s32 %r1, %r2, %r3, %r4;", 7, 24, "takes no operand like this here"},
    {"add.s32 5, %r2, %r3;", 7, 9, "takes no operand like this here"},
    {"add.s32 %r1, -%r2, %r3;", 7, 14, "takes no operand like this here"},
    {"add.u32 %r1, %tid.x, %r2;", 7, 14, "special register is read by mov or cvt only"},
    {"isspacep.global %p1, %tid.x;", 7, 22, "special register is read by mov or cvt only"},
    {"isspacep.global %p1, g;", 7, 22, "takes no operand like this here"},
    {"mov.u32 _, 1;", 7, 9, "takes no operand like this here"},
    {"ld.global.v2.u32 %r1, [%rd1];", 7, 18, "takes no operand like this here"},
    {"ld.global.v2.u32 {%r1,%r2,%r3}, [%rd1];", 7, 18, "takes no operand like this here"},
    {"mov.u64 %rd1, {%r1, %r2};", 7, 15, "takes no operand like this here"},
    {"mov.u32 %r1, %tid.q;", 7, 18, "components .x .y .z .w"},
    {"mov.u32 %r1, %r2.x;", 7, 17, "no such part"},
    {"ld.shared.u32 %r1, [g];", 7, 20, "'g' is in .global memory"},
    {"ld.u64 %rd1, [a];", 7, 14, "'a' is in .param memory, which 'ld.u64' does not access"},
    {"ld.global.u32 %r1, [%f1];", 7, 21, "an address is a 32 or 64-bit integer register"},
    {"ld.global.u32 %r1, [%rd1+%r2];", 7, 26, "expected a constant"},
    {"@%r1 bra done; done:", 7, 2, "a guard is a predicate register"},
    {"bra nowhere;", 7, 5, "no label 'nowhere'"},
    {"{ here: } bra here;", 7, 15, "no label 'here'"},
    {"here: here:", 7, 7, "'here' is declared twice, first on line 8"},
    {"mov.u32 %r1, here; here:", 7, 14, "'here' is not declared"},
    {".reg .b32 %r1; .reg .f32 %r1;", 7, 26, "'%r1' is declared twice"},
    {".reg .b99 %x;", 7, 6, "unexpected '.b99' in a declaration"},
    {".reg %x;", 7, 0, "has no type"},
    {".local .pred q;", 7, 0, "predicates live in registers"},
    {".shared .u32 q[];", 7, 14, "without a length"},
    {".shared .u32 q = 5;", 7, 0, "only .global and .const"},
    {".local .u32 s[-1];", 7, 15, "cannot have this length"},
    {".local .u32 s[1000000000][1000000000];", 7, 13, "too large"},
    {".local .align 3 .u32 q;", 7, 15, "power of two"},
    {".global .u32 q[2] = {1, 2, 3};", 7, 28, "more initial values"},
    {".global .u32 q[2][2] = {{1, 2, 3}};", 7, 32, "more initial values"},
    {".global .u32 q = nothing;", 7, 18, "'nothing' is not a variable or function"},
    {".global .f32 q = g;", 7, 18, "an address does not fit in .f32"},
    {".global .u32 q = 1.5;", 7, 18, "does not fit in .u32"},
    {"mov.u32 %r1, 1/0;", 7, 15, "division by zero"},
    {"mov.u32 %r1, 1.0+2;", 7, 17, "do not mix"},
    {"mov.u32 %r1, 99999999999999999999;", 7, 14, "more than 64 bits"},
    {"mov.u32 %r1, 0x;", 7, 14, "malformed number"},
    {"mov.u32 %r1, 12abc;", 7, 14, "malformed number"},
    {"mov.f32 %f1, 0f3F80;", 7, 14, "8 hexadecimal digits"},
    {"mov.u32 %r1, 089;", 7, 14, "malformed number"},
    {"mov.u32 %r1, 5 6;", 7, 16, "expected ';' before '6'"},
    {"mov.u32 %r1", 8, 1, "expected ';' before 'ret'"},
    {"mov.u32 %r1, \x80;", 7, 14, "unexpected character"},
    {"mov.u32 %r1, \"text", 7, 0, "string without an end"},
    {"  /* no end", 7, 3, "comment without an end"},
    {".frobnicate 5;", 7, 1, "unknown directive '.frobnicate'"},
    {"call nothing;", 7, 6, "'nothing' is not declared"},
    {"call f, (%r1, %r2);", 7, 1, "passes 2 arguments, the function has 1"},
    {"call f, (%rd1);", 7, 1, "does not fit '.b32 n'"},
    {"call (%r1), f, (%r1);", 7, 1, "passes 1 results, the function has 0"},
    {"call %rd1, (%r1);", 7, 1, "names a .callprototype or .calltargets"},
    {"call %rd1, (%r1), g;", 7, 19, "not a .calltargets list"},
    {"call %f1;", 7, 1, "takes the address from an integer register"},
    {"brx.idx %r1, g;", 7, 14, "takes no operand like this here"},
    {"mov.u32 %r1, g;\nmov.b32 %r1, %rd1;", 8, 14, "this register is .b64"},
};

static void in_bodies(void)
{
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        ptx_error error;
        ptx_module *module =
            parse_body_or_not(".global .u32 g; .func f(.param .b32 n) { ret; }\n", bodies[i].body, &error);
        const unsigned line = bodies[i].line + 1; /* for the line put before the kernel */
        if (module != NULL || error.line != line || (bodies[i].column != 0 && error.column != bodies[i].column) ||
            strstr(error.message, bodies[i].says) == NULL) {
            failures++;
            printf("%s\n  -> %s%u:%u: %s\n%s\n  expected %u:%u: %s\n", bodies[i].body,
                   module != NULL ? "accepted " : "", error.line, error.column, error.message, error.excerpt, line,
                   bodies[i].column, bodies[i].says);
        }
        ptx_module_free(module);
    }
}

static const struct {
    const char *text;
    unsigned line, column;
    const char *says;
} modules[] = {
    {"", 1, 1, "begins with .version"},
    {"hello", 1, 1, "begins with .version"},
    {".version eight", 1, 10, ".version takes a number"},
    {".version 8", 1, 10, ".version takes a number"},
    {".version 8.0\n", 2, 1, "no .target"},
    {".version 8.0\n.target gpu", 2, 9, "unknown target 'gpu'"},
    {".version 8.0\n.target sm_90x", 2, 9, "unknown target 'sm_90x'"},
    {".version 8.0\n.target sm_90\n.address_size 16", 3, 15, "32 or 64"},
    {".version 8.0\n.target sm_90\n.entry k() { ret;", 3, 12, "the body of 'k' has no end"},
    {".version 8.0\n.target sm_90\n.entry k() { ret; } }", 3, 21, "expected a directive"},
    {".version 8.0\n.target sm_90\n.entry k() { ret; } .entry k() { ret; }", 3, 28, "has a body already"},
    {".version 8.0\n.target sm_90\n.func f(); .func f(.param .b32 n);", 3, 18, "was declared otherwise on line 3"},
    {".version 8.0\n.target sm_90\n.global .u32 x; .global .u32 x;", 3, 30, "'x' is declared twice"},
    {".version 8.0\n.target sm_90\n.global .u32 f; .func f();", 3, 23, "'f' is declared twice"},
    {".version 8.0\n.target sm_90\n.reg .u32 x;", 3, 0, "registers belong in functions"},
    {".version 8.0\n.target sm_90\n.param .u32 x;", 3, 13, "belong in functions"},
    {".version 8.0\n.target sm_90\n.entry k() .maxntid { ret; }", 3, 21, "expected a number"},
    {".version 8.0\n.target sm_90\n.entry k() .nonsense { ret; }", 3, 12, "unknown directive '.nonsense'"},
    {".version 8.0\n.target sm_90\n.alias a, b;", 3, 8, "not a function declared before"},
    {".version 8.0\n.target sm_90\n.section .debug_str { a: .b8 1", 3, 0, "expected"},
    {".version 8.0\n.target sm_90\n.entry k(.global .u32 x) { ret; }", 3, 10, "expected .param or .reg"},
};

static void in_modules(void)
{
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        ptx_error error;
        ptx_module *module = parse_bytes(modules[i].text, strlen(modules[i].text), &error);
        if (module != NULL || error.line != modules[i].line ||
            (modules[i].column != 0 && error.column != modules[i].column) ||
            strstr(error.message, modules[i].says) == NULL) {
            failures++;
            printf("%s\n  -> %s%u:%u: %s\n  expected %u:%u: %s\n", modules[i].text, module != NULL ? "accepted " : "",
                   error.line, error.column, error.message, modules[i].line, modules[i].column, modules[i].says);
        }
        ptx_module_free(module);
    }
}

static void excerpt(void)
{
    ptx_error error;
    ptx_module *module = parse_body_or_not("", "\tadd.s32 %r1, %r2, %r9; // here", &error);
    EXPECT(module == NULL);
    EXPECT_TEXT(" add.s32 %r1, %r2, %r9; // here\n                   ^", error.excerpt);
    char longer[600];
    memset(longer, ' ', sizeof longer);
    memcpy(longer + 400, "mov.u32 %r1, %q; ", 18);
    module = parse_body_or_not("", longer, &error);
    EXPECT(module == NULL);
    EXPECT_EQUAL(414, error.column);
    const char *line_end = strchr(error.excerpt, '\n');
    EXPECT(line_end != NULL && error.excerpt[strlen(line_end) - 2] == '%'); /* the caret stands under %q */
    ptx_module_free(module);
}

/* Nothing that repeats without end: braces, brackets, expressions. */
static void nesting(void)
{
    static const char *const openers[] = {"mov.u32 %r1, ", "{", "[", ".global .u32 q[1] = "};
    static const char repeated[] = {'(', '{', '[', '{'};
    for (size_t i = 0; i < 4; i++) {
        char text[5000];
        const size_t length = strlen(openers[i]);
        memcpy(text, openers[i], length);
        memset(text + length, repeated[i], sizeof text - length - 1);
        text[sizeof text - 1] = '\0';
        ptx_error error;
        ptx_module *module = parse_body_or_not("", text, &error);
        EXPECT(module == NULL && error.line == 7);
        ptx_module_free(module);
    }
    char minus[5000];
    memcpy(minus, "mov.u32 %r1, ", 14);
    memset(minus + 13, '~', sizeof minus - 14);
    minus[sizeof minus - 1] = '\0';
    ptx_error error;
    ptx_module *module = parse_body_or_not("", minus, &error);
    EXPECT(module == NULL && strstr(error.message, "nested more than") != NULL);
    ptx_module_free(module);
}

int main(void)
{
    in_bodies();
    in_modules();
    excerpt();
    nesting();
    return report();
}
