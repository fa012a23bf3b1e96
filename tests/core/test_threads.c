/* Eight threads that share core's objects, from the first use of the driver on. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 8, ROUNDS = 25, SMALL = 4 };

/* add(cell, n): every thread adds n to the cell */
static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry add(.param .u64 cell, .param .u32 n)\n{\n"
                          ".reg .b32 %r<3>; .reg .b64 %rd<2>;\nld.param.u64 %rd1, [cell];\nld.param.u32 %r1, [n];\n"
                          "atom.global.add.u32 %r2, [%rd1], %r1;\nret;\n}\n";

static const cc_launch_config one_warp = {.grid = {1, 1, 1}, .block = {32, 1, 1}};

static check_device on;
static cc_library *library;
static cc_buffer *shared_cell;
static pthread_barrier_t gate;
static atomic_bool failed;

/* As MUST, on a thread of many: what fails is told, and the test goes on. */
#define MUST_HERE(call)                                                                                                \
    do {                                                                                                               \
        if (call) {                                                                                                    \
            printf("%s:%d: %s failed: %s\n", __FILE__, __LINE__, #call, error.text);                                   \
            cc_error_clear(&error);                                                                                    \
            atomic_store(&failed, true);                                                                               \
        }                                                                                                              \
    } while (0)

typedef void (*thread_work)(int number);

typedef struct thread_of {
    pthread_t thread;
    thread_work work;
    int number;
} thread_of;

static void *begin(void *given)
{
    const thread_of *self = given;
    pthread_barrier_wait(&gate);
    self->work(self->number);
    return NULL;
}

/* work(0) to work(THREADS - 1), begun at the same moment. */
static void together(thread_work work)
{
    thread_of threads[THREADS];
    pthread_barrier_init(&gate, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (thread_of){.work = work, .number = i};
        CHECK_INT(pthread_create(&threads[i].thread, NULL, begin, &threads[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i].thread, NULL);
    pthread_barrier_destroy(&gate);
    CHECK(!atomic_load(&failed));
}

static void launch_add(cc_kernel *kernel, cc_stream *stream, const cc_buffer *cell, int n)
{
    cc_error error;
    CUdeviceptr pointer = cc_buffer_read(cell)->pointer;
    void *slots[] = {&pointer, &n};
    MUST_HERE(cc_launch_check(&one_warp, kernel, on.device, &error));
    MUST_HERE(cc_launch(&one_warp, stream, kernel, slots, &error));
}

static int int_in(const cc_buffer *cell, cc_stream *stream)
{
    cc_error error;
    int value = 0;
    MUST_HERE(cc_copy_to_host(&value, cc_buffer_read(cell)->pointer, sizeof value, stream, NULL, NULL, &error));
    MUST_HERE(cc_stream_synchronize(stream, &error));
    return value;
}

/* ---- first use --------------------------------------------------------------------------------------------------- */

static cc_device *seen_device[THREADS];
static cc_context *seen_context[THREADS];
static const char *seen_name[THREADS];

static void use_first(int number)
{
    cc_error error;
    check_open_driver();
    MUST_HERE(cc_device_get(0, &seen_device[number], &error));
    MUST_HERE(cc_device_primary_context(seen_device[number], &seen_context[number], &error));
    MUST_HERE(cc_device_name(seen_device[number], &seen_name[number], &error));
}

static void test_first_use(void)
{
    together(use_first);
    for (int i = 1; i < THREADS; i++) {
        CHECK(seen_device[i] == seen_device[0]);
        CHECK(seen_context[i] == seen_context[0]);
        CHECK(seen_name[i] == seen_name[0]);
    }
    on = check_open_device();
    CHECK(on.context == seen_context[0]);
}

/* ---- everything at once ------------------------------------------------------------------------------------------ */

/* Code, loaded and unloaded by one thread, kernels of it alive a little longer. */
static void use_own_code(cc_stream *stream, const cc_buffer *cell)
{
    cc_error error;
    cc_library *own;
    cc_kernel *kernel;
    MUST_HERE(cc_library_load(ptx, sizeof ptx, &own, &error));
    MUST_HERE(cc_kernel_get(own, "add", &kernel, &error));
    cc_library_release(own);
    launch_add(kernel, stream, cell, 1);
    MUST_HERE(cc_stream_synchronize(stream, &error));
    cc_kernel_release(kernel);
}

static void work_on_everything(int number)
{
    cc_error error;
    cc_kernel *kernel;
    CUcontext current;
    MUST_HERE(cc_kernel_get(library, "add", &kernel, &error));
    for (int round = 0; round < ROUNDS; round++) {
        cc_stream *stream;
        cc_buffer *cell;
        cc_event *event;
        MUST_HERE(cc_context_set_current(round % 2 ? cc_context_native(on.context) : NULL, &error));
        MUST_HERE(cc_stream_create(on.context, CU_STREAM_NON_BLOCKING, 0, &stream, &error));
        MUST_HERE(cc_buffer_allocate(on.pool, SMALL, stream, &cell, &error));
        MUST_HERE(cc_fill(cc_buffer_read(cell)->pointer, SMALL, 0, 1, stream, &error));
        launch_add(kernel, stream, cell, number + round);
        launch_add(kernel, on.stream, shared_cell, 1);
        cc_buffer_used_on(shared_cell, on.stream);
        use_own_code(stream, cell);
        MUST_HERE(cc_event_create(on.context, CU_EVENT_DISABLE_TIMING, &event, &error));
        MUST_HERE(cc_event_record(event, stream, &error));
        MUST_HERE(cc_event_synchronize(event, &error));
        if (int_in(cell, stream) != 32 * (number + round + 1))
            atomic_store(&failed, true);
        MUST_HERE(cc_context_get_current(&current, &error));
        if (current != (round % 2 ? cc_context_native(on.context) : NULL))
            atomic_store(&failed, true);
        cc_event_release(event);
        cc_buffer_release(cell);
        cc_stream_release(stream);
        cc_context_collect(on.context, false);
    }
    cc_kernel_release(kernel);
}

static void test_everything(void)
{
    cc_error error;
    MUST(cc_library_load(ptx, sizeof ptx, &library, &error));
    MUST(cc_buffer_allocate(on.pool, SMALL, on.stream, &shared_cell, &error));
    MUST(cc_fill(cc_buffer_read(shared_cell)->pointer, SMALL, 0, 1, on.stream, &error));
    together(work_on_everything);
    CHECK_INT(int_in(shared_cell, on.stream), 32 * THREADS * ROUNDS);
    cc_library_release(library);
}

/* ---- the stream of the last use ---------------------------------------------------------------------------------- */

/* Half of the threads bring streams that only the buffer keeps; the others ask for the last one and use it. */
static void replace_or_ask(int number)
{
    cc_error error;
    for (int round = 0; round < 20 * ROUNDS; round++) {
        bool done;
        cc_stream *stream;
        if (number % 2) {
            MUST_HERE(cc_stream_create(on.context, CU_STREAM_NON_BLOCKING, 0, &stream, &error));
            cc_buffer_used_on(shared_cell, stream);
        } else {
            stream = cc_buffer_last_stream(shared_cell);
            MUST_HERE(cc_stream_query(stream, &done, &error));
        }
        cc_stream_release(stream);
    }
}

static void test_last_stream(void)
{
    together(replace_or_ask);
    cc_buffer_release(shared_cell);
    check_close_device(&on);
}

static const check_test tests[] = {TEST(test_first_use), TEST(test_everything), TEST(test_last_stream)};

CHECK_MAIN(tests)
