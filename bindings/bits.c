/* Arguments that export their bytes through the buffer protocol: scalars and arrays without dimensions of NumPy and
 * ml_dtypes, scalars and structures of ctypes. NumPy is not needed to know them. */
#include "arguments.h"

#include "errors.h"

static const char *skip_order(const char *format)
{
    return format[0] != '\0' && strchr("@=<>!|", format[0]) != NULL ? format + 1 : format;
}

/* One value of a host, in this machine's byte order: what its bits are. Formats as of the struct module, NumPy's 'Z'
 * and ctypes' 'P' and 'T{'. False where the bits mean nothing to a device. */
static bool type_of_format(const char *format, size_t size, cc_type *type)
{
    if (format == NULL) { /* exported without one, as the scalars of ml_dtypes are: short floats */
        *type = CC_TYPE_FLOAT;
        return true;
    }
    if ((format[0] == '>' || format[0] == '!') && size > 1)
        return false;
    const char *code = skip_order(format);
    switch (code[0]) {
    case '?':
    case 'c':
    case 'b':
    case 'B':
    case 'h':
    case 'H':
    case 'i':
    case 'I':
    case 'l':
    case 'L':
    case 'q':
    case 'Q':
    case 'n':
    case 'N':
        *type = CC_TYPE_INTEGER;
        return code[1] == '\0';
    case 'e':
    case 'f':
    case 'd':
        *type = CC_TYPE_FLOAT;
        return code[1] == '\0';
    case 'P':
        *type = CC_TYPE_POINTER;
        return code[1] == '\0';
    case 'Z': /* complex: a struct of two */
    case 'T':
        *type = CC_TYPE_BYTES;
        return true;
    default: /* "16x", "8s": NumPy's unstructured bytes */
        *type = CC_TYPE_BYTES;
        return code[0] >= '0' && code[0] <= '9' && (strchr(code, 'x') != NULL || strchr(code, 's') != NULL);
    }
}

/* 1 with a view, 0 where the object exports no bytes. Types of ml_dtypes have bytes but no format for them. */
static int get_view(PyObject *object, Py_buffer *view)
{
    if (!PyObject_CheckBuffer(object))
        return 0;
    if (PyObject_GetBuffer(object, view, PyBUF_FULL_RO) == 0)
        return 1;
    PyErr_Clear();
    if (PyObject_GetBuffer(object, view, PyBUF_STRIDED_RO) == 0)
        return 1;
    PyErr_Clear();
    return 0;
}

/* An array of ml_dtypes exports nothing, but has its bytes as tobytes(). 1 with bytes, 0 not of this kind, -1. */
static int get_bytes(PyObject *object, PyObject **bytes)
{
    PyObject *dimensions = PyObject_GetAttrString(object, "ndim");
    PyObject *kind = dimensions == NULL ? NULL : PyObject_GetAttrString(object, "dtype");
    const long count = kind == NULL ? -1 : PyLong_AsLong(dimensions);
    *bytes = count == 0 ? PyObject_CallMethod(object, "tobytes", NULL) : NULL;
    Py_XDECREF(kind);
    Py_XDECREF(dimensions);
    if (*bytes != NULL && PyBytes_Check(*bytes))
        return 1;
    Py_CLEAR(*bytes);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_TypeError))
        return -1;
    PyErr_Clear();
    return 0;
}

static int pack_typed(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, cc_type type,
                      const void *bits, Py_ssize_t size, void *slot)
{
    cc_error error;
    if (type == CC_TYPE_BYTES && parameter->type != CC_TYPE_BYTES && parameter->type != CC_TYPE_UNKNOWN)
        return argument_refuse(self, index, parameter, PyExc_TypeError, "a struct of %zd bytes cannot be passed", size);
    if (cc_pack_bits(parameter, type, bits, (size_t)size, slot, &error) < 0)
        return argument_refuse_error(self, index, &error);
    return 1;
}

/* NumPy packs the fields of a dtype, C++ aligns them. */
static int refuse_struct_size(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                              Py_ssize_t size)
{
    const int is_numpy = PyObject_HasAttrString(object, "dtype");
    return argument_refuse(self, index, parameter, PyExc_TypeError, "a struct of %zd bytes was given%s", size,
                           is_numpy ? " (numpy: dtype with align=True)" : "");
}

static int refuse_host_array(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object)
{
    if (parameter->type == CC_TYPE_BYTES)
        return argument_refuse(self, index, parameter, PyExc_TypeError,
                               "this %.100s is an array, not one value; pass array[0], or its bytes: array.tobytes()",
                               Py_TYPE(object)->tp_name);
    return argument_refuse(self, index, parameter, PyExc_TypeError,
                           "this %.100s is memory of the host; copy it to the device first: Buffer.copy_from",
                           Py_TYPE(object)->tp_name);
}

/* Host memory of several elements may still be of a kind that has a device's address, too. */
static int pack_several(arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object, void *slot)
{
    PyObject *interface = PyObject_GetAttr(object, self->state->str_cuda_array_interface);
    if (interface == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        return refuse_host_array(self, index, parameter, object);
    }
    Py_DECREF(interface);
    return argument_pack_array(self, index, parameter, object, slot);
}

int argument_pack_bits(arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object, void *slot)
{
    Py_buffer view;
    const int has_view = get_view(object, &view);
    if (has_view == 0) {
        PyObject *bytes;
        const int has_bytes = get_bytes(object, &bytes);
        if (has_bytes != 1)
            return has_bytes;
        const int status =
            pack_typed(self, index, parameter, CC_TYPE_FLOAT, PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes), slot);
        Py_DECREF(bytes);
        return status;
    }
    cc_type type;
    int status;
    if (view.ndim > 0)
        status = pack_several(self, index, parameter, object, slot);
    else if (!type_of_format(view.format, (size_t)view.itemsize, &type))
        status =
            argument_refuse(self, index, parameter, PyExc_TypeError,
                            "a %.100s of format '%s' means nothing to a device", Py_TYPE(object)->tp_name, view.format);
    else if (type == CC_TYPE_BYTES && parameter->type == CC_TYPE_BYTES && (size_t)view.len != parameter->size)
        status = refuse_struct_size(self, index, parameter, object, view.len);
    else
        status = pack_typed(self, index, parameter, type, view.buf, view.len, slot);
    PyBuffer_Release(&view);
    return status;
}

int argument_measure_bits(PyObject *object, cc_parameter *parameter)
{
    Py_buffer view;
    if (get_view(object, &view) == 0)
        return 0;
    cc_type type;
    if (view.ndim == 0 && type_of_format(view.format, (size_t)view.itemsize, &type)) {
        parameter->size = argument_size(view.len);
        parameter->type = type;
    }
    PyBuffer_Release(&view);
    return 0;
}
