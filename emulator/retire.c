/* Freeing what readers without a lock may still look at.
 *
 * Readers count themselves in under the phase of the moment. Memory retired in one phase is freed when the phase has
 * changed since and the readers of the former phase are gone: later ones cannot have found it. */
#include <pthread.h>
#include <stdlib.h>

#include "api.h"
#include "heap.h"

static _Atomic uint64_t readers[2];
static _Atomic uint64_t phase;
static pthread_mutex_t retire_lock = PTHREAD_MUTEX_INITIALIZER;
static em_retired *waiting, *former; /* retired in this phase, and in the one before */
static _Thread_local struct {
    uint32_t depth, index;
} pinned;

void em_heap_pin(void)
{
    if (pinned.depth++ != 0)
        return;
    for (;;) {
        uint64_t now = atomic_load(&phase);
        pinned.index = (uint32_t)(now & 1);
        atomic_fetch_add(&readers[pinned.index], 1);
        if (atomic_load(&phase) == now)
            return;
        atomic_fetch_sub(&readers[pinned.index], 1);
    }
}

void em_heap_unpin(void)
{
    if (--pinned.depth == 0)
        atomic_fetch_sub(&readers[pinned.index], 1);
}

void em_retire(void *memory, em_retired *link)
{
    link->memory = memory;
    em_retired *freed = NULL;
    pthread_mutex_lock(&retire_lock);
    link->next = waiting;
    waiting = link;
    if (atomic_load(&readers[(phase + 1) & 1]) == 0) {
        freed = former;
        former = waiting;
        waiting = NULL;
        atomic_fetch_add(&phase, 1);
    }
    pthread_mutex_unlock(&retire_lock);
    while (freed != NULL) {
        em_retired *next = freed->next;
        free(freed->memory);
        freed = next;
    }
}
