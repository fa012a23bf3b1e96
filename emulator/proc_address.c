/* cuGetProcAddress, and the calls about errors and about the process as a whole. */
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "cuda_core_emulator.h"

typedef void (*any_function)(void);

typedef struct entry {
    const char *name;
    int since;                         /* the CUDA version that brought this form of it */
    any_function function, per_thread; /* the form for programs with a default stream for each thread, or NULL */
} entry;

/* Sorted by name, then by version. */
static const entry entries[] = {
#define EM_PLAIN(name, since, symbol) {#name, since, (any_function)symbol, NULL},
#define EM_PTSZ(name, since, symbol)  {#name, since, (any_function)symbol, (any_function)symbol##_ptsz},
#define EM_PTDS(name, since, symbol)  {#name, since, (any_function)symbol, (any_function)symbol##_ptds},
#include "entries.def"
#undef EM_PLAIN
#undef EM_PTSZ
#undef EM_PTDS
};

static int compare_name(const void *name, const void *element)
{
    return strcmp(name, ((const entry *)element)->name);
}

bool em_entry_exists(const char *name)
{
    return bsearch(name, entries, sizeof entries / sizeof *entries, sizeof *entries, compare_name) != NULL;
}

/* The newest form that a program of that CUDA version can know. */
static CUdriverProcAddressQueryResult find(const char *name, int version, bool per_thread, void **function)
{
    const size_t count = sizeof entries / sizeof *entries;
    const entry *found = bsearch(name, entries, count, sizeof *entries, compare_name);
    *function = NULL;
    if (found == NULL)
        return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    while (found > entries && strcmp(found[-1].name, name) == 0)
        found--;
    const entry *best = NULL;
    for (; found < entries + count && strcmp(found->name, name) == 0; found++)
        if (found->since <= version)
            best = found;
    if (best == NULL)
        return CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    any_function chosen = per_thread && best->per_thread != NULL ? best->per_thread : best->function;
    memcpy(function, &chosen, sizeof chosen);
    return CU_GET_PROC_ADDRESS_SUCCESS;
}

EM_ENTRY(cuGetProcAddress_v2, "%s, %p, %d, %#lx, %p", (name, function, version, flags, result), const char *name,
         void **function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *result)
{
    const cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (name == NULL || function == NULL || (flags & ~known) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (version / 1000 > CUDA_VERSION / 1000)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "this is a driver of CUDA %d, not %d", CUDA_VERSION / 1000,
                          version / 1000);
    bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    CUdriverProcAddressQueryResult outcome = find(name, version, per_thread, function);
    if (result != NULL)
        *result = outcome;
    return CUDA_SUCCESS; /* also when there is none: the null pointer and the result say so */
}

EM_ENTRY(cuGetProcAddress, "%s, %p, %d, %#lx", (name, function, version, flags), const char *name, void **function,
         int version, cuuint64_t flags)
{
    return do_cuGetProcAddress_v2(name, function, version, flags, NULL);
}

EM_ENTRY(cuGetErrorName, "%d, %p", (error, text), CUresult error, const char **text)
{
    if (text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *text = em_error_name((int)error);
    return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EM_ENTRY(cuGetErrorString, "%d, %p", (error, text), CUresult error, const char **text)
{
    if (text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *text = em_error_text((int)error);
    return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EM_ENTRY(cuGetExportTable, "%p, %p", (table, id), const void **table, const CUuuid *id)
{
    if (table == NULL || id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return em_explain(CUDA_ERROR_NOT_FOUND, "the emulated driver has no undocumented tables");
}

CUresult cuEmulatorLiveObjects(cuEmulatorObjects *objects, size_t size)
{
    if (objects == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const cuEmulatorObjects now = {
        .contexts = em_object_count(EM_KIND_CONTEXT),
        .streams = em_object_count(EM_KIND_STREAM),
        .events = em_object_count(EM_KIND_EVENT),
        .pools = em_object_count(EM_KIND_POOL) - em_pool_default_count(),
        .libraries = em_object_count(EM_KIND_LIBRARY),
        .modules = em_object_count(EM_KIND_MODULE),
        .device_allocations = em_heap_count(EM_DEVICE),
        .host_allocations = em_heap_count(EM_PINNED),
        .registrations = em_heap_count(EM_REGISTERED),
        .managed_allocations = em_heap_count(EM_MANAGED),
        .physical_allocations = em_object_count(EM_KIND_PHYSICAL),
        .reservations = em_reservation_count(),
        .mappings = em_mapping_count(),
    };
    memset(objects, 0, size);
    memcpy(objects, &now, size < sizeof now ? size : sizeof now);
    return CUDA_SUCCESS;
}
