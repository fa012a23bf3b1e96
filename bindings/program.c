/* Program: source that is compiled. C++ goes to NVRTC; the options' translation is cuda_core._options.ProgramOptions.
 */
#include "errors.h"
#include "objectcode.h"
#include "parse.h"

typedef struct program_object {
    PyObject_HEAD
    PyObject *source;     /* bytes in UTF-8; NULL after close() */
    PyObject *options;    /* a ProgramOptions */
    PyObject *warnings;   /* str: what the compiler said last */
    PyObject *pch_status; /* str or None */
    void *native;         /* an nvrtcProgram for the user, once it was asked for; else NULL */
    PyObject *weak_references;
} program_object;

#define program_cast(object) ((program_object *)(object))

/* ---- strings for core -------------------------------------------------------------------------------------------- */

typedef struct strings {
    PyObject *keep; /* a list of bytes that own the texts */
    const char **texts;
    size_t count;
} strings;

static void strings_free(strings *self)
{
    Py_CLEAR(self->keep);
    PyMem_Free(self->texts);
    self->texts = NULL;
}

static PyObject *bytes_of(PyObject *object, const char *what)
{
    if (PyUnicode_Check(object))
        return PyUnicode_AsUTF8String(object);
    if (PyBytes_Check(object))
        return Py_NewRef(object);
    PyErr_Format(PyExc_TypeError, "%s must be a str or bytes, not %.100s", what, Py_TYPE(object)->tp_name);
    return NULL;
}

/* One text an item of `list`, which is a list of bytes and is taken over. 0, or -1 with an exception. */
static int strings_take(strings *self, PyObject *list)
{
    const Py_ssize_t count = PyList_GET_SIZE(list);
    *self = (strings){.keep = list, .texts = PyMem_Calloc((size_t)count + 1, sizeof(char *)), .count = (size_t)count};
    if (self->texts == NULL) {
        PyErr_NoMemory();
        goto fail;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        char *text;
        if (PyBytes_AsStringAndSize(PyList_GET_ITEM(list, i), &text, NULL) < 0) /* refuses a NUL inside */
            goto fail;
        self->texts[i] = text;
    }
    return 0;
fail:
    strings_free(self);
    return -1;
}

/* name_expressions: None, one, or several. A list of bytes; new reference. */
static PyObject *list_expressions(PyObject *given)
{
    if (given == NULL)
        return PyList_New(0);
    if (PyUnicode_Check(given) || PyBytes_Check(given)) {
        PyObject *bytes = bytes_of(given, "name_expressions");
        return bytes == NULL ? NULL : Py_BuildValue("[N]", bytes);
    }
    PyObject *list = PySequence_List(given);
    for (Py_ssize_t i = 0; list != NULL && i < PyList_GET_SIZE(list); i++) {
        PyObject *bytes = bytes_of(PyList_GET_ITEM(list, i), "each of name_expressions");
        if (bytes == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, i, bytes);
    }
    return list;
}

/* ---- the compiler ------------------------------------------------------------------------------------------------ */

static int raise_missing(module_state *state, cc_error *error)
{
    if (error->domain == CC_DOMAIN_CORE && error->code == CC_COMPILER_MISSING &&
        strstr(error->text, "pip install") == NULL)
        raise_error_about(state, error, "compiling CUDA C++ needs NVRTC: pip install 'cuda-core-native[cu13]'");
    else
        raise_error(state, error);
    return -1;
}

/* Opens NVRTC at the first need, at the place that cuda_core._find knows. */
static int open_compiler(module_state *state)
{
    if (cc_nvrtc_is_open())
        return 0;
    PyObject *find = PyImport_ImportModule("cuda_core._find");
    PyObject *path = find == NULL ? NULL : PyObject_CallMethod(find, "nvrtc_path", NULL);
    Py_XDECREF(find);
    if (path == NULL)
        return -1;
    PyObject *bytes = NULL;
    if (path != Py_None && !PyUnicode_FSConverter(path, &bytes)) {
        Py_DECREF(path);
        return -1;
    }
    Py_DECREF(path);
    cc_error error;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_nvrtc_open(bytes == NULL ? NULL : PyBytes_AS_STRING(bytes), &error);
    Py_END_ALLOW_THREADS;
    Py_XDECREF(bytes);
    return status < 0 ? raise_missing(state, &error) : 0;
}

