"""Matrix instructions against a model written from the PTX manual's tables of fragments.

    python3 tests/emulator/ops/test_matrix.py LIBRARY

Every form of tools/golden/forms_matrix.py, a warp at a time: the model puts together the matrices from the registers of
the 32 threads as the manual's formulas say, multiplies in exact arithmetic, and takes the result apart again.
"""

import operator
import os
import pathlib
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "golden"))

import forms_matrix
import make
import operands
from device import Device
from forms import Form

LANES = range(32)
BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f32": 32,
    "s32": 32,
    "f64": 64,
    "s8": 8,
    "u8": 8,
    "s4": 4,
    "u4": 4,
    "b1": 1,
    "e4m3": 8,
    "e5m2": 8,
}


def decoded(bits, kind):
    if kind == "f16":
        return struct.unpack("<e", struct.pack("<H", bits))[0]
    if kind == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    if kind in ("f32", "tf32"):
        return struct.unpack("<f", struct.pack("<I", bits & (0xFFFFE000 if kind == "tf32" else 0xFFFFFFFF)))[0]
    if kind == "f64":
        return struct.unpack("<d", struct.pack("<Q", bits))[0]
    if kind == "e5m2":
        return decoded(bits << 8, "f16")
    if kind == "e4m3":
        exponent, mantissa = bits >> 3 & 15, bits & 7
        value = (8 + mantissa) * 2.0 ** (exponent - 10) if exponent else mantissa * 2.0**-9
        return -value if bits >> 7 else value
    if kind[0] == "s":
        width = BITS[kind]
        return bits - (1 << width) if bits >> (width - 1) else bits
    return bits


def encoded(value, kind):
    if kind == "f16":
        return struct.unpack("<H", struct.pack("<e", value))[0]
    if kind == "f32":
        return struct.unpack("<I", struct.pack("<f", value))[0]
    if kind == "f64":
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    return value & 0xFFFFFFFF


def elements(registers, kind, register_bits):
    """A thread's fragment as the manual numbers it: a0, a1, ... in order through its registers."""
    width = BITS[kind]
    return [word >> at & ((1 << width) - 1) for word in registers for at in range(0, register_bits, width)]


