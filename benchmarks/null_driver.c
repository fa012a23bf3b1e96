/* A driver that does nothing: one device, every call succeeds at once, handles are small numbers. Under it
 * instructions.py counts what a call costs above the driver, and the counts repeat.
 *
 * Kernels take what their name says: "pointers16" has 16 parameters of 8 bytes, "ints256" 256 of 4, any other none. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int status;
typedef void *handle;

struct kernel {
    const char *name;
    size_t count, size;
};

static char memory[1 << 20] __attribute__((aligned(4096)));
static _Thread_local handle current;

static handle number(uintptr_t value)
{
    return (handle)value; /* never looked into */
}

status cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}

static status answer(int *place, int value)
{
    *place = value;
    return 0;
}

status cuDriverGetVersion(int *version)
{
    return answer(version, 13000);
}

static status name_error(status code, const char **text)
{
    *text = code == 0 ? "CUDA_SUCCESS" : "CUDA_ERROR_UNKNOWN";
    return 0;
}

static status count_devices(int *count)
{
    return answer(count, 1);
}

static status get_device(int *device, int ordinal)
{
    return answer(device, ordinal);
}

static status name_device(char *name, int length, int device)
{
    (void)device;
    strncpy(name, "null driver", (size_t)length);
    return 0;
}

static status get_total(size_t *bytes, int device)
{
    (void)device;
    *bytes = sizeof(memory);
    return 0;
}

static status get_attribute(int *value, int attribute, int device)
{
    (void)device;
    switch (attribute) {
    case 1: /* threads a block, block x and y */
    case 2:
    case 3: return answer(value, 1024);
    case 4: return answer(value, 64);
    case 5: return answer(value, INT32_MAX);
    case 6: /* grid y and z */
    case 7: return answer(value, 65535);
    case 8: return answer(value, 48 << 10);
    case 10: return answer(value, 32);
    case 75: return answer(value, 8); /* compute capability 8.0 */
    case 76: return answer(value, 0);
    case 97: return answer(value, 160 << 10);
    default: return answer(value, 1);
    }
}

static status retain_context(handle *context, int device)
{
    (void)device;
    *context = number(0x1000);
    return 0;
}

static status context_state(int device, unsigned *flags, int *active)
{
    (void)device;
    *flags = 0;
    return answer(active, 1);
}

static status get_current(handle *context)
{
    *context = current;
    return 0;
}

static status set_current(handle context)
{
    current = context;
    return 0;
}

static status current_device(int *device)
{
    return current == NULL ? 201 : answer(device, 0);
}

static status context_id(handle context, uint64_t *id)
{
    (void)context;
    *id = 1;
    return 0;
}

static status priority_range(int *least, int *greatest)
{
    *greatest = -5;
    return answer(least, 0);
}

static status make_stream(handle *stream, unsigned flags, int priority)
{
    (void)flags, (void)priority;
    *stream = number(0x2000);
    return 0;
}

static status make_handle(handle *made)
{
    *made = number(0x3000);
    return 0;
}

static status stream_context(handle stream, handle *context)
{
    (void)stream;
    *context = number(0x1000);
    return 0;
}

static status stream_number(handle stream, int *value)
{
    (void)stream;
    return answer(value, 0);
}

static status pool_attribute(handle pool, int attribute, uint64_t *value)
{
    (void)pool, (void)attribute;
    *value = UINT64_MAX; /* of the release threshold: already what is wanted */
    return 0;
}

static status allocate(uintptr_t *address, size_t size)
{
    (void)size;
    *address = (uintptr_t)memory;
    return 0;
}

static status pointer_attributes(unsigned count, const int *attributes, void **values, uintptr_t pointer)
{
    (void)pointer;
    for (unsigned i = 0; i < count; i++) {
        if (attributes[i] == 2) /* memory type: device */
            *(unsigned *)values[i] = 2;
        else if (attributes[i] == 9) /* device ordinal */
            *(int *)values[i] = 0;
        else if (attributes[i] == 8) /* managed */
            *(unsigned *)values[i] = 0;
        else if (attributes[i] == 1) /* context */
            *(handle *)values[i] = number(0x1000);
    }
    return 0;
}

