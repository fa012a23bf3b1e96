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
    uint64_t physical_allocations; /* cuMemCreate, until released and unmapped */
    uint64_t reservations;         /* cuMemAddressReserve */
    uint64_t mappings;             /* cuMemMap */
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

/* Faults by plan, for tests: "call=17,code=2", "call=cuStreamCreate,nth=2,onwards,late", "allocation=5", "count"; rules
 * are joined by ';', and docs/emulator.md says what each word means. NULL: no plan. The counts begin anew with each
 * plan and stay when it is taken away. CUDA_ERROR_INVALID_VALUE, with the grammar in cuEmulatorErrorDetail, leaves the
 * plan that was. The environment variable CUDA_CORE_EMULATOR_FAULT is the plan that a process begins with. */
CU_EMULATOR_EXPORT CUresult cuEmulatorSetFaultPlan(const char *plan);

typedef struct cuEmulatorFaults {
    uint64_t calls;       /* driver calls since the plan was set, those of cuEmulator* not among them */
    uint64_t allocations; /* of host memory, in the emulator, by whatever thread */
    uint64_t failed_calls, failed_allocations;
} cuEmulatorFaults;

/* Fills as many of the fields as `size` bytes hold. */
CU_EMULATOR_EXPORT CUresult cuEmulatorFaultCounts(cuEmulatorFaults *faults, size_t size);

/* The entry point of the Nth driver call since the plan was set, from 1, as exported ("cuStreamDestroy_v2"); NULL
 * where there was none, or beyond the first 65,536. */
CU_EMULATOR_EXPORT const char *cuEmulatorCallName(uint64_t number);

/* The address that this call returns to: which function of the program made it. NULL as above. */
CU_EMULATOR_EXPORT const void *cuEmulatorCallPlace(uint64_t number);

#endif
