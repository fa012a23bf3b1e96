/* Finds a driver - NVIDIA's, the emulator, or the one at a path - and fills the function table from driver.def. */
#include "internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

cc__driver_table cc__driver;
atomic_int cc__driver_state;

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile bool opening; /* read by a forked child */
static cc_driver_kind driver_kind;
static char driver_path[4096];
static int driver_version;

static const char WAY_OUT[] = "Set CUDA_CORE_DRIVER=emulator to run on the emulated device instead.";

typedef enum need { OPTIONAL, REQUIRED } need;

static const struct entry {
    const char *name;
    need need;
    int version;
    size_t offset; /* in cc__driver_table */
} entries[] = {
#define CC_ENTRY(need, name, version) {#name, need, version, offsetof(cc__driver_table, name)},
#include "driver.def"
#undef CC_ENTRY
};

enum { ENTRY_COUNT = sizeof entries / sizeof entries[0] };

/* ISO C has no cast from an object pointer to a function pointer. */
static void store(void *slot, void *address)
{
    memcpy(slot, &address, sizeof address);
}

int cc__fail_needs_driver(cc_error *error, const char *function)
{
    int wanted = 0;
    for (size_t i = 0; i < ENTRY_COUNT; i++)
        if (strcmp(entries[i].name, function) == 0)
            wanted = entries[i].version;
    return cc__fail(error, CC_NEEDS_DRIVER, "%s needs driver %d.%d or newer; this one is %d.%d", function,
                    wanted / 1000, wanted % 1000 / 10, driver_version / 1000, driver_version % 1000 / 10);
}

/* ---- from a library to a table ---------------------------------------------------------------------------------- */

/* Still the driver's error, of its code and function. */
static int fail_broken(cc_error *error, const char *path, const char *function, CUresult code)
{
    cc_error cause;
    if (!error)
        return -1;
    cc__fail_driver(error, code, function);
    cause = *error;
    error->text[0] = '\0';
    return cc__explain(error, "the CUDA driver %s is there but cannot be used: %s %s", path, cause.text,
                       driver_kind == CC_DRIVER_NATIVE ? WAY_OUT : "");
}

static int fill(cc__resolver resolve, void *user, cc__driver_table *table, cc_error *error)
{
    const struct entry *missing = NULL;
    void *address;
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        CUresult code = resolve(user, entries[i].name, entries[i].version, &address);
        if (code != CUDA_SUCCESS)
            return fail_broken(error, driver_path, "cuGetProcAddress", code);
        store((char *)table + entries[i].offset, address);
        /* The one that came last is the version to ask for. */
        if (!address && entries[i].need == REQUIRED && (!missing || entries[i].version > missing->version))
            missing = &entries[i];
    }
    (void)resolve(user, "cuEmulatorErrorDetail", 0, &address);
    store(&table->cuEmulatorErrorDetail, address);
    return missing ? cc__fail_needs_driver(error, missing->name) : 0;
}

int cc__driver_open_with(cc__resolver resolve, void *user, cc_driver_kind kind, const char *path, cc_error *error)
{
    cc__driver_table table = {0};
    PFN_cuDriverGetVersion_v2020 get_version = NULL;
    void *address;

    driver_kind = kind;
    snprintf(driver_path, sizeof driver_path, "%s", path);
    driver_version = 0;
    /* The version comes first, since it explains what is missing. */
    CUresult code = resolve(user, "cuDriverGetVersion", 2020, &address);
    if (code != CUDA_SUCCESS)
        return fail_broken(error, path, "cuGetProcAddress", code);
    store(&get_version, address);
    if (get_version && (code = get_version(&driver_version)) != CUDA_SUCCESS)
        return fail_broken(error, path, "cuDriverGetVersion", code);
    if (fill(resolve, user, &table, error))
        return -1;
    cc__driver = table;
    code = table.cuInit(0);
    if (code != CUDA_SUCCESS)
        return fail_broken(error, path, "cuInit", code);
    atomic_store_explicit(&cc__driver_state, 1, memory_order_release);
    return 0;
}

typedef struct library {
    void *handle;
    PFN_cuGetProcAddress_v12000 get_address;
} library;

