#include "wait.h"

#include <sys/syscall.h>
#include <unistd.h>

/* Python runs signal handlers in its main thread only, which is the process's first one unless a program embeds Python
 * in another; there, and in every other thread, the driver waits, which costs least. */
static bool hears_signals(void)
{
    return syscall(SYS_gettid) == getpid();
}

static bool handler_raised(void *user)
{
    waiting *self = user;
    PyEval_RestoreThread(self->thread);
    const int status = PyErr_CheckSignals();
    self->thread = PyEval_SaveThread();
    return status < 0;
}

const cc_watch *wait_begin(waiting *self)
{
    self->watch.interrupted = handler_raised;
    self->watch.user = self;
    self->thread = PyEval_SaveThread();
    return hears_signals() ? &self->watch : NULL;
}

void wait_end(waiting *self)
{
    PyEval_RestoreThread(self->thread);
}
