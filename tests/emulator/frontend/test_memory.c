/* Every allocation fails once: the parser and the dump say so, and give back what they have (build with
 * -Db_sanitize=address to see the latter).
 *
 *   test_memory FILE... */
#include "check.h"

static long until_failure = -1; /* allocations that still succeed; -1: all */

static int fails(void)
{
    if (until_failure < 0)
        return 0;
    return until_failure-- == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

static void parsing(const char *text, size_t length)
{
    long rounds = 0;
    for (ptx_module *module = NULL; module == NULL; rounds++) {
        ptx_error error;
        until_failure = rounds;
        module = ptx_parse(text, length, &error);
        const int failed = until_failure < 0;
        until_failure = -1;
        EXPECT(failed == (module == NULL));
        EXPECT(module != NULL || (error.out_of_memory && strcmp(error.message, "out of memory") == 0));
        ptx_module_free(module);
        if (module != NULL)
            break;
    }
    EXPECT(rounds > 10);
}

static void dumping(const char *text, size_t length)
{
    ptx_error error;
    ptx_module *module = ptx_parse(text, length, &error);
    EXPECT(module != NULL);
    long rounds = 0;
    for (char *dump = NULL; dump == NULL && module != NULL; rounds++) {
        until_failure = rounds;
        dump = ptx_dump(module);
        const int failed = until_failure < 0;
        until_failure = -1;
        EXPECT(failed == (dump == NULL));
        free(dump);
        if (dump != NULL)
            break;
    }
    EXPECT(rounds > 3);
    ptx_module_free(module);
}

int main(int count, char **paths)
{
    EXPECT(count > 1);
    for (int i = 1; i < count; i++) {
        size_t length;
        char *text = read_file(paths[i], &length);
        parsing(text, length);
        dumping(text, length);
        free(text);
    }
    return report();
}
