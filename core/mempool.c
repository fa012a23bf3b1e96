/* Pools of stream-ordered memory: a device's own, and ones made for the caller. */
#include "internal.h"

#include <stdlib.h>

static cc_pool *pool_new(CUmemoryPool native, cc_device *device, cc_context *context)
{
    cc_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    cc__count_start(&pool->count);
    pool->native = native;
    pool->device = device;
    pool->context = context;
    return pool;
}

static int check_supported(cc_device *device, cc_error *error)
{
    int supported; /* a driver that fails to say is not one without pools */
    if (cc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &supported, error))
        return -1;
    if (supported)
        return 0;
    return cc__fail(error, CC_NOT_SUPPORTED, "device %d has no memory pools: allocate without a stream",
                    device->ordinal);
}

/* By default a pool gives all free memory back at each synchronise, which makes the next allocation slow. A threshold
 * that somebody has set is left alone. */
static int keep_memory(CUmemoryPool native, cc_error *error)
{
    cuuint64_t threshold = 0;
    if (CC__CALL(error, cuMemPoolGetAttribute, native, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold))
        return -1;
    if (threshold)
        return 0;
    threshold = UINT64_MAX;
    return CC__CALL(error, cuMemPoolSetAttribute, native, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
}

static int make_default(cc_device *device, cc_context *context, cc_pool **pool, cc_error *error)
{
    CUmemoryPool native;
    if (CC__CALL(error, cuDeviceGetDefaultMemPool, &native, device->native) || keep_memory(native, error))
        return -1;
    *pool = pool_new(native, device, context);
    return *pool ? 0 : cc__fail_memory(error);
}

int cc_pool_device_default(cc_device *device, cc_pool **pool, cc_error *error)
{
    cc_context *context;
    int status = 0;
    cc_pool *found = atomic_load_explicit(&device->default_pool, memory_order_acquire);
    if (!found) {
        if (check_supported(device, error) || cc_device_primary_context(device, &context, error))
            return -1;
        cc__lock(&device->lock);
        found = atomic_load_explicit(&device->default_pool, memory_order_relaxed);
        if (!found && (status = make_default(device, context, &found, error)) == 0)
            atomic_store_explicit(&device->default_pool, found, memory_order_release);
        cc__unlock(&device->lock);
    }
    if (!status)
        *pool = found;
    return status;
}

static int make_pool(cc_device *device, const CUmemPoolProps *properties, cc_pool **pool, cc_error *error)
{
    cc_context *context;
    CUmemoryPool native;
    if (check_supported(device, error) || cc_device_primary_context(device, &context, error))
        return -1;
    if (CC__CALL(error, cuMemPoolCreate, &native, properties))
        return -1;
    if (keep_memory(native, error))
        goto fail;
    cc_pool *made = pool_new(native, device, context);
    if (!made) {
        cc__fail_memory(error);
        goto fail;
    }
    made->owned = true;
    *pool = made;
    return 0;
fail:
    (void)cc__driver.cuMemPoolDestroy(native);
    return -1;
}

int cc_pool_create_device(cc_device *device, size_t max_size, cc_pool **pool, cc_error *error)
{
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->native},
        .maxSize = max_size,
    };
    return make_pool(device, &properties, pool, error);
}

int cc_pool_create_pinned(cc_device *device, int numa_id, size_t max_size, cc_pool **pool, cc_error *error)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .maxSize = max_size};
    properties.location.type = numa_id < 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_HOST_NUMA;
    properties.location.id = numa_id < 0 ? 0 : numa_id;
    cc_pool *made;
    if (make_pool(device, &properties, &made, error)) {
        if (error && error->domain == CC_DOMAIN_DRIVER &&
            (error->code == CUDA_ERROR_NOT_SUPPORTED || error->code == CUDA_ERROR_INVALID_VALUE))
            cc__explain(error, " Pools of host memory need driver 12.6 or newer and a device that supports them; "
                               "page-locked memory without a pool works everywhere.");
        return -1;
    }
    made->pinned = true;
    /* Only the host may use the pool until it is told otherwise. */
    if (cc_pool_set_access(made, device, true, error)) {
        cc_pool_release(made);
        return -1;
    }
    *pool = made;
    return 0;
}

