/* Entry points: events. */
#include "api.h"

static int find_event(CUevent handle, em_event **event)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    *event = em_object_get(EM_KIND_EVENT, handle);
    if (*event == NULL)
        return em_explain(CUDA_ERROR_INVALID_HANDLE, "%p is no event, or one that was destroyed", (void *)handle);
    if ((*event)->context->epoch != (*event)->context_epoch)
        return em_explain(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the event's context was destroyed or reset");
    return CUDA_SUCCESS;
}

static int sticky_of(const em_event *event)
{
    return atomic_load_explicit(&event->context->sticky, memory_order_acquire);
}

EM_ENTRY(cuEventCreate, "%p, %#x", (handle, flags), CUevent *handle, unsigned int flags)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    unsigned int known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
    if (handle == NULL || (flags & ~known) != 0 || (shared && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    if (shared)
        return em_explain(CUDA_ERROR_NOT_SUPPORTED, "the emulated device has no events between processes");
    em_event *event = em_object_new(EM_KIND_EVENT, sizeof *event);
    if (event == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->context = context;
    event->context_epoch = context->epoch;
    event->flags = flags;
    pthread_mutex_init(&event->lock, NULL);
    *handle = (CUevent)(void *)event;
    return CUDA_SUCCESS;
}

static int destroy(CUevent handle)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    em_event *event = em_object_get(EM_KIND_EVENT, handle);
    if (event == NULL || !em_object_close(&event->object))
        return em_explain(CUDA_ERROR_INVALID_HANDLE, "%p is no event, or one that was destroyed", (void *)handle);
    if (event->record != NULL)
        em_record_release(event->record);
    status = event->context->epoch == event->context_epoch ? sticky_of(event) : CUDA_SUCCESS;
    pthread_mutex_destroy(&event->lock);
    em_object_recycle(EM_KIND_EVENT, &event->object);
    return status;
}

EM_ENTRY(cuEventDestroy, "%p", (event), CUevent event)
{
    return destroy(event);
}

EM_ENTRY(cuEventDestroy_v2, "%p", (event), CUevent event)
{
    return destroy(event);
}

static int record(CUevent handle, CUstream stream_handle)
{
    em_event *event;
    em_stream *stream;
    int status = find_event(handle, &event);
    if (status == CUDA_SUCCESS)
        status = em_stream_enter(stream_handle, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (stream->context != event->context)
        return em_explain(CUDA_ERROR_INVALID_HANDLE,
                          "the event is of device %d, the stream of device %d: an event is "
                          "recorded in streams of the context that it was created in",
                          event->context->device->limits.ordinal, stream->context->device->limits.ordinal);
    return em_event_record(event, stream);
}

EM_ENTRY_STREAM(cuEventRecord, "%p, %p", (event, hStream), CUevent event, CUstream hStream)
{
    return record(event, hStream);
}

EM_ENTRY_STREAM(cuEventRecordWithFlags, "%p, %p, %#x", (event, hStream, flags), CUevent event, CUstream hStream,
                unsigned int flags)
{
    if (flags == CU_EVENT_RECORD_EXTERNAL)
        return em_explain(CUDA_ERROR_ILLEGAL_STATE, "an external event record is for a stream that is capturing");
    if (flags != CU_EVENT_RECORD_DEFAULT)
        return CUDA_ERROR_INVALID_VALUE;
    return record(event, hStream);
}

EM_ENTRY(cuEventQuery, "%p", (handle), CUevent handle)
{
    em_event *event;
    int status = find_event(handle, &event);
    if (status == CUDA_SUCCESS)
        status = sticky_of(event);
    if (status != CUDA_SUCCESS)
        return status;
    em_record *latest = em_event_latest(event);
    if (latest == NULL)
        return CUDA_SUCCESS;
    bool done = em_record_done(latest);
    em_record_release(latest);
    return done ? sticky_of(event) : CUDA_ERROR_NOT_READY;
}

EM_ENTRY(cuEventSynchronize, "%p", (handle), CUevent handle)
{
    em_event *event;
    int status = find_event(handle, &event);
    if (status == CUDA_SUCCESS)
        status = sticky_of(event);
    if (status != CUDA_SUCCESS)
        return status;
    em_record *latest = em_event_latest(event);
    if (latest != NULL) {
        em_record_wait(latest);
        em_record_release(latest);
    }
    em_pools_trim(event->context->device);
    return sticky_of(event);
}

static int elapsed(float *milliseconds, CUevent start_handle, CUevent end_handle)
{
    em_event *start, *end;
    int status = find_event(start_handle, &start);
    if (status == CUDA_SUCCESS)
        status = find_event(end_handle, &end);
    if (status == CUDA_SUCCESS)
        status = sticky_of(start);
    if (status != CUDA_SUCCESS)
        return status;
    if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0)
        return em_explain(CUDA_ERROR_INVALID_HANDLE, "an event was created with CU_EVENT_DISABLE_TIMING");
    if (start->context != end->context)
        return em_explain(CUDA_ERROR_INVALID_HANDLE, "the events belong to different contexts");
    em_record *first = em_event_latest(start), *last = em_event_latest(end);
    if (first == NULL || last == NULL)
        status =
            em_explain(CUDA_ERROR_INVALID_HANDLE, "the %s event was not recorded", first == NULL ? "start" : "end");
    else if (!em_record_done(first) || !em_record_done(last))
        status = CUDA_ERROR_NOT_READY;
    else if (milliseconds == NULL)
        status = CUDA_ERROR_INVALID_VALUE;
    else
        *milliseconds = (float)((double)(int64_t)(last->nanoseconds - first->nanoseconds) / 1e6);
    if (first != NULL)
        em_record_release(first);
    if (last != NULL)
        em_record_release(last);
    return status;
}

EM_ENTRY(cuEventElapsedTime, "%p, %p, %p", (milliseconds, start, end), float *milliseconds, CUevent start, CUevent end)
{
    return elapsed(milliseconds, start, end);
}

EM_ENTRY(cuEventElapsedTime_v2, "%p, %p, %p", (milliseconds, start, end), float *milliseconds, CUevent start,
         CUevent end)
{
    return elapsed(milliseconds, start, end);
}
