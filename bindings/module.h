/* What the files of bindings/ share: the state of the module, one an interpreter, and how it is reached.
 *
 * Each Python type has one file in a fixed order: struct, cast macro, helpers, new, dealloc, methods, members and
 * getset, traverse and clear, slots, spec. A type that others use has a header beside it.
 *
 * Locking. A struct's pointer into core is read and changed under the object's critical section (free-threaded Python)
 * or the GIL. A call that gives up the GIL first takes a reference to the core object (`X_hold`), so that close() on
 * another thread leaves it alive, and drops it afterwards. close() sets the pointer to NULL before it lets go of
 * anything. */
#ifndef CUDA_CORE_BINDINGS_MODULE_H
#define CUDA_CORE_BINDINGS_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "cuda_core.h"

#if PY_VERSION_HEX < 0x030D0000
#define Py_BEGIN_CRITICAL_SECTION(object)                                                                              \
    {                                                                                                                  \
        (void)(object);
#define Py_END_CRITICAL_SECTION() }
#endif

/* Every type takes weak references; before 3.12 there is only the offset in the struct. */
#define WEAKREF_MEMBER(type)                                                                                           \
    {                                                                                                                  \
        "__weaklistoffset__", T_PYSSIZET, offsetof(type, weak_references), READONLY, NULL                              \
    }

#define METH_KEYWORD_CALL (METH_FASTCALL | METH_KEYWORDS) /* (self, args, count, names) */
/* Not for class methods: bound ones of this kind have no __doc__. */
#define METH_CLASS_CALL (METH_METHOD | METH_FASTCALL | METH_KEYWORDS) /* (self, defining class, args, count, names) */

#define FUNCTION(name) ((PyCFunction)(void (*)(void))(name)) /* of any signature, for a PyMethodDef */

typedef struct mailbox mailbox;

typedef struct module_state {
#define TYPE(field, base, vectorcall) PyTypeObject *field##_type;
#include "types.def"
#undef TYPE
#define EXCEPTION(name, bases, attributes, documentation) PyObject *name;
#include "exceptions.def"
#undef EXCEPTION
#define STRING(field, text) PyObject *str_##field;
#include "strings.def"
#undef STRING
    PyObject *stream_keyword;              /* ("stream",): the names of a vectorcall */
    PyTypeObject *compute_capability_type; /* structseqs: made otherwise than the types of types.def */
    PyTypeObject *parameter_info_type;
    PyObject *accessed_by_class; /* of ManagedBuffer.accessed_by; made at first need */
    PyTypeObject *block_size_type; /* of KernelOccupancy.max_potential_block_size */
    PyObject **devices;            /* one Device an ordinal; NULL until the driver is open */
    int device_count;
    PyObject *legacy_default_stream, *per_thread_default_stream;
    int traces_launches; /* launches note where they were made; launch.c */
    mailbox *mailbox; /* what core let go of while this interpreter was not running: release.c */
} module_state;

extern struct PyModuleDef cuda_core_module;

static inline module_state *state_of_module(PyObject *module)
{
    return (module_state *)PyModule_GetState(module);
}

/* For METH_CLASS_CALL, whose methods are given the class that defines them. */
static inline module_state *state_of_class(PyTypeObject *defining_class)
{
    return (module_state *)PyType_GetModuleState(defining_class);
}

/* For methods and attributes of types that cannot be subclassed. */
static inline module_state *state_of_final(PyObject *object)
{
    return (module_state *)PyType_GetModuleState(Py_TYPE(object));
}

/* For slots and attributes, of any object of one of our types or of a subclass. Not in tp_dealloc. */
module_state *state_of(PyObject *object);

/* For class methods of types that can be subclassed. */
module_state *state_of_type(PyTypeObject *type);

/* An address as text: PyUnicode_FromFormat has no %llx before Python 3.12. Returns `text`. */
static inline const char *address_text(uint64_t address, char text[24])
{
    snprintf(text, 24, "0x%llx", (unsigned long long)address);
    return text;
}

/* Opens the driver at the first call, makes the Device objects and warns when the emulator was chosen for want of a
 * GPU. 0, or -1 with an exception. After the first time, one load. */
int open_driver_slowly(module_state *state);

static inline int driver_ready(module_state *state)
{
#ifdef Py_GIL_DISABLED
    return __atomic_load_n(&state->devices, __ATOMIC_ACQUIRE) != NULL;
#else
    return state->devices != NULL;
#endif
}

static inline int open_driver(module_state *state)
{
    return driver_ready(state) ? 0 : open_driver_slowly(state);
}

/* An int that is no bool, for sizes: 0, or -1 with TypeError, ValueError where negative, OverflowError where too large.
 * `what` is the name used in the message: "size". */
int size_from_object(PyObject *object, const char *what, size_t *size);
/* An address or handle: 0 to 2**64 - 1; an int, or an object that converts to one without being a float. */
int address_from_object(PyObject *object, const char *what, uint64_t *address);

#endif
