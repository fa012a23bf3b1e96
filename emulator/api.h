/* What the driver's side of the emulator shares: handles, threads, contexts, streams and the entry-point macros.
 *
 * Locks, taken in this order: em_context.order, em_stream.lock, em_event.lock, then the leaf locks (a pool, the heap,
 * the free list of a kind of object). Nothing is called back with one of them held. */
#ifndef CUDA_CORE_EMULATOR_API_H
#define CUDA_CORE_EMULATOR_API_H

/* Every version of an entry point is declared under its own name, and what cuda.h declares is what is exported. */
#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include <pthread.h>

#include "emulator.h"
#include "fault.h"

/* ---- handles: object.c ------------------------------------------------------------------------------------------- */

typedef enum em_kind {
    EM_KIND_CONTEXT,
    EM_KIND_STREAM,
    EM_KIND_EVENT,
    EM_KIND_POOL,
    EM_KIND_LIBRARY,
    EM_KIND_KERNEL,
    EM_KIND_MODULE,
    EM_KIND_FUNCTION,
    EM_KIND_PHYSICAL,
    EM_KIND_COUNT,
} em_kind;

/* First member of what a handle points at. Slots of one kind lie in a region of their own and are never unmapped, so
 * any pointer can be asked whether it is a live handle without touching memory that is not ours. */
typedef struct em_object {
    _Atomic uint32_t live;
    _Atomic uint32_t references;
    struct em_object *next_free;
} em_object;

void *em_object_new(em_kind kind, size_t size);        /* zeroed, live, one reference; NULL when memory is out */
void *em_object_get(em_kind kind, const void *handle); /* NULL unless it is a live handle of that kind */
bool em_object_close(em_object *object);               /* true for the one caller that ends the handle's life */
void em_object_reopen(em_object *object);              /* a closed one begins another life: primary contexts */
void em_object_retain(em_object *object);
bool em_object_release(em_object *object); /* true when that was the last reference: take it apart, then recycle */
void em_object_recycle(em_kind kind, em_object *object);
uint64_t em_object_count(em_kind kind); /* live handles */
em_kind em_object_kind(const void *object);
void em_object_each(em_kind kind, void (*visit)(void *object, void *argument), void *argument); /* live ones */

/* ---- devices: device.c ------------------------------------------------------------------------------------------- */

#define EM_MAX_DEVICES       64
#define EM_LEAST_PRIORITY    0
#define EM_GREATEST_PRIORITY (-5)

typedef struct em_context em_context;
typedef struct em_stream em_stream;
typedef struct em_pool em_pool;

typedef struct em_device {
    em_limits limits;
    uint64_t memory;               /* bytes of the device */
    _Atomic uint64_t memory_used;  /* cuMemAlloc and what pools have reserved */
    em_context *primary;           /* its slot is fixed; whether it is alive is in em_context.object.live */
    unsigned int primary_retained; /* guarded by em_device_lock */
    unsigned int primary_flags;
    em_pool *default_pool;
    em_pool *_Atomic current_pool;
    _Atomic uint64_t peers; /* bit n: device n may access this one's cuMemAlloc memory */
} em_device;

extern em_device em_devices[EM_MAX_DEVICES];
extern int em_device_count;
extern pthread_mutex_t em_device_lock; /* primary contexts coming and going */

int em_devices_configure(void);             /* reads the environment; once, from cuInit */
em_device *em_device_get(CUdevice ordinal); /* NULL: no such device */
int em_device_attribute(const em_device *device, CUdevice_attribute attribute, int *value);
bool em_device_charge(em_device *device, uint64_t bytes); /* false: over the device's memory */
void em_device_refund(em_device *device, uint64_t bytes);

/* ---- library state and threads: lifecycle.c ---------------------------------------------------------------------- */

typedef struct em_thread_stream {
    em_context *context;
    uint64_t context_epoch;
    em_stream *stream;
    struct em_thread_stream *next;
} em_thread_stream;

typedef struct em_thread {
    em_context *current;
    em_context **stack; /* contexts below the current one */
    size_t depth, capacity;
    em_thread_stream *streams; /* the per-thread default streams */
    em_detail *detail;         /* of the last failing call */
    const char *failed_call;
    int failed_status;
    int late_fault;        /* what the call in progress returns by the fault plan, once it is done */
    uint64_t fault_number; /* of that call */
    bool detail_fresh;     /* text was written by the call in progress */
    bool in_callback;      /* a host function of a stream: no driver call is allowed in it */
    bool registered;       /* the thread's end will be noticed */
} em_thread;

