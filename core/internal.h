/* What the files of core know of each other. `cc_` is public (cuda_core.h), `cc__` is shared here, the rest is static.
 */
#ifndef CC_INTERNAL_H
#define CC_INTERNAL_H

#include "cuda_core.h"
#include "handle.h"

#include <cudaTypedefs.h>
#include <pthread.h>
#include <stdatomic.h>

#define CC__LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define CC__UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define CC__COLD                __attribute__((cold, noinline))

#pragma GCC visibility push(hidden)

/* ---- driver.c: the function table ------------------------------------------------------------------------------- */

/* Filled once, before any object exists; read without a lock ever after. cuda.h renames some entries (cuMemAlloc is
 * cuMemAlloc_v2 to the preprocessor); since uses of a field are renamed alike, that never shows. */
typedef struct cc__driver_table {
#define CC_ENTRY(need, name, version) PFN_##name##_v##version name;
#include "driver.def"
#undef CC_ENTRY
    CUresult (*cuEmulatorErrorDetail)(char *buffer, size_t size); /* NULL: not the emulator */
} cc__driver_table;

extern cc__driver_table cc__driver;

/* Gives the address of an entry point, NULL where there is none. version as in driver.def, 0 for the emulator's extras.
 * Not CUDA_SUCCESS: the driver fails to say. */
typedef CUresult (*cc__resolver)(void *user, const char *name, int version, void **address);

/* What cc_driver_open does once it has a library: fills the table, initialises, reads the version. Tests bring a
 * driver of their own; unlike cc_driver_open it may be called again. */
int cc__driver_open_with(cc__resolver resolve, void *user, cc_driver_kind kind, const char *path, cc_error *error);

extern atomic_int cc__driver_state; /* 0: not opened yet, 1: open, 2: lost by a fork while it was opened */

CC__COLD int cc__driver_open_default(cc_error *error);

/* For functions that can be the first ones called; any object is a proof that the driver is open. */
static inline int cc__need_driver(cc_error *error)
{
    if (CC__LIKELY(atomic_load_explicit(&cc__driver_state, memory_order_acquire) == 1))
        return 0;
    return cc__driver_open_default(error);
}

/* In a child made by fork while the driver is open, or being opened: forgets the opening; false: it was not begun, so
 * that the child may open a driver of its own. */
bool cc__driver_after_fork(void);

/* ---- process.c: fork and exit ----------------------------------------------------------------------------------- */

extern bool cc__forked;         /* a child of fork, without the driver that its parent has; see process.c */
extern atomic_bool cc__leaving; /* the process is about to exit and takes all that the driver holds along */

CC__COLD void cc__watch_forks(void);

/* A process that exits waits for no kernel: releases that would wait for one are left out then. */
static inline bool cc__is_leaving(void)
{
    return atomic_load_explicit(&cc__leaving, memory_order_relaxed);
}

extern pthread_mutex_t cc__forked_lock;

/* Every lock of core that is held across a driver call. In a forked child a lock may be held by a thread that is not
 * there, so that one of the child's own stands for all of them. */
static inline void cc__lock(pthread_mutex_t *lock)
{
    pthread_mutex_lock(CC__LIKELY(!cc__forked) ? lock : &cc__forked_lock);
}

static inline void cc__unlock(pthread_mutex_t *lock)
{
    pthread_mutex_unlock(CC__LIKELY(!cc__forked) ? lock : &cc__forked_lock);
}

/* ---- errors.c: all of these fill `error` (NULL is allowed) and return -1 ---------------------------------------- */

