/* Buffers, pools, copies and fills on a real driver or on the emulator. */
#include "check.h"

static cc_error error;
static check_device on;

enum { SIZE = 1 << 16 };

static unsigned char pattern_at(size_t index)
{
    return (unsigned char)(index * 7 + index / 256);
}

static void fill_host(unsigned char *host)
{
    for (size_t i = 0; i < SIZE; i++)
        host[i] = pattern_at(i);
}

static size_t count_wrong(const unsigned char *host)
{
    size_t wrong = 0;
    for (size_t i = 0; i < SIZE; i++)
        wrong += host[i] != pattern_at(i);
    return wrong;
}

/* host -> device -> device -> host, by way of each kind of host memory */
static void round_trip(unsigned char *source, unsigned char *destination)
{
    cc_buffer *first, *second;
    fill_host(source);
    memset(destination, 0, SIZE);
    MUST(cc_buffer_allocate(on.pool, SIZE, on.stream, &first, &error));
    MUST(cc_buffer_allocate(on.pool, SIZE, on.stream, &second, &error));
    MUST(cc_copy_from_host(cc_buffer_read(first)->pointer, source, SIZE, on.stream, NULL, NULL, &error));
    MUST(cc_copy(cc_buffer_read(second)->pointer, cc_buffer_read(first)->pointer, SIZE, on.stream, &error));
    MUST(cc_copy_to_host(destination, cc_buffer_read(second)->pointer, SIZE, on.stream, NULL, NULL, &error));
    MUST(cc_stream_synchronize(on.stream, &error));
    CHECK_INT(count_wrong(destination), 0);
    cc_buffer_release(first);
    cc_buffer_release(second);
}

static void test_copies(void)
{
    unsigned char *source = malloc(SIZE), *destination = malloc(SIZE);
    cc_buffer *pinned;
    round_trip(source, destination);
    MUST(cc_buffer_allocate_pinned(on.context, SIZE, &pinned, &error));
    round_trip((unsigned char *)(uintptr_t)cc_buffer_read(pinned)->pointer, destination);
    round_trip(source, (unsigned char *)(uintptr_t)cc_buffer_read(pinned)->pointer);
    cc_buffer_release(pinned);
    free(source);
    free(destination);
    MUST(cc_copy(0, 0, 0, on.stream, &error)); /* nothing, from nowhere */
}

static int released;

static void release(void *object)
{
    free(object);
    released++;
}

/* The source is freed by the release function: were that too early, the device would read what is written over it. */
static void test_host_memory_is_kept(void)
{
    cc_buffer *buffer, *pinned;
    unsigned char *host = malloc(SIZE), *scratch = malloc(SIZE);
    released = 0;
    fill_host(host);
    MUST(cc_buffer_allocate(on.pool, SIZE, on.stream, &buffer, &error));
    CUdeviceptr pointer = cc_buffer_read(buffer)->pointer;
    MUST(cc_copy_from_host(pointer, host, SIZE, on.stream, release, host, &error));
    cc_context_collect(on.context, true);
    CHECK_INT(released, 1);
    MUST(cc_copy_to_host(scratch, pointer, SIZE, on.stream, NULL, NULL, &error));
    MUST(cc_stream_synchronize(on.stream, &error));
    CHECK_INT(count_wrong(scratch), 0);

    MUST(cc_buffer_allocate_pinned(on.context, SIZE, &pinned, &error));
    void *token = malloc(1);
    MUST(cc_copy_to_host((void *)(uintptr_t)cc_buffer_read(pinned)->pointer, pointer, SIZE, on.stream, release, token,
                         &error));
    MUST(cc_stream_synchronize(on.stream, &error));
    CHECK(cc_context_has_pending(on.context)); /* page-locked: the copy may run on after the call */
    cc_context_collect(on.context, false);
    CHECK(!cc_context_has_pending(on.context));
    CHECK_INT(released, 2);
    cc_buffer_release(pinned);
    cc_buffer_release(buffer);
    free(scratch);
}

