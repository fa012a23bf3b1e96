/* For tests, brought in by LD_PRELOAD: allocations of host memory that fail by number. Those of Python (its three
 * domains) by its own hooks; those of malloc's family where the call comes from one library, cuda_core's extension. */
#include <Python.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

static atomic_ulong count, failing; /* failing 0: none */

static bool fails(void)
{
    const unsigned long number = atomic_fetch_add(&count, 1) + 1;
    if (number != atomic_load_explicit(&failing, memory_order_relaxed))
        return false;
    errno = ENOMEM;
    return true;
}

static void begin(unsigned long number)
{
    count = 0;
    failing = number;
}

/* ---- Python's allocators ----------------------------------------------------------------------------------------- */

enum { DOMAINS = 3 };
static PyMemAllocatorEx before[DOMAINS];

static void *python_malloc(void *context, size_t size)
{
    const PyMemAllocatorEx *real = context;
    return fails() ? NULL : real->malloc(real->ctx, size);
}

static void *python_calloc(void *context, size_t items, size_t size)
{
    const PyMemAllocatorEx *real = context;
    return fails() ? NULL : real->calloc(real->ctx, items, size);
}

static void *python_realloc(void *context, void *block, size_t size)
{
    const PyMemAllocatorEx *real = context;
    return fails() ? NULL : real->realloc(real->ctx, block, size);
}

static void python_free(void *context, void *block)
{
    const PyMemAllocatorEx *real = context;
    real->free(real->ctx, block);
}

EXPORT void fail_python_allocation(unsigned long number);
EXPORT unsigned long end_python_allocations(void);
EXPORT void fail_library_allocation(const void *inside, unsigned long number);
EXPORT unsigned long end_library_allocations(void);
EXPORT const void *failed_allocation_place(void);

/* The `number`th from now on fails; 0: they are counted only. */
void fail_python_allocation(unsigned long number)
{
    begin(number);
    for (int domain = 0; domain < DOMAINS; domain++) {
        PyMem_GetAllocator((PyMemAllocatorDomain)domain, &before[domain]);
        PyMemAllocatorEx hooks = {&before[domain], python_malloc, python_calloc, python_realloc, python_free};
        PyMem_SetAllocator((PyMemAllocatorDomain)domain, &hooks);
    }
}

/* How many there were. */
unsigned long end_python_allocations(void)
{
    for (int domain = 0; domain < DOMAINS; domain++)
        PyMem_SetAllocator((PyMemAllocatorDomain)domain, &before[domain]);
    return count;
}

/* ---- malloc's family --------------------------------------------------------------------------------------------- */

static _Atomic(const void *) library; /* where it is mapped; NULL: none is looked at */

static _Atomic(const void *) failed; /* the caller that got nothing */

static bool is_of_library(const void *caller)
{
    const void *wanted = atomic_load_explicit(&library, memory_order_relaxed);
    Dl_info found;
    return wanted != NULL && dladdr(caller, &found) != 0 && found.dli_fbase == wanted;
}

static bool fails_for(const void *caller)
{
    if (!is_of_library(caller) || !fails())
        return false;
    failed = caller;
    return true;
}

#define FAILS fails_for(__builtin_return_address(0))

/* `inside`: any address of the library. */
void fail_library_allocation(const void *inside, unsigned long number)
{
    Dl_info found;
    begin(number);
    failed = NULL;
    library = dladdr(inside, &found) != 0 ? found.dli_fbase : NULL;
}

/* The address that the allocation which failed returned to. */
const void *failed_allocation_place(void)
{
    return failed;
}

unsigned long end_library_allocations(void)
{
    library = NULL;
    return count;
}

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t items, size_t size);
extern void *__libc_realloc(void *block, size_t size);

EXPORT void *malloc(size_t size)
{
    return FAILS ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t items, size_t size)
{
    return FAILS ? NULL : __libc_calloc(items, size);
}

EXPORT void *realloc(void *block, size_t size)
{
    return FAILS ? NULL : __libc_realloc(block, size);
}

EXPORT char *strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = FAILS ? NULL : __libc_malloc(size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

EXPORT char *strndup(const char *text, size_t most)
{
    const size_t length = strnlen(text, most);
    char *copy = FAILS ? NULL : __libc_malloc(length + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}
