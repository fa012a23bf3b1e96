/* The engine from C: what modules and kernels say of themselves, what is refused, several launches at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator.h"

static const em_limits LIMITS = {.ordinal = 0, .cc_major = 8, .cc_minor = 0, .multiprocessors = 16};
static int passed, failed;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            passed++;                                                                                                  \
        } else {                                                                                                       \
            failed++;                                                                                                  \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                     \
        }                                                                                                              \
    } while (0)

#define HEAD ".version 7.8\n.target sm_80\n.address_size 64\n"

static em_detail detail;

static em_module *load(const char *text)
{
    em_module *module = NULL;
    detail = (em_detail){0};
    return em_module_load(text, strlen(text), &LIMITS, &module, &detail) == 0 ? module : NULL;
}

static int launch(em_module *module, const char *name, uint32_t grid, uint32_t block, const void *parameters)
{
    const em_launch launched = {.kernel = em_module_kernel(module, name),
                                .grid = {grid, 1, 1},
                                .block = {block, 1, 1},
                                .parameters = parameters,
                                .limits = LIMITS,
                                .printf_limit = 1 << 20};
    detail = (em_detail){0};
    return em_run(&launched, &detail);
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static const char DESCRIBED[] = HEAD ".const .align 4 .b8 table[40];\n"
                                     ".global .align 8 .u64 counter = 7;\n"
                                     ".global .align 4 .u32 many[4] = {1, 2, 3};\n"
                                     ".visible .entry one(.param .u32 n, .param .u64 p, .param .align 8 .b8 s[20])\n"
                                     ".reqntid 8, 4\n"
                                     "{\n"
                                     "    .shared .align 8 .b8 a[12];\n"
                                     "    .shared .align 8 .b8 b[8];\n"
                                     "    .local .align 16 .b8 l[40];\n"
                                     "    .reg .u32 r;\n"
                                     "    ld.shared.u32 r, [a];\n"
                                     "    ld.shared.u32 r, [b];\n"
                                     "    st.local.u32 [l], r;\n"
                                     "    ret;\n"
                                     "}\n"
                                     ".visible .entry two() .maxntid 256 { ret; }\n"
                                     ".visible .entry three() { ret; }\n";

static void modules(void)
{
    em_module *module = load(DESCRIBED);
    CHECK(module != NULL);
    CHECK(em_module_kernel_count(module) == 3);
    CHECK(em_module_kernel_at(module, 3) == NULL);
    CHECK(em_module_kernel(module, "four") == NULL);
    em_kernel *kernel = em_module_kernel(module, "one");
    const em_kernel_info *info = em_kernel_describe(kernel);
    CHECK(strcmp(info->name, "one") == 0 && info->module == module);
    CHECK(info->parameter_count == 3);
    CHECK(info->parameters[0].offset == 0 && info->parameters[0].size == 4);
    CHECK(info->parameters[1].offset == 8 && info->parameters[1].size == 8);
    CHECK(info->parameters[2].offset == 16 && info->parameters[2].size == 20);
    CHECK(info->parameter_bytes == 36);
    CHECK(info->static_shared_bytes == 24);
    CHECK(info->local_bytes >= 40);
    CHECK(info->constant_bytes == 40);
    CHECK(info->max_threads == 32);
    CHECK(info->required_block[0] == 8 && info->required_block[1] == 4 && info->required_block[2] == 1);
    CHECK(info->ptx_version == 78 && info->target == 80);
    CHECK(em_kernel_describe(em_module_kernel(module, "two"))->max_threads == 256);
    CHECK(em_kernel_describe(em_module_kernel(module, "three"))->max_threads == 1024);
    uint64_t address = 0, size = 0;
    CHECK(em_module_variable(module, "counter", &address, &size) && size == 8);
    CHECK(*(uint64_t *)(uintptr_t)address == 7);
    CHECK(em_module_variable(module, "many", &address, &size) && size == 16);
    CHECK(((uint32_t *)(uintptr_t)address)[2] == 3 && ((uint32_t *)(uintptr_t)address)[3] == 0);
    CHECK(em_module_variable(module, "table", &address, &size) && size == 40);
    CHECK(em_heap_find(address)->kind == EM_CONSTANT);
    CHECK(!em_module_variable(module, "a", &address, &size));
    CHECK(!em_module_variable(module, "none", &address, &size));
    em_module_unload(module);
    CHECK(!em_heap_find(address) || !em_heap_find(address)->live);
}

/* What no GPU has is refused by the kernel's line and name, also where 32 bits would not hold it. */
static const struct {
    const char *text, *says;
} too_large[] = {
    {HEAD ".visible .entry k() { .local .b8 a[524289]; ret; }", "4:1: kernel 'k' uses 524304 bytes of local memory"},
    {HEAD ".visible .entry k() { .local .b8 a[4294967300]; ret; }", "uses 4294967312 bytes of local memory in 'k'"},
    {HEAD ".visible .entry k() { .local .align 2147483648 .b8 a[2147483649]; ret; }", "uses 4294967296 bytes of local"},
    {HEAD ".func f() { .local .b8 a[262160]; ret; }\n"
          ".visible .entry k() { .local .b8 a[262144]; call f; ret; }",
     "5:1: kernel 'k' uses 524304 bytes of local memory in 'k' and what it calls; a thread has 524288"},
    {HEAD ".visible .entry k() { .shared .b8 a[49153]; ret; }", "uses 49153 bytes of shared memory with 'a'"},
    {HEAD ".visible .entry k() { .shared .b8 a[4294967300]; ret; }", "uses 4294967300 bytes of shared memory"},
    {HEAD ".visible .entry k() { .shared .b8 a[1]; .shared .align 2147483648 .b8 b[2147483648]; ret; }",
     "uses 4294967296 bytes of shared memory with 'b'; a block has 49152"},
    {HEAD ".extern .shared .align 2147483648 .b8 d[];\n"
          ".visible .entry k() { .shared .b8 a[1]; .reg .b32 r; ld.shared.b32 r, [d]; ld.shared.b32 r, [a]; ret; }",
     "uses 2147483648 bytes of shared memory with 'd'"},
    {HEAD ".visible .entry k(.param .b8 a[32765]) { ret; }", "takes 32765 bytes of parameters; 32764 are most"},
    {HEAD ".visible .entry k(.param .b8 a[4294967300]) { ret; }", "4:1: kernel 'k' takes 4294967300 bytes of param"},
    {HEAD ".const .b8 a[65536];\n.const .b8 b[1];\n", "5:1: with 'b' the .const variables take 65537 bytes"},
};

