/* What the driver itself costs: the calls of launch.py in C loops, below which no layer can be.
 *
 * Built by launch.py with the C compiler there is and loaded with ctypes. The driver's functions come from the library
 * that the caller names; their few types are written out here, so that no CUDA header is needed.
 *
 * Each floor_X(repeats, count, ...) returns the best of `repeats` loops of `count` calls, in nanoseconds a call, or
 * -(the driver's error). Between loops the stream is waited for, so that its queue is never full. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef int status;
typedef void *handle;
typedef uint64_t address;

static struct {
    status (*launch_kernel)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle,
                            void **, void **);
    status (*stream_create)(handle *, unsigned, int);
    status (*stream_destroy)(handle);
    status (*stream_synchronize)(handle);
    status (*event_create)(handle *, unsigned);
    status (*event_destroy)(handle);
    status (*event_record)(handle, handle);
    status (*event_query)(handle);
    status (*event_synchronize)(handle);
    status (*allocate)(address *, size_t, handle, handle);
    status (*release)(address, handle);
    status (*copy)(address, address, size_t, handle);
    status (*fill)(address, unsigned char, size_t, handle);
    status (*current_device)(int *);
    status (*device_attribute)(int *, int, int);
} driver;

/* 0, or 1 where a function is missing. */
int floor_open(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL)
        return 1;
    const struct {
        const char *name;
        void **place;
    } wanted[] = {
        {"cuLaunchKernel", (void **)&driver.launch_kernel},
        {"cuStreamCreateWithPriority", (void **)&driver.stream_create},
        {"cuStreamDestroy_v2", (void **)&driver.stream_destroy},
        {"cuStreamSynchronize", (void **)&driver.stream_synchronize},
        {"cuEventCreate", (void **)&driver.event_create},
        {"cuEventDestroy_v2", (void **)&driver.event_destroy},
        {"cuEventRecord", (void **)&driver.event_record},
        {"cuEventQuery", (void **)&driver.event_query},
        {"cuEventSynchronize", (void **)&driver.event_synchronize},
        {"cuMemAllocFromPoolAsync", (void **)&driver.allocate},
        {"cuMemFreeAsync", (void **)&driver.release},
        {"cuMemcpyAsync", (void **)&driver.copy},
        {"cuMemsetD8Async", (void **)&driver.fill},
        {"cuCtxGetDevice", (void **)&driver.current_device},
        {"cuDeviceGetAttribute", (void **)&driver.device_attribute},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        *wanted[i].place = dlsym(library, wanted[i].name);
        if (*wanted[i].place == NULL)
            return 1;
    }
    return 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

/* The body of each function: CALL is an expression of type status. */
#define BEST_OF(repeats, count, stream, CALL)                                                                          \
    double best = 1e30;                                                                                                \
    for (int repeat = 0; repeat < (repeats); repeat++) {                                                               \
        status failed = driver.stream_synchronize(stream);                                                             \
        const double begin = now();                                                                                    \
        for (int i = 0; i < (count) && failed == 0; i++)                                                               \
            failed = (CALL);                                                                                           \
        const double each = (now() - begin) / (count);                                                                 \
        if (failed != 0)                                                                                               \
            return -(double)failed;                                                                                    \
        if (each < best)                                                                                               \
            best = each;                                                                                               \
    }                                                                                                                  \
    driver.stream_synchronize(stream);                                                                                 \
    return best

double floor_launch(int repeats, int count, handle stream, handle kernel, void **arguments)
{
    BEST_OF(repeats, count, stream, driver.launch_kernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static status make_event(void)
{
    handle event;
    const status failed = driver.event_create(&event, 2 /* without timing */);
    return failed != 0 ? failed : driver.event_destroy(event);
}

double floor_event(int repeats, int count, handle stream)
{
    BEST_OF(repeats, count, stream, make_event());
}

double floor_event_query(int repeats, int count, handle stream, handle event)
{
    BEST_OF(repeats, count, stream, driver.event_query(event));
}

double floor_event_synchronize(int repeats, int count, handle stream, handle event)
{
    BEST_OF(repeats, count, stream, driver.event_synchronize(event));
}

double floor_record(int repeats, int count, handle stream, handle event)
{
    BEST_OF(repeats, count, stream, driver.event_record(event, stream));
}

double floor_synchronize(int repeats, int count, handle stream)
{
    BEST_OF(repeats, count, stream, driver.stream_synchronize(stream));
}

static status make_stream(void)
{
    handle stream;
    const status failed = driver.stream_create(&stream, 1 /* non-blocking */, 0);
    return failed != 0 ? failed : driver.stream_destroy(stream);
}

double floor_stream(int repeats, int count, handle stream)
{
    BEST_OF(repeats, count, stream, make_stream());
}

static status make_allocation(handle pool, handle stream)
{
    address memory;
    const status failed = driver.allocate(&memory, 1024, pool, stream);
    return failed != 0 ? failed : driver.release(memory, stream);
}

double floor_allocate(int repeats, int count, handle stream, handle pool)
{
    BEST_OF(repeats, count, stream, make_allocation(pool, stream));
}

double floor_copy(int repeats, int count, handle stream, address to, address from, size_t size)
{
    BEST_OF(repeats, count, stream, driver.copy(to, from, size, stream));
}

double floor_fill(int repeats, int count, handle stream, address to, size_t size)
{
    BEST_OF(repeats, count, stream, driver.fill(to, 0, size, stream));
}

double floor_current_device(int repeats, int count, handle stream)
{
    int device;
    BEST_OF(repeats, count, stream, driver.current_device(&device));
}

double floor_attribute(int repeats, int count, handle stream)
{
    int value;
    BEST_OF(repeats, count, stream, driver.device_attribute(&value, 10 /* warp size */, 0));
}
