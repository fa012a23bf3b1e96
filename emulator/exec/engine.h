/* What the files of exec/ share: programs (lowered kernels), grids (launches), blocks.
 *
 *   module.c   em_module: variables in memory, kernels     lower*.c   ptx_function -> em_program
 *   run.c      em_run, workers                              block.c    a block's warps and their turns
 *   warp.c     fragments                                    control.c memory.c move.c ...: handlers
 *   fault.c    accounts of what went wrong */
#ifndef CUDA_CORE_EMULATOR_ENGINE_H
#define CUDA_CORE_EMULATOR_ENGINE_H

#include <pthread.h>
#include <stdio.h>

#include "../emulator.h"
#include "op.h"

/* ---- device addresses that are not host addresses ---------------------------------------------------------------- */

/* Generic addresses of shared, local and parameter memory lie in windows above all host addresses (bit 48), within the
 * 49 bits a GPU uses. Addresses in the spaces of shared and local memory are small offsets. */
#define EM_WINDOW_BYTES    (UINT64_C(1) << 28)
#define EM_SHARED_WINDOW   (UINT64_C(1) << 48)
#define EM_LOCAL_WINDOW    (EM_SHARED_WINDOW + EM_WINDOW_BYTES)
#define EM_PARAM_WINDOW    (EM_LOCAL_WINDOW + EM_WINDOW_BYTES)
#define EM_FUNCTION_WINDOW (EM_PARAM_WINDOW + EM_WINDOW_BYTES) /* + 16 * (index in the module + 1) */
enum { EM_FUNCTION_SHIFT = 4 };

/* ---- limits
 * ----------------------------------------------------------------------------------------------------------- */

enum {
    EM_MAX_WARPS = 32,
    EM_BARRIERS = 16,
    EM_FUEL = 4096,                /* back edges a fragment may take before others get a turn */
    EM_FUEL_OF_SPINNING = 64,      /* what one access costs that a thread could be waiting with */
    EM_STACK_LIMIT = 16 << 20,     /* bytes of rows a warp's frames may take */
    EM_RECURSION_LOCAL = 64 << 10, /* local bytes a thread where the depth of calls is unknown */
};

/* ---- programs
 * ----------------------------------------------------------------------------------------------------------- */

typedef enum em_constant_kind {
    EM_CONSTANT_BITS,      /* the same in all lanes, for good */
    EM_CONSTANT_LAUNCH,    /* special register or parameter: the same for all blocks of a launch, maybe not all lanes */
    EM_CONSTANT_PARAMETER, /* `bits`: offset in the parameter buffer */
    EM_CONSTANT_BLOCK,     /* special register that changes with the block */
    EM_CONSTANT_DYNAMIC_SHARED, /* `bits` + where dynamic shared memory begins */
} em_constant_kind;

/* A row that is filled when a frame is entered and never written after. */
typedef struct em_constant {
    uint32_t offset;
    uint8_t kind;
    uint8_t size; /* bytes a lane; 0: a predicate */
    uint8_t special, component;
    uint64_t bits;
} em_constant;

typedef struct em_function {
    const ptx_function *ptx;
    struct em_program *program;
    uint32_t entry;           /* index of its first instruction */
    uint32_t frame_bytes;     /* rows of one activation; the callee's come after */
    uint32_t local_bytes;     /* local frame and parameter frame of one activation */
    uint32_t parameter_frame; /* offset of the parameter frame in these */
    em_constant *constants;
    uint32_t constant_count;
    uint32_t block_constants; /* index of the first that changes with the block: they come last */
    /* Row of a .func: where to return to (u64: const em_insn *, masked). */
    uint32_t return_row;
    uint32_t local_row;  /* u32: where the activation's local bytes start in the thread's local memory */
    uint32_t *registers; /* row of each PTX register */
} em_function;

typedef struct em_origin {
    const ptx_instruction *ptx; /* NULL: before the first, or the end of a function */
    const em_function *function;
    uint32_t order;
} em_origin;

typedef struct em_program {
    const ptx_module *ptx;
    struct em_kernel *kernel;
    em_insn *masked, *full; /* `count` each, one after the other in memory */
    uint32_t count;
    em_origin *origins; /* beside `masked` */
    em_function **functions;
    uint32_t function_count;
    em_function **by_index; /* by ptx_function.index; NULL where the kernel cannot reach it */
    void **owned;           /* descriptors that instructions point to */
    uint32_t owned_count;
    uint32_t slot_count; /* memory instructions */
    uint32_t static_shared, dynamic_align;
    uint32_t local_bytes; /* a thread */
    bool uses_local, uses_dynamic;
} em_program;

