/* Streams and events of a real driver or of the emulator. */
#include "check.h"

#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static cc_error error;
static check_device on;

static void test_create(void)
{
    cc_stream *stream;
    cc_context *context;
    unsigned flags = 77;
    int priority = 77;
    bool done = false;
    MUST(cc_stream_create(on.context, CU_STREAM_NON_BLOCKING, 0, &stream, &error));
    CHECK(cc_stream_is_owned(stream));
    MUST(cc_stream_flags(stream, &flags, &error));
    CHECK_INT(flags, CU_STREAM_NON_BLOCKING);
    MUST(cc_stream_priority(stream, &priority, &error));
    CHECK_INT(priority, 0);
    MUST(cc_stream_context(stream, &context, &error));
    CHECK(context == on.context);
    MUST(cc_stream_synchronize(stream, &error));
    MUST(cc_stream_query(stream, &done, &error));
    CHECK(done);
    cc_stream_release(stream);
    REFUSED(cc_stream_create(on.context, 0, 1000, &stream, &error), CC_INVALID, "outside this device's range");
    CUcontext current;
    MUST(cc_context_get_current(&current, &error));
    CHECK(current == NULL);
}

static int given_back;

static void give_back(void *owner)
{
    given_back += *(int *)owner;
}

static void test_wrapped(void)
{
    static int owner = 5;
    cc_stream *stream;
    cc_context *context;
    MUST(cc_stream_wrap(cc_stream_native(on.stream), NULL, give_back, &owner, &stream, &error));
    CHECK(!cc_stream_is_owned(stream));
    MUST(cc_stream_context(stream, &context, &error));
    CHECK(context == on.context);
    MUST(cc_stream_synchronize(stream, &error));
    cc_stream_retain(stream);
    cc_stream_release(stream);
    CHECK_INT(given_back, 0);
    cc_stream_release(stream);
    CHECK_INT(given_back, 5);
    MUST(cc_stream_synchronize(on.stream, &error)); /* still there */
}

static void test_default_streams(void)
{
    CUstream natives[] = {CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, NULL};
    for (int i = 0; i < 3; i++) {
        cc_stream *stream;
        cc_context *context;
        cc_event *event;
        bool done;
        MUST(cc_stream_wrap(natives[i], NULL, NULL, NULL, &stream, &error));
        CHECK(cc_stream_native(stream) == (natives[i] ? natives[i] : CU_STREAM_LEGACY));
        MUST(cc_stream_context(stream, &context, &error)); /* none is current: device 0's */
        CHECK(context == on.context);
        MUST(cc_stream_synchronize(stream, &error));
        MUST(cc_event_create(on.context, 0, &event, &error));
        MUST(cc_event_record(event, stream, &error));
        MUST(cc_event_synchronize(event, &error));
        MUST(cc_event_query(event, &done, &error));
        CHECK(done);
        cc_event_release(event);
        cc_stream_release(stream);
    }
}

static void test_elapsed(void)
{
    cc_event *start, *end, *untimed, *unrecorded;
    float milliseconds = -1;
    MUST(cc_event_create(on.context, CU_EVENT_DEFAULT, &start, &error));
    MUST(cc_event_create(on.context, CU_EVENT_DEFAULT, &end, &error));
    MUST(cc_event_create(on.context, CU_EVENT_DEFAULT, &unrecorded, &error));
    MUST(cc_event_create(on.context, CU_EVENT_DISABLE_TIMING, &untimed, &error));
    CHECK_INT(cc_event_flags(untimed), CU_EVENT_DISABLE_TIMING);
    MUST(cc_event_record(start, on.stream, &error));
    MUST(cc_event_record(end, on.stream, &error));
    MUST(cc_event_record(untimed, on.stream, &error));
    MUST(cc_event_synchronize(untimed, &error));
    MUST(cc_event_elapsed(start, end, &milliseconds, &error));
    CHECK(milliseconds >= 0 && milliseconds < 10000);
    CHECK_INT(cc_event_elapsed(start, untimed, &milliseconds, &error), -1);
    CHECK_INT(error.code, CUDA_ERROR_INVALID_HANDLE);
    CHECK_TEXT(error.text, "The end event was made without timing");
    CHECK_INT(cc_event_elapsed(unrecorded, end, &milliseconds, &error), -1);
    CHECK_INT(error.code, CUDA_ERROR_INVALID_HANDLE);
    CHECK_TEXT(error.text, "The start event was not recorded");
    cc_event_release(start);
    cc_event_release(end);
    cc_event_release(untimed);
    cc_event_release(unrecorded);
}

static void CUDA_CB hold(void *flag)
{
    while (!atomic_load((atomic_bool *)flag))
        sched_yield();
}

