/* One pass over the arguments of a launch. The kinds that programs pass most are told by their exact type, and cost a
 * compare and a store; all others go through pack_other. */
#include "arguments.h"

#include "buffer.h"
#include "errors.h"

#include <float.h>
#include <stdio.h>

#if PY_VERSION_HEX < 0x030B0000
#include <longintrepr.h>
#endif

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void describe(const cc_parameter *parameter, char *text, size_t size)
{
    const char *article = parameter->size == 8 ? "an" : "a";
    switch (parameter->type) {
    case CC_TYPE_POINTER:
        snprintf(text, size, "a pointer");
        return;
    case CC_TYPE_INTEGER: /* PTX does not always say that 8 bytes are a pointer */
        snprintf(text, size, "%s %u-byte integer%s", article, parameter->size,
                 parameter->size == sizeof(CUdeviceptr) ? " or pointer" : "");
        return;
    case CC_TYPE_FLOAT:
        snprintf(text, size, "%s %u-byte float", article, parameter->size);
        return;
    case CC_TYPE_BYTES:
        snprintf(text, size, "a struct of %u bytes", parameter->size);
        return;
    case CC_TYPE_UNKNOWN:
        break;
    }
    snprintf(text, size, "%u bytes", parameter->size);
}

int argument_refuse(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *exception,
                    const char *format, ...)
{
    if (PyErr_Occurred())
        return -1;
    va_list values;
    va_start(values, format);
    PyObject *text = PyUnicode_FromFormatV(format, values);
    va_end(values);
    if (text == NULL)
        return -1;
    char kind[64];
    describe(parameter, kind, sizeof kind);
    PyErr_Format(exception, "kernel %U, argument %zd (%s): %U", self->kernel->name, index, kind, text);
    Py_DECREF(text);
    return -1;
}

int argument_refuse_error(const arguments *self, Py_ssize_t index, cc_error *error)
{
    PyObject *prefix = PyUnicode_FromFormat("kernel %U, argument %zd", self->kernel->name, index);
    const char *text = prefix == NULL ? NULL : PyUnicode_AsUTF8(prefix);
    raise_error_about(self->state, error, text);
    Py_XDECREF(prefix);
    return -1;
}

static int refuse_count(const arguments *self, uint32_t wanted, Py_ssize_t given)
{
    PyErr_Format(PyExc_TypeError, "kernel %U takes %u argument%s, got %zd", self->kernel->name, wanted,
                 wanted == 1 ? "" : "s", given);
    return -1;
}

/* ---- one argument ------------------------------------------------------------------------------------------------ */

static int pack_pointer(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, CUdeviceptr pointer,
                        void *slot)
{
    cc_error error;
    if (cc_pack_pointer(parameter, pointer, slot, &error) < 0)
        return argument_refuse_error(self, index, &error);
    return 0;
}

/* Only where there are several devices: a kernel that touches memory it may not use takes its context with it. */
static int check_placement(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, cc_buffer *buffer)
{
    cc_error error;
    cc_placement placement;
    bool usable;
    if (cc_buffer_usable_on(buffer, self->device, &usable, &error) < 0 ||
        (!usable && cc_buffer_placement(buffer, &placement, &error) < 0))
        return argument_refuse_error(self, index, &error);
    if (usable)
        return 0;
    return argument_refuse(self, index, parameter, PyExc_ValueError,
                           "this Buffer is on device %d, and the kernel runs on device %d, which may not use it; copy "
                           "it, or open its pool to that device: DeviceMemoryResource.peer_accessible_by",
                           placement.device, cc_device_ordinal(self->device));
}

/* Memory of others may be the host's. A Buffer closed meanwhile is refused as such by pack_buffer. */
static int check_reach(arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object)
{
    self->ran_python = true;
    const int reaches = buffer_reaches_kernels(object);
    if (reaches == 0)
        return argument_refuse(self, index, parameter, PyExc_TypeError,
                               "this %.100s is memory of the host; copy it to the device first: Buffer.copy_from",
                               Py_TYPE(object)->tp_name);
    if (reaches < 0 && !PyErr_ExceptionMatches(self->state->ClosedError))
        return -1;
    PyErr_Clear();
    return 0;
}

