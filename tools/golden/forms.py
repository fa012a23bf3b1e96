"""Every opcode form that the golden vectors cover.

A form is a piece of PTX with `$d0`, `$d1` for results, `$a0`... for operands, `$mem` and `$smem` for the address of
64 bytes of the thread's own in global and 16 in shared memory, `$warp` for the global bytes of the warp's first thread,
and `$w0`, `$t0`, `$h0`... for temporaries of 64, 32 and 16 bits, `$x0`... for more of 32, and predicates (`$q0`).
Operand kinds are
those of operands.py; a result kind is a PTX type.

`bound` is None where the result is exact, else how far two conforming implementations may be apart:
  {"relative": r, "absolute": a, "flush": bool} on values of the result type; either is enough.
"""

import itertools
import re
from typing import NamedTuple

import forms_matrix


class Form(NamedTuple):
    name: str
    text: str
    results: tuple
    operands: tuple
    target: int = 80
    bound: dict | None = None


UNSIGNED = ("u16", "u32", "u64")
SIGNED = ("s16", "s32", "s64")
INTEGERS = UNSIGNED + SIGNED
SHIFT = "u32/shift"
ROUNDINGS = ("rn", "rz", "rm", "rp")


def op(name, result, *operands, target=80, bound=None, text=None, label=None):
    """The common case: one instruction, its operands in order."""
    if text is None:
        arguments = ["$d0"] + [f"$a{i}" for i in range(len(operands))]
        text = f"{name} {', '.join(arguments)};"
    return Form(label or name, text, (result,), operands, target, bound)


def integer():
    for t in INTEGERS:
        for name in ("add", "sub", "div", "rem", "min", "max"):
            yield op(f"{name}.{t}", t, t, t)
        for name in ("mul.lo", "mul.hi"):
            yield op(f"{name}.{t}", t, t, t)
            yield op(f"{name.replace('mul', 'mad')}.{t}", t, t, t, t)
        yield op(f"sad.{t}", t, t, t, t)
        if t[1:] != "64":
            wide = {"16": "32", "32": "64"}[t[1:]]
            yield op(f"mul.wide.{t}", t[0] + wide, t, t)
            yield op(f"mad.wide.{t}", t[0] + wide, t, t, t[0] + wide)
    for t in SIGNED:
        yield op(f"abs.{t}", t, t)
        yield op(f"neg.{t}", t, t)
    for name in ("add", "sub"):
        yield op(f"{name}.sat.s32", "s32", "s32", "s32")
    yield op("mad.hi.sat.s32", "s32", "s32", "s32", "s32")
    for t in ("u32", "s32"):
        for half in ("lo", "hi"):
            yield op(f"mul24.{half}.{t}", t, t, t)
            yield op(f"mad24.{half}.{t}", t, t, t, t)
    yield op("mad24.hi.sat.s32", "s32", "s32", "s32", "s32")
    for t in ("u16x2", "s16x2"):
        for name in ("add", "min", "max"):
            yield op(f"{name}.{t}", t, t, t, target=90)
    for name in ("min", "max"):
        yield op(f"{name}.relu.s32", "s32", "s32", "s32", target=90)
        yield op(f"{name}.relu.s16x2", "s16x2", "s16x2", "s16x2", target=90)


def carry():
    for t in ("u32", "s32", "u64", "s64"):
        zero = "0"
        for name, carried in (("add", "addc"), ("sub", "subc")):
            yield Form(
                f"{name}.cc.{t}", f"{name}.cc.{t} $d0, $a0, $a1; {carried}.{t} $d1, {zero}, {zero};", (t, t), (t, t)
            )
            yield Form(
                f"{carried}.cc.{t}",
                f"{name}.cc.{t} $d2, $a0, $a1; {carried}.cc.{t} $d0, $a2, $a3; {carried}.{t} $d1, {zero}, {zero};",
                (t, t, t),
                (t, t, t, t),
            )
            # The flag is one for both families: a sum's carry read as a difference's borrow.
            other = {"add": "subc", "sub": "addc"}[name]
            yield Form(
                f"{name}.cc.{t} {other}", f"{name}.cc.{t} $d0, $a0, $a1; {other}.{t} $d1, $a0, $a1;", (t, t), (t, t)
            )
        for half in ("lo", "hi"):
            yield Form(
                f"mad.{half}.cc.{t}",
                f"mad.{half}.cc.{t} $d0, $a0, $a1, $a2; addc.{t} $d1, {zero}, {zero};",
                (t, t),
                (t, t, t),
            )
            yield Form(
                f"madc.{half}.cc.{t}",
                f"add.cc.{t} $d2, $a0, $a3; madc.{half}.cc.{t} $d0, $a0, $a1, $a2; addc.{t} $d1, {zero}, {zero};",
                (t, t, t),
                (t, t, t, t),
            )
            yield Form(
                f"madc.{half}.{t}",
                f"add.cc.{t} $d1, $a0, $a3; madc.{half}.{t} $d0, $a0, $a1, $a2;",
                (t, t),
                (t, t, t, t),
            )


