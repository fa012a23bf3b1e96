/* ObjectCode: compiled code. It is loaded when a kernel of it, or its handle, is first asked for. */
#include "objectcode.h"

#include "device.h"
#include "errors.h"
#include "kernel.h"
#include "parse.h"

typedef struct code_format {
    const char *name;
    bool can_load; /* the others must be linked first */
} code_format;

typedef struct object_code_object {
    PyObject_HEAD
    cc_library *core; /* NULL until it is loaded */
    const code_format *format;
    PyObject *code;    /* bytes, or str: the path of a file */
    PyObject *name;    /* str */
    PyObject *mapping; /* dict: name expression to name in the code */
    PyObject *weak_references;
} object_code_object;

#define object_code_cast(object) ((object_code_object *)(object))

static const code_format formats[] = {
    {"ptx", true}, {"cubin", true}, {"ltoir", false}, {"fatbin", true}, {"object", false}, {"library", false},
};

static const code_format *find_format(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    }
    return NULL;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static PyObject *read_file(PyObject *path)
{
    PyObject *io = PyImport_ImportModule("io");
    PyObject *file = io == NULL ? NULL : PyObject_CallMethod(io, "open", "Os", path, "rb");
    Py_XDECREF(io);
    if (file == NULL)
        return NULL;
    PyObject *bytes = PyObject_CallMethod(file, "read", NULL);
    PyObject *closed = bytes == NULL ? NULL : PyObject_CallMethod(file, "close", NULL);
    if (closed == NULL || !PyBytes_Check(bytes))
        Py_CLEAR(bytes);
    Py_XDECREF(closed);
    Py_DECREF(file);
    return bytes;
}

static cc_library *load(module_state *state, object_code_object *self)
{
    if (!self->format->can_load) {
        PyErr_Format(state->NotSupportedError, "'%s' code has no kernels until it is linked into a cubin",
                     self->format->name);
        return NULL;
    }
    if (open_driver(state) < 0)
        return NULL;
    PyObject *bytes = PyBytes_Check(self->code) ? Py_NewRef(self->code) : read_file(self->code);
    if (bytes == NULL)
        return NULL;
    cc_error error;
    cc_library *core = NULL;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_library_load(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes), &core, &error);
    Py_END_ALLOW_THREADS;
    Py_DECREF(bytes);
    if (status < 0)
        raise_error(state, &error);
    return status < 0 ? NULL : core;
}

cc_library *object_code_library(module_state *state, PyObject *object)
{
    if (!Py_IS_TYPE(object, state->object_code_type)) {
        PyErr_Format(PyExc_TypeError, "an ObjectCode is wanted, not %.100s", Py_TYPE(object)->tp_name);
        return NULL;
    }
    object_code_object *self = object_code_cast(object);
    cc_library *core = __atomic_load_n(&self->core, __ATOMIC_ACQUIRE);
    if (core != NULL)
        return core;
    cc_library *fresh = load(state, self);
    if (fresh == NULL)
        return NULL;
    /* Another thread may have loaded it meanwhile: the first one stays, as kernels may be out already. */
    if (__atomic_compare_exchange_n(&self->core, &core, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    cc_library_release(fresh);
    return core;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* str of a str or bytes; new reference. */
static PyObject *text_of(PyObject *object, const char *what)
{
    if (PyUnicode_Check(object))
        return Py_NewRef(object);
    if (PyBytes_Check(object))
        return PyUnicode_DecodeUTF8(PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object), NULL);
    PyErr_Format(PyExc_TypeError, "%s must be a str or bytes, not %.100s", what, Py_TYPE(object)->tp_name);
    return NULL;
}

/* mapping: a dict that nobody changes. New reference. */
static PyObject *texts_of(PyObject *mapping)
{
    PyObject *texts = PyDict_New();
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (texts != NULL && PyDict_Next(mapping, &at, &key, &value)) {
        PyObject *expression = text_of(key, "a name in symbol_mapping");
        PyObject *lowered = expression == NULL ? NULL : text_of(value, "a value of symbol_mapping");
        if (lowered == NULL || PyDict_SetItem(texts, expression, lowered) < 0)
            Py_CLEAR(texts);
        Py_XDECREF(expression);
        Py_XDECREF(lowered);
    }
    return texts;
}

static PyObject *copy_mapping(PyObject *given)
{
    if (given == NULL)
        return PyDict_New();
    if (!PyDict_Check(given)) {
        PyErr_Format(PyExc_TypeError, "symbol_mapping must be a dict or None, not %.100s", Py_TYPE(given)->tp_name);
        return NULL;
    }
    PyObject *copy = PyDict_Copy(given); /* another thread may change the caller's own */
    PyObject *texts = copy == NULL ? NULL : texts_of(copy);
    Py_XDECREF(copy);
    return texts;
}

/* The name by which a kernel of the code was asked for when it was compiled, else its own. New reference. */
static PyObject *shown_name(const object_code_object *self, const char *lowered)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(self->mapping, &at, &key, &value)) {
        if (PyUnicode_CompareWithASCIIString(value, lowered) == 0)
            return Py_NewRef(key);
    }
    return PyUnicode_FromString(lowered);
}

