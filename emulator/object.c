/* Handles: a region of slots for each kind, so that a stale or foreign pointer is told from a live handle. */
#include <string.h>
#include <sys/mman.h>

#include "api.h"

enum {
    SLOT_BYTES = 1024, /* holds the largest handle's struct but em_context, which takes LARGE_SLOT_BYTES */
    LARGE_SLOT_BYTES = 8192,
    SLOTS = 1 << 20,
    RESTING = 256, /* freed slots kept before the first is used again, so that a stale handle stays recognisable */
};

typedef struct region {
    pthread_mutex_t lock;
    char *_Atomic base;
    size_t slot_bytes;
    _Atomic size_t used; /* slots ever handed out */
    em_object *oldest, *newest;
    size_t resting;
    _Atomic uint64_t live;
} region;

#define REGION(bytes)                                                                                                  \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .slot_bytes = bytes                                                         \
    }
static region regions[EM_KIND_COUNT] = {
    [EM_KIND_CONTEXT] = REGION(LARGE_SLOT_BYTES),
    [EM_KIND_STREAM] = REGION(SLOT_BYTES),
    [EM_KIND_EVENT] = REGION(256),
    [EM_KIND_POOL] = REGION(SLOT_BYTES),
    [EM_KIND_LIBRARY] = REGION(SLOT_BYTES),
    [EM_KIND_KERNEL] = REGION(256),
    [EM_KIND_MODULE] = REGION(256),
    [EM_KIND_FUNCTION] = REGION(256),
    [EM_KIND_PHYSICAL] = REGION(256),
};

/* Slots hold the only pointers to much of the heap, and a leak checker does not look into mappings unless told. */
void __lsan_register_root_region(const void *begin, size_t size) __attribute__((weak));

static em_object *fresh_slot(region *where)
{
    char *slot = where->base + where->slot_bytes * where->used++;
    if (__lsan_register_root_region != NULL)
        __lsan_register_root_region(slot, where->slot_bytes);
    return (em_object *)(void *)slot;
}

static em_object *take_slot(region *where)
{
    if (where->base == NULL) {
        void *base = mmap(NULL, SLOTS * where->slot_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED)
            return NULL;
        where->base = base;
    }
    if (where->resting > RESTING || where->used == SLOTS) {
        em_object *slot = where->oldest;
        if (slot == NULL)
            return NULL;
        where->oldest = slot->next_free;
        if (where->oldest == NULL)
            where->newest = NULL;
        where->resting--;
        return slot;
    }
    return fresh_slot(where);
}

void *em_object_new(em_kind kind, size_t size)
{
    region *where = &regions[kind];
    if (size > where->slot_bytes)
        return NULL;
    pthread_mutex_lock(&where->lock);
    em_object *object = take_slot(where);
    pthread_mutex_unlock(&where->lock);
    if (object == NULL)
        return NULL;
    memset((char *)object + sizeof *object, 0, size - sizeof *object);
    object->next_free = NULL;
    atomic_store_explicit(&object->references, 1, memory_order_relaxed);
    atomic_store_explicit(&object->live, 1, memory_order_release);
    atomic_fetch_add_explicit(&where->live, 1, memory_order_relaxed);
    return object;
}

void *em_object_get(em_kind kind, const void *handle)
{
    region *where = &regions[kind];
    char *base = atomic_load_explicit(&where->base, memory_order_acquire);
    size_t offset = (size_t)((uintptr_t)handle - (uintptr_t)base);
    if (base == NULL || offset % where->slot_bytes != 0 || offset / where->slot_bytes >= where->used)
        return NULL;
    em_object *object = (em_object *)(void *)(base + offset);
    return atomic_load_explicit(&object->live, memory_order_acquire) ? object : NULL;
}

em_kind em_object_kind(const void *object)
{
    for (int kind = 0; kind < EM_KIND_COUNT; kind++) {
        uintptr_t base = (uintptr_t)regions[kind].base;
        if (base != 0 && (uintptr_t)object - base < SLOTS * regions[kind].slot_bytes)
            return (em_kind)kind;
    }
    return EM_KIND_COUNT;
}

bool em_object_close(em_object *object)
{
    if (!atomic_exchange(&object->live, 0))
        return false;
    atomic_fetch_sub_explicit(&regions[em_object_kind(object)].live, 1, memory_order_relaxed);
    return true;
}

void em_object_reopen(em_object *object)
{
    atomic_store_explicit(&object->live, 1, memory_order_release);
    atomic_fetch_add_explicit(&regions[em_object_kind(object)].live, 1, memory_order_relaxed);
}

void em_object_retain(em_object *object)
{
    atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
}

bool em_object_release(em_object *object)
{
    return atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) == 1;
}

void em_object_recycle(em_kind kind, em_object *object)
{
    region *where = &regions[kind];
    pthread_mutex_lock(&where->lock);
    object->next_free = NULL;
    if (where->newest != NULL)
        where->newest->next_free = object;
    else
        where->oldest = object;
    where->newest = object;
    where->resting++;
    pthread_mutex_unlock(&where->lock);
}

uint64_t em_object_count(em_kind kind)
{
    return atomic_load_explicit(&regions[kind].live, memory_order_relaxed);
}

void em_object_each(em_kind kind, void (*visit)(void *object, void *argument), void *argument)
{
    region *where = &regions[kind];
    for (size_t i = 0; i < where->used; i++) {
        em_object *object = (em_object *)(void *)(where->base + i * where->slot_bytes);
        if (atomic_load_explicit(&object->live, memory_order_acquire))
            visit(object, argument);
    }
}
