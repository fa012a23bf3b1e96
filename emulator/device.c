/* The emulated devices: how many, how large, and what their attributes say. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api.h"

em_device em_devices[EM_MAX_DEVICES];
int em_device_count;
pthread_mutex_t em_device_lock = PTHREAD_MUTEX_INITIALIZER;

/* What differs between compute capabilities: the CUDA programming guide's table of technical specifications. */
typedef struct capability {
    int major, minor;
    int threads, blocks;                    /* of a multiprocessor */
    int shared, shared_of_block_with_optin; /* bytes */
} capability;

static const capability capabilities[] = {
    {7, 0, 2048, 32, 98304, 98304},    {7, 5, 1024, 16, 65536, 65536},    {8, 0, 2048, 32, 167936, 166912},
    {8, 6, 1536, 16, 102400, 101376},  {8, 7, 1536, 16, 167936, 166912},  {8, 9, 1536, 24, 102400, 101376},
    {9, 0, 2048, 32, 233472, 232448},  {10, 0, 2048, 32, 233472, 232448}, {10, 3, 2048, 32, 233472, 232448},
    {11, 0, 1536, 24, 233472, 232448}, {12, 0, 1536, 24, 102400, 101376}, {12, 1, 1536, 24, 102400, 101376},
};

static const capability *find_capability(int major, int minor)
{
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++)
        if (capabilities[i].major == major && capabilities[i].minor == minor)
            return &capabilities[i];
    return NULL;
}

/* sized: k, m or g may follow */
static int read_number(const char *name, bool sized, uint64_t lowest, uint64_t highest, uint64_t *value)
{
    const char *text = getenv(name);
    if (text == NULL || text[0] == '\0')
        return CUDA_SUCCESS;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    unsigned int shift = 0;
    switch (sized ? *end : '\0') {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    default:
        break;
    }
    end += shift != 0;
    if (errno != 0 || end == text || strchr(text, '-') != NULL || *end != '\0' || number > highest >> shift ||
        number << shift < lowest)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "%s=%s: a number from %llu to %llu is wanted", name, text,
                          (unsigned long long)lowest, (unsigned long long)highest);
    *value = number << shift;
    return CUDA_SUCCESS;
}

static int read_capability(int *major, int *minor)
{
    const char *text = getenv("CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY");
    *major = 8;
    *minor = 0;
    if (text == NULL || text[0] == '\0')
        return CUDA_SUCCESS;
    char rest;
    if (sscanf(text, "%d.%d%c", major, minor, &rest) != 2 || find_capability(*major, *minor) == NULL)
        return em_explain(CUDA_ERROR_INVALID_VALUE,
                          "CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY=%s: one of 7.0, 7.5, 8.0, 8.6, 8.7, 8.9, 9.0, 10.0, "
                          "10.3, 11.0, 12.0, 12.1 is wanted",
                          text);
    return CUDA_SUCCESS;
}

static uint64_t default_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t half = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : UINT64_C(1) << 30;
    uint64_t most = UINT64_C(16) << 30;
    return (half < most ? half : most) & ~UINT64_C(0x1fffff);
}

/* exec/ reads these when it starts, where nobody could be told that one is nonsense. */
static int check_numbers_of_exec(void)
{
    uint64_t unused;
    int status = read_number("CUDA_CORE_EMULATOR_WORKERS", false, 1, 4096, &unused);
    return status == CUDA_SUCCESS ? read_number("CUDA_CORE_EMULATOR_SEED", false, 0, UINT64_MAX, &unused) : status;
}

int em_devices_configure(void)
{
    uint64_t count = 1, memory = default_memory();
    int major, minor;
    int status = read_number("CUDA_CORE_EMULATOR_DEVICES", false, 0, EM_MAX_DEVICES, &count);
    if (status == CUDA_SUCCESS)
        status = check_numbers_of_exec();
    if (status == CUDA_SUCCESS)
        status = read_number("CUDA_CORE_EMULATOR_MEMORY", true, UINT64_C(1) << 20, UINT64_C(1) << 40, &memory);
    if (status == CUDA_SUCCESS)
        status = read_capability(&major, &minor);
    if (status != CUDA_SUCCESS)
        return status;
    if (count == 0)
        return em_explain(CUDA_ERROR_NO_DEVICE,
                          "CUDA_CORE_EMULATOR_DEVICES=0: there are to be no devices; 1 to %d are "
                          "allowed for a program that uses one",
                          EM_MAX_DEVICES);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < (int)count; i++) {
        em_device *device = &em_devices[i];
        device->limits = (em_limits){
            .ordinal = i, .cc_major = major, .cc_minor = minor, .multiprocessors = cores > 0 ? (int)cores : 1};
        device->memory = memory;
        device->primary = em_context_new(device, 0, true);
        if (device->primary == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    em_device_count = (int)count;
    return CUDA_SUCCESS;
}

em_device *em_device_get(CUdevice ordinal)
{
    return ordinal >= 0 && ordinal < em_device_count ? &em_devices[ordinal] : NULL;
}

bool em_device_charge(em_device *device, uint64_t bytes)
{
    uint64_t used = atomic_load_explicit(&device->memory_used, memory_order_relaxed);
    do {
        if (bytes > device->memory - used)
            return false;
    } while (!atomic_compare_exchange_weak(&device->memory_used, &used, used + bytes));
    return true;
}

void em_device_refund(em_device *device, uint64_t bytes)
{
    atomic_fetch_sub(&device->memory_used, bytes);
}

static int cache_bytes(void)
{
    long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (size <= 0)
        size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return size > 0 && size < INT32_MAX ? (int)size : 1 << 20;
}

/* Limits of a launch, and what the hardware tables say. */
static bool size_attribute(const em_device *device, CUdevice_attribute attribute, int *value)
{
    const capability *table = find_capability(device->limits.cc_major, device->limits.cc_minor);
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        *value = 1024;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        *value = 64;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        *value = INT32_MAX;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        *value = 65535;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        *value = 49152;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = table->shared_of_block_with_optin;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *value = table->shared;
        return true;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
        *value = device->limits.cc_major >= 8 ? 1024 : 0;
        return true;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
        *value = 65536;
        return true;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        *value = 32;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
        *value = INT32_MAX;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = table->threads;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        *value = table->blocks;
        return true;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = device->limits.multiprocessors;
        return true;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = cache_bytes();
        return true;
    default:
        return false;
    }
}

/* Who it is, and what it can do: 1 only for what works. */
static bool feature_attribute(const em_device *device, CUdevice_attribute attribute, int *value)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = device->limits.cc_major;
        return true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = device->limits.cc_minor;
        return true;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = device->limits.ordinal + 1;
        return true;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:
        *value = -1;
        return true;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: /* kHz, of a nominal clock of one tick a nanosecond */
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        *value = 1000000;
        return true;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        *value = 64;
        return true;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
        *value = 512;
        return true;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
        *value = 32;
        return true;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
        *value = 2;
        return true;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        *value = 1;
        return true;
    default:
        return false;
    }
}

int em_device_attribute(const em_device *device, CUdevice_attribute attribute, int *value)
{
    if (attribute < CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!size_attribute(device, attribute, value) && !feature_attribute(device, attribute, value))
        *value = 0;
    return CUDA_SUCCESS;
}
