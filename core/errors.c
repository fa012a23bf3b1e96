/* The only place where a CUresult or an nvrtcResult becomes a cc_error. */
#include "internal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *text;
} statuses[] = {
#define CC_STATUS(name, text) {"CC_" #name, text},
#include "errors.def"
#undef CC_STATUS
};

static const struct {
    CUresult code;
    const char *name, *advice;
} advices[] = {
#define CC_DRIVER_ERROR(code, advice) {code, #code, advice},
#include "driver_errors.def"
#undef CC_DRIVER_ERROR
};

enum { ADVICE_COUNT = sizeof advices / sizeof advices[0] };

static const char *advice_of(CUresult code)
{
    for (size_t i = 0; i < ADVICE_COUNT; i++)
        if (advices[i].code == code)
            return advices[i].advice;
    return NULL;
}

const char *cc__driver_error_name(CUresult code)
{
    const char *name = NULL;
    if (cc__driver.cuGetErrorName && cc__driver.cuGetErrorName(code, &name) == CUDA_SUCCESS && name)
        return name;
    for (size_t i = 0; i < ADVICE_COUNT; i++)
        if (advices[i].code == code)
            return advices[i].name;
    return "CUDA_ERROR_UNKNOWN";
}

const char *cc__driver_error_text(CUresult code)
{
    const char *text = NULL;
    if (cc__driver.cuGetErrorString && cc__driver.cuGetErrorString(code, &text) == CUDA_SUCCESS && text)
        return text;
    return NULL;
}

/* Appends without ever passing the end; a text that is cut ends in "...". */
static void append(cc_error *error, const char *format, va_list arguments)
{
    size_t length = strlen(error->text), room = sizeof error->text - length;
    int written = vsnprintf(error->text + length, room, format, arguments);
    if (written > 0 && (size_t)written >= room)
        memcpy(error->text + sizeof error->text - 4, "...", 4);
}

/* What follows a blank or a new line and begins with a capital is a sentence: the one before it has to be over. The
 * texts of drivers and of the emulator end as they please. */
static void end_sentence(cc_error *error, const char *next)
{
    size_t length = strlen(error->text);
    if ((next[0] != ' ' && next[0] != '\n') || !isupper((unsigned char)next[1]) || !length)
        return;
    char last = error->text[length - 1];
    if (!strchr(".!?:;,", last) && !isspace((unsigned char)last) && length + 1 < sizeof error->text)
        memcpy(error->text + length, ".", 2);
}

int cc__explain(cc_error *error, const char *format, ...)
{
    if (error) {
        end_sentence(error, format);
        va_list arguments;
        va_start(arguments, format);
        append(error, format, arguments);
        va_end(arguments);
    }
    return -1;
}

static void start(cc_error *error, cc_domain domain, int code, const char *name, const char *function)
{
    error->domain = domain;
    error->code = code;
    error->name = name;
    error->function = function;
    error->text[0] = '\0';
    error->log = NULL;
}

int cc__fail(cc_error *error, cc_status status, const char *format, ...)
{
    if (!error)
        return -1;
    start(error, CC_DOMAIN_CORE, (int)status, statuses[status].name, NULL);
    if (!format)
        return cc__explain(error, "%s", statuses[status].text);
    va_list arguments;
    va_start(arguments, format);
    append(error, format, arguments);
    va_end(arguments);
    return -1;
}

int cc__fail_memory(cc_error *error)
{
    return cc__fail(error, CC_NO_HOST_MEMORY, NULL);
}

static const char FORKED[] =
    "This process was made by fork() from one that had used CUDA already, and what it inherited does not work here. Use "
    "multiprocessing's \"spawn\" or \"forkserver\" start method, or let only the child use CUDA.";

int cc__fail_forked(cc_error *error)
{
    return cc__fail(error, CC_DRIVER_BROKEN, "%s", FORKED);
}

bool cc__is_gone(CUresult code)
{
    return code == CUDA_ERROR_INVALID_CONTEXT || code == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
           code == CUDA_ERROR_NOT_INITIALIZED || code == CUDA_ERROR_DEINITIALIZED;
}

bool cc__is_lost(CUresult code)
{
    switch ((int)code) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

/* Waiting and asking are where a kernel's own failure comes out; any other call has nothing to do with it. */
static bool tells_of_work(const char *function)
{
    return strstr(function, "Synchronize") || strstr(function, "Query");
}

int cc__fail_driver(cc_error *error, CUresult code, const char *function)
{
    if (!error)
        return -1;
    /* First of all: any other driver call would make the emulator forget what it knows of this failure. */
    char detail[sizeof error->text];
    detail[0] = '\0';
    if (cc__driver.cuEmulatorErrorDetail && cc__driver.cuEmulatorErrorDetail(detail, sizeof detail) != CUDA_SUCCESS)
        detail[0] = '\0';

    start(error, CC_DOMAIN_DRIVER, (int)code, cc__driver_error_name(code), function);
    if (cc__forked)
        return cc__explain(error, "%s in %s. %s", error->name, function, FORKED);
    const char *text = cc__driver_error_text(code);
    size_t length = text ? strlen(text) : 0;
    cc__explain(error, "%s in %s%s%s%s", error->name, function, text ? ": " : "", text ? text : "",
                length && text[length - 1] == '.' ? "" : ".");
    if (cc__is_lost(code) && !tells_of_work(function))
        cc__explain(error, " An earlier kernel failed: this process cannot use the device any more, start a new one.");
    if (cc__is_lost(code))
        cc__explain_failure(error, code);
    if (detail[0])
        return cc__explain(error, "\n%s", detail); /* knows better than the general advice */
    const char *advice = advice_of(code);
    return advice ? cc__explain(error, " %s", advice) : -1;
}

int cc__fail_nvrtc(cc_error *error, int code, const char *name, const char *function)
{
    if (!error)
        return -1;
    start(error, CC_DOMAIN_NVRTC, code, name, function);
    return cc__explain(error, "%s in %s.", name, function);
}

void cc_error_clear(cc_error *error)
{
    free(error->log);
    error->log = NULL;
    error->text[0] = '\0';
}
