#include "resource.h"

#include "buffer.h"
#include "device.h"
#include "errors.h"
#include "options.h"
#include "parse.h"

typedef struct virtual_resource_object {
    memory_resource_object base;
    cc_device *device; /* NULL before __init__ */
    PyObject *config;
    cc_vmm_options options; /* what config says */
} virtual_resource_object;

#define virtual_resource_cast(object) ((virtual_resource_object *)(object))

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const char class_name[] = "VirtualMemoryResourceOptions";

typedef struct choice {
    const char *text; /* NULL: None */
    int value;
} choice;

static PyObject *list_choices(const choice *choices)
{
    PyObject *text = PyUnicode_FromString("");
    for (const choice *each = choices; text != NULL && (each->text == NULL || *each->text); each++) {
        const char *separator = each == choices ? "" : ", ";
        PyObject *longer = each->text == NULL ? PyUnicode_FromFormat("%U%sNone", text, separator)
                                              : PyUnicode_FromFormat("%U%s'%s'", text, separator, each->text);
        Py_DECREF(text);
        text = longer;
    }
    return text;
}

/* `value` NULL stands for None. */
static int read_choice(PyObject *value, const char *name, const choice *choices, int *chosen)
{
    for (const choice *each = choices; each->text == NULL || *each->text; each++) {
        const int same = each->text == NULL ? value == NULL
                                            : value != NULL && PyUnicode_Check(value) &&
                                                  PyUnicode_CompareWithASCIIString(value, each->text) == 0;
        if (same) {
            *chosen = each->value;
            return 0;
        }
    }
    PyObject *known = list_choices(choices);
    if (known != NULL)
        PyErr_Format(value == NULL || PyUnicode_Check(value) ? PyExc_ValueError : PyExc_TypeError,
                     "%s.%s must be one of %U, not %R", class_name, name, known, value == NULL ? Py_None : value);
    Py_XDECREF(known);
    return -1;
}

static int read_peers(module_state *state, PyObject *peers, cc_device *own, cc_vmm_options *options)
{
    PyObject *items = peers == NULL ? PyTuple_New(0) : PySequence_Tuple(peers);
    int status = items == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; status == 0 && i < PyTuple_GET_SIZE(items); i++) {
        const device_object *peer = device_from_object(state, PyTuple_GET_ITEM(items, i), "a peer");
        cc_error error;
        bool can = true;
        status = peer == NULL ? -1 : 0;
        if (status == 0 && peer->core == own)
            continue;
        if (status == 0 && (status = cc_device_can_access_peer(peer->core, own, &can, &error)) < 0)
            raise_error(state, &error);
        if (status == 0 && (!can || options->peer_count == CC_VMM_PEERS)) {
            PyErr_Format(PyExc_ValueError,
                         can ? "more peers than there can be devices: %d"
                             : "device %d cannot access the memory of that device",
                         peer->ordinal);
            status = -1;
        }
        if (status == 0)
            options->peers[options->peer_count++] = peer->ordinal;
    }
    Py_XDECREF(items);
    return status;
}

