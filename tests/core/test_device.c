/* Devices and contexts of a real driver or of the emulator. */
#include "check.h"

static cc_error error;
static cc_device *device;

static void test_what_a_device_says(void)
{
    const char *name;
    char uuid[16], bus_id[32];
    size_t memory;
    int major, minor, warp;
    MUST(cc_device_name(device, &name, &error));
    CHECK(strlen(name) > 0);
    MUST(cc_device_uuid(device, uuid, &error));
    MUST(cc_device_pci_bus_id(device, bus_id, &error));
    CHECK_TEXT(bus_id, ":");
    MUST(cc_device_total_memory(device, &memory, &error));
    CHECK(memory >= 1 << 20);
    MUST(cc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major, &error));
    MUST(cc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor, &error));
    MUST(cc_device_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE, &warp, &error));
    CHECK(major >= 5);
    CHECK(minor >= 0 && minor < 10);
    CHECK_INT(warp, 32);
    CHECK_INT(cc_device_is_emulated(device), cc_driver_which() == CC_DRIVER_EMULATOR);
    printf("%s, compute capability %d.%d, %s\n", name, major, minor, cc_driver_path());
}

static void test_bad_questions(void)
{
    int value = 77, count;
    cc_device *none;
    CHECK_INT(cc_device_attribute(device, (CUdevice_attribute)-1, &value, &error), -1);
    CHECK_INT(error.domain, CC_DOMAIN_DRIVER);
    CHECK_INT(error.code, CUDA_ERROR_INVALID_VALUE);
    CHECK(strcmp(error.name, "CUDA_ERROR_INVALID_VALUE") == 0);
    CHECK_TEXT(error.text, "CUDA_ERROR_INVALID_VALUE in cuDeviceGetAttribute: invalid argument.");
    CHECK_INT(value, 77);
    MUST(cc_device_count(&count, &error));
    CHECK(count >= 1);
    REFUSED(cc_device_get(count, &none, &error), CC_NO_SUCH_DEVICE, "counted from 0");
}

static void test_contexts(void)
{
    cc_context *context, *found;
    CUcontext current;
    int ordinal = 77;
    MUST(cc_context_get_current(&current, &error));
    CHECK(current == NULL); /* asking a device has made nothing current */
    MUST(cc_device_current(&ordinal, &error));
    CHECK_INT(ordinal, -1);
    MUST(cc_device_primary_context(device, &context, &error));
    CHECK(cc_context_device(context) == device);
    MUST(cc_context_from_native(cc_context_native(context), &found, &error));
    CHECK(found == context);
    cc_context_release(found);
    MUST(cc_device_synchronize(device, &error));
    MUST(cc_context_get_current(&current, &error));
    CHECK(current == NULL);
    MUST(cc_context_set_current(cc_context_native(context), &error));
    MUST(cc_device_current(&ordinal, &error));
    CHECK_INT(ordinal, cc_device_ordinal(device));
    MUST(cc_context_set_current(NULL, &error));
    REFUSED(cc_context_from_native(NULL, &found, &error), CC_INVALID, "NULL");
}

static void test_peers(void)
{
    bool can = false;
    MUST(cc_device_can_access_peer(device, device, &can, &error));
    CHECK(can);
}

static const check_test tests[] = {TEST(test_what_a_device_says), TEST(test_bad_questions), TEST(test_contexts),
                                   TEST(test_peers)};

int main(void)
{
    check_open_driver();
    MUST(cc_device_get(0, &device, &error));
    return check_run(tests, sizeof tests / sizeof tests[0]);
}
