// Algorithms of CUB over a block, and cooperative groups: what libraries make of a warp.
// buffer: in s32 512 = iota 511 -1
// buffer: out s32 512
// launch: block_reduce grid=2 block=128 args=in,out
// expect: out = 57280 40896
// launch: block_scan grid=1 block=128 args=in,out
// expect: out[0] = 511 1021 1530
// expect: out[127] = 57280
// launch: block_sort grid=1 block=128 args=in,out
// expect: out = iota 0 1
// launch: warp_sums grid=1 block=64 args=in,out
// expect: out = 15856 14832
// launch: tiles grid=1 block=32 args=in,out
// expect: out = 4060 4060 4060 4060 4060 4060 4060 4060 3996 3996
// launch: coalesced grid=1 block=32 args=out
// expect: out = 11 0 0 11 0 0 11
// launch: matches grid=1 block=32 args=out
// expect: out = 8 8 8 8 8
// launch: whole grid=4 block=64 cooperative args=in,out
// expect: out[0] = 57280
// buffer: lanes u32 32
// launch: reduced grid=1 block=32 args=lanes
// expect: lanes = 496 31 0 496 31 0
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>

namespace cg = cooperative_groups;

extern "C" __global__ void block_reduce(const int *in, int *out)
{
    typedef cub::BlockReduce<int, 128> Reduce;
    __shared__ Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(in[blockIdx.x * 128 + threadIdx.x]);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

extern "C" __global__ void block_scan(const int *in, int *out)
{
    typedef cub::BlockScan<int, 128> Scan;
    __shared__ Scan::TempStorage storage;
    int value = in[threadIdx.x];
    Scan(storage).InclusiveSum(value, value);
    out[threadIdx.x] = value;
}

extern "C" __global__ void block_sort(const int *in, int *out)
{
    typedef cub::BlockRadixSort<int, 128, 4> Sort;
    __shared__ Sort::TempStorage storage;
    int keys[4];
    for (int i = 0; i < 4; i++)
        keys[i] = in[threadIdx.x * 4 + i];
    Sort(storage).Sort(keys);
    for (int i = 0; i < 4; i++)
        out[threadIdx.x * 4 + i] = keys[i];
}

extern "C" __global__ void warp_sums(const int *in, int *out)
{
    typedef cub::WarpReduce<int> Reduce;
    __shared__ Reduce::TempStorage storage[2];
    int warp = threadIdx.x / 32, sum = Reduce(storage[warp]).Sum(in[threadIdx.x]);
    if (threadIdx.x % 32 == 0)
        out[warp] = sum;
}

// Sums over tiles of 8, in branches that part them.
extern "C" __global__ void tiles(const int *in, int *out)
{
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int sum = in[threadIdx.x];
    if (tile.meta_group_rank() % 2 == 0) {
        for (int step = 4; step > 0; step /= 2)
            sum += tile.shfl_xor(sum, step);
    } else {
        sum = cg::reduce(tile, sum, cg::plus<int>());
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void coalesced(int *out)
{
    out[threadIdx.x] = 0;
    if (threadIdx.x % 3 == 0) {
        auto active = cg::coalesced_threads();
        out[threadIdx.x] = cg::reduce(active, 1, cg::plus<int>());
    }
}

extern "C" __global__ void matches(int *out)
{
    out[threadIdx.x] = __popc(__match_any_sync(0xffffffff, threadIdx.x % 4));
}

extern "C" __global__ void whole(const int *in, int *out)
{
    auto grid = cg::this_grid();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        out[0] = 0;
    grid.sync();
    if (i < 128)
        atomicAdd(&out[0], in[i]);
    grid.sync();
    if (i == 255 && out[0] != 57280)
        out[0] = -1;
}

extern "C" __global__ void reduced(unsigned *out)
{
    unsigned lane = threadIdx.x, value;
    if (lane % 3 == 0)
        value = 0;
    __syncwarp();
    unsigned sum = __reduce_add_sync(0xffffffff, lane), most = __reduce_max_sync(0xffffffff, lane),
             both = __reduce_and_sync(0xffffffff, lane);
    value = lane % 3 == 0 ? sum : lane % 3 == 1 ? most : both;
    out[lane] = value;
}
