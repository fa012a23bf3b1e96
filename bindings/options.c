#include "options.h"

#include <string.h>

void options_drop(PyObject **values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        Py_CLEAR(values[i]);
}

static PyObject *list_options(const char *const *names, size_t count)
{
    PyObject *text = PyUnicode_FromString(names[0]);
    for (size_t i = 1; text != NULL && i < count; i++) {
        PyObject *longer = PyUnicode_FromFormat("%U, %s", text, names[i]);
        Py_DECREF(text);
        text = longer;
    }
    return text;
}

/* "unexpected key 'a', 'b'": all of them at once. */
static int refuse_keys(PyObject *options, const char *class_name, const char *const *names, size_t count)
{
    PyObject *unknown = NULL;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(options, &at, &key, &value)) {
        size_t i = 0;
        while (i < count && !(PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, names[i]) == 0))
            i++;
        if (i < count)
            continue;
        PyObject *longer =
            unknown == NULL ? PyUnicode_FromFormat("%R", key) : PyUnicode_FromFormat("%U, %R", unknown, key);
        Py_XDECREF(unknown);
        unknown = longer;
        if (unknown == NULL)
            return -1;
    }
    if (unknown == NULL)
        return 0;
    PyObject *known = list_options(names, count);
    if (known != NULL)
        PyErr_Format(PyExc_TypeError, "%s got an unexpected option: %U; there are: %U", class_name, unknown, known);
    Py_XDECREF(known);
    Py_DECREF(unknown);
    return -1;
}

static int read_dictionary(PyObject *options, const char *class_name, const char *const *names, PyObject **values,
                           size_t count)
{
    PyObject *copy = PyDict_Copy(options); /* another thread may change the caller's own */
    int status = copy == NULL ? -1 : refuse_keys(copy, class_name, names, count);
    for (size_t i = 0; status == 0 && i < count; i++) {
        PyObject *key = PyUnicode_FromString(names[i]);
        values[i] = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(copy, key));
        Py_XDECREF(key);
        if (values[i] == NULL && PyErr_Occurred())
            status = -1;
    }
    Py_XDECREF(copy);
    return status;
}

static int read_attributes(PyObject *options, const char *class_name, const char *const *names, PyObject **values,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = PyObject_GetAttrString(options, names[i]);
        if (values[i] != NULL)
            continue;
        if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "options must be %s, a dict or None, not %.100s", class_name,
                         Py_TYPE(options)->tp_name);
        }
        return -1;
    }
    return 0;
}

int options_read(PyObject *options, const char *class_name, const char *const *names, PyObject **values, size_t count)
{
    memset(values, 0, count * sizeof *values);
    if (options == NULL || options == Py_None)
        return 0;
    const int status = PyDict_Check(options) ? read_dictionary(options, class_name, names, values, count)
                                             : read_attributes(options, class_name, names, values, count);
    if (status < 0) {
        options_drop(values, count);
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (values[i] == Py_None)
            Py_CLEAR(values[i]);
    }
    return 0;
}

int options_flag(PyObject *value, const char *class_name, const char *name, int otherwise)
{
    if (value == NULL)
        return otherwise;
    if (PyBool_Check(value))
        return value == Py_True;
    PyErr_Format(PyExc_TypeError, "%s.%s must be a bool, not %.100s", class_name, name, Py_TYPE(value)->tp_name);
    return -1;
}
