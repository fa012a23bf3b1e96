#include "managed.h"

#include "device.h"
#include "errors.h"
#include "parse.h"
#include "stream.h"

/* ---- advice ----------------------------------------------------------------------------------------------------- */

static cc_buffer *pin(PyObject *op)
{
    cc_buffer *core = buffer_pin(op);
    if (core == NULL)
        raise_closed(state_of(op), "buffer");
    return core;
}

static int finish(PyObject *op, int status, cc_error *error)
{
    buffer_unpin(op);
    if (status < 0)
        raise_error(state_of(op), error);
    return status;
}

int managed_advise(PyObject *op, CUmem_advise advice, CUmemLocation location)
{
    cc_error error;
    cc_buffer *core = pin(op);
    if (core == NULL)
        return -1;
    const CUdeviceptr pointer = buffer_cast(op)->pointer;
    const size_t size = buffer_cast(op)->size;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_managed_advise(core, pointer, size, advice, location, &error);
    Py_END_ALLOW_THREADS;
    return finish(op, status, &error);
}

static int read_attribute(PyObject *op, CUmem_range_attribute attribute, int *values, size_t count)
{
    cc_error error;
    cc_buffer *core = pin(op);
    if (core == NULL)
        return -1;
    int status = 0;
    if (buffer_cast(op)->size != 0)
        status = cc_managed_attribute(core, buffer_cast(op)->pointer, buffer_cast(op)->size, attribute, values, count,
                                      &error);
    return finish(op, status, &error);
}

static const CUmemLocation anywhere = {.type = CU_MEM_LOCATION_TYPE_HOST};

static int refuse_deletion(const char *name)
{
    PyErr_Format(PyExc_AttributeError, "%s can be set, but not deleted", name);
    return -1;
}

static PyObject *managed_buffer_get_read_mostly(PyObject *op, void *unused)
{
    (void)unused;
    int value = 0;
    if (read_attribute(op, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, &value, 1) < 0)
        return NULL;
    return PyBool_FromLong(value);
}

static int managed_buffer_set_read_mostly(PyObject *op, PyObject *value, void *unused)
{
    (void)unused;
    if (value == NULL)
        return refuse_deletion("read_mostly");
    if (!PyBool_Check(value)) {
        PyErr_Format(PyExc_TypeError, "read_mostly must be a bool, not %.100s", Py_TYPE(value)->tp_name);
        return -1;
    }
    return managed_advise(op, value == Py_True ? CU_MEM_ADVISE_SET_READ_MOSTLY : CU_MEM_ADVISE_UNSET_READ_MOSTLY,
                          anywhere);
}

static PyObject *managed_buffer_get_preferred(PyObject *op, void *unused)
{
    (void)unused;
    cc_error error;
    CUmemLocation location;
    cc_buffer *core = pin(op);
    if (core == NULL)
        return NULL;
    const int status = cc_managed_preferred(core, buffer_cast(op)->pointer, buffer_cast(op)->size, &location, &error);
    if (finish(op, status, &error) < 0)
        return NULL;
    if (location.type == CU_MEM_LOCATION_TYPE_INVALID)
        Py_RETURN_NONE;
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return device_from_ordinal(state_of(op), location.id);
    return host_from_location(state_of(op), location);
}

static int managed_buffer_set_preferred(PyObject *op, PyObject *value, void *unused)
{
    (void)unused;
    CUmemLocation location;
    if (value == NULL)
        return refuse_deletion("preferred_location");
    if (value == Py_None)
        return managed_advise(op, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, anywhere);
    if (location_from_object(state_of(op), value, "preferred_location", &location) < 0)
        return -1;
    return managed_advise(op, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, location);
}

/* ---- accessed_by ------------------------------------------------------------------------------------------------ */

static PyObject *location_object(module_state *state, int id)
{
    return id == CU_DEVICE_CPU ? host_from_location(state, anywhere) : device_from_ordinal(state, id);
}

