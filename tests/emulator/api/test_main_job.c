/* The whole way: load, allocate, copy, launch, read back. */
#include "check.h"

enum { COUNT = 1000 };

int main(void)
{
    start();
    CUlibrary library;
    CUkernel kernel;
    CUstream stream;
    CUdeviceptr data;
    static uint32_t host[COUNT], back[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        host[i] = i * 3;
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "add_one"));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocAsync(&data, sizeof host, stream));
    OK(cuMemcpyHtoDAsync(data, host, sizeof host, stream));
    uint32_t count = COUNT;
    void *parameters[] = {&data, &count};
    for (int i = 0; i < 5; i++)
        OK(cuLaunchKernel((CUfunction)kernel, 4, 1, 1, 256, 1, 1, 0, stream, parameters, NULL));
    OK(cuMemcpyDtoHAsync(back, data, sizeof back, stream));
    OK(cuMemFreeAsync(data, stream));
    OK(cuStreamSynchronize(stream));
    for (uint32_t i = 0; i < COUNT; i++)
        EXPECT(back[i] == i * 3 + 5);
    OK(cuStreamDestroy(stream));
    OK(cuLibraryUnload(library));
    OK(cuDevicePrimaryCtxRelease(0));
    return finish();
}
