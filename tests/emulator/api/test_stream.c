/* Streams: asynchronous to the host, in order within, and ordered with the legacy default stream as CUDA defines. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static CUlibrary library;
static CUkernel spin;
static _Atomic uint32_t *flag; /* pinned: the spinning kernel waits for it */

static void hold(CUstream stream)
{
    *flag = 0;
    void *parameters[] = {&flag};
    OK(cuLaunchKernel((CUfunction)spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static void let_go(void)
{
    *flag = 1;
}

static void note(void *data)
{
    atomic_fetch_add((_Atomic int *)data, 1);
}

static void test_asynchronous(void)
{
    CUstream stream;
    static _Atomic int noted;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamQuery(stream));
    hold(stream);
    OK(cuLaunchHostFunc(stream, note, &noted));
    RETURNS(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    usleep(2000);
    EXPECT(noted == 0);
    let_go();
    OK(cuStreamSynchronize(stream));
    EXPECT(noted == 1);
    OK(cuStreamQuery(stream));
    OK(cuStreamDestroy(stream));
}

static void test_destroy_with_work(void)
{
    CUstream stream;
    static _Atomic int noted;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    hold(stream);
    OK(cuLaunchHostFunc(stream, note, &noted));
    OK(cuStreamDestroy(stream)); /* returns at once; the work goes on */
    EXPECT(noted == 0);
    let_go();
    OK(cuCtxSynchronize());
    EXPECT(noted == 1);
    if (on_emulator()) {
        RETURNS(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(stream));
        RETURNS(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(stream));
        EXPECT(detail_contains("destroyed"));
    }
}

/* Legacy work waits for blocking streams, and they for it; non-blocking streams take no part. */
static void test_legacy_order(void)
{
    CUstream blocking, apart;
    static _Atomic int in_legacy, in_blocking, in_apart;
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    hold(blocking);
    OK(cuLaunchHostFunc(CU_STREAM_LEGACY, note, &in_legacy));
    OK(cuLaunchHostFunc(blocking, note, &in_blocking));
    OK(cuLaunchHostFunc(apart, note, &in_apart));
    OK(cuStreamSynchronize(apart));
    EXPECT(in_apart == 1);
    EXPECT(in_legacy == 0 && in_blocking == 0);
    RETURNS(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL));
    let_go();
    OK(cuStreamSynchronize(NULL)); /* waits for the blocking streams too */
    EXPECT(in_legacy == 1);
    OK(cuStreamSynchronize(blocking));
    EXPECT(in_blocking == 1);

    hold(NULL);
    OK(cuLaunchHostFunc(blocking, note, &in_blocking));
    OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, note, &in_blocking));
    OK(cuLaunchHostFunc(apart, note, &in_apart));
    OK(cuStreamSynchronize(apart));
    EXPECT(in_apart == 2 && in_blocking == 1);
    let_go();
    OK(cuStreamSynchronize(blocking));
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    EXPECT(in_blocking == 3);
    OK(cuStreamDestroy(blocking));
    OK(cuStreamDestroy(apart));
}

static void *query_own_stream(void *argument)
{
    OK(cuCtxSetCurrent(argument));
    OK(cuStreamQuery(CU_STREAM_PER_THREAD)); /* not the one of the other thread, which is held */
    unsigned long long id = 0;
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &id));
    return (void *)(uintptr_t)id;
}

static void test_per_thread(CUcontext context)
{
    hold(CU_STREAM_PER_THREAD);
    RETURNS(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_PER_THREAD));
    pthread_t thread;
    void *other = NULL;
    pthread_create(&thread, NULL, query_own_stream, context);
    pthread_join(thread, &other);
    unsigned long long id = 0;
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &id));
    EXPECT((uintptr_t)other != id);
    let_go();
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

static void test_wait_event(void)
{
    CUstream first, second;
    CUevent event;
    static _Atomic int noted;
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamWaitEvent(second, event, 0)); /* never recorded: nothing to wait for */
    hold(first);
    OK(cuEventRecord(event, first));
    OK(cuStreamWaitEvent(second, event, 0));
    OK(cuEventDestroy(event)); /* what was captured goes on counting */
    OK(cuLaunchHostFunc(second, note, &noted));
    usleep(2000);
    EXPECT(noted == 0);
    let_go();
    OK(cuStreamSynchronize(second));
    EXPECT(noted == 1);
    OK(cuStreamDestroy(first));
    OK(cuStreamDestroy(second));
}

