/* The functions that device code calls and no PTX defines: vprintf, malloc, free, __assertfail. */
#include <cuda.h>
#include <stdarg.h>
#include <stdlib.h>

#include "engine.h"

/* ---- device strings ---------------------------------------------------------------------------------------------- */

/* Length of the string at a generic address, at most `limit`; -1: it runs out of accessible memory. */
static long string_length(em_warp *warp, unsigned lane, uint64_t address, size_t limit)
{
    for (size_t length = 0; length < limit; length++) {
        const unsigned char *byte = em_reach(warp, lane, address + length, 1, EM_READ);
        if (byte == NULL)
            return -1;
        if (*byte == 0)
            return (long)length;
    }
    return (long)limit;
}

static const char *string_at(em_warp *warp, unsigned lane, uint64_t address, char *buffer, size_t size)
{
    const long length = string_length(warp, lane, address, size - 1);
    if (length < 0)
        return "(not readable)";
    for (long i = 0; i < length; i++)
        buffer[i] = (char)*em_reach(warp, lane, address + (uint64_t)i, 1, EM_READ);
    buffer[length] = 0;
    return buffer;
}

/* ---- text under construction
 * ------------------------------------------------------------------------------------------ */

typedef struct text {
    char *bytes;
    size_t length, capacity;
    bool failed;
} text;

static bool reserve(text *out, size_t more)
{
    if (out->length + more <= out->capacity)
        return true;
    const size_t capacity = 2 * (out->length + more);
    char *grown = realloc(out->bytes, capacity);
    if (grown == NULL) {
        out->failed = true;
        return false;
    }
    out->bytes = grown;
    out->capacity = capacity;
    return true;
}

static void append(text *out, const char *bytes, size_t length)
{
    if (length == 0 || !reserve(out, length)) /* of nothing, `bytes` may be NULL, which memcpy may not get */
        return;
    memcpy(out->bytes + out->length, bytes, length);
    out->length += length;
}

/* ---- vprintf
 * ------------------------------------------------------------------------------------------------------------ */

/* One call of printf by one thread. Arguments lie at `arguments`, each aligned to its size. */
typedef struct call_state {
    em_warp *warp;
    unsigned lane;
    uint64_t arguments, offset;
    bool unreadable;
    int count;
} call_state;

static uint64_t next_argument(call_state *state, unsigned size)
{
    state->offset = (state->offset + size - 1) & ~(uint64_t)(size - 1);
    const unsigned char *from = em_reach(state->warp, state->lane, state->arguments + state->offset, size, EM_READ);
    uint64_t value = 0;
    if (from == NULL)
        state->unreadable = true;
    else
        memcpy(&value, from, size);
    state->offset += size;
    return value;
}

/* A conversion: what stands between % and the letter, with `*` already replaced by numbers. */
typedef struct conversion {
    char flags[8];
    int width, precision; /* -1: not given */
    unsigned size;        /* bytes of an integer argument */
    char letter;
} conversion;

static int number_or_star(const char **format, call_state *state)
{
    if (**format == '*') {
        (*format)++;
        state->count++;
        return (int)(int32_t)next_argument(state, 4);
    }
    int number = 0;
    while (**format >= '0' && **format <= '9')
        number = number < 100000 ? number * 10 + (*(*format)++ - '0') : (++*format, number);
    return number;
}

static unsigned integer_size(const char **format)
{
    unsigned size = 4;
    for (;; (*format)++) {
        switch (**format) {
        case 'h':
            size = size == 2 || size == 1 ? 1 : 2;
            break;
        case 'l':
        case 'j':
        case 'z':
        case 't':
        case 'L':
        case 'q':
            size = 8;
            break;
        default:
            return size;
        }
    }
}

/* Reads a conversion behind its %; false: the format ends within it. */
static bool read_conversion(const char **format, call_state *state, conversion *made)
{
    unsigned flags = 0;
    *made = (conversion){.width = -1, .precision = -1};
    while (**format != 0 && strchr("-+ #0", **format) != NULL) {
        if (flags < sizeof made->flags - 1 && strchr(made->flags, **format) == NULL)
            made->flags[flags++] = **format;
        (*format)++;
    }
    if (**format == '*' || (**format >= '1' && **format <= '9'))
        made->width = number_or_star(format, state);
    if (made->width < -1) { /* a negative width from `*` is the flag - and its size */
        made->width = -made->width;
        if (flags < sizeof made->flags - 1)
            made->flags[flags] = '-';
    }
    if (**format == '.') {
        (*format)++;
        made->precision = number_or_star(format, state);
    }
    made->size = integer_size(format);
    made->letter = **format;
    if (made->letter == 0)
        return false;
    (*format)++;
    return true;
}

