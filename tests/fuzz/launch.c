/* Between the bindings and core (the linker's --wrap): a kernel has the parameters that the input chooses, and a launch
 * is written down, byte for byte, in place of being run, while it is watched. */
#include "embed.h"

#include "cuda_core.h"

#include <string.h>

enum { MOST_PARAMETERS = 256, MOST_BYTES = 1 << 20 };

int __real_cc_launch(const cc_launch_config *config, cc_stream *stream, cc_kernel *kernel, void **slots,
                     cc_error *error);
int __wrap_cc_launch(const cc_launch_config *config, cc_stream *stream, cc_kernel *kernel, void **slots,
                     cc_error *error);
int __real_cc_kernel_signature(cc_kernel *kernel, const cc_signature **signature, cc_error *error);
int __wrap_cc_kernel_signature(cc_kernel *kernel, const cc_signature **signature, cc_error *error);

static cc_parameter parameters[MOST_PARAMETERS];
static cc_signature chosen;
static bool has_signature, is_watching;
static size_t sizes[MOST_PARAMETERS]; /* of what a watched launch passes */
static Py_ssize_t size_count;
static unsigned char passed[MOST_BYTES];
static bool was_launched;

void launch_reset(void)
{
    has_signature = is_watching = was_launched = false;
}

int __wrap_cc_kernel_signature(cc_kernel *kernel, const cc_signature **signature, cc_error *error)
{
    if (!has_signature)
        return __real_cc_kernel_signature(kernel, signature, error);
    *signature = &chosen;
    return 0;
}

int __wrap_cc_launch(const cc_launch_config *config, cc_stream *stream, cc_kernel *kernel, void **slots,
                     cc_error *error)
{
    if (!is_watching)
        return __real_cc_launch(config, stream, kernel, slots, error);
    size_t at = 0;
    for (Py_ssize_t i = 0; i < size_count; i++) {
        memcpy(passed + at, slots[i], sizes[i]);
        at += sizes[i];
    }
    was_launched = true;
    return 0;
}

static int read_parameter(PyObject *tuple, cc_parameter *parameter)
{
    int type;
    if (!PyArg_ParseTuple(tuple, "IIIi", &parameter->offset, &parameter->size, &parameter->align, &type))
        return -1;
    parameter->type = (cc_type)type;
    return 0;
}

static PyObject *set_signature(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *list;
    int is_known;
    if (!PyArg_ParseTuple(args, "pO!", &is_known, &PyList_Type, &list))
        return NULL;
    chosen = (cc_signature){.parameters = parameters, .is_known = is_known};
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list) && i < MOST_PARAMETERS; i++) {
        if (read_parameter(PyList_GET_ITEM(list, i), &parameters[i]) < 0)
            return NULL;
        chosen.count++;
        chosen.bytes = parameters[i].offset + parameters[i].size;
    }
    has_signature = true;
    Py_RETURN_NONE;
}

static PyObject *watch(PyObject *module, PyObject *list)
{
    (void)module;
    size_t total = 0;
    if (!PyList_Check(list) || PyList_GET_SIZE(list) > MOST_PARAMETERS) {
        PyErr_SetString(PyExc_ValueError, "a list of at most 256 sizes");
        return NULL;
    }
    size_count = PyList_GET_SIZE(list);
    for (Py_ssize_t i = 0; i < size_count; i++) {
        sizes[i] = PyLong_AsSize_t(PyList_GET_ITEM(list, i));
        if (PyErr_Occurred())
            return NULL;
        total += sizes[i];
    }
    if (total > MOST_BYTES) {
        PyErr_SetString(PyExc_ValueError, "more than a megabyte");
        return NULL;
    }
    is_watching = true;
    was_launched = false;
    Py_RETURN_NONE;
}

static PyObject *launched(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    is_watching = false;
    if (!was_launched)
        Py_RETURN_NONE;
    PyObject *list = PyList_New(size_count);
    size_t at = 0;
    for (Py_ssize_t i = 0; list != NULL && i < size_count; i++) {
        PyObject *bytes = PyBytes_FromStringAndSize((const char *)passed + at, (Py_ssize_t)sizes[i]);
        at += sizes[i];
        if (bytes == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, bytes);
    }
    return list;
}

PyMethodDef watch_functions[] = {
    {"signature", set_signature, METH_VARARGS,
     "signature(is_known, [(offset, size, align, cc_type), ...]): of the kernels made from now on"},
    {"watch", watch, METH_O, "watch(sizes): the next launch passes so many bytes each, and is not run"},
    {"launched", launched, METH_NOARGS, "launched(): what it passed, a list of bytes; None where nothing was launched"},
    {NULL, NULL, 0, NULL},
};
