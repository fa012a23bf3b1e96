/* Entry points: streams, host functions in them, and waits and writes of words in memory. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api.h"

/* ---- life -------------------------------------------------------------------------------------------------------- */

static int clamped_priority(int asked)
{
    if (asked > EM_LEAST_PRIORITY)
        return EM_LEAST_PRIORITY;
    return asked < EM_GREATEST_PRIORITY ? EM_GREATEST_PRIORITY : asked;
}

static int create(CUstream *handle, unsigned int flags, int priority)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (handle == NULL || (flags & ~(unsigned int)CU_STREAM_NON_BLOCKING) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    priority = clamped_priority(priority);
    em_stream *stream = em_stream_new(context, flags, priority);
    if (stream == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = (CUstream)(void *)stream;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuStreamCreate, "%p, %u", (stream, flags), CUstream *stream, unsigned int flags)
{
    return create(stream, flags, 0);
}

EM_ENTRY(cuStreamCreateWithPriority, "%p, %u, %d", (stream, flags, priority), CUstream *stream, unsigned int flags,
         int priority)
{
    return create(stream, flags, priority);
}

static int destroy(CUstream handle)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return em_explain(CUDA_ERROR_INVALID_HANDLE, "a default stream cannot be destroyed");
    em_stream *stream = em_object_get(EM_KIND_STREAM, handle);
    if (stream == NULL || !em_object_close(&stream->object))
        return em_explain(CUDA_ERROR_INVALID_HANDLE, "%p is no stream, or one that was destroyed", (void *)handle);
    int sticky = atomic_load_explicit(&stream->context->sticky, memory_order_acquire);
    em_stream_close(stream);
    return sticky;
}

EM_ENTRY(cuStreamDestroy, "%p", (stream), CUstream stream)
{
    return destroy(stream);
}

EM_ENTRY(cuStreamDestroy_v2, "%p", (stream), CUstream stream)
{
    return destroy(stream);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

EM_ENTRY_STREAM(cuStreamQuery, "%p", (hStream), CUstream hStream)
{
    if (em_self.in_callback) /* the one call that a host function may make; its own stream is busy with it */
        return CUDA_ERROR_NOT_READY;
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (!em_stream_idle(stream))
        return CUDA_ERROR_NOT_READY;
    return atomic_load_explicit(&stream->context->sticky, memory_order_acquire);
}

EM_ENTRY_STREAM(cuStreamSynchronize, "%p", (hStream), CUstream hStream)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    return status == CUDA_SUCCESS ? em_stream_synchronize(stream) : status;
}

EM_ENTRY_STREAM(cuStreamWaitEvent, "%p, %p, %#x", (hStream, event, flags), CUstream hStream, CUevent event,
                unsigned int flags)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (flags == CU_EVENT_WAIT_EXTERNAL)
        return em_explain(CUDA_ERROR_ILLEGAL_STATE, "an external event wait is for a stream that is capturing");
    if (flags != CU_EVENT_WAIT_DEFAULT)
        return CUDA_ERROR_INVALID_VALUE;
    em_event *found = em_object_get(EM_KIND_EVENT, event);
    if (found == NULL)
        return em_explain(CUDA_ERROR_INVALID_HANDLE, "%p is no event, or one that was destroyed", (void *)event);
    em_record *record = em_event_latest(found);
    return record != NULL ? em_stream_wait_record(stream, record) : CUDA_SUCCESS;
}

/* ---- what is known of a stream ----------------------------------------------------------------------------------- */

EM_ENTRY_STREAM(cuStreamGetFlags, "%p, %p", (hStream, flags), CUstream hStream, unsigned int *flags)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

EM_ENTRY_STREAM(cuStreamGetPriority, "%p, %p", (hStream, priority), CUstream hStream, int *priority)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (priority == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

EM_ENTRY_STREAM(cuStreamGetId, "%p, %p", (hStream, id), CUstream hStream, unsigned long long *id)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *id = stream->id;
    return CUDA_SUCCESS;
}

EM_ENTRY_STREAM(cuStreamGetDevice, "%p, %p", (hStream, device), CUstream hStream, CUdevice *device)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = stream->context->device->limits.ordinal;
    return CUDA_SUCCESS;
}

EM_ENTRY_STREAM(cuStreamGetCtx, "%p, %p", (hStream, context), CUstream hStream, CUcontext *context)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *context = (CUcontext)(void *)stream->context;
    return CUDA_SUCCESS;
}

