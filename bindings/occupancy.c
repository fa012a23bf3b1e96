/* KernelOccupancy: how many blocks and clusters of a kernel fit on a device at once. */
#include "kernel.h"

#include "device.h"
#include "errors.h"
#include "launchconfig.h"
#include "parse.h"
#include "stream.h"

typedef struct occupancy_object {
    PyObject_HEAD
    PyObject *kernel;
} occupancy_object;

#define occupancy_cast(object) ((occupancy_object *)(object))

/* ---- for other files --------------------------------------------------------------------------------------------- */

PyObject *kernel_occupancy_of(module_state *state, PyObject *kernel)
{
    occupancy_object *self = PyObject_New(occupancy_object, state->kernel_occupancy_type);
    if (self == NULL)
        return NULL;
    self->kernel = Py_NewRef(kernel);
    return (PyObject *)self;
}

/* ---- new, dealloc ------------------------------------------------------------------------------------------------ */

static PyObject *occupancy_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type, (void)args, (void)keywords;
    PyErr_SetString(PyExc_TypeError, "KernelOccupancy is not made directly: use Kernel.occupancy");
    return NULL;
}

static void occupancy_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    Py_DECREF(occupancy_cast(op)->kernel);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- methods ----------------------------------------------------------------------------------------------------- */

static cc_kernel *core_of(PyObject *op)
{
    return kernel_cast(occupancy_cast(op)->kernel)->core;
}

/* Sizes that the driver takes as int. */
static int read_int(PyObject *object, const char *what, int *value)
{
    size_t size;
    if (size_from_object(object, what, &size) < 0)
        return -1;
    if (size > INT_MAX) {
        PyErr_Format(PyExc_OverflowError, "%s must be at most %d", what, INT_MAX);
        return -1;
    }
    *value = (int)size;
    return 0;
}

PyDoc_STRVAR(blocks_doc,
             "max_active_blocks_per_multiprocessor($self, /, block_size, dynamic_shared_memory_size)\n--\n\n"
             "How many blocks of so many threads, with so many bytes of dynamic shared memory each, run on a\n"
             "multiprocessor of the current device at once (int).\n\n"
             "Driver: cuOccupancyMaxActiveBlocksPerMultiprocessor.");

static PyObject *occupancy_blocks(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                  PyObject *names)
{
    static const parameter_name parameters[] = {NAME("block_size"), NAME("dynamic_shared_memory_size")};
    static const signature wanted =
        SIGNATURE("KernelOccupancy.max_active_blocks_per_multiprocessor", parameters, 2, REQUIRED(0) | REQUIRED(1));
    module_state *state = state_of_class(class);
    PyObject *given[2];
    int block_size, blocks;
    size_t shared_bytes;
    if (parse_arguments(&wanted, args, count, names, given) < 0 || read_int(given[0], "block_size", &block_size) < 0 ||
        size_from_object(given[1], "dynamic_shared_memory_size", &shared_bytes) < 0)
        return NULL;
    const device_object *device = device_current(state);
    cc_error error;
    if (device == NULL)
        return NULL;
    if (cc_occupancy_blocks(core_of(op), device->core, block_size, shared_bytes, &blocks, &error) < 0)
        return raise_error(state, &error);
    return PyLong_FromLong(blocks);
}

PyDoc_STRVAR(block_size_doc,
             "max_potential_block_size($self, /, dynamic_shared_memory_needed, block_size_limit)\n--\n\n"
             "The block size that fills the current device best, and the smallest grid that fills it:\n"
             "(min_grid_size, max_block_size).\n\n"
             "dynamic_shared_memory_needed: bytes a block.\n"
             "block_size_limit: threads a block may have at most; 0 for no limit but the device's.\n"
             "Driver: cuOccupancyMaxPotentialBlockSize.");

static PyObject *occupancy_block_size(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                      PyObject *names)
{
    static const parameter_name parameters[] = {NAME("dynamic_shared_memory_needed"), NAME("block_size_limit")};
    static const signature wanted =
        SIGNATURE("KernelOccupancy.max_potential_block_size", parameters, 2, REQUIRED(0) | REQUIRED(1));
    module_state *state = state_of_class(class);
    PyObject *given[2];
    size_t shared_bytes;
    int limit, grid_size, block_size;
    if (parse_arguments(&wanted, args, count, names, given) < 0 ||
        size_from_object(given[0], "dynamic_shared_memory_needed", &shared_bytes) < 0 ||
        read_int(given[1], "block_size_limit", &limit) < 0)
        return NULL;
    const device_object *device = device_current(state);
    cc_error error;
    if (device == NULL)
        return NULL;
    if (cc_occupancy_block_size(core_of(op), device->core, shared_bytes, limit, &grid_size, &block_size, &error) < 0)
        return raise_error(state, &error);
    PyObject *result = PyStructSequence_New(state->block_size_type);
    if (result == NULL)
        return NULL;
    PyStructSequence_SetItem(result, 0, PyLong_FromLong(grid_size));
    PyStructSequence_SetItem(result, 1, PyLong_FromLong(block_size));
    if (PyErr_Occurred())
        Py_CLEAR(result);
    return result;
}

