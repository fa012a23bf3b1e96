"""How often each byte occurs: atomics, shared memory for a block's own counts, and a grid-stride loop."""

import random
from array import array

from cuda_core import Device, LaunchConfig, Program, launch

SOURCE = """
extern "C" __global__ void histogram(const unsigned char *data, int n, unsigned int *bins)
{
    __shared__ unsigned int mine[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) mine[i] = 0;
    __syncthreads();

    // However many elements there are, a fixed number of threads walks over them in strides.
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[data[i]], 1u);
    __syncthreads();

    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], mine[i]);
}
"""

N = 500_000
random.seed(7)
data = bytes(min(255, max(0, int(random.gauss(128, 32)))) for _ in range(N))
bins = array("I", bytes(4 * 256))

device = Device(0)
with device.create_stream() as stream:
    kernel = Program(SOURCE, "c++").compile("cubin").get_kernel("histogram")
    device_data = device.allocate(N, stream=stream)
    device_bins = device.allocate(4 * 256, stream=stream)
    device_data.copy_from(data, stream=stream)
    device_bins.fill(0, stream=stream)
    launch(stream, LaunchConfig(grid=32, block=256), kernel, device_data, N, device_bins)
    device_bins.copy_to(bins, stream=stream)

for start in range(0, 256, 16):
    total = sum(bins[start : start + 16])
    print(f"{start:3}-{start + 15:3} {'#' * round(60 * total / N * 4)} {total}")

assert list(bins) == [data.count(bytes([value])) for value in range(256)]
print(f"right: {sum(bins)} bytes counted")
