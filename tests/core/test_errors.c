/* What a cc_error says. */
#include "check.h"
#include "fake_driver.h"

static void test_core_errors(void)
{
    cc_error error;
    CHECK_INT(cc__fail(&error, CC_LIMIT, "%d is more than %d", 3, 2), -1);
    CHECK_INT(error.domain, CC_DOMAIN_CORE);
    CHECK_INT(error.code, CC_LIMIT);
    CHECK(strcmp(error.name, "CC_LIMIT") == 0);
    CHECK(strcmp(error.text, "3 is more than 2") == 0);
    CHECK(error.function == NULL);
    CHECK(error.log == NULL);
    cc__fail(&error, CC_NO_HOST_MEMORY, NULL);
    CHECK(strcmp(error.text, "the host is out of memory") == 0);
    CHECK_INT(cc__fail(NULL, CC_LIMIT, "nobody listens"), -1);
}

static void test_names_without_a_driver(void)
{
    cc_error error;
    cc__fail_driver(&error, CUDA_ERROR_STUB_LIBRARY, "cuInit");
    CHECK_INT(error.domain, CC_DOMAIN_DRIVER);
    CHECK_INT(error.code, 34);
    CHECK(strcmp(error.name, "CUDA_ERROR_STUB_LIBRARY") == 0);
    CHECK(strcmp(error.function, "cuInit") == 0);
    CHECK_TEXT(error.text, "CUDA_ERROR_STUB_LIBRARY in cuInit. ");
    CHECK_TEXT(error.text, "LD_LIBRARY_PATH");
}

static void test_driver_errors(void)
{
    cc_error error;
    fake_reset();
    MUST(fake_open(&error));
    cc__fail_driver(&error, CUDA_ERROR_UNKNOWN, "cuMemcpyAsync");
    CHECK_TEXT(error.text, "CUDA_ERROR_UNKNOWN in cuMemcpyAsync: made to fail. Look at the kernel log");
    /* a code that this cuda.h has no name for */
    cc__fail_driver(&error, (CUresult)12345, "cuInit");
    CHECK_INT(error.code, 12345);
    CHECK(error.name != NULL);
}

static void test_emulator_detail(void)
{
    cc_error error;
    fake_reset();
    fake.emulator_detail = true;
    MUST(fake_open(&error));
    cc__fail_driver(&error, CUDA_ERROR_UNKNOWN, "cuStreamSynchronize");
    CHECK(strcmp(error.text, "CUDA_ERROR_UNKNOWN in cuStreamSynchronize: made to fail.\nthe account of the emulator") ==
          0);
}

static void test_sentences_end(void)
{
    cc_error error;
    cc__fail(&error, CC_INVALID, "the maximum is 0 (0: none)");
    cc__explain(&error, " Asked for %d bytes", 7);
    cc__explain(&error, "; the pool holds %d", 8);
    cc__explain(&error, ".");
    cc__explain(&error, "\nThe end.");
    CHECK(strcmp(error.text, "the maximum is 0 (0: none). Asked for 7 bytes; the pool holds 8.\nThe end.") == 0);
    cc__fail(&error, CC_INVALID, "there is none");
    cc__explain(&error, " in this code");
    CHECK(strcmp(error.text, "there is none in this code") == 0);
    /* never past the end */
    cc__fail(&error, CC_INVALID, "x");
    for (int i = 0; i < 1000; i++)
        cc__explain(&error, " Xyz");
    CHECK_INT(strlen(error.text), sizeof error.text - 1);
    CHECK(strcmp(error.text + sizeof error.text - 4, "...") == 0);
}

static void test_lost_context(void)
{
    static const int codes[] = {700, 702, 710, 714, 715, 716, 717, 718, 719};
    static const char sentence[] =
        " An earlier kernel failed: this process cannot use the device any more, start a new one.";
    cc_error error;
    fake_reset();
    MUST(fake_open(&error));
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        cc__fail_driver(&error, (CUresult)codes[i], "cuMemAllocFromPoolAsync");
        CHECK_TEXT(error.text, sentence);
        cc__fail_driver(&error, (CUresult)codes[i], "cuStreamSynchronize");
        CHECK(!strstr(error.text, sentence));
        cc__fail_driver(&error, (CUresult)codes[i], "cuEventQuery");
        CHECK(!strstr(error.text, sentence));
    }
    cc__fail_driver(&error, CUDA_ERROR_OUT_OF_MEMORY, "cuMemAllocFromPoolAsync");
    CHECK(!strstr(error.text, sentence));
}

static void test_long_text_is_cut(void)
{
    cc_error error;
    cc__fail(&error, CC_INVALID, "x");
    for (int i = 0; i < 1000; i++)
        cc__explain(&error, "0123456789");
    CHECK_INT(strlen(error.text), sizeof error.text - 1);
    CHECK(strcmp(error.text + sizeof error.text - 4, "...") == 0);
    cc_error_clear(&error);
    CHECK_INT(error.text[0], 0);
}

static const check_test tests[] = {
    TEST(test_core_errors),   TEST(test_names_without_a_driver), TEST(test_driver_errors),   TEST(test_emulator_detail),
    TEST(test_sentences_end), TEST(test_lost_context),           TEST(test_long_text_is_cut)};
CHECK_MAIN(tests)