EM_ENTRY_STREAM(cuStreamGetCtx_v2, "%p, %p, %p", (hStream, context, green), CUstream hStream, CUcontext *context,
                CUgreenCtx *green)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (context == NULL || green == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *context = (CUcontext)(void *)stream->context;
    *green = NULL;
    return CUDA_SUCCESS;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

EM_ENTRY_STREAM(cuStreamGetAttribute, "%p, %d, %p", (hStream, attribute, value), CUstream hStream,
                CUstreamAttrID attribute, CUstreamAttrValue *value)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memset(value, 0, sizeof *value);
    switch ((int)attribute) {
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value->syncPolicy = (CUsynchronizationPolicy)stream->synchronization_policy;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        value->priority = stream->priority;
        return CUDA_SUCCESS;
    /* There is no cache to keep a window in, and one domain of memory. */
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EM_ENTRY_STREAM(cuStreamSetAttribute, "%p, %d, %p", (hStream, attribute, value), CUstream hStream,
                CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        if (value->syncPolicy < CU_SYNC_POLICY_AUTO || value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
            return CUDA_ERROR_INVALID_VALUE;
        stream->synchronization_policy = (int)value->syncPolicy;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        stream->priority = clamped_priority(value->priority);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult CUDAAPI cuStreamCopyAttributes_ptsz(CUstream to, CUstream from);
EM_ENTRY(cuStreamCopyAttributes, "%p, %p", (to, from), CUstream to, CUstream from)
{
    em_stream *target, *source;
    int status = em_stream_enter(to, &target);
    if (status == CUDA_SUCCESS)
        status = em_stream_enter(from, &source);
    if (status == CUDA_SUCCESS)
        target->synchronization_policy = source->synchronization_policy;
    return status;
}

CUresult CUDAAPI cuStreamCopyAttributes_ptsz(CUstream to, CUstream from)
{
    return cuStreamCopyAttributes(to != NULL ? to : CU_STREAM_PER_THREAD, from != NULL ? from : CU_STREAM_PER_THREAD);
}

/* ---- host functions ---------------------------------------------------------------------------------------------- */

typedef struct host_op {
    em_op op;
    CUhostFn function;
    CUstreamCallback callback;
    CUstream stream;
    void *data;
} host_op;

static int run_function(em_op *op, em_stream *stream, em_detail *detail)
{
    (void)stream;
    (void)detail;
    const host_op *host = (const host_op *)op;
    em_self.in_callback = true;
    host->function(host->data);
    em_self.in_callback = false;
    return CUDA_SUCCESS;
}

/* A callback, unlike a host function, is told of an error too. */
static void finish_callback(em_op *op, em_stream *stream, int status)
{
    (void)stream;
    const host_op *host = (const host_op *)op;
    em_self.in_callback = true;
    host->callback(host->stream, (CUresult)status, host->data);
    em_self.in_callback = false;
}

EM_ENTRY_STREAM(cuLaunchHostFunc, "%p, %p, %p", (hStream, function, data), CUstream hStream, CUhostFn function,
                void *data)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (function == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    host_op *op = (host_op *)em_op_new(sizeof *op);
    if (op == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->op.run = run_function;
    op->function = function;
    op->data = data;
    return em_stream_submit(stream, &op->op, EM_QUEUE);
}

EM_ENTRY_STREAM(cuStreamAddCallback, "%p, %p, %p, %u", (hStream, callback, data, flags), CUstream hStream,
                CUstreamCallback callback, void *data, unsigned int flags)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (callback == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    host_op *op = (host_op *)em_op_new(sizeof *op);
    if (op == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->op.finish = finish_callback;
    op->callback = callback;
    op->stream = hStream;
    op->data = data;
    return em_stream_submit(stream, &op->op, EM_QUEUE);
}

/* ---- capture: streams of this driver do not capture -------------------------------------------------------------- */

static int no_capture(CUstream handle)
{
    em_stream *stream;
    int status = em_stream_enter(handle, &stream);
    return status != CUDA_SUCCESS
               ? status
               : em_explain(CUDA_ERROR_NOT_SUPPORTED, "the emulated device does not capture streams into graphs");
}

EM_ENTRY_STREAM(cuStreamBeginCapture_v2, "%p, %d", (hStream, mode), CUstream hStream, CUstreamCaptureMode mode)
{
    return no_capture(hStream);
}

EM_ENTRY_STREAM(cuStreamEndCapture, "%p, %p", (hStream, graph), CUstream hStream, CUgraph *graph)
{
    return no_capture(hStream);
}

EM_ENTRY_STREAM(cuStreamIsCapturing, "%p, %p", (hStream, capture), CUstream hStream, CUstreamCaptureStatus *capture)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (capture == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *capture = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

EM_ENTRY_STREAM(cuStreamGetCaptureInfo_v2, "%p, %p, %p, %p, %p, %p", (hStream, capture, id, graph, dependencies, count),
                CUstream hStream, CUstreamCaptureStatus *capture, cuuint64_t *id, CUgraph *graph,
                const CUgraphNode **dependencies, size_t *count)
{
    return do_cuStreamIsCapturing(hStream, capture);
}

EM_ENTRY_STREAM(cuStreamGetCaptureInfo_v3, "%p, %p, %p, %p, %p, %p, %p",
                (hStream, capture, id, graph, dependencies, edges, count), CUstream hStream,
                CUstreamCaptureStatus *capture, cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies,
                const CUgraphEdgeData **edges, size_t *count)
{
    return do_cuStreamIsCapturing(hStream, capture);
}

EM_ENTRY(cuThreadExchangeStreamCaptureMode, "%p", (mode), CUstreamCaptureMode *mode)
{
    static _Thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (mode == NULL || (int)*mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode former = current;
    current = *mode;
    *mode = former;
    return CUDA_SUCCESS;
}
