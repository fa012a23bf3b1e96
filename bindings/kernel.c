/* Kernel: a function that a device runs, of an ObjectCode or of a CUkernel that somebody else made. */
#include "kernel.h"

#include "errors.h"
#include "objectcode.h"
#include "parse.h"

/* ---- for other files --------------------------------------------------------------------------------------------- */

PyObject *kernel_from_core(module_state *state, cc_kernel *core, PyObject *name)
{
    PyObject *shown = name != NULL ? Py_NewRef(name) : PyUnicode_FromString(cc_kernel_name(core));
    kernel_object *self = shown == NULL ? NULL : PyObject_New(kernel_object, state->kernel_type);
    if (self == NULL) {
        Py_XDECREF(shown);
        cc_kernel_release(core);
        return NULL;
    }
    self->core = core;
    self->signature = NULL;
    self->name = shown;
    self->weak_references = NULL;
    return (PyObject *)self;
}

const cc_signature *kernel_signature_slowly(module_state *state, kernel_object *kernel)
{
    cc_error error;
    const cc_signature *parameters;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_kernel_signature(kernel->core, &parameters, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0) {
        raise_error(state, &error);
        return NULL;
    }
    __atomic_store_n(&kernel->signature, parameters, __ATOMIC_RELEASE);
    return parameters;
}

static int make_parameter_info(module_state *state, PyObject *module)
{
    static PyStructSequence_Field fields[] = {
        {"offset", "bytes from the start of the arguments (int)"},
        {"size", "bytes (int)"},
        {"type", "'pointer', 'integer', 'float', 'bytes' (a struct), or None where it is not known"},
        {NULL, NULL},
    };
    static PyStructSequence_Desc description = {
        "cuda_core.ParamInfo",
        "Where a kernel finds one of its arguments: (offset, size), and its type as an attribute.",
        fields,
        2,
    };
    state->parameter_info_type = PyStructSequence_NewType(&description);
    if (state->parameter_info_type == NULL)
        return -1;
    return PyModule_AddObjectRef(module, "ParamInfo", (PyObject *)state->parameter_info_type);
}

static int make_block_size(module_state *state, PyObject *module)
{
    static PyStructSequence_Field fields[] = {
        {"min_grid_size", "blocks that fill the device (int)"},
        {"max_block_size", "threads a block (int)"},
        {NULL, NULL},
    };
    static PyStructSequence_Desc description = {
        "cuda_core.MaxPotentialBlockSizeOccupancyResult",
        "The launch that fills a device best: (min_grid_size, max_block_size).",
        fields,
        2,
    };
    state->block_size_type = PyStructSequence_NewType(&description);
    if (state->block_size_type == NULL)
        return -1;
    return PyModule_AddObjectRef(module, "MaxPotentialBlockSizeOccupancyResult", (PyObject *)state->block_size_type);
}

int kernel_ready(module_state *state, PyObject *module)
{
    return make_parameter_info(state, module) < 0 ? -1 : make_block_size(state, module);
}

/* ---- new, dealloc ------------------------------------------------------------------------------------------------ */

static PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type, (void)args, (void)keywords;
    PyErr_SetString(PyExc_TypeError, "a Kernel is not made directly: use ObjectCode.get_kernel or Kernel.from_handle");
    return NULL;
}

static void kernel_dealloc(PyObject *op)
{
    kernel_object *self = kernel_cast(op);
    PyTypeObject *type = Py_TYPE(op);
    if (self->weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    cc_kernel_release(self->core);
    Py_DECREF(self->name);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- methods ----------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(from_handle_doc, "from_handle($type, /, handle, mod=None)\n--\n\n"
                              "The Kernel of a CUkernel that somebody else made.\n\n"
                              "handle: the CUkernel (int).\n"
                              "mod: the ObjectCode it is of; it is kept alive as long as the kernel. Without it, the\n"
                              "caller keeps the kernel's library loaded.\n\n"
                              "Returns a Kernel. Raises TypeError, ValueError for 0, OverflowError.");

static PyObject *kernel_from_handle(PyObject *class, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("handle"), NAME("mod")};
    static const signature wanted = SIGNATURE("Kernel.from_handle", parameters, 2, REQUIRED(0));
    module_state *state = state_of_type((PyTypeObject *)class);
    PyObject *given[2];
    uint64_t handle;
    if (parse_arguments(&wanted, args, count, names, given) < 0 || address_from_object(given[0], "handle", &handle) < 0)
        return NULL;
    if (handle == 0) {
        PyErr_SetString(PyExc_ValueError, "handle must be a CUkernel, not 0");
        return NULL;
    }
    cc_library *library = NULL;
    if (none_to_null(given[1]) != NULL) {
        library = object_code_library(state, given[1]);
        if (library == NULL)
            return NULL;
    }
    cc_error error;
    cc_kernel *core;
    if (open_driver(state) < 0)
        return NULL;
    if (cc_kernel_wrap((CUkernel)(uintptr_t)handle, library, NULL, NULL, &core, &error) < 0)
        return raise_error(state, &error);
    return kernel_from_core(state, core, NULL);
}

static PyObject *kernel_compare(PyObject *op, PyObject *other, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || !Py_IS_TYPE(other, Py_TYPE(op)))
        Py_RETURN_NOTIMPLEMENTED;
    const int same = cc_kernel_native(kernel_cast(op)->core) == cc_kernel_native(kernel_cast(other)->core);
    return PyBool_FromLong(operation == Py_EQ ? same : !same);
}