def bits():
    for name in ("popc", "clz"):
        for t in ("b32", "b64"):
            yield op(f"{name}.{t}", "u32", t)
    for t in ("u32", "s32", "u64", "s64"):
        for suffix in ("", ".shiftamt"):
            yield op(f"bfind{suffix}.{t}", "u32", t)
        yield op(f"bfe.{t}", t, t, "u32/field", "u32/field")
    for t in ("b32", "b64"):
        yield op(f"brev.{t}", t, t)
        yield op(f"bfi.{t}", t, t, t, "u32/field", "u32/field")
    yield op("fns.b32", "b32", "b32", "u32/shift", "s32/field")
    for mode in ("clamp", "wrap"):
        for t in ("u32", "s32"):
            yield op(f"szext.{mode}.{t}", t, t, SHIFT)
        yield op(f"bmsk.{mode}.b32", "b32", SHIFT, SHIFT)
        for direction in ("l", "r"):
            yield op(f"shf.{direction}.{mode}.b32", "b32", "b32", "b32", SHIFT)
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield op(f"prmt.b32{mode}", "b32", "b32", "b32", "b32")
    for t in ("b16", "b32", "b64"):
        yield op(f"shl.{t}", t, t, SHIFT)
    for t in (*INTEGERS, "b16", "b32", "b64"):
        yield op(f"shr.{t}", t, t, SHIFT)
    for t in ("b16", "b32", "b64"):
        for name in ("and", "or", "xor"):
            yield op(f"{name}.{t}", t, t, t)
        for name in ("not", "cnot"):
            yield op(f"{name}.{t}", t, t)
    for name in ("and", "or", "xor"):
        yield op(f"{name}.pred", "pred", "pred", "pred")
    yield op("not.pred", "pred", "pred")
    for table in (0x00, 0x80, 0xFE, 0x96, 0xE8, 0xCA, 0x1D, 0xD8, 0x3C, 0x78, 0xFF, 0x01, 0x27):
        yield op(
            "lop3.b32",
            "b32",
            "b32",
            "b32",
            "b32",
            text=f"lop3.b32 $d0, $a0, $a1, $a2, {table:#x};",
            label=f"lop3.b32 {table:#x}",
        )
    for name in ("or", "and"):
        yield Form(
            f"lop3.{name}.b32",
            f"lop3.{name}.b32 $d0|$d1, $a0, $a1, $a2, 0xe8, $a3;",
            ("b32", "pred"),
            ("b32", "b32", "b32", "pred"),
        )
    for a, b in itertools.product(("u32", "s32"), repeat=2):
        result = "u32" if a == b == "u32" else "s32"
        yield op(f"dp4a.{a}.{b}", result, a, b, result)
        for half in ("lo", "hi"):
            yield op(f"dp2a.{half}.{a}.{b}", result, a, b, result)


