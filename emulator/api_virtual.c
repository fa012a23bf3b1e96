/* Entry points: virtual memory management. Addresses are reserved, physical memory is made, the one is mapped at the
 * other, and access is granted. */
#include <fcntl.h>

#include "api.h"

static uint64_t reservations, mappings; /* guarded by em_virtual_lock */

uint64_t em_reservation_count(void)
{
    pthread_mutex_lock(&em_virtual_lock);
    const uint64_t count = reservations;
    pthread_mutex_unlock(&em_virtual_lock);
    return count;
}

uint64_t em_mapping_count(void)
{
    pthread_mutex_lock(&em_virtual_lock);
    const uint64_t count = mappings;
    pthread_mutex_unlock(&em_virtual_lock);
    return count;
}

static bool in_granules(uint64_t value)
{
    return value % EM_GRANULARITY == 0;
}

static int refuse_size(const char *what, uint64_t value)
{
    return em_explain(CUDA_ERROR_INVALID_VALUE, "%s, %llu, is not a multiple of the granularity, %llu", what,
                      (unsigned long long)value, (unsigned long long)EM_GRANULARITY);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

EM_ENTRY(cuMemAddressReserve, "%p, %zu, %zu, %#llx, %#llx", (address, size, alignment, hint, flags),
         CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (address == NULL || size == 0 || flags != 0 || (alignment & (alignment - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!in_granules(size))
        return refuse_size("the size", size);
    const uint64_t base = em_heap_reserve(size, alignment, hint);
    if (base == 0)
        return em_explain(CUDA_ERROR_OUT_OF_MEMORY, "there are no %zu bytes of addresses left", size);
    pthread_mutex_lock(&em_virtual_lock);
    reservations++;
    pthread_mutex_unlock(&em_virtual_lock);
    *address = base;
    return CUDA_SUCCESS;
}

/* With the lock. Any mapping in the range. */
static bool is_mapped(uint64_t base, uint64_t size)
{
    for (uint64_t at = base; at < base + size; at += EM_GRANULARITY)
        if (em_heap_find(at) != NULL)
            return true;
    return false;
}

static int free_addresses(uint64_t address, uint64_t size)
{
    uint64_t base, whole;
    if (!em_heap_reservation(address, &base, &whole) || base != address || whole != size)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "%llu bytes at 0x%llx are not what cuMemAddressReserve gave",
                          (unsigned long long)size, (unsigned long long)address);
    if (is_mapped(base, whole))
        return em_explain(CUDA_ERROR_INVALID_VALUE,
                          "memory is still mapped at these addresses: cuMemUnmap comes first");
    em_heap_unreserve(base);
    reservations--;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuMemAddressFree, "%#llx, %zu", (address, size), CUdeviceptr address, size_t size)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    pthread_mutex_lock(&em_virtual_lock);
    status = free_addresses(address, size);
    pthread_mutex_unlock(&em_virtual_lock);
    return status;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int check_properties(const CUmemAllocationProp *props)
{
    if (props == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return em_explain(CUDA_ERROR_NOT_SUPPORTED, "cuMemCreate makes pinned memory only");
    if (props->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE &&
        props->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return em_explain(CUDA_ERROR_NOT_SUPPORTED, "the emulated device shares memory by file descriptors only");
    if (props->allocFlags.gpuDirectRDMACapable)
        return em_explain(CUDA_ERROR_NOT_SUPPORTED, "no other device reaches the emulated device's memory");
    switch (props->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return em_device_get(props->location.id) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EM_ENTRY(cuMemGetAllocationGranularity, "%p, %p, %d", (granularity, props, option), size_t *granularity,
         const CUmemAllocationProp *props, CUmemAllocationGranularity_flags option)
{
    int status = em_enter_any();
    if (status == CUDA_SUCCESS)
        status = check_properties(props);
    if (status != CUDA_SUCCESS)
        return status;
    if (granularity == NULL ||
        (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = EM_GRANULARITY;
    return CUDA_SUCCESS;
}

static CUmemGenericAllocationHandle handle_of(const em_physical *physical)
{
    return (CUmemGenericAllocationHandle)(uintptr_t)physical;
}

/* With the lock. NULL: no handle that somebody holds. */
static em_physical *find_physical(CUmemGenericAllocationHandle handle)
{
    em_physical *physical = em_object_get(EM_KIND_PHYSICAL, (const void *)(uintptr_t)handle);
    if (physical != NULL && physical->handles != 0)
        return physical;
    (void)em_explain(CUDA_ERROR_INVALID_VALUE, "0x%llx is no handle of memory, or was released before", handle);
    return NULL;
}

EM_ENTRY(cuMemCreate, "%p, %zu, %p, %#llx", (handle, size, props, flags), CUmemGenericAllocationHandle *handle,
         size_t size, const CUmemAllocationProp *props, unsigned long long flags)
{
    em_physical *made;
    int status = em_enter_any();
    if (status == CUDA_SUCCESS)
        status = check_properties(props);
    if (status != CUDA_SUCCESS)
        return status;
    if (handle == NULL || size == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!in_granules(size))
        return refuse_size("the size", size);
    if (size > UINT64_C(1) << 48)
        return em_explain(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes are more than any device has", size);
    status = em_physical_new(size, props, &made);
    if (status == CUDA_SUCCESS)
        *handle = handle_of(made);
    return status;
}

EM_ENTRY(cuMemRelease, "%#llx", (handle), CUmemGenericAllocationHandle handle)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    pthread_mutex_lock(&em_virtual_lock);
    em_physical *physical = find_physical(handle);
    if (physical != NULL) {
        physical->handles--;
        em_physical_settle(physical);
    }
    pthread_mutex_unlock(&em_virtual_lock);
    return physical != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EM_ENTRY(cuMemRetainAllocationHandle, "%p, %p", (handle, address), CUmemGenericAllocationHandle *handle, void *address)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&em_virtual_lock);
    const em_range *range = em_heap_find((uint64_t)(uintptr_t)address);
    if (range != NULL && em_object_kind(range->owner) == EM_KIND_PHYSICAL) {
        ((em_physical *)range->owner)->handles++;
        *handle = handle_of(range->owner);
    } else {
        status = em_explain(CUDA_ERROR_INVALID_VALUE, "no memory of cuMemCreate is mapped at %p", address);
    }
    pthread_mutex_unlock(&em_virtual_lock);
    return status;
}

EM_ENTRY(cuMemGetAllocationPropertiesFromHandle, "%p, %#llx", (props, handle), CUmemAllocationProp *props,
         CUmemGenericAllocationHandle handle)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (props == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&em_virtual_lock);
    const em_physical *physical = find_physical(handle);
    if (physical != NULL)
        *props = physical->props;
    pthread_mutex_unlock(&em_virtual_lock);
    return physical != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- mapping ----------------------------------------------------------------------------------------------------- */

static int map(uint64_t address, uint64_t size, CUmemGenericAllocationHandle handle)
{
    uint64_t base, whole;
    em_physical *physical = find_physical(handle);
    if (physical == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!em_heap_reservation(address, &base, &whole) || size > whole - (address - base))
        return em_explain(CUDA_ERROR_INVALID_VALUE, "%llu bytes at 0x%llx are not inside one reservation",
                          (unsigned long long)size, (unsigned long long)address);
    if (size > physical->size)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "%llu bytes are to be mapped, of memory that has %llu",
                          (unsigned long long)size, (unsigned long long)physical->size);
    if (is_mapped(address, size))
        return em_explain(CUDA_ERROR_INVALID_VALUE, "memory is mapped at these addresses already");
    const em_memory kind = physical->ordinal >= 0 ? EM_DEVICE : EM_PINNED;
    if (em_heap_map(address, size, physical->file, kind, physical->ordinal, physical) == NULL)
        return em_explain(CUDA_ERROR_OUT_OF_MEMORY, "the host cannot map %llu bytes", (unsigned long long)size);
    physical->mappings++;
    mappings++;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuMemMap, "%#llx, %zu, %zu, %#llx, %#llx", (address, size, offset, handle, flags), CUdeviceptr address,
         size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (size == 0 || offset != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!in_granules(size) || !in_granules(address))
        return refuse_size(in_granules(size) ? "the address" : "the size", in_granules(size) ? address : size);
    pthread_mutex_lock(&em_virtual_lock);
    status = map(address, size, handle);
    pthread_mutex_unlock(&em_virtual_lock);
    return status;
}

/* With the lock: that the bytes are whole mappings, without gaps. */
static int check_mapped(uint64_t address, uint64_t size)
{
    if (size == 0 || address > UINT64_MAX - size)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = address; at < address + size;) {
        const em_range *range = em_heap_find(at);
        if (range == NULL || em_object_kind(range->owner) != EM_KIND_PHYSICAL || range->base != at ||
            range->size > address + size - at)
            return em_explain(CUDA_ERROR_INVALID_VALUE,
                              "%llu bytes at 0x%llx are not what was mapped: at 0x%llx no mapping begins, or one that "
                              "is longer",
                              (unsigned long long)size, (unsigned long long)address, (unsigned long long)at);
        at += range->size;
    }
    return CUDA_SUCCESS;
}

static int unmap(uint64_t address, uint64_t size)
{
    for (uint64_t at = address; at < address + size;) {
        em_range *range = em_heap_find(at);
        em_physical *physical = range->owner;
        at += range->size;
        if (!em_heap_unmap(range))
            return em_explain(CUDA_ERROR_OUT_OF_MEMORY, "the host refuses to unmap");
        physical->mappings--;
        mappings--;
        em_physical_settle(physical);
    }
    return CUDA_SUCCESS;
}

EM_ENTRY(cuMemUnmap, "%#llx, %zu", (address, size), CUdeviceptr address, size_t size)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    em_heap_pin();
    pthread_mutex_lock(&em_virtual_lock);
    status = check_mapped(address, size);
    if (status == CUDA_SUCCESS)
        status = unmap(address, size);
    pthread_mutex_unlock(&em_virtual_lock);
    em_heap_unpin();
    return status;
}

/* ---- access ------------------------------------------------------------------------------------------------------ */

static int check_access(const CUmemAccessDesc *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const bool device = wanted[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE;
        if (device && em_device_get(wanted[i].location.id) == NULL)
            return CUDA_ERROR_INVALID_DEVICE;
        if (wanted[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && wanted[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
            wanted[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
        if (!device && wanted[i].location.type == CU_MEM_LOCATION_TYPE_INVALID)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* The host reaches its own memory whatever was granted. */
static void grant(em_range *range, const CUmemAccessDesc *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (wanted[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
            em_heap_grant(range, wanted[i].location.id, wanted[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE,
                          wanted[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static int set_access(uint64_t address, uint64_t size, const CUmemAccessDesc *wanted, size_t count)
{
    int status = check_mapped(address, size);
    for (uint64_t at = address; status == CUDA_SUCCESS && at < address + size;) {
        em_range *range = em_heap_find(at);
        grant(range, wanted, count);
        at += range->size;
    }
    return status;
}

EM_ENTRY(cuMemSetAccess, "%#llx, %zu, %p, %zu", (address, size, wanted, count), CUdeviceptr address, size_t size,
         const CUmemAccessDesc *wanted, size_t count)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (wanted == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    status = check_access(wanted, count);
    if (status != CUDA_SUCCESS)
        return status;
    em_heap_pin();
    pthread_mutex_lock(&em_virtual_lock);
    status = set_access(address, size, wanted, count);
    pthread_mutex_unlock(&em_virtual_lock);
    em_heap_unpin();
    return status;
}

EM_ENTRY(cuMemGetAccess, "%p, %p, %#llx", (flags, location, address), unsigned long long *flags,
         const CUmemLocation *location, CUdeviceptr address)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (flags == NULL || location == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const bool device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (device && em_device_get(location->id) == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    em_heap_pin();
    const em_range *range = em_heap_find(address);
    if (range == NULL || em_object_kind(range->owner) != EM_KIND_PHYSICAL)
        status = em_explain(CUDA_ERROR_INVALID_VALUE, "nothing is mapped at 0x%llx", (unsigned long long)address);
    else if (device ? !em_heap_accessible(range, location->id) : range->kind != EM_PINNED)
        *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    else
        *flags = !device || em_heap_writable(range, location->id) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                                  : CU_MEM_ACCESS_FLAGS_PROT_READ;
    em_heap_unpin();
    return status;
}

/* ---- other processes --------------------------------------------------------------------------------------------- */

EM_ENTRY(cuMemExportToShareableHandle, "%p, %#llx, %d, %#llx", (shared, handle, type, flags), void *shared,
         CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (shared == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&em_virtual_lock);
    const em_physical *physical = find_physical(handle);
    int file = -1;
    if (physical == NULL)
        status = CUDA_ERROR_INVALID_VALUE;
    else if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || physical->props.requestedHandleTypes != type)
        status = em_explain(CUDA_ERROR_INVALID_VALUE, "the memory was not made to be shared by handles of type %d",
                            (int)type);
    else if ((file = fcntl(physical->file, F_DUPFD_CLOEXEC, 0)) < 0)
        status = em_explain(CUDA_ERROR_OUT_OF_MEMORY, "the process has no file descriptor left");
    pthread_mutex_unlock(&em_virtual_lock);
    if (status == CUDA_SUCCESS)
        *(int *)shared = file;
    return status;
}

EM_ENTRY(cuMemImportFromShareableHandle, "%p, %p, %d", (handle, shared, type), CUmemGenericAllocationHandle *handle,
         void *shared, CUmemAllocationHandleType type)
{
    em_physical *made;
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return em_explain(CUDA_ERROR_NOT_SUPPORTED, "the emulated device shares memory by file descriptors only");
    status = em_physical_import((int)(intptr_t)shared, &made);
    if (status == CUDA_SUCCESS)
        *handle = handle_of(made);
    return status;
}
