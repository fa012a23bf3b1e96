/* Options of the calls that load code. Only the logs mean something to an emulator; the others are accepted. */
#include <stdio.h>
#include <string.h>

#include "library.h"

static size_t as_size(void *value)
{
    return (size_t)(unsigned int)(uintptr_t)value; /* a 32-bit number in the place of a pointer, as CUDA defines it */
}

int em_jit_read(unsigned int count, CUjit_option *options, void **values, em_jit *jit)
{
    memset(jit, 0, sizeof *jit);
    if (count != 0 && (options == NULL || values == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    jit->count = count;
    jit->options = options;
    jit->values = values;
    for (unsigned int i = 0; i < count; i++) {
        if ((int)options[i] < 0 || options[i] >= CU_JIT_NUM_OPTIONS)
            return em_explain(CUDA_ERROR_INVALID_VALUE, "%d is no CUjit_option", (int)options[i]);
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            jit->error_log = values[i];
        else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            jit->error_size = as_size(values[i]);
        else if (options[i] == CU_JIT_INFO_LOG_BUFFER)
            jit->info_log = values[i];
        else if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
            jit->info_size = as_size(values[i]);
    }
    return CUDA_SUCCESS;
}

static size_t write_log(char *log, size_t size, const char *text)
{
    if (log == NULL || size == 0)
        return 0;
    int length = snprintf(log, size, "%s", text);
    return length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
}

/* Fills the logs, and their sizes with what was written. */
void em_jit_report(em_jit *jit, int status, const em_detail *detail)
{
    const char *text = status != CUDA_SUCCESS && detail != NULL ? detail->text : "";
    size_t errors = write_log(jit->error_log, jit->error_size, text);
    size_t infos = write_log(jit->info_log, jit->info_size, "");
    for (unsigned int i = 0; i < jit->count; i++) {
        if (jit->options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            jit->values[i] = (void *)(uintptr_t)errors;
        else if (jit->options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
            jit->values[i] = (void *)(uintptr_t)infos;
    }
}
