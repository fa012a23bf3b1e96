/* How a driver comes in: what is missing, what is broken, what is too old, and that a failure decides nothing. */
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

/* It stays the driver's error: its code, and the function that failed. */
static void check_broken(int status, CUresult code, const char *function)
{
    CHECK_INT(status, -1);
    CHECK_INT(error.domain, CC_DOMAIN_DRIVER);
    CHECK_INT(error.code, code);
    CHECK(strcmp(error.function, function) == 0);
    CHECK_TEXT(error.text, "is there but cannot be used");
    CHECK_TEXT(error.text, "CUDA_CORE_DRIVER=emulator");
}

static void test_init_fails(void)
{
    fake_reset();
    fake.fail_name = "cuInit";
    fake.fail_code = CUDA_ERROR_NO_DEVICE;
    check_broken(fake_open(&error), CUDA_ERROR_NO_DEVICE, "cuInit");
    CHECK_TEXT(error.text, "CUDA_VISIBLE_DEVICES");
}

/* A driver that fails to look for an entry point is not one without it. */
static void test_resolving_fails(void)
{
    fake_reset();
    fake.unresolved = "cuKernelGetParamInfo"; /* an optional one */
    check_broken(fake_open(&error), CUDA_ERROR_NOT_PERMITTED, "cuGetProcAddress");
    fake.unresolved = "cuDriverGetVersion";
    check_broken(fake_open(&error), CUDA_ERROR_NOT_PERMITTED, "cuGetProcAddress");
    fake.unresolved = NULL;
    MUST(fake_open(&error));
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
    REFUSED(cc_driver_open("emulator", "/nowhere/emulator.so", &error), CC_DRIVER_MISSING, "/nowhere/emulator.so");
    CHECK(!cc_driver_is_open());
    int count;
    setenv("CUDA_CORE_DRIVER", "/nowhere/libcuda.so", 1);
    REFUSED(cc_device_count(&count, &error), CC_DRIVER_MISSING, "/nowhere/libcuda.so");
    MUST(cc_driver_open("emulator", getenv("CUDA_CORE_EMULATOR_LIBRARY"), &error));
    MUST(cc_device_count(&count, &error));
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

/* ---- libraries that are there but of no use: the build's, found as the loader finds a driver -------------------- */

/* A fresh process, since a decision is made once, where the loader finds `library` (NULL: nothing) under a driver's
 * name. */
static int in_process(const char *what, const char *library, const char *code)
{
    int status;
    char directory[] = "/tmp/cuda_core_test_XXXXXX", name[64];
    if (!mkdtemp(directory))
        return 97;
    snprintf(name, sizeof name, "%s/libcuda.so.1", directory);
    if (library && symlink(library, name))
        return 96;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("LD_LIBRARY_PATH", directory, 1);
        setenv("BROKEN_DRIVER_CODE", code, 1);
        unsetenv("CUDA_CORE_DRIVER");
        execl("/proc/self/exe", "test_driver", what, (char *)NULL);
        _exit(98);
    }
    waitpid(child, &status, 0);
    unlink(name);
    rmdir(directory);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void test_broken_drivers(void)
{
    const char *broken = getenv("CUDA_CORE_TEST_BROKEN_DRIVER"), *old = getenv("CUDA_CORE_TEST_OLD_DRIVER");
    CHECK(broken && old);
    if (!broken || !old)
        return;
    CHECK_INT(in_process("no-device", broken, "100"), 0);
    CHECK_INT(in_process("stub", broken, "34"), 0);
    CHECK_INT(in_process("empty", broken, "0"), 0);
    CHECK_INT(in_process("old", old, "0"), 0);
}

static void test_nothing_there(void)
{
    CHECK_INT(in_process("none", NULL, "0"), 0);
}

/* What is refused here must never become the emulator. */
static int run_child(const char *what)
{
    const char *emulator = getenv("CUDA_CORE_EMULATOR_LIBRARY");
    if (strcmp(what, "no-device") == 0) {
        check_broken(cc_driver_open(NULL, emulator, &error), CUDA_ERROR_NO_DEVICE, "cuInit");
        check_broken(cc_driver_open(NULL, emulator, &error), CUDA_ERROR_NO_DEVICE, "cuInit");
    } else if (strcmp(what, "stub") == 0) {
        check_broken(cc_driver_open(NULL, emulator, &error), CUDA_ERROR_STUB_LIBRARY, "cuInit");
    } else if (strcmp(what, "empty") == 0) { /* initialises, but has nothing */
        check_broken(cc_driver_open(NULL, emulator, &error), CUDA_ERROR_STUB_LIBRARY, "cuGetProcAddress");
    } else if (strcmp(what, "old") == 0) {
        REFUSED(cc_driver_open(NULL, emulator, &error), CC_NEEDS_DRIVER,
                "cuda_core needs driver 12.0 or newer; this one (libcuda.so.1) is 11.8");
    } else { /* "none": with a driver on the machine it is that, else the emulator */
        bool node = access("/dev/nvidiactl", F_OK) == 0 || access("/proc/driver/nvidia", F_OK) == 0;
        MUST(cc_driver_open(NULL, emulator, &error));
        CHECK_INT(cc_driver_which(), node ? CC_DRIVER_NATIVE : CC_DRIVER_EMULATOR);
    }
    return check_failures ? 1 : 0;
}

static const check_test tests[] = {
    TEST(test_opens),          TEST(test_required_entry_missing), TEST(test_optional_entry_missing),
    TEST(test_init_fails),     TEST(test_resolving_fails),        TEST(test_bad_choices),
    TEST(test_broken_drivers), TEST(test_nothing_there)};

int main(int count, char **arguments)
{
    return count > 1 ? run_child(arguments[1]) : check_run(tests, sizeof tests / sizeof tests[0]);
}
