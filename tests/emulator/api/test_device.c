/* Devices: attributes, identity and what wrong ordinals answer. The environment asks for three of compute 9.0. */
#include "check.h"

static int attribute(CUdevice_attribute which, CUdevice device)
{
    int value = -77;
    OK(cuDeviceGetAttribute(&value, which, device));
    return value;
}

static void test_attributes(void)
{
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) == 9);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0) == 0);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0) == 32);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0) == 1024);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 0) == 64);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0) == 2147483647);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 0) == 65535);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 0) == 49152);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0) == 232448);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0) == 233472);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0) == 2048);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0) >= 1);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0) == 1);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0) == 1);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0) == 1);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0) > 0);
    int value;
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, (CUdevice_attribute)5000, 0));
    RETURNS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
        OK(cuDeviceGetAttribute(&value, (CUdevice_attribute)i, 0));
}

static void test_identity(void)
{
    CUdevice device = 5, found;
    OK(cuDeviceGet(&device, 0));
    EXPECT(device == 0);
    RETURNS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 64));
    RETURNS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(NULL, 0));
    char name[64], bus[32];
    OK(cuDeviceGetName(name, sizeof name, 0));
    EXPECT(strlen(name) > 4);
    OK(cuDeviceGetName(name, 3, 0));
    EXPECT(strlen(name) == 2);
    OK(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
    OK(cuDeviceGetByPCIBusId(&found, bus));
    EXPECT(found == 0);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(&found, "zz"));
    CUuuid first, again;
    OK(cuDeviceGetUuid(&first, 0));
    OK(cuDeviceGetUuid(&again, 0));
    EXPECT(memcmp(&first, &again, sizeof first) == 0);
    size_t bytes = 0;
    OK(cuDeviceTotalMem(&bytes, 0));
    EXPECT(bytes >= (size_t)64 << 20);
}

static void test_several(void)
{
    int count = 0, can = -1;
    OK(cuDeviceGetCount(&count));
    OK(cuDeviceCanAccessPeer(&can, 0, 0));
    EXPECT(can == 0);
    RETURNS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
    if (!on_emulator())
        return;
    EXPECT(count == 3);
    CUuuid uuids[3];
    char buses[3][32];
    for (int i = 0; i < 3; i++) {
        OK(cuDeviceGetUuid(&uuids[i], i));
        OK(cuDeviceGetPCIBusId(buses[i], 32, i));
        CUdevice found = -1;
        OK(cuDeviceGetByPCIBusId(&found, buses[i]));
        EXPECT(found == i);
        size_t bytes = 0;
        OK(cuDeviceTotalMem(&bytes, i));
        EXPECT(bytes == (size_t)64 << 20);
    }
    EXPECT(memcmp(&uuids[0], &uuids[1], sizeof uuids[0]) != 0);
    EXPECT(memcmp(&uuids[1], &uuids[2], sizeof uuids[0]) != 0);
    OK(cuDeviceCanAccessPeer(&can, 0, 2));
    EXPECT(can == 1);
    OK(cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 2, 1));
    EXPECT(can == 1);
    RETURNS(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&can, 0, 3));
}

int main(void)
{
    setenv("CUDA_CORE_EMULATOR_DEVICES", "3", 1);
    setenv("CUDA_CORE_EMULATOR_MEMORY", "64M", 1);
    setenv("CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY", "9.0", 1);
    OK(cuInit(0));
    test_attributes();
    test_identity();
    test_several();
    return finish();
}