static int pack_buffer(arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object, void *slot)
{
    const buffer_object *buffer = buffer_cast(object);
    if (!__atomic_load_n(&buffer->kernels_may_use, __ATOMIC_RELAXED) && buffer->pointer != 0 &&
        check_reach(self, index, parameter, object) < 0)
        return -1;
    cc_buffer *core = buffer_pin(object);
    int status;
    if (core == NULL)
        return argument_refuse(self, index, parameter, self->state->ClosedError, "this Buffer was closed");
    self->pinned[self->pinned_count++] = object;
    if (parameter->size == sizeof(CUdeviceptr) &&
        (parameter->type == CC_TYPE_POINTER || parameter->type == CC_TYPE_INTEGER)) {
        memcpy(slot, &buffer->pointer, sizeof(CUdeviceptr));
        status = 0;
    } else {
        status = pack_pointer(self, index, parameter, buffer->pointer, slot);
    }
    if (status == 0 && self->state->device_count > 1)
        status = check_placement(self, index, parameter, core);
    return status;
}

/* An int that needs more than 63 bits. */
static int pack_wide(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *number, int sign,
                     void *slot)
{
    cc_error error;
    if (parameter->type == CC_TYPE_FLOAT) {
        const double value = PyLong_AsDouble(number);
        if (value == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return argument_refuse(self, index, parameter, PyExc_OverflowError, "the int is too large");
        }
        return cc_pack_double(parameter, value, slot, &error) < 0 ? argument_refuse_error(self, index, &error) : 0;
    }
    if (sign > 0) {
        const unsigned long long value = PyLong_AsUnsignedLongLong(number);
        if (value != (unsigned long long)-1 || !PyErr_Occurred())
            return cc_pack_unsigned(parameter, value, slot, &error) < 0 ? argument_refuse_error(self, index, &error)
                                                                        : 0;
        PyErr_Clear();
    }
    return argument_refuse(self, index, parameter, PyExc_OverflowError, "the int does not fit");
}

/* number: an int or of a subclass */
static int pack_int(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *number,
                    void *slot)
{
    cc_error error;
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow != 0)
        return pack_wide(self, index, parameter, number, overflow, slot);
    return cc_pack_signed(parameter, value, slot, &error) < 0 ? argument_refuse_error(self, index, &error) : 0;
}

/* The ints of most launches, without a call: those of one digit fit every integer of 4 or 8 bytes. */
static inline bool store_small_int(const cc_parameter *parameter, PyObject *number, void *slot)
{
    if (parameter->type != CC_TYPE_INTEGER)
        return false;
#if PY_VERSION_HEX >= 0x030C0000
    const PyLongObject *object = (const PyLongObject *)number;
    if (!PyUnstable_Long_IsCompact(object))
        return false;
    const int64_t value = PyUnstable_Long_CompactValue(object);
#else
    const Py_ssize_t digits = Py_SIZE(number);
    if (digits < -1 || digits > 1)
        return false;
    const int64_t value = digits == 0 ? 0 : digits * (int64_t)((const PyLongObject *)number)->ob_digit[0];
#endif
    if (parameter->size == 4)
        memcpy(slot, &value, 4); /* little-endian, like every CUDA host */
    else if (parameter->size == 8)
        memcpy(slot, &value, 8);
    else
        return false;
    return true;
}

/* Floats that need no care: infinities and what is beyond a float go through core. */
static inline bool store_plain_float(const cc_parameter *parameter, double value, void *slot)
{
    if (parameter->type != CC_TYPE_FLOAT)
        return false;
    if (parameter->size == 8) {
        memcpy(slot, &value, 8);
        return true;
    }
    if (parameter->size != 4 || !(value >= -FLT_MAX && value <= FLT_MAX))
        return false;
    const float narrow = (float)value;
    memcpy(slot, &narrow, 4);
    return true;
}

static int pack_float(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, double value, void *slot)
{
    cc_error error;
    if (parameter->type == CC_TYPE_BYTES && parameter->size == 2) /* what PTX says of a half */
        return argument_refuse(self, index, parameter, PyExc_TypeError,
                               "a float was given; for a half pass numpy.float16(value), for a struct bytes");
    return cc_pack_double(parameter, value, slot, &error) < 0 ? argument_refuse_error(self, index, &error) : 0;
}

static int pack_complex(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                        void *slot)
{
    cc_error error;
    const Py_complex value = PyComplex_AsCComplex(object);
    return cc_pack_complex(parameter, value.real, value.imag, slot, &error) < 0
               ? argument_refuse_error(self, index, &error)
               : 0;
}

