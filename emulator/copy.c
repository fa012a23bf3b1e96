/* Copies and fills: what they may touch, when they return, and the work itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"

enum { STAGED_BYTES = 1 << 20 }; /* pageable memory up to this size is copied aside, so that the call need not wait */

typedef struct copy_op {
    em_op op;
    em_box box;
    char staged[];
} copy_op;

typedef struct fill_op {
    em_op op;
    uint64_t address, pitch, value, width, height;
    unsigned int element;
} fill_op;

/* ---- checks --------------------------------------------------------------------------------------------------------
 */

/* The bytes from the first to one past the last that the side touches. */
static bool extent_of(const em_side *side, const em_box *box, uint64_t *extent)
{
    uint64_t rows, planes, all;
    return !__builtin_mul_overflow(box->height - 1, side->pitch, &rows) &&
           !__builtin_mul_overflow(box->depth - 1, side->slice, &planes) &&
           !__builtin_add_overflow(rows, planes, &all) && !__builtin_add_overflow(all, box->width, extent) &&
           side->address <= UINT64_MAX - *extent;
}

static int outside_heap(const char *what, uint64_t address)
{
    em_range *nearest = em_heap_inside(address) ? em_heap_nearest(address) : NULL;
    if (nearest == NULL)
        return em_explain(CUDA_ERROR_INVALID_VALUE, "the %s, 0x%llx, is not in any allocation of a device", what,
                          (unsigned long long)address);
    bool below = address < nearest->base;
    uint64_t distance = below ? nearest->base - address : address - (nearest->base + nearest->size);
    return em_explain(
        CUDA_ERROR_INVALID_VALUE,
        "the %s, 0x%llx, is in no allocation: it is %llu bytes %s allocation #%llu (%llu bytes at 0x%llx)", what,
        (unsigned long long)address, (unsigned long long)distance, below ? "before" : "past the end of",
        (unsigned long long)nearest->serial, (unsigned long long)nearest->size, (unsigned long long)nearest->base);
}

/* Fills *range with what the side lies in, NULL for pageable host memory. Called pinned. */
static int check_side(const em_side *side, const em_box *box, const char *what, em_stream *stream, bool writes,
                      em_range **range)
{
    uint64_t extent;
    if (side->address == 0 || !extent_of(side, box, &extent))
        return em_explain(CUDA_ERROR_INVALID_VALUE, "the %s is a null pointer, or its extent exceeds the address space",
                          what);
    *range = em_heap_find(side->address);
    if (*range == NULL) {
        if (side->must_be_device || em_heap_inside(side->address))
            return outside_heap(what, side->address);
        return CUDA_SUCCESS;
    }
    const em_range *found = *range;
    if (!found->live)
        return em_explain(CUDA_ERROR_INVALID_VALUE,
                          "the %s, 0x%llx, is in allocation #%llu (%llu bytes at 0x%llx), which was freed", what,
                          (unsigned long long)side->address, (unsigned long long)found->serial,
                          (unsigned long long)found->size, (unsigned long long)found->base);
    const int device = stream->context->device->limits.ordinal;
    if (em_object_kind(found->owner) == EM_KIND_PHYSICAL && /* of other memory the peers' rights are not asked for */
        (!em_heap_accessible(found, device) || (writes && !em_heap_writable(found, device))))
        return em_explain(CUDA_ERROR_INVALID_VALUE,
                          "device %d may not %s the %s, 0x%llx, in allocation #%llu (%llu bytes mapped at 0x%llx): "
                          "cuMemSetAccess grants it",
                          device, writes ? "write" : "read", what, (unsigned long long)side->address,
                          (unsigned long long)found->serial, (unsigned long long)found->size,
                          (unsigned long long)found->base);
    uint64_t left = em_heap_reach(found, side->address, extent);
    if (extent > left)
        return em_explain(
            CUDA_ERROR_INVALID_VALUE,
            "the %s, %llu bytes from 0x%llx, ends %llu bytes past the end of allocation #%llu (%llu bytes "
            "at 0x%llx)",
            what, (unsigned long long)extent, (unsigned long long)side->address, (unsigned long long)(extent - left),
            (unsigned long long)found->serial, (unsigned long long)found->size, (unsigned long long)found->base);
    return CUDA_SUCCESS;
}

