/* Libraries, kernels and launches on a real driver or on the emulator; PTX by hand, and a cubin where NVRTC is found.
 */
#include "check.h"

static cc_error error;
static check_device on;

/* saxpy(n, a, x, y); big_shared(out) writes and reads the last word of its dynamic shared memory, whose size is an
 * argument; by_value(out, struct of 3 doubles) writes their sum */
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .shared .align 16 .b8 dynamic[];\n"
    ".visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 .ptr .global .align 4 x, .param .u64 y)\n{\n"
    ".reg .pred %p; .reg .f32 %f<5>; .reg .b32 %r<6>; .reg .b64 %rd<8>;\n"
    "ld.param.u32 %r1, [n];\nld.param.f32 %f1, [a];\nld.param.u64 %rd1, [x];\nld.param.u64 %rd2, [y];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\nmad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "setp.ge.u32 %p, %r5, %r1;\n@%p bra DONE;\nmul.wide.u32 %rd3, %r5, 4;\nadd.s64 %rd4, %rd1, %rd3;\n"
    "add.s64 %rd5, %rd2, %rd3;\nld.global.f32 %f2, [%rd4];\nld.global.f32 %f3, [%rd5];\n"
    "fma.rn.f32 %f4, %f1, %f2, %f3;\nst.global.f32 [%rd5], %f4;\nDONE:\nret;\n}\n"
    ".visible .entry big_shared(.param .u64 out, .param .u32 bytes)\n{\n"
    ".reg .b32 %r<5>; .reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\nld.param.u32 %r1, [bytes];\n"
    "mov.u32 %r2, dynamic;\nadd.u32 %r2, %r2, %r1;\nst.shared.u32 [%r2+-4], %r1;\nld.shared.u32 %r3, [%r2+-4];\n"
    "st.global.u32 [%rd1], %r3;\nret;\n}\n"
    ".visible .entry by_value(.param .u64 out, .param .align 8 .b8 triple[24])\n{\n"
    ".reg .f64 %fd<6>; .reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\nld.param.f64 %fd1, [triple];\n"
    "ld.param.f64 %fd2, [triple+8];\nld.param.f64 %fd3, [triple+16];\nadd.f64 %fd4, %fd1, %fd2;\n"
    "add.f64 %fd5, %fd4, %fd3;\nst.global.f64 [%rd1], %fd5;\nret;\n}\n";

static cc_library *library;

static cc_kernel *kernel_of(const char *name)
{
    cc_kernel *kernel;
    MUST(cc_kernel_get(library, name, &kernel, &error));
    return kernel;
}

static void launch(const cc_launch_config *config, cc_kernel *kernel, void **slots)
{
    MUST(cc_launch_check(config, kernel, on.device, &error));
    MUST(cc_launch(config, on.stream, kernel, slots, &error));
}

static void test_names(void)
{
    const char *const *names;
    size_t count;
    bool found[3] = {false};
    cc_kernel *none;
    REFUSED(cc_kernel_get(library, "sax", &none, &error), CC_NO_SUCH_KERNEL, "there is no kernel 'sax'");
    int version;
    MUST(cc_driver_version(&version, &error));
    if (version < 12040) {
        REFUSED(cc_library_kernel_names(library, &names, &count, &error), CC_NEEDS_DRIVER, "needs driver 12.4");
        return;
    }
    MUST(cc_library_kernel_names(library, &names, &count, &error));
    CHECK_INT(count, 3);
    for (size_t i = 0; i < count; i++) {
        found[0] |= strcmp(names[i], "saxpy") == 0;
        found[1] |= strcmp(names[i], "big_shared") == 0;
        found[2] |= strcmp(names[i], "by_value") == 0;
    }
    CHECK(found[0] && found[1] && found[2]);
}

