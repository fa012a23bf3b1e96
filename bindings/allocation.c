#include "buffer.h"

#include "errors.h"

/* Memory that a Python MemoryResource gave to Buffer.from_handle(mr=...). Buffers, their slices and what they export share it;
 * when the last of them is gone, resource.deallocate(pointer, size, stream=stream) is called, once. */
typedef struct allocation_object {
    PyObject_HEAD
    PyObject *resource; /* NULL once deallocated */
    PyObject *stream;
    CUdeviceptr pointer;
    size_t size;
} allocation_object;

#define allocation_cast(object) ((allocation_object *)(object))

/* ---- for other files --------------------------------------------------------------------------------------------------------- */

PyObject *allocation_new(module_state *state, PyObject *resource, CUdeviceptr pointer, size_t size)
{
    allocation_object *self = PyObject_GC_New(allocation_object, state->allocation_type);
    if (self == NULL)
        return NULL;
    self->resource = Py_NewRef(resource);
    self->stream = Py_NewRef(state->legacy_default_stream);
    self->pointer = pointer;
    self->size = size;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

void allocation_set_stream(PyObject *allocation, PyObject *stream)
{
    PyObject *old;
    Py_BEGIN_CRITICAL_SECTION(allocation);
    old = allocation_cast(allocation)->stream;
    allocation_cast(allocation)->stream = Py_NewRef(stream);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(old);
}

/* ---- finalize, dealloc ----------------------------------------------------------------------------------------------------------- */

/* Late in the life of an interpreter the module's state may be gone, so nothing of it is used here. */
static PyObject *call_deallocate(allocation_object *self, PyObject *resource)
{
    PyObject *method = PyObject_GetAttrString(resource, "deallocate");
    PyObject *args = Py_BuildValue("(KK)", (unsigned long long)self->pointer, (unsigned long long)self->size);
    PyObject *keywords = Py_BuildValue("{sO}", "stream", self->stream);
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
    Py_VISIT(allocation_cast(op)->stream);
    return 0;
}

static int allocation_clear(PyObject *op)
{
    Py_CLEAR(allocation_cast(op)->resource);
    Py_CLEAR(allocation_cast(op)->stream);
    return 0;
}

static void allocation_dealloc(PyObject *op)
{
    if (PyObject_CallFinalizerFromDealloc(op) < 0)
        return;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    allocation_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- spec ------------------------------------------------------------------------------------------------------------------------ */

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
