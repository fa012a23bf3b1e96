"""How fast the emulated device runs kernels, on one worker and on all.

usage: python benchmarks/emulator.py [--json FILE] [--repeats N]

Three kernels, the median of several runs:

- a loop of 16 multiply-adds, counted in PTX instructions a lane executes each second (the loop's own three are counted
  as well);
- saxpy, one thread an element, in threads a second;
- a matrix product with 16 by 16 tiles in shared memory, in floating-point operations a second (2 n**3 of them);

and two costs: a launch of one block that is waited for, and loading a module, for each 1,000 lines of PTX.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings

AIMS = {
    "multiply-add loop, lane instructions/s": (3e9, 6e9, 12e9),
    "saxpy, threads/s": (120e6, 250e6, 500e6),
    "tiled matrix product, FLOP/s": (1.2e9, 2.5e9, 5e9),
}
COSTS = {"launch of one block, us": 10, "load, ms per 1,000 PTX lines": 1}

CHAIN = 16
ROUNDS = 2000
PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry chain(.param .u64 out, .param .u32 rounds, .param .f32 a)
{
    .reg .pred %p;
    .reg .b32 %i, %n, %t;
    .reg .f32 %x, %y, %z, %w, %a;
    .reg .b64 %o, %d;
    ld.param.u64 %o, [out];
    ld.param.u32 %n, [rounds];
    ld.param.f32 %a, [a];
    mov.u32 %t, %tid.x;
    cvt.rn.f32.u32 %x, %t;
    mov.f32 %y, %x;
    mov.f32 %z, %x;
    mov.f32 %w, %x;
    mov.u32 %i, 0;
$loop:
""" + (
    """
    fma.rn.f32 %x, %x, %a, %a;
    fma.rn.f32 %y, %y, %a, %a;
    fma.rn.f32 %z, %z, %a, %a;
    fma.rn.f32 %w, %w, %a, %a;
"""
    * (CHAIN // 4)
    + """
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra $loop;
    add.f32 %x, %x, %y;
    add.f32 %x, %x, %z;
    add.f32 %x, %x, %w;
    cvta.to.global.u64 %o, %o;
    mul.wide.u32 %d, %t, 4;
    add.u64 %o, %o, %d;
    st.global.f32 [%o], %x;
    ret;
}
"""
)

SOURCE = """
extern "C" __global__ void none() {}
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
#define TILE 16
extern "C" __global__ void product(const float *a, const float *b, float *c, int n)
{
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < n; start += TILE) {
        as[threadIdx.y][threadIdx.x] = a[row * n + start + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(start + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
"""


def median_seconds(run, repeats):
    run()  # loads the kernel
    results = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        results.append(time.perf_counter() - begin)
    return statistics.median(results)


def measure(repeats):
    """The figures of this process's device, by name."""
    from cuda_core import Device, LaunchConfig, ObjectCode, Program, launch

    warnings.simplefilter("ignore")
    device = Device(0)
    figures = {"device": device.name}
    if not device.is_emulated:
        sys.exit("benchmarks/emulator.py measures the emulated device: set CUDA_CORE_DRIVER=emulator")
    module = Program(SOURCE, "c++").compile("cubin")
    with device.create_stream() as stream:

        def seconds(config, kernel, *arguments):
            def run():
                launch(stream, config, kernel, *arguments)
                stream.sync()

            return median_seconds(run, repeats)

        out = device.allocate(4 * 256, stream=stream)
        blocks = 64
        chain = ObjectCode.from_ptx(PTX.encode()).get_kernel("chain")
        took = seconds(LaunchConfig(grid=blocks, block=256), chain, out, ROUNDS, 0.5)
        figures["multiply-add loop, lane instructions/s"] = blocks * 256 * ROUNDS * (CHAIN + 3) / took

        n = 1 << 21
        x, y = device.allocate(4 * n, stream=stream), device.allocate(4 * n, stream=stream)
        x.fill(0, stream=stream)
        y.fill(0, stream=stream)
        took = seconds(LaunchConfig(grid=n // 256, block=256), module.get_kernel("saxpy"), n, 2.0, x, y)
        figures["saxpy, threads/s"] = n / took

        n = 384
        took = seconds(LaunchConfig(grid=(n // 16, n // 16), block=(16, 16)), module.get_kernel("product"), x, x, y, n)
        figures["tiled matrix product, FLOP/s"] = 2 * n**3 / took

        none, one = module.get_kernel("none"), LaunchConfig(grid=1, block=32)
        figures["launch of one block, us"] = 1e6 * seconds(one, none)
        figures["load, ms per 1,000 PTX lines"] = load_milliseconds(repeats)
    return figures


def load_milliseconds(repeats):
    """Loading includes parsing, checking and finding a kernel; the text differs each time."""
    from cuda_core import ObjectCode, Program

    kernels = [SOURCE.replace("void ", f"void v{i}_") for i in range(40)]
    ptx = Program("\n".join(kernels), "c++").compile("ptx").code.rstrip(b"\0")
    lines = ptx.count(b"\n")
    results = []
    for i in range(repeats + 1):
        text = ptx + b"\n// %d\n" % i
        begin = time.perf_counter()
        ObjectCode.from_ptx(text).get_kernel("v0_none")
        results.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(results[1:]) / (lines / 1000)


def in_a_process(workers, repeats):
    environment = {**os.environ, "CUDA_CORE_DRIVER": "emulator"}
    environment.pop("CUDA_CORE_EMULATOR_WORKERS", None)
    if workers:
        environment["CUDA_CORE_EMULATOR_WORKERS"] = str(workers)
    command = [sys.executable, os.path.abspath(__file__), "--here", "--repeats", str(repeats)]
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(process.stdout)


def shown(value):
    for factor, letter in ((1e9, " G"), (1e6, " M")):
        if value >= factor:
            return f"{value / factor:.2f}{letter}"
    return f"{value:.2f}"


def table(one, all_, cores):
    lines = [
        f"| | one worker | {cores} workers | scaling | first aim | then | stretch | one worker / first aim |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, aims in AIMS.items():
        scaling = all_[name] / one[name] / cores
        cells = [shown(one[name]), shown(all_[name]), f"{scaling:.2f} of the cores", *map(shown, aims)]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {one[name] / aims[0]:.2f} |")
    for name, aim in COSTS.items():
        cells = [shown(one[name]), shown(all_[name]), "", shown(aim), "", ""]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {one[name] / aim:.2f} (1 or less is met) |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.repeats)))
        return
    cores = len(os.sched_getaffinity(0))
    one, all_ = in_a_process(1, options.repeats), in_a_process(None, options.repeats)
    print(f"{one['device']}, {processor()}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}\n")
    print(table(one, all_, cores))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"one worker": one, "all workers": all_, "workers": cores}, file, indent=1)


def processor():
    with open("/proc/cpuinfo") as information:
        for line in information:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
