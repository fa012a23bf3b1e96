/* Streams: created ones, ones that somebody else owns, and the two default streams. */
#include "launches.h"

#include <stdlib.h>

static _Atomic uint64_t last_serial;

static cc_stream *stream_new(CUstream native, cc_context *context)
{
    cc_stream *stream = malloc(sizeof *stream);
    if (!stream)
        return NULL;
    cc__count_start(&stream->count);
    stream->native = native;
    stream->serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1;
    atomic_init(&stream->context, context);
    atomic_init(&stream->lane, NULL);
    stream->owned = stream->is_default = false;
    stream->release = NULL;
    stream->owner = NULL;
    return stream;
}

/* The driver would silently move a priority into its range. The context is current. */
static int check_priority(int priority, cc_error *error)
{
    int least, greatest;
    if (CC__CALL(error, cuCtxGetStreamPriorityRange, &least, &greatest))
        return -1;
    if (priority > least || priority < greatest)
        return cc__fail(error, CC_INVALID,
                        "stream priority %d is outside this device's range: %d (most urgent) to %d (least)", priority,
                        greatest, least);
    return 0;
}

int cc_stream_create(cc_context *context, unsigned flags, int priority, cc_stream **stream, cc_error *error)
{
    cc__scope scope;
    CUstream native;
    if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return cc__fail(error, CC_INVALID,
                        "stream flags are CU_STREAM_DEFAULT (0) or CU_STREAM_NON_BLOCKING (1), not %u", flags);
    cc_stream *made = stream_new(NULL, context);
    if (!made)
        return cc__fail_memory(error);
    if (cc__enter(&scope, context, error))
        goto fail;
    int status = priority ? check_priority(priority, error) : 0;
    if (!status)
        status = CC__CALL(error, cuStreamCreateWithPriority, &native, flags, priority);
    cc__leave(&scope);
    if (status)
        goto fail;
    made->native = native;
    made->owned = true;
    *stream = made;
    return 0;
fail:
    free(made);
    return -1;
}

int cc_stream_wrap(CUstream native, cc_context *context, cc_release_function release, void *owner, cc_stream **stream,
                   cc_error *error)
{
    if (!native)
        native = CU_STREAM_LEGACY; /* the driver's older name for it */
    cc_stream *made = stream_new(native, context);
    if (!made)
        return cc__fail_memory(error);
    made->is_default = !context && (native == CU_STREAM_LEGACY || native == CU_STREAM_PER_THREAD);
    made->release = release;
    made->owner = owner;
    *stream = made;
    return 0;
}

cc_stream *cc_stream_retain(cc_stream *stream)
{
    cc__count_add(&stream->count);
    return stream;
}

void cc_stream_release(cc_stream *stream)
{
    if (!stream || !cc__count_drop(&stream->count))
        return;
    cc_context *context = atomic_load_explicit(&stream->context, memory_order_acquire);
    cc__scope scope;
    /* A context that is gone has taken its streams along. */
    if (stream->owned && cc__enter_to_release(&scope, context)) {
        (void)cc__driver.cuStreamDestroy(stream->native);
        cc__leave(&scope);
    }
    if (stream->release)
        stream->release(stream->owner);
    free(stream);
}

CUstream cc_stream_native(const cc_stream *stream)
{
    return stream->native;
}

uint64_t cc_stream_serial(const cc_stream *stream)
{
    return stream->serial;
}

bool cc_stream_is_owned(const cc_stream *stream)
{
    return stream->owned;
}

static int current_context(cc_context **context, cc_error *error)
{
    CUcontext native;
    cc_device *device;
    if (cc_context_get_current(&native, error))
        return -1;
    if (native)
        return cc__context_find(native, context, error);
    return cc_device_get(0, &device, error) || cc_device_primary_context(device, context, error) ? -1 : 0;
}

/* Some drivers want a context to be current before they tell the context of a stream. */
static int ask_context(CUstream native, CUcontext *found, cc_error *error)
{
    cc_context *any;
    cc__scope scope;
    if (cc__need_driver(error))
        return -1;
    CUresult code = cc__driver.cuStreamGetCtx(native, found);
    if (code != CUDA_ERROR_INVALID_CONTEXT)
        return cc__check(code, error, "cuStreamGetCtx");
    if (current_context(&any, error) || cc__enter(&scope, any, error))
        return -1;
    code = cc__driver.cuStreamGetCtx(native, found);
    cc__leave(&scope);
    return cc__check(code, error, "cuStreamGetCtx");
}

int cc_stream_context(cc_stream *stream, cc_context **context, cc_error *error)
{
    CUcontext native;
    if (stream->is_default)
        return current_context(context, error);
    *context = atomic_load_explicit(&stream->context, memory_order_acquire);
    if (*context)
        return 0;
    if (ask_context(stream->native, &native, error) || cc__context_find(native, context, error))
        return -1;
    atomic_store_explicit(&stream->context, *context, memory_order_release); /* whoever stores it, it is the same one */
    return 0;
}

int cc__enter_unbound(cc__scope *scope, cc_stream *stream, cc_context **context, cc_error *error)
{
    return cc_stream_context(stream, context, error) || cc__enter(scope, *context, error) ? -1 : 0;
}

int cc_stream_flags(cc_stream *stream, unsigned *flags, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    int status = CC__CALL(error, cuStreamGetFlags, stream->native, flags);
    cc__leave(&scope);
    return status;
}

int cc_stream_priority(cc_stream *stream, int *priority, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    int status = CC__CALL(error, cuStreamGetPriority, stream->native, priority);
    cc__leave(&scope);
    return status;
}

int cc__stream_finish(cc_stream *stream, cc_error *error)
{
    const cc__mark mark = cc__mark_stream(stream);
    const int status = CC__CALL(error, cuStreamSynchronize, stream->native);
    if (!status)
        cc__mark_reached(mark);
    return status;
}

int cc_stream_synchronize(cc_stream *stream, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    int status = cc__stream_finish(stream, error);
    cc__leave(&scope);
    return status;
}

int cc_stream_query(cc_stream *stream, bool *done, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    const cc__mark mark = cc__mark_stream(stream);
    CUresult code = cc__driver.cuStreamQuery(stream->native);
    if (code == CUDA_SUCCESS)
        cc__mark_reached(mark);
    int status = code == CUDA_ERROR_NOT_READY ? 0 : cc__check(code, error, "cuStreamQuery");
    cc__leave(&scope);
    if (!status)
        *done = code == CUDA_SUCCESS;
    return status;
}

int cc_stream_wait_event(cc_stream *stream, cc_event *event, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    int status = CC__CALL(error, cuStreamWaitEvent, stream->native, event->native, CU_EVENT_WAIT_DEFAULT);
    cc__leave(&scope);
    return status;
}

int cc_stream_wait_stream(cc_stream *stream, cc_stream *other, cc_error *error)
{
    cc_context *context;
    cc_event *event;
    if (stream == other)
        return 0;
    if (cc_stream_context(other, &context, error) || cc_event_create(context, CU_EVENT_DISABLE_TIMING, &event, error))
        return -1;
    int status = cc_event_record(event, other, error) || cc_stream_wait_event(stream, event, error) ? -1 : 0;
    cc_event_release(event); /* the driver keeps it until the wait is over */
    return status;
}
