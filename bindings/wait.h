/* Waiting for the device with the GIL released and signals heard. */
#ifndef CUDA_CORE_BINDINGS_WAIT_H
#define CUDA_CORE_BINDINGS_WAIT_H

#include "module.h"

typedef struct waiting {
    PyThreadState *thread;
    cc_watch watch;
} waiting;

/* Between the two the GIL is released. What wait_begin gives goes to one of core's cc_X_wait, whose 1 then means that a
 * signal handler raised: the exception is set. The struct must stay where it is. */
const cc_watch *wait_begin(waiting *self);
void wait_end(waiting *self);

#endif
