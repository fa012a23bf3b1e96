/* Virtual memory: buffers whose addresses are reserved first, so that memory can be mapped behind them later. */
#include "internal.h"

#include <stdlib.h>

typedef struct extent { /* addresses that were reserved, or mapped, in one call */
    struct extent *next;
    CUdeviceptr base;
    size_t size;
} extent;

typedef struct range { /* what is behind a buffer; mappings in order of address, without gaps */
    pthread_mutex_t lock;
    cc_device *device;
    cc_vmm_options options;
    extent *reservations, *mappings;
    CUdeviceptr base;
    size_t size; /* mapped */
} range;

/* ---- properties -------------------------------------------------------------------------------------------------- */

static int location_of(cc_device *device, const cc_vmm_options *options, CUmemLocation *location, cc_error *error)
{
    location->type = options->location;
    location->id = options->location == CU_MEM_LOCATION_TYPE_DEVICE ? device->native : 0;
    if (options->location != CU_MEM_LOCATION_TYPE_HOST_NUMA)
        return 0;
    if (cc_device_attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, &location->id, error))
        return -1;
    location->id = location->id < 0 ? 0 : location->id;
    return 0;
}

static int properties_of(cc_device *device, const cc_vmm_options *options, CUmemAllocationProp *properties,
                         cc_error *error)
{
    *properties = (CUmemAllocationProp){.type = options->type, .requestedHandleTypes = options->handle_type};
    properties->allocFlags.gpuDirectRDMACapable = options->gpu_direct_rdma;
    return location_of(device, options, &properties->location, error);
}

typedef struct need {
    bool needed;
    CUdevice_attribute attribute;
    const char *what;
} need;

int cc_vmm_check(cc_device *device, const cc_vmm_options *options, cc_error *error)
{
    const need needs[] = {
        {true, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "virtual memory"},
        {options->handle_type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
         CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "handle_type 'posix_fd'"},
        {options->handle_type == CU_MEM_HANDLE_TYPE_WIN32_KMT,
         CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED, "handle_type 'win32_kmt'"},
        {options->handle_type == CU_MEM_HANDLE_TYPE_FABRIC, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
         "handle_type 'fabric'"},
        {options->gpu_direct_rdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, "gpu_direct_rdma"},
    };
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        int supported;
        if (!needs[i].needed)
            continue;
        if (cc_device_attribute(device, needs[i].attribute, &supported, error))
            return -1;
        if (!supported)
            return cc__fail(error, CC_NOT_SUPPORTED, "device %d does not support %s", device->ordinal, needs[i].what);
    }
    return 0;
}

/* ---- releasing --------------------------------------------------------------------------------------------------- */

static void drop_extents(extent *first)
{
    while (first) {
        extent *next = first->next;
        free(first);
        first = next;
    }
}

/* A range that cannot be unmapped keeps its addresses, so that nobody else meets them. */
static bool unmap_all(const range *from)
{
    bool done = true;
    for (const extent *at = from->mappings; at; at = at->next)
        done &= cc__driver.cuMemUnmap(at->base, at->size) == CUDA_SUCCESS ||
                cc__driver.cuMemUnmap(at->base, at->size) == CUDA_SUCCESS;
    return done;
}

static void take_apart(range *old)
{
    unmap_all(old);
    for (const extent *at = old->reservations; at; at = at->next)
        (void)cc__driver.cuMemAddressFree(at->base, at->size);
    drop_extents(old->mappings);
    drop_extents(old->reservations);
    pthread_mutex_destroy(&old->lock);
    free(old);
}

static void wait_for_device(cc_device *device)
{
    cc__scope scope;
    cc_context *context;
    if (cc_device_primary_context(device, &context, NULL) || !cc__enter_to_release(&scope, context))
        return;
    /* A failure may be one of this call alone, and what runs on must not find its memory gone. */
    if (cc__driver.cuCtxSynchronize() != CUDA_SUCCESS)
        (void)cc__driver.cuCtxSynchronize();
    cc__leave(&scope);
}

/* Unmapping does not wait for kernels, as cuMemFree does: whoever may have used the memory is waited for. */
static void wait_for_users(cc_device *device, const cc_vmm_options *options)
{
    wait_for_device(device);
    for (int i = 0; i < options->peer_count; i++) {
        cc_device *peer;
        if (cc_device_get(options->peers[i], &peer, NULL) == 0)
            wait_for_device(peer);
    }
}

