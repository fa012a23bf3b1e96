/* LaunchConfig: how many threads run a kernel, and how. A value: immutable, hashable, made without a driver. */
#include "launchconfig.h"

#include "options.h"
#include "parse.h"

#include <limits.h>
#include <string.h>

/* ---- reading the three dimensions -------------------------------------------------------------------------------- */

/* One extent, from 1 to what the driver's type holds; the device's own limits are held at the launch. */
static int read_extent(PyObject *object, const char *what, unsigned *extent)
{
    if (PyBool_Check(object) || !PyIndex_Check(object)) {
        PyErr_Format(PyExc_TypeError, "LaunchConfig.%s must be an int or a tuple of one to three ints, not %.100s",
                     what, Py_TYPE(object)->tp_name);
        return -1;
    }
    PyObject *number = PyNumber_Index(object);
    if (number == NULL)
        return -1;
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow == 0 && value >= 1 && value <= UINT_MAX) {
        Py_DECREF(number);
        *extent = (unsigned)value;
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "LaunchConfig.%s must be between 1 and %u in every dimension, not %R", what,
                 UINT_MAX, number);
    Py_DECREF(number);
    return -1;
}

static int read_tuple(PyObject *tuple, const char *what, unsigned extents[3])
{
    const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    if (count < 1 || count > 3) {
        PyErr_Format(PyExc_ValueError, "LaunchConfig.%s must have one to three dimensions, not %zd", what, count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_extent(PyTuple_GET_ITEM(tuple, i), what, &extents[i]) < 0)
            return -1;
    }
    return 0;
}

static int read_extents(PyObject *object, const char *what, unsigned extents[3])
{
    extents[0] = extents[1] = extents[2] = 1;
    if (PyTuple_Check(object))
        return read_tuple(object, what, extents);
    if (!PyList_Check(object))
        return read_extent(object, what, &extents[0]);
    PyObject *copy = PyList_AsTuple(object); /* the list may change under __index__, or by another thread */
    const int status = copy == NULL ? -1 : read_tuple(copy, what, extents);
    Py_XDECREF(copy);
    return status;
}

static int read_grid(launch_config_object *self, PyObject *grid, PyObject *cluster)
{
    if (read_extents(grid, "grid", self->grid) < 0)
        return -1;
    memcpy(self->core.grid, self->grid, sizeof self->grid);
    if (cluster == NULL)
        return 0;
    if (read_extents(cluster, "cluster", self->core.cluster) < 0)
        return -1;
    for (int i = 0; i < 3; i++) {
        if (__builtin_mul_overflow(self->grid[i], self->core.cluster[i], &self->core.grid[i])) {
            PyErr_Format(PyExc_ValueError, "LaunchConfig.grid counts clusters: %u clusters of %u blocks are too many",
                         self->grid[i], self->core.cluster[i]);
            return -1;
        }
    }
    return 0;
}

static int read_shared_bytes(PyObject *object, unsigned *bytes)
{
    size_t size;
    if (size_from_object(object, "LaunchConfig.shmem_size", &size) < 0)
        return -1;
    if (size > UINT_MAX) {
        PyErr_Format(PyExc_ValueError, "LaunchConfig.shmem_size must be at most %u bytes, not %zu", UINT_MAX, size);
        return -1;
    }
    *bytes = (unsigned)size;
    return 0;
}

/* ---- new, dealloc ------------------------------------------------------------------------------------------------ */

enum { GRID, CLUSTER, BLOCK, SHMEM_SIZE, IS_COOPERATIVE, PROGRAMMATIC, PARAMETERS };

static const parameter_name new_names[PARAMETERS] = {
    NAME("grid"),       NAME("cluster"),        NAME("block"),
    NAME("shmem_size"), NAME("is_cooperative"), NAME("programmatic_stream_serialization"),
};
static const signature new_signature = SIGNATURE("LaunchConfig", new_names, PARAMETERS, 0);

