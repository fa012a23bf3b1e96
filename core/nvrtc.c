/* Finds NVRTC and fills its function table from nvrtc.def. */
#include "nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

cc__nvrtc_table cc__nvrtc;

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_open;

typedef enum need { OPTIONAL, REQUIRED } need;

static const struct {
    const char *name;
    need need;
    size_t offset;
} functions[] = {
#define CC_NVRTC(need, result, name, parameters) {#name, need, offsetof(cc__nvrtc_table, name)},
#include "nvrtc.def"
#undef CC_NVRTC
};

static int fill(void *handle, const char *path, cc_error *error)
{
    cc__nvrtc_table table;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *address = dlsym(handle, functions[i].name);
        if (!address && functions[i].need == REQUIRED)
            return cc__fail(error, CC_COMPILER_MISSING, "%s has no %s: NVRTC 12.0 or newer is needed", path,
                            functions[i].name);
        memcpy((char *)&table + functions[i].offset, &address, sizeof address);
    }
    cc__nvrtc = table;
    return 0;
}

static int fail_missing(const char *path, const char *reason, cc_error *error)
{
    return cc__fail(error, CC_COMPILER_MISSING,
                    "NVRTC, the CUDA C++ compiler, cannot be loaded%s%s: %s. Install it with pip install "
                    "'cuda-core-native[cu13]' (or nvidia-cuda-nvrtc), with conda, or with a CUDA toolkit.",
                    path ? " from " : "", path ? path : "", reason ? reason : "no reason given");
}

static int find(const char *path, void **handle, const char **found, cc_error *error)
{
    static const char *const places[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                         "/usr/local/cuda/lib64/libnvrtc.so"};
    char reason[512] = "";
    if (path) {
        *handle = dlopen(*found = path, RTLD_NOW | RTLD_LOCAL);
        return *handle ? 0 : fail_missing(path, dlerror(), error);
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        *handle = dlopen(*found = places[i], RTLD_NOW | RTLD_LOCAL);
        if (*handle)
            return 0;
        const char *text = dlerror();
        if (i == 0 && text)
            snprintf(reason, sizeof reason, "%s", text);
    }
    return fail_missing(NULL, reason, error);
}

/* A child may compile, whatever its parent did; the thread that held the lock is not there to let go of it. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&open_lock, NULL);
}

static void watch_forks_once(void)
{
    (void)pthread_atfork(NULL, NULL, after_fork_in_child); /* fails without memory only, and then nothing is lost */
}

int cc_nvrtc_open(const char *path, cc_error *error)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    void *handle;
    const char *found;
    int status = 0;
    if (cc_nvrtc_is_open())
        return 0;
    (void)pthread_once(&watched, watch_forks_once);
    pthread_mutex_lock(&open_lock);
    if (!cc_nvrtc_is_open()) {
        status = find(path, &handle, &found, error);
        if (!status && (status = fill(handle, found, error)) != 0)
            dlclose(handle);
        if (!status)
            atomic_store_explicit(&is_open, true, memory_order_release);
    }
    pthread_mutex_unlock(&open_lock);
    return status;
}

bool cc_nvrtc_is_open(void)
{
    return atomic_load_explicit(&is_open, memory_order_acquire);
}

int cc__need_nvrtc(cc_error *error)
{
    return cc_nvrtc_is_open() ? 0 : cc_nvrtc_open(NULL, error);
}

int cc__fail_nvrtc_code(cc_error *error, int code, const char *function)
{
    return cc__fail_nvrtc(error, code, cc__nvrtc.nvrtcGetErrorString(code), function);
}

int cc_nvrtc_version(int *major, int *minor, cc_error *error)
{
    if (cc__need_nvrtc(error))
        return -1;
    return CC__NVRTC(error, nvrtcVersion, major, minor);
}
