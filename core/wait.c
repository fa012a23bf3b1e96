/* Waiting that can be broken off. The driver's own waits do not return before the work is done, whatever happens to the
 * process meanwhile; these ask again and again, and ask their caller in between. */
#include "internal.h"

#include <sched.h>
#include <time.h>

enum {
    SPIN = 1000 * 1000,           /* ns. A shorter sleep would last as long as this, by the system's timers. */
    SPIN_EMULATED = 50 * 1000,    /* the device's threads want this core */
    FIRST_PAUSE = 50 * 1000,      /* ns */
    LONGEST_PAUSE = 20000 * 1000, /* ns; the caller is asked as often, however short the pauses are: asking costs it */
    PART = 20,                    /* a pause is a twentieth of the time waited, so that no wait is 5 % too long */
};

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Whether a signal ended it early. */
static bool pause_for(int64_t waited)
{
    int64_t length = waited / PART;
    if (length < FIRST_PAUSE)
        length = FIRST_PAUSE;
    if (length > LONGEST_PAUSE)
        length = LONGEST_PAUSE;
    const struct timespec time = {.tv_nsec = (long)length};
    return nanosleep(&time, NULL) != 0;
}

/* The event where there is one, else the stream. Any answer but "not ready" means that there is nothing to wait for. */
static bool is_ready(const cc_context *context, CUevent event, CUstream stream)
{
    cc__scope scope;
    if (cc__enter(&scope, context, NULL))
        return true;
    const CUresult code = event ? cc__driver.cuEventQuery(event) : cc__driver.cuStreamQuery(stream);
    cc__leave(&scope);
    return code != CUDA_ERROR_NOT_READY;
}

/* 1: broken off. The thread has its own current context whenever `interrupted` is called, which may make another one
 * current. */
static int poll_until(const cc_context *context, CUevent event, CUstream stream, const cc_watch *watch)
{
    const int64_t start = now(), spin = cc_driver_which() == CC_DRIVER_EMULATOR ? SPIN_EMULATED : SPIN;
    int64_t asked = start;
    while (!is_ready(context, event, stream)) {
        const int64_t time = now();
        if (time - start < spin) {
            sched_yield();
            continue;
        }
        if (!pause_for(time - start) && time - asked < LONGEST_PAUSE)
            continue;
        if (watch->interrupted(watch->user))
            return 1;
        asked = time;
    }
    return 0;
}

int cc__stream_poll(const cc_context *context, const cc_stream *stream, const cc_watch *watch)
{
    return poll_until(context, NULL, stream->native, watch);
}

/* Each ends in the driver's own wait: it is over at once, and says what went wrong with the work. */

int cc_stream_wait(cc_stream *stream, const cc_watch *watch, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (!watch)
        return cc_stream_synchronize(stream, error);
    if (cc_stream_context(stream, &context, error))
        return -1;
    if (poll_until(context, NULL, stream->native, watch))
        return 1;
    if (cc__enter(&scope, context, error)) /* a default stream is still that of the context it was at first */
        return -1;
    int status = cc__stream_finish(stream, error);
    cc__leave(&scope);
    return status;
}

int cc_event_wait(cc_event *event, const cc_watch *watch, cc_error *error)
{
    if (watch && poll_until(event->context, event->native, NULL, watch))
        return 1;
    return cc_event_synchronize(event, error);
}

/* An event behind all work of the context; NULL where the driver is too old to know such, or refuses. */
static CUevent mark_context(const cc_context *context)
{
    cc__scope scope;
    CUevent event = NULL;
    if (!cc__driver.cuCtxRecordEvent || cc__enter(&scope, context, NULL))
        return NULL;
    if (cc__driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        event = NULL;
    } else if (cc__driver.cuCtxRecordEvent(context->native, event) != CUDA_SUCCESS) {
        (void)cc__driver.cuEventDestroy(event);
        event = NULL;
    }
    cc__leave(&scope);
    return event;
}

static int poll_context(const cc_context *context, const cc_watch *watch)
{
    cc__scope scope;
    CUevent event = mark_context(context);
    if (!event)
        return 0;
    const int broken_off = poll_until(context, event, NULL, watch);
    if (cc__enter_to_release(&scope, context)) {
        (void)cc__driver.cuEventDestroy(event);
        cc__leave(&scope);
    }
    return broken_off;
}

int cc_device_wait(cc_device *device, const cc_watch *watch, cc_error *error)
{
    cc_context *context;
    if (watch) {
        if (cc_device_primary_context(device, &context, error))
            return -1;
        if (poll_context(context, watch))
            return 1;
    }
    return cc_device_synchronize(device, error);
}
