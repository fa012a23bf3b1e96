// A product of matrices by tiles in shared memory, a transpose, a stencil with a halo.
// buffer: a f32 1024 = iota 0 1
// buffer: b f32 1024 = iota 0 0.5
// buffer: c f32 1024
// launch: matmul grid=2,2 block=16,16 args=a,b,c,u32:32
// expect: c ~ 1e-6 = 166656 166904 167152 167400
// expect: c[1023] ~ 1e-6 = 8538888
// launch: transpose grid=1,1 block=32,8 args=a,c
// expect: c = 0 32 64 96 128
// expect: c[1022] = 991 1023
// launch: stencil grid=4 block=256 args=a,c,u32:1024
// expect: c[0] = 6 10 15
// expect: c[3] = iota 21 7 1017
// expect: c[1021] = 6123 5105 4086
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n)
{
    const int TILE = 16;
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < n / TILE; t++) {
        as[threadIdx.y][threadIdx.x] = a[row * n + t * TILE + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(t * TILE + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void transpose(const float *in, float *out)
{
    __shared__ float tile[32][33];
    for (int y = threadIdx.y; y < 32; y += 8)
        tile[y][threadIdx.x] = in[y * 32 + threadIdx.x];
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += 8)
        out[y * 32 + threadIdx.x] = tile[threadIdx.x][y];
}

#define RADIUS 3
extern "C" __global__ void stencil(const float *in, float *out, int n)
{
    __shared__ float part[256 + 2 * RADIUS];
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = threadIdx.x + RADIUS;
    part[at] = in[i];
    if (threadIdx.x < RADIUS) {
        part[at - RADIUS] = i >= RADIUS ? in[i - RADIUS] : 0;
        part[at + 256] = i + 256 < n ? in[i + 256] : 0;
    }
    __syncthreads();
    float sum = 0;
    for (int d = -RADIUS; d <= RADIUS; d++)
        sum += part[at + d];
    out[i] = sum;
}
