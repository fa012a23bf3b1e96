// Reductions, a prefix sum, a histogram.
// buffer: x f32 1024 = iota 0 1
// buffer: out f32 4
// launch: tree grid=4 block=256 args=x,out
// expect: out = 32640 98176 163712 229248
// buffer: n s32 256 = all 1
// launch: scan grid=1 block=256 args=n
// expect: n = iota 1 1
// buffer: bytes u8 2048 = iota 0 1
// buffer: bins u32 256
// launch: histogram grid=4 block=128 args=bytes,u32:2048,bins
// expect: bins = all 8
// buffer: total f32 1
// launch: by_warp grid=4 block=256 args=x,total,u32:1024
// expect: total = 523776
// buffer: most s32 1
// launch: largest grid=2 block=512 args=x,most
// expect: most = 1023
// buffer: even s32 512
// buffer: count s32 1
// launch: compact grid=1 block=256 args=n,even,count
// expect: count = 128
extern "C" __global__ void tree(const float *in, float *out)
{
    __shared__ float part[256];
    part[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step)
            part[threadIdx.x] += part[threadIdx.x + step];
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = part[0];
}

extern "C" __global__ void scan(int *values)
{
    __shared__ int part[2][256];
    int at = threadIdx.x, from = 0;
    part[0][at] = values[at];
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        part[1 - from][at] = part[from][at] + (at >= step ? part[from][at - step] : 0);
        from = 1 - from;
        __syncthreads();
    }
    values[at] = part[from][at];
}

extern "C" __global__ void histogram(const unsigned char *in, int n, unsigned *bins)
{
    __shared__ unsigned own[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        own[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[in[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&bins[i], own[i]);
}

extern "C" __global__ void by_warp(const float *in, float *total, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = i < n ? in[i] : 0;
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0)
        atomicAdd(total, sum);
}

extern "C" __global__ void largest(const float *in, int *most)
{
    atomicMax(most, (int)in[blockIdx.x * blockDim.x + threadIdx.x]);
}

extern "C" __global__ void compact(const int *in, int *out, int *count)
{
    int value = in[threadIdx.x];
    bool wanted = value % 2 == 0;
    unsigned ballot = __ballot_sync(0xffffffff, wanted);
    int lane = threadIdx.x % 32, base = 0;
    if (lane == 0)
        base = atomicAdd(count, __popc(ballot));
    base = __shfl_sync(0xffffffff, base, 0);
    if (wanted)
        out[base + __popc(ballot & ((1u << lane) - 1))] = value;
}