static void check_fill(uint32_t pattern, size_t pattern_size)
{
    cc_buffer *buffer;
    unsigned char host[64 + 8];
    MUST(cc_buffer_allocate(on.pool, sizeof host, on.stream, &buffer, &error));
    CUdeviceptr pointer = cc_buffer_read(buffer)->pointer;
    MUST(cc_fill(pointer, sizeof host, 0xee, 1, on.stream, &error));
    MUST(cc_fill(pointer + 4, 64, pattern, pattern_size, on.stream, &error));
    MUST(cc_copy_to_host(host, pointer, sizeof host, on.stream, NULL, NULL, &error));
    MUST(cc_stream_synchronize(on.stream, &error));
    for (size_t i = 0; i < sizeof host; i++)
        CHECK_INT(host[i], i < 4 || i >= 68 ? 0xee : (pattern >> i % pattern_size * 8 & 0xff));
    cc_buffer_release(buffer);
}

static void test_fills(void)
{
    check_fill(0x5a, 1);
    check_fill(0xbeef, 2);
    check_fill(0x12345678, 4);
    MUST(cc_fill(0, 0, 0, 4, on.stream, &error));
}

static void check_placement(cc_buffer *buffer, bool device_accessible, bool host_accessible, int device)
{
    cc_placement placement;
    for (int i = 0; i < 2; i++) { /* asked, and remembered */
        MUST(cc_buffer_placement(buffer, &placement, &error));
        CHECK_INT(placement.device_accessible, device_accessible);
        CHECK_INT(placement.host_accessible, host_accessible);
        CHECK_INT(placement.managed, false);
        CHECK_INT(placement.device, device);
    }
}

static void test_placement(void)
{
    static char own[64];
    cc_buffer *pooled, *plain, *pinned, *wrapped;
    MUST(cc_buffer_allocate(on.pool, 256, on.stream, &pooled, &error));
    MUST(cc_buffer_allocate_device(on.context, 256, &plain, &error));
    MUST(cc_buffer_allocate_pinned(on.context, 256, &pinned, &error));
    check_placement(pooled, true, false, 0);
    check_placement(plain, true, false, 0);
    check_placement(pinned, true, true, -1);
    /* the same memory, seen as somebody else's: here the driver is asked */
    MUST(cc_buffer_wrap(cc_buffer_read(pooled)->pointer, 256, NULL, NULL, &wrapped, &error));
    check_placement(wrapped, true, false, 0);
    cc_buffer_release(wrapped);
    MUST(cc_buffer_wrap(cc_buffer_read(plain)->pointer, 256, NULL, NULL, &wrapped, &error));
    check_placement(wrapped, true, false, 0);
    cc_buffer_release(wrapped);
    MUST(cc_buffer_wrap(cc_buffer_read(pinned)->pointer, 256, NULL, NULL, &wrapped, &error));
    check_placement(wrapped, true, true, -1);
    cc_buffer_release(wrapped);
    MUST(cc_buffer_wrap((CUdeviceptr)(uintptr_t)own, sizeof own, NULL, NULL, &wrapped, &error));
    check_placement(wrapped, false, true, -1);
    cc_buffer_release(wrapped);
    cc_buffer_release(pooled);
    cc_buffer_release(plain);
    cc_buffer_release(pinned);
}

static void test_own_pool(void)
{
    cc_pool *pool;
    cc_buffer *buffer;
    uint64_t used = 77, reserved = 0, threshold = 0, follow = 77;
    MUST(cc_pool_create_device(on.device, 0, &pool, &error));
    CHECK(cc_pool_is_owned(pool));
    CHECK(!cc_pool_is_pinned(pool));
    CHECK(cc_pool_device(pool) == on.device);
    MUST(cc_pool_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used, &error));
    CHECK_INT(used, 0);
    MUST(cc_buffer_allocate(pool, 1 << 20, on.stream, &buffer, &error));
    MUST(cc_pool_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used, &error));
    MUST(cc_pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved, &error));
    CHECK(used >= 1 << 20);
    CHECK(reserved >= used);
    MUST(cc_pool_attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold, &error));
    CHECK(threshold == UINT64_MAX);
    MUST(cc_pool_set_attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4096, &error));
    MUST(cc_pool_attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold, &error));
    CHECK_INT(threshold, 4096);
    MUST(cc_pool_attribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &follow, &error));
    CHECK_INT(follow, 1);
    MUST(cc_pool_set_attribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 0, &error));
    MUST(cc_pool_attribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &follow, &error));
    CHECK_INT(follow, 0);
    cc_pool_release(pool); /* the buffer keeps it */
    MUST(cc_fill(cc_buffer_read(buffer)->pointer, 1 << 20, 1, 1, on.stream, &error));
    cc_buffer_release(buffer);
    MUST(cc_stream_synchronize(on.stream, &error));
}

