/* Damaged PTX: cut short, bytes changed, pieces moved and put in. The parser gives a module or an error, never anything
 * else (build with -Db_sanitize=address,undefined to see it), and what it takes it can dump and parse again.
 *
 *   test_mutations ROUNDS SEED FILE...       the same arguments do the same work */
#include "check.h"

static const char *const pieces[] = {
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ",",
    ";",
    ":",
    "|",
    "!",
    "-",
    "+",
    "@",
    "%",
    "%r1",
    "%p1",
    "%rd1",
    "_",
    ".reg",
    ".b32",
    ".global",
    ".param",
    ".pred",
    "0",
    "1",
    "0x7fffffff",
    "18446744073709551615",
    "0f3F800000",
    "1.0",
    "bra",
    "call",
    "ret",
    "mov.u32",
    "{%r1,%r2}",
    "[%rd1+4]",
    ".v4",
    ".align",
    "//",
    "/*",
    "\"",
    "\n",
    ".func",
    ".entry",
    ".extern",
    "<4294967295>",
    "generic(",
    "$L__BB0_1",
    ".branchtargets",
    ".callprototype",
    ".loc 1 2 3",
    ".section",
    "=",
    "={1,{2}}",
};

static uint64_t state;

static size_t below(size_t limit) /* xorshift: the same on every machine */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return limit == 0 ? 0 : (size_t)(state >> 16) % limit;
}

typedef struct file {
    char *text;
    size_t length;
} file;

static size_t damage(char *text, size_t length, const file *other)
{
    const size_t at = below(length);
    size_t size;
    switch (below(5)) {
    case 0:
        text[at] = (char)below(256);
        return length;
    case 1: /* out */
        size = below(40);
        if (at + size >= length)
            return length;
        memmove(text + at, text + at + size, length - at - size);
        return length - size;
    case 2: /* moved */
        size = below(200);
        const size_t from = below(length);
        if (at + size < length && from + size < length)
            memmove(text + at, text + from, size);
        return length;
    case 3: /* from another file */
        size = below(300);
        const size_t start = below(other->length);
        if (at + size < length && start + size < other->length)
            memcpy(text + at, other->text + start, size);
        return length;
    default: {
        const char *piece = pieces[below(sizeof pieces / sizeof pieces[0])];
        size = strlen(piece);
        memmove(text + at + size, text + at, length - at);
        memcpy(text + at, piece, size);
        return length + size;
    }
    }
}

static void check(const char *text, size_t length)
{
    ptx_error error;
    ptx_module *module = parse_bytes(text, length, &error);
    if (module == NULL) {
        EXPECT(error.message[0] != '\0' && strlen(error.message) < sizeof error.message);
        EXPECT(strlen(error.excerpt) < sizeof error.excerpt && !error.out_of_memory);
        return;
    }
    char *once = ptx_dump(module);
    ptx_module *again = parse_bytes(once, strlen(once), &error);
    char *twice = again == NULL ? NULL : ptx_dump(again);
    if (twice == NULL || strcmp(once, twice) != 0) {
        failures++;
        printf("the dump %s: %u:%u: %s\n%s\nof:\n%.*s\n", again == NULL ? "does not parse" : "changes when parsed",
               error.line, error.column, error.message, error.excerpt, (int)length, text);
    }
    free(once);
    free(twice);
    ptx_module_free(again);
    ptx_module_free(module);
}

int main(int count, char **arguments)
{
    enum { MOST_FILES = 32, FIRST = 3, MOST_INSERTED = 256 };
    file files[MOST_FILES];
    size_t file_count = 0;
    if (count <= FIRST)
        return 2;
    state = strtoull(arguments[2], NULL, 10) * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (int i = FIRST; i < count && file_count < MOST_FILES; i++, file_count++)
        files[file_count].text = read_file(arguments[i], &files[file_count].length);
    for (long round = strtol(arguments[1], NULL, 10); round > 0; round--) {
        const file *chosen = &files[below(file_count)];
        size_t length = chosen->length;
        char *text = malloc(length + MOST_INSERTED);
        if (text == NULL)
            return 2;
        memcpy(text, chosen->text, length);
        if (below(8) == 0)
            length = below(length);
        for (size_t changes = 1 + below(4); changes > 0 && length > 0; changes--)
            length = damage(text, length, &files[below(file_count)]);
        check(text, length);
        free(text);
    }
    for (size_t i = 0; i < file_count; i++)
        free(files[i].text);
    return report();
}
