/* How long parsing takes: ./bench_frontend FILE... The aim is 1 ms or less for 1,000 lines of ordinary PTX. */
#include <time.h>

#include "check.h"

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

int main(int count, char **paths)
{
    for (int i = 1; i < count; i++) {
        size_t length;
        char *text = read_file(paths[i], &length);
        double lines = 0, best = 1e9;
        for (size_t at = 0; at < length; at++)
            lines += text[at] == '\n';
        for (int round = 0; round < 20; round++) {
            ptx_error error;
            const double start = now();
            ptx_module *module = ptx_parse(text, length, &error);
            const double took = now() - start;
            EXPECT(module != NULL);
            ptx_module_free(module);
            best = took < best ? took : best;
        }
        printf("%-60s %7.0f lines %9.3f ms %7.3f ms for 1,000 lines\n", paths[i], lines, best, best / lines * 1e3);
        free(text);
    }
    return report();
}
