#include "module.h"

#include "context.h"
#include "device.h"
#include "errors.h"
#include "kernel.h"
#include "launchconfig.h"
#include "release.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#define TYPE(field, base, vectorcall) extern PyType_Spec field##_spec;
#include "types.def"
#undef TYPE
#define FUNCTIONS(array) extern PyMethodDef array[];
#include "functions.def"
#undef FUNCTIONS

/* ---- what is shared --------------------------------------------------------------------------------------------- */

module_state *state_of_type(PyTypeObject *type)
{
#if PY_VERSION_HEX < 0x030B0000
    return state_of_module(_PyType_GetModuleByDef(type, &cuda_core_module));
#else
    return state_of_module(PyType_GetModuleByDef(type, &cuda_core_module));
#endif
}

module_state *state_of(PyObject *object)
{
    return state_of_type(Py_TYPE(object));
}

static int refuse_size(PyObject *number, const char *what)
{
    PyObject *zero = PyLong_FromLong(0);
    const int is_negative = zero == NULL ? -1 : PyObject_RichCompareBool(number, zero, Py_LT);
    Py_XDECREF(zero);
    if (is_negative == 1)
        PyErr_Format(PyExc_ValueError, "%s must not be negative, not %S", what, number);
    else if (is_negative == 0)
        PyErr_Format(PyExc_OverflowError, "%s must be less than %zd, not %S", what, PY_SSIZE_T_MAX, number);
    return -1;
}

int size_from_object(PyObject *object, const char *what, size_t *size)
{
    if (PyBool_Check(object) || !PyIndex_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s must be an int, not %.100s", what, Py_TYPE(object)->tp_name);
        return -1;
    }
    const Py_ssize_t value = PyNumber_AsSsize_t(object, NULL); /* clipped at both ends */
    if (value == -1 && PyErr_Occurred())
        return -1;
    if (value < 0 || value == PY_SSIZE_T_MAX)
        return refuse_size(object, what);
    *size = (size_t)value;
    return 0;
}

/* The handle classes of other libraries have __int__, but no __index__; floats of any kind have __float__ too. */
static PyObject *integer_of(PyObject *object, const char *what)
{
    const PyNumberMethods *methods = Py_TYPE(object)->tp_as_number;
    if (!PyBool_Check(object) && methods != NULL) {
        if (methods->nb_index != NULL)
            return PyNumber_Index(object);
        if (methods->nb_int != NULL && methods->nb_float == NULL)
            return PyNumber_Long(object);
    }
    PyErr_Format(PyExc_TypeError, "%s must be an int, not %.100s", what, Py_TYPE(object)->tp_name);
    return NULL;
}

int address_from_object(PyObject *object, const char *what, uint64_t *address)
{
    PyObject *number = integer_of(object, what);
    if (number == NULL)
        return -1;
    const unsigned long long value = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (value == (unsigned long long)-1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_OverflowError, "%s must be between 0 and 2**64 - 1", what);
        return -1;
    }
    *address = value;
    return 0;
}

/* ---- the driver ------------------------------------------------------------------------------------------------- */

static void drop_devices(PyObject **devices, int count)
{
    for (int i = 0; devices != NULL && i < count; i++)
        Py_XDECREF(devices[i]);
    PyMem_Free(devices);
}

static PyObject **make_devices(module_state *state, int count)
{
    PyObject **devices = PyMem_Calloc((size_t)count + 1, sizeof *devices);
    if (devices == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        cc_error error;
        cc_device *core;
        if (cc_device_get(i, &core, &error) < 0)
            raise_error(state, &error);
        else
            devices[i] = device_new_core(state, core);
        if (devices[i] == NULL) {
            drop_devices(devices, count);
            return NULL;
        }
    }
    return devices;
}

/* Making objects may run the collector, and so other threads, which make their own: the first ones stay, since a Device
 * is the only one of its number. 1: they are ours. */