static PyObject *list_names(module_state *state, PyObject *op)
{
    cc_library *core = object_code_library(state, op);
    if (core == NULL)
        return NULL;
    cc_error error;
    const char *const *names;
    size_t count;
    if (cc_library_kernel_names(core, &names, &count, &error) < 0)
        return raise_error(state, &error);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *name = shown_name(object_code_cast(op), names[i]);
        if (name == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, name);
    }
    return list;
}

/* The name in the code of a name or name expression. New reference. */
static PyObject *lowered_name(PyObject *op, PyObject *name)
{
    PyObject *lowered = PyDict_GetItemWithError(object_code_cast(op)->mapping, name);
    if (lowered == NULL && PyErr_Occurred())
        return NULL;
    return Py_NewRef(lowered == NULL ? name : lowered);
}

static PyObject *refuse_name(module_state *state, PyObject *op, PyObject *name)
{
    PyObject *names = list_names(state, op);
    PyObject *separator = names == NULL ? NULL : PyUnicode_FromString(", ");
    PyObject *listed = separator == NULL ? NULL : PyUnicode_Join(separator, names);
    if (listed != NULL && PyList_GET_SIZE(names) == 0)
        PyErr_Format(
            state->KernelNotFoundError,
            "there is no kernel '%U': this code has none (a kernel that is a template is compiled only for the "
            "name_expressions given to Program.compile)",
            name);
    else if (listed != NULL)
        PyErr_Format(
            state->KernelNotFoundError,
            "there is no kernel '%U'; there are: %U (C++ mangles names: declare the kernel extern \"C\", or give "
            "name_expressions to Program.compile)",
            name, listed);
    Py_XDECREF(listed);
    Py_XDECREF(separator);
    Py_XDECREF(names);
    return NULL;
}

static PyObject *find_kernel(module_state *state, PyObject *op, PyObject *asked)
{
    cc_library *core = object_code_library(state, op);
    PyObject *name = core == NULL ? NULL : text_of(asked, "name");
    PyObject *lowered = name == NULL ? NULL : lowered_name(op, name);
    Py_ssize_t length;
    const char *text = lowered == NULL ? NULL : PyUnicode_AsUTF8AndSize(lowered, &length);
    PyObject *kernel = NULL;
    if (text != NULL && strlen(text) != (size_t)length) {
        refuse_name(state, op, name);
    } else if (text != NULL) {
        cc_error error;
        cc_kernel *found;
        if (cc_kernel_get(core, text, &found, &error) == 0) {
            kernel = kernel_from_core(state, found, name);
        } else if (error.domain == CC_DOMAIN_CORE && error.code == CC_NO_SUCH_KERNEL) {
            cc_error_clear(&error);
            refuse_name(state, op, name);
        } else {
            raise_error(state, &error);
        }
    }
    Py_XDECREF(lowered);
    Py_XDECREF(name);
    return kernel;
}

/* ---- new, dealloc ------------------------------------------------------------------------------------------------ */

PyObject *object_code_make(module_state *state, const char *format, PyObject *code, PyObject *name, PyObject *mapping)
{
    object_code_object *self = PyObject_New(object_code_object, state->object_code_type);
    if (self == NULL)
        return NULL;
    self->core = NULL;
    self->format = find_format(format);
    self->code = Py_NewRef(code);
    self->name = Py_NewRef(name);
    self->mapping = Py_NewRef(mapping);
    self->weak_references = NULL;
    return (PyObject *)self;
}

static PyObject *object_code_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type, (void)args, (void)keywords;
    PyErr_SetString(PyExc_TypeError,
                    "an ObjectCode is not made directly: use Program.compile or ObjectCode.from_cubin and its like");
    return NULL;
}

