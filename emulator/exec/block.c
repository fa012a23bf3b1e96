/* A block: its storage, which is kept from one to the next, and the turns of its warps. */
#include <stdlib.h>
#include <sys/mman.h>

#include "engine.h"

/* ---- storage ----------------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static em_storage *spare;

em_storage *em_storage_take(void)
{
    pthread_mutex_lock(&lock);
    em_storage *taken = spare;
    if (taken != NULL)
        spare = taken->next;
    pthread_mutex_unlock(&lock);
    return taken != NULL ? taken : calloc(1, sizeof *taken);
}

void em_storage_give(em_storage *storage)
{
    pthread_mutex_lock(&lock);
    storage->next = spare;
    spare = storage;
    pthread_mutex_unlock(&lock);
}

static void drop_local(em_storage *storage)
{
    if (storage->local != NULL)
        munmap(storage->local, storage->local_capacity);
    storage->local = NULL;
    storage->local_capacity = 0;
}

static void free_storage(em_storage *storage)
{
    for (uint32_t i = 0; i < storage->warp_capacity; i++)
        free(storage->warps[i].stack);
    free(storage->warps);
    free(storage->slots);
    free(storage->shared);
    drop_local(storage);
    free(storage);
}

void em_storage_free_all(void)
{
    pthread_mutex_lock(&lock);
    em_storage *left = spare;
    spare = NULL;
    pthread_mutex_unlock(&lock);
    while (left != NULL) {
        em_storage *next = left->next;
        free_storage(left);
        left = next;
    }
}

static bool have_warps(em_storage *storage, uint32_t count)
{
    if (count <= storage->warp_capacity)
        return true;
    em_warp *grown = aligned_alloc(64, (count * sizeof *grown + 63) & ~(size_t)63);
    if (grown == NULL)
        return false;
    memset(grown, 0, count * sizeof *grown);
    if (storage->warp_capacity != 0)
        memcpy(grown, storage->warps, storage->warp_capacity * sizeof *grown);
    free(storage->warps);
    storage->warps = grown;
    storage->warp_capacity = count;
    return true;
}

static bool have_stack(em_warp *warp, uint32_t bytes)
{
    if (bytes <= warp->stack_bytes)
        return true;
    bytes = (bytes + 63) & ~63u;
    free(warp->stack);
    warp->stack_bytes = 0;
    warp->stack = aligned_alloc(64, bytes);
    if (warp->stack == NULL)
        return false;
    memset(warp->stack, 0, bytes);
    warp->stack_bytes = bytes;
    return true;
}

static bool have_shared(em_storage *storage, uint32_t bytes)
{
    if (bytes <= storage->shared_capacity)
        return true;
    bytes = (bytes + 1023) & ~1023u;
    free(storage->shared);
    storage->shared_capacity = 0;
    storage->shared = aligned_alloc(1024, bytes);
    if (storage->shared == NULL)
        return false;
    memset(storage->shared, 0, bytes);
    storage->shared_capacity = bytes;
    return true;
}

static bool have_slots(em_storage *storage, uint32_t count)
{
    if (count > storage->slot_capacity) {
        free(storage->slots);
        storage->slot_capacity = 0;
        storage->slots = malloc(count * sizeof *storage->slots);
        if (storage->slots == NULL)
            return false;
        storage->slot_capacity = count;
    }
    memset(storage->slots, 0, count * sizeof *storage->slots);
    return true;
}

static bool have_local(em_storage *storage, uint64_t bytes)
{
    if (bytes <= storage->local_capacity)
        return true;
    drop_local(storage);
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return false;
    storage->local = mapped;
    storage->local_capacity = bytes;
    return true;
}

/* What is the same for all blocks of a grid. */
static bool prepare(em_storage *storage, em_grid *grid)
{
    const em_program *program = grid->program;
    const em_function *entry = grid->entry;
    const uint64_t local_stride = program->uses_local ? program->local_bytes : 0;
    storage->prepared = 0;
    if (!have_warps(storage, grid->warp_count) || !have_shared(storage, grid->shared_bytes) ||
        !have_slots(storage, program->slot_count) || !have_local(storage, local_stride * grid->warp_count * EM_LANES))
        return false;
    em_block *block = &storage->block;
    *block = (em_block){
        .grid = grid,
        .threads = grid->threads,
        .warp_count = grid->warp_count,
        .shared = storage->shared,
        .shared_bytes = grid->shared_bytes,
        .slots = storage->slots,
        .warps = storage->warps,
    };
    for (uint32_t i = 0; i < grid->warp_count; i++) {
        em_warp *warp = &storage->warps[i];
        if (!have_stack(warp, entry->frame_bytes))
            return false;
        warp->block = block;
        warp->index = i;
        warp->alone = grid->alone;
        warp->program = program;
        warp->slots = storage->slots;
        warp->shared = storage->shared;
        warp->shared_bytes = grid->shared_bytes;
        warp->local = storage->local + (uint64_t)i * EM_LANES * local_stride;
        warp->local_stride = local_stride;
        warp->local_bytes = local_stride;
        em_frame_fill(entry, warp, warp->stack, EM_ALL_LANES);
    }
    storage->prepared = grid->serial;
    return true;
}

