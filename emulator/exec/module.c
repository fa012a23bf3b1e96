/* Modules: variables in memory, the table of kernels, and whether a kernel can run here. */
#include <cuda.h>
#include <stdlib.h>

#include "engine.h"

enum {
    MOST_PARAMETERS = 32764, /* bytes of a kernel's parameters */
    MOST_CONSTANT = 64 << 10 /* bytes of .const in a module */
};

/* ---- variables --------------------------------------------------------------------------------------------------- */

uint64_t em_variable_address(const em_module *module, const ptx_variable *variable)
{
    const em_range *range = module->ranges[variable->index];
    return range != NULL ? range->base : 0;
}

static bool has_memory(const ptx_variable *variable)
{
    return variable->space == PTX_SPACE_GLOBAL || variable->space == PTX_SPACE_CONST;
}

static int place_variable(em_module *module, const ptx_variable *variable, em_detail *detail)
{
    if (variable->linkage == PTX_LINKAGE_EXTERN)
        return em_fail(detail, CUDA_ERROR_INVALID_PTX, "%u:1: unresolved extern variable '%s'", variable->line,
                       variable->name);
    const em_memory kind = variable->space == PTX_SPACE_CONST ? EM_CONSTANT
                           : variable->managed                ? EM_MANAGED
                                                              : EM_DEVICE;
    em_range *range = em_heap_allocate(variable->size != 0 ? variable->size : 1,
                                       variable->align > 256 ? variable->align : 256, kind, module->limits.ordinal);
    if (range == NULL)
        return em_fail(detail, CUDA_ERROR_OUT_OF_MEMORY, "no device memory for variable '%s' of %llu bytes",
                       variable->name, (unsigned long long)variable->size);
    range->name = variable->name;
    range->owner = module;
    module->ranges[variable->index] = range;
    unsigned char *bytes = (unsigned char *)(uintptr_t)range->base;
    memset(bytes, 0, variable->size);
    if (variable->initialised != 0)
        memcpy(bytes, variable->bytes, variable->initialised);
    return 0;
}

static int relocate(const em_module *module, const ptx_variable *variable, em_detail *detail)
{
    for (uint32_t i = 0; i < variable->relocation_count; i++) {
        const ptx_relocation *relocation = &variable->relocations[i];
        uint64_t value;
        if (relocation->function != NULL)
            value = EM_FUNCTION_WINDOW + ((uint64_t)(relocation->function->index + 1) << EM_FUNCTION_SHIFT);
        else if (has_memory(relocation->variable))
            value = em_variable_address(module, relocation->variable);
        else
            return em_fail(detail, CUDA_ERROR_INVALID_PTX,
                           "%u:1: '%s' is initialised with the address of '%s', which is in neither .global nor .const",
                           variable->line, variable->name, relocation->variable->name);
        value = ((value + (uint64_t)relocation->addend) & relocation->mask) >> __builtin_ctzll(relocation->mask);
        memcpy((unsigned char *)(uintptr_t)module->ranges[variable->index]->base + relocation->offset, &value,
               relocation->width);
    }
    return 0;
}

static int check_constant(const ptx_module *ptx, em_detail *detail)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < ptx->variable_count; i++) {
        const ptx_variable *variable = ptx->variables[i];
        bytes += variable->space == PTX_SPACE_CONST ? variable->size : 0;
        if (bytes > MOST_CONSTANT)
            return em_fail(detail, CUDA_ERROR_INVALID_PTX,
                           "%u:1: with '%s' the .const variables take %llu bytes; a module has %d", variable->line,
                           variable->name, (unsigned long long)bytes, MOST_CONSTANT);
    }
    return 0;
}

static int place_variables(em_module *module, em_detail *detail)
{
    const ptx_module *ptx = module->ptx;
    const int refused = check_constant(ptx, detail);
    if (refused != 0)
        return refused;
    module->ranges = calloc(ptx->variable_count + 1, sizeof *module->ranges);
    if (module->ranges == NULL)
        return em_fail(detail, CUDA_ERROR_OUT_OF_MEMORY, "no host memory for the table of variables");
    for (uint32_t i = 0; i < ptx->variable_count; i++) {
        const int failed = has_memory(ptx->variables[i]) ? place_variable(module, ptx->variables[i], detail) : 0;
        if (failed != 0)
            return failed;
    }
    for (uint32_t i = 0; i < ptx->variable_count; i++) {
        const int failed = has_memory(ptx->variables[i]) ? relocate(module, ptx->variables[i], detail) : 0;
        if (failed != 0)
            return failed;
    }
    return 0;
}