static void object_code_dealloc(PyObject *op)
{
    object_code_object *self = object_code_cast(op);
    PyTypeObject *type = Py_TYPE(op);
    if (self->weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    cc_library_release(self->core);
    Py_DECREF(self->code);
    Py_DECREF(self->name);
    Py_DECREF(self->mapping);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- made from what the user has --------------------------------------------------------------------------------- */

/* bytes of anything that is bytes; a path as str. PTX may come as text: no path has a line break. */
static PyObject *read_code(const char *format, PyObject *module)
{
    if (PyBytes_CheckExact(module))
        return Py_NewRef(module);
    if (PyObject_CheckBuffer(module))
        return PyBytes_FromObject(module);
    if (PyUnicode_Check(module) && strcmp(format, "ptx") == 0 &&
        PyUnicode_FindChar(module, '\n', 0, PyUnicode_GET_LENGTH(module), 1) >= 0)
        return PyUnicode_AsUTF8String(module);
    PyObject *path = PyOS_FSPath(module);
    if (path == NULL) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "module must be bytes, or the path of a file, not %.100s",
                         Py_TYPE(module)->tp_name);
        return NULL;
    }
    if (PyUnicode_Check(path))
        return path;
    PyObject *text = PyUnicode_DecodeFSDefaultAndSize(PyBytes_AS_STRING(path), PyBytes_GET_SIZE(path));
    Py_DECREF(path);
    return text;
}

static PyObject *make_from(module_state *state, const char *format, PyObject *module, PyObject *name, PyObject *mapping)
{
    if (name != NULL && !PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "name must be a str, not %.100s", Py_TYPE(name)->tp_name);
        return NULL;
    }
    PyObject *shown = name != NULL ? Py_NewRef(name) : PyUnicode_FromString("");
    PyObject *symbols = shown == NULL ? NULL : copy_mapping(none_to_null(mapping));
    PyObject *code = symbols == NULL ? NULL : read_code(format, module);
    PyObject *made = code == NULL ? NULL : object_code_make(state, format, code, shown, symbols);
    Py_XDECREF(code);
    Py_XDECREF(symbols);
    Py_XDECREF(shown);
    return made;
}

static PyObject *from_format(const char *format, const char *function, PyObject *class, PyObject *const *args,
                             Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("module"), NAME("name"), NAME("symbol_mapping")};
    const signature wanted = SIGNATURE(function, parameters, 1, REQUIRED(0));
    PyObject *given[3];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    return make_from(state_of_type((PyTypeObject *)class), format, given[0], given[1], given[2]);
}

#define FROM(format, what)                                                                                             \
    PyDoc_STRVAR(from_##format##_doc,                                                                                  \
                 "from_" #format "($type, module, *, name='', symbol_mapping=None)\n--\n\n"                            \
                 "An ObjectCode of " what ".\n\n"                                                                      \
                 "module: bytes or another object with the buffer protocol; or the path of a file (str or\n"           \
                 "os.PathLike), which is read when the code is loaded. For from_ptx also a str of PTX, of\n"           \
                 "several lines.\n"                                                                                    \
                 "name: what it is called in messages (str).\n"                                                        \
                 "symbol_mapping: for each name that get_kernel() is to know, the name in the code (dict).\n\n"        \
                 "Returns an ObjectCode. Raises TypeError; what is wrong with the code, or the file, is raised\n"      \
                 "when it is loaded: CUDAError, OSError.");                                                            \
    static PyObject *from_##format(PyObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names)          \
    {                                                                                                                  \
        return from_format(#format, "ObjectCode.from_" #format, class, args, count, names);                            \
    }
FROM(cubin, "a cubin, the machine code of one architecture")
FROM(ptx, "PTX; its text is taken, too")
FROM(ltoir, "LTO IR, for a Linker")
FROM(fatbin, "a fatbin, code for several architectures")
FROM(object, "a relocatable object, for a Linker")
FROM(library, "a static library, for a Linker")
#undef FROM

/* ---- methods ----------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(get_kernel_doc, "get_kernel($self, /, name)\n--\n\n"
                             "The Kernel of that name (str or bytes): a name expression of the compilation, or the\n"
                             "name in the code.\n\n"
                             "Raises KernelNotFoundError, a KeyError, listing the names there are.\n"
                             "Driver: cuLibraryLoadData at the first time, cuLibraryGetKernel.");

static PyObject *object_code_get_kernel(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                        PyObject *names)
{
    static const parameter_name parameters[] = {NAME("name")};
    static const signature wanted = SIGNATURE("ObjectCode.get_kernel", parameters, 1, REQUIRED(0));
    PyObject *given[1];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    return find_kernel(state_of_class(class), op, given[0]);
}

PyDoc_STRVAR(get_module_doc, "get_module($self, /)\n--\n\n"
                             "The CUmodule (int) of the code on the current device; it belongs to the code.\n\n"
                             "Driver: cuLibraryGetModule.");

static PyObject *object_code_get_module(PyObject *op, PyObject *unused)
{
    (void)unused;
    module_state *state = state_of(op);
    cc_library *core = object_code_library(state, op);
    const device_object *device = core == NULL ? NULL : device_current(state);
    cc_error error;
    CUmodule module;
    if (device == NULL)
        return NULL;
    if (cc_library_module(core, device->core, &module, &error) < 0)
        return raise_error(state, &error);
    return PyLong_FromVoidPtr((void *)module);
}

static PyObject *object_code_keys(PyObject *op, PyObject *unused)
{
    (void)unused;
    return list_names(state_of(op), op);
}

static PyObject *object_code_reduce(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                    PyObject *names)
{
    (void)args;
    if (parse_nothing("ObjectCode.__reduce__", count, names) < 0)
        return NULL;
    const object_code_object *self = object_code_cast(op);
    PyObject *module = PyType_GetModule(class);
    PyObject *function = module == NULL ? NULL : PyObject_GetAttrString(module, "_object_code");
    PyObject *mapping = function == NULL ? NULL : PyDict_Copy(self->mapping); /* nobody else may change ours */
    if (mapping == NULL) {
        Py_XDECREF(function);
        return NULL;
    }
    return Py_BuildValue("N(sOON)", function, self->format->name, self->code, self->name, mapping);
}

