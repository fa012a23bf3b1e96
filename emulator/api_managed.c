/* Entry points: advice on managed memory. Host and devices share it here, so there is nothing to move: the calls check
 * what they are given, and remember it for those who ask. Discarded memory is overwritten, so that it is noticed when
 * its contents are used. */
#include <stdio.h>
#include <unistd.h>

#include "api.h"

/* Called pinned. NULL: they are not inside one managed allocation. */
static em_range *find_managed(CUdeviceptr address, size_t size)
{
    em_range *range = em_heap_find(address);
    bool sound = range != NULL && range->live && range->kind == EM_MANAGED && size != 0 &&
                 size <= range->base + range->size - address;
    return sound ? range : NULL;
}

static int refuse(CUdeviceptr address, size_t size)
{
    return em_explain(CUDA_ERROR_INVALID_VALUE, "%zu bytes at 0x%llx are not inside one managed allocation", size,
                      (unsigned long long)address);
}

static int check_managed(CUdeviceptr address, size_t size)
{
    em_heap_pin();
    bool sound = find_managed(address, size) != NULL;
    em_heap_unpin();
    return sound ? CUDA_SUCCESS : refuse(address, size);
}

static int change(CUdeviceptr address, size_t size, void (*how)(em_wishes *, CUmemLocation), CUmemLocation location)
{
    em_heap_pin();
    em_range *range = find_managed(address, size);
    int status = range == NULL ? refuse(address, size) : em_advice_change(range, address, size, how, location);
    em_heap_unpin();
    return status;
}

static bool is_node(int id)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d", id);
    return id == 0 || (id > 0 && access(path, F_OK) == 0);
}

static int check_location(CUmemLocation location)
{
    switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return em_device_get(location.id) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return is_node(location.id) ? CUDA_SUCCESS
                                    : em_explain(CUDA_ERROR_INVALID_VALUE, "the host has no NUMA node %d", location.id);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUmemLocation location_of(CUdevice device)
{
    return (CUmemLocation){.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
                           .id = device};
}

/* As it is told to those who ask: no number where it means nothing, and the node of the calling thread as node 0. */
static CUmemLocation resolved(CUmemLocation location)
{
    if (location.type == CU_MEM_LOCATION_TYPE_HOST)
        location.id = 0;
    if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};
    return location;
}

static void set_read_mostly(em_wishes *wishes, CUmemLocation unused)
{
    (void)unused;
    wishes->read_mostly = true;
}

static void unset_read_mostly(em_wishes *wishes, CUmemLocation unused)
{
    (void)unused;
    wishes->read_mostly = false;
}

void em_advice_prefer(em_wishes *wishes, CUmemLocation location)
{
    wishes->preferred = resolved(location);
}

static void unset_preferred(em_wishes *wishes, CUmemLocation unused)
{
    (void)unused;
    wishes->preferred = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID};
}

static void set_accessed_by(em_wishes *wishes, CUmemLocation location)
{
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        wishes->accessed_by |= UINT64_C(1) << location.id;
    else
        wishes->accessed_by_host = true;
}

static void unset_accessed_by(em_wishes *wishes, CUmemLocation location)
{
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        wishes->accessed_by &= ~(UINT64_C(1) << location.id);
    else
        wishes->accessed_by_host = false;
}

static void set_prefetched(em_wishes *wishes, CUmemLocation location)
{
    wishes->prefetched = resolved(location);
}

static const struct advice {
    void (*change)(em_wishes *, CUmemLocation);
    bool has_location, takes_nodes;
} advices[] = {
    [CU_MEM_ADVISE_SET_READ_MOSTLY] = {set_read_mostly, false, false},
    [CU_MEM_ADVISE_UNSET_READ_MOSTLY] = {unset_read_mostly, false, false},
    [CU_MEM_ADVISE_SET_PREFERRED_LOCATION] = {em_advice_prefer, true, true},
    [CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION] = {unset_preferred, false, false},
    [CU_MEM_ADVISE_SET_ACCESSED_BY] = {set_accessed_by, true, false},
    [CU_MEM_ADVISE_UNSET_ACCESSED_BY] = {unset_accessed_by, true, false},
};

