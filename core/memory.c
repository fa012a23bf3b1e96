/* Copies, fills, and where memory is. */
#include "internal.h"

/* ---- placement -------------------------------------------------------------------------------------------------- */

enum { KNOWN = 1, DEVICE_ACCESSIBLE = 2, HOST_ACCESSIBLE = 4, MANAGED = 8, ORDINAL_SHIFT = 32 };

static uint64_t pack(const cc_placement *placement)
{
    uint64_t flags = KNOWN;
    flags |= placement->device_accessible ? DEVICE_ACCESSIBLE : 0u;
    flags |= placement->host_accessible ? HOST_ACCESSIBLE : 0u;
    flags |= placement->managed ? MANAGED : 0u;
    return flags | (uint64_t)(uint32_t)placement->device << ORDINAL_SHIFT;
}

static void unpack(uint64_t packed, cc_placement *placement)
{
    placement->device_accessible = packed & DEVICE_ACCESSIBLE;
    placement->host_accessible = packed & HOST_ACCESSIBLE;
    placement->managed = packed & MANAGED;
    placement->device = (int)(uint32_t)(packed >> ORDINAL_SHIFT);
}

typedef struct pointer_kind {
    unsigned memory_type; /* a CUmemorytype, 0 for memory that the driver does not know */
    int ordinal;
    unsigned char managed; /* the driver writes a bool */
} pointer_kind;

static CUresult ask_pointer(CUdeviceptr pointer, pointer_kind *kind)
{
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                        CU_POINTER_ATTRIBUTE_IS_MANAGED};
    unsigned managed = 0; /* wide enough whatever the driver writes; little-endian like every CUDA host */
    void *places[] = {&kind->memory_type, &kind->ordinal, &managed};
    kind->memory_type = 0;
    kind->ordinal = -1;
    CUresult code = cc__driver.cuPointerGetAttributes(3, attributes, places, pointer);
    kind->managed = (managed & 0xff) != 0;
    return code;
}

int cc_pointer_placement(CUdeviceptr pointer, cc_placement *placement, cc_error *error)
{
    pointer_kind kind;
    if (cc__need_driver(error) || cc__check(ask_pointer(pointer, &kind), error, "cuPointerGetAttributes"))
        return -1;
    bool on_device = kind.memory_type == CU_MEMORYTYPE_DEVICE;
    placement->managed = kind.managed;
    placement->device_accessible = kind.memory_type != 0;
    placement->host_accessible = !on_device || kind.managed;
    placement->device = on_device || kind.managed ? kind.ordinal : -1;
    return 0;
}

/* What we allocated needs no asking. */
static bool placement_of_own(const cc_buffer *buffer, cc_placement *placement)
{
    bool pinned = buffer->kind == CC__BUFFER_PINNED || (buffer->pool && buffer->pool->pinned);
    if (buffer->kind >= CC__BUFFER_WRAPPED || (!buffer->pool && !buffer->context))
        return false;
    const cc_device *device = buffer->pool ? buffer->pool->device : buffer->context->device;
    placement->managed = buffer->pool && buffer->pool->managed;
    placement->device_accessible = true;
    placement->host_accessible = pinned || placement->managed;
    placement->device = pinned ? -1 : device->ordinal;
    return true;
}

int cc_buffer_placement(cc_buffer *buffer, cc_placement *placement, cc_error *error)
{
    uint64_t packed = atomic_load_explicit(&buffer->placement, memory_order_relaxed);
    if (packed) {
        unpack(packed, placement);
        return 0;
    }
    if (!placement_of_own(buffer, placement) && cc_pointer_placement(buffer->info.pointer, placement, error))
        return -1;
    atomic_store_explicit(&buffer->placement, pack(placement), memory_order_relaxed);
    return 0;
}

int cc_buffer_usable_on(cc_buffer *buffer, cc_device *device, bool *usable, cc_error *error)
{
    cc_placement placement;
    cc_device *owner;
    if (cc_buffer_placement(buffer, &placement, error))
        return -1;
    *usable =
        placement.device < 0 || placement.device == device->ordinal || placement.host_accessible || placement.managed;
    if (*usable)
        return 0;
    if (buffer->kind == CC__BUFFER_POOL && cc__driver.cuMemPoolGetAccess)
        return cc_pool_get_access(buffer->pool, device, usable, error);
    if (cc_device_get(placement.device, &owner, error))
        return -1;
    return cc_device_can_access_peer(device, owner, usable, error);
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

int cc_copy(CUdeviceptr destination, CUdeviceptr source, size_t size, cc_stream *stream, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    int status = size ? CC__CALL(error, cuMemcpyAsync, destination, source, size, stream->native) : 0;
    cc__leave(&scope);
    return status;
}

/* Memory that the driver does not know is copied through a buffer of the driver's own before the call returns, unless
 * the device reads pageable memory itself. False too where the driver fails to say: the memory is then kept until an
 * event, which is right for both. */
static bool is_done_on_return(const cc_context *context, CUdeviceptr host)
{
    pointer_kind kind;
    int reads_pageable;
    if (cc_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, &reads_pageable, NULL) ||
        reads_pageable)
        return false;
    CUresult code = ask_pointer(host, &kind);
    return code == CUDA_ERROR_INVALID_VALUE || (code == CUDA_SUCCESS && kind.memory_type == 0);
}

