/* Loading code: PTX text, cubins with PTX in them, fat binaries; and what is found in it. */
#include "check.h"
#include "images.h"

#include <unistd.h>

static char image[IMAGE_BYTES], packed[IMAGE_BYTES];

static bool loads(const void *what)
{
    CUlibrary library;
    CUkernel kernel;
    CUresult status = cuLibraryLoadData(&library, what, NULL, NULL, 0, NULL, NULL, 0);
    if (status != CUDA_SUCCESS) {
        printf("load: %s\n", name_of(status));
        detail_contains("\1");
        return false;
    }
    bool found = cuLibraryGetKernel(&kernel, library, "add_one") == CUDA_SUCCESS;
    OK(cuLibraryUnload(library));
    return found;
}

static CUresult load_module(const void *what)
{
    CUmodule module;
    CUresult status = cuModuleLoadData(&module, what);
    if (status == CUDA_SUCCESS)
        OK(cuModuleUnload(module));
    return status;
}

static void test_text(void)
{
    EXPECT(loads(kernels_ptx));
    snprintf(image, sizeof image, "// a comment\n/* and\nanother */\n%s", kernels_ptx);
    EXPECT(loads(image));
    RETURNS(CUDA_ERROR_INVALID_IMAGE, load_module("garbage"));
    RETURNS(CUDA_ERROR_INVALID_IMAGE, load_module(""));
    RETURNS(CUDA_ERROR_INVALID_IMAGE, load_module("/* not closed"));
    RETURNS(CUDA_ERROR_INVALID_VALUE, load_module(NULL));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(NULL, kernels_ptx));
    RETURNS(CUDA_ERROR_INVALID_PTX, load_module(".version 8.0\n.target sm_120\n.address_size 64\n"
                                                ".visible .entry f()\n{\n    ret;\n}\n"));
    if (on_emulator())
        EXPECT(detail_contains("CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY=12.0"));
}

static void test_cubins(void)
{
    if (!on_emulator())
        return;
    size_t size = make_elf(image, 0x8000cc01u, kernels_ptx, sizeof kernels_ptx);
    EXPECT(loads(image));
    make_elf(image, SHT_PROGBITS, kernels_ptx, sizeof kernels_ptx);
    RETURNS(CUDA_ERROR_NO_BINARY_FOR_GPU, load_module(image));
    EXPECT(detail_contains("runs PTX, not machine code"));

    /* damaged: sizes that reach outside the file, which is known when it is read from one */
    char path[] = "/tmp/emulator-image-XXXXXX";
    int file = mkstemp(path);
    CUmodule module;
    make_elf(image, 0x8000cc01u, kernels_ptx, sizeof kernels_ptx);
    EXPECT(write(file, image, size / 2) == (ssize_t)(size / 2));
    RETURNS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoad(&module, path));
    EXPECT(detail_contains("cut off"));
    EXPECT(pwrite(file, image, size, 0) == (ssize_t)size);
    OK(cuModuleLoad(&module, path));
    OK(cuModuleUnload(module));
    ((Elf64_Ehdr *)(void *)image)->e_shoff = UINT64_MAX - 4;
    EXPECT(pwrite(file, image, size, 0) == (ssize_t)size);
    RETURNS(CUDA_ERROR_INVALID_IMAGE, cuModuleLoad(&module, path));
    close(file);
    unlink(path);
}

static void test_fat_binaries(void)
{
    if (!on_emulator()) /* made by hand: a GPU's driver wants more of one than this */
        return;
    const size_t length = sizeof kernels_ptx;
    make_fatbin(image, 1, 80, 0x11, kernels_ptx, length, 0);
    EXPECT(loads(image));
    struct {
        uint32_t magic, version;
        const void *data;
        void *unused;
    } wrapper = {0x466243b1, 1, image, NULL};
    EXPECT(loads(&wrapper));
    size_t size = store_lz4(packed, kernels_ptx, length);
    make_fatbin(image, 1, 80, 0x2011, packed, size, length);
    EXPECT(loads(image));
    size = store_zstd(packed, kernels_ptx, length);
    make_fatbin(image, 1, 80, 0x8011, packed, size, length);
    EXPECT(loads(image));
    packed[2] = 0; /* no longer zstd */
    make_fatbin(image, 1, 80, 0x8011, packed, size, length);
    RETURNS(CUDA_ERROR_INVALID_IMAGE, load_module(image));
    make_fatbin(image, 1, 80, 0x2011, "\xf0\xff\xff", 3, length);
    RETURNS(CUDA_ERROR_INVALID_IMAGE, load_module(image));
    make_fatbin(image, 1, 80, 0x4011, packed, size, length);
    RETURNS(CUDA_ERROR_NOT_SUPPORTED, load_module(image));
    EXPECT(detail_contains("--no-compress"));
    make_fatbin(image, 1, 90, 0x11, kernels_ptx, length, 0);
    RETURNS(CUDA_ERROR_NO_BINARY_FOR_GPU, load_module(image));
    EXPECT(detail_contains("compute_90"));
    make_fatbin(image, 2, 80, 0x11, kernels_ptx, length, 0);
    RETURNS(CUDA_ERROR_NO_BINARY_FOR_GPU, load_module(image));
    EXPECT(detail_contains("none of the fat binary's 1 entries is PTX"));
    make_fatbin(image, 1, 80, 0x11, kernels_ptx, length, 0);
    memset(image + 16 + 8, 0xff, 8); /* the entry's size */
    RETURNS(CUDA_ERROR_INVALID_IMAGE, load_module(image));
}

