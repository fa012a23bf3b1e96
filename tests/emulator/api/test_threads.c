/* Many threads at once on everything: each checks its own results, and a sanitizer checks the rest. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 6, ROUNDS = 60, COUNT = 128 };

static CUcontext context;
static CUlibrary shared;
static CUkernel add_one;
static CUevent common;
static _Atomic int notes;

static void note(void *data)
{
    (void)data;
    notes++;
}

static void work(CUstream stream, unsigned int round)
{
    CUdeviceptr data, copy;
    uint32_t host[COUNT], count = COUNT;
    void *parameters[] = {&data, &count};
    CUevent event;
    for (uint32_t i = 0; i < COUNT; i++)
        host[i] = i + round;
    OK(cuEventCreate(&event, round % 2 == 0 ? 0 : CU_EVENT_DISABLE_TIMING));
    OK(cuMemAllocAsync(&data, sizeof host, stream));
    OK(cuMemAlloc(&copy, sizeof host));
    OK(cuMemcpyHtoDAsync(data, host, sizeof host, stream));
    OK(cuLaunchKernel((CUfunction)add_one, 1, 1, 1, COUNT, 1, 1, 0, stream, parameters, NULL));
    OK(cuEventRecord(event, stream));
    OK(cuEventRecord(common, stream));
    OK(cuStreamWaitEvent(NULL, event, 0));
    OK(cuMemcpyDtoDAsync(copy, data, sizeof host, NULL)); /* in the legacy stream, which all others wait for */
    OK(cuStreamWaitEvent(stream, common, 0));
    OK(cuStreamSynchronize(NULL));
    OK(cuMemcpyDtoH(host, copy, sizeof host));
    for (uint32_t i = 0; i < COUNT; i++)
        EXPECT(host[i] == i + round + 1);
    OK(cuLaunchHostFunc(stream, note, NULL));
    OK(cuMemFreeAsync(data, stream));
    OK(cuMemFree(copy));
    cuEventQuery(common);
    OK(cuEventDestroy(event));
}

static void *thread_main(void *argument)
{
    unsigned int number = *(unsigned int *)argument;
    CUstream stream;
    OK(cuCtxSetCurrent(context));
    for (unsigned int round = 0; round < ROUNDS; round++) {
        if (round % 3 == 2) {
            work(CU_STREAM_PER_THREAD, round);
            continue;
        }
        OK(cuStreamCreate(&stream, (number + round) % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
        work(stream, round);
        OK(cuStreamDestroy(stream));
        if (round % 10 == 0) {
            CUlibrary library;
            CUkernel kernel;
            CUfunction function;
            OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
            OK(cuLibraryGetKernel(&kernel, library, "empty"));
            OK(cuKernelGetFunction(&function, kernel));
            OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_PER_THREAD, NULL, NULL));
            OK(cuLibraryUnload(library)); /* the launch in flight keeps its code */
            void *pinned;
            OK(cuMemHostAlloc(&pinned, 4096, 0));
            OK(cuMemFreeHost(pinned));
        }
    }
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return NULL;
}

int main(void)
{
    context = start();
    OK(cuLibraryLoadData(&shared, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&add_one, shared, "add_one"));
    OK(cuEventCreate(&common, 0));
    pthread_t threads[THREADS];
    unsigned int numbers[THREADS];
    for (unsigned int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, thread_main, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(cuCtxSynchronize());
    EXPECT(notes == THREADS * ROUNDS);
    OK(cuEventDestroy(common));
    OK(cuDevicePrimaryCtxRelease(0));
    return finish();
}
