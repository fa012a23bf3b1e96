/* The launches of each stream that may still be running: what a failure of the context is laid to. launches.c */
#ifndef CC_LAUNCHES_H
#define CC_LAUNCHES_H

#include "internal.h"

enum { CC__LAUNCHES_KEPT = 16 }; /* of each stream by name; of earlier ones the number is known */

typedef struct cc__launch {
    _Atomic uint64_t number;      /* 1 for the first of the lane; 0 while this is being written */
    _Atomic(const char *) kernel; /* NULL: the driver refused it */
} cc__launch;

/* Never freed: the driver gives out the handles of destroyed streams again, so that there are as many as there were
 * streams at once. A launch pays for two additions and three stores here. */
struct cc__lane {
    _Atomic uint64_t begun;    /* launches that were handed to the driver */
    _Atomic uint64_t returned; /* those of them that it has taken or refused */
    _Atomic uint64_t done;     /* the first so many are known to be over */
    CUstream native;
    bool is_many; /* a stream of each thread: waiting for one of them says nothing of the others */
    struct cc__lane *next;
    cc__launch launches[CC__LAUNCHES_KEPT];
};

/* The lane of a stream in its context, made where there is none; never NULL. */
CC__COLD cc__lane *cc__lane_find(cc_context *context, cc_stream *stream);

static inline cc__lane *cc__lane_of(cc_context *context, cc_stream *stream)
{
    cc__lane *lane = atomic_load_explicit(&stream->lane, memory_order_acquire);
    return CC__LIKELY(lane != NULL) ? lane : cc__lane_find(context, stream);
}

/* To be called before the driver is, so that no failure comes before the note; returns the launch's number. */
static inline uint64_t cc__launch_begins(cc__lane *lane, const char *kernel)
{
    const uint64_t number = atomic_fetch_add_explicit(&lane->begun, 1, memory_order_acq_rel) + 1;
    cc__launch *launch = &lane->launches[(number - 1) % CC__LAUNCHES_KEPT];
    atomic_store_explicit(&launch->number, 0, memory_order_relaxed);
    atomic_store_explicit(&launch->kernel, kernel, memory_order_release);
    atomic_store_explicit(&launch->number, number, memory_order_release);
    return number;
}

/* And after it. */
static inline void cc__launch_returns(cc__lane *lane)
{
    atomic_fetch_add_explicit(&lane->returned, 1, memory_order_acq_rel);
}

/* One that the driver refused, before it is said to have returned. */
CC__COLD void cc__launch_refused(cc__lane *lane, uint64_t number);

/* How many launches of the lane a wait that begins now will have waited for. 0 while another thread is in the midst of
 * one: it may come after the wait. */
static inline uint64_t cc__launches_so_far(const cc__lane *lane)
{
    const uint64_t returned = atomic_load_explicit(&lane->returned, memory_order_acquire);
    return returned == atomic_load_explicit(&lane->begun, memory_order_acquire) ? returned : 0;
}

/* The first `count` are over. Of two threads the one with less may come last, which makes a launch look unfinished that
 * is not. */
static inline void cc__launches_done(cc__lane *lane, uint64_t count)
{
    if (count > atomic_load_explicit(&lane->done, memory_order_relaxed))
        atomic_store_explicit(&lane->done, count, memory_order_release);
}

/* What a wait is about to wait for, to be noted when it was successful. */
typedef struct cc__mark {
    cc__lane *lane; /* NULL: nothing that is known */
    uint64_t count;
} cc__mark;

static inline cc__mark cc__mark_stream(cc_stream *stream)
{
    cc__lane *lane = atomic_load_explicit(&stream->lane, memory_order_acquire);
    if (!lane || lane->is_many)
        return (cc__mark){NULL, 0};
    return (cc__mark){lane, cc__launches_so_far(lane)};
}

static inline void cc__mark_reached(cc__mark mark)
{
    if (mark.lane)
        cc__launches_done(mark.lane, mark.count);
}

/* The same for all streams of a context. `marks` is freed by cc__marks_drop; it is empty where there is no memory. */
typedef struct cc__marks {
    cc__mark *marks;
    size_t count;
} cc__marks;
cc__marks cc__marks_of(cc_context *context);
void cc__marks_drop(cc__marks *marks, bool reached);

/* ---- of a failed context ---------------------------------------------------------------------------------------- */

/* Writes the launches that may be the one that failed: "kernel a on stream 0x1", or several with "; " between them.
 * Returns how many there are, those among them that are only counted too. */
uint64_t cc__launches_in_flight(cc_context *context, char *text, size_t size);

#endif
