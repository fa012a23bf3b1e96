/* Runs .ptx files that say in comments what to launch and what must come of it:
 *
 *     // buffer: out u32 64                    64 zeros on the device; also f32 f64 u8 u16 u64 s32 ...
 *     // buffer: x f32 4 = 1 2 3 4             or `= all 7`, or `= iota first step`, both
 *                                            with a count behind them if need be
 *     // launch: kernel grid=2,1 block=64 shared=128 cooperative args=x,out,x+16,u32:5,f32:2.5
 *     // expect: out = 1 2 3 4                 the whole buffer, or its first values; `all` and `iota` too
 *     // expect: out[7] = 3
 *     // expect: out ~ 1e-6 = 1.5 ...          within that relative error
 *     // expect-fault: 700 out of bounds       code and a part of the account; may be repeated
 *     // expect-stdout: a line                 all that the launch printed, line by line; expect-stderr: likewise
 *     // free: x                               gives the buffer back; its name goes on meaning the address
 *
 * A launch must succeed unless a fault is expected of it. Exit status 0: every file held. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emulator.h"

enum { BUFFERS = 32, DIRECTIVES = 256, CAPTURED = 1 << 16 };

typedef struct buffer {
    char name[64], type[8];
    size_t count, size;
    em_range *range;
    uint64_t address;
} buffer;

typedef struct test {
    const char *path;
    em_module *module;
    buffer buffers[BUFFERS];
    size_t buffer_count;
    char *directives[DIRECTIVES];
    size_t directive_count;
    em_detail detail; /* of the last launch */
    int status;
    char out[CAPTURED], err[CAPTURED];
    int failures;
} test;

static const em_limits LIMITS = {.ordinal = 0, .cc_major = 8, .cc_minor = 0, .multiprocessors = 16};

static void complain(test *t, const char *directive, const char *what)
{
    t->failures++;
    printf("%s: %s\n  %s\n", t->path, directive, what);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static size_t size_of(const char *type)
{
    if (strcmp(type, "f16") == 0)
        return 2;
    return (size_t)strtoul(type + 1, NULL, 10) / 8;
}

/* Bits of a number written as the type asks: decimal, 0x, float text, nan, inf. */
static uint64_t bits_of(const char *type, const char *text)
{
    uint64_t bits = 0;
    if (type[0] == 'f' && strncmp(text, "0x", 2) != 0) {
        const double value = strtod(text, NULL);
        const float narrow = (float)value;
        if (size_of(type) == 8)
            memcpy(&bits, &value, 8);
        else
            memcpy(&bits, &narrow, 4);
        return bits;
    }
    bits = text[0] == '-' ? (uint64_t)strtoll(text, NULL, 0) : strtoull(text, NULL, 0);
    return size_of(type) < 8 ? bits & ((UINT64_C(1) << (8 * size_of(type))) - 1) : bits;
}

static double number_of(const char *type, uint64_t bits)
{
    if (type[0] == 'f' && size_of(type) == 8) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (type[0] == 'f') {
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    return type[0] == 's' ? (double)(int64_t)(bits << (64 - 8 * size_of(type))) / pow(2, 64 - 8 * (double)size_of(type))
                          : (double)bits;
}

static uint64_t bits_of_number(const char *type, double value)
{
    char text[64];
    if (type[0] == 'f')
        snprintf(text, sizeof text, "%.17g", value);
    else
        snprintf(text, sizeof text, "%.0f", value);
    return bits_of(type, text);
}

/* How many values a pattern may fill: what its last number says, if it says so. */
static size_t limit_of(char **rest)
{
    const char *word = strtok_r(NULL, " ", rest);
    return word != NULL ? strtoul(word, NULL, 10) : SIZE_MAX;
}

/* The index-th value of a list `1 2 3`, `all 7 [count]` or `iota first step [count]`; false: the list is shorter. */
static bool value_at(const char *type, const char *list, size_t index, uint64_t *bits)
{
    char copy[4096], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", list);
    char *word = strtok_r(copy, " ", &rest);
    if (word == NULL)
        return false;
    if (strcmp(word, "all") == 0) {
        *bits = bits_of(type, strtok_r(NULL, " ", &rest));
        return index < limit_of(&rest);
    }
    if (strcmp(word, "iota") == 0) {
        const double first = strtod(strtok_r(NULL, " ", &rest), NULL), step = strtod(strtok_r(NULL, " ", &rest), NULL);
        *bits = bits_of_number(type, first + step * (double)index);
        return index < limit_of(&rest);
    }
    for (size_t i = 0; i < index && word != NULL; i++)
        word = strtok_r(NULL, " ", &rest);
    if (word == NULL)
        return false;
    *bits = bits_of(type, word);
    return true;
}

static buffer *buffer_named(test *t, const char *name)
{
    for (size_t i = 0; i < t->buffer_count; i++) {
        if (strcmp(t->buffers[i].name, name) == 0)
            return &t->buffers[i];
    }
    return NULL;
}

static uint64_t element(const buffer *from, size_t index)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)(uintptr_t)from->address + index * from->size, from->size);
    return bits;
}