static PyMethodDef object_code_methods[] = {
#define FROM(format)                                                                                                   \
    {                                                                                                                  \
        "from_" #format, FUNCTION(from_##format), METH_KEYWORD_CALL | METH_CLASS, from_##format##_doc                  \
    }
    FROM(cubin),
    FROM(ptx),
    FROM(ltoir),
    FROM(fatbin),
    FROM(object),
    FROM(library),
#undef FROM
    {"get_kernel", (PyCFunction)(void (*)(void))object_code_get_kernel, METH_CLASS_CALL, get_kernel_doc},
    {"get_module", object_code_get_module, METH_NOARGS, get_module_doc},
    {"keys", object_code_keys, METH_NOARGS, "keys($self, /)\n--\n\nThe names of the kernels (list of str)."},
    {"__reduce__", (PyCFunction)(void (*)(void))object_code_reduce, METH_CLASS_CALL,
     "__reduce__($self, /)\n--\n\nFor pickle and copy."},
    {NULL, NULL, 0, NULL},
};

/* ---- as a mapping of names to kernels ---------------------------------------------------------------------------- */

static PyObject *object_code_subscript(PyObject *op, PyObject *name)
{
    return find_kernel(state_of(op), op, name);
}

static Py_ssize_t object_code_length(PyObject *op)
{
    PyObject *names = list_names(state_of(op), op);
    const Py_ssize_t count = names == NULL ? -1 : PyList_GET_SIZE(names);
    Py_XDECREF(names);
    return count;
}

