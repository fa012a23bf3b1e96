"""What CUDA C++ offers beyond arithmetic: structs, constants, calls, divergence, votes, atomics, output."""

import struct

import pytest
from cuda_core import LaunchConfig, launch
from support import download, random, run_python, zeros

np = pytest.importorskip("numpy")


# ---- the language --------------------------------------------------------------------------------------------------

STRUCTS = """
struct Sphere { float x, y, z; float radius; int id; };
struct Camera { double zoom; Sphere target; char tag; };
__device__ __noinline__ float distance(Sphere a, Sphere b)
{
    float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
    return dx * dx + dy * dy + dz * dz;
}
extern "C" __global__ void look(Camera camera, const Sphere *spheres, float *out, int *ids)
{
    int i = threadIdx.x;
    out[i] = distance(camera.target, spheres[i]) + (float)camera.zoom + camera.tag;
    ids[i] = spheres[i].id * camera.target.id;
}
"""


def test_structs_by_value(run):
    sphere = np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4"), ("radius", "f4"), ("id", "i4")])
    camera = np.dtype([("zoom", "f8"), ("target", sphere), ("tag", "i1")], align=True)
    assert camera.itemsize == 32
    spheres = np.zeros(8, dtype=sphere)
    spheres["x"], spheres["y"], spheres["z"], spheres["id"] = range(8), 2, -1, np.arange(8) + 1
    view = np.zeros((), dtype=camera)
    view["zoom"], view["tag"] = 0.5, 3
    view["target"] = (1, 2, 3, 1, 10)
    out, ids = np.zeros(8, dtype="f4"), np.zeros(8, dtype="i4")
    run(STRUCTS, "look", 1, 8, view[()], spheres, out, ids)
    assert out.tolist() == [(i - 1) ** 2 + 16 + 3.5 for i in range(8)]
    assert ids.tolist() == [10 * (i + 1) for i in range(8)]


CONSTANTS = """
__constant__ float weights[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};
__constant__ struct { int offset; double scale; } settings = {7, 0.5};
__device__ int counter = 100;
__device__ const char *names[2] = {"ab", "xyz"};
extern "C" __global__ void blur(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int k = -2; k <= 2; k++) sum += weights[k + 2] * in[min(max(i + k, 0), n - 1)];
    out[i] = sum;
}
extern "C" __global__ void read(double *out)
{
    out[0] = settings.offset; out[1] = settings.scale; out[2] = atomicAdd(&counter, 1); out[3] = names[1][2];
}
"""


def test_constant_memory(run):
    values = random().integers(0, 100, 1000).astype("f4")
    out = np.zeros_like(values)
    run(CONSTANTS, "blur", 4, 256, values, out, 1000)
    padded = np.pad(values, 2, mode="edge").astype("f8")
    weights = [0.0625, 0.25, 0.375, 0.25, 0.0625]
    assert np.array_equal(out, sum(w * padded[k : k + 1000] for k, w in enumerate(weights)))


def test_initialised_variables(run):
    out = np.zeros(4)
    run(CONSTANTS, "read", 1, 1, out)
    assert out.tolist() == [7, 0.5, 100, ord("z")]
    run(CONSTANTS, "read", 1, 1, out)
    assert out[2] == 101  # a device variable lives as long as its module


RECURSION = """
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ void swap(int *a, int *b) { int t = *a; *a = *b; *b = t; }
typedef int (*operation)(int, int);
__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
extern "C" __global__ void recurse(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x); }
extern "C" __global__ void local_array(int *out)
{
    int a[16];
    for (int i = 0; i < 16; i++) a[i] = (i * 7 + threadIdx.x) % 16;
    for (int i = 0; i < 15; i++)
        for (int j = 0; j < 15 - i; j++)
            if (a[j] > a[j + 1]) swap(&a[j], &a[j + 1]);
    out[threadIdx.x] = a[threadIdx.x % 16] * 100 + a[15];
}
extern "C" __global__ void pointer(int *out)
{
    operation f = threadIdx.x % 2 ? plus : times;
    out[threadIdx.x] = f(threadIdx.x, 10);
}
"""