static int launch_config_fill(launch_config_object *self, PyObject **given)
{
    if (none_to_null(given[GRID]) != NULL && none_to_null(given[CLUSTER]) != NULL &&
        none_to_null(given[BLOCK]) == NULL) {
        PyErr_Format(PyExc_TypeError,
                     "LaunchConfig needs a block: LaunchConfig(grid=%R, block=%R); the second argument is the cluster",
                     given[GRID], given[CLUSTER]);
        return -1;
    }
    if (none_to_null(given[GRID]) == NULL || none_to_null(given[BLOCK]) == NULL) {
        PyErr_Format(PyExc_TypeError, "LaunchConfig needs a %s: an int or a tuple of one to three ints",
                     none_to_null(given[GRID]) == NULL ? "grid" : "block");
        return -1;
    }
    if (read_grid(self, given[GRID], none_to_null(given[CLUSTER])) < 0 ||
        read_extents(given[BLOCK], "block", self->core.block) < 0)
        return -1;
    if (none_to_null(given[SHMEM_SIZE]) != NULL && read_shared_bytes(given[SHMEM_SIZE], &self->core.shared_bytes) < 0)
        return -1;
    const int cooperative = options_flag(given[IS_COOPERATIVE], "LaunchConfig", "is_cooperative", 0);
    const int programmatic = options_flag(given[PROGRAMMATIC], "LaunchConfig", "programmatic_stream_serialization", 0);
    if (cooperative < 0 || programmatic < 0)
        return -1;
    self->core.cooperative = cooperative != 0;
    self->core.programmatic_stream_serialization = programmatic != 0;
    return 0;
}

static PyObject *launch_config_make(PyTypeObject *type, PyObject **given)
{
    PyObject *self = type->tp_alloc(type, 0);
    if (self != NULL && launch_config_fill(launch_config_cast(self), given) < 0)
        Py_CLEAR(self);
    return self;
}

PyObject *launch_config_vectorcall(PyObject *type, PyObject *const *args, size_t flags, PyObject *names)
{
    PyObject *given[PARAMETERS];
    if (parse_arguments(&new_signature, args, PyVectorcall_NARGS(flags), names, given) < 0)
        return NULL;
    return launch_config_make((PyTypeObject *)type, given);
}

static PyObject *launch_config_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *given[PARAMETERS];
    if (parse_call(&new_signature, args, keywords, given) < 0)
        return NULL;
    return launch_config_make(type, given);
}

PyObject *launch_config_from_object(module_state *state, PyObject *object)
{
    PyObject *type = (PyObject *)state->launch_config_type;
    if (PyObject_TypeCheck(object, state->launch_config_type))
        return Py_NewRef(object);
    if (!PyDict_Check(object)) {
        PyErr_Format(PyExc_TypeError, "config must be a LaunchConfig or a dict, not %.100s", Py_TYPE(object)->tp_name);
        return NULL;
    }
    PyObject *copy = PyDict_Copy(object); /* another thread may change the caller's own */
    PyObject *config = copy == NULL ? NULL : PyObject_VectorcallDict(type, NULL, 0, copy);
    Py_XDECREF(copy);
    return config;
}

static void launch_config_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (launch_config_cast(self)->weak_references != NULL)
        PyObject_ClearWeakRefs(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- methods ----------------------------------------------------------------------------------------------------- */

static PyObject *tuple_of(const unsigned extents[3])
{
    return Py_BuildValue("(III)", extents[0], extents[1], extents[2]);
}

static bool has_cluster(const launch_config_object *self)
{
    return self->core.cluster[0] != 0;
}

static PyObject *get_grid(PyObject *self, void *closure)
{
    (void)closure;
    return tuple_of(launch_config_cast(self)->grid);
}

static PyObject *get_cluster(PyObject *self, void *closure)
{
    (void)closure;
    if (!has_cluster(launch_config_cast(self)))
        Py_RETURN_NONE;
    return tuple_of(launch_config_cast(self)->core.cluster);
}

static PyObject *get_block(PyObject *self, void *closure)
{
    (void)closure;
    return tuple_of(launch_config_cast(self)->core.block);
}

static PyObject *get_shmem_size(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(launch_config_cast(self)->core.shared_bytes);
}

static PyObject *get_is_cooperative(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(launch_config_cast(self)->core.cooperative);
}

static PyObject *get_programmatic(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(launch_config_cast(self)->core.programmatic_stream_serialization);
}

static PyObject *launch_config_repr(PyObject *self)
{
    const launch_config_object *config = launch_config_cast(self);
    PyObject *grid = get_grid(self, NULL);
    PyObject *cluster = get_cluster(self, NULL);
    PyObject *block = get_block(self, NULL);
    PyObject *text = NULL;
    if (grid != NULL && cluster != NULL && block != NULL)
        text = PyUnicode_FromFormat(
            "LaunchConfig(grid=%R, cluster=%R, block=%R, shmem_size=%u, is_cooperative=%s%s)", grid, cluster, block,
            config->core.shared_bytes, config->core.cooperative ? "True" : "False",
            config->core.programmatic_stream_serialization ? ", programmatic_stream_serialization=True" : "");
    Py_XDECREF(grid);
    Py_XDECREF(cluster);
    Py_XDECREF(block);
    return text;
}

static bool is_equal(const cc_launch_config *left, const cc_launch_config *right)
{
    return memcmp(left->grid, right->grid, sizeof left->grid) == 0 &&
           memcmp(left->block, right->block, sizeof left->block) == 0 &&
           memcmp(left->cluster, right->cluster, sizeof left->cluster) == 0 &&
           left->shared_bytes == right->shared_bytes && left->cooperative == right->cooperative &&
           left->programmatic_stream_serialization == right->programmatic_stream_serialization;
}

static PyObject *launch_config_richcompare(PyObject *self, PyObject *other, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || !PyObject_TypeCheck(other, state_of(self)->launch_config_type))
        Py_RETURN_NOTIMPLEMENTED;
    const bool equal = is_equal(&launch_config_cast(self)->core, &launch_config_cast(other)->core);
    return PyBool_FromLong(equal == (operation == Py_EQ));
}

