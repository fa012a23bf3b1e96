/* Launch configurations against the limits of device and kernel, signatures, and libraries' names: on a driver that
 * counts what it is asked. */
#include "check.h"
#include "fake_driver.h"

static cc_error error;
static cc_device *device;
static cc_stream *stream;
static cc_library *library;
static cc_kernel *kernel;

static void setup(void)
{
    cc_context *context;
    fake_reset();
    MUST(fake_open(&error));
    MUST(cc_device_get(0, &device, &error));
    MUST(cc_device_primary_context(device, &context, &error));
    MUST(cc_stream_create(context, 0, 0, &stream, &error));
    MUST(cc_library_load(fake_ptx, strlen(fake_ptx), &library, &error));
    MUST(cc_kernel_get(library, "add", &kernel, &error));
}

static void teardown(void)
{
    cc_library_release(library); /* the kernel keeps it */
    CHECK_INT(fake.live_libraries, 1);
    cc_kernel_release(kernel);
    cc_stream_release(stream);
    CHECK_INT(fake_live(), 0);
}

static cc_launch_config config_of(unsigned grid, unsigned block, unsigned shared)
{
    return (cc_launch_config){.grid = {grid, 1, 1}, .block = {block, 1, 1}, .shared_bytes = shared};
}

static void test_limits(void)
{
    setup();
    cc_launch_config config = config_of(1, 640, 0);
    MUST(cc_launch_check(&config, kernel, device, &error));
    config.block[0] = 641;
    REFUSED(cc_launch_check(&config, kernel, device, &error), CC_LIMIT,
            "block has 641 threads; kernel add allows 640 a block on this device");
    config.block[0] = 1025;
    REFUSED(cc_launch_check(&config, kernel, device, &error), CC_LIMIT, "block x is 1025; this device allows 1024");
    config.block[0] = 512;
    config.block[1] = 4;
    REFUSED(cc_launch_check(&config, kernel, device, &error), CC_LIMIT,
            "block has 2048 threads; this device allows 1024 a block");
    config = config_of(1, 1, 0);
    config.block[2] = 65;
    REFUSED(cc_launch_check(&config, kernel, device, &error), CC_LIMIT, "block z is 65; this device allows 64");
    config = config_of(1, 0, 0);
    REFUSED(cc_launch_check(&config, kernel, device, &error), CC_INVALID, "block is 0 x 1 x 1: no extent may be 0");
    config = config_of(2147483647, 1, 0);
    MUST(cc_launch_check(&config, kernel, device, &error));
    config.grid[0]++;
    REFUSED(cc_launch_check(&config, kernel, device, &error), CC_LIMIT,
            "grid x is 2147483648; this device allows 2147483647");
    config = config_of(1, 1, 0);
    config.grid[1] = 65536;
    REFUSED(cc_launch_check(&config, kernel, device, &error), CC_LIMIT, "grid y is 65536; this device allows 65535");
    config.grid[1] = 0;
    REFUSED(cc_launch_check(&config, kernel, device, &error), CC_INVALID, "grid is 1 x 0 x 1");
    config.grid[0] = config.block[0] = UINT32_MAX;
    REFUSED(cc_launch_check(&config, kernel, device, &error), CC_LIMIT, "block x is 4294967295");
    teardown();
}

static void test_shared_memory_is_raised(void)
{
    setup();
    cc_launch_config config = config_of(1, 1, 49152 - 1024);
    MUST(cc_launch_check(&config, kernel, device, &error));
    CHECK_INT(fake.dynamic_shared, 49152 - 1024); /* not touched */
    config.shared_bytes = 60000;
    MUST(cc_launch_check(&config, kernel, device, &error));
    CHECK_INT(fake.dynamic_shared, 60000);
    int before = fake.calls;
    MUST(cc_launch_check(&config, kernel, device, &error));
    CHECK_INT(fake.calls - before, 0);
    config.shared_bytes = 101376 - 1024;
    MUST(cc_launch_check(&config, kernel, device, &error));
    CHECK_INT(fake.dynamic_shared, 101376 - 1024);
    config.shared_bytes++;
    REFUSED(
        cc_launch_check(&config, kernel, device, &error), CC_LIMIT,
        "100353 bytes of dynamic shared memory were asked for; this device allows 101376 a block, of which kernel add "
        "uses 1024 itself");
    /* what the caller sets is known as well */
    MUST(cc_kernel_set_attribute(kernel, device, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1000, &error));
    config.shared_bytes = 2000;
    MUST(cc_launch_check(&config, kernel, device, &error));
    CHECK_INT(fake.dynamic_shared, 2000);
    teardown();
}

static void test_what_the_device_lacks(void)
{
    setup();
    cc_launch_config config = config_of(4, 1, 0);
    config.cooperative = true;
    REFUSED(cc_launch_check(&config, kernel, device, &error), CC_NOT_SUPPORTED, "no cooperative launches");
    config = config_of(4, 1, 0);
    config.cluster[0] = config.cluster[1] = config.cluster[2] = 1;
    REFUSED(cc_launch_check(&config, kernel, device, &error), CC_NOT_SUPPORTED, "compute capability 9.0");
    teardown();
}

