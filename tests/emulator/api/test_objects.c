/* The count of live objects, and the trace. */
#include "../../../emulator/cuda_core_emulator.h"
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

static CUresult (*live_objects)(cuEmulatorObjects *, size_t);

static cuEmulatorObjects count(void)
{
    cuEmulatorObjects objects;
    OK(live_objects(&objects, sizeof objects));
    return objects;
}

static void test_counts(void)
{
    static const cuEmulatorObjects none;
    CUstream stream;
    CUevent event;
    CUmemoryPool pool;
    CUlibrary library;
    CUmodule module;
    CUdeviceptr device, of_pool, managed;
    void *pinned;
    char *host = aligned_alloc(4096, 4096);
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    cuEmulatorObjects now = count();
    EXPECT(memcmp(&now, &none, sizeof now) == 0);
    start();
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuModuleLoadData(&module, kernels_ptx));
    OK(cuMemAlloc(&device, 16));
    OK(cuMemAllocAsync(&of_pool, 16, CU_STREAM_PER_THREAD));
    OK(cuMemAllocManaged(&managed, 16, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemHostAlloc(&pinned, 16, 0));
    OK(cuMemHostRegister(host, 4096, 0));
    now = count();
    const cuEmulatorObjects all = {1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 0, 0, 0};
    EXPECT(memcmp(&now, &all, sizeof now) == 0);
    OK(cuStreamDestroy(stream));
    OK(cuEventDestroy(event));
    OK(cuMemPoolDestroy(pool));
    OK(cuLibraryUnload(library));
    OK(cuModuleUnload(module));
    OK(cuMemFree(device));
    OK(cuMemFree(of_pool));
    OK(cuMemFree(managed));
    OK(cuMemFreeHost(pinned));
    OK(cuMemHostUnregister(host));
    OK(cuDevicePrimaryCtxRelease(0));
    now = count();
    EXPECT(memcmp(&now, &none, sizeof now) == 0);
    /* A context's end frees what it owns. */
    CUcontext context;
    OK(cuCtxCreate(&context, NULL, 0, 0));
    OK(cuStreamCreate(&stream, 0));
    OK(cuModuleLoadData(&module, kernels_ptx));
    OK(cuMemAlloc(&device, 16));
    OK(cuMemHostRegister(host, 4096, 0));
    OK(cuCtxDestroy(context));
    now = count();
    EXPECT(memcmp(&now, &none, sizeof now) == 0);
    unsigned char part[12];
    memset(part, 9, sizeof part);
    OK(live_objects((cuEmulatorObjects *)(void *)part, 8)); /* a program that knows fewer fields */
    EXPECT(part[0] == 0 && part[8] == 9);
    free(host);
}

static bool trace_contains(const char *path, const char *text)
{
    char line[2048];
    bool found = false;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = strstr(line, text) != NULL;
    fclose(file);
    return found;
}

/* The variable is read when the library is loaded, so the traced program is another process. */
static void test_trace(const char *program)
{
    char path[] = "/tmp/emulator-trace-XXXXXX";
    close(mkstemp(path));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("CUDA_CORE_EMULATOR_TRACE", path, 1);
        execl(program, program, "traced", (char *)NULL);
        _exit(127);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT(trace_contains(path, "cuInit(0) = 0 CUDA_SUCCESS"));
    EXPECT(trace_contains(path, "1024) = 0 CUDA_SUCCESS"));
    EXPECT(trace_contains(path, "cuMemFree_v2(0x10) = 1 CUDA_ERROR_INVALID_VALUE  # 0x10 is not an allocation"));
    EXPECT(trace_contains(path, "cuCtxSynchronize("));
    unlink(path);
}

static void traced(void)
{
    CUdeviceptr address;
    start();
    OK(cuMemAlloc(&address, 1024));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFree(0x10));
    OK(cuCtxSynchronize());
}

int main(int count_of_arguments, char **arguments)
{
    if (!on_emulator())
        return finish();
    if (count_of_arguments > 1) {
        traced();
        return finish();
    }
    *(void **)&live_objects = emulator_call("cuEmulatorLiveObjects");
    test_trace(arguments[0]);
    test_counts();
    return finish();
}
