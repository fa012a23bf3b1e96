/* Events. */
#include "launches.h"

#include <stdlib.h>

int cc_event_create(cc_context *context, unsigned flags, cc_event **event, cc_error *error)
{
    cc__scope scope;
    cc_event *made = malloc(sizeof *made);
    if (!made)
        return cc__fail_memory(error);
    if (cc__enter(&scope, context, error))
        goto fail;
    int status = CC__CALL(error, cuEventCreate, &made->native, flags);
    cc__leave(&scope);
    if (status)
        goto fail;
    cc__count_start(&made->count);
    made->context = context;
    made->flags = flags;
    atomic_init(&made->recorded, false);
    atomic_init(&made->turn, 0);
    atomic_init(&made->lane, NULL);
    atomic_init(&made->launches, 0);
    *event = made;
    return 0;
fail:
    free(made);
    return -1;
}

cc_event *cc_event_retain(cc_event *event)
{
    cc__count_add(&event->count);
    return event;
}

void cc_event_release(cc_event *event)
{
    cc__scope scope;
    if (!event || !cc__count_drop(&event->count))
        return;
    if (cc__enter_to_release(&scope, event->context)) { /* else the context has taken it along */
        (void)cc__driver.cuEventDestroy(event->native);
        cc__leave(&scope);
    }
    free(event);
}

CUevent cc_event_native(const cc_event *event)
{
    return event->native;
}

unsigned cc_event_flags(const cc_event *event)
{
    return event->flags;
}

cc_context *cc_event_context(const cc_event *event)
{
    return event->context;
}

/* What an event marks is known to be over when it is. Another thread that records it meanwhile makes that another mark.
 */
typedef struct reach {
    unsigned turn;
    cc__mark mark;
} reach;

static reach reach_of(const cc_event *event)
{
    reach found = {.turn = atomic_load_explicit(&event->turn, memory_order_acquire)};
    found.mark.lane = atomic_load_explicit(&event->lane, memory_order_relaxed);
    found.mark.count = atomic_load_explicit(&event->launches, memory_order_relaxed);
    return found;
}

static void reached(const cc_event *event, const reach *found)
{
    if (found->turn % 2 == 0 && atomic_load_explicit(&event->turn, memory_order_acquire) == found->turn)
        cc__mark_reached(found->mark);
}

static CUresult record(cc_event *event, cc_stream *stream)
{
    const cc__mark mark = cc__mark_stream(stream);
    atomic_fetch_add_explicit(&event->turn, 1, memory_order_acq_rel);
    atomic_store_explicit(&event->lane, mark.lane, memory_order_relaxed);
    atomic_store_explicit(&event->launches, mark.count, memory_order_relaxed);
    const CUresult code = cc__driver.cuEventRecord(event->native, stream->native);
    if (code != CUDA_SUCCESS) /* what it marked before counts, and that is not known any more */
        atomic_store_explicit(&event->lane, NULL, memory_order_relaxed);
    atomic_fetch_add_explicit(&event->turn, 1, memory_order_acq_rel);
    return code;
}

int cc_event_record(cc_event *event, cc_stream *stream, cc_error *error)
{
    cc__scope scope;
    if (cc__enter(&scope, event->context, error)) /* a default stream is then that of the event's context */
        return -1;
    CUresult code = record(event, stream);
    if (CC__UNLIKELY(code != CUDA_SUCCESS))
        cc__fail_driver(error, code, "cuEventRecord");
    cc__leave(&scope);
    if (CC__LIKELY(code == CUDA_SUCCESS)) {
        if (!atomic_load_explicit(&event->recorded, memory_order_relaxed))
            atomic_store_explicit(&event->recorded, true, memory_order_relaxed);
        return 0;
    }
    cc_context *other = atomic_load_explicit(&stream->context, memory_order_acquire);
    if (code == CUDA_ERROR_INVALID_HANDLE && other && other != event->context)
        cc__explain(error,
                    " The event is of device %d, the stream of device %d: record it on a stream of its own device.",
                    event->context->device->ordinal, other->device->ordinal);
    return -1;
}

int cc_event_synchronize(cc_event *event, cc_error *error)
{
    cc__scope scope;
    if (cc__enter(&scope, event->context, error))
        return -1;
    const reach found = reach_of(event);
    int status = CC__CALL(error, cuEventSynchronize, event->native);
    if (!status)
        reached(event, &found);
    cc__leave(&scope);
    return status;
}

int cc_event_query(cc_event *event, bool *done, cc_error *error)
{
    cc__scope scope;
    if (cc__enter(&scope, event->context, error))
        return -1;
    const reach found = reach_of(event);
    CUresult code = cc__driver.cuEventQuery(event->native);
    if (code == CUDA_SUCCESS)
        reached(event, &found);
    int status = code == CUDA_ERROR_NOT_READY ? 0 : cc__check(code, error, "cuEventQuery");
    cc__leave(&scope);
    if (!status)
        *done = code == CUDA_SUCCESS;
    return status;
}

/* Why there is no time between two events, as far as we know; the context is current. */
static void explain_elapsed(const cc_event *event, const char *which, CUresult code, cc_error *error)
{
    if (code == CUDA_ERROR_NOT_READY) {
        if (cc__driver.cuEventQuery(event->native) == CUDA_ERROR_NOT_READY)
            cc__explain(error, " The %s event is not done: synchronise it before asking.", which);
    } else if (event->flags & CU_EVENT_DISABLE_TIMING) {
        cc__explain(error, " The %s event was made without timing: create it with timing enabled.", which);
    } else if (!atomic_load_explicit(&event->recorded, memory_order_relaxed)) {
        cc__explain(error, " The %s event was not recorded.", which);
    }
}

int cc_event_elapsed(cc_event *start, cc_event *end, float *milliseconds, cc_error *error)
{
    cc__scope scope;
    if (cc__enter(&scope, start->context, error))
        return -1;
    CUresult code = cc__driver.cuEventElapsedTime(milliseconds, start->native, end->native);
    if (code != CUDA_SUCCESS) {
        cc__fail_driver(error, code, "cuEventElapsedTime");
        explain_elapsed(start, "start", code, error);
        explain_elapsed(end, "end", code, error);
    }
    cc__leave(&scope);
    return code == CUDA_SUCCESS ? 0 : -1;
}