extern _Thread_local em_thread em_self __attribute__((tls_model("initial-exec")));
extern _Atomic int em_state; /* CUDA_SUCCESS once cuInit has run, else the error that every call returns */

int em_initialize(void);
bool em_entry_exists(const char *name); /* proc_address.c: a name that cuGetProcAddress finds */
void em_thread_register(void);          /* before anything is stored in em_self that the thread's end must free */

/* ---- contexts: context.c ----------------------------------------------------------------------------------------- */

typedef struct em_instance em_instance; /* a module loaded in a context: library.c */

struct em_context {
    em_object object;
    em_device *device;
    bool primary;
    uint64_t id;
    _Atomic uint64_t epoch; /* changes at each reset, so that what belonged to the former life is recognised */
    unsigned int flags;
    _Atomic int sticky; /* the fault that poisoned it, else 0 */
    em_detail fault;    /* written before sticky is */
    pthread_mutex_t fault_lock;
    pthread_mutex_t order; /* streams, and the order of work between the legacy stream and blocking ones */
    em_stream *streams;    /* all, the legacy one first created */
    em_stream *legacy;
    em_stream *whole;        /* where events of the whole context are recorded; made on demand */
    struct em_record *gate;  /* what cuCtxWaitEvent makes later streams wait for */
    pthread_mutex_t modules; /* instances */
    em_instance *instances;
    _Atomic uint64_t peers; /* bit n: access to device n was enabled */
    _Atomic size_t limits[CU_LIMIT_MAX];
    _Atomic int cache_config;
};

em_context *em_context_new(em_device *device, unsigned int flags, bool primary);
bool em_context_revive(em_context *context, unsigned int flags); /* a primary context's next life; false: no memory */
void em_context_destroy(em_context *context); /* waits for its work, frees what it owns; the handle was closed before */
void em_context_poison(em_context *context, int status, const em_detail *detail);
bool em_poisons(int status); /* a kernel that fails with it leaves the context unusable */
int em_context_synchronize(em_context *context);

/* The checks at the head of nearly every call: 0 and the current context, or the error to return. */
int em_enter_slowly(em_context **context);
static inline int em_enter(em_context **context)
{
    em_context *current = em_self.current;
    if (__builtin_expect(current != NULL && atomic_load_explicit(&em_state, memory_order_acquire) == 0 &&
                             atomic_load_explicit(&current->object.live, memory_order_acquire) &&
                             atomic_load_explicit(&current->sticky, memory_order_acquire) == 0,
                         1)) {
        *context = current;
        return CUDA_SUCCESS;
    }
    return em_enter_slowly(context);
}
/* For calls that need no context: that cuInit has run, and that this is no host function of a stream. */
int em_enter_any_slowly(void);
static inline int em_enter_any(void)
{
    bool usable = atomic_load_explicit(&em_state, memory_order_acquire) == CUDA_SUCCESS && !em_self.in_callback;
    return __builtin_expect(usable, 1) ? CUDA_SUCCESS : em_enter_any_slowly();
}

/* ---- streams: stream.c ------------------------------------------------------------------------------------------- */

typedef struct em_dependency {
    em_stream *stream; /* a reference */
    uint64_t sequence;
} em_dependency;

/* One piece of work of a stream. `run` returns 0 or the fault that poisons the context; it is skipped when the context
 * is poisoned already. `finish` is called once in any case, with the status, and frees what the payload owns. */
typedef struct em_op em_op;
struct em_op {
    em_op *next;
    int (*run)(em_op *op, em_stream *stream, em_detail *detail);
    void (*finish)(em_op *op, em_stream *stream, int status);
    uint64_t sequence;
    em_dependency *dependencies;
    size_t dependency_count;
    bool after_all; /* waits for all streams of the context */
};

struct em_stream {
    em_object object;
    em_context *context;
    unsigned int flags;
    int priority;
    uint64_t id;
    bool legacy, per_thread;
    _Atomic int synchronization_policy;
    em_stream *next, *previous; /* of the context, guarded by its order lock */

    pthread_mutex_t lock;
    pthread_cond_t progress; /* signalled when an operation is done */
    em_op *head, *tail;
    _Atomic size_t queued;
    uint64_t submitted;
    _Atomic uint64_t completed;
    bool running; /* a thread works on it */
    unsigned int waiters;
    _Atomic bool closing;
};

