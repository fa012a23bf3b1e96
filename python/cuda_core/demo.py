"""`python -m cuda_core.demo`: compiles a kernel, runs it on the device there is, and checks the result on the host.

Exits with 1 where the result is wrong."""

import sys
from array import array
from time import perf_counter

from cuda_core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = """
template <typename T>
__global__ void saxpy(int n, T a, const T *x, T *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""

COUNT = 1 << 20
FACTOR = 2.0
LAUNCHES = 100


def main() -> int:
    # Whole numbers below 2**24 are exact in a float, so device and host must agree to the last bit.
    x = array("f", (i % 1000 for i in range(COUNT)))
    y = array("f", (i % 777 for i in range(COUNT)))
    result = array("f", bytes(4 * COUNT))
    scratch = array("f", bytes(4 * COUNT))

    with Device(0) as device, device.create_stream() as stream:
        print(f"device        {device.name}, compute capability {'.'.join(map(str, device.compute_capability))}")
        print(f"emulated      {'yes: there is no GPU on this machine' if device.is_emulated else 'no'}")

        begin = perf_counter()
        program = Program(SOURCE, "c++", ProgramOptions(std="c++17", name="demo.cu"))
        kernel = program.compile("cubin", name_expressions=("saxpy<float>",)).get_kernel("saxpy<float>")
        print(f"compile       {1e3 * (perf_counter() - begin):.1f} ms")

        device_x = device.allocate(4 * COUNT, stream=stream)
        device_y = device.allocate(4 * COUNT, stream=stream)
        device_x.copy_from(x, stream=stream)
        device_y.copy_from(y, stream=stream)
        config = LaunchConfig(grid=(COUNT + 255) // 256, block=256)
        launch(stream, config, kernel, COUNT, FACTOR, device_x, device_y)
        device_y.copy_to(result, stream=stream)
        stream.sync()

        # Without an element to work on, what is left is what a launch itself costs.
        begin = perf_counter()
        for _ in range(LAUNCHES):
            launch(stream, LaunchConfig(grid=1, block=32), kernel, 0, FACTOR, device_x, device_y)
        issued = perf_counter() - begin
        print(f"launch        {1e6 * issued / LAUNCHES:.1f} us a call")

        begin = perf_counter()
        launch(stream, config, kernel, COUNT, FACTOR, device_x, device_y)
        stream.sync()
        print(f"kernel        {1e3 * (perf_counter() - begin):.2f} ms for {COUNT} elements")
        device_y.copy_to(scratch, stream=stream)

    wrong = sum(result[i] != FACTOR * x[i] + y[i] or scratch[i] != 2 * FACTOR * x[i] + y[i] for i in range(COUNT))
    print(f"result        {f'{wrong} of {COUNT} elements are WRONG' if wrong else 'right: checked against the host'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
