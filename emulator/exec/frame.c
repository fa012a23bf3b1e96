/* The rows of a frame that are constant: immediates, parameters, special registers. */
#include <time.h>

#include "engine.h"

/* ---- special registers ------------------------------------------------------------------------------------------- */

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t thread_index(const em_warp *warp, unsigned component, unsigned lane)
{
    const uint32_t *size = warp->block->grid->launch->block;
    const uint32_t thread = warp->index * EM_LANES + lane;
    switch (component) {
    case 0:
        return thread % size[0];
    case 1:
        return thread / size[0] % size[1];
    case 2:
        return thread / size[0] / size[1];
    default:
        return 0;
    }
}

/* A cluster of the launch along one axis; 1 where none was asked for. */
static uint32_t cluster_size(const em_grid *grid, unsigned component)
{
    return component < 3 && grid->launch->cluster[component] != 0 ? grid->launch->cluster[component] : 1;
}

static uint32_t cluster_rank(const em_block *block)
{
    uint32_t rank = 0;
    for (unsigned i = 3; i-- > 0;)
        rank = rank * cluster_size(block->grid, i) + block->ctaid[i] % cluster_size(block->grid, i);
    return rank;
}

uint64_t em_special_value(const em_warp *warp, unsigned special, unsigned component, unsigned lane)
{
    const em_block *block = warp->block;
    const em_grid *grid = block->grid;
    const em_launch *launch = grid->launch;
    const bool axis = component < 3;
    switch (special) {
    case PTX_SPECIAL_TID:
        return thread_index(warp, component, lane);
    case PTX_SPECIAL_NTID:
        return axis ? launch->block[component] : 0;
    case PTX_SPECIAL_LANEID:
        return lane;
    case PTX_SPECIAL_WARPID:
        return warp->index;
    case PTX_SPECIAL_NWARPID:
        return 64;
    case PTX_SPECIAL_CTAID:
        return axis ? block->ctaid[component] : 0;
    case PTX_SPECIAL_NCTAID:
        return axis ? launch->grid[component] : 0;
    case PTX_SPECIAL_SMID:
        return launch->limits.multiprocessors > 0 ? block->linear % (uint64_t)launch->limits.multiprocessors : 0;
    case PTX_SPECIAL_NSMID:
        return launch->limits.multiprocessors > 0 ? (uint64_t)launch->limits.multiprocessors : 1;
    case PTX_SPECIAL_GRIDID:
        return grid->serial;
    case PTX_SPECIAL_IS_EXPLICIT_CLUSTER:
        return launch->cluster[0] != 0;
    case PTX_SPECIAL_CLUSTERID:
        return axis ? block->ctaid[component] / cluster_size(grid, component) : 0;
    case PTX_SPECIAL_NCLUSTERID:
        return axis ? launch->grid[component] / cluster_size(grid, component) : 0;
    case PTX_SPECIAL_CLUSTER_CTAID:
        return axis ? block->ctaid[component] % cluster_size(grid, component) : 0;
    case PTX_SPECIAL_CLUSTER_NCTAID:
        return axis ? cluster_size(grid, component) : 0;
    case PTX_SPECIAL_CLUSTER_CTARANK:
        return cluster_rank(block);
    case PTX_SPECIAL_CLUSTER_NCTARANK:
        return (uint64_t)cluster_size(grid, 0) * cluster_size(grid, 1) * cluster_size(grid, 2);
    case PTX_SPECIAL_LANEMASK_EQ:
        return UINT64_C(1) << lane;
    case PTX_SPECIAL_LANEMASK_LE:
        return (UINT64_C(2) << lane) - 1;
    case PTX_SPECIAL_LANEMASK_LT:
        return (UINT64_C(1) << lane) - 1;
    case PTX_SPECIAL_LANEMASK_GE:
        return 0xffffffffu & ~((UINT64_C(1) << lane) - 1);
    case PTX_SPECIAL_LANEMASK_GT:
        return 0xffffffffu & ~((UINT64_C(2) << lane) - 1);
    case PTX_SPECIAL_CLOCK:
    case PTX_SPECIAL_CLOCK64:
        return nanoseconds(CLOCK_MONOTONIC); /* cycles of a 1 GHz clock */
    case PTX_SPECIAL_CLOCK_HI:
        return nanoseconds(CLOCK_MONOTONIC) >> 32;
    case PTX_SPECIAL_GLOBALTIMER:
    case PTX_SPECIAL_GLOBALTIMER_LO:
        return nanoseconds(CLOCK_REALTIME);
    case PTX_SPECIAL_GLOBALTIMER_HI:
        return nanoseconds(CLOCK_REALTIME) >> 32;
    case PTX_SPECIAL_TOTAL_SMEM_SIZE:
    case PTX_SPECIAL_AGGR_SMEM_SIZE:
        return grid->shared_bytes;
    case PTX_SPECIAL_DYNAMIC_SMEM_SIZE:
        return launch->dynamic_shared_bytes;
    case PTX_SPECIAL_ENVREG: /* 1 and 2: high and low word of the workspace's address */
        if (grid->workspace == NULL || (component != 1 && component != 2))
            return 0;
        return component == 1 ? grid->workspace->base >> 32 : grid->workspace->base & 0xffffffffu;
    default: /* %pm, reserved shared memory: none here */
        return 0;
    }
}