static void release_range(void *object)
{
    range *old = object;
    if (cc__is_leaving()) /* a process that exits waits for nobody */
        return;
    wait_for_users(old->device, &old->options);
    take_apart(old);
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

static range *range_new(cc_device *device, const cc_vmm_options *options)
{
    range *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    pthread_mutex_init(&made->lock, NULL);
    made->device = device;
    made->options = *options;
    return made;
}

static int add_extent(extent **list, CUdeviceptr base, size_t size, cc_error *error)
{
    extent *made = malloc(sizeof *made);
    if (!made)
        return cc__fail_memory(error);
    *made = (extent){.base = base, .size = size};
    while (*list)
        list = &(*list)->next;
    *list = made;
    return 0;
}

static int reserve(range *into, size_t size, size_t alignment, CUdeviceptr hint, cc_error *error)
{
    CUdeviceptr base;
    if (CC__CALL_OPTIONAL(error, cuMemAddressReserve, &base, size, alignment, hint, 0))
        return -1;
    if (add_extent(&into->reservations, base, size, error) == 0)
        return 0;
    (void)cc__driver.cuMemAddressFree(base, size);
    return -1;
}

/* Behind what is mapped; the memory is the mapping's from then on. */
static int map_next(range *into, CUmemGenericAllocationHandle handle, size_t size, cc_error *error)
{
    const CUdeviceptr base = into->base + into->size;
    if (CC__CALL(error, cuMemMap, base, size, 0, handle, 0))
        return -1;
    if (add_extent(&into->mappings, base, size, error)) {
        (void)cc__driver.cuMemUnmap(base, size);
        return -1;
    }
    into->size += size;
    return 0;
}

static int map_new(range *into, size_t size, cc_error *error)
{
    CUmemAllocationProp properties;
    CUmemGenericAllocationHandle handle;
    if (properties_of(into->device, &into->options, &properties, error) ||
        CC__CALL(error, cuMemCreate, &handle, size, &properties, 0))
        return -1;
    const int status = map_next(into, handle, size, error);
    (void)cc__driver.cuMemRelease(handle);
    return status;
}

/* The memory of another range, which keeps it, too. */
static int map_old(range *into, const range *from, cc_error *error)
{
    for (const extent *at = from->mappings; at; at = at->next) {
        CUmemGenericAllocationHandle handle;
        if (CC__CALL(error, cuMemRetainAllocationHandle, &handle, (void *)(uintptr_t)at->base))
            return -1;
        const int status = map_next(into, handle, at->size, error);
        (void)cc__driver.cuMemRelease(handle);
        if (status)
            return -1;
    }
    return 0;
}

static int grant(const range *of, CUdeviceptr base, size_t size, cc_error *error)
{
    CUmemAccessDesc wanted[CC_VMM_PEERS + 2];
    size_t count = 0;
    const cc_vmm_options *options = &of->options;
    if (options->self_access != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
        wanted[count++] = (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = of->device->native},
                                            .flags = options->self_access};
        if (options->location != CU_MEM_LOCATION_TYPE_DEVICE) {
            wanted[count].flags = options->self_access;
            if (location_of(of->device, options, &wanted[count++].location, error))
                return -1;
        }
    }
    for (int i = 0; i < options->peer_count && options->peer_access != CU_MEM_ACCESS_FLAGS_PROT_NONE; i++)
        wanted[count++] = (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = options->peers[i]},
                                            .flags = options->peer_access};
    return count ? CC__CALL(error, cuMemSetAccess, base, size, wanted, count) : 0;
}

static int round_up(cc_device *device, const cc_vmm_options *options, size_t *size, cc_error *error)
{
    CUmemAllocationProp properties;
    size_t granularity = 0;
    if (properties_of(device, options, &properties, error) ||
        CC__CALL_OPTIONAL(error, cuMemGetAllocationGranularity, &granularity, &properties, options->granularity))
        return -1;
    if (*size > SIZE_MAX - granularity)
        return cc__fail(error, CC_OUT_OF_RANGE, "%zu bytes are more than there are addresses", *size);
    *size = (*size + granularity - 1) / granularity * granularity;
    return 0;
}

/* A new range with the memory of `old`, where there is one, and as much new as `size` needs. */
static int build(cc_device *device, const cc_vmm_options *options, const range *old, size_t size, range **made,
                 cc_error *error)
{
    range *built = range_new(device, options);
    if (!built)
        return cc__fail_memory(error);
    if (reserve(built, size, options->alignment, options->address_hint, error))
        goto fail;
    built->base = built->reservations->base;
    if ((old && map_old(built, old, error)) || (built->size < size && map_new(built, size - built->size, error)) ||
        grant(built, built->base, size, error))
        goto fail;
    *made = built;
    return 0;
fail:
    take_apart(built);
    return -1;
}