/* A checked launch that is no kernel's first makes two calls: cuCtxGetCurrent and the launch. */
static void test_launch_calls(void)
{
    double *pointer = NULL;
    int n = 3;
    float x = 4;
    void *slots[] = {&pointer, &n, &x};
    cc_context *context;
    setup();
    MUST(cc_device_primary_context(device, &context, &error));
    MUST(cc_context_set_current(cc_context_native(context), &error));
    cc_launch_config config = config_of(7, 64, 60000);
    MUST(cc_launch_check(&config, kernel, device, &error));
    int before = fake.calls;
    MUST(cc_launch_check(&config, kernel, device, &error));
    MUST(cc_launch(&config, stream, kernel, slots, &error));
    CHECK_INT(fake.calls - before, 2);
    CHECK_INT(fake.last_shared, 60000);
    CHECK(strcmp(fake.last_call, "cuLaunchKernel") == 0);
    fake.fail_name = "cuLaunchKernel";
    CHECK_INT(cc_launch(&config, stream, kernel, slots, &error), -1);
    CHECK_TEXT(error.text, "The kernel is add, its grid 7 x 1 x 1, its block 64 x 1 x 1.");
    fake.fail_name = NULL;
    MUST(cc_context_set_current(NULL, &error));
    teardown();
}

static void test_signature(void)
{
    const cc_signature *signature;
    setup();
    MUST(cc_kernel_signature(kernel, &signature, &error));
    CHECK(signature->is_known);
    CHECK_INT(signature->count, 3);
    CHECK_INT(signature->bytes, 16);
    CHECK_INT(signature->parameters[0].type, CC_TYPE_POINTER);
    CHECK_INT(signature->parameters[1].type, CC_TYPE_INTEGER);
    CHECK_INT(signature->parameters[2].type, CC_TYPE_FLOAT);
    CHECK_INT(signature->parameters[2].offset, 12);
    int before = fake.calls;
    const cc_signature *again;
    MUST(cc_kernel_signature(kernel, &again, &error));
    CHECK(again == signature);
    CHECK_INT(fake.calls - before, 0);
    teardown();
}

/* PTX and driver differ: the driver has the last word, and the types are not to be relied on. */
static void test_signature_of_other_ptx(void)
{
    static const char other[] = ".version 9.0\n.entry add(.param .f32 a, .param .f64 b) { ret; }";
    const cc_signature *signature;
    setup();
    cc_library *second;
    cc_kernel *foreign;
    MUST(cc_library_load(other, sizeof other, &second, &error));
    MUST(cc_kernel_get(second, "add", &foreign, &error));
    MUST(cc_kernel_signature(foreign, &signature, &error));
    CHECK_INT(signature->count, 3);
    CHECK_INT(signature->parameters[0].type, CC_TYPE_UNKNOWN);
    CHECK_INT(signature->parameters[0].size, 8);
    CHECK_INT(signature->parameters[2].align, 4);
    cc_kernel_release(foreign);
    cc_library_release(second);
    teardown();
}

static void test_signature_of_an_old_driver(void)
{
    const cc_signature *signature;
    cc_kernel *foreign;
    setup();
    fake.absent = "cuKernelGetParamInfo";
    MUST(fake_open(&error));
    MUST(cc_kernel_signature(kernel, &signature, &error)); /* from the PTX alone */
    CHECK(signature->is_known);
    CHECK_INT(signature->count, 3);
    CHECK_INT(signature->bytes, 16);
    MUST(cc_kernel_wrap(cc_kernel_native(kernel), NULL, NULL, NULL, &foreign, &error));
    CHECK(strcmp(cc_kernel_name(foreign), "add") == 0);
    MUST(cc_kernel_signature(foreign, &signature, &error));
    CHECK(!signature->is_known);
    CHECK_INT(signature->count, 0);
    cc_kernel_release(foreign);
    teardown();
}

static void test_names(void)
{
    const char *const *names;
    size_t count;
    cc_kernel *none;
    setup();
    MUST(cc_library_kernel_names(library, &names, &count, &error));
    CHECK_INT(count, 1);
    CHECK(strcmp(names[0], "add") == 0);
    REFUSED(cc_kernel_get(library, "sub", &none, &error), CC_NO_SUCH_KERNEL,
            "there is no kernel 'sub'; there is: add.");
    teardown();
}

static void test_bad_code(void)
{
    cc_library *none;
    setup();
    CHECK_INT(cc_library_load("nonsense", 8, &none, &error), -1);
    CHECK_INT(error.domain, CC_DOMAIN_DRIVER);
    CHECK_INT(error.code, CUDA_ERROR_INVALID_PTX);
    CHECK(strcmp(error.log, "line 7: what is this?") == 0);
    CHECK_TEXT(error.text, "line 7: what is this?");
    cc_error_clear(&error);
    CHECK(error.log == NULL);
    /* the same by a driver that lets the load succeed and says it in the log only */
    fake.load_lazily = true;
    CHECK_INT(cc_library_load(".version 9.0\n.entry nonsense() {}", 33, &none, &error), -1);
    CHECK_INT(error.code, CUDA_ERROR_INVALID_PTX);
    CHECK(strcmp(error.function, "cuLibraryLoadData") == 0);
    CHECK_TEXT(error.text, "line 7: what is this?");
    CHECK(strcmp(error.log, "line 7: what is this?") == 0);
    cc_error_clear(&error);
    REFUSED(cc_library_load("", 0, &none, &error), CC_INVALID, "empty");
    REFUSED(cc_library_load("\177ELF\2\1\1", 7, &none, &error), CC_INVALID, "cut off");
    REFUSED(cc_library_load("\xb1\x43\x62\x46\1\0\0\0", 8, &none, &error), CC_INVALID, "wrapper of a fatbin");
    teardown();
}

static const check_test tests[] = {TEST(test_limits),
                                   TEST(test_shared_memory_is_raised),
                                   TEST(test_what_the_device_lacks),
                                   TEST(test_launch_calls),
                                   TEST(test_signature),
                                   TEST(test_signature_of_other_ptx),
                                   TEST(test_signature_of_an_old_driver),
                                   TEST(test_names),
                                   TEST(test_bad_code)};
CHECK_MAIN(tests)