static inline const em_insn *em_masked_pc(const em_program *program, const em_insn *insn)
{
    return insn >= program->full ? insn - program->count : insn;
}

static inline const em_insn *em_full_pc(const em_program *program, const em_insn *insn)
{
    return insn >= program->full ? insn : insn + program->count;
}

/* An argument or result of a call, on the caller's side: a row, or bytes of its local frame. The callee's side is its
 * own parameter of the same position. */
typedef struct em_argument {
    bool is_row;
    uint32_t place; /* offset of the row, or in the local bytes */
    uint32_t size;
} em_argument;

struct em_call;
/* A function that the engine itself provides (vprintf ...), for the lanes of `mask`. */
typedef em_status em_builtin(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask,
                             const struct em_call *call);

typedef struct em_call {
    const em_function *caller, *callee; /* no callee: its address is in row a */
    em_builtin *builtin;
    em_argument *arguments, *results;
    uint32_t argument_count, result_count;
} em_call;

/* builtins.c; NULL: none of that name */
em_builtin *em_builtin_named(const char *name);
/* call.c: what a built-in reads and writes. */
void em_argument_read(const em_call *call, const unsigned char *rows, const em_warp *warp, unsigned lane,
                      uint32_t index, void *value, uint32_t size);
void em_result_write(const em_call *call, unsigned char *rows, const em_warp *warp, unsigned lane, const void *value,
                     uint32_t size);

/* ---- modules
 * ------------------------------------------------------------------------------------------------------------- */

/* What a kernel can reach, and where its shared variables lie: layout.c. */
typedef struct em_layout {
    const ptx_function **functions; /* with bodies, the kernel first */
    uint32_t function_count;
    const ptx_variable **shared;
    uint32_t *shared_offsets; /* of a variable without a size: 0, it begins where dynamic memory does */
    uint32_t shared_count;
    uint32_t static_shared, dynamic_align;
    bool uses_dynamic;
    uint32_t local_bytes; /* a thread: of the deepest chain of calls, or a fixed allowance where depth is unknown */
} em_layout;
/* 0, or a CUresult: no host memory, or more shared or local memory than a GPU has. */
int em_layout_make(em_layout *layout, const ptx_module *module, const ptx_function *kernel, em_detail *detail);
void em_layout_free(em_layout *layout);
/* Local frame and parameter frame of one activation; the parameter frame begins at `parameter_frame`. Small for the
 * functions of a layout that was made. */
uint64_t em_layout_frame(const ptx_function *function, uint64_t *parameter_frame);

struct em_kernel {
    em_kernel_info info;
    em_layout layout;
    em_module *module;
    const ptx_function *function;
    em_parameter *parameters;
    pthread_mutex_t lock; /* of program and checked */
    em_program *program;
    _Atomic bool checked;
    em_detail refused; /* code 0: it can run */
};

struct em_module {
    ptx_module *ptx;
    em_range **ranges; /* by index of variable; NULL where it has no memory of its own */
    em_kernel *kernels;
    size_t kernel_count;
    em_limits limits;
};

/* Where a .global or .const variable lives. */
uint64_t em_variable_address(const em_module *module, const ptx_variable *variable);

int em_lower(em_kernel *kernel, em_program **program, em_detail *detail);
void em_program_free(em_program *program);

/* The range of live memory stays in the table, and the struct valid, for a reader that is in: heap.c. */
void em_heap_pin(void);
void em_heap_unpin(void);

/* ---- handlers
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct em_handlers {
    em_handler *full, *masked;
} em_handlers;

/* Handler of an instruction by form, for this machine's instruction set; false: there is none. */
bool em_form_find(const ptx_instruction *instruction, em_handlers *found);

typedef enum em_path { EM_PATH_FLAT, EM_PATH_SHARED, EM_PATH_LOCAL, EM_PATH_COUNT } em_path;
enum { EM_SIZES = 5 }; /* 1 2 4 8 16 bytes: index is the logarithm */

/* What is known of an address register while a block does not write it: each half of the warp begins at `start` and
 * goes on by `stride` bytes a lane. */
typedef struct em_pattern {
    uint64_t start[2];
    int64_t stride[2];
} em_pattern;
#define EM_NO_STRIDE INT64_MIN /* or nothing of use */