/* The codes by which drivers say that they lack an entry point, or one of that version. */
static bool means_absent(CUresult code)
{
    return code == CUDA_ERROR_NOT_FOUND || code == CUDA_ERROR_INVALID_VALUE || code == CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult resolve_in_library(void *user, const char *name, int version, void **address)
{
    const library *from = user;
    CUdriverProcAddressQueryResult found;
    *address = NULL;
    if (!version) {
        *address = dlsym(from->handle, name);
        return CUDA_SUCCESS;
    }
    CUresult code = from->get_address(name, address, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
    if (code == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    *address = NULL;
    return means_absent(code) ? CUDA_SUCCESS : code;
}

/* A stub or a driver of CUDA 11 has no usable cuGetProcAddress: let cuInit and the version speak for it. */
static int explain_unusable(void *handle, const char *path, cc_error *error)
{
    PFN_cuInit_v2000 init = NULL;
    PFN_cuDriverGetVersion_v2020 get_version = NULL;
    int version = 0;
    store(&init, dlsym(handle, "cuInit"));
    store(&get_version, dlsym(handle, "cuDriverGetVersion"));
    if (!init || !get_version)
        return cc__fail(error, CC_DRIVER_BROKEN, "%s is not a CUDA driver: it has no cuInit. %s", path, WAY_OUT);
    CUresult code = init(0);
    if (code != CUDA_SUCCESS)
        return fail_broken(error, path, "cuInit", code);
    if (get_version(&version) != CUDA_SUCCESS)
        version = 0;
    return cc__fail(error, CC_NEEDS_DRIVER, "cuda_core needs driver 12.0 or newer; this one (%s) is %d.%d. %s", path,
                    version / 1000, version % 1000 / 10, WAY_OUT);
}

static int open_library(void *handle, const char *path, cc_driver_kind kind, cc_error *error)
{
    static library opened; /* never closed: the driver has threads of its own */
    void *init = dlsym(handle, "cuInit");
    PFN_cuInit_v2000 first = NULL;

    driver_kind = kind;
    opened.handle = handle;
    store(&opened.get_address, dlsym(handle, "cuGetProcAddress_v2"));
    if (!opened.get_address || !init)
        return explain_unusable(handle, path, error);
    /* The stub answers every call, cuGetProcAddress too, with an error that only cuInit's place in the text explains.
     */
    store(&first, init);
    CUresult code = first(0);
    if (code != CUDA_SUCCESS) {
        store(&cc__driver.cuGetErrorName, dlsym(handle, "cuGetErrorName"));
        store(&cc__driver.cuGetErrorString, dlsym(handle, "cuGetErrorString"));
        store(&cc__driver.cuEmulatorErrorDetail, dlsym(handle, "cuEmulatorErrorDetail")); /* a setting it refused */
        return fail_broken(error, path, "cuInit", code);
    }
    return cc__driver_open_with(resolve_in_library, &opened, kind, path, error);
}

/* ---- which library ---------------------------------------------------------------------------------------------- */

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The paths by which a machine shows that it has NVIDIA's kernel driver. */
static const char *device_node(void)
{
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia0", "/proc/driver/nvidia"};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        if (is_there(nodes[i]))
            return nodes[i];
    return NULL;
}

static const char NATIVE_NAME[] = "libcuda.so.1";
/* Under WSL the driver comes with Windows; every WSL has /dev/dxg, whatever its GPU, so the library is what tells. */
static const char WSL_NATIVE[] = "/usr/lib/wsl/lib/libcuda.so.1";

/* Whether the loader's message is of a library that it found nowhere: that is reported under the name it was asked for,
 * one that it found but cannot load under its path, or under the name of what else is missing. */
static bool is_found_nowhere(const char *message)
{
    return message && strncmp(message, NATIVE_NAME, strlen(NATIVE_NAME)) == 0;
}

/* *handle NULL and 0: this machine has none. */
static int find_native(void **handle, const char **path, cc_error *error)
{
    *handle = dlopen(*path = NATIVE_NAME, RTLD_NOW | RTLD_LOCAL);
    if (*handle)
        return 0;
    const char *message = dlerror(), *node = device_node();
    if (is_found_nowhere(message) && is_there(WSL_NATIVE)) {
        *handle = dlopen(*path = WSL_NATIVE, RTLD_NOW | RTLD_LOCAL);
        if (*handle)
            return 0;
        message = dlerror();
    }
    if (!is_found_nowhere(message))
        return cc__fail(error, CC_DRIVER_BROKEN, "an NVIDIA driver library is there, but cannot be loaded: %s. %s",
                        message ? message : "no reason given", WAY_OUT);
    if (node)
        return cc__fail(
            error, CC_DRIVER_BROKEN,
            "the machine has an NVIDIA driver (%s), but not its library: %s. In a container, give it the GPU "
            "by way of the NVIDIA container toolkit. %s",
            node, message, WAY_OUT);
    return 0;
}

static const char EMULATOR_NAME[] = "libcuda_core_emulator.so";

static int open_emulator_at(const char *path, cc_error *error)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *text = dlerror();
        return cc__fail(error, CC_DRIVER_MISSING, "the emulator cannot be loaded: %s", text ? text : path);
    }
    return open_library(handle, path, CC_DRIVER_EMULATOR, error);
}

static int open_emulator(const char *path, cc_error *error)
{
    static const char *const places[] = {"", "emulator/", "../emulator/"};
    Dl_info here;
    char candidate[sizeof driver_path];

    if (path && *path)
        return open_emulator_at(path, error);
    if (!dladdr(&cc__driver, &here) || !here.dli_fname)
        return open_emulator_at(EMULATOR_NAME, error);
    const char *slash = strrchr(here.dli_fname, '/');
    int directory = slash ? (int)(slash - here.dli_fname) + 1 : 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(candidate, sizeof candidate, "%.*s%s%s", directory, here.dli_fname, places[i], EMULATOR_NAME);
        if (is_there(candidate))
            return open_emulator_at(candidate, error);
    }
    return cc__fail(error, CC_DRIVER_MISSING, "%s is not beside %s, nor in an emulator/ folder there", EMULATOR_NAME,
                    here.dli_fname);
}

