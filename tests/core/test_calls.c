/* Which driver calls core makes and in which context: the hot paths make one beside their own, the thread's context is
 * left as it was found, and what is remembered is not asked again. */
#include "check.h"
#include "fake_driver.h"

static cc_error error;
static cc_context *context;
static cc_stream *stream;
static cc_pool *pool;

static void setup(void)
{
    cc_device *device;
    fake_reset();
    MUST(fake_open(&error));
    MUST(cc_device_get(0, &device, &error));
    MUST(cc_device_primary_context(device, &context, &error));
    MUST(cc_context_set_current(NULL, &error));
    MUST(cc_stream_create(context, CU_STREAM_NON_BLOCKING, 0, &stream, &error));
    MUST(cc_pool_device_default(device, &pool, &error));
}

static void teardown(void)
{
    cc_context_collect(context, true);
    cc_pool_release(pool);
    cc_stream_release(stream);
    CHECK_INT(fake_live(), 0);
}

static int calls_since(int before)
{
    return fake.calls - before;
}

/* cuCtxGetCurrent and the call itself. */
static void test_hot_paths(void)
{
    cc_event *event;
    cc_buffer *buffer;
    bool done;
    setup();
    MUST(cc_context_set_current(cc_context_native(context), &error));
    int before = fake.calls;
    MUST(cc_event_create(context, 0, &event, &error));
    CHECK_INT(calls_since(before), 2);
    MUST(cc_event_record(event, stream, &error));
    CHECK_INT(calls_since(before), 4);
    MUST(cc_event_query(event, &done, &error));
    CHECK_INT(calls_since(before), 6);
    CHECK(done);
    MUST(cc_event_synchronize(event, &error));
    MUST(cc_stream_synchronize(stream, &error));
    CHECK_INT(calls_since(before), 10);
    MUST(cc_buffer_allocate(pool, 64, stream, &buffer, &error));
    MUST(cc_fill(cc_buffer_read(buffer)->pointer, 64, 7, 1, stream, &error));
    CHECK_INT(calls_since(before), 14);
    cc_buffer_release(buffer);
    CHECK_INT(calls_since(before), 16);
    cc_event_release(event);
    CHECK_INT(calls_since(before), 18);
    teardown();
}

static void test_context_is_restored(void)
{
    cc_device *other_device;
    cc_context *other;
    CUcontext current;
    int ordinal;
    setup();
    MUST(cc_context_get_current(&current, &error));
    CHECK(current == NULL); /* creating a stream has not left one */
    MUST(cc_device_current(&ordinal, &error));
    CHECK_INT(ordinal, -1);
    MUST(cc_device_get(1, &other_device, &error));
    MUST(cc_device_primary_context(other_device, &other, &error));
    MUST(cc_context_set_current(cc_context_native(other), &error));
    MUST(cc_stream_synchronize(stream, &error));
    MUST(cc_device_current(&ordinal, &error));
    CHECK_INT(ordinal, 1);
    fake.fail_name = "cuStreamSynchronize";
    CHECK_INT(cc_stream_synchronize(stream, &error), -1);
    CHECK_INT(error.code, CUDA_ERROR_UNKNOWN);
    CHECK(strcmp(error.function, "cuStreamSynchronize") == 0);
    MUST(cc_device_current(&ordinal, &error));
    CHECK_INT(ordinal, 1);
    fake.fail_name = NULL;
    teardown();
}

static void test_attributes_are_asked_once(void)
{
    cc_device *device;
    int value;
    setup();
    MUST(cc_device_get(1, &device, &error));
    MUST(cc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &value, &error));
    CHECK_INT(value, 64);
    int before = fake.calls;
    MUST(cc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &value, &error));
    CHECK_INT(value, 64);
    CHECK_INT(calls_since(before), 0);
    MUST(cc_device_attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &value, &error)); /* 0 is an answer as well */
    before = fake.calls;
    MUST(cc_device_attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &value, &error));
    CHECK_INT(value, 0);
    CHECK_INT(calls_since(before), 0);
    REFUSED(cc_device_get(2, &device, &error), CC_NO_SUCH_DEVICE, "there is no device 2: this machine has 2");
    REFUSED(cc_device_get(-1, &device, &error), CC_NO_SUCH_DEVICE, "there is no device -1");
    teardown();
}

