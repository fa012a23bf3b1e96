/* Managed memory: advice on where it should be, prefetches and discards. */
#include "internal.h"

#include <stdlib.h>

static int check_concurrent(int ordinal, cc_error *error)
{
    cc_device *device;
    int supported;
    if (cc_device_get(ordinal, &device, error) ||
        cc_device_attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, &supported, error))
        return -1;
    if (supported)
        return 0;
    return cc__fail(error, CC_NOT_SUPPORTED,
                    "device %d cannot share managed memory with the host while kernels run (its property "
                    "concurrent_managed_access is False): it takes no advice and no prefetch of it",
                    ordinal);
}

static int check_location(CUmemLocation location, cc_error *error)
{
    return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? check_concurrent(location.id, error) : 0;
}

/* ---- pools ------------------------------------------------------------------------------------------------------ */

int cc__managed_pools_supported(cc_error *error)
{
    int version;
    if (cc_driver_version(&version, error))
        return -1;
    if (version >= 13000)
        return 0;
    return cc__fail(error, CC_NEEDS_DRIVER, "pools of managed memory need driver 13.0 or newer; this one is %d.%d",
                    version / 1000, version % 1000 / 10);
}

/* ---- advice ----------------------------------------------------------------------------------------------------- */

/* Advice needs some context; that of the memory's device is sure to be wanted anyway. */
static int context_of(cc_buffer *buffer, cc_context **context, cc_error *error)
{
    cc_placement placement;
    cc_device *device;
    if (buffer->pool) {
        *context = buffer->pool->context;
        return 0;
    }
    if (cc_buffer_placement(buffer, &placement, error) ||
        cc_device_get(placement.device < 0 ? 0 : placement.device, &device, error))
        return -1;
    return cc_device_primary_context(device, context, error);
}

int cc_managed_advise(cc_buffer *buffer, CUdeviceptr pointer, size_t size, CUmem_advise advice, CUmemLocation location,
                      cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (!size)
        return 0;
    if (check_location(location, error) || context_of(buffer, &context, error) || cc__enter(&scope, context, error))
        return -1;
    int status = CC__CALL_OPTIONAL(error, cuMemAdvise, pointer, size, advice, location);
    cc__leave(&scope);
    return status;
}

int cc_managed_attribute(cc_buffer *buffer, CUdeviceptr pointer, size_t size, CUmem_range_attribute attribute,
                         int *values, size_t count, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (context_of(buffer, &context, error) || cc__enter(&scope, context, error))
        return -1;
    int status =
        CC__CALL_OPTIONAL(error, cuMemRangeGetAttribute, values, count * sizeof *values, attribute, pointer, size);
    cc__leave(&scope);
    return status;
}

int cc_managed_preferred(cc_buffer *buffer, CUdeviceptr pointer, size_t size, CUmemLocation *location, cc_error *error)
{
    int type = CU_MEM_LOCATION_TYPE_INVALID, id = 0;
    if (size &&
        (cc_managed_attribute(buffer, pointer, size, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, &type, 1, error) ||
         cc_managed_attribute(buffer, pointer, size, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, &id, 1, error)))
        return -1;
    *location = (CUmemLocation){.type = (CUmemLocationType)type, .id = id};
    return 0;
}

/* ---- prefetches and discards ------------------------------------------------------------------------------------ */

int cc_managed_prefetch(CUdeviceptr pointer, size_t size, CUmemLocation location, cc_stream *stream, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (!size)
        return 0;
    if (check_location(location, error) || cc__enter_stream(&scope, stream, &context, error))
        return -1;
    int status = CC__CALL_OPTIONAL(error, cuMemPrefetchAsync, pointer, size, location, 0, stream->native);
    cc__leave(&scope);
    return status;
}

/* The driver's rule, which its error does not tell. */
static int explain_stream(const cc_stream *stream, cc_error *error)
{
    if (error && error->domain == CC_DOMAIN_DRIVER && (!stream->native || stream->native == CU_STREAM_LEGACY))
        cc__explain(error, " Discards and batches cannot be queued in the legacy default stream: give another one.");
    return -1;
}

int cc_managed_discard_batch(CUdeviceptr *pointers, size_t *sizes, size_t count, cc_stream *stream, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (!count)
        return 0;
    if (cc__enter_stream(&scope, stream, &context, error))
        return -1;
    int status = check_concurrent(context->device->ordinal, error);
    if (!status) {
        status = CC__CALL_OPTIONAL(error, cuMemDiscardBatchAsync, pointers, sizes, count, 0, stream->native);
        if (status)
            explain_stream(stream, error);
    }
    cc__leave(&scope);
    return status;
}

static int prefetch_batch(CUdeviceptr *pointers, size_t *sizes, size_t count, CUmemLocation *locations, size_t *first,
                          bool discard, cc_stream *stream, cc_error *error)
{
    if (discard)
        return CC__CALL_OPTIONAL(error, cuMemDiscardAndPrefetchBatchAsync, pointers, sizes, count, locations, first,
                                 count, 0, stream->native);
    return CC__CALL_OPTIONAL(error, cuMemPrefetchBatchAsync, pointers, sizes, count, locations, first, count, 0,
                             stream->native);
}

int cc_managed_prefetch_batch(CUdeviceptr *pointers, size_t *sizes, CUmemLocation *locations, size_t count,
                              bool discard, cc_stream *stream, cc_error *error)
{
    cc_context *context;
    cc__scope scope;
    if (!count)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (check_location(locations[i], error))
            return -1;
    size_t *first = malloc(count * sizeof *first); /* a location of its own for each range */
    if (!first)
        return cc__fail_memory(error);
    for (size_t i = 0; i < count; i++)
        first[i] = i;
    int status = cc__enter_stream(&scope, stream, &context, error);
    if (!status) {
        status = prefetch_batch(pointers, sizes, count, locations, first, discard, stream, error);
        if (status)
            explain_stream(stream, error);
        cc__leave(&scope);
    }
    free(first);
    return status;
}
