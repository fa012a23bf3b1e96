/* Keyword parsing for METH_FASTCALL | METH_KEYWORDS, shared by all. A call that is right costs a copy and a compare a
 * name; what is wrong with the others is said by parse.c in the words CPython uses for Python functions.
 *
 *     static const parameter_name copy_to_names[] = {NAME("dst"), NAME("stream")};
 *     static const signature copy_to_signature = SIGNATURE("Buffer.copy_to", copy_to_names, 1, REQUIRED(1));
 *     PyObject *given[2];
 *     if (parse_arguments(&copy_to_signature, args, count, names, given) < 0)
 *         return NULL;
 *
 * Parameters come in the order positional-only (names NAME("")), positional, keyword-only. `given` holds borrowed
 * references, NULL for a parameter that was left out. */
#ifndef CUDA_CORE_BINDINGS_PARSE_H
#define CUDA_CORE_BINDINGS_PARSE_H

#include "module.h"

#include <string.h>

typedef struct parameter_name {
    const char *text; /* "" where it can be given by position only */
    Py_ssize_t length;
} parameter_name;

typedef struct signature {
    const char *function; /* as it is named in messages: "Buffer.copy_to" */
    const parameter_name *names;
    Py_ssize_t count;      /* of all parameters, at most 32 */
    Py_ssize_t positional; /* so many may be given by position; the others are keyword-only */
    uint32_t required;     /* one bit a parameter */
} signature;

#define NAME(text)                                                                                                     \
    {                                                                                                                  \
        (text), sizeof(text) - 1                                                                                       \
    }
#define REQUIRED(index) (1u << (index))
#define SIGNATURE(function, names, positional, required)                                                               \
    {                                                                                                                  \
        (function), (names), (Py_ssize_t)(sizeof(names) / sizeof((names)[0])), (positional), (required)                \
    }

/* The exception for a call that does not fit; always -1. */
int parse_refuse(const signature *wanted, PyObject *const *args, Py_ssize_t count, PyObject *names);
/* The same for tp_new and tp_init, which get a tuple and a dictionary. */
int parse_call(const signature *wanted, PyObject *args, PyObject *keywords, PyObject **given);
/* For functions without parameters that are reached with keywords; 0 or -1. */
int parse_nothing(const char *function, Py_ssize_t count, PyObject *names);

static inline Py_ssize_t parse_find(const signature *wanted, PyObject *name)
{
    if (!PyUnicode_IS_COMPACT_ASCII(name))
        return -1;
    const Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    const char *text = (const char *)PyUnicode_1BYTE_DATA(name);
    for (Py_ssize_t i = 0; i < wanted->count; i++) {
        if (wanted->names[i].length == length && length > 0 && memcmp(wanted->names[i].text, text, (size_t)length) == 0)
            return i;
    }
    return -1;
}

static inline int parse_arguments(const signature *wanted, PyObject *const *args, Py_ssize_t count, PyObject *names,
                                  PyObject **given)
{
    if (count > wanted->positional)
        goto refuse;
    uint32_t have = (1u << count) - 1u; /* positional < 32 */
    Py_ssize_t i = 0;
    for (; i < count; i++)
        given[i] = args[i];
    for (; i < wanted->count; i++)
        given[i] = NULL;
    const Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t k = 0; k < named; k++) {
        const Py_ssize_t at = parse_find(wanted, PyTuple_GET_ITEM(names, k));
        if (at < 0 || given[at] != NULL)
            goto refuse;
        given[at] = args[count + k];
        have |= 1u << at;
    }
    if ((have & wanted->required) != wanted->required)
        goto refuse;
    return 0;
refuse:
    (void)parse_refuse(wanted, args, count, names);
    return -1; /* a constant, so that compilers see that `given` is filled in every other case */
}

/* None stands for a parameter that was left out, too. */
static inline PyObject *none_to_null(PyObject *object)
{
    return object == Py_None ? NULL : object;
}

#endif