static int add_include_directories(PyObject *list)
{
    PyObject *find = PyImport_ImportModule("cuda_core._find");
    PyObject *found = find == NULL ? NULL : PyObject_CallMethod(find, "include_directories", NULL);
    PyObject *directories = found == NULL ? NULL : PySequence_List(found);
    int status = directories == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; status == 0 && i < PyList_GET_SIZE(directories); i++) {
        PyObject *option = PyUnicode_FromFormat("--include-path=%U", PyList_GET_ITEM(directories, i));
        PyObject *bytes = option == NULL ? NULL : PyUnicode_EncodeFSDefault(option);
        status = bytes == NULL ? -1 : PyList_Append(list, bytes);
        Py_XDECREF(bytes);
        Py_XDECREF(option);
    }
    Py_XDECREF(directories);
    Py_XDECREF(found);
    Py_XDECREF(find);
    return status;
}

/* The options as NVRTC takes them, the user's first. A list of bytes; new reference. */
static PyObject *list_options(const program_object *self, const char *target)
{
    PyObject *given = PyObject_CallMethod(self->options, "as_bytes", "ss", "NVRTC", target);
    PyObject *list = given == NULL ? NULL : PySequence_List(given);
    Py_XDECREF(given);
    if (list != NULL && add_include_directories(list) < 0)
        Py_CLEAR(list);
    return list;
}

static int uses_pch(const program_object *self)
{
    static const char *const names[] = {"pch", "create_pch", "use_pch"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        PyObject *value = PyObject_GetAttrString(self->options, names[i]);
        const int given = value == NULL ? -1 : PyObject_IsTrue(value);
        Py_XDECREF(value);
        if (given != 0)
            return given;
    }
    return 0;
}

static int keep_pch_status(program_object *self, cc_pch pch)
{
    static const char *const texts[] = {
        [CC_PCH_NOT_ATTEMPTED] = "not_attempted", [CC_PCH_CREATED] = "created", [CC_PCH_FAILED] = "failed"};
    const int used = uses_pch(self);
    PyObject *status = used < 0 ? NULL : used ? PyUnicode_FromString(texts[pch]) : Py_NewRef(Py_None);
    if (status == NULL)
        return -1;
    PyObject *before;
    Py_BEGIN_CRITICAL_SECTION(self);
    before = self->pch_status;
    self->pch_status = status;
    Py_END_CRITICAL_SECTION();
    Py_DECREF(before);
    return 0;
}

/* The log, warnings or errors, to the user's `logs`, and kept as Program.warnings. 0, or -1 with an exception. */
static int hand_on_log(program_object *self, const char *log, PyObject *logs)
{
    PyObject *text = PyUnicode_DecodeUTF8(log == NULL ? "" : log, log == NULL ? 0 : (Py_ssize_t)strlen(log), "replace");
    if (text == NULL)
        return -1;
    int status = 0;
    if (logs != NULL && PyUnicode_GET_LENGTH(text) > 0) {
        PyObject *written = PyObject_CallMethod(logs, "write", "O", text);
        status = written == NULL ? -1 : 0;
        Py_XDECREF(written);
    }
    PyObject *before;
    Py_BEGIN_CRITICAL_SECTION(self);
    before = self->warnings;
    self->warnings = text;
    Py_END_CRITICAL_SECTION();
    Py_DECREF(before);
    return status;
}

static PyObject *mapping_of(const strings *expressions, const cc_compiled *compiled)
{
    PyObject *mapping = PyDict_New();
    for (size_t i = 0; mapping != NULL && i < compiled->lowered_count; i++) {
        PyObject *name = PyUnicode_FromString(expressions->texts[i]);
        PyObject *lowered = name == NULL ? NULL : PyUnicode_FromString(compiled->lowered_names[i]);
        if (lowered == NULL || PyDict_SetItem(mapping, name, lowered) < 0)
            Py_CLEAR(mapping);
        Py_XDECREF(lowered);
        Py_XDECREF(name);
    }
    return mapping;
}

