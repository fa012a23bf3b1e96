/* cuda_core: CUDA's objects in plain C.
 *
 * Every object is an opaque, reference-counted struct that holds a reference to its parent, so any order of release is
 * right. A new object comes with one reference, owned by the caller; `cc_X_retain` adds one, `cc_X_release` drops one
 * (NULL is allowed) and the last one destroys the CUDA resource. Closing is dropping the reference: work in flight and
 * children keep what they need.
 *
 * A function that can fail returns 0 or -1 and, only when it fails, fills the caller's cc_error. All functions may be
 * called from any thread at the same time. A function that acts on an object's device makes that device's context
 * current for the call and leaves the thread's current context as it found it.
 *
 * Sizes are bytes, times milliseconds. Names follow the driver API; each function says which driver call it stands on. */
#ifndef CUDA_CORE_H
#define CUDA_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors -------------------------------------------------------------------------------------------------------- */

typedef enum cc_domain {
    CC_DOMAIN_DRIVER = 1, /* code is a CUresult */
    CC_DOMAIN_NVRTC,      /* code is an nvrtcResult */
    CC_DOMAIN_CORE,       /* code is a cc_status */
} cc_domain;

/* What core itself refuses. The rows, with their text, are in errors.def. */
typedef enum cc_status {
#define CC_STATUS(name, text) CC_##name,
#include "errors.def"
#undef CC_STATUS
} cc_status;

typedef struct cc_error {
    cc_domain domain;
    int code;
    const char *name;     /* "CUDA_ERROR_INVALID_VALUE", "NVRTC_ERROR_COMPILATION", ...; static */
    const char *function; /* the driver or compiler function that failed; static; NULL for CC_DOMAIN_CORE */
    char text[2048];      /* one or more lines that say what happened and what to do */
    char *log;            /* compile log, or NULL; freed by cc_error_clear */
} cc_error;

void cc_error_clear(cc_error *error); /* only after a failure: a success leaves the struct untouched */

/* ---- the driver: driver.c ----------------------------------------------------------------------------------------------- */

typedef enum cc_driver_kind { CC_DRIVER_NATIVE, CC_DRIVER_EMULATOR } cc_driver_kind;

/* Finds and initialises a driver, once a process: what was opened stays. A failure decides nothing, the next call tries
 * again.
 * choice: "native", "emulator", the path of a libcuda, or NULL for the value of CUDA_CORE_DRIVER and, without one, the
 * native driver where the machine has an NVIDIA driver or device node, else the emulator.
 * emulator_path: where libcuda_core_emulator.so is; NULL: beside the file that holds this code.
 * A driver that is there but cannot be used is an error, the driver's own where a call of it fails, else CC_DRIVER_BROKEN:
 * never a silent fallback. */
int cc_driver_open(const char *choice, const char *emulator_path, cc_error *error);
bool cc_driver_is_open(void);
cc_driver_kind cc_driver_which(void); /* after a successful open */
const char *cc_driver_path(void);
int cc_driver_version(int *version, cc_error *error); /* 13000 for 13.0; cuDriverGetVersion */

/* ---- devices and contexts: device.c, context.c ---------------------------------------------------------------------------- */

typedef struct cc_device cc_device;   /* one an ordinal, never freed: no retain, no release */
typedef struct cc_context cc_context;

int cc_device_count(int *count, cc_error *error);
int cc_device_get(int ordinal, cc_device **device, cc_error *error); /* opens the driver when that was not done */
int cc_device_ordinal(const cc_device *device);
CUdevice cc_device_native(const cc_device *device);
bool cc_device_is_emulated(const cc_device *device);
int cc_device_name(cc_device *device, const char **name, cc_error *error);            /* cuDeviceGetName, cached */
int cc_device_uuid(cc_device *device, char uuid[16], cc_error *error);                /* cuDeviceGetUuid_v2 */
int cc_device_pci_bus_id(cc_device *device, char text[32], cc_error *error);          /* cuDeviceGetPCIBusId */
int cc_device_total_memory(cc_device *device, size_t *bytes, cc_error *error);        /* cuDeviceTotalMem */
int cc_device_attribute(cc_device *device, CUdevice_attribute attribute, int *value, cc_error *error); /* read once */
int cc_device_can_access_peer(cc_device *device, cc_device *peer, bool *can, cc_error *error);
int cc_device_synchronize(cc_device *device, cc_error *error); /* of the primary context; cuCtxSynchronize */