/* ---- directives
 * --------------------------------------------------------------------------------------------------------- */

static void make_buffer(test *t, const char *directive, const char *text)
{
    buffer *made = &t->buffers[t->buffer_count];
    if (t->buffer_count == BUFFERS || sscanf(text, "%63s %7s %zu", made->name, made->type, &made->count) != 3 ||
        buffer_named(t, made->name) != NULL) {
        complain(t, directive, "not a buffer");
        return;
    }
    t->buffer_count++;
    made->size = size_of(made->type);
    made->range = em_heap_allocate(made->count * made->size, 256, EM_DEVICE, 0);
    made->address = made->range->base;
    memset((void *)(uintptr_t)made->address, 0, made->count * made->size);
    const char *list = strchr(text, '=');
    uint64_t bits;
    for (size_t i = 0; list != NULL && i < made->count && value_at(made->type, list + 1, i, &bits); i++)
        memcpy((char *)(uintptr_t)made->address + i * made->size, &bits, made->size);
}

static bool argument_bits(test *t, const char *word, uint64_t *bits)
{
    const char *colon = strchr(word, ':');
    char type[8] = "";
    if (colon != NULL) {
        snprintf(type, sizeof type, "%.*s", (int)(colon - word), word);
        *bits = bits_of(type, colon + 1);
        return true;
    }
    char name[64];
    const char *plus = strpbrk(word, "+-");
    snprintf(name, sizeof name, "%.*s", (int)(plus != NULL ? plus - word : (ptrdiff_t)strlen(word)), word);
    const buffer *found = buffer_named(t, name);
    if (found == NULL && strcmp(name, "null") != 0)
        return em_module_variable(t->module, name, bits, NULL);
    *bits = found != NULL ? found->address : 0;
    *bits += plus != NULL ? (uint64_t)strtoll(plus, NULL, 0) : 0;
    return true;
}

static bool pack_arguments(test *t, const char *list, const em_kernel_info *info, unsigned char *packed)
{
    char copy[1024], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", list);
    size_t count = 0;
    for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        uint64_t bits;
        if (count == info->parameter_count || !argument_bits(t, word, &bits))
            return false;
        const em_parameter *parameter = &info->parameters[count++];
        if (parameter->size <= 8) {
            memcpy(packed + parameter->offset, &bits, parameter->size);
            continue;
        }
        /* A struct: its 8-byte words, separated by `/` after the first. */
        char *part = strchr(word, ':') + 1;
        for (uint32_t at = 0; at < parameter->size && part != NULL; at += 8) {
            bits = strtoull(part, NULL, 0);
            memcpy(packed + parameter->offset + at, &bits, parameter->size - at < 8 ? parameter->size - at : 8);
            part = strchr(part, '/');
            part = part != NULL ? part + 1 : NULL;
        }
    }
    return count == info->parameter_count;
}

static void dimensions(const char *text, uint32_t size[3])
{
    size[0] = size[1] = size[2] = 1;
    sscanf(text, "%" SCNu32 ",%" SCNu32 ",%" SCNu32, &size[0], &size[1], &size[2]);
}

/* Standard output or error into a temporary file for the time of a launch. */
static int capture(FILE *stream, int number)
{
    char path[] = "/tmp/emulator_test_XXXXXX";
    fflush(stream);
    const int kept = dup(number), file = mkstemp(path);
    unlink(path);
    dup2(file, number);
    close(file);
    return kept;
}

