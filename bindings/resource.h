#ifndef CUDA_CORE_BINDINGS_RESOURCE_H
#define CUDA_CORE_BINDINGS_RESOURCE_H

#include "module.h"

typedef struct memory_resource_object {
    PyObject_HEAD
    PyObject *weak_references;
} memory_resource_object;

/* DeviceMemoryResource, PinnedMemoryResource and ManagedMemoryResource */
typedef struct pool_resource_object {
    memory_resource_object base;
    cc_pool *core;          /* NULL before __init__ and after close() */
    int numa_id;            /* of pinned memory; -1: bound to no node */
    CUmemLocation location; /* of managed memory: the one preferred */
} pool_resource_object;

#define pool_resource_cast(object) ((pool_resource_object *)(object))

/* A DeviceMemoryResource of the device's default pool. */
PyObject *device_memory_resource_default(module_state *state, cc_device *device);
/* resource.allocate(size, stream=stream) of any MemoryResource; a Buffer (checked). */
PyObject *resource_allocate(module_state *state, PyObject *resource, PyObject *size, PyObject *stream);

/* Where a stream is given that has no say, or whose queued work is waited for; NULL and None: none is given. */
int resource_check_stream(module_state *state, PyObject *stream);
int resource_wait_for(module_state *state, PyObject *stream);
/* Attributes that are the same for all objects of a type. */
PyObject *resource_get_true(PyObject *op, void *unused);
PyObject *resource_get_false(PyObject *op, void *unused);

/* pool_resource.c */
PyObject *pool_resource_allocate_from(module_state *state, PyObject *resource, PyObject *size, PyObject *stream);
/* A new reference into core, or NULL with ClosedError. */
cc_pool *pool_hold(PyObject *resource);
/* Takes over `core`; what was there before is let go. */
void pool_resource_set(PyObject *resource, cc_pool *core);
void pool_resource_dealloc(PyObject *resource);
/* `size` of an option max_size, 0 where `value` is NULL. */
int pool_max_size(PyObject *value, const char *class_name, size_t *size);

/* pool_attributes.c: takes over `core` */
PyObject *pool_attributes_new(module_state *state, cc_pool *core);

#endif
