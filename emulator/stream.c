/* Streams: queues of operations, each worked off in order by a thread it borrows while it has work.
 *
 * Threads come from a list of idle ones and return to it when their stream is empty, so an idle stream costs nothing
 * and every busy stream makes progress whatever the others wait for. */
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <time.h>

#include "api.h"

enum {
    QUEUE_LENGTH = 1024, /* as on a GPU: with more than this a submitting thread waits */
    IDLE_SECONDS = 5,    /* an idle thread ends after this time */
};

typedef struct executor {
    pthread_cond_t wake;
    em_stream *stream; /* the work given to it, with a reference */
    struct executor *next;
} executor;

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static executor *idle;
static _Atomic uint64_t busy_threads;
static _Atomic bool stopping;
static _Atomic uint64_t next_stream = 1;

em_op *em_op_new(size_t size)
{
    return calloc(1, size);
}

void em_op_drop(em_op *op)
{
    free(op);
}

/* ---- working an operation off ---------------------------------------------------------------------------------------
 */

void em_stream_wait(em_stream *stream, uint64_t sequence)
{
    if (atomic_load_explicit(&stream->completed, memory_order_acquire) >= sequence)
        return;
    pthread_mutex_lock(&stream->lock);
    stream->waiters++;
    while (stream->completed < sequence)
        pthread_cond_wait(&stream->progress, &stream->lock);
    stream->waiters--;
    pthread_mutex_unlock(&stream->lock);
}

static void drop_dependencies(em_op *op)
{
    for (size_t i = 0; i < op->dependency_count; i++)
        em_stream_release(op->dependencies[i].stream);
    free(op->dependencies);
}

static void run_op(em_stream *stream, em_op *op)
{
    for (size_t i = 0; i < op->dependency_count; i++)
        em_stream_wait(op->dependencies[i].stream, op->dependencies[i].sequence);
    em_context *context = stream->context;
    int status = atomic_load_explicit(&context->sticky, memory_order_acquire);
    if (status == 0 && op->run != NULL) {
        em_detail detail;
        detail.text[0] = '\0';
        status = op->run(op, stream, &detail);
        if (status != 0)
            em_context_poison(context, status, &detail);
    }
    if (op->finish != NULL)
        op->finish(op, stream, status);
    drop_dependencies(op);
    uint64_t sequence = op->sequence;
    free(op);
    pthread_mutex_lock(&stream->lock);
    atomic_store_explicit(&stream->completed, sequence, memory_order_release);
    if (stream->waiters != 0)
        pthread_cond_broadcast(&stream->progress);
    pthread_mutex_unlock(&stream->lock);
}

/* Takes the next operation, or ends the thread's hold on the stream. */
static em_op *next_op(em_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    em_op *op = em_streams_stopping() ? NULL : stream->head;
    if (op == NULL) {
        stream->running = false;
    } else {
        stream->head = op->next;
        if (stream->head == NULL)
            stream->tail = NULL;
        if (stream->queued-- >= QUEUE_LENGTH)
            pthread_cond_broadcast(&stream->progress);
    }
    pthread_mutex_unlock(&stream->lock);
    return op;
}

