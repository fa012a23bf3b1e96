/* Arrays of other libraries as arguments: a kernel gets their pointer. DLPack goes first, since it tells the device and
 * orders the producer's work with the stream; __cuda_array_interface__ is for those that have nothing else. */
#include "arguments.h"

#include "dlpack.h"
#include "errors.h"

/* 1 with a new reference, 0 where there is no such attribute, -1 with what reading it raised. */
static int find_attribute(PyObject *object, PyObject *name, PyObject **value)
{
    *value = PyObject_GetAttr(object, name);
    if (*value != NULL)
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
        return -1;
    PyErr_Clear();
    return 0;
}

/* What a value that is no number raised gives way to a refusal that says more; all else stays, and argument_refuse
 * keeps it. */
static void forget_wrong_value(void)
{
    if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError) ||
        PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_Clear();
}

static int pack_address(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, CUdeviceptr pointer,
                        void *slot)
{
    cc_error error;
    if (cc_pack_pointer(parameter, pointer, slot, &error) < 0)
        return argument_refuse_error(self, index, &error);
    return 1;
}

static int refuse_device(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                         long device)
{
    return argument_refuse(self, index, parameter, PyExc_ValueError,
                           "this %.100s is on device %ld, the kernel runs on device %d; copy it there first",
                           Py_TYPE(object)->tp_name, device, cc_device_ordinal(self->device));
}

static int refuse_host(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object)
{
    return argument_refuse(self, index, parameter, PyExc_TypeError,
                           "this %.100s is memory of the host; copy it to the device first: Buffer.copy_from",
                           Py_TYPE(object)->tp_name);
}

static int refuse_strides(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object)
{
    return argument_refuse(
        self, index, parameter, PyExc_ValueError,
        "this %.100s is not contiguous, and a kernel is given only a pointer; pass a contiguous copy",
        Py_TYPE(object)->tp_name);
}

/* A kernel that touches memory it may not use takes its context with it, so the driver is asked what the address is. A
 * device that reads pageable memory takes the host's addresses, too. */
static int check_address(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                         CUdeviceptr pointer)
{
    cc_error error;
    cc_placement placement;
    int reads_pageable = 0;
    char text[24];
    if (cc_pointer_placement(pointer, &placement, &error) < 0)
        return argument_refuse_error(self, index, &error);
    if (placement.device_accessible) {
        if (placement.device < 0 || placement.device == cc_device_ordinal(self->device) || placement.host_accessible)
            return 0;
        return refuse_device(self, index, parameter, object, placement.device);
    }
    if (pointer != 0 &&
        cc_device_attribute(self->device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, &reads_pageable, &error) < 0)
        return argument_refuse_error(self, index, &error);
    if (reads_pageable)
        return 0;
    return argument_refuse(self, index, parameter, PyExc_ValueError,
                           "this %.100s says that its memory is at %s, which is no memory that the device can use",
                           Py_TYPE(object)->tp_name, address_text(pointer, text));
}

/* Whether elements lie one after the other, the last dimension (`first` 0) or the first one varying fastest. */
static bool is_dense(const int64_t *shape, const int64_t *strides, int count, int64_t unit, bool first_fastest)
{
    int64_t expected = unit;
    for (int k = 0; k < count; k++) {
        const int i = first_fastest ? k : count - 1 - k;
        if (shape[i] != 1 && strides[i] != expected)
            return false;
        if (__builtin_mul_overflow(expected, shape[i], &expected)) /* more than any memory */
            return false;
    }
    return true;
}

/* Of such an array no address is used. */
static bool is_empty(const int64_t *shape, int count)
{
    for (int i = 0; i < count; i++) {
        if (shape[i] == 0)
            return true;
    }
    return false;
}

static bool is_contiguous(const int64_t *shape, const int64_t *strides, int count, int64_t unit)
{
    return is_empty(shape, count) || is_dense(shape, strides, count, unit, false) ||
           is_dense(shape, strides, count, unit, true);
}

/* ---- DLPack ------------------------------------------------------------------------------------------------------ */

