/* Capsules of DLPack with any contents, as another library would make them: the destructor of a capsule that nobody
 * renamed calls the deleter. Whatever happens to the capsule, each tensor must be given back exactly once. */
#include "embed.h"

#include "dlpack.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DIMENSIONS = 128 };

typedef struct crafted {
    union {
        dlpack_managed plain;
        dlpack_versioned versioned;
    } tensor;
    bool is_versioned, is_deleted;
    PyObject *on_delete; /* called when the tensor is given back, or NULL */
    int64_t *shape, *strides;
    char name[32];
} crafted;

static long alive;

long tensors_alive(void)
{
    return alive;
}

static void give_back(crafted *self)
{
    if (self->is_deleted)
        broken("a tensor was given back twice");
    self->is_deleted = true;
    alive--;
    PyObject *type, *raised, *traceback;
    PyErr_Fetch(&type, &raised, &traceback);
    PyObject *result = self->on_delete == NULL ? NULL : PyObject_CallNoArgs(self->on_delete);
    if (result == NULL && PyErr_Occurred())
        PyErr_Clear(); /* a deleter has nobody to tell */
    Py_XDECREF(result);
    Py_XDECREF(self->on_delete);
    PyErr_Restore(type, raised, traceback);
    free(self->shape);
    free(self->strides);
    free(self);
}

static void delete_plain(dlpack_managed *tensor)
{
    give_back(tensor->manager);
}

static void delete_versioned(dlpack_versioned *tensor)
{
    give_back(tensor->manager);
}

/* A consumer that takes the tensor over renames the capsule, and calls the deleter itself. */
static void drop_capsule(PyObject *capsule)
{
    crafted *self = PyCapsule_GetContext(capsule);
    if (PyCapsule_GetName(capsule) == self->name)
        give_back(self);
}

/* A new array of the ints of a tuple; NULL for None, and with an exception. */
static int64_t *read_extents(PyObject *tuple, Py_ssize_t *count)
{
    *count = 0;
    if (tuple == Py_None)
        return NULL;
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > MOST_DIMENSIONS) {
        PyErr_SetString(PyExc_ValueError, "extents are None or a tuple of at most 128 ints");
        return NULL;
    }
    *count = PyTuple_GET_SIZE(tuple);
    int64_t *values = malloc((size_t)*count * sizeof *values + 1);
    for (Py_ssize_t i = 0; values != NULL && i < *count; i++)
        values[i] = (int64_t)PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(tuple, i));
    return values;
}

static void fill(crafted *self, const dlpack_tensor *tensor, const uint32_t version[2], uint64_t flags,
                 bool has_deleter)
{
    if (self->is_versioned) {
        self->tensor.versioned = (dlpack_versioned){.major = version[0],
                                                    .minor = version[1],
                                                    .manager = self,
                                                    .deleter = has_deleter ? delete_versioned : NULL,
                                                    .flags = flags,
                                                    .tensor = *tensor};
    } else {
        self->tensor.plain =
            (dlpack_managed){.tensor = *tensor, .manager = self, .deleter = has_deleter ? delete_plain : NULL};
    }
}

static PyObject *make_capsule(crafted *self, PyObject *on_delete, const char *name)
{
    snprintf(self->name, sizeof self->name, "%s", name);
    self->on_delete = on_delete == Py_None ? NULL : Py_NewRef(on_delete);
    alive++;
    PyObject *capsule = PyCapsule_New(&self->tensor, self->name, drop_capsule);
    if (capsule == NULL || PyCapsule_SetContext(capsule, self) < 0)
        broken("no memory");
    return capsule;
}

static PyObject *make_tensor(PyObject *module, PyObject *args)
{
    (void)module;
    int is_versioned, has_deleter;
    uint32_t version[2];
    unsigned long long flags, data, offset;
    dlpack_tensor tensor = {0};
    PyObject *shape, *strides, *on_delete;
    const char *name;
    if (!PyArg_ParseTuple(args, "p(II)KK(ii)i(bbH)OOKpOs", &is_versioned, &version[0], &version[1], &flags, &data,
                          &tensor.device.type, &tensor.device.id, &tensor.dimensions, &tensor.data_type.code,
                          &tensor.data_type.bits, &tensor.data_type.lanes, &shape, &strides, &offset, &has_deleter,
                          &on_delete, &name))
        return NULL;
    Py_ssize_t lengths[2];
    crafted *self = calloc(1, sizeof *self);
    if (self == NULL)
        return PyErr_NoMemory();
    self->is_versioned = is_versioned;
    tensor.shape = self->shape = read_extents(shape, &lengths[0]);
    tensor.strides = self->strides = read_extents(strides, &lengths[1]);
    tensor.data = (void *)(uintptr_t)data;
    tensor.byte_offset = offset;
    const bool fits = (tensor.shape == NULL || tensor.dimensions <= lengths[0]) &&
                      (tensor.strides == NULL || tensor.dimensions <= lengths[1]);
    if (PyErr_Occurred() || !fits) { /* no consumer could notice that an array is too short */
        free(self->shape);
        free(self->strides);
        free(self);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "more dimensions than extents");
        return NULL;
    }
    fill(self, &tensor, version, flags, has_deleter);
    return make_capsule(self, on_delete, name);
}

static PyObject *count_alive(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(alive);
}

PyMethodDef tensor_functions[] = {
    {"tensor", make_tensor, METH_VARARGS,
     "tensor(is_versioned, (major, minor), flags, data, (device type, id), dimensions, (code, bits, lanes), shape,\n"
     "strides, byte_offset, has_deleter, on_delete, name): a capsule"},
    {"tensors_alive", count_alive, METH_NOARGS, "tensors_alive(): how many tensors were not given back yet"},
    {NULL, NULL, 0, NULL},
};
