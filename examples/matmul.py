"""A matrix product two ways: one thread an element, and with tiles in shared memory that a block reads together."""

import random
from array import array

from cuda_core import Device, EventOptions, LaunchConfig, Program, launch

SOURCE = """
#define TILE 16

extern "C" __global__ void simple(const float *a, const float *b, float *c, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

extern "C" __global__ void tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < n; start += TILE) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * n + start + threadIdx.x];
        tile_b[threadIdx.y][threadIdx.x] = b[(start + threadIdx.y) * n + column];
        __syncthreads(); // nobody reads a tile before everybody has written it
        for (int k = 0; k < TILE; k++) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        __syncthreads(); // nobody overwrites a tile that somebody still reads
    }
    c[row * n + column] = sum;
}
"""

N = 256  # a multiple of the tile
random.seed(1)
# Small whole numbers: their products and sums are exact in a float.
a = array("f", (random.randint(-8, 8) for _ in range(N * N)))
b = array("f", (random.randint(-8, 8) for _ in range(N * N)))
c = array("f", bytes(4 * N * N))

device = Device(0)
print(f"on {device.name}")
timed = EventOptions(timing_enabled=True)
with device.create_stream() as stream:
    module = Program(SOURCE, "c++").compile("cubin")
    device_a, device_b, device_c = (device.allocate(4 * N * N, stream=stream) for _ in range(3))
    device_a.copy_from(a, stream=stream)
    device_b.copy_from(b, stream=stream)
    config = LaunchConfig(grid=(N // 16, N // 16), block=(16, 16))

    for name in ("simple", "tiled"):
        kernel = module.get_kernel(name)
        launch(stream, config, kernel, device_a, device_b, device_c, N)  # the first launch loads the kernel
        start = stream.record(options=timed)
        launch(stream, config, kernel, device_a, device_b, device_c, N)
        end = stream.record(options=timed)
        device_c.copy_to(c, stream=stream)
        stream.sync()
        milliseconds = end - start
        print(f"{name:6} {milliseconds:8.3f} ms {2 * N**3 / milliseconds / 1e6:8.2f} GFLOP/s")
        for row, column in ((0, 0), (17, 203), (255, 255), (100, 31)):
            assert c[row * N + column] == sum(a[row * N + k] * b[k * N + column] for k in range(N))

print("right: elements checked against the host")