/* ---- kernels
 * ---------------------------------------------------------------------------------------------------------- */

static uint32_t product(const uint32_t size[3])
{
    return size[0] * (size[1] != 0 ? size[1] : 1) * (size[2] != 0 ? size[2] : 1);
}

/* What a compiler would need at most: 32-bit registers for every value named, within what a GPU has. */
static uint32_t count_registers(const ptx_function *function)
{
    uint64_t words = 0;
    for (uint32_t i = 0; i < function->register_count; i++) {
        const unsigned size = ptx_type_size(function->registers[i].type);
        words += function->registers[i].type == PTX_PRED ? 0 : (size + 3) / 4;
    }
    const uint32_t most = function->max_registers != 0 ? function->max_registers : 64;
    return words < 8 ? 8 : words > most ? most : (uint32_t)words;
}

static void describe(em_kernel *kernel, em_module *module)
{
    const ptx_function *function = kernel->function;
    em_kernel_info *info = &kernel->info;
    info->name = function->name;
    info->module = module;
    for (uint32_t i = 0; i < function->parameter_count; i++)
        kernel->parameters[i] =
            (em_parameter){(uint32_t)function->parameters[i]->offset, (uint32_t)function->parameters[i]->size};
    info->parameters = kernel->parameters;
    info->parameter_count = function->parameter_count;
    info->parameter_bytes = (uint32_t)function->parameter_bytes;
    info->static_shared_bytes = kernel->layout.static_shared;
    info->local_bytes = kernel->layout.local_bytes;
    info->registers = count_registers(function);
    const uint32_t required = product(function->required_threads), most = product(function->max_threads);
    info->max_threads = required != 0 ? required : most != 0 ? most : 1024;
    for (unsigned i = 0; i < 3; i++) {
        const uint32_t threads = function->required_threads[i], blocks = function->required_cluster[i];
        info->required_block[i] = threads != 0 || required == 0 ? threads : 1;
        info->required_cluster[i] = blocks != 0 || function->required_cluster[0] == 0 ? blocks : 1;
    }
    for (uint32_t i = 0; i < module->ptx->variable_count; i++) {
        if (module->ptx->variables[i]->space == PTX_SPACE_CONST)
            info->constant_bytes += (uint32_t)module->ptx->variables[i]->size;
    }
    info->ptx_version = module->ptx->version;
    info->target = module->ptx->target;
}

static int make_kernels(em_module *module, em_detail *detail)
{
    const ptx_module *ptx = module->ptx;
    module->kernels = calloc(ptx->function_count + 1, sizeof *module->kernels);
    if (module->kernels == NULL)
        return em_fail(detail, CUDA_ERROR_OUT_OF_MEMORY, "no host memory for the table of kernels");
    for (uint32_t i = 0; i < ptx->function_count; i++) {
        const ptx_function *function = ptx->functions[i];
        if (!function->is_entry || !function->has_body)
            continue;
        if (function->parameter_bytes > MOST_PARAMETERS)
            return em_fail(detail, CUDA_ERROR_INVALID_PTX, "%u:1: kernel '%s' takes %llu bytes of parameters; %d are most",
                           function->line, function->name, (unsigned long long)function->parameter_bytes,
                           MOST_PARAMETERS);
        em_kernel *kernel = &module->kernels[module->kernel_count];
        kernel->module = module;
        kernel->function = function;
        kernel->parameters = calloc(function->parameter_count + 1, sizeof *kernel->parameters);
        const int failed =
            kernel->parameters == NULL
                ? em_fail(detail, CUDA_ERROR_OUT_OF_MEMORY, "no host memory for kernel '%s'", function->name)
                : em_layout_make(&kernel->layout, ptx, function, detail);
        if (failed != 0) {
            free(kernel->parameters);
            return failed;
        }
        pthread_mutex_init(&kernel->lock, NULL);
        describe(kernel, module);
        module->kernel_count++;
    }
    return 0;
}

