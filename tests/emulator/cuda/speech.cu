// printf, assert, malloc: what a kernel does beyond memory.
// buffer: out u32 64
// launch: hello grid=2 block=2 args=u32:5
// expect-stdout: block 0 thread 0: 5 -7 x 3.50 2.500000e+00 text %
// expect-stdout: block 0 thread 1: 6 -7 x 3.50 2.500000e+00 text %
// expect-stdout: block 1 thread 0: 5 -7 x 3.50 2.500000e+00 text %
// expect-stdout: block 1 thread 1: 6 -7 x 3.50 2.500000e+00 text %
// launch: formats grid=1 block=1
// expect-stdout: [   42] [42   ] [00042] [+42] [2a] [0X2A] [52]
// expect-stdout: [  3.142] [3.14159] [1e+10] [ab    ] [   abc]
// expect-stdout: [-9223372036854775808] [18446744073709551615] [0x10] [(nil)]
// expect-stdout: [c] [255] [  7|007]
// expect-stdout: no arguments, 0 and 3
// launch: allocates grid=1 block=32 args=out
// expect: out = iota 0 1 32
// launch: frees_twice grid=1 block=1
// expect-fault: 700 free of 0x
// launch: overruns grid=1 block=1
// expect-fault: 700 0 bytes past the end of
// launch: checks grid=2 block=4 args=u32:9
// launch: checks grid=1 block=4 args=u32:2
// expect-fault: 710 device-side assertion `threadIdx.x < n` failed at speech.cu
// expect-stderr: speech.cu:75: void checks(int): block: [0,0,0], thread: [2,0,0] Assertion `threadIdx.x < n` failed.
// expect-stderr: speech.cu:75: void checks(int): block: [0,0,0], thread: [3,0,0] Assertion `threadIdx.x < n` failed.
// launch: traps grid=1 block=4
// expect-fault: 719 trap instruction
// expect-fault: 719 speech.cu:81
#include <assert.h>
#include <stdio.h>

extern "C" __global__ void hello(int n)
{
    printf("block %d thread %d: %d %ld %c %.2f %e %s %%\n", blockIdx.x, threadIdx.x, n + threadIdx.x, -7l, 'x', 3.5, 2.5f,
           "text");
}

extern "C" __global__ void formats()
{
    printf("[%5d] [%-5d] [%05d] [%+d] [%x] [%#X] [%o]\n", 42, 42, 42, 42, 42, 42, 42);
    printf("[%7.3f] [%g] [%g] [%-6s] [%*s]\n", 3.14159265, 3.14159265, 1e10, "ab", 6, "abc");
    printf("[%lld] [%llu] [%p] [%p]\n", -9223372036854775807ll - 1, ~0ull, (void *)16, (void *)0);
    printf("[%c] [%hhu] [%3d|%.*d]\n", 'c', 511, 7, 3, 7);
    int none = printf("no arguments, "), three = printf("%s%s%s", "", "", "");
    printf("%d and %d\n", none, three);
}

extern "C" __global__ void allocates(unsigned *out)
{
    unsigned *own = (unsigned *)malloc((threadIdx.x + 1) * sizeof(unsigned));
    for (unsigned i = 0; i <= threadIdx.x; i++)
        own[i] = i;
    out[threadIdx.x] = own[threadIdx.x];
    free(own);
    void *all = malloc(size_t(1) << 40);
    if (all != NULL)
        out[threadIdx.x] = 12345;
}

extern "C" __global__ void frees_twice()
{
    int *own = (int *)malloc(16);
    own[0] = 1;
    free(own);
    free(own);
}

extern "C" __global__ void overruns()
{
    volatile int *own = (volatile int *)malloc(16);
    own[4] = 1;
}

extern "C" __global__ void checks(int n)
{
    assert(threadIdx.x < n);
}

extern "C" __global__ void traps()
{
    if (threadIdx.x == 2)
        __trap();
}