/* To be told when the process is about to exit, after the program's last own use: from then on the release of memory
 * whose cuMemFree or cuMemFreeHost would wait for running kernels leaves it to the exit. false: it is not, after all. */
void cc_process_ends(bool ends);

/* The device of the thread's current context; ordinal -1 where none is current. cuCtxGetCurrent, cuCtxGetDevice */
int cc_device_current(int *ordinal, cc_error *error);
/* The primary context, retained at first need and kept for the life of the process; borrowed. cuDevicePrimaryCtxRetain */
int cc_device_primary_context(cc_device *device, cc_context **context, cc_error *error);

cc_context *cc_context_retain(cc_context *context);
void cc_context_release(cc_context *context);
CUcontext cc_context_native(const cc_context *context);
cc_device *cc_context_device(const cc_context *context);
/* The context object of a native one: a device's primary, or a wrapper that does not own it. New reference. */
int cc_context_from_native(CUcontext native, cc_context **context, cc_error *error);
int cc_context_get_current(CUcontext *native, cc_error *error); /* NULL where none is; cuCtxGetCurrent */
int cc_context_set_current(CUcontext native, cc_error *error);  /* cuCtxSetCurrent */

/* Calls that leave an object of the caller's in use until queued work is done (the host side of an asynchronous copy)
 * hand it over here. `release(object)` is called by cc_context_collect, on the caller's thread, once the work is done. */
typedef void (*cc_release_function)(void *object);
/* Releases what is finished; `wait_for_all` waits for the rest first. Cheap when nothing is pending. */
void cc_context_collect(cc_context *context, bool wait_for_all);
bool cc_context_has_pending(const cc_context *context); /* one load: lets a caller skip cc_context_collect */

/* ---- streams: stream.c ----------------------------------------------------------------------------------------------------- */

typedef struct cc_stream cc_stream;
typedef struct cc_event cc_event;

/* flags: CU_STREAM_DEFAULT or CU_STREAM_NON_BLOCKING; priority outside the device's range is refused with the range.
 * cuStreamCreateWithPriority */
int cc_stream_create(cc_context *context, unsigned flags, int priority, cc_stream **stream, cc_error *error);
/* A stream that somebody else owns, and CU_STREAM_LEGACY, CU_STREAM_PER_THREAD. context NULL: the stream's own, found
 * at first need (cuStreamGetCtx; for the two default streams whatever context is current at each use, else device 0's).
 * release(owner), where given, is called when the last reference goes. */
int cc_stream_wrap(CUstream native, cc_context *context, cc_release_function release, void *owner, cc_stream **stream,
                   cc_error *error);
cc_stream *cc_stream_retain(cc_stream *stream);
void cc_stream_release(cc_stream *stream); /* cuStreamDestroy: work that is queued still runs */
CUstream cc_stream_native(const cc_stream *stream);
/* A number of its own for each stream of the process: the driver gives the handle of a destroyed one out again. */
uint64_t cc_stream_serial(const cc_stream *stream);
bool cc_stream_is_owned(const cc_stream *stream);
/* Borrowed; for the default streams the context current at this moment. */
int cc_stream_context(cc_stream *stream, cc_context **context, cc_error *error);
int cc_stream_flags(cc_stream *stream, unsigned *flags, cc_error *error);   /* cuStreamGetFlags */
int cc_stream_priority(cc_stream *stream, int *priority, cc_error *error);  /* cuStreamGetPriority */
int cc_stream_synchronize(cc_stream *stream, cc_error *error);              /* cuStreamSynchronize; blocks */
int cc_stream_query(cc_stream *stream, bool *done, cc_error *error);        /* cuStreamQuery */
int cc_stream_wait_event(cc_stream *stream, cc_event *event, cc_error *error); /* cuStreamWaitEvent */
/* All later work of `stream` waits for what is queued in `other` now (an event recorded there). */
int cc_stream_wait_stream(cc_stream *stream, cc_stream *other, cc_error *error);

/* ---- events: event.c ----------------------------------------------------------------------------------------------------------- */

