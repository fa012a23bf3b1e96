/* Memory pools: what they account for. The memory itself comes from the heap, which keeps nothing for a pool. */
#include "api.h"

#define RESERVE_STEP (UINT64_C(32) << 20) /* a pool grows by this much at a time */

static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before a pool's own */
static em_pool *pools;
static em_pool *host_pool;

int em_pool_new(const CUmemPoolProps *props, bool is_default, em_pool **pool)
{
    em_pool *made = em_object_new(EM_KIND_POOL, sizeof *made);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->props = *props;
    bool managed = props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED; /* wherever it is preferred, it is the host's */
    made->ordinal = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE && !managed ? props->location.id : -1;
    made->is_default = is_default;
    made->reuse[0] = made->reuse[1] = made->reuse[2] = 1;
    made->access = made->ordinal >= 0 ? UINT64_C(1) << made->ordinal : 0; /* host pools: to be granted */
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_lock(&pools_lock);
    made->next = pools;
    pools = made;
    pthread_mutex_unlock(&pools_lock);
    *pool = made;
    return CUDA_SUCCESS;
}

int em_pool_default(CUmemLocation location, em_pool **pool)
{
    em_device *device = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? em_device_get(location.id) : NULL;
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE && device == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&em_device_lock);
    em_pool **kept = device != NULL ? &device->default_pool : &host_pool;
    int status = CUDA_SUCCESS;
    if (*kept == NULL) {
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = location};
        status = em_pool_new(&props, true, kept);
    }
    *pool = *kept;
    pthread_mutex_unlock(&em_device_lock);
    return status;
}

static em_pool *find_default_managed(CUmemLocation location)
{
    pthread_mutex_lock(&pools_lock);
    em_pool *found = pools;
    while (found != NULL && !(found->is_default && found->props.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED &&
                              found->props.location.type == location.type && found->props.location.id == location.id))
        found = found->next;
    pthread_mutex_unlock(&pools_lock);
    return found;
}

int em_pool_default_managed(CUmemLocation location, em_pool **pool)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED, .location = location};
    pthread_mutex_lock(&em_device_lock);
    *pool = find_default_managed(location);
    int status = *pool != NULL ? CUDA_SUCCESS : em_pool_new(&props, true, pool);
    pthread_mutex_unlock(&em_device_lock);
    return status;
}

uint64_t em_pool_default_count(void)
{
    uint64_t count = 0;
    pthread_mutex_lock(&pools_lock);
    for (const em_pool *pool = pools; pool != NULL; pool = pool->next)
        count += pool->is_default;
    pthread_mutex_unlock(&pools_lock);
    return count;
}

/* Called with the pool's lock. */
static bool reserve(em_pool *pool, uint64_t bytes)
{
    uint64_t wanted = pool->used + bytes;
    uint64_t most = pool->props.maxSize; /* in whole steps, as CUDA rounds it */
    if (most != 0 && wanted > (most + RESERVE_STEP - 1) / RESERVE_STEP * RESERVE_STEP)
        return false;
    if (wanted <= pool->reserved)
        return true;
    uint64_t target = (wanted + RESERVE_STEP - 1) / RESERVE_STEP * RESERVE_STEP;
    if (pool->ordinal >= 0) {
        em_device *device = &em_devices[pool->ordinal];
        if (!em_device_charge(device, target - pool->reserved)) {
            target = wanted;
            if (!em_device_charge(device, target - pool->reserved))
                return false;
        }
    }
    pool->reserved = target;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return true;
}

static bool take(em_pool *pool, uint64_t bytes)
{
    pthread_mutex_lock(&pool->lock);
    bool enough = reserve(pool, bytes);
    if (enough) {
        pool->used += bytes;
        if (pool->used > pool->used_high)
            pool->used_high = pool->used;
    }
    pthread_mutex_unlock(&pool->lock);
    return enough;
}

static void trim_device(em_device *device, bool below_threshold)
{
    pthread_mutex_lock(&pools_lock);
    for (em_pool *pool = pools; pool != NULL; pool = pool->next)
        if (pool->ordinal == device->limits.ordinal)
            em_pool_trim(pool, below_threshold ? 0 : pool->threshold);
    pthread_mutex_unlock(&pools_lock);
}

