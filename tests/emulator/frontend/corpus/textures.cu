// Texture and surface fetches.
#include <cuda_runtime.h>
__global__ void tex(cudaTextureObject_t t, cudaSurfaceObject_t s, float *o, float4 *o4, int *oi, uchar4 *oc,
                    cudaTextureObject_t ti)
{
    float x = o[0], y = o[1], z = o[2];
    int k = 0;
    o[k++] = tex1Dfetch<float>(t, 3);
    o[k++] = tex1D<float>(t, x);
    o[k++] = tex2D<float>(t, x, y);
    o[k++] = tex3D<float>(t, x, y, z);
    o4[k++] = tex1DLayered<float4>(t, x, 2);
    o4[k++] = tex2DLayered<float4>(t, x, y, 3);
    o4[k++] = texCubemap<float4>(t, x, y, z);
    o4[k++] = texCubemapLayered<float4>(t, x, y, z, 2);
    o4[k++] = tex2DLod<float4>(t, x, y, 1.5f);
    o4[k++] = tex2DGrad<float4>(t, x, y, make_float2(x, y), make_float2(y, x));
    o4[k++] = tex2Dgather<float4>(t, x, y, 2);
    o4[k++] = tex3DLod<float4>(t, x, y, z, 2.f);
    o4[k++] = tex3DGrad<float4>(t, x, y, z, make_float4(x, y, z, 0), make_float4(z, y, x, 0));
    oi[k++] = tex2D<int>(ti, x, y);
    oc[k++] = tex2D<uchar4>(ti, x, y);
    oi[k++] = tex1DLod<unsigned>(ti, x, 1);
    bool r;
    o4[k++] = tex2D<float4>(t, x, y, &r);
    oi[k++] = r;
    int a;
    surf1Dread(&a, s, 4);
    oi[k++] = a;
    surf2Dread(&a, s, 4, 5);
    oi[k++] = a;
    surf3Dread(&a, s, 4, 5, 6);
    oi[k++] = a;
    float4 f;
    surf2Dread(&f, s, 4, 5, cudaBoundaryModeClamp);
    o4[k++] = f;
    surf2DLayeredread(&f, s, 4, 5, 6, cudaBoundaryModeZero);
    o4[k++] = f;
    surf2Dwrite(f, s, 7, 8);
    surf1Dwrite(a, s, 7);
    surf3Dwrite(a, s, 7, 8, 9);
    surf2Dwrite((unsigned char)a, s, 1, 2);
    surf2DLayeredwrite(make_int2(a, a), s, 1, 2, 3);
    surf1Dwrite(make_short4(1, 2, 3, 4), s, 4);
    surf2Dwrite(123ll, s, 8, 8);
    surfCubemapread(&a, s, 1, 2, 3);
    oi[k++] = a;
}