/* Pageable sources up to this size are copied aside and never wait for the stream. */
static size_t copied_aside(void)
{
    return cc_driver_which() == CC_DRIVER_EMULATOR ? 1 << 20 : 64 << 10;
}

int cc_host_copy_wait(const void *host, size_t size, bool to_host, cc_stream *stream, const cc_watch *watch,
                      cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (!watch || (!to_host && size <= copied_aside()))
        return 0;
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    const bool waits = cc__driver.cuStreamQuery(stream->native) == CUDA_ERROR_NOT_READY &&
                       is_done_on_return(context, (CUdeviceptr)(uintptr_t)host);
    cc__leave(&scope);
    return waits ? cc__stream_poll(context, stream, watch) : 0;
}

static int copy_and_keep(CUdeviceptr destination, CUdeviceptr source, CUdeviceptr host, size_t size, cc_stream *stream,
                         cc_release_function release, void *object, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    int status = size ? CC__CALL(error, cuMemcpyAsync, destination, source, size, stream->native) : 0;
    bool release_now = !status && release && (size == 0 || is_done_on_return(context, host));
    if (!status && release && !release_now)
        cc__context_keep(context, stream->native, release, object);
    cc__leave(&scope);
    if (release_now)
        release(object);
    return status;
}

int cc_copy_from_host(CUdeviceptr destination, const void *source, size_t size, cc_stream *stream,
                      cc_release_function release, void *object, cc_error *error)
{
    CUdeviceptr host = (CUdeviceptr)(uintptr_t)source;
    return copy_and_keep(destination, host, host, size, stream, release, object, error);
}

int cc_copy_to_host(void *destination, CUdeviceptr source, size_t size, cc_stream *stream, cc_release_function release,
                    void *object, cc_error *error)
{
    CUdeviceptr host = (CUdeviceptr)(uintptr_t)destination;
    return copy_and_keep(host, source, host, size, stream, release, object, error);
}

/* ---- fills ------------------------------------------------------------------------------------------------------ */

static CUresult fill(CUdeviceptr destination, size_t size, uint32_t pattern, size_t pattern_size, CUstream stream)
{
    if (pattern_size == 1)
        return cc__driver.cuMemsetD8Async(destination, (unsigned char)pattern, size, stream);
    if (pattern_size == 2)
        return cc__driver.cuMemsetD16Async(destination, (unsigned short)pattern, size / 2, stream);
    return cc__driver.cuMemsetD32Async(destination, pattern, size / 4, stream);
}

int cc_fill(CUdeviceptr destination, size_t size, uint32_t pattern, size_t pattern_size, cc_stream *stream,
            cc_error *error)
{
    static const char *const functions[] = {"cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async"};
    cc_context *context;
    cc__scope scope;
    if (pattern_size != 1 && pattern_size != 2 && pattern_size != 4)
        return cc__fail(error, CC_INVALID, "a fill pattern has 1, 2 or 4 bytes, not %zu", pattern_size);
    if (pattern_size < 4 && pattern >> 8 * pattern_size)
        return cc__fail(error, CC_OUT_OF_RANGE, "fill pattern %lu does not fit into %zu byte%s", (unsigned long)pattern,
                        pattern_size, pattern_size == 1 ? "" : "s");
    if (size % pattern_size)
        return cc__fail(error, CC_INVALID, "%zu bytes are not a multiple of the pattern's %zu bytes", size,
                        pattern_size);
    if (destination % pattern_size)
        return cc__fail(error, CC_INVALID, "the address 0x%llx is not a multiple of the pattern's %zu bytes",
                        (unsigned long long)destination, pattern_size);
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    CUresult code = size ? fill(destination, size, pattern, pattern_size, stream->native) : CUDA_SUCCESS;
    int status = cc__check(code, error, functions[pattern_size / 2]);
    cc__leave(&scope);
    return status;
}
