/* Device memory: one reserved arena, and the table that says which bytes of it are in use.
 *
 * The arena is cut into spans of 2 MiB. A span holds blocks of one size (a slab), or is part of a larger allocation.
 * `table` has an entry for each span, and a slab one for each block, so that a reader finds the range of an address
 * with two loads and no lock. A freed range stays in the table, not live, while its place rests in the quarantine;
 * structs taken out of the table are freed after all readers that could have seen them are gone. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api.h"
#include "heap.h"

enum {
    SPAN_SHIFT = 21,
    CLASS_COUNT = 48,
    GAP = 256, /* bytes that lie between two allocations at least, and belong to neither */
    LARGEST_BLOCK = 512 << 10,
    RESTING_RANGES = 4096,
};
#define SPAN_BYTES    (UINT64_C(1) << SPAN_SHIFT)
#define ARENA_BYTES   (UINT64_C(1) << 38)
#define SPAN_COUNT    (ARENA_BYTES / SPAN_BYTES)
#define RESTING_BYTES (UINT64_C(256) << 20) /* RAM that quarantined memory may keep */
#define GIVEN_BACK    (UINT64_C(16) << 20)  /* a freed allocation of this size gives its RAM back at once */

typedef struct span {
    em_retired retired;
    uint64_t base, bytes;
    bool reserved;        /* addresses alone: range[] has the mapping at each SPAN_BYTES of it, or NULL */
    uint32_t block_bytes; /* 0: one large allocation, or reserved */
    uint32_t block_count, blocks_used, first_free;
    struct span *next, *previous; /* slabs of this class with a free block */
    uint32_t *free_next;          /* a slab's list of free blocks, by index */
    int size_class;
    _Atomic(em_range *) range[]; /* of each block; of a large allocation the only one */
} span;

/* What an em_range is part of. */
typedef struct block {
    em_range range;
    em_retired retired;
    span *span;
    uint32_t index;
    uint64_t resting_bytes;
    const _Atomic uint64_t *access;
    bool mapped;                       /* by cuMemMap: whoever was granted nothing has no access, the owner too */
    _Atomic uint64_t readers, writers; /* of a mapped one: bit n is device n */
    unsigned int flags;                /* of cuMemHostAlloc and its like */
    em_advice *advice;                 /* on managed memory; guarded by advice.c */
    bool counted;                      /* made by a program, not by a module */
    _Atomic bool claimed;              /* some call has undertaken to free it */
    struct block *next;                /* in the quarantine */
} block;

static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t arena_base;
static _Atomic(span *) table[SPAN_COUNT];
static uint64_t spans_used;                  /* high-water mark of the arena */
static uint64_t free_span_count[SPAN_COUNT]; /* at the first span of a free extent: its length; else 0 */
static uint64_t lowest_free;
static span *classes[CLASS_COUNT];
static block *resting_first, *resting_last;
static uint64_t resting_ranges, resting_bytes;
static _Atomic uint64_t next_serial = 1;
static _Atomic uint64_t counts[EM_MANAGED + 1];

/* ---- size classes: multiples of 256 bytes up to 2 KiB, then four to each doubling -------------------------------- */

static uint32_t class_bytes(int size_class)
{
    if (size_class < 8)
        return 256u * (uint32_t)(size_class + 1);
    int step = (size_class - 8) % 4, doubling = (size_class - 8) / 4;
    return (2048u << doubling) + (512u << doubling) * (uint32_t)(step + 1);
}

static int class_of(uint64_t bytes)
{
    if (bytes <= 2048)
        return (int)((bytes + 255) / 256) - 1;
    int doubling = 63 - __builtin_clzll(bytes - 1) - 11;
    uint64_t step = (bytes - 1 - (UINT64_C(2048) << doubling)) / (UINT64_C(512) << doubling);
    return 8 + doubling * 4 + (int)step;
}

/* ---- spans ------------------------------------------------------------------------------------------------------- */