typedef enum em_submit {
    EM_QUEUE,        /* asynchronous: the stream's thread does it */
    EM_NOW_OR_QUEUE, /* no effect that a program could observe too early: done at once when the stream is idle */
    EM_WAIT,         /* returns when it is done; on the caller's thread when the stream is idle */
} em_submit;

em_op *em_op_new(size_t size); /* zeroed; NULL when memory is out */
void em_op_drop(em_op *op);    /* one that was never submitted */
/* Takes the operation over, also on failure. With EM_WAIT returns the context's sticky error if there is one. */
int em_stream_submit(em_stream *stream, em_op *op, em_submit how);
em_stream *em_stream_new(em_context *context, unsigned int flags, int priority);
void em_stream_close(em_stream *stream); /* the handle is closed; queued work goes on */
void em_stream_release(em_stream *stream);
bool em_stream_idle(em_stream *stream);       /* of its own work and, for the legacy stream, of all blocking ones */
int em_stream_synchronize(em_stream *stream); /* sticky error or 0 */
void em_stream_wait(em_stream *stream, uint64_t sequence);
uint64_t em_stream_submitted(em_stream *stream);
bool em_stream_drained(em_stream *stream);
/* Waits for what was submitted so far to those streams of the context for which `wanted` is true. */
int em_streams_wait(em_context *context, bool (*wanted)(const em_stream *stream));
/* Calls `visit` for each stream of the context, with no lock held. */
int em_streams_each(em_context *context, int (*visit)(em_stream *stream, void *argument), void *argument);
bool em_stream_is_blocking(const em_stream *stream); /* ordered by the legacy stream */
/* The checks at the head of a call with a stream. A handle brings its context along, whatever is current; NULL,
 * CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are of the current context. */
int em_stream_enter(CUstream handle, em_stream **stream);
em_stream *em_stream_of_thread(em_context *context);
bool em_streams_stopping(void);
bool em_streams_stop(void); /* process exit: no further operation is begun; false if one still runs */

/* ---- events: event.c --------------------------------------------------------------------------------------------- */

/* What one cuEventRecord captured. It outlives the event, for those who wait on it. */
typedef struct em_record {
    _Atomic uint32_t references;
    _Atomic uint32_t state; /* 0 pending, 1 pending with waiters, 2 done */
    uint64_t nanoseconds;
} em_record;

typedef struct em_event {
    em_object object;
    em_context *context;
    uint64_t context_epoch;
    unsigned int flags;
    pthread_mutex_t lock;
    em_record *record; /* the latest, NULL before the first */
} em_event;

em_record *em_event_latest(em_event *event); /* a reference, or NULL */
void em_record_release(em_record *record);
bool em_record_done(const em_record *record);
void em_record_wait(em_record *record);
int em_event_record(em_event *event, em_stream *stream);
int em_stream_wait_record(em_stream *stream, em_record *record); /* takes the reference over */
int em_event_record_context(em_event *event, em_context *context);
int em_context_wait_record(em_context *context, em_record *record); /* takes the reference over */

/* ---- copies and fills: copy.c ------------------------------------------------------------------------------------ */

typedef struct em_side {
    uint64_t address;      /* of the first byte touched */
    uint64_t pitch, slice; /* bytes between rows, between planes */
    bool must_be_device;   /* the caller said device memory: an address outside the heap is refused */
    bool must_be_host;
} em_side;

typedef struct em_box {
    em_side to, from;
    uint64_t width, height, depth; /* bytes, rows, planes */
} em_box;

int em_copy(const em_box *box, em_stream *stream, bool asynchronous);
int em_fill(uint64_t address, uint64_t pitch, uint64_t value, unsigned int element, uint64_t width, uint64_t height,
            em_stream *stream, bool asynchronous);

/* ---- pools: pool.c ----------------------------------------------------------------------------------------------- */

struct em_pool {
    em_object object;
    CUmemPoolProps props;
    int ordinal; /* -1: pinned host memory, or managed */
    bool is_default;
    struct em_pool *next; /* all pools, guarded by pool.c */
    pthread_mutex_t lock;
    uint64_t used, used_high, reserved, reserved_high, threshold;
    int reuse[3];            /* by the order of the attributes; kept for those who ask */
    _Atomic uint64_t access; /* bit n: device n may access its memory */
};