static PyObject *managed_buffer_accessors(PyObject *op, PyObject *unused)
{
    (void)unused;
    module_state *state = state_of(op);
    if (open_driver(state) < 0)
        return NULL;
    const size_t count = (size_t)state->device_count + 1;
    int *ids = PyMem_Malloc(count * sizeof *ids);
    if (ids == NULL)
        return PyErr_NoMemory();
    for (size_t i = 0; i < count; i++)
        ids[i] = CU_DEVICE_INVALID;
    PyObject *set = read_attribute(op, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, ids, count) < 0 ? NULL : PySet_New(NULL);
    for (size_t i = 0; set != NULL && i < count; i++) {
        if (ids[i] == CU_DEVICE_INVALID)
            continue;
        PyObject *location = location_object(state, ids[i]);
        if (location == NULL || PySet_Add(set, location) < 0)
            Py_CLEAR(set);
        Py_XDECREF(location);
    }
    PyMem_Free(ids);
    return set;
}

static PyObject *managed_buffer_get_accessed_by(PyObject *op, void *unused)
{
    (void)unused;
    return accessed_by_new(state_of(op), op);
}

static int advise_each(PyObject *op, PyObject *locations, CUmem_advise advice)
{
    PyObject *iterator = locations == NULL ? NULL : PyObject_GetIter(locations);
    if (iterator == NULL)
        return -1;
    int status = 0;
    PyObject *each;
    while (status == 0 && (each = PyIter_Next(iterator)) != NULL) {
        CUmemLocation location;
        status = location_from_object(state_of(op), each, "who accesses managed memory", &location);
        if (status == 0 && advice != 0)
            status = managed_advise(op, advice, location);
        Py_DECREF(each);
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? -1 : status;
}

/* All are looked at before any advice is given. */
static int managed_buffer_set_accessed_by(PyObject *op, PyObject *value, void *unused)
{
    (void)unused;
    if (value == NULL)
        return refuse_deletion("accessed_by");
    PyObject *wanted = PySet_New(value);
    PyObject *now = wanted == NULL ? NULL : managed_buffer_accessors(op, NULL);
    PyObject *gone = now == NULL ? NULL : PyNumber_Subtract(now, wanted);
    PyObject *fresh = gone == NULL ? NULL : PyNumber_Subtract(wanted, now);
    int status = fresh == NULL ? -1 : advise_each(op, wanted, (CUmem_advise)0);
    if (status == 0)
        status = advise_each(op, fresh, CU_MEM_ADVISE_SET_ACCESSED_BY);
    if (status == 0)
        status = advise_each(op, gone, CU_MEM_ADVISE_UNSET_ACCESSED_BY);
    Py_XDECREF(fresh);
    Py_XDECREF(gone);
    Py_XDECREF(now);
    Py_XDECREF(wanted);
    return status;
}

/* ---- several at once -------------------------------------------------------------------------------------------- */

typedef struct batch {
    module_state *state;
    PyObject *buffers; /* a tuple; the first `pinned` are pinned */
    Py_ssize_t pinned;
    size_t count; /* of those that are not empty */
    CUdeviceptr *pointers;
    size_t *sizes;
    CUmemLocation *locations;
    cc_stream *stream;
} batch;

static void batch_end(batch *self)
{
    for (Py_ssize_t i = 0; i < self->pinned; i++)
        buffer_unpin(PyTuple_GET_ITEM(self->buffers, i));
    PyMem_Free(self->pointers);
    PyMem_Free(self->sizes);
    PyMem_Free(self->locations);
    cc_stream_release(self->stream);
    Py_XDECREF(self->buffers);
}

static int batch_add(batch *self, PyObject *buffer, PyObject *location)
{
    CUmemLocation place = anywhere;
    if (!PyObject_TypeCheck(buffer, self->state->managed_buffer_type)) {
        PyErr_Format(PyExc_TypeError, "buffers must be ManagedBuffers, not %.100s", Py_TYPE(buffer)->tp_name);
        return -1;
    }
    if (location != NULL && location_from_object(self->state, location, "a location", &place) < 0)
        return -1;
    if (pin(buffer) == NULL)
        return -1;
    self->pinned++;
    if (buffer_cast(buffer)->size == 0)
        return 0;
    self->pointers[self->count] = buffer_cast(buffer)->pointer;
    self->sizes[self->count] = buffer_cast(buffer)->size;
    self->locations[self->count++] = place;
    return 0;
}

/* One location is that of all buffers. New reference to a tuple, or to the one. */
static PyObject *read_locations(PyObject *locations, Py_ssize_t count, module_state *state)
{
    if (PyObject_TypeCheck(locations, state->device_type) || PyObject_TypeCheck(locations, state->host_type))
        return Py_NewRef(locations);
    PyObject *tuple = PySequence_Tuple(locations);
    if (tuple != NULL && PyTuple_GET_SIZE(tuple) != count) {
        PyErr_Format(PyExc_ValueError, "there are %zd locations for %zd buffers: give one, or one for each",
                     PyTuple_GET_SIZE(tuple), count);
        Py_CLEAR(tuple);
    }
    return tuple;
}

static int batch_fill(batch *self, PyObject *locations)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(self->buffers);
    PyObject *places = locations == NULL ? NULL : read_locations(locations, count, self->state);
    int status = locations != NULL && places == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; status == 0 && i < count; i++) {
        PyObject *place = places != NULL && PyTuple_Check(places) ? PyTuple_GET_ITEM(places, i) : places;
        status = batch_add(self, PyTuple_GET_ITEM(self->buffers, i), place);
    }
    Py_XDECREF(places);
    return status;
}

