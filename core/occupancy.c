/* How many blocks and clusters of a kernel fit on a device at once. The driver knows the registers, so it is asked. */
#include "internal.h"

/* The driver takes a CUkernel for a CUfunction and finds the function of the current context. */
static CUfunction function_of(const cc_kernel *kernel)
{
    return (CUfunction)kernel->native;
}

static int enter_device(cc__scope *scope, cc_device *device, cc_error *error)
{
    cc_context *context;
    if (cc_device_primary_context(device, &context, error))
        return -1;
    return cc__enter(scope, context, error);
}

int cc_occupancy_blocks(cc_kernel *kernel, cc_device *device, int block_size, size_t shared_bytes, int *blocks,
                        cc_error *error)
{
    cc__scope scope;
    if (enter_device(&scope, device, error))
        return -1;
    int status = CC__CALL_OPTIONAL(error, cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, function_of(kernel),
                                   block_size, shared_bytes);
    cc__leave(&scope);
    return status;
}

int cc_occupancy_block_size(cc_kernel *kernel, cc_device *device, size_t shared_bytes, int block_size_limit,
                            int *grid_size, int *block_size, cc_error *error)
{
    cc__scope scope;
    if (enter_device(&scope, device, error))
        return -1;
    int status = CC__CALL_OPTIONAL(error, cuOccupancyMaxPotentialBlockSize, grid_size, block_size, function_of(kernel),
                                   NULL, shared_bytes, block_size_limit);
    cc__leave(&scope);
    return status;
}

int cc_occupancy_shared_bytes(cc_kernel *kernel, cc_device *device, int blocks, int block_size, size_t *shared_bytes,
                              cc_error *error)
{
    cc__scope scope;
    if (enter_device(&scope, device, error))
        return -1;
    int status = CC__CALL_OPTIONAL(error, cuOccupancyAvailableDynamicSMemPerBlock, shared_bytes, function_of(kernel),
                                   blocks, block_size);
    cc__leave(&scope);
    return status;
}

/* ---- clusters --------------------------------------------------------------------------------------------------- */

typedef struct driver_config {
    CUlaunchConfig config;
    CUlaunchAttribute cluster;
} driver_config;

static void translate(const cc_launch_config *config, CUstream stream, driver_config *to)
{
    to->config = (CUlaunchConfig){
        .gridDimX = config->grid[0],
        .gridDimY = config->grid[1],
        .gridDimZ = config->grid[2],
        .blockDimX = config->block[0],
        .blockDimY = config->block[1],
        .blockDimZ = config->block[2],
        .sharedMemBytes = config->shared_bytes,
        .hStream = stream,
        .attrs = &to->cluster,
        .numAttrs = config->cluster[0] != 0,
    };
    to->cluster = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    to->cluster.value.clusterDim.x = config->cluster[0];
    to->cluster.value.clusterDim.y = config->cluster[1];
    to->cluster.value.clusterDim.z = config->cluster[2];
}

int cc_occupancy_cluster_size(cc_kernel *kernel, const cc_launch_config *config, cc_stream *stream, int *size,
                              cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    driver_config translated;
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    translate(config, stream->native, &translated);
    int status =
        CC__CALL_OPTIONAL(error, cuOccupancyMaxPotentialClusterSize, size, function_of(kernel), &translated.config);
    cc__leave(&scope);
    return status;
}

int cc_occupancy_clusters(cc_kernel *kernel, const cc_launch_config *config, cc_stream *stream, int *clusters,
                          cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    driver_config translated;
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    translate(config, stream->native, &translated);
    int status =
        CC__CALL_OPTIONAL(error, cuOccupancyMaxActiveClusters, clusters, function_of(kernel), &translated.config);
    cc__leave(&scope);
    return status;
}
