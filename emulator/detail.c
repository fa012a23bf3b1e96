/* Why a call failed, in words, and the names of the error codes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "cuda_core_emulator.h"

static void write_detail(em_detail *detail, int code, const char *format, va_list arguments)
{
    detail->code = code;
    int length = vsnprintf(detail->text, sizeof detail->text, format, arguments);
    if (length < 0)
        detail->text[0] = '\0';
}

int em_fail(em_detail *detail, int code, const char *format, ...)
{
    if (detail != NULL) {
        va_list arguments;
        va_start(arguments, format);
        write_detail(detail, code, format, arguments);
        va_end(arguments);
    }
    return code;
}

em_detail *em_thread_detail(void)
{
    if (em_self.detail == NULL) {
        em_thread_register();
        em_self.detail = calloc(1, sizeof *em_self.detail);
    }
    if (em_self.detail != NULL)
        em_self.detail->text[0] = '\0';
    em_self.detail_fresh = em_self.detail != NULL;
    return em_self.detail;
}

int em_explain(int code, const char *format, ...)
{
    em_detail *detail = em_thread_detail();
    if (detail != NULL) {
        va_list arguments;
        va_start(arguments, format);
        write_detail(detail, code, format, arguments);
        va_end(arguments);
    }
    return code;
}

const char *em_error_name(int code)
{
    switch (code) {
#define EM_ERROR(name, text)                                                                                           \
    case name:                                                                                                         \
        return #name;
#include "errors.def"
#undef EM_ERROR
    default:
        return NULL;
    }
}

const char *em_error_text(int code)
{
    switch (code) {
#define EM_ERROR(name, text)                                                                                           \
    case name:                                                                                                         \
        return text;
#include "errors.def"
#undef EM_ERROR
    default:
        return NULL;
    }
}

/* The text for this thread's last failure: the call's own, else the fault of the context that made it fail. */
static void describe_failure(char *buffer, size_t size)
{
    em_context *context = em_self.current;
    if (em_self.detail_fresh && em_self.detail != NULL && em_self.detail->text[0] != '\0') {
        snprintf(buffer, size, "%s", em_self.detail->text);
        return;
    }
    if (context != NULL && context->object.live) {
        int sticky = atomic_load_explicit(&context->sticky, memory_order_acquire);
        if (sticky != 0 && (em_self.failed_status == 0 || em_self.failed_status == sticky)) {
            snprintf(buffer, size, "%s", context->fault.text);
            return;
        }
    }
    if (em_self.failed_status == 0) {
        buffer[0] = '\0';
        return;
    }
    const char *name = em_error_name(em_self.failed_status), *text = em_error_text(em_self.failed_status);
    snprintf(buffer, size, "%s: %s (%s)", em_self.failed_call, text != NULL ? text : "unknown error",
             name != NULL ? name : "?");
}

CUresult cuEmulatorErrorDetail(char *buffer, size_t size)
{
    if (buffer == NULL || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    describe_failure(buffer, size);
    return CUDA_SUCCESS;
}
