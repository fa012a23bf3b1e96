/* Faults by plan: driver calls and host allocations that fail when a test says so. docs/emulator.md has the grammar. */
#ifndef CUDA_CORE_EMULATOR_FAULT_H
#define CUDA_CORE_EMULATOR_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>

/* There is a plan. All that a call or an allocation costs without one is a look at this. */
extern _Atomic bool em_fault_planned;

/* The call that begins, of the caller at that address: CUDA_SUCCESS, or the code to return without doing anything. */
int em_fault_call(const char *name, const void *caller) __attribute__((cold));
/* The call that ends with `status`: what it returns. */
int em_fault_late(const char *name, int status) __attribute__((cold));
/* CUDA_CORE_EMULATOR_FAULT is understood, else CUDA_ERROR_INVALID_VALUE with the account. */
int em_fault_environment(void);

#endif