static void release(FILE *stream, int number, int kept, char *text)
{
    fflush(stream);
    lseek(number, 0, SEEK_SET);
    const ssize_t length = read(number, text, CAPTURED - 1);
    text[length > 0 ? length : 0] = 0;
    dup2(kept, number);
    close(kept);
}

static void run(test *t, const char *directive, const char *text)
{
    char copy[1024], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    const char *name = strtok_r(copy, " ", &rest);
    em_launch launch = {
        .limits = LIMITS, .grid = {1, 1, 1}, .block = {1, 1, 1}, .printf_limit = 1 << 20, .malloc_limit = 8 << 20};
    const char *arguments = "";
    launch.kernel = name != NULL ? em_module_kernel(t->module, name) : NULL;
    if (launch.kernel == NULL) {
        complain(t, directive, "no such kernel");
        return;
    }
    for (char *word = strtok_r(NULL, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        if (strncmp(word, "grid=", 5) == 0)
            dimensions(word + 5, launch.grid);
        else if (strncmp(word, "block=", 6) == 0)
            dimensions(word + 6, launch.block);
        else if (strncmp(word, "cluster=", 8) == 0)
            dimensions(word + 8, launch.cluster);
        else if (strncmp(word, "shared=", 7) == 0)
            launch.dynamic_shared_bytes = (uint32_t)strtoul(word + 7, NULL, 0);
        else if (strncmp(word, "printf=", 7) == 0)
            launch.printf_limit = strtoul(word + 7, NULL, 0);
        else if (strncmp(word, "args=", 5) == 0)
            arguments = word + 5;
        else if (strcmp(word, "cooperative") == 0)
            launch.cooperative = true;
        else
            complain(t, directive, word);
    }
    const em_kernel_info *info = em_kernel_describe(launch.kernel);
    unsigned char *packed = calloc(1, info->parameter_bytes + 16u);
    if (!pack_arguments(t, arguments, info, packed))
        complain(t, directive, "arguments do not fit the kernel");
    launch.parameters = packed;
    t->detail = (em_detail){0};
    const int out = capture(stdout, 1), err = capture(stderr, 2);
    t->status = em_run(&launch, &t->detail);
    release(stdout, 1, out, t->out);
    release(stderr, 2, err, t->err);
    free(packed);
}

static bool near(double got, double wanted, double tolerance)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    return got == wanted || fabs(got - wanted) <= tolerance * fabs(wanted);
}

static void expect(test *t, const char *directive, const char *text)
{
    char name[64] = "", message[256];
    size_t index = SIZE_MAX;
    double tolerance = 0;
    const char *list = strchr(text, '=');
    if (list == NULL || sscanf(text, " %63[A-Za-z0-9_]", name) != 1 || buffer_named(t, name) == NULL) {
        complain(t, directive, "expects nothing of a buffer");
        return;
    }
    const buffer *from = buffer_named(t, name);
    const char *bracket = strchr(text, '['), *tilde = strchr(text, '~');
    if (bracket != NULL && bracket < list)
        index = strtoul(bracket + 1, NULL, 10);
    if (tilde != NULL && tilde < list)
        tolerance = strtod(tilde + 1, NULL);
    uint64_t wanted;
    size_t compared = 0;
    for (size_t i = 0; value_at(from->type, list + 1, i, &wanted); i++, compared++) {
        const size_t at = index != SIZE_MAX ? index + i : i;
        if (at >= from->count)
            break;
        const uint64_t got = element(from, at);
        const double number = number_of(from->type, got), aim = number_of(from->type, wanted);
        if (tolerance > 0 ? near(number, aim, tolerance) : got == wanted)
            continue;
        snprintf(message, sizeof message, "%s[%zu] is %.9g (0x%" PRIx64 "), not %.9g (0x%" PRIx64 ")", name, at, number,
                 got, aim, wanted);
        complain(t, directive, message);
        return;
    }
    if (compared == 0)
        complain(t, directive, "expects nothing");
}

static void expect_fault(test *t, const char *directive, const char *text)
{
    char *end;
    const long code = strtol(text, &end, 10);
    char message[sizeof t->detail.text + 64];
    while (*end == ' ')
        end++;
    if (t->status == code && strstr(t->detail.text, end) != NULL)
        return;
    snprintf(message, sizeof message, "status %d: %s", t->status, t->detail.text);
    complain(t, directive, message);
}