static int object_code_contains(PyObject *op, PyObject *name)
{
    if (!PyUnicode_Check(name) && !PyBytes_Check(name))
        return 0;
    module_state *state = state_of(op);
    PyObject *kernel = find_kernel(state, op, name);
    if (kernel == NULL) {
        if (!PyErr_ExceptionMatches(state->KernelNotFoundError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    Py_DECREF(kernel);
    return 1;
}

static PyObject *object_code_iter(PyObject *op)
{
    PyObject *names = list_names(state_of(op), op);
    PyObject *iterator = names == NULL ? NULL : PyObject_GetIter(names);
    Py_XDECREF(names);
    return iterator;
}

/* Without it, `if code:` would load the code to count its kernels. */
static int object_code_bool(PyObject *op)
{
    (void)op;
    return 1;
}

/* ---- as a value -------------------------------------------------------------------------------------------------- */

static PyObject *object_code_compare(PyObject *op, PyObject *other, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || !Py_IS_TYPE(other, Py_TYPE(op)))
        Py_RETURN_NOTIMPLEMENTED;
    const object_code_object *left = object_code_cast(op), *right = object_code_cast(other);
    int same = left == right;
    if (!same && left->format == right->format) {
        same = PyObject_RichCompareBool(left->code, right->code, Py_EQ);
        if (same == 1)
            same = PyObject_RichCompareBool(left->mapping, right->mapping, Py_EQ);
    }
    if (same < 0)
        return NULL;
    return PyBool_FromLong(operation == Py_EQ ? same : !same);
}

static Py_hash_t object_code_hash(PyObject *op)
{
    const Py_hash_t hash = PyObject_Hash(object_code_cast(op)->code);
    return hash == -1 ? -1 : (hash ^ (Py_hash_t)(object_code_cast(op)->format - formats) << 8) & PY_SSIZE_T_MAX;
}

static PyObject *object_code_repr(PyObject *op)
{
    const object_code_object *self = object_code_cast(op);
    if (PyBytes_Check(self->code))
        return PyUnicode_FromFormat("<ObjectCode %s, name=%R, %zd bytes>", self->format->name, self->name,
                                    PyBytes_GET_SIZE(self->code));
    return PyUnicode_FromFormat("<ObjectCode %s, name=%R, of %R>", self->format->name, self->name, self->code);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static PyObject *object_code_get_code(PyObject *op, void *unused)
{
    (void)unused;
    return Py_NewRef(object_code_cast(op)->code);
}

static PyObject *object_code_get_name(PyObject *op, void *unused)
{
    (void)unused;
    return Py_NewRef(object_code_cast(op)->name);
}

static PyObject *object_code_get_code_type(PyObject *op, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(object_code_cast(op)->format->name);
}

static PyObject *object_code_get_symbol_mapping(PyObject *op, void *unused)
{
    (void)unused;
    return PyDict_Copy(object_code_cast(op)->mapping);
}

static PyObject *object_code_get_handle(PyObject *op, void *unused)
{
    (void)unused;
    cc_library *core = object_code_library(state_of(op), op);
    return core == NULL ? NULL : PyLong_FromVoidPtr((void *)cc_library_native(core));
}

static PyGetSetDef object_code_attributes[] = {
    {"code", object_code_get_code, NULL, "The code (bytes), or the path of its file as it was given (str).", NULL},
    {"name", object_code_get_name, NULL, "What it is called in messages (str).", NULL},
    {"code_type", object_code_get_code_type, NULL, "'cubin', 'ptx', 'ltoir', 'fatbin', 'object' or 'library'.", NULL},
    {"symbol_mapping", object_code_get_symbol_mapping, NULL,
     "For each name expression of the compilation, the name in the code (dict of str to str).", NULL},
    {"handle", object_code_get_handle, NULL, "The CUlibrary (int); loads the code. Driver: cuLibraryLoadData.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef object_code_members[] = {WEAKREF_MEMBER(object_code_object), {NULL, 0, 0, 0, NULL}};

/* ---- functions of the module ------------------------------------------------------------------------------------- */

static PyObject *object_code_rebuild(PyObject *module, PyObject *args)
{
    const char *format;
    PyObject *code, *name, *mapping;
    if (!PyArg_ParseTuple(args, "sOUO!:_object_code", &format, &code, &name, &PyDict_Type, &mapping))
        return NULL;
    if (find_format(format) == NULL) {
        PyErr_Format(PyExc_ValueError, "'%s' is no kind of code", format);
        return NULL;
    }
    return make_from(state_of_module(module), format, code, name, mapping);
}

PyMethodDef object_code_functions[] = {
    {"_object_code", object_code_rebuild, METH_VARARGS,
     "_object_code($module, code_type, code, name, symbol_mapping, /)\n--\n\nWhat pickle calls for an ObjectCode."},
    {NULL, NULL, 0, NULL},
};

/* ---- spec -------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(object_code_doc,
             "Compiled code, of Program.compile or of ObjectCode.from_cubin and its like.\n\n"
             "A mapping of names to kernels: code['saxpy'], 'saxpy' in code, len(code), iteration. It can be pickled.\n"
             "Equal where code and names are. It is loaded, for all devices, when it is first needed.");

static PyType_Slot object_code_slots[] = {
    {Py_tp_doc, (void *)object_code_doc},
    {Py_tp_new, object_code_new},
    {Py_tp_dealloc, object_code_dealloc},
    {Py_tp_repr, object_code_repr},
    {Py_tp_hash, object_code_hash},
    {Py_tp_richcompare, object_code_compare},
    {Py_tp_iter, object_code_iter},
    {Py_mp_subscript, object_code_subscript},
    {Py_mp_length, object_code_length},
    {Py_sq_contains, object_code_contains},
    {Py_nb_bool, object_code_bool},
    {Py_tp_methods, object_code_methods},
    {Py_tp_getset, object_code_attributes},
    {Py_tp_members, object_code_members},
    {0, NULL},
};

PyType_Spec object_code_spec = {
    .name = "cuda_core.ObjectCode",
    .basicsize = sizeof(object_code_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = object_code_slots,
};
