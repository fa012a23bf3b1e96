/* What every C test of core needs: checks that print both values, a run through a list of tests, a driver. */
#ifndef CC_TEST_CHECK_H
#define CC_TEST_CHECK_H

#include "cuda_core.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                           \
            check_failures++;                                                                                          \
        }                                                                                                              \
    } while (0)

#define CHECK_INT(found, wanted)                                                                                       \
    do {                                                                                                               \
        long long check_found = (long long)(found), check_wanted = (long long)(wanted);                                \
        if (check_found != check_wanted) {                                                                             \
            printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #found, check_found, check_wanted);            \
            check_failures++;                                                                                          \
        }                                                                                                              \
    } while (0)

/* `text` contains `part`. */
#define CHECK_TEXT(text, part)                                                                                         \
    do {                                                                                                               \
        const char *check_text = (text);                                                                               \
        if (!check_text || !strstr(check_text, part)) {                                                                \
            printf("%s:%d: no \"%s\" in \"%s\"\n", __FILE__, __LINE__, part, check_text ? check_text : "(null)");      \
            check_failures++;                                                                                          \
        }                                                                                                              \
    } while (0)

/* A call that has to succeed; the rest of the test hangs on it. Wants a `cc_error error` in scope. */
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if (call) {                                                                                                    \
            printf("%s:%d: %s failed: %s\n", __FILE__, __LINE__, #call, error.text);                                   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A call that core itself has to refuse. */
#define REFUSED(call, status, part)                                                                                    \
    do {                                                                                                               \
        if ((call) == 0) {                                                                                             \
            printf("%s:%d: %s was not refused\n", __FILE__, __LINE__, #call);                                          \
            check_failures++;                                                                                          \
        } else {                                                                                                       \
            CHECK_INT(error.domain, CC_DOMAIN_CORE);                                                                   \
            CHECK_INT(error.code, status);                                                                             \
            CHECK_TEXT(error.text, part);                                                                              \
            cc_error_clear(&error);                                                                                    \
        }                                                                                                              \
    } while (0)

typedef struct check_test {
    const char *name;
    void (*run)(void);
} check_test;

#define TEST(function)                                                                                                 \
    {                                                                                                                  \
#function, function                                                                                            \
    }

static inline int check_run(const check_test *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int before = check_failures;
        printf("%s\n", tests[i].name);
        fflush(stdout);
        tests[i].run();
        if (check_failures != before)
            printf("%s: FAILED\n", tests[i].name);
    }
    printf("%s\n", check_failures ? "FAILED" : "passed");
    return check_failures ? 1 : 0;
}

#define CHECK_MAIN(tests)                                                                                              \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        return check_run(tests, sizeof tests / sizeof tests[0]);                                                       \
    }

/* The driver that the tests run on: what CUDA_CORE_DRIVER names, else the emulator of this build. */
static inline void check_open_driver(void)
{
    cc_error error;
    const char *choice = getenv("CUDA_CORE_DRIVER");
    MUST(cc_driver_open(choice && *choice ? choice : "emulator", getenv("CUDA_CORE_EMULATOR_LIBRARY"), &error));
}

/* The first device, with its context and a new stream. */
typedef struct check_device {
    cc_device *device;
    cc_context *context;
    cc_stream *stream;
    cc_pool *pool;
} check_device;

static inline check_device check_open_device(void)
{
    cc_error error;
    check_device opened;
    check_open_driver();
    MUST(cc_device_get(0, &opened.device, &error));
    MUST(cc_device_primary_context(opened.device, &opened.context, &error));
    MUST(cc_stream_create(opened.context, CU_STREAM_NON_BLOCKING, 0, &opened.stream, &error));
    MUST(cc_pool_device_default(opened.device, &opened.pool, &error));
    return opened;
}

static inline void check_close_device(check_device *opened)
{
    cc_error error;
    MUST(cc_stream_synchronize(opened->stream, &error));
    cc_context_collect(opened->context, true);
    cc_pool_release(opened->pool);
    cc_stream_release(opened->stream);
}

#endif