static PyObject *object_code_of(module_state *state, const strings *expressions, const cc_compiled *compiled,
                                const char *target, PyObject *name)
{
    PyObject *mapping = mapping_of(expressions, compiled);
    PyObject *code =
        mapping == NULL ? NULL : PyBytes_FromStringAndSize((const char *)compiled->code, (Py_ssize_t)compiled->size);
    PyObject *made = code == NULL ? NULL : object_code_make(state, target, code, name, mapping);
    Py_XDECREF(code);
    Py_XDECREF(mapping);
    return made;
}

/* The name shown in diagnostics: a str, "" for None. New reference. */
static PyObject *name_of(const program_object *self)
{
    PyObject *name = PyObject_GetAttrString(self->options, "name");
    if (name == Py_None) {
        Py_DECREF(name);
        return PyUnicode_FromString("");
    }
    return name;
}

static PyObject *compile_source(module_state *state, program_object *self, PyObject *source, cc_target target,
                                const char *target_name, PyObject *expression_list, PyObject *logs)
{
    strings options = {0}, expressions = {0};
    PyObject *made = NULL;
    PyObject *name = name_of(self);
    const char *shown = name == NULL ? NULL : PyUnicode_AsUTF8(name);
    PyObject *option_list = shown == NULL ? NULL : list_options(self, target_name);
    if (option_list == NULL || strings_take(&options, option_list) < 0 ||
        strings_take(&expressions, Py_NewRef(expression_list)) < 0)
        goto done;
    const cc_compile_request request = {
        .source = PyBytes_AS_STRING(source),
        .name = shown[0] == '\0' ? NULL : shown,
        .options = options.texts,
        .option_count = options.count,
        .name_expressions = expressions.texts,
        .name_expression_count = expressions.count,
        .target = target,
    };
    cc_compiled compiled = {0};
    cc_error error;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_compile(&request, &compiled, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0) {
        if (hand_on_log(self, error.log, logs) < 0)
            cc_error_clear(&error);
        else
            raise_error(state, &error);
        goto done;
    }
    if (hand_on_log(self, compiled.log, logs) == 0 && keep_pch_status(self, compiled.pch) == 0)
        made = object_code_of(state, &expressions, &compiled, target_name, name);
    cc_compiled_free(&compiled);
done:
    strings_free(&expressions);
    strings_free(&options);
    Py_XDECREF(name);
    return made;
}

/* ---- new, dealloc ------------------------------------------------------------------------------------------------ */

static int check_code_type(module_state *state, PyObject *code_type)
{
    if (PyUnicode_Check(code_type)) {
        const char *text = PyUnicode_AsUTF8(code_type);
        if (text == NULL)
            return -1;
        if (PyOS_stricmp(text, "c++") == 0)
            return 0;
        if (PyOS_stricmp(text, "ptx") == 0 || PyOS_stricmp(text, "nvvm") == 0) {
            raise_not_supported(state, PyOS_stricmp(text, "ptx") == 0
                                           ? "a Program of 'ptx' needs the linker, which this version has not yet; PTX "
                                             "can be loaded as it is: ObjectCode.from_ptx"
                                           : "a Program of 'nvvm' needs libNVVM, which this version has not yet");
            return -1;
        }
    }
    PyErr_Format(PyUnicode_Check(code_type) ? PyExc_ValueError : PyExc_TypeError,
                 "code_type must be 'c++', 'ptx' or 'nvvm', not %R", code_type);
    return -1;
}

static PyObject *read_source(PyObject *code)
{
    PyObject *source = PyUnicode_Check(code)        ? PyUnicode_AsUTF8String(code)
                       : PyObject_CheckBuffer(code) ? PyBytes_FromObject(code)
                                                    : NULL;
    if (source == NULL) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "code must be a str or bytes, not %.100s", Py_TYPE(code)->tp_name);
        return NULL;
    }
    if (strlen(PyBytes_AS_STRING(source)) != (size_t)PyBytes_GET_SIZE(source)) {
        PyErr_SetString(PyExc_ValueError, "code must not contain a null character");
        Py_CLEAR(source);
    }
    return source;
}

/* given: a dict that nobody changes. The first name that is no field is refused with a list of those that are; __init__
 * names only the wrong one. */