static int advise(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        return CUDA_ERROR_INVALID_VALUE;
    const struct advice *given = &advices[advice];
    if (given->has_location)
        status = check_location(location);
    bool is_node_of_host =
        location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    if (given->has_location && !given->takes_nodes && is_node_of_host)
        status = em_explain(CUDA_ERROR_INVALID_VALUE, "memory is accessed by the host or a device, not by a NUMA node");
    return status == CUDA_SUCCESS ? change(address, size, given->change, location) : status;
}

EM_ENTRY(cuMemAdvise, "%#llx, %zu, %d, %d", (address, size, advice, device), CUdeviceptr address, size_t size,
         CUmem_advise advice, CUdevice device)
{
    return advise(address, size, advice, location_of(device));
}

/* A structure is passed on as it is, but traced by its parts, so these two calls do without the macro. */
CUresult CUDAAPI cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location)
{
    EM_CALL(cuMemAdvise_v2, advise(address, size, advice, location), "%#llx, %zu, %d, {%d, %d}",
            (address, size, (int)advice, (int)location.type, location.id));
}

static int prefetch(CUdeviceptr address, size_t size, CUmemLocation location, CUstream handle)
{
    em_stream *stream;
    int status = em_stream_enter(handle, &stream);
    if (status == CUDA_SUCCESS)
        status = check_location(location);
    return status == CUDA_SUCCESS ? change(address, size, set_prefetched, location) : status;
}

EM_ENTRY_STREAM(cuMemPrefetchAsync, "%#llx, %zu, %d, %p", (address, size, device, hStream), CUdeviceptr address,
                size_t size, CUdevice device, CUstream hStream)
{
    return prefetch(address, size, location_of(device), hStream);
}

static int prefetch_flags(CUdeviceptr address, size_t size, CUmemLocation location, unsigned int flags, CUstream stream)
{
    return flags == 0 ? prefetch(address, size, location, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location, unsigned int flags,
                                       CUstream stream)
{
    EM_CALL(cuMemPrefetchAsync_v2, prefetch_flags(address, size, location, flags, stream),
            "%#llx, %zu, {%d, %d}, %#x, %p", (address, size, (int)location.type, location.id, flags, stream));
}

CUresult CUDAAPI cuMemPrefetchAsync_v2_ptsz(CUdeviceptr address, size_t size, CUmemLocation location,
                                            unsigned int flags, CUstream stream)
{
    return cuMemPrefetchAsync_v2(address, size, location, flags, stream != NULL ? stream : CU_STREAM_PER_THREAD);
}

EM_ENTRY_STREAM(cuStreamAttachMemAsync, "%p, %#llx, %zu, %#x", (hStream, address, size, flags), CUstream hStream,
                CUdeviceptr address, size_t size, unsigned int flags)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    return check_managed(address, size != 0 ? size : 1);
}

/* ---- several at once --------------------------------------------------------------------------------------------- */

static int check_batch(const CUdeviceptr *addresses, const size_t *sizes, size_t count, unsigned long long flags,
                       CUstream handle, em_stream **stream)
{
    int status = em_stream_enter(handle, stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (addresses == NULL || sizes == NULL || count == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (handle == NULL || handle == CU_STREAM_LEGACY)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "a batch cannot be in the legacy default stream");
    for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++)
        status = check_managed(addresses[i], sizes[i]);
    return status;
}

static int check_locations(const CUmemLocation *locations, const size_t *first, size_t location_count, size_t count)
{
    int status = locations != NULL && first != NULL && location_count != 0 && location_count <= count && first[0] == 0
                     ? CUDA_SUCCESS
                     : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < location_count && status == CUDA_SUCCESS; i++) {
        status = check_location(locations[i]);
        if (i > 0 && (first[i] <= first[i - 1] || first[i] >= count))
            status = CUDA_ERROR_INVALID_VALUE;
    }
    return status;
}

static int check_placed_batch(const CUdeviceptr *addresses, const size_t *sizes, size_t count,
                              const CUmemLocation *locations, const size_t *first, size_t location_count,
                              unsigned long long flags, CUstream handle, em_stream **stream)
{
    int status = check_batch(addresses, sizes, count, flags, handle, stream);
    return status == CUDA_SUCCESS ? check_locations(locations, first, location_count, count) : status;
}

