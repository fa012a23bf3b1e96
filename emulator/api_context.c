/* Entry points: contexts, which one is current on a thread, and their limits. */
#include <stdlib.h>

#include "api.h"

static CUcontext as_handle(em_context *context)
{
    return (CUcontext)(void *)context;
}

/* A live context of any kind, whether poisoned or not. */
static int find_context(CUcontext handle, em_context **context)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (handle == NULL)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "the context is a null pointer");
    *context = em_object_get(EM_KIND_CONTEXT, handle);
    if (*context == NULL)
        return em_explain(CUDA_ERROR_INVALID_CONTEXT, "%p is no context, or one that was destroyed", (void *)handle);
    return CUDA_SUCCESS;
}

/* The current context, whether poisoned, destroyed or not. */
static int current_context(em_context **context)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (em_self.current == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = em_self.current;
    return CUDA_SUCCESS;
}

/* ---- the thread's stack ------------------------------------------------------------------------------------------ */

static int push(em_context *context)
{
    if (em_self.current != NULL) {
        if (em_self.depth == em_self.capacity) {
            em_thread_register();
            size_t capacity = em_self.capacity == 0 ? 8 : em_self.capacity * 2;
            em_context **grown = realloc(em_self.stack, capacity * sizeof(em_context *));
            if (grown == NULL)
                return CUDA_ERROR_OUT_OF_MEMORY;
            em_self.stack = grown;
            em_self.capacity = capacity;
        }
        em_self.stack[em_self.depth++] = em_self.current;
    }
    em_self.current = context;
    return CUDA_SUCCESS;
}

static void pop(void)
{
    em_self.current = em_self.depth != 0 ? em_self.stack[--em_self.depth] : NULL;
}

static int push_handle(CUcontext handle)
{
    em_context *context;
    int status = find_context(handle, &context);
    return status == CUDA_SUCCESS ? push(context) : status;
}

static int pop_handle(CUcontext *context)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (em_self.current == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context != NULL)
        *context = as_handle(em_self.current);
    pop();
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxPushCurrent, "%p", (context), CUcontext context)
{
    return push_handle(context);
}

EM_ENTRY(cuCtxPushCurrent_v2, "%p", (context), CUcontext context)
{
    return push_handle(context);
}

EM_ENTRY(cuCtxPopCurrent, "%p", (context), CUcontext *context)
{
    return pop_handle(context);
}

EM_ENTRY(cuCtxPopCurrent_v2, "%p", (context), CUcontext *context)
{
    return pop_handle(context);
}

EM_ENTRY(cuCtxSetCurrent, "%p", (handle), CUcontext handle)
{
    em_context *context = NULL;
    if (handle == NULL) {
        int status = em_enter_any();
        if (status == CUDA_SUCCESS && em_self.current != NULL)
            pop();
        return status;
    }
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    for (int i = 0; i < em_device_count; i++) /* a primary context may be made current before it is alive again */
        if (as_handle(em_devices[i].primary) == handle)
            context = em_devices[i].primary;
    if (context == NULL)
        status = find_context(handle, &context);
    if (status == CUDA_SUCCESS)
        em_self.current = context;
    return status;
}

