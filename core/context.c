/* Contexts: the primary ones, which are ours to use, and foreign ones, which we only meet. */
#include "internal.h"

#include <stdlib.h>

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(cc_context *) registry; /* foreign contexts, each kept once met: streams and callers borrow them */

int cc__enter_other(cc__scope *scope, CUcontext native, cc_error *error)
{
    if (CC__CALL(error, cuCtxGetCurrent, &scope->previous) || CC__CALL(error, cuCtxSetCurrent, native))
        return -1;
    scope->switched = true;
    return 0;
}

static CUresult set_current(CUcontext native)
{
    const CUresult code = cc__driver.cuCtxSetCurrent(native);
    return code == CUDA_SUCCESS ? code : cc__driver.cuCtxSetCurrent(native);
}

/* A thread whose own context cannot be had again is better off with none, which every call tells, than with another's.
 */
void cc__leave_other(const cc__scope *scope)
{
    if (set_current(scope->previous) != CUDA_SUCCESS)
        (void)cc__driver.cuCtxSetCurrent(NULL);
}

bool cc__enter_to_release(cc__scope *scope, const cc_context *context)
{
    scope->switched = false;
    CUresult code = cc__driver.cuCtxGetCurrent(&scope->previous);
    if (code != CUDA_SUCCESS)
        code = cc__driver.cuCtxGetCurrent(&scope->previous);
    if (code == CUDA_SUCCESS && scope->previous != context->native) {
        code = set_current(context->native);
        scope->switched = code == CUDA_SUCCESS;
    }
    return !cc__is_gone(code);
}

static unsigned long long id_of(CUcontext native)
{
    unsigned long long id = 0;
    if (!cc__driver.cuCtxGetId || cc__driver.cuCtxGetId(native, &id) != CUDA_SUCCESS)
        id = 0;
    return id;
}

cc_context *cc__context_new(CUcontext native, cc_device *device)
{
    cc_context *context = calloc(1, sizeof *context);
    if (!context || !(context->spare_lane = cc__lane_new(NULL, true))) {
        free(context);
        return NULL;
    }
    context->device = device;
    pthread_mutex_init(&context->lock, NULL);
    if (native)
        cc__context_bind(context, native);
    return context;
}

void cc__context_discard(cc_context *context)
{
    pthread_mutex_destroy(&context->lock);
    free(context->spare_lane);
    free(context);
}

void cc__context_bind(cc_context *context, CUcontext native)
{
    context->native = native;
    context->id = id_of(native);
}

/* A primary context that somebody else retained (another library set it current) is found as ours. */
static int find_primary(CUcontext native, cc_device *device, cc_context **context, cc_error *error)
{
    unsigned flags;
    int active;
    *context = NULL;
    if (CC__CALL(error, cuDevicePrimaryCtxGetState, device->native, &flags, &active))
        return -1;
    if (!active)
        return 0;
    if (cc_device_primary_context(device, context, error))
        return -1;
    if ((*context)->native != native)
        *context = NULL;
    return 0;
}

static cc_device *device_of(CUcontext native, cc_error *error)
{
    cc__scope scope;
    CUdevice number;
    cc_device *device = NULL;
    if (cc__enter_other(&scope, native, error))
        return NULL;
    if (CC__CALL(error, cuCtxGetDevice, &number) == 0 && cc__device_of_native(number, &device, error))
        device = NULL;
    cc__leave_other(&scope);
    return device;
}

static cc_context *find_registered(CUcontext native)
{
    cc_context *found = atomic_load_explicit(&registry, memory_order_relaxed);
    while (found && !(found->native == native && found->id == id_of(native)))
        found = found->next;
    return found;
}

static int find_foreign(CUcontext native, cc_device *device, cc_context **context, cc_error *error)
{
    cc__lock(&registry_lock);
    *context = find_registered(native);
    if (!*context && (*context = cc__context_new(native, device)) != NULL) {
        (*context)->next = atomic_load_explicit(&registry, memory_order_relaxed);
        atomic_store_explicit(&registry, *context, memory_order_release);
    }
    cc__unlock(&registry_lock);
    return *context ? 0 : cc__fail_memory(error);
}

void cc__contexts_each(void (*visit)(cc_context *context, void *argument), void *argument)
{
    const cc__device_table *table = cc__devices_made();
    for (int i = 0; table && i < table->count; i++) {
        cc_context *primary = atomic_load_explicit(&table->devices[i].primary, memory_order_acquire);
        if (primary)
            visit(primary, argument);
    }
    for (cc_context *each = atomic_load_explicit(&registry, memory_order_acquire); each; each = each->next)
        visit(each, argument);
}

int cc__context_find(CUcontext native, cc_context **context, cc_error *error)
{
    const cc__device_table *table;
    if (cc__devices(&table, error))
        return -1;
    for (int i = 0; i < table->count; i++) {
        *context = atomic_load_explicit(&table->devices[i].primary, memory_order_acquire);
        if (*context && (*context)->native == native)
            return 0;
    }
    cc_device *device = device_of(native, error);
    if (!device || find_primary(native, device, context, error))
        return -1;
    return *context ? 0 : find_foreign(native, device, context, error);
}

int cc_context_from_native(CUcontext native, cc_context **context, cc_error *error)
{
    if (!native)
        return cc__fail(error, CC_INVALID, "NULL is no context");
    if (cc__need_driver(error) || cc__context_find(native, context, error))
        return -1;
    return 0;
}

/* Primary contexts are kept by their device and foreign ones by the registry, for the life of the process: there is
 * nothing to count. */
cc_context *cc_context_retain(cc_context *context)
{
    return context;
}

void cc_context_release(cc_context *context)
{
    (void)context;
}

CUcontext cc_context_native(const cc_context *context)
{
    return context->native;
}

cc_device *cc_context_device(const cc_context *context)
{
    return context->device;
}

int cc_context_get_current(CUcontext *native, cc_error *error)
{
    if (cc__need_driver(error))
        return -1;
    return CC__CALL(error, cuCtxGetCurrent, native);
}

int cc_context_set_current(CUcontext native, cc_error *error)
{
    if (cc__need_driver(error))
        return -1;
    return CC__CALL(error, cuCtxSetCurrent, native);
}
