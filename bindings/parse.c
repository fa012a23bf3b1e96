#include "parse.h"

/* "'a'", "'a' and 'b'", "'a', 'b', and 'c'": as CPython lists names. */
static PyObject *listed(const signature *wanted, uint32_t which)
{
    PyObject *text = PyUnicode_FromString("");
    uint32_t left = which;
    int shown = 0;
    const int total = __builtin_popcount(which);
    while (text != NULL && left != 0) {
        const int at = __builtin_ctz(left);
        left &= left - 1;
        const char *between = shown == 0 ? "" : left != 0 ? ", " : total == 2 ? " and " : ", and ";
        PyObject *longer = PyUnicode_FromFormat("%U%s'%s'", text, between, wanted->names[at].text);
        Py_DECREF(text);
        text = longer;
        shown++;
    }
    return text;
}

static int refuse_missing(const signature *wanted, uint32_t missing, const char *kind)
{
    PyObject *names = listed(wanted, missing);
    if (names == NULL)
        return -1;
    const int count = __builtin_popcount(missing);
    PyErr_Format(PyExc_TypeError, "%s() missing %d required %s argument%s: %U", wanted->function, count, kind,
                 count == 1 ? "" : "s", names);
    Py_DECREF(names);
    return -1;
}

static int refuse_count(const signature *wanted, Py_ssize_t count)
{
    const uint32_t by_position = wanted->positional == 0 ? 0 : (1u << wanted->positional) - 1u;
    const int least = __builtin_popcount(wanted->required & by_position);
    const char *verb = count == 1 ? "was" : "were";
    if (least == wanted->positional)
        PyErr_Format(PyExc_TypeError, "%s() takes %zd positional argument%s but %zd %s given", wanted->function,
                     wanted->positional, wanted->positional == 1 ? "" : "s", count, verb);
    else
        PyErr_Format(PyExc_TypeError, "%s() takes from %d to %zd positional arguments but %zd %s given",
                     wanted->function, least, wanted->positional, count, verb);
    return -1;
}

int parse_refuse(const signature *wanted, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    (void)args;
    uint32_t have = count >= 32 ? UINT32_MAX : (1u << count) - 1u;
    const Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t k = 0; k < named; k++) {
        PyObject *name = PyTuple_GET_ITEM(names, k);
        const Py_ssize_t at = parse_find(wanted, name);
        if (at < 0) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", wanted->function, name);
            return -1;
        }
        if (have & (1u << at) && at < wanted->positional) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", wanted->function, name);
            return -1;
        }
        have |= 1u << at;
    }
    if (count > wanted->positional)
        return refuse_count(wanted, count);
    const uint32_t by_position = wanted->positional == 0 ? 0 : (1u << wanted->positional) - 1u;
    const uint32_t missing = wanted->required & ~have;
    if (missing & by_position)
        return refuse_missing(wanted, missing & by_position, "positional");
    return refuse_missing(wanted, missing, "keyword-only");
}

int parse_call(const signature *wanted, PyObject *args, PyObject *keywords, PyObject **given)
{
    PyObject *all[64] = {NULL};
    const Py_ssize_t count = PyTuple_GET_SIZE(args);
    const Py_ssize_t named = keywords == NULL ? 0 : PyDict_GET_SIZE(keywords);
    if (count > 32)
        return refuse_count(wanted, count);
    if (named > 32) {
        PyErr_Format(PyExc_TypeError, "%s() got %zd keyword arguments, but takes at most %zd", wanted->function, named,
                     wanted->count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        all[i] = PyTuple_GET_ITEM(args, i);
    PyObject *names = NULL;
    if (named > 0) {
        names = PyTuple_New(named);
        if (names == NULL)
            return -1;
        Py_ssize_t at = 0, k = 0;
        PyObject *name, *value;
        while (PyDict_Next(keywords, &at, &name, &value)) { /* the call's own: `**` makes a copy */
            PyTuple_SET_ITEM(names, k, Py_NewRef(name));
            all[count + k++] = value;
        }
    }
    const int status = parse_arguments(wanted, all, count, names, given);
    Py_XDECREF(names);
    return status;
}

int parse_nothing(const char *function, Py_ssize_t count, PyObject *names)
{
    static const parameter_name none[] = {NAME("")};
    const signature wanted = {function, none, 0, 0, 0};
    if (count == 0 && (names == NULL || PyTuple_GET_SIZE(names) == 0))
        return 0;
    return parse_refuse(&wanted, NULL, count, names);
}