/* memory.c, one an instruction set. Elements go to or come from rows d, e, b, c and, for the second half of v8, those
 * of the next instruction, which is then skipped. */
typedef struct em_memory_table {
    em_handlers load[EM_PATH_COUNT][EM_SIZES][4]; /* [path][size][vector: 1 2 4 8] */
    em_handlers store[EM_PATH_COUNT][EM_SIZES][4];
    em_handlers load_known[EM_PATH_COUNT][EM_SIZES][4]; /* f: em_pattern of the address; holes: there is no such */
    em_handlers store_known[EM_PATH_COUNT][EM_SIZES][4];
    em_handlers analyse[EM_PATH_COUNT];                              /* of row a into the em_pattern at d */
    em_handlers load_strong[EM_SIZES][4], store_strong[EM_SIZES][4]; /* volatile, ordered, any path */
    em_handlers load_parameter[EM_SIZES];                            /* of a kernel, at imm */
} em_memory_table;

/* move.c, one an instruction set. */
typedef struct em_move_table {
    em_handlers copy[EM_SIZES], copy_predicate;
    em_handlers resize[2][EM_SIZES][EM_SIZES]; /* [signed][from][to] */
    em_handlers not_predicate;
    em_handlers add_immediate[2];    /* u32, u64: d = a + imm */
    em_handlers narrow_address;      /* u64 to u32, too large to all ones */
    em_handlers pack[EM_SIZES][3];   /* [size of a part][parts 2 4 8]: d = {a, b, c, f} */
    em_handlers unpack[EM_SIZES][3]; /* {d, e, b, c} = a */
    em_handlers in_window;           /* isspacep of a window: d = a - imm < window */
    em_handlers in_no_window;        /* isspacep.global */
} em_move_table;

typedef struct em_targets { /* of brx.idx */
    uint32_t count;
    uint32_t target[]; /* instruction indexes */
} em_targets;

/* control.c */
typedef struct em_control_table {
    em_handlers bra, bra_if, head, brx, exit, trap, brkpt, fence, nothing, nanosleep, special, activemask, elect,
        in_constant;
} em_control_table;
extern const em_control_table em_control;

/* call.c */
typedef struct em_call_table {
    em_handlers call, after, ret, builtin;
} em_call_table;
extern const em_call_table em_calls;

/* barrier.c. a: number, b: threads, c: predicate of red, d: result. */
typedef enum em_barrier_kind {
    EM_BARRIER_SYNC,
    EM_BARRIER_ARRIVE,
    EM_BARRIER_POPC,
    EM_BARRIER_AND,
    EM_BARRIER_OR,
} em_barrier_kind;
enum { EM_BARRIER_COUNTED = 8 }; /* in aux, with the kind: b is there */
extern const em_handlers em_bar, em_bar_warp, em_bar_cluster_arrive, em_bar_cluster_wait;

typedef struct em_isa {
    const char *name;
    const em_form *const *forms;
    const em_memory_table *memory;
    const em_move_table *move;
    const struct em_matrix_table *matrix; /* matrix.h */
} em_isa;
const em_isa *em_isa_chosen(void); /* NULL: no memory; before any em_form_find */

/* ---- running
 * ---------------------------------------------------------------------------------------------------------------- */

/* The last range that a memory instruction hit: [base, base + size), while *live. */
typedef struct em_slot {
    uint64_t base, size;
    const _Atomic bool *live;
} em_slot;

typedef enum em_fragment_state {
    EM_RUNNABLE,
    EM_AT_BARRIER,
    EM_AT_SYNC, /* waits for lanes of its member mask; pc is the instruction */
    EM_AT_WARP_BARRIER,
    EM_AT_CLUSTER_BARRIER,
} em_fragment_state;

typedef struct em_barrier {
    uint32_t arrived;                       /* threads, with the missing lanes of warps that have arrived in part */
    uint32_t expected;                      /* 0: all threads of the block */
    em_mask lanes[EM_MAX_WARPS];            /* of each warp: who has arrived, or will never; 0: nobody yet */
    uint32_t contributed, contributed_true; /* bar.red */
} em_barrier;

