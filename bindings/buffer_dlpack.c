#include "buffer.h"

#include "device.h"
#include "dlpack.h"
#include "errors.h"
#include "parse.h"
#include "release.h"
#include "stream.h"

#include <stdlib.h>

/* ---- which kind of memory --------------------------------------------------------------------------------------- */

static int read_flag(PyObject *op, const char *name)
{
    PyObject *value = PyObject_GetAttrString(op, name);
    const int yes = value == NULL ? -1 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return yes;
}

static int read_device_id(PyObject *op, int32_t *id)
{
    PyObject *value = PyObject_GetAttrString(op, "device_id");
    const long number = value == NULL ? -1 : PyLong_AsLong(value);
    Py_XDECREF(value);
    if (number == -1 && PyErr_Occurred())
        return -1;
    *id = number < 0 ? 0 : (int32_t)number;
    return 0;
}

static int read_device(PyObject *op, dlpack_device *device)
{
    const int managed = read_flag(op, "is_managed");
    const int on_device = managed < 0 ? -1 : read_flag(op, "is_device_accessible");
    const int on_host = on_device < 0 ? -1 : read_flag(op, "is_host_accessible");
    if (on_host < 0)
        return -1;
    device->id = 0;
    if (managed)
        device->type = DLPACK_CUDA_MANAGED;
    else if (on_device)
        device->type = on_host ? DLPACK_CUDA_HOST : DLPACK_CUDA;
    else
        device->type = DLPACK_CPU;
    return device->type == DLPACK_CUDA || device->type == DLPACK_CUDA_MANAGED ? read_device_id(op, &device->id) : 0;
}

const char buffer_dlpack_device_doc[] =
    "__dlpack_device__($self, /)\n--\n\n"
    "(kind, number) of the device in DLPack's numbering: 1 host, 2 CUDA, 3 page-locked host, 13 managed memory.";

PyObject *buffer_dlpack_device(PyObject *op, PyObject *unused)
{
    (void)unused;
    dlpack_device device;
    if (read_device(op, &device) < 0)
        return NULL;
    return Py_BuildValue("ii", (int)device.type, (int)device.id);
}

/* ---- the tensor that is handed out ------------------------------------------------------------------------------ */

/* `held` keeps a Buffer of everything, so that the memory outlives close() here. */
typedef struct exported {
    union {
        dlpack_managed plain;
        dlpack_versioned versioned;
    } tensor;
    held *held;
    int64_t shape[1], strides[1];
} exported;

static void delete_plain(dlpack_managed *self)
{
    exported *memory = self->manager;
    held_release(memory->held);
    free(memory);
}

static void delete_versioned(dlpack_versioned *self)
{
    exported *memory = self->manager;
    held_release(memory->held);
    free(memory);
}

/* A consumer renames the capsule and deletes the tensor itself. */
static void drop_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor"))
        delete_plain(PyCapsule_GetPointer(capsule, "dltensor"));
    else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

static void describe(exported *memory, dlpack_tensor *tensor, const buffer_object *buffer, dlpack_device device)
{
    static const dlpack_data_type byte = {0, 8, 1}; /* int8: a byte without a meaning, as cuda.core has it */
    memory->shape[0] = (int64_t)buffer->size;
    memory->strides[0] = 1;
    tensor->data = (void *)(uintptr_t)buffer->pointer;
    tensor->device = device;
    tensor->dimensions = 1;
    tensor->data_type = byte;
    tensor->shape = memory->shape;
    tensor->strides = memory->strides;
    tensor->byte_offset = 0;
}

static exported *export_memory(module_state *state, PyObject *op)
{
    PyObject *all = buffer_slice(op, 0, buffer_cast(op)->size);
    exported *memory = all == NULL ? NULL : calloc(1, sizeof *memory);
    if (all != NULL && memory == NULL)
        PyErr_NoMemory();
    if (memory != NULL && (memory->held = held_object(state, all)) == NULL) {
        free(memory);
        memory = NULL;
    }
    Py_XDECREF(all);
    return memory;
}

static PyObject *make_capsule(module_state *state, PyObject *op, dlpack_device device, int is_versioned)
{
    exported *memory = export_memory(state, op);
    if (memory == NULL)
        return NULL;
    PyObject *capsule;
    if (is_versioned) {
        dlpack_versioned *tensor = &memory->tensor.versioned;
        tensor->major = DLPACK_MAJOR;
        tensor->minor = DLPACK_MINOR;
        tensor->manager = memory;
        tensor->deleter = delete_versioned;
        describe(memory, &tensor->tensor, buffer_cast(op), device);
        capsule = PyCapsule_New(tensor, "dltensor_versioned", drop_capsule);
    } else {
        dlpack_managed *tensor = &memory->tensor.plain;
        tensor->manager = memory;
        tensor->deleter = delete_plain;
        describe(memory, &tensor->tensor, buffer_cast(op), device);
        capsule = PyCapsule_New(tensor, "dltensor", drop_capsule);
    }
    if (capsule == NULL) {
        held_release(memory->held);
        free(memory);
    }
    return capsule;
}

/* ---- the parameters of __dlpack__ ------------------------------------------------------------------------------- */