/* What is told of a failure that was dealt with does not come back with the next one. */
static void test_account_of_an_earlier_failure(void)
{
    cc_event *start, *end;
    cc_buffer *buffer;
    float milliseconds;
    atomic_bool go = false;
    void *driver = dlopen(cc_driver_path(), RTLD_NOW | RTLD_NOLOAD);
    PFN_cuLaunchHostFunc_v10000 launch_host_function = NULL;
    CHECK(driver != NULL);
    *(void **)&launch_host_function = dlsym(driver, "cuLaunchHostFunc");
    MUST(cc_event_create(on.context, CU_EVENT_DEFAULT, &start, &error));
    MUST(cc_event_create(on.context, CU_EVENT_DEFAULT, &end, &error));
    MUST(cc_event_record(start, on.stream, &error));
    CHECK_INT(launch_host_function(cc_stream_native(on.stream), hold, &go), CUDA_SUCCESS);
    MUST(cc_event_record(end, on.stream, &error));
    CHECK_INT(cc_buffer_allocate(on.pool, (size_t)1 << 50, on.stream, &buffer, &error), -1);
    CHECK_INT(error.code, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_INT(cc_event_elapsed(start, end, &milliseconds, &error), -1);
    CHECK_INT(error.code, CUDA_ERROR_NOT_READY);
    CHECK_TEXT(error.text, "CUDA_ERROR_NOT_READY in cuEventElapsedTime: device not ready. Work queued before it is not "
                           "finished: synchronise first. The end event is not done");
    CHECK(!strchr(error.text, '\n'));
    atomic_store(&go, true);
    MUST(cc_stream_synchronize(on.stream, &error));
    cc_event_release(start);
    cc_event_release(end);
    dlclose(driver);
}

/* 128 MiB of fills in one stream, then a byte in another that waits for it: the order holds, both by event and by
 * stream. */
static void test_order(void)
{
    const size_t size = 1 << 24;
    cc_stream *second;
    cc_buffer *buffer;
    unsigned char host = 0;
    MUST(cc_stream_create(on.context, CU_STREAM_NON_BLOCKING, 0, &second, &error));
    MUST(cc_buffer_allocate(on.pool, size, on.stream, &buffer, &error));
    CUdeviceptr pointer = cc_buffer_read(buffer)->pointer;
    for (unsigned i = 1; i <= 8; i++)
        MUST(cc_fill(pointer, size, i, 1, on.stream, &error));
    MUST(cc_stream_wait_stream(second, on.stream, &error));
    MUST(cc_fill(pointer + size - 1, 1, 99, 1, second, &error));
    cc_event *event;
    MUST(cc_event_create(on.context, CU_EVENT_DISABLE_TIMING, &event, &error));
    MUST(cc_event_record(event, second, &error));
    MUST(cc_stream_wait_event(on.stream, event, &error));
    MUST(cc_copy_to_host(&host, pointer + size - 1, 1, on.stream, NULL, NULL, &error));
    MUST(cc_stream_synchronize(on.stream, &error));
    CHECK_INT(host, 99);
    MUST(cc_copy_to_host(&host, pointer + size - 2, 1, second, NULL, NULL, &error));
    MUST(cc_stream_synchronize(second, &error));
    CHECK_INT(host, 8);
    cc_event_release(event);
    cc_buffer_release(buffer);
    cc_stream_release(second);
}

static void *use_streams(void *result)
{
    cc_error own;
    for (int i = 0; i < 50 && *(int *)result == 0; i++) {
        cc_stream *stream;
        cc_event *event;
        cc_buffer *buffer;
        unsigned word = 0;
        if (cc_stream_create(on.context, CU_STREAM_NON_BLOCKING, 0, &stream, &own)) {
            *(int *)result = own.code;
            break;
        }
        if (cc_event_create(on.context, 0, &event, &own) || cc_buffer_allocate(on.pool, 4096, stream, &buffer, &own) ||
            cc_fill(cc_buffer_read(buffer)->pointer, 4096, (unsigned)i, 4, stream, &own) ||
            cc_copy_to_host(&word, cc_buffer_read(buffer)->pointer + 4092, 4, stream, NULL, NULL, &own) ||
            cc_event_record(event, stream, &own) || cc_event_synchronize(event, &own)) {
            *(int *)result = own.code;
            break;
        }
        if (word != (unsigned)i)
            *(int *)result = -1;
        cc_buffer_release(buffer);
        cc_event_release(event);
        cc_stream_release(stream);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[4];
    int results[4] = {0};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, use_streams, &results[i]);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(results[i], 0);
    }
}

static const check_test tests[] = {TEST(test_create),
                                   TEST(test_wrapped),
                                   TEST(test_default_streams),
                                   TEST(test_elapsed),
                                   TEST(test_account_of_an_earlier_failure),
                                   TEST(test_order),
                                   TEST(test_threads)};

int main(void)
{
    on = check_open_device();
    int result = check_run(tests, sizeof tests / sizeof tests[0]);
    check_close_device(&on);
    return result;
}
