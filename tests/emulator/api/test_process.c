/* The ends of processes: fork, exit with work in flight, threads that end with streams of their own. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int in_child(void (*body)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        body();
        exit(finish());
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void exit_while_busy(void)
{
    CUlibrary library;
    CUkernel spin;
    CUstream stream;
    void *flag;
    start();
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&spin, library, "spin"));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemHostAlloc(&flag, 4, 0));
    memset(flag, 0, 4);
    void *parameters[] = {&flag};
    OK(cuLaunchKernel((CUfunction)spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL)); /* never ends */
    CUdeviceptr word = (CUdeviceptr)(uintptr_t)flag;
    OK(cuStreamWaitValue32(NULL, word, 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void fork_after_init(void)
{
    start();
    CUdeviceptr address;
    OK(cuMemAlloc(&address, 16));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int count;
        CUcontext context;
        RETURNS(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&address, 16));
        RETURNS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
        RETURNS(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
        RETURNS(CUDA_ERROR_NOT_INITIALIZED, cuInit(0));
        EXPECT(detail_contains("fork"));
        exit(finish());
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(cuMemFree(address)); /* the parent goes on */
}

static void late(void)
{
    int count;
    RETURNS(CUDA_SUCCESS, cuDeviceGetCount(&count)); /* registered after the driver was loaded, so it runs before */
}

static void call_at_exit(void)
{
    start();
    atexit(late);
}

static _Atomic int done;

static void note(void *data)
{
    (void)data;
    done++;
}

static void *short_thread(void *context)
{
    OK(cuCtxSetCurrent(context));
    OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, note, NULL));
    return NULL; /* its stream goes with it, the work is done all the same */
}

static void threads_end(void)
{
    CUcontext context = start();
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, short_thread, context);
        pthread_join(thread, NULL);
    }
    OK(cuCtxSynchronize());
    EXPECT(done == 50);
}

int main(void)
{
    double begun = seconds();
    EXPECT(in_child(exit_while_busy) == 0);
    EXPECT(seconds() - begun < 20);
    EXPECT(in_child(fork_after_init) == 0);
    EXPECT(in_child(call_at_exit) == 0);
    EXPECT(in_child(threads_end) == 0);
    return finish();
}
