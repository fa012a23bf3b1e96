/* Entry points: functions and their occupancy. */
#include "library.h"

static int find_function(CUfunction handle, em_function **function)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    *function = em_object_get(EM_KIND_FUNCTION, handle);
    if (*function == NULL)
        return em_explain(CUDA_ERROR_INVALID_HANDLE, "%p is no function, or its module was unloaded%s", (void *)handle,
                          em_object_get(EM_KIND_KERNEL, handle) != NULL ? "; it is a CUkernel" : "");
    return CUDA_SUCCESS;
}

/* The calls about occupancy take a CUkernel too. */
static int find_any(CUfunction handle, em_function **function)
{
    em_context *context;
    int status = em_enter(&context);
    return status == CUDA_SUCCESS ? em_function_resolve(handle, context, function) : status;
}

EM_ENTRY(cuFuncGetAttribute, "%p, %d, %p", (value, attribute, handle), int *value, CUfunction_attribute attribute,
         CUfunction handle)
{
    em_function *function;
    int status = find_function(handle, &function);
    if (status != CUDA_SUCCESS)
        return status;
    return value != NULL ? em_code_attribute(&function->code, attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

EM_ENTRY(cuFuncSetAttribute, "%p, %d, %d", (handle, attribute, value), CUfunction handle,
         CUfunction_attribute attribute, int value)
{
    em_function *function;
    int status = find_function(handle, &function);
    return status == CUDA_SUCCESS ? em_code_set_attribute(&function->code, attribute, value) : status;
}

EM_ENTRY(cuFuncSetCacheConfig, "%p, %d", (handle, config), CUfunction handle, CUfunc_cache config)
{
    em_function *function;
    int status = find_function(handle, &function);
    if (status != CUDA_SUCCESS)
        return status;
    return (int)config >= 0 && config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EM_ENTRY(cuFuncGetModule, "%p, %p", (module, handle), CUmodule *module, CUfunction handle)
{
    em_function *function;
    int status = find_function(handle, &function);
    if (status != CUDA_SUCCESS)
        return status;
    if (module == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *module = (CUmodule)(void *)em_instance_handle(function->instance);
    return *module != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EM_ENTRY(cuFuncGetName, "%p, %p", (name, handle), const char **name, CUfunction handle)
{
    em_function *function;
    int status = find_function(handle, &function);
    if (status != CUDA_SUCCESS)
        return status;
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *name = function->code.info->name;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuFuncGetParamInfo, "%p, %zu, %p, %p", (handle, index, offset, size), CUfunction handle, size_t index,
         size_t *offset, size_t *size)
{
    em_function *function;
    int status = find_function(handle, &function);
    return status == CUDA_SUCCESS ? em_parameter_info(function->code.info, index, offset, size) : status;
}

EM_ENTRY(cuFuncIsLoaded, "%p, %p", (state, handle), CUfunctionLoadingState *state, CUfunction handle)
{
    em_function *function;
    int status = find_function(handle, &function);
    if (status != CUDA_SUCCESS)
        return status;
    if (state == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuFuncLoad, "%p", (handle), CUfunction handle)
{
    em_function *function;
    return find_function(handle, &function);
}

/* ---- occupancy --------------------------------------------------------------------------------------------------- */

static int active_blocks(int *blocks, CUfunction handle, int threads, size_t dynamic_shared, unsigned int flags)
{
    em_function *function;
    int status = find_any(handle, &function);
    if (status != CUDA_SUCCESS)
        return status;
    if (blocks == NULL || threads <= 0 || (flags & ~(unsigned int)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = em_occupancy(&function->code, (uint64_t)threads, dynamic_shared);
    return CUDA_SUCCESS;
}

EM_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, "%p, %p, %d, %zu", (blocks, handle, threads, dynamic_shared),
         int *blocks, CUfunction handle, int threads, size_t dynamic_shared)
{
    return active_blocks(blocks, handle, threads, dynamic_shared, 0);
}

EM_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, "%p, %p, %d, %zu, %#x",
         (blocks, handle, threads, dynamic_shared, flags), int *blocks, CUfunction handle, int threads,
         size_t dynamic_shared, unsigned int flags)
{
    return active_blocks(blocks, handle, threads, dynamic_shared, flags);
}

/* The block size that keeps most threads on a multiprocessor; the largest such. */
static int potential_block(int *grid, int *block, CUfunction handle, CUoccupancyB2DSize shared_of, size_t shared,
                           int limit, unsigned int flags)
{
    em_function *function;
    int status = find_any(handle, &function);
    if (status != CUDA_SUCCESS)
        return status;
    if (grid == NULL || block == NULL || limit < 0 ||
        (flags & ~(unsigned int)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    int most = (int)function->code.info->max_threads, best_threads = 0, best_blocks = 0;
    if (limit != 0 && limit < most)
        most = limit;
    for (int threads = most; threads > 0; threads = threads % 32 != 0 ? threads - threads % 32 : threads - 32) {
        int blocks = em_occupancy(&function->code, (uint64_t)threads, shared_of != NULL ? shared_of(threads) : shared);
        if (blocks * threads > best_blocks * best_threads) {
            best_blocks = blocks;
            best_threads = threads;
        }
    }
    if (best_threads == 0)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "no block of kernel '%s' fits with that much shared memory",
                          function->code.info->name);
    *block = best_threads;
    *grid = best_blocks * function->code.device->limits.multiprocessors;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuOccupancyMaxPotentialBlockSize, "%p, %p, %p, %p, %zu, %d", (grid, block, handle, shared_of, shared, limit),
         int *grid, int *block, CUfunction handle, CUoccupancyB2DSize shared_of, size_t shared, int limit)
{
    return potential_block(grid, block, handle, shared_of, shared, limit, 0);
}

EM_ENTRY(cuOccupancyMaxPotentialBlockSizeWithFlags, "%p, %p, %p, %p, %zu, %d, %#x",
         (grid, block, handle, shared_of, shared, limit, flags), int *grid, int *block, CUfunction handle,
         CUoccupancyB2DSize shared_of, size_t shared, int limit, unsigned int flags)
{
    return potential_block(grid, block, handle, shared_of, shared, limit, flags);
}

EM_ENTRY(cuOccupancyAvailableDynamicSMemPerBlock, "%p, %p, %d, %d", (bytes, handle, blocks, threads), size_t *bytes,
         CUfunction handle, int blocks, int threads)
{
    em_function *function;
    int status = find_any(handle, &function);
    if (status != CUDA_SUCCESS)
        return status;
    if (bytes == NULL || blocks <= 0 || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = em_dynamic_shared_for(&function->code, blocks, (uint64_t)threads);
    return CUDA_SUCCESS;
}

static int no_clusters(CUfunction handle)
{
    em_function *function;
    int status = find_any(handle, &function);
    return status != CUDA_SUCCESS ? status
                                  : em_explain(CUDA_ERROR_NOT_SUPPORTED, "the emulated device does not launch clusters "
                                                                         "(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH is 0)");
}

EM_ENTRY(cuOccupancyMaxPotentialClusterSize, "%p, %p, %p", (size, handle, config), int *size, CUfunction handle,
         const CUlaunchConfig *config)
{
    return no_clusters(handle);
}

EM_ENTRY(cuOccupancyMaxActiveClusters, "%p, %p, %p", (count, handle, config), int *count, CUfunction handle,
         const CUlaunchConfig *config)
{
    return no_clusters(handle);
}