static void test_files(void)
{
    CUlibrary library;
    CUmodule module;
    CUkernel kernel;
    char path[] = "/tmp/emulator-ptx-XXXXXX";
    int file = mkstemp(path);
    EXPECT(write(file, kernels_ptx, sizeof kernels_ptx - 1) == (ssize_t)sizeof kernels_ptx - 1);
    OK(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "spin"));
    OK(cuLibraryUnload(library));
    OK(cuModuleLoad(&module, path));
    OK(cuModuleUnload(module));
    close(file);
    unlink(path);
    RETURNS(CUDA_ERROR_FILE_NOT_FOUND, cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
    RETURNS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, path));
}

static void test_options(void)
{
    CUlibrary library;
    CUmodule module;
    char log[500] = "untouched";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL};
    void *values[] = {log, (void *)(uintptr_t)sizeof log, (void *)(uintptr_t)2};
    OK(cuLibraryLoadData(&library, kernels_ptx, options, values, 3, NULL, NULL, 0));
    OK(cuLibraryUnload(library));
    EXPECT(log[0] == '\0' && values[1] == NULL);
    values[1] = (void *)(uintptr_t)sizeof log;
    RETURNS(CUDA_ERROR_INVALID_PTX,
            cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f( {\n", 2,
                               options, values));
    EXPECT(strlen(log) > 5 && (size_t)(uintptr_t)values[1] >= strlen(log));
    options[2] = (CUjit_option)77;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(&library, kernels_ptx, options, values, 3, NULL, NULL, 0));
}

static void test_contents(void)
{
    CUlibrary library, owner = NULL;
    CUkernel kernel, all[9] = {NULL};
    CUmodule module, same;
    CUfunction function, function_again;
    CUdeviceptr variable, variable_again;
    unsigned int count = 0;
    size_t size = 0;
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernelCount(&count, library));
    EXPECT(count == 5);
    OK(cuLibraryEnumerateKernels(all, 9, library));
    for (unsigned int i = 0; i < count; i++) {
        const char *name = NULL;
        OK(cuKernelGetName(&name, all[i]));
        OK(cuLibraryGetKernel(&kernel, library, name));
        EXPECT(kernel == all[i]);
    }
    EXPECT(all[5] == NULL);
    RETURNS(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "nope"));
    EXPECT(detail_contains("no kernel named 'nope'"));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernel(&kernel, library, NULL));
    OK(cuKernelGetLibrary(&owner, all[0]));
    EXPECT(owner == library);
    OK(cuLibraryGetModule(&module, library));
    OK(cuKernelGetFunction(&function, kernel));
    OK(cuKernelGetFunction(&function_again, kernel));
    EXPECT(function == function_again);
    OK(cuFuncGetModule(&same, function));
    EXPECT(same == module);
    RETURNS(CUDA_ERROR_NOT_PERMITTED, cuModuleUnload(module));
    OK(cuModuleGetFunction(&function, module, "add_one"));
    RETURNS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "nope"));
    OK(cuLibraryGetGlobal(&variable, &size, library, "counter"));
    EXPECT(size == 4);
    OK(cuModuleGetGlobal(&variable_again, &size, module, "counter"));
    EXPECT(variable == variable_again);
    uint32_t value = 0;
    OK(cuMemcpyDtoH(&value, variable, 4));
    EXPECT(value == 7);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuMemFree(variable));
    RETURNS(CUDA_ERROR_NOT_FOUND, cuLibraryGetGlobal(&variable, &size, library, "nope"));
    RETURNS(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&variable, &size, library, "counter"));
    OK(cuLibraryUnload(library));
    if (on_emulator()) {
        RETURNS(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
        RETURNS(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernelCount(&count, library));
        RETURNS(CUDA_ERROR_INVALID_HANDLE, cuKernelGetFunction(&function, all[0]));
    }
    RETURNS(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(NULL));
}

/* Each context has variables of its own. */
static void test_contexts(void)
{
    CUlibrary library;
    CUdeviceptr here, there;
    CUcontext other;
    size_t size;
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetGlobal(&here, &size, library, "counter"));
    OK(cuCtxCreate(&other, NULL, 0, 0));
    OK(cuLibraryGetGlobal(&there, &size, library, "counter"));
    EXPECT(here != there);
    OK(cuCtxDestroy(other));
    OK(cuLibraryGetGlobal(&there, &size, library, "counter"));
    EXPECT(here == there);
    OK(cuLibraryUnload(library));
}

int main(void)
{
    start();
    test_text();
    test_cubins();
    test_fat_binaries();
    test_files();
    test_options();
    test_contents();
    test_contexts();
    return finish();
}