PyDoc_STRVAR(shared_bytes_doc,
             "available_dynamic_shared_memory_per_block($self, /, num_blocks_per_multiprocessor, block_size)\n--\n\n"
             "Bytes of dynamic shared memory each block may have when so many run on a multiprocessor (int).\n\n"
             "Driver: cuOccupancyAvailableDynamicSMemPerBlock.");

static PyObject *occupancy_shared_bytes(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                        PyObject *names)
{
    static const parameter_name parameters[] = {NAME("num_blocks_per_multiprocessor"), NAME("block_size")};
    static const signature wanted = SIGNATURE("KernelOccupancy.available_dynamic_shared_memory_per_block", parameters,
                                              2, REQUIRED(0) | REQUIRED(1));
    module_state *state = state_of_class(class);
    PyObject *given[2];
    int blocks, block_size;
    size_t shared_bytes;
    if (parse_arguments(&wanted, args, count, names, given) < 0 ||
        read_int(given[0], "num_blocks_per_multiprocessor", &blocks) < 0 ||
        read_int(given[1], "block_size", &block_size) < 0)
        return NULL;
    const device_object *device = device_current(state);
    cc_error error;
    if (device == NULL)
        return NULL;
    if (cc_occupancy_shared_bytes(core_of(op), device->core, blocks, block_size, &shared_bytes, &error) < 0)
        return raise_error(state, &error);
    return PyLong_FromSize_t(shared_bytes);
}

typedef int (*cluster_question)(cc_kernel *, const cc_launch_config *, cc_stream *, int *, cc_error *);

static PyObject *ask_about_clusters(PyObject *op, PyTypeObject *class, cluster_question question, const char *function,
                                    PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("config"), NAME("stream")};
    const signature wanted = SIGNATURE(function, parameters, 1, REQUIRED(0) | REQUIRED(1));
    module_state *state = state_of_class(class);
    PyObject *given[2];
    cc_stream *stream;
    int answer;
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    PyObject *config = launch_config_from_object(state, given[0]);
    if (config == NULL || stream_from_object(state, given[1], &stream) < 0) {
        Py_XDECREF(config);
        return NULL;
    }
    cc_error error;
    const int status = question(core_of(op), &launch_config_cast(config)->core, stream, &answer, &error);
    cc_stream_release(stream);
    Py_DECREF(config);
    return status < 0 ? raise_error(state, &error) : PyLong_FromLong(answer);
}

PyDoc_STRVAR(cluster_size_doc, "max_potential_cluster_size($self, /, config, *, stream)\n--\n\n"
                               "The most blocks that a cluster of such a launch may have (int).\n\n"
                               "Driver: cuOccupancyMaxPotentialClusterSize.");

static PyObject *occupancy_cluster_size(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                        PyObject *names)
{
    return ask_about_clusters(op, class, cc_occupancy_cluster_size, "KernelOccupancy.max_potential_cluster_size", args,
                              count, names);
}

PyDoc_STRVAR(clusters_doc, "max_active_clusters($self, /, config, *, stream)\n--\n\n"
                           "How many clusters of such a launch run on the stream's device at once (int).\n\n"
                           "Driver: cuOccupancyMaxActiveClusters.");

static PyObject *occupancy_clusters(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                    PyObject *names)
{
    return ask_about_clusters(op, class, cc_occupancy_clusters, "KernelOccupancy.max_active_clusters", args, count,
                              names);
}

static PyObject *occupancy_repr(PyObject *op)
{
    return PyUnicode_FromFormat("<KernelOccupancy of %R>", occupancy_cast(op)->kernel);
}

static PyMethodDef occupancy_methods[] = {
    {"max_active_blocks_per_multiprocessor", (PyCFunction)(void (*)(void))occupancy_blocks, METH_CLASS_CALL,
     blocks_doc},
    {"max_potential_block_size", (PyCFunction)(void (*)(void))occupancy_block_size, METH_CLASS_CALL, block_size_doc},
    {"available_dynamic_shared_memory_per_block", (PyCFunction)(void (*)(void))occupancy_shared_bytes, METH_CLASS_CALL,
     shared_bytes_doc},
    {"max_potential_cluster_size", (PyCFunction)(void (*)(void))occupancy_cluster_size, METH_CLASS_CALL,
     cluster_size_doc},
    {"max_active_clusters", (PyCFunction)(void (*)(void))occupancy_clusters, METH_CLASS_CALL, clusters_doc},
    {NULL, NULL, 0, NULL},
};

/* ---- spec -------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(occupancy_doc, "How many blocks and clusters of a kernel fit on a device at once. From Kernel.occupancy.");

static PyType_Slot occupancy_slots[] = {
    {Py_tp_doc, (void *)occupancy_doc}, {Py_tp_new, occupancy_new},         {Py_tp_dealloc, occupancy_dealloc},
    {Py_tp_repr, occupancy_repr},       {Py_tp_methods, occupancy_methods}, {0, NULL},
};

PyType_Spec kernel_occupancy_spec = {
    .name = "cuda_core.KernelOccupancy",
    .basicsize = sizeof(occupancy_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = occupancy_slots,
};
