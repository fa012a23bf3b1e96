#include "device.h"

#include "context.h"
#include "errors.h"
#include "event.h"
#include "parse.h"
#include "release.h"
#include "resource.h"
#include "stream.h"
#include "wait.h"

#include <stdlib.h>

/* One `with device:` that is open: blocks of different threads may interleave, so each frame knows its thread. */
typedef struct device_frame {
    unsigned long thread;
    CUcontext previous;
    struct device_frame *outer;
} device_frame;

/* ---- for other files -------------------------------------------------------------------------------------------- */

PyObject *device_new_core(module_state *state, cc_device *core)
{
    device_object *self = (device_object *)state->device_type->tp_alloc(state->device_type, 0);
    if (self == NULL)
        return NULL;
    self->core = core;
    self->ordinal = cc_device_ordinal(core);
    return (PyObject *)self;
}

static device_object *device_at(module_state *state, int ordinal)
{
    if (open_driver(state) < 0)
        return NULL;
    return device_cast(state->devices[ordinal]);
}

PyObject *device_from_ordinal(module_state *state, int ordinal)
{
    return Py_XNewRef((PyObject *)device_at(state, ordinal));
}

PyObject *device_from_core(module_state *state, const cc_device *core)
{
    return device_from_ordinal(state, cc_device_ordinal(core));
}

static device_object *refuse_ordinal(module_state *state, PyObject *object)
{
    if (state->device_count == 0)
        PyErr_Format(PyExc_ValueError, "there is no device %S: this machine has no CUDA device", object);
    else if (state->device_count == 1)
        PyErr_Format(PyExc_ValueError, "there is no device %S: this machine has 1 device, number 0", object);
    else
        PyErr_Format(PyExc_ValueError, "there is no device %S: this machine has %d devices, numbers 0 to %d", object,
                     state->device_count, state->device_count - 1);
    return NULL;
}

device_object *device_from_object(module_state *state, PyObject *object, const char *what)
{
    if (Py_IS_TYPE(object, state->device_type))
        return device_cast(object);
    if (PyBool_Check(object) || !PyIndex_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s must be an int or a Device, not %.100s", what, Py_TYPE(object)->tp_name);
        return NULL;
    }
    if (open_driver(state) < 0)
        return NULL;
    const Py_ssize_t ordinal = PyNumber_AsSsize_t(object, NULL); /* clipped, so out of range stays out of range */
    if (ordinal == -1 && PyErr_Occurred())
        return NULL;
    if (ordinal < 0 || ordinal >= state->device_count)
        return refuse_ordinal(state, object);
    return device_cast(state->devices[ordinal]);
}

device_object *device_current(module_state *state)
{
    if (open_driver(state) < 0)
        return NULL;
    int ordinal;
    cc_error error;
    if (cc_device_current(&ordinal, &error) < 0) {
        raise_error(state, &error);
        return NULL;
    }
    if (state->device_count == 0) {
        PyErr_SetString(state->CUDAError, "this machine has no CUDA device");
        return NULL;
    }
    return device_cast(state->devices[ordinal < 0 ? 0 : ordinal]);
}

cc_context *device_primary(module_state *state, device_object *device)
{
#ifdef Py_GIL_DISABLED
    cc_context *known = __atomic_load_n(&device->primary, __ATOMIC_ACQUIRE);
#else
    cc_context *known = device->primary;
#endif
    if (known != NULL)
        return known;
    cc_error error;
    cc_context *context = NULL;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_device_primary_context(device->core, &context, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0) {
        raise_error(state, &error);
        return NULL;
    }
    __atomic_store_n(&device->primary, context, __ATOMIC_RELEASE); /* the same one for every thread */
    return context;
}

/* The object at `*slot`, made by `make` where there is none; a second one, made at the same time, is dropped. */
typedef PyObject *(*maker)(module_state *state, device_object *device);

