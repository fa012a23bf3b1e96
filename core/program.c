/* Compiling CUDA C++ with NVRTC. */
#include "nvrtc.h"

#include <stdlib.h>
#include <string.h>

/* ---- the log ---------------------------------------------------------------------------------------------------- */

/* NULL where the log is empty or cannot be had: it is never the reason for a failure. */
static char *read_log(cc__nvrtc_program program)
{
    size_t size = 0;
    if (cc__nvrtc.nvrtcGetProgramLogSize(program, &size) != CC__NVRTC_SUCCESS || size <= 1)
        return NULL;
    char *log = malloc(size + 1);
    if (!log)
        return NULL;
    if (cc__nvrtc.nvrtcGetProgramLog(program, log) != CC__NVRTC_SUCCESS) {
        free(log);
        return NULL;
    }
    log[size] = '\0';
    size_t length = strlen(log);
    while (length && (log[length - 1] == '\n' || log[length - 1] == ' '))
        log[--length] = '\0';
    if (length)
        return log;
    free(log);
    return NULL;
}

/* Where the first error begins: warnings may come before it. */
static const char *first_error(const char *log)
{
    const char *error = strstr(log, "error:");
    if (!error)
        return log;
    while (error > log && error[-1] != '\n')
        error--;
    return error;
}

static int fail_compilation(cc__nvrtc_program program, int code, cc_error *error)
{
    enum { SHOWN = 1500 };
    char *log = read_log(program);
    cc__fail_nvrtc_code(error, code, "nvrtcCompileProgram");
    if (!log || !error) {
        free(log);
        return -1;
    }
    const char *shown = first_error(log);
    size_t length = strlen(shown);
    if (length > SHOWN) {
        length = SHOWN;
        while (length > SHOWN / 2 && shown[length] != '\n')
            length--;
    }
    error->text[0] = '\0';
    cc__explain(error, "%.*s", (int)length, shown);
    if (shown[length])
        cc__explain(error, "\n(the log goes on)");
    error->log = log;
    return -1;
}

/* ---- what comes out --------------------------------------------------------------------------------------------- */

typedef int (*size_function)(cc__nvrtc_program, size_t *);
typedef int (*code_function)(cc__nvrtc_program, char *);

/* NUL-terminated behind `size` bytes, whatever it is. */
static int read_code(cc__nvrtc_program program, size_function get_size, code_function get, const char *function,
                     void **code, size_t *size, cc_error *error)
{
    char *bytes = NULL;
    if (cc__nvrtc_check(get_size(program, size), error, function))
        return -1;
    bytes = malloc(*size + 1);
    if (!bytes)
        return cc__fail_memory(error);
    if (*size && cc__nvrtc_check(get(program, bytes), error, function)) {
        free(bytes);
        return -1;
    }
    bytes[*size] = '\0';
    *code = bytes;
    return 0;
}

static int read_ptx(cc__nvrtc_program program, void **code, size_t *size, cc_error *error)
{
    if (read_code(program, cc__nvrtc.nvrtcGetPTXSize, cc__nvrtc.nvrtcGetPTX, "nvrtcGetPTX", code, size, error))
        return -1;
    while (*size && ((char *)*code)[*size - 1] == '\0') /* NVRTC counts the NUL */
        --*size;
    return 0;
}

/* The cubin with the PTX in it. Without PTX (an option asked for none) the cubin alone. */
static int read_cubin(cc__nvrtc_program program, void **code, size_t *size, cc_error *error)
{
    void *ptx = NULL, *joined = NULL;
    size_t ptx_size, joined_size;
    if (read_code(program, cc__nvrtc.nvrtcGetCUBINSize, cc__nvrtc.nvrtcGetCUBIN, "nvrtcGetCUBIN", code, size, error))
        return -1;
    if (*size == 0) {
        free(*code);
        *code = NULL;
        return cc__fail(error, CC_INVALID, "a cubin is for one real architecture: compile with -arch=sm_XX");
    }
    cc_error why;
    int missing = read_ptx(program, &ptx, &ptx_size, &why);
    if (missing && why.domain != CC_DOMAIN_NVRTC) { /* that there is none is the compiler's alone to say */
        free(*code);
        *code = NULL;
        return cc__fail_memory(error);
    }
    if (missing || ptx_size == 0) {
        free(ptx);
        return 0;
    }
    int status = cc__cubin_add_ptx(*code, *size, ptx, ptx_size, &joined, &joined_size, error);
    free(ptx);
    if (status || joined) {
        free(*code);
        *code = joined;
        *size = joined_size;
    }
    return status;
}

static int read_ltoir(cc__nvrtc_program program, void **code, size_t *size, cc_error *error)
{
    if (!cc__nvrtc.nvrtcGetLTOIR || !cc__nvrtc.nvrtcGetLTOIRSize)
        return cc__fail(error, CC_NOT_SUPPORTED, "this NVRTC makes no LTO code: version 12.0 or newer is needed");
    return read_code(program, cc__nvrtc.nvrtcGetLTOIRSize, cc__nvrtc.nvrtcGetLTOIR, "nvrtcGetLTOIR", code, size, error);
}

