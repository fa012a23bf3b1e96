/* Measures the engine: lane instructions, threads and floating-point operations a second, and the cost of a launch.
 *
 *     CUDA_CORE_EMULATOR_WORKERS=1 bench bench.ptx [only what has this in its name]
 *
 * Time is processor time, so the figures are those of one core, whatever else the machine does.
 * Results are checked: a figure is printed only of a kernel that computed what it should. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emulator.h"

static const em_limits LIMITS = {.ordinal = 0, .cc_major = 8, .cc_minor = 0, .multiprocessors = 16};
static em_module *module;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    char *text = malloc(1 << 20);
    *length = text != NULL ? fread(text, 1, 1 << 20, file) : 0;
    fclose(file);
    return text;
}

/* Runs a launch until a quarter of a second has gone by; the best time of one. */
static double best_of(const em_launch *launch)
{
    double best = INFINITY;
    em_detail detail;
    for (const double start = now(); now() - start < 0.25;) {
        const double before = now();
        if (em_run(launch, &detail) != 0) {
            printf("%s\n", detail.text);
            exit(1);
        }
        const double took = now() - before;
        best = took < best ? took : best;
    }
    return best;
}

static em_launch launch_of(const char *name, uint32_t grid_x, uint32_t grid_y, uint32_t block_x, uint32_t block_y,
                           const void *parameters)
{
    em_launch launch = {.kernel = em_module_kernel(module, name),
                        .grid = {grid_x, grid_y, 1},
                        .block = {block_x, block_y, 1},
                        .parameters = parameters,
                        .limits = LIMITS};
    if (launch.kernel == NULL) {
        printf("no kernel '%s'\n", name);
        exit(1);
    }
    return launch;
}

static float *floats(size_t count, em_range **range)
{
    *range = em_heap_allocate(count * sizeof(float), 256, EM_DEVICE, 0);
    float *made = (float *)(uintptr_t)(*range)->base;
    for (size_t i = 0; i < count; i++)
        made[i] = (float)(i % 7);
    return made;
}

static void check(const char *what, double got, double wanted)
{
    if (fabs(got - wanted) <= 1e-4 * fabs(wanted))
        return;
    printf("%s computed %g, not %g\n", what, got, wanted);
    exit(1);
}

static void multiply_add(void)
{
    enum { ROUNDS = 1000, UNROLLED = 64, BLOCKS = 16, THREADS = 256 };
    em_range *range;
    const float *out = floats((size_t)BLOCKS * THREADS, &range);
    struct {
        uint64_t out;
        int32_t rounds;
    } parameters = {range->base, ROUNDS};
    const em_launch launch = launch_of("madd", BLOCKS, 1, THREADS, 1, &parameters);
    const double seconds = best_of(&launch);
    check("madd", (double)out[5], 1000.0);
    printf("multiply-add loop    %8.2f G lane instructions/s\n",
           1e-9 * BLOCKS * THREADS * (double)ROUNDS * (UNROLLED + 3) / seconds);
    em_heap_release(range);
}

static void saxpy(void)
{
    enum { COUNT = 1 << 20, THREADS = 256 };
    em_range *x_range, *y_range;
    const float *x = floats(COUNT, &x_range);
    float *y = floats(COUNT, &y_range);
    struct {
        int32_t n;
        float a;
        uint64_t x, y;
    } parameters = {COUNT - 5, 0.0f, x_range->base, y_range->base};
    const em_launch launch = launch_of("saxpy", COUNT / THREADS, 1, THREADS, 1, &parameters);
    const double seconds = best_of(&launch);
    parameters.a = 2.0f;
    y[COUNT - 6] = 1.0f;
    best_of(&launch);
    if (y[COUNT - 6] <= 1.0f || y[COUNT - 5] != (float)((COUNT - 5) % 7) || x[1] != 1.0f)
        check("saxpy", (double)y[COUNT - 6], INFINITY);
    printf("saxpy                %8.1f M threads/s\n", 1e-6 * COUNT / seconds);
    em_heap_release(x_range);
    em_heap_release(y_range);
}