/* ---- emulator.h
 * --------------------------------------------------------------------------------------------------------- */

int em_module_load(const char *ptx, size_t length, const em_limits *limits, em_module **module, em_detail *detail)
{
    ptx_error error = {0};
    ptx_module *parsed = ptx_parse(ptx, length, &error);
    if (parsed == NULL && error.out_of_memory)
        return em_fail(detail, CUDA_ERROR_OUT_OF_MEMORY, "no host memory to parse the PTX");
    if (parsed == NULL)
        return em_fail(detail, CUDA_ERROR_INVALID_PTX, "%u:%u: %s%s%s", error.line, error.column, error.message,
                       error.excerpt[0] != 0 ? "\n" : "", error.excerpt);
    em_module *made = calloc(1, sizeof *made);
    if (made == NULL) {
        ptx_module_free(parsed);
        return em_fail(detail, CUDA_ERROR_OUT_OF_MEMORY, "no host memory for a module");
    }
    made->ptx = parsed;
    made->limits = *limits;
    int failed = place_variables(made, detail);
    if (failed == 0)
        failed = make_kernels(made, detail);
    if (failed != 0) {
        em_module_unload(made);
        return failed;
    }
    *module = made;
    return 0;
}

void em_module_unload(em_module *module)
{
    if (module == NULL)
        return;
    for (uint32_t i = 0; module->ranges != NULL && i < module->ptx->variable_count; i++) {
        if (module->ranges[i] == NULL)
            continue;
        module->ranges[i]->name = NULL; /* it is the module's, and the range rests longer */
        module->ranges[i]->owner = NULL;
        em_heap_release(module->ranges[i]);
    }
    free(module->ranges);
    for (size_t i = 0; i < module->kernel_count; i++) {
        em_kernel *kernel = &module->kernels[i];
        em_program_free(kernel->program);
        em_layout_free(&kernel->layout);
        free(kernel->parameters);
        pthread_mutex_destroy(&kernel->lock);
    }
    free(module->kernels);
    ptx_module_free(module->ptx);
    free(module);
}

size_t em_module_kernel_count(const em_module *module)
{
    return module->kernel_count;
}

em_kernel *em_module_kernel_at(em_module *module, size_t index)
{
    return index < module->kernel_count ? &module->kernels[index] : NULL;
}

em_kernel *em_module_kernel(em_module *module, const char *name)
{
    for (size_t i = 0; i < module->kernel_count; i++) {
        if (strcmp(module->kernels[i].info.name, name) == 0)
            return &module->kernels[i];
    }
    return NULL;
}

bool em_module_variable(em_module *module, const char *name, uint64_t *address, uint64_t *size)
{
    const ptx_variable *variable = ptx_find_variable(module->ptx, name);
    if (variable == NULL || variable->owner != NULL || module->ranges[variable->index] == NULL)
        return false;
    if (address != NULL)
        *address = module->ranges[variable->index]->base;
    if (size != NULL)
        *size = variable->size;
    return true;
}

const em_kernel_info *em_kernel_describe(em_kernel *kernel)
{
    return &kernel->info;
}

int em_kernel_check(em_kernel *kernel, em_detail *detail)
{
    if (!atomic_load_explicit(&kernel->checked, memory_order_acquire)) {
        pthread_mutex_lock(&kernel->lock);
        if (!kernel->checked) {
            em_lower(kernel, &kernel->program, &kernel->refused);
            /* Lack of memory may pass; a missing opcode does not. */
            if (kernel->refused.code != CUDA_ERROR_OUT_OF_MEMORY)
                atomic_store_explicit(&kernel->checked, true, memory_order_release);
        }
        const em_detail refused = kernel->refused;
        pthread_mutex_unlock(&kernel->lock);
        if (refused.code != 0 && detail != NULL)
            *detail = refused;
        return refused.code;
    }
    if (kernel->refused.code != 0 && detail != NULL)
        *detail = kernel->refused;
    return kernel->refused.code;
}