static int read_numbers(PyObject *hint, PyObject *alignment, cc_vmm_options *options)
{
    uint64_t address = 0;
    if (hint != NULL && address_from_object(hint, "VirtualMemoryResourceOptions.addr_hint", &address) < 0)
        return -1;
    options->address_hint = (CUdeviceptr)address;
    if (alignment == NULL)
        return 0;
    if (size_from_object(alignment, "VirtualMemoryResourceOptions.addr_align", &options->alignment) < 0)
        return -1;
    if ((options->alignment & (options->alignment - 1)) == 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s.addr_align must be a power of two, not %zu", class_name, options->alignment);
    return -1;
}

static int read_values(module_state *state, PyObject *const *values, cc_device *device, cc_vmm_options *options)
{
    const choice types[] = {
        {"pinned", CU_MEM_ALLOCATION_TYPE_PINNED}, {"managed", CU_MEM_ALLOCATION_TYPE_MANAGED}, {"", 0}};
    const choice locations[] = {{"device", CU_MEM_LOCATION_TYPE_DEVICE},
                                {"host", CU_MEM_LOCATION_TYPE_HOST},
                                {"host_numa", CU_MEM_LOCATION_TYPE_HOST_NUMA},
                                {"host_numa_current", CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT},
                                {"", 0}};
    const choice handles[] = {{"posix_fd", CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR},
                              {"win32_kmt", CU_MEM_HANDLE_TYPE_WIN32_KMT},
                              {"fabric", CU_MEM_HANDLE_TYPE_FABRIC},
                              {NULL, CU_MEM_HANDLE_TYPE_NONE},
                              {"", 0}};
    const choice granularities[] = {
        {"minimum", CU_MEM_ALLOC_GRANULARITY_MINIMUM}, {"recommended", CU_MEM_ALLOC_GRANULARITY_RECOMMENDED}, {"", 0}};
    const choice accesses[] = {{"rw", CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                               {"r", CU_MEM_ACCESS_FLAGS_PROT_READ},
                               {NULL, CU_MEM_ACCESS_FLAGS_PROT_NONE},
                               {"", 0}};
    int type, location, handle, granularity, self_access, peer_access;
    if (read_choice(values[0], "allocation_type", types, &type) < 0 ||
        read_choice(values[1], "location_type", locations, &location) < 0 ||
        read_choice(values[2], "handle_type", handles, &handle) < 0 ||
        read_choice(values[3], "granularity", granularities, &granularity) < 0 ||
        read_choice(values[8], "self_access", accesses, &self_access) < 0 ||
        read_choice(values[9], "peer_access", accesses, &peer_access) < 0)
        return -1;
    const int direct = options_flag(values[4], class_name, "gpu_direct_rdma", 0);
    if (direct < 0 || read_numbers(values[5], values[6], options) < 0)
        return -1;
    options->type = (CUmemAllocationType)type;
    options->location = (CUmemLocationType)location;
    options->handle_type = (CUmemAllocationHandleType)handle;
    options->granularity = (CUmemAllocationGranularity_flags)granularity;
    options->self_access = (CUmemAccess_flags)self_access;
    options->peer_access = (CUmemAccess_flags)peer_access;
    options->gpu_direct_rdma = direct > 0;
    return read_peers(state, values[7], device, options);
}

/* None and a dict become the dataclass, which knows the defaults. New reference. */
static PyObject *make_config(PyObject *given)
{
    if (given != NULL && given != Py_None && !PyDict_Check(given))
        return Py_NewRef(given);
    PyObject *module = PyImport_ImportModule("cuda_core._options");
    PyObject *class = module == NULL ? NULL : PyObject_GetAttrString(module, class_name);
    PyObject *nothing = class == NULL ? NULL : PyTuple_New(0);
    PyObject *config = nothing == NULL ? NULL : PyObject_Call(class, nothing, given == Py_None ? NULL : given);
    Py_XDECREF(nothing);
    Py_XDECREF(class);
    Py_XDECREF(module);
    return config;
}

static int read_config(module_state *state, PyObject *config, cc_device *device, cc_vmm_options *options)
{
    static const char *const names[] = {"allocation_type", "location_type", "handle_type", "granularity",
                                        "gpu_direct_rdma", "addr_hint",     "addr_align",  "peers",
                                        "self_access",     "peer_access"};
    PyObject *values[10];
    memset(options, 0, sizeof *options);
    if (options_read(config, class_name, names, values, 10) < 0)
        return -1;
    int status = read_values(state, values, device, options);
    options_drop(values, 10);
    cc_error error;
    if (status == 0 && (status = cc_vmm_check(device, options, &error)) < 0)
        raise_error(state, &error);
    return status;
}

/* ---- init, dealloc ----------------------------------------------------------------------------------------------- */

static void set_config(PyObject *op, cc_device *device, PyObject *config, const cc_vmm_options *options)
{
    virtual_resource_object *self = virtual_resource_cast(op);
    PyObject *old;
    Py_BEGIN_CRITICAL_SECTION(op);
    old = self->config;
    self->device = device;
    self->config = config;
    self->options = *options;
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(old);
}

static int virtual_resource_init(PyObject *op, PyObject *args, PyObject *keywords)
{
    static const parameter_name parameters[] = {NAME("device_id"), NAME("config")};
    static const signature wanted = SIGNATURE("VirtualMemoryResource", parameters, 2, REQUIRED(0));
    PyObject *given[2];
    cc_vmm_options options;
    if (parse_call(&wanted, args, keywords, given) < 0)
        return -1;
    module_state *state = state_of(op);
    const device_object *device = device_from_object(state, given[0], "device_id");
    PyObject *config = device == NULL ? NULL : make_config(given[1]);
    if (config == NULL)
        return -1;
    if (read_config(state, config, device->core, &options) < 0) {
        Py_DECREF(config);
        return -1;
    }
    set_config(op, device->core, config, &options);
    return 0;
}

static int virtual_resource_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(virtual_resource_cast(op)->config);
    return 0;
}

static int virtual_resource_clear(PyObject *op)
{
    Py_CLEAR(virtual_resource_cast(op)->config);
    return 0;
}

static void virtual_resource_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (virtual_resource_cast(op)->base.weak_references != NULL)
        PyObject_ClearWeakRefs(op);
    virtual_resource_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- methods ----------------------------------------------------------------------------------------------------- */

/* NULL: __init__ was not called. */
static cc_device *take_options(PyObject *op, cc_vmm_options *options)
{
    cc_device *device;
    Py_BEGIN_CRITICAL_SECTION(op);
    device = virtual_resource_cast(op)->device;
    *options = virtual_resource_cast(op)->options;
    Py_END_CRITICAL_SECTION();
    if (device == NULL)
        raise_closed(state_of(op), "memory resource");
    return device;
}

PyDoc_STRVAR(
    allocate_doc,
    "allocate($self, /, size, *, stream=None)\n--\n\n"
    "A new Buffer of `size` bytes, at once; memory and addresses are taken in multiples of the granularity.\n\n"
    "size: int, bytes; 0 is allowed. stream: not used; the memory is there for every stream.\n"
    "Raises ValueError, OverflowError, OutOfMemoryError, NotSupportedError.\n"
    "Driver: cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess.");

static PyObject *virtual_resource_allocate(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                           PyObject *names)
{
    static const parameter_name parameters[] = {NAME("size"), NAME("stream")};
    static const signature wanted = SIGNATURE("VirtualMemoryResource.allocate", parameters, 1, REQUIRED(0));
    module_state *state = state_of_class(class);
    PyObject *given[2];
    size_t size;
    cc_vmm_options options;
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    if (size_from_object(given[0], "size", &size) < 0 || resource_check_stream(state, given[1]) < 0)
        return NULL;
    cc_device *device = take_options(op, &options);
    if (device == NULL)
        return NULL;
    cc_error error;
    cc_buffer *core;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_buffer_allocate_virtual(device, &options, size, &core, &error);
    Py_END_ALLOW_THREADS;
    return status < 0 ? raise_error(state, &error) : buffer_from_core(state, core, op, NULL);
}

PyDoc_STRVAR(deallocate_doc, "deallocate($self, /, ptr, size, *, stream=None)\n--\n\n"
                             "Unmap memory that no Buffer owns, and give its addresses back; Buffer.close() does it\n"
                             "for a Buffer's. Kernels of the devices that have access are waited for first.\n\n"
                             "ptr: int; size: int, bytes; stream: where given, its queued work is waited for, too.\n"
                             "Raises CUDAError. Driver: cuMemUnmap, cuMemAddressFree.");

static PyObject *virtual_resource_deallocate(PyObject *op, PyTypeObject *class, PyObject *const *args, Py_ssize_t count,
                                             PyObject *names)
{
    static const parameter_name parameters[] = {NAME("ptr"), NAME("size"), NAME("stream")};
    static const signature wanted =
        SIGNATURE("VirtualMemoryResource.deallocate", parameters, 2, REQUIRED(0) | REQUIRED(1));
    module_state *state = state_of_class(class);
    PyObject *given[3];
    uint64_t pointer;
    size_t size;
    cc_vmm_options options;
    if (parse_arguments(&wanted, args, count, names, given) < 0)
        return NULL;
    if (address_from_object(given[0], "ptr", &pointer) < 0 || size_from_object(given[1], "size", &size) < 0)
        return NULL;
    cc_device *device = take_options(op, &options);
    if (device == NULL || resource_wait_for(state, given[2]) < 0)
        return NULL;
    if (pointer == 0) /* what allocate(0) gives */
        Py_RETURN_NONE;
    cc_error error;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_virtual_free(device, &options, (CUdeviceptr)pointer, size, &error);
    Py_END_ALLOW_THREADS;
    if (status < 0)
        return raise_error(state, &error);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    modify_allocation_doc,
    "modify_allocation($self, /, buf, new_size, config=None)\n--\n\n"
    "Map more memory behind a Buffer of this resource, so that it has `new_size` bytes. Nothing is copied.\n\n"
    "Returns `buf` itself where the addresses behind it were free, or where it is large enough. Else the\n"
    "memory is mapped at another address: the result is a new Buffer and `buf` is closed; slices and views of\n"
    "it stay valid. A failure leaves all as it was.\n\n"
    "config: VirtualMemoryResourceOptions or a dict for the new memory, and the access to all of it; the\n"
    "resource has it from then on.\n"
    "Raises TypeError, ValueError (a slice, or another resource's), ClosedError, OutOfMemoryError.");

/* The whole of a Buffer of `op`; a new reference. */
static cc_buffer *hold_whole(module_state *state, PyObject *op, PyObject *buffer)
{
    if (!buffer_check(state, buffer)) {
        PyErr_Format(PyExc_TypeError, "buf must be a Buffer, not %.100s", Py_TYPE(buffer)->tp_name);
        return NULL;
    }
    cc_buffer *core = buffer_hold(buffer);
    if (core == NULL)
        return NULL;
    const cc_buffer_info *whole = cc_buffer_read(core);
    const buffer_object *object = buffer_cast(buffer);
    const int is_ours = object->memory_resource == op && object->keeper == NULL;
    if (is_ours && whole->pointer == object->pointer && whole->size == object->size)
        return core;
    PyErr_SetString(PyExc_ValueError, is_ours ? "buf is a slice of a Buffer, or the Buffer has grown through another"
                                              : "buf must be a Buffer that this resource allocated");
    cc_buffer_release(core);
    return NULL;
}

static PyObject *grow(module_state *state, PyObject *op, PyObject *buffer, size_t size, cc_device *device,
                      const cc_vmm_options *options, bool grant_all)
{
    cc_buffer *core = hold_whole(state, op, buffer), *grown = NULL;
    if (core == NULL)
        return NULL;
    cc_error error;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = cc_buffer_is_virtual(core) ? cc_buffer_grow_virtual(options, grant_all, core, size, &grown, &error)
                                        : cc_buffer_allocate_virtual(device, options, size, &grown, &error);
    Py_END_ALLOW_THREADS;
    PyObject *result = NULL;
    if (status < 0) {
        raise_error(state, &error);
    } else if (grown == core) {
        __atomic_store_n(&buffer_cast(buffer)->size, cc_buffer_read(core)->size, __ATOMIC_RELAXED);
        result = Py_NewRef(buffer);
    } else if ((result = buffer_from_core(state, grown, op, NULL)) != NULL) {
        buffer_drop(buffer);
    }
    Py_BEGIN_ALLOW_THREADS;
    cc_buffer_release(core);
    Py_END_ALLOW_THREADS;
    return result;
}

static PyObject *virtual_resource_modify_allocation(PyObject *op, PyTypeObject *class, PyObject *const *args,
                                                    Py_ssize_t count, PyObject *names)
{
    static const parameter_name parameters[] = {NAME("buf"), NAME("new_size"), NAME("config")};
    static const signature wanted =
        SIGNATURE("VirtualMemoryResource.modify_allocation", parameters, 3, REQUIRED(0) | REQUIRED(1));
    module_state *state = state_of_class(class);
    PyObject *given[3], *config = NULL;
    size_t size;
    cc_vmm_options options;
    if (parse_arguments(&wanted, args, count, names, given) < 0 || size_from_object(given[1], "new_size", &size) < 0)
        return NULL;
    cc_device *device = take_options(op, &options);
    if (device == NULL)
        return NULL;
    if (none_to_null(given[2]) != NULL && (config = make_config(given[2])) == NULL)
        return NULL;
    PyObject *result = NULL;
    if (config == NULL || read_config(state, config, device, &options) == 0)
        result = grow(state, op, given[0], size, device, &options, config != NULL);
    if (result != NULL && config != NULL)
        set_config(op, device, config, &options);
    else
        Py_XDECREF(config);
    return result;
}

static PyObject *virtual_resource_repr(PyObject *op)
{
    const cc_device *device = virtual_resource_cast(op)->device;
    return PyUnicode_FromFormat("<%s of device %d>", Py_TYPE(op)->tp_name,
                                device == NULL ? -1 : cc_device_ordinal(device));
}

static PyMethodDef virtual_resource_methods[] = {
    {"allocate", FUNCTION(virtual_resource_allocate), METH_CLASS_CALL, allocate_doc},
    {"deallocate", FUNCTION(virtual_resource_deallocate), METH_CLASS_CALL, deallocate_doc},
    {"modify_allocation", FUNCTION(virtual_resource_modify_allocation), METH_CLASS_CALL, modify_allocation_doc},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static PyObject *virtual_resource_get_host(PyObject *op, void *unused)
{
    (void)unused;
    cc_vmm_options options;
    if (take_options(op, &options) == NULL)
        return NULL;
    return PyBool_FromLong(options.location != CU_MEM_LOCATION_TYPE_DEVICE);
}

static PyObject *virtual_resource_get_device_id(PyObject *op, void *unused)
{
    (void)unused;
    cc_vmm_options options;
    const cc_device *device = take_options(op, &options);
    if (device == NULL)
        return NULL;
    return PyLong_FromLong(options.location == CU_MEM_LOCATION_TYPE_DEVICE ? cc_device_ordinal(device) : -1);
}

static PyObject *virtual_resource_get_config(PyObject *op, void *unused)
{
    (void)unused;
    PyObject *config;
    Py_BEGIN_CRITICAL_SECTION(op);
    config = Py_XNewRef(virtual_resource_cast(op)->config);
    Py_END_CRITICAL_SECTION();
    return config == NULL ? Py_NewRef(Py_None) : config;
}

static PyGetSetDef virtual_resource_attributes[] = {
    {"is_device_accessible", resource_get_true, NULL, "True: kernels can use the memory (bool).", NULL},
    {"is_host_accessible", virtual_resource_get_host, NULL,
     "True where the memory is the host's, by location_type (bool).", NULL},
    {"device_id", virtual_resource_get_device_id, NULL, "The number of the device; -1 for memory of the host (int).",
     NULL},
    {"config", virtual_resource_get_config, NULL, "The VirtualMemoryResourceOptions that allocations are made by.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- spec -------------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(virtual_resource_doc,
             "VirtualMemoryResource(device_id, config=None)\n--\n\n"
             "Memory whose addresses are reserved first, so that its Buffers can grow without a copy.\n\n"
             "device_id: a Device or its number (int).\n"
             "config: VirtualMemoryResourceOptions, a dict of its fields, or None.\n"
             "It allocates at once, outside any stream's order; a Buffer's last release waits for the device.\n"
             "Raises ValueError, TypeError, NotSupportedError (what the device cannot do).");

static PyType_Slot virtual_resource_slots[] = {
    {Py_tp_doc, (void *)virtual_resource_doc},
    {Py_tp_init, virtual_resource_init},
    {Py_tp_dealloc, virtual_resource_dealloc},
    {Py_tp_traverse, virtual_resource_traverse},
    {Py_tp_clear, virtual_resource_clear},
    {Py_tp_repr, virtual_resource_repr},
    {Py_tp_methods, virtual_resource_methods},
    {Py_tp_getset, virtual_resource_attributes},
    {0, NULL},
};

PyType_Spec virtual_memory_resource_spec = {
    .name = "cuda_core.VirtualMemoryResource",
    .basicsize = sizeof(virtual_resource_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = virtual_resource_slots,
};
