/* Code that a program loaded: libraries and modules, their instances in contexts, kernels and functions. */
#ifndef CUDA_CORE_EMULATOR_LIBRARY_H
#define CUDA_CORE_EMULATOR_LIBRARY_H

#include "api.h"

typedef struct em_library em_library;
typedef struct em_function em_function;

/* A module loaded in a context. A launch in flight holds a reference, so unloading never pulls code from under it. */
struct em_instance {
    _Atomic uint32_t references;
    em_context *context;
    uint64_t context_epoch;
    em_module *module;
    em_library *library;             /* NULL: made by cuModuleLoad */
    char *text;                      /* the PTX, where the instance owns it */
    struct em_instance *next;        /* of the context */
    struct em_module_handle *handle; /* the CUmodule, made on demand for a library's */
    em_function **functions;         /* by index of the kernel; made on demand */
    pthread_mutex_t lock;
};

/* A CUmodule. */
typedef struct em_module_handle {
    em_object object;
    em_instance *instance;
} em_module_handle;

/* What a program has set on a kernel. */
typedef struct em_settings {
    _Atomic int max_dynamic_shared; /* -1: what the device gives without being asked */
    _Atomic int carveout, non_portable_cluster, cluster_policy;
    _Atomic int required_cluster[3];
} em_settings;

/* A kernel on one device. */
typedef struct em_code {
    const em_kernel_info *info;
    em_settings *settings;
    const em_device *device;
} em_code;

/* A CUfunction: a kernel in one context. */
struct em_function {
    em_object object;
    em_instance *instance;
    size_t index;
    em_kernel *kernel;
    em_code code;
    em_settings own; /* a library's kernel has its settings for each device in its handle */
};

/* A CUkernel: a kernel of a library, in whichever context it is used. */
typedef struct em_kernel_handle {
    em_object object;
    em_library *library;
    size_t index;
    const em_kernel_info *info;
    em_settings *settings;       /* for each device */
    em_function *_Atomic recent; /* the function it was last launched as */
} em_kernel_handle;

struct em_library {
    em_object object;
    char *ptx;
    size_t length;
    em_instance *catalog; /* tells names and parameters; the first context of its device shares it */
    int catalog_device;
    em_kernel_handle **kernels;
    size_t kernel_count;
    pthread_mutex_t lock; /* instances being made */
};

/* image.c: the PTX in whatever a program hands over. `size` is 0 where it is not known. The text is the caller's to
 * free. */
int em_image_ptx(const void *image, size_t size, const em_limits *limits, char **ptx, size_t *length,
                 em_detail *detail);
int em_image_read(const char *path, void **image, size_t *size, em_detail *detail);

/* library.c */
int em_instance_load(em_context *context, const char *ptx, size_t length, em_instance **instance, em_detail *detail);
void em_contexts_each(void (*visit)(em_library *library, em_context *context), em_library *library); /* context.c */
void em_instance_release(em_instance *instance);
void em_instances_unload(em_context *context); /* those of the context, at its end */
int em_instance_function(em_instance *instance, size_t index, em_function **function);
int em_instance_find(em_instance *instance, const char *name, em_function **function);
int em_instance_variable(em_instance *instance, const char *name, CUdeviceptr *address, size_t *size);
em_module_handle *em_instance_handle(em_instance *instance);
void em_instance_unload(em_instance *instance); /* leaves its context's list; handles to it end */

int em_library_load(char *ptx, size_t length, em_library **library, em_detail *detail); /* takes ptx over */
void em_library_unload(em_library *library);
em_kernel_handle *em_library_find(const em_library *library, const char *name); /* NULL: none of that name */
int em_library_instance(em_library *library, em_context *context, em_instance **instance);
int em_kernel_function(em_kernel_handle *kernel, em_context *context, em_function **function);
/* A CUfunction or a CUkernel, which launches and occupancy take alike. */
int em_function_resolve(CUfunction handle, em_context *context, em_function **function);

/* function.c */
void em_settings_init(em_settings *settings, const em_kernel_info *info);
int em_code_attribute(const em_code *code, CUfunction_attribute attribute, int *value);
int em_code_set_attribute(const em_code *code, CUfunction_attribute attribute, int value);
int em_parameter_info(const em_kernel_info *info, size_t index, size_t *offset, size_t *size);
/* Blocks of that shape which fit on one multiprocessor at a time. */
int em_occupancy(const em_code *code, uint64_t threads, uint64_t dynamic_shared);
uint64_t em_dynamic_shared_for(const em_code *code, int blocks, uint64_t threads);

/* jit.c: CUjit_option arrays */
typedef struct em_jit {
    char *error_log, *info_log;
    size_t error_size, info_size;
    unsigned int count;
    CUjit_option *options;
    void **values;
} em_jit;
int em_jit_read(unsigned int count, CUjit_option *options, void **values, em_jit *jit);
void em_jit_report(em_jit *jit, int status, const em_detail *detail);

#endif
