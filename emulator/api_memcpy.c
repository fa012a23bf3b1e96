/* Entry points: copies. */
#include "api.h"

static uint64_t of_pointer(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static int copy_line(em_side to, em_side from, size_t bytes, CUstream handle, bool asynchronous)
{
    em_stream *stream;
    int status = em_stream_enter(handle, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    const em_box box = {.to = to, .from = from, .width = bytes, .height = 1, .depth = 1};
    return em_copy(&box, stream, asynchronous);
}

static em_side device_side(CUdeviceptr address)
{
    return (em_side){.address = address, .must_be_device = true};
}

static em_side host_side(const void *pointer)
{
    return (em_side){.address = of_pointer(pointer), .must_be_host = true};
}

static em_side any_side(CUdeviceptr address)
{
    return (em_side){.address = address};
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

EM_ENTRY_DEFAULT(cuMemcpy, "%#llx, %#llx, %zu", (to, from, bytes), CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_line(any_side(to), any_side(from), bytes, em_default, false);
}

EM_ENTRY_STREAM(cuMemcpyAsync, "%#llx, %#llx, %zu, %p", (to, from, bytes, hStream), CUdeviceptr to, CUdeviceptr from,
                size_t bytes, CUstream hStream)
{
    return copy_line(any_side(to), any_side(from), bytes, hStream, true);
}

EM_ENTRY_DEFAULT(cuMemcpyHtoD_v2, "%#llx, %p, %zu", (to, from, bytes), CUdeviceptr to, const void *from, size_t bytes)
{
    return copy_line(device_side(to), host_side(from), bytes, em_default, false);
}

EM_ENTRY_STREAM(cuMemcpyHtoDAsync_v2, "%#llx, %p, %zu, %p", (to, from, bytes, hStream), CUdeviceptr to,
                const void *from, size_t bytes, CUstream hStream)
{
    return copy_line(device_side(to), host_side(from), bytes, hStream, true);
}

EM_ENTRY_DEFAULT(cuMemcpyDtoH_v2, "%p, %#llx, %zu", (to, from, bytes), void *to, CUdeviceptr from, size_t bytes)
{
    return copy_line(host_side(to), device_side(from), bytes, em_default, false);
}

EM_ENTRY_STREAM(cuMemcpyDtoHAsync_v2, "%p, %#llx, %zu, %p", (to, from, bytes, hStream), void *to, CUdeviceptr from,
                size_t bytes, CUstream hStream)
{
    return copy_line(host_side(to), device_side(from), bytes, hStream, true);
}

EM_ENTRY_DEFAULT(cuMemcpyDtoD_v2, "%#llx, %#llx, %zu", (to, from, bytes), CUdeviceptr to, CUdeviceptr from,
                 size_t bytes)
{
    return copy_line(device_side(to), device_side(from), bytes, em_default, false);
}

EM_ENTRY_STREAM(cuMemcpyDtoDAsync_v2, "%#llx, %#llx, %zu, %p", (to, from, bytes, hStream), CUdeviceptr to,
                CUdeviceptr from, size_t bytes, CUstream hStream)
{
    return copy_line(device_side(to), device_side(from), bytes, hStream, true);
}

/* ---- between devices --------------------------------------------------------------------------------------------- */

static int copy_between(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                        CUstream stream, bool asynchronous)
{
    if (em_object_get(EM_KIND_CONTEXT, to_context) == NULL || em_object_get(EM_KIND_CONTEXT, from_context) == NULL)
        return em_explain(CUDA_ERROR_INVALID_CONTEXT, "a copy between devices names a context that is not alive");
    return copy_line(device_side(to), device_side(from), bytes, stream, asynchronous);
}

EM_ENTRY_DEFAULT(cuMemcpyPeer, "%#llx, %p, %#llx, %p, %zu", (to, to_context, from, from_context, bytes), CUdeviceptr to,
                 CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes)
{
    return copy_between(to, to_context, from, from_context, bytes, em_default, false);
}

EM_ENTRY_STREAM(cuMemcpyPeerAsync, "%#llx, %p, %#llx, %p, %zu, %p",
                (to, to_context, from, from_context, bytes, hStream), CUdeviceptr to, CUcontext to_context,
                CUdeviceptr from, CUcontext from_context, size_t bytes, CUstream hStream)
{
    return copy_between(to, to_context, from, from_context, bytes, hStream, true);
}

/* ---- rows and boxes ---------------------------------------------------------------------------------------------- */

/* What CUDA_MEMCPY2D, 3D and 3D_PEER say of one side. */
typedef struct placement {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    size_t x, y, z, pitch, height;
} placement;

static int side_of(const placement *place, size_t width, size_t rows, size_t planes, em_side *side)
{
    size_t pitch = place->pitch != 0 ? place->pitch : width;
    size_t height = place->height != 0 ? place->height : rows;
    if (rows > 1 || planes > 1 || place->pitch != 0) {
        size_t end;
        if (__builtin_add_overflow(place->x, width, &end) || pitch < end || pitch > INT32_MAX)
            return em_explain(CUDA_ERROR_INVALID_VALUE,
                              "a pitch of %zu bytes is less than a row's end, %zu, or more "
                              "than the device's limit",
                              pitch, place->x + width);
    }
    if (planes > 1 && height < rows + place->y)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "planes of %zu rows do not hold %zu rows", height, rows + place->y);
    uint64_t slice, skipped_planes, skipped_rows, start;
    if (__builtin_mul_overflow(pitch, height, &slice) || __builtin_mul_overflow(slice, place->z, &skipped_planes) ||
        __builtin_mul_overflow(pitch, place->y, &skipped_rows))
        return CUDA_ERROR_INVALID_VALUE;
    switch (place->type) {
    case CU_MEMORYTYPE_HOST:
        *side = host_side(place->host);
        break;
    case CU_MEMORYTYPE_DEVICE:
        *side = device_side(place->device);
        break;
    case CU_MEMORYTYPE_UNIFIED:
        *side = any_side(place->device);
        break;
    case CU_MEMORYTYPE_ARRAY:
        return em_explain(CUDA_ERROR_NOT_SUPPORTED, "the emulated device has no CUDA arrays");
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (side->address == 0 || __builtin_add_overflow(side->address, skipped_planes, &start) ||
        __builtin_add_overflow(start, skipped_rows + place->x, &side->address))
        return em_explain(CUDA_ERROR_INVALID_VALUE, "one side of the copy is a null pointer, or exceeds the address "
                                                    "space");
    side->pitch = pitch;
    side->slice = slice;
    return CUDA_SUCCESS;
}

static int copy_placed(const placement *to, const placement *from, size_t width, size_t rows, size_t planes,
                       CUstream handle, bool asynchronous)
{
    em_stream *stream;
    int status = em_stream_enter(handle, &stream);
    if (status != CUDA_SUCCESS || width == 0 || rows == 0 || planes == 0)
        return status;
    em_box box = {.width = width, .height = rows, .depth = planes};
    status = side_of(to, width, rows, planes, &box.to);
    if (status == CUDA_SUCCESS)
        status = side_of(from, width, rows, planes, &box.from);
    return status == CUDA_SUCCESS ? em_copy(&box, stream, asynchronous) : status;
}

static int copy_2d(const CUDA_MEMCPY2D *what, CUstream stream, bool asynchronous)
{
    if (what == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const placement to = {
        what->dstMemoryType, what->dstHost, what->dstDevice, what->dstXInBytes, what->dstY, 0, what->dstPitch, 0};
    const placement from = {
        what->srcMemoryType, what->srcHost, what->srcDevice, what->srcXInBytes, what->srcY, 0, what->srcPitch, 0};
    return copy_placed(&to, &from, what->WidthInBytes, what->Height, 1, stream, asynchronous);
}

static int copy_3d(const CUDA_MEMCPY3D *what, CUstream stream, bool asynchronous)
{
    if (what == NULL || what->srcLOD != 0 || what->dstLOD != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const placement to = {what->dstMemoryType, what->dstHost, what->dstDevice, what->dstXInBytes,
                          what->dstY,          what->dstZ,    what->dstPitch,  what->dstHeight};
    const placement from = {what->srcMemoryType, what->srcHost, what->srcDevice, what->srcXInBytes,
                            what->srcY,          what->srcZ,    what->srcPitch,  what->srcHeight};
    return copy_placed(&to, &from, what->WidthInBytes, what->Height, what->Depth, stream, asynchronous);
}

static int copy_3d_between(const CUDA_MEMCPY3D_PEER *what, CUstream stream, bool asynchronous)
{
    if (what == NULL || what->srcLOD != 0 || what->dstLOD != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const placement to = {what->dstMemoryType, what->dstHost, what->dstDevice, what->dstXInBytes,
                          what->dstY,          what->dstZ,    what->dstPitch,  what->dstHeight};
    const placement from = {what->srcMemoryType, what->srcHost, what->srcDevice, what->srcXInBytes,
                            what->srcY,          what->srcZ,    what->srcPitch,  what->srcHeight};
    return copy_placed(&to, &from, what->WidthInBytes, what->Height, what->Depth, stream, asynchronous);
}

EM_ENTRY_DEFAULT(cuMemcpy2D_v2, "%p", (what), const CUDA_MEMCPY2D *what)
{
    return copy_2d(what, em_default, false);
}

EM_ENTRY_DEFAULT(cuMemcpy2DUnaligned_v2, "%p", (what), const CUDA_MEMCPY2D *what)
{
    return copy_2d(what, em_default, false);
}

EM_ENTRY_STREAM(cuMemcpy2DAsync_v2, "%p, %p", (what, hStream), const CUDA_MEMCPY2D *what, CUstream hStream)
{
    return copy_2d(what, hStream, true);
}

EM_ENTRY_DEFAULT(cuMemcpy3D_v2, "%p", (what), const CUDA_MEMCPY3D *what)
{
    return copy_3d(what, em_default, false);
}

EM_ENTRY_STREAM(cuMemcpy3DAsync_v2, "%p, %p", (what, hStream), const CUDA_MEMCPY3D *what, CUstream hStream)
{
    return copy_3d(what, hStream, true);
}

EM_ENTRY_DEFAULT(cuMemcpy3DPeer, "%p", (what), const CUDA_MEMCPY3D_PEER *what)
{
    return copy_3d_between(what, em_default, false);
}

EM_ENTRY_STREAM(cuMemcpy3DPeerAsync, "%p, %p", (what, hStream), const CUDA_MEMCPY3D_PEER *what, CUstream hStream)
{
    return copy_3d_between(what, hStream, true);
}

/* ---- several at once --------------------------------------------------------------------------------------------- */

EM_ENTRY_STREAM(cuMemcpyBatchAsync_v2, "%p, %p, %p, %zu, %p, %p, %zu, %p",
                (to, from, sizes, count, attributes, starts, attribute_count, hStream), CUdeviceptr *to,
                CUdeviceptr *from, size_t *sizes, size_t count, CUmemcpyAttributes *attributes, size_t *starts,
                size_t attribute_count, CUstream hStream)
{
    if (to == NULL || from == NULL || sizes == NULL || count == 0 || attributes == NULL || starts == NULL ||
        attribute_count == 0 || attribute_count > count || starts[0] != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (hStream == NULL || hStream == CU_STREAM_LEGACY)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "a batch of copies cannot be in the legacy default stream");
    int status = CUDA_SUCCESS;
    for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++)
        status = copy_line(any_side(to[i]), any_side(from[i]), sizes[i], hStream, true);
    return status;
}
