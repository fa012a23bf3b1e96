// wmma.
#include <mma.h>
using namespace nvcuda::wmma;
template <class A, class C, int M, int N, int K, class LA, class LB>
__device__ void go(const typename fragment<matrix_a, M, N, K, A, LA>::storage_element_type *a,
                   const typename fragment<matrix_a, M, N, K, A, LA>::storage_element_type *b, C *c)
{
    fragment<matrix_a, M, N, K, A, LA> fa;
    fragment<matrix_b, M, N, K, A, LB> fb;
    fragment<accumulator, M, N, K, C> fc;
    fill_fragment(fc, C(0));
    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, b, 16);
    load_matrix_sync(fc, c, 16, mem_row_major);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync(c, fc, 16, mem_col_major);
}
__global__ void w1(const half *a, const half *b, float *c)
{
    go<half, float, 16, 16, 16, row_major, col_major>(a, b, c);
    go<half, float, 32, 8, 16, col_major, row_major>(a, b, c);
    go<half, float, 8, 32, 16, row_major, row_major>(a, b, c);
}
__global__ void w2(const half *a, const half *b, half *c)
{
    go<half, half, 16, 16, 16, row_major, col_major>(a, b, c);
}
__global__ void w3(const signed char *a, const unsigned char *b, int *c)
{
    go<signed char, int, 16, 16, 16, row_major, col_major>(a, a, c);
    go<unsigned char, int, 32, 8, 16, row_major, col_major>(b, b, c);
}
__global__ void w4(const __nv_bfloat16 *a, const float *t, float *c, const double *d, double *e)
{
    go<__nv_bfloat16, float, 16, 16, 16, row_major, col_major>(a, a, c);
    go<precision::tf32, float, 16, 16, 8, row_major, col_major>(t, t, c);
    go<double, double, 8, 8, 4, row_major, col_major>(d, d, e);
}