static int read_target(cc__nvrtc_program program, cc_target target, cc_compiled *compiled, cc_error *error)
{
    switch (target) {
    case CC_TARGET_PTX:
        return read_ptx(program, &compiled->code, &compiled->size, error);
    case CC_TARGET_CUBIN:
        return read_cubin(program, &compiled->code, &compiled->size, error);
    case CC_TARGET_LTOIR:
        return read_ltoir(program, &compiled->code, &compiled->size, error);
    }
    return cc__fail(error, CC_INVALID, "there is no compile target %d", (int)target);
}

static int read_lowered_names(cc__nvrtc_program program, const cc_compile_request *request, cc_compiled *compiled,
                              cc_error *error)
{
    if (request->name_expression_count == 0)
        return 0;
    compiled->lowered_names = calloc(request->name_expression_count, sizeof *compiled->lowered_names);
    if (!compiled->lowered_names)
        return cc__fail_memory(error);
    compiled->lowered_count = request->name_expression_count;
    for (size_t i = 0; i < request->name_expression_count; i++) {
        const char *lowered;
        if (CC__NVRTC(error, nvrtcGetLoweredName, program, request->name_expressions[i], &lowered))
            return cc__explain(error, " The name expression is '%s'.", request->name_expressions[i]);
        compiled->lowered_names[i] = strdup(lowered);
        if (!compiled->lowered_names[i])
            return cc__fail_memory(error);
    }
    return 0;
}

static cc_pch read_pch(cc__nvrtc_program program)
{
    enum { NOT_ATTEMPTED = 13 };
    if (!cc__nvrtc.nvrtcGetPCHCreateStatus)
        return CC_PCH_NOT_ATTEMPTED;
    int code = cc__nvrtc.nvrtcGetPCHCreateStatus(program);
    return code == CC__NVRTC_SUCCESS ? CC_PCH_CREATED : code == NOT_ATTEMPTED ? CC_PCH_NOT_ATTEMPTED : CC_PCH_FAILED;
}

/* ---- compiling -------------------------------------------------------------------------------------------------- */

static int add_name_expressions(cc__nvrtc_program program, const cc_compile_request *request, cc_error *error)
{
    for (size_t i = 0; i < request->name_expression_count; i++)
        if (CC__NVRTC(error, nvrtcAddNameExpression, program, request->name_expressions[i]))
            return cc__explain(error, " The name expression is '%s'.", request->name_expressions[i]);
    return 0;
}

static bool has_option(const cc_compile_request *request, const char *option)
{
    for (size_t i = 0; i < request->option_count; i++)
        if (strcmp(request->options[i], option) == 0)
            return true;
    return false;
}

/* With the option that the target cannot do without. */
static int run_compiler(cc__nvrtc_program program, const cc_compile_request *request, cc_error *error)
{
    size_t count = request->option_count;
    const char **options = malloc((count + 1) * sizeof *options);
    if (!options)
        return cc__fail_memory(error);
    for (size_t i = 0; i < count; i++)
        options[i] = request->options[i];
    if (request->target == CC_TARGET_LTOIR && !has_option(request, "-dlto") && !has_option(request, "--dlink-time-opt"))
        options[count++] = "-dlto";
    int code = cc__nvrtc.nvrtcCompileProgram(program, (int)count, options);
    free(options);
    return code == CC__NVRTC_SUCCESS ? 0 : fail_compilation(program, code, error);
}

int cc_compile(const cc_compile_request *request, cc_compiled *compiled, cc_error *error)
{
    cc__nvrtc_program program = NULL;
    int status = -1;
    *compiled = (cc_compiled){0};
    if (cc__need_nvrtc(error))
        return -1;
    if (request->header_count > INT32_MAX || request->option_count >= INT32_MAX)
        return cc__fail(error, CC_OUT_OF_RANGE, "too many headers or options");
    if (CC__NVRTC(error, nvrtcCreateProgram, &program, request->source, request->name, (int)request->header_count,
                  request->header_sources, request->header_names))
        return -1;
    if (add_name_expressions(program, request, error) || run_compiler(program, request, error) ||
        read_target(program, request->target, compiled, error) || read_lowered_names(program, request, compiled, error))
        goto done;
    compiled->log = read_log(program);
    compiled->pch = read_pch(program);
    status = 0;
done:
    (void)cc__nvrtc.nvrtcDestroyProgram(&program);
    if (status)
        cc_compiled_free(compiled);
    return status;
}

int cc_program_create(const char *source, const char *name, void **native, cc_error *error)
{
    cc__nvrtc_program program = NULL;
    if (cc__need_nvrtc(error) || CC__NVRTC(error, nvrtcCreateProgram, &program, source, name, 0, NULL, NULL))
        return -1;
    *native = program;
    return 0;
}

void cc_program_destroy(void *native)
{
    cc__nvrtc_program program = native;
    if (program)
        (void)cc__nvrtc.nvrtcDestroyProgram(&program);
}

void cc_compiled_free(cc_compiled *compiled)
{
    for (size_t i = 0; i < compiled->lowered_count; i++)
        free(compiled->lowered_names[i]);
    free(compiled->lowered_names);
    free(compiled->code);
    free(compiled->log);
    *compiled = (cc_compiled){0};
}