static int to_buffer(range *made, size_t size, cc_buffer **buffer, cc_error *error)
{
    if (cc_buffer_wrap(made->base, size, release_range, made, buffer, error) == 0)
        return 0;
    take_apart(made);
    return -1;
}

int cc_buffer_allocate_virtual(cc_device *device, const cc_vmm_options *options, size_t size, cc_buffer **buffer,
                               cc_error *error)
{
    cc_context *context; /* kernels will need it, and a release waits for it */
    range *made;
    size_t whole = size;
    if (size == 0)
        return cc_buffer_wrap(0, 0, NULL, NULL, buffer, error);
    if (cc_device_primary_context(device, &context, error) || round_up(device, options, &whole, error) ||
        build(device, options, NULL, whole, &made, error))
        return -1;
    return to_buffer(made, size, buffer, error);
}

/* ---- growing ----------------------------------------------------------------------------------------------------- */

static void drop_last(extent **list)
{
    while ((*list)->next)
        list = &(*list)->next;
    free(*list);
    *list = NULL;
}

/* 1: the addresses behind the range are taken. */
static int grow_in_place(range *old, const cc_vmm_options *options, size_t more, bool grant_all, cc_error *error)
{
    const CUdeviceptr end = old->base + old->size;
    const size_t before = old->size;
    const cc_vmm_options kept = old->options;
    CUdeviceptr base;
    if (cc__driver.cuMemAddressReserve(&base, more, 0, end, 0) != CUDA_SUCCESS)
        return 1;
    if (base != end) {
        (void)cc__driver.cuMemAddressFree(base, more);
        return 1;
    }
    if (add_extent(&old->reservations, base, more, error)) {
        (void)cc__driver.cuMemAddressFree(base, more);
        return -1;
    }
    old->options = *options;
    if (map_new(old, more, error) == 0 && grant(old, end, more, error) == 0 &&
        (!grant_all || grant(old, old->base, before, error) == 0))
        return 0;
    old->options = kept;
    if (old->size > before) {
        if (cc__driver.cuMemUnmap(end, more) != CUDA_SUCCESS)
            (void)cc__driver.cuMemUnmap(end, more);
        drop_last(&old->mappings);
        old->size = before;
    }
    (void)cc__driver.cuMemAddressFree(end, more);
    drop_last(&old->reservations);
    return -1;
}

static int grow_lock_held(range *old, const cc_vmm_options *options, bool grant_all, cc_buffer *buffer, size_t size,
                          cc_buffer **grown, cc_error *error)
{
    size_t whole = size;
    range *moved;
    int status = 0;
    if (round_up(old->device, options, &whole, error))
        return -1;
    if (whole > old->size)
        status = grow_in_place(old, options, whole - old->size, grant_all, error);
    if (status < 0)
        return -1;
    if (status == 0) {
        __atomic_store_n(&buffer->info.size, size, __ATOMIC_RELAXED);
        *grown = buffer;
        return 0;
    }
    cc_vmm_options anywhere = *options;
    anywhere.address_hint = 0;
    if (build(old->device, &anywhere, old, whole, &moved, error))
        return -1;
    return to_buffer(moved, size, grown, error);
}

bool cc_buffer_is_virtual(const cc_buffer *buffer)
{
    return buffer->release == release_range;
}

int cc_buffer_grow_virtual(const cc_vmm_options *options, bool grant_all, cc_buffer *buffer, size_t size,
                           cc_buffer **grown, cc_error *error)
{
    range *old = buffer->owner;
    cc__lock(&old->lock);
    const int status = size <= buffer->info.size ? (*grown = buffer, 0)
                                                 : grow_lock_held(old, options, grant_all, buffer, size, grown, error);
    cc__unlock(&old->lock);
    return status;
}

int cc_virtual_free(cc_device *device, const cc_vmm_options *options, CUdeviceptr pointer, size_t size, cc_error *error)
{
    if (round_up(device, options, &size, error))
        return -1;
    wait_for_users(device, options);
    if (CC__CALL(error, cuMemUnmap, pointer, size))
        return -1;
    return CC__CALL(error, cuMemAddressFree, pointer, size);
}
