/* CUDA_CORE_EMULATOR_TRACE=stderr or a file's name: one line for each driver call, with its result. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "api.h"

_Atomic unsigned int em_watched;
static bool tracing;
static FILE *trace_file;
static uint64_t trace_start;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void em_watch(em_watch_reason reason, bool begins)
{
    if (begins)
        atomic_fetch_or(&em_watched, reason);
    else
        atomic_fetch_and(&em_watched, ~(unsigned int)reason);
}

__attribute__((constructor)) static void open_trace(void)
{
    const char *where = getenv("CUDA_CORE_EMULATOR_TRACE");
    if (where == NULL || where[0] == '\0')
        return;
    trace_file = strcmp(where, "stderr") == 0 ? stderr : fopen(where, "ae");
    if (trace_file == NULL) {
        fprintf(stderr, "CUDA_CORE_EMULATOR_TRACE: cannot open %s\n", where);
        return;
    }
    trace_start = now();
    tracing = true;
    em_watch(EM_WATCH_TRACE, true);
}

static void write_line(const char *text)
{
    double milliseconds = (double)(now() - trace_start) / 1e6;
    fprintf(trace_file, "%10.3f ms  %ld  %s\n", milliseconds, (long)syscall(SYS_gettid), text);
    fflush(trace_file);
}

void em_trace_fault(const em_detail *detail)
{
    if (tracing)
        write_line(detail->text);
}

static void trace_call(const char *name, CUresult status, const char *format, va_list arguments)
{
    char line[1024], values[768];
    vsnprintf(values, sizeof values, format, arguments);
    const char *error = em_error_name((int)status);
    bool explained = status != CUDA_SUCCESS && em_self.detail_fresh && em_self.detail != NULL;
    const char *text = explained ? em_self.detail->text : "";
    snprintf(line, sizeof line, "%s(%s) = %d %s%s%.*s", name, values, (int)status, error != NULL ? error : "",
             text[0] != '\0' ? "  # " : "", (int)strcspn(text, "\n"), text);
    write_line(line);
}

/* CUDA_ERROR_NOT_READY is an answer that needs no account; that of an earlier failure must not stand for it. */
static void forget_failure(void)
{
    em_self.detail_fresh = false;
    em_self.failed_status = 0;
}

CUresult em_call_ends(const char *name, CUresult status, const char *format, ...)
{
    status = (CUresult)em_fault_late(name, (int)status);
    if (status == CUDA_ERROR_NOT_READY)
        forget_failure();
    bool failed = status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_READY;
    if (failed) {
        /* Text of an earlier call must not explain this one. */
        bool ours = em_self.detail_fresh && em_self.detail != NULL && em_self.detail->code == (int)status;
        em_self.detail_fresh = ours;
        em_self.failed_call = name;
        em_self.failed_status = (int)status;
    }
    if (tracing) {
        va_list arguments;
        va_start(arguments, format);
        trace_call(name, status, format, arguments);
        va_end(arguments);
    }
    if (failed && em_self.detail != NULL && em_self.detail_fresh)
        em_self.detail->code = -1; /* used up: a later call with the same status needs its own text */
    return status;
}
