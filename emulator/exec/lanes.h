/* The 32 lanes of a warp as rows, and the loops over them.
 *
 * A register is a row: 32 values of one width side by side, 64-byte aligned, at a byte offset from the frame's
 * first row. A predicate is one em_mask, bit n for lane n. 8-bit values have rows of 32 bytes, so every row holds
 * exactly the type its instruction names: lower.c widens or narrows where PTX lets a register be wider.
 *
 * Everything here is compiled once for each instruction set, with -fno-strict-aliasing (rows change type). */
#ifndef CUDA_CORE_EMULATOR_LANES_H
#define CUDA_CORE_EMULATOR_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { EM_LANES = 32 };

typedef uint32_t em_mask;
#define EM_ALL_LANES 0xffffffffu

/* The instruction set this object is built for: a suffix of every exported name of a per-ISA file. */
#ifndef EM_ISA
#define EM_ISA base
#endif
#define EM_PASTE_(a, b)   a##_##b
#define EM_PASTE(a, b)    EM_PASTE_(a, b)
#define EM_ISA_NAME(name) EM_PASTE(name, EM_ISA)

#if defined(__clang__)
/* Without the last word clang unrolls 32 scalar rounds before its vectoriser sees the loop. */
#define EM_VECTORIZE _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#else
#define EM_VECTORIZE _Pragma("GCC ivdep")
#endif

/* `EM_EACH_LANE { d[lane] = a[lane] + b[lane]; }`: rows are the same or apart, so in-place is always right. */
#define EM_EACH_LANE EM_VECTORIZE for (int lane = 0; lane < EM_LANES; lane++)

/* Only the lanes in `set`, lowest first: for what cannot be vectorised (memory, libm). */
#define EM_EACH_LANE_OF(set)                                                                                           \
    for (em_mask lanes_left = (set); lanes_left != 0; lanes_left &= lanes_left - 1)                                    \
        for (int lane = __builtin_ctz(lanes_left), once = 1; once; once = 0)

/* The row at a byte offset from the frame, as an array of T. */
#define EM_ROW(T, offset) ((T *)__builtin_assume_aligned(rows + (offset), 32))
/* The predicate at a byte offset. */
#define EM_PREDICATE(offset) (*(em_mask *)(void *)(rows + (offset)))

/* First words of every frame. */
#define EM_TRUE_OFFSET  0 /* a predicate that is always true: the guard of an unguarded instruction */
#define EM_CARRY_OFFSET 4 /* CC.CF, one bit a lane */
#define EM_CARRY        EM_PREDICATE(EM_CARRY_OFFSET)

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static inline float em_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t em_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double em_double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t em_bits_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- rounding ---------------------------------------------------------------------------------------------------- */

typedef enum em_rounding { EM_ROUND_NEAREST, EM_ROUND_DOWN, EM_ROUND_UP, EM_ROUND_ZERO } em_rounding;

/* Switches the host's rounding mode (SSE/AVX, or FPCR) and returns what to give em_rounding_restore. Both are
 * barriers for memory, so loads from rows and stores to rows stay between them; keep values in rows, not locals,
 * across the pair. A handler must restore before it returns. */
static inline uint64_t em_rounding_set(em_rounding mode)
{
#if defined(__x86_64__)
    const unsigned old = _mm_getcsr();
    _mm_setcsr((old & ~0x6000u) | (unsigned)mode << 13);
    __asm__ volatile("" ::: "memory");
    return old;
#elif defined(__aarch64__)
    static const uint64_t field[] = {0, 2, 1, 3}; /* RN, RM, RP, RZ */
    uint64_t old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old)::"memory");
    __asm__ volatile("msr fpcr, %0" ::"r"((old & ~(3ull << 22)) | field[mode] << 22) : "memory");
    return old;
#else
#error "no rounding control for this machine"
#endif
}

static inline void em_rounding_restore(uint64_t old)
{
#if defined(__x86_64__)
    __asm__ volatile("" ::: "memory");
    _mm_setcsr((unsigned)old);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(old) : "memory");
#endif
}

#endif