def floats():
    for name in ("add", "sub", "mul"):
        for rounding, ftz, sat in itertools.product(("", *ROUNDINGS), ("", "ftz"), ("", "sat")):
            words = ".".join(w for w in (name, rounding, ftz, sat, "f32") if w)
            yield op(words, "f32", "f32", "f32")
        for rounding in ("", *ROUNDINGS):
            yield op(".".join(w for w in (name, rounding, "f64") if w), "f64", "f64", "f64")
    for name in ("fma", "mad"):
        for rounding, ftz, sat in itertools.product(ROUNDINGS, ("", "ftz"), ("", "sat")):
            yield op(".".join(w for w in (name, rounding, ftz, sat, "f32") if w), "f32", "f32", "f32", "f32")
        for rounding in ROUNDINGS:
            yield op(f"{name}.{rounding}.f64", "f64", "f64", "f64", "f64")
    for rounding in ROUNDINGS:
        for ftz in ("", ".ftz"):
            yield op(f"div.{rounding}{ftz}.f32", "f32", "f32", "f32")
            yield op(f"rcp.{rounding}{ftz}.f32", "f32", "f32")
            yield op(f"sqrt.{rounding}{ftz}.f32", "f32", "f32")
        yield op(f"div.{rounding}.f64", "f64", "f64", "f64")
        yield op(f"rcp.{rounding}.f64", "f64", "f64")
        yield op(f"sqrt.{rounding}.f64", "f64", "f64")
    for name in ("abs", "neg"):
        for words in ("f32", "ftz.f32", "f64"):
            yield op(f"{name}.{words}", words[-3:], words[-3:])
    for name in ("min", "max"):
        for ftz, nan, xorsign in itertools.product(("", ".ftz"), ("", ".NaN"), ("", ".xorsign.abs")):
            target = 86 if xorsign else 80
            yield op(f"{name}{ftz}{nan}{xorsign}.f32", "f32", "f32", "f32", target=target)
        yield op(f"{name}.f64", "f64", "f64", "f64")
    for t in ("f32", "f64"):
        yield op(f"copysign.{t}", t, t, t)
        for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield op(f"testp.{test}.{t}", "pred", t)


def approximate():
    ulp = 2.0**-23
    for ftz in ("", ".ftz"):
        yield op(f"div.full{ftz}.f32", "f32", "f32", "f32", bound={"relative": 4 * ulp, "flush": True})
        yield op(f"div.approx{ftz}.f32", "f32", "f32", "f32", bound={"relative": 4 * ulp, "flush": True})
        yield op(f"rcp.approx{ftz}.f32", "f32", "f32", bound={"relative": 2 * ulp, "flush": True})
        yield op(f"sqrt.approx{ftz}.f32", "f32", "f32", bound={"relative": 2.0**-22})
        yield op(f"rsqrt.approx{ftz}.f32", "f32", "f32", bound={"relative": 2.0**-22})
        for name in ("sin", "cos"):
            yield op(f"{name}.approx{ftz}.f32", "f32", "f32/angle", bound={"absolute": 2.0**-14})
        yield op(f"lg2.approx{ftz}.f32", "f32", "f32/log", bound={"relative": 2.0**-21, "absolute": 2.0**-21})
        yield op(f"ex2.approx{ftz}.f32", "f32", "f32/exp", bound={"relative": 2.0**-21, "flush": True})
    yield op("tanh.approx.f32", "f32", "f32/tanh", bound={"relative": 2.0**-10})
    yield op("rcp.approx.ftz.f64", "f64", "f64", bound={"relative": 2.0**-19, "flush": True})
    yield op("rsqrt.approx.ftz.f64", "f64", "f64", bound={"relative": 2.0**-19, "flush": True})
    yield op("rsqrt.approx.f64", "f64", "f64", bound={"relative": 2.0**-44})
    for t in ("f16", "f16x2"):
        yield op(f"tanh.approx.{t}", t, t, bound={"absolute": 2.0**-10})
        yield op(f"ex2.approx.{t}", t, t, bound={"relative": 2.0**-9, "absolute": 2.0**-24})
    for t in ("bf16", "bf16x2"):
        yield op(f"tanh.approx.{t}", t, t, target=90, bound={"absolute": 2.0**-7})
        yield op(f"ex2.approx.ftz.{t}", t, t, target=90, bound={"relative": 2.0**-6, "flush": True})


