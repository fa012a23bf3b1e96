#include "fake_driver.h"

#include <stdlib.h>
#include <string.h>

fake_state fake;

const char fake_ptx[] = "//\n.version 9.0\n.target sm_80\n.address_size 64\n"
                        ".visible .entry add(\n\t.param .u64 .ptr .align 1 add_param_0,\n\t.param .u32 add_param_1,\n"
                        "\t.param .f32 add_param_2\n)\n{\n\tret;\n}\n";

static _Thread_local CUcontext current;
static void *made[64]; /* what stands behind the live objects */
static char contexts[FAKE_DEVICES], default_pools[FAKE_DEVICES];

void fake_reset(void)
{
    fake = (fake_state){
        .fail_code = CUDA_ERROR_UNKNOWN,
        .events_done = true,
        .version = 13000,
        .kernel_max_threads = 640,
        .kernel_static_shared = 1024,
        .dynamic_shared = 49152 - 1024,
    };
}

int fake_live(void)
{
    return fake.live_streams + fake.live_events + fake.live_pools + fake.live_buffers + fake.live_libraries;
}

/* Not malloc: the test that lets core's allocations fail must not hit the driver's. */
static void *make(size_t size)
{
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        if (!made[i])
            return made[i] = aligned_alloc(16, (size + 15) / 16 * 16);
    abort();
}

static void unmake(void *object)
{
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        if (made[i] == object) {
            made[i] = NULL;
            free(object);
            return;
        }
    abort(); /* never made, or given back before */
}

void fake_unmake_all(void)
{
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        free(made[i]);
        made[i] = NULL;
    }
    fake.live_streams = fake.live_events = fake.live_pools = fake.live_buffers = fake.live_libraries = 0;
}

/* Counts a call and says whether it is the one to fail. */
static bool step(const char *name)
{
    fake.calls++;
    fake.last_call = name;
    bool fails = fake.calls == fake.fail_call || (fake.fail_name && strcmp(fake.fail_name, name) == 0);
    if (fails)
        fake.failed_call = name;
    return fails;
}

#define STEP                                                                                                           \
    if (step(__func__ + strlen("fake_")))                                                                              \
    return fake.fail_code

/* Giving back never fails here, so that what stays alive was leaked. */
#define COUNT step(__func__ + strlen("fake_"))

