/* Buffers: allocations in stream order, outside any stream, and memory that somebody else owns. */
#include "internal.h"

#include <stdlib.h>

static cc_buffer *buffer_new(cc__buffer_kind kind, CUdeviceptr pointer, size_t size)
{
    cc_buffer *buffer = malloc(sizeof *buffer);
    if (!buffer)
        return NULL;
    buffer->info.pointer = pointer;
    buffer->info.size = size;
    cc__count_start(&buffer->count);
    buffer->kind = kind;
    atomic_init(&buffer->free_stream_set, false);
    buffer->context = NULL;
    buffer->pool = NULL;
    atomic_init(&buffer->stream, NULL);
    atomic_init(&buffer->placement, 0);
    buffer->release = NULL;
    buffer->owner = NULL;
    return buffer;
}

/* Says how much was asked, how the pool stands and what the device has left; the context is current. */
static void explain_out_of_memory(const cc_pool *pool, size_t size, cc_error *error)
{
    cuuint64_t used = 0, reserved = 0;
    size_t available, total;
    cc__explain(error, " Asked for %zu bytes", size);
    if (pool &&
        cc__driver.cuMemPoolGetAttribute(pool->native, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) == CUDA_SUCCESS &&
        cc__driver.cuMemPoolGetAttribute(pool->native, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) == CUDA_SUCCESS)
        cc__explain(error, "; the pool holds %llu bytes, %llu of them in use", (unsigned long long)reserved,
                    (unsigned long long)used);
    if (cc__driver.cuMemGetInfo(&available, &total) == CUDA_SUCCESS)
        cc__explain(error, "; the device has %zu of %zu bytes free", available, total);
    cc__explain(error, ".");
}

static int fail_allocation(CUresult code, const char *function, const cc_pool *pool, size_t size, cc_error *error)
{
    cc__fail_driver(error, code, function);
    if (code == CUDA_ERROR_OUT_OF_MEMORY)
        explain_out_of_memory(pool, size, error);
    return -1;
}

int cc_buffer_allocate(cc_pool *pool, size_t size, cc_stream *stream, cc_buffer **buffer, cc_error *error)
{
    cc__scope scope;
    cc_buffer *made = buffer_new(size ? CC__BUFFER_POOL : CC__BUFFER_EMPTY, 0, size);
    if (!made)
        return cc__fail_memory(error);
    if (CC__LIKELY(size != 0)) {
        if (cc__enter_stream_of(&scope, stream, pool->context, error))
            goto fail;
        CUresult code = cc__driver.cuMemAllocFromPoolAsync(&made->info.pointer, size, pool->native, stream->native);
        if (CC__UNLIKELY(code != CUDA_SUCCESS))
            fail_allocation(code, "cuMemAllocFromPoolAsync", pool, size, error);
        cc__leave(&scope);
        if (CC__UNLIKELY(code != CUDA_SUCCESS))
            goto fail;
    }
    made->pool = cc_pool_retain(pool);
    atomic_init(&made->stream, cc_stream_retain(stream));
    *buffer = made;
    return 0;
fail:
    free(made);
    return -1;
}

/* cuMemAlloc and cuMemHostAlloc: at once, in a context. */
static int allocate_now(cc__buffer_kind kind, cc_context *context, size_t size, cc_buffer **buffer, cc_error *error)
{
    cc__scope scope;
    void *host = NULL;
    CUdeviceptr pointer = 0;
    CUresult code = CUDA_SUCCESS;
    cc_buffer *made = buffer_new(size ? kind : CC__BUFFER_EMPTY, 0, size);
    if (!made)
        return cc__fail_memory(error);
    if (size) {
        if (cc__enter(&scope, context, error))
            goto fail;
        if (kind == CC__BUFFER_DEVICE) {
            code = cc__driver.cuMemAlloc(&pointer, size);
        } else {
            code = cc__driver.cuMemHostAlloc(&host, size, CU_MEMHOSTALLOC_PORTABLE);
            pointer = (CUdeviceptr)(uintptr_t)host; /* one address for host and devices: unified addressing */
        }
        if (code != CUDA_SUCCESS)
            fail_allocation(code, kind == CC__BUFFER_DEVICE ? "cuMemAlloc" : "cuMemHostAlloc", NULL, size, error);
        cc__leave(&scope);
        if (code != CUDA_SUCCESS)
            goto fail;
    }
    made->info.pointer = pointer;
    made->context = context;
    *buffer = made;
    return 0;
fail:
    free(made);
    return -1;
}

int cc_buffer_allocate_pinned(cc_context *context, size_t size, cc_buffer **buffer, cc_error *error)
{
    return allocate_now(CC__BUFFER_PINNED, context, size, buffer, error);
}

int cc_buffer_allocate_device(cc_context *context, size_t size, cc_buffer **buffer, cc_error *error)
{
    return allocate_now(CC__BUFFER_DEVICE, context, size, buffer, error);
}