def test_recursion_and_divergent_calls(run):
    out = np.zeros(20, dtype="i4")
    run(RECURSION, "recurse", 1, 20, out)
    expected = [0, 1]
    while len(expected) < 20:
        expected.append(expected[-1] + expected[-2])
    assert out.tolist() == expected


def test_local_arrays_and_pointers_to_them(run):
    out = np.zeros(32, dtype="i4")
    run(RECURSION, "local_array", 1, 32, out)
    assert out.tolist() == [(i % 16) * 100 + 15 for i in range(32)]


def test_function_pointers(run, emulated):
    out = np.zeros(32, dtype="i4")
    run(RECURSION, "pointer", 1, 32, out)
    assert out.tolist() == [i + 10 if i % 2 else i * 10 for i in range(32)]


DIVERGENCE = """
extern "C" __global__ void collatz(const unsigned *in, unsigned *steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = in[i];
    unsigned count = 0;
    while (v != 1) {
        if (v % 2) v = 3 * v + 1; else v /= 2;
        if (++count > 10000) break;
    }
    steps[i] = count;
}
extern "C" __global__ void branches(int *out)
{
    int t = threadIdx.x;
    switch (t % 7) {
    case 0: out[t] = t; break;
    case 1: out[t] = -t; // falls through
    case 2: out[t] = 2 * t + 1; break;
    case 3: if (t > 40) { out[t] = 3; break; } // falls through
    case 4: out[t] = 4000 + t; break;
    default: out[t] = t % 2 ? 55 : 66;
    }
}
"""


