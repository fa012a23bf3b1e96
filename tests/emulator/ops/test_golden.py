"""Runs every measured instruction form on the emulator and compares it with what a GPU gave (golden.xz).

    python3 tests/emulator/ops/test_golden.py LIBRARY [--only TEXT] [--isa base|v3|v4]

LIBRARY is the emulator's shared library. Exact forms are compared bit for bit; the approximate ones, where PTX allows
an error, within the bound that tools/golden/forms.py gives. Without --isa each instruction set that this machine has
is checked, in a process of its own. Made by tools/golden/make.sh.
"""

import argparse
import math
import os
import pathlib
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "tools" / "golden"))

import make  # noqa: E402
import vectors  # noqa: E402
from device import Device  # noqa: E402

SHOWN = 4  # differing vectors of one form
SMALLEST_NORMAL = {"f32": 2.0**-126, "f64": 2.0**-1022, "f16": 2.0**-14, "bf16": 2.0**-126}


def value_of(kind, bits):
    if kind == "f32":
        return struct.unpack("<f", struct.pack("<I", bits))[0]
    if kind == "f64":
        return struct.unpack("<d", struct.pack("<Q", bits))[0]
    if kind == "f16":
        return struct.unpack("<e", struct.pack("<H", bits))[0]
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def is_within(kind, bound, got, expected):
    """Whether two values of a float type are as near as `bound` says. NaNs and infinities must be the same bits."""
    if kind.endswith("x2"):
        half = kind[:-2]
        return is_within(half, bound, got & 0xFFFF, expected & 0xFFFF) and is_within(
            half, bound, got >> 16, expected >> 16
        )
    if got == expected:
        return True
    a, b = value_of(kind, got), value_of(kind, expected)
    if not (math.isfinite(a) and math.isfinite(b)):
        return False
    smallest = SMALLEST_NORMAL[kind]
    if bound.get("flush") and abs(a) <= smallest and abs(b) <= smallest:
        return math.copysign(1, a) == math.copysign(1, b)
    return abs(a - b) <= max(bound.get("relative", 0) * max(abs(a), abs(b)), bound.get("absolute", 0))


def differences(form, got, expected):
    """Indexes of the vectors that differ."""
    wrong = set()
    for kind, ours, theirs in zip(form.results, got, expected, strict=False):
        if ours == theirs:
            continue
        wrong.update(
            i
            for i, (a, b) in enumerate(zip(ours, theirs, strict=False))
            if a != b and not (form.bound and is_within(kind, form.bound, a, b))
        )
    return sorted(wrong)


def report(form, operands, got, expected, wrong):
    print(f"{form.name}: {len(wrong)} of {len(expected[0])} differ")
    for i in wrong[:SHOWN]:
        words = [" ".join(f"{column[i]:#x}" for column in columns) for columns in (operands, got, expected)]
        print(f"    of {words[0]}: {words[1]}, the GPU {words[2]}")


def check(library, only):
    started = time.monotonic()
    device = Device(library)
    made_on, measured = vectors.read(HERE / "golden.xz")
    measured = [entry for entry in measured if only in entry[0].name]
    golden = {form.name: (operands, results) for form, operands, results in measured}
    refused, failed, count = [], 0, 0
    wanted = [(form.name.split(".")[0], form) for form, _, _ in measured]
    operands_of = {form.operands: operands for form, operands, _ in measured}
    for form, got in make.measure(device, wanted, operands_of.__getitem__, refused):
        operands, expected = golden[form.name]
        wrong = differences(form, got, expected)
        count += len(expected[0])
        if wrong:
            failed += 1
            report(form, operands, got, expected, wrong)
    for form, reason in refused:
        print(f"{form.name}: refused: {reason}")
    print(
        f"{device.name()}: {len(golden)} forms, {count} vectors measured on {made_on}; {failed} forms differ, "
        f"{len(refused)} refused; {time.monotonic() - started:.1f} s"
    )
    return 1 if failed or refused or not golden else 0


def instruction_sets():
    """Those of the emulator that this machine can run."""
    try:
        flags = set(pathlib.Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0].split())
    except (OSError, IndexError):
        return ["base"]
    sets = ["base"]
    if {"avx2", "fma", "bmi1", "bmi2"} <= flags:
        sets.append("v3")
        if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags:
            sets.append("v4")
    return sets


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("--only", default="", help="only forms whose name contains this")
    parser.add_argument("--isa", choices=["base", "v3", "v4"])
    options = parser.parse_args()
    os.environ["CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY"] = "9.0"
    if options.isa:
        os.environ["CUDA_CORE_EMULATOR_ISA"] = options.isa
        return check(options.library, options.only)
    status = 0
    for isa in instruction_sets():
        print(f"-- {isa}", flush=True)
        status |= subprocess.run(
            [sys.executable, __file__, options.library, "--only", options.only, "--isa", isa], check=False
        ).returncode
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
