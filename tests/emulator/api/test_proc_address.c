/* cuGetProcAddress: every name it knows, the version it answers for, the two kinds of default stream, and errors. */
#include "check.h"

typedef struct entry {
    const char *name;
    int since;
    bool two_forms;
} entry;

static const entry entries[] = {
#define EM_PLAIN(name, since, symbol) {#name, since, false},
#define EM_PTSZ(name, since, symbol)  {#name, since, true},
#define EM_PTDS(name, since, symbol)  {#name, since, true},
#include "../../../emulator/entries.def"
};

static void *find(const char *name, int version, cuuint64_t flags, CUdriverProcAddressQueryResult expected)
{
    void *function = (void *)1;
    CUdriverProcAddressQueryResult result = (CUdriverProcAddressQueryResult)99;
    OK(cuGetProcAddress(name, &function, version, flags, &result));
    if (result != expected) {
        failures++;
        printf("%s for %d: result %d, expected %d\n", name, version, (int)result, (int)expected);
    }
    EXPECT((function != NULL) == (expected == CU_GET_PROC_ADDRESS_SUCCESS));
    return function;
}

static void test_every_entry(void)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const entry *e = &entries[i];
        if (strncmp(e->name, "cuEmulator", 10) == 0 && !on_emulator())
            continue;
        void *legacy = find(e->name, CUDA_VERSION, 0, CU_GET_PROC_ADDRESS_SUCCESS);
        void *also_legacy = find(e->name, CUDA_VERSION, CU_GET_PROC_ADDRESS_LEGACY_STREAM, CU_GET_PROC_ADDRESS_SUCCESS);
        void *own =
            find(e->name, CUDA_VERSION, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, CU_GET_PROC_ADDRESS_SUCCESS);
        EXPECT(legacy == also_legacy);
        if ((own != legacy) != e->two_forms) {
            failures++;
            printf("%s: per-thread form %s\n", e->name, own != legacy ? "unexpected" : "missing");
        }
        bool first = i == 0 || strcmp(entries[i - 1].name, e->name) != 0;
        /* A GPU's driver has 32-bit forms of some calls, from CUDA 2, below the ones here. */
        if (first && e->since > 2000 && on_emulator())
            find(e->name, e->since - 1, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
        if (!first) /* a newer form is another function, and the older one is still found for older programs */
            EXPECT(find(e->name, e->since - 1, 0, CU_GET_PROC_ADDRESS_SUCCESS) !=
                   find(e->name, e->since, 0, CU_GET_PROC_ADDRESS_SUCCESS));
    }
}

static void test_versions(void)
{
    EXPECT(find("cuMemAlloc", CUDA_VERSION, 0, CU_GET_PROC_ADDRESS_SUCCESS) == (void *)(uintptr_t)cuMemAlloc);
    find("cuMemAlloc_v2", CUDA_VERSION, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    find("cuNoSuchCall", CUDA_VERSION, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    find("", CUDA_VERSION, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    find("cuMemAlloc", 1000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    void *function = NULL;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuMemAlloc", &function, CUDA_VERSION, 4, NULL));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuMemAlloc", &function, 99000, 0, NULL));
    OK(cuGetProcAddress("cuMemAlloc", &function, CUDA_VERSION, 0, NULL));
    EXPECT(function != NULL);
}

static void test_absent(void)
{
    if (!on_emulator())
        return;
    static const char *const absent[] = {"cuIpcGetMemHandle", "cuGraphCreate", "cuTexObjectCreate",
                                         "cuArrayCreate",     "cuLinkCreate",  "cuGreenCtxCreate"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        find(absent[i], CUDA_VERSION, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

static void test_errors(void)
{
    static const struct {
        int code;
        const char *name, *text;
    } known[] = {
        {0, "CUDA_SUCCESS", "no error"},
        {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
        {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
        {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
        {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
        {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
        {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
        {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
    };
    const char *name, *text;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        OK(cuGetErrorName((CUresult)known[i].code, &name));
        OK(cuGetErrorString((CUresult)known[i].code, &text));
        EXPECT(strcmp(name, known[i].name) == 0);
        EXPECT(strcmp(text, known[i].text) == 0);
    }
    int count = 0;
    for (int code = 0; code < 1000; code++)
        count += cuGetErrorName((CUresult)code, &name) == CUDA_SUCCESS;
    EXPECT(count == 101);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)12345, &name));
    EXPECT(name == NULL);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuGetErrorString((CUresult)12345, &text));
    EXPECT(text == NULL);
}

static void test_before_init(void)
{
    int value;
    CUdevice device;
    CUcontext context;
    CUdeviceptr address;
    RETURNS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&value));
    RETURNS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet(&device, 0));
    RETURNS(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
    RETURNS(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&address, 4));
    OK(cuDriverGetVersion(&value));
    EXPECT(value >= CUDA_VERSION);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuInit(1));
}

int main(void)
{
    test_before_init();
    test_errors();
    test_versions();
    test_every_entry();
    test_absent();
    OK(cuInit(0));
    OK(cuInit(0));
    return finish();
}
