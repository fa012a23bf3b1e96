/* The parameters of kernels as PTX declares them: the .entry lines of a module, read without the rest of the language.
 */
#include "internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 16 }; /* twice what a kernel can take in all: nothing computed from it overflows */

typedef struct cursor {
    const char *at, *end;
} cursor;

typedef struct token {
    const char *text;
    size_t length;
} token;

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c == '%';
}

/* White space, both kinds of comment, and strings, which may hold anything. */
static void skip(cursor *in)
{
    while (in->at < in->end) {
        size_t left = (size_t)(in->end - in->at);
        char c = *in->at;
        if (left >= 2 && c == '/' && in->at[1] == '/') {
            const char *line = memchr(in->at, '\n', left);
            in->at = line ? line : in->end;
        } else if (left >= 2 && c == '/' && in->at[1] == '*') {
            const char *close = memmem(in->at + 2, left - 2, "*/", 2);
            in->at = close ? close + 2 : in->end;
        } else if (c == '"') {
            const char *close = memchr(in->at + 1, '"', left - 1);
            in->at = close ? close + 1 : in->end;
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            in->at++;
        } else {
            return;
        }
    }
}

/* A word, with the dot before it (".param", "name", "24"), or one sign. Length 0 at the end. */
static token next(cursor *in)
{
    skip(in);
    token found = {in->at, 0};
    if (in->at < in->end && *in->at == '.')
        in->at++;
    while (in->at < in->end && is_word(*in->at))
        in->at++;
    if (in->at == found.text && in->at < in->end)
        in->at++;
    found.length = (size_t)(in->at - found.text);
    return found;
}

static token peek(const cursor *in)
{
    cursor copy = *in;
    return next(&copy);
}

static bool is(token found, const char *text)
{
    return found.length == strlen(text) && memcmp(found.text, text, found.length) == 0;
}

static bool take(cursor *in, const char *text)
{
    if (!is(peek(in), text))
        return false;
    next(in);
    return true;
}

/* Decimal, octal or hexadecimal, as PTX writes integers. False where it is none or too large for a parameter. */
static bool number(token found, uint32_t *value)
{
    char copy[24], *end;
    if (found.length == 0 || found.length >= sizeof copy || !isdigit((unsigned char)found.text[0]))
        return false;
    memcpy(copy, found.text, found.length);
    copy[found.length] = '\0';
    unsigned long long wide = strtoull(copy, &end, 0);
    if ((*end && strcmp(end, "U") != 0) || wide > MAX_BYTES)
        return false;
    *value = (uint32_t)wide;
    return true;
}

static const struct {
    const char *name;
    uint32_t size;
    cc_type type;
} types[] = {
    {".u8", 1, CC_TYPE_INTEGER},         {".u16", 2, CC_TYPE_INTEGER},    {".u32", 4, CC_TYPE_INTEGER},
    {".u64", 8, CC_TYPE_INTEGER},        {".s8", 1, CC_TYPE_INTEGER},     {".s16", 2, CC_TYPE_INTEGER},
    {".s32", 4, CC_TYPE_INTEGER},        {".s64", 8, CC_TYPE_INTEGER},    {".b8", 1, CC_TYPE_INTEGER},
    {".b16", 2, CC_TYPE_INTEGER},        {".b32", 4, CC_TYPE_INTEGER},    {".b64", 8, CC_TYPE_INTEGER},
    {".b128", 16, CC_TYPE_BYTES},        {".f16", 2, CC_TYPE_FLOAT},      {".f16x2", 4, CC_TYPE_BYTES},
    {".bf16", 2, CC_TYPE_BYTES},         {".bf16x2", 4, CC_TYPE_BYTES},   {".f32", 4, CC_TYPE_FLOAT},
    {".f64", 8, CC_TYPE_FLOAT},          {".texref", 8, CC_TYPE_INTEGER}, {".surfref", 8, CC_TYPE_INTEGER},
    {".samplerref", 8, CC_TYPE_INTEGER},
};

static bool type_of(token found, cc_parameter *parameter)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (is(found, types[i].name)) {
            parameter->size = parameter->align = types[i].size;
            parameter->type = types[i].type;
            return true;
        }
    return false;
}

