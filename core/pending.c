/* Objects of the caller's that queued work still uses, each with an event recorded behind that work. */
#include "internal.h"

#include <stdlib.h>

static CUresult mark(CUstream stream, CUevent *event)
{
    CUresult code = cc__driver.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS)
        return code;
    code = cc__driver.cuEventRecord(*event, stream);
    if (code != CUDA_SUCCESS)
        (void)cc__driver.cuEventDestroy(*event);
    return code;
}

void cc__context_keep(cc_context *context, CUstream stream, cc_release_function release, void *object)
{
    cc__pending *pending = malloc(sizeof *pending);
    if (!pending || mark(stream, &pending->event) != CUDA_SUCCESS) {
        free(pending);
        (void)cc__driver.cuStreamSynchronize(stream);
        release(object);
        return;
    }
    pending->release = release;
    pending->object = object;
    cc__lock(&context->lock);
    pending->next = atomic_load_explicit(&context->pending, memory_order_relaxed);
    atomic_store_explicit(&context->pending, pending, memory_order_release);
    cc__unlock(&context->lock);
}

bool cc_context_has_pending(const cc_context *context)
{
    return atomic_load_explicit(&context->pending, memory_order_relaxed) != NULL;
}

/* In a context that is lost or gone nothing runs any more. Any other failure says nothing of the work, which may be on
 * its way through the object's memory: it is asked of again later. */
static bool is_finished(CUevent event)
{
    const CUresult code = cc__driver.cuEventQuery(event);
    return code == CUDA_SUCCESS || cc__is_lost(code) || cc__is_gone(code);
}

/* Takes what is finished, or all, out of the list. */
static cc__pending *take(cc_context *context, bool all)
{
    cc__pending *taken = NULL, *kept = NULL, *next;
    cc__lock(&context->lock);
    for (cc__pending *pending = atomic_load(&context->pending); pending; pending = next) {
        next = pending->next;
        bool finished = all || is_finished(pending->event);
        cc__pending **list = finished ? &taken : &kept;
        pending->next = *list;
        *list = pending;
    }
    atomic_store_explicit(&context->pending, kept, memory_order_release);
    cc__unlock(&context->lock);
    return taken;
}

void cc_context_collect(cc_context *context, bool wait_for_all)
{
    cc__scope scope;
    if (!cc_context_has_pending(context))
        return;
    const bool is_there = cc__enter_to_release(&scope, context);
    cc__pending *taken = take(context, wait_for_all || !is_there), *next;
    for (cc__pending *pending = taken; pending && is_there; pending = pending->next) {
        if (wait_for_all && cc__driver.cuEventSynchronize(pending->event) != CUDA_SUCCESS)
            (void)cc__driver.cuCtxSynchronize();
        (void)cc__driver.cuEventDestroy(pending->event);
    }
    if (is_there)
        cc__leave(&scope);
    /* Last, with no lock held and the thread's own context current: release may run anything. */
    for (cc__pending *pending = taken; pending; pending = next) {
        next = pending->next;
        pending->release(pending->object);
        free(pending);
    }
}