static int keep_devices(module_state *state, PyObject **devices, int count)
{
    int are_first;
    /* Any object that all threads of the interpreter share serves as the lock. */
    Py_BEGIN_CRITICAL_SECTION(state->device_type);
    are_first = state->devices == NULL;
    if (are_first) {
        state->device_count = count;
        __atomic_store_n(&state->devices, devices, __ATOMIC_RELEASE);
    }
    Py_END_CRITICAL_SECTION();
    if (!are_first)
        drop_devices(devices, count);
    return are_first;
}

/* Who asked for the emulator needs no warning. */
static int warn_of_emulator(module_state *state)
{
    const char *choice = getenv("CUDA_CORE_DRIVER");
    if (cc_driver_which() != CC_DRIVER_EMULATOR || (choice != NULL && choice[0] != '\0'))
        return 0;
    return PyErr_WarnEx(state->EmulatedDeviceWarning,
                        "there is no NVIDIA driver on this machine, so kernels run on the emulated device, slowly; "
                        "set CUDA_CORE_DRIVER=emulator to accept that, or =native to make it an error",
                        1);
}

int open_driver_slowly(module_state *state)
{
    cc_error error;
    int status, count;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_driver_open(NULL, NULL, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0 || cc_device_count(&count, &error) < 0) {
        raise_error(state, &error);
        return -1;
    }
    PyObject **devices = make_devices(state, count);
    if (devices == NULL)
        return -1;
    return keep_devices(state, devices, count) ? warn_of_emulator(state) : 0;
}

/* ---- making the module ------------------------------------------------------------------------------------------ */

static PyTypeObject *make_type(PyObject *module, PyType_Spec *spec, PyTypeObject *base, vectorcallfunc vectorcall)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, (PyObject *)base);
    if (type == NULL)
        return NULL;
    if (vectorcall != NULL)
        type->tp_vectorcall = vectorcall; /* there is no slot for it before 3.14 */
    const char *name = strrchr(spec->name, '.') + 1;
    if (name[0] != '_' && PyModule_AddObjectRef(module, name, (PyObject *)type) < 0)
        Py_CLEAR(type);
    return type;
}