/* At the time of the work: what was sound when it was queued may have been freed since. */
static int check_still_live(uint64_t address, bool must_exist, const char *what, em_detail *detail)
{
    const em_range *range = em_heap_find(address);
    if (range == NULL ? !must_exist : range->live)
        return CUDA_SUCCESS;
    return em_fail(detail, CUDA_ERROR_ILLEGAL_ADDRESS,
                   "%s at 0x%llx: the memory was freed before the operation ran; free it in stream order "
                   "(cuMemFreeAsync on the stream that uses it) or after a synchronisation",
                   what, (unsigned long long)address);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static char *bytes_at(uint64_t address)
{
    return (char *)(uintptr_t)address;
}

static void copy_box(const em_box *box)
{
    for (uint64_t plane = 0; plane < box->depth; plane++) {
        uint64_t to = box->to.address + plane * box->to.slice, from = box->from.address + plane * box->from.slice;
        for (uint64_t row = 0; row < box->height; row++)
            memmove(bytes_at(to + row * box->to.pitch), bytes_at(from + row * box->from.pitch), box->width);
    }
}

static int run_copy(em_op *op, em_stream *stream, em_detail *detail)
{
    (void)stream;
    const copy_op *copy = (const copy_op *)op;
    em_heap_pin();
    int status = check_still_live(copy->box.to.address, copy->box.to.must_be_device, "copy to", detail);
    if (status == CUDA_SUCCESS)
        status = check_still_live(copy->box.from.address, copy->box.from.must_be_device, "copy from", detail);
    if (status == CUDA_SUCCESS)
        copy_box(&copy->box);
    em_heap_unpin();
    return status;
}

static void make_rows_one(em_box *box)
{
    if (box->height > 1 && box->to.pitch == box->width && box->from.pitch == box->width) {
        box->width *= box->height;
        box->height = 1;
    }
}

/* Copies pageable source bytes into the operation, packed. */
static void stage(copy_op *copy)
{
    em_box aside = copy->box;
    aside.to = (em_side){
        .address = (uint64_t)(uintptr_t)copy->staged, .pitch = aside.width, .slice = aside.width * aside.height};
    copy_box(&aside);
    copy->box.from = aside.to;
}

int em_copy(const em_box *box, em_stream *stream, bool asynchronous)
{
    if (box->width == 0 || box->height == 0 || box->depth == 0)
        return CUDA_SUCCESS;
    em_range *to = NULL, *from = NULL;
    em_heap_pin();
    int status = check_side(&box->to, box, "destination", stream, true, &to);
    if (status == CUDA_SUCCESS)
        status = check_side(&box->from, box, "source", stream, false, &from);
    bool on_device = to != NULL && from != NULL && to->kind == EM_DEVICE && from->kind == EM_DEVICE;
    em_heap_unpin();
    if (status != CUDA_SUCCESS)
        return status;

    uint64_t size = box->width * box->height * box->depth;
    bool staged = asynchronous && to != NULL && from == NULL && size <= STAGED_BYTES;
    bool queued = on_device || staged || (asynchronous && to != NULL && from != NULL);
    copy_op *copy = (copy_op *)em_op_new(sizeof *copy + (staged ? size : 0));
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy->op.run = run_copy;
    copy->box = *box;
    copy->box.to.must_be_device = to != NULL;
    copy->box.from.must_be_device = from != NULL;
    if (staged)
        stage(copy);
    make_rows_one(&copy->box);
    return em_stream_submit(stream, &copy->op, queued ? EM_QUEUE : EM_WAIT);
}

/* ---- fills ------------------------------------------------------------------------------------------------------- */

static void fill_row(char *row, uint64_t value, unsigned int element, uint64_t width)
{
    if (element == 1) {
        memset(row, (int)(value & 0xff), width);
    } else if (element == 2) {
        uint16_t *at = (uint16_t *)(void *)row;
        for (uint64_t i = 0; i < width; i++)
            at[i] = (uint16_t)value;
    } else {
        uint32_t *at = (uint32_t *)(void *)row;
        for (uint64_t i = 0; i < width; i++)
            at[i] = (uint32_t)value;
    }
}

static int run_fill(em_op *op, em_stream *stream, em_detail *detail)
{
    (void)stream;
    const fill_op *fill = (const fill_op *)op;
    em_heap_pin();
    int status = check_still_live(fill->address, true, "fill", detail);
    if (status == CUDA_SUCCESS)
        for (uint64_t row = 0; row < fill->height; row++)
            fill_row(bytes_at(fill->address + row * fill->pitch), fill->value, fill->element, fill->width);
    em_heap_unpin();
    return status;
}

int em_fill(uint64_t address, uint64_t pitch, uint64_t value, unsigned int element, uint64_t width, uint64_t height,
            em_stream *stream, bool asynchronous)
{
    if (width == 0 || height == 0)
        return CUDA_SUCCESS;
    if (address % element != 0 || (height > 1 && (pitch % element != 0 || pitch / element < width)))
        return em_explain(CUDA_ERROR_INVALID_VALUE,
                          "a fill with %u-byte elements needs an address and a pitch that are multiples of %u, and a "
                          "pitch of a row at least",
                          element, element);
    em_box box = {.to = {.address = address, .pitch = pitch, .must_be_device = true}, .height = height, .depth = 1};
    if (__builtin_mul_overflow(width, element, &box.width))
        return CUDA_ERROR_INVALID_VALUE;
    em_range *range = NULL;
    em_heap_pin();
    int status = check_side(&box.to, &box, "destination", stream, true, &range);
    bool queued = asynchronous || (range != NULL && range->kind == EM_DEVICE);
    em_heap_unpin();
    if (status != CUDA_SUCCESS)
        return status;
    fill_op *fill = (fill_op *)em_op_new(sizeof *fill);
    if (fill == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *fill = (fill_op){{.run = run_fill}, address, pitch, value, width, height, element};
    if (height > 1 && pitch == width * element) {
        fill->width *= height;
        fill->height = 1;
    }
    return em_stream_submit(stream, &fill->op, queued ? EM_QUEUE : EM_WAIT);
}
