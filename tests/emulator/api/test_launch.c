/* Launches: parameters by either way, what is refused, attributes of functions, occupancy. */
#include "check.h"

enum { COUNT = 256 };

static CUlibrary library;
static CUkernel add_one, empty, limited;
static CUstream stream;
static CUdeviceptr data;

static uint32_t first_value(void)
{
    uint32_t value = 0;
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(&value, data, 4));
    return value;
}

static CUresult launch(CUkernel kernel, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                       unsigned int by, unsigned int bz, unsigned int shared)
{
    uint64_t unused = 0;
    void *parameters[] = {&unused, &unused, &(uint64_t[3]){0}};
    return cuLaunchKernel((CUfunction)kernel, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL);
}

static void test_shapes(void)
{
    OK(launch(empty, 1, 1, 1, 1, 1, 1, 0));
    OK(launch(empty, 2, 3, 4, 8, 4, 2, 0));
    OK(launch(empty, 1, 65535, 1, 1, 1, 1, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(empty, 0, 1, 1, 1, 1, 1, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(empty, 1, 0, 1, 1, 1, 1, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(empty, 1, 1, 1, 0, 1, 1, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(empty, 1, 1, 1, 1025, 1, 1, 0));
    EXPECT(detail_contains("1025 threads in x: from 1 to 1024"));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(empty, 1, 1, 1, 1024, 2, 1, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(empty, 1, 1, 1, 1, 1, 65, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(empty, 1, 65536, 1, 1, 1, 1, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(empty, 0x80000000u, 1, 1, 1, 1, 1, 0));
    OK(launch(limited, 1, 1, 1, 64, 1, 1, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(limited, 1, 1, 1, 65, 1, 1, 0));
    EXPECT(detail_contains("'limited' takes 64 at most"));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, launch(NULL, 1, 1, 1, 1, 1, 1, 0));
    OK(cuStreamSynchronize(stream));
}

static void test_shared_memory(void)
{
    int value = 0;
    const CUfunction_attribute dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    OK(launch(empty, 1, 1, 1, 1, 1, 1, 49152));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(empty, 1, 1, 1, 1, 1, 1, 49153));
    OK(cuKernelGetAttribute(&value, dynamic, empty, 0));
    EXPECT(value == 49152);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuKernelSetAttribute(dynamic, 300000, empty, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuKernelSetAttribute(dynamic, -1, empty, 0));
    OK(cuKernelSetAttribute(dynamic, 65536, empty, 0));
    OK(launch(empty, 1, 1, 1, 1, 1, 1, 65536));
    RETURNS(CUDA_ERROR_INVALID_VALUE, launch(empty, 1, 1, 1, 1, 1, 1, 65537));
    OK(cuKernelGetAttribute(&value, dynamic, empty, 0));
    EXPECT(value == 65536);
    OK(cuStreamSynchronize(stream));
}

static void test_parameters(void)
{
    uint32_t count = COUNT;
    void *parameters[] = {&data, &count};
    CUfunction function;
    OK(cuMemsetD32Async(data, 10, COUNT, stream));
    OK(cuLaunchKernel((CUfunction)add_one, 1, 1, 1, COUNT, 1, 1, 0, stream, parameters, NULL));
    EXPECT(first_value() == 11);
    OK(cuKernelGetFunction(&function, add_one));
    OK(cuLaunchKernel(function, 1, 1, 1, COUNT, 1, 1, 0, stream, parameters, NULL));
    EXPECT(first_value() == 12);

    struct {
        CUdeviceptr data;
        uint32_t count;
        uint32_t more[4];
    } buffer = {data, COUNT, {0}};
    size_t size = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    OK(cuLaunchKernel(function, 1, 1, 1, COUNT, 1, 1, 0, stream, NULL, extra));
    EXPECT(first_value() == 13);
    size = 24;
    RETURNS(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, cuLaunchKernel(function, 1, 1, 1, COUNT, 1, 1, 0, stream, NULL, extra));
    size = 12;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, COUNT, 1, 1, 0, stream, parameters, extra));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, COUNT, 1, 1, 0, stream, NULL, NULL));
    EXPECT(first_value() == 13);
    count = 0; /* parameters are copied at the launch */
    OK(cuLaunchKernel(function, 1, 1, 1, COUNT, 1, 1, 0, stream, parameters, NULL));
    count = COUNT;
    EXPECT(first_value() == 13);
}

static void test_configured(void)
{
    uint32_t count = COUNT;
    void *parameters[] = {&data, &count};
    CUlaunchAttribute attributes[2] = {{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1},
                                       {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1}};
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = COUNT,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = stream,
                             .attrs = attributes,
                             .numAttrs = 2};
    uint32_t before = first_value();
    OK(cuLaunchKernelEx(&config, (CUfunction)add_one, parameters, NULL));
    EXPECT(first_value() == before + 1);
    OK(cuLaunchCooperativeKernel((CUfunction)add_one, 1, 1, 1, COUNT, 1, 1, 0, stream, parameters));
    EXPECT(first_value() == before + 2);
    RETURNS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            cuLaunchCooperativeKernel((CUfunction)empty, 1000000, 1, 1, 32, 1, 1, 0, stream, NULL));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(NULL, (CUfunction)add_one, parameters, NULL));
    if (on_emulator()) {
        attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[0].value.clusterDim.x = 2;
        RETURNS(CUDA_ERROR_NOT_SUPPORTED, cuLaunchKernelEx(&config, (CUfunction)add_one, parameters, NULL));
    }
}

