/* What the parts of the emulator know of each other.
 *
 *   api_*.c, stream.c     the driver's entry points; own devices, contexts, streams, events, pools
 *        |
 *   exec/                 runs one kernel launch on all cores; no knowledge of streams or of cu*
 *        |
 *   ptx/                  text to a typed module; no knowledge of memory or of execution
 *
 *   heap.c                the table of live memory that api_*.c fill and exec/ checks each access against
 *
 * Names: `em_` is shared inside the emulator, `cu` is exported, everything else is static. Only CUresult codes of
 * cuda.h cross these borders as status; text goes into an em_detail. */
#ifndef CUDA_CORE_EMULATOR_H
#define CUDA_CORE_EMULATOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- why something failed, in words ---------------------------------------------------------------------------- */

/* `code` is a CUresult; `text` one or more lines, no trailing newline, always terminated. */
typedef struct em_detail {
    int code;
    char text[2048];
} em_detail;

/* Sets code and formatted text; returns code, so that a function can `return em_fail(...)`. */
int em_fail(em_detail *detail, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- heap: every byte that a kernel or a copy may touch -----------------------------------------------------------
 */

typedef enum em_memory {
    EM_DEVICE,     /* cuMemAlloc, pools, module globals: host must not touch it */
    EM_CONSTANT,   /* .const variables: device code may only read */
    EM_PINNED,     /* cuMemHostAlloc and pinned pools */
    EM_REGISTERED, /* host memory given by cuMemHostRegister */
    EM_MANAGED,
} em_memory;

/* One live (or quarantined) allocation. Never moved or reused while a worker may hold it: readers keep bare pointers.
 * `live` goes false at free; the range stays in the table, inaccessible, until its quarantine ends. */
typedef struct em_range {
    uint64_t base, size; /* size as asked; the bytes between size and the page's end are never valid */
    em_memory kind;
    int device;      /* ordinal of the owner, -1 for host memory */
    uint64_t serial; /* counts allocations of the process: "allocation #17" */
    _Atomic bool live;
    const char *name; /* symbol of a module variable, else NULL */
    void *owner;      /* pool, module ...: for api_*.c */
} em_range;

/* Reserves the arena at first use. Returns NULL when `size` does not fit; align is a power of two, at least 1. */
em_range *em_heap_allocate(uint64_t size, uint64_t align, em_memory kind, int device);
em_range *em_heap_register(void *host, uint64_t size); /* a host range that exists already */
/* The range leaves service at once (later accesses are reported as use after free) and returns later. */
void em_heap_release(em_range *range);

/* The range that contains `address`: live, or quarantined (live == false), or NULL. Lock-free for readers. */
em_range *em_heap_find(uint64_t address);
/* The nearest live range below or above an address that is in none: for the account "16 bytes past the end of ...". */
em_range *em_heap_nearest(uint64_t address);

/* True where device `device` may access the range (its own, host memory, or a peer that was enabled). */
bool em_heap_accessible(const em_range *range, int device);
bool em_heap_writable(const em_range *range, int device); /* of a range that is accessible */
/* The reservation (cuMemAddressReserve) that the address lies in, whether something is mapped there or not. */
bool em_heap_reservation(uint64_t address, uint64_t *base, uint64_t *size);

/* ---- devices ------------------------------------------------------------------------------------------------------
 */

typedef struct em_limits { /* what exec/ needs to know of the device a launch runs on */
    int ordinal;
    int cc_major, cc_minor;
    int multiprocessors;
} em_limits;

/* ---- modules and kernels: exec/module.c, on top of ptx/ -------------------------------------------------------------
 */

typedef struct em_module em_module;
typedef struct em_kernel em_kernel;

/* Parses PTX text, allocates and initialises its .global and .const variables on `limits`' device.
 * A module with opcodes that the emulator lacks loads; launching a kernel that can reach one is refused.
 * Returns 0 or a CUresult (CUDA_ERROR_INVALID_PTX with "line:column: what" text, CUDA_ERROR_OUT_OF_MEMORY). */
int em_module_load(const char *ptx, size_t length, const em_limits *limits, em_module **module, em_detail *detail);
void em_module_unload(em_module *module);

size_t em_module_kernel_count(const em_module *module);
em_kernel *em_module_kernel_at(em_module *module, size_t index);
em_kernel *em_module_kernel(em_module *module, const char *name); /* NULL: none of that name */
/* Address and size of a .global or .const variable; false: none of that name. */
bool em_module_variable(em_module *module, const char *name, uint64_t *address, uint64_t *size);

typedef struct em_parameter {
    uint32_t offset, size; /* in the parameter buffer */
} em_parameter;

typedef struct em_kernel_info {
    const char *name;
    em_module *module;
    const em_parameter *parameters;
    size_t parameter_count;
    uint32_t parameter_bytes; /* size of the whole parameter buffer */
    uint32_t static_shared_bytes, local_bytes, constant_bytes, registers;
    uint32_t max_threads;       /* from .maxntid / .reqntid, else 1024 */
    uint32_t required_block[3]; /* .reqntid, else zeros */
    uint32_t required_cluster[3];
    int ptx_version; /* 90 for 9.0 */
    int target;      /* 80 for sm_80 */
} em_kernel_info;
const em_kernel_info *em_kernel_describe(em_kernel *kernel);

/* ---- running
 * ---------------------------------------------------------------------------------------------------------- */

typedef struct em_launch {
    em_kernel *kernel;
    uint32_t grid[3], block[3], cluster[3]; /* cluster: zeros where none was asked */
    uint32_t dynamic_shared_bytes;
    bool cooperative;
    const void *parameters; /* packed at the offsets of em_kernel_info; read during the run only */
    em_limits limits;
    uint64_t printf_limit; /* bytes of printf output kept, as CU_LIMIT_PRINTF_FIFO_SIZE */
    uint64_t malloc_limit; /* CU_LIMIT_MALLOC_HEAP_SIZE */
} em_launch;

/* Whether the kernel can run here at all: 0, or CUDA_ERROR_NOT_SUPPORTED naming opcode and PTX line. Cheap after the
 * first call for a kernel; called at launch time, on the caller's thread. */
int em_kernel_check(em_kernel *kernel, em_detail *detail);

/* Runs the whole grid and returns when it is done; called on a stream's thread, several at once for several streams.
 * Returns 0 or the CUresult of the first fault (700 illegal address, 716 misaligned, 710 assert, 719 trap / launch
 * failure, 702 for a deadlock), `detail` holding the full account: fault, address, block, thread, allocation, source
 * line. */
int em_run(const em_launch *launch, em_detail *detail);

/* Worker threads of exec/: started at first use, stopped here (process exit). */
void em_workers_stop(void);

#endif
