/* Host memory given by cuMemHostRegister: a sorted array, replaced as a whole so that readers need no lock. */
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "heap.h"

typedef struct array {
    em_retired retired;
    size_t count;
    em_range *range[];
} array;

static pthread_mutex_t registered_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(array *) current;

static array *new_array(size_t count)
{
    array *made = malloc(sizeof *made + count * sizeof made->range[0]);
    if (made != NULL)
        made->count = count;
    return made;
}

static void replace(array *made)
{
    array *old = atomic_exchange(&current, made);
    if (old != NULL)
        em_retire(old, &old->retired);
}

/* How many ranges begin at or below the address. */
static size_t count_up_to(const array *all, uint64_t address)
{
    size_t low = 0, high = all != NULL ? all->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all->range[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static array *with_range(const array *old, size_t at, em_range *range)
{
    size_t count = old != NULL ? old->count : 0;
    array *made = new_array(count + 1);
    if (made == NULL)
        return NULL;
    if (old != NULL) {
        memcpy(made->range, old->range, at * sizeof old->range[0]);
        memcpy(made->range + at + 1, old->range + at, (count - at) * sizeof old->range[0]);
    }
    made->range[at] = range;
    return made;
}

int em_registered_add(em_range *range)
{
    int status = CUDA_SUCCESS;
    pthread_mutex_lock(&registered_lock);
    const array *old = current;
    /* Ranges do not overlap, so only the last that begins before the new one's end can touch it. */
    size_t below = count_up_to(old, range->base + range->size - 1);
    if (below != 0 && old->range[below - 1]->base + old->range[below - 1]->size > range->base) {
        status = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    } else {
        array *made = with_range(old, below, range);
        if (made != NULL)
            replace(made);
        else
            status = CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&registered_lock);
    return status;
}

bool em_registered_remove(em_range *range)
{
    bool removed = false;
    pthread_mutex_lock(&registered_lock);
    array *old = current;
    size_t at = 0;
    while (at < old->count && old->range[at] != range)
        at++;
    if (at < old->count) {
        array *made = new_array(old->count - 1);
        if (made != NULL) {
            memcpy(made->range, old->range, at * sizeof old->range[0]);
            memcpy(made->range + at, old->range + at + 1, (old->count - at - 1) * sizeof old->range[0]);
            replace(made);
            removed = true;
        }
    }
    pthread_mutex_unlock(&registered_lock);
    return removed;
}

em_range *em_registered_find(uint64_t address)
{
    const array *all = atomic_load_explicit(&current, memory_order_acquire);
    size_t below = count_up_to(all, address);
    if (below == 0)
        return NULL;
    em_range *range = all->range[below - 1];
    return address - range->base < range->size ? range : NULL;
}

/* Called pinned, so the array looked at stays while visit replaces it. */
void em_registered_each(const void *owner, void (*visit)(em_range *range))
{
    const array *all = atomic_load_explicit(&current, memory_order_acquire);
    for (size_t i = 0; all != NULL && i < all->count; i++)
        if (all->range[i]->live && all->range[i]->owner == owner)
            visit(all->range[i]);
}