static void larger_than_a_gpu(void)
{
    for (size_t i = 0; i < sizeof too_large / sizeof *too_large; i++) {
        em_module *module = load(too_large[i].text);
        CHECK(module == NULL && strstr(detail.text, too_large[i].says) != NULL);
        if (module != NULL || strstr(detail.text, too_large[i].says) == NULL)
            printf("    %s: %s\n", too_large[i].says, detail.text);
        em_module_unload(module);
    }
    em_module *module = load(HEAD ".const .b8 c[65536];\n"
                                  ".visible .entry k(.param .b8 p[32764]) { .local .b8 l[524288]; .shared .b8 s[49152]; "
                                  "ret; }");
    CHECK(module != NULL);
    if (module != NULL) {
        const em_kernel_info *info = em_kernel_describe(em_module_kernel(module, "k"));
        CHECK(info->local_bytes == 524288 && info->static_shared_bytes == 49152 && info->parameter_bytes == 32764);
    }
    em_module_unload(module);
    /* Where the depth of calls is unknown, the kernel has its own frame and the allowance. */
    module = load(HEAD ".func f() { call f; ret; }\n.visible .entry k() { .local .b8 a[131072]; call f; ret; }\n");
    CHECK(module != NULL && em_kernel_describe(em_module_kernel(module, "k"))->local_bytes == 131072 + (64 << 10));
    em_module_unload(module);
}