/* 1 where a kernel on the launch's device may use the memory. */
static int check_dlpack_device(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                               long *type)
{
    PyObject *pair = PyObject_CallMethodNoArgs(object, self->state->str_dlpack_device);
    if (pair == NULL)
        return -1;
    long id;
    const int read = PyTuple_Check(pair) && PyArg_ParseTuple(pair, "ll", type, &id);
    Py_DECREF(pair);
    if (!read) {
        forget_wrong_value();
        return argument_refuse(self, index, parameter, PyExc_TypeError,
                               "__dlpack_device__ of %.100s must return a tuple of two ints", Py_TYPE(object)->tp_name);
    }
    if (*type == DLPACK_CPU)
        return refuse_host(self, index, parameter, object);
    if (*type != DLPACK_CUDA && *type != DLPACK_CUDA_HOST && *type != DLPACK_CUDA_MANAGED)
        return argument_refuse(self, index, parameter, PyExc_TypeError,
                               "this %.100s is on a device that is not CUDA's (DLPack type %ld)",
                               Py_TYPE(object)->tp_name, *type);
    if (*type == DLPACK_CUDA && id != cc_device_ordinal(self->device))
        return refuse_device(self, index, parameter, object, id);
    return 1;
}

/* The capsule; new reference. Producers that know no versions yet are asked again without one. */
static PyObject *export_dlpack(const arguments *self, PyObject *method, bool with_stream)
{
    /* 1 is the legacy default stream; 0 is not allowed, being ambiguous. */
    const uintptr_t native = (uintptr_t)cc_stream_native(self->stream);
    PyObject *stream = with_stream ? PyLong_FromSize_t(native == 0 ? 1 : native) : Py_NewRef(Py_None);
    PyObject *keywords =
        stream == NULL ? NULL
                       : Py_BuildValue("{s:O,s:(ii)}", "stream", stream, "max_version", DLPACK_MAJOR, DLPACK_MINOR);
    PyObject *none = keywords == NULL ? NULL : PyTuple_New(0);
    PyObject *capsule = none == NULL ? NULL : PyObject_Call(method, none, keywords);
    if (capsule == NULL && none != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        if (PyDict_DelItemString(keywords, "max_version") == 0)
            capsule = PyObject_Call(method, none, keywords);
    }
    Py_XDECREF(none);
    Py_XDECREF(keywords);
    Py_XDECREF(stream);
    return capsule;
}

