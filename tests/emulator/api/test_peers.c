/* Two devices: copies between them, access that was enabled and access that was not. */
#include "check.h"

static CUlibrary library;
static CUkernel add_one;

static CUresult add_on(int device, CUdeviceptr data)
{
    CUcontext context;
    uint32_t count = 4;
    void *parameters[] = {&data, &count};
    OK(cuCtxCreate(&context, NULL, 0, device));
    OK(cuLaunchKernel((CUfunction)add_one, 1, 1, 1, 4, 1, 1, 0, NULL, parameters, NULL));
    CUresult status = cuCtxSynchronize();
    OK(cuCtxDestroy(context));
    return status;
}

static void test_copies(CUcontext first, CUcontext second)
{
    CUdeviceptr here, there;
    uint32_t host[4] = {1, 2, 3, 4}, back[4] = {0};
    int ordinal = -1;
    OK(cuCtxSetCurrent(first));
    OK(cuMemAlloc(&here, 16));
    OK(cuCtxSetCurrent(second));
    OK(cuMemAlloc(&there, 16));
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
    EXPECT(ordinal == 1);
    OK(cuMemcpyHtoD(here, host, 16)); /* any device's memory can be copied, whatever is current */
    OK(cuMemcpyPeer(there, second, here, first, 16));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(back, there, 16));
    EXPECT(memcmp(host, back, 16) == 0);
    OK(cuMemcpyDtoD(here, there, 8));
    OK(cuMemcpyPeerAsync(here, first, there, second, 16, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemFree(here));
    OK(cuMemFree(there));
}

static void test_access(CUcontext first, CUcontext second)
{
    CUdeviceptr data;
    CUcontext reader;
    OK(cuCtxSetCurrent(first));
    OK(cuMemAlloc(&data, 16));
    OK(cuMemsetD8(data, 0, 16));
    OK(cuCtxSynchronize());
    OK(add_on(0, data));
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, add_on(1, data)); /* not enabled */
    OK(cuCtxCreate(&reader, NULL, 0, 1));
    OK(cuCtxEnablePeerAccess(first, 0));
    RETURNS(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(first, 0));
    uint32_t count = 4, back[4] = {0};
    void *parameters[] = {&data, &count};
    OK(cuLaunchKernel((CUfunction)add_one, 1, 1, 1, 4, 1, 1, 0, NULL, parameters, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(back, data, 16));
    EXPECT(back[0] == 2 && back[3] == 2);
    OK(cuCtxDisablePeerAccess(first));
    RETURNS(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(first));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuCtxEnablePeerAccess(first, 1));
    OK(cuCtxDestroy(reader));
    OK(cuCtxSetCurrent(second));
    OK(cuMemFree(data));
}

static void test_pool_access(CUcontext first)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemoryPool pool;
    CUdeviceptr data;
    CUmemAccess_flags flags;
    OK(cuCtxSetCurrent(first));
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&data, 16, pool, NULL));
    OK(cuCtxSynchronize());
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, add_on(1, data));
    OK(cuMemPoolSetAccess(pool, &access, 1)); /* also for what is allocated already */
    OK(cuMemPoolGetAccess(&flags, pool, &access.location));
    EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(add_on(1, data));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(cuMemPoolSetAccess(pool, &access, 1));
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, add_on(1, data));
    OK(cuMemFreeAsync(data, NULL));
    OK(cuMemPoolDestroy(pool));
}

int main(void)
{
    CUcontext first, second;
    int count = 0;
    setenv("CUDA_CORE_EMULATOR_DEVICES", "2", 1);
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    if (!on_emulator())
        return finish();
    EXPECT(count == 2);
    OK(cuDevicePrimaryCtxRetain(&first, 0));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(first));
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&add_one, library, "add_one"));
    test_copies(first, second);
    test_access(first, second);
    test_pool_access(first);
    OK(cuLibraryUnload(library));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxRelease(1));
    return finish();
}
