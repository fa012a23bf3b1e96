/* Every driver call and every allocation fails once, each in a process of its own that starts from nothing: core says
 * so, leaves nothing alive and touches nothing that is not there (AddressSanitizer watches where it is built in). */
#include "check.h"
#include "fake_driver.h"

#include <sys/wait.h>
#include <unistd.h>

static int allocations, fail_allocation; /* the number of the one to fail */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);

static bool fails(void)
{
    return ++allocations == fail_allocation;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return fails() ? NULL : __real_realloc(block, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
    return fails() ? NULL : __real_strndup(text, size);
}

typedef struct things {
    cc_stream *stream, *second;
    cc_event *event;
    cc_pool *pool, *own_pool, *pinned_pool;
    cc_buffer *buffer, *pinned, *plain;
    cc_library *library;
    cc_kernel *kernel;
} things;

static int kept_released;

static void keep(void *object)
{
    kept_released += *(int *)object;
}

static int use_memory(things *all, cc_error *error)
{
    static int object = 1;
    char host[64] = "host";
    CUdeviceptr pointer = cc_buffer_read(all->buffer)->pointer;
    bool done;
    int handed_over = 0;
    int status = cc_fill(pointer, 64, 3, 1, all->stream, error) ||
                 cc_copy_from_host(pointer, host, 64, all->stream, keep, &object, error) || (handed_over++, 0) ||
                 cc_copy_to_host(host, pointer, 64, all->second, keep, &object, error) || (handed_over++, 0) ||
                 cc_event_record(all->event, all->stream, error) ||
                 cc_stream_wait_stream(all->second, all->stream, error) || cc_event_query(all->event, &done, error) ||
                 cc_stream_synchronize(all->stream, error);
    cc_context *context;
    if (cc_stream_context(all->stream, &context, NULL) == 0)
        cc_context_collect(context, true);
    CHECK_INT(kept_released, handed_over); /* neither forgotten nor given back twice */
    return status;
}

static int use_kernel(things *all, cc_device *device, cc_error *error)
{
    const cc_signature *signature;
    double *pointer = NULL;
    int n = 3;
    float x = 4;
    void *slots[] = {&pointer, &n, &x};
    const char *const *names;
    size_t count;
    cc_launch_config config = {.grid = {2, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 60000};
    return cc_library_load(fake_ptx, strlen(fake_ptx), &all->library, error) ||
           cc_kernel_get(all->library, "add", &all->kernel, error) ||
           cc_library_kernel_names(all->library, &names, &count, error) ||
           cc_kernel_signature(all->kernel, &signature, error) ||
           cc_launch_check(&config, all->kernel, device, error) ||
           cc_launch(&config, all->stream, all->kernel, slots, error);
}

static int use_everything(things *all, cc_error *error)
{
    cc_device *device;
    cc_context *context;
    const char *name;
    return fake_open(error) || cc_device_get(0, &device, error) || cc_device_name(device, &name, error) ||
           cc_device_primary_context(device, &context, error) ||
           cc_stream_create(context, 0, -1, &all->stream, error) ||
           cc_stream_create(context, 0, 0, &all->second, error) || cc_event_create(context, 0, &all->event, error) ||
           cc_pool_device_default(device, &all->pool, error) ||
           cc_pool_create_device(device, 0, &all->own_pool, error) ||
           cc_pool_create_pinned(device, -1, 0, &all->pinned_pool, error) ||
           cc_buffer_allocate(all->pool, 64, all->stream, &all->buffer, error) ||
           cc_buffer_allocate_pinned(context, 64, &all->pinned, error) ||
           cc_buffer_allocate_device(context, 64, &all->plain, error) || use_memory(all, error) ||
           use_kernel(all, device, error);
}

static void release_all(things *all)
{
    cc_buffer_release(all->buffer);
    cc_buffer_release(all->pinned);
    cc_buffer_release(all->plain);
    cc_pool_release(all->pool);
    cc_pool_release(all->own_pool);
    cc_pool_release(all->pinned_pool);
    cc_event_release(all->event);
    cc_stream_release(all->stream);
    cc_stream_release(all->second);
    cc_kernel_release(all->kernel);
    cc_library_release(all->library);
}

/* No code that a sanitizer or a crash ends a process with. */
enum { RAN = 40, FAULT_MET, WRONG };

static int scenario(int call, int allocation)
{
    static const char canary[] = "untouched";
    things all = {0};
    cc_error error;
    strcpy(error.text, canary);
    fake_reset();
    fake.unified_host_type = CU_MEMORYTYPE_HOST; /* so that host memory is kept */
    fake.fail_call = call;
    fail_allocation = allocation;
    int status = use_everything(&all, &error);
    bool fired = call ? fake.calls >= call : allocations >= allocation;
    fake.fail_call = fail_allocation = 0; /* giving back is another test's concern */
    release_all(&all);
    /* A context that cannot be entered is taken for one that is gone, and its objects with it. */
    if (fake.failed_call && strncmp(fake.failed_call, "cuCtx", 5) == 0)
        fake_unmake_all();
    CHECK_INT(fake_live(), 0);
    if (status) {
        CHECK(error.text[0] != '\0' && strcmp(error.text, canary) != 0);
        CHECK(error.name != NULL);
        cc_error_clear(&error);
    } else {
        CHECK(strcmp(error.text, canary) == 0); /* a success leaves the error alone */
    }
    if (check_failures)
        return WRONG;
    return fired ? FAULT_MET : RAN;
}

static int in_child(int call, int allocation)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        check_failures = 0;
        int result = scenario(call, allocation);
        fflush(stdout);
        exit(result); /* runs the leak check, where there is one */
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void sweep(bool calls, int at_least)
{
    int count = 0, result;
    while ((result = in_child(calls ? count + 1 : 0, calls ? 0 : count + 1)) == FAULT_MET)
        count++;
    if (result != RAN)
        printf("with %s %d failing\n", calls ? "driver call" : "allocation", count + 1);
    CHECK_INT(result, RAN);
    CHECK(count >= at_least);
    printf("%d places\n", count);
}

static void test_driver_calls(void)
{
    sweep(true, 60);
}

static void test_allocations(void)
{
    sweep(false, 15);
}

static const check_test tests[] = {TEST(test_driver_calls), TEST(test_allocations)};
CHECK_MAIN(tests)
