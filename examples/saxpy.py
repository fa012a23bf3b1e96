"""y = a * x + y: the shortest whole program. Compile, copy to the device, launch, copy back, check."""

from array import array

from cuda_core import Device, LaunchConfig, Program, launch

SOURCE = """
template <typename T>
__global__ void saxpy(int n, T a, const T *x, T *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""

N = 100_000
x = array("f", range(N))
y = array("f", [1.0]) * N

with Device(0) as device, device.create_stream() as stream:
    print(f"on {device.name}")
    program = Program(SOURCE, "c++", {"std": "c++17"})
    kernel = program.compile("cubin", name_expressions=("saxpy<float>",)).get_kernel("saxpy<float>")

    device_x = device.allocate(4 * N, stream=stream)
    device_y = device.allocate(4 * N, stream=stream)
    device_x.copy_from(x, stream=stream)
    device_y.copy_from(y, stream=stream)

    # One thread an element: enough blocks of 256 threads to cover all of them.
    launch(stream, LaunchConfig(grid=(N + 255) // 256, block=256), kernel, N, 2.0, device_x, device_y)

    device_y.copy_to(y, stream=stream)
# Leaving the block waited for the stream.

assert all(value == 2 * i + 1 for i, value in enumerate(y))
print(f"right: {N} elements, the last one is {y[-1]}")
