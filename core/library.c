/* Libraries: loaded code, not bound to a context. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the bytes are ----------------------------------------------------------------------------------------- */

static bool is_binary(const unsigned char *bytes, size_t size)
{
    return memchr(bytes, '\0', size) != NULL || (size >= 4 && memcmp(bytes, "\177ELF", 4) == 0);
}

/* PTX text begins with comments and a .version line; it may or may not be followed by NULs. */
static bool find_ptx(const char *code, size_t size, const char **ptx, size_t *ptx_size)
{
    if (cc_cubin_ptx(code, size, ptx, ptx_size))
        return true;
    while (size && code[size - 1] == '\0')
        size--;
    if (is_binary((const unsigned char *)code, size) || !memmem(code, size, ".version", 8))
        return false;
    *ptx = code;
    *ptx_size = size;
    return true;
}

/* The driver reads as far as the headers say, whatever there is: bytes that end early must not reach it. */
static int check_code(const char *code, size_t size, cc_error *error)
{
    static const unsigned char wrapper[4] = {0xb1, 0x43, 0x62,
                                             0x46}; /* holds pointers of the program it was linked into */
    if (size == 0)
        return cc__fail(error, CC_INVALID, "the code is empty");
    if (size >= 4 && memcmp(code, wrapper, 4) == 0)
        return cc__fail(error, CC_INVALID, "this is the wrapper of a fatbin inside a program, not the fatbin itself");
    if (cc__code_size(code, size) == 0)
        return cc__fail(error, CC_INVALID, "the code is cut off: its headers promise more than %zu bytes", size);
    return 0;
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

enum { LOG_SIZE = 8192 };

int cc__library_explain(const cc_library *library, cc_error *error)
{
    if (!error || !library->log[0])
        return -1;
    error->log = strdup(library->log);
    return strstr(error->text, library->log) ? -1 : cc__explain(error, "\n%s", library->log);
}

/* The driver may translate PTX on a load that succeeds and tell of errors in the log only: they show when a kernel is
 * asked for, so one is. */
static int check_log(cc_library *library, cc_error *error)
{
    cc__entries entries;
    CUkernel ignored;
    if (!library->log[0] || !library->ptx)
        return 0;
    if (cc__entries_parse(library->ptx, library->ptx_size, &entries, error))
        return -1;
    CUresult code = CUDA_SUCCESS;
    if (entries.count)
        code = cc__driver.cuLibraryGetKernel(&ignored, library->native, entries.entries[0].name);
    cc__entries_free(&entries);
    if (code == CUDA_SUCCESS)
        return 0;
    cc__fail_driver(error, code, "cuLibraryLoadData");
    return cc__library_explain(library, error);
}

static int load(cc_library *library, const char *code, cc_error *error)
{
    library->log =
        calloc(1, LOG_SIZE); /* lives as long as the library: it may be translated again, for another device */
    if (!library->log)
        return cc__fail_memory(error);
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {library->log, (void *)(uintptr_t)(LOG_SIZE - 1)};
    if (CC__CALL(error, cuLibraryLoadData, &library->native, code, options, values, 2, NULL, NULL, 0))
        return cc__library_explain(library, error);
    if (check_log(library, error) == 0)
        return 0;
    (void)cc__driver.cuLibraryUnload(library->native);
    return -1;
}

int cc_library_load(const void *code, size_t size, cc_library **library, cc_error *error)
{
    const char *ptx;
    char *copy = NULL;
    if (cc__need_driver(error) || check_code(code, size, error))
        return -1;
    cc_library *made = calloc(1, sizeof *made);
    if (!made)
        return cc__fail_memory(error);
    copy = malloc(size + 1); /* the driver wants PTX to end in a NUL, and aligned headers */
    if (!copy) {
        cc__fail_memory(error);
        goto fail;
    }
    memcpy(copy, code, size);
    copy[size] = '\0';
    if (find_ptx(copy, size, &ptx, &made->ptx_size) && !(made->ptx = strndup(ptx, made->ptx_size))) {
        cc__fail_memory(error);
        goto fail;
    }
    if (load(made, copy, error))
        goto fail;
    free(copy);
    cc__count_start(&made->count);
    pthread_mutex_init(&made->lock, NULL);
    *library = made;
    return 0;
fail:
    free(copy);
    free(made->log);
    free(made->ptx);
    free(made);
    return -1;
}

cc_library *cc_library_retain(cc_library *library)
{
    cc__count_add(&library->count);
    return library;
}

void cc_library_release(cc_library *library)
{
    if (!library || !cc__count_drop(&library->count))
        return;
    if (!cc__is_leaving()) /* drivers wait for kernels that run before they take code away */
        (void)cc__driver.cuLibraryUnload(library->native);
    pthread_mutex_destroy(&library->lock);
    cc__entries_free(&library->entries);
    free(library->names);
    free(library->log);
    free(library->ptx);
    free(library);
}

CUlibrary cc_library_native(const cc_library *library)
{
    return library->native;
}

int cc_library_module(cc_library *library, cc_device *device, CUmodule *module, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (cc_device_primary_context(device, &context, error) || cc__enter(&scope, context, error))
        return -1;
    int status = CC__CALL_OPTIONAL(error, cuLibraryGetModule, module, library->native);
    cc__leave(&scope);
    return status;
}

/* ---- what is in it ---------------------------------------------------------------------------------------------- */

int cc__library_entry(cc_library *library, const char *name, const cc__entry **entry, cc_error *error)
{
    int status = 0;
    cc__lock(&library->lock);
    if (library->ptx && (status = cc__entries_parse(library->ptx, library->ptx_size, &library->entries, error)) == 0) {
        free(library->ptx); /* all that is wanted of it is known now */
        library->ptx = NULL;
    }
    *entry = status ? NULL : cc__entries_find(&library->entries, name);
    cc__unlock(&library->lock);
    return status;
}

static int ask_names(cc_library *library, cc_error *error)
{
    unsigned count = 0;
    CUkernel *kernels = NULL;
    const char **names = NULL;
    if (CC__CALL_OPTIONAL(error, cuLibraryGetKernelCount, &count, library->native))
        return -1;
    kernels = calloc(count + 1u, sizeof *kernels);
    names = calloc(count + 1u, sizeof *names);
    if (!kernels || !names) {
        cc__fail_memory(error);
        goto fail;
    }
    if (count && CC__CALL_OPTIONAL(error, cuLibraryEnumerateKernels, kernels, count, library->native))
        goto fail;
    for (unsigned i = 0; i < count; i++)
        if (CC__CALL_OPTIONAL(error, cuKernelGetName, &names[i], kernels[i]))
            goto fail;
    free(kernels);
    library->names = names;
    library->name_count = count;
    return 0;
fail:
    free(kernels);
    free(names);
    return -1;
}

int cc_library_kernel_names(cc_library *library, const char *const **names, size_t *count, cc_error *error)
{
    int status = 0;
    if (!atomic_load_explicit(&library->names_known, memory_order_acquire)) {
        cc__lock(&library->lock);
        if (!library->names_known && (status = ask_names(library, error)) == 0)
            atomic_store_explicit(&library->names_known, true, memory_order_release);
        cc__unlock(&library->lock);
    }
    if (!status) {
        *names = library->names;
        *count = library->name_count;
    }
    return status;
}
