/* Copies and fills: every kind, their bounds, and when they return. */
#include "check.h"

#include <stdatomic.h>
#include <unistd.h>

enum { SIZE = 4096 };

static CUdeviceptr a, b;
static char host[2 * SIZE], back[2 * SIZE];
static CUstream stream;
static CUkernel spin;
static _Atomic uint32_t *flag;

static void hold(void)
{
    *flag = 0;
    void *parameters[] = {&flag};
    OK(cuLaunchKernel((CUfunction)spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static void fill_host(char seed)
{
    for (int i = 0; i < 2 * SIZE; i++)
        host[i] = (char)(seed + i * 7);
}

static void test_lines(void)
{
    fill_host(1);
    OK(cuMemcpyHtoD(a, host, SIZE));
    OK(cuMemcpyDtoD(b, a, SIZE));
    memset(back, 0, sizeof back);
    OK(cuMemcpyDtoH(back, b, SIZE));
    EXPECT(memcmp(host, back, SIZE) == 0);
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, a + 100, 50));
    EXPECT(memcmp(back, host + 100, 50) == 0);
    OK(cuMemcpy(a, (CUdeviceptr)(uintptr_t)host + 10, 50));
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, (CUdeviceptr)(uintptr_t)host, 64)); /* host to host */
    EXPECT(memcmp(back, host, 64) == 0);
    OK(cuMemcpyDtoH(back, a, 50));
    EXPECT(memcmp(back, host + 10, 50) == 0);
    OK(cuMemcpyHtoD(a, (void *)(uintptr_t)b, 16)); /* a device pointer where host memory is meant: as CUDA allows */
    CUcontext context;
    OK(cuCtxGetCurrent(&context));
    OK(cuMemcpyPeer(a, context, b, context, SIZE));
    OK(cuMemcpyDtoH(back, a, SIZE));
    EXPECT(memcmp(host, back, SIZE) == 0);
}

static void test_line_errors(void)
{
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a, host, SIZE + 1));
    EXPECT(detail_contains("ends 1 bytes past the end of allocation"));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(back, a + SIZE - 4, 5));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(a, b + SIZE - 1, 2));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0, host, 16));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a, NULL, 16));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD((CUdeviceptr)(uintptr_t)back, host, 16));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(back, (CUdeviceptr)(uintptr_t)host, 16));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0x1000, host, 16));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync(a, host, SIZE + 1, stream));
    OK(cuMemcpyHtoD(0, NULL, 0));
    OK(cuMemcpyDtoD(5, 7, 0));
    CUdeviceptr freed;
    OK(cuMemAlloc(&freed, SIZE));
    OK(cuMemFree(freed));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(freed, host, 16));
    EXPECT(detail_contains("was freed"));
    if (on_emulator()) {
        RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a + SIZE + 64, host, 16));
        EXPECT(detail_contains("64 bytes past the end of allocation"));
    }
}

/* A pageable source may be used again at once; a pinned one is read when the stream comes to it. */
static void test_when_they_return(void)
{
    char *pinned;
    OK(cuMemHostAlloc((void **)&pinned, SIZE, 0));
    fill_host(3);
    memcpy(pinned, host, SIZE);
    hold();
    OK(cuMemcpyHtoDAsync(a, host, SIZE, stream));
    memset(host, 9, SIZE);
    OK(cuMemcpyDtoHAsync(pinned, a, SIZE, stream)); /* pinned: returns though the stream is held */
    EXPECT(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    pinned[0] = 77;
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    fill_host(3);
    EXPECT(memcmp(pinned, host, SIZE) == 0);
    OK(cuMemcpyDtoHAsync(back, a, SIZE, stream)); /* pageable: done when it returns */
    EXPECT(memcmp(back, host, SIZE) == 0);

    memset(pinned, 1, SIZE);
    hold();
    OK(cuMemcpyHtoDAsync(a, pinned, SIZE, stream));
    memset(pinned, 2, SIZE); /* the mistake that pinned memory makes possible */
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(back, a, SIZE));
    EXPECT(back[0] == 2 && back[SIZE - 1] == 2);
    OK(cuMemFreeHost(pinned));

    size_t large = 3 << 20; /* more than is copied aside */
    char *source = malloc(large);
    CUdeviceptr target;
    memset(source, 4, large);
    OK(cuMemAlloc(&target, large));
    OK(cuMemcpyHtoDAsync(target, source, large, stream));
    memset(source, 5, large);
    OK(cuMemcpyDtoH(source, target, large));
    EXPECT(source[0] == 4 && source[large - 1] == 4);
    OK(cuMemFree(target));
    free(source);
}

