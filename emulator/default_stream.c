/* Which stream a handle means, the default streams, and waiting for a stream. */
#include <stdlib.h>

#include "api.h"

em_stream *em_stream_of_thread(em_context *context)
{
    uint64_t epoch = atomic_load(&context->epoch);
    for (em_thread_stream *entry = em_self.streams; entry != NULL; entry = entry->next)
        if (entry->context == context && entry->context_epoch == epoch)
            return entry->stream;
    em_thread_register();
    em_thread_stream *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return NULL;
    entry->context = context;
    entry->context_epoch = epoch;
    entry->stream = em_stream_new(context, CU_STREAM_DEFAULT, 0);
    if (entry->stream == NULL) {
        free(entry);
        return NULL;
    }
    entry->stream->per_thread = true;
    em_object_close(&entry->stream->object); /* reached through CU_STREAM_PER_THREAD only */
    em_object_retain(&entry->stream->object);
    entry->next = em_self.streams;
    em_self.streams = entry;
    return entry->stream;
}

static int enter_default(CUstream handle, em_stream **stream)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    *stream = handle == CU_STREAM_PER_THREAD ? em_stream_of_thread(context) : context->legacy;
    return *stream != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int em_stream_enter(CUstream handle, em_stream **stream)
{
    if (handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return enter_default(handle, stream);
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    *stream = em_object_get(EM_KIND_STREAM, handle);
    if (*stream == NULL)
        return em_explain(CUDA_ERROR_INVALID_HANDLE, "%p is no stream, or one that was destroyed", (void *)handle);
    return atomic_load_explicit(&(*stream)->context->sticky, memory_order_acquire);
}

bool em_stream_idle(em_stream *stream)
{
    if (!stream->legacy)
        return em_stream_drained(stream);
    bool idle = true;
    pthread_mutex_lock(&stream->context->order);
    for (em_stream *other = stream->context->streams; other != NULL && idle; other = other->next)
        idle = !(other == stream || em_stream_is_blocking(other)) || em_stream_drained(other);
    pthread_mutex_unlock(&stream->context->order);
    return idle;
}

static bool is_ordered(const em_stream *stream)
{
    return stream->legacy || em_stream_is_blocking(stream);
}

int em_stream_synchronize(em_stream *stream)
{
    int status = CUDA_SUCCESS;
    if (stream->legacy)
        status = em_streams_wait(stream->context, is_ordered);
    else
        em_stream_wait(stream, em_stream_submitted(stream));
    em_pools_trim(stream->context->device);
    int sticky = atomic_load_explicit(&stream->context->sticky, memory_order_acquire);
    return sticky != 0 ? sticky : status;
}
