/* Entry points: fills. */
#include "api.h"

static int fill(CUdeviceptr to, size_t pitch, unsigned int value, unsigned int element, size_t width, size_t height,
                CUstream handle, bool asynchronous)
{
    em_stream *stream;
    int status = em_stream_enter(handle, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    return em_fill(to, pitch, value, element, width, height, stream, asynchronous);
}

EM_ENTRY_DEFAULT(cuMemsetD8_v2, "%#llx, %#x, %zu", (to, value, count), CUdeviceptr to, unsigned char value,
                 size_t count)
{
    return fill(to, 0, value, 1, count, 1, em_default, false);
}

EM_ENTRY_DEFAULT(cuMemsetD16_v2, "%#llx, %#x, %zu", (to, value, count), CUdeviceptr to, unsigned short value,
                 size_t count)
{
    return fill(to, 0, value, 2, count, 1, em_default, false);
}

EM_ENTRY_DEFAULT(cuMemsetD32_v2, "%#llx, %#x, %zu", (to, value, count), CUdeviceptr to, unsigned int value,
                 size_t count)
{
    return fill(to, 0, value, 4, count, 1, em_default, false);
}

EM_ENTRY_DEFAULT(cuMemsetD2D8_v2, "%#llx, %zu, %#x, %zu, %zu", (to, pitch, value, width, height), CUdeviceptr to,
                 size_t pitch, unsigned char value, size_t width, size_t height)
{
    return fill(to, pitch, value, 1, width, height, em_default, false);
}

EM_ENTRY_DEFAULT(cuMemsetD2D16_v2, "%#llx, %zu, %#x, %zu, %zu", (to, pitch, value, width, height), CUdeviceptr to,
                 size_t pitch, unsigned short value, size_t width, size_t height)
{
    return fill(to, pitch, value, 2, width, height, em_default, false);
}

EM_ENTRY_DEFAULT(cuMemsetD2D32_v2, "%#llx, %zu, %#x, %zu, %zu", (to, pitch, value, width, height), CUdeviceptr to,
                 size_t pitch, unsigned int value, size_t width, size_t height)
{
    return fill(to, pitch, value, 4, width, height, em_default, false);
}

EM_ENTRY_STREAM(cuMemsetD8Async, "%#llx, %#x, %zu, %p", (to, value, count, hStream), CUdeviceptr to,
                unsigned char value, size_t count, CUstream hStream)
{
    return fill(to, 0, value, 1, count, 1, hStream, true);
}

EM_ENTRY_STREAM(cuMemsetD16Async, "%#llx, %#x, %zu, %p", (to, value, count, hStream), CUdeviceptr to,
                unsigned short value, size_t count, CUstream hStream)
{
    return fill(to, 0, value, 2, count, 1, hStream, true);
}

EM_ENTRY_STREAM(cuMemsetD32Async, "%#llx, %#x, %zu, %p", (to, value, count, hStream), CUdeviceptr to,
                unsigned int value, size_t count, CUstream hStream)
{
    return fill(to, 0, value, 4, count, 1, hStream, true);
}

EM_ENTRY_STREAM(cuMemsetD2D8Async, "%#llx, %zu, %#x, %zu, %zu, %p", (to, pitch, value, width, height, hStream),
                CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height, CUstream hStream)
{
    return fill(to, pitch, value, 1, width, height, hStream, true);
}

EM_ENTRY_STREAM(cuMemsetD2D16Async, "%#llx, %zu, %#x, %zu, %zu, %p", (to, pitch, value, width, height, hStream),
                CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height, CUstream hStream)
{
    return fill(to, pitch, value, 2, width, height, hStream, true);
}

EM_ENTRY_STREAM(cuMemsetD2D32Async, "%#llx, %zu, %#x, %zu, %zu, %p", (to, pitch, value, width, height, hStream),
                CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height, CUstream hStream)
{
    return fill(to, pitch, value, 4, width, height, hStream, true);
}
