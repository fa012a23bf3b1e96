/* Entry points: allocation of device, pinned, registered and managed memory. */
#include "api.h"

/* ---- releasing -----------------------------------------------------------------------------------------------------
 */

void em_memory_release(em_range *range)
{
    void *owner = range->owner;
    uint64_t size = range->size;
    int device = range->device;
    em_memory kind = range->kind;
    em_heap_release(range);
    if (em_object_kind(owner) == EM_KIND_POOL)
        em_pool_refund(owner, size);
    else if (kind == EM_DEVICE)
        em_device_refund(&em_devices[device], size);
}

static bool of_pool(const em_range *range)
{
    return em_object_kind(range->owner) == EM_KIND_POOL;
}

/* What cuMemFree frees, and cuMemFreeHost. */
static bool right_call(const em_range *range, bool host)
{
    if (range->owner == NULL || range->name != NULL)
        return false;
    bool pinned = range->kind == EM_PINNED && !of_pool(range);
    if (em_object_kind(range->owner) == EM_KIND_PHYSICAL) /* cuMemUnmap does */
        return false;
    return host ? pinned : !pinned && range->kind != EM_CONSTANT && range->kind != EM_REGISTERED;
}

/* The allocation that begins at the address, claimed for the caller to free. Called pinned. */
static int claim(uint64_t address, bool host, bool in_stream_order, em_range **range)
{
    em_range *found = em_heap_find(address);
    if (found == NULL)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "0x%llx is not an allocation", (unsigned long long)address);
    if (found->base != address)
        return em_explain(CUDA_ERROR_INVALID_VALUE,
                          "0x%llx is %llu bytes inside allocation #%llu: only the address that the allocation returned "
                          "can be freed",
                          (unsigned long long)address, (unsigned long long)(address - found->base),
                          (unsigned long long)found->serial);
    if (!right_call(found, host))
        return em_explain(CUDA_ERROR_INVALID_VALUE, "0x%llx is not memory that this call frees",
                          (unsigned long long)address);
    if (in_stream_order && found->kind == EM_MANAGED && !of_pool(found))
        return em_explain(CUDA_ERROR_NOT_SUPPORTED, "managed memory outside pools is not freed in stream order: use cuMemFree");
    if (!found->live || !em_heap_claim(found))
        return em_explain(CUDA_ERROR_INVALID_VALUE, "allocation #%llu at 0x%llx was freed before",
                          (unsigned long long)found->serial, (unsigned long long)address);
    *range = found;
    return CUDA_SUCCESS;
}

int em_memory_claim(uint64_t address, bool in_stream_order, em_range **range)
{
    em_heap_pin();
    int status = claim(address, false, in_stream_order, range);
    em_heap_unpin(); /* a claimed range stays until its claimer releases it */
    return status;
}

/* The context whose work may use the memory: its own, or for a pool's the primary one. NULL: none is alive. */
static em_context *context_of(const em_range *range)
{
    if (em_object_kind(range->owner) == EM_KIND_CONTEXT)
        return range->owner;
    em_context *context = em_devices[range->device >= 0 ? range->device : 0].primary;
    return context->object.live ? context : NULL;
}

/* Frees after all work that may still use the memory. Needs no current context, but a usable one if there is one. */
static int free_after_work(uint64_t address, bool host)
{
    em_context *current;
    em_range *range = NULL;
    int status = em_self.current != NULL ? em_enter(&current) : em_enter_any();
    if (status != CUDA_SUCCESS || address == 0)
        return status;
    em_heap_pin();
    status = claim(address, host, false, &range);
    em_heap_unpin();
    if (status != CUDA_SUCCESS)
        return status;
    em_context *context = context_of(range);
    if (context != NULL)
        em_context_synchronize(context);
    if (em_self.current != NULL && em_self.current != context)
        em_context_synchronize(em_self.current);
    em_memory_release(range);
    return CUDA_SUCCESS;
}

/* ---- device memory ----------------------------------------------------------------------------------------------- */

static int allocate(em_context *context, uint64_t size, CUdeviceptr *address)
{
    em_device *device = context->device;
    if (!em_device_charge(device, size))
        return em_explain(
            CUDA_ERROR_OUT_OF_MEMORY,
            "%llu bytes asked for; device %d has %llu, of which %llu are in use (the environment variable "
            "CUDA_CORE_EMULATOR_MEMORY sets its size)",
            (unsigned long long)size, device->limits.ordinal, (unsigned long long)device->memory,
            (unsigned long long)device->memory_used);
    em_range *range = em_heap_allocate_owned(size, EM_DEVICE, device->limits.ordinal, context, 0, NULL);
    if (range == NULL) {
        em_device_refund(device, size);
        return em_explain(CUDA_ERROR_OUT_OF_MEMORY, "the host has no memory for %llu bytes", (unsigned long long)size);
    }
    *address = range->base;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuMemAlloc_v2, "%p, %zu", (address, size), CUdeviceptr *address, size_t size)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (address == NULL || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate(context, size, address);
}

EM_ENTRY(cuMemAllocPitch_v2, "%p, %p, %zu, %zu, %u", (address, pitch, width, height, element), CUdeviceptr *address,
         size_t *pitch, size_t width, size_t height, unsigned int element)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    size_t size, row = (width + 511) & ~(size_t)511;
    if (address == NULL || pitch == NULL || width == 0 || height == 0 || row < width ||
        (element != 4 && element != 8 && element != 16) || __builtin_mul_overflow(row, height, &size))
        return CUDA_ERROR_INVALID_VALUE;
    status = allocate(context, size, address);
    if (status == CUDA_SUCCESS)
        *pitch = row;
    return status;
}

EM_ENTRY(cuMemFree_v2, "%#llx", (address), CUdeviceptr address)
{
    return free_after_work(address, false);
}

