"""Matrix forms: mma, wmma, ldmatrix, stmatrix, movmatrix. A form is a whole warp's work.

Operands are small integers in every format, so that results are exact in whatever order a tensor core adds; what is
measured is where each element lies and how .satfinite, .trans and the layouts act.
"""

import itertools


def listed(letter, first, count):
    return "{" + ", ".join(f"${letter}{first + i}" for i in range(count)) + "}"


def mma(make, words, result, a, b, c, target=80, text=None):
    """`a`, `b`, `c`: (kind, registers of a thread)."""
    count = {"a": a[1], "b": b[1], "c": c[1]}
    operands = [
        listed("a", 0, count["a"]),
        listed("a", count["a"], count["b"]),
        listed("a", count["a"] + count["b"], count["c"]),
    ]
    name = f"mma.sync.aligned.{words}"
    line = f"{name} {listed('d', 0, c[1])}, {', '.join(operands)};"
    return make(name, line, (result,) * c[1], (a[0],) * a[1] + (b[0],) * b[1] + (c[0],) * c[1], target)


def mma_forms(make):
    for t, (k, registers) in itertools.product(("f16", "bf16"), ((16, 4), (8, 2))):
        pair = f"{t}x2/matrix"
        yield mma(
            make,
            f"m16n8k{k}.row.col.f32.{t}.{t}.f32",
            "f32",
            (pair, registers),
            (pair, registers // 2),
            ("f32/matrix", 4),
        )
        if t == "f16":
            yield mma(
                make,
                f"m16n8k{k}.row.col.f16.f16.f16.f16",
                "f16x2",
                (pair, registers),
                (pair, registers // 2),
                (pair, 2),
            )
    for k, registers in ((8, 4), (4, 2)):
        yield mma(
            make,
            f"m16n8k{k}.row.col.f32.tf32.tf32.f32",
            "f32",
            ("b32/tf32", registers),
            ("b32/tf32", registers // 2),
            ("f32/matrix", 4),
        )
    for a, b, limit in itertools.product(("s8", "u8"), ("s8", "u8"), ("", ".satfinite")):
        for shape, registers in (("m16n8k32", (4, 2, 4)), ("m16n8k16", (2, 1, 4)), ("m8n8k16", (1, 1, 2))):
            yield mma(
                make,
                f"{shape}.row.col{limit}.s32.{a}.{b}.s32",
                "s32",
                ("b32", registers[0]),
                ("b32", registers[1]),
                ("s32", registers[2]),
            )
    for a, b, limit in itertools.product(("s4", "u4"), ("s4", "u4"), ("", ".satfinite")):
        for shape, registers in (("m16n8k64", (4, 2, 4)), ("m16n8k32", (2, 1, 4)), ("m8n8k32", (1, 1, 2))):
            yield mma(
                make,
                f"{shape}.row.col{limit}.s32.{a}.{b}.s32",
                "s32",
                ("b32", registers[0]),
                ("b32", registers[1]),
                ("s32", registers[2]),
            )
    for operation in ("xor", "and"):
        for shape, registers in (("m16n8k256", (4, 2, 4)), ("m16n8k128", (2, 1, 4)), ("m8n8k128", (1, 1, 2))):
            yield mma(
                make,
                f"{shape}.row.col.s32.b1.b1.s32.{operation}.popc",
                "s32",
                ("b32", registers[0]),
                ("b32", registers[1]),
                ("s32", registers[2]),
            )
    yield mma(make, "m8n8k4.row.col.f64.f64.f64.f64", "f64", ("f64/matrix", 1), ("f64/matrix", 1), ("f64/matrix", 2))
    for k in (4, 8, 16):
        yield mma(
            make,
            f"m16n8k{k}.row.col.f64.f64.f64.f64",
            "f64",
            ("f64/matrix", k // 2),
            ("f64/matrix", k // 4),
            ("f64/matrix", 4),
            target=90,
        )
    for a, b in itertools.product(("e4m3", "e5m2"), repeat=2):
        yield mma(
            make,
            f"m16n8k32.row.col.f32.{a}.{b}.f32",
            "f32",
            (f"b32/{a}", 4),
            (f"b32/{b}", 2),
            ("f32/matrix", 4),
            target=89,
        )


STORE_ROW = "st.shared.v4.b32 [$smem], {$a0, $a1, $a2, $a3}; bar.warp.sync 0xffffffff; "
LOAD_ROW = "bar.warp.sync 0xffffffff; ld.shared.v4.b32 {$d0, $d1, $d2, $d3}, [$smem];"


def rows(make):
    """Each thread keeps one row of 8 halves; the address it gives is its own."""
    for count, trans in itertools.product((1, 2, 4), ("", ".trans")):
        name = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
        yield make(name, f"{STORE_ROW}{name} {listed('d', 0, count)}, [$smem];", ("b32",) * count, ("b32",) * 4, 80)
        name = f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
        yield make(
            name, f"{STORE_ROW}{name} [$smem], {listed('a', 0, count)}; {LOAD_ROW}", ("b32",) * 4, ("b32",) * 4, 90
        )
    yield make(
        "movmatrix.sync.aligned.m8n8.trans.b16",
        "movmatrix.sync.aligned.m8n8.trans.b16 $d0, $a0;",
        ("b32",),
        ("b32",),
        80,
    )


def wmma(make, shape, a_layout, b_layout, d_layout, types, registers, operands, limit=""):
    """Loads, multiplies and stores a whole tile in the warp's scratch: A at 0, B at 512, C and D at 1024."""
    a_type, b_type, c_type, d_type = types
    m, n, k = (int(part) for part in shape.replace("m", " ").replace("n", " ").replace("k", " ").split())
    strides = {
        "a": k if a_layout == "row" else m,
        "b": n if b_layout == "row" else k,
        "d": n if d_layout == "row" else m,
    }
    wide = c_type in ("f32", "s32")
    fragment = {name: listed("x", first, registers[name]) for name, first in (("a", 0), ("b", 8), ("c", 16), ("d", 24))}
    lines = [
        "mov.u32 $t6, %laneid; mul.wide.u32 $w6, $t6, 16; add.u64 $w6, $w6, $warp;",
        "st.global.v4.b32 [$w6], {$a0, $a1, $a2, $a3}; st.global.v4.b32 [$w6+512], {$a4, $a5, $a6, $a7};",
        "st.global.v4.b32 [$w6+1024], {$a8, $a9, $a10, $a11};",
    ]
    if wide:
        lines.append("st.global.v4.b32 [$w6+1536], {$a12, $a13, $a14, $a15};")
    words = f"{limit}" if limit else ""
    multiply = f"{d_type}.{c_type}" if a_type == "f16" else f"{d_type}.{a_type}.{b_type}.{c_type}"
    lines += [
        "bar.warp.sync 0xffffffff;",
        f"wmma.load.a.sync.aligned.{a_layout}.{shape}.global.{a_type} {fragment['a']}, [$warp], {strides['a']};",
        f"wmma.load.b.sync.aligned.{b_layout}.{shape}.global.{b_type} {fragment['b']}, [$warp+512], {strides['b']};",
        f"wmma.load.c.sync.aligned.{d_layout}.{shape}.global.{c_type} {fragment['c']}, [$warp+1024], {strides['d']};",
        (
            f"wmma.mma.sync.aligned.{a_layout}.{b_layout}.{shape}.{multiply}{words} {fragment['d']}, {fragment['a']}, "
            f"{fragment['b']}, {fragment['c']};"
        ),
        "bar.warp.sync 0xffffffff;",
        f"wmma.store.d.sync.aligned.{d_layout}.{shape}.global.{d_type} [$warp+1024], {fragment['d']}, {strides['d']};",
        "bar.warp.sync 0xffffffff; ld.global.v4.b32 {$d0, $d1, $d2, $d3}, [$w6+1024];",
    ]
    if wide:
        lines.append("ld.global.v4.b32 {$d4, $d5, $d6, $d7}, [$w6+1536];")
    name = f"wmma.{a_layout}.{b_layout}.{d_layout}.{shape}.{d_type}.{a_type}.{b_type}.{c_type}{limit}"
    return make(name, " ".join(lines), ("b32",) * (8 if wide else 4), operands, 80)


def wmma_forms(make):
    for shape in ("m16n16k16", "m32n8k16", "m8n32k16"):
        for a, b, d in itertools.product(("row", "col"), repeat=3):
            if shape != "m16n16k16" and d == "col":
                continue
            yield wmma(
                make,
                shape,
                a,
                b,
                d,
                ("f16", "f16", "f32", "f32"),
                {"a": 8, "b": 8, "c": 8, "d": 8},
                ("f16x2/matrix",) * 8 + ("f32/matrix",) * 8,
            )
        yield wmma(
            make,
            shape,
            "row",
            "col",
            "row",
            ("f16", "f16", "f16", "f16"),
            {"a": 8, "b": 8, "c": 4, "d": 4},
            ("f16x2/matrix",) * 12,
        )
        bytes_of = {"m16n16k16": (2, 2), "m32n8k16": (4, 1), "m8n32k16": (1, 4)}[shape]
        for t, limit in itertools.product(("s8", "u8"), ("", ".satfinite")):
            yield wmma(
                make,
                shape,
                "row",
                "col",
                "row",
                (t, t, "s32", "s32"),
                {"a": bytes_of[0], "b": bytes_of[1], "c": 8, "d": 8},
                ("b32",) * 8 + ("s32",) * 8,
                limit,
            )


def matrix(make):
    yield from mma_forms(make)
    yield from rows(make)
    yield from wmma_forms(make)
