/* Entry points: launches. */
#include <stdlib.h>
#include <string.h>

#include "library.h"

typedef struct launch_op {
    em_op op;
    em_launch launch;
    em_instance *instance; /* a reference: the code stays while it runs */
    _Alignas(16) unsigned char parameters[];
} launch_op;

/* What the several launch calls ask for. */
typedef struct request {
    unsigned int grid[3], block[3], cluster[3];
    unsigned int shared;
    CUstream stream;
    bool cooperative;
    CUevent event; /* recorded after the launch */
} request;

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int device_value(const em_code *code, CUdevice_attribute attribute)
{
    int value = 0;
    em_device_attribute(code->device, attribute, &value);
    return value;
}

static int check_shape(const em_code *code, const request *asked)
{
    static const char axes[] = "xyz";
    for (int i = 0; i < 3; i++) {
        unsigned int grid =
            (unsigned int)device_value(code, (CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i));
        unsigned int block =
            (unsigned int)device_value(code, (CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i));
        if (asked->grid[i] == 0 || asked->grid[i] > grid)
            return em_explain(CUDA_ERROR_INVALID_VALUE, "a grid of %u blocks in %c: from 1 to %u are possible",
                              asked->grid[i], axes[i], grid);
        if (asked->block[i] == 0 || asked->block[i] > block)
            return em_explain(CUDA_ERROR_INVALID_VALUE, "a block of %u threads in %c: from 1 to %u are possible",
                              asked->block[i], axes[i], block);
    }
    const em_kernel_info *info = code->info;
    uint64_t threads = (uint64_t)asked->block[0] * asked->block[1] * asked->block[2];
    if (threads > info->max_threads)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "a block of %llu threads: kernel '%s' takes %u at most",
                          (unsigned long long)threads, info->name, info->max_threads);
    const uint32_t *required = info->required_block;
    if (required[0] != 0 &&
        (asked->block[0] != required[0] || asked->block[1] != required[1] || asked->block[2] != required[2]))
        return em_explain(CUDA_ERROR_INVALID_VALUE, "kernel '%s' was compiled for blocks of %ux%ux%u threads",
                          info->name, required[0], required[1], required[2]);
    return CUDA_SUCCESS;
}