static void host_format(const conversion *made, const char *length, char letter, char out[48])
{
    int at = snprintf(out, 48, "%%%s", made->flags);
    if (made->width >= 0)
        at += snprintf(out + at, (size_t)(48 - at), "%d", made->width);
    if (made->precision >= 0)
        at += snprintf(out + at, (size_t)(48 - at), ".%d", made->precision);
    snprintf(out + at, (size_t)(48 - at), "%s%c", length, letter);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the format is made here, of parts that were checked */
static void append_formatted(text *out, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int needed = vsnprintf(NULL, 0, format, arguments);
    if (needed >= 0 && reserve(out, (size_t)needed + 1))
        out->length += (size_t)vsnprintf(out->bytes + out->length, (size_t)needed + 1, format, again);
    va_end(again);
    va_end(arguments);
}

static void convert_integer(text *out, const conversion *made, uint64_t bits)
{
    char format[48];
    host_format(made, "ll", made->letter, format);
    if (made->letter == 'd' || made->letter == 'i') {
        long long value = (long long)bits;
        value = made->size == 4   ? (int32_t)bits
                : made->size == 2 ? (int16_t)bits
                : made->size == 1 ? (int8_t)bits
                                  : value;
        append_formatted(out, format, value);
    } else {
        unsigned long long value = bits;
        value = made->size < 8 ? value & ((1ull << (8 * made->size)) - 1) : value;
        append_formatted(out, format, value);
    }
}

static void convert_string(text *out, const conversion *made, call_state *state, uint64_t address)
{
    enum { LONGEST = 1 << 20 };
    char format[48];
    const long length = string_length(state->warp, state->lane, address, LONGEST);
    if (address == 0 || length < 0) {
        append(out, address == 0 ? "(null)" : "(not readable)", address == 0 ? 6 : 14);
        return;
    }
    char *copy = malloc((size_t)length + 1);
    if (copy == NULL) {
        out->failed = true;
        return;
    }
    string_at(state->warp, state->lane, address, copy, (size_t)length + 1);
    host_format(made, "", 's', format);
    append_formatted(out, format, copy);
    free(copy);
}

static void convert(text *out, const conversion *made, call_state *state)
{
    char format[48];
    state->count++;
    switch (made->letter) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        convert_integer(out, made, next_argument(state, made->size == 8 ? 8 : 4));
        break;
    case 'c':
        host_format(made, "", 'c', format);
        append_formatted(out, format, (int)next_argument(state, 4));
        break;
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        host_format(made, "", made->letter, format);
        append_formatted(out, format, em_double_of(next_argument(state, 8)));
        break;
    case 'p':
        host_format(made, "", 'p', format);
        append_formatted(out, format, (void *)(uintptr_t)next_argument(state, 8));
        break;
    case 's':
        convert_string(out, made, state, next_argument(state, 8));
        break;
    default: /* as CUDA: what it does not know it prints as it stands */
        state->count--;
        append(out, "%", 1);
        append(out, &made->letter, 1);
        break;
    }
}
#pragma GCC diagnostic pop

static void format_text(text *out, const char *format, call_state *state)
{
    while (*format != 0) {
        const size_t plain = strcspn(format, "%");
        append(out, format, plain);
        format += plain;
        if (*format == 0)
            break;
        format++;
        if (*format == '%') {
            append(out, "%", 1);
            format++;
            continue;
        }
        conversion made;
        if (!read_conversion(&format, state, &made))
            break;
        convert(out, &made, state);
    }
}

static em_status vprintf_builtin(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask,
                                 const em_call *call)
{
    text out = {0};
    EM_EACH_LANE_OF(mask)
    {
        call_state state = {.warp = warp, .lane = (unsigned)lane};
        uint64_t format_address;
        em_argument_read(call, rows, warp, (unsigned)lane, 0, &format_address, 8);
        em_argument_read(call, rows, warp, (unsigned)lane, 1, &state.arguments, 8);
        const long length = string_length(warp, (unsigned)lane, format_address, 1 << 20);
        int32_t result = -1;
        if (length >= 0) {
            char *format = malloc((size_t)length + 1);
            if (format != NULL) {
                string_at(warp, (unsigned)lane, format_address, format, (size_t)length + 1);
                out.length = 0;
                format_text(&out, format, &state);
                free(format);
            }
            if (format == NULL || out.failed || !em_output_write(warp->block->grid, warp->block, out.bytes, out.length))
                result = -2;
            else
                result = state.count;
        }
        if (state.unreadable) {
            free(out.bytes);
            return em_raise(insn, warp, 1u << lane, CUDA_ERROR_ILLEGAL_ADDRESS,
                            "printf: the format asks for more arguments than there are");
        }
        em_result_write(call, rows, warp, (unsigned)lane, &result, sizeof result);
    }
    free(out.bytes);
    return EM_GO;
}

