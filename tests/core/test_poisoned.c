/* A kernel that faults loses its context: the next wait says so, and everything can still be given back in peace. */
#include "check.h"

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry store(.param .u64 out)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
                          "ld.param.u64 %rd1, [out];\nmov.u32 %r1, 7;\nst.global.u32 [%rd1], %r1;\nret;\n}\n";

static int released;

static void release(void *object)
{
    free(object);
    released++;
}

int main(void)
{
    cc_error error;
    cc_library *library;
    cc_kernel *kernel;
    cc_event *event;
    cc_buffer *buffer, *pinned;
    check_device on = check_open_device();
    MUST(cc_library_load(ptx, sizeof ptx, &library, &error));
    MUST(cc_kernel_get(library, "store", &kernel, &error));
    MUST(cc_event_create(on.context, 0, &event, &error));
    MUST(cc_buffer_allocate(on.pool, 4096, on.stream, &buffer, &error));
    MUST(cc_buffer_allocate_pinned(on.context, 4096, &pinned, &error));

    CUdeviceptr nowhere = 0x10;
    void *slots[] = {&nowhere};
    cc_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    MUST(cc_launch_check(&config, kernel, on.device, &error));
    /* One that goes well, is waited for, and so has nothing to do with what comes. */
    CUdeviceptr somewhere = cc_buffer_read(buffer)->pointer;
    void *good[] = {&somewhere};
    MUST(cc_launch(&config, on.stream, kernel, good, &error));
    MUST(cc_stream_synchronize(on.stream, &error));
    char first[80];
    snprintf(first, sizeof first, "First failed: kernel store on stream 0x%llx",
             (unsigned long long)(uintptr_t)cc_stream_native(on.stream));
    /* host memory in use behind the kernel that never ends well */
    MUST(cc_launch(&config, on.stream, kernel, slots, &error));
    void *token = malloc(1);
    CUdeviceptr source = cc_buffer_read(pinned)->pointer, destination = cc_buffer_read(buffer)->pointer;
    bool handed_over =
        cc_copy_from_host(destination, (void *)(uintptr_t)source, 4096, on.stream, release, token, &error) == 0;
    if (!handed_over)
        free(token);
    (void)cc_event_record(event, on.stream, &error);

    CHECK_INT(cc_stream_synchronize(on.stream, &error), -1);
    CHECK_INT(error.domain, CC_DOMAIN_DRIVER);
    CHECK_INT(error.code, CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_TEXT(error.text, "CUDA_ERROR_ILLEGAL_ADDRESS in cuStreamSynchronize");
    if (cc_driver_which() == CC_DRIVER_EMULATOR) {
        CHECK_TEXT(error.text, "0x10");
        CHECK_TEXT(error.text, "store");
    }
    CHECK_TEXT(error.text, first);
    CHECK_TEXT(error.text, "(the only launch in flight)");
    printf("%s\n", error.text);
    CHECK_INT(cc_event_synchronize(event, &error), -1); /* the error stays, and so does where it came from */
    CHECK_TEXT(error.text, first);
    CHECK_INT(cc_pool_trim(on.pool, 0, &error) == 0 || strstr(error.text, first), true);

    /* a kernel that has done nothing wrong */
    CHECK_INT(cc_launch(&config, on.stream, kernel, slots, &error), -1);
    CHECK_INT(error.code, CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_TEXT(error.text, "An earlier kernel failed: this process cannot use the device any more");
    CHECK(!strstr(error.text, "The kernel is store, its grid"));
    CHECK_TEXT(error.text, first);
    printf("%s\n", error.text);

    cc_context_collect(on.context, true);
    CHECK(!cc_context_has_pending(on.context));
    if (handed_over)
        CHECK_INT(released, 1);
    cc_buffer_release(buffer);
    cc_buffer_release(pinned);
    cc_event_release(event);
    cc_kernel_release(kernel);
    cc_library_release(library);
    cc_pool_release(on.pool);
    cc_stream_release(on.stream);
    printf("%s\n", check_failures ? "FAILED" : "passed");
    return check_failures ? 1 : 0;
}
