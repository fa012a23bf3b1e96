/* From a lane's address to the host's, with every check. memory.c has the quick ways for whole warps and comes here
 * for the rest. */
#include <cuda.h>

#include "engine.h"

/* Where a window's bytes are for a lane; `limit` receives how many there are. */
static unsigned char *window_of(const em_warp *warp, unsigned lane, uint64_t address, uint64_t *offset, uint64_t *limit)
{
    if (address - EM_SHARED_WINDOW < EM_WINDOW_BYTES) {
        *offset = address - EM_SHARED_WINDOW;
        *limit = warp->shared_bytes;
        return warp->shared;
    }
    if (address - EM_LOCAL_WINDOW < EM_WINDOW_BYTES) {
        *offset = address - EM_LOCAL_WINDOW;
        *limit = warp->local_bytes;
        return warp->local + lane * warp->local_stride;
    }
    if (address - EM_PARAM_WINDOW < EM_WINDOW_BYTES) {
        const em_grid *grid = warp->block->grid;
        *offset = address - EM_PARAM_WINDOW;
        *limit = grid->program->kernel->info.parameter_bytes;
        return grid->parameters;
    }
    return NULL;
}

static bool in_window(uint64_t address)
{
    return address - EM_SHARED_WINDOW < 3 * EM_WINDOW_BYTES;
}

static unsigned char *reach_window(const em_warp *warp, unsigned lane, uint64_t address, uint64_t size, em_touch touch)
{
    uint64_t offset, limit;
    unsigned char *bytes = window_of(warp, lane, address, &offset, &limit);
    if (bytes == NULL || offset >= limit || limit - offset < size)
        return NULL;
    if ((touch & EM_WRITE) != 0 && address - EM_PARAM_WINDOW < EM_WINDOW_BYTES)
        return NULL;
    return bytes + offset;
}

static bool range_allows(const em_range *range, uint64_t address, uint64_t size, em_touch touch, int device)
{
    const uint64_t offset = address - range->base;
    if (!atomic_load_explicit(&range->live, memory_order_relaxed) || offset >= range->size ||
        range->size - offset < size)
        return false;
    if ((touch & EM_WRITE) != 0 && range->kind == EM_CONSTANT)
        return false;
    return em_heap_accessible(range, device) && ((touch & EM_WRITE) == 0 || em_heap_writable(range, device));
}

unsigned char *em_reach(em_warp *warp, unsigned lane, uint64_t address, uint64_t size, em_touch touch)
{
    if (in_window(address))
        return reach_window(warp, lane, address, size, touch);
    const em_range *range = em_heap_find(address);
    if (range == NULL || !range_allows(range, address, size, touch, warp->block->grid->launch->limits.ordinal))
        return NULL;
    return (unsigned char *)(uintptr_t)address;
}

/* A flat address, through the instruction's slot. */
static unsigned char *reach_flat(em_warp *warp, const em_insn *insn, unsigned lane, uint64_t address, uint32_t size,
                                 em_touch touch)
{
    em_slot *slot = &warp->slots[insn->slot];
    const uint64_t offset = address - slot->base;
    if (offset < slot->size && slot->size - offset >= size && atomic_load_explicit(slot->live, memory_order_relaxed))
        return (unsigned char *)(uintptr_t)address;
    if (in_window(address)) {
        const bool generic = insn->space == PTX_SPACE_GENERIC || insn->space == PTX_SPACE_PARAM;
        return generic ? reach_window(warp, lane, address, size, touch) : NULL;
    }
    const em_range *range = em_heap_find(address);
    if (range == NULL || !range_allows(range, address, size, touch, warp->block->grid->launch->limits.ordinal))
        return NULL;
    slot->base = range->base;
    slot->size = range->size;
    slot->live = &range->live;
    return (unsigned char *)(uintptr_t)address;
}

static em_status locate_flat(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask, uint32_t size,
                             em_touch touch)
{
    const uint64_t *addresses = EM_ROW(uint64_t, insn->a);
    EM_EACH_LANE_OF(mask)
    {
        const uint64_t address = addresses[lane] + (uint64_t)insn->imm;
        unsigned char *pointer = NULL;
        if ((address & (size - 1)) == 0)
            pointer = reach_flat(warp, insn, (unsigned)lane, address, size, touch);
        if (pointer == NULL)
            return em_fault_access(insn, warp, (unsigned)lane, address, size, touch);
        warp->pointers[lane] = pointer;
    }
    return EM_GO;
}

static em_status locate_near(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask, uint32_t size,
                             em_touch touch, unsigned char *base, uint64_t stride, uint64_t limit)
{
    const uint32_t *addresses = EM_ROW(uint32_t, insn->a);
    EM_EACH_LANE_OF(mask)
    {
        const uint32_t address = addresses[lane] + (uint32_t)insn->imm;
        if ((address & (size - 1)) != 0 || (uint64_t)address + size > limit)
            return em_fault_access(insn, warp, (unsigned)lane, address, size, touch);
        warp->pointers[lane] = base + (uint64_t)lane * stride + address;
    }
    return EM_GO;
}

em_status em_locate(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask, uint32_t size,
                    em_touch touch)
{
    switch (insn->space) {
    case PTX_SPACE_SHARED:
        return locate_near(insn, rows, warp, mask, size, touch, warp->shared, 0, warp->shared_bytes);
    case PTX_SPACE_LOCAL:
        return locate_near(insn, rows, warp, mask, size, touch, warp->local, warp->local_stride, warp->local_bytes);
    default:
        return locate_flat(insn, rows, warp, mask, size, touch);
    }
}

em_status em_pointers(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask, uint32_t size,
                      em_touch touch, unsigned char *pointers[EM_LANES])
{
    const em_status status = em_locate(insn, rows, warp, mask, size, touch);
    em_may_wait(warp);
    memcpy(pointers, warp->pointers, sizeof warp->pointers);
    return status;
}
