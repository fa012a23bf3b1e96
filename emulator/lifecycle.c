/* cuInit, the threads that call, fork and the end of the process. */
#include <stdlib.h>

#include "api.h"
#include "cuda_core_emulator.h"

_Thread_local em_thread em_self __attribute__((tls_model("initial-exec")));
_Atomic int em_state = CUDA_ERROR_NOT_INITIALIZED;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;
static _Atomic bool forked; /* a child of fork: the parent's threads are missing here, so nothing can work */
static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;

static void thread_ends(void *unused)
{
    (void)unused;
    while (em_self.streams != NULL) {
        em_thread_stream *first = em_self.streams;
        em_self.streams = first->next;
        if (first->context->epoch == first->context_epoch && em_state == CUDA_SUCCESS && !forked)
            em_stream_close(first->stream);
        em_stream_release(first->stream);
        free(first);
    }
    free(em_self.stack);
    em_self.stack = NULL;
    em_self.depth = em_self.capacity = 0;
    em_self.current = NULL;
    free(em_self.detail);
    em_self.detail = NULL;
    em_self.detail_fresh = false;
    em_self.registered = false;
}

static void make_thread_key(void)
{
    pthread_key_create(&thread_key, thread_ends);
}

void em_thread_register(void)
{
    if (em_self.registered)
        return;
    pthread_once(&thread_key_once, make_thread_key);
    pthread_setspecific(thread_key, &em_self);
    em_self.registered = true;
}

static void after_fork_in_child(void)
{
    forked = true;
    em_state = CUDA_ERROR_NOT_INITIALIZED;
}

int em_initialize(void)
{
    if (forked)
        return em_explain(CUDA_ERROR_NOT_INITIALIZED,
                          "the parent of this process initialised CUDA before fork(): use the 'spawn' or 'forkserver' "
                          "start method, or initialise CUDA only in the child");
    if (atomic_load_explicit(&em_state, memory_order_acquire) == CUDA_ERROR_DEINITIALIZED)
        return CUDA_ERROR_DEINITIALIZED;
    pthread_mutex_lock(&start_lock);
    int status = CUDA_SUCCESS;
    if (!started) {
        status = em_fault_environment();
        if (status == CUDA_SUCCESS)
            status = em_devices_configure();
        if (status == CUDA_SUCCESS) {
            pthread_atfork(NULL, NULL, after_fork_in_child);
            started = true;
            atomic_store_explicit(&em_state, CUDA_SUCCESS, memory_order_release);
        }
    }
    pthread_mutex_unlock(&start_lock);
    return status;
}

/* Work in flight is abandoned, as when a process with a GPU exits, but nothing is torn down below a running thread. */
__attribute__((destructor)) static void process_ends(void)
{
    if (forked || !started)
        return;
    em_state = CUDA_ERROR_DEINITIALIZED;
    if (em_streams_stop())
        em_workers_stop();
}

EM_ENTRY(cuInit, "%u", (flags), unsigned int flags)
{
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return em_initialize();
}

EM_ENTRY(cuDriverGetVersion, "%p", ((void *)version), int *version)
{
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}
