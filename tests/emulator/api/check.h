/* For tests of a driver through its exported calls, one process each. Nothing here names the emulator, so a test built
 * against libcuda.so.1 runs on a GPU too, where the two are compared. */
#ifndef CHECK_H
#define CHECK_H

#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

static int failures;

static inline const char *name_of(CUresult code)
{
    const char *name = NULL;
    cuGetErrorName(code, &name);
    return name != NULL ? name : "?";
}

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            failures++;                                                                                                \
            printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                           \
        }                                                                                                              \
    } while (0)

#define RETURNS(code, call)                                                                                            \
    do {                                                                                                               \
        CUresult check_got = (call), check_wanted = (code);                                                            \
        if (check_got != check_wanted) {                                                                               \
            failures++;                                                                                                \
            printf("%s:%d: %s: %s (%d), expected %s\n", __FILE__, __LINE__, #call, name_of(check_got), (int)check_got, \
                   name_of(check_wanted));                                                                             \
        }                                                                                                              \
    } while (0)

#define OK(call) RETURNS(CUDA_SUCCESS, call)

/* Emulator-only calls are asked for by name: NULL on a real driver. */
static inline void *emulator_call(const char *name)
{
    void *function = NULL;
    CUdriverProcAddressQueryResult result;
    return cuGetProcAddress(name, &function, CUDA_VERSION, 0, &result) == CUDA_SUCCESS ? function : NULL;
}

static inline bool on_emulator(void)
{
    return emulator_call("cuEmulatorErrorDetail") != NULL;
}

static inline bool detail_contains(const char *text)
{
    CUresult (*detail)(char *, size_t) = NULL;
    *(void **)&detail = emulator_call("cuEmulatorErrorDetail");
    if (detail == NULL)
        return true;
    char buffer[2048];
    /* asking for the call by name must not have changed what it answers */
    detail(buffer, sizeof buffer);
    if (strstr(buffer, text) != NULL)
        return true;
    printf("detail is \"%s\"\n", buffer);
    return false;
}

static inline CUcontext start(void)
{
    CUcontext context = NULL;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}

static inline int finish(void)
{
    if (failures != 0)
        printf("%d failure(s)\n", failures);
    return failures != 0;
}

#endif