static CUresult fake_cuGetErrorName(CUresult code, const char **name)
{
    *name = code == CUDA_ERROR_UNKNOWN ? "CUDA_ERROR_UNKNOWN" : NULL;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_cuGetErrorString(CUresult code, const char **text)
{
    (void)code;
    *text = "made to fail";
    return CUDA_SUCCESS;
}

static CUresult fake_cuInit(unsigned flags)
{
    STEP;
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult fake_cuDriverGetVersion(int *version)
{
    *version = fake.version;
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetCount(int *count)
{
    STEP;
    *count = FAKE_DEVICES;
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGet(CUdevice *device, int ordinal)
{
    STEP;
    *device = ordinal;
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetName(char *name, int length, CUdevice device)
{
    STEP;
    (void)length;
    (void)device;
    strcpy(name, "fake");
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    STEP;
    (void)device;
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        *value = 1024;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        *value = 64;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        *value = 2147483647;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        *value = 65535;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = 101376;
        break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        *value = 1;
        break;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
        *value = fake.pageable_access;
        break;
    default:
        *value = 0;
    }
    return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    STEP;
    *context = (CUcontext)(void *)&contexts[device];
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetCurrent(CUcontext *context)
{
    STEP;
    *context = current;
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxSetCurrent(CUcontext context)
{
    STEP;
    current = context;
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxSynchronize(void)
{
    STEP;
    return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult fake_cuCtxGetDevice(CUdevice *device)
{
    STEP;
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = (CUdevice)((char *)current - contexts);
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    STEP;
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
}

static void note(const char *name, CUstream stream, CUevent event)
{
    if (fake.step_count < (int)(sizeof fake.steps / sizeof fake.steps[0]))
        fake.steps[fake.step_count++] = (struct fake_step){name, stream, event};
}

/* ---- streams and events: nothing is ever waited for, but that a context is current is checked ---- */

static CUresult fake_cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    STEP;
    (void)flags;
    (void)priority;
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    *stream = make(1);
    fake.live_streams++;
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamDestroy(CUstream stream)
{
    COUNT;
    unmake(stream);
    fake.live_streams--;
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamSynchronize(CUstream stream)
{
    STEP;
    note("synchronize", stream, NULL);
    return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult fake_cuStreamQuery(CUstream stream)
{
    STEP;
    (void)stream;
    return fake.events_done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult fake_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    STEP;
    (void)flags;
    note("wait", stream, event);
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventCreate(CUevent *event, unsigned flags)
{
    STEP;
    (void)flags;
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    *event = make(1);
    fake.live_events++;
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventDestroy(CUevent event)
{
    COUNT;
    unmake(event);
    fake.live_events--;
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventRecord(CUevent event, CUstream stream)
{
    STEP;
    note("record", stream, event);
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventSynchronize(CUevent event)
{
    STEP;
    (void)event;
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventQuery(CUevent event)
{
    STEP;
    (void)event;
    return fake.events_done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* ---- memory ---- */

static CUresult fake_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    STEP;
    *pool = (CUmemoryPool)(void *)&default_pools[device];
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    STEP;
    (void)properties;
    *pool = make(1);
    fake.live_pools++;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemPoolDestroy(CUmemoryPool pool)
{
    COUNT;
    unmake(pool);
    fake.live_pools--;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    STEP;
    (void)pool;
    (void)attribute;
    *(cuuint64_t *)value = 0;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    STEP;
    (void)pool;
    (void)attribute;
    return *(cuuint64_t *)value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    STEP;
    (void)pool;
    return access && count == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult allocate(CUdeviceptr *pointer, size_t size)
{
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (size > 1 << 20)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = (CUdeviceptr)(uintptr_t)make(size);
    fake.live_buffers++;
    return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr pointer)
{
    unmake((void *)(uintptr_t)pointer);
    fake.live_buffers--;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream)
{
    STEP;
    (void)pool;
    (void)stream;
    return allocate(pointer, size);
}

static CUresult fake_cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    STEP;
    fake.last_free_stream = stream;
    note("free", stream, NULL);
    return release(pointer);
}

static CUresult fake_cuMemAlloc(CUdeviceptr *pointer, size_t size)
{
    STEP;
    return allocate(pointer, size);
}

static CUresult fake_cuMemFree(CUdeviceptr pointer)
{
    COUNT;
    return release(pointer);
}

static CUresult fake_cuMemHostAlloc(void **pointer, size_t size, unsigned flags)
{
    CUdeviceptr device_pointer = 0;
    STEP;
    (void)flags;
    CUresult code = allocate(&device_pointer, size);
    *pointer = (void *)(uintptr_t)device_pointer;
    return code;
}

static CUresult fake_cuMemFreeHost(void *pointer)
{
    COUNT;
    return release((CUdeviceptr)(uintptr_t)pointer);
}

static CUresult fake_cuMemGetInfo(size_t *available, size_t *total)
{
    STEP;
    *available = 1000;
    *total = 2000;
    return CUDA_SUCCESS;
}

static CUresult fake_cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                            CUdeviceptr pointer)
{
    STEP;
    (void)pointer;
    for (unsigned i = 0; i < count; i++)
        if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
            *(unsigned *)values[i] = (unsigned)fake.unified_host_type;
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)values[i] = 1;
        else
            *(unsigned char *)values[i] = 0;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, size_t size, CUstream stream)
{
    STEP;
    (void)stream;
    memcpy((void *)(uintptr_t)destination, (const void *)(uintptr_t)source, size);
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemsetD8Async(CUdeviceptr destination, unsigned char value, size_t count, CUstream stream)
{
    STEP;
    (void)stream;
    memset((void *)(uintptr_t)destination, value, count);
    return CUDA_SUCCESS;
}

/* ---- code ---- */

static CUresult fake_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values,
                                       unsigned count, CUlibraryOption *library_options, void **library_values,
                                       unsigned library_count)
{
    (void)library_options;
    (void)library_values;
    (void)library_count;
    bool fails = step("cuLibraryLoadData"), nonsense = strstr(code, "nonsense") != NULL;
    for (unsigned i = 0; i < count && (fails || nonsense); i++)
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            strcpy(values[i], "line 7: what is this?");
    if (fails || (nonsense && !fake.load_lazily))
        return nonsense ? CUDA_ERROR_INVALID_PTX : fake.fail_code;
    *library = make(1);
    fake.live_libraries++;
    return CUDA_SUCCESS;
}

static CUresult fake_cuLibraryUnload(CUlibrary library)
{
    COUNT;
    unmake(library);
    fake.live_libraries--;
    return CUDA_SUCCESS;
}

static CUresult fake_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    STEP;
    if (strcmp(name, "nonsense") == 0)
        return CUDA_ERROR_INVALID_PTX;
    if (strcmp(name, "add") != 0)
        return CUDA_ERROR_NOT_FOUND;
    *kernel = (CUkernel)(void *)library;
    return CUDA_SUCCESS;
}

static CUresult fake_cuLibraryGetKernelCount(unsigned *count, CUlibrary library)
{
    STEP;
    (void)library;
    *count = 1;
    return CUDA_SUCCESS;
}

static CUresult fake_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library)
{
    STEP;
    if (count != 1)
        return CUDA_ERROR_INVALID_VALUE;
    kernels[0] = (CUkernel)(void *)library;
    return CUDA_SUCCESS;
}

static CUresult fake_cuKernelGetName(const char **name, CUkernel kernel)
{
    STEP;
    (void)kernel;
    *name = "add";
    return CUDA_SUCCESS;
}

static CUresult fake_cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
    static const size_t offsets[] = {0, 8, 12}, sizes[] = {8, 4, 4};
    STEP;
    (void)kernel;
    if (!current) /* as NVIDIA's driver, which loads the kernel to answer */
        return CUDA_ERROR_INVALID_CONTEXT;
    if (index >= 3)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = offsets[index];
    *size = sizes[index];
    return CUDA_SUCCESS;
}

static CUresult fake_cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    STEP;
    (void)kernel;
    (void)device;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
        *value = fake.kernel_max_threads;
    else if (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
        *value = fake.kernel_static_shared;
    else if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        *value = fake.dynamic_shared;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult fake_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    STEP;
    (void)kernel;
    (void)device;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        fake.dynamic_shared = value;
    return CUDA_SUCCESS;
}

static CUresult fake_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                    CUstream stream, void **slots, void **extra)
{
    STEP;
    (void)function;
    (void)grid_x;
    (void)grid_y;
    (void)grid_z;
    (void)block_x;
    (void)block_y;
    (void)block_z;
    (void)stream;
    (void)slots;
    fake.last_shared = shared;
    return extra ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult fake_cuEmulatorErrorDetail(char *buffer, size_t size)
{
    strncpy(buffer, "the account of the emulator", size);
    return CUDA_SUCCESS;
}

/* What no test calls, but the table needs. */
static CUresult fake_unused(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

typedef struct fake_entry {
    const char *name;
    void (*function)(void);
} fake_entry;

#define ENTRY(name)                                                                                                    \
    {                                                                                                                  \
#name, (void (*)(void))fake_##name                                                                             \
    }

static const fake_entry entries[] = {
    ENTRY(cuInit),
    ENTRY(cuDriverGetVersion),
    ENTRY(cuGetErrorName),
    ENTRY(cuGetErrorString),
    ENTRY(cuDeviceGetCount),
    ENTRY(cuDeviceGet),
    ENTRY(cuDeviceGetName),
    ENTRY(cuDeviceGetAttribute),
    ENTRY(cuDevicePrimaryCtxRetain),
    ENTRY(cuCtxGetCurrent),
    ENTRY(cuCtxSetCurrent),
    ENTRY(cuCtxGetDevice),
    ENTRY(cuCtxSynchronize),
    ENTRY(cuCtxGetStreamPriorityRange),
    ENTRY(cuStreamCreateWithPriority),
    ENTRY(cuStreamSynchronize),
    ENTRY(cuStreamQuery),
    ENTRY(cuStreamWaitEvent),
    ENTRY(cuEventCreate),
    ENTRY(cuEventRecord),
    ENTRY(cuEventSynchronize),
    ENTRY(cuEventQuery),
    ENTRY(cuDeviceGetDefaultMemPool),
    ENTRY(cuMemPoolCreate),
    ENTRY(cuMemPoolDestroy),
    ENTRY(cuMemPoolGetAttribute),
    ENTRY(cuMemPoolSetAttribute),
    ENTRY(cuMemPoolSetAccess),
    ENTRY(cuMemAllocFromPoolAsync),
    ENTRY(cuMemFreeAsync),
    ENTRY(cuMemHostAlloc),
    ENTRY(cuMemFreeHost),
    ENTRY(cuPointerGetAttributes),
    ENTRY(cuMemcpyAsync),
    ENTRY(cuMemsetD8Async),
    ENTRY(cuLibraryLoadData),
    ENTRY(cuLibraryUnload),
    ENTRY(cuLibraryGetKernel),
    ENTRY(cuLibraryGetKernelCount),
    ENTRY(cuLibraryEnumerateKernels),
    ENTRY(cuKernelGetName),
    ENTRY(cuKernelGetParamInfo),
    ENTRY(cuKernelGetAttribute),
    ENTRY(cuKernelSetAttribute),
    ENTRY(cuLaunchKernel),
    ENTRY(cuStreamDestroy),
    ENTRY(cuEventDestroy),
    ENTRY(cuMemAlloc),
    ENTRY(cuMemFree),
    ENTRY(cuMemGetInfo),
};

CUresult fake_resolve(void *user, const char *name, int version, void **address)
{
    void (*found)(void) = (void (*)(void))fake_unused;
    (void)user;
    *address = NULL;
    if (fake.absent && strcmp(name, fake.absent) == 0)
        return CUDA_SUCCESS;
    if (fake.unresolved && strcmp(name, fake.unresolved) == 0)
        return CUDA_ERROR_NOT_PERMITTED;
    if (version == 0)
        found = fake.emulator_detail ? (void (*)(void))fake_cuEmulatorErrorDetail : NULL;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (strcmp(entries[i].name, name) == 0)
            found = entries[i].function;
    memcpy(address, &found, sizeof *address);
    return CUDA_SUCCESS;
}

int fake_open(cc_error *error)
{
    return cc__driver_open_with(fake_resolve, NULL, CC_DRIVER_NATIVE, "fake", error);
}
