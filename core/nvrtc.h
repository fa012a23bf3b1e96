/* NVRTC's functions as core calls them. */
#ifndef CC_NVRTC_H
#define CC_NVRTC_H

#include "internal.h"

typedef struct cc__nvrtc_handle *cc__nvrtc_program;

enum { CC__NVRTC_SUCCESS = 0, CC__NVRTC_COMPILATION = 6 };

typedef struct cc__nvrtc_table {
#define CC_NVRTC(need, result, name, parameters) result(*name) parameters;
#include "nvrtc.def"
#undef CC_NVRTC
} cc__nvrtc_table;

#pragma GCC visibility push(hidden)
extern cc__nvrtc_table cc__nvrtc;
int cc__need_nvrtc(cc_error *error);
CC__COLD int cc__fail_nvrtc_code(cc_error *error, int code, const char *function);
#pragma GCC visibility pop

static inline int cc__nvrtc_check(int code, cc_error *error, const char *function)
{
    return code == CC__NVRTC_SUCCESS ? 0 : cc__fail_nvrtc_code(error, code, function);
}

#define CC__NVRTC(error, name, ...) cc__nvrtc_check(cc__nvrtc.name(__VA_ARGS__), error, #name)

#endif