static void test_free_follows_use(void)
{
    cc_stream *second;
    cc_buffer *buffer;
    setup();
    MUST(cc_stream_create(context, CU_STREAM_NON_BLOCKING, 0, &second, &error));
    CUstream second_native = cc_stream_native(second);
    MUST(cc_buffer_allocate(pool, 16, stream, &buffer, &error));
    cc_buffer_release(buffer);
    CHECK(fake.last_free_stream == cc_stream_native(stream));
    MUST(cc_buffer_allocate(pool, 16, stream, &buffer, &error));
    cc_buffer_used_on(buffer, stream);
    cc_buffer_used_on(buffer, second);
    cc_buffer_used_on(buffer, second);
    cc_stream_release(second); /* the buffer keeps it */
    CHECK_INT(fake.live_streams, 2);
    cc_buffer_release(buffer);
    CHECK(fake.last_free_stream == second_native);
    CHECK_INT(fake.live_streams, 1);
    MUST(cc_buffer_allocate(pool, 16, stream, &buffer, &error));
    MUST(cc_stream_create(context, CU_STREAM_NON_BLOCKING, 0, &second, &error));
    MUST(cc_buffer_set_free_stream(buffer, stream, &error));
    cc_buffer_used_on(buffer, second); /* the choice stands */
    cc_buffer_release(buffer);
    CHECK(fake.last_free_stream == cc_stream_native(stream));
    cc_stream_release(second);
    teardown();
}

static void check_step(int index, const char *name, const cc_stream *on)
{
    CHECK(index < fake.step_count);
    CHECK(strcmp(fake.steps[index].name, name) == 0);
    CHECK(fake.steps[index].stream == cc_stream_native(on));
}

/* An event recorded on `other` at steps[index], waited for by `on` right after. */
static void check_wait(int index, const cc_stream *on, const cc_stream *other)
{
    check_step(index, "record", other);
    check_step(index + 1, "wait", on);
    CHECK(fake.steps[index].event == fake.steps[index + 1].event);
}

/* Work on any stream that used the memory may be the last to end: all are waited for before it is freed. */
static void test_free_waits_for_all_uses(void)
{
    cc_stream *second, *third;
    cc_buffer *buffer;
    setup();
    MUST(cc_stream_create(context, CU_STREAM_NON_BLOCKING, 0, &second, &error));
    MUST(cc_stream_create(context, CU_STREAM_NON_BLOCKING, 0, &third, &error));

    MUST(cc_buffer_allocate(pool, 16, stream, &buffer, &error));
    for (int i = 0; i < 3; i++) { /* to and fro adds nothing */
        cc_buffer_used_on(buffer, second);
        cc_buffer_used_on(buffer, stream);
    }
    cc_buffer_used_on(buffer, second);
    CHECK_INT(fake.step_count, 0); /* noting a use costs no call */
    cc_buffer_release(buffer);
    CHECK_INT(fake.step_count, 3); /* a stream does not wait for itself */
    check_wait(0, second, stream);
    check_step(2, "free", second);

    /* a chosen stream, used before and after; and one it is already */
    fake.step_count = 0;
    MUST(cc_buffer_allocate(pool, 16, stream, &buffer, &error));
    cc_buffer_used_on(buffer, second);
    cc_buffer_used_on(buffer, stream);
    MUST(cc_buffer_set_free_stream(buffer, stream, &error));
    check_wait(0, stream, second);
    cc_buffer_used_on(buffer, third);
    fake.step_count = 0;
    cc_buffer_release(buffer);
    CHECK_INT(fake.step_count, 5);
    check_wait(0, stream, third);
    check_wait(2, stream, second);
    check_step(4, "free", stream);

    /* handed over to the stream of the last use */
    fake.step_count = 0;
    MUST(cc_buffer_allocate(pool, 16, stream, &buffer, &error));
    cc_buffer_used_on(buffer, second);
    MUST(cc_buffer_hand_over(buffer, second, &error));
    CHECK_INT(fake.step_count, 2);
    check_wait(0, second, stream);
    MUST(cc_buffer_hand_over(buffer, third, &error));
    CHECK_INT(fake.step_count, 6);
    check_wait(2, third, second);
    check_wait(4, third, stream);
    cc_buffer_release(buffer);
    CHECK(fake.last_free_stream == cc_stream_native(third));

    /* one that its owner frees in stream order */
    fake.step_count = 0;
    MUST(cc_buffer_wrap_ordered(256, 16, &buffer, &error));
    cc_buffer_used_on(buffer, stream);
    cc_buffer_used_on(buffer, second);
    cc_stream *last = cc_buffer_last_stream(buffer);
    CHECK(last == second);
    CHECK_INT(fake.step_count, 2);
    check_wait(0, second, stream);
    cc_stream_release(last);
    cc_buffer_release(buffer);

    cc_stream_release(second);
    cc_stream_release(third);
    teardown();
}

