#include "buffer.h"

#include "errors.h"
#include "stream.h"

/* Memory that a Python MemoryResource gave to Buffer.from_handle(mr=...). Buffers, their slices and what they export
 * share it; when the last of them is gone, resource.deallocate(pointer, size, stream=stream) is called, once. */
typedef struct allocation_object {
    PyObject_HEAD
    PyObject *resource;       /* NULL once deallocated */
    PyObject *chosen_stream;  /* given to close() or set_deallocation_stream(); or NULL */
    PyObject *default_stream; /* for memory that was never used */
    cc_buffer *core;          /* shared with the Buffers; knows the stream of the last use */
} allocation_object;

#define allocation_cast(object) ((allocation_object *)(object))

/* ---- for other files -------------------------------------------------------------------------------------------- */

PyObject *allocation_new(module_state *state, PyObject *resource, cc_buffer *core)
{
    allocation_object *self = PyObject_GC_New(allocation_object, state->allocation_type);
    if (self == NULL)
        return NULL;
    self->resource = Py_NewRef(resource);
    self->chosen_stream = NULL;
    self->default_stream = Py_NewRef(state->legacy_default_stream);
    self->core = cc_buffer_retain(core);
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

void allocation_set_stream(PyObject *allocation, PyObject *stream)
{
    PyObject *old;
    Py_BEGIN_CRITICAL_SECTION(allocation);
    old = allocation_cast(allocation)->chosen_stream;
    allocation_cast(allocation)->chosen_stream = Py_NewRef(stream);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(old);
}

/* ---- finalize, dealloc ------------------------------------------------------------------------------------------ */

/* The stream for deallocate(): the chosen one, else that of the last use. New reference. Late in the life of an
 * interpreter the module's state may be gone: the default stream, then. */
static PyObject *stream_for_deallocate(allocation_object *self)
{
    if (self->chosen_stream != NULL)
        return Py_NewRef(self->chosen_stream);
    cc_stream *last = cc_buffer_last_stream(self->core);
    if (last == NULL)
        return Py_NewRef(self->default_stream);
    module_state *state = state_of((PyObject *)self);
    if (state != NULL)
        return stream_from_core(state, last);
    cc_stream_release(last);
    PyErr_Clear();
    return Py_NewRef(self->default_stream);
}

static PyObject *call_deallocate(allocation_object *self, PyObject *resource)
{
    const cc_buffer_info *memory = cc_buffer_read(self->core);
    PyObject *method = PyObject_GetAttrString(resource, "deallocate");
    PyObject *args = Py_BuildValue("(KK)", (unsigned long long)memory->pointer, (unsigned long long)memory->size);
    PyObject *keywords = Py_BuildValue("{sN}", "stream", stream_for_deallocate(self));
    PyObject *result = NULL;
    if (method != NULL && args != NULL && keywords != NULL)
        result = PyObject_Call(method, args, keywords);
    Py_XDECREF(method);
    Py_XDECREF(args);
    Py_XDECREF(keywords);
    return result;
}

static void allocation_finalize(PyObject *op)
{
    allocation_object *self = allocation_cast(op);
    PyObject *resource = self->resource;
    self->resource = NULL;
    if (resource == NULL)
        return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *result = call_deallocate(self, resource);
    if (result == NULL)
        report_unraisable(resource);
    Py_XDECREF(result);
    Py_DECREF(resource);
    PyErr_Restore(type, value, traceback);
}

static int allocation_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(allocation_cast(op)->resource);
    Py_VISIT(allocation_cast(op)->chosen_stream);
    Py_VISIT(allocation_cast(op)->default_stream);
    return 0;
}

static int allocation_clear(PyObject *op)
{
    Py_CLEAR(allocation_cast(op)->resource);
    Py_CLEAR(allocation_cast(op)->chosen_stream);
    Py_CLEAR(allocation_cast(op)->default_stream);
    return 0;
}

static void allocation_dealloc(PyObject *op)
{
    if (PyObject_CallFinalizerFromDealloc(op) < 0)
        return;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    allocation_clear(op);
    cc_buffer_release(allocation_cast(op)->core);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- spec ------------------------------------------------------------------------------------------------------- */

static PyType_Slot allocation_slots[] = {
    {Py_tp_doc, (void *)"Memory that a MemoryResource written in Python gave out. Internal."},
    {Py_tp_dealloc, allocation_dealloc},
    {Py_tp_finalize, allocation_finalize},
    {Py_tp_traverse, allocation_traverse},
    {Py_tp_clear, allocation_clear},
    {0, NULL},
};

PyType_Spec allocation_spec = {
    .name = "cuda_core._Allocation",
    .basicsize = sizeof(allocation_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = allocation_slots,
};
