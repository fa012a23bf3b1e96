/* The first failure of a context that stays: which launch it came from, for this and every later error. */
#include "launches.h"

#include <stdio.h>
#include <string.h>

static pthread_mutex_t failure_lock = PTHREAD_MUTEX_INITIALIZER;

static void describe(cc_context *context)
{
    char launches[sizeof context->failure - 128];
    const uint64_t count = cc__launches_in_flight(context, launches, sizeof launches);
    const char *format = count == 0   ? "No launch of this library was in flight: other work failed, such as a copy or "
                                        "the kernel of another library.%s"
                         : count == 1 ? "First failed: %s (the only launch in flight)."
                                      : "First failed, of the launches in flight, one of: %s.";
    snprintf(context->failure, sizeof context->failure, format, count ? launches : "");
}

void cc__context_fails(cc_context *context, CUresult code)
{
    if (atomic_load_explicit(&context->failed, memory_order_acquire))
        return;
    cc__lock(&failure_lock);
    if (!atomic_load_explicit(&context->failed, memory_order_relaxed)) {
        describe(context);
        atomic_store_explicit(&context->failed, (int)code, memory_order_release);
    }
    cc__unlock(&failure_lock);
}

/* ---- whose failure a code is ------------------------------------------------------------------------------------ */

/* A code alone does not tell: a call may be about another context than the current one. A context that has failed
 * answers every call with the same code. */
static bool answers_with(CUresult code)
{
    size_t available, total;
    return cc__driver.cuMemGetInfo(&available, &total) == code;
}

typedef struct culprit {
    CUcontext current;
    CUresult code;
    bool look_at_current;
    cc_context *found;
} culprit;

static bool has_failed(cc_context *context, CUresult code)
{
    const int failed = atomic_load_explicit(&context->failed, memory_order_acquire);
    if (failed)
        return failed == (int)code;
    cc__scope scope;
    if (!cc__enter_to_release(&scope, context))
        return false;
    const bool is_it = answers_with(code);
    cc__leave(&scope);
    return is_it;
}

static void look(cc_context *context, void *argument)
{
    culprit *looked = argument;
    if (!looked->found && (context->native == looked->current) == looked->look_at_current &&
        has_failed(context, looked->code))
        looked->found = context;
}

static cc_context *find_culprit(CUresult code)
{
    culprit looked = {.code = code, .look_at_current = true};
    /* Before the driver is open there is no table, and no launch to name. */
    if (!cc_driver_is_open() || cc__driver.cuCtxGetCurrent(&looked.current) != CUDA_SUCCESS)
        looked.current = NULL;
    cc__contexts_each(look, &looked);
    looked.look_at_current = false;
    if (!looked.found)
        cc__contexts_each(look, &looked);
    return looked.found;
}

int cc__explain_failure(cc_error *error, CUresult code)
{
    cc_context *context = find_culprit(code);
    if (!context)
        return -1;
    cc__context_fails(context, code);
    return cc__explain(error, " %s", context->failure);
}
