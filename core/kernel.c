/* Kernels: handles, attributes, and the signature that launch arguments are held against. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- handles ---------------------------------------------------------------------------------------------------- */

static cc_kernel *kernel_new(CUkernel native, cc_library *library, const char *name, cc_error *error)
{
    int device_count;
    if (cc_device_count(&device_count, error))
        return NULL;
    cc_kernel *kernel = calloc(1, sizeof *kernel + (size_t)device_count * sizeof kernel->limits[0]);
    cc__name *copy = cc__name_new(name);
    if (!kernel || !copy) {
        free(kernel);
        free(copy);
        cc__fail_memory(error);
        return NULL;
    }
    cc__count_start(&kernel->count);
    kernel->native = native;
    kernel->library = library ? cc_library_retain(library) : NULL;
    kernel->name = copy;
    kernel->device_count = device_count;
    pthread_mutex_init(&kernel->lock, NULL);
    return kernel;
}

static int fail_unknown(cc_library *library, const char *name, cc_error *error)
{
    enum { SHOWN = 20 };
    const char *const *names;
    size_t count;
    cc__fail(error, CC_NO_SUCH_KERNEL, "there is no kernel '%s'", name);
    if (cc_library_kernel_names(library, &names, &count, NULL))
        return cc__explain(error, " in this code");
    if (count == 0)
        return cc__explain(error, ": this code has no kernels");
    cc__explain(error, "; there is: ");
    for (size_t i = 0; i < count && i < SHOWN; i++)
        cc__explain(error, "%s%s", i ? ", " : "", names[i]);
    if (count > SHOWN)
        cc__explain(error, " and %zu more", count - SHOWN);
    return cc__explain(error, ". A C++ kernel has a mangled name: declare it extern \"C\", or ask for it by its name "
                              "expression.");
}

int cc_kernel_get(cc_library *library, const char *name, cc_kernel **kernel, cc_error *error)
{
    CUkernel native;
    CUresult code = cc__driver.cuLibraryGetKernel(&native, library->native, name);
    if (code == CUDA_ERROR_NOT_FOUND)
        return fail_unknown(library, name, error);
    if (cc__check(code, error, "cuLibraryGetKernel"))
        return cc__library_explain(library, error);
    cc_kernel *made = kernel_new(native, library, name, error);
    if (made)
        *kernel = made;
    return made ? 0 : -1;
}

int cc_kernel_wrap(CUkernel native, cc_library *library, cc_release_function release, void *owner, cc_kernel **kernel,
                   cc_error *error)
{
    const char *name = "";
    if (cc__need_driver(error))
        return -1;
    if (cc__driver.cuKernelGetName && CC__CALL(error, cuKernelGetName, &name, native))
        return -1;
    cc_kernel *made = kernel_new(native, library, name, error);
    if (!made)
        return -1;
    made->release = release;
    made->owner = owner;
    *kernel = made;
    return 0;
}

cc_kernel *cc_kernel_retain(cc_kernel *kernel)
{
    cc__count_add(&kernel->count);
    return kernel;
}

void cc_kernel_release(cc_kernel *kernel)
{
    if (!kernel || !cc__count_drop(&kernel->count))
        return;
    if (kernel->release)
        kernel->release(kernel->owner);
    cc_library_release(kernel->library);
    pthread_mutex_destroy(&kernel->lock);
    free((void *)(uintptr_t)atomic_load(&kernel->signature));
    cc__name_retire(kernel->name);
    free(kernel);
}

CUkernel cc_kernel_native(const cc_kernel *kernel)
{
    return kernel->native;
}

const char *cc_kernel_name(const cc_kernel *kernel)
{
    return kernel->name->text;
}