static void test_whole_context(CUcontext context)
{
    CUstream streams[3], later;
    CUevent event;
    static _Atomic int noted;
    OK(cuEventCreate(&event, 0));
    for (int i = 0; i < 3; i++)
        OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    hold(streams[1]);
    OK(cuCtxRecordEvent(context, event));
    RETURNS(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    OK(cuCtxWaitEvent(context, event));
    OK(cuStreamCreate(&later, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(streams[0], note, &noted));
    OK(cuLaunchHostFunc(later, note, &noted));
    usleep(2000);
    EXPECT(noted == 0);
    let_go();
    OK(cuCtxSynchronize());
    EXPECT(noted == 2);
    OK(cuEventQuery(event));
    OK(cuEventDestroy(event));
    for (int i = 0; i < 3; i++)
        OK(cuStreamDestroy(streams[i]));
    OK(cuStreamDestroy(later));
}

static void test_queries(CUcontext context)
{
    CUstream stream;
    unsigned int flags = 9;
    int priority = 9;
    CUcontext owner = NULL;
    CUdevice device = -1;
    unsigned long long id, legacy, also_legacy;
    OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
    OK(cuStreamGetPriority(stream, &priority));
    EXPECT(priority == -5);
    OK(cuStreamGetFlags(stream, &flags));
    EXPECT(flags == CU_STREAM_NON_BLOCKING);
    OK(cuStreamGetId(stream, &id));
    OK(cuStreamGetId(NULL, &legacy));
    OK(cuStreamGetId(CU_STREAM_LEGACY, &also_legacy));
    EXPECT(legacy == also_legacy && id != legacy);
    OK(cuCtxSetCurrent(NULL)); /* a handle brings its context along */
    OK(cuStreamGetCtx(stream, &owner));
    EXPECT(owner == context);
    OK(cuStreamGetDevice(stream, &device));
    EXPECT(device == 0);
    OK(cuStreamQuery(stream));
    RETURNS(CUDA_ERROR_INVALID_CONTEXT, cuStreamQuery(NULL));
    OK(cuStreamDestroy(stream));
    OK(cuCtxSetCurrent(context));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&stream, 2));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(NULL, 0));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(NULL));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(CU_STREAM_PER_THREAD));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(NULL, NULL, 0));
    CUstreamCaptureStatus capture = (CUstreamCaptureStatus)9;
    OK(cuStreamIsCapturing(NULL, &capture));
    EXPECT(capture == CU_STREAM_CAPTURE_STATUS_NONE);
}

static CUresult inside[3];

static void call_inside(void *stream)
{
    CUdeviceptr address;
    int count;
    inside[0] = cuMemAlloc(&address, 16);
    inside[1] = cuDeviceGetCount(&count);
    inside[2] = cuStreamQuery(*(CUstream *)stream);
}

static void answer(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    *(CUresult *)data = status;
}

static void test_callbacks(void)
{
    CUstream stream;
    CUresult status = CUDA_ERROR_UNKNOWN;
    OK(cuStreamCreate(&stream, 0));
    OK(cuLaunchHostFunc(stream, call_inside, &stream));
    OK(cuStreamAddCallback(stream, answer, &status, 0));
    OK(cuStreamSynchronize(stream));
    EXPECT(status == CUDA_SUCCESS);
    EXPECT(inside[0] == CUDA_ERROR_NOT_PERMITTED);
    EXPECT(inside[1] == CUDA_ERROR_NOT_PERMITTED);
    EXPECT(inside[2] == CUDA_ERROR_NOT_READY);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(stream, NULL, NULL));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(stream, NULL, NULL, 0));
    OK(cuStreamDestroy(stream));
}

static void test_words(void)
{
    CUstream waiter, writer;
    CUdeviceptr word;
    OK(cuStreamCreate(&waiter, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&word, 16));
    OK(cuMemsetD8(word, 0, 16));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitValue32(waiter, word, 5, CU_STREAM_WAIT_VALUE_GEQ));
    OK(cuStreamWriteValue64(waiter, word + 8, 77, 0));
    OK(cuStreamWriteValue32(writer, word, 4, 0));
    OK(cuStreamSynchronize(writer));
    RETURNS(CUDA_ERROR_NOT_READY, cuStreamQuery(waiter));
    OK(cuStreamWriteValue32(writer, word, 6, 0));
    OK(cuStreamSynchronize(waiter));
    uint64_t value = 0;
    OK(cuMemcpyDtoH(&value, word + 8, 8));
    EXPECT(value == 77);
    OK(cuStreamWaitValue64(waiter, word + 8, 8, CU_STREAM_WAIT_VALUE_AND));
    OK(cuStreamWaitValue32(waiter, word, 6, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWaitValue32(waiter, word, 1, CU_STREAM_WAIT_VALUE_NOR));
    OK(cuStreamSynchronize(waiter));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(waiter, word + 2, 1, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(waiter, word, 1, 9));
    OK(cuMemFree(word));
    OK(cuStreamDestroy(waiter));
    OK(cuStreamDestroy(writer));
}

/* More work than a queue holds: the host waits, and all of it is done, in order. */
static void test_long_queue(void)
{
    enum { MANY = 5000 };
    CUstream stream;
    static _Atomic int noted;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < MANY; i++)
        OK(cuLaunchHostFunc(stream, note, &noted));
    OK(cuStreamSynchronize(stream));
    EXPECT(noted == MANY);
    OK(cuStreamDestroy(stream));
}

int main(void)
{
    CUcontext context = start();
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&spin, library, "spin"));
    OK(cuMemHostAlloc((void **)&flag, 4, 0));
    test_asynchronous();
    test_destroy_with_work();
    test_legacy_order();
    test_per_thread(context);
    test_wait_event();
    test_whole_context(context);
    test_queries(context);
    test_callbacks();
    test_words();
    test_long_queue();
    OK(cuMemFreeHost((void *)flag));
    return finish();
}
