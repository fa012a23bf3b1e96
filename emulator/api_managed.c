/* Entry points: advice on managed memory. Host and devices share it here, so there is nothing to move: the calls check
 * what they are given and do no more. */
#include "api.h"

static int check_managed(CUdeviceptr address, size_t size)
{
    em_heap_pin();
    const em_range *range = em_heap_find(address);
    bool sound = range != NULL && range->live && range->kind == EM_MANAGED && size != 0 &&
                 size <= range->base + range->size - address;
    em_heap_unpin();
    return sound ? CUDA_SUCCESS
                 : em_explain(CUDA_ERROR_INVALID_VALUE, "%zu bytes at 0x%llx are not inside one managed allocation",
                              size, (unsigned long long)address);
}

static int check_location(CUmemLocation location)
{
    switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return em_device_get(location.id) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUmemLocation location_of(CUdevice device)
{
    return (CUmemLocation){.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
                           .id = device};
}

static int advise(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location)
{
    em_context *context;
    int status = em_enter(&context);
    if (status == CUDA_SUCCESS)
        status = check_managed(address, size);
    if (status != CUDA_SUCCESS)
        return status;
    if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        return CUDA_ERROR_INVALID_VALUE;
    bool ignores_location = advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
                            advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    return ignores_location ? CUDA_SUCCESS : check_location(location);
}

EM_ENTRY(cuMemAdvise, "%#llx, %zu, %d, %d", (address, size, advice, device), CUdeviceptr address, size_t size,
         CUmem_advise advice, CUdevice device)
{
    return advise(address, size, advice, location_of(device));
}

/* A structure is passed on as it is, but traced by its parts, so these two calls do without the macro. */
CUresult CUDAAPI cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location)
{
    EM_CALL(cuMemAdvise_v2, advise(address, size, advice, location), "%#llx, %zu, %d, {%d, %d}",
            (address, size, (int)advice, (int)location.type, location.id));
}

static int prefetch(CUdeviceptr address, size_t size, CUmemLocation location, CUstream handle)
{
    em_stream *stream;
    int status = em_stream_enter(handle, &stream);
    if (status == CUDA_SUCCESS)
        status = check_managed(address, size);
    return status == CUDA_SUCCESS ? check_location(location) : status;
}

EM_ENTRY_STREAM(cuMemPrefetchAsync, "%#llx, %zu, %d, %p", (address, size, device, hStream), CUdeviceptr address,
                size_t size, CUdevice device, CUstream hStream)
{
    return prefetch(address, size, location_of(device), hStream);
}

static int prefetch_flags(CUdeviceptr address, size_t size, CUmemLocation location, unsigned int flags, CUstream stream)
{
    return flags == 0 ? prefetch(address, size, location, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location, unsigned int flags,
                                       CUstream stream)
{
    EM_CALL(cuMemPrefetchAsync_v2, prefetch_flags(address, size, location, flags, stream),
            "%#llx, %zu, {%d, %d}, %#x, %p", (address, size, (int)location.type, location.id, flags, stream));
}

CUresult CUDAAPI cuMemPrefetchAsync_v2_ptsz(CUdeviceptr address, size_t size, CUmemLocation location,
                                            unsigned int flags, CUstream stream)
{
    return cuMemPrefetchAsync_v2(address, size, location, flags, stream != NULL ? stream : CU_STREAM_PER_THREAD);
}

EM_ENTRY_STREAM(cuStreamAttachMemAsync, "%p, %#llx, %zu, %#x", (hStream, address, size, flags), CUstream hStream,
                CUdeviceptr address, size_t size, unsigned int flags)
{
    em_stream *stream;
    int status = em_stream_enter(hStream, &stream);
    if (status != CUDA_SUCCESS)
        return status;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    return check_managed(address, size != 0 ? size : 1);
}