static void test_other_contexts(void)
{
    CUfunction function;
    CUcontext other, current;
    uint32_t count = COUNT;
    void *parameters[] = {&data, &count};
    OK(cuKernelGetFunction(&function, add_one));
    uint32_t before = first_value();
    OK(cuCtxCreate(&other, NULL, 0, 0));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL)); /* the stream's context counts */
    OK(cuCtxPopCurrent(&current));
    EXPECT(current == other);
    EXPECT(first_value() == before + 1);
    OK(cuCtxDestroy(other));
}

static void test_functions(void)
{
    CUfunction function;
    const char *name = NULL;
    size_t offset, size;
    int value;
    OK(cuKernelGetFunction(&function, limited));
    OK(cuFuncGetName(&name, function));
    EXPECT(strcmp(name, "limited") == 0);
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuFuncGetName(&name, (CUfunction)limited));
    static const size_t offsets[] = {0, 8, 16}, sizes[] = {8, 2, 24};
    for (size_t i = 0; i < 3; i++) {
        OK(cuKernelGetParamInfo(limited, i, &offset, &size));
        EXPECT(offset == offsets[i] && size == sizes[i]);
        OK(cuFuncGetParamInfo(function, i, &offset, NULL));
        EXPECT(offset == offsets[i]);
    }
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuKernelGetParamInfo(limited, 3, &offset, &size));
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    EXPECT(value == 64);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, function));
    EXPECT(value == 80);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
    EXPECT(value > 0);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(&value, (CUfunction_attribute)99, function));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 3));
    RETURNS(CUDA_ERROR_INVALID_DEVICE, cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, limited, 64));
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
    OK(cuFuncLoad(function));
    OK(cuFuncIsLoaded(&state, function));
    EXPECT(state == CU_FUNCTION_LOADING_STATE_LOADED);
}

static void test_occupancy(void)
{
    int blocks = -1, grid = -1, block = -1, processors = 0;
    size_t bytes = 0;
    OK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (CUfunction)empty, 256, 0));
    EXPECT(blocks == 8); /* 2048 threads */
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (CUfunction)empty, 32, 0));
    EXPECT(blocks == 32);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (CUfunction)empty, 2000, 0));
    EXPECT(blocks == 0);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (CUfunction)limited, 65, 0));
    EXPECT(blocks == 21); /* three warps each, though it cannot be launched so */
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (CUfunction)empty, 0, 0));
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, (CUfunction)empty, NULL, 0, 0));
    EXPECT(block == 1024 && grid == 2 * processors);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, (CUfunction)empty, NULL, 0, 100));
    EXPECT(block > 0 && block <= 100);
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, (CUfunction)empty, 2, 256));
    EXPECT(bytes >= 65536);
    if (on_emulator()) { /* the figures of compute 8.0: 164 KiB on chip, 1 KiB of each block reserved */
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (CUfunction)empty, 64, 40000));
        EXPECT(blocks == 4);
        EXPECT(bytes == 82944);
    }
}

int main(void)
{
    start();
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&add_one, library, "add_one"));
    OK(cuLibraryGetKernel(&empty, library, "empty"));
    OK(cuLibraryGetKernel(&limited, library, "limited"));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&data, 4 * COUNT));
    test_shapes();
    test_shared_memory();
    test_parameters();
    test_configured();
    test_other_contexts();
    test_functions();
    test_occupancy();
    OK(cuMemFree(data));
    OK(cuStreamDestroy(stream));
    OK(cuLibraryUnload(library));
    return finish();
}
