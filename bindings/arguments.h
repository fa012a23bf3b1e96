/* The arguments of one launch: Python objects turned into the bytes the kernel reads, held against its parameters. */
#ifndef CUDA_CORE_BINDINGS_ARGUMENTS_H
#define CUDA_CORE_BINDINGS_ARGUMENTS_H

#include "kernel.h"

#include <stdalign.h>

enum {
    ARGUMENTS_INLINE = 64,
    ARGUMENT_BYTES_INLINE = 1024,
    ARGUMENT_BYTES_MOST = 32764, /* that any kernel can take */
};

/* Of an argument whose parameter is not known. One that is too large stays so in 32 bits. */
static inline uint32_t argument_size(Py_ssize_t size)
{
    return size > ARGUMENT_BYTES_MOST ? UINT32_MAX : (uint32_t)size;
}

typedef struct arguments {
    module_state *state;
    kernel_object *kernel;
    cc_stream *stream; /* buffers are marked as used on it, foreign arrays are ordered with it */
    cc_device *device; /* that the kernel will run on */
    void **slots;      /* what cc_launch reads: one pointer a parameter */
    unsigned char *bytes;
    PyObject **pinned; /* the Buffers, which stay until arguments_free whoever closes them */
    Py_ssize_t pinned_count;
    PyObject *exports; /* list of DLPack capsules, which keep their tensors until the kernel is queued; NULL: none */
    void *heap; /* NULL unless there is more than fits below */
    bool ran_python;
    void *inline_slots[ARGUMENTS_INLINE];
    PyObject *inline_pinned[ARGUMENTS_INLINE];
    alignas(16) unsigned char inline_bytes[ARGUMENT_BYTES_INLINE];
} arguments;

/* Fills slots and bytes; the first four fields are set by the caller. 0, or -1 with an exception that names kernel,
 * index and parameter; nothing is to be freed then. */
int arguments_pack(arguments *self, PyObject *const *args, Py_ssize_t count);
/* is_queued: the kernel is in the stream, so that the Buffers are in use there. */
void arguments_free(arguments *self, bool is_queued);

/* For the files that pack one kind: refusals that name kernel, index and parameter. -1 always. */
int argument_refuse(const arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *exception,
                    const char *format, ...);
int argument_refuse_error(const arguments *self, Py_ssize_t index, cc_error *error);

/* bits.c: objects that export their bytes, such as NumPy and ctypes scalars. 1 packed, 0 not of this kind, -1 refused.
 */
int argument_pack_bits(arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                       void *slot);
/* What such an object is by itself, for kernels whose parameters are not known. 1, 0 or -1 as above. */
int argument_measure_bits(PyObject *object, cc_parameter *parameter);
/* arrays.c: objects with __cuda_array_interface__ or __dlpack__. 1 packed, 0 not of this kind, -1 refused. */
int argument_pack_array(arguments *self, Py_ssize_t index, const cc_parameter *parameter, PyObject *object,
                        void *slot);

#endif