static int make_types(module_state *state, PyObject *module)
{
#define TYPE(field, base, vectorcall)                                                                                  \
    state->field##_type = make_type(module, &field##_spec, base, vectorcall);                                          \
    if (state->field##_type == NULL)                                                                                   \
        return -1;
#include "types.def"
#undef TYPE
    return 0;
}

static int make_compute_capability(module_state *state, PyObject *module)
{
    static PyStructSequence_Field fields[] = {
        {"major", "the generation: 9 in 9.0 (int)"},
        {"minor", "the revision in it: 0 in 9.0 (int)"},
        {NULL, NULL},
    };
    static PyStructSequence_Desc description = {
        "cuda_core.ComputeCapability",
        "What a device can do, as (major, minor); compares as a tuple does.",
        fields,
        2,
    };
    state->compute_capability_type = PyStructSequence_NewType(&description);
    if (state->compute_capability_type == NULL)
        return -1;
    return PyModule_AddObjectRef(module, "ComputeCapability", (PyObject *)state->compute_capability_type);
}

static int make_strings(module_state *state)
{
#define STRING(field, text)                                                                                            \
    state->str_##field = PyUnicode_InternFromString(text);                                                             \
    if (state->str_##field == NULL)                                                                                    \
        return -1;
#include "strings.def"
#undef STRING
    state->stream_keyword = PyTuple_Pack(1, state->str_stream);
    return state->stream_keyword == NULL ? -1 : 0;
}

static int add_functions(PyObject *module)
{
#define FUNCTIONS(array)                                                                                               \
    if (PyModule_AddFunctions(module, array) < 0)                                                                      \
        return -1;
#include "functions.def"
#undef FUNCTIONS
    (void)module;
    return 0;
}

static int make_default_streams(module_state *state, PyObject *module)
{
    state->legacy_default_stream = stream_default(state, CU_STREAM_LEGACY, NULL);
    if (state->legacy_default_stream == NULL)
        return -1;
    state->per_thread_default_stream = stream_default(state, CU_STREAM_PER_THREAD, NULL);
    if (state->per_thread_default_stream == NULL)
        return -1;
    if (PyModule_AddObjectRef(module, "LEGACY_DEFAULT_STREAM", state->legacy_default_stream) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "PER_THREAD_DEFAULT_STREAM", state->per_thread_default_stream);
}

static PyObject *interpreter_exits(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    cc_process_ends(true);
    Py_RETURN_NONE;
}

/* The handler registered first runs last: after those of the program, before what is alive is let go of. Only the main
 * interpreter ends with the process, and where a program embeds Python it may start again. */
static int watch_exit(PyObject *module)
{
    static PyMethodDef method = {"_interpreter_exits", interpreter_exits, METH_NOARGS, NULL};
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        return 0;
    cc_process_ends(false);
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *handler = atexit == NULL ? NULL : PyCFunction_New(&method, module);
    PyObject *result = handler == NULL ? NULL : PyObject_CallMethod(atexit, "register", "O", handler);
    const int status = result == NULL ? -1 : 0;
    Py_XDECREF(result);
    Py_XDECREF(handler);
    Py_XDECREF(atexit);
    return status;
}

static int module_exec(PyObject *module)
{
    module_state *state = state_of_module(module);
    const char *trace = getenv("CUDA_CORE_TRACE_LAUNCHES");
    state->traces_launches = trace != NULL && trace[0] != '\0' && strcmp(trace, "0") != 0;
    state->mailbox = mailbox_new();
    if (state->mailbox == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (make_strings(state) < 0 || errors_ready(state, module) < 0 || make_compute_capability(state, module) < 0)
        return -1;
    if (kernel_ready(state, module) < 0 || make_types(state, module) < 0 || add_functions(module) < 0)
        return -1;
    if (PyModule_AddStringConstant(module, "__version__", CUDA_CORE_VERSION) < 0)
        return -1;
    return make_default_streams(state, module) < 0 ? -1 : watch_exit(module);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = state_of_module(module);
#define TYPE(field, base, vectorcall) Py_VISIT(state->field##_type);
#include "types.def"
#undef TYPE
#define EXCEPTION(name, bases, attributes, documentation) Py_VISIT(state->name);
#include "exceptions.def"
#undef EXCEPTION
    Py_VISIT(state->compute_capability_type);
    Py_VISIT(state->parameter_info_type);
    Py_VISIT(state->accessed_by_class);
    Py_VISIT(state->block_size_type);
    Py_VISIT(state->legacy_default_stream);
    Py_VISIT(state->per_thread_default_stream);
    for (int i = 0; state->devices != NULL && i < state->device_count; i++)
        Py_VISIT(state->devices[i]);
    return 0;
}

static int module_clear(PyObject *module)
{
    module_state *state = state_of_module(module);
    PyObject **devices = state->devices;
    state->devices = NULL;
    drop_devices(devices, state->device_count);
    Py_CLEAR(state->legacy_default_stream);
    Py_CLEAR(state->per_thread_default_stream);
    Py_CLEAR(state->accessed_by_class);
    Py_CLEAR(state->compute_capability_type);
    Py_CLEAR(state->parameter_info_type);
    Py_CLEAR(state->block_size_type);
#define TYPE(field, base, vectorcall) Py_CLEAR(state->field##_type);
#include "types.def"
#undef TYPE
#define EXCEPTION(name, bases, attributes, documentation) Py_CLEAR(state->name);
#include "exceptions.def"
#undef EXCEPTION
#define STRING(field, text) Py_CLEAR(state->str_##field);
#include "strings.def"
#undef STRING
    Py_CLEAR(state->stream_keyword);
    return 0;
}

static void module_free(void *module)
{
    module_state *state = state_of_module(module);
    module_clear(module);
    if (state->mailbox != NULL)
        mailbox_close(state->mailbox);
    state->mailbox = NULL;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

PyDoc_STRVAR(module_doc, "CUDA's objects as Python objects. Use the package cuda_core: this module is its inside.");

struct PyModuleDef cuda_core_module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "cuda_core._core",
    .m_doc = module_doc,
    .m_size = sizeof(module_state),
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&cuda_core_module);
}