static status get_kernel(handle *kernel, handle library, const char *name)
{
    (void)library;
    struct kernel *made = calloc(1, sizeof(*made));
    if (made == NULL)
        return 2;
    made->name = strdup(name);
    made->size = name[0] == 'p' ? 8 : 4;
    made->count = strtoul(name + strcspn(name, "0123456789"), NULL, 10);
    *kernel = made;
    return 0;
}

static status kernel_name(const char **name, const struct kernel *kernel)
{
    *name = kernel->name;
    return 0;
}

static status kernel_parameter(const struct kernel *kernel, size_t index, size_t *offset, size_t *size)
{
    if (index >= kernel->count)
        return 1;
    *offset = index * kernel->size;
    if (size != NULL)
        *size = kernel->size;
    return 0;
}

static status kernel_attribute(int *value, int attribute, handle kernel, int device)
{
    (void)kernel, (void)device;
    return answer(value, attribute == 0 ? 1024 : 0);
}

static status count_kernels(unsigned *count, handle library)
{
    (void)library;
    *count = 0;
    return 0;
}

static status nothing(void)
{
    return 0;
}

status cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } known[] = {
#define KNOWN(name, function) {name, (void (*)(void))(function)}
        KNOWN("cuInit", cuInit),
        KNOWN("cuDriverGetVersion", cuDriverGetVersion),
        KNOWN("cuGetErrorName", name_error),
        KNOWN("cuGetErrorString", name_error),
        KNOWN("cuDeviceGetCount", count_devices),
        KNOWN("cuDeviceGet", get_device),
        KNOWN("cuDeviceGetName", name_device),
        KNOWN("cuDeviceTotalMem", get_total),
        KNOWN("cuDeviceGetAttribute", get_attribute),
        KNOWN("cuDevicePrimaryCtxRetain", retain_context),
        KNOWN("cuDevicePrimaryCtxGetState", context_state),
        KNOWN("cuCtxGetCurrent", get_current),
        KNOWN("cuCtxSetCurrent", set_current),
        KNOWN("cuCtxGetDevice", current_device),
        KNOWN("cuCtxGetId", context_id),
        KNOWN("cuCtxGetStreamPriorityRange", priority_range),
        KNOWN("cuStreamCreateWithPriority", make_stream),
        KNOWN("cuStreamGetCtx", stream_context),
        KNOWN("cuStreamGetFlags", stream_number),
        KNOWN("cuStreamGetPriority", stream_number),
        KNOWN("cuEventCreate", make_handle),
        KNOWN("cuDeviceGetDefaultMemPool", make_handle),
        KNOWN("cuMemPoolCreate", make_handle),
        KNOWN("cuMemPoolGetAttribute", pool_attribute),
        KNOWN("cuMemAllocFromPoolAsync", allocate),
        KNOWN("cuMemAlloc", allocate),
        KNOWN("cuMemHostAlloc", allocate),
        KNOWN("cuPointerGetAttributes", pointer_attributes),
        KNOWN("cuLibraryLoadData", make_handle),
        KNOWN("cuLibraryGetKernel", get_kernel),
        KNOWN("cuLibraryGetKernelCount", count_kernels),
        KNOWN("cuKernelGetName", kernel_name),
        KNOWN("cuKernelGetParamInfo", kernel_parameter),
        KNOWN("cuKernelGetAttribute", kernel_attribute),
#undef KNOWN
    };
    (void)version, (void)flags;
    void (*chosen)(void) = (void (*)(void))nothing;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].name, name) == 0)
            chosen = known[i].function;
    memcpy(function, &chosen, sizeof(chosen));
    if (found != NULL)
        *found = 0;
    return 0;
}