/* A stream that cannot be waited for does not keep the memory from being freed. */
static void test_free_skips_a_stream_that_is_gone(void)
{
    cc_stream *second;
    cc_buffer *buffer;
    setup();
    MUST(cc_stream_create(context, CU_STREAM_NON_BLOCKING, 0, &second, &error));
    MUST(cc_buffer_allocate(pool, 16, stream, &buffer, &error));
    cc_buffer_used_on(buffer, second);
    fake.fail_name = "cuEventRecord";
    fake.fail_code = CUDA_ERROR_INVALID_HANDLE;
    cc_buffer_release(buffer);
    check_step(0, "synchronize", stream);
    check_step(1, "free", second);
    fake.fail_name = NULL;
    cc_stream_release(second);
    teardown();
}

/* A buffer keeps a limited number of streams: past that each waits for the one before it at once. */
static void test_many_streams(void)
{
    enum { MANY = 30 };
    cc_stream *next, *before;
    cc_buffer *buffer;
    setup();
    MUST(cc_buffer_allocate(pool, 16, stream, &buffer, &error));
    before = cc_stream_retain(stream);
    for (int i = 0; i < MANY; i++) {
        MUST(cc_stream_create(context, CU_STREAM_NON_BLOCKING, 0, &next, &error));
        fake.step_count = 0;
        cc_buffer_used_on(buffer, next);
        if (fake.step_count)
            check_wait(0, next, before);
        cc_stream_release(before);
        before = next;
    }
    CHECK_INT(fake.step_count, 2);
    CHECK(fake.live_streams < MANY);
    fake.step_count = 0;
    cc_buffer_release(buffer);
    check_step(fake.step_count - 1, "free", before);
    CHECK_INT(fake.live_streams, 2);
    cc_stream_release(before);
    teardown();
}

/* The stream is no longer one (its owner destroyed it): the memory is freed all the same. */
static void test_free_without_a_stream(void)
{
    cc_buffer *buffer;
    setup();
    MUST(cc_buffer_allocate(pool, 16, stream, &buffer, &error));
    fake.fail_name = "cuMemFreeAsync";
    fake.fail_code = CUDA_ERROR_INVALID_HANDLE;
    cc_buffer_release(buffer);
    CHECK_INT(fake.live_buffers, 0);
    fake.fail_name = NULL;
    teardown();
}

static int released;

static void count_release(void *object)
{
    released += *(int *)object;
}