/* Managed memory has to be some device's for those who ask; every device may use it. */
static em_range *allocate_managed(em_pool *pool, uint64_t size)
{
    CUmemLocation preferred = pool->props.location;
    int device = preferred.type == CU_MEM_LOCATION_TYPE_DEVICE ? preferred.id : 0;
    em_range *range = em_heap_allocate_owned(size, EM_MANAGED, device, pool, 0, NULL);
    if (range == NULL || preferred.type == CU_MEM_LOCATION_TYPE_NONE)
        return range;
    if (em_advice_change(range, range->base, size, em_advice_prefer, preferred) == CUDA_SUCCESS)
        return range;
    em_heap_release(range);
    return NULL;
}

static em_range *allocate_range(em_pool *pool, uint64_t size)
{
    if (pool->props.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
        return allocate_managed(pool, size);
    return em_heap_allocate_owned(size, pool->ordinal >= 0 ? EM_DEVICE : EM_PINNED, pool->ordinal, pool, 0,
                                  &pool->access);
}

int em_pool_allocate(em_pool *pool, uint64_t size, CUdeviceptr *address)
{
    uint64_t bytes = size;
    if (size > UINT64_C(1) << 48)
        return em_explain(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes are more than any device has",
                          (unsigned long long)size);
    if (!take(pool, bytes)) {
        if (pool->ordinal >= 0)
            trim_device(&em_devices[pool->ordinal], true);
        if (!take(pool, bytes))
            return em_explain(CUDA_ERROR_OUT_OF_MEMORY,
                              "%llu bytes asked of a pool that uses %llu; the device has %llu, the pool's maximum is "
                              "%llu (0: none)",
                              (unsigned long long)size, (unsigned long long)pool->used,
                              (unsigned long long)em_devices[pool->ordinal >= 0 ? pool->ordinal : 0].memory,
                              (unsigned long long)pool->props.maxSize);
    }
    em_object_retain(&pool->object);
    em_range *range = allocate_range(pool, size);
    if (range == NULL) {
        em_pool_refund(pool, size);
        return em_explain(CUDA_ERROR_OUT_OF_MEMORY, "the host has no memory for %llu bytes", (unsigned long long)size);
    }
    *address = range->base;
    return CUDA_SUCCESS;
}

static void unlink_pool(em_pool *pool)
{
    pthread_mutex_lock(&pools_lock);
    em_pool **link = &pools;
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    pthread_mutex_unlock(&pools_lock);
}

static void release_pool(em_pool *pool)
{
    if (!em_object_release(&pool->object))
        return;
    unlink_pool(pool);
    em_pool_trim(pool, 0);
    pthread_mutex_destroy(&pool->lock);
    em_object_recycle(EM_KIND_POOL, &pool->object);
}

void em_pool_close(em_pool *pool)
{
    release_pool(pool);
}

static _Atomic bool slack; /* some pool may hold more than it uses */

void em_pool_refund(em_pool *pool, uint64_t size)
{
    pthread_mutex_lock(&pool->lock);
    pool->used -= size;
    pthread_mutex_unlock(&pool->lock);
    atomic_store_explicit(&slack, true, memory_order_release);
    release_pool(pool);
}

void em_pool_trim(em_pool *pool, uint64_t keep)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t wanted = pool->used > keep ? pool->used : keep;
    uint64_t target = (wanted + RESERVE_STEP - 1) / RESERVE_STEP * RESERVE_STEP;
    if (target < wanted)
        target = UINT64_MAX;
    if (pool->reserved > target) {
        if (pool->ordinal >= 0)
            em_device_refund(&em_devices[pool->ordinal], pool->reserved - target);
        pool->reserved = target;
    }
    pthread_mutex_unlock(&pool->lock);
}

void em_pools_trim(em_device *device)
{
    if (atomic_load_explicit(&slack, memory_order_relaxed) && atomic_exchange(&slack, false))
        trim_device(device, false);
}