int cc_pool_create_managed(cc_device *device, CUmemLocation location, cc_pool **pool, cc_error *error)
{
    const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED, .location = location};
    if (cc__managed_pools_supported(error) || make_pool(device, &properties, pool, error))
        return -1;
    (*pool)->managed = true;
    return 0;
}

/* A default pool is its device's for the life of the process: allocations from it, the most frequent ones, count
 * nothing. */
cc_pool *cc_pool_retain(cc_pool *pool)
{
    if (pool->owned)
        cc__count_add(&pool->count);
    return pool;
}

void cc_pool_release(cc_pool *pool)
{
    cc__scope scope;
    if (!pool || !pool->owned || !cc__count_drop(&pool->count))
        return;
    if (cc__enter_to_release(&scope, pool->context)) {
        (void)cc__driver.cuMemPoolDestroy(pool->native); /* memory that is still being freed goes with it when it can */
        cc__leave(&scope);
    }
    free(pool);
}

CUmemoryPool cc_pool_native(const cc_pool *pool)
{
    return pool->native;
}

cc_device *cc_pool_device(const cc_pool *pool)
{
    return pool->device;
}

bool cc_pool_is_owned(const cc_pool *pool)
{
    return pool->owned;
}

bool cc_pool_is_pinned(const cc_pool *pool)
{
    return pool->pinned;
}

bool cc_pool_is_managed(const cc_pool *pool)
{
    return pool->managed;
}

/* The reuse policies are ints, all else is 64 bits wide. */
static bool is_int(CUmemPool_attribute attribute)
{
    return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
           attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
           attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

int cc_pool_attribute(cc_pool *pool, CUmemPool_attribute attribute, uint64_t *value, cc_error *error)
{
    cuuint64_t wide = 0;
    int narrow = 0;
    void *place = is_int(attribute) ? (void *)&narrow : (void *)&wide;
    if (CC__CALL(error, cuMemPoolGetAttribute, pool->native, attribute, place))
        return -1;
    *value = is_int(attribute) ? (uint64_t)narrow : wide;
    return 0;
}

int cc_pool_set_attribute(cc_pool *pool, CUmemPool_attribute attribute, uint64_t value, cc_error *error)
{
    cuuint64_t wide = value;
    int narrow = value != 0;
    void *place = is_int(attribute) ? (void *)&narrow : (void *)&wide;
    return CC__CALL(error, cuMemPoolSetAttribute, pool->native, attribute, place);
}

int cc_pool_trim(cc_pool *pool, size_t keep, cc_error *error)
{
    return CC__CALL(error, cuMemPoolTrimTo, pool->native, keep);
}

int cc_pool_set_access(cc_pool *pool, cc_device *peer, bool readable, cc_error *error)
{
    CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = peer->native},
        .flags = readable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE,
    };
    return CC__CALL(error, cuMemPoolSetAccess, pool->native, &access, 1);
}

int cc_pool_get_access(cc_pool *pool, cc_device *peer, bool *readable, cc_error *error)
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = peer->native};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if (CC__CALL_OPTIONAL(error, cuMemPoolGetAccess, &flags, pool->native, &location))
        return -1;
    *readable = flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return 0;
}

int cc_pool_free(cc_pool *pool, CUdeviceptr pointer, cc_stream *stream, cc_error *error)
{
    cc__scope scope;
    if (cc__enter_stream_of(&scope, stream, pool->context, error))
        return -1;
    int status = CC__CALL(error, cuMemFreeAsync, pointer, stream->native);
    cc__leave(&scope);
    return status;
}
