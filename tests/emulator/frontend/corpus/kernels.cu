// Ordinary kernels: arithmetic, memory, calls, local arrays, printf, malloc, assert.
#include <cstdio>
#include <cassert>

struct P3 {
    float x, y, z;
    char tag;
};
__constant__ float coef[16] = {1.f, 2.f, 3.f};
__constant__ P3 origin = {1, 2, 3, 'a'};
__device__ int counter;
__device__ const int *where_is = &counter;
__device__ double table[3][4] = {{1, 2}, {3, 4}, {5, 6, 7, 8}};

__managed__ int managed_value = 42;
__device__ __noinline__ float poly(float x, int n)
{
    float r = 0;
    for (int i = 0; i < n; i++)
        r = r * x + coef[i];
    return r;
}
__device__ __noinline__ P3 shift(P3 p, float d)
{
    p.x += d;
    p.y -= d;
    p.z *= d;
    return p;
}
__device__ __noinline__ int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
typedef float (*op_t)(float, float);
__device__ __noinline__ float f_add(float a, float b)
{
    return a + b;
}
__device__ __noinline__ float f_mul(float a, float b)
{
    return a * b;
}
__device__ __noinline__ float f_pow(float a, float b)
{
    return powf(a, b);
}
__device__ op_t ops[] = {f_add, f_mul, f_pow};
template <class T> __global__ void saxpy(T a, const T *x, T *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
template __global__ void saxpy<float>(float, const float *, float *, int);
template __global__ void saxpy<double>(double, const double *, double *, int);
template __global__ void saxpy<int>(int, const int *, int *, int);
template __global__ void saxpy<long long>(long long, const long long *, long long *, int);
template __global__ void saxpy<short>(short, const short *, short *, int);
template __global__ void saxpy<unsigned char>(unsigned char, const unsigned char *, unsigned char *, int);
__global__ void __launch_bounds__(256, 2) tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float sa[16][16], sb[16][17];
    int x = threadIdx.x, y = threadIdx.y;
    float s = 0;
    for (int t = 0; t < n / 16; t++) {
        sa[y][x] = a[(blockIdx.y * 16 + y) * n + t * 16 + x];
        sb[y][x] = b[(t * 16 + y) * n + blockIdx.x * 16 + x];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++)
            s += sa[y][k] * sb[k][x];
        __syncthreads();
    }
    c[(blockIdx.y * 16 + y) * n + blockIdx.x * 16 + x] = s;
}
extern __shared__ unsigned char dyn[];
__global__ void reduce(const float *x, float *out, int n)
{
    float *s = (float *)dyn;
    int t = threadIdx.x;
    s[t] = t < n ? x[t] : 0;
    __syncthreads();
    for (int k = blockDim.x / 2; k; k >>= 1) {
        if (t < k)
            s[t] += s[t + k];
        __syncthreads();
    }
    if (!t)
        atomicAdd(out, s[0]);
}
__global__ void hist(const unsigned char *in, unsigned *bins, int n)
{
    __shared__ unsigned h[256];
    h[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(&h[in[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], h[threadIdx.x]);
}
__global__ void mandel(unsigned char *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    float a = 0, b = 0;
    int i = 0;
    while (i < 255 && a * a + b * b < 4) {
        float t = a * a - b * b + x * .01f - 2;
        b = 2 * a * b + y * .01f - 1;
        a = t;
        i++;
    }
    out[y * w + x] = i;
}
__global__ void structs(P3 p, const P3 *q, P3 *r, float *o)
{
    P3 s = shift(p, q->x);
    r[threadIdx.x] = s;
    o[threadIdx.x] = poly(s.x, s.tag & 7) + origin.y;
}
__global__ void calls(int *o, float *f, int k)
{
    o[threadIdx.x] = fib(k + threadIdx.x);
    f[threadIdx.x] = ops[k](f[threadIdx.x], 2.f);
}
__global__ void prints(int n)
{
    printf("thread %d of %d: %f %s\n", threadIdx.x, n, n * .5, "ok");
    assert(n > 0);
    if (n == 77)
        __trap();
}
__global__ void heap(int **p, int n)
{
    int *q = (int *)malloc(n * sizeof(int));
    if (q)
        for (int i = 0; i < n; i++)
            q[i] = i;
    p[threadIdx.x] = q;
    if (n > 100)
        free(q);
    int *z = new int[n];
    delete[] z;
}
__global__ void locals(int *o, int n)
{
    int a[64];
    for (int i = 0; i < 64; i++)
        a[i] = o[i] * n;
    int s = 0;
    for (int i = 0; i < n; i++)
        s += a[(i * 7) & 63];
    o[threadIdx.x] = s;
}
__global__ void sw(int *o, int k)
{
    switch (k) {
    case 0:
        o[0] = 1;
        break;
    case 1:
        o[1] = o[0] * 3;
        break;
    case 2:
        o[2] = fib(3);
        break;
    case 3:
        o[3] += 5;
        break;
    case 4:
        o[4] ^= 5;
        break;
    case 5:
        o[5] = o[1] / o[2];
        break;
    case 6:
        o[6] = o[2] % o[3];
        break;
    case 7:
        __syncthreads();
        break;
    default:
        o[8] = 9;
    }
}
__global__ void ints(int *o, unsigned *u, long long *l, unsigned long long *ul)
{
    int i = threadIdx.x;
    o[i] = __popc(u[i]) + __clz(o[i]) + __ffs(o[i]) + __brev(u[i]) + __byte_perm(u[i], u[i + 1], 0x3210) + abs(o[i]) +
           min(o[i], 3) + max(o[i], 4) + __mulhi(o[i], 77) + __mul24(o[i], 5) + __sad(o[i], 7, 3) +
           __funnelshift_l(u[i], u[i + 1], 5) + __funnelshift_rc(u[i], u[i + 1], 40);
    u[i] = u[i] / 7 + u[i] % 10 + __umulhi(u[i], 12345) + (u[i] >> (i & 31)) + __uhadd(u[i], 3) + __vadd2(u[i], 5) +
           __vsub4(u[i], 9) + __vabsdiffu4(u[i], u[i + 1]) + __vmaxs2(u[i], 4) + __vcmpeq4(u[i], 7) +
           __dp4a(u[i], u[i + 1], 4u) + __dp2a_lo(u[i], u[i + 1], 4u);
    l[i] = l[i] / (l[i + 1] | 1) + l[i] % 3 + __mul64hi(l[i], l[i + 1]) + __popcll(ul[i]) + __clzll(l[i]) +
           (l[i] >> i) + llabs(l[i]);
    ul[i] = ul[i] / 11 + ul[i] % (ul[i + 1] | 1) + __umul64hi(ul[i], 99) + __brevll(ul[i]) + (ul[i] << i);
    unsigned __int128 w = (unsigned __int128)ul[i] * ul[i + 1];
    w += l[i];
    ul[i + 2] = (unsigned long long)(w >> 64);
    ul[i + 3] = (unsigned long long)(w / 1000003u);
}
__global__ void conv(float *f, double *d, int *i, long long *l, unsigned char *c, short *s, unsigned *u)
{
    int t = threadIdx.x;
    i[t] = (int)f[t] + __float2int_rn(f[t]) + __float2int_ru(f[t]) + __double2int_rz(d[t]) + __float_as_int(f[t]);
    l[t] = (long long)f[t] + __double2ll_rd(d[t]);
    f[t] = (float)d[t] + (float)i[t] + __int2float_rd(i[t]) + (float)l[t] + c[t] + s[t] + __uint2float_rz(u[t]) +
           __saturatef(f[t]);
    d[t] = f[t] + i[t] + (double)l[t] + __longlong_as_double(l[t]) + __hiloint2double(i[t], 5);
    c[t] = (unsigned char)f[t];
    s[t] = (short)d[t];
    u[t] = (unsigned)f[t] + (unsigned)d[t];
}
__global__ void __maxnreg__(64) regs(int *o)
{
    o[0] = clock() + (int)clock64();
    __nanosleep(100);
    __threadfence();
    __threadfence_block();
    __threadfence_system();
    o[1] = __isGlobal(o) + __isShared(o) + __isConstant(o) + __isLocal(o);
    o[2] = *where_is + managed_value + (int)table[o[0] & 1][2];
}
