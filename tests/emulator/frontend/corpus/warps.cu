// Warp operations, atomics, cooperative groups, asynchronous copies.
#include <utility>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/complex>
namespace cg = cooperative_groups;
__global__ void shuffles(int *o, float *f, double *d, long long *l)
{
    int t = threadIdx.x;
    o[t] = __shfl_sync(~0u, o[t], 3) + __shfl_up_sync(~0u, o[t], 1) + __shfl_down_sync(0xff, o[t], 2, 8) +
           __shfl_xor_sync(~0u, o[t], 16);
    f[t] = __shfl_xor_sync(~0u, f[t], 1);
    d[t] = __shfl_down_sync(~0u, d[t], 4);
    l[t] = __shfl_sync(__activemask(), l[t], t ^ 5);
}
__global__ void votes(unsigned *o, long long *l)
{
    int t = threadIdx.x;
    o[0] = __ballot_sync(~0u, t & 1);
    o[1] = __all_sync(~0u, o[t]);
    o[2] = __any_sync(~0u, o[t]);
    o[3] = __match_any_sync(~0u, o[t]);
    int p;
    o[4] = __match_all_sync(~0u, l[t], &p) + p;
    o[5] = __activemask();
    __syncwarp();
    __syncwarp(0xff);
    o[6] = __syncthreads_count(o[t]) + __syncthreads_and(o[t + 1]) + __syncthreads_or(o[t + 2]);
    o[7] = __reduce_add_sync(~0u, o[t]) + __reduce_min_sync(~0u, (int)o[t]) + __reduce_xor_sync(~0u, o[t]);
}
__global__ void atomics(int *i, unsigned *u, unsigned long long *ul, float *f, double *d, long long *l,
                        unsigned short *us)
{
    __shared__ int s[4];
    int k = 0;
    i[k++] = atomicAdd(i, 1);
    i[k++] = atomicSub(i, 2);
    i[k++] = atomicExch(i, 3);
    i[k++] = atomicMin(i, 4);
    i[k++] = atomicMax(i, 5);
    u[k++] = atomicInc(u, 6);
    u[k++] = atomicDec(u, 7);
    i[k++] = atomicCAS(i, 8, 9);
    i[k++] = atomicAnd(i, 10);
    i[k++] = atomicOr(i, 11);
    i[k++] = atomicXor(i, 12);
    ul[k++] = atomicAdd(ul, 13ull);
    ul[k++] = atomicExch(ul, 13ull);
    ul[k++] = atomicCAS(ul, 13ull, 14ull);
    ul[k++] = atomicMin(ul, 13ull);
    l[k++] = atomicMax(l, 13ll);
    f[k++] = atomicAdd(f, 1.f);
    f[k++] = atomicExch(f, 1.f);
    d[k++] = atomicAdd(d, 1.);
    us[k++] = atomicCAS(us, (unsigned short)3, (unsigned short)4);
    atomicAdd(&s[1], 2);
    atomicAdd_block(i, 3);
    atomicAdd_system(i, 4);
    atomicMax(&s[2], 7);
    atomicAnd(u, 3u);
    atomicOr_block(ul, 5ull);
    i[99] = s[threadIdx.x & 3];
}
__global__ void groups(int *o)
{
    auto b = cg::this_thread_block();
    auto t = cg::tiled_partition<16>(b);
    auto c = cg::coalesced_threads();
    o[b.thread_rank()] = cg::reduce(t, o[b.thread_rank()], cg::plus<int>()) + cg::inclusive_scan(t, o[1]) + c.size() +
                         t.meta_group_rank() + t.ballot(1) + t.any(o[2]) + t.match_any(o[3]);
    cg::sync(b);
    auto l = cg::labeled_partition(c, o[0] & 3);
    o[40] = cg::reduce(l, 3, cg::greater<int>());
    auto bp = cg::binary_partition(c, o[3] & 1);
    o[41] = bp.size();
    auto iv = cg::invoke_one_broadcast(t, [&] { return o[5]; });
    o[42] = iv;
}
__global__ void grids(int *o)
{
    auto g = cg::this_grid();
    o[g.thread_rank()]++;
    g.sync();
    o[g.thread_rank()] += o[0];
    auto m = g.barrier_arrive();
    g.barrier_wait(std::move(m));
}
__global__ void cuatomics(int *o, cuda::atomic<int, cuda::thread_scope_device> *a,
                          cuda::atomic<long long, cuda::thread_scope_system> *b, cuda::std::atomic<float> *f)
{
    o[0] = a->fetch_add(1, cuda::memory_order_relaxed) + a->load(cuda::memory_order_acquire) +
           a->fetch_max(4, cuda::memory_order_acq_rel);
    a->store(5, cuda::memory_order_release);
    b->fetch_or(3);
    int e = 3;
    a->compare_exchange_strong(e, 4, cuda::memory_order_seq_cst);
    o[1] = e;
    b->exchange(77, cuda::memory_order_acquire);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_block);
    cuda::atomic_ref<unsigned, cuda::thread_scope_block> r(*(unsigned *)(o + 5));
    r.fetch_xor(5);
    r--;
    f->store(f->load() + 1);
    a->wait(3);
    a->notify_all();
}
__global__ void pipes(int *g, int *o)
{
    __shared__ int s[256];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    auto b = cg::this_thread_block();
    if (b.thread_rank() == 0)
        init(&bar, b.size());
    b.sync();
    cuda::memcpy_async(b, s, g, cuda::aligned_size_t<16>(sizeof(int) * 256), bar);
    bar.arrive_and_wait();
    o[threadIdx.x] = s[threadIdx.x];
    cg::memcpy_async(b, s, g + 256, 1024);
    cg::wait(b);
    o[threadIdx.x + 256] = s[threadIdx.x];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> st;
    auto p = cuda::make_pipeline(b, &st);
    p.producer_acquire();
    cuda::memcpy_async(b, s, g, 1024, p);
    p.producer_commit();
    p.consumer_wait();
    o[3] = s[4];
    p.consumer_release();
    auto q = cuda::make_pipeline();
    q.producer_acquire();
    cuda::memcpy_async(s + threadIdx.x, g + threadIdx.x, cuda::aligned_size_t<4>(4), q);
    q.producer_commit();
    q.consumer_wait();
    o[9] = s[3];
}
__global__ void cplx(cuda::std::complex<double> *c)
{
    c[0] = c[1] * c[2] / c[3] + cuda::std::exp(c[4]);
}
__global__ void caches(int *a, float4 *b, double2 *c, char4 *d, short2 *e)
{
    a[0] = __ldg(a) + __ldcg(a + 1) + __ldca(a + 2) + __ldcs(a + 3) + __ldlu(a + 4) + __ldcv(a + 5);
    float4 v = __ldg(b);
    __stwb(b + 1, v);
    __stcg(b + 2, v);
    __stcs(b + 3, v);
    __stwt(b + 4, v);
    c[1] = c[0];
    d[1] = d[0];
    e[1] = __ldcs(e);
    volatile int *q = a;
    q[9] = q[8];
}
