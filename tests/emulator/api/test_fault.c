/* A fault in a kernel poisons its context: every call answers with it, in words too, until the context is reset. */
#include "check.h"

#include <unistd.h>

static CUlibrary library;
static CUkernel store, add_one;
static CUcontext context;

static void fault(CUstream stream, CUdeviceptr where)
{
    uint32_t value = 1;
    void *parameters[] = {&where, &value};
    OK(cuLaunchKernel((CUfunction)store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static _Atomic CUresult answered;

static void note_status(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    (void)data;
    answered = status;
}

static void note_call(void *data)
{
    *(int *)data = 1;
}

static void test_poisoned(void)
{
    const CUresult bad = CUDA_ERROR_ILLEGAL_ADDRESS;
    CUstream stream, other;
    CUevent event;
    CUdeviceptr address, before;
    CUdevice device;
    CUcontext current;
    size_t size;
    int value;
    unsigned int flags;
    char host[16] = {0};
    int called = 0;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuMemAlloc(&before, 16));
    /* the wait keeps the fault back until all is submitted */
    OK(cuMemsetD32(before, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitValue32(stream, before, 1, CU_STREAM_WAIT_VALUE_GEQ));
    fault(stream, 0);
    OK(cuLaunchHostFunc(stream, note_call, &called));
    OK(cuStreamAddCallback(stream, note_status, NULL, 0));
    OK(cuEventRecord(event, stream));
    OK(cuStreamWriteValue32(other, before, 1, 0));
    RETURNS(bad, cuStreamSynchronize(stream));
    for (int i = 0; i < 1000 && answered == 0; i++) /* the error is known before the last operation is done with */
        usleep(1000);
    if (on_emulator()) {
        EXPECT(called == 0);     /* host functions do not run after an error, */
        EXPECT(answered == bad); /* callbacks do, and are told */
        EXPECT(detail_contains("write of 4 bytes"));
    }
    RETURNS(bad, cuStreamSynchronize(other)); /* any stream */
    RETURNS(bad, cuCtxSynchronize());
    RETURNS(bad, cuStreamQuery(stream));
    RETURNS(bad, cuEventQuery(event));
    RETURNS(bad, cuEventSynchronize(event));
    RETURNS(bad, cuMemAlloc(&address, 16));
    RETURNS(bad, cuMemFree(before));
    RETURNS(bad, cuMemAllocAsync(&address, 16, stream));
    RETURNS(bad, cuMemcpyHtoD(before, host, 16));
    RETURNS(bad, cuMemGetAddressRange(&address, &size, before));
    RETURNS(bad, cuCtxGetLimit(&size, CU_LIMIT_STACK_SIZE));
    RETURNS(bad, cuEventCreate(&event, 0));
    CUstream none;
    RETURNS(bad, cuStreamCreate(&none, 0));
    CUfunction function;
    RETURNS(bad, cuKernelGetFunction(&function, add_one));
    OK(cuCtxGetDevice(&device));
    OK(cuCtxGetCurrent(&current));
    EXPECT(current == context);
    OK(cuCtxGetFlags(&flags));
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, before));
    OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, add_one, 0));
    RETURNS(bad, cuStreamDestroy(stream));
    RETURNS(bad, cuEventDestroy(event));
}

/* Another context of the same device goes on; and the primary one lives again after a reset. */
static void test_recovery(void)
{
    CUcontext other, again;
    CUdeviceptr address;
    OK(cuCtxCreate(&other, NULL, 0, 0));
    OK(cuMemAlloc(&address, 16));
    OK(cuMemsetD8(address, 1, 16));
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy(other));
    OK(cuCtxSetCurrent(context));
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&address, 16));
    OK(cuDevicePrimaryCtxReset(0));
    RETURNS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&address, 16));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    EXPECT(again == context);
    OK(cuMemAlloc(&address, 64));
    uint32_t count = 16, host[16] = {0};
    void *parameters[] = {&address, &count};
    OK(cuMemcpyHtoD(address, host, 64));
    OK(cuLaunchKernel((CUfunction)add_one, 1, 1, 1, 16, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH(host, address, 64));
    EXPECT(host[0] == 1 && host[15] == 1);
    OK(cuMemFree(address));
}

/* What the emulator sees that a GPU may not. */
static void test_caught(void)
{
    CUstream stream;
    CUdeviceptr address;
    CUcontext own;
    OK(cuCtxCreate(&own, NULL, 0, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&address, 100));
    fault(stream, address + 100); /* one past the end */
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    OK(cuCtxDestroy(own));

    OK(cuCtxCreate(&own, NULL, 0, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocAsync(&address, 100, stream));
    OK(cuMemFreeAsync(address, stream));
    fault(stream, address); /* after the free in stream order */
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    OK(cuCtxDestroy(own));

    OK(cuCtxCreate(&own, NULL, 0, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr held;
    CUstream free_stream;
    OK(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocAsync(&address, 100, stream));
    OK(cuMemAlloc(&held, 4));
    OK(cuMemsetD32(held, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitValue32(stream, held, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuMemsetD8Async(address, 1, 100, stream)); /* sound when it is queued, */
    OK(cuMemFreeAsync(address, free_stream));     /* but the memory is freed before it runs */
    OK(cuStreamSynchronize(free_stream));
    OK(cuStreamWriteValue32(free_stream, held, 1, 0));
    RETURNS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    EXPECT(detail_contains("was freed before the operation ran"));
    OK(cuCtxDestroy(own));
}

int main(void)
{
    context = start();
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&store, library, "store"));
    OK(cuLibraryGetKernel(&add_one, library, "add_one"));
    test_poisoned();
    if (on_emulator()) {
        test_recovery();
        test_caught();
    }
    return finish();
}
