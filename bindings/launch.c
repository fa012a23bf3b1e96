/* launch(): the hot path. Nothing is allocated for up to 64 arguments. */
#include "arguments.h"
#include "errors.h"
#include "launchconfig.h"
#include "stream.h"

PyDoc_STRVAR(launch_doc,
             "launch($module, stream, config, kernel, /, *kernel_args)\n--\n\n"
             "Run a kernel on a stream. Returns as soon as it is queued.\n\n"
             "stream: a Stream, or an object with __cuda_stream__().\n"
             "config: a LaunchConfig, or a dict of its fields.\n"
             "kernel: a Kernel.\n"
             "kernel_args: one a parameter of the kernel, held against the parameter's size and type:\n"
             "    for a pointer: a Buffer, None, an address (int), an object with __dlpack__ or\n"
             "    __cuda_array_interface__ whose memory is on the device;\n"
             "    for a number: an int, float, bool or complex, which becomes the parameter's own type;\n"
             "    a scalar of NumPy or ctypes, whose bits are kept;\n"
             "    for a struct by value: bytes, a ctypes.Structure, a structured scalar of NumPy.\n\n"
             "Raises TypeError, ValueError or OverflowError, naming kernel, index and parameter, before anything is\n"
             "queued; ValueError naming the limit of the device that config goes beyond; ClosedError for what was\n"
             "closed. An error in the kernel shows when the stream is next waited for.\n"
             "Driver: cuLaunchKernel, or cuLaunchKernelEx for clusters and cooperative launches.");

/* A new reference into core; NULL with an exception. */
static cc_stream *hold_stream(module_state *state, PyObject *object)
{
    if (Py_IS_TYPE(object, state->stream_type))
        return stream_hold(object);
    cc_stream *stream;
    return stream_from_object(state, object, &stream) < 0 ? NULL : stream;
}

static cc_device *device_of_stream(module_state *state, cc_stream *stream)
{
    cc_error error;
    cc_context *context;
    if (cc_stream_context(stream, &context, &error) < 0) {
        raise_error(state, &error);
        return NULL;
    }
    return cc_context_device(context);
}

/* A place in the program, with what keeps its text. */
typedef struct place {
    PyObject *file; /* NULL: not known, or not asked for */
    int line;
} place;

/* Of the Python code that calls. What fails here is no reason not to launch. */
static place place_of_caller(void)
{
    place found = {NULL, 0};
    PyFrameObject *frame = PyEval_GetFrame();
    if (frame == NULL)
        return found;
    PyCodeObject *code = PyFrame_GetCode(frame);
    found.line = PyFrame_GetLineNumber(frame);
    found.file = PyUnicode_AsEncodedString(code->co_filename, "utf-8", "replace");
    if (found.file == NULL)
        PyErr_Clear();
    Py_DECREF(code);
    return found;
}

/* Everything is known to be what it should be, but for the arguments. */
static int launch_packed(module_state *state, const cc_launch_config *config, cc_stream *stream, kernel_object *kernel,
                         PyObject *const *args, Py_ssize_t count)
{
    cc_error error;
    arguments packed;
    packed.state = state;
    packed.kernel = kernel;
    packed.stream = stream;
    packed.device = device_of_stream(state, stream);
    if (packed.device == NULL || arguments_pack(&packed, args, count) < 0)
        return -1;
    int status = cc_launch_check(config, kernel->core, packed.device, &error);
    if (status == 0) {
        place from = {NULL, 0};
        if (__atomic_load_n(&state->traces_launches, __ATOMIC_RELAXED))
            from = place_of_caller();
        const char *file = from.file == NULL ? NULL : PyBytes_AS_STRING(from.file);
        Py_BEGIN_ALLOW_THREADS;
        status = file == NULL ? cc_launch(config, stream, kernel->core, packed.slots, &error)
                              : cc_launch_from(file, from.line, config, stream, kernel->core, packed.slots, &error);
        Py_END_ALLOW_THREADS;
        Py_XDECREF(from.file);
    }
    arguments_free(&packed, status == 0);
    if (status < 0)
        raise_error(state, &error);
    return status;
}

static PyObject *launch(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    module_state *state = state_of_module(module);
    if (count < 3) {
        PyErr_Format(PyExc_TypeError, "launch() needs a stream, a config and a kernel: %zd of 3 were given", count);
        return NULL;
    }
    if (!Py_IS_TYPE(args[2], state->kernel_type)) {
        PyErr_Format(PyExc_TypeError, "kernel must be a Kernel, not %.100s", Py_TYPE(args[2])->tp_name);
        return NULL;
    }
    PyObject *config = launch_config_from_object(state, args[1]);
    if (config == NULL)
        return NULL;
    cc_stream *stream = hold_stream(state, args[0]);
    if (stream == NULL) {
        Py_DECREF(config);
        return NULL;
    }
    const int status =
        launch_packed(state, &launch_config_cast(config)->core, stream, kernel_cast(args[2]), args + 3, count - 3);
    cc_stream_release(stream);
    Py_DECREF(config);
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(trace_launches_doc,
             "trace_launches($module, enabled=True, /)\n--\n\n"
             "Whether launches from now on note the file and line that they are made at.\n\n"
             "enabled: bool. Returns what it was before (bool).\n"
             "When a kernel has failed, errors then name the line that launched it beside kernel and stream.\n"
             "CUDA_CORE_TRACE_LAUNCHES=1 in the environment turns it on from the start.");

static PyObject *trace_launches(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    module_state *state = state_of_module(module);
    if (count > 1) {
        PyErr_Format(PyExc_TypeError, "trace_launches() takes at most 1 argument: %zd were given", count);
        return NULL;
    }
    const int enabled = count == 0 ? 1 : PyObject_IsTrue(args[0]);
    if (enabled < 0)
        return NULL;
    return PyBool_FromLong(__atomic_exchange_n(&state->traces_launches, enabled, __ATOMIC_RELAXED));
}

PyMethodDef launch_functions[] = {
    {"trace_launches", (PyCFunction)(void (*)(void))trace_launches, METH_FASTCALL, trace_launches_doc},
    {"launch", (PyCFunction)(void (*)(void))launch, METH_FASTCALL, launch_doc},
    {NULL, NULL, 0, NULL},
};
