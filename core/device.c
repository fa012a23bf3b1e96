/* Devices: one struct an ordinal for the life of the process, attributes asked once. */
#include "launches.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const cc__device_table *) table_made;

static int fill_table(cc__device_table *table, cc_error *error)
{
    table->devices = calloc((size_t)table->count + 1, sizeof *table->devices); /* + 1: calloc(0) may be NULL */
    if (!table->devices)
        return cc__fail_memory(error);
    for (int i = 0; i < table->count; i++) {
        cc_device *device = &table->devices[i];
        device->ordinal = i;
        pthread_mutex_init(&device->lock, NULL);
        if (CC__CALL(error, cuDeviceGet, &device->native, i))
            return -1;
    }
    return 0;
}

static int make_table(const cc__device_table **made, cc_error *error)
{
    cc__device_table *table = calloc(1, sizeof *table);
    if (!table)
        return cc__fail_memory(error);
    if (CC__CALL(error, cuDeviceGetCount, &table->count) || fill_table(table, error)) {
        free(table->devices);
        free(table);
        return -1;
    }
    *made = table;
    return 0;
}

int cc__devices(const cc__device_table **table, cc_error *error)
{
    *table = atomic_load_explicit(&table_made, memory_order_acquire);
    if (CC__LIKELY(*table != NULL))
        return 0;
    if (cc__need_driver(error))
        return -1;
    int status = 0;
    cc__lock(&table_lock);
    *table = atomic_load_explicit(&table_made, memory_order_relaxed);
    if (!*table && (status = make_table(table, error)) == 0)
        atomic_store_explicit(&table_made, *table, memory_order_release);
    cc__unlock(&table_lock);
    return status;
}

const cc__device_table *cc__devices_made(void)
{
    return atomic_load_explicit(&table_made, memory_order_acquire);
}

int cc__device_of_native(CUdevice native, cc_device **device, cc_error *error)
{
    const cc__device_table *table;
    if (cc__devices(&table, error))
        return -1;
    for (int i = 0; i < table->count; i++)
        if (table->devices[i].native == native) {
            *device = &table->devices[i];
            return 0;
        }
    return cc__fail(error, CC_NO_SUCH_DEVICE, "the driver has no device of handle %d", (int)native);
}

int cc_device_count(int *count, cc_error *error)
{
    const cc__device_table *table;
    if (cc__devices(&table, error))
        return -1;
    *count = table->count;
    return 0;
}

int cc_device_get(int ordinal, cc_device **device, cc_error *error)
{
    const cc__device_table *table;
    if (cc__devices(&table, error))
        return -1;
    if (ordinal < 0 || ordinal >= table->count)
        return cc__fail(error, CC_NO_SUCH_DEVICE, "there is no device %d: this machine has %d, counted from 0", ordinal,
                        table->count);
    *device = &table->devices[ordinal];
    return 0;
}

int cc_device_ordinal(const cc_device *device)
{
    return device->ordinal;
}

CUdevice cc_device_native(const cc_device *device)
{
    return device->native;
}

bool cc_device_is_emulated(const cc_device *device)
{
    (void)device;
    return cc_driver_which() == CC_DRIVER_EMULATOR;
}

int cc_device_name(cc_device *device, const char **name, cc_error *error)
{
    int status = 0;
    if (!atomic_load_explicit(&device->name_known, memory_order_acquire)) {
        cc__lock(&device->lock);
        if (!device->name_known) {
            status = CC__CALL(error, cuDeviceGetName, device->name, (int)sizeof device->name, device->native);
            if (!status)
                atomic_store_explicit(&device->name_known, true, memory_order_release);
        }
        cc__unlock(&device->lock);
    }
    if (!status)
        *name = device->name;
    return status;
}

int cc_device_uuid(cc_device *device, char uuid[16], cc_error *error)
{
    CUuuid native;
    if (CC__CALL(error, cuDeviceGetUuid, &native, device->native))
        return -1;
    memcpy(uuid, native.bytes, 16);
    return 0;
}