static void test_kept_until_done(void)
{
    static int object = 1;
    char host[16] = {0}, destination[16];
    CUdeviceptr device_memory = (CUdeviceptr)(uintptr_t)destination;
    setup();
    /* pageable memory on a device that copies it through its own buffers: done when the call returns */
    released = 0;
    MUST(cc_copy_from_host(device_memory, host, 16, stream, count_release, &object, &error));
    CHECK_INT(released, 1);
    CHECK(!cc_context_has_pending(context));
    /* page-locked memory: in use until the stream has got there */
    fake.unified_host_type = CU_MEMORYTYPE_HOST;
    fake.events_done = false;
    MUST(cc_copy_from_host(device_memory, host, 16, stream, count_release, &object, &error));
    MUST(cc_copy_to_host(host, device_memory, 16, stream, count_release, &object, &error));
    CHECK_INT(released, 1);
    CHECK(cc_context_has_pending(context));
    cc_context_collect(context, false);
    CHECK_INT(released, 1);
    fake.events_done = true;
    cc_context_collect(context, false);
    CHECK_INT(released, 3);
    CHECK(!cc_context_has_pending(context));
    CHECK_INT(fake.live_events, 0);
    /* no event to be had: waits at once */
    fake.fail_name = "cuEventCreate";
    MUST(cc_copy_from_host(device_memory, host, 16, stream, count_release, &object, &error));
    CHECK_INT(released, 4);
    /* a copy that fails leaves the object with the caller */
    fake.fail_name = "cuMemcpyAsync";
    CHECK_INT(cc_copy_from_host(device_memory, host, 16, stream, count_release, &object, &error), -1);
    CHECK_INT(released, 4);
    fake.fail_name = NULL;
    teardown();
}

static void test_out_of_memory(void)
{
    cc_buffer *buffer;
    setup();
    CHECK_INT(cc_buffer_allocate(pool, 1 << 21, stream, &buffer, &error), -1);
    CHECK_INT(error.domain, CC_DOMAIN_DRIVER);
    CHECK_INT(error.code, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_TEXT(error.text,
               "Asked for 2097152 bytes; the pool holds 0 bytes, 0 of them in use; the device has 1000 of 2000 "
               "bytes free.");
    int before = fake.calls;
    MUST(cc_buffer_allocate(pool, 0, stream, &buffer, &error)); /* nothing to ask for */
    CHECK_INT(cc_buffer_read(buffer)->pointer, 0);
    cc_buffer_release(buffer);
    CHECK_INT(calls_since(before), 0);
    teardown();
}

static void test_bad_values(void)
{
    cc_stream *refused;
    setup();
    REFUSED(cc_stream_create(context, 2, 0, &refused, &error), CC_INVALID, "not 2");
    REFUSED(cc_stream_create(context, 0, 1, &refused, &error), CC_INVALID,
            "stream priority 1 is outside this device's range: -5 (most urgent) to 0 (least)");
    REFUSED(cc_stream_create(context, 0, -6, &refused, &error), CC_INVALID, "stream priority -6");
    REFUSED(cc_fill(256, 16, 1, 3, stream, &error), CC_INVALID, "1, 2 or 4 bytes, not 3");
    REFUSED(cc_fill(256, 16, 256, 1, stream, &error), CC_OUT_OF_RANGE, "256 does not fit into 1 byte");
    REFUSED(cc_fill(256, 15, 1, 2, stream, &error), CC_INVALID, "15 bytes are not a multiple");
    REFUSED(cc_fill(258, 16, 1, 4, stream, &error), CC_INVALID, "0x102 is not a multiple");
    teardown();
}

static const check_test tests[] = {TEST(test_hot_paths),
                                   TEST(test_context_is_restored),
                                   TEST(test_attributes_are_asked_once),
                                   TEST(test_free_follows_use),
                                   TEST(test_free_waits_for_all_uses),
                                   TEST(test_free_skips_a_stream_that_is_gone),
                                   TEST(test_many_streams),
                                   TEST(test_free_without_a_stream),
                                   TEST(test_kept_until_done),
                                   TEST(test_out_of_memory),
                                   TEST(test_bad_values)};
CHECK_MAIN(tests)