int cc_buffer_wrap_ordered(CUdeviceptr pointer, size_t size, cc_buffer **buffer, cc_error *error)
{
    *buffer = buffer_new(CC__BUFFER_ORDERED, pointer, size);
    return *buffer ? 0 : cc__fail_memory(error);
}

int cc_buffer_wrap(CUdeviceptr pointer, size_t size, cc_release_function release, void *owner, cc_buffer **buffer,
                   cc_error *error)
{
    cc_buffer *made = buffer_new(CC__BUFFER_WRAPPED, pointer, size);
    if (!made)
        return cc__fail_memory(error);
    made->release = release;
    made->owner = owner;
    *buffer = made;
    return 0;
}

int cc_pinned_free(cc_context *context, CUdeviceptr pointer, cc_error *error)
{
    cc__scope scope;
    if (cc__enter(&scope, context, error))
        return -1;
    int status = CC__CALL(error, cuMemFreeHost, (void *)(uintptr_t)pointer);
    cc__leave(&scope);
    return status;
}

cc_buffer *cc_buffer_retain(cc_buffer *buffer)
{
    cc__count_add(&buffer->count);
    return buffer;
}

static void free_in_order(const cc_buffer *buffer, cc_stream *stream)
{
    cc__scope scope;
    if (cc__enter_stream_of(&scope, stream, buffer->pool->context, NULL))
        return; /* the context is gone, and the memory with it */
    /* A stream that its owner has destroyed cannot order anything: free at once, which waits for all work. */
    if (cc__driver.cuMemFreeAsync(buffer->info.pointer, stream->native) != CUDA_SUCCESS)
        (void)cc__driver.cuMemFree(buffer->info.pointer);
    cc__leave(&scope);
}

static void free_now(const cc_buffer *buffer)
{
    cc__scope scope;
    if (cc__enter(&scope, buffer->context, NULL))
        return;
    if (buffer->kind == CC__BUFFER_DEVICE)
        (void)cc__driver.cuMemFree(buffer->info.pointer);
    else
        (void)cc__driver.cuMemFreeHost((void *)(uintptr_t)buffer->info.pointer);
    cc__leave(&scope);
}

void cc_buffer_release(cc_buffer *buffer)
{
    if (!buffer || !cc__count_drop(&buffer->count))
        return;
    cc_stream *stream = atomic_load_explicit(&buffer->stream, memory_order_acquire);
    if (buffer->kind == CC__BUFFER_POOL)
        free_in_order(buffer, stream);
    else if (buffer->kind == CC__BUFFER_DEVICE || buffer->kind == CC__BUFFER_PINNED)
        free_now(buffer);
    if (buffer->release)
        buffer->release(buffer->owner);
    cc_stream_release(stream);
    cc_pool_release(buffer->pool);
    free(buffer);
}

static bool is_ordered(const cc_buffer *buffer)
{
    return buffer->kind == CC__BUFFER_POOL || buffer->kind == CC__BUFFER_ORDERED;
}

static void swap_stream(cc_buffer *buffer, cc_stream *stream)
{
    cc_stream_release(atomic_exchange_explicit(&buffer->stream, cc_stream_retain(stream), memory_order_acq_rel));
}

void cc_buffer_used_on(cc_buffer *buffer, cc_stream *stream)
{
    if (CC__LIKELY(atomic_load_explicit(&buffer->stream, memory_order_relaxed) == stream))
        return;
    if (is_ordered(buffer) && !atomic_load_explicit(&buffer->free_stream_set, memory_order_relaxed))
        swap_stream(buffer, stream);
}

cc_stream *cc_buffer_last_stream(const cc_buffer *buffer)
{
    cc_stream *last = atomic_load_explicit(&buffer->stream, memory_order_acquire);
    return last ? cc_stream_retain(last) : NULL;
}

/* From now on `stream` is the last one, and waits for the one that was. */
static int move_to(cc_buffer *buffer, cc_stream *stream, cc_error *error)
{
    cc_stream *last = atomic_exchange_explicit(&buffer->stream, cc_stream_retain(stream), memory_order_acq_rel);
    int status = last ? cc_stream_wait_stream(stream, last, error) : 0;
    cc_stream_release(last);
    return status;
}

int cc_buffer_hand_over(cc_buffer *buffer, cc_stream *stream, cc_error *error)
{
    if (!is_ordered(buffer) || atomic_load_explicit(&buffer->stream, memory_order_relaxed) == stream)
        return 0;
    if (atomic_load_explicit(&buffer->free_stream_set, memory_order_relaxed))
        return cc_stream_wait_stream(stream, atomic_load_explicit(&buffer->stream, memory_order_acquire), error);
    return move_to(buffer, stream, error);
}

int cc_buffer_set_free_stream(cc_buffer *buffer, cc_stream *stream, cc_error *error)
{
    if (!is_ordered(buffer))
        return 0; /* freed at once, whatever the stream */
    atomic_store_explicit(&buffer->free_stream_set, true, memory_order_relaxed);
    if (atomic_load_explicit(&buffer->stream, memory_order_relaxed) == stream)
        return 0;
    return move_to(buffer, stream, error);
}