/* ---- rows
 * ------------------------------------------------------------------------------------------------------------ */

static bool same_in_all_lanes(const em_constant *constant)
{
    if (constant->kind != EM_CONSTANT_LAUNCH && constant->kind != EM_CONSTANT_BLOCK)
        return true;
    switch (constant->special) {
    case PTX_SPECIAL_TID:
    case PTX_SPECIAL_LANEID:
    case PTX_SPECIAL_LANEMASK_EQ:
    case PTX_SPECIAL_LANEMASK_LE:
    case PTX_SPECIAL_LANEMASK_LT:
    case PTX_SPECIAL_LANEMASK_GE:
    case PTX_SPECIAL_LANEMASK_GT:
        return false;
    default:
        return true;
    }
}

static void constant_value(const em_constant *constant, const em_warp *warp, unsigned lane, uint64_t value[2])
{
    const em_grid *grid = warp->block->grid;
    value[0] = constant->bits;
    value[1] = 0;
    switch (constant->kind) {
    case EM_CONSTANT_PARAMETER:
        value[0] = 0;
        memcpy(value, grid->parameters + constant->bits, constant->size);
        break;
    case EM_CONSTANT_DYNAMIC_SHARED:
        value[0] += grid->dynamic_shared;
        break;
    case EM_CONSTANT_LAUNCH:
    case EM_CONSTANT_BLOCK:
        value[0] = em_special_value(warp, constant->special, constant->component, lane);
        break;
    default:
        break;
    }
}

#define FILL(T)                                                                                                        \
    do {                                                                                                               \
        T *const to = (T *)(void *)row;                                                                                \
        const T wanted = (T)value[0];                                                                                  \
        if (mask == EM_ALL_LANES) {                                                                                    \
            EM_EACH_LANE                                                                                               \
            {                                                                                                          \
                to[lane] = wanted;                                                                                     \
            }                                                                                                          \
        } else {                                                                                                       \
            EM_EACH_LANE_OF(mask)                                                                                      \
            {                                                                                                          \
                to[lane] = wanted;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

static void fill_alike(unsigned char *row, unsigned size, const uint64_t value[2], em_mask mask)
{
    switch (size) {
    case 0: {
        em_mask *predicate = (em_mask *)(void *)row;
        *predicate = (*predicate & ~mask) | (value[0] != 0 ? mask : 0);
        break;
    }
    case 1:
        FILL(uint8_t);
        break;
    case 2:
        FILL(uint16_t);
        break;
    case 4:
        FILL(uint32_t);
        break;
    case 8:
        FILL(uint64_t);
        break;
    default:
        EM_EACH_LANE_OF(mask)
        {
            memcpy(row + lane * 16, value, 16);
        }
        break;
    }
}

static void fill(const em_constant *constant, const em_warp *warp, unsigned char *rows, em_mask mask)
{
    unsigned char *row = rows + constant->offset;
    uint64_t value[2];
    if (same_in_all_lanes(constant)) {
        constant_value(constant, warp, 0, value);
        fill_alike(row, constant->size, value, mask);
        return;
    }
    EM_EACH_LANE_OF(mask)
    {
        constant_value(constant, warp, (unsigned)lane, value);
        memcpy(row + (unsigned)lane * constant->size, value, constant->size);
    }
}

void em_frame_fill(const em_function *function, const em_warp *warp, unsigned char *rows, em_mask mask)
{
    EM_PREDICATE(EM_TRUE_OFFSET) = EM_ALL_LANES;
    for (uint32_t i = 0; i < function->constant_count; i++)
        fill(&function->constants[i], warp, rows, mask);
}

void em_frame_refill(const em_function *function, const em_warp *warp, unsigned char *rows)
{
    for (uint32_t i = function->block_constants; i < function->constant_count; i++)
        fill(&function->constants[i], warp, rows, EM_ALL_LANES);
}