static void test_trim(void)
{
    cc_pool *pool;
    cc_buffer *buffer;
    uint64_t reserved = 77;
    MUST(cc_pool_create_device(on.device, 0, &pool, &error));
    MUST(cc_buffer_allocate(pool, 1 << 20, on.stream, &buffer, &error));
    cc_buffer_release(buffer);
    MUST(cc_stream_synchronize(on.stream, &error));
    MUST(cc_pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved, &error));
    CHECK(reserved >= 1 << 20); /* kept, for the next allocation */
    MUST(cc_pool_trim(pool, 0, &error));
    MUST(cc_pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved, &error));
    CHECK_INT(reserved, 0);
    cc_pool_release(pool);
}

static void test_pinned_pool(void)
{
    cc_pool *pool;
    cc_buffer *buffer;
    if (cc_pool_create_pinned(on.device, -1, 0, &pool, &error)) {
        CHECK_TEXT(error.text, "page-locked memory without a pool works everywhere");
        printf("no pools of host memory here: %s\n", error.text);
        return;
    }
    CHECK(cc_pool_is_pinned(pool));
    MUST(cc_buffer_allocate(pool, SIZE, on.stream, &buffer, &error));
    check_placement(buffer, true, true, -1);
    MUST(cc_fill(cc_buffer_read(buffer)->pointer, SIZE, 0x11, 1, on.stream, &error));
    MUST(cc_stream_synchronize(on.stream, &error));
    const unsigned char *host = (const unsigned char *)(uintptr_t)cc_buffer_read(buffer)->pointer;
    CHECK_INT(host[0], 0x11);
    CHECK_INT(host[SIZE - 1], 0x11);
    cc_buffer_release(buffer);
    cc_pool_release(pool);
}

static void test_out_of_memory(void)
{
    cc_buffer *buffer;
    CHECK_INT(cc_buffer_allocate(on.pool, (size_t)1 << 50, on.stream, &buffer, &error), -1);
    CHECK_INT(error.code, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_TEXT(error.text, "Asked for 1125899906842624 bytes; the pool holds ");
    CHECK_TEXT(error.text, "the device has ");
    CHECK_INT(cc_buffer_allocate_device(on.context, (size_t)1 << 50, &buffer, &error), -1);
    CHECK_INT(error.code, CUDA_ERROR_OUT_OF_MEMORY);
    MUST(cc_stream_synchronize(on.stream, &error)); /* nothing is broken by it */
}

static void test_empty_buffers(void)
{
    cc_buffer *buffer;
    MUST(cc_buffer_allocate(on.pool, 0, on.stream, &buffer, &error));
    CHECK_INT(cc_buffer_read(buffer)->pointer, 0);
    CHECK_INT(cc_buffer_read(buffer)->size, 0);
    check_placement(buffer, true, false, 0);
    cc_buffer_release(buffer);
    MUST(cc_buffer_allocate_pinned(on.context, 0, &buffer, &error));
    cc_buffer_release(buffer);
}

/* The stream goes first, and is then the one that the memory is freed on. */
static void test_release_order(void)
{
    cc_stream *stream;
    cc_buffer *buffer;
    MUST(cc_stream_create(on.context, CU_STREAM_NON_BLOCKING, 0, &stream, &error));
    MUST(cc_buffer_allocate(on.pool, SIZE, on.stream, &buffer, &error));
    MUST(cc_stream_wait_stream(stream, on.stream, &error));
    MUST(cc_fill(cc_buffer_read(buffer)->pointer, SIZE, 1, 1, stream, &error));
    cc_buffer_used_on(buffer, stream);
    cc_stream_release(stream);
    cc_buffer_release(buffer);
    MUST(cc_device_synchronize(on.device, &error));
}

static const check_test tests[] = {
    TEST(test_copies),        TEST(test_host_memory_is_kept),
    TEST(test_fills),         TEST(test_placement),
    TEST(test_own_pool),      TEST(test_trim),
    TEST(test_pinned_pool),   TEST(test_out_of_memory),
    TEST(test_empty_buffers), TEST(test_release_order),
};

int main(void)
{
    on = check_open_device();
    int result = check_run(tests, sizeof tests / sizeof tests[0]);
    check_close_device(&on);
    return result;
}