/* -1: batch_end is to be called all the same. */
static int batch_begin(batch *self, module_state *state, PyObject *stream, PyObject *buffers, PyObject *locations)
{
    *self = (batch){.state = state};
    if (PyObject_TypeCheck(buffers, state->buffer_type)) {
        PyErr_SetString(PyExc_TypeError, "buffers must be a sequence of ManagedBuffers, not one of them");
        return -1;
    }
    self->buffers = PySequence_Tuple(buffers);
    if (self->buffers == NULL || stream_from_object(state, stream, &self->stream) < 0)
        return -1;
    const size_t count = (size_t)PyTuple_GET_SIZE(self->buffers) + 1;
    self->pointers = PyMem_Calloc(count, sizeof *self->pointers);
    self->sizes = PyMem_Calloc(count, sizeof *self->sizes);
    self->locations = PyMem_Calloc(count, sizeof *self->locations);
    if (self->pointers == NULL || self->sizes == NULL || self->locations == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return batch_fill(self, locations);
}

typedef enum batch_work { PREFETCH, DISCARD, DISCARD_PREFETCH } batch_work;

static int batch_queue(batch *self, batch_work work)
{
    cc_error error;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    if (work == DISCARD)
        status = cc_managed_discard_batch(self->pointers, self->sizes, self->count, self->stream, &error);
    else
        status = cc_managed_prefetch_batch(self->pointers, self->sizes, self->locations, self->count,
                                           work == DISCARD_PREFETCH, self->stream, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0) {
        raise_error(self->state, &error);
        return -1;
    }
    for (Py_ssize_t i = 0; i < self->pinned; i++) /* pinned: what owns the memory is there, closed or not */
        cc_buffer_used_on(buffer_cast(PyTuple_GET_ITEM(self->buffers, i))->owned, self->stream);
    return 0;
}

static PyObject *run_batch(module_state *state, PyObject *stream, PyObject *buffers, PyObject *locations,
                           batch_work work)
{
    batch self;
    int status = batch_begin(&self, state, stream, buffers, locations);
    if (status == 0)
        status = batch_queue(&self, work);
    batch_end(&self);
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}

static const parameter_name batch_parameters[] = {NAME("stream"), NAME("buffers"), NAME("locations")};
static const parameter_name discard_parameters[] = {NAME("stream"), NAME("buffers")};

#define PLACED_SIGNATURE(name) SIGNATURE(name, batch_parameters, 3, REQUIRED(0) | REQUIRED(1) | REQUIRED(2))

static PyObject *run_placed_batch(PyObject *module, const signature *wanted, PyObject *const *args, Py_ssize_t count,
                                  PyObject *names, batch_work work)
{
    PyObject *given[3];
    if (parse_arguments(wanted, args, count, names, given) < 0)
        return NULL;
    return run_batch(state_of_module(module), given[0], given[1], given[2], work);
}

static PyObject *prefetch_batch(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const signature wanted = PLACED_SIGNATURE("prefetch_batch");
    return run_placed_batch(module, &wanted, args, count, names, PREFETCH);
}

static PyObject *discard_batch(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const signature wanted = SIGNATURE("discard_batch", discard_parameters, 2, REQUIRED(0) | REQUIRED(1));
    PyObject *given[2];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    return run_batch(state_of_module(module), given[0], given[1], NULL, DISCARD);
}

static PyObject *discard_prefetch_batch(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const signature wanted = PLACED_SIGNATURE("discard_prefetch_batch");
    return run_placed_batch(module, &wanted, args, count, names, DISCARD_PREFETCH);
}

#define BATCH_DOC                                                                                                      \
    "stream: a Stream other than the legacy default one, or an object with __cuda_stream__().\n"                       \
    "buffers: a sequence of ManagedBuffer.\n"
#define PLACES_DOC "locations: a Device or Host for all of them, or a sequence of one for each.\n"

PyMethodDef managed_functions[] = {
    {"prefetch_batch", FUNCTION(prefetch_batch), METH_KEYWORD_CALL,
     "prefetch_batch($module, /, stream, buffers, locations)\n--\n\n"
     "Move several buffers of managed memory, in the order of a stream.\n\n" BATCH_DOC PLACES_DOC
     "Raises TypeError, ValueError, ClosedError, NotSupportedError (needs driver 13.0), CUDAError.\n"
     "Driver: cuMemPrefetchBatchAsync."},
    {"discard_batch", FUNCTION(discard_batch), METH_KEYWORD_CALL,
     "discard_batch($module, /, stream, buffers)\n--\n\n"
     "Say that the contents of several buffers are not needed any more, in the order of a stream.\n\n" BATCH_DOC
     "Raises TypeError, ClosedError, NotSupportedError (needs driver 13.0), CUDAError.\n"
     "Driver: cuMemDiscardBatchAsync."},
    {"discard_prefetch_batch", FUNCTION(discard_prefetch_batch), METH_KEYWORD_CALL,
     "discard_prefetch_batch($module, /, stream, buffers, locations)\n--\n\n"
     "Both at once: memory of several buffers is at a place, and what was in it is not moved.\n\n" BATCH_DOC PLACES_DOC
     "Raises TypeError, ValueError, ClosedError, NotSupportedError (needs driver 13.0), CUDAError.\n"
     "Driver: cuMemDiscardAndPrefetchBatchAsync."},
    {NULL, NULL, 0, NULL},
};

/* ---- methods ---------------------------------------------------------------------------------------------------- */

static int queue_prefetch(module_state *state, PyObject *op, CUmemLocation location, PyObject *stream)
{
    cc_error error;
    cc_stream *core_stream;
    cc_buffer *core = pin(op);
    if (core == NULL)
        return -1;
    if (stream_from_object(state, stream, &core_stream) < 0) {
        buffer_unpin(op);
        return -1;
    }
    const CUdeviceptr pointer = buffer_cast(op)->pointer;
    const size_t size = buffer_cast(op)->size;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_managed_prefetch(pointer, size, location, core_stream, &error);
    Py_END_ALLOW_THREADS;
    if (status == 0)
        cc_buffer_used_on(core, core_stream);
    cc_stream_release(core_stream);
    return finish(op, status, &error);
}

static const parameter_name prefetch_parameters[] = {NAME("location"), NAME("stream")};

static PyObject *managed_buffer_prefetch(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                         PyObject *names)
{
    static const signature wanted =
        SIGNATURE("ManagedBuffer.prefetch", prefetch_parameters, 1, REQUIRED(0) | REQUIRED(1));
    module_state *state = state_of_class(class);
    PyObject *given[2];
    CUmemLocation location;
    if (parse_arguments(&wanted, args, count, names, given) < 0 ||
        location_from_object(state, given[0], "location", &location) < 0 ||
        queue_prefetch(state, op, location, given[1]) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *batch_of_one(module_state *state, PyObject *op, PyObject *stream, PyObject *location, batch_work work)
{
    PyObject *buffers = PyTuple_Pack(1, op);
    PyObject *locations = location == NULL || buffers == NULL ? NULL : PyTuple_Pack(1, location);
    PyObject *result = NULL;
    if (buffers != NULL && (location == NULL || locations != NULL))
        result = run_batch(state, stream, buffers, locations, work);
    Py_XDECREF(locations);
    Py_XDECREF(buffers);
    return result;
}

static PyObject *managed_buffer_discard(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                        PyObject *names)
{
    static const parameter_name parameters[] = {NAME("stream")};
    static const signature wanted = SIGNATURE("ManagedBuffer.discard", parameters, 0, REQUIRED(0));
    PyObject *given[1];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    return batch_of_one(state_of_class(class), op, given[0], NULL, DISCARD);
}

static PyObject *managed_buffer_discard_prefetch(PyObject *op, PyTypeObject *class, PyObject *const *args,
                                                 Py_ssize_t count, PyObject *names)
{
    static const signature wanted =
        SIGNATURE("ManagedBuffer.discard_prefetch", prefetch_parameters, 1, REQUIRED(0) | REQUIRED(1));
    PyObject *given[2];
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    return batch_of_one(state_of_class(class), op, given[1], given[0], DISCARD_PREFETCH);
}

static PyMethodDef managed_buffer_methods[] = {
    {"prefetch", FUNCTION(managed_buffer_prefetch), METH_CLASS_CALL,
     "prefetch($self, /, location, *, stream)\n--\n\n"
     "Move the memory to a Device or a Host, in the order of a stream.\n\n"
     "Raises TypeError, ClosedError, NotSupportedError (needs driver 12.2 and, for a device, concurrent managed\n"
     "access), CUDAError. Driver: cuMemPrefetchAsync."},
    {"discard", FUNCTION(managed_buffer_discard), METH_CLASS_CALL,
     "discard($self, /, *, stream)\n--\n\n"
     "Say that the contents are not needed any more, in the order of a stream: until they are written or\n"
     "prefetched, they are indeterminate.\n\n"
     "stream: other than the legacy default one. Raises TypeError, ClosedError, NotSupportedError (needs driver\n"
     "13.0), CUDAError. Driver: cuMemDiscardBatchAsync."},
    {"discard_prefetch", FUNCTION(managed_buffer_discard_prefetch), METH_CLASS_CALL,
     "discard_prefetch($self, /, location, *, stream)\n--\n\n"
     "Both at once: the memory is at a Device or Host, and what was in it is not moved.\n\n"
     "Raises what discard() does. Driver: cuMemDiscardAndPrefetchBatchAsync."},
    {"_accessors", managed_buffer_accessors, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef managed_buffer_attributes[] = {
    {"read_mostly", managed_buffer_get_read_mostly, managed_buffer_set_read_mostly,
     "True where the memory may have a copy at each of its readers (bool); settable. Driver: cuMemAdvise.", NULL},
    {"preferred_location", managed_buffer_get_preferred, managed_buffer_set_preferred,
     "The Device or Host where the memory should be, None: none, or not the same for all of it; settable.\n"
     "Driver: cuMemAdvise.",
     NULL},
    {"accessed_by", managed_buffer_get_accessed_by, managed_buffer_set_accessed_by,
     "Who accesses the memory where it is: a live set of Device and Host; settable. Driver: cuMemAdvise.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- spec ------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(managed_buffer_doc, "A Buffer of managed memory, which host and devices use at the same address.\n\n"
                                 "From ManagedMemoryResource.allocate(), or from_handle() for memory of\n"
                                 "cuMemAllocManaged. A slice is one, too: advice and prefetches are its bytes' own.");

static PyType_Slot managed_buffer_slots[] = {
    {Py_tp_doc, (void *)managed_buffer_doc},
    {Py_tp_methods, managed_buffer_methods},
    {Py_tp_getset, managed_buffer_attributes},
    {0, NULL},
};

PyType_Spec managed_buffer_spec = {
    .name = "cuda_core.ManagedBuffer",
    .basicsize = sizeof(buffer_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = managed_buffer_slots,
};