int cc_event_create(cc_context *context, unsigned flags, cc_event **event, cc_error *error); /* cuEventCreate */
cc_event *cc_event_retain(cc_event *event);
void cc_event_release(cc_event *event);
CUevent cc_event_native(const cc_event *event);
unsigned cc_event_flags(const cc_event *event);
cc_context *cc_event_context(const cc_event *event); /* borrowed */
int cc_event_record(cc_event *event, cc_stream *stream, cc_error *error);      /* cuEventRecord */
int cc_event_synchronize(cc_event *event, cc_error *error);                    /* cuEventSynchronize; blocks */
int cc_event_query(cc_event *event, bool *done, cc_error *error);              /* cuEventQuery */
/* Errors say which of the two was made without timing, was not recorded, or is not done. cuEventElapsedTime */
int cc_event_elapsed(cc_event *start, cc_event *end, float *milliseconds, cc_error *error);

/* ---- waits that can be broken off: wait.c --------------------------------------------------------------------------------------- */

typedef struct cc_watch {
    bool (*interrupted)(void *user); /* asked every 20 ms at least, never in the first; true breaks the wait off */
    void *user;
} cc_watch;

/* As cc_X_synchronize, and 1: broken off, with the work going on and the object as usable as before. watch NULL: never.
 * cc_device_wait needs cuCtxRecordEvent of driver 12.5 for that; before it waits to the end. */
int cc_stream_wait(cc_stream *stream, const cc_watch *watch, cc_error *error); /* cuStreamQuery, cuStreamSynchronize */
int cc_event_wait(cc_event *event, const cc_watch *watch, cc_error *error);    /* cuEventQuery, cuEventSynchronize */
int cc_device_wait(cc_device *device, const cc_watch *watch, cc_error *error); /* cuCtxRecordEvent, cuCtxSynchronize */

/* ---- memory: mempool.c, buffer.c, memory.c -------------------------------------------------------------------------------------- */

typedef struct cc_pool cc_pool;     /* a CUmemoryPool */
typedef struct cc_buffer cc_buffer; /* one allocation */

/* The device's current default pool, not owned (cuDeviceGetDefaultMemPool); its release threshold is raised to keep
 * memory between allocations, as every user wants. */
int cc_pool_device_default(cc_device *device, cc_pool **pool, cc_error *error);
int cc_pool_create_device(cc_device *device, size_t max_size, cc_pool **pool, cc_error *error); /* cuMemPoolCreate */
/* Pinned host memory, allocated in stream order. numa_id -1: not bound to a node. */
int cc_pool_create_pinned(cc_device *device, int numa_id, size_t max_size, cc_pool **pool, cc_error *error);
/* Managed memory, allocated in stream order; it begins at `location`, of type CU_MEM_LOCATION_TYPE_NONE: where it is used
 * first. Needs driver 13.0. */
int cc_pool_create_managed(cc_device *device, CUmemLocation location, cc_pool **pool, cc_error *error);
cc_pool *cc_pool_retain(cc_pool *pool);
void cc_pool_release(cc_pool *pool);
CUmemoryPool cc_pool_native(const cc_pool *pool);
cc_device *cc_pool_device(const cc_pool *pool);
bool cc_pool_is_owned(const cc_pool *pool);
bool cc_pool_is_pinned(const cc_pool *pool);
bool cc_pool_is_managed(const cc_pool *pool);
int cc_pool_attribute(cc_pool *pool, CUmemPool_attribute attribute, uint64_t *value, cc_error *error);
int cc_pool_set_attribute(cc_pool *pool, CUmemPool_attribute attribute, uint64_t value, cc_error *error);
int cc_pool_trim(cc_pool *pool, size_t keep, cc_error *error);
int cc_pool_set_access(cc_pool *pool, cc_device *peer, bool readable, cc_error *error); /* cuMemPoolSetAccess */
int cc_pool_get_access(cc_pool *pool, cc_device *peer, bool *readable, cc_error *error);  /* cuMemPoolGetAccess */
/* Memory of a pool that no cc_buffer owns: a caller's own cuMemAllocFromPoolAsync. cuMemFreeAsync */
int cc_pool_free(cc_pool *pool, CUdeviceptr pointer, cc_stream *stream, cc_error *error);

/* Stream-ordered; size 0 is allowed and takes no memory (pointer 0). cuMemAllocFromPoolAsync.
 * CUDA_ERROR_OUT_OF_MEMORY says the size asked, the pool's use, and the device's free and total memory. */