/* ---- a file
 * -------------------------------------------------------------------------------------------------------------- */

static const char *starts(const char *text, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(text, word, length) != 0)
        return NULL;
    text += length;
    return *text == ' ' ? text + 1 : text;
}

static bool is_directive(const char *text)
{
    static const char *const words[] = {
        "buffer:", "launch:", "expect:", "expect-fault:", "expect-stdout:", "expect-stderr:", "free:"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (starts(text, words[i]) != NULL)
            return true;
    }
    return false;
}

static void collect(test *t, char *text)
{
    for (char *line = text; line != NULL && *line != 0;) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = 0;
        if (strncmp(line, "// ", 3) == 0 && is_directive(line + 3) && t->directive_count < DIRECTIVES)
            t->directives[t->directive_count++] = line + 3;
        line = end != NULL ? end + 1 : NULL;
    }
}

/* After a launch: a fault that nothing expects, and all that was printed. */
static void check_launch(test *t, size_t at)
{
    bool fault_expected = false;
    char out[CAPTURED] = "", err[CAPTURED] = "", message[2 * CAPTURED];
    bool out_expected = false, err_expected = false;
    for (size_t i = at + 1; i < t->directive_count && starts(t->directives[i], "launch:") == NULL; i++) {
        const char *line;
        fault_expected |= starts(t->directives[i], "expect-fault:") != NULL;
        if ((line = starts(t->directives[i], "expect-stdout:")) != NULL) {
            out_expected = true;
            strcat(strcat(out, line), "\n");
        }
        if ((line = starts(t->directives[i], "expect-stderr:")) != NULL) {
            err_expected = true;
            strcat(strcat(err, line), "\n");
        }
    }
    if (t->status != 0 && !fault_expected) {
        snprintf(message, sizeof message, "status %d: %s", t->status, t->detail.text);
        complain(t, t->directives[at], message);
    }
    if (out_expected ? strcmp(out, t->out) != 0 : t->out[0] != 0) {
        snprintf(message, sizeof message, "printed \"%s\"", t->out);
        complain(t, t->directives[at], message);
    }
    if (err_expected && strcmp(err, t->err) != 0) {
        snprintf(message, sizeof message, "wrote to stderr \"%s\"", t->err);
        complain(t, t->directives[at], message);
    }
}

static void obey(test *t, size_t at)
{
    const char *directive = t->directives[at], *text;
    if ((text = starts(directive, "buffer:")) != NULL) {
        make_buffer(t, directive, text);
    } else if ((text = starts(directive, "launch:")) != NULL) {
        run(t, directive, text);
        check_launch(t, at);
    } else if ((text = starts(directive, "expect:")) != NULL) {
        expect(t, directive, text);
    } else if ((text = starts(directive, "expect-fault:")) != NULL) {
        expect_fault(t, directive, text);
    } else if ((text = starts(directive, "free:")) != NULL) {
        buffer *freed = buffer_named(t, text);
        if (freed != NULL) {
            em_heap_release(freed->range);
            freed->range = NULL;
        } else {
            complain(t, directive, "no such buffer");
        }
    }
}

static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(1, *length + 1);
    *length = text != NULL ? fread(text, 1, *length, file) : 0;
    fclose(file);
    return text;
}

static int run_file(const char *path)
{
    test *t = calloc(1, sizeof *t);
    size_t length = 0;
    char *text = read_file(path, &length);
    t->path = path;
    if (text == NULL || em_module_load(text, length, &LIMITS, &t->module, &t->detail) != 0) {
        complain(t, "load", text == NULL ? "cannot be read" : t->detail.text);
    } else {
        collect(t, text);
        for (size_t i = 0; i < t->directive_count; i++)
            obey(t, i);
        if (t->directive_count == 0)
            complain(t, "directives", "there are none");
        em_module_unload(t->module);
    }
    for (size_t i = 0; i < t->buffer_count; i++) {
        if (t->buffers[i].range != NULL)
            em_heap_release(t->buffers[i].range);
    }
    const int failures = t->failures;
    free(text);
    free(t);
    return failures;
}

int main(int count, char **paths)
{
    int passed = 0, failed = 0;
    for (int i = 1; i < count; i++) {
        if (run_file(paths[i]) == 0)
            passed++;
        else
            failed++;
    }
    em_workers_stop();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0 || passed == 0;
}