static void drain(em_stream *stream)
{
    for (em_op *op = next_op(stream); op != NULL; op = next_op(stream))
        run_op(stream, op);
    em_stream_release(stream);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void leave_signals_to_the_program(void)
{
    sigset_t blocked;
    sigfillset(&blocked);
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
    for (size_t i = 0; i < sizeof synchronous / sizeof *synchronous; i++)
        sigdelset(&blocked, synchronous[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
}

/* Waits in the list of idle threads until there is work; false when the time is over. */
static bool wait_for_work(executor *self)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += IDLE_SECONDS;
    pthread_mutex_lock(&pool_lock);
    self->next = idle;
    idle = self;
    int late = 0;
    while (self->stream == NULL && late == 0)
        late = pthread_cond_timedwait(&self->wake, &pool_lock, &until);
    if (self->stream == NULL) {
        executor **link = &idle;
        while (*link != self)
            link = &(*link)->next;
        *link = self->next;
    }
    pthread_mutex_unlock(&pool_lock);
    return self->stream != NULL;
}

static void *executor_main(void *argument)
{
    executor *self = argument;
    leave_signals_to_the_program();
    do {
        em_stream *stream = self->stream;
        self->stream = NULL;
        drain(stream);
        atomic_fetch_sub(&busy_threads, 1);
    } while (wait_for_work(self));
    pthread_cond_destroy(&self->wake);
    free(self);
    return NULL;
}

static int start_thread(em_stream *stream)
{
    executor *made = calloc(1, sizeof *made);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_cond_init(&made->wake, NULL);
    made->stream = stream;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    int error = pthread_create(&thread, &attributes, executor_main, made);
    pthread_attr_destroy(&attributes);
    if (error == 0)
        return CUDA_SUCCESS;
    pthread_cond_destroy(&made->wake);
    free(made);
    return CUDA_ERROR_OPERATING_SYSTEM;
}

/* Gives the stream, whose `running` the caller has set, to a thread. */
static int dispatch(em_stream *stream)
{
    em_object_retain(&stream->object);
    atomic_fetch_add(&busy_threads, 1);
    pthread_mutex_lock(&pool_lock);
    executor *free_one = idle;
    if (free_one != NULL) {
        idle = free_one->next;
        free_one->stream = stream;
        pthread_cond_signal(&free_one->wake);
    }
    pthread_mutex_unlock(&pool_lock);
    if (free_one != NULL)
        return CUDA_SUCCESS;
    int status = start_thread(stream);
    if (status == CUDA_SUCCESS)
        return status;
    /* No thread is to be had: the caller does the work, which keeps the order though not the asynchrony. */
    drain(stream);
    atomic_fetch_sub(&busy_threads, 1);
    return CUDA_SUCCESS;
}

bool em_streams_stopping(void)
{
    return atomic_load_explicit(&stopping, memory_order_relaxed);
}

bool em_streams_stop(void)
{
    atomic_store(&stopping, true);
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 500 && atomic_load(&busy_threads) != 0; i++)
        nanosleep(&pause, NULL);
    return atomic_load(&busy_threads) == 0;
}

/* ---- submitting -------------------------------------------------------------------------------------------------- */

bool em_stream_is_blocking(const em_stream *stream)
{
    return !stream->legacy && !(stream->flags & CU_STREAM_NON_BLOCKING);
}

static bool add_dependency(em_op *op, em_stream *stream, uint64_t sequence)
{
    size_t count = op->dependency_count;
    if ((count & (count - 1)) == 0) { /* grows at each power of two */
        em_dependency *grown = realloc(op->dependencies, (count == 0 ? 1 : 2 * count) * sizeof *grown);
        if (grown == NULL)
            return false;
        op->dependencies = grown;
    }
    em_object_retain(&stream->object);
    op->dependencies[op->dependency_count++] = (em_dependency){stream, sequence};
    return true;
}

uint64_t em_stream_submitted(em_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    uint64_t submitted = stream->submitted;
    pthread_mutex_unlock(&stream->lock);
    return submitted;
}

bool em_stream_drained(em_stream *stream)
{
    return stream->completed >= em_stream_submitted(stream);
}

/* The rule of the legacy default stream: it waits for all blocking streams, and they wait for it. */
static bool order_with_others(em_stream *stream, em_op *op)
{
    em_context *context = stream->context;
    if (em_stream_is_blocking(stream) && !op->after_all) {
        em_stream *legacy = context->legacy;
        uint64_t submitted = em_stream_submitted(legacy);
        return legacy->completed >= submitted || add_dependency(op, legacy, submitted);
    }
    for (em_stream *other = context->streams; other != NULL; other = other->next) {
        if (other == stream || !(op->after_all || em_stream_is_blocking(other)))
            continue;
        uint64_t submitted = em_stream_submitted(other);
        if (other->completed < submitted && !add_dependency(op, other, submitted))
            return false;
    }
    return true;
}

int em_streams_wait(em_context *context, bool (*wanted)(const em_stream *stream))
{
    em_op seen = {0};
    bool complete = true;
    pthread_mutex_lock(&context->order);
    for (em_stream *stream = context->streams; stream != NULL && complete; stream = stream->next) {
        uint64_t submitted = wanted(stream) ? em_stream_submitted(stream) : 0;
        if (stream->completed < submitted)
            complete = add_dependency(&seen, stream, submitted);
    }
    pthread_mutex_unlock(&context->order);
    for (size_t i = 0; i < seen.dependency_count; i++)
        em_stream_wait(seen.dependencies[i].stream, seen.dependencies[i].sequence);
    drop_dependencies(&seen);
    return complete ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int em_streams_each(em_context *context, int (*visit)(em_stream *stream, void *argument), void *argument)
{
    em_op seen = {0};
    int status = CUDA_SUCCESS;
    pthread_mutex_lock(&context->order);
    for (em_stream *stream = context->streams; stream != NULL && status == CUDA_SUCCESS; stream = stream->next)
        if (!add_dependency(&seen, stream, 0))
            status = CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_unlock(&context->order);
    for (size_t i = 0; i < seen.dependency_count && status == CUDA_SUCCESS; i++)
        status = visit(seen.dependencies[i].stream, argument);
    drop_dependencies(&seen);
    return status;
}

static void refuse(em_stream *stream, em_op *op, int status)
{
    if (op->finish != NULL)
        op->finish(op, stream, status);
    drop_dependencies(op);
    free(op);
}

/* A full queue holds the submitting thread up, as a GPU's does. */
static void wait_for_room(em_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->waiters++;
    while (stream->queued >= QUEUE_LENGTH)
        pthread_cond_wait(&stream->progress, &stream->lock);
    stream->waiters--;
    pthread_mutex_unlock(&stream->lock);
}

static void run_here(em_stream *stream, em_op *op)
{
    em_object_retain(&stream->object); /* the operation may be the one that ends the stream */
    run_op(stream, op);
    pthread_mutex_lock(&stream->lock);
    bool more = stream->head != NULL;
    if (!more)
        stream->running = false;
    pthread_mutex_unlock(&stream->lock);
    if (more)
        dispatch(stream);
    em_stream_release(stream);
}

int em_stream_submit(em_stream *stream, em_op *op, em_submit how)
{
    em_context *context = stream->context;
    bool ordered = stream->legacy || op->after_all || em_stream_is_blocking(stream);
    if (stream->queued >= QUEUE_LENGTH)
        wait_for_room(stream);
    if (ordered) {
        pthread_mutex_lock(&context->order);
        if (!order_with_others(stream, op)) {
            pthread_mutex_unlock(&context->order);
            refuse(stream, op, CUDA_ERROR_OUT_OF_MEMORY);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    pthread_mutex_lock(&stream->lock);
    uint64_t sequence = op->sequence = ++stream->submitted;
    bool start = !stream->running;
    bool here = start && (how == EM_WAIT || (how == EM_NOW_OR_QUEUE && op->dependency_count == 0));
    stream->running = true;
    if (!here) {
        if (stream->tail != NULL)
            stream->tail->next = op;
        else
            stream->head = op;
        stream->tail = op;
        stream->queued++;
    }
    pthread_mutex_unlock(&stream->lock);
    if (ordered)
        pthread_mutex_unlock(&context->order);
    if (here)
        run_here(stream, op);
    else if (start)
        dispatch(stream);
    if (how != EM_WAIT)
        return CUDA_SUCCESS;
    em_stream_wait(stream, sequence);
    return atomic_load_explicit(&context->sticky, memory_order_acquire);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

em_stream *em_stream_new(em_context *context, unsigned int flags, int priority)
{
    em_stream *stream = em_object_new(EM_KIND_STREAM, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = atomic_fetch_add(&next_stream, 1);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->progress, NULL);
    pthread_mutex_lock(&context->order);
    stream->next = context->streams;
    if (stream->next != NULL)
        stream->next->previous = stream;
    context->streams = stream;
    em_record *gate = context->gate;
    if (gate != NULL)
        atomic_fetch_add_explicit(&gate->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&context->order);
    if (gate != NULL)
        em_stream_wait_record(stream, gate);
    return stream;
}

static void close_op_finish(em_op *op, em_stream *stream, int status)
{
    (void)op;
    (void)status;
    em_context *context = stream->context;
    pthread_mutex_lock(&context->order);
    if (stream->previous != NULL)
        stream->previous->next = stream->next;
    else
        context->streams = stream->next;
    if (stream->next != NULL)
        stream->next->previous = stream->previous;
    pthread_mutex_unlock(&context->order);
    em_stream_release(stream);
}

/* It leaves its context's list, which others are ordered by, behind the last of its work. */
void em_stream_close(em_stream *stream)
{
    if (atomic_exchange(&stream->closing, true))
        return;
    em_op *op = em_op_new(sizeof *op);
    if (op == NULL) {
        em_stream_wait(stream, em_stream_submitted(stream));
        close_op_finish(NULL, stream, 0);
        return;
    }
    op->finish = close_op_finish;
    em_stream_submit(stream, op, EM_NOW_OR_QUEUE);
}

void em_stream_release(em_stream *stream)
{
    if (!em_object_release(&stream->object))
        return;
    pthread_cond_destroy(&stream->progress);
    pthread_mutex_destroy(&stream->lock);
    em_object_recycle(EM_KIND_STREAM, &stream->object);
}
