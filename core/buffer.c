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
    atomic_init(&buffer->uses, NULL);
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

/* Of the streams of all buffers, while they change: rare, and short. Reading needs it only where the one of the last
 * use has to outlive its replacement. */
static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;

/* A buffer that lives long and meets a new stream all the time must not keep them all. */
enum { MAX_USES = 16 };

/* False: there is no place for another stream. */
static bool remember_lock_held(cc_buffer *buffer, cc_stream *stream)
{
    cc__use *first = atomic_load_explicit(&buffer->uses, memory_order_relaxed);
    int count = 0;
    for (const cc__use *use = first; use; use = use->next, count++)
        if (use->stream == stream)
            return true;
    cc__use *made = count < MAX_USES ? malloc(sizeof *made) : NULL;
    if (!made)
        return false;
    made->stream = cc_stream_retain(stream);
    made->next = first;
    atomic_store_explicit(&buffer->uses, made, memory_order_release);
    return true;
}

static bool remember(cc_buffer *buffer, cc_stream *stream)
{
    cc__lock(&streams_lock);
    bool remembered = remember_lock_held(buffer, stream);
    cc__unlock(&streams_lock);
    return remembered;
}

/* Where the order cannot be queued the host waits. A stream that its owner has destroyed refuses both, and has nothing
 * to wait for that could still be named. */
static void wait_for(cc_stream *stream, cc_stream *other)
{
    if (cc_stream_wait_stream(stream, other, NULL))
        (void)cc_stream_synchronize(other, NULL);
}

/* `stream` waits for what is queued now on all others that used the buffer. */
static void wait_for_uses(const cc_buffer *buffer, cc_stream *stream)
{
    for (const cc__use *use = atomic_load_explicit(&buffer->uses, memory_order_acquire); use; use = use->next)
        wait_for(stream, use->stream);
}

static void forget_uses(cc_buffer *buffer)
{
    cc__use *use = atomic_load_explicit(&buffer->uses, memory_order_acquire);
    while (use) {
        cc__use *next = use->next;
        cc_stream_release(use->stream);
        free(use);
        use = next;
    }
}

static void free_in_order(const cc_buffer *buffer, cc_stream *stream)
{
    cc__scope scope;
    if (cc__enter_stream_of(&scope, stream, buffer->pool->context, NULL) &&
        !cc__enter_to_release(&scope, buffer->pool->context))
        return; /* the context is gone, and the memory with it */
    wait_for_uses(buffer, stream);
    /* A stream that its owner has destroyed cannot order anything: free at once, which waits for all work. */
    if (cc__driver.cuMemFreeAsync(buffer->info.pointer, stream->native) != CUDA_SUCCESS)
        (void)cc__driver.cuMemFree(buffer->info.pointer);
    cc__leave(&scope);
}

static void free_now(const cc_buffer *buffer)
{
    cc__scope scope;
    /* These two wait for all work of the device, and a process that exits waits for nobody. */
    if (cc__is_leaving() || !cc__enter_to_release(&scope, buffer->context))
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
    forget_uses(buffer);
    cc_stream_release(stream);
    cc_pool_release(buffer->pool);
    free(buffer);
}

static bool is_ordered(const cc_buffer *buffer)
{
    return buffer->kind == CC__BUFFER_POOL || buffer->kind == CC__BUFFER_ORDERED;
}

/* From now on `stream` is the one to free on; the one that was is remembered. Its queued work is waited for at once
 * only where there is no place to remember it. */
static void move_to(cc_buffer *buffer, cc_stream *stream)
{
    cc__lock(&streams_lock);
    cc_stream *last = atomic_exchange_explicit(&buffer->stream, cc_stream_retain(stream), memory_order_acq_rel);
    bool kept = !last || last == stream || remember_lock_held(buffer, last);
    cc__unlock(&streams_lock);
    if (!kept)
        wait_for(stream, last);
    cc_stream_release(last);
}

void cc_buffer_used_on(cc_buffer *buffer, cc_stream *stream)
{
    if (CC__LIKELY(atomic_load_explicit(&buffer->stream, memory_order_relaxed) == stream))
        return;
    if (!is_ordered(buffer))
        return;
    /* A choice of the stream to free on stands, unless it would cost the order. */
    if (!atomic_load_explicit(&buffer->free_stream_set, memory_order_relaxed) || !remember(buffer, stream))
        move_to(buffer, stream);
}

/* A reference to the stream of the last use, or NULL: another thread may be replacing it, and letting go of it. */
static cc_stream *hold_last(const cc_buffer *buffer)
{
    cc__lock(&streams_lock);
    cc_stream *last = atomic_load_explicit(&buffer->stream, memory_order_relaxed);
    if (last)
        cc_stream_retain(last);
    cc__unlock(&streams_lock);
    return last;
}

cc_stream *cc_buffer_last_stream(const cc_buffer *buffer)
{
    cc_stream *last = hold_last(buffer);
    if (last)
        wait_for_uses(buffer, last);
    return last;
}

/* The caller's stream may be one that does not work: then, unlike when freeing, it is told. */
static int wait_for_last(const cc_buffer *buffer, cc_stream *stream, cc_error *error)
{
    cc_stream *last = hold_last(buffer);
    int status = last && last != stream ? cc_stream_wait_stream(stream, last, error) : 0;
    cc_stream_release(last);
    if (status)
        return -1;
    wait_for_uses(buffer, stream);
    return 0;
}

int cc_buffer_hand_over(cc_buffer *buffer, cc_stream *stream, cc_error *error)
{
    if (!is_ordered(buffer))
        return 0;
    int status = wait_for_last(buffer, stream, error);
    cc_buffer_used_on(buffer, stream);
    return status;
}

int cc_buffer_set_free_stream(cc_buffer *buffer, cc_stream *stream, cc_error *error)
{
    if (!is_ordered(buffer))
        return 0; /* freed at once, whatever the stream */
    atomic_store_explicit(&buffer->free_stream_set, true, memory_order_relaxed);
    int status = wait_for_last(buffer, stream, error);
    if (atomic_load_explicit(&buffer->stream, memory_order_relaxed) != stream)
        move_to(buffer, stream);
    return status;
}