def halves():
    for t in ("f16", "f16x2"):
        for name in ("add", "sub", "mul"):
            for rounding, ftz, sat in itertools.product(("", ".rn"), ("", ".ftz"), ("", ".sat")):
                yield op(f"{name}{rounding}{ftz}{sat}.{t}", t, t, t)
        for ftz, sat in itertools.product(("", ".ftz"), ("", ".sat", ".relu")):
            yield op(f"fma.rn{ftz}{sat}.{t}", t, t, t, t)
        for name, ftz in itertools.product(("abs", "neg"), ("", ".ftz")):
            yield op(f"{name}{ftz}.{t}", t, t)
        for name, ftz, nan, xorsign in itertools.product(
            ("min", "max"), ("", ".ftz"), ("", ".NaN"), ("", ".xorsign.abs")
        ):
            yield op(f"{name}{ftz}{nan}{xorsign}.{t}", t, t, t, target=86 if xorsign else 80)
    for t in ("bf16", "bf16x2"):
        for name in ("add", "sub", "mul"):
            for rounding in ("", ".rn"):
                yield op(f"{name}{rounding}.{t}", t, t, t, target=90)
        for relu in ("", ".relu"):
            yield op(f"fma.rn{relu}.{t}", t, t, t, t)
        for name in ("abs", "neg"):
            yield op(f"{name}.{t}", t, t)
        for name, nan, xorsign in itertools.product(("min", "max"), ("", ".NaN"), ("", ".xorsign.abs")):
            yield op(f"{name}{nan}{xorsign}.{t}", t, t, t, target=86 if xorsign else 80)


EQUALITY = ("eq", "ne")
ORDER = ("lt", "le", "gt", "ge")
UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
COMPARED = {
    "u": EQUALITY + ORDER + ("lo", "ls", "hi", "hs"),
    "s": EQUALITY + ORDER,
    "b": EQUALITY,
    "f": EQUALITY + ORDER + UNORDERED,
}


def comparisons():
    types = ("b16", "b32", "b64", *INTEGERS, "f32", "f64", "f16", "bf16", "f16x2", "bf16x2")
    for t in types:
        half = t in ("f16", "bf16", "f16x2", "bf16x2")
        target = 90 if t.startswith("bf16") else 80
        operators = COMPARED["f" if half else t[0]]
        for comparison in operators:
            for ftz in ("", ".ftz") if t in ("f32", "f16", "f16x2") else ("",):
                if t.endswith("x2"):
                    yield Form(
                        f"setp.{comparison}{ftz}.{t}",
                        f"setp.{comparison}{ftz}.{t} $d0|$d1, $a0, $a1;",
                        ("pred", "pred"),
                        (t, t),
                        target,
                    )
                    yield Form(
                        f"setp.{comparison}.xor{ftz}.{t}",
                        f"setp.{comparison}.xor{ftz}.{t} $d0|$d1, $a0, $a1, !$a2;",
                        ("pred", "pred"),
                        (t, t, "pred"),
                        target,
                    )
                    yield op(f"set.{comparison}{ftz}.{t}.{t}", t, t, t, target=target)
                    continue
                yield op(f"setp.{comparison}{ftz}.{t}", "pred", t, t, target=target)
                results = (
                    ("f16", "u16", "s16", "u32", "s32")
                    if t == "f16"
                    else ("bf16", "u16", "s16", "u32", "s32")
                    if t == "bf16"
                    else ("u32", "s32", "f32")
                )
                for result in results if comparison in ("lt", "ne", "geu") else results[-1:]:
                    yield op(f"set.{comparison}{ftz}.{result}.{t}", result, t, t, target=target)
        combined = ("lt", "neu", "eq") if half or t[0] == "f" else ("lt", "eq") if t[0] != "b" else ("ne",)
        for comparison, boolean in itertools.product(combined, ("and", "or", "xor")):
            if t.endswith("x2"):
                yield op(f"set.{comparison}.{boolean}.{t}.{t}", t, t, t, "pred", target=target)
                continue
            # Without a combination there is no second destination for halves.
            yield (
                Form(
                    f"setp.{comparison}.{boolean}.{t}",
                    f"setp.{comparison}.{boolean}.{t} $d0|$d1, $a0, $a1, $a2;",
                    ("pred", "pred"),
                    (t, t, "pred"),
                    target,
                )
                if not half
                else op(f"setp.{comparison}.{boolean}.{t}", "pred", t, t, "pred", target=target)
            )
            name = f"set.{comparison}.{boolean}.u32.{t}"
            yield op(name, "u32", t, t, "pred", text=f"{name} $d0, $a0, $a1, !$a2;", target=target)
        if not half:
            yield Form(
                f"setp.{operators[0]}.{t} p|q",
                f"setp.{operators[0]}.{t} $d0|$d1, $a0, $a1;",
                ("pred", "pred"),
                (t, t),
                target,
            )
    for t in ("b16", "b32", "b64", *INTEGERS, "f32", "f64"):
        yield op(f"selp.{t}", t, t, t, "pred")
        yield op(f"slct.{t}.s32", t, t, t, "s32")
        for ftz in ("", ".ftz"):
            yield op(f"slct{ftz}.{t}.f32", t, t, t, "f32")


