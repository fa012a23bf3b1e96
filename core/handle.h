/* The reference count that every object of cuda_core.h begins its life with. */
#ifndef CC_HANDLE_H
#define CC_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct cc__count {
    atomic_size_t references;
} cc__count;

static inline void cc__count_start(cc__count *count)
{
    atomic_init(&count->references, 1);
}

static inline void cc__count_add(cc__count *count)
{
    atomic_fetch_add_explicit(&count->references, 1, memory_order_relaxed);
}

/* True when that was the last reference: the caller destroys the object. */
static inline bool cc__count_drop(cc__count *count)
{
    /* The only owner needs no locked instruction: nobody else holds a reference to add to. */
    if (atomic_load_explicit(&count->references, memory_order_acquire) == 1)
        return true;
    return atomic_fetch_sub_explicit(&count->references, 1, memory_order_acq_rel) == 1;
}

#endif