static int pack_bytes(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                      void *slot)
{
    cc_error error;
    if (parameter->type != CC_TYPE_BYTES && parameter->type != CC_TYPE_UNKNOWN)
        return argument_refuse(self, index, parameter, PyExc_TypeError,
                               "bytes are passed only as a struct by value; if a pointer is meant, they are memory of "
                               "the host: copy them to the device first, Buffer.copy_from");
    return cc_pack_bits(parameter, CC_TYPE_BYTES, PyBytes_AS_STRING(object), (size_t)PyBytes_GET_SIZE(object), slot,
                        &error) < 0
               ? argument_refuse_error(self, index, &error)
               : 0;
}

static int pack_index(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                      void *slot)
{
    PyObject *number = PyNumber_Index(object);
    if (number == NULL)
        return -1;
    const int status = pack_int(self, index, parameter, number, slot);
    Py_DECREF(number);
    return status;
}

static int pack_other(arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object, void *slot)
{
    if (object == Py_None)
        return pack_pointer(self, index, parameter, 0, slot);
    if (PyLong_Check(object)) /* bool and IntEnum, too */
        return pack_int(self, index, parameter, object, slot);
    if (PyComplex_CheckExact(object))
        return pack_complex(self, index, parameter, object, slot);
    if (PyBytes_Check(object))
        return pack_bytes(self, index, parameter, object, slot);
    if (PyObject_TypeCheck(object, self->state->buffer_type))
        return pack_buffer(self, index, parameter, object, slot);
    self->ran_python = true;
    int status = PyUnicode_Check(object) ? 0 : argument_pack_bits(self, index, parameter, object, slot);
    if (status == 0 && !PyUnicode_Check(object))
        status = argument_pack_array(self, index, parameter, object, slot);
    if (status != 0)
        return status < 0 ? -1 : 0;
    if (PyFloat_Check(object)) /* NumPy's double went the way of its bytes */
        return pack_float(self, index, parameter, PyFloat_AS_DOUBLE(object), slot);
    if (PyComplex_Check(object))
        return pack_complex(self, index, parameter, object, slot);
    if (PyIndex_Check(object))
        return pack_index(self, index, parameter, object, slot);
    return argument_refuse(self, index, parameter, PyExc_TypeError, "%.100s cannot be passed to a kernel",
                           Py_TYPE(object)->tp_name);
}

static inline int pack_one(arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                           void *slot)
{
    const PyTypeObject *type = Py_TYPE(object);
    if (type == self->state->buffer_type)
        return pack_buffer(self, index, parameter, object, slot);
    if (type == &PyLong_Type) {
        if (store_small_int(parameter, object, slot))
            return 0;
        return pack_int(self, index, parameter, object, slot);
    }
    if (type == &PyFloat_Type) {
        if (store_plain_float(parameter, PyFloat_AS_DOUBLE(object), slot))
            return 0;
        return pack_float(self, index, parameter, PyFloat_AS_DOUBLE(object), slot);
    }
    return pack_other(self, index, parameter, object, slot);
}

/* ---- a kernel whose parameters are not known --------------------------------------------------------------------- */

/* What the argument is by itself: 8 bytes for int, float and pointers, otherwise its own size. */
static int guess_parameter(const arguments *self, PyObject *object, cc_parameter *parameter)
{
    *parameter = (cc_parameter){.size = 8, .align = 8, .type = CC_TYPE_UNKNOWN};
    if (PyBool_Check(object)) {
        *parameter = (cc_parameter){.size = 1, .align = 1, .type = CC_TYPE_INTEGER};
    } else if (PyFloat_CheckExact(object)) {
        parameter->type = CC_TYPE_FLOAT;
    } else if (PyComplex_CheckExact(object)) {
        *parameter = (cc_parameter){.size = 16, .align = 8, .type = CC_TYPE_BYTES};
    } else if (PyBytes_Check(object)) {
        parameter->size = argument_size(PyBytes_GET_SIZE(object));
        parameter->type = CC_TYPE_BYTES;
    } else if (object != Py_None && !PyLong_Check(object) && !PyObject_TypeCheck(object, self->state->buffer_type)) {
        return argument_measure_bits(object, parameter);
    }
    return 0;
}

