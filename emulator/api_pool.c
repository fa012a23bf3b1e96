/* Entry points: memory pools and stream-ordered allocation. */
#include "api.h"

static int find_pool(CUmemoryPool handle, em_pool **pool)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    *pool = em_object_get(EM_KIND_POOL, handle);
    return *pool != NULL ? CUDA_SUCCESS
                         : em_explain(CUDA_ERROR_INVALID_VALUE, "%p is no memory pool, or one that was destroyed",
                                      (void *)handle);
}

static bool is_host(CUmemLocation location)
{
    return location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

/* Managed memory may prefer no place. */
static bool may_be_pool_of(CUmemLocation location, bool managed)
{
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return em_device_get(location.id) != NULL;
    return is_host(location) || (managed && location.type == CU_MEM_LOCATION_TYPE_NONE);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

EM_ENTRY(cuMemPoolCreate, "%p, %p", (pool, props), CUmemoryPool *pool, const CUmemPoolProps *props)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (pool == NULL || props == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    bool managed = props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
    if ((props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED && !managed) || props->win32SecurityAttributes != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return em_explain(CUDA_ERROR_NOT_SUPPORTED, "the emulated device does not share memory between processes");
    if (!may_be_pool_of(props->location, managed))
        return CUDA_ERROR_INVALID_VALUE;
    em_pool *made;
    status = em_pool_new(props, false, &made);
    if (status == CUDA_SUCCESS)
        *pool = (CUmemoryPool)(void *)made;
    return status;
}

EM_ENTRY(cuMemPoolDestroy, "%p", (handle), CUmemoryPool handle)
{
    em_pool *pool;
    int status = find_pool(handle, &pool);
    if (status != CUDA_SUCCESS)
        return status;
    if (pool->is_default)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "a default memory pool cannot be destroyed");
    if (!em_object_close(&pool->object))
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < em_device_count; i++) {
        em_pool *current = pool;
        atomic_compare_exchange_strong(&em_devices[i].current_pool, &current, NULL);
    }
    em_pool_close(pool);
    return CUDA_SUCCESS;
}

EM_ENTRY(cuMemPoolTrimTo, "%p, %zu", (handle, keep), CUmemoryPool handle, size_t keep)
{
    em_pool *pool;
    int status = find_pool(handle, &pool);
    if (status == CUDA_SUCCESS)
        em_pool_trim(pool, keep);
    return status;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static uint64_t *counter_of(em_pool *pool, CUmemPool_attribute attribute)
{
    switch ((int)attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool->used_high;
    default:
        return NULL;
    }
}

static bool is_reuse(CUmemPool_attribute attribute)
{
    return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
           attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

EM_ENTRY(cuMemPoolGetAttribute, "%p, %d, %p", (handle, attribute, value), CUmemoryPool handle,
         CUmemPool_attribute attribute, void *value)
{
    em_pool *pool;
    int status = find_pool(handle, &pool);
    if (status != CUDA_SUCCESS)
        return status;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&pool->lock);
    const uint64_t *counter = counter_of(pool, attribute);
    if (counter != NULL)
        *(cuuint64_t *)value = *counter;
    else if (is_reuse(attribute))
        *(int *)value = pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
    else
        status = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&pool->lock);
    return status;
}

EM_ENTRY(cuMemPoolSetAttribute, "%p, %d, %p", (handle, attribute, value), CUmemoryPool handle,
         CUmemPool_attribute attribute, void *value)
{
    em_pool *pool;
    int status = find_pool(handle, &pool);
    if (status != CUDA_SUCCESS)
        return status;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&pool->lock);
    if (is_reuse(attribute)) {
        pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(int *)value;
    } else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        pool->threshold = *(cuuint64_t *)value;
    } else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
        /* A high-water mark can only be set back to zero, that is, to what is in use now. */
        if (*(cuuint64_t *)value != 0)
            status = CUDA_ERROR_INVALID_VALUE;
        else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
            pool->used_high = pool->used;
        else
            pool->reserved_high = pool->reserved;
    } else {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* ---- access ------------------------------------------------------------------------------------------------------ */

EM_ENTRY(cuMemPoolSetAccess, "%p, %p, %zu", (handle, map, count), CUmemoryPool handle, const CUmemAccessDesc *map,
         size_t count)
{
    em_pool *pool;
    int status = find_pool(handle, &pool);
    if (status != CUDA_SUCCESS)
        return status;
    if (map == NULL && count != 0)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t given = 0, taken = 0;
    for (size_t i = 0; i < count; i++) {
        int id = map[i].location.id;
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        if (em_device_get(id) == NULL)
            return CUDA_ERROR_INVALID_DEVICE;
        if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
            if (id == pool->ordinal)
                return em_explain(CUDA_ERROR_INVALID_DEVICE, "a device cannot be denied the pool that lies on it");
            taken |= UINT64_C(1) << id;
        } else if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
            given |= UINT64_C(1) << id;
        } else {
            return em_explain(CUDA_ERROR_NOT_SUPPORTED, "a pool is for reading and writing, or for neither");
        }
    }
    atomic_fetch_or(&pool->access, given);
    atomic_fetch_and(&pool->access, ~taken);
    return CUDA_SUCCESS;
}

