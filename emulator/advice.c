/* What programs have advised for managed memory: a list of segments of each allocation, made at the first advice. */
#include <stdlib.h>

#include "api.h"

struct em_advice {
    em_advice *next;
    uint64_t end; /* offset in the allocation; it begins where the one before ends */
    em_wishes wishes;
};

static pthread_mutex_t advice_lock = PTHREAD_MUTEX_INITIALIZER;

static em_advice *new_segment(uint64_t end, em_wishes wishes, em_advice *next)
{
    em_advice *made = malloc(sizeof *made);
    if (made != NULL)
        *made = (em_advice){.next = next, .end = end, .wishes = wishes};
    return made;
}

/* So that a segment ends at `offset`. False: no memory. */
static bool split(em_advice *first, uint64_t offset)
{
    uint64_t begin = 0;
    for (em_advice *each = first; each != NULL; begin = each->end, each = each->next) {
        if (offset <= begin || offset >= each->end)
            continue;
        em_advice *rest = new_segment(each->end, each->wishes, each->next);
        if (rest == NULL)
            return false;
        each->end = offset;
        each->next = rest;
        return true;
    }
    return true;
}

static bool same_location(CUmemLocation a, CUmemLocation b)
{
    return a.type == b.type && a.id == b.id;
}

static bool same(const em_wishes *a, const em_wishes *b)
{
    return a->read_mostly == b->read_mostly && a->accessed_by == b->accessed_by &&
           a->accessed_by_host == b->accessed_by_host && same_location(a->preferred, b->preferred) &&
           same_location(a->prefetched, b->prefetched);
}

/* Advice that is taken back leaves nothing behind. */
static void join(em_advice *first)
{
    for (em_advice *each = first; each->next != NULL;) {
        em_advice *next = each->next;
        if (!same(&each->wishes, &next->wishes)) {
            each = next;
            continue;
        }
        each->end = next->end;
        each->next = next->next;
        free(next);
    }
}

int em_advice_change(em_range *range, uint64_t address, uint64_t size, void (*change)(em_wishes *, CUmemLocation),
                     CUmemLocation location)
{
    uint64_t begin = address - range->base, end = begin + size, start = 0;
    pthread_mutex_lock(&advice_lock);
    em_advice **slot = em_heap_advice(range);
    if (*slot == NULL)
        *slot = new_segment(range->size, (em_wishes){0}, NULL);
    bool ready = *slot != NULL && split(*slot, begin) && split(*slot, end);
    for (em_advice *each = ready ? *slot : NULL; each != NULL; start = each->end, each = each->next)
        if (start >= begin && each->end <= end)
            change(&each->wishes, location);
    if (*slot != NULL)
        join(*slot);
    pthread_mutex_unlock(&advice_lock);
    return ready ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What holds for every byte; what differs is as if it was never said. */
static void narrow(em_wishes *common, const em_wishes *other)
{
    const CUmemLocation nowhere = {.type = CU_MEM_LOCATION_TYPE_INVALID};
    common->read_mostly &= other->read_mostly;
    common->accessed_by &= other->accessed_by;
    common->accessed_by_host &= other->accessed_by_host;
    if (!same_location(common->preferred, other->preferred))
        common->preferred = nowhere;
    if (!same_location(common->prefetched, other->prefetched))
        common->prefetched = nowhere;
}

em_wishes em_advice_common(em_range *range, uint64_t address, uint64_t size)
{
    uint64_t begin = address - range->base, end = begin + size, start = 0;
    em_wishes common = {0};
    bool any = false;
    pthread_mutex_lock(&advice_lock);
    for (const em_advice *each = *em_heap_advice(range); each != NULL; start = each->end, each = each->next) {
        if (each->end <= begin || start >= end)
            continue;
        if (any)
            narrow(&common, &each->wishes);
        else
            common = each->wishes;
        any = true;
    }
    pthread_mutex_unlock(&advice_lock);
    return common;
}

void em_advice_drop(em_range *range)
{
    pthread_mutex_lock(&advice_lock);
    em_advice *each = *em_heap_advice(range);
    *em_heap_advice(range) = NULL;
    pthread_mutex_unlock(&advice_lock);
    while (each != NULL) {
        em_advice *next = each->next;
        free(each);
        each = next;
    }
}