int cc_buffer_allocate(cc_pool *pool, size_t size, cc_stream *stream, cc_buffer **buffer, cc_error *error);
/* Page-locked host memory, outside any pool, at once: cuMemHostAlloc. */
int cc_buffer_allocate_pinned(cc_context *context, size_t size, cc_buffer **buffer, cc_error *error);
/* Page-locked memory that no cc_buffer owns: a caller's own cuMemHostAlloc. cuMemFreeHost */
int cc_pinned_free(cc_context *context, CUdeviceptr pointer, cc_error *error);
/* Device memory, outside any pool, at once: cuMemAlloc. */
int cc_buffer_allocate_device(cc_context *context, size_t size, cc_buffer **buffer, cc_error *error);
/* Memory that somebody else owns. What it is (host or device accessible, which device, managed) is asked of the driver at
 * first need. release(owner), where given, is called when the last reference goes. */
int cc_buffer_wrap(CUdeviceptr pointer, size_t size, cc_release_function release, void *owner, cc_buffer **buffer,
                   cc_error *error);
/* The same for memory that its owner frees in stream order: uses are noted, and cc_buffer_last_stream tells. */
int cc_buffer_wrap_ordered(CUdeviceptr pointer, size_t size, cc_buffer **buffer, cc_error *error);
/* The stream of the last use, or the one that was set, which from now on waits for all others the buffer was used on; a
 * new reference, NULL where there is none. To be asked by the last holder of the buffer. */
cc_stream *cc_buffer_last_stream(const cc_buffer *buffer);
cc_buffer *cc_buffer_retain(cc_buffer *buffer);
/* The last release frees in the order of the stream the buffer was last used on (or the one that was set), once that has
 * waited for what is queued then on every other stream the buffer was used on. A context that is gone or poisoned leaves
 * nothing to free and is not an error. */
void cc_buffer_release(cc_buffer *buffer);

/* The hot fields stand open: launches and views read them millions of times a second. Read only. */
typedef struct cc_buffer_info {
    CUdeviceptr pointer;
    size_t size;
} cc_buffer_info;
static inline const cc_buffer_info *cc_buffer_read(const cc_buffer *buffer)
{
    return (const cc_buffer_info *)(const void *)buffer; /* the first member of the struct, by contract */
}

typedef struct cc_placement {
    bool device_accessible, host_accessible, managed;
    int device; /* ordinal, -1 for host memory that belongs to no device */
} cc_placement;
int cc_buffer_placement(cc_buffer *buffer, cc_placement *placement, cc_error *error);
int cc_pointer_placement(CUdeviceptr pointer, cc_placement *placement, cc_error *error); /* cuPointerGetAttributes */
/* Whether kernels on `device` may use the memory as things are: for another device's, whether its pool was opened to this
 * one; for memory outside pools, whether the two devices can reach each other at all. */
int cc_buffer_usable_on(cc_buffer *buffer, cc_device *device, bool *usable, cc_error *error);

/* Later use on `stream` (launch, copy, fill) moves the point where the buffer is freed after it; the streams of earlier
 * uses are remembered, since their work may be the last to end. Called by bindings for launch arguments.
 * Does nothing for memory that is not stream-ordered, and costs one compare when the stream is the same. */
void cc_buffer_used_on(cc_buffer *buffer, cc_stream *stream);
/* The same, and all later work of `stream` waits for the streams that used the memory until now: for memory that is handed
 * to somebody who queues on `stream` only. */
int cc_buffer_hand_over(cc_buffer *buffer, cc_stream *stream, cc_error *error);
/* The stream the memory will be freed on whatever uses it later. It waits for the streams of all uses: now,
 * and again when the memory is freed. */
int cc_buffer_set_free_stream(cc_buffer *buffer, cc_stream *stream, cc_error *error);

/* ---- virtual memory: vmm.c --------------------------------------------------------------------------------------- */

#define CC_VMM_PEERS 63

typedef struct cc_vmm_options {
    CUmemAllocationType type;
    CUmemLocationType location;
    CUmemAllocationHandleType handle_type;
    CUmemAllocationGranularity_flags granularity;
    bool gpu_direct_rdma;
    CUdeviceptr address_hint;
    size_t alignment;
    CUmemAccess_flags self_access, peer_access;
    int peer_count, peers[CC_VMM_PEERS]; /* ordinals */
} cc_vmm_options;

/* Whether the device can do what the options ask for: CC_NOT_SUPPORTED says what it cannot. */
int cc_vmm_check(cc_device *device, const cc_vmm_options *options, cc_error *error);
/* At once: reserves addresses and maps new memory there, in multiples of the granularity. The last release waits for the
 * devices that have access, unmaps, and gives the addresses back. cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess */
