/* Launches: the blocks of a grid from a counter, a worker a core, each with storage for a block at a time.
 *
 * The caller's thread works too, so a launch goes on even when all workers are busy with a kernel that waits for it. A
 * block that only spins is put aside and the next one started, because it may be waiting for that one; the blocks of a
 * cooperative launch are all started so. */
#include <cuda.h>
#include <sched.h>
#include <stdlib.h>

#include "engine.h"

enum {
    PATIENCE = 64,  /* stalled rounds before another block is started beside one */
    RESIDENT = 256, /* blocks a worker may hold so, of a launch that is not cooperative */
    WORKER_STACK = 8 << 20,
};

static struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    em_grid *grids; /* those with blocks left to start */
    pthread_t *threads;
    unsigned started, wanted;
    bool configured, stopping, deterministic;
    uint64_t seed;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static _Atomic uint64_t next_serial = 1;

/* ---- one worker at one grid
 * ------------------------------------------------------------------------------------------ */

typedef struct worker {
    em_grid *grid;
    em_storage **resident;
    uint32_t count, capacity;
} worker;

/* Some of its blocks may have run, so that the launch cannot be made undone: it ends as one that faults. */
static void out_of_memory(em_grid *grid)
{
    pthread_mutex_lock(&grid->lock);
    if (grid->fault.code == 0)
        em_fail(&grid->fault, CUDA_ERROR_LAUNCH_FAILED, "no host memory for the rows of a block of '%s'",
                grid->program->kernel->info.name);
    pthread_mutex_unlock(&grid->lock);
    atomic_store(&grid->stopped, true);
}

/* The next block into `storage`; false: none is left, or the grid stopped. */
static bool start_next(em_grid *grid, em_storage *storage)
{
    if (atomic_load_explicit(&grid->next, memory_order_relaxed) >= grid->block_count)
        return false;
    const uint64_t linear = atomic_fetch_add_explicit(&grid->next, 1, memory_order_relaxed);
    if (linear >= grid->block_count || atomic_load_explicit(&grid->stopped, memory_order_relaxed))
        return false;
    if (em_block_start(storage, grid, linear))
        return true;
    out_of_memory(grid);
    return false;
}

static bool add_resident(worker *self)
{
    if (self->count == self->capacity) {
        const uint32_t capacity = self->capacity != 0 ? 2 * self->capacity : 8;
        em_storage **grown = realloc(self->resident, capacity * sizeof *grown);
        if (grown == NULL) {
            if (self->count == 0)
                out_of_memory(self->grid);
            return false;
        }
        self->resident = grown;
        self->capacity = capacity;
    }
    em_storage *storage = em_storage_take();
    if (storage == NULL) {
        if (self->count == 0)
            out_of_memory(self->grid);
        return false;
    }
    if (!start_next(self->grid, storage)) {
        em_storage_give(storage);
        return false;
    }
    self->resident[self->count++] = storage;
    return true;
}

/* One round over the resident blocks; true: at least one finished, or is at more than waiting. */
static bool round_of(worker *self)
{
    bool progress = false;
    for (uint32_t i = 0; i < self->count;) {
        const em_outcome outcome = em_block_run(&self->resident[i]->block);
        if (outcome == EM_STOPPED)
            return false;
        progress |= outcome != EM_STALLED;
        if (outcome == EM_FINISHED) {
            if (start_next(self->grid, self->resident[i]))
                continue;
            em_storage_give(self->resident[i]);
            self->resident[i] = self->resident[--self->count];
            continue;
        }
        i++;
    }
    return progress;
}

static void work_on(em_grid *grid)
{
    worker self = {.grid = grid};
    const bool cooperative = grid->launch->cooperative;
    unsigned stalled = 0;
    em_heap_pin();
    while (!atomic_load_explicit(&grid->stopped, memory_order_relaxed)) {
        const bool more = self.count == 0 || cooperative || (stalled >= PATIENCE && self.count < RESIDENT);
        if (more && add_resident(&self))
            stalled = cooperative ? stalled : 0;
        if (self.count == 0)
            break;
        if (round_of(&self)) {
            stalled = 0;
        } else if (++stalled > PATIENCE) {
            sched_yield();
        }
    }
    em_heap_unpin();
    for (uint32_t i = 0; i < self.count; i++)
        em_storage_give(self.resident[i]);
    free(self.resident);
}

