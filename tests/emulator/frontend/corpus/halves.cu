// 16-bit, 8-bit and smaller floating point.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>
template <class T> __device__ void all1(T *o, T a, T b, T c)
{
    int k = 0;
    o[k++] = a + b;
    o[k++] = a - b;
    o[k++] = a * b;
    o[k++] = a / b;
    o[k++] = -a;
    o[k++] = __hfma(a, b, c);
    o[k++] = __hfma_relu(a, b, c);
    o[k++] = __hfma_sat(a, b, c);
    o[k++] = __habs(a);
    o[k++] = __hmin(a, b);
    o[k++] = __hmax(a, b);
    o[k++] = __hmin_nan(a, b);
    o[k++] = __hmax_nan(a, b);
    o[k++] = hsqrt(a);
    o[k++] = hrsqrt(a);
    o[k++] = hrcp(a);
    o[k++] = hlog(a);
    o[k++] = hlog2(a);
    o[k++] = hlog10(a);
    o[k++] = hexp(a);
    o[k++] = hexp2(a);
    o[k++] = hexp10(a);
    o[k++] = hsin(a);
    o[k++] = hcos(a);
    o[k++] = htanh(a);
    o[k++] = htanh_approx(a);
    o[k++] = hceil(a);
    o[k++] = hfloor(a);
    o[k++] = hrint(a);
    o[k++] = htrunc(a);
    o[k++] = __hadd_sat(a, b);
    o[k++] = __hmul_sat(a, b);
    o[k++] = __hadd_rn(a, b);
    if (a < b)
        o[k++] = a;
    if (__hequ(a, b))
        o[k++] = b;
    if (__hisnan(a) || __hisinf(a))
        o[k++] = c;
}
__device__ __half2 __lows2half2x(__half2 a, __half2 b)
{
    return __lows2half2(a, b);
}
__device__ __nv_bfloat162 __lows2half2x(__nv_bfloat162 a, __nv_bfloat162 b)
{
    return __lows2bfloat162(a, b);
}
template <class T> __device__ void all2(T *o, T a, T b, T c)
{
    int k = 0;
    o[k++] = a + b;
    o[k++] = a - b;
    o[k++] = a * b;
    o[k++] = a / b;
    o[k++] = __hfma2(a, b, c);
    o[k++] = __hfma2_relu(a, b, c);
    o[k++] = __hfma2_sat(a, b, c);
    o[k++] = __habs2(a);
    o[k++] = __hmin2(a, b);
    o[k++] = __hmax2_nan(a, b);
    o[k++] = h2sqrt(a);
    o[k++] = h2rsqrt(a);
    o[k++] = h2rcp(a);
    o[k++] = h2log(a);
    o[k++] = h2exp(a);
    o[k++] = h2exp2(a);
    o[k++] = h2sin(a);
    o[k++] = h2tanh(a);
    o[k++] = h2tanh_approx(a);
    o[k++] = h2ceil(a);
    o[k++] = h2rint(a);
    o[k++] = __heq2(a, b);
    o[k++] = __hltu2(a, b);
    o[k++] = __hisnan2(a);
    if (__hbgt2(a, b))
        o[k++] = c;
    ((unsigned *)o)[k++] = __heq2_mask(a, b);
    o[k++] = __lowhigh2highlow(a);
    o[k++] = __lows2half2x(a, b);
}
__global__ void h1(__half *o, __half a, __half b, __half c)
{
    all1(o, a, b, c);
}
__global__ void b1(__nv_bfloat16 *o, __nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
    all1(o, a, b, c);
}
__global__ void h2(__half2 *o, __half2 a, __half2 b, __half2 c)
{
    all2(o, a, b, c);
}
__global__ void b2(__nv_bfloat162 *o, __nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c)
{
    all2(o, a, b, c);
}
__global__ void hc(__half *h, float *f, double *d, int *i, long long *l, short *s, unsigned short *us, __nv_bfloat16 *b)
{
    int k = 0;
    h[k++] = __float2half(f[0]);
    h[k++] = __float2half_rz(f[0]);
    h[k++] = __float2half_ru(f[0]);
    h[k++] = __double2half(d[0]);
    h[k++] = __int2half_rn(i[0]);
    h[k++] = __ll2half_rd(l[0]);
    h[k++] = __short2half_rz(s[0]);
    h[k++] = __ushort2half_rn(us[0]);
    f[1] = __half2float(h[1]);
    i[1] = __half2int_rz(h[2]);
    l[1] = __half2ll_ru(h[3]);
    s[1] = __half2short_rn(h[4]);
    us[1] = __half2ushort_rd(h[5]);
    i[2] = __half_as_short(h[2]);
    b[0] = __float2bfloat16(f[0]);
    b[1] = __float2bfloat16_rz(f[0]);
    b[2] = __double2bfloat16(d[0]);
    b[3] = __int2bfloat16_rn(i[0]);
    b[4] = __ll2bfloat16_rd(l[0]);
    f[2] = __bfloat162float(b[1]);
    i[3] = __bfloat162int_rz(b[2]);
    l[2] = __bfloat162ll_ru(b[3]);
    us[2] = __bfloat162ushort_rd(b[4]);
    ((__half2 *)h)[9] = __floats2half2_rn(f[0], f[1]);
    ((__nv_bfloat162 *)b)[9] = __floats2bfloat162_rn(f[0], f[1]);
    ((float2 *)f)[7] = __half22float2(((__half2 *)h)[9]);
    h[20] = __shfl_sync(~0u, h[1], 3);
    b[20] = __shfl_down_sync(~0u, b[1], 3);
    atomicAdd(h, h[1]);
    atomicAdd((__half2 *)h, ((__half2 *)h)[1]);
    atomicAdd(b, b[1]);
    atomicAdd((__nv_bfloat162 *)b, ((__nv_bfloat162 *)b)[1]);
    h[30] = __ldg(h + 2);
    h[31] = __ldcg(h + 3);
    __stcs(h + 4, h[9]);
}
__global__ void f8(__nv_fp8_e4m3 *a, __nv_fp8_e5m2 *b, __nv_fp8x2_e4m3 *c, __nv_fp8x4_e5m2 *d, float *f, __half2 *h,
                   __nv_bfloat162 *g, __nv_fp8_e8m0 *e)
{
    a[0] = __nv_fp8_e4m3(f[0]);
    b[0] = __nv_fp8_e5m2(f[1]);
    c[0] = __nv_fp8x2_e4m3(h[0]);
    d[0] = __nv_fp8x4_e5m2(*(float4 *)f);
    f[3] = float(a[1]);
    f[4] = float(b[1]);
    h[1] = __half2(c[1]);
    *(float4 *)(f + 8) = float4(d[1]);
    e[0] = __nv_fp8_e8m0(f[3]);
    f[5] = float(e[1]);
    a[1] = __nv_fp8_e4m3(g[0].x);
}
__global__ void f6(__nv_fp6_e2m3 *a, __nv_fp6_e3m2 *b, __nv_fp4_e2m1 *c, __nv_fp4x2_e2m1 *d, __nv_fp6x2_e3m2 *e,
                   float *f)
{
    a[0] = __nv_fp6_e2m3(f[0]);
    b[0] = __nv_fp6_e3m2(f[1]);
    c[0] = __nv_fp4_e2m1(f[2]);
    d[0] = __nv_fp4x2_e2m1(*(float2 *)f);
    e[0] = __nv_fp6x2_e3m2(*(float2 *)f);
    f[4] = float(a[1]);
    f[5] = float(b[1]);
    f[6] = float(c[1]);
    *(float2 *)(f + 8) = float2(d[1]);
    *(float2 *)(f + 10) = float2(e[1]);
}
