/* What DeviceMemoryResource and PinnedMemoryResource have in common: a pool of stream-ordered memory. */
#include "resource.h"

#include "buffer.h"
#include "errors.h"
#include "parse.h"
#include "stream.h"

static const char ipc_text[] = "memory pools cannot be shared between processes yet";

/* ---- for other files -------------------------------------------------------------------------------------------- */

cc_pool *pool_hold(PyObject *resource)
{
    cc_pool *core;
    Py_BEGIN_CRITICAL_SECTION(resource);
    core = pool_resource_cast(resource)->core;
    if (core != NULL)
        cc_pool_retain(core);
    Py_END_CRITICAL_SECTION();
    if (core == NULL)
        raise_closed(state_of(resource), "memory resource");
    return core;
}

void pool_resource_set(PyObject *resource, cc_pool *core)
{
    cc_pool *old;
    Py_BEGIN_CRITICAL_SECTION(resource);
    old = pool_resource_cast(resource)->core;
    pool_resource_cast(resource)->core = core;
    Py_END_CRITICAL_SECTION();
    if (old == NULL)
        return;
    Py_BEGIN_ALLOW_THREADS;
    cc_pool_release(old);
    Py_END_ALLOW_THREADS;
}

int pool_max_size(PyObject *value, const char *class_name, size_t *size)
{
    char what[64];
    *size = 0;
    PyOS_snprintf(what, sizeof what, "%s.max_size", class_name);
    return value == NULL ? 0 : size_from_object(value, what, size);
}

PyObject *pool_resource_allocate_from(module_state *state, PyObject *resource, PyObject *size, PyObject *stream)
{
    size_t bytes;
    if (size_from_object(size, "size", &bytes) < 0)
        return NULL;
    cc_pool *pool = pool_hold(resource);
    if (pool == NULL)
        return NULL;
    cc_stream *core_stream;
    if (stream_from_object(state, stream, &core_stream) < 0) {
        cc_pool_release(pool);
        return NULL;
    }
    cc_error error;
    cc_buffer *core;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_buffer_allocate(pool, bytes, core_stream, &core, &error);
    Py_END_ALLOW_THREADS;
    const bool is_managed = cc_pool_is_managed(pool);
    cc_stream_release(core_stream);
    cc_pool_release(pool);
    if (status < 0)
        return raise_error(state, &error);
    return is_managed ? managed_buffer_from_core(state, core, resource) : buffer_from_core(state, core, resource, NULL);
}

