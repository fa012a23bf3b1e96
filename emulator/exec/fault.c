/* The account of what stopped a grid: what, where in memory, which thread, which line. */
#include <cuda.h>
#include <stdarg.h>
#include <stdlib.h>

#include "engine.h"

typedef struct account {
    char text[sizeof((em_detail *)0)->text];
    size_t length;
} account;

static void say(account *said, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say_list(account *said, const char *format, va_list arguments)
{
    const size_t left = sizeof said->text - said->length;
    const int written = vsnprintf(said->text + said->length, left, format, arguments);
    if (written > 0)
        said->length += (size_t)written < left ? (size_t)written : left - 1;
}

static void say(account *said, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_list(said, format, arguments);
    va_end(arguments);
}

/* The first account of a grid is kept, and stops it. */
static void keep(em_grid *grid, int code, const account *said)
{
    pthread_mutex_lock(&grid->lock);
    if (grid->fault.code == 0)
        em_fail(&grid->fault, code, "%s", said->text);
    pthread_mutex_unlock(&grid->lock);
    atomic_store(&grid->stopped, true);
}

/* ---- where
 * ------------------------------------------------------------------------------------------------------------ */

static void say_thread(account *said, const em_block *block, const em_warp *warp, unsigned lane)
{
    say(said, "block (%u,%u,%u), thread (%u,%u,%u)", block->ctaid[0], block->ctaid[1], block->ctaid[2],
        (unsigned)em_special_value(warp, PTX_SPECIAL_TID, 0, lane),
        (unsigned)em_special_value(warp, PTX_SPECIAL_TID, 1, lane),
        (unsigned)em_special_value(warp, PTX_SPECIAL_TID, 2, lane));
}

static void say_source(account *said, const em_program *program, const em_insn *insn)
{
    const em_origin *origin = &program->origins[em_masked_pc(program, insn) - program->masked];
    const ptx_instruction *ptx = origin->ptx;
    if (origin->function->ptx != program->kernel->function)
        say(said, "in function '%s', ", origin->function->ptx->name);
    if (ptx == NULL) {
        say(said, "at the end of the function");
        return;
    }
    const ptx_location *location = &program->ptx->locations[ptx->location];
    if (ptx->location != 0)
        say(said, "at %s:%u, ", location->file, location->line);
    char *text = ptx_dump_instruction(program->ptx, origin->function->ptx, ptx);
    say(said, "PTX line %u: %s", ptx->line, text != NULL ? text : ptx->mnemonic->spelling);
    free(text);
    while (ptx->location != 0 && location->inlined_at != 0) {
        location = &program->ptx->locations[location->inlined_at];
        say(said, "\n  inlined at %s:%u", location->file, location->line);
    }
}

static void say_where(account *said, const em_insn *insn, const em_warp *warp, unsigned lane)
{
    say(said, "\n  kernel '%s', ", warp->program->kernel->info.name);
    say_thread(said, warp->block, warp, lane);
    say(said, "\n  ");
    say_source(said, warp->program, insn);
}

em_status em_raise(const em_insn *insn, em_warp *warp, em_mask lanes, int code, const char *format, ...)
{
    account said = {.length = 0};
    va_list arguments;
    va_start(arguments, format);
    say_list(&said, format, arguments);
    va_end(arguments);
    say_where(&said, insn, warp, lanes != 0 ? (unsigned)__builtin_ctz(lanes) : 0);
    keep(warp->block->grid, code, &said);
    return EM_FAULTED;
}

/* ---- memory
 * --------------------------------------------------------------------------------------------------------------- */

static const char *kind_name(em_memory kind)
{
    switch (kind) {
    case EM_CONSTANT:
        return "constant memory";
    case EM_PINNED:
        return "pinned host memory";
    case EM_REGISTERED:
        return "registered host memory";
    case EM_MANAGED:
        return "managed memory";
    default:
        return "device memory";
    }
}

static void say_range(account *said, const em_range *range)
{
    if (range->name != NULL)
        say(said, "'%s' (", range->name);
    else
        say(said, "allocation #%llu (", (unsigned long long)range->serial);
    say(said, "%llu bytes of %s at 0x%llx)", (unsigned long long)range->size, kind_name(range->kind),
        (unsigned long long)range->base);
}

static void say_nearest(account *said, uint64_t address)
{
    uint64_t base, size;
    if (em_heap_reservation(address, &base, &size)) {
        say(said, "no memory is mapped there: %llu bytes into the %llu bytes of addresses reserved at 0x%llx",
            (unsigned long long)(address - base), (unsigned long long)size, (unsigned long long)base);
        return;
    }
    const em_range *near = em_heap_nearest(address);
    if (near == NULL) {
        say(said, "there is no allocation");
        return;
    }
    if (address >= near->base + near->size)
        say(said, "%llu bytes past the end of ", (unsigned long long)(address - (near->base + near->size)));
    else
        say(said, "%llu bytes before ", (unsigned long long)(near->base - address));
    say_range(said, near);
}

static void say_window(account *said, const char *space, uint64_t offset, uint64_t limit)
{
    say(said, "%s offset 0x%llx, of %llu bytes that %s has", space, (unsigned long long)offset,
        (unsigned long long)limit, strcmp(space, "shared") == 0 ? "the block" : "the thread");
}

/* A flat address that is in no window. */
static void say_heap(account *said, const em_warp *warp, uint64_t address, uint32_t size, em_touch touch)
{
    const em_range *range = em_heap_find(address);
    if (address < 4096) {
        say(said, "null pointer");
    } else if (range == NULL) {
        say_nearest(said, address);
    } else if (!atomic_load_explicit(&range->live, memory_order_relaxed)) {
        say(said, "use after free: %llu bytes into ", (unsigned long long)(address - range->base));
        say_range(said, range);
    } else if (address - range->base >= range->size || range->size - (address - range->base) < size) {
        say(said, "%llu bytes past the end of ",
            (unsigned long long)(address - range->base >= range->size ? address - range->base - range->size : 0));
        say_range(said, range);
    } else if ((touch & EM_WRITE) != 0 && range->kind == EM_CONSTANT) {
        say(said, "constant memory must not be written: ");
        say_range(said, range);
    } else {
        const int device = warp->block->grid->launch->limits.ordinal;
        say(said, "device %d may %s ", device, em_heap_accessible(range, device) ? "only read" : "not access");
        say_range(said, range);
    }
}

em_status em_fault_access(const em_insn *insn, em_warp *warp, unsigned lane, uint64_t address, uint32_t size,
                          em_touch touch)
{
    account said = {.length = 0};
    const bool misaligned = (address & (size - 1)) != 0;
    const char *what = touch == EM_READ ? "read" : touch == EM_WRITE ? "write" : "atomic operation";
    say(&said, "%s: %s of %u bytes at ", misaligned ? "misaligned address" : "illegal memory access", what, size);
    if (insn->space == PTX_SPACE_SHARED)
        say_window(&said, "shared", address, warp->shared_bytes);
    else if (insn->space == PTX_SPACE_LOCAL)
        say_window(&said, "local", address, warp->local_bytes);
    else {
        say(&said, "0x%llx: ", (unsigned long long)address);
        if (misaligned)
            say(&said, "not a multiple of %u", size);
        else if (address - EM_SHARED_WINDOW < EM_WINDOW_BYTES)
            say_window(&said, "shared", address - EM_SHARED_WINDOW, warp->shared_bytes);
        else if (address - EM_LOCAL_WINDOW < EM_WINDOW_BYTES)
            say_window(&said, "local", address - EM_LOCAL_WINDOW, warp->local_bytes);
        else
            say_heap(&said, warp, address, size, touch);
    }
    say_where(&said, insn, warp, lane);
    keep(warp->block->grid, misaligned ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_ERROR_ILLEGAL_ADDRESS, &said);
    return EM_FAULTED;
}

/* ---- deadlock
 * --------------------------------------------------------------------------------------------------------------- */

static void say_waiting(account *said, const em_warp *warp, const em_fragment *fragment)
{
    say(said, "\n  %d threads from ", __builtin_popcount(fragment->mask));
    say_thread(said, warp->block, warp, (unsigned)__builtin_ctz(fragment->mask));
    if (fragment->state == EM_AT_BARRIER) {
        const em_barrier *barrier = &warp->block->barriers[fragment->barrier];
        say(said, " wait at barrier %u (%u of %u threads have arrived)\n    ", fragment->barrier, barrier->arrived,
            barrier->expected != 0 ? barrier->expected : warp->block->live_threads);
        say_source(said, warp->program, fragment->pc);
    } else {
        const bool warp_barrier = fragment->state == EM_AT_WARP_BARRIER;
        say(said, " wait for other lanes of their member mask\n    ");
        say_source(said, warp->program, warp_barrier ? fragment->pc - 1 : fragment->pc);
    }
}

em_status em_fault_deadlock(em_block *block)
{
    account said = {.length = 0};
    enum { SHOWN = 6 };
    unsigned waiting = 0;
    say(&said, "deadlock: no thread of the block can go on\n  kernel '%s'", block->grid->program->kernel->info.name);
    for (uint32_t w = 0; w < block->warp_count; w++) {
        const em_warp *warp = &block->warps[w];
        for (uint32_t i = 0; i < warp->fragment_count; i++) {
            if (waiting++ < SHOWN)
                say_waiting(&said, warp, &warp->fragments[i]);
        }
    }
    if (waiting > SHOWN)
        say(&said, "\n  and %u more groups", waiting - SHOWN);
    keep(block->grid, CUDA_ERROR_LAUNCH_TIMEOUT, &said);
    return EM_FAULTED;
}