static const dlpack_tensor *tensor_of(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        const dlpack_versioned *versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        return versioned->major == DLPACK_MAJOR ? &versioned->tensor : NULL;
    }
    if (PyCapsule_IsValid(capsule, "dltensor"))
        return &((const dlpack_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->tensor;
    return NULL;
}

static bool is_sound(const dlpack_tensor *tensor)
{
    if (tensor->dimensions < 0 || (tensor->dimensions > 0 && tensor->shape == NULL))
        return false;
    for (int32_t i = 0; i < tensor->dimensions; i++) {
        if (tensor->shape[i] < 0)
            return false;
    }
    return true;
}

static int pack_tensor_address(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                               const dlpack_tensor *tensor, void *slot)
{
    CUdeviceptr address;
    if (__builtin_add_overflow((CUdeviceptr)(uintptr_t)tensor->data, tensor->byte_offset, &address))
        return argument_refuse(self, index, parameter, PyExc_ValueError,
                               "__dlpack__ of %.100s returned a tensor that begins beyond all memory",
                               Py_TYPE(object)->tp_name);
    if (!is_empty(tensor->shape, tensor->dimensions) && check_address(self, index, parameter, object, address) < 0)
        return -1;
    return pack_address(self, index, parameter, address, slot);
}

/* Takes over the capsule; -1 with an exception. */
static int keep_export(arguments *self, PyObject *capsule)
{
    if (self->exports == NULL)
        self->exports = PyList_New(0);
    const int status = self->exports == NULL ? -1 : PyList_Append(self->exports, capsule);
    Py_DECREF(capsule);
    return status;
}

static int pack_dlpack(arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                       PyObject *method, void *slot)
{
    long type;
    if (check_dlpack_device(self, index, parameter, object, &type) < 0)
        return -1;
    /* The capsule is not consumed: dropping it gives the tensor back, which waits until the kernel is queued, since
     * another thread may make `object` let go of its memory. */
    PyObject *capsule = export_dlpack(self, method, type != DLPACK_CUDA_HOST);
    if (capsule == NULL || keep_export(self, capsule) < 0)
        return -1;
    const dlpack_tensor *tensor = tensor_of(capsule);
    int status;
    if (tensor == NULL)
        status = argument_refuse(self, index, parameter, PyExc_TypeError,
                                 "__dlpack__ of %.100s returned no tensor of DLPack %d", Py_TYPE(object)->tp_name,
                                 DLPACK_MAJOR);
    else if (!is_sound(tensor))
        status =
            argument_refuse(self, index, parameter, PyExc_ValueError,
                            "__dlpack__ of %.100s returned a tensor whose shape is none", Py_TYPE(object)->tp_name);
    else if (tensor->device.type != type ||
             (type == DLPACK_CUDA && tensor->device.id != cc_device_ordinal(self->device)))
        status = argument_refuse(self, index, parameter, PyExc_ValueError,
                                 "__dlpack__ of %.100s returned a tensor of DLPack device (%d, %d), and "
                                 "__dlpack_device__ told another",
                                 Py_TYPE(object)->tp_name, (int)tensor->device.type, (int)tensor->device.id);
    else if (tensor->strides != NULL && !is_contiguous(tensor->shape, tensor->strides, tensor->dimensions, 1))
        status = refuse_strides(self, index, parameter, object);
    else
        status = pack_tensor_address(self, index, parameter, object, tensor, slot);
    return status;
}

/* ---- __cuda_array_interface__ ------------------------------------------------------------------------------------ */

enum { MOST_DIMENSIONS = 64, NEWEST_INTERFACE = 3 };

/* What the dictionary holds; NULL where it has no such key. Borrowed from a dictionary that nobody changes. */
typedef struct interface_fields {
    PyObject *shape, *type, *data, *version, *strides, *stream, *mask;
} interface_fields;

static int read_fields(PyObject *interface, interface_fields *fields)
{
    const struct {
        const char *name;
        PyObject **value;
    } wanted[] = {
        {"shape", &fields->shape},     {"typestr", &fields->type},    {"data", &fields->data},
        {"version", &fields->version}, {"strides", &fields->strides}, {"stream", &fields->stream},
        {"mask", &fields->mask},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        PyObject *name = PyUnicode_FromString(wanted[i].name);
        if (name == NULL)
            return -1;
        *wanted[i].value = PyDict_GetItemWithError(interface, name);
        Py_DECREF(name);
        if (*wanted[i].value == NULL && PyErr_Occurred()) /* what comparing a key raised */
            return -1;
    }
    return 0;
}

/* The number of ints in a tuple, or -1 where it is no such tuple. */
static int read_tuple(PyObject *tuple, int64_t values[MOST_DIMENSIONS])
{
    if (tuple == NULL || !PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > MOST_DIMENSIONS)
        return -1;
    const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    for (Py_ssize_t i = 0; i < count; i++) {
        values[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if (values[i] == -1 && PyErr_Occurred()) {
            forget_wrong_value();
            return -1;
        }
    }
    return (int)count;
}

/* Bytes of an element: the number in "<f4". 0 where that is no type whose values a device can use. */
static int64_t item_size(PyObject *type)
{
    const char *text = type != NULL && PyUnicode_Check(type) ? PyUnicode_AsUTF8(type) : NULL;
    if (text == NULL) {
        if (PyErr_Occurred())
            forget_wrong_value();
        return 0;
    }
    const size_t length = strlen(text);
    if (length < 3 || length > 11 || strchr("<>|=", text[0]) == NULL || strchr("biufcmMSV", text[1]) == NULL ||
        strspn(text + 2, "0123456789") != length - 2)
        return 0;
    return strtoll(text + 2, NULL, 10);
}

/* What is refused whatever the memory is. */
static int check_interface(const arguments *self, Py_ssize_t index, const cc_parameter *parameter,
                           const interface_fields *fields)
{
    const int is_int = fields->version != NULL && PyLong_Check(fields->version);
    int overflow;
    const long version = is_int ? PyLong_AsLongAndOverflow(fields->version, &overflow) : -1;
    if (!is_int || version < 0 || version > NEWEST_INTERFACE)
        return argument_refuse(self, index, parameter, PyExc_TypeError,
                               "'version' of __cuda_array_interface__ must be an int from 0 to %d", NEWEST_INTERFACE);
    if (item_size(fields->type) == 0)
        return argument_refuse(self, index, parameter, PyExc_TypeError,
                               "'typestr' of __cuda_array_interface__ must be a type such as '<f4'");
    if (fields->mask != NULL && fields->mask != Py_None)
        return argument_refuse(self, index, parameter, PyExc_ValueError,
                               "this array has a mask, which a kernel does not see; pass its data without one");
    return 0;
}

typedef enum layout { NO_LAYOUT = -1, SCATTERED, CONTIGUOUS, EMPTY } layout;

static layout layout_of_interface(const interface_fields *fields)
{
    int64_t shape[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];
    const int count = read_tuple(fields->shape, shape);
    for (int i = 0; i < count; i++) {
        if (shape[i] < 0)
            return NO_LAYOUT;
    }
    const bool has_strides = fields->strides != NULL && fields->strides != Py_None;
    if (count < 0 || (has_strides && read_tuple(fields->strides, strides) != count))
        return NO_LAYOUT;
    if (is_empty(shape, count))
        return EMPTY;
    return !has_strides || is_contiguous(shape, strides, count, item_size(fields->type)) ? CONTIGUOUS : SCATTERED;
}

static int read_interface_pointer(const arguments *self, Py_ssize_t index, const cc_parameter *parameter,
                                  PyObject *data, CUdeviceptr *pointer)
{
    uint64_t address;
    if (data == NULL || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) < 1)
        return argument_refuse(self, index, parameter, PyExc_TypeError,
                               "'data' of __cuda_array_interface__ must be a tuple (address, read only)");
    if (address_from_object(PyTuple_GET_ITEM(data, 0), "", &address) < 0) {
        forget_wrong_value();
        return argument_refuse(self, index, parameter, PyExc_TypeError,
                               "the address in __cuda_array_interface__ must be an int, not %R",
                               PyTuple_GET_ITEM(data, 0));
    }
    *pointer = (CUdeviceptr)address;
    return 0;
}

/* Later work of the launch's stream waits for what the producer has queued, as version 3 of the interface asks. */
static int wait_for_producer(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *stream)
{
    uint64_t native;
    if (stream == NULL || stream == Py_None)
        return 0;
    if (address_from_object(stream, "", &native) < 0) {
        forget_wrong_value();
        return argument_refuse(self, index, parameter, PyExc_TypeError,
                               "the stream in __cuda_array_interface__ must be an int or None, not %R", stream);
    }
    if ((CUstream)(uintptr_t)native == cc_stream_native(self->stream))
        return 0;
    cc_error error;
    cc_stream *producer;
    if (cc_stream_wrap((CUstream)(uintptr_t)native, NULL, NULL, NULL, &producer, &error) < 0)
        return argument_refuse_error(self, index, &error);
    const int status = cc_stream_wait_stream(self->stream, producer, &error);
    cc_stream_release(producer);
    return status < 0 ? argument_refuse_error(self, index, &error) : 0;
}

static int pack_interface_copy(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                               PyObject *interface, void *slot)
{
    CUdeviceptr pointer = 0;
    interface_fields fields;
    if (read_fields(interface, &fields) < 0 ||
        read_interface_pointer(self, index, parameter, fields.data, &pointer) < 0)
        return -1;
    const layout how = layout_of_interface(&fields);
    if (how == NO_LAYOUT)
        return argument_refuse(
            self, index, parameter, PyExc_TypeError,
            "shape and strides of __cuda_array_interface__ must be tuples of as many ints, shape's not negative");
    if (check_interface(self, index, parameter, &fields) < 0)
        return -1;
    if (how == SCATTERED)
        return refuse_strides(self, index, parameter, object);
    if ((how != EMPTY && check_address(self, index, parameter, object, pointer) < 0) ||
        wait_for_producer(self, index, parameter, fields.stream) < 0)
        return -1;
    return pack_address(self, index, parameter, pointer, slot);
}

static int pack_interface(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                          PyObject *interface, void *slot)
{
    if (!PyDict_Check(interface))
        return argument_refuse(self, index, parameter, PyExc_TypeError,
                               "__cuda_array_interface__ of %.100s must be a dict", Py_TYPE(object)->tp_name);
    PyObject *copy = PyDict_Copy(interface); /* another thread, or __index__ of a value, may change the array's own */
    const int status = copy == NULL ? -1 : pack_interface_copy(self, index, parameter, object, copy, slot);
    Py_XDECREF(copy);
    return status;
}

/* ---- either ------------------------------------------------------------------------------------------------------ */

int argument_pack_array(arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object, void *slot)
{
    if (PyType_Check(object)) /* a class has the attributes of its instances */
        return 0;
    PyObject *found;
    int status = find_attribute(object, self->state->str_dlpack, &found);
    if (status == 1) {
        status = pack_dlpack(self, index, parameter, object, found, slot);
    } else if (status == 0) {
        status = find_attribute(object, self->state->str_cuda_array_interface, &found);
        if (status == 1)
            status = pack_interface(self, index, parameter, object, found, slot);
    }
    Py_XDECREF(found);
    return status;
}