int cc_buffer_allocate_virtual(cc_device *device, const cc_vmm_options *options, size_t size, cc_buffer **buffer,
                               cc_error *error);
bool cc_buffer_is_virtual(const cc_buffer *buffer);
/* More memory behind a virtual buffer. *grown is `buffer` itself where the addresses behind it were free, or where it is
 * large enough; else a new buffer at another address with the same memory, which stays mapped at the old one until the old
 * buffer is released. grant_all: the options' access is granted to what was there, too. A failure changes nothing. */
int cc_buffer_grow_virtual(const cc_vmm_options *options, bool grant_all, cc_buffer *buffer, size_t size,
                           cc_buffer **grown, cc_error *error);
/* Memory mapped at a reservation of its own that no cc_buffer owns. cuMemUnmap, cuMemAddressFree */
int cc_virtual_free(cc_device *device, const cc_vmm_options *options, CUdeviceptr pointer, size_t size, cc_error *error);

/* Any direction by unified addressing: device, pinned, managed, pageable host. cuMemcpyAsync */
int cc_copy(CUdeviceptr destination, CUdeviceptr source, size_t size, cc_stream *stream, cc_error *error);
/* The same, where one side is host memory of the caller's: release(object) comes through cc_context_collect when the copy is
 * done, or at once where the driver has already read or written the memory. On failure the object stays the caller's. */
/* To be called before a copy with pageable memory, which the driver carries out before it returns, and so after all work
 * queued before: a wait for that work that can be broken off; 1: it was. At once where the copy will not wait. */
int cc_host_copy_wait(const void *host, size_t size, bool to_host, cc_stream *stream, const cc_watch *watch,
                      cc_error *error);
int cc_copy_from_host(CUdeviceptr destination, const void *source, size_t size, cc_stream *stream,
                      cc_release_function release, void *object, cc_error *error);
int cc_copy_to_host(void *destination, CUdeviceptr source, size_t size, cc_stream *stream, cc_release_function release,
                    void *object, cc_error *error);
/* pattern_size 1, 2 or 4; size a multiple of it. cuMemsetD8Async, D16, D32 */
int cc_fill(CUdeviceptr destination, size_t size, uint32_t pattern, size_t pattern_size, cc_stream *stream,
            cc_error *error);

/* ---- managed memory: managed.c ---------------------------------------------------------------------------------------------------- */

/* Of `size` bytes at `pointer`, which are the buffer's or a part of them; size 0 does nothing. A device without concurrent
 * managed access is refused as a location. cuMemAdvise_v2 */
int cc_managed_advise(cc_buffer *buffer, CUdeviceptr pointer, size_t size, CUmem_advise advice, CUmemLocation location,
                      cc_error *error);
/* `count` ints, as the attribute has them; size must not be 0. cuMemRangeGetAttribute */
int cc_managed_attribute(cc_buffer *buffer, CUdeviceptr pointer, size_t size, CUmem_range_attribute attribute,
                         int *values, size_t count, cc_error *error);
/* CU_MEM_LOCATION_TYPE_INVALID: none, or not the same for all bytes. */
int cc_managed_preferred(cc_buffer *buffer, CUdeviceptr pointer, size_t size, CUmemLocation *location, cc_error *error);
int cc_managed_prefetch(CUdeviceptr pointer, size_t size, CUmemLocation location, cc_stream *stream,
                        cc_error *error); /* cuMemPrefetchAsync_v2 */
/* All sizes above 0. cuMemDiscardBatchAsync */
int cc_managed_discard_batch(CUdeviceptr *pointers, size_t *sizes, size_t count, cc_stream *stream, cc_error *error);
/* The same; a location for each range. cuMemPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync */
int cc_managed_prefetch_batch(CUdeviceptr *pointers, size_t *sizes, CUmemLocation *locations, size_t count,
                              bool discard, cc_stream *stream, cc_error *error);

/* ---- compiling: nvrtc.c, program.c, cubin.c --------------------------------------------------------------------------------------- */

/* Loads NVRTC from `path`, or where NULL from the places the loader looks. Once a process; CC_COMPILER_MISSING otherwise. */
int cc_nvrtc_open(const char *path, cc_error *error);
bool cc_nvrtc_is_open(void);
int cc_nvrtc_version(int *major, int *minor, cc_error *error);