def conversions():
    integers = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
    register = {"u8": "b32", "s8": "b32"}
    for d, a in itertools.product(integers, integers):
        if d == a:
            continue
        for sat in ("", ".sat"):
            if sat and saturates_nothing(d, a):
                continue
            operand = a if a[1:] != "8" else f"b32/{a}"
            yield op(f"cvt{sat}.{d}.{a}", register.get(d, d), operand)
    # A register wider than the type: bytes and halves of b32 and b64 registers, in and out.
    for d, a, wide in (
        ("s8", "s32", "b64"),
        ("u8", "u32", "b64"),
        ("s8", "s32", "b16"),
        ("u16", "u32", "b32"),
        ("s16", "s32", "b32"),
        ("s16", "s32", "b64"),
        ("u8", "u32", "b16"),
    ):
        yield op(f"cvt.{d}.{a}", wide, a, label=f"cvt.{d}.{a} to {wide}")
    for d, a in (
        ("s32", "s8"),
        ("s32", "s16"),
        ("s64", "s32"),
        ("u32", "u8"),
        ("f32", "s8"),
        ("f64", "u16"),
        ("s16", "u8"),
    ):
        yield op(f"cvt.{'rn.' if d[0] == 'f' else ''}{d}.{a}", d, "b64", label=f"cvt.{d}.{a} of b64")
    for a in ("f16", "bf16", "f32", "f64"):
        for d, rounding in itertools.product(integers, ("rni", "rzi", "rmi", "rpi")):
            for ftz in ("", ".ftz") if a == "f32" else ("",):
                if a == "bf16" and d[1:] == "8":
                    continue
                for sat in ("", ".sat") if a != "bf16" else ("",):
                    yield op(
                        f"cvt.{rounding}{ftz}{sat}.{d}.{a}", register.get(d, d), a, target=90 if a == "bf16" else 80
                    )
    for a, d, rounding in itertools.product(integers, ("f16", "bf16", "f32", "f64"), ROUNDINGS):
        if d == "bf16" and a[1:] == "8":
            continue
        for sat in ("", ".sat") if d != "bf16" else ("",):
            operand = a if a[1:] != "8" else f"b32/{a}"
            yield op(f"cvt.{rounding}{sat}.{d}.{a}", d, operand, target=90 if d == "bf16" else 80)
    for d, a in (("f16", "f32"), ("f16", "f64"), ("f32", "f64")):
        for rounding, ftz, sat in itertools.product(
            ROUNDINGS, ("", ".ftz") if "f32" in (a, d) else ("",), ("", ".sat")
        ):
            yield op(f"cvt.{rounding}{ftz}{sat}.{d}.{a}", d, a)
    for d, a in (("f32", "f16"), ("f64", "f16"), ("f64", "f32")):
        for ftz, sat in itertools.product(("", ".ftz") if "f32" in (a, d) else ("",), ("", ".sat")):
            yield op(f"cvt{ftz}{sat}.{d}.{a}", d, a)
    for t in ("f16", "f32", "f64"):
        for rounding, ftz, sat in itertools.product(
            ("", ".rni", ".rzi", ".rmi", ".rpi"), ("", ".ftz") if t == "f32" else ("",), ("", ".sat")
        ):
            yield op(f"cvt{rounding}{ftz}{sat}.{t}.{t}", t, t)
    yield from conversions_of_bf16()
    yield from packed_conversions()


