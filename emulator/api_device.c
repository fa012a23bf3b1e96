/* Entry points: devices and their primary contexts. */
#include <stdio.h>
#include <string.h>

#include "api.h"

static int find_device(CUdevice ordinal, em_device **device)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    *device = em_device_get(ordinal);
    if (*device == NULL)
        return em_explain(CUDA_ERROR_INVALID_DEVICE, "there is no device %d: %d of them, counted from 0", ordinal,
                          em_device_count);
    return CUDA_SUCCESS;
}

EM_ENTRY(cuDeviceGet, "%p, %d", (device, ordinal), CUdevice *device, int ordinal)
{
    em_device *found;
    int status = find_device(ordinal, &found);
    if (status != CUDA_SUCCESS)
        return status;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuDeviceGetCount, "%p", (count), int *count)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = em_device_count;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuDeviceGetName, "%p, %d, %d", (name, length, ordinal), char *name, int length, CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    if (name == NULL || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)length, "CUDA Core Emulated Device");
    return CUDA_SUCCESS;
}

static int write_uuid(CUuuid *uuid, CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    if (uuid == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, "cuda-core emu\0\0", 15); /* the same on every machine, the last byte tells devices apart */
    uuid->bytes[15] = (char)ordinal;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuDeviceGetUuid, "%p, %d", (uuid, ordinal), CUuuid *uuid, CUdevice ordinal)
{
    return write_uuid(uuid, ordinal);
}

EM_ENTRY(cuDeviceGetUuid_v2, "%p, %d", (uuid, ordinal), CUuuid *uuid, CUdevice ordinal)
{
    return write_uuid(uuid, ordinal);
}

EM_ENTRY(cuDeviceGetLuid, "%p, %p, %d", (luid, mask, ordinal), char *luid, unsigned int *mask, CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    return status != CUDA_SUCCESS
               ? status
               : em_explain(CUDA_ERROR_NOT_SUPPORTED, "locally unique identifiers exist on Windows only");
}

