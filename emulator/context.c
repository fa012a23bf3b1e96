/* Contexts: what a program's objects belong to, and what a fault in a kernel poisons. */
#include <stdlib.h>

#include "api.h"
#include "library.h"

static _Atomic uint64_t next_context = 1;
static _Atomic uint64_t next_epoch = 1; /* of all contexts together: a slot used again must not repeat one */

static void set_default_limits(em_context *context)
{
    context->limits[CU_LIMIT_STACK_SIZE] = 1024;
    context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 7 << 20;
    context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

em_context *em_context_new(em_device *device, unsigned int flags, bool primary)
{
    em_context *context = em_object_new(EM_KIND_CONTEXT, sizeof *context);
    if (context == NULL)
        return NULL;
    em_object_close(&context->object); /* not alive before it is complete, a primary one before it is retained */
    context->device = device;
    context->primary = primary;
    pthread_mutex_init(&context->fault_lock, NULL);
    pthread_mutex_init(&context->order, NULL);
    pthread_mutex_init(&context->modules, NULL);
    if (primary || em_context_revive(context, flags))
        return context;
    em_object_recycle(EM_KIND_CONTEXT, &context->object);
    return NULL;
}

bool em_context_revive(em_context *context, unsigned int flags)
{
    context->id = atomic_fetch_add(&next_context, 1);
    context->epoch = atomic_fetch_add(&next_epoch, 1);
    context->flags = flags | CU_CTX_MAP_HOST; /* always: as CUDA answers since 11 */
    context->sticky = 0;
    context->peers = 0;
    context->cache_config = CU_FUNC_CACHE_PREFER_NONE;
    set_default_limits(context);
    context->legacy = em_stream_new(context, CU_STREAM_DEFAULT, 0);
    if (context->legacy == NULL)
        return false;
    context->legacy->legacy = true;
    em_object_close(&context->legacy->object); /* reached through CU_STREAM_LEGACY only */
    em_object_reopen(&context->object);
    return true;
}

void em_context_poison(em_context *context, int status, const em_detail *detail)
{
    pthread_mutex_lock(&context->fault_lock);
    if (context->sticky == 0) {
        context->fault = *detail;
        if (context->fault.text[0] == '\0')
            em_fail(&context->fault, status, "%s", em_error_text(status));
        atomic_store_explicit(&context->sticky, status, memory_order_release);
        em_trace_fault(&context->fault);
    }
    pthread_mutex_unlock(&context->fault_lock);
}

bool em_poisons(int status)
{
    switch (status) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

static bool any_stream(const em_stream *stream)
{
    (void)stream;
    return true;
}

int em_context_synchronize(em_context *context)
{
    int status = em_streams_wait(context, any_stream);
    em_pools_trim(context->device);
    int sticky = atomic_load_explicit(&context->sticky, memory_order_acquire);
    return sticky != 0 ? sticky : status;
}

static void release_if_unclaimed(em_range *range)
{
    if (em_heap_claim(range))
        em_memory_release(range);
}

/* Streams leave the list when the last of their work is done, which for those destroyed before may be in a moment. */
static void close_streams(em_context *context)
{
    for (;;) {
        pthread_mutex_lock(&context->order);
        em_stream *stream = context->streams;
        if (stream != NULL)
            em_object_retain(&stream->object);
        pthread_mutex_unlock(&context->order);
        if (stream == NULL)
            return;
        em_object_close(&stream->object);
        em_stream_close(stream);
        em_stream_wait(stream, em_stream_submitted(stream));
        em_stream_release(stream);
    }
}

void em_context_destroy(em_context *context)
{
    em_context_synchronize(context);
    context->epoch = atomic_fetch_add(&next_epoch, 1); /* what threads and events remember of it is void from here on */
    em_instances_unload(context);
    em_heap_each_owned(context, release_if_unclaimed);
    close_streams(context);
    context->legacy = context->whole = NULL;
    if (context->gate != NULL)
        em_record_release(context->gate);
    context->gate = NULL;
    em_device *device = context->device;
    for (int i = 0; i < em_device_count; i++)
        if (atomic_load(&context->peers) >> i & 1)
            atomic_fetch_and(&em_devices[i].peers, ~(UINT64_C(1) << device->limits.ordinal));
    if (!context->primary)
        em_object_recycle(EM_KIND_CONTEXT, &context->object);
}

typedef struct visit {
    void (*visit)(em_library *library, em_context *context);
    em_library *library;
} visit;

static void visit_context(void *object, void *argument)
{
    const visit *what = argument;
    what->visit(what->library, object);
}

void em_contexts_each(void (*function)(em_library *library, em_context *context), em_library *library)
{
    visit what = {function, library};
    em_object_each(EM_KIND_CONTEXT, visit_context, &what);
}

int em_enter_any_slowly(void)
{
    int state = atomic_load_explicit(&em_state, memory_order_acquire);
    if (state != CUDA_SUCCESS || !em_self.in_callback)
        return state;
    return em_explain(CUDA_ERROR_NOT_PERMITTED,
                      "a host function of a stream must not call the CUDA driver: the stream, "
                      "and all that waits for it, stands still meanwhile");
}

int em_enter_slowly(em_context **context)
{
    int status = em_enter_any_slowly();
    if (status != CUDA_SUCCESS)
        return status;
    em_context *current = em_self.current;
    if (current == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!current->object.live)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *context = current;
    return atomic_load_explicit(&current->sticky, memory_order_acquire);
}
