// Clusters, bulk copies and tensor maps of compute capability 9.0.
#include <cuda/barrier>
#include <cuda/ptx>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda.h>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void __cluster_dims__(2, 1, 1) clus(int *o)
{
    __shared__ int s[32];
    auto c = cg::this_cluster();
    s[threadIdx.x] = o[threadIdx.x];
    c.sync();
    int *r = c.map_shared_rank(s, c.block_rank() ^ 1);
    o[threadIdx.x] = r[threadIdx.x] + c.num_blocks() + c.query_shared_rank(r);
    atomicAdd(&r[3], 1);
    auto t = c.barrier_arrive();
    c.barrier_wait(cuda::std::move(t));
}
__global__ void tma(const __grid_constant__ CUtensorMap m, int *o, const int *g)
{
    __shared__ alignas(128) int s[1024];
    __shared__ barrier bar;
    if (!threadIdx.x) {
        init(&bar, blockDim.x);
        cuda::device::experimental::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    barrier::arrival_token tok;
    if (!threadIdx.x) {
        cuda::device::experimental::cp_async_bulk_tensor_2d_global_to_shared(s, &m, 0, 0, bar);
        cuda::device::experimental::cp_async_bulk_global_to_shared(s, g, 512, bar);
        tok = cuda::device::barrier_arrive_tx(bar, 1, sizeof(s));
    } else
        tok = bar.arrive();
    bar.wait(cuda::std::move(tok));
    o[threadIdx.x] = s[threadIdx.x];
    cuda::device::experimental::cp_async_bulk_tensor_2d_shared_to_global(&m, 0, 0, s);
    cuda::device::experimental::cp_async_bulk_commit_group();
    cuda::device::experimental::cp_async_bulk_wait_group_read<0>();
}
__global__ void pdl(int *o)
{
    cudaGridDependencySynchronize();
    o[0] = 1;
    cudaTriggerProgrammaticLaunchCompletion();
}
