/* The emulator's heap through its allocations: reuse, gaps, quarantine, and that neither memory nor mappings grow. */
#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MANY = 20000 };

static size_t count_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    size_t lines = 0;
    for (int c = fgetc(maps); c != EOF; c = fgetc(maps))
        lines += c == '\n';
    fclose(maps);
    return lines;
}

static size_t resident_bytes(void)
{
    FILE *statm = fopen("/proc/self/statm", "r");
    unsigned long pages = 0, resident = 0;
    if (fscanf(statm, "%lu %lu", &pages, &resident) != 2)
        resident = 0;
    fclose(statm);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t some_size(unsigned int *seed, size_t most)
{
    *seed = *seed * 1664525u + 1013904223u;
    return 1 + (*seed >> 4) % most;
}

/* Live allocations keep their bytes whatever happens around them. */
static void test_contents(void)
{
    enum { LIVE = 200 };
    static CUdeviceptr address[LIVE];
    static size_t size[LIVE];
    unsigned int seed = 1;
    for (int round = 0; round < 5000; round++) {
        int i = round % LIVE;
        unsigned char first = 0, last = 0, expected = (unsigned char)i;
        if (address[i] != 0) {
            OK(cuMemcpyDtoH(&first, address[i], 1));
            OK(cuMemcpyDtoH(&last, address[i] + size[i] - 1, 1));
            EXPECT(first == expected && last == expected);
            OK(cuMemFree(address[i]));
        }
        size[i] = some_size(&seed, round % 50 == 0 ? 3 << 20 : 5000);
        OK(cuMemAlloc(&address[i], size[i]));
        EXPECT(address[i] % 256 == 0);
        OK(cuMemsetD8(address[i], expected, size[i]));
    }
    for (int i = 0; i < LIVE; i++)
        OK(cuMemFree(address[i]));
}

static void test_small(CUstream stream)
{
    static CUdeviceptr address[MANY];
    unsigned int seed = 2;
    for (int i = 0; i < MANY; i++) {
        size_t size = some_size(&seed, 600);
        OK(cuMemAllocAsync(&address[i], size, stream));
    }
    EXPECT(count_mappings() < 1000);
    for (int i = 0; i < MANY; i++)
        OK(cuMemFreeAsync(address[i], stream));
    OK(cuStreamSynchronize(stream));
}

static void test_no_growth(CUstream stream)
{
    size_t before = 0;
    unsigned int seed = 3;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            CUdeviceptr address;
            size_t size = some_size(&seed, i % 100 == 0 ? 8 << 20 : 100000);
            OK(cuMemAllocAsync(&address, size, stream));
            OK(cuMemsetD8(address, 1, size < 5000 ? size : 5000));
            OK(cuStreamSynchronize(NULL));
            OK(cuMemFreeAsync(address, stream));
        }
        if (round == 0)
            before = resident_bytes();
    }
    EXPECT(resident_bytes() < before + ((size_t)64 << 20));
    EXPECT(count_mappings() < 5000);
}

static size_t resident_of(uint64_t address, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = size / page, resident = 0;
    unsigned char *present = malloc(pages);
    EXPECT(mincore((void *)(uintptr_t)(address & ~(page - 1)), pages * page, present) == 0);
    for (size_t i = 0; i < pages; i++)
        resident += present[i] & 1;
    free(present);
    return resident * page;
}

/* A large allocation's memory comes when it is touched, and goes back to the host when it is freed. */
static void test_given_back(void)
{
    const size_t size = (size_t)100 << 20;
    CUdeviceptr address;
    void *pinned;
    OK(cuMemAlloc(&address, size));
    EXPECT(resident_of(address, size) == 0);
    OK(cuMemsetD8(address, 1, size));
    OK(cuCtxSynchronize());
    EXPECT(resident_of(address, size) == size);
    OK(cuMemFree(address));
    EXPECT(resident_of(address, size) == 0);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(address + 5, 1, 1));
    EXPECT(detail_contains("which was freed"));
    OK(cuMemHostAlloc(&pinned, size, 0));
    memset(pinned, 1, size);
    OK(cuMemFreeHost(pinned));
    EXPECT(resident_of((uint64_t)(uintptr_t)pinned, size) == 0);
}

static void test_gaps(void)
{
    CUdeviceptr previous = 0, address, all[100];
    for (int i = 0; i < 100; i++) {
        OK(cuMemAlloc(&address, 256));
        all[i] = address;
        EXPECT(address != previous + 256);
        RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(address + 256, 0, 1)); /* never in the neighbour */
        previous = address;
    }
    EXPECT(detail_contains("0 bytes past the end of allocation"));
    for (int i = 0; i < 100; i++)
        OK(cuMemFree(all[i]));
}

static void test_limit(void)
{
    CUdeviceptr address[20];
    size_t free_bytes, total;
    OK(cuMemGetInfo(&free_bytes, &total));
    EXPECT(total == (size_t)1 << 30);
    int count = 0;
    while (count < 20 && cuMemAlloc(&address[count], (size_t)100 << 20) == CUDA_SUCCESS)
        count++;
    EXPECT(count == 10); /* 1 GiB holds ten of 100 MiB */
    EXPECT(detail_contains("CUDA_CORE_EMULATOR_MEMORY"));
    while (count > 0)
        OK(cuMemFree(address[--count]));
    OK(cuMemAlloc(&address[0], (size_t)1000 << 20));
    OK(cuMemFree(address[0]));
}

int main(void)
{
    CUstream stream;
    setenv("CUDA_CORE_EMULATOR_MEMORY", "1G", 1);
    start();
    if (!on_emulator())
        return finish();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    test_contents();
    test_small(stream);
    test_no_growth(stream);
    test_given_back();
    test_gaps();
    test_limit();
    OK(cuStreamDestroy(stream));
    return finish();
}