bool em_block_start(em_storage *storage, em_grid *grid, uint64_t linear)
{
    const bool fresh = storage->prepared != grid->serial;
    em_block *block = &storage->block;
    const uint32_t *size = grid->launch->grid;
    const uint32_t x = (uint32_t)(linear % size[0]), y = (uint32_t)(linear / size[0] % size[1]),
                   z = (uint32_t)(linear / size[0] / size[1]);
    if (fresh && !prepare(storage, grid))
        return false;
    block->ctaid[0] = x;
    block->ctaid[1] = y;
    block->ctaid[2] = z;
    block->linear = linear;
    block->live_threads = grid->threads;
    if (block->barriers_in_use != 0) { /* a block that was stopped left them so */
        memset(block->barriers, 0, sizeof block->barriers);
        block->barriers_in_use = 0;
    }
    block->random = grid->seed != 0 ? (grid->seed + linear) * UINT64_C(0x9E3779B97F4A7C15) | 1 : 0;
    if (grid->deterministic && !fresh && grid->shared_bytes != 0) /* without any, `shared` is NULL */
        memset(storage->shared, 0, grid->shared_bytes);
    for (uint32_t i = 0; i < grid->warp_count; i++) {
        em_warp *warp = &storage->warps[i];
        em_frame_refill(grid->entry, warp, warp->stack);
        const uint32_t threads = grid->threads - i * EM_LANES;
        em_warp_start(warp, threads >= EM_LANES ? EM_ALL_LANES : (1u << threads) - 1);
    }
    return true;
}

/* ---- turns
 * ------------------------------------------------------------------------------------------------------------- */

static uint32_t random_below(em_block *block, uint32_t bound)
{
    block->random ^= block->random << 13;
    block->random ^= block->random >> 7;
    block->random ^= block->random << 17;
    return (uint32_t)((block->random >> 33) % bound);
}

/* The order of this round: as numbered, or permuted by the seed. */
static void shuffle(em_block *block, uint8_t order[EM_MAX_WARPS])
{
    for (uint32_t i = 0; i < block->warp_count; i++)
        order[i] = (uint8_t)i;
    if (block->random == 0)
        return;
    for (uint32_t i = block->warp_count; i > 1; i--) {
        const uint32_t other = random_below(block, i);
        const uint8_t kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
}

static bool any_runnable(const em_block *block)
{
    for (uint32_t w = 0; w < block->warp_count; w++) {
        const em_warp *warp = &block->warps[w];
        for (uint32_t i = 0; i < warp->fragment_count; i++) {
            if (warp->fragments[i].state == EM_RUNNABLE)
                return true;
        }
    }
    return false;
}

em_outcome em_block_run(em_block *block)
{
    uint8_t order[EM_MAX_WARPS];
    for (;;) {
        bool yielded = false, busy = false;
        shuffle(block, order);
        for (uint32_t i = 0; i < block->warp_count; i++) {
            em_warp *warp = &block->warps[order[i]];
            if (warp->live == 0)
                continue;
            warp->fuel = block->random != 0 ? (int32_t)random_below(block, EM_FUEL) : EM_FUEL;
            warp->may_wait = false;
            const em_turn turn = em_warp_run(warp);
            if (turn == EM_TURN_FAULTED)
                return EM_STOPPED;
            yielded |= turn == EM_TURN_YIELDED;
            busy |= turn == EM_TURN_YIELDED && !warp->may_wait;
        }
        if (block->live_threads == 0)
            return EM_FINISHED;
        if (atomic_load_explicit(&block->grid->stopped, memory_order_relaxed))
            return EM_STOPPED;
        if (yielded)
            return busy ? EM_BUSY : EM_STALLED;
        if (!any_runnable(block)) {
            em_fault_deadlock(block);
            return EM_STOPPED;
        }
    }
}