static bool reserve_arena(void)
{
    if (arena_base != 0)
        return true;
    void *reserved =
        mmap(NULL, ARENA_BYTES + SPAN_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        return false;
    uint64_t base = ((uint64_t)(uintptr_t)reserved + SPAN_BYTES - 1) & ~(SPAN_BYTES - 1);
    atomic_store_explicit(&arena_base, base, memory_order_release);
    return true;
}

static void *memory_at(uint64_t address)
{
    return (void *)(uintptr_t)address; /* the one place where device addresses become pointers of this file */
}

static bool open_spans(uint64_t first, uint64_t count)
{
    if (mprotect(memory_at(arena_base + first * SPAN_BYTES), count * SPAN_BYTES, PROT_READ | PROT_WRITE) == 0)
        return true;
    free_span_count[first] = count;
    if (first < lowest_free)
        lowest_free = first;
    return false;
}

/* First fit among the free extents, else fresh spans. UINT64_MAX: the arena is full. */
static uint64_t take_spans(uint64_t count)
{
    uint64_t first = UINT64_MAX;
    bool skipped = false;
    for (uint64_t i = lowest_free; i < spans_used;) {
        uint64_t free = free_span_count[i];
        if (free >= count) {
            free_span_count[i] = 0;
            if (free > count)
                free_span_count[i + count] = free - count;
            if (!skipped)
                lowest_free = i + count;
            first = i;
            break;
        }
        skipped |= free != 0;
        const span *used = free == 0 ? table[i] : NULL;
        i += free != 0 ? free : used != NULL ? used->bytes / SPAN_BYTES : 1;
    }
    if (first == UINT64_MAX) {
        if (count > SPAN_COUNT - spans_used)
            return UINT64_MAX;
        first = spans_used;
        spans_used += count;
        if (!skipped)
            lowest_free = spans_used;
    }
    return open_spans(first, count) ? first : UINT64_MAX;
}

static void give_spans(uint64_t first, uint64_t count)
{
    uint64_t after = first + count;
    if (after < spans_used && free_span_count[after] != 0) {
        count += free_span_count[after];
        free_span_count[after] = 0;
    }
    /* Joining with a free extent before it is left to the walk below: extents are few. */
    for (uint64_t i = lowest_free; i < first;) {
        uint64_t free = free_span_count[i];
        if (free != 0 && i + free == first) {
            free_span_count[i] = free + count;
            return;
        }
        const span *used = free == 0 ? table[i] : NULL;
        i += free != 0 ? free : used != NULL ? used->bytes / SPAN_BYTES : 1;
    }
    free_span_count[first] = count;
    if (first < lowest_free)
        lowest_free = first;
}

static span *new_span(uint64_t bytes, uint32_t block_bytes, int size_class)
{
    uint64_t span_count = (bytes + SPAN_BYTES - 1) / SPAN_BYTES;
    uint32_t blocks = block_bytes != 0 ? (uint32_t)(SPAN_BYTES / block_bytes) : 1;
    span *made = calloc(1, sizeof *made + blocks * (sizeof made->range[0] + sizeof *made->free_next));
    if (made == NULL)
        return NULL;
    uint64_t first = take_spans(span_count);
    if (first == UINT64_MAX) {
        free(made);
        return NULL;
    }
    made->base = arena_base + first * SPAN_BYTES;
    made->bytes = span_count * SPAN_BYTES;
    made->block_bytes = block_bytes;
    made->block_count = blocks;
    made->size_class = size_class;
    made->free_next = (uint32_t *)(void *)&made->range[blocks];
    for (uint32_t i = 0; i < blocks; i++)
        made->free_next[i] = i + 1;
    for (uint64_t i = 0; i < span_count; i++)
        atomic_store_explicit(&table[first + i], made, memory_order_release);
    return made;
}

static void drop_span(span *old)
{
    uint64_t first = (old->base - arena_base) / SPAN_BYTES, count = old->bytes / SPAN_BYTES;
    for (uint64_t i = 0; i < count; i++)
        atomic_store_explicit(&table[first + i], NULL, memory_order_release);
    madvise(memory_at(old->base), old->bytes, MADV_DONTNEED);
    give_spans(first, count);
    em_retire(old, &old->retired);
}

/* ---- slabs ------------------------------------------------------------------------------------------------------- */

static void link_slab(span *slab)
{
    slab->previous = NULL;
    slab->next = classes[slab->size_class];
    if (slab->next != NULL)
        slab->next->previous = slab;
    classes[slab->size_class] = slab;
}

static void unlink_slab(span *slab)
{
    if (slab->previous != NULL)
        slab->previous->next = slab->next;
    else
        classes[slab->size_class] = slab->next;
    if (slab->next != NULL)
        slab->next->previous = slab->previous;
    slab->next = slab->previous = NULL;
}

static span *take_block(uint64_t bytes, uint32_t *index)
{
    int size_class = class_of(bytes);
    span *slab = classes[size_class];
    if (slab == NULL) {
        slab = new_span(SPAN_BYTES, class_bytes(size_class), size_class);
        if (slab == NULL)
            return NULL;
        link_slab(slab);
    }
    *index = slab->first_free;
    slab->first_free = slab->free_next[*index];
    if (++slab->blocks_used == slab->block_count)
        unlink_slab(slab);
    return slab;
}

static void give_block(span *slab, uint32_t index)
{
    slab->free_next[index] = slab->first_free;
    slab->first_free = index;
    if (slab->blocks_used-- == slab->block_count)
        link_slab(slab);
    if (slab->blocks_used == 0 && (slab->next != NULL || slab->previous != NULL)) {
        unlink_slab(slab);
        drop_span(slab);
    }
}

/* ---- the quarantine ---------------------------------------------------------------------------------------------- */

static void leave_quarantine(block *old)
{
    span *where = old->span;
    atomic_store_explicit(&where->range[old->index], NULL, memory_order_release);
    if (where->block_bytes != 0)
        give_block(where, old->index);
    else
        drop_span(where);
    em_retire(old, &old->retired);
}

static void shrink_quarantine(uint64_t ranges, uint64_t bytes)
{
    while (resting_first != NULL && (resting_ranges > ranges || resting_bytes > bytes)) {
        block *oldest = resting_first;
        resting_first = oldest->next;
        if (resting_first == NULL)
            resting_last = NULL;
        resting_ranges--;
        resting_bytes -= oldest->resting_bytes;
        leave_quarantine(oldest);
    }
}

static void enter_quarantine(block *freed)
{
    span *where = freed->span;
    freed->resting_bytes = where->block_bytes != 0 ? where->block_bytes : where->bytes;
    bool host_used_it = freed->range.kind == EM_PINNED || freed->range.kind == EM_MANAGED;
    if (where->block_bytes == 0 && (host_used_it || where->bytes >= GIVEN_BACK)) {
        madvise(memory_at(where->base), where->bytes, MADV_DONTNEED);
        freed->resting_bytes = 0;
    }
    /* Kernels and copies ask the table; the host does not, so its stale pointers must fault. */
    if (where->block_bytes == 0 && host_used_it)
        mprotect(memory_at(where->base), where->bytes, PROT_NONE);
    freed->next = NULL;
    if (resting_last != NULL)
        resting_last->next = freed;
    else
        resting_first = freed;
    resting_last = freed;
    resting_ranges++;
    resting_bytes += freed->resting_bytes;
    shrink_quarantine(RESTING_RANGES, RESTING_BYTES);
}

/* ---- emulator.h -------------------------------------------------------------------------------------------------- */

static block *block_of(em_range *range)
{
    return (block *)(void *)range; /* its first member */
}

static bool place(block *made, uint64_t size, uint64_t align)
{
    uint64_t padding = align > 256 ? align - 256 : 0;
    uint64_t needed = size + GAP + padding;
    if (needed < size)
        return false;
    if (needed <= LARGEST_BLOCK) {
        made->span = take_block(needed, &made->index);
    } else if (needed <= ARENA_BYTES) {
        made->span = new_span(needed, 0, -1);
    }
    if (made->span == NULL)
        return false;
    uint64_t start = made->span->base + (uint64_t)made->index * made->span->block_bytes;
    made->range.base = (start + align - 1) & ~(align - 1);
    return true;
}

static block *new_block(uint64_t base, uint64_t size, em_memory kind, int device)
{
    block *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->range.base = base;
    made->range.size = size;
    made->range.kind = kind;
    made->range.device = device;
    made->range.serial = atomic_fetch_add_explicit(&next_serial, 1, memory_order_relaxed);
    atomic_store_explicit(&made->range.live, true, memory_order_relaxed);
    return made;
}

static em_range *publish(block *made, uint64_t align)
{
    pthread_mutex_lock(&heap_lock);
    bool placed = reserve_arena() && place(made, made->range.size, align);
    if (!placed && resting_ranges != 0) { /* what rests is given up before an allocation fails */
        shrink_quarantine(0, 0);
        placed = place(made, made->range.size, align);
    }
    if (placed)
        atomic_store_explicit(&made->span->range[made->index], &made->range, memory_order_release);
    pthread_mutex_unlock(&heap_lock);
    if (placed)
        return &made->range;
    free(made);
    return NULL;
}

em_range *em_heap_allocate(uint64_t size, uint64_t align, em_memory kind, int device)
{
    block *made = new_block(0, size, kind, device);
    return made != NULL ? publish(made, align) : NULL;
}

em_range *em_heap_allocate_owned(uint64_t size, em_memory kind, int device, void *owner, unsigned int flags,
                                 const _Atomic uint64_t *access)
{
    block *made = new_block(0, size, kind, device);
    if (made == NULL)
        return NULL;
    made->range.owner = owner;
    made->flags = flags;
    made->access = access;
    made->counted = true;
    em_range *range = publish(made, 256);
    if (range != NULL)
        atomic_fetch_add_explicit(&counts[kind], 1, memory_order_relaxed);
    return range;
}

em_range *em_heap_register(void *host, uint64_t size)
{
    em_range *range = NULL;
    return em_heap_register_owned(host, size, NULL, 0, &range) == CUDA_SUCCESS ? range : NULL;
}

int em_heap_register_owned(void *host, uint64_t size, void *owner, unsigned int flags, em_range **range)
{
    block *made = new_block((uint64_t)(uintptr_t)host, size, EM_REGISTERED, -1);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->range.owner = owner;
    made->flags = flags;
    made->counted = true;
    int status = em_registered_add(&made->range);
    if (status != CUDA_SUCCESS) {
        free(made);
        return status;
    }
    atomic_fetch_add_explicit(&counts[EM_REGISTERED], 1, memory_order_relaxed);
    *range = &made->range;
    return CUDA_SUCCESS;
}

void em_heap_release(em_range *range)
{
    block *freed = block_of(range);
    if (!atomic_exchange(&range->live, false))
        return;
    if (freed->counted)
        atomic_fetch_sub_explicit(&counts[range->kind], 1, memory_order_relaxed);
    if (range->kind == EM_MANAGED)
        em_advice_drop(range);
    if (range->kind == EM_REGISTERED) { /* the host goes on using these bytes: they simply leave the table */
        if (em_registered_remove(range))
            em_retire(freed, &freed->retired);
        return;
    }
    pthread_mutex_lock(&heap_lock);
    enter_quarantine(freed);
    pthread_mutex_unlock(&heap_lock);
}

static span *span_at(uint64_t address)
{
    uint64_t base = atomic_load_explicit(&arena_base, memory_order_acquire);
    uint64_t index = (address - base) >> SPAN_SHIFT;
    return base == 0 || index >= SPAN_COUNT ? NULL : atomic_load_explicit(&table[index], memory_order_acquire);
}

static em_range *range_at(const span *where, uint64_t address)
{
    uint32_t index = 0;
    if (where->block_bytes != 0)
        index = (uint32_t)(address - where->base) / where->block_bytes;
    else if (where->reserved)
        index = (uint32_t)((address - where->base) >> SPAN_SHIFT);
    return index < where->block_count ? atomic_load_explicit(&where->range[index], memory_order_acquire) : NULL;
}

em_range *em_heap_find(uint64_t address)
{
    const span *where = span_at(address);
    if (where == NULL)
        return em_registered_find(address);
    em_range *range = range_at(where, address);
    return range != NULL && address - range->base < range->size ? range : NULL;
}

em_range *em_heap_nearest(uint64_t address)
{
    em_range *nearest = NULL;
    uint64_t best = UINT64_MAX;
    pthread_mutex_lock(&heap_lock);
    for (uint64_t i = 0; i < spans_used;) {
        const span *where = table[i];
        if (where == NULL) {
            i++;
            continue;
        }
        for (uint32_t k = 0; k < where->block_count; k++) {
            em_range *range = where->range[k];
            if (range == NULL || !range->live)
                continue;
            uint64_t end = range->base + range->size;
            uint64_t distance = address < range->base ? range->base - address : address >= end ? address - end : 0;
            if (distance < best) {
                best = distance;
                nearest = range;
            }
        }
        i += where->bytes / SPAN_BYTES;
    }
    pthread_mutex_unlock(&heap_lock);
    return nearest;
}

bool em_heap_writable(const em_range *range, int device)
{
    const block *of = (const block *)(const void *)range;
    return !of->mapped || (atomic_load_explicit(&of->writers, memory_order_relaxed) >> device & 1) != 0;
}

bool em_heap_accessible(const em_range *range, int device)
{
    const block *of = (const block *)(const void *)range;
    if (of->mapped)
        return (atomic_load_explicit(&of->readers, memory_order_relaxed) >> device & 1) != 0;
    const _Atomic uint64_t *mask = of->access;
    bool of_everyone = range->kind == EM_PINNED || range->kind == EM_REGISTERED || range->kind == EM_MANAGED;
    if (range->device == device || (of_everyone && mask == NULL))
        return true;
    if (mask == NULL)
        mask = &em_devices[range->device].peers;
    return (atomic_load_explicit(mask, memory_order_relaxed) >> device & 1) != 0;
}

/* ---- api.h ------------------------------------------------------------------------------------------------------- */

void em_heap_each_owned(const void *owner, void (*visit)(em_range *range))
{
    em_heap_pin();
    for (uint64_t i = 0; i < SPAN_COUNT; i++) {
        const span *where = atomic_load_explicit(&table[i], memory_order_acquire);
        if (where == NULL || where->base != arena_base + i * SPAN_BYTES)
            continue; /* none, or a later span of a large allocation */
        for (uint32_t k = 0; k < where->block_count; k++) {
            em_range *range = atomic_load_explicit(&where->range[k], memory_order_acquire);
            if (range != NULL && range->live && range->owner == owner)
                visit(range);
        }
    }
    em_registered_each(owner, visit);
    em_heap_unpin();
}

bool em_heap_claim(em_range *range)
{
    return !atomic_exchange(&block_of(range)->claimed, true);
}

bool em_heap_claimed(em_range *range)
{
    return block_of(range)->claimed;
}

em_advice **em_heap_advice(em_range *range)
{
    return &block_of(range)->advice;
}

unsigned int em_heap_flags(em_range *range)
{
    return block_of(range)->flags;
}

bool em_heap_inside(uint64_t address)
{
    uint64_t base = atomic_load_explicit(&arena_base, memory_order_acquire);
    return base != 0 && address - base < ARENA_BYTES;
}

uint64_t em_heap_count(em_memory kind)
{
    return atomic_load_explicit(&counts[kind], memory_order_relaxed);
}

/* ---- reserved addresses: api.h ----------------------------------------------------------------------------------- */

/* The spans from `first` on, where all are free. */
static bool take_spans_at(uint64_t first, uint64_t count)
{
    if (first >= SPAN_COUNT || count > SPAN_COUNT - first)
        return false;
    if (first >= spans_used) {
        const uint64_t old = spans_used;
        spans_used = first + count;
        if (first > old)
            give_spans(old, first - old);
        return open_spans(first, count);
    }
    for (uint64_t i = lowest_free; i <= first;) {
        const uint64_t free = free_span_count[i], end = i + free;
        if (free != 0 && first < end) {
            if (first + count > end && end != spans_used)
                return false;
            free_span_count[i] = first - i;
            if (first + count < end)
                free_span_count[first + count] = end - first - count;
            else if (first + count > spans_used)
                spans_used = first + count;
            return open_spans(first, count);
        }
        const span *used = free == 0 ? table[i] : NULL;
        i += free != 0 ? free : used != NULL ? used->bytes / SPAN_BYTES : 1;
    }
    return false;
}

static uint64_t take_aligned(uint64_t count, uint64_t step)
{
    const uint64_t first = take_spans(count + step - 1);
    if (first == UINT64_MAX)
        return first;
    /* Aligned is the address, not its place in the arena. */
    const uint64_t number = arena_base / SPAN_BYTES + first;
    const uint64_t before = (step - number % step) % step, after = step - 1 - before;
    if (after != 0)
        give_spans(first + before + count, after);
    if (before != 0)
        give_spans(first, before);
    return first + before;
}

static uint64_t find_place(uint64_t count, uint64_t step, uint64_t hint)
{
    if (hint % (step * SPAN_BYTES) == 0 && hint >= arena_base && take_spans_at((hint - arena_base) / SPAN_BYTES, count))
        return (hint - arena_base) / SPAN_BYTES;
    return take_aligned(count, step);
}

uint64_t em_heap_reserve(uint64_t size, uint64_t align, uint64_t hint)
{
    const uint64_t count = size / SPAN_BYTES, step = align > SPAN_BYTES ? align / SPAN_BYTES : 1;
    if (count + step > SPAN_COUNT)
        return 0;
    span *made = calloc(1, sizeof *made + count * sizeof made->range[0]);
    if (made == NULL)
        return 0;
    pthread_mutex_lock(&heap_lock);
    const uint64_t first = reserve_arena() ? find_place(count, step, hint) : UINT64_MAX;
    if (first != UINT64_MAX) {
        made->base = arena_base + first * SPAN_BYTES;
        made->bytes = size;
        made->reserved = true;
        made->block_count = (uint32_t)count;
        for (uint64_t i = 0; i < count; i++)
            atomic_store_explicit(&table[first + i], made, memory_order_release);
    }
    pthread_mutex_unlock(&heap_lock);
    if (first != UINT64_MAX)
        return arena_base + first * SPAN_BYTES;
    free(made);
    return 0;
}

void em_heap_unreserve(uint64_t base)
{
    pthread_mutex_lock(&heap_lock);
    drop_span(span_at(base));
    pthread_mutex_unlock(&heap_lock);
}

bool em_heap_reservation(uint64_t address, uint64_t *base, uint64_t *size)
{
    const span *where = span_at(address);
    if (where == NULL || !where->reserved)
        return false;
    *base = where->base;
    *size = where->bytes;
    return true;
}

/* Addresses with nothing behind them read as zeros to a kernel that was not stopped in time: none can crash us. */
static bool put_nothing(uint64_t base, uint64_t size)
{
    return mmap(memory_at(base), size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0) != MAP_FAILED;
}

static void set_mapping(uint64_t base, uint64_t size, em_range *range)
{
    span *where = span_at(base);
    const uint64_t first = (base - where->base) / SPAN_BYTES;
    for (uint64_t i = 0; i < size / SPAN_BYTES; i++)
        atomic_store_explicit(&where->range[first + i], range, memory_order_release);
}

em_range *em_heap_map(uint64_t base, uint64_t size, int file, em_memory kind, int device, void *owner)
{
    block *made = new_block(base, size, kind, device);
    if (made == NULL)
        return NULL;
    made->range.owner = owner;
    made->mapped = true;
    if (mmap(memory_at(base), size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, file, 0) == MAP_FAILED) {
        (void)put_nothing(base, size);
        free(made);
        return NULL;
    }
    set_mapping(base, size, &made->range);
    return &made->range;
}

bool em_heap_unmap(em_range *range)
{
    block *old = block_of(range);
    if (!put_nothing(range->base, range->size))
        return false;
    atomic_store(&range->live, false);
    set_mapping(range->base, range->size, NULL);
    em_retire(old, &old->retired);
    return true;
}

void em_heap_grant(em_range *range, int device, bool reads, bool writes)
{
    block *of = block_of(range);
    const uint64_t bit = UINT64_C(1) << device;
    if (reads)
        atomic_fetch_or(&of->readers, bit);
    else
        atomic_fetch_and(&of->readers, ~bit);
    if (writes)
        atomic_fetch_or(&of->writers, bit);
    else
        atomic_fetch_and(&of->writers, ~bit);
}

uint64_t em_heap_reach(const em_range *range, uint64_t address, uint64_t wanted)
{
    uint64_t end = range->base + range->size;
    const bool mapped = ((const block *)(const void *)range)->mapped;
    while (mapped && end - address < wanted) {
        const em_range *next = em_heap_find(end);
        if (next == NULL || !next->live || !((const block *)(const void *)next)->mapped)
            break;
        end = next->base + next->size;
    }
    return end - address;
}
