/* Starts CPython, and runs each input through run() of the target's module. A finding: whatever a sanitizer sees, an
 * exception that leaves run(), a tensor that was not given back once, memory that grows with every run of an input. */
#include "embed.h"

#include <sanitizer/allocator_interface.h>
#include <sanitizer/lsan_interface.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);
PyMODINIT_FUNC PyInit__core(void);

_Noreturn void broken(const char *what)
{
    fprintf(stderr, "not true: %s\n", what);
    abort();
}

/* A size that no machine has is a MemoryError, as in Python. At exit Python is left as it is: nothing is lost by it. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:leak_check_at_exit=0";
}

/* ---- the memory of the process ----------------------------------------------------------------------------------- */

static atomic_long blocks; /* of the whole process: Python allocates with malloc, too */

static void count_up(const volatile void *block, size_t size)
{
    (void)size;
    if (block != NULL)
        atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
}

static void count_down(const volatile void *block)
{
    if (block != NULL)
        atomic_fetch_sub_explicit(&blocks, 1, memory_order_relaxed);
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static PyObject *target_run, *collect_garbage; /* PyGC_Collect() does nothing where the collector is off */

static void check(PyStatus status)
{
    if (PyStatus_Exception(status))
        Py_ExitStatusException(status);
}

static PyObject *make_fuzz(void)
{
    static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "fuzz", .m_size = -1};
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddFunctions(module, input_functions) < 0 ||
        PyModule_AddFunctions(module, tensor_functions) < 0 || PyModule_AddFunctions(module, watch_functions) < 0)
        return NULL;
    return module;
}

static void start_python(void)
{
    PyPreConfig before;
    PyPreConfig_InitPythonConfig(&before);
    before.allocator = PYMEM_ALLOCATOR_MALLOC; /* the sanitizers see each object */
    before.use_environment = 0;
    check(Py_PreInitialize(&before));
    if (PyImport_AppendInittab("cuda_core._core", PyInit__core) < 0 || PyImport_AppendInittab("fuzz", make_fuzz) < 0)
        broken("no memory");
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.use_environment = 0;
    config.install_signal_handlers = 0;
    config.use_hash_seed = 1;
    config.hash_seed = 1;
    check(PyConfig_SetBytesString(&config, &config.program_name, FUZZ_PYTHON)); /* its packages, NumPy among them */
    check(Py_InitializeFromConfig(&config));
    PyConfig_Clear(&config);
}

static void start_target(void)
{
    static const char start[] = "import sys\n"
                                "sys.path[:0] = [FUZZ_ROOT + '/python', FUZZ_ROOT + '/tests/fuzz/python']\n"
                                "import start\n"
                                "from gc import collect\n"
                                "run = start.target(FUZZ_TARGET)\n";
    PyObject *names = PyDict_New();
    PyObject *root = PyUnicode_FromString(FUZZ_ROOT), *target = PyUnicode_FromString(FUZZ_TARGET);
    if (names == NULL || root == NULL || target == NULL || PyDict_SetItemString(names, "FUZZ_ROOT", root) < 0 ||
        PyDict_SetItemString(names, "FUZZ_TARGET", target) < 0 ||
        PyRun_String(start, Py_file_input, names, names) == NULL) {
        PyErr_Print();
        broken("the target starts");
    }
    target_run = Py_NewRef(PyDict_GetItemString(names, "run"));
    collect_garbage = Py_NewRef(PyDict_GetItemString(names, "collect"));
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count, (void)arguments;
    setenv("CUDA_CORE_DRIVER", FUZZ_DRIVER, 0);
    setenv("CUDA_CORE_EMULATOR_DETERMINISTIC", "1", 0);
    setenv("CUDA_CORE_EMULATOR_MEMORY", "268435456", 0);
    __sanitizer_install_malloc_and_free_hooks(count_up, count_down);
    start_python();
    start_target();
    return 0;
}

/* ---- one input --------------------------------------------------------------------------------------------------- */

static void call(PyObject *function)
{
    PyObject *result = PyObject_CallNoArgs(function);
    if (result == NULL) {
        PyErr_Print();
        broken("what an input may do is an exception that says so");
    }
    Py_DECREF(result);
}

/* Garbage in cycles is found only where memory grew: what was there at the start is frozen, so that is quick. */
static long run(const uint8_t *data, size_t size)
{
    const long before = atomic_load(&blocks);
    input_set(data, size);
    launch_reset();
    call(target_run);
    if (atomic_load(&blocks) > before)
        call(collect_garbage);
    if (tensors_alive() != 0)
        broken("each tensor is given back");
    return atomic_load(&blocks) - before;
}

/* What is kept for good, such as the name of an attribute, is kept once; a leak comes again with every run. */
static void expect_no_growth(const uint8_t *data, size_t size)
{
    enum { TIMES = 100 }; /* more than any pool of spare objects holds */
    for (int i = 0; i < TIMES; i++) {
        if (run(data, size) <= 0)
            return;
    }
    __lsan_do_recoverable_leak_check(); /* with the stack, where nothing refers to the memory any more */
    broken("memory does not grow with every run of the same input");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (run(data, size) > 0)
        expect_no_growth(data, size);
    return 0;
}
