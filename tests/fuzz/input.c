/* The bytes of an input, taken from the front. After the last one everything is 0, the simplest choice, so that a
 * prefix of an input is an input. */
#include "embed.h"

#include <string.h>

static const uint8_t *at, *end;

/* libFuzzer takes counters in this section as coverage: which choice was made where. Python itself is not instrumented.
 */
enum { CHOICES = 8192 };
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t choices[CHOICES];

void input_set(const uint8_t *data, size_t size)
{
    at = data;
    end = data + size;
}

static unsigned next(void)
{
    return at < end ? *at++ : 0;
}

static void count_choice(unsigned long value)
{
    PyFrameObject *frame = PyEval_GetFrame();
    PyCodeObject *code = frame == NULL ? NULL : PyFrame_GetCode(frame);
    if (code == NULL)
        return;
    const unsigned long place =
        (unsigned long)PyFrame_GetLineNumber(frame) * 131 + (unsigned long)PyUnicode_GET_LENGTH(code->co_filename) * 31;
    choices[(place + value) % CHOICES] = 1;
    Py_DECREF(code);
}

static PyObject *choice(PyObject *module, PyObject *argument)
{
    (void)module;
    const unsigned long count = PyLong_AsUnsignedLong(argument);
    if (count == (unsigned long)-1 && PyErr_Occurred())
        return NULL;
    if (count == 0 || count > 65536) {
        PyErr_SetString(PyExc_ValueError, "a choice is of 1 to 65536");
        return NULL;
    }
    unsigned long value = next();
    if (count > 256)
        value = value << 8 | next();
    value %= count;
    count_choice(value);
    return PyLong_FromUnsignedLong(value);
}

static PyObject *take(PyObject *module, PyObject *argument)
{
    (void)module;
    const Py_ssize_t wanted = PyLong_AsSsize_t(argument);
    if (wanted < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "negative");
        return NULL;
    }
    const Py_ssize_t size = wanted < end - at ? wanted : end - at;
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)at, size);
    at += size;
    return bytes;
}

static PyObject *left(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromSsize_t(end - at);
}

PyMethodDef input_functions[] = {
    {"choice", choice, METH_O, "choice(count): 0 to count - 1"},
    {"take", take, METH_O, "take(size): so many bytes, or those that are left"},
    {"left", left, METH_NOARGS, "left(): how many bytes are left"},
    {NULL, NULL, 0, NULL},
};
