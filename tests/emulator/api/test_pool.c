/* Memory pools: their accounts, attributes and access, and allocation in stream order. */
#include "check.h"

static CUstream stream;

static uint64_t value_of(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t value = ~(cuuint64_t)0;
    OK(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static CUmemoryPool make_pool(CUmemLocationType type)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = type}};
    CUmemoryPool pool = NULL;
    OK(cuMemPoolCreate(&pool, &props));
    return pool;
}

static void test_accounts(void)
{
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE);
    CUdeviceptr small, large;
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 0);
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
    OK(cuMemAllocFromPoolAsync(&small, 1000, pool, stream));
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1000);
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 32 << 20);
    OK(cuMemAllocFromPoolAsync(&large, 40 << 20, pool, stream));
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == (40 << 20) + 1000);
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= (40 << 20) + 1000);
    OK(cuMemFreeAsync(large, stream));
    OK(cuStreamSynchronize(stream)); /* what is over the threshold goes back */
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1000);
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == (40 << 20) + 1000);
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 32 << 20);

    cuuint64_t value = (cuuint64_t)1 << 40;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == value);
    OK(cuMemAllocFromPoolAsync(&large, 40 << 20, pool, stream));
    OK(cuMemFreeAsync(large, stream));
    OK(cuStreamSynchronize(stream));
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 40 << 20); /* kept: below the threshold */
    OK(cuMemPoolTrimTo(pool, 0));
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 32 << 20);
    value = 0;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1000);
    value = 5;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    int allowed = 1;
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &allowed));
    EXPECT(allowed == 1);
    allowed = 0;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &allowed));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(pool, (CUmemPool_attribute)77, &value));
    OK(cuMemPoolDestroy(pool)); /* its memory lives until it is freed */
    OK(cuMemsetD8Async(small, 1, 1000, stream));
    OK(cuMemFreeAsync(small, stream));
    OK(cuStreamSynchronize(stream));
}

static void test_wrong_pools(void)
{
    CUmemoryPool pool;
    CUdeviceptr address = 99;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 64}};
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &props));
    props.location.id = 0;
    props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &props));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, NULL));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(NULL));
    OK(cuMemAllocAsync(&address, 0, stream));
    RETURNS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&address, (size_t)1 << 60, stream));
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.maxSize = 1 << 20; /* rounded up to a whole step of 32 MiB */
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&address, 2 << 20, pool, stream));
    OK(cuMemFreeAsync(address, stream));
    RETURNS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&address, 40 << 20, pool, stream));
    OK(cuMemPoolDestroy(pool));
}

static void test_access(void)
{
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE);
    CUmemAccess_flags flags = (CUmemAccess_flags)9;
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemAccessDesc wanted = {.location = location, .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};
    OK(cuMemPoolGetAccess(&flags, pool, &location));
    EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    RETURNS(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool, &wanted, 1));
    wanted.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(cuMemPoolSetAccess(pool, &wanted, 1));
    wanted.location.id = 64;
    RETURNS(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool, &wanted, 1));
    OK(cuMemPoolDestroy(pool));
}

/* Pinned host memory from a pool: the host's at once, a device's when access was given. */
static void test_host_pool(void)
{
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_HOST);
    CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemAccessDesc wanted = {.location = device, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccess_flags flags = (CUmemAccess_flags)9;
    CUdeviceptr address;
    CUlibrary library;
    CUkernel add_one;
    OK(cuMemPoolGetAccess(&flags, pool, &device));
    EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(cuMemPoolSetAccess(pool, &wanted, 1));
    OK(cuMemPoolGetAccess(&flags, pool, &device));
    EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemAllocFromPoolAsync(&address, 64, pool, stream));
    OK(cuStreamSynchronize(stream));
    uint32_t *words = (uint32_t *)(uintptr_t)address;
    memset(words, 0, 64);
    unsigned int type = 9;
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    EXPECT(type == CU_MEMORYTYPE_HOST);
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&add_one, library, "add_one"));
    uint32_t count = 16;
    void *parameters[] = {&address, &count};
    OK(cuLaunchKernel((CUfunction)add_one, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
    OK(cuStreamSynchronize(stream));
    EXPECT(words[0] == 1 && words[15] == 1);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(words));
    OK(cuMemFreeAsync(address, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemPoolDestroy(pool));
    OK(cuLibraryUnload(library));
}

static void test_current_pool(void)
{
    CUmemoryPool pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE), standard, found;
    CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE}, host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    CUdeviceptr address;
    OK(cuDeviceGetDefaultMemPool(&standard, 0));
    OK(cuDeviceGetMemPool(&found, 0));
    EXPECT(found == standard);
    OK(cuDeviceSetMemPool(0, pool));
    OK(cuDeviceGetMemPool(&found, 0));
    EXPECT(found == pool);
    OK(cuMemAllocAsync(&address, 500, stream));
    EXPECT(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 500);
    OK(cuMemFreeAsync(address, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuDeviceSetMemPool(0, standard));
    OK(cuMemPoolDestroy(pool));
    OK(cuMemGetDefaultMemPool(&found, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
    EXPECT(found == standard);
    OK(cuMemGetDefaultMemPool(&found, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(0, found));
}

int main(void)
{
    start();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    test_accounts();
    test_wrong_pools();
    test_access();
    test_host_pool();
    test_current_pool();
    OK(cuStreamDestroy(stream));
    return finish();
}
