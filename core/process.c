/* The ends of a process: children that fork makes of it, and its exit. */
#include "internal.h"

#include <string.h>

bool cc__forked;
pthread_mutex_t cc__forked_lock;
atomic_bool cc__leaving;

/* Takes the place of every entry point in a forked child. It is called with the arguments of the one it stands for: in
 * the calling conventions of the machines that have CUDA the caller owns them, so that a callee may ignore them. */
static CUresult refuse(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

/* A mutex that the same thread may lock again, as one that stands for many is; new in a child of a child, too. */
static void make_forked_lock(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&cc__forked_lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

/* A child has the parent's handles, but neither the driver's threads nor its hold on the device. Nothing there may
 * reach the driver again, the release of an object least of all; and locks may be held by threads that the child lacks.
 * No call pays for that: the table itself changes. */
static void after_fork_in_child(void)
{
    if (!cc__driver_after_fork())
        return;
    CUresult (*const refusal)(void) = refuse;
    void *address;
    memcpy(&address, &refusal, sizeof address);
    void **slots = (void **)&cc__driver;
    for (size_t i = 0; i < sizeof cc__driver / sizeof *slots; i++)
        if (slots[i])
            slots[i] = address;
    cc__driver.cuEmulatorErrorDetail = NULL;
    make_forked_lock();
    cc__forked = true;
}

static void watch_forks_once(void)
{
    (void)pthread_atfork(NULL, NULL, after_fork_in_child); /* fails without memory only, and then nothing is lost */
}

void cc__watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks_once);
}

void cc_process_ends(bool ends)
{
    atomic_store_explicit(&cc__leaving, ends, memory_order_relaxed);
}
