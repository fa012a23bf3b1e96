// Structs by value, device functions, recursion, constant memory, math, 64-bit work, Mandelbrot.
// buffer: out f32 64
// launch: structs grid=1 block=4 args=s:0x400000003f800000/0x0000000540400000,out
// expect: out = 6 11 16 21
// launch: constants grid=1 block=8 args=out
// expect: out = 1 4 9 16 1 4 9 16
// buffer: wide u64 32
// launch: factorials grid=1 block=21 args=wide
// expect: wide = 1 1 2 6 24 120 720 5040 40320 362880 3628800 39916800 479001600 6227020800 87178291200 1307674368000 20922789888000 355687428096000 6402373705728000 121645100408832000 2432902008176640000
// launch: math grid=1 block=5 args=out
// expect: out[0] ~ 1e-6 = 0 1 1 0 0
// expect: out[5] ~ 2e-6 = 0.841470985 2.718281828 1.414213562 0.540302306 1
// expect: out[20] ~ 2e-6 = -0.756802495 54.59815 2.236067977 -0.653643621 8
// buffer: dbl f64 16
// launch: doubles grid=1 block=4 args=dbl
// expect: dbl ~ 1e-14 = 0 1 0 0.84147098480789650 2.7182818284590451 0.69314718055994529 0.90929742682568171 7.3890560989306504 1.0986122886681098 0.14112000805986721 20.085536923187668 1.3862943611198906
// buffer: image u32 1024
// launch: mandelbrot grid=2,2 block=16,16 args=image,u32:32,u32:100
// expect: image[0] = 1
// expect: image[528] = 100 100 100 100 100
// expect: image[31] = 2
// launch: steps grid=1 block=32 args=image
// expect: image = 0 0 1 7 2 5 8 16 3 19 6 14 9 9 17 17 4 12 20 20 7 7 15 15 10 23 10 111 18 18 18 106
// launch: switches grid=1 block=10 args=image
// expect: image = 7 18 31 46 63 82 103 126 151 178
// launch: points grid=1 block=8 args=image
// expect: image = 0 3 4 9 8 15 12 21
// launch: bits grid=1 block=1 args=image
// expect: image = 0 24 0x80000000 8 0x0000ff00 0x04030201
struct pair {
    float a, b;
};
struct given {
    pair p;
    float c;
    int n;
};

__device__ __noinline__ float weigh(given g, int i)
{
    return g.p.a + g.p.b + g.c + (float)(i * g.n);
}

extern "C" __global__ void structs(given g, float *out)
{
    out[threadIdx.x] = weigh(g, threadIdx.x);
}

__constant__ float squares[4] = {1, 4, 9, 16};
extern "C" __global__ void constants(float *out)
{
    out[threadIdx.x] = squares[threadIdx.x % 4];
}

__device__ __noinline__ unsigned long long factorial(int n)
{
    return n < 2 ? 1 : n * factorial(n - 1);
}

extern "C" __global__ void factorials(unsigned long long *out)
{
    out[threadIdx.x] = factorial(threadIdx.x);
}

extern "C" __global__ void math(float *out)
{
    float x = threadIdx.x;
    out[threadIdx.x * 5 + 0] = sinf(x);
    out[threadIdx.x * 5 + 1] = expf(x);
    out[threadIdx.x * 5 + 2] = sqrtf(x + 1);
    out[threadIdx.x * 5 + 3] = cosf(x);
    out[threadIdx.x * 5 + 4] = powf(x, 1.5f);
    if (threadIdx.x == 0) {
        out[2] = 1;
        out[3] = out[4] = 0;
    }
}

extern "C" __global__ void doubles(double *out)
{
    double x = threadIdx.x;
    out[threadIdx.x * 3 + 0] = sin(x);
    out[threadIdx.x * 3 + 1] = exp(x);
    out[threadIdx.x * 3 + 2] = log(x + 1);
}

extern "C" __global__ void mandelbrot(unsigned *image, int side, int most)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float cr = -2.0f + 3.0f * x / side, ci = -1.5f + 3.0f * y / side, zr = 0, zi = 0;
    int n = 0;
    while (n < most && zr * zr + zi * zi <= 4.0f) {
        float t = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = t;
        n++;
    }
    image[y * side + x] = n;
}

// Collatz: loops of very different length in one warp.
extern "C" __global__ void steps(unsigned *out)
{
    unsigned n = threadIdx.x, count = 0;
    while (n > 1) {
        n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        count++;
    }
    out[threadIdx.x] = count;
}

extern "C" __global__ void switches(unsigned *out)
{
    unsigned sum = 7;
    for (unsigned i = 0; i < threadIdx.x; i++) {
        switch (i % 3) {
        case 0:
            sum += 11;
            break;
        case 1:
            sum += 13;
            break;
        default:
            sum += 15;
        }
        sum += i / 3 * 6;
    }
    out[threadIdx.x] = sum;
}

typedef unsigned operation(unsigned);
__device__ unsigned twice(unsigned x)
{
    return 2 * x;
}
__device__ unsigned thrice(unsigned x)
{
    return 3 * x;
}
__device__ operation *operations[2] = {twice, thrice};
extern "C" __global__ void points(unsigned *out)
{
    out[threadIdx.x] = operations[threadIdx.x % 2](threadIdx.x);
}

extern "C" __global__ void bits(unsigned *out)
{
    out[0] = __popc(out[0]);
    out[1] = __clz(255);
    out[2] = __brev(1);
    out[3] = __ffs(128);
    out[4] = __byte_perm(0xff, 0, 0x4404);
    out[5] = __byte_perm(0x01020304, 0, 0x0123);
}