CC__COLD int cc__fail(cc_error *error, cc_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
CC__COLD int cc__fail_memory(cc_error *error);
CC__COLD int cc__fail_driver(cc_error *error, CUresult code, const char *function);
CC__COLD int cc__fail_forked(cc_error *error);
CC__COLD int cc__fail_needs_driver(cc_error *error, const char *function);
CC__COLD int cc__fail_nvrtc(cc_error *error, int code, const char *name, const char *function);
/* The codes that say that a context, or the driver, is not there any more. */
CC__COLD bool cc__is_gone(CUresult code);
/* The codes that a kernel's failure leaves in its context: every later call there gives the same one. */
CC__COLD bool cc__is_lost(CUresult code);
/* Appends to the text of an error that is filled already; returns -1. A format that begins with a blank or a new line
 * and a capital is a sentence of its own: the one before gets its full stop where it lacks one. */
CC__COLD int cc__explain(cc_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Static strings. The name is never NULL; the text is where no driver answers. */
const char *cc__driver_error_name(CUresult code);
const char *cc__driver_error_text(CUresult code);

static inline int cc__check(CUresult code, cc_error *error, const char *function)
{
    return CC__LIKELY(code == CUDA_SUCCESS) ? 0 : cc__fail_driver(error, code, function);
}

/* Calls a driver entry point by name; 0 or -1. A macro only because the error carries the name. */
#define CC__CALL(error, name, ...) cc__check(cc__driver.name(__VA_ARGS__), error, #name)
#define CC__CALL_OPTIONAL(error, name, ...)                                                                            \
    (cc__driver.name ? cc__check(cc__driver.name(__VA_ARGS__), error, #name) : cc__fail_needs_driver(error, #name))

/* ---- contexts --------------------------------------------------------------------------------------------------- */

typedef struct cc__pending { /* an object in use by queued work; pending.c */
    struct cc__pending *next;
    CUevent event;
    cc_release_function release;
    void *object;
} cc__pending;

typedef struct cc__lane cc__lane; /* the launches of one stream; launches.h */

enum { CC__LANE_LISTS = 32, CC__FAILURE_SIZE = 1536 };

struct cc_context { /* never freed, so that nobody counts references to it */
    CUcontext native;
    cc_device *device;
    unsigned long long id; /* tells a context from a later one at the same address */
    cc_context *next;      /* in the registry of foreign contexts */
    pthread_mutex_t lock;  /* of the pending list */
    _Atomic(cc__pending *) pending;
    _Atomic(cc__lane *) lanes[CC__LANE_LISTS]; /* by the stream's handle */
    cc__lane *spare_lane;                      /* for launches on streams whose lane found no memory */
    atomic_int failed;                         /* the code of its first failure that stays, else 0 */
    char failure[CC__FAILURE_SIZE];            /* which launch that came from; written before `failed` is */
};

typedef struct cc__scope {
    CUcontext previous;
    bool switched;
} cc__scope;

CC__COLD int cc__enter_other(cc__scope *scope, CUcontext native, cc_error *error);
CC__COLD void cc__leave_other(const cc__scope *scope);
/* To give back what belongs to a context. False: it is gone, and has taken all along. Where it cannot be entered for
 * another reason nothing is switched: the driver finds by a handle what it means. */
bool cc__enter_to_release(cc__scope *scope, const cc_context *context);

/* Makes a context current until cc__leave. One driver call that reads a thread's variable when it is so already. */
static inline int cc__enter(cc__scope *scope, const cc_context *context, cc_error *error)
{
    if (CC__LIKELY(cc__driver.cuCtxGetCurrent(&scope->previous) == CUDA_SUCCESS &&
                   scope->previous == context->native)) {
        scope->switched = false;
        return 0;
    }
    return cc__enter_other(scope, context->native, error);
}

static inline void cc__leave(const cc__scope *scope)
{
    if (CC__UNLIKELY(scope->switched))
        cc__leave_other(scope);
}

/* `native` may be NULL, to be bound later. NULL: out of memory. */
cc_context *cc__context_new(CUcontext native, cc_device *device);
void cc__context_discard(cc_context *context); /* one that nobody has seen */
/* All that are known by now, primary or not. */
void cc__contexts_each(void (*visit)(cc_context *context, void *argument), void *argument);
void cc__context_bind(cc_context *context, CUcontext native);
/* The context object of a native one, borrowed: contexts that we meet are kept for the life of the process. */
int cc__context_find(CUcontext native, cc_context **context, cc_error *error);

/* Hands `object` over until the work queued on the stream so far is done. Never fails: without the means to wait later
 * it waits at once. The context is current. */
void cc__context_keep(cc_context *context, CUstream stream, cc_release_function release, void *object);

/* ---- launches.c, failure.c: which launch a failure came from ----------------------------------------------------- */

cc__lane *cc__lane_new(CUstream native, bool is_many); /* NULL: out of memory */

/* A kernel's name, which may be asked for longer than the kernel lives. */
typedef struct cc__name {
    struct cc__name *next;
    char text[];
} cc__name;
cc__name *cc__name_new(const char *text); /* NULL: out of memory */
/* Frees it once no launch in flight can be told by it. */
void cc__name_retire(cc__name *name);

/* "kernel (file:line)", kept for the life of the process; the kernel's name itself where there is no memory. */
const char *cc__launch_label(const char *kernel, const char *file, int line);

/* Notes the first failure that stays; later ones change nothing. */
CC__COLD void cc__context_fails(cc_context *context, CUresult code);
/* Adds to the error of a code that stays which launch failed first; returns -1. The text has said that call already. */
CC__COLD int cc__explain_failure(cc_error *error, CUresult code);

/* ---- devices ---------------------------------------------------------------------------------------------------- */

enum { CC__ATTRIBUTE_COUNT = 192 }; /* above every attribute of today's drivers; later ones are not remembered */

struct cc_device {
    int ordinal;
    CUdevice native;
    pthread_mutex_t lock; /* of what is made at first need */
    _Atomic(cc_context *) primary;
    _Atomic(cc_pool *) default_pool;
    atomic_bool name_known;
    char name[256];
    _Atomic int64_t attributes[CC__ATTRIBUTE_COUNT]; /* value + 2^32, 0 while unknown */
};

/* The table of devices; count is 0 until the driver is open and cc_device_count or cc_device_get was called. */
typedef struct cc__device_table {
    int count;
    cc_device *devices;
} cc__device_table;
int cc__devices(const cc__device_table **table, cc_error *error);
const cc__device_table *cc__devices_made(void); /* NULL where that was not called yet */
int cc__device_of_native(CUdevice native, cc_device **device, cc_error *error);

/* ---- streams and events ----------------------------------------------------------------------------------------- */

struct cc_stream {
    cc__count count;
    CUstream native;
    uint64_t serial;               /* tells a stream from a later one of the same handle */
    _Atomic(cc_context *) context; /* NULL: found at first need; stays NULL for the default streams */
    _Atomic(cc__lane *) lane;      /* NULL: nothing was launched; stays NULL for the default streams */
    bool owned, is_default;        /* is_default: of whatever context is current */
    cc_release_function release;
    void *owner;
};

CC__COLD int cc__enter_unbound(cc__scope *scope, cc_stream *stream, cc_context **context, cc_error *error);

/* The stream's context; for the default streams the one that is current, else device 0's primary. */
static inline int cc__enter_stream(cc__scope *scope, cc_stream *stream, cc_context **context, cc_error *error)
{
    *context = atomic_load_explicit(&stream->context, memory_order_acquire);
    if (CC__LIKELY(*context != NULL))
        return cc__enter(scope, *context, error);
    return cc__enter_unbound(scope, stream, context, error);
}

/* The same, but a default stream is that of `context`. */
static inline int cc__enter_stream_of(cc__scope *scope, cc_stream *stream, cc_context *context, cc_error *error)
{
    if (CC__UNLIKELY(stream->is_default))
        return cc__enter(scope, context, error);
    return cc__enter_stream(scope, stream, &context, error);
}

/* Waits, with the stream's context current. */
int cc__stream_finish(cc_stream *stream, cc_error *error);
/* 1: broken off. No scope may be open: `watch` may change the current context. */
int cc__stream_poll(const cc_context *context, const cc_stream *stream, const cc_watch *watch);

struct cc_event {
    cc__count count;
    CUevent native;
    cc_context *context;
    unsigned flags;
    atomic_bool recorded; /* by us; only to say why elapsed time is not to be had */
    atomic_uint turn;     /* odd while it is being recorded: what it marks changes */
    _Atomic(cc__lane *) lane;
    _Atomic uint64_t launches; /* of the lane, that are over when the event is */
};

/* ---- memory ----------------------------------------------------------------------------------------------------- */

struct cc_pool {
    cc__count count;
    CUmemoryPool native;
    cc_device *device;
    cc_context *context; /* the device's primary */
    bool owned, pinned, managed;
};

int cc__managed_pools_supported(cc_error *error); /* managed.c */

typedef enum cc__buffer_kind {
    CC__BUFFER_EMPTY,  /* size 0: no memory behind it */
    CC__BUFFER_POOL,   /* cuMemAllocFromPoolAsync */
    CC__BUFFER_DEVICE, /* cuMemAlloc */
    CC__BUFFER_PINNED, /* cuMemHostAlloc */
    CC__BUFFER_WRAPPED,
    CC__BUFFER_ORDERED, /* wrapped, and its owner frees it in stream order */
} cc__buffer_kind;

typedef struct cc__use { /* a stream that may still work with a buffer beside the one it is freed on */
    struct cc__use *next;
    cc_stream *stream; /* a reference */
} cc__use;

struct cc_buffer {
    cc_buffer_info info; /* first, by the contract of cc_buffer_read */
    cc__count count;
    cc__buffer_kind kind;
    atomic_bool free_stream_set;
    cc_context *context;         /* of memory outside pools: a reference */
    cc_pool *pool;               /* a reference */
    _Atomic(cc_stream *) stream; /* the one to free on; a reference */
    _Atomic(cc__use *) uses;     /* the others it was used on; grows only, so that it is read without a lock */
    _Atomic uint64_t placement;  /* packed by memory.c; 0: not asked yet */
    cc_release_function release;
    void *owner;
};

/* ---- libraries and kernels -------------------------------------------------------------------------------------- */

typedef struct cc__entry { /* one .entry of a PTX text; params.c */
    char *name;
    cc_parameter *parameters;
    uint32_t count;
} cc__entry;

typedef struct cc__entries {
    cc__entry *entries;
    size_t count;
} cc__entries;

/* Reads the .entry declarations of a PTX text. Text that is no PTX gives fewer entries, never a fault; -1: no memory.
 */
int cc__entries_parse(const char *ptx, size_t size, cc__entries *entries, cc_error *error);
void cc__entries_free(cc__entries *entries);
const cc__entry *cc__entries_find(const cc__entries *entries, const char *name);

struct cc_library {
    cc__count count;
    CUlibrary native;
    pthread_mutex_t lock; /* of what is made at first need */
    char *ptx;            /* the PTX in the code, until parsed; NULL where there is none */
    size_t ptx_size;
    char *log; /* what the driver writes errors of translating PTX into */
    cc__entries entries;
    atomic_bool names_known;
    const char **names;
    size_t name_count;
};

/* Adds the log, where there is one, to an error that is filled already; returns -1. */
int cc__library_explain(const cc_library *library, cc_error *error);

/* The entry's parameters as its PTX declares them; NULL where there is no PTX or no such entry. */
int cc__library_entry(cc_library *library, const char *name, const cc__entry **entry, cc_error *error);

typedef struct cc__launch_limits { /* of one kernel on one device: everything a launch is held against */
    atomic_bool known;
    unsigned max_grid[3], max_block[3];
    unsigned max_threads; /* the smaller of the device's and the kernel's */
    unsigned device_max_threads;
    unsigned static_shared;
    atomic_uint dynamic_shared;  /* allowed as things are */
    unsigned max_dynamic_shared; /* allowed once raised */
} cc__launch_limits;

struct cc_kernel {
    cc__count count;
    CUkernel native;
    cc_library *library; /* a reference, or NULL */
    cc__name *name;
    cc_release_function release;
    void *owner;
    pthread_mutex_t lock;
    _Atomic(const cc_signature *) signature;
    int device_count;
    cc__launch_limits limits[]; /* one a device */
};

int cc__kernel_set_attribute_lock_held(cc_kernel *kernel, cc_device *device, CUfunction_attribute attribute, int value,
                                       cc_error *error);

/* ---- cubin.c ---------------------------------------------------------------------------------------------------- */

enum { CC__SECTION_PTX = (int)0x8000cc01u }; /* the section type; the emulator's loader looks for the same */

/* A copy of `cubin` with the PTX in a section of its own, all else where it was. *joined is NULL (and the result 0)
 * when the bytes are not a cubin that another section can be added to. */
int cc__cubin_add_ptx(const void *cubin, size_t size, const char *ptx, size_t ptx_size, void **joined,
                      size_t *joined_size, cc_error *error);
/* Size of an ELF or fatbin by its own headers, at most `size`; 0 where the bytes end before what the headers promise.
 */
size_t cc__code_size(const void *code, size_t size);

#pragma GCC visibility pop
#endif