/* What an argument ran while it was packed may have closed a Buffer packed before it. */
static int check_still_open(const arguments *self, const cc_parameter *parameters, PyObject *const *args,
                            Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!buffer_check(self->state, args[i]))
            continue;
        cc_buffer *core = buffer_hold(args[i]);
        if (core == NULL) {
            PyErr_Clear();
            return argument_refuse(self, i, &parameters[i], self->state->ClosedError,
                                   "this Buffer was closed while the arguments were read");
        }
        cc_buffer_release(core);
    }
    return 0;
}

static int reserve(arguments *self, size_t count, size_t bytes)
{
    self->ran_python = false;
    self->heap = NULL;
    self->pinned_count = 0;
    self->exports = NULL;
    self->pinned = self->inline_pinned;
    self->slots = self->inline_slots;
    self->bytes = self->inline_bytes;
    if (count <= ARGUMENTS_INLINE && bytes <= ARGUMENT_BYTES_INLINE)
        return 0;
    const size_t slots_size = (count * sizeof(void *) + 15) & ~(size_t)15;
    self->heap = PyMem_Malloc(2 * slots_size + bytes);
    if (self->heap == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->slots = self->heap;
    self->pinned = (PyObject **)((unsigned char *)self->heap + slots_size);
    self->bytes = (unsigned char *)self->heap + 2 * slots_size;
    return 0;
}

static int refuse_bytes(const arguments *self, Py_ssize_t index)
{
    PyErr_Format(PyExc_ValueError,
                 "kernel %U, argument %zd: with it the arguments take more than the %d bytes that a "
                 "kernel can take",
                 self->kernel->name, index, ARGUMENT_BYTES_MOST);
    return -1;
}

/* The slots are aligned to 16 bytes each, which 32 bits hold: without the alignment they take ARGUMENT_BYTES_MOST. */
static int pack_by_kind(arguments *self, PyObject *const *args, Py_ssize_t count)
{
    cc_parameter *parameters = PyMem_Calloc((size_t)count + 1, sizeof *parameters);
    if (parameters == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    uint32_t bytes = 0;
    size_t taken = 0;
    int status = 0;
    for (Py_ssize_t i = 0; status >= 0 && i < count; i++) {
        status = guess_parameter(self, args[i], &parameters[i]);
        taken += parameters[i].size;
        if (status >= 0 && taken > ARGUMENT_BYTES_MOST)
            status = refuse_bytes(self, i);
        if (status < 0)
            break;
        parameters[i].offset = bytes;
        bytes += (parameters[i].size + 15u) & ~15u;
    }
    if (status >= 0)
        status = reserve(self, (size_t)count, bytes);
    for (Py_ssize_t i = 0; status >= 0 && i < count; i++) {
        self->slots[i] = self->bytes + parameters[i].offset;
        status = pack_one(self, i, &parameters[i], args[i], self->slots[i]);
        if (status >= 0 && i + 1 == count && self->ran_python)
            status = check_still_open(self, parameters, args, count);
        if (status < 0)
            arguments_free(self, false);
    }
    PyMem_Free(parameters);
    return status < 0 ? -1 : 0;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

int arguments_pack(arguments *self, PyObject *const *args, Py_ssize_t count)
{
    const cc_signature *signature = kernel_signature(self->state, self->kernel);
    if (signature == NULL)
        return -1;
    if (!signature->is_known)
        return pack_by_kind(self, args, count);
    if (count != (Py_ssize_t)signature->count)
        return refuse_count(self, signature->count, count);
    if (reserve(self, signature->count, signature->bytes) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        const cc_parameter *parameter = &signature->parameters[i];
        self->slots[i] = self->bytes + parameter->offset;
        if (pack_one(self, i, parameter, args[i], self->slots[i]) < 0) {
            arguments_free(self, false);
            return -1;
        }
    }
    if (self->ran_python && check_still_open(self, signature->parameters, args, count) < 0) {
        arguments_free(self, false);
        return -1;
    }
    return 0;
}

/* Giving a tensor back may run Python. */
static void drop_exports(arguments *self)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_CLEAR(self->exports);
    PyErr_Restore(type, value, traceback);
}

void arguments_free(arguments *self, bool is_queued)
{
    for (Py_ssize_t i = 0; i < self->pinned_count; i++) {
        if (is_queued)
            cc_buffer_used_on(buffer_cast(self->pinned[i])->owned, self->stream);
        buffer_unpin(self->pinned[i]);
    }
    if (self->exports != NULL)
        drop_exports(self);
    if (self->heap != NULL)
        PyMem_Free(self->heap);
}
