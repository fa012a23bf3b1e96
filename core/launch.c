/* Launches, and the limits they are held against before the driver sees them. */
#include "launches.h"

/* ---- limits of a kernel on a device ----------------------------------------------------------------------------- */

typedef struct wanted_attribute {
    CUdevice_attribute attribute;
    unsigned *value;
} wanted_attribute;

static int ask_device(cc_device *device, cc__launch_limits *limits, unsigned *optin_shared, cc_error *error)
{
    const wanted_attribute wanted[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &limits->max_grid[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &limits->max_grid[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &limits->max_grid[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &limits->max_block[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &limits->max_block[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &limits->max_block[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &limits->device_max_threads},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, optin_shared},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        int value;
        if (cc_device_attribute(device, wanted[i].attribute, &value, error))
            return -1;
        *wanted[i].value = value < 0 ? 0 : (unsigned)value;
    }
    return 0;
}

static int ask_kernel(cc_kernel *kernel, cc_device *device, CUfunction_attribute attribute, unsigned *value,
                      cc_error *error)
{
    int asked;
    if (cc_kernel_attribute(kernel, device, attribute, &asked, error))
        return -1;
    *value = asked < 0 ? 0 : (unsigned)asked;
    return 0;
}

/* With the kernel's lock held. */
static int fill_limits(cc_kernel *kernel, cc_device *device, cc__launch_limits *limits, cc_error *error)
{
    unsigned optin_shared, dynamic_shared;
    if (ask_device(device, limits, &optin_shared, error) ||
        ask_kernel(kernel, device, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &limits->max_threads, error) ||
        ask_kernel(kernel, device, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &limits->static_shared, error) ||
        ask_kernel(kernel, device, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &dynamic_shared, error))
        return -1;
    if (limits->max_threads > limits->device_max_threads)
        limits->max_threads = limits->device_max_threads;
    limits->max_dynamic_shared = optin_shared > limits->static_shared ? optin_shared - limits->static_shared : 0;
    atomic_store_explicit(&limits->dynamic_shared, dynamic_shared, memory_order_relaxed);
    atomic_store_explicit(&limits->known, true, memory_order_release);
    return 0;
}

static int know_limits(cc_kernel *kernel, cc_device *device, cc__launch_limits *limits, cc_error *error)
{
    int status = 0;
    if (CC__LIKELY(atomic_load_explicit(&limits->known, memory_order_acquire)))
        return 0;
    cc__lock(&kernel->lock);
    if (!limits->known)
        status = fill_limits(kernel, device, limits, error);
    cc__unlock(&kernel->lock);
    return status;
}

/* ---- holding a configuration against them ----------------------------------------------------------------------- */

/* A value of 0 becomes the largest unsigned: one compare finds both ends. */
static inline bool in_range(unsigned value, unsigned most)
{
    return value - 1 < most;
}

static inline bool within(const cc_launch_config *config, const cc__launch_limits *limits)
{
    const unsigned *grid = config->grid, *block = config->block;
    return in_range(block[0], limits->max_block[0]) && in_range(block[1], limits->max_block[1]) &&
           in_range(block[2], limits->max_block[2]) && in_range(grid[0], limits->max_grid[0]) &&
           in_range(grid[1], limits->max_grid[1]) && in_range(grid[2], limits->max_grid[2]) &&
           (uint64_t)block[0] * block[1] * block[2] <= limits->max_threads &&
           config->shared_bytes <= atomic_load_explicit(&limits->dynamic_shared, memory_order_relaxed);
}

static int check_extents(const char *what, const unsigned extents[3], const unsigned most[3], cc_error *error)
{
    for (int i = 0; i < 3; i++) {
        if (extents[i] == 0)
            return cc__fail(error, CC_INVALID, "%s is %u x %u x %u: no extent may be 0", what, extents[0], extents[1],
                            extents[2]);
        if (extents[i] > most[i])
            return cc__fail(error, CC_LIMIT, "%s %c is %u; this device allows %u", what, "xyz"[i], extents[i], most[i]);
    }
    return 0;
}

static int check_threads(const cc_launch_config *config, const cc__launch_limits *limits, const cc_kernel *kernel,
                         cc_error *error)
{
    unsigned long long threads = (unsigned long long)config->block[0] * config->block[1] * config->block[2];
    if (threads > limits->device_max_threads)
        return cc__fail(error, CC_LIMIT, "block has %llu threads; this device allows %u a block", threads,
                        limits->device_max_threads);
    if (threads > limits->max_threads)
        return cc__fail(error, CC_LIMIT,
                        "block has %llu threads; kernel %s allows %u a block on this device (its registers or its "
                        "__launch_bounds__ allow no more)",
                        threads, kernel->name->text, limits->max_threads);
    return 0;
}

/* More than the usual 48 KiB has to be asked for, once a kernel and device. */
static int raise_shared(const cc_launch_config *config, cc__launch_limits *limits, cc_kernel *kernel, cc_device *device,
                        cc_error *error)
{
    unsigned wanted = config->shared_bytes;
    int status = 0;
    if (wanted > limits->max_dynamic_shared)
        return cc__fail(
            error, CC_LIMIT,
            "%u bytes of dynamic shared memory were asked for; this device allows %u a block, of which kernel "
            "%s uses %u itself",
            wanted, limits->max_dynamic_shared + limits->static_shared, kernel->name->text, limits->static_shared);
    cc__lock(&kernel->lock); /* another thread may be raising it too, and must not set it back */
    if (wanted > atomic_load_explicit(&limits->dynamic_shared, memory_order_relaxed))
        status = cc__kernel_set_attribute_lock_held(kernel, device, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                    (int)wanted, error);
    cc__unlock(&kernel->lock);
    return status;
}

static bool has_cluster(const cc_launch_config *config)
{
    return (config->cluster[0] | config->cluster[1] | config->cluster[2]) != 0;
}

static int check_cluster(const cc_launch_config *config, cc_device *device, cc_error *error)
{
    const unsigned *cluster = config->cluster, *grid = config->grid;
    int supported;
    if (cc_device_attribute(device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, &supported, error))
        return -1;
    if (!supported)
        return cc__fail(error, CC_NOT_SUPPORTED, "device %d has no clusters: they need compute capability 9.0",
                        device->ordinal);
    if (!cluster[0] || !cluster[1] || !cluster[2])
        return cc__fail(error, CC_INVALID, "cluster is %u x %u x %u: no extent may be 0", cluster[0], cluster[1],
                        cluster[2]);
    for (int i = 0; i < 3; i++)
        if (grid[i] % cluster[i])
            return cc__fail(error, CC_INVALID, "grid %c is %u blocks, no multiple of the cluster's %u", "xyz"[i],
                            grid[i], cluster[i]);
    return 0;
}

static int check_special(const cc_launch_config *config, cc_device *device, cc_error *error)
{
    int supported = 1;
    if (config->cooperative && cc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &supported, error))
        return -1;
    if (!supported)
        return cc__fail(error, CC_NOT_SUPPORTED, "device %d has no cooperative launches", device->ordinal);
    return has_cluster(config) ? check_cluster(config, device, error) : 0;
}

CC__COLD static int check_slowly(const cc_launch_config *config, cc__launch_limits *limits, cc_kernel *kernel,
                                 cc_device *device, cc_error *error)
{
    if (check_extents("block", config->block, limits->max_block, error) ||
        check_extents("grid", config->grid, limits->max_grid, error) || check_threads(config, limits, kernel, error) ||
        raise_shared(config, limits, kernel, device, error))
        return -1;
    return 0;
}

int cc_launch_check(const cc_launch_config *config, cc_kernel *kernel, cc_device *device, cc_error *error)
{
    cc__launch_limits *limits = &kernel->limits[device->ordinal];
    if (CC__UNLIKELY(config->cooperative || has_cluster(config)) && check_special(config, device, error))
        return -1;
    if (know_limits(kernel, device, limits, error))
        return -1;
    return CC__LIKELY(within(config, limits)) ? 0 : check_slowly(config, limits, kernel, device, error);
}

/* ---- launching -------------------------------------------------------------------------------------------------- */

static CUresult launch_with_attributes(const cc_launch_config *config, CUstream stream, CUfunction function,
                                       void **slots)
{
    CUlaunchAttribute attributes[3];
    unsigned count = 0;
    if (has_cluster(config)) {
        CUlaunchAttribute *cluster = &attributes[count++];
        *cluster = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
        cluster->value.clusterDim.x = config->cluster[0];
        cluster->value.clusterDim.y = config->cluster[1];
        cluster->value.clusterDim.z = config->cluster[2];
    }
    if (config->cooperative)
        attributes[count++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    if (config->programmatic_stream_serialization)
        attributes[count++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                                  .value.programmaticStreamSerializationAllowed = 1};
    CUlaunchConfig launch = {
        .gridDimX = config->grid[0],
        .gridDimY = config->grid[1],
        .gridDimZ = config->grid[2],
        .blockDimX = config->block[0],
        .blockDimY = config->block[1],
        .blockDimZ = config->block[2],
        .sharedMemBytes = config->shared_bytes,
        .hStream = stream,
        .attrs = attributes,
        .numAttrs = count,
    };
    return cc__driver.cuLaunchKernelEx(&launch, function, slots, NULL);
}

/* With the context current: the error is told in it. */
CC__COLD static int fail_launch(CUresult code, const cc_launch_config *config, const cc_kernel *kernel, bool special,
                                cc_error *error)
{
    cc__fail_driver(error, code, special ? "cuLaunchKernelEx" : "cuLaunchKernel");
    if (cc__is_lost(code))
        return -1; /* not this kernel's doing */
    return cc__explain(error, "\nThe kernel is %s, its grid %u x %u x %u, its block %u x %u x %u.", kernel->name->text,
                       config->grid[0], config->grid[1], config->grid[2], config->block[0], config->block[1],
                       config->block[2]);
}

__attribute__((always_inline)) static inline int launch(const cc_launch_config *config, cc_stream *stream,
                                                        cc_kernel *kernel, const char *label, void **slots,
                                                        cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    CUfunction function = (CUfunction)kernel->native; /* the driver takes either and finds the context's function */
    bool special = config->cooperative || config->programmatic_stream_serialization || has_cluster(config);
    cc__lane *lane = cc__lane_of(context, stream);
    const uint64_t number = cc__launch_begins(lane, label);
    CUresult code;
    int status = 0;
    if (CC__LIKELY(!special))
        code = cc__driver.cuLaunchKernel(function, config->grid[0], config->grid[1], config->grid[2], config->block[0],
                                         config->block[1], config->block[2], config->shared_bytes, stream->native,
                                         slots, NULL);
    else
        code = launch_with_attributes(config, stream->native, function, slots);
    if (CC__UNLIKELY(code != CUDA_SUCCESS)) {
        cc__launch_refused(lane, number);
        status = fail_launch(code, config, kernel, special, error);
    }
    cc__launch_returns(lane);
    cc__leave(&scope);
    return status;
}

int cc_launch(const cc_launch_config *config, cc_stream *stream, cc_kernel *kernel, void **slots, cc_error *error)
{
    return launch(config, stream, kernel, kernel->name->text, slots, error);
}

int cc_launch_from(const char *file, int line, const cc_launch_config *config, cc_stream *stream, cc_kernel *kernel,
                   void **slots, cc_error *error)
{
    return launch(config, stream, kernel, cc__launch_label(kernel->name->text, file, line), slots, error);
}