EM_ENTRY(cuDeviceTotalMem_v2, "%p, %d", (bytes, ordinal), size_t *bytes, CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    if (bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = device->memory;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuDeviceGetAttribute, "%p, %d, %d", (value, attribute, ordinal), int *value, CUdevice_attribute attribute,
         CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    return value != NULL ? em_device_attribute(device, attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

EM_ENTRY(cuDeviceComputeCapability, "%p, %p, %d", (major, minor, ordinal), int *major, int *minor, CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    if (major == NULL || minor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *major = device->limits.cc_major;
    *minor = device->limits.cc_minor;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuDeviceGetPCIBusId, "%p, %d, %d", (text, length, ordinal), char *text, int length, CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    if (text == NULL || length < 13)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(text, (size_t)length, "0000:%02X:00.0", (unsigned int)ordinal + 1);
    return CUDA_SUCCESS;
}

EM_ENTRY(cuDeviceGetByPCIBusId, "%p, %s", (device, text), CUdevice *device, const char *text)
{
    int status = em_enter_any();
    if (status != CUDA_SUCCESS)
        return status;
    if (device == NULL || text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned int domain = 0, bus, slot, function = 0;
    if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = function = 0;
        if (sscanf(text, "%x:%x.%x", &bus, &slot, &function) < 2)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (domain != 0 || slot != 0 || function != 0 || bus == 0 || bus > (unsigned int)em_device_count)
        return em_explain(CUDA_ERROR_INVALID_DEVICE, "there is no device at %s", text);
    *device = (int)bus - 1;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuDeviceGetTexture1DLinearMaxWidth, "%p, %d, %u, %d", (width, format, channels, ordinal), size_t *width,
         CUarray_format format, unsigned int channels, CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    return status != CUDA_SUCCESS ? status : CUDA_ERROR_NOT_SUPPORTED;
}

EM_ENTRY(cuDeviceGetExecAffinitySupport, "%p, %d, %d", (value, type, ordinal), int *value, CUexecAffinityType type,
         CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    if (value == NULL || type >= CU_EXEC_AFFINITY_TYPE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = 0;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuDeviceGetHostAtomicCapabilities, "%p, %p, %u, %d", (capabilities, operations, count, ordinal),
         unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count, CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    if (capabilities == NULL || operations == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++) {
        if (operations[i] >= CU_ATOMIC_OPERATION_MAX)
            return CUDA_ERROR_INVALID_VALUE;
        capabilities[i] = CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_SCALAR_32 |
                          CU_ATOMIC_CAPABILITY_SCALAR_64;
    }
    return CUDA_SUCCESS;
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

EM_ENTRY(cuDeviceCanAccessPeer, "%p, %d, %d", (can, ordinal, peer), int *can, CUdevice ordinal, CUdevice peer)
{
    em_device *device, *other;
    int status = find_device(ordinal, &device);
    if (status == CUDA_SUCCESS)
        status = find_device(peer, &other);
    if (status != CUDA_SUCCESS)
        return status;
    if (can == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *can = ordinal != peer;
    return CUDA_SUCCESS;
}

EM_ENTRY(cuDeviceGetP2PAttribute, "%p, %d, %d, %d", (value, attribute, from, to), int *value,
         CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to)
{
    em_device *source, *target;
    int status = find_device(from, &source);
    if (status == CUDA_SUCCESS)
        status = find_device(to, &target);
    if (status != CUDA_SUCCESS)
        return status;
    if (from == to)
        return CUDA_ERROR_INVALID_DEVICE;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        *value = 1;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
        *value = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- primary contexts -------------------------------------------------------------------------------------------- */

EM_ENTRY(cuDevicePrimaryCtxRetain, "%p, %d", (context, ordinal), CUcontext *context, CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&em_device_lock);
    if (!device->primary->object.live && !em_context_revive(device->primary, device->primary_flags))
        status = CUDA_ERROR_OUT_OF_MEMORY;
    if (status == CUDA_SUCCESS) {
        device->primary_retained++;
        *context = (CUcontext)(void *)device->primary;
    }
    pthread_mutex_unlock(&em_device_lock);
    return status;
}

/* Called with em_device_lock. */
static void end_primary(em_device *device)
{
    if (em_object_close(&device->primary->object))
        em_context_destroy(device->primary);
    device->primary_flags = 0;
}

static int release_primary(CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    pthread_mutex_lock(&em_device_lock);
    if (device->primary_retained == 0)
        status = CUDA_ERROR_INVALID_CONTEXT;
    else if (--device->primary_retained == 0)
        end_primary(device);
    pthread_mutex_unlock(&em_device_lock);
    return status;
}

EM_ENTRY(cuDevicePrimaryCtxRelease, "%d", (ordinal), CUdevice ordinal)
{
    return release_primary(ordinal);
}

EM_ENTRY(cuDevicePrimaryCtxRelease_v2, "%d", (ordinal), CUdevice ordinal)
{
    return release_primary(ordinal);
}

static int reset_primary(CUdevice ordinal)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    pthread_mutex_lock(&em_device_lock);
    end_primary(device);
    pthread_mutex_unlock(&em_device_lock);
    return CUDA_SUCCESS;
}

EM_ENTRY(cuDevicePrimaryCtxReset, "%d", (ordinal), CUdevice ordinal)
{
    return reset_primary(ordinal);
}

EM_ENTRY(cuDevicePrimaryCtxReset_v2, "%d", (ordinal), CUdevice ordinal)
{
    return reset_primary(ordinal);
}

static int set_primary_flags(CUdevice ordinal, unsigned int flags)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    if ((flags & ~(unsigned int)CU_CTX_FLAGS_MASK) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&em_device_lock);
    device->primary_flags = flags;
    if (device->primary->object.live)
        device->primary->flags = flags | CU_CTX_MAP_HOST;
    pthread_mutex_unlock(&em_device_lock);
    return CUDA_SUCCESS;
}

EM_ENTRY(cuDevicePrimaryCtxSetFlags, "%d, %#x", (ordinal, flags), CUdevice ordinal, unsigned int flags)
{
    return set_primary_flags(ordinal, flags);
}

EM_ENTRY(cuDevicePrimaryCtxSetFlags_v2, "%d, %#x", (ordinal, flags), CUdevice ordinal, unsigned int flags)
{
    return set_primary_flags(ordinal, flags);
}

EM_ENTRY(cuDevicePrimaryCtxGetState, "%d, %p, %p", (ordinal, flags, active), CUdevice ordinal, unsigned int *flags,
         int *active)
{
    em_device *device;
    int status = find_device(ordinal, &device);
    if (status != CUDA_SUCCESS)
        return status;
    if (flags == NULL || active == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&em_device_lock);
    *flags = device->primary_flags;
    *active = device->primary->object.live != 0;
    pthread_mutex_unlock(&em_device_lock);
    return CUDA_SUCCESS;
}