int em_pool_new(const CUmemPoolProps *props, bool is_default, em_pool **pool);
int em_pool_default(CUmemLocation location, em_pool **pool); /* of a device, or of pinned host memory */
int em_pool_default_managed(CUmemLocation location, em_pool **pool);
uint64_t em_pool_default_count(void);
int em_pool_allocate(em_pool *pool, uint64_t size, CUdeviceptr *address);
void em_pool_close(em_pool *pool);
void em_pool_trim(em_pool *pool, uint64_t keep);
void em_pools_trim(em_device *device);             /* a synchronisation: what is over the release threshold goes back */
void em_pool_refund(em_pool *pool, uint64_t size); /* an allocation of it was released */

/* Takes a range that the caller has claimed out of service and settles its account with its pool or device. */
void em_memory_release(em_range *range);
/* Claims the allocation of device, managed or pool memory that begins at the address, for the caller to release. */
int em_memory_claim(uint64_t address, bool in_stream_order, em_range **range);

/* ---- heap.c, beyond emulator.h ----------------------------------------------------------------------------------- */

/* While a thread is between these, no em_range that it can find is freed. They nest. */
void em_heap_pin(void);
void em_heap_unpin(void);
/* An allocation of a program, aligned to 256. Beside its device whoever has bit n (device n) of *access may access it;
 * NULL: who enabled peer access. The mask must stay readable. */
em_range *em_heap_allocate_owned(uint64_t size, em_memory kind, int device, void *owner, unsigned int flags,
                                 const _Atomic uint64_t *access);
int em_heap_register_owned(void *host, uint64_t size, void *owner, unsigned int flags, em_range **range);
bool em_heap_claim(em_range *range); /* true for the one call that may free it */
bool em_heap_claimed(em_range *range);
unsigned int em_heap_flags(em_range *range);
bool em_heap_inside(uint64_t address);                                      /* in the arena, whether allocated or not */
void em_heap_each_owned(const void *owner, void (*visit)(em_range *range)); /* live ranges; visit may release */
uint64_t em_heap_count(em_memory kind);                                     /* live allocations of programs */

/* Reserved addresses. Sizes and bases are multiples of EM_GRANULARITY. Mapping and unmapping are serialised by the
 * caller. */
#define EM_GRANULARITY (UINT64_C(2) << 20)
uint64_t em_heap_reserve(uint64_t size, uint64_t align, uint64_t hint); /* 0: there is no place */
void em_heap_unreserve(uint64_t base);                                  /* nothing is mapped in it */
em_range *em_heap_map(uint64_t base, uint64_t size, int file, em_memory kind, int device, void *owner);
bool em_heap_unmap(em_range *range); /* false: the host refuses, and all is as it was */
void em_heap_grant(em_range *range, int device, bool reads, bool writes);
/* Bytes from the address to the end of its range, and of those mapped right behind it, until `wanted` is reached. */
uint64_t em_heap_reach(const em_range *range, uint64_t address, uint64_t wanted);

/* ---- physical memory of cuMemCreate: physical.c -------------------------------------------------------------------
 */

typedef struct em_physical {
    em_object object;
    int file; /* a memfd: the memory, and behind it what an importer must know */
    uint64_t size;
    CUmemAllocationProp props;
    int ordinal; /* -1: host memory */
    bool charged;
    uint64_t handles, mappings; /* guarded by em_virtual_lock; the memory is freed when both are 0 */
} em_physical;

extern pthread_mutex_t em_virtual_lock; /* of all that is mapped, and of handles; taken before the heap's */

int em_physical_new(uint64_t size, const CUmemAllocationProp *props, em_physical **made);
int em_physical_import(int file, em_physical **made);
void em_physical_settle(em_physical *physical); /* frees it where nobody has it any more; with the lock */
uint64_t em_reservation_count(void);            /* api_virtual.c */
uint64_t em_mapping_count(void);

/* ---- advice on managed memory: advice.c ---------------------------------------------------------------------------- */

typedef struct em_wishes { /* locations: CU_MEM_LOCATION_TYPE_INVALID where there is none */
    bool read_mostly, accessed_by_host;
    uint64_t accessed_by; /* bit n: device n */
    CUmemLocation preferred, prefetched;
} em_wishes;

typedef struct em_advice em_advice;
em_advice **em_heap_advice(em_range *range); /* heap.c: its place in the range */

/* The range is live and pinned, and the bytes are in it. Applies `change` to each of them. */
int em_advice_change(em_range *range, uint64_t address, uint64_t size, void (*change)(em_wishes *, CUmemLocation),
                     CUmemLocation location);
em_wishes em_advice_common(em_range *range, uint64_t address, uint64_t size); /* what holds for all the bytes */
void em_advice_drop(em_range *range);
void em_advice_prefer(em_wishes *wishes, CUmemLocation location); /* api_managed.c: a `change` */

