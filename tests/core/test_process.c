/* Waits that are broken off, children of fork, and the end of a process, with a driver that counts its calls. */
#include "check.h"
#include "fake_driver.h"

#include <sys/wait.h>
#include <unistd.h>

static cc_error error;
static cc_device *device;
static cc_context *context;
static cc_stream *stream;
static cc_event *event;

static void setup(void)
{
    fake_reset();
    MUST(fake_open(&error));
    MUST(cc_device_get(0, &device, &error));
    MUST(cc_device_primary_context(device, &context, &error));
    MUST(cc_stream_create(context, CU_STREAM_NON_BLOCKING, 0, &stream, &error));
    MUST(cc_event_create(context, 0, &event, &error));
    MUST(cc_event_record(event, stream, &error));
}

static void teardown(void)
{
    cc_event_release(event);
    cc_stream_release(stream);
    CHECK_INT(fake_live(), 0);
}

typedef struct asked {
    int times, break_at, done_at;
} asked;

static bool interrupted(void *user)
{
    asked *self = user;
    self->times++;
    if (self->times == self->done_at)
        fake.events_done = true;
    return self->times == self->break_at;
}

static void test_broken_off(void)
{
    asked watched = {.break_at = 3};
    const cc_watch watch = {interrupted, &watched};
    setup();
    fake.events_done = false;
    CHECK_INT(cc_stream_wait(stream, &watch, &error), 1);
    CHECK_INT(watched.times, 3);
    watched.times = 0;
    CHECK_INT(cc_event_wait(event, &watch, &error), 1);
    CHECK_INT(watched.times, 3);
    watched.times = 0;
    CHECK_INT(cc_host_copy_wait(&watched, 4, true, stream, &watch, &error), 1);
    CHECK_INT(cc_host_copy_wait(&watched, 4, false, stream, &watch, &error), 0); /* small: copied aside */
    CHECK_INT(watched.times, 3);
    watched.times = 0;
    CHECK_INT(cc_device_wait(device, &watch, &error), 0); /* a driver without cuCtxRecordEvent */
    CHECK_INT(watched.times, 0);
    teardown();
}

static void test_waited_for(void)
{
    asked watched = {.done_at = 2};
    const cc_watch watch = {interrupted, &watched};
    setup();
    fake.events_done = false;
    CHECK_INT(cc_stream_wait(stream, &watch, &error), 0);
    CHECK_INT(watched.times, 2);
    CHECK_INT(cc_stream_wait(stream, NULL, &error), 0);
    CHECK_INT(watched.times, 2);

    fake.fail_name = "cuStreamSynchronize";
    fake.fail_code = CUDA_ERROR_ILLEGAL_ADDRESS;
    CHECK_INT(cc_stream_wait(stream, &watch, &error), -1);
    CHECK_INT(error.code, CUDA_ERROR_ILLEGAL_ADDRESS);
    fake.fail_name = NULL;
    teardown();
}

static volatile long counted;
static pthread_barrier_t both_there;

static void *count_under_a_lock(void *lock)
{
    pthread_barrier_wait(&both_there);
    for (int i = 0; i < 200000; i++) {
        cc__lock(lock);
        cc__lock(&device->lock); /* two, as calls nest them */
        counted++;
        cc__unlock(&device->lock);
        cc__unlock(lock);
    }
    return NULL;
}

/* In the child, whose threads are kept apart although it lacks the one that holds the lock. */
static void lock_after_fork(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&both_there, NULL, 2);
    for (int i = 0; i < 2; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, count_under_a_lock, &context->lock), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(counted, 400000);
}

/* In the child; the exit code tells how many checks failed. */
static int use_after_fork(cc_buffer *buffer, cc_library *library)
{
    cc_stream *other;
    int before = fake.calls;
    check_failures = 0;
    CHECK_INT(cc_stream_synchronize(stream, &error), -1);
    CHECK_INT(error.domain, CC_DOMAIN_DRIVER);
    CHECK_INT(error.code, CUDA_ERROR_NOT_INITIALIZED);
    CHECK_TEXT(error.text, "fork()");
    CHECK_TEXT(error.text, "\"spawn\"");
    CHECK_INT(cc_stream_create(context, 0, 0, &other, &error), -1);
    CHECK_TEXT(error.text, "fork()");
    CHECK_INT(cc_event_record(event, stream, &error), -1);
    CHECK_TEXT(error.text, "fork()");
    cc_buffer_release(buffer);
    cc_library_release(library);
    cc_event_release(event);
    cc_stream_release(stream);
    cc_context_collect(context, true);
    CHECK_INT(fake.calls, before); /* nothing has reached the driver */
    lock_after_fork();
    return check_failures;
}

static void test_fork(void)
{
    cc_buffer *buffer;
    cc_library *library;
    int status;
    setup();
    cc__watch_forks();
    MUST(cc_buffer_allocate_pinned(context, 64, &buffer, &error));
    MUST(cc_library_load(fake_ptx, strlen(fake_ptx), &library, &error));
    cc__lock(&context->lock); /* as another thread would, which the child then lacks */
    pid_t child = fork();
    if (child == 0)
        _exit(use_after_fork(buffer, library));
    cc__unlock(&context->lock);
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
    MUST(cc_stream_synchronize(stream, &error)); /* the parent goes on */
    cc_buffer_release(buffer);
    cc_library_release(library);
    teardown();
}

static void test_exit_frees_nothing_that_waits(void)
{
    cc_buffer *buffer;
    setup();
    MUST(cc_buffer_allocate_pinned(context, 64, &buffer, &error));
    cc_process_ends(true);
    cc_buffer_release(buffer);
    CHECK_INT(fake.live_buffers, 1);
    cc_process_ends(false);
    MUST(cc_buffer_allocate_pinned(context, 64, &buffer, &error));
    cc_buffer_release(buffer);
    CHECK_INT(fake.live_buffers, 1);
    fake.live_buffers = 0;
    teardown();
}

int main(void)
{
    test_broken_off();
    test_waited_for();
    test_fork();
    test_exit_frees_nothing_that_waits();
    printf("%s\n", check_failures ? "FAILED" : "passed");
    return check_failures ? 1 : 0;
}
