#include "errors.h"

#include <string.h>

/* ---- making the exceptions -------------------------------------------------------------------------------------- */

/* A class attribute of value None for each name: instances that core's errors make set their own. */
static PyObject *none_attributes(const char *names)
{
    PyObject *text = PyUnicode_FromString(names);
    PyObject *list = text == NULL ? NULL : PyUnicode_Split(text, NULL, -1);
    Py_XDECREF(text);
    PyObject *attributes = list == NULL ? NULL : PyDict_New();
    for (Py_ssize_t i = 0; attributes != NULL && i < PyList_GET_SIZE(list); i++) {
        if (PyDict_SetItem(attributes, PyList_GET_ITEM(list, i), Py_None) < 0)
            Py_CLEAR(attributes);
    }
    Py_XDECREF(list);
    return attributes;
}

static PyObject *make_exception(const char *name, PyObject *const *bases, const char *attributes, const char *doc)
{
    Py_ssize_t count = 0;
    while (bases[count] != NULL)
        count++;
    PyObject *tuple = PyTuple_New(count);
    PyObject *dictionary = none_attributes(attributes);
    PyObject *exception = NULL;
    if (tuple == NULL || dictionary == NULL)
        goto done;
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(bases[i]));
    exception = PyErr_NewExceptionWithDoc(name, doc, tuple, dictionary);
done:
    Py_XDECREF(tuple);
    Py_XDECREF(dictionary);
    return exception;
}

/* KeyError shows the repr of its argument: a message of several lines would be one line of escapes. */
static int show_message_as_it_is(PyObject *exception)
{
    PyObject *plain = PyObject_GetAttrString(PyExc_BaseException, "__str__");
    if (plain == NULL)
        return -1;
    const int status = PyObject_SetAttrString(exception, "__str__", plain);
    Py_DECREF(plain);
    return status;
}

int errors_ready(module_state *state, PyObject *module)
{
#define BASES(...)                                                                                                     \
    (PyObject *const[])                                                                                                \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }
#define EXCEPTION(name, bases, attributes, documentation)                                                              \
    state->name = make_exception("cuda_core." #name, bases, attributes, documentation);                                \
    if (state->name == NULL || PyModule_AddObjectRef(module, #name, state->name) < 0)                                  \
        return -1;
#include "exceptions.def"
#undef EXCEPTION
#undef BASES
    return show_message_as_it_is(state->KernelNotFoundError);
}

/* ---- from a status to an exception ------------------------------------------------------------------------------ */

static PyObject *class_of_driver_error(const module_state *state, int code)
{
    switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return state->OutOfMemoryError;
    case CUDA_ERROR_INVALID_VALUE:
        return state->InvalidValueError;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
        return state->NotSupportedError;
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_SOURCE:
        return state->CompileError;
    default:
        return state->CUDAError;
    }
}

static PyObject *class_of_core_error(const module_state *state, int code)
{
    switch ((cc_status)code) {
    case CC_INVALID:
    case CC_LIMIT:
    case CC_NO_SUCH_DEVICE:
        return PyExc_ValueError;
    case CC_OUT_OF_RANGE:
        return PyExc_OverflowError;
    case CC_WRONG_TYPE:
        return PyExc_TypeError;
    case CC_NO_HOST_MEMORY:
        return PyExc_MemoryError;
    case CC_NO_SUCH_KERNEL:
        return state->KernelNotFoundError;
    case CC_NOT_SUPPORTED:
    case CC_NEEDS_DRIVER:
        return state->NotSupportedError;
    case CC_DRIVER_MISSING:
    case CC_COMPILER_MISSING:
        return state->LibraryNotFoundError;
    case CC_DRIVER_BROKEN:
    case CC_OK:
        break;
    }
    return state->CUDAError;
}

static PyObject *class_of(const module_state *state, const cc_error *error)
{
    if (error->domain == CC_DOMAIN_CORE)
        return class_of_core_error(state, error->code);
    if (error->domain == CC_DOMAIN_NVRTC)
        return error->log != NULL || strcmp(error->name, "NVRTC_ERROR_COMPILATION") == 0 ? state->CompileError
                                                                                         : state->CUDAError;
    return class_of_driver_error(state, error->code);
}

/* "<prefix>: <NAME>: <text>\n<log>", leaving out what the text says already. */
static PyObject *message_of(const cc_error *error, const char *prefix)
{
    const int with_name =
        error->domain != CC_DOMAIN_CORE && error->name != NULL && strstr(error->text, error->name) == NULL;
    const int with_log = error->log != NULL && error->log[0] != '\0' && strstr(error->text, error->log) == NULL;
    PyObject *text = PyUnicode_DecodeUTF8(error->text, (Py_ssize_t)strlen(error->text), "replace");
    PyObject *log = with_log ? PyUnicode_DecodeUTF8(error->log, (Py_ssize_t)strlen(error->log), "replace") : NULL;
    PyObject *message = NULL;
    if (text != NULL && (log != NULL || !with_log))
        message = PyUnicode_FromFormat("%s%s%s%s%U%s%V", prefix == NULL ? "" : prefix, prefix == NULL ? "" : ": ",
                                       with_name ? error->name : "", with_name ? ": " : "", text, with_log ? "\n" : "",
                                       log, "");
    Py_XDECREF(text);
    Py_XDECREF(log);
    return message;
}

static int set_text(PyObject *exception, const char *attribute, const char *text)
{
    if (text == NULL)
        return 0;
    PyObject *value = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (value == NULL)
        return -1;
    const int status = PyObject_SetAttrString(exception, attribute, value);
    Py_DECREF(value);
    return status;
}

static int set_code(PyObject *exception, int code)
{
    PyObject *value = PyLong_FromLong(code);
    if (value == NULL)
        return -1;
    const int status = PyObject_SetAttrString(exception, "code", value);
    Py_DECREF(value);
    return status;
}

static void set_exception(module_state *state, const cc_error *error, const char *prefix)
{
    PyObject *class = class_of(state, error);
    PyObject *message = message_of(error, prefix);
    if (message == NULL)
        return;
    PyObject *exception = PyObject_CallOneArg(class, message);
    Py_DECREF(message);
    if (exception == NULL)
        return;
    const int is_ours = PyObject_IsSubclass(class, state->CUDAError);
    if (is_ours == 0 ||
        (is_ours == 1 && set_code(exception, error->code) == 0 && set_text(exception, "name", error->name) == 0 &&
         set_text(exception, "function", error->function) == 0 && set_text(exception, "log", error->log) == 0))
        PyErr_SetObject(class, exception);
    Py_DECREF(exception);
}

PyObject *raise_error_about(module_state *state, cc_error *error, const char *prefix)
{
    if (!PyErr_Occurred())
        set_exception(state, error, prefix);
    cc_error_clear(error);
    return NULL;
}

PyObject *raise_error(module_state *state, cc_error *error)
{
    return raise_error_about(state, error, NULL);
}

/* ---- what bindings refuse by themselves ------------------------------------------------------------------------- */

PyObject *raise_closed(module_state *state, const char *what)
{
    if (!PyErr_Occurred())
        PyErr_Format(state->ClosedError, "this %s was closed and cannot be used any more", what);
    return NULL;
}

PyObject *raise_not_supported(module_state *state, const char *text)
{
    if (!PyErr_Occurred())
        PyErr_SetString(state->NotSupportedError, text);
    return NULL;
}

void report_unraisable(PyObject *object)
{
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(object);
}