int cc_device_pci_bus_id(cc_device *device, char text[32], cc_error *error)
{
    return CC__CALL(error, cuDeviceGetPCIBusId, text, 32, device->native);
}

int cc_device_total_memory(cc_device *device, size_t *bytes, cc_error *error)
{
    return CC__CALL(error, cuDeviceTotalMem, bytes, device->native);
}

int cc_device_attribute(cc_device *device, CUdevice_attribute attribute, int *value, cc_error *error)
{
    const int64_t known = INT64_C(1) << 32;
    bool remembered = (unsigned)attribute < CC__ATTRIBUTE_COUNT;
    if (CC__LIKELY(remembered)) {
        int64_t stored = atomic_load_explicit(&device->attributes[attribute], memory_order_relaxed);
        if (CC__LIKELY(stored != 0)) {
            *value = (int)(stored - known);
            return 0;
        }
    }
    int asked;
    if (CC__CALL(error, cuDeviceGetAttribute, &asked, attribute, device->native))
        return -1;
    if (remembered)
        atomic_store_explicit(&device->attributes[attribute], asked + known, memory_order_relaxed);
    *value = asked;
    return 0;
}

int cc_device_can_access_peer(cc_device *device, cc_device *peer, bool *can, cc_error *error)
{
    int value;
    if (device == peer) {
        *can = true; /* the driver refuses the question */
        return 0;
    }
    if (CC__CALL(error, cuDeviceCanAccessPeer, &value, device->native, peer->native))
        return -1;
    *can = value != 0;
    return 0;
}

/* Without asking for the device where no context is current: a call that fails is reported by tools that watch. */
int cc_device_current(int *ordinal, cc_error *error)
{
    const cc__device_table *table;
    CUcontext current;
    CUdevice native;
    cc_device *device = NULL;
    if (cc__devices(&table, error) || CC__CALL(error, cuCtxGetCurrent, &current))
        return -1;
    if (!current) {
        *ordinal = -1;
        return 0;
    }
    for (int i = 0; i < table->count; i++) {
        const cc_context *primary = atomic_load_explicit(&table->devices[i].primary, memory_order_acquire);
        if (primary && primary->native == current) {
            *ordinal = i;
            return 0;
        }
    }
    if (CC__CALL(error, cuCtxGetDevice, &native) || cc__device_of_native(native, &device, error))
        return -1;
    *ordinal = device->ordinal;
    return 0;
}

/* The struct comes first: what is retained cannot be lost then. */
static int retain_primary(cc_device *device, cc_context **context, cc_error *error)
{
    CUcontext native;
    cc_context *made = cc__context_new(NULL, device);
    if (!made)
        return cc__fail_memory(error);
    if (CC__CALL(error, cuDevicePrimaryCtxRetain, &native, device->native)) {
        cc__context_discard(made);
        return -1;
    }
    cc__context_bind(made, native);
    *context = made;
    return 0;
}

int cc_device_primary_context(cc_device *device, cc_context **context, cc_error *error)
{
    *context = atomic_load_explicit(&device->primary, memory_order_acquire);
    if (CC__LIKELY(*context != NULL))
        return 0;
    int status = 0;
    cc__lock(&device->lock);
    *context = atomic_load_explicit(&device->primary, memory_order_relaxed);
    if (!*context) {
        status = retain_primary(device, context, error);
        if (!status)
            atomic_store_explicit(&device->primary, *context, memory_order_release);
    }
    cc__unlock(&device->lock);
    return status;
}

int cc_device_synchronize(cc_device *device, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (cc_device_primary_context(device, &context, error) || cc__enter(&scope, context, error))
        return -1;
    cc__marks marks = cc__marks_of(context);
    int status = cc__check(cc__driver.cuCtxSynchronize(), error, "cuCtxSynchronize");
    cc__marks_drop(&marks, status == 0);
    cc__leave(&scope);
    return status;
}
