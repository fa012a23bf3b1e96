/* A libcuda.so.1 that is there but is of no use, in the ways that are met: cuInit fails with the code in
 * BROKEN_DRIVER_CODE, or the driver is of CUDA 11 (BROKEN_DRIVER_OLD is set in the build). */
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *version);

int cuInit(unsigned flags)
{
    const char *code = getenv("BROKEN_DRIVER_CODE");
    return flags || !code ? 1 : atoi(code);
}

int cuDriverGetVersion(int *version)
{
    *version = 11080;
    return 0;
}

#ifndef BROKEN_DRIVER_OLD
EXPORT int cuGetProcAddress_v2(const char *name, void **address, int version, unsigned long long flags, void *found);

int cuGetProcAddress_v2(const char *name, void **address, int version, unsigned long long flags, void *found)
{
    (void)name;
    (void)version;
    (void)flags;
    (void)found;
    *address = NULL;
    return 34;
}
#endif
