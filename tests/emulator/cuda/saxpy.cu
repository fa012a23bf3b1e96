// buffer: x f32 1000 = iota 0 1
// buffer: y f32 1000 = iota 1000 -1
// launch: saxpy grid=4 block=256 args=u32:1000,f32:2,x,y
// expect: y = iota 1000 1
// launch: saxpy grid=4 block=256 args=u32:1000,f32:0.5,x,y
// expect: y = iota 1000 1.5
// launch: saxpy grid=4 block=256 args=u32:1001,f32:0.5,x,y
// expect-fault: 700 read of 4 bytes at 0x
// expect-fault: 700 block (3,0,0), thread (232,0,0)
// expect-fault: 700 saxpy.cu:20
// buffer: out f32 64
// launch: _Z3addIfEvPKT_S2_PS0_i grid=1 block=64 args=x,x,out,u32:64
// expect: out = iota 0 2
// launch: grid_stride grid=2 block=32 args=x,u32:1000
// expect: x = iota 0 3
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

template <typename T> __global__ void add(const T *a, const T *b, T *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
template __global__ void add<float>(const float *, const float *, float *, int);

extern "C" __global__ void grid_stride(float *x, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] *= 3;
}
