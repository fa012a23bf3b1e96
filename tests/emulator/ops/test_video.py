"""Scalar video instructions against PTX's own rules, in the forms where no GPU can be the judge.

    python3 tests/emulator/ops/test_video.py LIBRARY

No GPU since sm_70 has these instructions, and what ptxas 13.0 writes in their place departs from PTX in the forms that
tools/golden/forms.py leaves out (departs_from_ptx). The model here follows the pseudo-code of the PTX manual.
"""

import itertools
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "golden"))

import forms
import make
import operands
from device import Device

WORD = (1 << 32) - 1


def signed(value, bits=32):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def typed(value, type_name):
    return signed(value) if type_name == "s32" else value & WORD


def part(value, selector, type_name):
    bits = {"b": 8, "h": 16}.get(selector[1:2], 32)
    position = bits * int(selector[2:] or 0)
    field = value >> position & ((1 << bits) - 1)
    return signed(field, bits) if type_name == "s32" else field


def limits(type_name, bits):
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type_name == "s32" else (0, (1 << bits) - 1)


def clamped(value, low, high):
    return min(max(value, low), high)


def finished(value, words, d_type, d_selector, c):
    """Saturation, then the second operation or the merge."""
    bits = {"b": 8, "h": 16}.get(d_selector[1:2], 32)
    if "sat" in words:
        value = clamped(value, *limits(d_type, bits))
    second = words[-1] if words[-1] in ("add", "min", "max") else ""
    if second:
        value = typed(value, d_type)
        c = typed(c, d_type)
        return {"add": value + c, "min": min(value, c), "max": max(value, c)}[second] & WORD
    if bits == 32:
        return value & WORD
    position = bits * int(d_selector[2:])
    field = ((1 << bits) - 1) << position
    return (c & ~field & WORD) | (value << position & field)


def multiplied(a, b, c, words, a_type, b_type):
    is_signed = "s32" in (a_type, b_type)
    total = a * b + (signed(c) if is_signed else c) + ("po" in words)
    total >>= 7 if "shr7" in words else 15 if "shr15" in words else 0
    if "sat" in words:
        total = clamped(total, *limits("s32" if is_signed else "u32", 32))
    return total & WORD


def expected(form, values):
    """The model's result for one form and its operand bits."""
    mnemonic, arguments = form.text.rstrip(";").split(None, 1)
    words = mnemonic.split(".")
    selectors = ["." + place.split(".")[1] if "." in place else "" for place in arguments.split(", ")]
    d_type, a_type, b_type = words[1:4]
    a = part(values[0], selectors[1], a_type)
    b = part(values[1], selectors[2], b_type)
    c = values[2] if len(values) > 2 else 0
    if words[0] == "vmad":
        return multiplied(a, b, c, words, a_type, b_type)
    if words[0] in ("vshl", "vshr"):
        count = b & 31 if "wrap" in words else min(b, 32)
        value = a << count if words[0] == "vshl" else a >> count
    else:
        value = {"vadd": a + b, "vsub": a - b, "vabsdiff": abs(a - b), "vmin": min(a, b), "vmax": max(a, b)}[words[0]]
    return finished(value, words, d_type, selectors[0], c)


def main():
    os.environ["CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY"] = "9.0"
    device = Device(sys.argv[1])
    wanted = [("video", form) for form in forms.video() if forms.departs_from_ptx(form.name)]
    sets = {form.operands: operands.make_set(form.operands) for _, form in wanted}
    columns = {kinds: list(zip(*rows, strict=False)) for kinds, rows in sets.items()}
    refused, failed, count = [], 0, 0
    for form, got in make.measure(device, wanted, columns.__getitem__, refused):
        for row, value in zip(sets[form.operands], got[0], strict=False):
            count += 1
            if value != expected(form, row):
                failed += 1
                if failed < 20:
                    print(f"{form.name} of {' '.join(map(hex, row))}: {value:#x}, not {expected(form, row):#x}")
    for form, reason in itertools.islice(refused, 20):
        print(f"{form.name}: refused: {reason}")
    print(f"{len(wanted)} video forms, {count} vectors: {failed} differ, {len(refused)} refused")
    return 1 if failed or refused or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
