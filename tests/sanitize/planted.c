/* Faults on purpose, one a function: the sanitizers must find each, or what they say of the rest is worth nothing. */
#include <limits.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int planted_overflow(int size)
{
    volatile char *bytes = malloc((size_t)size);
    bytes[size] = 1;
    const int read = bytes[size];
    free((void *)bytes);
    return read;
}

__attribute__((visibility("default"))) int planted_undefined(int more)
{
    return INT_MAX - 2 + more;
}

static void *volatile kept;

__attribute__((visibility("default"))) int planted_leak(int size)
{
    kept = malloc((size_t)size);
    kept = NULL;
    return size;
}
