/* Libraries, their instances in contexts, and the handles to kernels. */
#include "library.h"

#include <stdlib.h>
#include <string.h>

/* ---- instances --------------------------------------------------------------------------------------------------- */

static em_instance *new_instance(em_module *module)
{
    em_instance *instance = calloc(1, sizeof *instance);
    if (instance == NULL)
        return NULL;
    size_t kernels = em_module_kernel_count(module);
    instance->functions = calloc(kernels + 1, sizeof(em_function *));
    if (instance->functions == NULL) {
        free(instance);
        return NULL;
    }
    instance->references = 1;
    instance->module = module;
    pthread_mutex_init(&instance->lock, NULL);
    return instance;
}

static void join_context(em_instance *instance, em_context *context)
{
    instance->context = context;
    instance->context_epoch = context->epoch;
    pthread_mutex_lock(&context->modules);
    instance->next = context->instances;
    context->instances = instance;
    pthread_mutex_unlock(&context->modules);
}

static int check_target(em_module *module, const em_limits *limits, em_detail *detail)
{
    size_t kernels = em_module_kernel_count(module);
    int target = kernels != 0 ? em_kernel_describe(em_module_kernel_at(module, 0))->target : 0;
    if (target <= limits->cc_major * 10 + limits->cc_minor)
        return CUDA_SUCCESS;
    return em_fail(
        detail, CUDA_ERROR_INVALID_PTX,
        "the PTX is for sm_%d, the emulated device is of compute capability %d.%d: compile for sm_%d%d, or set "
        "the environment variable CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY=%d.%d",
        target, limits->cc_major, limits->cc_minor, limits->cc_major, limits->cc_minor, target / 10, target % 10);
}