EM_ENTRY(cuCtxGetCurrent, "%p", (context), CUcontext *context)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *context = as_handle(em_self.current);
    return CUDA_SUCCESS;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static int create(CUcontext *handle, unsigned int flags, CUdevice ordinal)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    em_device *device = em_device_get(ordinal);
    if (device == NULL)
        return CUDA_ERROR_INVALID_DEVICE;
    if (handle == NULL || (flags & ~(unsigned int)CU_CTX_FLAGS_MASK) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    em_context *context = em_context_new(device, flags, false);
    if (context == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    status = push(context);
    if (status != CUDA_SUCCESS) {
        em_object_close(&context->object);
        em_context_destroy(context);
        return status;
    }
    *handle = as_handle(context);
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxCreate, "%p, %#x, %d", (context, flags, device), CUcontext *context, unsigned int flags, CUdevice device)
{
    return create(context, flags, device);
}

EM_ENTRY(cuCtxCreate_v2, "%p, %#x, %d", (context, flags, device), CUcontext *context, unsigned int flags,
         CUdevice device)
{
    return create(context, flags, device);
}

EM_ENTRY(cuCtxCreate_v3, "%p, %p, %d, %#x, %d", (context, affinity, count, flags, device), CUcontext *context,
         CUexecAffinityParam *affinity, int count, unsigned int flags, CUdevice device)
{
    if (count != 0)
        return em_explain(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "the emulated device has no execution affinity");
    return create(context, flags, device);
}

EM_ENTRY(cuCtxCreate_v4, "%p, %p, %#x, %d", (context, parameters, flags, device), CUcontext *context,
         CUctxCreateParams *parameters, unsigned int flags, CUdevice device)
{
    if (parameters != NULL && parameters->numExecAffinityParams != 0)
        return em_explain(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "the emulated device has no execution affinity");
    if (parameters != NULL && parameters->cigParams != NULL)
        return em_explain(CUDA_ERROR_NOT_SUPPORTED, "the emulated device has no graphics to share a context with");
    return create(context, flags, device);
}

static int destroy(CUcontext handle)
{
    em_context *context;
    int status = find_context(handle, &context);
    if (status != CUDA_SUCCESS)
        return status;
    if (context->primary)
        return em_explain(CUDA_ERROR_INVALID_CONTEXT, "a primary context is released (cuDevicePrimaryCtxRelease), not "
                                                      "destroyed");
    if (!em_object_close(&context->object))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (em_self.current == context)
        pop();
    em_context_destroy(context);
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxDestroy, "%p", (context), CUcontext context)
{
    return destroy(context);
}

EM_ENTRY(cuCtxDestroy_v2, "%p", (context), CUcontext context)
{
    return destroy(context);
}

/* ---- what is known of a context ---------------------------------------------------------------------------------- */

EM_ENTRY(cuCtxGetDevice, "%p", (device), CUdevice *device)
{
    em_context *context;
    int status = current_context(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device->limits.ordinal;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxGetDevice_v2, "%p, %p", (device, handle), CUdevice *device, CUcontext handle)
{
    em_context *context;
    int status = handle != NULL ? find_context(handle, &context) : current_context(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device->limits.ordinal;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxGetFlags, "%p", (flags), unsigned int *flags)
{
    em_context *context;
    int status = current_context(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxSetFlags, "%#x", (flags), unsigned int flags)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if ((flags & ~(unsigned int)CU_CTX_FLAGS_MASK) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    context->flags = flags | CU_CTX_MAP_HOST;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxGetId, "%p, %p", (handle, id), CUcontext handle, unsigned long long *id)
{
    em_context *context;
    int status = handle != NULL ? find_context(handle, &context) : em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxGetApiVersion, "%p, %p", (handle, version), CUcontext handle, unsigned int *version)
{
    em_context *context;
    int status = handle != NULL ? find_context(handle, &context) : current_context(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxGetStreamPriorityRange, "%p, %p", (least, greatest), int *least, int *greatest)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (least != NULL)
        *least = EM_LEAST_PRIORITY;
    if (greatest != NULL)
        *greatest = EM_GREATEST_PRIORITY;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxGetExecAffinity, "%p, %d", (affinity, type), CUexecAffinityParam *affinity, CUexecAffinityType type)
{
    em_context *context;
    int status = em_enter(&context);
    return status != CUDA_SUCCESS ? status : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static int synchronize_current(void)
{
    em_context *context;
    int status = em_enter(&context);
    return status == CUDA_SUCCESS ? em_context_synchronize(context) : status;
}

/* EM_ENTRY wants a parameter list; this call has none. */
CUresult CUDAAPI cuCtxSynchronize(void)
{
    EM_CALL(cuCtxSynchronize, synchronize_current(), "%s", (""));
}

EM_ENTRY(cuCtxSynchronize_v2, "%p", (handle), CUcontext handle)
{
    em_context *context;
    if (handle == NULL)
        return synchronize_current();
    int status = find_context(handle, &context);
    return status == CUDA_SUCCESS ? em_context_synchronize(context) : status;
}

/* ---- limits and configuration ------------------------------------------------------------------------------------ */

static bool limit_exists(CUlimit limit)
{
    return limit == CU_LIMIT_STACK_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE ||
           limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY || limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

static int check_limit(CUlimit limit, em_context **context)
{
    int status = em_enter(context);
    if (status != CUDA_SUCCESS)
        return status;
    if ((int)limit < 0 || limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    return limit_exists(limit) ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

EM_ENTRY(cuCtxSetLimit, "%d, %zu", (limit, value), CUlimit limit, size_t value)
{
    em_context *context;
    int status = check_limit(limit, &context);
    if (status != CUDA_SUCCESS)
        return status;
    if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_STACK_SIZE && value > 512 << 10)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "a stack of %zu bytes: 512 KiB a thread are the most", value);
    if (limit == CU_LIMIT_STACK_SIZE)
        value = (value + 15) & ~(size_t)15;
    if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE) /* there is no such cache: the nearest value is none */
        value = 0;
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxGetLimit, "%p, %d", (value, limit), size_t *value, CUlimit limit)
{
    em_context *context;
    int status = check_limit(limit, &context);
    if (status != CUDA_SUCCESS)
        return status;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *value = context->limits[limit];
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxGetCacheConfig, "%p", (config), CUfunc_cache *config)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *config = (CUfunc_cache)context->cache_config;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxSetCacheConfig, "%d", (config), CUfunc_cache config)
{
    em_context *context;
    int status = em_enter(&context);
    if (status != CUDA_SUCCESS)
        return status;
    if ((int)config < 0 || config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    context->cache_config = (int)config;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxResetPersistingL2Cache(void)
{
    em_context *context;
    EM_CALL(cuCtxResetPersistingL2Cache, em_enter(&context), "%s", (""));
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

EM_ENTRY(cuCtxEnablePeerAccess, "%p, %u", (handle, flags), CUcontext handle, unsigned int flags)
{
    em_context *context, *peer;
    int status = em_enter(&context);
    if (status == CUDA_SUCCESS)
        status = find_context(handle, &peer);
    if (status != CUDA_SUCCESS)
        return status;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (peer->device == context->device)
        return em_explain(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "both contexts are of device %d",
                          peer->device->limits.ordinal);
    uint64_t bit = UINT64_C(1) << peer->device->limits.ordinal;
    if (atomic_fetch_or(&context->peers, bit) & bit)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    atomic_fetch_or(&peer->device->peers, UINT64_C(1) << context->device->limits.ordinal);
    return CUDA_SUCCESS;
}

EM_ENTRY(cuCtxDisablePeerAccess, "%p", (handle), CUcontext handle)
{
    em_context *context, *peer;
    int status = em_enter(&context);
    if (status == CUDA_SUCCESS)
        status = find_context(handle, &peer);
    if (status != CUDA_SUCCESS)
        return status;
    uint64_t bit = UINT64_C(1) << peer->device->limits.ordinal;
    if (!(atomic_fetch_and(&context->peers, ~bit) & bit))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    atomic_fetch_and(&peer->device->peers, ~(UINT64_C(1) << context->device->limits.ordinal));
    return CUDA_SUCCESS;
}

/* ---- events of a whole context ----------------------------------------------------------------------------------- */

static int find_pair(CUcontext handle, CUevent event_handle, em_context **context, em_event **event)
{
    int status = find_context(handle, context);
    if (status == CUDA_SUCCESS)
        status = atomic_load_explicit(&(*context)->sticky, memory_order_acquire);
    if (status != CUDA_SUCCESS)
        return status;
    *event = em_object_get(EM_KIND_EVENT, event_handle);
    return *event != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EM_ENTRY(cuCtxRecordEvent, "%p, %p", (handle, event_handle), CUcontext handle, CUevent event_handle)
{
    em_context *context;
    em_event *event;
    int status = find_pair(handle, event_handle, &context, &event);
    if (status != CUDA_SUCCESS)
        return status;
    return event->context == context ? em_event_record_context(event, context) : CUDA_ERROR_INVALID_HANDLE;
}

EM_ENTRY(cuCtxWaitEvent, "%p, %p", (handle, event_handle), CUcontext handle, CUevent event_handle)
{
    em_context *context;
    em_event *event;
    int status = find_pair(handle, event_handle, &context, &event);
    if (status != CUDA_SUCCESS)
        return status;
    em_record *latest = em_event_latest(event);
    return latest != NULL ? em_context_wait_record(context, latest) : CUDA_SUCCESS;
}
