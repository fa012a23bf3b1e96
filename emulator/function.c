/* What is known of a function, what may be set on it, and how many of its blocks fit. */
#include "library.h"

void em_settings_init(em_settings *settings, const em_kernel_info *info)
{
    settings->max_dynamic_shared = settings->carveout = -1;
    for (int axis = 0; axis < 3; axis++)
        settings->required_cluster[axis] = (int)info->required_cluster[axis];
}

static int device_value(const em_code *code, CUdevice_attribute attribute)
{
    int value = 0;
    em_device_attribute(code->device, attribute, &value);
    return value;
}

/* Dynamic shared memory that a block may have beside the kernel's static shared memory, without being allowed more. */
static int default_dynamic_shared(const em_code *code)
{
    int all = device_value(code, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    int fixed = (int)code->info->static_shared_bytes;
    return fixed < all ? all - fixed : 0;
}

int em_code_attribute(const em_code *code, CUfunction_attribute attribute, int *value)
{
    const em_kernel_info *info = code->info;
    int allowed = atomic_load(&code->settings->max_dynamic_shared), by_default = default_dynamic_shared(code);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)info->max_threads;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)info->static_shared_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = (int)info->constant_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)info->local_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = (int)info->registers;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = info->target;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = device_value(code, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                 device_value(code, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = allowed >= 0 ? allowed : by_default;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = atomic_load(&code->settings->carveout);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *value = atomic_load(&code->settings->required_cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH]);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = atomic_load(&code->settings->non_portable_cluster);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = atomic_load(&code->settings->cluster_policy);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static int set_dynamic_shared(const em_code *code, int value)
{
    int most = device_value(code, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    int fixed = (int)code->info->static_shared_bytes;
    if (value < 0 || value > most - fixed)
        return em_explain(CUDA_ERROR_INVALID_VALUE,
                          "kernel '%s' can have %d bytes of dynamic shared memory at most: %d of the device less %d of "
                          "its own",
                          code->info->name, most - fixed, most, fixed);
    atomic_store(&code->settings->max_dynamic_shared, value);
    return CUDA_SUCCESS;
}

int em_code_set_attribute(const em_code *code, CUfunction_attribute attribute, int value)
{
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return set_dynamic_shared(code, value);
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        atomic_store(&code->settings->carveout, value);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        if (value < 0 || code->info->required_cluster[0] != 0)
            return CUDA_ERROR_INVALID_VALUE;
        atomic_store(&code->settings->required_cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH], value);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        atomic_store(&code->settings->non_portable_cluster, value != 0);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        if (value < 0 || value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)
            return CUDA_ERROR_INVALID_VALUE;
        atomic_store(&code->settings->cluster_policy, value);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

int em_parameter_info(const em_kernel_info *info, size_t index, size_t *offset, size_t *size)
{
    if (offset == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (index >= info->parameter_count)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "kernel '%s' has %zu parameters; number %zu was asked for",
                          info->name, info->parameter_count, index);
    *offset = info->parameters[index].offset;
    if (size != NULL)
        *size = info->parameters[index].size;
    return CUDA_SUCCESS;
}

static int lower(int a, int b)
{
    return a < b ? a : b;
}

int em_occupancy(const em_code *code, uint64_t threads, uint64_t dynamic_shared)
{
    /* The kernel's own bound does not count here, as on a GPU: it is for launches. */
    if (threads == 0 || threads > (uint64_t)device_value(code, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK))
        return 0;
    uint64_t reserved = (uint64_t)device_value(code, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    uint64_t shared = code->info->static_shared_bytes + dynamic_shared + reserved;
    uint64_t warps = (threads + 31) / 32;
    int blocks = device_value(code, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    int by_warps = device_value(code, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / (int)(warps * 32);
    uint64_t on_chip = (uint64_t)device_value(code, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    int by_shared = shared == 0 ? blocks : on_chip / shared > INT32_MAX ? blocks : (int)(on_chip / shared);
    return lower(blocks, lower(by_warps, by_shared));
}

/* The most dynamic shared memory with which `blocks` blocks still fit on a multiprocessor. */
uint64_t em_dynamic_shared_for(const em_code *code, int blocks, uint64_t threads)
{
    if (em_occupancy(code, threads, 0) < blocks)
        return 0;
    int on_chip = device_value(code, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    int reserved = device_value(code, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    int most = device_value(code, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    int each = on_chip / blocks - reserved;
    int left = lower(each, most) - (int)code->info->static_shared_bytes;
    return left > 0 ? (uint64_t)left / 128 * 128 : 0;
}