/* So many functions, each calling the one before, that following them by recursion would end the host's stack. */
static void long_chain_of_calls(void)
{
    enum { FUNCTIONS = 200000, LINE = 64 };
    char *text = malloc((size_t)FUNCTIONS * LINE + sizeof HEAD + LINE);
    if (text == NULL)
        exit(2);
    int at = sprintf(text, "%s.func f0() { ret; }\n", HEAD);
    for (int i = 1; i < FUNCTIONS; i++)
        at += sprintf(text + at, ".func f%d() { call f%d; ret; }\n", i, i - 1);
    sprintf(text + at, ".visible .entry k() { call f%d; ret; }\n", FUNCTIONS - 1);
    em_module *module = load(text);
    CHECK(module != NULL);
    CHECK(module != NULL && em_kernel_describe(em_module_kernel(module, "k"))->local_bytes == 64 << 10);
    em_module_unload(module);
    free(text);
}

static void syntax(void)
{
    CHECK(load(HEAD ".visible .entry broken() { add.u32 r0, r1; }\n") == NULL);
    CHECK(detail.code == 218);
    CHECK(strncmp(detail.text, "4:", 2) == 0);
    CHECK(load(HEAD ".extern .global .u32 elsewhere;\n.visible .entry k() { .reg .u32 r; ld.global.u32 r, [elsewhere]; "
                    "ret; }\n") == NULL);
    CHECK(detail.code == 218 && strstr(detail.text, "elsewhere") != NULL);
}

/* ---- what is refused
 * -------------------------------------------------------------------------------------------------- */

static void refusals(void)
{
    em_module *module = load(HEAD ".func inner() { wgmma.fence.sync.aligned; ret; }\n"
                                  ".func middle() { call inner; ret; }\n"
                                  ".visible .entry reaches() { .reg .u32 r; mov.u32 r, 1; call middle; ret; }\n"
                                  ".visible .entry does_not() { ret; }\n"
                                  ".extern .func outside();\n"
                                  ".visible .entry unresolved() { call outside; ret; }\n");
    CHECK(module != NULL);
    CHECK(em_kernel_check(em_module_kernel(module, "does_not"), &detail) == 0);
    for (int twice = 0; twice < 2; twice++) {
        detail = (em_detail){0};
        CHECK(em_kernel_check(em_module_kernel(module, "reaches"), &detail) == 801);
        CHECK(strstr(detail.text, "wgmma.fence") != NULL);
        CHECK(strstr(detail.text, "line 4") != NULL);
        CHECK(strstr(detail.text, "'inner'") != NULL && strstr(detail.text, "'reaches' can call") != NULL);
    }
    CHECK(launch(module, "reaches", 1, 1, NULL) == 801);
    CHECK(launch(module, "does_not", 1, 1, NULL) == 0);
    CHECK(launch(module, "does_not", 1, 1025, NULL) == 1);
    CHECK(em_kernel_check(em_module_kernel(module, "unresolved"), &detail) == 801);
    CHECK(strstr(detail.text, "outside") != NULL);
    em_module_unload(module);
}

/* ---- several launches at once
 * -------------------------------------------------------------------------------------------- */

static const char COUNTING[] = HEAD ".visible .entry count(.param .u64 p, .param .u32 rounds)\n"
                                    "{\n"
                                    "    .reg .pred q;\n"
                                    "    .reg .u32 r<4>;\n"
                                    "    .reg .u64 a<4>;\n"
                                    "    ld.param.u64 a0, [p];\n"
                                    "    ld.param.u32 r0, [rounds];\n"
                                    "    mov.u32 r1, %ctaid.x;\n"
                                    "    mov.u32 r2, %tid.x;\n"
                                    "    mov.u32 r3, %ntid.x;\n"
                                    "    mad.lo.u32 r1, r1, r3, r2;\n"
                                    "    mul.wide.u32 a1, r1, 4;\n"
                                    "    add.u64 a2, a0, a1;\n"
                                    "    mov.u32 r2, 0;\n"
                                    "LOOP:\n"
                                    "    add.u32 r2, r2, 1;\n"
                                    "    setp.lt.u32 q, r2, r0;\n"
                                    "    @q bra LOOP;\n"
                                    "    st.global.u32 [a2], r2;\n"
                                    "    ret;\n"
                                    "}\n"
                                    ".visible .entry wait(.param .u64 flag, .param .u64 seen)\n"
                                    "{\n"
                                    "    .reg .pred q;\n"
                                    "    .reg .u32 r;\n"
                                    "    .reg .u64 a<2>;\n"
                                    "    ld.param.u64 a0, [flag];\n"
                                    "    ld.param.u64 a1, [seen];\n"
                                    "LOOP:\n"
                                    "    ld.volatile.global.u32 r, [a0];\n"
                                    "    setp.eq.u32 q, r, 0;\n"
                                    "    @q bra LOOP;\n"
                                    "    st.global.u32 [a1], r;\n"
                                    "    ret;\n"
                                    "}\n"
                                    ".visible .entry give(.param .u64 flag)\n"
                                    "{\n"
                                    "    .reg .u64 a;\n"
                                    "    ld.param.u64 a, [flag];\n"
                                    "    st.volatile.global.u32 [a], 99;\n"
                                    "    ret;\n"
                                    "}\n";