static int check_option_names(PyObject *class, PyObject *given)
{
    PyObject *fields = PyObject_GetAttrString(class, "__dataclass_fields__");
    PyObject *name, *value;
    Py_ssize_t at = 0;
    int known = fields == NULL ? -1 : 1;
    while (known == 1 && PyDict_Next(given, &at, &name, &value))
        known = PyDict_Contains(fields, name);
    if (known == 0) {
        PyObject *separator = PyUnicode_FromString(", ");
        PyObject *listed = separator == NULL ? NULL : PyUnicode_Join(separator, fields);
        if (listed != NULL)
            PyErr_Format(PyExc_TypeError, "ProgramOptions got an unexpected option: %R; there are: %U", name, listed);
        Py_XDECREF(listed);
        Py_XDECREF(separator);
    }
    Py_XDECREF(fields);
    return known == 1 ? 0 : -1;
}

/* A ProgramOptions of what the user gave: itself, a dict of its fields, or None. New reference. */
static PyObject *read_options(PyObject *given)
{
    PyObject *module = PyImport_ImportModule("cuda_core._options");
    PyObject *class = module == NULL ? NULL : PyObject_GetAttrString(module, "ProgramOptions");
    Py_XDECREF(module);
    PyObject *options = NULL;
    if (class == NULL)
        return NULL;
    if (given == NULL) {
        options = PyObject_CallNoArgs(class);
    } else if (PyDict_Check(given)) {
        PyObject *copy = PyDict_Copy(given); /* another thread may change the caller's own */
        if (copy != NULL && check_option_names(class, copy) == 0)
            options = PyObject_VectorcallDict(class, NULL, 0, copy);
        Py_XDECREF(copy);
    } else {
        const int fits = PyObject_IsInstance(given, class);
        if (fits == 1)
            options = Py_NewRef(given);
        else if (fits == 0)
            PyErr_Format(PyExc_TypeError, "options must be ProgramOptions, a dict or None, not %.100s",
                         Py_TYPE(given)->tp_name);
    }
    Py_DECREF(class);
    return options;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static const parameter_name parameters[] = {NAME("code"), NAME("code_type"), NAME("options")};
    static const signature wanted = SIGNATURE("Program", parameters, 3, REQUIRED(0) | REQUIRED(1));
    PyObject *given[3];
    if (parse_call(&wanted, args, keywords, given) < 0)
        return NULL;
    program_object *self = program_cast(type->tp_alloc(type, 0));
    if (self == NULL)
        return NULL;
    self->pch_status = Py_NewRef(Py_None);
    self->warnings = PyUnicode_FromString("");
    if (self->warnings == NULL || check_code_type(state_of((PyObject *)self), given[1]) < 0)
        goto fail;
    self->source = read_source(given[0]);
    self->options = self->source == NULL ? NULL : read_options(none_to_null(given[2]));
    if (self->options == NULL)
        goto fail;
    return (PyObject *)self;
fail:
    Py_DECREF(self);
    return NULL;
}

static int program_clear(PyObject *op)
{
    Py_CLEAR(program_cast(op)->options);
    return 0;
}