static int prefetch_all(const CUdeviceptr *addresses, const size_t *sizes, size_t count, const CUmemLocation *locations,
                        const size_t *first, size_t location_count)
{
    int status = CUDA_SUCCESS;
    size_t at = 0;
    for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++) {
        while (at + 1 < location_count && first[at + 1] <= i)
            at++;
        status = change(addresses[i], sizes[i], set_prefetched, locations[at]);
    }
    return status;
}

/* The contents are indeterminate until they are written: here they are what nobody expects. */
static int discard_all(const CUdeviceptr *addresses, const size_t *sizes, size_t count, em_stream *stream)
{
    int status = CUDA_SUCCESS;
    for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++)
        status = em_fill(addresses[i], 0, 0xA5, 1, sizes[i], 1, stream, true);
    return status;
}

EM_ENTRY_STREAM(cuMemPrefetchBatchAsync, "%p, %p, %zu, %p, %p, %zu, %#llx, %p",
                (addresses, sizes, count, locations, first, location_count, flags, hStream), CUdeviceptr *addresses,
                size_t *sizes, size_t count, CUmemLocation *locations, size_t *first, size_t location_count,
                unsigned long long flags, CUstream hStream)
{
    em_stream *stream;
    int status = check_placed_batch(addresses, sizes, count, locations, first, location_count, flags, hStream, &stream);
    return status == CUDA_SUCCESS ? prefetch_all(addresses, sizes, count, locations, first, location_count) : status;
}

EM_ENTRY_STREAM(cuMemDiscardBatchAsync, "%p, %p, %zu, %#llx, %p", (addresses, sizes, count, flags, hStream),
                CUdeviceptr *addresses, size_t *sizes, size_t count, unsigned long long flags, CUstream hStream)
{
    em_stream *stream;
    int status = check_batch(addresses, sizes, count, flags, hStream, &stream);
    return status == CUDA_SUCCESS ? discard_all(addresses, sizes, count, stream) : status;
}

EM_ENTRY_STREAM(cuMemDiscardAndPrefetchBatchAsync, "%p, %p, %zu, %p, %p, %zu, %#llx, %p",
                (addresses, sizes, count, locations, first, location_count, flags, hStream), CUdeviceptr *addresses,
                size_t *sizes, size_t count, CUmemLocation *locations, size_t *first, size_t location_count,
                unsigned long long flags, CUstream hStream)
{
    em_stream *stream;
    int status = check_placed_batch(addresses, sizes, count, locations, first, location_count, flags, hStream, &stream);
    if (status == CUDA_SUCCESS)
        status = discard_all(addresses, sizes, count, stream);
    return status == CUDA_SUCCESS ? prefetch_all(addresses, sizes, count, locations, first, location_count) : status;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static int device_of(CUmemLocation location)
{
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return location.id;
    return location.type == CU_MEM_LOCATION_TYPE_INVALID ? CU_DEVICE_INVALID : CU_DEVICE_CPU;
}

static void list_accessors(const em_wishes *wishes, int *list, size_t count)
{
    size_t at = 0;
    if (wishes->accessed_by_host && at < count)
        list[at++] = CU_DEVICE_CPU;
    for (int i = 0; i < em_device_count && at < count; i++)
        if (wishes->accessed_by >> i & 1)
            list[at++] = i;
    while (at < count)
        list[at++] = CU_DEVICE_INVALID;
}

static int answer(const em_wishes *wishes, CUmem_range_attribute attribute, int *data, size_t size)
{
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        list_accessors(wishes, data, size / sizeof *data);
        return size != 0 && size % sizeof *data == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (size != sizeof *data)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        *data = wishes->read_mostly;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        *data = device_of(wishes->preferred);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        *data = device_of(wishes->prefetched);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        *data = (int)wishes->preferred.type;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        *data = wishes->preferred.id;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        *data = (int)wishes->prefetched.type;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        *data = wishes->prefetched.id;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EM_ENTRY(cuMemRangeGetAttribute, "%p, %zu, %d, %#llx, %zu", (data, data_size, attribute, address, size), void *data,
         size_t data_size, CUmem_range_attribute attribute, CUdeviceptr address, size_t size)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (data == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    em_heap_pin();
    em_range *range = find_managed(address, size);
    em_wishes wishes = {0};
    if (range != NULL)
        wishes = em_advice_common(range, address, size);
    em_heap_unpin();
    return range == NULL ? refuse(address, size) : answer(&wishes, attribute, data, data_size);
}