def conversions_of_bf16():
    for rounding, relu in itertools.product(("rn", "rz"), ("", ".relu")):
        yield op(f"cvt.{rounding}{relu}.bf16.f32", "bf16", "f32")
        yield op(f"cvt.{rounding}{relu}.bf16x2.f32", "bf16x2", "f32", "f32")
        yield op(f"cvt.{rounding}{relu}.f16x2.f32", "f16x2", "f32", "f32")
        yield op(f"cvt.{rounding}{relu}.f16.f32", "f16", "f32")
        for t in ("bf16", "f16"):
            yield op(f"cvt.{rounding}{relu}.satfinite.{t}.f32", t, "f32", target=90)
            yield op(f"cvt.{rounding}{relu}.satfinite.{t}x2.f32", f"{t}x2", "f32", "f32", target=90)
    for rounding in ("rm", "rp"):
        yield op(f"cvt.{rounding}.bf16.f32", "bf16", "f32", target=90)
    for a in ("f16", "f64"):
        for rounding in ROUNDINGS:
            yield op(f"cvt.{rounding}.bf16.{a}", "bf16", a, target=90)
    for rounding in ROUNDINGS:
        yield op(f"cvt.{rounding}.f16.bf16", "f16", "bf16", target=90)
    for d in ("f32", "f64"):
        yield op(f"cvt.{d}.bf16", d, "bf16", target=90)
    for rounding in ("rni", "rzi", "rmi", "rpi"):
        yield op(f"cvt.{rounding}.bf16.bf16", "bf16", "bf16", target=90)
    yield op("cvt.rna.tf32.f32", "tf32", "f32")
    for rounding, relu in itertools.product(("rn", "rz"), ("", ".relu")):
        yield op(f"cvt.{rounding}{relu}.tf32.f32", "tf32", "f32", target=90)


def packed_conversions():
    for d, relu in itertools.product(("e4m3x2", "e5m2x2"), ("", ".relu")):
        yield op(f"cvt.rn.satfinite{relu}.{d}.f32", d, "f32", "f32", target=89)
        yield op(f"cvt.rn.satfinite{relu}.{d}.f16x2", d, "f16x2", target=89)
        yield op(f"cvt.rn{relu}.f16x2.{d}", "f16x2", "b16", target=89)
    for d in ("u16", "s16"):
        yield op(f"cvt.pack.sat.{d}.s32", "b32", "s32", "s32")
    for d in ("u8", "s8"):
        yield op(f"cvt.pack.sat.{d}.s32.b32", "b32", "s32", "s32", "b32")
    for d in ("u4", "s4", "u2", "s2"):
        yield op(f"cvt.pack.sat.{d}.s32.b32", "b32", "s32", "s32", "b32")


def saturates_nothing(d, a):
    """PTX refuses .sat where every value of the source fits."""
    low = {"u": 0, "s": -(1 << int(d[1:]) - 1)}[d[0]]
    high = (1 << int(d[1:]) - (d[0] == "s")) - 1
    return low <= {"u": 0, "s": -(1 << int(a[1:]) - 1)}[a[0]] and (1 << int(a[1:]) - (a[0] == "s")) - 1 <= high


def video():
    types = list(itertools.product(("u32", "s32"), repeat=3))
    selectors = (("", "", ""), (".b0", ".b1", ""), (".h1", ".b3", ""), (".b2", ".h0", ""))
    for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        for (d, a, b), sat in itertools.product(types, ("", ".sat")):
            for s, t, _ in selectors if name == "vadd" or (d, a, b) == ("s32", "s32", "u32") else selectors[:1]:
                full = f"{name}.{d}.{a}.{b}{sat}"
                yield op(full, d, a, b, text=f"{full} $d0, $a0{s}, $a1{t};", label=f"{full} {s} {t}".strip())
            if a == b:
                for second in ("add", "min", "max"):
                    yield op(f"{name}.{d}.{a}.{b}{sat}.{second}", d, a, b, d)
        for d in ("u32", "s32"):
            for merged, sat in itertools.product((".b0", ".b3", ".h0", ".h1"), ("", ".sat")):
                full = f"{name}.{d}.s32.s32{sat}"
                yield op(
                    full, d, "s32", "s32", d, text=f"{full} $d0{merged}, $a0, $a1, $a2;", label=f"{full} to {merged}"
                )
    for name, mode in itertools.product(("vshl", "vshr"), (".clamp", ".wrap")):
        for d, a, sat in itertools.product(("u32", "s32"), ("u32", "s32"), ("", ".sat")):
            full = f"{name}.{d}.{a}.u32{sat}{mode}"
            yield op(full, d, a, SHIFT)
            yield op(full + ".add", d, a, SHIFT, d)
            yield op(full, d, a, SHIFT, text=f"{full} $d0, $a0.b1, $a1.b0;", label=full + " .b1 .b0")
    for d, a, b in types:
        # Signed and unsigned meet only in a signed result; ptxas accepts no other mixture.
        if d == "u32" and (a, b) != ("u32", "u32"):
            continue
        if (a, b) != ("u32", "u32") and d != "s32":
            continue
        for sat, scale in itertools.product(("", ".sat"), ("", ".shr7", ".shr15")):
            full = f"vmad.{d}.{a}.{b}{sat}{scale}"
            yield op(full, d, a, b, d)
            po = f"vmad.{d}.{a}.{b}.po{sat}{scale}"
            yield op(po, d, a, b, d)
            yield op(full, d, a, b, d, text=f"{full} $d0, $a0.h1, $a1.b2, $a2;", label=full + " .h1 .b2")
    for a, b, comparison in itertools.product(("u32", "s32"), ("u32", "s32"), EQUALITY + ORDER):
        full = f"vset.{a}.{b}.{comparison}"
        yield op(full, "u32", a, b)
        yield op(full, "u32", a, b, text=f"{full} $d0, $a0.b0, $a1.b3;", label=full + " .b0 .b3")
        yield op(full + ".add", "u32", a, b, "u32")
    yield from video_lanes()


