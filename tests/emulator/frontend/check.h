/* For tests of the PTX front end: expectations that say where they failed, and sources put together from a body. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/ir.h"

static int failures;

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            failures++;                                                                                                \
            printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                           \
        }                                                                                                              \
    } while (0)

#define EXPECT_EQUAL(wanted, got)                                                                                      \
    do {                                                                                                               \
        const unsigned long long check_wanted = (unsigned long long)(wanted), check_got = (unsigned long long)(got);   \
        if (check_wanted != check_got) {                                                                               \
            failures++;                                                                                                \
            printf("%s:%d: %s: 0x%llx, expected 0x%llx\n", __FILE__, __LINE__, #got, check_got, check_wanted);         \
        }                                                                                                              \
    } while (0)

#define EXPECT_TEXT(wanted, got)                                                                                       \
    do {                                                                                                               \
        const char *check_got = (got);                                                                                 \
        if (check_got == NULL || strcmp(wanted, check_got) != 0) {                                                     \
            failures++;                                                                                                \
            printf("%s:%d: %s: \"%s\", expected \"%s\"\n", __FILE__, __LINE__, #got,                                   \
                   check_got != NULL ? check_got : "(null)", wanted);                                                  \
        }                                                                                                              \
    } while (0)

static const char preamble[] = ".version 8.6\n.target sm_90a\n.address_size 64\n";

/* The length is given and what follows the text is not zero: the parser must not look for an end. */
static inline ptx_module *parse_bytes(const char *text, size_t length, ptx_error *error)
{
    char *copy = malloc(length > 0 ? length : 1);
    if (copy == NULL)
        exit(2);
    memcpy(copy, text, length);
    ptx_module *module = ptx_parse(copy, length, error);
    free(copy); /* nothing of a module points into its text */
    return module;
}

static inline ptx_module *parse(const char *source)
{
    char *text = malloc(sizeof preamble + strlen(source));
    ptx_error error;
    if (text == NULL)
        exit(2);
    strcpy(text, preamble);
    strcat(text, source);
    ptx_module *module = parse_bytes(text, strlen(text), &error);
    if (module == NULL) {
        printf("%u:%u: %s\n%s\nin:\n%s\n", error.line, error.column, error.message, error.excerpt, source);
        exit(1);
    }
    free(text);
    return module;
}

/* A kernel k with registers %p, %h, %r, %rd, %f, %d and the body; NULL, with the error, where it does not parse. */
static inline ptx_module *parse_body_or_not(const char *before, const char *body, ptx_error *error)
{
    static const char format[] =
        "%s%s.visible .entry k(.param .u64 a, .param .align 8 .b8 s[24])\n{\n"
        ".reg .pred %%p<8>; .reg .b16 %%h<8>; .reg .b32 %%r<8>; .reg .b64 %%rd<8>;"
        ".reg .f32 %%f<8>; .reg .f64 %%d<8>; .reg .u32 %%u<8>; .reg .s32 %%i<8>;\n%s\nret;\n}\n";
    const size_t size = sizeof format + sizeof preamble + strlen(before) + strlen(body);
    char *text = malloc(size);
    if (text == NULL)
        exit(2);
    snprintf(text, size, format, preamble, before, body);
    ptx_module *module = parse_bytes(text, strlen(text), error);
    free(text);
    return module;
}

static inline ptx_module *parse_body(const char *before, const char *body)
{
    ptx_error error;
    ptx_module *module = parse_body_or_not(before, body, &error);
    if (module == NULL) {
        printf("%u:%u: %s\n%s\n", error.line, error.column, error.message, error.excerpt);
        exit(1);
    }
    return module;
}

static inline const ptx_function *kernel(const ptx_module *module)
{
    const ptx_function *function = ptx_find_function(module, "k");
    if (function == NULL)
        exit(1);
    return function;
}

static inline char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        exit(2);
    *length = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*length + 1);
    if (text == NULL || fread(text, 1, *length, file) != *length)
        exit(2);
    fclose(file);
    return text;
}

static inline int report(void)
{
    if (failures > 0)
        printf("%d failed\n", failures);
    return failures > 0;
}

#endif
