/* Entry points: a stream that waits for a word in memory or writes one. */
#include <time.h>

#include "api.h"

typedef struct word_op {
    em_op op;
    uint64_t address, value;
    unsigned int bytes, flags;
    bool wait;
} word_op;

static bool reached(const word_op *word)
{
    uint64_t now = word->bytes == 4
                       ? atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)word->address, memory_order_acquire)
                       : atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)word->address, memory_order_acquire);
    switch (word->flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ: /* cyclic: as the sign of the difference */
        return word->bytes == 4 ? (int32_t)(uint32_t)(now - word->value) >= 0 : (int64_t)(now - word->value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == word->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & word->value) != 0;
    default: {
        uint64_t nor = ~(now | word->value);
        return (word->bytes == 4 ? (uint32_t)nor : nor) != 0;
    }
    }
}

static void wait_for_word(const word_op *word)
{
    long nanoseconds = 1000;
    while (!reached(word) && !em_streams_stopping()) {
        const struct timespec pause = {.tv_nsec = nanoseconds};
        nanosleep(&pause, NULL);
        if (nanoseconds < 200000)
            nanoseconds *= 2;
    }
}

static int run_word(em_op *op, em_stream *stream, em_detail *detail)
{
    (void)stream;
    const word_op *word = (const word_op *)op;
    em_heap_pin();
    const em_range *range = em_heap_find(word->address);
    int status = CUDA_SUCCESS;
    if (range == NULL || !range->live)
        status = em_fail(detail, CUDA_ERROR_ILLEGAL_ADDRESS,
                         "the word at 0x%llx that a stream waits for or writes was freed before",
                         (unsigned long long)word->address);
    else if (word->wait)
        wait_for_word(word);
    else if (word->bytes == 4)
        atomic_store_explicit((_Atomic uint32_t *)(uintptr_t)word->address, (uint32_t)word->value,
                              memory_order_release);
    else
        atomic_store_explicit((_Atomic uint64_t *)(uintptr_t)word->address, word->value, memory_order_release);
    em_heap_unpin();
    return status;
}

static int check_word(uint64_t address, unsigned int bytes)
{
    em_heap_pin();
    const em_range *range = em_heap_find(address);
    bool sound = address % bytes == 0 && range != NULL && range->live && range->base + range->size - address >= bytes;
    em_heap_unpin();
    return sound ? CUDA_SUCCESS
                 : em_explain(CUDA_ERROR_INVALID_VALUE,
                              "0x%llx is not the address of an aligned %u-byte word in an allocation",
                              (unsigned long long)address, bytes);
}

static int submit_word(CUstream handle, const word_op *what)
{
    em_stream *stream;
    int status = em_stream_enter(handle, &stream);
    if (status == CUDA_SUCCESS)
        status = check_word(what->address, what->bytes);
    if (status != CUDA_SUCCESS)
        return status;
    word_op *op = (word_op *)em_op_new(sizeof *op);
    if (op == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *op = *what;
    op->op.run = run_word;
    return em_stream_submit(stream, &op->op, EM_QUEUE);
}

static int wait_value(CUstream stream, CUdeviceptr address, uint64_t value, unsigned int bytes, unsigned int flags)
{
    if ((flags & ~(3u | (unsigned int)CU_STREAM_WAIT_VALUE_FLUSH)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const word_op word = {.address = address, .value = value, .bytes = bytes, .flags = flags, .wait = true};
    return submit_word(stream, &word);
}

static int write_value(CUstream stream, CUdeviceptr address, uint64_t value, unsigned int bytes, unsigned int flags)
{
    if ((flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const word_op word = {.address = address, .value = value, .bytes = bytes};
    return submit_word(stream, &word);
}

EM_ENTRY_STREAM(cuStreamWaitValue32_v2, "%p, %#llx, %u, %#x", (hStream, address, value, flags), CUstream hStream,
                CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
    return wait_value(hStream, address, value, 4, flags);
}

EM_ENTRY_STREAM(cuStreamWaitValue64_v2, "%p, %#llx, %lu, %#x", (hStream, address, value, flags), CUstream hStream,
                CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
    return wait_value(hStream, address, value, 8, flags);
}

EM_ENTRY_STREAM(cuStreamWriteValue32_v2, "%p, %#llx, %u, %#x", (hStream, address, value, flags), CUstream hStream,
                CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
    return write_value(hStream, address, value, 4, flags);
}

EM_ENTRY_STREAM(cuStreamWriteValue64_v2, "%p, %#llx, %lu, %#x", (hStream, address, value, flags), CUstream hStream,
                CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
    return write_value(hStream, address, value, 8, flags);
}

static int submit_batch_entry(CUstream stream, const CUstreamBatchMemOpParams *entry)
{
    switch (entry->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return wait_value(stream, entry->waitValue.address, entry->waitValue.value, 4, entry->waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return wait_value(stream, entry->waitValue.address, entry->waitValue.value64, 8, entry->waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return write_value(stream, entry->writeValue.address, entry->writeValue.value, 4, entry->writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return write_value(stream, entry->writeValue.address, entry->writeValue.value64, 8, entry->writeValue.flags);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
    case CU_STREAM_MEM_OP_BARRIER: /* a stream's operations are in order and visible anyway */
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EM_ENTRY_STREAM(cuStreamBatchMemOp_v2, "%p, %u, %p, %u", (hStream, count, entries, flags), CUstream hStream,
                unsigned int count, CUstreamBatchMemOpParams *entries, unsigned int flags)
{
    if (flags != 0 || entries == NULL || count == 0 || count > 256)
        return CUDA_ERROR_INVALID_VALUE;
    int status = CUDA_SUCCESS;
    for (unsigned int i = 0; i < count && status == CUDA_SUCCESS; i++)
        status = submit_batch_entry(hStream, &entries[i]);
    return status;
}