static Py_hash_t launch_config_hash(PyObject *self)
{
    const cc_launch_config *config = &launch_config_cast(self)->core;
    const unsigned flags = (config->cooperative ? 1u : 0u) | (config->programmatic_stream_serialization ? 2u : 0u);
    const unsigned fields[] = {config->grid[0],
                               config->grid[1],
                               config->grid[2],
                               config->block[0],
                               config->block[1],
                               config->block[2],
                               config->cluster[0],
                               config->cluster[1],
                               config->cluster[2],
                               config->shared_bytes,
                               flags};
    uint64_t hash = 14695981039346656037u; /* FNV-1a, a field at a time */
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        hash = (hash ^ fields[i]) * 1099511628211u;
    hash ^= hash >> 32;
    return (Py_hash_t)hash == -1 ? -2 : (Py_hash_t)hash;
}

PyDoc_STRVAR(reduce_doc, "__reduce__($self, /)\n--\n\nFor pickle and copy.");

static PyObject *launch_config_reduce(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    const launch_config_object *config = launch_config_cast(self);
    return Py_BuildValue("O(NNNNNN)", Py_TYPE(self), get_grid(self, NULL), get_cluster(self, NULL),
                         get_block(self, NULL), get_shmem_size(self, NULL), PyBool_FromLong(config->core.cooperative),
                         PyBool_FromLong(config->core.programmatic_stream_serialization));
}

/* ---- spec -------------------------------------------------------------------------------------------------------- */

static PyMethodDef launch_config_methods[] = {
    {"__reduce__", launch_config_reduce, METH_NOARGS, reduce_doc},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef launch_config_members[] = {
    WEAKREF_MEMBER(launch_config_object),
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef launch_config_getset[] = {
    {"grid", get_grid, NULL, "Blocks in x, y and z; clusters of blocks where there is a cluster.", NULL},
    {"cluster", get_cluster, NULL, "Blocks of a cluster in x, y and z, or None.", NULL},
    {"block", get_block, NULL, "Threads of a block in x, y and z.", NULL},
    {"shmem_size", get_shmem_size, NULL, "Bytes of dynamic shared memory a block.", NULL},
    {"is_cooperative", get_is_cooperative, NULL, "Whether all blocks run at once and can wait for each other.", NULL},
    {"programmatic_stream_serialization", get_programmatic, NULL,
     "Whether the kernel may begin before the one before it in the stream has ended.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(launch_config_doc,
             "LaunchConfig(grid=None, cluster=None, block=None, shmem_size=None, is_cooperative=False,\n"
             "             programmatic_stream_serialization=False)\n--\n\n"
             "How many threads run a kernel. A value: immutable, hashable, equal where all fields are.\n\n"
             "grid: blocks, an int or up to three; with a cluster it counts clusters.\n"
             "cluster: blocks of a cluster, an int or up to three (compute capability 9.0).\n"
             "block: threads of a block, an int or up to three.\n"
             "shmem_size: bytes of dynamic shared memory a block.\n"
             "is_cooperative: all blocks run at once, so that they can wait for each other.\n"
             "programmatic_stream_serialization: the kernel may begin before the one before it has ended.\n\n"
             "Raises ValueError for zero and negative extents; the limits of the device are held at the launch.");

static PyType_Slot launch_config_slots[] = {
    {Py_tp_doc, (void *)launch_config_doc},         {Py_tp_new, launch_config_new},
    {Py_tp_dealloc, launch_config_dealloc},         {Py_tp_repr, launch_config_repr},
    {Py_tp_richcompare, launch_config_richcompare}, {Py_tp_hash, launch_config_hash},
    {Py_tp_methods, launch_config_methods},         {Py_tp_members, launch_config_members},
    {Py_tp_getset, launch_config_getset},           {0, NULL},
};

PyType_Spec launch_config_spec = {
    .name = "cuda_core.LaunchConfig",
    .basicsize = sizeof(launch_config_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = launch_config_slots,
};
