/* Events: what they capture, when they are done, and the errors of their calls. */
#include "check.h"

#include <stdatomic.h>
#include <unistd.h>

static CUkernel spin;
static _Atomic uint32_t *flag;

static void hold(CUstream stream)
{
    *flag = 0;
    void *parameters[] = {&flag};
    OK(cuLaunchKernel((CUfunction)spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static void test_life(void)
{
    CUevent event;
    OK(cuEventCreate(&event, 0));
    OK(cuEventQuery(event)); /* not recorded: nothing to wait for */
    OK(cuEventSynchronize(event));
    OK(cuEventDestroy(event));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&event, 8));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&event, CU_EVENT_INTERPROCESS));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(NULL));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(NULL));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(NULL, NULL));
}

static void test_time(CUstream stream)
{
    CUevent start_event, end, untimed;
    float milliseconds = -1;
    OK(cuEventCreate(&start_event, 0));
    OK(cuEventCreate(&end, 0));
    OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start_event, end));
    OK(cuEventRecord(start_event, stream));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start_event, end));
    OK(cuEventRecord(untimed, stream));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start_event, untimed));
    hold(stream);
    OK(cuEventRecord(end, stream));
    RETURNS(CUDA_ERROR_NOT_READY, cuEventQuery(end));
    RETURNS(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&milliseconds, start_event, end));
    usleep(5000);
    *flag = 1;
    OK(cuEventSynchronize(end));
    OK(cuEventQuery(end));
    OK(cuEventElapsedTime(&milliseconds, start_event, end));
    EXPECT(milliseconds >= 4.5f && milliseconds < 20000.0f);
    OK(cuEventElapsedTime(&milliseconds, end, start_event));
    EXPECT(milliseconds <= -4.5f);
    RETURNS(CUDA_ERROR_ILLEGAL_STATE, cuEventRecordWithFlags(end, stream, CU_EVENT_RECORD_EXTERNAL));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(end, stream, 2));
    OK(cuEventRecordWithFlags(end, stream, 0));
    OK(cuEventDestroy(start_event));
    OK(cuEventDestroy(end));
    OK(cuEventDestroy(untimed));
}

/* Recording again gives the event another meaning; destroying it while pending is legal. */
static void test_recording_again(CUstream stream)
{
    CUstream other;
    CUevent event;
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    hold(stream);
    OK(cuEventRecord(event, stream));
    RETURNS(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    OK(cuEventRecord(event, other));
    OK(cuEventSynchronize(event));
    OK(cuEventRecord(event, stream));
    OK(cuEventDestroy(event));
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    OK(cuStreamDestroy(other));
}

static void test_other_context(CUstream stream)
{
    CUcontext other;
    CUevent here, there;
    float milliseconds;
    OK(cuEventCreate(&here, 0));
    OK(cuCtxCreate(&other, NULL, 0, 0));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(here, NULL)); /* the default stream is of the other context */
    OK(cuEventRecord(here, stream));
    OK(cuStreamWaitEvent(NULL, here, 0)); /* waiting across contexts is fine */
    OK(cuEventCreate(&there, 0));
    OK(cuEventRecord(there, NULL));
    OK(cuEventSynchronize(there));
    OK(cuEventSynchronize(here));
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, here, there));
    OK(cuCtxDestroy(other));
    OK(cuEventDestroy(here));
}

int main(void)
{
    start();
    CUlibrary library;
    CUstream stream;
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&spin, library, "spin"));
    OK(cuMemHostAlloc((void **)&flag, 4, 0));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    test_life();
    test_time(stream);
    test_recording_again(stream);
    test_other_context(stream);
    OK(cuStreamDestroy(stream));
    OK(cuMemFreeHost((void *)flag));
    return finish();
}