static void test_signature(void)
{
    const cc_signature *signature;
    cc_kernel *saxpy = kernel_of("saxpy"), *by_value = kernel_of("by_value");
    MUST(cc_kernel_signature(saxpy, &signature, &error));
    CHECK(signature->is_known);
    CHECK_INT(signature->count, 4);
    CHECK_INT(signature->bytes, 24);
    CHECK_INT(signature->parameters[0].type, CC_TYPE_INTEGER);
    CHECK_INT(signature->parameters[1].type, CC_TYPE_FLOAT);
    CHECK_INT(signature->parameters[2].type, CC_TYPE_POINTER);
    CHECK_INT(signature->parameters[3].type, CC_TYPE_INTEGER);
    CHECK_INT(signature->parameters[3].offset, 16);
    MUST(cc_kernel_signature(by_value, &signature, &error));
    CHECK_INT(signature->count, 2);
    CHECK_INT(signature->bytes, 32);
    CHECK_INT(signature->parameters[1].type, CC_TYPE_BYTES);
    cc_kernel_release(saxpy);
    cc_kernel_release(by_value);
}

static void run_saxpy(cc_kernel *saxpy)
{
    enum { N = 1000 };
    static float x[N], y[N];
    const cc_signature *signature;
    cc_buffer *buffers[2];
    unsigned char packed[4][8];
    void *slots[] = {packed[0], packed[1], packed[2], packed[3]};
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    for (int i = 0; i < 2; i++) {
        MUST(cc_buffer_allocate(on.pool, sizeof x, on.stream, &buffers[i], &error));
        MUST(
            cc_copy_from_host(cc_buffer_read(buffers[i])->pointer, i ? y : x, sizeof x, on.stream, NULL, NULL, &error));
    }
    MUST(cc_kernel_signature(saxpy, &signature, &error));
    MUST(cc_pack_signed(&signature->parameters[0], N, packed[0], &error));
    MUST(cc_pack_double(&signature->parameters[1], 2.0, packed[1], &error));
    MUST(cc_pack_pointer(&signature->parameters[2], cc_buffer_read(buffers[0])->pointer, packed[2], &error));
    MUST(cc_pack_pointer(&signature->parameters[3], cc_buffer_read(buffers[1])->pointer, packed[3], &error));
    cc_launch_config config = {.grid = {(N + 255) / 256, 1, 1}, .block = {256, 1, 1}};
    launch(&config, saxpy, slots);
    MUST(cc_copy_to_host(y, cc_buffer_read(buffers[1])->pointer, sizeof y, on.stream, NULL, NULL, &error));
    MUST(cc_stream_synchronize(on.stream, &error));
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += y[i] != 2 * (float)i + 1;
    CHECK_INT(wrong, 0);
    cc_buffer_release(buffers[0]);
    cc_buffer_release(buffers[1]);
}

static void test_saxpy(void)
{
    cc_kernel *saxpy = kernel_of("saxpy");
    run_saxpy(saxpy);
    cc_kernel_release(saxpy);
}

static void test_struct_by_value(void)
{
    double triple[] = {1.5, 20, 300}, sum = 0;
    cc_buffer *out;
    cc_kernel *by_value = kernel_of("by_value");
    MUST(cc_buffer_allocate(on.pool, 8, on.stream, &out, &error));
    CUdeviceptr pointer = cc_buffer_read(out)->pointer;
    void *slots[] = {&pointer, triple};
    launch(&(cc_launch_config){.grid = {1, 1, 1}, .block = {1, 1, 1}}, by_value, slots);
    MUST(cc_copy_to_host(&sum, pointer, 8, on.stream, NULL, NULL, &error));
    MUST(cc_stream_synchronize(on.stream, &error));
    CHECK(sum == 321.5);
    cc_buffer_release(out);
    cc_kernel_release(by_value);
}

static void test_big_shared_memory(void)
{
    int most;
    unsigned value = 0;
    cc_buffer *out;
    cc_kernel *kernel = kernel_of("big_shared");
    MUST(cc_device_attribute(on.device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most, &error));
    MUST(cc_buffer_allocate(on.pool, 4, on.stream, &out, &error));
    CUdeviceptr pointer = cc_buffer_read(out)->pointer;
    unsigned bytes = (unsigned)most;
    void *slots[] = {&pointer, &bytes};
    cc_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared_bytes = bytes};
    launch(&config, kernel, slots);
    MUST(cc_copy_to_host(&value, pointer, 4, on.stream, NULL, NULL, &error));
    MUST(cc_stream_synchronize(on.stream, &error));
    CHECK_INT(value, most);
    config.shared_bytes++;
    REFUSED(cc_launch_check(&config, kernel, on.device, &error), CC_LIMIT, "bytes of dynamic shared memory");
    cc_buffer_release(out);
    cc_kernel_release(kernel);
}

