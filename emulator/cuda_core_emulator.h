/* What the emulated driver offers beside the calls of cuda.h. All of it is also found through cuGetProcAddress, so a
 * program can ask any driver for it and learn from the answer whether the driver is the emulator. */
#ifndef CUDA_CORE_EMULATOR_PUBLIC_H
#define CUDA_CORE_EMULATOR_PUBLIC_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

/* A cubin section of this type holds PTX text; the emulator runs that in place of the machine code. */
#define SHT_CUDA_CORE_PTX 0x8000cc01u

/* Counts of what is alive in the process. A leak test compares two of them. */
typedef struct cuEmulatorObjects {
    uint64_t contexts; /* a retained primary context counts */
    uint64_t streams;  /* default streams do not count */
    uint64_t events;
    uint64_t pools; /* default pools do not count */
    uint64_t libraries;
    uint64_t modules; /* of cuModuleLoad */
    uint64_t device_allocations;
    uint64_t host_allocations; /* pinned, by cuMemHostAlloc or from host pools */
    uint64_t registrations;    /* cuMemHostRegister */
    uint64_t managed_allocations;
} cuEmulatorObjects;

#if defined(__GNUC__)
#define CU_EMULATOR_EXPORT __attribute__((visibility("default")))
#else
#define CU_EMULATOR_EXPORT
#endif

/* The account of the last failing call of this thread, or of the fault that poisoned the current context: which
 * address, block, thread, allocation and source line. Truncated to `size` bytes and terminated; "" when nothing
 * failed. */
CU_EMULATOR_EXPORT CUresult cuEmulatorErrorDetail(char *buffer, size_t size);

/* Fills as many of the fields as `size` bytes hold. */
CU_EMULATOR_EXPORT CUresult cuEmulatorLiveObjects(cuEmulatorObjects *objects, size_t size);

#endif