static void matrix_product(const char *name, uint32_t tile)
{
    enum { SIDE = 256 };
    em_range *ranges[3];
    const float *a = floats((size_t)SIDE * SIDE, &ranges[0]), *b = floats((size_t)SIDE * SIDE, &ranges[1]),
                *c = floats((size_t)SIDE * SIDE, &ranges[2]);
    struct {
        uint64_t a, b, c;
        int32_t n;
    } parameters = {ranges[0]->base, ranges[1]->base, ranges[2]->base, SIDE};
    const em_launch launch = launch_of(name, SIDE / tile, SIDE / tile, tile, tile, &parameters);
    const double seconds = best_of(&launch);
    double wanted = 0;
    for (size_t k = 0; k < SIDE; k++)
        wanted += (double)a[17 * SIDE + k] * (double)b[k * SIDE + 33];
    check(name, (double)c[17 * SIDE + 33], wanted);
    printf("%-20s %8.2f GFLOP/s\n", name, 2e-9 * SIDE * SIDE * (double)SIDE / seconds);
    for (int i = 0; i < 3; i++)
        em_heap_release(ranges[i]);
}

static void mandelbrot(void)
{
    enum { SIDE = 256, MOST = 500 };
    em_range *range = em_heap_allocate(sizeof(uint32_t) * SIDE * SIDE, 256, EM_DEVICE, 0);
    const uint32_t *image = (const uint32_t *)(uintptr_t)range->base;
    struct {
        uint64_t image;
        int32_t side, most;
    } parameters = {range->base, SIDE, MOST};
    const em_launch launch = launch_of("mandelbrot", SIDE / 16, SIDE / 16, 16, 16, &parameters);
    const double seconds = best_of(&launch);
    double rounds = 0;
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
        rounds += image[i];
    check("mandelbrot", (double)image[SIDE * (SIDE + 1) / 2], MOST);
    printf("Mandelbrot           %8.1f M rounds/s\n", 1e-6 * rounds / seconds);
    em_heap_release(range);
}

static void empty_launch(uint32_t threads)
{
    const em_launch launch = launch_of("nothing", 1, 1, threads, 1, NULL);
    printf("launch, 1 block of %-4u %5.2f us\n", threads, 1e6 * best_of(&launch));
}

static void load(const char *text, size_t length)
{
    size_t lines = 0;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    em_module *loaded;
    em_detail detail;
    double best = INFINITY;
    for (int i = 0; i < 20; i++) {
        const double before = now();
        if (em_module_load(text, length, &LIMITS, &loaded, &detail) != 0) {
            printf("%s\n", detail.text);
            exit(1);
        }
        for (size_t k = 0; k < em_module_kernel_count(loaded); k++)
            em_kernel_check(em_module_kernel_at(loaded, k), &detail);
        const double took = now() - before;
        best = took < best ? took : best;
        em_module_unload(loaded);
    }
    printf("load and lower       %8.3f ms for 1000 lines\n", 1e6 * best / (double)lines);
}

int main(int count, char **arguments)
{
    size_t length = 0;
    char *text = count > 1 ? read_file(arguments[1], &length) : NULL;
    em_detail detail = {0};
    if (text == NULL || em_module_load(text, length, &LIMITS, &module, &detail) != 0) {
        printf("usage: bench bench.ptx\n%s\n", detail.text);
        return 1;
    }
    const char *only = count > 2 ? arguments[2] : "";
    if (strstr("multiply-add", only) != NULL)
        multiply_add();
    if (strstr("saxpy", only) != NULL)
        saxpy();
    if (strstr("matmul16", only) != NULL)
        matrix_product("matmul16", 16);
    if (strstr("matmul32", only) != NULL)
        matrix_product("matmul32", 32);
    if (strstr("mandelbrot", only) != NULL)
        mandelbrot();
    if (strstr("launch", only) != NULL) {
        empty_launch(32);
        empty_launch(256);
    }
    if (strstr("load", only) != NULL)
        load(text, length);
    em_module_unload(module);
    em_workers_stop();
    free(text);
    return 0;
}