cc_library *cc_kernel_library(const cc_kernel *kernel)
{
    return kernel->library;
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

int cc_kernel_attribute(cc_kernel *kernel, cc_device *device, CUfunction_attribute attribute, int *value,
                        cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (cc_device_primary_context(device, &context, error) || cc__enter(&scope, context, error))
        return -1;
    int status = CC__CALL(error, cuKernelGetAttribute, value, attribute, kernel->native, device->native);
    cc__leave(&scope);
    return status;
}

int cc__kernel_set_attribute_lock_held(cc_kernel *kernel, cc_device *device, CUfunction_attribute attribute, int value,
                                       cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (cc_device_primary_context(device, &context, error) || cc__enter(&scope, context, error))
        return -1;
    int status = CC__CALL(error, cuKernelSetAttribute, attribute, value, kernel->native, device->native);
    cc__leave(&scope);
    if (!status && attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        atomic_store_explicit(&kernel->limits[device->ordinal].dynamic_shared, (unsigned)value, memory_order_relaxed);
    return status;
}

int cc_kernel_set_attribute(cc_kernel *kernel, cc_device *device, CUfunction_attribute attribute, int value,
                            cc_error *error)
{
    cc__lock(&kernel->lock);
    int status = cc__kernel_set_attribute_lock_held(kernel, device, attribute, value, error);
    cc__unlock(&kernel->lock);
    return status;
}

/* ---- signature -------------------------------------------------------------------------------------------------- */

typedef struct signature { /* one block: the public part, then its parameters */
    cc_signature public;
    cc_parameter parameters[];
} signature;

static signature *signature_new(uint32_t count, cc_error *error)
{
    signature *made = calloc(1, sizeof *made + count * sizeof made->parameters[0]);
    if (!made) {
        cc__fail_memory(error);
        return NULL;
    }
    made->public.parameters = made->parameters;
    made->public.count = count;
    made->public.is_known = true;
    return made;
}

static signature *signature_of_entry(const cc__entry *entry, cc_error *error)
{
    signature *made = signature_new(entry->count, error);
    if (made && entry->count)
        memcpy(made->parameters, entry->parameters, entry->count * sizeof made->parameters[0]);
    return made;
}

/* The largest power of two up to 16 that the place and the size allow. */
static uint32_t likely_align(uint32_t offset, uint32_t size)
{
    uint32_t bits = offset | size | 16;
    return bits & (~bits + 1);
}

/* As the driver tells it: offsets and sizes, no types. A context is current for all of these. */
static CUresult ask_parameter(const cc_kernel *kernel, uint32_t index, cc_parameter *parameter)
{
    size_t offset, size;
    CUresult code = cc__driver.cuKernelGetParamInfo(kernel->native, index, &offset, &size);
    if (code != CUDA_SUCCESS)
        return code;
    parameter->offset = (uint32_t)offset;
    parameter->size = (uint32_t)size;
    parameter->align = likely_align(parameter->offset, parameter->size);
    parameter->type = CC_TYPE_UNKNOWN;
    return CUDA_SUCCESS;
}

/* Whether the driver has each of the parameters that the PTX declares. It is not asked for one more, since tools that
 * watch a program report each call that fails. */
static int compare(const cc_kernel *kernel, const cc__entry *entry, bool *agrees, cc_error *error)
{
    cc_parameter told = {0};
    *agrees = true;
    for (uint32_t i = 0; i < entry->count && *agrees; i++) {
        CUresult code = ask_parameter(kernel, i, &told);
        /* Any other failure says nothing of the kernel, and what is found here is kept for its life. */
        if (code != CUDA_ERROR_INVALID_VALUE && cc__check(code, error, "cuKernelGetParamInfo"))
            return -1;
        *agrees = code == CUDA_SUCCESS && told.offset == entry->parameters[i].offset &&
                  told.size == entry->parameters[i].size;
    }
    return 0;
}

static int count_parameters(const cc_kernel *kernel, uint32_t *count, cc_error *error)
{
    enum { MOST = 32764 }; /* bytes that a kernel can take, so more than its parameters */
    cc_parameter ignored;
    CUresult code = CUDA_SUCCESS;
    *count = 0;
    while (*count <= MOST && (code = ask_parameter(kernel, *count, &ignored)) == CUDA_SUCCESS)
        ++*count;
    return code == CUDA_ERROR_INVALID_VALUE /* one past the last */ ? 0
                                                                    : cc__check(code, error, "cuKernelGetParamInfo");
}

/* From the PTX where it is there and right, else from the driver alone; NULL and an error. */
static signature *ask_driver(const cc_kernel *kernel, const cc__entry *entry, cc_error *error)
{
    uint32_t count = 0;
    bool agrees = false;
    if (entry && compare(kernel, entry, &agrees, error))
        return NULL;
    if (agrees)
        return signature_of_entry(entry, error);
    if (count_parameters(kernel, &count, error))
        return NULL;
    signature *made = signature_new(count, error);
    for (uint32_t i = 0; made && i < count; i++)
        if (cc__check(ask_parameter(kernel, i, &made->parameters[i]), error, "cuKernelGetParamInfo")) {
            free(made);
            made = NULL;
        }
    return made;
}

/* On the devices that have a context already, or on those that have none. */
static signature *ask_on_devices(const cc_kernel *kernel, const cc__entry *entry, bool with_context, cc_error *error)
{
    const cc__device_table *table;
    signature *made = NULL;
    if (cc__devices(&table, error))
        return NULL;
    for (int i = 0; i < table->count && !made; i++) {
        cc_context *context = atomic_load_explicit(&table->devices[i].primary, memory_order_acquire);
        cc__scope scope;
        if ((context != NULL) != with_context)
            continue;
        if (cc_device_primary_context(&table->devices[i], &context, error) || cc__enter(&scope, context, error))
            continue;
        made = ask_driver(kernel, entry, error);
        cc__leave(&scope);
    }
    return made;
}

/* cuKernelGetParamInfo loads the kernel where that was not done, so it needs a context: the thread's own, else that of
 * the first device that the code can be loaded on. */
static signature *ask_in_some_context(const cc_kernel *kernel, const cc__entry *entry, cc_error *error)
{
    CUcontext current = NULL;
    if (cc_context_get_current(&current, error))
        return NULL;
    if (current)
        return ask_driver(kernel, entry, error);
    cc_error why; /* of the last attempt: only when none succeeds is it the caller's */
    cc__fail(&why, CC_NO_SUCH_DEVICE, NULL);
    signature *made = ask_on_devices(kernel, entry, true, &why);
    if (!made)
        made = ask_on_devices(kernel, entry, false, &why);
    if (!made && error)
        *error = why;
    return made;
}

/* A driver before 12.4 tells nothing: then the PTX alone counts, and without it nothing is known. */
static signature *find_signature(cc_kernel *kernel, cc_error *error)
{
    const cc__entry *entry = NULL;
    if (kernel->library && cc__library_entry(kernel->library, kernel->name->text, &entry, error))
        return NULL;
    if (cc__driver.cuKernelGetParamInfo)
        return ask_in_some_context(kernel, entry, error);
    if (entry)
        return signature_of_entry(entry, error);
    signature *made = signature_new(0, error);
    if (made)
        made->public.is_known = false;
    return made;
}

static void sum_up(signature *made)
{
    for (uint32_t i = 0; i < made->public.count; i++) {
        uint32_t end = made->parameters[i].offset + made->parameters[i].size;
        if (end > made->public.bytes)
            made->public.bytes = end;
    }
}

int cc_kernel_signature(cc_kernel *kernel, const cc_signature **found, cc_error *error)
{
    *found = atomic_load_explicit(&kernel->signature, memory_order_acquire);
    if (CC__LIKELY(*found != NULL))
        return 0;
    cc__lock(&kernel->lock);
    *found = atomic_load_explicit(&kernel->signature, memory_order_relaxed);
    if (!*found) {
        signature *made = find_signature(kernel, error);
        if (made)
            sum_up(made);
        *found = made ? &made->public : NULL;
        atomic_store_explicit(&kernel->signature, *found, memory_order_release);
    }
    cc__unlock(&kernel->lock);
    return *found ? 0 : -1;
}