static PyObject *kept(device_object *self, PyObject **slot, maker make)
{
    PyObject *object;
    Py_BEGIN_CRITICAL_SECTION((PyObject *)self);
    object = Py_XNewRef(*slot);
    Py_END_CRITICAL_SECTION();
    if (object != NULL)
        return object;
    object = make(state_of_final((PyObject *)self), self);
    if (object == NULL)
        return NULL;
    PyObject *surplus = NULL;
    Py_BEGIN_CRITICAL_SECTION((PyObject *)self);
    if (*slot == NULL) {
        *slot = Py_NewRef(object);
    } else {
        surplus = object;
        object = Py_NewRef(*slot);
    }
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(surplus);
    return object;
}

static PyObject *make_memory_resource(module_state *state, device_object *device)
{
    return device_memory_resource_default(state, device->core);
}

PyObject *device_memory_resource_of(module_state *state, device_object *device)
{
    (void)state;
    return kept(device, &device->memory_resource, make_memory_resource);
}

/* Bound to this device's primary context, where the module's LEGACY_DEFAULT_STREAM goes with the current one. */
static PyObject *make_default_stream(module_state *state, device_object *device)
{
    const char *choice = getenv("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM");
    const int per_thread = choice != NULL && strtol(choice, NULL, 10) != 0;
    cc_context *context = device_primary(state, device);
    if (context == NULL)
        return NULL;
    return stream_default(state, per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY, context);
}

PyObject *device_default_stream_of(module_state *state, device_object *device)
{
    (void)state;
    return kept(device, &device->default_stream, make_default_stream);
}

/* ---- new -------------------------------------------------------------------------------------------------------- */

static const parameter_name new_parameters[] = {NAME("device_id")};
static const signature new_signature = SIGNATURE("Device", new_parameters, 1, 0);

static PyObject *device_for(module_state *state, PyObject *device_id)
{
    if (device_id == NULL || device_id == Py_None)
        return Py_XNewRef((PyObject *)device_current(state));
    return Py_XNewRef((PyObject *)device_from_object(state, device_id, "device_id"));
}

PyObject *device_vectorcall(PyObject *type, PyObject *const *args, size_t flags, PyObject *names)
{
    PyObject *given[1];
    if (parse_arguments(&new_signature, args, PyVectorcall_NARGS(flags), names, given) < 0)
        return NULL;
    return device_for(state_of_class((PyTypeObject *)type), given[0]);
}

static PyObject *device_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *given[1];
    if (parse_call(&new_signature, args, keywords, given) < 0)
        return NULL;
    return device_for(state_of_class(type), given[0]);
}

/* ---- current device: set_current, with -------------------------------------------------------------------------- */

PyDoc_STRVAR(
    set_current_doc,
    "set_current($self, /, ctx=None)\n--\n\n"
    "Make this device current on the calling thread, for libraries that use the current device.\n\n"
    "ctx: a Context of this device; None: the device's primary context.\n"
    "Returns None, or with ctx the Context that was current before (None where none was).\n"
    "Objects of cuda_core act on their own device and need no call of this. `with device:` restores what was.\n"
    "Raises ValueError for a context of another device. Driver: cuCtxSetCurrent.");

static int make_current(module_state *state, CUcontext native)
{
    cc_error error;
    if (cc_context_set_current(native, &error) == 0)
        return 0;
    raise_error(state, &error);
    return -1;
}

static int get_current(module_state *state, CUcontext *native)
{
    cc_error error;
    if (cc_context_get_current(native, &error) == 0)
        return 0;
    raise_error(state, &error);
    return -1;
}

/* The Context of a native one, None for NULL. */
static PyObject *context_or_none(module_state *state, CUcontext native)
{
    if (native == NULL)
        Py_RETURN_NONE;
    cc_error error;
    cc_context *core;
    if (cc_context_from_native(native, &core, &error) < 0)
        return raise_error(state, &error);
    return context_from_core(state, core);
}

static PyObject *exchange_current(module_state *state, device_object *self, cc_context *context)
{
    if (cc_context_device(context) != self->core) {
        PyErr_Format(PyExc_ValueError, "the context is of device %d, not of device %d",
                     cc_device_ordinal(cc_context_device(context)), self->ordinal);
        return NULL;
    }
    CUcontext previous;
    if (get_current(state, &previous) < 0)
        return NULL;
    PyObject *result = context_or_none(state, previous);
    if (result != NULL && make_current(state, cc_context_native(context)) < 0)
        Py_CLEAR(result);
    return result;
}