/* .param [.align n] .type [.ptr [.space] [.align n]] name [ [n] ] ; the .align behind .ptr is of what it points at. */
static bool read_parameter(cursor *in, cc_parameter *parameter)
{
    uint32_t align = 0, ignored, elements;
    bool typed = false;
    if (!take(in, ".param"))
        return false;
    for (;;) {
        token found = next(in);
        if (is(found, ".align")) {
            if (!number(next(in), parameter->type == CC_TYPE_POINTER ? &ignored : &align))
                return false;
        } else if (is(found, ".ptr")) {
            parameter->type = CC_TYPE_POINTER;
        } else if (found.length && found.text[0] == '.') {
            typed |= type_of(found, parameter); /* else .global, .const, .shared, .local, .unified */
        } else if (found.length && is_word(found.text[0])) {
            break; /* the name */
        } else {
            return false;
        }
    }
    if (take(in, "[")) {
        if (!number(next(in), &elements) || !take(in, "]"))
            return false;
        parameter->size *= elements;
        parameter->type = CC_TYPE_BYTES;
    }
    if (align)
        parameter->align = align;
    return typed && (parameter->align & (parameter->align - 1)) == 0;
}

static int add_parameter(cc__entry *entry, const cc_parameter *parameter, size_t *capacity, cc_error *error)
{
    if (entry->count == *capacity) {
        size_t wanted = *capacity ? 2 * *capacity : 8;
        cc_parameter *larger = realloc(entry->parameters, wanted * sizeof *larger);
        if (!larger)
            return cc__fail_memory(error);
        entry->parameters = larger;
        *capacity = wanted;
    }
    entry->parameters[entry->count++] = *parameter;
    return 0;
}

/* 1: read, 0: not understood (then nothing is known of this entry), -1: no memory. */
static int read_parameters(cursor *in, cc__entry *entry, cc_error *error)
{
    size_t capacity = 0;
    uint32_t offset = 0;
    if (!take(in, "(") || take(in, ")"))
        return 1;
    do {
        cc_parameter parameter = {0};
        if (!read_parameter(in, &parameter))
            return 0;
        offset = (offset + parameter.align - 1) & ~(parameter.align - 1);
        parameter.offset = offset;
        offset += parameter.size;
        if (offset > MAX_BYTES)
            return 0;
        if (add_parameter(entry, &parameter, &capacity, error))
            return -1;
    } while (take(in, ","));
    return take(in, ")") ? 1 : 0;
}

/* The same three results. */
static int read_entry(cursor *in, cc__entry *entry, cc_error *error)
{
    token name = next(in);
    if (name.length == 0 || !is_word(name.text[0]))
        return 0;
    int status = read_parameters(in, entry, error);
    if (status != 1)
        return status;
    entry->name = strndup(name.text, name.length);
    return entry->name ? 1 : cc__fail_memory(error);
}

static int add_entry(cc__entries *entries, const cc__entry *entry, size_t *capacity, cc_error *error)
{
    if (entries->count == *capacity) {
        size_t wanted = *capacity ? 2 * *capacity : 8;
        cc__entry *larger = realloc(entries->entries, wanted * sizeof *larger);
        if (!larger)
            return cc__fail_memory(error);
        entries->entries = larger;
        *capacity = wanted;
    }
    entries->entries[entries->count++] = *entry;
    return 0;
}

static void entry_free(cc__entry *entry)
{
    free(entry->name);
    free(entry->parameters);
}

int cc__entries_parse(const char *ptx, size_t size, cc__entries *entries, cc_error *error)
{
    cursor in = {ptx, ptx + size};
    size_t capacity = 0;
    *entries = (cc__entries){0};
    for (token found = next(&in); found.length; found = next(&in)) {
        cc__entry entry = {0};
        if (!is(found, ".entry"))
            continue;
        int status = read_entry(&in, &entry, error);
        if (status == 1)
            status = add_entry(entries, &entry, &capacity, error) ? -1 : 1;
        if (status != 1)
            entry_free(&entry);
        if (status < 0) {
            cc__entries_free(entries);
            return -1;
        }
    }
    return 0;
}

void cc__entries_free(cc__entries *entries)
{
    for (size_t i = 0; i < entries->count; i++)
        entry_free(&entries->entries[i]);
    free(entries->entries);
    *entries = (cc__entries){0};
}

const cc__entry *cc__entries_find(const cc__entries *entries, const char *name)
{
    for (size_t i = 0; i < entries->count; i++)
        if (strcmp(entries->entries[i].name, name) == 0)
            return &entries->entries[i];
    return NULL;
}
