/* How a driver comes in: what is missing, what is broken, what is too old, and that the first decision stands. */
#include "check.h"
#include "fake_driver.h"

#include <sys/wait.h>
#include <unistd.h>

static cc_error error;

static void test_opens(void)
{
    int version;
    fake_reset();
    fake.version = 12080;
    MUST(fake_open(&error));
    CHECK(cc_driver_is_open());
    CHECK_INT(cc_driver_which(), CC_DRIVER_NATIVE);
    CHECK(strcmp(cc_driver_path(), "fake") == 0);
    MUST(cc_driver_version(&version, &error));
    CHECK_INT(version, 12080);
    CHECK_INT(fake.calls, 1); /* cuInit, and nothing that touches a device */
}

static void test_required_entry_missing(void)
{
    fake_reset();
    fake.version = 11080;
    fake.absent = "cuLibraryLoadData";
    REFUSED(fake_open(&error), CC_NEEDS_DRIVER, "cuLibraryLoadData needs driver 12.0 or newer; this one is 11.8");
    CHECK_INT(fake.calls, 0);
}

static void test_optional_entry_missing(void)
{
    cc_library *library;
    const char *const *names;
    size_t count;
    fake_reset();
    fake.version = 12020;
    fake.absent = "cuLibraryGetKernelCount";
    MUST(fake_open(&error));
    MUST(cc_library_load(fake_ptx, strlen(fake_ptx), &library, &error));
    REFUSED(cc_library_kernel_names(library, &names, &count, &error), CC_NEEDS_DRIVER,
            "cuLibraryGetKernelCount needs driver 12.4 or newer; this one is 12.2");
    cc_library_release(library);
    CHECK_INT(fake_live(), 0);
}

static void test_init_fails(void)
{
    fake_reset();
    fake.fail_name = "cuInit";
    fake.fail_code = CUDA_ERROR_NO_DEVICE;
    REFUSED(fake_open(&error), CC_DRIVER_BROKEN, "CUDA_ERROR_NO_DEVICE in cuInit");
    fake_open(&error);
    CHECK_TEXT(error.text, "CUDA_CORE_DRIVER=emulator");
    CHECK_TEXT(error.text, "CUDA_VISIBLE_DEVICES");
}

/* In a process of its own, since a decision stands for the life of one. */
static int in_child(int (*body)(void))
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int result = body() || check_failures;
        fflush(stdout);
        _exit(result);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int open_missing_path(void)
{
    atomic_store(&cc__driver_state, 0);
    REFUSED(cc_driver_open("/nowhere/libcuda.so", NULL, &error), CC_DRIVER_MISSING, "/nowhere/libcuda.so");
    REFUSED(cc_driver_open("emulator", NULL, &error), CC_DRIVER_MISSING, "/nowhere/libcuda.so"); /* decided already */
    CHECK(!cc_driver_is_open());
    int count;
    REFUSED(cc_device_count(&count, &error), CC_DRIVER_MISSING, "/nowhere/libcuda.so");
    return 0;
}

static int open_no_driver(void)
{
    atomic_store(&cc__driver_state, 0);
    setenv("CUDA_CORE_DRIVER", "libm.so.6", 1);
    REFUSED(cc_driver_open(NULL, NULL, &error), CC_DRIVER_BROKEN, "libm.so.6 is not a CUDA driver: it has no cuInit");
    return 0;
}

static int open_missing_emulator(void)
{
    atomic_store(&cc__driver_state, 0);
    REFUSED(cc_driver_open("emulator", "/nowhere/emulator.so", &error), CC_DRIVER_MISSING, "/nowhere/emulator.so");
    return 0;
}

static void test_bad_choices(void)
{
    CHECK_INT(in_child(open_missing_path), 0);
    CHECK_INT(in_child(open_no_driver), 0);
    CHECK_INT(in_child(open_missing_emulator), 0);
}

static const check_test tests[] = {TEST(test_opens), TEST(test_required_entry_missing),
                                   TEST(test_optional_entry_missing), TEST(test_init_fails), TEST(test_bad_choices)};
CHECK_MAIN(tests)