/* The consumer's stream: None and 1 are the legacy default stream, 2 the thread's own, -1 asks for no ordering. */
static int read_stream(module_state *state, PyObject *object, CUstream *stream, int *wants_order)
{
    *stream = CU_STREAM_LEGACY;
    *wants_order = 1;
    if (object == NULL)
        return 0;
    if (!PyLong_Check(object) || PyBool_Check(object)) {
        PyErr_Format(PyExc_TypeError, "stream must be an int or None, not %.100s", Py_TYPE(object)->tp_name);
        return -1;
    }
    int overflow;
    const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (number == -1 && overflow == 0) {
        *wants_order = 0;
        return 0;
    }
    if (number == 0 && overflow == 0) {
        PyErr_SetString(PyExc_ValueError, "stream 0 says nothing: give 1 for the legacy default stream, 2 for the "
                                          "thread's own, or the handle of a stream");
        return -1;
    }
    uint64_t handle;
    if (open_driver(state) < 0 || address_from_object(object, "stream", &handle) < 0)
        return -1;
    *stream = (CUstream)(uintptr_t)handle;
    return 0;
}

/* The consumer's default stream is that of the memory's device. */
static int wrap_consumer(module_state *state, CUstream native, dlpack_device device, cc_stream **stream)
{
    cc_context *context = NULL;
    if ((uintptr_t)native <= (uintptr_t)CU_STREAM_PER_THREAD && device.type == DLPACK_CUDA) {
        context = device_primary(state, device_cast(state->devices[device.id]));
        if (context == NULL)
            return -1;
    }
    cc_error error;
    if (cc_stream_wrap(native, context, NULL, NULL, stream, &error) == 0)
        return 0;
    raise_error(state, &error);
    return -1;
}

/* What the consumer queues on its stream runs after what was queued here; the memory is freed after it. */
static int hand_over(module_state *state, PyObject *op, CUstream native, dlpack_device device)
{
    cc_stream *stream;
    cc_buffer *core = buffer_hold(op);
    if (core == NULL)
        return -1;
    int status = open_driver(state) < 0 ? -1 : wrap_consumer(state, native, device, &stream);
    if (status == 0) {
        cc_error error;
        Py_BEGIN_ALLOW_THREADS;
        status = cc_buffer_hand_over(core, stream, &error);
        Py_END_ALLOW_THREADS;
        cc_stream_release(stream);
        if (status < 0)
            raise_error(state, &error);
    }
    cc_buffer_release(core);
    return status;
}

static int read_max_version(PyObject *object, int *is_versioned)
{
    int major, minor;
    *is_versioned = 0;
    if (object == NULL)
        return 0;
    if (!PyTuple_Check(object) || !PyArg_ParseTuple(object, "ii", &major, &minor)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "max_version must be a tuple of two ints or None, not %R", object);
        return -1;
    }
    *is_versioned = major >= 1;
    return 0;
}

static int check_wanted_device(PyObject *object, dlpack_device device)
{
    int type, id;
    if (object == NULL)
        return 0;
    if (!PyTuple_Check(object) || !PyArg_ParseTuple(object, "ii", &type, &id)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "dl_device must be a tuple of two ints or None, not %R", object);
        return -1;
    }
    if (type == device.type && id == device.id)
        return 0;
    PyErr_Format(PyExc_BufferError,
                 "the buffer is on DLPack device (%d, %d) and is not copied to (%d, %d): use copy_to()",
                 (int)device.type, (int)device.id, type, id);
    return -1;
}

static int refuse_copy(PyObject *object)
{
    const int wants_copy = object == NULL ? 0 : PyObject_IsTrue(object);
    if (wants_copy > 0)
        PyErr_SetString(PyExc_BufferError, "a buffer is exported as it is, not as a copy: use copy_to()");
    return wants_copy == 0 ? 0 : -1;
}

const char buffer_dlpack_doc[] =
    "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
    "The memory as a one-dimensional tensor of int8, in a DLPack capsule, for other libraries.\n\n"
    "stream: the consumer's stream (int), whose later work waits for what was queued here; 1 or None: the legacy\n"
    "default stream, 2: the thread's own, -1: no ordering.\n"
    "max_version: (major, minor) that the consumer knows; from (1, 0) on the capsule is a versioned one.\n"
    "dl_device, copy: only this buffer's own device and no copy are possible; BufferError otherwise.\n"
    "The capsule keeps the memory. Raises ClosedError, TypeError, ValueError, BufferError.";

PyObject *buffer_dlpack(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("stream"), NAME("max_version"), NAME("dl_device"), NAME("copy")};
    static const signature wanted = SIGNATURE("Buffer.__dlpack__", parameters, 0, 0);
    module_state *state = state_of_class(class);
    PyObject *given[4];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    CUstream stream;
    int wants_order, is_versioned;
    dlpack_device device;
    if (read_device(op, &device) < 0 || read_stream(state, none_to_null(given[0]), &stream, &wants_order) < 0 ||
        read_max_version(none_to_null(given[1]), &is_versioned) < 0 ||
        check_wanted_device(none_to_null(given[2]), device) < 0 || refuse_copy(none_to_null(given[3])) < 0)
        return NULL;
    PyObject *capsule = make_capsule(state, op, device, is_versioned);
    if (capsule != NULL && wants_order && device.type != DLPACK_CPU && hand_over(state, op, stream, device) < 0)
        Py_CLEAR(capsule);
    return capsule;
}
