/* Entry points: modules, which belong to one context. */
#include <stdlib.h>

#include "library.h"

static int find_module(CUmodule handle, em_instance **instance)
{
    *instance = NULL;
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    const em_module_handle *found = em_object_get(EM_KIND_MODULE, handle);
    if (found == NULL)
        return em_explain(CUDA_ERROR_INVALID_HANDLE, "%p is no module, or one that was unloaded", (void *)handle);
    *instance = found->instance;
    return CUDA_SUCCESS;
}

static int load(CUmodule *handle, const void *image, size_t size, em_jit *jit)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (handle == NULL || image == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    char *ptx = NULL;
    size_t length;
    em_instance *instance = NULL;
    em_detail *detail = em_thread_detail();
    status = em_image_ptx(image, size, &context->device->limits, &ptx, &length, detail);
    if (status == CUDA_SUCCESS)
        status = em_instance_load(context, ptx, length, &instance, detail);
    em_jit_report(jit, status, detail);
    if (status != CUDA_SUCCESS) {
        free(ptx);
        return status;
    }
    instance->text = ptx;
    *handle = (CUmodule)(void *)em_instance_handle(instance);
    if (*handle != NULL)
        return CUDA_SUCCESS;
    em_instance_unload(instance);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

EM_ENTRY(cuModuleLoadData, "%p, %p", (module, image), CUmodule *module, const void *image)
{
    em_jit none = {0};
    return load(module, image, 0, &none);
}

EM_ENTRY(cuModuleLoadFatBinary, "%p, %p", (module, image), CUmodule *module, const void *image)
{
    em_jit none = {0};
    return load(module, image, 0, &none);
}

EM_ENTRY(cuModuleLoadDataEx, "%p, %p, %u, %p, %p", (module, image, count, options, values), CUmodule *module,
         const void *image, unsigned int count, CUjit_option *options, void **values)
{
    em_jit jit;
    int status = em_jit_read(count, options, values, &jit);
    return status == CUDA_SUCCESS ? load(module, image, 0, &jit) : status;
}

EM_ENTRY(cuModuleLoad, "%p, %s", (module, path), CUmodule *module, const char *path)
{
    em_context *context;
    void *image;
    size_t size;
    em_jit none = {0};
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (module == NULL || path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    status = em_image_read(path, &image, &size, em_thread_detail());
    if (status != CUDA_SUCCESS)
        return status;
    status = size != 0 ? load(module, image, size, &none) : em_explain(CUDA_ERROR_INVALID_IMAGE, "%s is empty", path);
    free(image);
    return status;
}

EM_ENTRY(cuModuleUnload, "%p", (handle), CUmodule handle)
{
    em_instance *instance;
    int status = find_module(handle, &instance);
    if (status != CUDA_SUCCESS)
        return status;
    if (instance->library != NULL)
        return em_explain(CUDA_ERROR_NOT_PERMITTED, "the module belongs to a library, which is unloaded as a whole "
                                                    "(cuLibraryUnload)");
    em_instance_unload(instance);
    return CUDA_SUCCESS;
}

EM_ENTRY(cuModuleGetLoadingMode, "%p", (mode), CUmoduleLoadingMode *mode)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (mode == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuModuleGetFunction, "%p, %p, %s", (function, handle, name), CUfunction *function, CUmodule handle,
         const char *name)
{
    em_instance *instance;
    em_function *found;
    int status = find_module(handle, &instance);
    if (status != CUDA_SUCCESS)
        return status;
    if (function == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    status = em_instance_find(instance, name, &found);
    if (status == CUDA_SUCCESS)
        *function = (CUfunction)(void *)found;
    return status;
}

EM_ENTRY(cuModuleGetFunctionCount, "%p, %p", (count, handle), unsigned int *count, CUmodule handle)
{
    em_instance *instance;
    int status = find_module(handle, &instance);
    if (status != CUDA_SUCCESS)
        return status;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (unsigned int)em_module_kernel_count(instance->module);
    return CUDA_SUCCESS;
}

EM_ENTRY(cuModuleEnumerateFunctions, "%p, %u, %p", (functions, count, handle), CUfunction *functions,
         unsigned int count, CUmodule handle)
{
    em_instance *instance;
    int status = find_module(handle, &instance);
    if (status != CUDA_SUCCESS)
        return status;
    if (functions == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    size_t kernels = em_module_kernel_count(instance->module);
    for (size_t i = 0; i < count && i < kernels && status == CUDA_SUCCESS; i++) {
        em_function *function;
        status = em_instance_function(instance, i, &function);
        functions[i] = (CUfunction)(void *)function;
    }
    return status;
}

int em_instance_variable(em_instance *instance, const char *name, CUdeviceptr *address, size_t *size)
{
    uint64_t where, bytes;
    if (name == NULL || (address == NULL && size == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (!em_module_variable(instance->module, name, &where, &bytes))
        return em_explain(CUDA_ERROR_NOT_FOUND, "the module has no variable named '%s'", name);
    if (address != NULL)
        *address = where;
    if (size != NULL)
        *size = bytes;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuModuleGetGlobal_v2, "%p, %p, %p, %s", (address, size, handle, name), CUdeviceptr *address, size_t *size,
         CUmodule handle, const char *name)
{
    em_instance *instance;
    int status = find_module(handle, &instance);
    return status == CUDA_SUCCESS ? em_instance_variable(instance, name, address, size) : status;
}
