/* The structs of DLPack 1.0, by which array libraries hand memory to each other. */
#ifndef CUDA_CORE_BINDINGS_DLPACK_H
#define CUDA_CORE_BINDINGS_DLPACK_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 0 };

typedef enum dlpack_device_type {
    DLPACK_CPU = 1,
    DLPACK_CUDA = 2,
    DLPACK_CUDA_HOST = 3,
    DLPACK_CUDA_MANAGED = 13,
} dlpack_device_type;

typedef struct dlpack_device {
    int32_t type;
    int32_t id;
} dlpack_device;

typedef struct dlpack_data_type {
    uint8_t code, bits;
    uint16_t lanes;
} dlpack_data_type;

typedef struct dlpack_tensor {
    void *data;
    dlpack_device device;
    int32_t dimensions;
    dlpack_data_type data_type;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: contiguous in C order */
    uint64_t byte_offset;
} dlpack_tensor;

typedef struct dlpack_managed { /* in a capsule named "dltensor" */
    dlpack_tensor tensor;
    void *manager;
    void (*deleter)(struct dlpack_managed *self);
} dlpack_managed;

typedef struct dlpack_versioned { /* in a capsule named "dltensor_versioned" */
    uint32_t major, minor;
    void *manager;
    void (*deleter)(struct dlpack_versioned *self);
    uint64_t flags; /* bit 0: read only */
    dlpack_tensor tensor;
} dlpack_versioned;

#endif
