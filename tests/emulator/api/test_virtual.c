/* Virtual memory management: reserve, create, map, grant, grow, move, share. */
#include "check.h"

#include <unistd.h>

#define PIECE ((size_t)2 << 20)

static const CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static const CUmemAccessDesc both = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                     .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static CUmemGenericAllocationHandle make(size_t size)
{
    CUmemGenericAllocationHandle handle = 0;
    OK(cuMemCreate(&handle, size, &props, 0));
    return handle;
}

static void test_refusals(void)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp wrong = props;
    CUdeviceptr base;
    size_t granularity;
    OK(cuMemGetAllocationGranularity(&granularity, &props, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    EXPECT(granularity == PIECE);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&base, 4096, 0, 0, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 4096, &props, 0));
    RETURNS(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&handle, (size_t)1 << 45, &props, 0));
    wrong.location.id = 99;
    RETURNS(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&handle, PIECE, &wrong, 0));
    handle = make(PIECE);
    OK(cuMemAddressReserve(&base, 2 * PIECE, 8 * PIECE, 0, 0));
    EXPECT(base % (8 * PIECE) == 0);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemMap(base, 2 * PIECE, 0, handle, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(base, PIECE, &both, 1));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(base, PIECE));
    OK(cuMemMap(base, PIECE, 0, handle, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemMap(base, PIECE, 0, handle, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(base, 2 * PIECE));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFree(base));
    OK(cuMemUnmap(base, PIECE));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(base, PIECE));
    OK(cuMemAddressFree(base, 2 * PIECE));
    OK(cuMemRelease(handle));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
}

static void test_access(void)
{
    CUdeviceptr base;
    unsigned long long flags = 99;
    unsigned int access = 99;
    CUmemAccessDesc reads = both;
    CUmemGenericAllocationHandle handle = make(PIECE);
    OK(cuMemAddressReserve(&base, PIECE, 0, 0, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(base, 1, 16));
    OK(cuMemMap(base, PIECE, 0, handle, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(base, 1, 16));
    OK(cuMemGetAccess(&flags, &both.location, base));
    EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(cuMemSetAccess(base, PIECE, &both, 1));
    OK(cuMemsetD8(base, 1, 16));
    reads.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    OK(cuMemSetAccess(base, PIECE, &reads, 1));
    OK(cuMemGetAccess(&flags, &both.location, base));
    EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
    OK(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, base));
    EXPECT(access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(base, 1, 16));
    unsigned char byte = 0;
    OK(cuMemcpyDtoH(&byte, base + 15, 1));
    EXPECT(byte == 1);
    OK(cuMemRelease(handle));
    OK(cuMemUnmap(base, PIECE));
    OK(cuMemAddressFree(base, PIECE));
}

/* A second mapping right behind the first, then both at another address. */
static void test_growth_and_move(void)
{
    CUdeviceptr base, more, moved;
    unsigned char bytes[2] = {0};
    CUmemGenericAllocationHandle first = make(PIECE), second = make(PIECE), again;
    OK(cuMemAddressReserve(&base, PIECE, 0, 0, 0));
    OK(cuMemAddressReserve(&more, PIECE, 0, base + PIECE, 0));
    EXPECT(more == base + PIECE || !on_emulator());
    OK(cuMemMap(base, PIECE, 0, first, 0));
    OK(cuMemMap(more, PIECE, 0, second, 0));
    OK(cuMemSetAccess(base, 2 * PIECE, &both, 1));
    OK(cuMemsetD8(base + PIECE - 1, 7, 2));
    OK(cuCtxSynchronize()); /* unmapping waits for nobody */
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)base));
    OK(cuMemAddressReserve(&moved, 2 * PIECE, 0, 0, 0));
    OK(cuMemMap(moved, PIECE, 0, again, 0));
    OK(cuMemMap(moved + PIECE, PIECE, 0, second, 0));
    OK(cuMemSetAccess(moved, 2 * PIECE, &both, 1));
    OK(cuMemUnmap(base, 2 * PIECE));
    OK(cuMemcpyDtoH(bytes, moved + PIECE - 1, 2));
    EXPECT(bytes[0] == 7 && bytes[1] == 7);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(bytes, moved + 2 * PIECE - 1, 2));
    OK(cuMemUnmap(moved, 2 * PIECE));
    OK(cuMemAddressFree(moved, 2 * PIECE));
    OK(cuMemAddressFree(base, PIECE));
    OK(cuMemAddressFree(more, PIECE));
    OK(cuMemRelease(first));
    OK(cuMemRelease(again));
    OK(cuMemRelease(second));
}

/* A wanted address at the end of free ones that lie before others in use: those stay as they are. */
static void test_wanted_address(void)
{
    CUdeviceptr base[3], again, other;
    for (int i = 0; i < 3; i++)
        OK(cuMemAddressReserve(&base[i], PIECE, 0, i ? base[i - 1] + PIECE : 0, 0));
    OK(cuMemAddressFree(base[1], PIECE));
    OK(cuMemAddressReserve(&again, PIECE, 0, base[1], 0));
    EXPECT(again == base[1] || !on_emulator());
    OK(cuMemAddressReserve(&other, PIECE, 0, 0, 0));
    EXPECT(other != base[0] && other != again && other != base[2]);
    OK(cuMemAddressFree(other, PIECE));
    OK(cuMemAddressFree(base[0], PIECE));
    OK(cuMemAddressFree(again, PIECE));
    OK(cuMemAddressFree(base[2], PIECE));
}

static void test_sharing(void)
{
    int file = -1;
    CUdeviceptr base, other;
    unsigned char byte = 0;
    CUmemAllocationProp found;
    CUmemGenericAllocationHandle handle = make(PIECE), imported = 0;
    OK(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(file);
    RETURNS(CUDA_ERROR_INVALID_VALUE,
            cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    OK(cuMemGetAllocationPropertiesFromHandle(&found, imported));
    EXPECT(found.location.type == CU_MEM_LOCATION_TYPE_DEVICE && found.location.id == 0);
    OK(cuMemAddressReserve(&base, PIECE, 0, 0, 0));
    OK(cuMemAddressReserve(&other, PIECE, 0, 0, 0));
    OK(cuMemMap(base, PIECE, 0, handle, 0));
    OK(cuMemMap(other, PIECE, 0, imported, 0));
    OK(cuMemSetAccess(base, PIECE, &both, 1));
    OK(cuMemSetAccess(other, PIECE, &both, 1));
    OK(cuMemsetD8(base, 9, 1));
    OK(cuMemcpyDtoH(&byte, other, 1));
    EXPECT(byte == 9);
    OK(cuMemUnmap(base, PIECE));
    OK(cuMemUnmap(other, PIECE));
    OK(cuMemAddressFree(base, PIECE));
    OK(cuMemAddressFree(other, PIECE));
    OK(cuMemRelease(handle));
    OK(cuMemRelease(imported));
}

static void test_nothing_is_left(void)
{
    CUresult (*live)(uint64_t *, size_t) = NULL;
    uint64_t counts[13];
    *(void **)&live = emulator_call("cuEmulatorLiveObjects");
    if (live == NULL)
        return;
    OK(live(counts, sizeof counts));
    EXPECT(counts[10] == 0 && counts[11] == 0 && counts[12] == 0);
}

int main(void)
{
    size_t before, after, total;
    start();
    OK(cuMemGetInfo(&before, &total));
    test_refusals();
    test_access();
    test_growth_and_move();
    test_wanted_address();
    test_sharing();
    test_nothing_is_left();
    OK(cuMemGetInfo(&after, &total));
    EXPECT(before == after || !on_emulator());
    return finish();
}