static void test_limits(void)
{
    int threads, registers;
    cc_kernel *kernel = kernel_of("saxpy");
    cc_launch_config config = {.grid = {1, 1, 1}, .block = {1024, 2, 1}};
    REFUSED(cc_launch_check(&config, kernel, on.device, &error), CC_LIMIT,
            "block has 2048 threads; this device allows 1024 a block");
    config.block[1] = 1;
    config.grid[1] = 70000;
    REFUSED(cc_launch_check(&config, kernel, on.device, &error), CC_LIMIT, "grid y is 70000; this device allows 65535");
    MUST(cc_kernel_attribute(kernel, on.device, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads, &error));
    CHECK(threads > 0 && threads <= 1024);
    MUST(cc_kernel_attribute(kernel, on.device, CU_FUNC_ATTRIBUTE_NUM_REGS, &registers, &error));
    CHECK(registers > 0);
    cc_kernel_release(kernel);
}

/* A bad module says where, when it is loaded. */
static void test_bad_ptx(void)
{
    static const char bad[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { mov.u32 %nothing, 1; ret; }\n";
    cc_library *none;
    CHECK_INT(cc_library_load(bad, sizeof bad, &none, &error), -1);
    CHECK_INT(error.domain, CC_DOMAIN_DRIVER);
    CHECK_INT(error.code, CUDA_ERROR_INVALID_PTX);
    CHECK_TEXT(error.text, "nothing");
    CHECK_TEXT(error.text, "4"); /* the line */
    printf("%s\n", error.text);
    cc_error_clear(&error);
}

/* What the main job does: NVRTC's cubin, with the PTX in it, loads and runs on a GPU as it is and on the emulator by
 * its PTX, and its parameters have types. */
static void test_cubin(void)
{
    static const char source[] =
        "extern \"C\" __global__ void saxpy(int n, float a, const float *x, float *y)\n"
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }\n";
    const char *path = getenv("CUDA_CORE_TEST_NVRTC");
    char option[32];
    int major, minor;
    cc_compiled compiled;
    cc_library *loaded;
    cc_kernel *kernel;
    const cc_signature *signature;
    if (cc_nvrtc_open(path && *path ? path : NULL, &error)) {
        printf("no NVRTC here\n");
        return;
    }
    MUST(cc_device_attribute(on.device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major, &error));
    MUST(cc_device_attribute(on.device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor, &error));
    snprintf(option, sizeof option, "-arch=sm_%d%d", major, minor);
    const char *options[] = {option};
    cc_compile_request request = {
        .source = source, .name = "saxpy.cu", .options = options, .option_count = 1, .target = CC_TARGET_CUBIN};
    MUST(cc_compile(&request, &compiled, &error));
    MUST(cc_library_load(compiled.code, compiled.size, &loaded, &error));
    cc_compiled_free(&compiled);
    MUST(cc_kernel_get(loaded, "saxpy", &kernel, &error));
    cc_library_release(loaded);
    MUST(cc_kernel_signature(kernel, &signature, &error));
    CHECK_INT(signature->count, 4);
    CHECK_INT(signature->parameters[1].type, CC_TYPE_FLOAT);
    CHECK_INT(signature->parameters[3].size, 8);
    run_saxpy(kernel);
    cc_kernel_release(kernel);
}

static const check_test tests[] = {TEST(test_names),           TEST(test_signature),        TEST(test_saxpy),
                                   TEST(test_struct_by_value), TEST(test_limits),           TEST(test_bad_ptx),
                                   TEST(test_cubin),           TEST(test_big_shared_memory)};

int main(void)
{
    on = check_open_device();
    MUST(cc_library_load(ptx, sizeof ptx, &library, &error));
    int result = check_run(tests, sizeof tests / sizeof tests[0]);
    cc_library_release(library);
    check_close_device(&on);
    return result;
}
