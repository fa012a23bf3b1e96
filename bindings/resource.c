#include "resource.h"

#include "buffer.h"
#include "errors.h"
#include "parse.h"
#include "stream.h"
#include "wait.h"

#define memory_resource_cast(object) ((memory_resource_object *)(object))

/* ---- for other files -------------------------------------------------------------------------------------------- */

PyObject *resource_allocate(module_state *state, PyObject *resource, PyObject *size, PyObject *stream)
{
    if (Py_IS_TYPE(resource, state->device_memory_resource_type) ||
        Py_IS_TYPE(resource, state->pinned_memory_resource_type))
        return pool_resource_allocate_from(state, resource, size, stream);
    PyObject *args[] = {resource, size, stream};
    PyObject *buffer =
        PyObject_VectorcallMethod(state->str_allocate, args, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, state->stream_keyword);
    if (buffer == NULL)
        return NULL;
    if (buffer_check(state, buffer)) {
        buffer_allocated_on(state, buffer, stream);
        return buffer;
    }
    PyErr_Format(PyExc_TypeError, "%.100s.allocate() must return a Buffer, not %.100s", Py_TYPE(resource)->tp_name,
                 Py_TYPE(buffer)->tp_name);
    Py_DECREF(buffer);
    return NULL;
}

int resource_check_stream(module_state *state, PyObject *stream)
{
    cc_stream *core;
    if (stream == NULL || stream == Py_None)
        return 0;
    if (stream_from_object(state, stream, &core) < 0)
        return -1;
    cc_stream_release(core);
    return 0;
}

int resource_wait_for(module_state *state, PyObject *stream)
{
    cc_stream *core;
    if (stream == NULL || stream == Py_None)
        return 0;
    if (stream_from_object(state, stream, &core) < 0)
        return -1;
    cc_error error;
    waiting waiter;
    const int status = cc_stream_wait(core, wait_begin(&waiter), &error);
    wait_end(&waiter);
    cc_stream_release(core);
    if (status < 0)
        raise_error(state, &error);
    return status == 0 ? 0 : -1;
}

PyObject *resource_get_true(PyObject *op, void *unused)
{
    (void)op, (void)unused;
    Py_RETURN_TRUE;
}

PyObject *resource_get_false(PyObject *op, void *unused)
{
    (void)op, (void)unused;
    Py_RETURN_FALSE;
}

/* ---- dealloc ---------------------------------------------------------------------------------------------------- */

static void memory_resource_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    if (memory_resource_cast(op)->weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- methods: what a subclass defines --------------------------------------------------------------------------- */

static PyObject *refuse_abstract(PyObject *op, const char *name)
{
    PyErr_Format(PyExc_NotImplementedError, "%.100s must define %s", Py_TYPE(op)->tp_name, name);
    return NULL;
}

PyDoc_STRVAR(allocate_doc, "allocate($self, /, size, *, stream)\n--\n\n"
                           "A Buffer of `size` bytes in the order of `stream`; a subclass defines it, with\n"
                           "Buffer.from_handle(ptr, size, mr=self). Raises NotImplementedError here.");

static PyObject *memory_resource_allocate(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("size"), NAME("stream")};
    static const signature wanted = SIGNATURE("MemoryResource.allocate", parameters, 1, REQUIRED(0) | REQUIRED(1));
    PyObject *given[2];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    return refuse_abstract(op, "allocate(size, *, stream)");
}

PyDoc_STRVAR(
    deallocate_doc,
    "deallocate($self, /, ptr, size, *, stream)\n--\n\n"
    "Give memory back; a subclass defines it. It is called once for each Buffer.from_handle(..., mr=self), when\n"
    "the Buffer is closed, with the stream given to close(), else the one that the memory was used on last, else\n"
    "the legacy default stream. What it raises goes to sys.unraisablehook. Raises NotImplementedError here.");

static PyObject *memory_resource_deallocate(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("ptr"), NAME("size"), NAME("stream")};
    static const signature wanted =
        SIGNATURE("MemoryResource.deallocate", parameters, 2, REQUIRED(0) | REQUIRED(1) | REQUIRED(2));
    PyObject *given[3];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    return refuse_abstract(op, "deallocate(ptr, size, *, stream)");
}

static PyMethodDef memory_resource_methods[] = {
    {"allocate", FUNCTION(memory_resource_allocate), METH_KEYWORD_CALL, allocate_doc},
    {"deallocate", FUNCTION(memory_resource_deallocate), METH_KEYWORD_CALL, deallocate_doc},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static PyObject *memory_resource_get_abstract(PyObject *op, void *name)
{
    return refuse_abstract(op, name);
}

static char device_accessible[] = "the property is_device_accessible";
static char host_accessible[] = "the property is_host_accessible";
static char device_id[] = "the property device_id";

static PyGetSetDef memory_resource_attributes[] = {
    {"is_device_accessible", memory_resource_get_abstract, NULL,
     "True where kernels can use the memory (bool); a subclass defines it.", device_accessible},
    {"is_host_accessible", memory_resource_get_abstract, NULL,
     "True where the host can use the memory (bool); a subclass defines it.", host_accessible},
    {"device_id", memory_resource_get_abstract, NULL,
     "The number of the device that the memory is on, -1 for host memory (int); a subclass defines it.", device_id},
    {"is_managed", resource_get_false, NULL, "True where the memory moves between host and device (bool).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef memory_resource_members[] = {WEAKREF_MEMBER(memory_resource_object), {NULL, 0, 0, 0, NULL}};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(memory_resource_doc,
             "Where buffers get their memory from. To write one in Python, derive from it and define allocate(),\n"
             "deallocate(), is_device_accessible, is_host_accessible and device_id.");

static PyType_Slot memory_resource_slots[] = {
    {Py_tp_doc, (void *)memory_resource_doc}, {Py_tp_dealloc, memory_resource_dealloc},
    {Py_tp_methods, memory_resource_methods}, {Py_tp_getset, memory_resource_attributes},
    {Py_tp_members, memory_resource_members}, {0, NULL},
};

PyType_Spec memory_resource_spec = {
    .name = "cuda_core.MemoryResource",
    .basicsize = sizeof(memory_resource_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = memory_resource_slots,
};