static int check_shared(const em_code *code, unsigned int asked)
{
    int allowed = 0;
    em_code_attribute(code, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &allowed);
    if (asked <= (unsigned int)allowed)
        return CUDA_SUCCESS;
    return em_explain(CUDA_ERROR_INVALID_VALUE,
                      "%u bytes of dynamic shared memory: kernel '%s' may have %d; the device allows up to %d in all "
                      "when CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES is set",
                      asked, code->info->name, allowed,
                      device_value(code, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
}

/* All blocks of a cooperative launch must be on the device at once. */
static int check_cooperative(const em_code *code, const request *asked)
{
    uint64_t threads = (uint64_t)asked->block[0] * asked->block[1] * asked->block[2];
    uint64_t blocks = (uint64_t)asked->grid[0] * asked->grid[1] * asked->grid[2];
    uint64_t room =
        (uint64_t)em_occupancy(code, threads, asked->shared) * (uint64_t)code->device->limits.multiprocessors;
    if (blocks <= room)
        return CUDA_SUCCESS;
    return em_explain(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                      "a cooperative launch of %llu blocks: %llu of this size fit on the device at once",
                      (unsigned long long)blocks, (unsigned long long)room);
}

static int check_request(const em_code *code, const request *asked)
{
    int status = check_shape(code, asked);
    if (status == CUDA_SUCCESS)
        status = check_shared(code, asked->shared);
    if (status == CUDA_SUCCESS && asked->cooperative)
        status = check_cooperative(code, asked);
    bool clusters = asked->cluster[0] > 1 || asked->cluster[1] > 1 || asked->cluster[2] > 1;
    if (status == CUDA_SUCCESS && clusters)
        status = em_explain(CUDA_ERROR_NOT_SUPPORTED, "the emulated device does not launch clusters "
                                                      "(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH is 0)");
    return status;
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static int copy_buffer(const em_kernel_info *info, void **extra, unsigned char *to)
{
    const void *buffer = NULL;
    const size_t *size = NULL;
    for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[i + 1];
        else
            return em_explain(CUDA_ERROR_INVALID_VALUE, "%p is no key of the launch's extra list", extra[i]);
    }
    if (size == NULL || *size > info->parameter_bytes || (buffer == NULL && *size != 0))
        return em_explain(size != NULL && buffer != NULL ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                                                         : CUDA_ERROR_INVALID_VALUE,
                          "the parameter buffer has %zu bytes; kernel '%s' takes %u", size != NULL ? *size : 0,
                          info->name, info->parameter_bytes);
    if (*size != 0)
        memcpy(to, buffer, *size);
    return CUDA_SUCCESS;
}

static int copy_parameters(const em_kernel_info *info, void **parameters, void **extra, unsigned char *to)
{
    if (parameters != NULL && extra != NULL)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "a launch takes kernelParams or extra, not both");
    if (extra != NULL)
        return copy_buffer(info, extra, to);
    for (size_t i = 0; i < info->parameter_count; i++) {
        if (parameters == NULL || parameters[i] == NULL)
            return em_explain(CUDA_ERROR_INVALID_VALUE, "kernel '%s' takes %zu parameters; number %zu is missing",
                              info->name, info->parameter_count, i);
        memcpy(to + info->parameters[i].offset, parameters[i], info->parameters[i].size);
    }
    return CUDA_SUCCESS;
}

/* ---- the launch -------------------------------------------------------------------------------------------------- */

static int run_launch(em_op *op, em_stream *stream, em_detail *detail)
{
    (void)stream;
    const launch_op *what = (const launch_op *)op;
    em_heap_pin();
    int status = em_run(&what->launch, detail);
    em_heap_unpin();
    return status;
}

static void finish_launch(em_op *op, em_stream *stream, int status)
{
    (void)stream;
    (void)status;
    em_instance_release(((launch_op *)op)->instance);
}

static int submit(const em_function *function, const request *asked, em_stream *stream, void **parameters, void **extra)
{
    const em_kernel_info *info = function->code.info;
    const em_context *context = stream->context;
    launch_op *op = (launch_op *)em_op_new(sizeof *op + info->parameter_bytes);
    if (op == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int status = copy_parameters(info, parameters, extra, op->parameters);
    if (status != CUDA_SUCCESS) {
        em_op_drop(&op->op);
        return status;
    }
    op->op.run = run_launch;
    op->op.finish = finish_launch;
    op->instance = function->instance;
    atomic_fetch_add_explicit(&op->instance->references, 1, memory_order_relaxed);
    op->launch = (em_launch){
        .kernel = function->kernel,
        .grid = {asked->grid[0], asked->grid[1], asked->grid[2]},
        .block = {asked->block[0], asked->block[1], asked->block[2]},
        .dynamic_shared_bytes = asked->shared,
        .cooperative = asked->cooperative,
        .parameters = op->parameters,
        .limits = context->device->limits,
        .printf_limit = context->limits[CU_LIMIT_PRINTF_FIFO_SIZE],
        .malloc_limit = context->limits[CU_LIMIT_MALLOC_HEAP_SIZE],
    };
    return em_stream_submit(stream, &op->op, EM_QUEUE);
}

static int launch(CUfunction handle, const request *asked, void **parameters, void **extra)
{
    em_stream *stream;
    em_function *function;
    int status = em_stream_enter(asked->stream, &stream);
    if (status == CUDA_SUCCESS)
        status = em_function_resolve(handle, stream->context, &function);
    if (status != CUDA_SUCCESS)
        return status;
    if (function->instance->context != stream->context)
        return em_explain(CUDA_ERROR_INVALID_HANDLE,
                          "the function was loaded in a context of device %d, the stream is of one of device %d",
                          function->instance->context->device->limits.ordinal, stream->context->device->limits.ordinal);
    status = check_request(&function->code, asked);
    if (status == CUDA_SUCCESS)
        status = em_kernel_check(function->kernel, em_thread_detail());
    if (status == CUDA_SUCCESS)
        status = submit(function, asked, stream, parameters, extra);
    if (status == CUDA_SUCCESS && asked->event != NULL) {
        em_event *event = em_object_get(EM_KIND_EVENT, asked->event);
        status = event != NULL ? em_event_record(event, stream) : CUDA_ERROR_INVALID_HANDLE;
    }
    return status;
}

EM_ENTRY_STREAM(cuLaunchKernel, "%p, %u, %u, %u, %u, %u, %u, %u, %p, %p, %p",
                (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, hStream, parameters, extra),
                CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream hStream,
                void **parameters, void **extra)
{
    const request asked = {
        .grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .shared = shared, .stream = hStream};
    return launch(function, &asked, parameters, extra);
}

EM_ENTRY_STREAM(cuLaunchCooperativeKernel, "%p, %u, %u, %u, %u, %u, %u, %u, %p, %p",
                (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, hStream, parameters),
                CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream hStream,
                void **parameters)
{
    const request asked = {.grid = {grid_x, grid_y, grid_z},
                           .block = {block_x, block_y, block_z},
                           .shared = shared,
                           .stream = hStream,
                           .cooperative = true};
    return launch(function, &asked, parameters, NULL);
}

/* ---- cuLaunchKernelEx -------------------------------------------------------------------------------------------- */

static int read_attribute(const CUlaunchAttribute *attribute, request *asked)
{
    switch ((int)attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        asked->cooperative = attribute->value.cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        asked->cluster[0] = attribute->value.clusterDim.x;
        asked->cluster[1] = attribute->value.clusterDim.y;
        asked->cluster[2] = attribute->value.clusterDim.z;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        asked->event = attribute->value.programmaticEvent.event;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        asked->event = attribute->value.launchCompletionEvent.event;
        return CUDA_SUCCESS;
    /* Hints, and leave to overlap that an in-order device need not use. */
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return CUDA_SUCCESS;
    default:
        return em_explain(CUDA_ERROR_INVALID_VALUE, "%d is not an attribute of a launch", (int)attribute->id);
    }
}

static int launch_configured(const CUlaunchConfig *config, CUstream stream, CUfunction function, void **parameters,
                             void **extra)
{
    request asked = {.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                     .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                     .shared = config->sharedMemBytes,
                     .stream = stream};
    if (config->numAttrs != 0 && config->attrs == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    int status = CUDA_SUCCESS;
    for (unsigned int i = 0; i < config->numAttrs && status == CUDA_SUCCESS; i++)
        status = read_attribute(&config->attrs[i], &asked);
    return status == CUDA_SUCCESS ? launch(function, &asked, parameters, extra) : status;
}

EM_ENTRY(cuLaunchKernelEx, "%p, %p, %p, %p", (config, function, parameters, extra), const CUlaunchConfig *config,
         CUfunction function, void **parameters, void **extra)
{
    return config != NULL ? launch_configured(config, config->hStream, function, parameters, extra)
                          : CUDA_ERROR_INVALID_VALUE;
}

EM_ENTRY(cuLaunchKernelEx_ptsz, "%p, %p, %p, %p", (config, function, parameters, extra), const CUlaunchConfig *config,
         CUfunction function, void **parameters, void **extra)
{
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = config->hStream != NULL ? config->hStream : CU_STREAM_PER_THREAD;
    return launch_configured(config, stream, function, parameters, extra);
}
