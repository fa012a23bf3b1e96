/* Waiting that can be broken off. The driver's own waits do not return before the work is done, whatever happens to the
 * process meanwhile; these ask again and again, and ask their caller in between. */
#include "internal.h"

#include <sched.h>
#include <time.h>

enum {
    SPIN = 1000 * 1000,           /* ns. A shorter sleep would last as long as this, by the system's timers. */
    SPIN_EMULATED = 50 * 1000,    /* the device's threads want this core */
    FIRST_PAUSE = 50 * 1000,      /* ns */
    LONGEST_PAUSE = 20000 * 1000, /* ns: a caller that is asked after each is heard within 20 ms */
    PART = 20,                    /* a pause is a twentieth of the time waited, so that no wait is 5 % too long */
};

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void pause_for(int64_t waited)
{
    int64_t length = waited / PART;
    if (length < FIRST_PAUSE)
        length = FIRST_PAUSE;
    if (length > LONGEST_PAUSE)
        length = LONGEST_PAUSE;
    const struct timespec time = {.tv_nsec = (long)length};
    (void)nanosleep(&time, NULL); /* a signal ends it early, which is welcome */
}

/* Until the event or stream is no longer "not ready", whatever else it is then; 1: broken off. The context is current. */
static int poll_until(CUevent event, CUstream stream, const cc_watch *watch)
{
    const int64_t start = now(), spin = cc_driver_which() == CC_DRIVER_EMULATOR ? SPIN_EMULATED : SPIN;
    while ((event ? cc__driver.cuEventQuery(event) : cc__driver.cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) {
        const int64_t waited = now() - start;
        if (waited < spin) {
            sched_yield();
            continue;
        }
        if (watch->interrupted(watch->user))
            return 1;
        pause_for(waited);
    }
    return 0;
}

int cc__stream_poll(const cc_stream *stream, const cc_watch *watch)
{
    return poll_until(NULL, stream->native, watch);
}

/* Each ends in the driver's own wait: it is over at once, and says what went wrong with the work. */

int cc_stream_wait(cc_stream *stream, const cc_watch *watch, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (watch) {
        if (cc__enter_stream(&scope, stream, &context, error))
            return -1;
        const int broken_off = poll_until(NULL, stream->native, watch);
        cc__leave(&scope);
        if (broken_off)
            return 1;
    }
    return cc_stream_synchronize(stream, error);
}

int cc_event_wait(cc_event *event, const cc_watch *watch, cc_error *error)
{
    cc__scope scope;
    if (watch) {
        if (cc__enter(&scope, event->context, error))
            return -1;
        const int broken_off = poll_until(event->native, NULL, watch);
        cc__leave(&scope);
        if (broken_off)
            return 1;
    }
    return cc_event_synchronize(event, error);
}

/* An event behind all work of the context, where the driver is new enough to know such. The context is current. */
static int poll_context(const cc_context *context, const cc_watch *watch)
{
    CUevent event;
    int broken_off = 0;
    if (!cc__driver.cuCtxRecordEvent || cc__driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return 0;
    if (cc__driver.cuCtxRecordEvent(context->native, event) == CUDA_SUCCESS)
        broken_off = poll_until(event, NULL, watch);
    (void)cc__driver.cuEventDestroy(event);
    return broken_off;
}

int cc_device_wait(cc_device *device, const cc_watch *watch, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (watch) {
        if (cc_device_primary_context(device, &context, error) || cc__enter(&scope, context, error))
            return -1;
        const int broken_off = poll_context(context, watch);
        cc__leave(&scope);
        if (broken_off)
            return 1;
    }
    return cc_device_synchronize(device, error);
}