static em_module *counting;

static void *count_in_thread(void *argument)
{
    enum { BLOCKS = 50, THREADS = 96 };
    const uint32_t rounds = 1 + (uint32_t)(uintptr_t)argument;
    em_range *range = em_heap_allocate(sizeof(uint32_t) * BLOCKS * THREADS, 256, EM_DEVICE, 0);
    const struct {
        uint64_t p;
        uint32_t rounds;
    } parameters = {range->base, rounds};
    const em_launch launched = {.kernel = em_module_kernel(counting, "count"),
                                .grid = {BLOCKS, 1, 1},
                                .block = {THREADS, 1, 1},
                                .parameters = &parameters,
                                .limits = LIMITS};
    em_detail why;
    uintptr_t wrong = 0;
    for (int repeat = 0; repeat < 20; repeat++) {
        memset((void *)(uintptr_t)range->base, 0, range->size);
        wrong += em_run(&launched, &why) != 0;
        for (uint32_t i = 0; i < BLOCKS * THREADS; i++)
            wrong += ((uint32_t *)(uintptr_t)range->base)[i] != rounds;
    }
    em_heap_release(range);
    return (void *)wrong;
}

static void at_once(void)
{
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    uintptr_t wrong = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, count_in_thread, (void *)(i * 7)) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (uintptr_t)result;
    }
    CHECK(wrong == 0);
}

static em_range *flag, *seen;

static void *wait_in_thread(__attribute__((unused)) void *argument)
{
    const uint64_t parameters[] = {flag->base, seen->base};
    const em_launch launched = {.kernel = em_module_kernel(counting, "wait"),
                                .grid = {8, 1, 1},
                                .block = {32, 1, 1},
                                .parameters = parameters,
                                .limits = LIMITS};
    em_detail why;
    return em_run(&launched, &why) == 0 ? counting : NULL;
}

/* A kernel that all workers are busy waiting in is helped by another launch. */
static void one_waits_for_another(void)
{
    flag = em_heap_allocate(4, 256, EM_DEVICE, 0);
    seen = em_heap_allocate(4, 256, EM_DEVICE, 0);
    memset((void *)(uintptr_t)flag->base, 0, 4);
    pthread_t thread;
    pthread_create(&thread, NULL, wait_in_thread, NULL);
    usleep(20000);
    const uint64_t parameters[] = {flag->base};
    CHECK(launch(counting, "give", 1, 1, parameters) == 0);
    void *result;
    pthread_join(thread, &result);
    CHECK(result != NULL);
    CHECK(*(uint32_t *)(uintptr_t)seen->base == 99);
    em_heap_release(flag);
    em_heap_release(seen);
}

static void stopping_and_forking(void)
{
    em_workers_stop();
    CHECK(count_in_thread((void *)(uintptr_t)3) == NULL);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        _exit(count_in_thread((void *)(uintptr_t)5) == NULL ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(count_in_thread((void *)(uintptr_t)3) == NULL);
}

int main(void)
{
    modules();
    syntax();
    larger_than_a_gpu();
    long_chain_of_calls();
    refusals();
    counting = load(COUNTING);
    CHECK(counting != NULL);
    at_once();
    one_waits_for_another();
    stopping_and_forking();
    em_module_unload(counting);
    em_workers_stop();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
