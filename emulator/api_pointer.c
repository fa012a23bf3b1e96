/* Entry points: what is known of a pointer. */
#include <string.h>

#include "api.h"

static CUmemorytype type_of(const em_range *range)
{
    return range->kind == EM_PINNED || range->kind == EM_REGISTERED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

static bool host_may_use(const em_range *range)
{
    return range->kind != EM_DEVICE && range->kind != EM_CONSTANT;
}

static CUcontext context_of(const em_range *range)
{
    bool owned = em_object_kind(range->owner) == EM_KIND_CONTEXT;
    return owned ? (CUcontext)range->owner : NULL;
}

/* By the device of the current context; device 0 where there is none. */
static unsigned int access_of(const em_range *range)
{
    const int device = em_self.current != NULL ? em_self.current->device->limits.ordinal : 0;
    if (em_object_kind(range->owner) != EM_KIND_PHYSICAL)
        return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    if (!em_heap_accessible(range, device))
        return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
    return em_heap_writable(range, device) ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                           : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ;
}

/* Of a live range. Called pinned. */
static int get(void *data, CUpointer_attribute attribute, const em_range *range, uint64_t address)
{
    bool of_pool = em_object_kind(range->owner) == EM_KIND_POOL;
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = context_of(range);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned int *)data = type_of(range);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)data = host_may_use(range) ? (void *)(uintptr_t)address : NULL;
        return host_may_use(range) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned int *)data = range->kind == EM_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)data = range->serial;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned int *)data = range->kind == EM_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
        CUcontext context = context_of(range);
        int owner = context != NULL ? ((const em_context *)(const void *)context)->device->limits.ordinal : 0;
        *(int *)data = range->device >= 0 ? range->device : owner;
        return CUDA_SUCCESS;
    }
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        *(unsigned int *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = range->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = range->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned int *)data = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data =
            em_object_kind(range->owner) == EM_KIND_PHYSICAL
                ? (unsigned long long)((const em_physical *)range->owner)->props.requestedHandleTypes
                : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned int *)data = access_of(range);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = of_pool ? (CUmemoryPool)range->owner : NULL;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static size_t size_of(CUpointer_attribute attribute)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: /* 4 bytes, though documented as bool */
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return 4;
    default:
        return 8;
    }
}

static em_range *find_live(CUdeviceptr address)
{
    em_range *range = em_heap_find(address);
    return range != NULL && range->live ? range : NULL;
}

static bool known(CUpointer_attribute attribute)
{
    return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT && attribute <= CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID &&
           attribute != CU_POINTER_ATTRIBUTE_P2P_TOKENS;
}

EM_ENTRY(cuPointerGetAttribute, "%p, %d, %#llx", (data, attribute, address), void *data, CUpointer_attribute attribute,
         CUdeviceptr address)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (data == NULL || !known(attribute))
        return CUDA_ERROR_INVALID_VALUE;
    em_heap_pin();
    const em_range *range = find_live(address);
    if (range != NULL)
        status = get(data, attribute, range, address);
    else
        status = em_explain(CUDA_ERROR_INVALID_VALUE, "0x%llx is not memory that CUDA allocated or registered",
                            (unsigned long long)address);
    em_heap_unpin();
    return status;
}

/* Of memory that CUDA does not know. A GPU's driver answers so too: a null of the type, with these exceptions. */
static void get_unknown(void *data, CUpointer_attribute attribute, uint64_t address)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: /* left as they are */
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)data = (void *)(uintptr_t)address;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = -2;
        break;
    default:
        memset(data, 0, size_of(attribute));
    }
}

EM_ENTRY(cuPointerGetAttributes, "%u, %p, %p, %#llx", (count, attributes, data, address), unsigned int count,
         CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (count == 0 || attributes == NULL || data == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++)
        if (data[i] == NULL || !known(attributes[i]))
            return CUDA_ERROR_INVALID_VALUE;
    em_heap_pin();
    const em_range *range = find_live(address);
    for (unsigned int i = 0; i < count; i++) {
        if (range == NULL)
            get_unknown(data[i], attributes[i], address);
        else if (get(data[i], attributes[i], range, address) != CUDA_SUCCESS)
            memset(data[i], 0, size_of(attributes[i]));
    }
    em_heap_unpin();
    return CUDA_SUCCESS;
}

EM_ENTRY(cuPointerSetAttribute, "%p, %d, %#llx", (value, attribute, address), const void *value,
         CUpointer_attribute attribute, CUdeviceptr address)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (value == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    em_heap_pin();
    bool exists = find_live(address) != NULL;
    em_heap_unpin();
    return exists ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