typedef enum cc_target { CC_TARGET_PTX, CC_TARGET_CUBIN, CC_TARGET_LTOIR } cc_target;

typedef struct cc_compile_request {
    const char *source; /* NUL-terminated */
    const char *name;   /* shown in diagnostics */
    const char *const *header_names, *const *header_sources;
    size_t header_count;
    const char *const *options;
    size_t option_count;
    const char *const *name_expressions;
    size_t name_expression_count;
    cc_target target;
} cc_compile_request;

typedef enum cc_pch { CC_PCH_NOT_ATTEMPTED, CC_PCH_CREATED, CC_PCH_FAILED } cc_pch; /* precompiled header */

typedef struct cc_compiled {
    void *code; /* NUL-terminated after `size` bytes for PTX. A cubin carries its PTX in a section (cubin.c). */
    size_t size;
    char *log;            /* warnings; NULL where there is none */
    char **lowered_names; /* one a name expression */
    size_t lowered_count;
    cc_pch pch;
} cc_compiled;

/* Blocks; several threads may compile at once. CompileError material: domain NVRTC, code NVRTC_ERROR_COMPILATION, error->log. */
int cc_compile(const cc_compile_request *request, cc_compiled *compiled, cc_error *error);
void cc_compiled_free(cc_compiled *compiled);

/* An nvrtcProgram of the source, not compiled, for callers who talk to NVRTC themselves. nvrtcCreateProgram */
int cc_program_create(const char *source, const char *name, void **native, cc_error *error);
void cc_program_destroy(void *native);

/* The PTX that cc_compile put into a cubin; false for any other bytes. Borrowed from `cubin`; not NUL-terminated. */
bool cc_cubin_ptx(const void *cubin, size_t size, const char **ptx, size_t *ptx_size);

/* ---- libraries and kernels: library.c, kernel.c, params.c ---------------------------------------------------------------------------- */

typedef struct cc_library cc_library;
typedef struct cc_kernel cc_kernel;

/* PTX, cubin or fatbin; context-independent, loaded on each device when first used there. The bytes are copied.
 * cuLibraryLoadData; the loader's log goes into error->log. */
int cc_library_load(const void *code, size_t size, cc_library **library, cc_error *error);
cc_library *cc_library_retain(cc_library *library);
void cc_library_release(cc_library *library);
CUlibrary cc_library_native(const cc_library *library);
/* The module in a device's primary context; the library's. cuLibraryGetModule */
int cc_library_module(cc_library *library, cc_device *device, CUmodule *module, cc_error *error);
/* Names are borrowed and live as long as the library. cuLibraryEnumerateKernels */
int cc_library_kernel_names(cc_library *library, const char *const **names, size_t *count, cc_error *error);

/* CC_NO_SUCH_KERNEL lists the names there are. cuLibraryGetKernel */
int cc_kernel_get(cc_library *library, const char *name, cc_kernel **kernel, cc_error *error);
/* A kernel that somebody else owns; release(owner) as for streams. library may be NULL. */
int cc_kernel_wrap(CUkernel native, cc_library *library, cc_release_function release, void *owner, cc_kernel **kernel,
                   cc_error *error);
cc_kernel *cc_kernel_retain(cc_kernel *kernel);
void cc_kernel_release(cc_kernel *kernel);
CUkernel cc_kernel_native(const cc_kernel *kernel);
const char *cc_kernel_name(const cc_kernel *kernel);
cc_library *cc_kernel_library(const cc_kernel *kernel); /* borrowed; NULL for a wrapped one without */
int cc_kernel_attribute(cc_kernel *kernel, cc_device *device, CUfunction_attribute attribute, int *value,
                        cc_error *error); /* cuKernelGetAttribute */
int cc_kernel_set_attribute(cc_kernel *kernel, cc_device *device, CUfunction_attribute attribute, int value,
                            cc_error *error);

typedef enum cc_type { /* of a kernel parameter, as far as it is known */
    CC_TYPE_UNKNOWN,   /* no PTX: only the size */
    CC_TYPE_INTEGER,   /* .u8 to .u64, .s*, .b*: also where a pointer may be meant (8 bytes) */
    CC_TYPE_POINTER,   /* .ptr */
    CC_TYPE_FLOAT,     /* .f16, .f32, .f64 by size */
    CC_TYPE_BYTES,     /* .b8 name[n]: a struct, a half, a float2 ... */
} cc_type;