static Py_hash_t kernel_hash(PyObject *op)
{
    return _Py_HashPointer((void *)cc_kernel_native(kernel_cast(op)->core));
}

static PyObject *kernel_repr(PyObject *op)
{
    return PyUnicode_FromFormat("<Kernel %U at %p>", kernel_cast(op)->name,
                                (void *)cc_kernel_native(kernel_cast(op)->core));
}

static PyMethodDef kernel_methods[] = {
    {"from_handle", FUNCTION(kernel_from_handle), METH_KEYWORD_CALL | METH_CLASS, from_handle_doc},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static PyObject *kernel_get_handle(PyObject *op, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr((void *)cc_kernel_native(kernel_cast(op)->core));
}

static PyObject *kernel_get_name(PyObject *op, void *unused)
{
    (void)unused;
    return Py_NewRef(kernel_cast(op)->name);
}

static PyObject *kernel_get_attributes(PyObject *op, void *unused)
{
    (void)unused;
    return kernel_attributes_of(state_of(op), op, NULL);
}

static PyObject *kernel_get_occupancy(PyObject *op, void *unused)
{
    (void)unused;
    return kernel_occupancy_of(state_of(op), op);
}

static const cc_signature *known_signature(PyObject *op)
{
    module_state *state = state_of(op);
    const cc_signature *parameters = kernel_signature(state, kernel_cast(op));
    if (parameters == NULL || parameters->is_known)
        return parameters;
    raise_not_supported(state, "the driver does not tell the parameters of kernels: that needs CUDA 12.4 or newer");
    return NULL;
}

static PyObject *kernel_get_num_arguments(PyObject *op, void *unused)
{
    (void)unused;
    const cc_signature *parameters = known_signature(op);
    return parameters == NULL ? NULL : PyLong_FromUnsignedLong(parameters->count);
}

static PyObject *type_name(cc_type type)
{
    switch (type) {
    case CC_TYPE_INTEGER:
        return PyUnicode_FromString("integer");
    case CC_TYPE_POINTER:
        return PyUnicode_FromString("pointer");
    case CC_TYPE_FLOAT:
        return PyUnicode_FromString("float");
    case CC_TYPE_BYTES:
        return PyUnicode_FromString("bytes");
    case CC_TYPE_UNKNOWN:
        break;
    }
    Py_RETURN_NONE;
}

static PyObject *parameter_info(PyTypeObject *type, const cc_parameter *parameter)
{
    PyObject *info = PyStructSequence_New(type);
    if (info == NULL)
        return NULL;
    PyStructSequence_SetItem(info, 0, PyLong_FromUnsignedLong(parameter->offset));
    PyStructSequence_SetItem(info, 1, PyLong_FromUnsignedLong(parameter->size));
    PyStructSequence_SetItem(info, 2, type_name(parameter->type));
    if (PyErr_Occurred())
        Py_CLEAR(info);
    return info;
}

static PyObject *kernel_get_arguments_info(PyObject *op, void *unused)
{
    (void)unused;
    const cc_signature *parameters = known_signature(op);
    if (parameters == NULL)
        return NULL;
    PyTypeObject *type = state_of(op)->parameter_info_type;
    PyObject *list = PyList_New((Py_ssize_t)parameters->count);
    for (uint32_t i = 0; list != NULL && i < parameters->count; i++) {
        PyObject *info = parameter_info(type, &parameters->parameters[i]);
        if (info == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, info);
    }
    return list;
}

static PyGetSetDef kernel_attributes[] = {
    {"handle", kernel_get_handle, NULL, "The CUkernel (int).", NULL},
    {"name", kernel_get_name, NULL, "The name it was asked for by, or that it has in the code (str).", NULL},
    {"attributes", kernel_get_attributes, NULL,
     "What the kernel needs and may be allowed (KernelAttributes): of the current device, or of [device].", NULL},
    {"occupancy", kernel_get_occupancy, NULL, "How many blocks fit on the current device (KernelOccupancy).", NULL},
    {"num_arguments", kernel_get_num_arguments, NULL, "How many arguments a launch takes (int).", NULL},
    {"arguments_info", kernel_get_arguments_info, NULL, "Offset and size of each argument (list of ParamInfo).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef kernel_members[] = {WEAKREF_MEMBER(kernel_object), {NULL, 0, 0, 0, NULL}};

/* ---- spec -------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(kernel_doc, "A function that a device runs. From ObjectCode.get_kernel; run by launch().\n\n"
                         "It keeps the code it is of loaded. Kernels of the same handle are equal.");

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, (void *)kernel_doc}, {Py_tp_new, kernel_new},
    {Py_tp_dealloc, kernel_dealloc}, {Py_tp_repr, kernel_repr},
    {Py_tp_hash, kernel_hash},       {Py_tp_richcompare, kernel_compare},
    {Py_tp_methods, kernel_methods}, {Py_tp_getset, kernel_attributes},
    {Py_tp_members, kernel_members}, {0, NULL},
};

PyType_Spec kernel_spec = {
    .name = "cuda_core.Kernel",
    .basicsize = sizeof(kernel_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = kernel_slots,
};
