/* Allocations of every kind, what is known of their pointers, and wrong frees. */
#include "check.h"

static CUstream stream;

static void test_alloc(void)
{
    CUdeviceptr address, base;
    size_t size, pitch;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&address, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 16));
    RETURNS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&address, (size_t)1 << 60));
    static const size_t sizes[] = {1, 255, 256, 257, 4096, 100000, 1 << 20, 5 << 20};
    CUdeviceptr all[8];
    for (int i = 0; i < 8; i++) {
        OK(cuMemAlloc(&all[i], sizes[i]));
        EXPECT(all[i] % 256 == 0);
        OK(cuMemGetAddressRange(&base, &size, all[i] + sizes[i] / 2));
        EXPECT(base == all[i] && size == sizes[i]);
        for (int k = 0; k < i; k++) /* they do not overlap */
            EXPECT(all[k] + sizes[k] <= all[i] || all[i] + sizes[i] <= all[k]);
    }
    for (int i = 0; i < 8; i++)
        OK(cuMemFree(all[i]));
    RETURNS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, 0));
    RETURNS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, (CUdeviceptr)(uintptr_t)&size));
    OK(cuMemAllocPitch(&address, &pitch, 600, 10, 4));
    EXPECT(pitch == 1024);
    OK(cuMemGetAddressRange(&base, &size, address));
    EXPECT(size == 10240);
    OK(cuMemFree(address));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&address, &pitch, 600, 10, 3));
    size_t before, after, total;
    OK(cuMemGetInfo(&before, &total));
    OK(cuMemAlloc(&address, 64 << 20));
    OK(cuMemGetInfo(&after, &total));
    EXPECT(before - after == 64 << 20 && total >= before);
    OK(cuMemFree(address));
    OK(cuMemGetInfo(&after, &total));
    EXPECT(before == after);
}

static void test_wrong_frees(void)
{
    CUdeviceptr address;
    char here[64];
    void *pinned;
    OK(cuMemHostAlloc(&pinned, 64, 0));
    OK(cuMemFree(0));
    OK(cuMemFreeHost(NULL));
    OK(cuMemFreeAsync(0, stream));
    OK(cuMemAlloc(&address, 64));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFree(address + 16));
    EXPECT(detail_contains("16 bytes inside allocation"));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((void *)(uintptr_t)address));
    OK(cuMemFree(address));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFree(address));
    EXPECT(detail_contains("freed before"));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)(uintptr_t)here));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)(uintptr_t)pinned));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync((CUdeviceptr)(uintptr_t)pinned, stream));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(here));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((char *)pinned + 8));
    OK(cuMemFreeHost(pinned));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pinned));
    OK(cuMemAllocAsync(&address, 64, stream));
    OK(cuMemFreeAsync(address, stream));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(address, stream));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFree(address));
    OK(cuMemAllocManaged(&address, 64, CU_MEM_ATTACH_GLOBAL));
    RETURNS(CUDA_ERROR_NOT_SUPPORTED, cuMemFreeAsync(address, stream));
    OK(cuMemFree(address));
    /* either kind may be freed by either call */
    OK(cuMemAlloc(&address, 64));
    OK(cuMemFreeAsync(address, stream));
    OK(cuMemAllocAsync(&address, 64, stream));
    OK(cuMemFree(address));
}

static unsigned int type_of(CUdeviceptr address)
{
    unsigned int type = 99;
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    return type;
}

static void test_pinned(void)
{
    void *pinned = (void *)1;
    CUdeviceptr address;
    unsigned int flags;
    char here[64];
    OK(cuMemHostAlloc(&pinned, 0, 0));
    EXPECT(pinned == NULL);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(&pinned, 16, 64));
    OK(cuMemHostAlloc(&pinned, 100, CU_MEMHOSTALLOC_PORTABLE));
    memset(pinned, 3, 100);
    OK(cuMemHostGetDevicePointer(&address, (char *)pinned + 8, 0));
    EXPECT(address == (CUdeviceptr)(uintptr_t)pinned + 8);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&address, pinned, 1));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&address, here, 0));
    OK(cuMemHostGetFlags(&flags, pinned));
    EXPECT(flags == (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemHostGetFlags(&flags, here));
    EXPECT(type_of((CUdeviceptr)(uintptr_t)pinned) == CU_MEMORYTYPE_HOST);
    OK(cuMemFreeHost(pinned));
}