static int open_path(const char *path, cc_error *error)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *text = dlerror();
        return cc__fail(
            error, CC_DRIVER_MISSING,
            "CUDA_CORE_DRIVER is \"native\", \"emulator\" or the path of a libcuda; %s cannot be loaded: %s", path,
            text ? text : "no reason given");
    }
    bool emulated = dlsym(handle, "cuEmulatorErrorDetail") != NULL;
    return open_library(handle, path, emulated ? CC_DRIVER_EMULATOR : CC_DRIVER_NATIVE, error);
}

static int choose(const char *choice, const char *emulator_path, cc_error *error)
{
    if (!choice)
        choice = getenv("CUDA_CORE_DRIVER");
    bool automatic = !choice || !*choice;
    if (!automatic && strcmp(choice, "emulator") == 0)
        return open_emulator(emulator_path, error);
    if (!automatic && strcmp(choice, "native") != 0)
        return open_path(choice, error);

    void *handle;
    const char *path;
    if (find_native(&handle, &path, error))
        return -1;
    if (handle)
        return open_library(handle, path, CC_DRIVER_NATIVE, error);
    if (automatic)
        return open_emulator(emulator_path, error);
    return cc__fail(error, CC_DRIVER_MISSING,
                    "CUDA_CORE_DRIVER=native was asked for, but this machine has no NVIDIA driver "
                    "(libcuda.so.1). Install it, or leave the variable unset.");
}

int cc_driver_open(const char *choice, const char *emulator_path, cc_error *error)
{
    if (atomic_load_explicit(&cc__driver_state, memory_order_acquire) == 1)
        return 0;
    cc__watch_forks();
    pthread_mutex_lock(&open_lock);
    int state = atomic_load_explicit(&cc__driver_state, memory_order_acquire), status = 0;
    if (state == 2) {
        status = cc__fail_forked(error);
    } else if (state == 0) { /* also after a failure, which may be over by now */
        opening = true;
        status = choose(choice, emulator_path, error);
        opening = false;
    }
    pthread_mutex_unlock(&open_lock);
    return status;
}

bool cc__driver_after_fork(void)
{
    if (opening) { /* by a thread that is not here to finish it */
        pthread_mutex_init(&open_lock, NULL);
        atomic_store_explicit(&cc__driver_state, 2, memory_order_release);
    }
    return opening || cc_driver_is_open();
}

int cc__driver_open_default(cc_error *error)
{
    return cc_driver_open(NULL, NULL, error);
}

bool cc_driver_is_open(void)
{
    return atomic_load_explicit(&cc__driver_state, memory_order_acquire) == 1;
}

cc_driver_kind cc_driver_which(void)
{
    return driver_kind;
}

const char *cc_driver_path(void)
{
    return driver_path;
}

int cc_driver_version(int *version, cc_error *error)
{
    if (cc__need_driver(error))
        return -1;
    *version = driver_version;
    return 0;
}
