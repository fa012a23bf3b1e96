// Kernels of bench.c. bench.ptx is made of them by: nvcc -ptx -arch=sm_80 bench.cu -o bench.ptx
extern "C" __global__ void madd(float *out, int rounds)
{
    float a = (float)threadIdx.x, b = 0.5f, c = 1.0f, d = 2.0f;
    const float x = 0.999f;
    for (int i = 0; i < rounds; i++) {
#pragma unroll
        for (int j = 0; j < 16; j++) {
            a = a * x + 0.25f;
            b = b * x + 0.25f;
            c = c * x + 0.25f;
            d = d * x + 0.25f;
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

template <int TILE> __device__ void product(const float *a, const float *b, float *c, int n)
{
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
    float sum = 0;
    for (int t = 0; t < n / TILE; t++) {
        as[ty][tx] = a[row * n + t * TILE + tx];
        bs[ty][tx] = b[(t * TILE + ty) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += as[ty][k] * bs[k][tx];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void matmul16(const float *a, const float *b, float *c, int n)
{
    product<16>(a, b, c, n);
}

extern "C" __global__ void matmul32(const float *a, const float *b, float *c, int n)
{
    product<32>(a, b, c, n);
}

extern "C" __global__ void nothing()
{
}

// Threads of a warp that leave a loop at different times.
extern "C" __global__ void mandelbrot(unsigned *image, int side, int most)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const float cr = -2.0f + 3.0f * x / side, ci = -1.5f + 3.0f * y / side;
    float zr = 0, zi = 0;
    int n = 0;
    while (n < most && zr * zr + zi * zi <= 4.0f) {
        const float t = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = t;
        n++;
    }
    image[y * side + x] = n;
}
