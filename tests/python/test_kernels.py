"""The kernels that newcomers write, each held against the host."""

import math

import pytest
from support import random

np = pytest.importorskip("numpy")


# ---- vectors -------------------------------------------------------------------------------------------------------

VECTOR_ADD = """
template <typename T> __global__ void add(const T *a, const T *b, T *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("float", "f4"), ("double", "f8"), ("int", "i4"), ("unsigned char", "u1"), ("long long", "i8"), ("short", "i2")],
)
@pytest.mark.parametrize("n", [1, 31, 1000, 4099])
def test_vector_add(run, name, dtype, n):
    if dtype[0] == "f":
        a, b = random().normal(size=n).astype(dtype), random(2).normal(size=n).astype(dtype)
    else:
        limits = np.iinfo(dtype)
        a, b = (random(s).integers(limits.min, limits.max, n, dtype=dtype, endpoint=True) for s in (1, 2))
    c = np.zeros(n, dtype=dtype)
    run(VECTOR_ADD, f"add<{name}>", (n + 255) // 256, 256, a, b, c, n)
    assert np.array_equal(c, a + b)


SAXPY = """
extern "C" __global__ void saxpy(int n, float a, const float *__restrict__ x, float *__restrict__ y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}
"""


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (7, 96), (512, 128)])
def test_saxpy_in_a_grid_stride_loop(run, grid, block):
    n = 50_001
    x, y = random().normal(size=n).astype("f4"), random(2).normal(size=n).astype("f4")
    expected = (np.float64(np.float32(1.7)) * x + y).astype("f4")  # one rounding, as fma has
    got = y.copy()
    run(SAXPY, "saxpy", grid, block, n, 1.7, x, got)
    assert np.array_equal(got, expected)


# ---- matrices ------------------------------------------------------------------------------------------------------

MATMUL = """
#define TILE 16
template <typename T> __global__ void matmul(const T *a, const T *b, T *c, int m, int n, int k)
{
    __shared__ T as[TILE][TILE], bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    T sum = 0;
    for (int t = 0; t < (k + TILE - 1) / TILE; t++) {
        int ka = t * TILE + threadIdx.x, kb = t * TILE + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : T(0);
        bs[threadIdx.y][threadIdx.x] = kb < k && column < n ? b[kb * n + column] : T(0);
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
"""


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"), [("float", "f4", 2e-5), ("double", "f8", 1e-13), ("int", "i4", 0)]
)
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (33, 50, 17), (64, 64, 128)])
def test_tiled_matrix_product(run, name, dtype, tolerance, m, n, k):
    if dtype == "i4":
        a, b = random().integers(-100, 100, (m, k), dtype=dtype), random(2).integers(-100, 100, (k, n), dtype=dtype)
    else:
        a, b = random().normal(size=(m, k)).astype(dtype), random(2).normal(size=(k, n)).astype(dtype)
    c = np.zeros((m, n), dtype=dtype)
    run(MATMUL, f"matmul<{name}>", ((n + 15) // 16, (m + 15) // 16), (16, 16), a, b, c, m, n, k)
    expected = a.astype("f8") @ b.astype("f8") if dtype != "i4" else a @ b
    assert np.allclose(c, expected, rtol=tolerance, atol=tolerance * math.sqrt(k))


TRANSPOSE = """
extern "C" __global__ void transpose(const float *in, float *out, int width, int height)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}
"""


def test_transpose(run):
    a = random().normal(size=(70, 101)).astype("f4")
    b = np.zeros((101, 70), dtype="f4")
    run(TRANSPOSE, "transpose", (4, 3), (32, 8), a, b, 101, 70)
    assert np.array_equal(b, a.T)


# ---- reductions, scans, histograms ---------------------------------------------------------------------------------

REDUCE = """
template <typename T> __global__ void tree(const T *in, T *out, int n)
{
    extern __shared__ unsigned char raw[];
    T *s = reinterpret_cast<T *>(raw);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? in[i] : T(0);
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
"""


@pytest.mark.parametrize(("name", "dtype"), [("int", "i4"), ("long long", "i8"), ("double", "f8"), ("float", "f4")])
@pytest.mark.parametrize("block", [64, 256, 1024])
def test_tree_reduction(run, name, dtype, block):
    n = 10_000
    values = random().integers(-1000, 1000, n).astype(dtype)  # whole numbers: sums are exact in each type
    out = np.zeros((n + block - 1) // block, dtype=dtype)
    run(REDUCE, f"tree<{name}>", len(out), block, values, out, n, shmem_size=block * values.itemsize)
    padded = np.concatenate([values, np.zeros(len(out) * block - n, dtype=dtype)])
    assert np.array_equal(out, padded.reshape(-1, block).sum(axis=1, dtype=dtype))


WARP_REDUCE = """
extern "C" __global__ void warp_sum(const int *in, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? in[i] : 0;
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffffu, v, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}
"""


def test_reduction_by_shuffles_and_an_atomic(run):
    values = random().integers(-100_000, 100_000, 30_000).astype("i4")
    out = np.zeros(1, dtype="i4")
    run(WARP_REDUCE, "warp_sum", 118, 256, values, out, 30_000)
    assert out[0] == values.sum()


HISTOGRAM = """
extern "C" __global__ void direct(const unsigned char *data, int n, unsigned int *bins)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[data[i]], 1u);
}
extern "C" __global__ void privatised(const unsigned char *data, int n, unsigned int *bins)
{
    __shared__ unsigned int mine[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) mine[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[data[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], mine[i]);
}
"""


@pytest.mark.parametrize("name", ["direct", "privatised"])
def test_histogram(run, name):
    data = (random().normal(size=100_000) * 40 + 128).clip(0, 255).astype("u1")
    bins = np.zeros(256, dtype="u4")
    run(HISTOGRAM, name, 8, 192, data, len(data), bins)
    assert np.array_equal(bins, np.bincount(data, minlength=256))


SCAN = """
extern "C" __global__ void scan_shared(const int *in, int *out)
{
    __shared__ int s[2][512];
    int t = threadIdx.x, from = 0;
    s[0][t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        s[1 - from][t] = s[from][t] + (t >= d ? s[from][t - d] : 0);
        from = 1 - from;
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + t] = s[from][t];
}
extern "C" __global__ void scan_shuffle(const int *in, int *out)
{
    __shared__ int sums[32];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    int v = in[blockIdx.x * blockDim.x + t];
    for (int d = 1; d < 32; d *= 2) {
        int other = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += other;
    }
    if (lane == 31) sums[warp] = v;
    __syncthreads();
    if (warp == 0) {
        int s = lane < blockDim.x / 32 ? sums[lane] : 0;
        for (int d = 1; d < 32; d *= 2) {
            int other = __shfl_up_sync(0xffffffffu, s, d);
            if (lane >= d) s += other;
        }
        sums[lane] = s;
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = v + (warp > 0 ? sums[warp - 1] : 0);
}
"""


@pytest.mark.parametrize("name", ["scan_shared", "scan_shuffle"])
@pytest.mark.parametrize("block", [32, 128, 512])
def test_prefix_sum(run, name, block):
    values = random().integers(-1000, 1000, 5 * block).astype("i4")
    out = np.zeros_like(values)
    run(SCAN, name, 5, block, values, out)
    assert np.array_equal(out, np.cumsum(values.reshape(5, block), axis=1).ravel())


SORT = """
extern "C" __global__ void bitonic(int *data)
{
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = data[t];
    __syncthreads();
    for (int k = 2; k <= 256; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            int other = t ^ j;
            if (other > t) {
                bool up = (t & k) == 0;
                int a = s[t], b = s[other];
                if ((a > b) == up) { s[t] = b; s[other] = a; }
            }
            __syncthreads();
        }
    data[t] = s[t];
}
"""


def test_bitonic_sort(run):
    values = random().integers(-(2**31), 2**31 - 1, 256).astype("i4")
    got = values.copy()
    run(SORT, "bitonic", 1, 256, got)
    assert np.array_equal(got, np.sort(values))


# ---- pictures and grids --------------------------------------------------------------------------------------------

MANDELBROT = """
extern "C" __global__ void mandelbrot(int *out, int width, int height, int limit)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    double cx = -2.0 + 3.0 * px / width, cy = -1.0 + 2.0 * py / height, x = 0, y = 0;
    int i = 0;
    while (i < limit && x * x + y * y <= 4.0) {
        double t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
        i++;
    }
    out[py * width + px] = i;
}
"""


def test_mandelbrot(run):
    width, height, limit = 75, 50, 64
    got = np.zeros((height, width), dtype="i4")
    run(
        MANDELBROT, "mandelbrot", ((width + 15) // 16, (height + 7) // 8), (16, 8), got, width, height, limit, fma=False
    )
    expected = np.zeros_like(got)
    for py in range(height):
        for px in range(width):
            cx, cy, x, y, i = -2.0 + 3.0 * px / width, -1.0 + 2.0 * py / height, 0.0, 0.0, 0
            while i < limit and x * x + y * y <= 4.0:
                x, y, i = x * x - y * y + cx, 2 * x * y + cy, i + 1
            expected[py, px] = i
    assert np.array_equal(got, expected)  # doubles without fused operations: the same to the last bit


STENCIL = """
extern "C" __global__ void heat(const float *in, float *out, int width, int height)
{
    __shared__ float tile[18][18];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    auto at = [&](int i, int j) {
        i = min(max(i, 0), width - 1);
        j = min(max(j, 0), height - 1);
        return in[j * width + i];
    };
    tile[ty][tx] = at(x, y);
    if (threadIdx.x == 0) tile[ty][0] = at(x - 1, y);
    if (threadIdx.x == 15) tile[ty][17] = at(x + 1, y);
    if (threadIdx.y == 0) tile[0][tx] = at(x, y - 1);
    if (threadIdx.y == 15) tile[17][tx] = at(x, y + 1);
    __syncthreads();
    if (x < width && y < height)
        out[y * width + x] = 0.25f * (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx]);
}
"""


def test_stencil(run):
    field = random().normal(size=(45, 61)).astype("f4")
    out = np.zeros_like(field)
    run(STENCIL, "heat", (4, 3), (16, 16), field, out, 61, 45)
    padded = np.pad(field, 1, mode="edge")
    expected = np.float32(0.25) * (((padded[1:-1, :-2] + padded[1:-1, 2:]) + padded[:-2, 1:-1]) + padded[2:, 1:-1])
    # The halo of the last tiles clamps to the edge just as the padding does; the order of additions is the same.
    assert np.array_equal(out, expected)


VOLUME = """
extern "C" __global__ void index(int *out, int nx, int ny, int nz)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < nx && y < ny && z < nz) out[(z * ny + y) * nx + x] = x + 1000 * y + 1000000 * z;
}
"""


def test_three_dimensions(run):
    nx, ny, nz = 13, 7, 5
    out = np.zeros((nz, ny, nx), dtype="i4")
    run(VOLUME, "index", (4, 3, 2), (4, 3, 3), out, nx, ny, nz)
    z, y, x = np.indices((nz, ny, nx))
    assert np.array_equal(out, x + 1000 * y + 1_000_000 * z)
