/* A stand-in for the part of the emulator that reads PTX and runs kernels: it knows the kernels of kernels.h by their
 * names. It lets the driver's side be tested, and measured, alone. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../emulator/api.h"

struct em_kernel {
    em_kernel_info info;
    em_parameter parameters[8];
    char name[64];
};

struct em_module {
    em_kernel *kernels;
    size_t count;
    em_range *counter;
};

static uint32_t size_of_type(const char *type)
{
    if (strncmp(type, "u64", 3) == 0)
        return 8;
    if (strncmp(type, "u32", 3) == 0)
        return 4;
    return strncmp(type, "u16", 3) == 0 ? 2 : 1;
}

static void read_parameters(em_kernel *kernel, const char *text, const char *end)
{
    uint32_t offset = 0;
    for (const char *at = strstr(text, ".param"); at != NULL && at < end; at = strstr(at + 6, ".param")) {
        uint32_t align = 0, size;
        const char *type = at + 8;
        if (strncmp(type, "align", 5) == 0) {
            align = (uint32_t)strtoul(type + 5, NULL, 10);
            type = strchr(type, '.') + 1;
        }
        size = size_of_type(type);
        if (align == 0)
            align = size;
        const char *bracket = strpbrk(type, "[,)");
        if (*bracket == '[')
            size *= (uint32_t)strtoul(bracket + 1, NULL, 10);
        offset = (offset + align - 1) / align * align;
        kernel->parameters[kernel->info.parameter_count++] = (em_parameter){offset, size};
        offset += size;
    }
    kernel->info.parameter_bytes = offset;
    kernel->info.parameters = kernel->parameters;
}

int em_module_load(const char *ptx, size_t length, const em_limits *limits, em_module **module, em_detail *detail)
{
    (void)length;
    if (strncmp(ptx, ".version", 8) != 0)
        return em_fail(detail, CUDA_ERROR_INVALID_PTX, "1:1: .version expected");
    em_module *made = calloc(1, sizeof *made);
    made->kernels = calloc(16, sizeof *made->kernels);
    for (const char *at = strstr(ptx, ".entry "); at != NULL; at = strstr(at + 1, ".entry ")) {
        em_kernel *kernel = &made->kernels[made->count++];
        const char *name = at + 7, *open = strchr(name, '('), *close = strstr(name, ")\n");
        memcpy(kernel->name, name, (size_t)(open - name));
        kernel->info.name = kernel->name;
        kernel->info.module = made;
        kernel->info.max_threads = strcmp(kernel->name, "limited") == 0 ? 64 : 1024;
        kernel->info.target = 80;
        kernel->info.ptx_version = 80;
        kernel->info.registers = 16;
        read_parameters(kernel, open, close);
    }
    made->counter = em_heap_allocate(4, 4, EM_DEVICE, limits->ordinal);
    *(uint32_t *)(uintptr_t)made->counter->base = 7;
    *module = made;
    return 0;
}

void em_module_unload(em_module *module)
{
    em_heap_release(module->counter);
    free(module->kernels);
    free(module);
}

size_t em_module_kernel_count(const em_module *module)
{
    return module->count;
}

em_kernel *em_module_kernel_at(em_module *module, size_t index)
{
    return &module->kernels[index];
}

bool em_module_variable(em_module *module, const char *name, uint64_t *address, uint64_t *size)
{
    *address = module->counter->base;
    *size = 4;
    return strcmp(name, "counter") == 0;
}

const em_kernel_info *em_kernel_describe(em_kernel *kernel)
{
    return &kernel->info;
}

int em_kernel_check(em_kernel *kernel, em_detail *detail)
{
    (void)kernel;
    (void)detail;
    return 0;
}

static bool reachable(uint64_t address, uint64_t size)
{
    const em_range *range = em_heap_find(address);
    return range != NULL && range->live && range->base + range->size - address >= size;
}

int em_run(const em_launch *launch, em_detail *detail)
{
    const char *name = launch->kernel->name;
    uint64_t address = 0;
    uint32_t value = 0;
    if (launch->kernel->info.parameter_count >= 1)
        memcpy(&address, launch->parameters, 8);
    if (strcmp(name, "add_one") == 0 || strcmp(name, "store") == 0)
        memcpy(&value, (const char *)launch->parameters + 8, 4);
    if (strcmp(name, "add_one") == 0) {
        uint32_t threads = launch->grid[0] * launch->block[0];
        for (uint32_t i = 0; i < threads && i < value; i++) {
            if (!reachable(address + 4 * i, 4))
                return em_fail(detail, 700, "add_one: address 0x%llx", (unsigned long long)(address + 4 * i));
            ++*(uint32_t *)(uintptr_t)(address + 4 * i);
        }
    } else if (strcmp(name, "store") == 0) {
        if (!reachable(address, 4))
            return em_fail(detail, 700, "illegal write of 4 bytes at 0x%llx", (unsigned long long)address);
        *(uint32_t *)(uintptr_t)address = value;
    } else if (strcmp(name, "spin") == 0) {
        const struct timespec pause = {.tv_nsec = 50000};
        while (*(_Atomic uint32_t *)(uintptr_t)address == 0)
            nanosleep(&pause, NULL);
    }
    return 0;
}

void em_workers_stop(void) {}