/* ---- details and tracing ----------------------------------------------------------------------------------------- */

/* The calling thread's account of why the call in progress fails; returns `code`. */
int em_explain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
em_detail *em_thread_detail(void);   /* for em_* functions that fill one: marks it as written by this call */
const char *em_error_name(int code); /* "CUDA_ERROR_..." or NULL */
const char *em_error_text(int code);

/* Who wants to be told of every call that ends, not only of those that fail. */
typedef enum em_watch_reason { EM_WATCH_TRACE = 1, EM_WATCH_FAULTS = 2 } em_watch_reason;
extern _Atomic unsigned int em_watched;
void em_watch(em_watch_reason reason, bool begins);
void em_trace_fault(const em_detail *detail); /* a fault that was found on a stream's thread */
/* Notes the failure for cuEmulatorErrorDetail and writes the trace line. The result is what the call returns: by a
 * fault plan, not always the status. */
CUresult em_call_ends(const char *name, CUresult status, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

/* ---- entry points ------------------------------------------------------------------------------------------------ */

/* An entry point has the parameters that CUDA gives it, whether they mean something here or not. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define EM_UNWRAP(...) __VA_ARGS__
#define EM_CALL(name, call, format, arguments)                                                                         \
    do {                                                                                                               \
        CUresult em_status = CUDA_SUCCESS;                                                                             \
        if (__builtin_expect(atomic_load_explicit(&em_fault_planned, memory_order_relaxed), 0))                        \
            em_status = (CUresult)em_fault_call(#name, __builtin_return_address(0));                                   \
        if (__builtin_expect(em_status == CUDA_SUCCESS, 1))                                                            \
            em_status = (CUresult)(call);                                                                              \
        if (__builtin_expect(                                                                                          \
                em_status != CUDA_SUCCESS || atomic_load_explicit(&em_watched, memory_order_relaxed) != 0, 0))         \
            em_status = em_call_ends(#name, em_status, format, EM_UNWRAP arguments);                                   \
        return em_status;                                                                                              \
    } while (0)

/* EM_ENTRY(name, trace format, (arguments to pass on), parameters...) { body } */
#define EM_ENTRY(name, format, arguments, ...)                                                                         \
    static int do_##name(__VA_ARGS__);                                                                                 \
    CUresult CUDAAPI name(__VA_ARGS__)                                                                                 \
    {                                                                                                                  \
        EM_CALL(name, do_##name arguments, format, arguments);                                                         \
    }                                                                                                                  \
    static int do_##name(__VA_ARGS__)

/* The same for a call with a stream parameter, which must be called hStream: also defines name_ptsz, for programs
 * compiled with a default stream for each thread. */
#define EM_ENTRY_STREAM(name, format, arguments, ...)                                                                  \
    static int do_##name(__VA_ARGS__);                                                                                 \
    CUresult CUDAAPI name(__VA_ARGS__)                                                                                 \
    {                                                                                                                  \
        EM_CALL(name, do_##name arguments, format, arguments);                                                         \
    }                                                                                                                  \
    CUresult CUDAAPI name##_ptsz(__VA_ARGS__)                                                                          \
    {                                                                                                                  \
        if (hStream == NULL)                                                                                           \
            hStream = CU_STREAM_PER_THREAD;                                                                            \
        EM_CALL(name##_ptsz, do_##name arguments, format, arguments);                                                  \
    }                                                                                                                  \
    static int do_##name(__VA_ARGS__)

/* A synchronous call whose work goes to the default stream: the body gets it as em_default. Defines name_ptds too. */
#define EM_ENTRY_DEFAULT(name, format, arguments, ...)                                                                 \
    static int do_##name(CUstream em_default, __VA_ARGS__);                                                            \
    CUresult CUDAAPI name(__VA_ARGS__)                                                                                 \
    {                                                                                                                  \
        EM_CALL(name, do_##name(CU_STREAM_LEGACY, EM_UNWRAP arguments), format, arguments);                            \
    }                                                                                                                  \
    CUresult CUDAAPI name##_ptds(__VA_ARGS__)                                                                          \
    {                                                                                                                  \
        EM_CALL(name##_ptds, do_##name(CU_STREAM_PER_THREAD, EM_UNWRAP arguments), format, arguments);                 \
    }                                                                                                                  \
    static int do_##name(CUstream em_default, __VA_ARGS__)

#endif