typedef struct cc_parameter {
    uint32_t offset, size, align;
    cc_type type;
} cc_parameter;

/* Worked out once a kernel and cached: sizes from cuKernelGetParamInfo, types from the PTX in the library. */
typedef struct cc_signature {
    const cc_parameter *parameters;
    uint32_t count;
    uint32_t bytes;     /* of the packed parameter buffer */
    bool is_known;      /* false: no parameter information at all (old driver, foreign code); nothing can be checked */
} cc_signature;
int cc_kernel_signature(cc_kernel *kernel, const cc_signature **signature, cc_error *error);

/* ---- packing one argument: args.c ------------------------------------------------------------------------------------------------------
 * Each writes parameter->size bytes at `slot`, or fails with CC_WRONG_TYPE or CC_OUT_OF_RANGE and text that says what the
 * parameter is and what was given (the caller puts kernel name and index before it). */
int cc_pack_signed(const cc_parameter *parameter, int64_t value, void *slot, cc_error *error);
int cc_pack_unsigned(const cc_parameter *parameter, uint64_t value, void *slot, cc_error *error);
int cc_pack_double(const cc_parameter *parameter, double value, void *slot, cc_error *error);
int cc_pack_complex(const cc_parameter *parameter, double real, double imaginary, void *slot, cc_error *error);
int cc_pack_pointer(const cc_parameter *parameter, CUdeviceptr value, void *slot, cc_error *error);
/* Typed bits (a NumPy or ctypes scalar: CC_TYPE_INTEGER, _FLOAT, _POINTER) or a struct (CC_TYPE_BYTES); sizes must be equal. */
int cc_pack_bits(const cc_parameter *parameter, cc_type type, const void *bits, size_t size, void *slot,
                 cc_error *error);

/* ---- launching: launch.c ------------------------------------------------------------------------------------------------------------------ */

typedef struct cc_launch_config {
    unsigned grid[3], block[3];
    unsigned cluster[3]; /* zeros: none */
    unsigned shared_bytes;
    bool cooperative;
    bool programmatic_stream_serialization;
} cc_launch_config;

/* Against the device's limits and the kernel's: CC_LIMIT names the limit. Results are remembered, so that a launch pays a
 * compare. grid counts blocks; with a cluster it is already multiplied out by the caller. */
int cc_launch_check(const cc_launch_config *config, cc_kernel *kernel, cc_device *device, cc_error *error);
/* slots: one pointer a parameter, read during the call. cuLaunchKernel, or cuLaunchKernelEx where attributes are set. */
int cc_launch(const cc_launch_config *config, cc_stream *stream, cc_kernel *kernel, void **slots, cc_error *error);
/* The same, and should a failure be laid to this launch, the error says the place too. */
int cc_launch_from(const char *file, int line, const cc_launch_config *config, cc_stream *stream, cc_kernel *kernel,
                   void **slots, cc_error *error);

/* ---- occupancy: occupancy.c ---------------------------------------------------------------------------------------------------------------- */

/* Blocks that fit on a multiprocessor at once. cuOccupancyMaxActiveBlocksPerMultiprocessor */
int cc_occupancy_blocks(cc_kernel *kernel, cc_device *device, int block_size, size_t shared_bytes, int *blocks,
                        cc_error *error);
/* The block size that fills the device best, and the smallest grid that does; limit 0: none. cuOccupancyMaxPotentialBlockSize */
int cc_occupancy_block_size(cc_kernel *kernel, cc_device *device, size_t shared_bytes, int block_size_limit,
                            int *grid_size, int *block_size, cc_error *error);
/* What so many blocks on a multiprocessor leave to each. cuOccupancyAvailableDynamicSMemPerBlock */
int cc_occupancy_shared_bytes(cc_kernel *kernel, cc_device *device, int blocks, int block_size, size_t *shared_bytes,
                              cc_error *error);
/* cuOccupancyMaxPotentialClusterSize, cuOccupancyMaxActiveClusters, on the stream's device */
int cc_occupancy_cluster_size(cc_kernel *kernel, const cc_launch_config *config, cc_stream *stream, int *size,
                              cc_error *error);
int cc_occupancy_clusters(cc_kernel *kernel, const cc_launch_config *config, cc_stream *stream, int *clusters,
                          cc_error *error);

#ifdef __cplusplus
}
#endif
#endif
