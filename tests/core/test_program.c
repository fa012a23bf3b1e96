/* Compiling with NVRTC. CUDA_CORE_TEST_NVRTC names the library; without one, or one that the loader finds, there is
 * nothing to test and the program says so (status 77). */
#include "check.h"

#include <locale.h>
#include <pthread.h>

static cc_error error;

static const char source[] =
    "template <typename T> __global__ void scale(T *x, T a, int n)\n"
    "{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        x[i] *= a;\n}\n"
    "extern \"C\" __global__ void plain(double d, char c) {}\n";

static const char *const options[] = {"-arch=sm_80"};
static const char *const expressions[] = {"scale<float>", "scale<double>"};

static cc_compile_request request_of(cc_target target)
{
    return (cc_compile_request){.source = source,
                                .name = "test.cu",
                                .options = options,
                                .option_count = 1,
                                .name_expressions = expressions,
                                .name_expression_count = 2,
                                .target = target};
}

static void test_ptx(void)
{
    cc_compiled compiled;
    cc_compile_request request = request_of(CC_TARGET_PTX);
    MUST(cc_compile(&request, &compiled, &error));
    CHECK_INT(strlen(compiled.code), compiled.size);
    CHECK_TEXT(compiled.code, ".target sm_80");
    CHECK_TEXT(compiled.code, ".entry plain");
    CHECK(compiled.log == NULL);
    CHECK_INT(compiled.lowered_count, 2);
    CHECK(strcmp(compiled.lowered_names[0], "_Z5scaleIfEvPT_S0_i") == 0);
    CHECK(strcmp(compiled.lowered_names[1], "_Z5scaleIdEvPT_S0_i") == 0);
    cc_compiled_free(&compiled);
    CHECK(compiled.code == NULL);
}

static void test_cubin_carries_its_ptx(void)
{
    cc_compiled compiled;
    const char *ptx;
    size_t ptx_size;
    cc_compile_request request = request_of(CC_TARGET_CUBIN);
    MUST(cc_compile(&request, &compiled, &error));
    CHECK(memcmp(compiled.code, "\177ELF", 4) == 0);
    CHECK(cc_cubin_ptx(compiled.code, compiled.size, &ptx, &ptx_size));
    char *text = strndup(ptx, ptx_size);
    CHECK_INT(strlen(text), ptx_size);
    CHECK_TEXT(text, ".target sm_80");
    CHECK_TEXT(text, "_Z5scaleIdEvPT_S0_i");
    free(text);
    cc_compiled_free(&compiled);
}

static void test_ltoir(void)
{
    cc_compiled compiled;
    cc_compile_request request = request_of(CC_TARGET_LTOIR);
    MUST(cc_compile(&request, &compiled, &error));
    CHECK(compiled.size > 100);
    cc_compiled_free(&compiled);
}

static void test_compile_error(void)
{
    cc_compiled compiled;
    cc_compile_request request = request_of(CC_TARGET_PTX);
    request.name_expression_count = 0;
    request.source = "#warning early\n__global__ void k() {\n    nonsense = 1;\n}\n";
    CHECK_INT(cc_compile(&request, &compiled, &error), -1);
    CHECK_INT(error.domain, CC_DOMAIN_NVRTC);
    CHECK_INT(error.code, 6);
    CHECK(strcmp(error.name, "NVRTC_ERROR_COMPILATION") == 0);
    CHECK(strcmp(error.function, "nvrtcCompileProgram") == 0);
    CHECK(strncmp(error.text, "test.cu(3): error: identifier \"nonsense\" is undefined", 53) == 0);
    CHECK_TEXT(error.log, "early"); /* the warning before it is in the log, not in the text */
    CHECK(strstr(error.text, "early") == NULL);
    CHECK(compiled.code == NULL);
    cc_error_clear(&error);
}

static void test_long_log(void)
{
    char text[20000] = "__global__ void k() {\n";
    cc_compiled compiled;
    cc_compile_request request = request_of(CC_TARGET_PTX);
    for (int i = 0; i < 90; i++)
        sprintf(text + strlen(text), "    undefined_name_%d = 1;\n", i);
    strcat(text, "}\n");
    request.name_expression_count = 0;
    request.source = text;
    CHECK_INT(cc_compile(&request, &compiled, &error), -1);
    CHECK_TEXT(error.text, "undefined_name_0");
    CHECK(strstr(error.text, "undefined_name_89") == NULL);
    CHECK_TEXT(error.text, "(the log goes on)");
    CHECK_TEXT(error.log, "undefined_name_89");
    cc_error_clear(&error);
}