static PyObject *device_set_current(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                    PyObject *names)
{
    static const parameter_name parameters[] = {NAME("ctx")};
    static const signature wanted = SIGNATURE("Device.set_current", parameters, 1, 0);
    module_state *state = state_of_class(class);
    PyObject *given[1];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    PyObject *given_context = given[0] == NULL ? NULL : none_to_null(given[0]);
    if (given_context == NULL) {
        cc_context *primary = device_primary(state, device_cast(op));
        if (primary == NULL || make_current(state, cc_context_native(primary)) < 0)
            return NULL;
        Py_RETURN_NONE;
    }
    if (!Py_IS_TYPE(given_context, state->context_type)) {
        PyErr_Format(PyExc_TypeError, "ctx must be a Context or None, not %.100s", Py_TYPE(given_context)->tp_name);
        return NULL;
    }
    cc_context *context = context_hold(given_context);
    if (context == NULL)
        return NULL;
    PyObject *result = exchange_current(state, device_cast(op), context);
    cc_context_release(context);
    return result;
}

static PyObject *device_enter(PyObject *op, PyObject *unused)
{
    (void)unused;
    device_object *self = device_cast(op);
    module_state *state = state_of_final(op);
    cc_context *primary = device_primary(state, self);
    if (primary == NULL)
        return NULL;
    device_frame *frame = malloc(sizeof *frame);
    if (frame == NULL)
        return PyErr_NoMemory();
    frame->thread = PyThread_get_thread_ident();
    if (get_current(state, &frame->previous) < 0 || make_current(state, cc_context_native(primary)) < 0) {
        free(frame);
        return NULL;
    }
    Py_BEGIN_CRITICAL_SECTION(op);
    frame->outer = self->frames;
    self->frames = frame;
    Py_END_CRITICAL_SECTION();
    return Py_NewRef(op);
}

static device_frame *unlink_frame(device_object *self)
{
    const unsigned long thread = PyThread_get_thread_ident();
    device_frame **link = &self->frames;
    while (*link != NULL && (*link)->thread != thread)
        link = &(*link)->outer;
    device_frame *frame = *link;
    if (frame != NULL)
        *link = frame->outer;
    return frame;
}

