/* Events: each recording is an object of its own, so re-recording or destroying an event changes nothing for those who
 * wait on what it captured before. */
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "api.h"

enum { PENDING, AWAITED, DONE };

typedef struct record_op {
    em_op op;
    em_record *record;
} record_op;

void em_record_release(em_record *record)
{
    if (atomic_fetch_sub_explicit(&record->references, 1, memory_order_acq_rel) == 1)
        free(record);
}

bool em_record_done(const em_record *record)
{
    return atomic_load_explicit(&record->state, memory_order_acquire) == DONE;
}

void em_record_wait(em_record *record)
{
    for (;;) {
        uint32_t state = PENDING;
        if (!atomic_compare_exchange_strong(&record->state, &state, AWAITED) && state == DONE)
            return;
        syscall(SYS_futex, &record->state, FUTEX_WAIT_PRIVATE, AWAITED, NULL, NULL, 0);
    }
}

em_record *em_event_latest(em_event *event)
{
    pthread_mutex_lock(&event->lock);
    em_record *record = event->record;
    if (record != NULL)
        atomic_fetch_add_explicit(&record->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&event->lock);
    return record;
}

static void finish_record(em_op *op, em_stream *stream, int status)
{
    (void)stream;
    (void)status;
    em_record *record = ((record_op *)op)->record;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    record->nanoseconds = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (atomic_exchange(&record->state, DONE) == AWAITED)
        syscall(SYS_futex, &record->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    em_record_release(record);
}

static int record(em_event *event, em_stream *stream, bool after_all)
{
    em_record *record = calloc(1, sizeof *record);
    record_op *op = (record_op *)em_op_new(sizeof *op);
    if (record == NULL || op == NULL) {
        free(record);
        free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    record->references = 2;
    op->record = record;
    op->op.finish = finish_record;
    op->op.after_all = after_all;
    /* Only what has its place in the stream is shown to others: a wait for a recording that is yet to be queued could
     * come before it in the order of streams, and each would wait for the other. */
    int status = em_stream_submit(stream, &op->op, EM_NOW_OR_QUEUE);
    pthread_mutex_lock(&event->lock);
    em_record *former = event->record;
    event->record = record;
    pthread_mutex_unlock(&event->lock);
    if (former != NULL)
        em_record_release(former);
    return status;
}

int em_event_record(em_event *event, em_stream *stream)
{
    return record(event, stream, false);
}

/* The stream that nothing else is submitted to. */
static em_stream *whole_of(em_context *context)
{
    pthread_mutex_lock(&context->order);
    em_stream *whole = context->whole;
    pthread_mutex_unlock(&context->order);
    if (whole != NULL)
        return whole;
    em_stream *made = em_stream_new(context, CU_STREAM_NON_BLOCKING, 0);
    if (made == NULL)
        return NULL;
    em_object_close(&made->object); /* no handle leads to it */
    pthread_mutex_lock(&context->order);
    whole = context->whole;
    if (whole == NULL)
        context->whole = whole = made;
    pthread_mutex_unlock(&context->order);
    if (whole != made)
        em_stream_close(made);
    return whole;
}

int em_event_record_context(em_event *event, em_context *context)
{
    em_stream *whole = whole_of(context);
    return whole != NULL ? record(event, whole, true) : CUDA_ERROR_OUT_OF_MEMORY;
}

static int run_wait(em_op *op, em_stream *stream, em_detail *detail)
{
    (void)stream;
    (void)detail;
    em_record_wait(((record_op *)op)->record);
    return CUDA_SUCCESS;
}

static void finish_wait(em_op *op, em_stream *stream, int status)
{
    (void)stream;
    (void)status;
    em_record_release(((record_op *)op)->record);
}

int em_stream_wait_record(em_stream *stream, em_record *record)
{
    if (em_record_done(record)) {
        em_record_release(record);
        return CUDA_SUCCESS;
    }
    record_op *op = (record_op *)em_op_new(sizeof *op);
    if (op == NULL) {
        em_record_release(record);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->record = record;
    op->op.run = run_wait;
    op->op.finish = finish_wait;
    return em_stream_submit(stream, &op->op, EM_QUEUE);
}

static int wait_for(em_stream *stream, void *argument)
{
    em_record *waited = argument;
    atomic_fetch_add_explicit(&waited->references, 1, memory_order_relaxed);
    return em_stream_wait_record(stream, waited);
}

int em_context_wait_record(em_context *context, em_record *waited)
{
    atomic_fetch_add_explicit(&waited->references, 1, memory_order_relaxed);
    pthread_mutex_lock(&context->order);
    em_record *former = context->gate;
    context->gate = waited;
    pthread_mutex_unlock(&context->order);
    if (former != NULL)
        em_record_release(former);
    int status = em_streams_each(context, wait_for, waited);
    em_record_release(waited);
    return status;
}