/* ---- malloc and free
 * -------------------------------------------------------------------------------------------------------- */

static const char heap_mark[] = "device malloc";
static _Atomic uint64_t heap_used;

static em_status malloc_builtin(__attribute__((unused)) const em_insn *insn, unsigned char *rows, em_warp *warp,
                                em_mask mask, const em_call *call)
{
    const em_launch *launch = warp->block->grid->launch;
    EM_EACH_LANE_OF(mask)
    {
        uint64_t size, address = 0;
        em_argument_read(call, rows, warp, (unsigned)lane, 0, &size, 8);
        const uint64_t used = atomic_load(&heap_used);
        if (size != 0 && size <= launch->malloc_limit && used <= launch->malloc_limit - size) {
            em_range *range = em_heap_allocate(size, 16, EM_DEVICE, launch->limits.ordinal);
            if (range != NULL) {
                atomic_fetch_add(&heap_used, size);
                range->owner = (void *)(uintptr_t)heap_mark;
                address = range->base;
            }
        }
        em_result_write(call, rows, warp, (unsigned)lane, &address, sizeof address);
    }
    return EM_GO;
}

static em_status free_builtin(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask,
                              const em_call *call)
{
    EM_EACH_LANE_OF(mask)
    {
        uint64_t address;
        em_argument_read(call, rows, warp, (unsigned)lane, 0, &address, 8);
        if (address == 0)
            continue;
        em_range *range = em_heap_find(address);
        if (range == NULL || range->base != address || range->owner != heap_mark || !atomic_load(&range->live))
            return em_raise(insn, warp, 1u << lane, CUDA_ERROR_ILLEGAL_ADDRESS,
                            "free of 0x%llx, which malloc on the device did not return or which was freed already",
                            (unsigned long long)address);
        atomic_fetch_sub(&heap_used, range->size);
        em_heap_release(range);
    }
    return EM_GO;
}

/* ---- assert ------------------------------------------------------------------------------------------------------ */

static em_status assertfail_builtin(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask,
                                    const em_call *call)
{
    char message[512] = "", file[512] = "", function[512] = "";
    const em_block *block = warp->block;
    EM_EACH_LANE_OF(mask)
    {
        uint64_t addresses[3];
        uint32_t line;
        em_argument_read(call, rows, warp, (unsigned)lane, 0, &addresses[0], 8);
        em_argument_read(call, rows, warp, (unsigned)lane, 1, &addresses[1], 8);
        em_argument_read(call, rows, warp, (unsigned)lane, 2, &line, 4);
        em_argument_read(call, rows, warp, (unsigned)lane, 3, &addresses[2], 8);
        const char *said = string_at(warp, (unsigned)lane, addresses[0], message, sizeof message);
        const char *where = string_at(warp, (unsigned)lane, addresses[1], file, sizeof file);
        const char *whose = string_at(warp, (unsigned)lane, addresses[2], function, sizeof function);
        fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", where, line, whose,
                block->ctaid[0], block->ctaid[1], block->ctaid[2],
                (unsigned)em_special_value(warp, PTX_SPECIAL_TID, 0, (unsigned)lane),
                (unsigned)em_special_value(warp, PTX_SPECIAL_TID, 1, (unsigned)lane),
                (unsigned)em_special_value(warp, PTX_SPECIAL_TID, 2, (unsigned)lane), said);
    }
    fflush(stderr);
    return em_raise(insn, warp, mask, CUDA_ERROR_ASSERT, "device-side assertion `%s` failed at %s (%s)", message, file,
                    function);
}

static const struct {
    const char *name;
    em_builtin *builtin;
} builtins[] = {
    {"vprintf", vprintf_builtin},
    {"malloc", malloc_builtin},
    {"free", free_builtin},
    {"__assertfail", assertfail_builtin},
};

em_builtin *em_builtin_named(const char *name)
{
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++) {
        if (strcmp(builtins[i].name, name) == 0)
            return builtins[i].builtin;
    }
    return NULL;
}