static void test_2d(void)
{
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = host,
                          .srcPitch = 32,
                          .srcXInBytes = 4,
                          .srcY = 1,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = a,
                          .dstPitch = 64,
                          .dstXInBytes = 8,
                          .dstY = 2,
                          .WidthInBytes = 16,
                          .Height = 5};
    fill_host(5);
    OK(cuMemsetD8(a, 0, SIZE));
    OK(cuMemcpy2D(&copy));
    OK(cuMemcpyDtoH(back, a, SIZE));
    for (int row = 0; row < 64; row++)
        for (int column = 0; column < 64; column++) {
            bool inside = row >= 2 && row < 7 && column >= 8 && column < 24;
            char expected = inside ? host[(row - 2 + 1) * 32 + 4 + column - 8] : 0;
            EXPECT(back[row * 64 + column] == expected);
        }
    copy.srcPitch = 8;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy));
    copy.srcPitch = 32;
    copy.Height = 63;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy)); /* two rows too many, as it begins in row 2 */
    copy.Height = 62;
    OK(cuMemcpy2DAsync(&copy, stream));
    OK(cuStreamSynchronize(stream));
    copy.dstXInBytes = 50;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy)); /* beyond the pitch */
    copy.srcMemoryType = (CUmemorytype)9;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy));
}

static void test_3d(void)
{
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = a,
                          .srcPitch = 16,
                          .srcHeight = 8,
                          .srcXInBytes = 2,
                          .srcY = 1,
                          .srcZ = 1,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = back,
                          .WidthInBytes = 10,
                          .Height = 4,
                          .Depth = 3};
    fill_host(6);
    OK(cuMemcpyHtoD(a, host, SIZE));
    memset(back, 0, sizeof back);
    OK(cuMemcpy3D(&copy));
    for (int z = 0; z < 3; z++)
        for (int y = 0; y < 4; y++)
            for (int x = 0; x < 10; x++)
                EXPECT(back[(z * 4 + y) * 10 + x] == host[((z + 1) * 8 + y + 1) * 16 + x + 2]);
    copy.srcZ = 30;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&copy));
}

static void test_fills(void)
{
    OK(cuMemsetD8(a, 1, SIZE));
    OK(cuMemsetD16(a + 2, 0x0203, 3));
    OK(cuMemsetD32(a + 16, 0x04050607, 2));
    OK(cuMemsetD2D8(a + 64, 32, 9, 4, 3));
    OK(cuMemcpyDtoH(back, a, SIZE));
    static const char expected[] = {1, 1, 3, 2, 3, 2, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 7, 6, 5, 4, 7, 6, 5, 4, 1};
    EXPECT(memcmp(back, expected, sizeof expected) == 0);
    for (int i = 64; i < 160; i++)
        EXPECT(back[i] == ((i - 64) % 32 < 4 && i < 132 ? 9 : 1));
    OK(cuMemsetD32Async(a, 0, SIZE / 4, stream));
    OK(cuMemsetD16Async(a, 7, 1, stream));
    OK(cuMemsetD2D32Async(a + 256, 64, 5, 2, 2, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(back, a, SIZE));
    EXPECT(back[0] == 7 && back[2] == 0 && back[256] == 5 && back[260] == 5 && back[264] == 0 && back[320] == 5);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a + 1, 0, 1));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(a + 1, 0, 1));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a, 0, SIZE / 4 + 1));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8((CUdeviceptr)(uintptr_t)host, 0, 16));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(a, 8, 1, 16, 4));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32(a, 10, 1, 2, 4));
    OK(cuMemsetD8(0, 0, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(0, 0, 4));
}

int main(void)
{
    start();
    CUlibrary library;
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&spin, library, "spin"));
    OK(cuMemHostAlloc((void **)&flag, 4, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&a, SIZE));
    OK(cuMemAlloc(&b, SIZE));
    test_lines();
    test_line_errors();
    test_when_they_return();
    test_2d();
    test_3d();
    test_fills();
    OK(cuMemFree(a));
    OK(cuMemFree(b));
    OK(cuMemFreeHost((void *)flag));
    OK(cuStreamDestroy(stream));
    return finish();
}