def video_lanes():
    for width, name in itertools.product(("2", "4"), ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")):
        for d, a, b in itertools.product(("u32", "s32"), repeat=3):
            for sat in ("", ".sat"):
                full = f"{name}{width}.{d}.{a}.{b}{sat}"
                yield op(full, d, a, b, d)
            yield op(f"{name}{width}.{d}.{a}.{b}.add", d, a, b, d)
        mask = ".h1" if width == "2" else ".b31"
        full = f"{name}{width}.s32.s32.u32.sat"
        yield op(full, "s32", "s32", "u32", "s32", text=f"{full} $d0{mask}, $a0, $a1, $a2;", label=full + " to " + mask)
        order = (".h03", ".h21") if width == "2" else (".b7531", ".b0264")
        full = f"{name}{width}.u32.u32.s32"
        yield op(
            full,
            "u32",
            "u32",
            "s32",
            "u32",
            text=f"{full} $d0, $a0{order[0]}, $a1{order[1]}, $a2;",
            label=full + " of " + " ".join(order),
        )
    for width, a, b, comparison in itertools.product(("2", "4"), ("u32", "s32"), ("u32", "s32"), EQUALITY + ORDER):
        full = f"vset{width}.{a}.{b}.{comparison}"
        yield op(full, "u32", a, b, "u32")
        yield op(full + ".add", "u32", a, b, "u32")


def warp():
    everyone = "0xffffffff"
    for mode in ("up", "down", "bfly", "idx"):
        yield Form(
            f"shfl.sync.{mode}.b32",
            f"shfl.sync.{mode}.b32 $d0|$d1, $a0, $a1, $a2, {everyone};",
            ("b32", "pred"),
            ("b32", "u32/lane", "u32/clamp"),
        )
        yield Form(
            f"shfl.sync.{mode}.b32 31",
            f"shfl.sync.{mode}.b32 $d0|$d1, $a0, $a1, 0x1f, {everyone};",
            ("b32", "pred"),
            ("b32", "u32/lane"),
        )
    for mode in ("all", "any", "uni"):
        yield op(
            f"vote.sync.{mode}.pred",
            "pred",
            "pred",
            "b32/few",
            text=f"setp.ne.u32 $q0, $a1, 0; vote.sync.{mode}.pred $d0, !$q0, {everyone};",
        )
    yield op("vote.sync.ballot.b32", "b32", "pred", "b32/few", text=f"vote.sync.ballot.b32 $d0, $a0, {everyone};")
    for t in ("b32", "b64"):
        yield op(f"match.any.sync.{t}", "b32", f"{t}/few", text=f"match.any.sync.{t} $d0, $a0, {everyone};")
        yield Form(
            f"match.all.sync.{t}", f"match.all.sync.{t} $d0|$d1, $a0, {everyone};", ("b32", "pred"), (f"{t}/few",)
        )
    for name, t in itertools.product(("add", "min", "max"), ("u32", "s32")):
        yield op(f"redux.sync.{name}.{t}", t, t, text=f"redux.sync.{name}.{t} $d0, $a0, {everyone};")
    for name in ("and", "or", "xor"):
        yield op(f"redux.sync.{name}.b32", "b32", "b32", text=f"redux.sync.{name}.b32 $d0, $a0, {everyone};")
    yield op("activemask.b32", "b32", "b32", text="activemask.b32 $d0;")
    yield Form("elect.sync", f"elect.sync $d0|$d1, {everyone};", ("b32", "pred"), ("b32",), 90)


def atomic_types():
    for t in ("u32", "s32", "u64", "s64"):
        for name in ("min", "max"):
            yield name, t, 80
    for t in ("u32", "s32", "u64", "f32", "f64"):
        yield "add", t, 80
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        yield "add.noftz", t, 90 if t.startswith("b") else 80
    for name in ("inc", "dec"):
        yield name, "u32", 80
    for name, t in itertools.product(("and", "or", "xor"), ("b32", "b64")):
        yield name, t, 80
    for t in ("b32", "b64"):
        yield "exch", t, 80
    for name, t in itertools.product(("min.noftz", "max.noftz"), ("f16", "f16x2", "bf16", "bf16x2")):
        yield name, t, 90


def atomics():
    """The old value and what is left in memory."""

    def memory(t):
        return "b" + str({"f16": 16, "bf16": 16}.get(t) or (64 if t.endswith("64") else 32))

    for space, place in (("global", "$mem"), ("shared", "$smem")):
        for name, t, target in atomic_types():
            if name.startswith(("min.", "max.")):
                continue  # only bulk reductions and vectors have these
            m = memory(t)
            yield Form(
                f"atom.{space}.{name}.{t}",
                f"st.{space}.{m} [{place}], $a0; atom.{space}.{name}.{t} $d0, [{place}], $a1;"
                f" ld.{space}.{m} $d1, [{place}];",
                (m, m),
                (t, t),
                target,
            )
            if name != "exch":
                yield Form(
                    f"red.{space}.{name}.{t}",
                    f"st.{space}.{m} [{place}], $a0; red.{space}.{name}.{t} [{place}], $a1;"
                    f" ld.{space}.{m} $d0, [{place}];",
                    (m,),
                    (t, t),
                    target,
                )
        for t in ("b16", "b32", "b64"):
            yield Form(
                f"atom.{space}.cas.{t}",
                f"st.{space}.{t} [{place}], $a0; atom.{space}.cas.{t} $d0, [{place}], $a1, $a2;"
                f" ld.{space}.{t} $d1, [{place}];",
                (t, t),
                (t, t, t),
            )
    for name, words, target in (
        ("add", "f32", 90),
        ("add.noftz", "f16", 90),
        ("min.noftz", "f16", 90),
        ("max.noftz", "bf16", 90),
        ("min.noftz", "bf16", 90),
        ("add.noftz", "bf16", 90),
    ):
        m = memory(words)
        text = (
            f"st.global.v2.{m} [$mem], {{$a0, $a1}}; atom.global.v2.{words}.{name} {{$d0, $d1}}, [$mem], {{$a2, $a3}};"
            f" ld.global.v2.{m} {{$d2, $d3}}, [$mem];"
        )
        yield Form(f"atom.global.v2.{words}.{name}", text, (m,) * 4, (words,) * 4, target)


def departs_from_ptx(name):
    """Scalar video instructions that no GPU since sm_70 has: ptxas 13.0 writes code for them, and in these forms that
    code does other than PTX says (it saturates the wrong type, compares min and max wrongly, merges the wrong half,
    shifts half of a product). They are held against PTX's own rules in tests/emulator/ops/test_video.py."""
    if not re.match(r"v(add|sub|absdiff|min|max|shl|mad)\.", name):
        return False
    if name.startswith("vmad"):
        return re.search(r"\.(sat|shr7|shr15)\b", name) is not None
    return re.search(r"\.(sat|min|max)\b|to \.h1", name) is not None


FAMILIES = (integer, carry, bits, floats, approximate, halves, comparisons, conversions, video, warp, atomics)


def all_forms():
    seen = {}
    families = [(family.__name__, family()) for family in FAMILIES] + [("matrix", forms_matrix.matrix(Form))]
    for name, members in families:
        for form in members:
            if departs_from_ptx(form.name):
                continue
            if form.name in seen:
                if seen[form.name] != form:
                    raise ValueError(f"two forms named {form.name}")
                continue
            seen[form.name] = form
            yield name, form