def place_of_a(m, kind, lane, i):
    """(row, column) of a_i of a thread."""
    group, thread = divmod(lane, 4)
    if kind == "f64":  # a_i: rows alternate, columns go on by four
        return (group + 8 * (i % 2), thread + 4 * (i // 2)) if m == 16 else (group, thread)
    each = 32 // BITS[kind]
    half, chunk = (i // each % 2, i // (2 * each)) if m == 16 else (0, i // each)
    return group + 8 * half, thread * each + i % each + 4 * each * chunk


def place_of_b(kind, lane, i):
    group, thread = divmod(lane, 4)
    each = max(32 // BITS[kind], 1)
    return thread * each + i % each + 4 * each * (i // each), group


def place_of_c(lane, i):
    group, thread = divmod(lane, 4)
    return group + 8 * (i // 2), thread * 2 + i % 2


def product(a, b, c, words, kinds):
    """[m][n] of c + a * b, with single bits joined by .and or .xor."""
    m, n, k = len(a), len(b[0]), len(b)
    join = operator.mul if kinds["a"] != "b1" else operator.xor if "xor" in words else operator.and_
    result = [[c[i][j] + sum(join(a[i][x], b[x][j]) for x in range(k)) for j in range(n)] for i in range(m)]
    if "satfinite" in words:
        result = [[min(max(value, -(1 << 31)), (1 << 31) - 1) for value in row] for row in result]
    return result


def gathered(rows, columns, places, values):
    matrix = [[None] * columns for _ in range(rows)]
    for (row, column), value in zip(places, values, strict=True):
        matrix[row][column] = value
    assert all(value is not None for row in matrix for value in row), "the model leaves a hole"
    return matrix


def expected_mma(form, warp):
    """Result columns of one warp from its operand rows."""
    words = form.name.split(".")
    m, n, k = map(int, re.match(r"m(\d+)n(\d+)k(\d+)", words[3]).groups())
    types = [word for word in words if word in BITS]
    kinds = dict(zip("dabc", types, strict=True))
    wide = 64 if kinds["a"] == "f64" else 32
    count_c = m * n * BITS[kinds["c"]] // wide // 32
    count_a = m * k * BITS[kinds["a"]] // wide // 32
    fragments = {
        "a": [row[:count_a] for row in warp],
        "b": [row[count_a : len(row) - count_c] for row in warp],
        "c": [row[len(row) - count_c :] for row in warp],
    }
    place = {
        "a": lambda lane, i: place_of_a(m, kinds["a"], lane, i),
        "b": lambda lane, i: place_of_b(kinds["b"], lane, i),
        "c": place_of_c,
    }
    sizes = {"a": (m, k), "b": (k, n), "c": (m, n)}
    matrices = {}
    for name in "abc":
        places, values = [], []
        for lane in LANES:
            for i, bits in enumerate(elements(fragments[name][lane], kinds[name], wide)):
                places.append(place[name](lane, i))
                values.append(decoded(bits, kinds[name]))
        matrices[name] = gathered(*sizes[name], places, values)
    result = product(matrices["a"], matrices["b"], matrices["c"], words, kinds)
    columns = [[] for _ in form.results]
    each = wide // BITS[kinds["d"]]
    for lane in LANES:
        for register in range(len(form.results)):
            word = 0
            for part in range(each):
                row, column = place_of_c(lane, register * each + part)
                word |= encoded(result[row][column], kinds["d"]) << (part * BITS[kinds["d"]])
            columns[register].append(word)
    return columns


def expected_rows(form, warp):
    """ldmatrix, stmatrix, movmatrix: every thread's four words are a row of eight halves in memory."""
    trans = ".trans" in form.name
    halves = [[word >> shift & 0xFFFF for word in row for shift in (0, 16)] for row in warp]
    if form.name.startswith("movmatrix"):
        matrix = [[halves[4 * row + column // 2][column % 2] for column in range(8)] for row in range(8)]
        return [[matrix[2 * (lane % 4)][lane // 4] | matrix[2 * (lane % 4) + 1][lane // 4] << 16 for lane in LANES]]
    count = int(re.search(r"\.x(\d)", form.name).group(1))
    columns = [[] for _ in form.results]
    if form.name.startswith("ldmatrix"):
        for lane in LANES:
            for register in range(count):
                matrix = halves[8 * register : 8 * register + 8]
                group, pair = lane // 4, 2 * (lane % 4)
                low, high = (matrix[pair][group], matrix[pair + 1][group]) if trans else matrix[group][pair : pair + 2]
                columns[register].append(low | high << 16)
        return columns
    memory = [list(row) for row in halves]
    for lane in LANES:
        for register in range(count):
            group, pair = lane // 4, 2 * (lane % 4)
            for part in range(2):
                row, column = (pair + part, group) if trans else (group, pair + part)
                memory[8 * register + row][column] = halves[lane][2 * register + part]
    return [[memory[lane][2 * i] | memory[lane][2 * i + 1] << 16 for lane in LANES] for i in range(4)]


def expected_wmma(form, warp):
    """Memory as the form fills it: A at 0, B at 512, C at 1024, 16 bytes a thread at a time. A tile of 1024 bytes goes
    on into the next one's place."""
    _, a_layout, b_layout, d_layout, shape, d, a, b, c = form.name.split(".")[:9]
    m, n, k = map(int, re.match(r"m(\d+)n(\d+)k(\d+)", shape).groups())

    memory = b"".join(struct.pack("<4I", *row[at : at + 4]) for at in range(0, len(form.operands), 4) for row in warp)

    def tile(at, kind, rows, columns, layout):
        data = memory[at:]
        size = BITS[kind] // 8
        values = [
            decoded(int.from_bytes(data[at : at + size], "little"), kind)
            for at in range(0, rows * columns * size, size)
        ]
        if layout == "row":
            return [values[row * columns : (row + 1) * columns] for row in range(rows)]
        return [[values[column * rows + row] for column in range(columns)] for row in range(rows)]

    kinds = {"a": a, "b": b, "c": c, "d": d}
    result = product(
        tile(0, a, m, k, a_layout),
        tile(512, b, k, n, b_layout),
        tile(1024, c, m, n, d_layout),
        form.name.split("."),
        kinds,
    )
    flat = (
        [value for row in result for value in row]
        if d_layout == "row"
        else [result[row][column] for column in range(n) for row in range(m)]
    )
    data = b"".join(encoded(value, d).to_bytes(BITS[d] // 8, "little") for value in flat)
    columns = [[] for _ in form.results]
    for lane in LANES:
        for i in range(len(form.results)):
            at = 512 * (i // 4) + 16 * lane + 4 * (i % 4)
            columns[i].append(int.from_bytes(data[at : at + 4], "little"))
    return columns


def expected(form, warp):
    if form.name.startswith("mma"):
        return expected_mma(form, warp)
    return expected_wmma(form, warp) if form.name.startswith("wmma") else expected_rows(form, warp)


def main():
    os.environ["CUDA_CORE_EMULATOR_COMPUTE_CAPABILITY"] = "9.0"
    device = Device(sys.argv[1])
    wanted = [("matrix", form) for form in forms_matrix.matrix(Form)]
    sets = {form.operands: operands.make_set(form.operands)[:64] for _, form in wanted}
    columns = {kinds: list(zip(*rows, strict=True)) for kinds, rows in sets.items()}
    refused, failed = [], 0
    for form, got in make.measure(device, wanted, columns.__getitem__, refused):
        rows = sets[form.operands]
        model = [[] for _ in form.results]
        for first in range(0, len(rows), 32):
            for column, more in zip(model, expected(form, rows[first : first + 32]), strict=True):
                column.extend(more)
        wrong = [
            (i, lane) for i, column in enumerate(model) for lane in range(len(rows)) if got[i][lane] != column[lane]
        ]
        if wrong:
            failed += 1
            i, lane = wrong[0]
            words = f"{i} of thread {lane}: {got[i][lane]:#x}, not {model[i][lane]:#x}"
            print(f"{form.name}: {len(wrong)} registers differ; {words}")
    for form, reason in refused:
        print(f"{form.name}: refused: {reason}")
    print(f"{len(wanted)} matrix forms: {failed} differ, {len(refused)} refused")
    return 1 if failed or refused or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