EM_ENTRY(cuMemGetInfo_v2, "%p, %p", (free, total), size_t *free, size_t *total)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (free != NULL)
        *free = context->device->memory - context->device->memory_used;
    if (total != NULL)
        *total = context->device->memory;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuMemGetAddressRange_v2, "%p, %p, %#llx", (base, size, address), CUdeviceptr *base, size_t *size,
         CUdeviceptr address)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    em_heap_pin();
    const em_range *range = em_heap_find(address);
    if (range == NULL || !range->live) {
        status = em_explain(CUDA_ERROR_NOT_FOUND, "0x%llx is in no allocation", (unsigned long long)address);
    } else {
        if (base != NULL)
            *base = range->base;
        if (size != NULL)
            *size = range->size;
    }
    em_heap_unpin();
    return status;
}

/* ---- pinned memory ----------------------------------------------------------------------------------------------- */

static int allocate_pinned(void **pointer, size_t size, unsigned int flags)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    unsigned int known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (pointer == NULL || (flags & ~known) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (size == 0) { /* as CUDA does: no memory, and no error */
        *pointer = NULL;
        return CUDA_SUCCESS;
    }
    /* Always mapped, whatever was asked: the address is the device's too. */
    em_range *range = em_heap_allocate_owned(size, EM_PINNED, -1, context, flags | CU_MEMHOSTALLOC_DEVICEMAP, NULL);
    if (range == NULL)
        return em_explain(CUDA_ERROR_OUT_OF_MEMORY, "the host has no memory for %zu bytes", size);
    *pointer = (void *)(uintptr_t)range->base;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuMemAllocHost_v2, "%p, %zu", (pointer, size), void **pointer, size_t size)
{
    return allocate_pinned(pointer, size, 0);
}

EM_ENTRY(cuMemHostAlloc, "%p, %zu, %#x", (pointer, size, flags), void **pointer, size_t size, unsigned int flags)
{
    return allocate_pinned(pointer, size, flags);
}

EM_ENTRY(cuMemFreeHost, "%p", (pointer), void *pointer)
{
    return free_after_work((uint64_t)(uintptr_t)pointer, true);
}

static int find_host(void *pointer, uint64_t *address, unsigned int *flags)
{
    int status = CUDA_SUCCESS;
    em_heap_pin();
    em_range *range = em_heap_find((uint64_t)(uintptr_t)pointer);
    if (range == NULL || !range->live || (range->kind != EM_PINNED && range->kind != EM_REGISTERED)) {
        status = em_explain(CUDA_ERROR_INVALID_VALUE, "%p is not pinned or registered host memory", pointer);
    } else {
        *address = (uint64_t)(uintptr_t)pointer;
        *flags = em_heap_flags(range);
    }
    em_heap_unpin();
    return status;
}

EM_ENTRY(cuMemHostGetDevicePointer_v2, "%p, %p, %#x", (address, pointer, flags), CUdeviceptr *address, void *pointer,
         unsigned int flags)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (address == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t found = 0;
    unsigned int unused = 0;
    status = find_host(pointer, &found, &unused);
    if (status == CUDA_SUCCESS)
        *address = found;
    return status;
}

EM_ENTRY(cuMemHostGetFlags, "%p, %p", (flags, pointer), unsigned int *flags, void *pointer)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t unused;
    return find_host(pointer, &unused, flags);
}

/* ---- registered memory ------------------------------------------------------------------------------------------- */

EM_ENTRY(cuMemHostRegister_v2, "%p, %zu, %#x", (pointer, size, flags), void *pointer, size_t size, unsigned int flags)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    unsigned int known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return em_explain(CUDA_ERROR_NOT_SUPPORTED, "the emulated device has no access to the memory of other devices");
    if (pointer == NULL || size == 0 || address > UINT64_MAX - size || (flags & ~known) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (em_heap_inside(address) || em_heap_inside(address + size - 1))
        return em_explain(CUDA_ERROR_INVALID_VALUE, "%p is memory that CUDA allocated: it needs no registering",
                          pointer);
    em_range *range = NULL;
    status = em_heap_register_owned(pointer, size, context, flags, &range);
    if (status == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
        return em_explain(status, "part of the %zu bytes at %p is registered already", size, pointer);
    return status;
}

EM_ENTRY(cuMemHostUnregister, "%p", (pointer), void *pointer)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (pointer == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    em_heap_pin();
    em_range *range = em_heap_find((uint64_t)(uintptr_t)pointer);
    if (range != NULL && (range->kind != EM_REGISTERED || range->base != (uint64_t)(uintptr_t)pointer))
        status = em_explain(CUDA_ERROR_INVALID_VALUE,
                            "%p is inside other memory: only the address that was registered "
                            "can be unregistered",
                            pointer);
    else if (range == NULL || !em_heap_claim(range))
        status = em_explain(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "%p is not an address that was registered", pointer);
    em_heap_unpin();
    if (status != CUDA_SUCCESS)
        return status;
    em_context_synchronize(context);
    em_memory_release(range);
    return CUDA_SUCCESS;
}

/* ---- managed memory ---------------------------------------------------------------------------------------------- */

EM_ENTRY(cuMemAllocManaged, "%p, %zu, %#x", (address, size, flags), CUdeviceptr *address, size_t size,
         unsigned int flags)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (address == NULL || size == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    em_range *range = em_heap_allocate_owned(size, EM_MANAGED, context->device->limits.ordinal, context, flags, NULL);
    if (range == NULL)
        return em_explain(CUDA_ERROR_OUT_OF_MEMORY, "the host has no memory for %zu bytes", size);
    *address = range->base;
    return CUDA_SUCCESS;
}
