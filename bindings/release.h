/* Python objects that core holds for its callers (the host side of a copy, the owner of a foreign stream) come back
 * through a function that may run on any thread, with or without a Python thread state, or under another interpreter.
 * They go back at once where that is safe, else into the mailbox of their interpreter, which it empties at its next
 * call. */
#ifndef CUDA_CORE_BINDINGS_RELEASE_H
#define CUDA_CORE_BINDINGS_RELEASE_H

#include "module.h"

mailbox *mailbox_new(void);
void mailbox_close(mailbox *box); /* the interpreter ends: nothing can be given back any more */

/* A record for one object, to be handed to core with `held_release`. A buffer is moved in; an object is increfed. */
typedef struct held held;
held *held_object(module_state *state, PyObject *object);
held *held_view(module_state *state, Py_buffer *view); /* on failure the view stays the caller's */
void held_release(void *record);

/* Frees what waits in the mailbox and what `context` finished with. Cheap when there is nothing. */
void release_finished(module_state *state, cc_context *context);

#endif