void pool_resource_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    if (pool_resource_cast(op)->base.weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    pool_resource_set(op, NULL);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(allocate_doc, "allocate($self, /, size, *, stream)\n--\n\n"
                           "A new Buffer of `size` bytes from the pool, in the order of a stream.\n\n"
                           "size: int, bytes; 0 is allowed and takes no memory.\n"
                           "stream: a Stream, or an object with __cuda_stream__().\n"
                           "Raises ValueError (negative size), OverflowError, OutOfMemoryError, ClosedError.\n"
                           "Driver: cuMemAllocFromPoolAsync.");

static PyObject *pool_resource_allocate(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                        PyObject *names)
{
    static const parameter_name parameters[] = {NAME("size"), NAME("stream")};
    static const signature wanted = SIGNATURE("allocate", parameters, 1, REQUIRED(0) | REQUIRED(1));
    PyObject *given[2];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    return pool_resource_allocate_from(state_of_class(class), op, given[0], given[1]);
}

PyDoc_STRVAR(
    deallocate_doc,
    "deallocate($self, /, ptr, size, *, stream)\n--\n\n"
    "Free memory of the pool that no Buffer owns, in the order of a stream; Buffer.close() frees a Buffer's.\n\n"
    "ptr: int; size: int, bytes; stream: a Stream, or an object with __cuda_stream__().\n"
    "Raises TypeError, CUDAError, ClosedError. Driver: cuMemFreeAsync.");

static int free_raw(module_state *state, cc_pool *pool, CUdeviceptr pointer, PyObject *stream)
{
    cc_stream *core_stream;
    if (stream_from_object(state, stream, &core_stream) < 0)
        return -1;
    cc_error error;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_pool_free(pool, pointer, core_stream, &error);
    Py_END_ALLOW_THREADS;
    cc_stream_release(core_stream);
    if (status < 0)
        raise_error(state, &error);
    return status;
}

static PyObject *pool_resource_deallocate(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                          PyObject *names)
{
    static const parameter_name parameters[] = {NAME("ptr"), NAME("size"), NAME("stream")};
    static const signature wanted = SIGNATURE("deallocate", parameters, 2, REQUIRED(0) | REQUIRED(1) | REQUIRED(2));
    PyObject *given[3];
    uint64_t pointer;
    size_t size;
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    if (address_from_object(given[0], "ptr", &pointer) < 0 || size_from_object(given[1], "size", &size) < 0)
        return NULL;
    if (pointer == 0) /* what allocate(0) gives */
        Py_RETURN_NONE;
    cc_pool *pool = pool_hold(op);
    if (pool == NULL)
        return NULL;
    const int status = free_raw(state_of_class(class), pool, (CUdeviceptr)pointer, given[2]);
    cc_pool_release(pool);
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(close_doc,
             "close($self, /)\n--\n\n"
             "Let go of the pool; buffers from it keep what they need.\n\n"
             "Closing twice is allowed; any other use after it raises ClosedError. Driver: cuMemPoolDestroy.");

static PyObject *pool_resource_close(PyObject *op, PyObject *unused)
{
    (void)unused;
    pool_resource_set(op, NULL);
    Py_RETURN_NONE;
}

static PyObject *pool_resource_enter(PyObject *op, PyObject *unused)
{
    (void)unused;
    cc_pool *pool = pool_hold(op);
    if (pool == NULL)
        return NULL;
    cc_pool_release(pool);
    return Py_NewRef(op);
}

static PyObject *pool_resource_exit(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    (void)args, (void)count;
    pool_resource_set(op, NULL);
    Py_RETURN_FALSE;
}

static PyObject *refuse_ipc(PyTypeObject *type)
{
    return raise_not_supported(state_of_type(type), ipc_text);
}

static PyObject *pool_resource_from_registry(PyObject *class, PyObject *uuid)
{
    (void)uuid;
    return refuse_ipc((PyTypeObject *)class);
}

static PyObject *pool_resource_register(PyObject *op, PyObject *uuid)
{
    (void)uuid;
    return refuse_ipc(Py_TYPE(op));
}

#define NO_IPC_DOC "Memory pools cannot be shared between processes yet: raises NotSupportedError."

static PyMethodDef pool_resource_methods[] = {
    {"allocate", FUNCTION(pool_resource_allocate), METH_CLASS_CALL, allocate_doc},
    {"deallocate", FUNCTION(pool_resource_deallocate), METH_CLASS_CALL, deallocate_doc},
    {"close", pool_resource_close, METH_NOARGS, close_doc},
    {"register", pool_resource_register, METH_O, "register($self, uuid, /)\n--\n\n" NO_IPC_DOC},
    {"from_registry", pool_resource_from_registry, METH_O | METH_CLASS,
     "from_registry($type, uuid, /)\n--\n\n" NO_IPC_DOC},
    {"__enter__", pool_resource_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nThe resource itself."},
    {"__exit__", FUNCTION(pool_resource_exit), METH_FASTCALL,
     "__exit__($self, exc_type=None, exc_val=None, exc_tb=None, /)\n--\n\nCloses the resource."},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static PyObject *pool_resource_get_handle(PyObject *op, void *unused)
{
    (void)unused;
    cc_pool *pool = pool_hold(op);
    if (pool == NULL)
        return NULL;
    PyObject *handle = PyLong_FromVoidPtr(cc_pool_native(pool));
    cc_pool_release(pool);
    return handle;
}

static PyObject *pool_resource_get_is_handle_owned(PyObject *op, void *unused)
{
    (void)unused;
    cc_pool *pool = pool_hold(op);
    if (pool == NULL)
        return NULL;
    PyObject *answer = PyBool_FromLong(cc_pool_is_owned(pool));
    cc_pool_release(pool);
    return answer;
}

static PyObject *pool_resource_get_attributes(PyObject *op, void *unused)
{
    (void)unused;
    cc_pool *pool = pool_hold(op);
    return pool == NULL ? NULL : pool_attributes_new(state_of(op), pool);
}

static PyObject *pool_resource_get_is_closed(PyObject *op, void *unused)
{
    (void)unused;
    int is_closed;
    Py_BEGIN_CRITICAL_SECTION(op);
    is_closed = pool_resource_cast(op)->core == NULL;
    Py_END_CRITICAL_SECTION();
    return PyBool_FromLong(is_closed);
}

static PyObject *pool_resource_get_none(PyObject *op, void *unused)
{
    (void)op, (void)unused;
    Py_RETURN_NONE;
}

static PyObject *pool_resource_refuse_ipc(PyObject *op, void *unused)
{
    (void)unused;
    return refuse_ipc(Py_TYPE(op));
}

static PyGetSetDef pool_resource_attributes[] = {
    {"handle", pool_resource_get_handle, NULL, "The CUmemoryPool (int).", NULL},
    {"is_handle_owned", pool_resource_get_is_handle_owned, NULL,
     "True where the pool was made for this resource, False for a device's default pool (bool).", NULL},
    {"attributes", pool_resource_get_attributes, NULL, "What the pool holds, and how it reuses memory.", NULL},
    {"is_device_accessible", resource_get_true, NULL, "True: kernels can use the memory (bool).", NULL},
    {"is_managed", resource_get_false, NULL, "False: the memory stays where it is (bool).", NULL},
    {"is_mapped", resource_get_false, NULL, "False: the pool is not another process's (bool).", NULL},
    {"is_ipc_enabled", resource_get_false, NULL, "False: other processes cannot use the pool (bool).", NULL},
    {"uuid", pool_resource_get_none, NULL, "None: only pools shared between processes have one.", NULL},
    {"allocation_handle", pool_resource_refuse_ipc, NULL, NO_IPC_DOC, NULL},
    {"is_closed", pool_resource_get_is_closed, NULL, "True after close() (bool).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

static PyType_Slot pool_resource_slots[] = {
    {Py_tp_doc, (void *)"A MemoryResource on a pool of stream-ordered memory."},
    {Py_tp_dealloc, pool_resource_dealloc},
    {Py_tp_methods, pool_resource_methods},
    {Py_tp_getset, pool_resource_attributes},
    {0, NULL},
};

PyType_Spec pool_resource_spec = {
    .name = "cuda_core._MemPool",
    .basicsize = sizeof(pool_resource_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = pool_resource_slots,
};