static void test_registered(void)
{
    char *host = aligned_alloc(4096, 16384);
    void *pinned;
    CUdeviceptr address;
    OK(cuMemHostAlloc(&pinned, 4096, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(NULL, 10, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(host, 0, 0));
    OK(cuMemHostRegister(host, 8192, 0));
    RETURNS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(host, 8192, 0));
    RETURNS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(host + 4096, 8192, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(pinned, 16, 0));
    OK(cuMemHostRegister(host + 8192, 8192, 0));
    OK(cuMemHostGetDevicePointer(&address, host + 100, 0));
    EXPECT(address == (CUdeviceptr)(uintptr_t)host + 100);
    EXPECT(type_of(address) == CU_MEMORYTYPE_HOST);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(host + 100));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(pinned));
    OK(cuMemHostUnregister(host));
    RETURNS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(host));
    OK(cuMemHostUnregister(host + 8192));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(NULL));
    OK(cuMemFreeHost(pinned));
    free(host);
}

static void test_managed(void)
{
    CUdeviceptr address;
    unsigned int managed = 9;
    const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    const CUmemLocation nowhere = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 64};
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&address, 0, CU_MEM_ATTACH_GLOBAL));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&address, 16, 0));
    OK(cuMemAllocManaged(&address, 4096, CU_MEM_ATTACH_GLOBAL));
    memset((void *)(uintptr_t)address, 5, 4096);
    OK(cuMemsetD8(address, 6, 2048));
    OK(cuCtxSynchronize());
    EXPECT(((char *)(uintptr_t)address)[2047] == 6 && ((char *)(uintptr_t)address)[2048] == 5);
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
    EXPECT(managed == 1 && type_of(address) == CU_MEMORYTYPE_DEVICE);
    OK(cuMemPrefetchAsync(address, 4096, here, 0, stream));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(address, 4097, here, 0, stream));
    RETURNS(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync(address, 4096, nowhere, 0, stream));
    OK(cuMemAdvise(address, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
    OK(cuMemFree(address));
}

static void test_pointer_attributes(CUcontext context)
{
    CUdeviceptr device, of_pool, device_pointer = 0, start_address = 0;
    CUcontext owner = NULL;
    CUmemoryPool pool = NULL, default_pool;
    void *host_pointer = NULL;
    size_t size = 0;
    int ordinal = 9;
    unsigned int mapped = 9;
    unsigned long long id = 0, other_id = 0;
    OK(cuMemAlloc(&device, 4096));
    OK(cuMemAllocAsync(&of_pool, 4096, stream));
    EXPECT(type_of(device) == CU_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, device + 5));
    EXPECT(owner == context);
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, of_pool));
    EXPECT(owner == NULL); /* a pool is of a device, not of a context */
    OK(cuPointerGetAttribute(&device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, device + 5));
    EXPECT(device_pointer == device + 5);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, device));
    OK(cuPointerGetAttribute(&start_address, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, device + 5));
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, device + 5));
    EXPECT(start_address == device && size == 4096);
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device));
    EXPECT(ordinal == 0);
    OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, device));
    EXPECT(mapped == 1);
    OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, device));
    OK(cuPointerGetAttribute(&other_id, CU_POINTER_ATTRIBUTE_BUFFER_ID, of_pool));
    EXPECT(id != other_id);
    OK(cuDeviceGetDefaultMemPool(&default_pool, 0));
    OK(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, of_pool));
    EXPECT(pool == default_pool);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&id, (CUpointer_attribute)99, device));
    OK(cuMemFreeAsync(of_pool, stream));
    OK(cuMemFree(device));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, device));
}

static void test_unknown_pointer(void)
{
    char here[64];
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)here;
    unsigned int type = 99;
    int ordinal = 99;
    CUdeviceptr device_pointer = 99;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                        CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
    void *data[] = {&type, &ordinal, &device_pointer};
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    EXPECT(type == 99);
    OK(cuPointerGetAttributes(3, attributes, data, address));
    EXPECT(type == 0 && ordinal == -2 && device_pointer == 0);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(0, attributes, data, address));
}

int main(void)
{
    CUcontext context = start();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    test_alloc();
    test_wrong_frees();
    test_pinned();
    test_registered();
    test_managed();
    test_pointer_attributes(context);
    test_unknown_pointer();
    OK(cuStreamDestroy(stream));
    return finish();
}
