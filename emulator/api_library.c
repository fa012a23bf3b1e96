/* Entry points: libraries and their kernels. */
#include <stdlib.h>

#include "library.h"

static int find_library(CUlibrary handle, em_library **library)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    *library = em_object_get(EM_KIND_LIBRARY, handle);
    return *library != NULL
               ? CUDA_SUCCESS
               : em_explain(CUDA_ERROR_INVALID_HANDLE, "%p is no library, or one that was unloaded", (void *)handle);
}

static int find_kernel(CUkernel handle, em_kernel_handle **kernel)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    *kernel = em_object_get(EM_KIND_KERNEL, handle);
    return *kernel != NULL
               ? CUDA_SUCCESS
               : em_explain(CUDA_ERROR_INVALID_HANDLE, "%p is no kernel, or its library was unloaded", (void *)handle);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static const em_limits *limits_here(void)
{
    em_context *context = em_self.current;
    return context != NULL && context->object.live ? &context->device->limits : &em_devices[0].limits;
}

static int check_library_options(CUlibraryOption *options, unsigned int count)
{
    if (count != 0 && options == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++)
        if ((int)options[i] < 0 || options[i] >= CU_LIBRARY_NUM_OPTIONS)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static int load(CUlibrary *handle, const void *image, size_t size, em_jit *jit)
{
    char *ptx;
    size_t length;
    em_library *library = NULL;
    em_detail *detail = em_thread_detail();
    int status = em_image_ptx(image, size, limits_here(), &ptx, &length, detail);
    if (status == CUDA_SUCCESS)
        status = em_library_load(ptx, length, &library, detail);
    em_jit_report(jit, status, detail);
    if (status == CUDA_SUCCESS)
        *handle = (CUlibrary)(void *)library;
    return status;
}

EM_ENTRY(cuLibraryLoadData, "%p, %p, %p, %p, %u, %p, %p, %u",
         (handle, image, options, values, count, library_options, library_values, library_count), CUlibrary *handle,
         const void *image, CUjit_option *options, void **values, unsigned int count, CUlibraryOption *library_options,
         void **library_values, unsigned int library_count)
{
    em_jit jit;
    int status = em_enter_any();
    if (status == CUDA_SUCCESS)
        status = em_jit_read(count, options, values, &jit);
    if (status == CUDA_SUCCESS)
        status = check_library_options(library_options, library_count);
    if (status != CUDA_SUCCESS)
        return status;
    return handle != NULL && image != NULL ? load(handle, image, 0, &jit) : CUDA_ERROR_INVALID_VALUE;
}

EM_ENTRY(cuLibraryLoadFromFile, "%p, %s, %p, %p, %u, %p, %p, %u",
         (handle, path, options, values, count, library_options, library_values, library_count), CUlibrary *handle,
         const char *path, CUjit_option *options, void **values, unsigned int count, CUlibraryOption *library_options,
         void **library_values, unsigned int library_count)
{
    em_jit jit;
    void *image;
    size_t size;
    int status = em_enter_any();
    if (status == CUDA_SUCCESS)
        status = em_jit_read(count, options, values, &jit);
    if (status == CUDA_SUCCESS)
        status = check_library_options(library_options, library_count);
    if (status != CUDA_SUCCESS)
        return status;
    if (handle == NULL || path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    status = em_image_read(path, &image, &size, em_thread_detail());
    if (status != CUDA_SUCCESS)
        return status;
    status = size != 0 ? load(handle, image, size, &jit) : em_explain(CUDA_ERROR_INVALID_IMAGE, "%s is empty", path);
    free(image);
    return status;
}

EM_ENTRY(cuLibraryUnload, "%p", (handle), CUlibrary handle)
{
    em_library *library;
    int status = find_library(handle, &library);
    if (status != CUDA_SUCCESS)
        return status;
    if (!em_object_close(&library->object))
        return CUDA_ERROR_INVALID_HANDLE;
    em_library_unload(library);
    return CUDA_SUCCESS;
}

/* ---- what is in it ----------------------------------------------------------------------------------------------- */

EM_ENTRY(cuLibraryGetKernel, "%p, %p, %s", (kernel, handle, name), CUkernel *kernel, CUlibrary handle, const char *name)
{
    em_library *library;
    int status = find_library(handle, &library);
    if (status != CUDA_SUCCESS)
        return status;
    if (kernel == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    em_kernel_handle *found = em_library_find(library, name);
    if (found == NULL)
        return em_explain(CUDA_ERROR_NOT_FOUND, "the library has no kernel named '%s'; it has %zu%s%s", name,
                          library->kernel_count, library->kernel_count != 0 ? ", the first is " : "",
                          library->kernel_count != 0 ? library->kernels[0]->info->name : "");
    *kernel = (CUkernel)(void *)found;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuLibraryGetKernelCount, "%p, %p", (count, handle), unsigned int *count, CUlibrary handle)
{
    em_library *library;
    int status = find_library(handle, &library);
    if (status != CUDA_SUCCESS)
        return status;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (unsigned int)library->kernel_count;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuLibraryEnumerateKernels, "%p, %u, %p", (kernels, count, handle), CUkernel *kernels, unsigned int count,
         CUlibrary handle)
{
    em_library *library;
    int status = find_library(handle, &library);
    if (status != CUDA_SUCCESS)
        return status;
    if (kernels == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && i < library->kernel_count; i++)
        kernels[i] = (CUkernel)(void *)library->kernels[i];
    return CUDA_SUCCESS;
}

static int instance_here(CUlibrary handle, em_instance **instance)
{
    em_library *library;
    em_context *context;
    int status = find_library(handle, &library);
    if (status == CUDA_SUCCESS)
        status = em_enter(&context);
    return status == CUDA_SUCCESS ? em_library_instance(library, context, instance) : status;
}

EM_ENTRY(cuLibraryGetModule, "%p, %p", (module, handle), CUmodule *module, CUlibrary handle)
{
    em_instance *instance;
    int status = instance_here(handle, &instance);
    if (status != CUDA_SUCCESS)
        return status;
    if (module == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *module = (CUmodule)(void *)em_instance_handle(instance);
    return *module != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EM_ENTRY(cuLibraryGetGlobal, "%p, %p, %p, %s", (address, size, handle, name), CUdeviceptr *address, size_t *size,
         CUlibrary handle, const char *name)
{
    em_instance *instance;
    int status = instance_here(handle, &instance);
    if (status != CUDA_SUCCESS)
        return status;
    return em_instance_variable(instance, name, address, size);
}

EM_ENTRY(cuLibraryGetManaged, "%p, %p, %p, %s", (address, size, handle, name), CUdeviceptr *address, size_t *size,
         CUlibrary handle, const char *name)
{
    em_library *library;
    int status = find_library(handle, &library);
    if (status != CUDA_SUCCESS)
        return status;
    if (name == NULL || (address == NULL && size == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    return em_explain(CUDA_ERROR_NOT_FOUND, "the emulated device has no __managed__ variables: '%s' is not one", name);
}

EM_ENTRY(cuLibraryGetUnifiedFunction, "%p, %p, %s", (pointer, handle, name), void **pointer, CUlibrary handle,
         const char *name)
{
    em_library *library;
    int status = find_library(handle, &library);
    return status != CUDA_SUCCESS
               ? status
               : em_explain(CUDA_ERROR_NOT_FOUND, "the emulated device has no unified function pointers");
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

EM_ENTRY(cuKernelGetFunction, "%p, %p", (function, handle), CUfunction *function, CUkernel handle)
{
    em_kernel_handle *kernel;
    em_context *context;
    em_function *found;
    int status = find_kernel(handle, &kernel);
    if (status == CUDA_SUCCESS)
        status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (function == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    status = em_kernel_function(kernel, context, &found);
    if (status == CUDA_SUCCESS)
        *function = (CUfunction)(void *)found;
    return status;
}

EM_ENTRY(cuKernelGetLibrary, "%p, %p", (library, handle), CUlibrary *library, CUkernel handle)
{
    em_kernel_handle *kernel;
    int status = find_kernel(handle, &kernel);
    if (status != CUDA_SUCCESS)
        return status;
    if (library == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *library = (CUlibrary)(void *)kernel->library;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuKernelGetName, "%p, %p", (name, handle), const char **name, CUkernel handle)
{
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    em_kernel_handle *kernel;
    em_function *function = em_object_get(EM_KIND_FUNCTION, handle); /* a CUfunction does as well */
    if (function != NULL) {
        *name = function->code.info->name;
        return em_enter_any();
    }
    int status = find_kernel(handle, &kernel);
    if (status == CUDA_SUCCESS)
        *name = kernel->info->name;
    return status;
}

EM_ENTRY(cuKernelGetParamInfo, "%p, %zu, %p, %p", (handle, index, offset, size), CUkernel handle, size_t index,
         size_t *offset, size_t *size)
{
    em_kernel_handle *kernel;
    em_context *context; /* the driver loads the kernel to answer: measured, it asks for a current context */
    int status = find_kernel(handle, &kernel);
    if (status == CUDA_SUCCESS)
        status = em_enter(&context);
    return status == CUDA_SUCCESS ? em_parameter_info(kernel->info, index, offset, size) : status;
}

static int code_on(CUkernel handle, CUdevice ordinal, em_code *code)
{
    em_kernel_handle *kernel;
    int status = find_kernel(handle, &kernel);
    if (status != CUDA_SUCCESS)
        return status;
    code->device = em_device_get(ordinal);
    if (code->device == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    code->info = kernel->info;
    code->settings = &kernel->settings[ordinal];
    return CUDA_SUCCESS;
}

EM_ENTRY(cuKernelGetAttribute, "%p, %d, %p, %d", (value, attribute, handle, device), int *value,
         CUfunction_attribute attribute, CUkernel handle, CUdevice device)
{
    em_code code;
    int status = code_on(handle, device, &code);
    if (status != CUDA_SUCCESS)
        return status;
    return value != NULL ? em_code_attribute(&code, attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

EM_ENTRY(cuKernelSetAttribute, "%d, %d, %p, %d", (attribute, value, handle, device), CUfunction_attribute attribute,
         int value, CUkernel handle, CUdevice device)
{
    em_code code;
    int status = code_on(handle, device, &code);
    return status == CUDA_SUCCESS ? em_code_set_attribute(&code, attribute, value) : status;
}

EM_ENTRY(cuKernelSetCacheConfig, "%p, %d, %d", (handle, config, device), CUkernel handle, CUfunc_cache config,
         CUdevice device)
{
    em_code code;
    int status = code_on(handle, device, &code);
    if (status != CUDA_SUCCESS)
        return status;
    return (int)config >= 0 && config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