static void program_dealloc(PyObject *op)
{
    program_object *self = program_cast(op);
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (self->weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    program_clear(op);
    cc_program_destroy(self->native);
    Py_XDECREF(self->source);
    Py_XDECREF(self->warnings);
    Py_XDECREF(self->pch_status);
    type->tp_free(op);
    Py_DECREF(type);
}

/* The source, or NULL after close(). New reference. */
static PyObject *source_hold(program_object *self)
{
    PyObject *source;
    Py_BEGIN_CRITICAL_SECTION(self);
    source = Py_XNewRef(self->source);
    Py_END_CRITICAL_SECTION();
    return source;
}

static int is_closed(program_object *self)
{
    PyObject *source = source_hold(self);
    Py_XDECREF(source);
    return source == NULL;
}

/* ---- methods ----------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(compile_doc, "compile($self, /, target_type, name_expressions=(), logs=None, *, cache=None)\n--\n\n"
                          "Compile, and return the ObjectCode.\n\n"
                          "target_type: 'cubin', 'ptx' or 'ltoir'.\n"
                          "name_expressions: names of templates and C++ functions to be found by get_kernel, such as\n"
                          "    'saxpy<float>' (str or bytes, one or several).\n"
                          "logs: an object whose write(text) gets what the compiler says, warnings too.\n"
                          "cache: None; program caches are for a later version.\n\n"
                          "Other threads run meanwhile. Raises CompileError, whose log says what is wrong.\n"
                          "NVRTC: nvrtcCompileProgram.");

static int read_target(PyObject *object, cc_target *target, const char **name)
{
    static const struct {
        const char *name;
        cc_target target;
    } rows[] = {{"cubin", CC_TARGET_CUBIN}, {"ptx", CC_TARGET_PTX}, {"ltoir", CC_TARGET_LTOIR}};
    for (size_t i = 0; PyUnicode_Check(object) && i < sizeof rows / sizeof rows[0]; i++) {
        if (PyUnicode_CompareWithASCIIString(object, rows[i].name) == 0) {
            *target = rows[i].target;
            *name = rows[i].name;
            return 0;
        }
    }
    PyErr_Format(PyUnicode_Check(object) ? PyExc_ValueError : PyExc_TypeError,
                 "target_type must be 'cubin', 'ptx' or 'ltoir', not %R", object);
    return -1;
}

static PyObject *program_compile(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                 PyObject *names)
{
    static const parameter_name parameters[] = {NAME("target_type"), NAME("name_expressions"), NAME("logs"),
                                                NAME("cache")};
    static const signature wanted = SIGNATURE("Program.compile", parameters, 3, REQUIRED(0));
    module_state *state = state_of_class(class);
    PyObject *given[4];
    cc_target target;
    const char *target_name;
    if (parse_arguments(&wanted, args, count, names, given) < 0 || read_target(given[0], &target, &target_name) < 0)
        return NULL;
    if (none_to_null(given[3]) != NULL)
        return raise_not_supported(state, "program caches are not supported by this version: cache must be None");
    PyObject *source = source_hold(program_cast(op));
    if (source == NULL)
        return raise_closed(state, "Program");
    PyObject *expressions = list_expressions(none_to_null(given[1]));
    PyObject *made = NULL;
    if (expressions != NULL && open_compiler(state) == 0)
        made =
            compile_source(state, program_cast(op), source, target, target_name, expressions, none_to_null(given[2]));
    Py_XDECREF(expressions);
    Py_DECREF(source);
    return made;
}

PyDoc_STRVAR(close_doc, "close($self, /)\n--\n\n"
                        "Let go of the source. What was compiled stays.\n\n"
                        "Closing twice is allowed; compiling after it raises ClosedError.");

static PyObject *program_close(PyObject *op, PyObject *unused)
{
    (void)unused;
    PyObject *source;
    void *native;
    Py_BEGIN_CRITICAL_SECTION(op);
    source = program_cast(op)->source;
    native = program_cast(op)->native;
    program_cast(op)->source = NULL;
    program_cast(op)->native = NULL;
    Py_END_CRITICAL_SECTION();
    cc_program_destroy(native);
    Py_XDECREF(source);
    Py_RETURN_NONE;
}

static PyObject *program_enter(PyObject *op, PyObject *unused)
{
    (void)unused;
    if (is_closed(program_cast(op)))
        return raise_closed(state_of(op), "Program");
    return Py_NewRef(op);
}

static PyObject *program_exit(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    (void)args, (void)count;
    return program_close(op, NULL);
}

static PyObject *program_repr(PyObject *op)
{
    PyObject *name = name_of(program_cast(op));
    if (name == NULL)
        return NULL;
    PyObject *text = PyUnicode_FromFormat("<Program c++, name=%R, backend NVRTC%s>", name,
                                          is_closed(program_cast(op)) ? ", closed" : "");
    Py_DECREF(name);
    return text;
}

static PyMethodDef program_methods[] = {
    {"compile", (PyCFunction)(void (*)(void))program_compile, METH_CLASS_CALL, compile_doc},
    {"close", program_close, METH_NOARGS, close_doc},
    {"__enter__", program_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nThe program itself."},
    {"__exit__", (PyCFunction)(void (*)(void))program_exit, METH_FASTCALL,
     "__exit__($self, exc_type=None, exc_val=None, exc_tb=None, /)\n--\n\nCloses the program."},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static PyObject *program_get_backend(PyObject *op, void *unused)
{
    (void)op, (void)unused;
    return PyUnicode_FromString("NVRTC");
}

/* Two threads may make one each: the first stays. A program that was closed meanwhile gets none. */
static void *make_native(module_state *state, program_object *self, PyObject *source)
{
    PyObject *name = name_of(self);
    const char *shown = name == NULL ? NULL : PyUnicode_AsUTF8(name);
    cc_error error;
    void *made = NULL;
    if (shown != NULL && open_compiler(state) == 0 &&
        cc_program_create(PyBytes_AS_STRING(source), shown, &made, &error) < 0)
        raise_error(state, &error);
    Py_XDECREF(name);
    if (made == NULL)
        return NULL;
    void *kept;
    Py_BEGIN_CRITICAL_SECTION(self);
    if (self->native == NULL && self->source != NULL)
        self->native = made;
    kept = self->native;
    Py_END_CRITICAL_SECTION();
    if (kept != made)
        cc_program_destroy(made);
    return kept == NULL ? raise_closed(state, "Program") : kept;
}

static PyObject *program_get_handle(PyObject *op, void *unused)
{
    (void)unused;
    module_state *state = state_of(op);
    PyObject *source = source_hold(program_cast(op));
    if (source == NULL)
        return raise_closed(state, "Program");
    void *native;
    Py_BEGIN_CRITICAL_SECTION(op);
    native = program_cast(op)->native;
    Py_END_CRITICAL_SECTION();
    if (native == NULL)
        native = make_native(state, program_cast(op), source);
    Py_DECREF(source);
    return native == NULL ? NULL : PyLong_FromVoidPtr(native);
}

static PyObject *program_get_is_closed(PyObject *op, void *unused)
{
    (void)unused;
    return PyBool_FromLong(is_closed(program_cast(op)));
}

static PyObject *program_get_warnings(PyObject *op, void *unused)
{
    (void)unused;
    PyObject *text;
    Py_BEGIN_CRITICAL_SECTION(op);
    text = Py_NewRef(program_cast(op)->warnings);
    Py_END_CRITICAL_SECTION();
    return text;
}

static PyObject *program_get_pch_status(PyObject *op, void *unused)
{
    (void)unused;
    PyObject *status;
    Py_BEGIN_CRITICAL_SECTION(op);
    status = Py_NewRef(program_cast(op)->pch_status);
    Py_END_CRITICAL_SECTION();
    return status;
}

static PyGetSetDef program_attributes[] = {
    {"backend", program_get_backend, NULL, "The compiler, 'NVRTC' (str).", NULL},
    {"handle", program_get_handle, NULL,
     "An nvrtcProgram of the source (int), for calling NVRTC directly; it lives until close(). compile() does not use "
     "it.",
     NULL},
    {"is_closed", program_get_is_closed, NULL, "True after close() (bool).", NULL},
    {"warnings", program_get_warnings, NULL, "What the compiler said at the last compilation, '' for nothing (str).",
     NULL},
    {"pch_status", program_get_pch_status, NULL,
     "What became of the precompiled header at the last compilation: 'created', 'not_attempted', 'failed', or None.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef program_members[] = {WEAKREF_MEMBER(program_object), {NULL, 0, 0, 0, NULL}};

/* ---- traverse ---------------------------------------------------------------------------------------------------- */

static int program_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(program_cast(op)->options);
    return 0;
}

/* ---- spec -------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(program_doc, "Program(code, code_type, options=None)\n--\n\n"
                          "Source to be compiled.\n\n"
                          "code: the source (str, or bytes in UTF-8).\n"
                          "code_type: 'c++'.\n"
                          "options: ProgramOptions, a dict of its fields, or None.\n\n"
                          "A context manager: leaving the block closes it.");

static PyType_Slot program_slots[] = {
    {Py_tp_doc, (void *)program_doc}, {Py_tp_new, program_new},
    {Py_tp_dealloc, program_dealloc}, {Py_tp_traverse, program_traverse},
    {Py_tp_clear, program_clear},     {Py_tp_repr, program_repr},
    {Py_tp_methods, program_methods}, {Py_tp_getset, program_attributes},
    {Py_tp_members, program_members}, {0, NULL},
};

PyType_Spec program_spec = {
    .name = "cuda_core.Program",
    .basicsize = sizeof(program_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = program_slots,
};