static PyObject *device_exit(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    device_frame *frame;
    Py_BEGIN_CRITICAL_SECTION(op);
    frame = unlink_frame(device_cast(op));
    Py_END_CRITICAL_SECTION();
    if (frame == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this thread has not entered the device with a `with` block");
        return NULL;
    }
    const CUcontext previous = frame->previous;
    free(frame);
    if (make_current(state_of_final(op), previous) < 0) {
        if (count == 0 || args[0] == Py_None)
            return NULL;
        report_unraisable(op); /* the block's own exception goes first */
    }
    Py_RETURN_FALSE;
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(create_stream_doc,
             "create_stream($self, /, obj=None, options=None)\n--\n\n"
             "A new Stream on this device, or the Stream of another library's stream.\n\n"
             "obj: an object with __cuda_stream__(); it is kept alive and stays the owner of its stream. A Stream is\n"
             "shared: it is destroyed when both are closed.\n"
             "options: StreamOptions, a dict of its fields, or None; for new streams only.\n"
             "Raises TypeError, ValueError (both given, priority out of range), CUDAError.\n"
             "Driver: cuStreamCreateWithPriority.");

static PyObject *device_create_stream(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                      PyObject *names)
{
    static const parameter_name parameters[] = {NAME("obj"), NAME("options")};
    static const signature wanted = SIGNATURE("Device.create_stream", parameters, 2, 0);
    module_state *state = state_of_class(class);
    PyObject *given[2];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    cc_context *context = device_primary(state, device_cast(op));
    if (context == NULL)
        return NULL;
    if (given[0] == NULL || given[0] == Py_None)
        return stream_create(state, context, given[1]);
    if (given[1] != NULL && given[1] != Py_None) {
        PyErr_SetString(PyExc_ValueError, "options are for a new stream: they cannot be given together with obj");
        return NULL;
    }
    return stream_wrap_object(state, context, given[0]);
}

PyDoc_STRVAR(create_event_doc, "create_event($self, /, options=None)\n--\n\n"
                               "A new Event on this device.\n\n"
                               "options: EventOptions, a dict of its fields, or None.\n"
                               "Raises TypeError, CUDAError. Driver: cuEventCreate.");

static PyObject *device_create_event(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                     PyObject *names)
{
    static const parameter_name parameters[] = {NAME("options")};
    static const signature wanted = SIGNATURE("Device.create_event", parameters, 1, 0);
    module_state *state = state_of_class(class);
    PyObject *given[1];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    cc_context *context = device_primary(state, device_cast(op));
    return context == NULL ? NULL : event_create(state, context, given[0]);
}

PyDoc_STRVAR(allocate_doc,
             "allocate($self, /, size, *, stream)\n--\n\n"
             "A new Buffer of `size` bytes from the device's memory resource.\n\n"
             "size: int, bytes; 0 is allowed.\n"
             "stream: the Stream, or an object with __cuda_stream__(), in whose order the memory comes into being;\n"
             "None: the device's default stream.\n"
             "Raises ValueError (negative size), OverflowError, OutOfMemoryError. Driver: cuMemAllocFromPoolAsync.");

static PyObject *device_allocate(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                 PyObject *names)
{
    static const parameter_name parameters[] = {NAME("size"), NAME("stream")};
    static const signature wanted = SIGNATURE("Device.allocate", parameters, 1, REQUIRED(0) | REQUIRED(1));
    module_state *state = state_of_class(class);
    PyObject *given[2];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    PyObject *resource = device_memory_resource_of(state, device_cast(op));
    if (resource == NULL)
        return NULL;
    PyObject *stream = given[1] != Py_None ? Py_NewRef(given[1]) : device_default_stream_of(state, device_cast(op));
    PyObject *buffer = stream == NULL ? NULL : resource_allocate(state, resource, given[0], stream);
    Py_XDECREF(stream);
    Py_DECREF(resource);
    return buffer;
}

PyDoc_STRVAR(sync_doc,
             "sync($self, /)\n--\n\n"
             "Wait until all work queued on the device by this process is done.\n\n"
             "A signal handler that raises (Ctrl-C) ends the wait in the main thread; the work goes on. Raises\n"
             "CUDAError for an error in that work. Driver: cuCtxSynchronize, cuCtxRecordEvent, cuEventQuery.");

static PyObject *device_sync(PyObject *op, PyObject *unused)
{
    (void)unused;
    module_state *state = state_of_final(op);
    cc_context *context = device_primary(state, device_cast(op));
    if (context == NULL)
        return NULL;
    cc_error error;
    waiting waiter;
    const int status = cc_device_wait(device_cast(op)->core, wait_begin(&waiter), &error);
    wait_end(&waiter);
    if (status > 0)
        return NULL;
    release_finished(state, context);
    if (status < 0)
        return raise_error(state, &error);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(can_access_peer_doc, "can_access_peer($self, /, peer)\n--\n\n"
                                  "True where kernels of this device can use the memory of `peer` (bool).\n\n"
                                  "peer: a Device or its number. Driver: cuDeviceCanAccessPeer.");

static PyObject *device_can_access_peer(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                        PyObject *names)
{
    static const parameter_name parameters[] = {NAME("peer")};
    static const signature wanted = SIGNATURE("Device.can_access_peer", parameters, 1, REQUIRED(0));
    module_state *state = state_of_class(class);
    PyObject *given[1];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    const device_object *peer = device_from_object(state, given[0], "peer");
    if (peer == NULL)
        return NULL;
    cc_error error;
    bool can;
    if (cc_device_can_access_peer(device_cast(op)->core, peer->core, &can, &error) < 0)
        return raise_error(state, &error);
    return PyBool_FromLong(can);
}

PyDoc_STRVAR(get_all_devices_doc, "get_all_devices($type, /)\n--\n\n"
                                  "All devices of this machine, in the order of their numbers (tuple of Device).\n\n"
                                  "Driver: cuDeviceGetCount.");

static PyObject *device_get_all_devices(PyObject *class, PyObject *unused)
{
    (void)unused;
    module_state *state = state_of_class((PyTypeObject *)class);
    if (open_driver(state) < 0)
        return NULL;
    PyObject *all = PyTuple_New(state->device_count);
    for (int i = 0; all != NULL && i < state->device_count; i++)
        PyTuple_SET_ITEM(all, i, Py_NewRef(state->devices[i]));
    return all;
}

static PyObject *device_reduce(PyObject *op, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("O(i)", Py_TYPE(op), device_cast(op)->ordinal);
}

static PyObject *device_int(PyObject *op)
{
    return PyLong_FromLong(device_cast(op)->ordinal);
}

static PyObject *device_compare(PyObject *op, PyObject *other, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || !Py_IS_TYPE(other, Py_TYPE(op)))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((device_cast(op)->ordinal == device_cast(other)->ordinal) == (operation == Py_EQ));
}

static Py_hash_t device_hash(PyObject *op)
{
    return (Py_hash_t)device_cast(op)->ordinal + 0x64657669; /* not that of the int, which it does not equal */
}

static PyMethodDef device_methods[] = {
    {"set_current", FUNCTION(device_set_current), METH_CLASS_CALL, set_current_doc},
    {"create_stream", FUNCTION(device_create_stream), METH_CLASS_CALL, create_stream_doc},
    {"create_event", FUNCTION(device_create_event), METH_CLASS_CALL, create_event_doc},
    {"allocate", FUNCTION(device_allocate), METH_CLASS_CALL, allocate_doc},
    {"sync", device_sync, METH_NOARGS, sync_doc},
    {"can_access_peer", FUNCTION(device_can_access_peer), METH_CLASS_CALL, can_access_peer_doc},
    {"get_all_devices", device_get_all_devices, METH_NOARGS | METH_CLASS, get_all_devices_doc},
    {"__enter__", device_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nMakes the device current; returns it."},
    {"__exit__", FUNCTION(device_exit), METH_FASTCALL,
     "__exit__($self, exc_type=None, exc_val=None, exc_tb=None, /)\n--\n\nMakes current what was before the block."},
    {"__reduce__", device_reduce, METH_NOARGS, "__reduce__($self, /)\n--\n\nPickled as its number."},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static PyObject *make_name(module_state *state, device_object *self)
{
    cc_error error;
    const char *name;
    if (cc_device_name(self->core, &name, &error) < 0)
        return raise_error(state, &error);
    return PyUnicode_FromString(name);
}

static PyObject *make_uuid(module_state *state, device_object *self)
{
    cc_error error;
    char bytes[16];
    if (cc_device_uuid(self->core, bytes, &error) < 0)
        return raise_error(state, &error);
    char text[37], *end = text;
    for (int i = 0; i < 16; i++) {
        static const char digits[] = "0123456789abcdef";
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *end++ = '-';
        *end++ = digits[(unsigned char)bytes[i] >> 4];
        *end++ = digits[bytes[i] & 15];
    }
    return PyUnicode_FromStringAndSize(text, end - text);
}

static int read_capability(module_state *state, device_object *self, int *major, int *minor)
{
    cc_error error;
    if (cc_device_attribute(self->core, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major, &error) == 0 &&
        cc_device_attribute(self->core, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor, &error) == 0)
        return 0;
    raise_error(state, &error);
    return -1;
}

static PyObject *make_compute_capability(module_state *state, device_object *self)
{
    int major, minor;
    if (read_capability(state, self, &major, &minor) < 0)
        return NULL;
    PyObject *capability = PyStructSequence_New(state->compute_capability_type);
    if (capability == NULL)
        return NULL;
    PyStructSequence_SetItem(capability, 0, PyLong_FromLong(major));
    PyStructSequence_SetItem(capability, 1, PyLong_FromLong(minor));
    return capability;
}

static PyObject *make_arch(module_state *state, device_object *self)
{
    int major, minor;
    if (read_capability(state, self, &major, &minor) < 0)
        return NULL;
    return PyUnicode_FromFormat("%d%d", major, minor);
}

static PyObject *make_properties(module_state *state, device_object *self)
{
    return device_properties_new(state, self->core);
}

static PyObject *device_get_name(PyObject *op, void *unused)
{
    (void)unused;
    return kept(device_cast(op), &device_cast(op)->name, make_name);
}

static PyObject *device_get_uuid(PyObject *op, void *unused)
{
    (void)unused;
    return kept(device_cast(op), &device_cast(op)->uuid, make_uuid);
}

static PyObject *device_get_compute_capability(PyObject *op, void *unused)
{
    (void)unused;
    return kept(device_cast(op), &device_cast(op)->compute_capability, make_compute_capability);
}

static PyObject *device_get_arch(PyObject *op, void *unused)
{
    (void)unused;
    return kept(device_cast(op), &device_cast(op)->arch, make_arch);
}

static PyObject *device_get_properties(PyObject *op, void *unused)
{
    (void)unused;
    return kept(device_cast(op), &device_cast(op)->properties, make_properties);
}

static PyObject *device_get_default_stream(PyObject *op, void *unused)
{
    (void)unused;
    return kept(device_cast(op), &device_cast(op)->default_stream, make_default_stream);
}

static PyObject *device_get_pci_bus_id(PyObject *op, void *unused)
{
    (void)unused;
    cc_error error;
    char text[32];
    if (cc_device_pci_bus_id(device_cast(op)->core, text, &error) < 0)
        return raise_error(state_of_final(op), &error);
    return PyUnicode_FromString(text);
}

static PyObject *make_context(module_state *state, device_object *self)
{
    cc_context *context = device_primary(state, self);
    return context == NULL ? NULL : context_from_core(state, cc_context_retain(context));
}

static PyObject *device_get_context(PyObject *op, void *unused)
{
    (void)unused;
    device_object *self = device_cast(op);
    PyObject *context = kept(self, &self->context, make_context);
    if (context == NULL || !context_is_closed(context))
        return context;
    /* Somebody closed the object that was handed out; the device's context is there all the same. */
    Py_DECREF(context);
    PyObject *fresh = make_context(state_of_final(op), self), *old;
    if (fresh == NULL)
        return NULL;
    Py_BEGIN_CRITICAL_SECTION(op);
    old = self->context;
    self->context = Py_NewRef(fresh);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(old);
    return fresh;
}

static PyObject *device_get_memory_resource(PyObject *op, void *unused)
{
    (void)unused;
    return kept(device_cast(op), &device_cast(op)->memory_resource, make_memory_resource);
}

static int device_set_memory_resource(PyObject *op, PyObject *value, void *unused)
{
    (void)unused;
    module_state *state = state_of_final(op);
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "Device.memory_resource can be set, but not deleted");
        return -1;
    }
    if (!PyObject_TypeCheck(value, state->memory_resource_type)) {
        PyErr_Format(PyExc_TypeError, "memory_resource must be a MemoryResource, not %.100s", Py_TYPE(value)->tp_name);
        return -1;
    }
    PyObject *old;
    Py_BEGIN_CRITICAL_SECTION(op);
    old = device_cast(op)->memory_resource;
    device_cast(op)->memory_resource = Py_NewRef(value);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(old);
    return 0;
}

static PyObject *device_get_is_emulated(PyObject *op, void *unused)
{
    (void)unused;
    return PyBool_FromLong(cc_device_is_emulated(device_cast(op)->core));
}

/* Where the driver does not tell the name any more, the rest is still worth showing. */
static PyObject *device_repr(PyObject *op)
{
    PyObject *name = device_get_name(op, NULL);
    if (name == NULL) {
        PyErr_Clear();
        return PyUnicode_FromFormat("<Device %d>", device_cast(op)->ordinal);
    }
    PyObject *text = PyUnicode_FromFormat("<Device %d (%U)>", device_cast(op)->ordinal, name);
    Py_DECREF(name);
    return text;
}

static PyGetSetDef device_attributes[] = {
    {"name", device_get_name, NULL, "The product's name (str). Driver: cuDeviceGetName.", NULL},
    {"uuid", device_get_uuid, NULL,
     "The device's identity, 32 hexadecimal digits in the form 8-4-4-4-12 (str). Driver: cuDeviceGetUuid.", NULL},
    {"pci_bus_id", device_get_pci_bus_id, NULL,
     "domain:bus:device.function, hexadecimal (str). Driver: cuDeviceGetPCIBusId.", NULL},
    {"compute_capability", device_get_compute_capability, NULL,
     "ComputeCapability(major, minor), a tuple of two ints with names. Driver: cuDeviceGetAttribute.", NULL},
    {"arch", device_get_arch, NULL, "The compute capability as compilers write it: '90' for 9.0 (str).", NULL},
    {"properties", device_get_properties, NULL,
     "DeviceProperties: every attribute of the device, by name; also a mapping.", NULL},
    {"context", device_get_context, NULL,
     "The device's primary Context, made at first need. Driver: cuDevicePrimaryCtxRetain.", NULL},
    {"default_stream", device_get_default_stream, NULL,
     "The device's default Stream: the legacy one, or the thread's own where the environment has\n"
     "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=1.",
     NULL},
    {"memory_resource", device_get_memory_resource, device_set_memory_resource,
     "The MemoryResource that allocate() takes memory from: a DeviceMemoryResource on the device's default pool, "
     "unless another one was set.",
     NULL},
    {"is_emulated", device_get_is_emulated, NULL, "True for the emulated device, which needs no GPU (bool).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef device_members[] = {
    {"device_id", T_INT, offsetof(device_object, ordinal), READONLY, "The device's number, from 0 (int)."},
    WEAKREF_MEMBER(device_object),
    {NULL, 0, 0, 0, NULL},
};

/* ---- traverse, clear, dealloc ----------------------------------------------------------------------------------- */

static int device_traverse(PyObject *op, visitproc visit, void *arg)
{
    device_object *self = device_cast(op);
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->context);
    Py_VISIT(self->default_stream);
    Py_VISIT(self->memory_resource);
    Py_VISIT(self->properties);
    Py_VISIT(self->compute_capability);
    return 0;
}

static int device_clear(PyObject *op)
{
    device_object *self = device_cast(op);
    Py_CLEAR(self->context);
    Py_CLEAR(self->default_stream);
    Py_CLEAR(self->memory_resource);
    Py_CLEAR(self->properties);
    Py_CLEAR(self->name);
    Py_CLEAR(self->uuid);
    Py_CLEAR(self->compute_capability);
    Py_CLEAR(self->arch);
    return 0;
}

static void device_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (device_cast(op)->weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    device_clear(op);
    while (device_cast(op)->frames != NULL) {
        device_frame *frame = device_cast(op)->frames;
        device_cast(op)->frames = frame->outer;
        free(frame);
    }
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(
    device_doc,
    "Device(device_id=None)\n--\n\n"
    "A CUDA device. There is one object a device: Device(0) is Device(0).\n\n"
    "device_id: the device's number (int), or a Device; None: the device that is current on this thread, else\n"
    "device 0. Raises ValueError where there is no such device.\n\n"
    "Everything made from a device acts on it, whatever device is current. `with Device(1):` makes it current\n"
    "for other libraries, and restores what was.");

static PyType_Slot device_slots[] = {
    {Py_tp_doc, (void *)device_doc},
    {Py_tp_new, device_new},
    {Py_tp_dealloc, device_dealloc},
    {Py_tp_traverse, device_traverse},
    {Py_tp_clear, device_clear},
    {Py_tp_repr, device_repr},
    {Py_tp_hash, device_hash},
    {Py_tp_richcompare, device_compare},
    {Py_nb_int, device_int},
    {Py_tp_methods, device_methods},
    {Py_tp_getset, device_attributes},
    {Py_tp_members, device_members},
    {0, NULL},
};

PyType_Spec device_spec = {
    .name = "cuda_core.Device",
    .basicsize = sizeof(device_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = device_slots,
};