static int load_module(const char *ptx, size_t length, const em_limits *limits, em_instance **instance,
                       em_detail *detail)
{
    em_module *module = NULL;
    int status = em_module_load(ptx, length, limits, &module, detail);
    if (status != CUDA_SUCCESS)
        return status;
    status = check_target(module, limits, detail);
    if (status != CUDA_SUCCESS) {
        em_module_unload(module);
        return status;
    }
    *instance = new_instance(module);
    if (*instance != NULL)
        return CUDA_SUCCESS;
    em_module_unload(module);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

int em_instance_load(em_context *context, const char *ptx, size_t length, em_instance **instance, em_detail *detail)
{
    int status = load_module(ptx, length, &context->device->limits, instance, detail);
    if (status == CUDA_SUCCESS)
        join_context(*instance, context);
    return status;
}

void em_instance_release(em_instance *instance)
{
    if (atomic_fetch_sub_explicit(&instance->references, 1, memory_order_acq_rel) != 1)
        return;
    em_module_unload(instance->module);
    pthread_mutex_destroy(&instance->lock);
    free(instance->functions);
    free(instance->text);
    free(instance);
}

static void end_handles(em_instance *instance)
{
    pthread_mutex_lock(&instance->lock);
    size_t kernels = em_module_kernel_count(instance->module);
    for (size_t i = 0; i < kernels; i++) {
        em_function *function = instance->functions[i];
        instance->functions[i] = NULL;
        if (function != NULL && em_object_close(&function->object))
            em_object_recycle(EM_KIND_FUNCTION, &function->object);
    }
    em_module_handle *handle = instance->handle;
    instance->handle = NULL;
    if (handle != NULL && em_object_close(&handle->object))
        em_object_recycle(EM_KIND_MODULE, &handle->object);
    pthread_mutex_unlock(&instance->lock);
}

void em_instance_unload(em_instance *instance)
{
    em_context *context = instance->context;
    bool found = false;
    if (context != NULL) {
        pthread_mutex_lock(&context->modules);
        for (em_instance **link = &context->instances; *link != NULL; link = &(*link)->next)
            if (*link == instance) {
                *link = instance->next;
                found = true;
                break;
            }
        pthread_mutex_unlock(&context->modules);
    }
    if (context != NULL && !found)
        return; /* the context's end got it */
    end_handles(instance);
    em_instance_release(instance);
}

void em_instances_unload(em_context *context)
{
    for (;;) {
        pthread_mutex_lock(&context->modules);
        em_instance *instance = context->instances;
        pthread_mutex_unlock(&context->modules);
        if (instance == NULL)
            return;
        em_instance_unload(instance);
    }
}

int em_instance_function(em_instance *instance, size_t index, em_function **function)
{
    pthread_mutex_lock(&instance->lock);
    em_function *made = instance->functions[index];
    if (made == NULL) {
        made = em_object_new(EM_KIND_FUNCTION, sizeof *made);
        if (made != NULL) {
            made->instance = instance;
            made->index = index;
            made->kernel = em_module_kernel_at(instance->module, index);
            made->code.info = em_kernel_describe(made->kernel);
            made->code.device = instance->context->device;
            if (instance->library != NULL) {
                made->code.settings = &instance->library->kernels[index]->settings[made->code.device->limits.ordinal];
            } else {
                em_settings_init(&made->own, made->code.info);
                made->code.settings = &made->own;
            }
            instance->functions[index] = made;
        }
    }
    pthread_mutex_unlock(&instance->lock);
    *function = made;
    return made != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int em_instance_find(em_instance *instance, const char *name, em_function **function)
{
    size_t kernels = em_module_kernel_count(instance->module);
    for (size_t i = 0; i < kernels; i++)
        if (strcmp(em_kernel_describe(em_module_kernel_at(instance->module, i))->name, name) == 0)
            return em_instance_function(instance, i, function);
    return em_explain(CUDA_ERROR_NOT_FOUND, "the module has no kernel named '%s'; it has %zu kernel%s%s%s", name,
                      kernels, kernels == 1 ? "" : "s", kernels != 0 ? ", the first is " : "",
                      kernels != 0 ? em_kernel_describe(em_module_kernel_at(instance->module, 0))->name : "");
}

em_module_handle *em_instance_handle(em_instance *instance)
{
    pthread_mutex_lock(&instance->lock);
    em_module_handle *handle = instance->handle;
    if (handle == NULL) {
        handle = em_object_new(EM_KIND_MODULE, sizeof *handle);
        if (handle != NULL)
            handle->instance = instance;
        instance->handle = handle;
    }
    pthread_mutex_unlock(&instance->lock);
    return handle;
}

/* ---- libraries --------------------------------------------------------------------------------------------------- */

static void recycle_kernels(em_library *library)
{
    for (size_t i = 0; i < library->kernel_count; i++) {
        em_kernel_handle *kernel = library->kernels[i];
        if (kernel == NULL || !em_object_close(&kernel->object))
            continue;
        free(kernel->settings);
        em_object_recycle(EM_KIND_KERNEL, &kernel->object);
    }
    free(library->kernels);
    library->kernels = NULL;
}

static bool list_kernels(em_library *library)
{
    em_module *module = library->catalog->module;
    library->kernel_count = em_module_kernel_count(module);
    library->kernels = calloc(library->kernel_count + 1, sizeof(em_kernel_handle *));
    if (library->kernels == NULL)
        return false;
    for (size_t i = 0; i < library->kernel_count; i++) {
        em_kernel_handle *kernel = em_object_new(EM_KIND_KERNEL, sizeof *kernel);
        if (kernel == NULL)
            return false;
        kernel->library = library;
        kernel->index = i;
        kernel->info = em_kernel_describe(em_module_kernel_at(module, i));
        library->kernels[i] = kernel;
        kernel->settings = calloc((size_t)em_device_count, sizeof *kernel->settings);
        if (kernel->settings == NULL)
            return false;
        for (int device = 0; device < em_device_count; device++)
            em_settings_init(&kernel->settings[device], kernel->info);
    }
    return true;
}

em_kernel_handle *em_library_find(const em_library *library, const char *name)
{
    for (size_t i = 0; i < library->kernel_count; i++)
        if (strcmp(library->kernels[i]->info->name, name) == 0)
            return library->kernels[i];
    return NULL;
}

/* The context whose device a library without an instance is parsed for. */
static const em_limits *limits_of_thread(void)
{
    em_context *context = em_self.current;
    return context != NULL && context->object.live ? &context->device->limits : &em_devices[0].limits;
}

int em_library_load(char *ptx, size_t length, em_library **library, em_detail *detail)
{
    em_library *made = em_object_new(EM_KIND_LIBRARY, sizeof *made);
    int status = CUDA_ERROR_OUT_OF_MEMORY;
    if (made == NULL) {
        free(ptx);
        return status;
    }
    made->ptx = ptx;
    made->length = length;
    pthread_mutex_init(&made->lock, NULL);
    const em_limits *limits = limits_of_thread();
    made->catalog_device = limits->ordinal;
    status = load_module(ptx, length, limits, &made->catalog, detail);
    if (status != CUDA_SUCCESS)
        goto fail;
    made->catalog->library = made;
    if (!list_kernels(made)) {
        status = CUDA_ERROR_OUT_OF_MEMORY;
        goto fail;
    }
    *library = made;
    return CUDA_SUCCESS;
fail:
    em_object_close(&made->object);
    em_library_unload(made);
    return status;
}

static em_instance *instance_in(const em_library *library, em_context *context)
{
    em_instance *found = NULL;
    pthread_mutex_lock(&context->modules);
    for (em_instance *instance = context->instances; instance != NULL && found == NULL; instance = instance->next)
        if (instance->library == library)
            found = instance;
    pthread_mutex_unlock(&context->modules);
    return found;
}

static void unload_from(em_library *library, em_context *context)
{
    em_instance *instance = instance_in(library, context);
    if (instance != NULL)
        em_instance_unload(instance);
}

/* The handle was closed before. */
void em_library_unload(em_library *library)
{
    pthread_mutex_lock(&library->lock);
    em_contexts_each(unload_from, library);
    if (library->kernels != NULL)
        recycle_kernels(library);
    if (library->catalog != NULL)
        em_instance_release(library->catalog);
    free(library->ptx);
    library->ptx = NULL;
    pthread_mutex_unlock(&library->lock);
    pthread_mutex_destroy(&library->lock);
    em_object_recycle(EM_KIND_LIBRARY, &library->object);
}

/* The catalogue's module has its variables on one device; the first context of that device uses it. */
static bool take_catalog(em_library *library, em_context *context)
{
    em_instance *catalog = library->catalog;
    if (catalog->context != NULL || library->catalog_device != context->device->limits.ordinal)
        return false;
    atomic_fetch_add(&catalog->references, 1);
    join_context(catalog, context);
    return true;
}

int em_library_instance(em_library *library, em_context *context, em_instance **instance)
{
    pthread_mutex_lock(&library->lock);
    int status = CUDA_SUCCESS;
    *instance = instance_in(library, context);
    if (*instance == NULL) {
        if (take_catalog(library, context)) {
            *instance = library->catalog;
        } else {
            status = em_instance_load(context, library->ptx, library->length, instance, em_thread_detail());
            if (status == CUDA_SUCCESS)
                (*instance)->library = library;
        }
    }
    pthread_mutex_unlock(&library->lock);
    return status;
}

int em_kernel_function(em_kernel_handle *kernel, em_context *context, em_function **function)
{
    em_function *recent = atomic_load_explicit(&kernel->recent, memory_order_acquire);
    if (recent != NULL && recent->object.live && recent->index == kernel->index &&
        recent->instance->library == kernel->library && recent->instance->context == context) {
        *function = recent;
        return CUDA_SUCCESS;
    }
    em_instance *instance;
    int status = em_library_instance(kernel->library, context, &instance);
    if (status == CUDA_SUCCESS)
        status = em_instance_function(instance, kernel->index, function);
    if (status == CUDA_SUCCESS)
        atomic_store_explicit(&kernel->recent, *function, memory_order_release);
    return status;
}

int em_function_resolve(CUfunction handle, em_context *context, em_function **function)
{
    *function = em_object_get(EM_KIND_FUNCTION, handle);
    if (*function != NULL)
        return CUDA_SUCCESS;
    em_kernel_handle *kernel = em_object_get(EM_KIND_KERNEL, handle);
    if (kernel == NULL)
        return em_explain(CUDA_ERROR_INVALID_HANDLE, "%p is no function or kernel, or its library was unloaded",
                          (void *)handle);
    return em_kernel_function(kernel, context, function);
}