EM_ENTRY(cuMemPoolGetAccess, "%p, %p, %p", (flags, handle, location), CUmemAccess_flags *flags, CUmemoryPool handle,
         CUmemLocation *location)
{
    em_pool *pool;
    int status = find_pool(handle, &pool);
    if (status != CUDA_SUCCESS)
        return status;
    if (flags == NULL || location == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_host(*location)) {
        *flags = pool->ordinal < 0 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return CUDA_SUCCESS;
    }
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (em_device_get(location->id) == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    bool granted = (atomic_load(&pool->access) >> location->id & 1) != 0;
    *flags = granted ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* ---- default and current pools ----------------------------------------------------------------------------------- */

static int current_pool(em_device *device, em_pool **pool)
{
    *pool = atomic_load_explicit(&device->current_pool, memory_order_acquire);
    if (*pool != NULL)
        return CUDA_SUCCESS;
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->limits.ordinal};
    int status = em_pool_default(location, pool);
    if (status == CUDA_SUCCESS) {
        em_pool *none = NULL;
        if (!atomic_compare_exchange_strong(&device->current_pool, &none, *pool))
            *pool = none;
    }
    return status;
}

static int give_pool(CUmemoryPool *handle, int status, em_pool *pool)
{
    if (status == CUDA_SUCCESS)
        *handle = (CUmemoryPool)(void *)pool;
    return status;
}

EM_ENTRY(cuDeviceGetDefaultMemPool, "%p, %d", (handle, ordinal), CUmemoryPool *handle, CUdevice ordinal)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    em_pool *pool = NULL;
    status = em_pool_default((CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal}, &pool);
    return give_pool(handle, status, pool);
}

EM_ENTRY(cuDeviceGetMemPool, "%p, %d", (handle, ordinal), CUmemoryPool *handle, CUdevice ordinal)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    em_device *device = em_device_get(ordinal);
    if (handle == NULL || device == NULL)
        return handle == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    em_pool *pool = NULL;
    status = current_pool(device, &pool);
    return give_pool(handle, status, pool);
}

EM_ENTRY(cuDeviceSetMemPool, "%d, %p", (ordinal, handle), CUdevice ordinal, CUmemoryPool handle)
{
    em_pool *pool;
    int status = find_pool(handle, &pool);
    if (status != CUDA_SUCCESS)
        return status;
    em_device *device = em_device_get(ordinal);
    if (device == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    if (pool->ordinal != ordinal)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "the pool is not one of device %d", ordinal);
    atomic_store_explicit(&device->current_pool, pool, memory_order_release);
    return CUDA_SUCCESS;
}