/* ---- the pool
 * ------------------------------------------------------------------------------------------------------------ */

static em_grid *grid_with_work(void)
{
    for (em_grid *grid = pool.grids; grid != NULL; grid = grid->next_grid) {
        if (atomic_load_explicit(&grid->next, memory_order_relaxed) < grid->block_count &&
            !atomic_load_explicit(&grid->stopped, memory_order_relaxed))
            return grid;
    }
    return NULL;
}

static void *worker_main(__attribute__((unused)) void *argument)
{
    pthread_mutex_lock(&pool.lock);
    while (!pool.stopping) {
        em_grid *grid = grid_with_work();
        if (grid == NULL) {
            pthread_cond_wait(&pool.work, &pool.lock);
            continue;
        }
        grid->workers++;
        pthread_mutex_unlock(&pool.lock);
        work_on(grid);
        pthread_mutex_lock(&pool.lock);
        if (--grid->workers == 0)
            pthread_cond_broadcast(&pool.done);
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

static unsigned cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    const int count = CPU_COUNT(&set);
    return count > 0 ? (unsigned)count : 1;
}

static void before_fork(void)
{
    pthread_mutex_lock(&pool.lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&pool.lock);
}

/* The child has none of the threads, and none of the launches they were at. */
static void after_fork_in_child(void)
{
    pool.grids = NULL;
    pool.threads = NULL; /* a few bytes are lost: free() is not for a child between fork and exec */
    pool.started = 0;
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
    pthread_mutex_unlock(&pool.lock);
}

/* With the lock held. */
static void configure(void)
{
    if (pool.configured)
        return;
    pool.configured = true;
    const char *workers = getenv("CUDA_CORE_EMULATOR_WORKERS");
    const char *deterministic = getenv("CUDA_CORE_EMULATOR_DETERMINISTIC");
    const char *seed = getenv("CUDA_CORE_EMULATOR_SEED");
    const unsigned long asked = workers != NULL ? strtoul(workers, NULL, 10) : 0;
    pool.deterministic = deterministic != NULL && strcmp(deterministic, "0") != 0 && deterministic[0] != 0;
    pool.seed = seed != NULL ? strtoull(seed, NULL, 10) : 0;
    pool.wanted = asked != 0 && asked <= 4096 ? (unsigned)asked : cores();
    if (pool.deterministic)
        pool.wanted = 1;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* With the lock held: threads beside the caller's own. */
static void start_threads(void)
{
    if (pool.started + 1 >= pool.wanted || pool.stopping)
        return;
    if (pool.threads == NULL)
        pool.threads = calloc(pool.wanted, sizeof *pool.threads);
    pthread_attr_t attributes;
    if (pool.threads == NULL || pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setstacksize(&attributes, WORKER_STACK);
    while (pool.started + 1 < pool.wanted &&
           pthread_create(&pool.threads[pool.started], &attributes, worker_main, NULL) == 0)
        pool.started++;
    pthread_attr_destroy(&attributes);
}

void em_workers_stop(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.stopping = true;
    pthread_cond_broadcast(&pool.work);
    pthread_t *threads = pool.threads;
    const unsigned started = pool.started;
    pool.threads = NULL;
    pool.started = 0;
    pthread_mutex_unlock(&pool.lock);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    pthread_mutex_lock(&pool.lock);
    pool.stopping = false;
    pthread_mutex_unlock(&pool.lock);
    em_storage_free_all();
}

/* ---- em_run ------------------------------------------------------------------------------------------------------ */

static int set_up(em_grid *grid, const em_launch *launch, em_detail *detail)
{
    em_kernel *kernel = launch->kernel;
    const uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    if (threads == 0 || threads > EM_MAX_WARPS * EM_LANES)
        return em_fail(detail, CUDA_ERROR_INVALID_VALUE, "a block of %u x %u x %u threads: there must be 1 to 1024",
                       launch->block[0], launch->block[1], launch->block[2]);
    grid->launch = launch;
    grid->program = kernel->program;
    grid->entry = kernel->program->by_index[kernel->function->index];
    grid->block_count = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    grid->serial = atomic_fetch_add(&next_serial, 1);
    grid->threads = (uint32_t)threads;
    grid->warp_count = (uint32_t)((threads + EM_LANES - 1) / EM_LANES);
    grid->dynamic_shared = grid->program->static_shared;
    if (launch->dynamic_shared_bytes != 0 || grid->program->uses_dynamic)
        grid->dynamic_shared =
            (grid->dynamic_shared + grid->program->dynamic_align - 1) & ~(grid->program->dynamic_align - 1);
    grid->shared_bytes = grid->dynamic_shared + launch->dynamic_shared_bytes;
    /* A copy with room behind it: a row is filled by loads of up to 16 bytes. */
    const size_t bytes = kernel->info.parameter_bytes;
    grid->parameters = calloc(1, bytes + 16);
    if (grid->parameters == NULL)
        return em_fail(detail, CUDA_ERROR_LAUNCH_FAILED, "no host memory for %zu bytes of parameters", bytes);
    if (bytes != 0)
        memcpy(grid->parameters, launch->parameters, bytes);
    if (!launch->cooperative)
        return 0;
    /* As the driver lays it out: the size of the workspace, then the word that blocks count themselves in at. */
    const uint32_t workspace[2] = {sizeof workspace, 0};
    grid->workspace = em_heap_allocate(sizeof workspace, 256, EM_DEVICE, launch->limits.ordinal);
    if (grid->workspace == NULL) {
        free(grid->parameters);
        return em_fail(detail, CUDA_ERROR_LAUNCH_FAILED, "no device memory for a cooperative launch");
    }
    memcpy((void *)(uintptr_t)grid->workspace->base, workspace, sizeof workspace);
    return 0;
}

static void publish(em_grid *grid)
{
    start_threads();
    grid->next_grid = pool.grids;
    pool.grids = grid;
    if (pool.started > 1 && grid->block_count > 2)
        pthread_cond_broadcast(&pool.work);
    else
        pthread_cond_signal(&pool.work);
}

static void withdraw(em_grid *grid)
{
    em_grid **link = &pool.grids;
    while (*link != NULL && *link != grid)
        link = &(*link)->next_grid;
    if (*link != NULL)
        *link = grid->next_grid;
    while (grid->workers != 0)
        pthread_cond_wait(&pool.done, &pool.lock);
}

int em_run(const em_launch *launch, em_detail *detail)
{
    const int refused = em_kernel_check(launch->kernel, detail);
    if (refused != 0)
        return refused;
    em_grid grid = {0};
    const int failed = set_up(&grid, launch, detail);
    if (failed != 0)
        return failed;
    pthread_mutex_init(&grid.lock, NULL);
    pthread_mutex_lock(&pool.lock);
    configure();
    grid.deterministic = pool.deterministic;
    grid.seed = pool.seed;
    const bool shared = grid.block_count > 1 && pool.wanted > 1;
    if (shared)
        publish(&grid);
    pthread_mutex_unlock(&pool.lock);
    em_heap_pin();
    work_on(&grid);
    if (shared) {
        pthread_mutex_lock(&pool.lock);
        withdraw(&grid);
        pthread_mutex_unlock(&pool.lock);
    }
    em_heap_unpin();
    em_output_finish(&grid);
    pthread_mutex_destroy(&grid.lock);
    free(grid.parameters);
    if (grid.workspace != NULL)
        em_heap_release(grid.workspace);
    if (grid.fault.code != 0 && detail != NULL)
        *detail = grid.fault;
    return grid.fault.code;
}