static void test_warning_is_kept(void)
{
    cc_compiled compiled;
    cc_compile_request request = request_of(CC_TARGET_PTX);
    request.name_expression_count = 0;
    request.source = "__global__ void k() {\n    int unused;\n}\n";
    MUST(cc_compile(&request, &compiled, &error));
    CHECK_TEXT(compiled.log, "unused");
    cc_compiled_free(&compiled);
}

static void test_bad_requests(void)
{
    static const char *const virtual_only[] = {"-arch=compute_80"}, *const wrong[] = {"--no-such-option"};
    static const char *const unknown[] = {"missing<float>"};
    cc_compiled compiled;
    cc_compile_request request = request_of(CC_TARGET_CUBIN);
    request.options = virtual_only;
    REFUSED(cc_compile(&request, &compiled, &error), CC_INVALID, "-arch=sm_XX");
    request.options = wrong;
    CHECK_INT(cc_compile(&request, &compiled, &error), -1);
    CHECK(strcmp(error.name, "NVRTC_ERROR_INVALID_OPTION") == 0);
    CHECK_TEXT(error.text, "--no-such-option");
    cc_error_clear(&error);
    request = request_of(CC_TARGET_PTX);
    request.name_expressions = unknown;
    request.name_expression_count = 1;
    CHECK_INT(cc_compile(&request, &compiled, &error), -1);
    CHECK_INT(error.domain, CC_DOMAIN_NVRTC);
    CHECK_TEXT(error.text, "missing");
    cc_error_clear(&error);
}

static void test_headers(void)
{
    static const char *const names[] = {"extra.h"}, *const sources[] = {"#define VALUE 42\n"};
    cc_compiled compiled;
    cc_compile_request request = request_of(CC_TARGET_PTX);
    request.name_expression_count = 0;
    request.source = "#include \"extra.h\"\n__global__ void k(int *x) { *x = VALUE; }\n";
    request.header_names = names;
    request.header_sources = sources;
    request.header_count = 1;
    MUST(cc_compile(&request, &compiled, &error));
    CHECK_TEXT(compiled.code, "42");
    cc_compiled_free(&compiled);
}

static void *compile_some(void *result)
{
    cc_error own;
    for (int i = 0; i < 3; i++) {
        cc_compiled compiled;
        cc_compile_request request = request_of(CC_TARGET_CUBIN);
        if (cc_compile(&request, &compiled, &own))
            *(int *)result = 1;
        else
            cc_compiled_free(&compiled);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[4];
    int results[4] = {0};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, compile_some, &results[i]);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(results[i], 0);
    }
}

static void test_locale_is_left_alone(void)
{
    const char *before = setlocale(LC_ALL, "C.UTF-8");
    CHECK(before != NULL);
    cc_compiled compiled;
    cc_compile_request request = request_of(CC_TARGET_PTX);
    MUST(cc_compile(&request, &compiled, &error));
    CHECK(strcmp(setlocale(LC_ALL, NULL), "C.UTF-8") == 0);
    cc_compiled_free(&compiled);
}

static const check_test tests[] = {
    TEST(test_ptx),      TEST(test_cubin_carries_its_ptx), TEST(test_ltoir),        TEST(test_compile_error),
    TEST(test_long_log), TEST(test_warning_is_kept),       TEST(test_bad_requests), TEST(test_headers),
    TEST(test_threads),  TEST(test_locale_is_left_alone)};

int main(void)
{
    int major, minor;
    const char *path = getenv("CUDA_CORE_TEST_NVRTC");
    if (cc_nvrtc_open("/nowhere/libnvrtc.so", &error) != -1 || error.code != CC_COMPILER_MISSING ||
        !strstr(error.text, "/nowhere/libnvrtc.so") || !strstr(error.text, "pip install")) {
        printf("a missing NVRTC is reported wrongly\n");
        return 1;
    }
    if (cc_nvrtc_open(path && *path ? path : NULL, &error)) { /* a failure does not stand: another path may do */
        printf("%s\n", error.text);
        return path && *path ? 1 : 77;
    }
    MUST(cc_nvrtc_version(&major, &minor, &error));
    printf("NVRTC %d.%d\n", major, minor);
    return check_run(tests, sizeof tests / sizeof tests[0]);
}