static int check_place(const CUmemLocation *location, CUmemAllocationType type)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (location == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    if ((type != CU_MEM_ALLOCATION_TYPE_PINNED && !managed) || !may_be_pool_of(*location, managed))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuMemGetDefaultMemPool, "%p, %p, %d", (handle, location, type), CUmemoryPool *handle, CUmemLocation *location,
         CUmemAllocationType type)
{
    int status = check_place(location, type);
    if (status != CUDA_SUCCESS)
        return status;
    if (handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    em_pool *pool = NULL;
    status = type == CU_MEM_ALLOCATION_TYPE_MANAGED ? em_pool_default_managed(*location, &pool)
                                                    : em_pool_default(*location, &pool);
    return give_pool(handle, status, pool);
}

static _Atomic(em_pool *) current_host_pool;

EM_ENTRY(cuMemGetMemPool, "%p, %p, %d", (handle, location, type), CUmemoryPool *handle, CUmemLocation *location,
         CUmemAllocationType type)
{
    int status = check_place(location, type);
    if (status != CUDA_SUCCESS)
        return status;
    if (handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
        return do_cuMemGetDefaultMemPool(handle, location, type);
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        return do_cuDeviceGetMemPool(handle, location->id);
    em_pool *pool = atomic_load(&current_host_pool);
    if (pool == NULL || !pool->object.live)
        status = em_pool_default(*location, &pool);
    return give_pool(handle, status, pool);
}

EM_ENTRY(cuMemSetMemPool, "%p, %d, %p", (location, type, handle), CUmemLocation *location, CUmemAllocationType type,
         CUmemoryPool handle)
{
    em_pool *pool;
    int status = check_place(location, type);
    if (status == CUDA_SUCCESS)
        status = find_pool(handle, &pool);
    if (status != CUDA_SUCCESS)
        return status;
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
        return em_explain(CUDA_ERROR_NOT_SUPPORTED, "the emulated device keeps to its default pools of managed memory");
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        return do_cuDeviceSetMemPool(location->id, handle);
    if (pool->ordinal >= 0)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "the pool is one of device %d, not of the host", pool->ordinal);
    atomic_store(&current_host_pool, pool);
    return CUDA_SUCCESS;
}

/* ---- allocation in stream order ---------------------------------------------------------------------------------- */

static int allocate(em_pool *pool, size_t size, CUdeviceptr *address)
{
    if (address == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (size == 0) { /* as CUDA does: no memory, and no error */
        *address = 0;
        return CUDA_SUCCESS;
    }
    return em_pool_allocate(pool, size, address);
}

EM_ENTRY_STREAM(cuMemAllocAsync, "%p, %zu, %p", (address, size, hStream), CUdeviceptr *address, size_t size,
                CUstream hStream)
{
    em_stream *stream;
    em_pool *pool;
    int status = em_stream_enter(hStream, &stream);
    if (status == CUDA_SUCCESS)
        status = current_pool(stream->context->device, &pool);
    return status == CUDA_SUCCESS ? allocate(pool, size, address) : status;
}

EM_ENTRY_STREAM(cuMemAllocFromPoolAsync, "%p, %zu, %p, %p", (address, size, handle, hStream), CUdeviceptr *address,
                size_t size, CUmemoryPool handle, CUstream hStream)
{
    em_stream *stream;
    em_pool *pool;
    int status = em_stream_enter(hStream, &stream);
    if (status == CUDA_SUCCESS)
        status = find_pool(handle, &pool);
    return status == CUDA_SUCCESS ? allocate(pool, size, address) : status;
}

typedef struct free_op {
    em_op op;
    em_range *range; /* claimed, so it stays until it is released here */
} free_op;

static void finish_free(em_op *op, em_stream *stream, int status)
{
    (void)stream;
    (void)status;
    em_memory_release(((free_op *)op)->range);
}

EM_ENTRY_STREAM(cuMemFreeAsync, "%#llx, %p", (address, hStream), CUdeviceptr address, CUstream hStream)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS || address == 0)
        return status;
    free_op *op = (free_op *)em_op_new(sizeof *op);
    if (op == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    status = em_memory_claim(address, true, &op->range);
    if (status != CUDA_SUCCESS) {
        em_op_drop(&op->op);
        return status;
    }
    op->op.finish = finish_free;
    return em_stream_submit(stream, &op->op, EM_NOW_OR_QUEUE);
}
