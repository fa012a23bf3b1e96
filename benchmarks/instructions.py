"""How many instructions each call takes above the driver: counted by valgrind over a driver that does nothing, so that
the figures repeat on any machine and under any load.

usage: python benchmarks/instructions.py [--only TEXT] [--json FILE] [--against FILE] [--tolerance PERCENT]

--against compares with the figures of an earlier --json and exits with 1 where a call takes more than the tolerance
(5 %) over them: speed is held by this count and not by a timed test. Counts are of one build of Python and of the
package, and include the interpreter's loop of about 30 instructions.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

KERNELS = {
    "none": ("", 0),
    "pointers1": (".u64", 1),
    "pointers16": (".u64", 16),
    "ints16": (".u32", 16),
    "ints256": (".u32", 256),
}

CALLS = {
    "launch, no argument": "launch(stream, config, none)",
    "launch, 1 Buffer": "launch(stream, config, pointers1, buffer)",
    "launch, 16 Buffers": "launch(stream, config, pointers16, *buffers)",
    "launch, 16 ints": "launch(stream, config, ints16, *ints)",
    "launch, 256 ints": "launch(stream, config, ints256, *many)",
    "event create + close": "device.create_event().close()",
    "event.is_done": "event.is_done",
    "event.sync": "event.sync()",
    "stream.record(event)": "stream.record(event)",
    "stream.sync": "stream.sync()",
    "stream create + close": "device.create_stream().close()",
    "allocate + close, stream-ordered": "device.allocate(1024, stream=stream).close()",
    "copy device to device, 1 KiB": "buffer.copy_to(other, stream=stream)",
    "fill, 1 KiB": "buffer.fill(0, stream=stream)",
    "Device() current": "Device()",
    "device attribute": "properties.warp_size",
    "LaunchConfig": "LaunchConfig(grid=100, block=256)",
}


def ptx():
    """Kernels of the parameters that null_driver.c reads from their names."""
    text = ".version 8.0\n.target sm_80\n.address_size 64\n"
    for name, (kind, count) in KERNELS.items():
        parameters = ", ".join(f".param {kind} {name}_param_{i}" for i in range(count))
        text += f".visible .entry {name}({parameters})\n{{\n    ret;\n}}\n"
    return text.encode()


SETUP = """
import gc, sys
gc.disable()
from cuda_core import Device, LaunchConfig, ObjectCode, launch
device = Device(0)
device.set_current()
stream = device.create_stream()
event = device.create_event()
stream.record(event)
buffer, other = device.allocate(1024, stream=stream), device.allocate(1024, stream=stream)
config = LaunchConfig(grid=1, block=1)
code = ObjectCode.from_ptx({ptx!r})
none, pointers1, pointers16, ints16, ints256 = map(code.get_kernel, {names!r})
buffers, ints, many = (buffer,) * 16, tuple(range(16)), tuple(range(256))
properties = device.properties
def loop(rounds):
    for _ in rounds:
        {call}
loop([None] * 200)
loop([None] * int(sys.argv[1]))
"""


def instructions(script, rounds, driver):
    with tempfile.TemporaryDirectory() as directory:
        command = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={directory}/out",
            sys.executable,
            script,
            str(rounds),
        ]
        environment = {**os.environ, "CUDA_CORE_DRIVER": driver, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.run(command, env=environment, capture_output=True, text=True)
        if process.returncode != 0:
            sys.exit(process.stderr)
        return int(re.search(r"Collected : (\d+)", process.stderr)[1])


def measure(only, rounds=2000):
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc", "clang"))), None)
    if compiler is None or shutil.which("valgrind") is None:
        sys.exit("a C compiler and valgrind are needed")
    counts = {}
    with tempfile.TemporaryDirectory() as directory:
        driver, script = os.path.join(directory, "libcuda.so.1"), os.path.join(directory, "loop.py")
        source = os.path.join(HERE, "null_driver.c")
        subprocess.run([compiler, "-std=gnu11", "-O2", "-shared", "-fPIC", source, "-o", driver], check=True)
        for name, call in CALLS.items():
            if only in name:
                with open(script, "w") as file:
                    file.write(SETUP.format(ptx=ptx(), names=tuple(KERNELS), call=call))
                few, many = (instructions(script, n, driver) for n in (0, rounds))
                counts[name] = (many - few) / rounds
                print(f"| {name} | {counts[name]:.0f} |", flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="the calls whose name contains this")
    parser.add_argument("--json", metavar="FILE", help="write the counts there")
    parser.add_argument("--against", metavar="FILE", help="compare with the counts there")
    parser.add_argument("--tolerance", type=float, default=5.0, metavar="PERCENT")
    options = parser.parse_args()

    print("| call | instructions |\n| --- | ---: |")
    counts = measure(options.only)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(counts, file, indent=1)
    if options.against:
        with open(options.against) as file:
            before = json.load(file)
        worse = [n for n in counts if n in before and counts[n] > before[n] * (1 + options.tolerance / 100)]
        for name in worse:
            print(f"{name}: {before[name]:.0f} instructions before, {counts[name]:.0f} now", file=sys.stderr)
        sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