typedef struct em_block {
    struct em_grid *grid;
    uint32_t ctaid[3];
    uint64_t linear;
    uint32_t threads, warp_count, live_threads;
    unsigned char *shared;
    uint32_t shared_bytes;
    em_slot *slots;
    em_warp *warps;
    em_barrier barriers[EM_BARRIERS];
    uint32_t barriers_in_use; /* bit n: threads have arrived at barrier n */
    uint64_t random;          /* state of the generator that permutes warps, 0: none does */
} em_block;

typedef struct em_grid {
    const em_launch *launch;
    em_program *program;
    const em_function *entry;
    unsigned char *parameters; /* the launch's own copy */
    em_range *workspace;       /* of a cooperative launch: what cooperative_groups' grid.sync() meets at */
    uint64_t block_count;
    uint64_t serial; /* %gridid */
    uint32_t threads, warp_count;
    uint32_t static_shared, shared_bytes, dynamic_shared;
    bool alone;
    bool deterministic;
    uint64_t seed;
    _Atomic uint64_t next; /* block to start */
    _Atomic bool stopped;
    pthread_mutex_t lock; /* of what follows */
    em_detail fault;
    uint32_t workers; /* at work on it */
    struct em_output *output;
    struct em_grid *next_grid;
} em_grid;

/* Memory a worker runs one block in; kept for the next. */
typedef struct em_storage {
    struct em_storage *next;
    uint64_t prepared; /* serial of the grid whose constants are in place */
    em_block block;
    em_warp *warps;
    em_slot *slots;
    unsigned char *shared, *local;
    uint32_t warp_capacity, slot_capacity, shared_capacity;
    uint64_t local_capacity;
} em_storage;

typedef enum em_outcome {
    EM_FINISHED,
    EM_BUSY,    /* some warp is in a long computation */
    EM_STALLED, /* whoever has not finished is spinning or asleep */
    EM_STOPPED, /* fault, or the grid was stopped */
} em_outcome;

/* block.c */
em_storage *em_storage_take(void);
void em_storage_give(em_storage *storage);
void em_storage_free_all(void);
bool em_block_start(em_storage *storage, em_grid *grid, uint64_t linear); /* false: out of memory */
em_outcome em_block_run(em_block *block);                                 /* one turn of every warp, or more */

/* warp.c */
void em_warp_start(em_warp *warp, em_mask lanes);
typedef enum em_turn { EM_TURN_DONE, EM_TURN_BLOCKED, EM_TURN_YIELDED, EM_TURN_FAULTED } em_turn;
em_turn em_warp_run(em_warp *warp);
/* The running fragment goes to the list at `pc`, to be picked again. */
void em_park(em_warp *warp, const em_insn *pc);
/* Some of the running fragment's lanes go to another place. */
em_fragment *em_split(em_warp *warp, em_mask lanes, const em_insn *pc, uint32_t base);
void em_sync_recheck(em_warp *warp);
void em_warp_barrier_recheck(em_warp *warp);
/* The running fragment's lanes end. */
em_status em_exit_lanes(em_warp *warp, em_mask lanes, const em_insn *next);

/* barrier.c: after threads of a warp exited. */
void em_barrier_recheck(em_block *block, em_warp *warp, em_mask exited);

/* frame.c: fills the constant rows of an activation; of the entry's frame, those that change with the block. */
void em_frame_fill(const em_function *function, const em_warp *warp, unsigned char *rows, em_mask mask);
void em_frame_refill(const em_function *function, const em_warp *warp, unsigned char *rows);
uint64_t em_special_value(const em_warp *warp, unsigned special, unsigned component, unsigned lane);

/* A thread may be waiting for another with what it does now: its turn ends the sooner. */
static inline void em_may_wait(em_warp *warp)
{
    warp->may_wait = true;
    warp->fuel -= EM_FUEL_OF_SPINNING;
}

/* access.c: fills warp->pointers for the lanes of `mask`, or reports a fault. */
em_status em_locate(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask, uint32_t size,
                    em_touch touch);
/* Host address of `size` bytes at a generic address for one lane; NULL: not accessible (no report). */
unsigned char *em_reach(em_warp *warp, unsigned lane, uint64_t address, uint64_t size, em_touch touch);

/* fault.c */
em_status em_fault_access(const em_insn *insn, em_warp *warp, unsigned lane, uint64_t address, uint32_t size,
                          em_touch touch);
em_status em_fault_deadlock(em_block *block);

/* output.c */
bool em_output_write(em_grid *grid, const em_block *block, const char *text, size_t length);
void em_output_finish(em_grid *grid);

#endif
