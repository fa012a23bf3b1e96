#include "release.h"

#include <stdatomic.h>
#include <stdlib.h>

struct mailbox {
    int64_t interpreter;      /* its number: the address of one that ended may be another's by now */
    atomic_size_t references; /* of the module state and of each record */
    _Atomic(held *) first;    /* or closed_box, for good: one word, so that no record slips in behind the last look */
};

struct held {
    mailbox *box;
    held *next;
    PyObject *object; /* NULL where it is a view */
    Py_buffer view;
};

static held closed_box;

/* ---- the mailbox ------------------------------------------------------------------------------------------------ */

mailbox *mailbox_new(void)
{
    mailbox *box = calloc(1, sizeof *box);
    if (box == NULL)
        return NULL;
    box->interpreter = PyInterpreterState_GetID(PyInterpreterState_Get());
    atomic_init(&box->references, 1);
    return box;
}

static void mailbox_drop(mailbox *box)
{
    if (atomic_fetch_sub(&box->references, 1) == 1)
        free(box);
}

/* Called under the interpreter that the record belongs to. */
static void give_back(held *record)
{
    if (record->object != NULL)
        Py_DECREF(record->object);
    else
        PyBuffer_Release(&record->view);
    mailbox_drop(record->box);
    free(record);
}

/* Gives back what is there; `left` is what is there afterwards. */
static void mailbox_empty(mailbox *box, held *left)
{
    held *record = atomic_exchange(&box->first, left);
    while (record != NULL) {
        held *next = record->next;
        give_back(record);
        record = next;
    }
}

void mailbox_close(mailbox *box)
{
    mailbox_empty(box, &closed_box);
    mailbox_drop(box);
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

static held *held_new(module_state *state)
{
    held *record = calloc(1, sizeof *record);
    if (record == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    record->box = state->mailbox;
    atomic_fetch_add(&record->box->references, 1);
    return record;
}

held *held_object(module_state *state, PyObject *object)
{
    held *record = held_new(state);
    if (record != NULL)
        record->object = Py_NewRef(object);
    return record;
}

/* The struct may be moved: only its exporter looks at it again, through the pointers in it. */
held *held_view(module_state *state, Py_buffer *view)
{
    held *record = held_new(state);
    if (record != NULL)
        record->view = *view;
    return record;
}

static PyThreadState *current_thread_state(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

void held_release(void *object)
{
    held *record = object;
    mailbox *box = record->box;
    PyThreadState *thread = current_thread_state();
    held *first = atomic_load(&box->first);
    if (first != &closed_box && thread != NULL &&
        PyInterpreterState_GetID(PyThreadState_GetInterpreter(thread)) == box->interpreter) {
        give_back(record);
        return;
    }
    do {
        if (first == &closed_box) { /* its interpreter is gone, and with it the object's memory */
            mailbox_drop(box);
            free(record);
            return;
        }
        record->next = first;
    } while (!atomic_compare_exchange_weak(&box->first, &first, record));
}

void release_finished(module_state *state, cc_context *context)
{
    if (context != NULL && cc_context_has_pending(context))
        cc_context_collect(context, false);
    if (atomic_load_explicit(&state->mailbox->first, memory_order_relaxed) != NULL)
        mailbox_empty(state->mailbox, NULL);
}
