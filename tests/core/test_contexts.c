/* More than one device, and contexts that somebody else made. Skipped (status 77) where there is one device only, but
 * for the emulator, which has as many as it is asked for. */
#include "check.h"
#include "internal.h"

#include <dlfcn.h>

static cc_error error;
static cc_device *devices[2];
static cc_context *contexts[2];
static cc_stream *streams[2];

static void setup(void)
{
    for (int i = 0; i < 2; i++) {
        MUST(cc_device_get(i, &devices[i], &error));
        MUST(cc_device_primary_context(devices[i], &contexts[i], &error));
        MUST(cc_stream_create(contexts[i], CU_STREAM_NON_BLOCKING, 0, &streams[i], &error));
    }
}

static void check_current(CUcontext wanted)
{
    CUcontext current;
    MUST(cc_context_get_current(&current, &error));
    CHECK(current == wanted);
}

/* Objects of device 1 are used with device 0 current, and the other way round. */
static void test_objects_know_their_device(void)
{
    for (int current = 0; current < 2; current++) {
        MUST(cc_context_set_current(cc_context_native(contexts[current]), &error));
        for (int i = 0; i < 2; i++) {
            cc_pool *pool;
            cc_buffer *buffer, *wrapped;
            cc_placement placement;
            cc_event *event;
            unsigned word = 0;
            MUST(cc_pool_device_default(devices[i], &pool, &error));
            MUST(cc_buffer_allocate(pool, 4096, streams[i], &buffer, &error));
            MUST(cc_fill(cc_buffer_read(buffer)->pointer, 4096, 0xabcd0000u + (unsigned)i, 4, streams[i], &error));
            MUST(cc_event_create(contexts[i], 0, &event, &error));
            MUST(cc_event_record(event, streams[i], &error));
            MUST(cc_stream_wait_event(streams[1 - i], event, &error)); /* across devices */
            MUST(cc_copy_to_host(&word, cc_buffer_read(buffer)->pointer, 4, streams[i], NULL, NULL, &error));
            MUST(cc_stream_synchronize(streams[i], &error));
            CHECK_INT(word, 0xabcd0000u + (unsigned)i);
            MUST(cc_buffer_wrap(cc_buffer_read(buffer)->pointer, 4096, NULL, NULL, &wrapped, &error));
            MUST(cc_buffer_placement(wrapped, &placement, &error));
            CHECK_INT(placement.device, i);
            check_current(cc_context_native(contexts[current]));
            cc_event_release(event);
            cc_buffer_release(wrapped);
            cc_buffer_release(buffer);
            cc_pool_release(pool);
            check_current(cc_context_native(contexts[current]));
        }
    }
    MUST(cc_context_set_current(NULL, &error));
}

/* A default stream is that of whatever is current, and of the object's device where one is meant. */
static void test_default_stream(void)
{
    cc_stream *stream;
    cc_context *context;
    cc_event *event;
    cc_pool *pool;
    cc_buffer *buffer;
    MUST(cc_stream_wrap(CU_STREAM_LEGACY, NULL, NULL, NULL, &stream, &error));
    MUST(cc_context_set_current(cc_context_native(contexts[1]), &error));
    MUST(cc_stream_context(stream, &context, &error));
    CHECK(context == contexts[1]);
    MUST(cc_event_create(contexts[0], 0, &event, &error));
    MUST(cc_event_record(event, stream, &error)); /* device 0's, since the event is */
    MUST(cc_event_synchronize(event, &error));
    MUST(cc_pool_device_default(devices[0], &pool, &error));
    MUST(cc_buffer_allocate(pool, 64, stream, &buffer, &error));
    cc_buffer_release(buffer);
    cc_pool_release(pool);
    cc_event_release(event);
    MUST(cc_context_set_current(NULL, &error));
    MUST(cc_stream_context(stream, &context, &error));
    CHECK(context == contexts[0]);
    cc_stream_release(stream);
}

static void test_event_of_the_other_device(void)
{
    cc_event *event;
    MUST(cc_event_create(contexts[0], 0, &event, &error));
    CHECK_INT(cc_event_record(event, streams[1], &error), -1);
    CHECK_INT(error.code, CUDA_ERROR_INVALID_HANDLE);
    CHECK_TEXT(error.text, "The event is of device 0, the stream of device 1");
    cc_event_release(event);
}

/* A context that another library made: found as an object, its streams know it, and it is never destroyed by us. */
static void test_foreign_context(void)
{
    PFN_cuCtxCreate_v3020 create = NULL;
    PFN_cuCtxDestroy_v4000 destroy = NULL;
    void *library = dlopen(cc_driver_path(), RTLD_NOW | RTLD_LOCAL);
    void *symbols[2] = {library ? dlsym(library, "cuCtxCreate_v2") : NULL,
                        library ? dlsym(library, "cuCtxDestroy_v2") : NULL};
    memcpy(&create, &symbols[0], sizeof create);
    memcpy(&destroy, &symbols[1], sizeof destroy);
    CHECK(create && destroy);
    if (!create || !destroy)
        return;

    CUcontext native;
    CUstream native_stream;
    cc_context *foreign, *again, *found;
    cc_stream *stream;
    CHECK_INT(create(&native, 0, cc_device_native(devices[1])), CUDA_SUCCESS); /* and makes it current */
    CHECK_INT(cc__driver.cuStreamCreateWithPriority(&native_stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    MUST(cc_context_set_current(NULL, &error));
    MUST(cc_context_from_native(native, &foreign, &error));
    MUST(cc_context_from_native(native, &again, &error));
    CHECK(foreign == again);
    CHECK(foreign != contexts[1]);
    CHECK(cc_context_device(foreign) == devices[1]);
    MUST(cc_stream_wrap(native_stream, NULL, NULL, NULL, &stream, &error));
    MUST(cc_stream_context(stream, &found, &error));
    CHECK(found == foreign);
    MUST(cc_stream_synchronize(stream, &error));
    check_current(NULL);
    cc_context_release(foreign);
    cc_context_release(again);
    cc_stream_release(stream);
    MUST(cc_context_set_current(native, &error));
    CHECK_INT(cc__driver.cuStreamSynchronize(native_stream), CUDA_SUCCESS); /* still alive */
    CHECK_INT(destroy(native), CUDA_SUCCESS);
    check_current(NULL);
}

static const check_test tests[] = {TEST(test_objects_know_their_device), TEST(test_default_stream),
                                   TEST(test_event_of_the_other_device), TEST(test_foreign_context)};

int main(void)
{
    int count;
    setenv("CUDA_CORE_EMULATOR_DEVICES", "2", 1);
    check_open_driver();
    MUST(cc_device_count(&count, &error));
    if (count < 2) {
        printf("one device only\n");
        return 77;
    }
    setup();
    int result = check_run(tests, sizeof tests / sizeof tests[0]);
    for (int i = 0; i < 2; i++)
        cc_stream_release(streams[i]);
    return result;
}