def test_divergent_loops(run):
    values = random().integers(1, 10_000, 1000).astype("u4")
    steps = np.zeros_like(values)
    run(DIVERGENCE, "collatz", 8, 128, values, steps, 1000)

    def collatz(v):
        count = 0
        while v != 1:
            v, count = (3 * v + 1 if v % 2 else v // 2), count + 1
        return count

    assert steps.tolist() == [collatz(int(v)) for v in values]


def test_switch(run):
    out = np.zeros(64, dtype="i4")
    run(DIVERGENCE, "branches", 1, 64, out)

    def expected(t):
        match t % 7:
            case 0:
                return t
            case 1 | 2:
                return 2 * t + 1
            case 3:
                return 3 if t > 40 else 4000 + t
            case 4:
                return 4000 + t
        return 55 if t % 2 else 66

    assert out.tolist() == [expected(t) for t in range(64)]


WARPS = """
extern "C" __global__ void votes(const int *in, unsigned *out)
{
    int t = threadIdx.x, v = in[t];
    unsigned ballot = __ballot_sync(0xffffffffu, v > 0);
    int any = __any_sync(0xffffffffu, v > 90), all = __all_sync(0xffffffffu, v > -200);
    unsigned active = 0;
    if (v > 0) active = __activemask();
    unsigned *o = out + 6 * t;
    o[0] = ballot; o[1] = any; o[2] = all; o[3] = v > 0 ? __popc(active) : 0;
    o[4] = __shfl_sync(0xffffffffu, v, 5); o[5] = __shfl_xor_sync(0xffffffffu, v, 3, 8);
}
extern "C" __global__ void compact(const int *in, int *out, int *count)
{
    int t = threadIdx.x, v = in[t];
    unsigned mask = __ballot_sync(0xffffffffu, v > 0);
    int before = __popc(mask & ((1u << t) - 1));
    if (v > 0) out[before] = v;
    if (t == 0) *count = __popc(mask);
}
"""


def test_votes_and_shuffles(run):
    values = random().integers(-100, 100, 64).astype("i4")
    out = np.zeros((64, 6), dtype="u4")
    run(WARPS, "votes", 1, 64, values, out)
    for t in range(64):
        warp = values[t // 32 * 32 : t // 32 * 32 + 32]
        ballot = sum(1 << i for i in range(32) if warp[i] > 0)
        assert out[t, :3].tolist() == [ballot, int((warp > 90).any()), 1]
        assert out[t, 3] <= ballot.bit_count()
        assert out[t, 4].astype("i4") == warp[5]
        assert out[t, 5].astype("i4") == warp[t % 32 ^ 3]


def test_compaction(run):
    values = random().integers(-100, 100, 32).astype("i4")
    out, count = np.zeros(32, dtype="i4"), np.zeros(1, dtype="i4")
    run(WARPS, "compact", 1, 32, values, out, count)
    assert count[0] == (values > 0).sum()
    assert out[: count[0]].tolist() == values[values > 0].tolist()


ATOMICS = """
extern "C" __global__ void atomics(int *i, unsigned *u, float *f, double *d, unsigned long long *l)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&i[0], t); atomicSub(&i[1], 1); atomicMin(&i[2], -t); atomicMax(&i[3], t);
    atomicOr(&u[0], 1u << (t % 32)); atomicAnd(&u[1], ~(1u << (t % 16))); atomicXor(&u[2], t); atomicInc(&u[3], 9);
    atomicAdd(f, 0.5f); atomicAdd(d, 0.25); atomicAdd(l, 1ull << 33);
    int old = i[4], assumed;
    do { assumed = old; old = atomicCAS(&i[4], assumed, assumed + 2); } while (old != assumed);
    if (atomicExch(&i[5], 1) == 0) atomicAdd(&i[6], 1);
}
"""


def test_atomics(run):
    threads = 1024
    i, u = np.zeros(7, dtype="i4"), np.array([0, 2**32 - 1, 0, 0], dtype="u4")
    f, d, l = np.zeros(1, "f4"), np.zeros(1, "f8"), np.zeros(1, "u8")  # noqa: E741
    run(ATOMICS, "atomics", 8, 128, i, u, f, d, l)
    assert i.tolist() == [threads * (threads - 1) // 2, -threads, -(threads - 1), threads - 1, 2 * threads, 1, 1]
    assert u.tolist() == [2**32 - 1, 0xFFFF0000, 0, threads % 10]
    assert (f[0], d[0], l[0]) == (threads / 2, threads / 4, threads << 33)


SPIN_LOCK = """
extern "C" __global__ void locked(int *lock, int *total)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *(volatile int *)total += 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
"""


def test_spin_lock_inside_a_warp(run):
    lock, total = np.zeros(1, dtype="i4"), np.zeros(1, dtype="i4")
    run(SPIN_LOCK, "locked", 4, 64, lock, total)
    assert total[0] == 256
    assert lock[0] == 0


LAST_BLOCK = """
__device__ unsigned arrived = 0;
extern "C" __global__ void total(const int *in, int *partial, int *out, int n)
{
    __shared__ bool last;
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    atomicAdd(&partial[blockIdx.x], sum);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int all = 0;
        for (int b = 0; b < gridDim.x; b++) all += ((volatile int *)partial)[b];
        *out = all;
    }
}
"""


def test_last_block_finishes(run):
    values = random().integers(-1000, 1000, 20_000).astype("i4")
    for _ in range(3):
        partial, out = np.zeros(16, dtype="i4"), np.zeros(1, dtype="i4")
        run(LAST_BLOCK, "total", 16, 128, values, partial, out, len(values))
        assert out[0] == values.sum()


VECTORS = """
extern "C" __global__ void vectors(const float4 *in, float4 *out, const uchar4 *pixels, uchar4 *inverted, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = in[i];
    out[i] = make_float4(v.w, v.z, v.y, v.x);
    uchar4 p = pixels[i];
    inverted[i] = make_uchar4(255 - p.x, 255 - p.y, 255 - p.z, p.w);
}
"""


def test_vector_loads_and_stores(run):
    n = 100
    values, pixels = random().normal(size=(n, 4)).astype("f4"), random().integers(0, 256, (n, 4)).astype("u1")
    out, inverted = np.zeros_like(values), np.zeros_like(pixels)
    run(VECTORS, "vectors", 1, 128, values, out, pixels, inverted, n)
    assert np.array_equal(out, values[:, ::-1])
    assert np.array_equal(inverted[:, :3], 255 - pixels[:, :3])
    assert np.array_equal(inverted[:, 3], pixels[:, 3])


GENERATOR = """
struct Generator {
    unsigned long long state;
    __device__ unsigned next()
    {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        unsigned x = (unsigned)(((state >> 18) ^ state) >> 27), r = (unsigned)(state >> 59);
        return x >> r | x << (-r & 31);
    }
};
extern "C" __global__ void pi(unsigned long long seed, int rounds, unsigned long long *inside)
{
    Generator g{seed + blockIdx.x * blockDim.x + threadIdx.x};
    unsigned hits = 0;
    for (int i = 0; i < rounds; i++) {
        unsigned long long x = g.next() >> 16, y = g.next() >> 16;
        hits += x * x + y * y < (1ull << 32);
    }
    atomicAdd(inside, (unsigned long long)hits);
}
"""


def test_monte_carlo(run):
    inside = np.zeros(1, dtype="u8")
    run(GENERATOR, "pi", 4, 64, 12345, 50, inside)
    expected = 0
    for seed in range(12345, 12345 + 256):
        state = seed
        draws = []
        for _ in range(100):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            x, r = ((state >> 18 ^ state) >> 27) % 2**32, state >> 59
            draws.append((x >> r | x << (-r & 31)) % 2**32 >> 16)
        expected += sum(x * x + y * y < 2**32 for x, y in zip(draws[::2], draws[1::2], strict=True))
    assert inside[0] == expected


# ---- output of kernels ---------------------------------------------------------------------------------------------

OUTPUT = r"""
from cuda_core import Device, LaunchConfig, Program, launch
SOURCE = r'''
extern "C" __global__ void hello(int n, float x)
{
    printf("thread %d of %d: %.3f %5d|%-5d|%05d %x %c %s %lld %u%%\n", threadIdx.x, n, x * threadIdx.x, 42, 42, 42, 255,
           'a' + threadIdx.x, "text", 1234567890123ll, 4000000000u);
    if (threadIdx.x == 0) printf("%e %g %p\n", 12345.678, 0.5, (void *)0);
}
'''
with Device(0).create_stream() as stream:
    kernel = Program(SOURCE, "c++").compile("cubin").get_kernel("hello")
    launch(stream, LaunchConfig(grid=1, block=3), kernel, 3, 1.5)
"""


def test_printf():
    process = run_python(OUTPUT, flags=("-W", "ignore"))
    lines = process.stdout.splitlines()
    for t in range(3):
        expected = f"thread {t} of 3: {1.5 * t:.3f}    42|42   |00042 ff {chr(97 + t)} text 1234567890123 4000000000%"
        assert lines.count(expected) == 1, process.stdout
    assert sum(line.startswith("1.234568e+04 0.5 ") for line in lines) == 1
    assert len(lines) == 4


HEAP = """
extern "C" __global__ void heap(int *out)
{
    int n = threadIdx.x + 1;
    int *p = (int *)malloc(n * sizeof(int));
    if (!p) { out[threadIdx.x] = -1; return; }
    for (int i = 0; i < n; i++) p[i] = i;
    int sum = 0;
    for (int i = 0; i < n; i++) sum += p[i];
    free(p);
    out[threadIdx.x] = sum;
}
"""


def test_device_heap(run):
    out = np.zeros(64, dtype="i4")
    run(HEAP, "heap", 1, 64, out)
    assert out.tolist() == [i * (i + 1) // 2 for i in range(64)]


def test_clock_and_identity(device, stream, compile):
    source = """
    extern "C" __global__ void clocks(long long *out)
    {
        long long begin = clock64();
        int sum = 0;
        for (int i = 0; i < 1000; i++) sum += ((volatile int *)out)[3];
        out[0] = clock64() - begin; out[1] = warpSize; out[2] = threadIdx.x % 32 + sum;
    }
    """
    out = zeros(device, stream, 32)
    launch(stream, LaunchConfig(grid=1, block=1), compile(source).get_kernel("clocks"), out)
    elapsed, warp, lane, _ = struct.unpack("<4q", download(out, stream))
    assert elapsed > 0
    assert (warp, lane) == (32, 0)
