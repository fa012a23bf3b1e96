"""Operand values for the golden vectors: for each kind of operand the tricky ones, and random ones.

A *kind* is a PTX type, or a PTX type and a purpose: "u32/shift" is a shift amount. A *set* is a tuple of kinds with a
list of operand tuples; its length is a multiple of 32, so that warp-wide operations always see whole warps.
"""

import random
import struct

WIDTH = {
    "pred": 32,
    "u8": 8,
    "s8": 8,
    "b8": 8,
    "u16": 16,
    "s16": 16,
    "b16": 16,
    "f16": 16,
    "bf16": 16,
    "u32": 32,
    "s32": 32,
    "b32": 32,
    "f32": 32,
    "tf32": 32,
    "f16x2": 32,
    "bf16x2": 32,
    "u16x2": 32,
    "s16x2": 32,
    "e4m3x2": 16,
    "e5m2x2": 16,
    "ue8m0x2": 16,
    "u64": 64,
    "s64": 64,
    "b64": 64,
    "f64": 64,
}


def width(kind):
    return WIDTH[kind.split("/")[0]]


def f32_bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def f64_bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def integers(bits):
    top = 1 << bits
    values = {
        0,
        1,
        2,
        3,
        5,
        7,
        10,
        top - 1,
        top - 2,
        top - 3,
        top // 2,
        top // 2 - 1,
        top // 2 + 1,
        top // 3,
        2 * (top // 3),
        0x123456789ABCDEF0 & (top - 1),
        0xFEDCBA9876543210 & (top - 1),
    }
    for shift in range(4, bits, 4):
        values |= {1 << shift, (1 << shift) - 1, (top - (1 << shift)), (top - (1 << shift) - 1) & (top - 1)}
    return sorted(values)


F32_SHORT = [
    0x00000000,
    0x80000000,
    0x00000001,
    0x80000001,
    0x007FFFFF,
    0x807FFFFF,
    0x00800000,
    0x80800000,
    0x3F800000,
    0xBF800000,
    0x3F800001,
    0xBF7FFFFF,
    0x7F7FFFFF,
    0xFF7FFFFF,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0xFFC12345,
    0x7F800001,
    0xFF923456,
]
F32_MORE = [
    *F32_SHORT,
    4194304,
    256,
    2147483651,
    8388609,
    16777216,
    201326592,
    1056964608,
    3204448256,
    1069547520,
    3217031168,
    1075838976,
    3223322624,
    1056964607,
    1056964609,
    1078530011,
    1051372203,
    2122317824,
    2130706432,
    2147483647,
    1258291200,
    1258291199,
    1266679807,
    1266679808,
    1266679809,
    864026624,
    872415232,
    2122317823,
    1593835520,
    528482304,
    1610612736,
    536870912,
    2130706431,
    16777215,
    4278190080,
]
# Around the limits of the integer types, of f16 and bf16, and halves between them.
F32_CONVERT = (
    F32_MORE
    + [
        f32_bits(v)
        for v in (
            127.0,
            127.5,
            128.0,
            -128.0,
            -128.5,
            -129.0,
            255.0,
            255.5,
            256.0,
            32767.0,
            32767.5,
            32768.0,
            -32768.0,
            -32768.5,
            -32769.0,
            65535.0,
            65535.5,
            65536.0,
            2147483520.0,
            2147483648.0,
            -2147483648.0,
            -2147483904.0,
            4294967040.0,
            4294967296.0,
            9223371487098961920.0,
            9223372036854775808.0,
            -9223372036854775808.0,
            -9223373136366403584.0,
            18446742974197923840.0,
            18446744073709551616.0,
            3.5,
            -3.5,
            4.5,
            0.49999997,
            -0.49999997,
            0.99999994,
            -0.99999994,
            0.75,
            2.0,
            -2.0,
            -0.25,
            65504.0,
            65519.996,
            65520.0,
            65536.0,
            -65520.0,
            6.103515625e-05,
            6.097555160522461e-05,
            5.960464477539063e-08,
            2.9802322387695312e-08,
            2.98023259404089e-08,
            -2.98023259404089e-08,
            1.00048828125,
            1.0004884004592896,
            1.00146484375,
            1.0029296875,
            448.0,
            464.0,
            465.0,
            57344.0,
            61440.0,
            61441.0,
            0.001953125,
            0.0009765625,
            0.015625,
            1.52587890625e-05,
            7.62939453125e-06,
            1e10,
            -1e10,
        )
    ]
    + [
        0x3F808000,
        0x3F808001,
        0x3F818000,
        0x3F817FFF,
        0x7F7F7FFF,
        0x7F7F8000,
        0xFF7F8000,
        0x00008000,
        0x00018000,
        0x00007FFF,
        0x80008001,
        0x3F801000,
        0x3F803000,
        0x3F800FFF,
        0x3F801001,
        0x7F7FEFFF,
        0x7F7FF000,
        0x00001000,
        0x7FBFFFFF,
        0x7FC02000,
        0x7FFFE000,
        0xFFFFFFFF,
        0x7F800000 | 0x1FFF,
    ]
)
F64_SHORT = [
    0x0000000000000000,
    0x8000000000000000,
    0x0000000000000001,
    0x8000000000000001,
    0x000FFFFFFFFFFFFF,
    0x0010000000000000,
    0x8010000000000000,
    0x3FF0000000000000,
    0xBFF0000000000000,
    0x3FF0000000000001,
    0xBFEFFFFFFFFFFFFF,
    0x7FEFFFFFFFFFFFFF,
    0xFFEFFFFFFFFFFFFF,
    0x7FF0000000000000,
    0xFFF0000000000000,
    0x7FF8000000000000,
    0xFFF8123456789ABC,
    0x7FF0000000000001,
    0xFFF4000000000000,
]
F64_MORE = [
    *F64_SHORT,
    2251799813685248,
    4503599627370497,
    9007199254740992,
    4602678819172646912,
    13826050856027422720,
    4609434218613702656,
    4612811918334230528,
    13836183955189006336,
    4602678819172646911,
    4602678819172646913,
    4614256656552045848,
    4599676419421066581,
    9209861237972664320,
    9214364837600034816,
    9223372036854775807,
    4841369599423283200,
    4841369599423283199,
    4845873199050653695,
    4845873199050653696,
    4845873199050653697,
    4368491638549381120,
    4372995238176751616,
    6908521828386340864,
    2301339409586323456,
    9007199254740991,
]


def _f64_convert():
    values = list(F64_MORE)
    values += [
        struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", b))[0]))[0]
        for b in F32_CONVERT
        if (b & 0x7F800000) != 0x7F800000
    ]
    for base in (127.0, 255.0, 32767.0, 65535.0, 2147483647.0, 4294967295.0, -128.0, -32768.0, -2147483648.0, 1.0, 2.0):
        for delta in (-1.0, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0):
            values.append(f64_bits(base + delta))
    # One f64 ulp beside a tie of the narrower format: a second rounding would go wrong.
    for bits in (
        0x3FF0020000000000,
        0x3FF0060000000000,
        0x3FF0000010000000,
        0x3FF0000030000000,
        0x40EFFE0000000000,
        0x47EFFFFFF0000000,
        0x3E60000000000000,
        0x3690000000000000,
        0x3EFFFC0000000000,
        0x380FFFFFE0000000,
        0x3FF0100000000000,
        0x43E0000000000000,
        0x43F0000000000000,
        0xC3E0000000000000,
    ):
        values += [bits - 1, bits, bits + 1]
    return values


# What rounds to the smallest normal number, or just not, if exponents had no end: .ftz may flush it or not.
F64_CONVERT = [*_f64_convert(), 4039728865482899456, 4039728865482899457, 4039728865751334911, 13263100902606110719]
TINY = {
    "f32": (0x20000001, 0x1FFFFFFE),
    "f16": (0x2001, 0x1FFE),
    "bf16": (0x2001, 0x1FFE),
    "f16x2": (0x20012001, 0x1FFE9FFE),
    "bf16x2": (0x20012001, 0x1FFE9FFE),
}
F16_SHORT = [
    0x0000,
    0x8000,
    0x0001,
    0x8001,
    0x03FF,
    0x0400,
    0x8400,
    0x3C00,
    0xBC00,
    0x3C01,
    0xBBFF,
    0x7BFF,
    0xFBFF,
    0x7C00,
    0xFC00,
    0x7E00,
    0xFE12,
    0x7C01,
    0xFD23,
]
F16_MORE = [
    *F16_SHORT,
    512,
    2049,
    14336,
    47104,
    15872,
    16640,
    49408,
    14335,
    14337,
    16968,
    13653,
    30720,
    32767,
    25600,
    25599,
    26624,
    3072,
    5120,
    23552,
    16,
    22520,
    23544,
    22528,
    23552,
    55296,
    55304,
    30719,
    63487,
    17664,
    18176,
    50432,
    3,
]
BF16_SHORT = [
    0x0000,
    0x8000,
    0x0001,
    0x8001,
    0x007F,
    0x0080,
    0x8080,
    0x3F80,
    0xBF80,
    0x3F81,
    0xBF7F,
    0x7F7F,
    0xFF7F,
    0x7F80,
    0xFF80,
    0x7FC0,
    0xFFC1,
    0x7F81,
    0xFF92,
]
BF16_MORE = [
    *BF16_SHORT,
    64,
    129,
    16128,
    48896,
    16320,
    16416,
    49184,
    16127,
    16129,
    16457,
    16043,
    32512,
    32767,
    17152,
    17151,
    17279,
    17280,
    18175,
    18176,
    18303,
    18304,
    20223,
    20224,
    52992,
    52993,
    24320,
    24448,
    13184,
    32384,
    256,
    16544,
    49312,
]


def _angles(rng):
    values = [*list(F32_SHORT), 1078530011, 1070141403, 3226013659, 1086918619, 1061752795, 3234402267]
    values += [f32_bits(rng.uniform(-6.28, 6.28)) for _ in range(500)]
    return values + [f32_bits(rng.uniform(-314.0, 314.0)) for _ in range(200)]


def _pairs(values):
    """Packed halves: every value once in each half, beside another one."""
    count = len(values)
    return [values[i] | values[(i * 7 + 3) % count] << 16 for i in range(count)]


def _small_integers(base):
    encode = {
        "f32": f32_bits,
        "f64": f64_bits,
        "f16": lambda v: struct.unpack("<H", struct.pack("<e", v))[0],
        "bf16": lambda v: f32_bits(v) >> 16,
    }
    codes = [encode[base.replace("x2", "")](float(v)) for v in (0, 1, -1, 2, -2, 3, 5, -7)]
    if not base.endswith("x2"):
        return codes
    return [codes[i % 8] | codes[(i // 8 + i * 3) % 8] << 16 for i in range(64)]


def short(kind):
    """The values that every combination is made of."""
    purpose = kind.split("/")[1] if "/" in kind else ""
    base = kind.split("/")[0]
    if purpose == "shift":
        return [0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 0x80000000, 0xFFFFFFFF]
    if purpose == "lane":
        return [0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 30, 31, 32, 33, 63, 0xFFFFFFFF]
    if purpose == "clamp":
        return [0x1F, 0, 0x1C1F, 0x181F, 0x101F, 0x1E01, 0x180C, 0x0F, 0x101C, 0x1F1F, 0x1000, 0x1F00]
    if purpose == "field":
        return [0, 1, 4, 8, 16, 24, 31, 32, 33, 48, 63, 64, 65, 255, 256, 0x101, 0xFFFFFFFF]
    if purpose == "one":
        return [0xFFFFFFFF]
    if purpose == "few":
        return [0, 1, 2, 0xFFFFFFFF]
    if purpose == "tf32":
        return _small_integers("f32")
    if purpose == "matrix":
        return _small_integers(base)
    if purpose in ("e4m3", "e5m2"):
        codes = (
            [0x00, 0x38, 0xB8, 0x40, 0xC0, 0x44, 0x48]
            if purpose == "e4m3"
            else [0x00, 0x3C, 0xBC, 0x40, 0xC0, 0x42, 0x44]
        )
        return [
            codes[i % 7] | codes[i // 7 % 7] << 8 | codes[i // 3 % 7] << 16 | codes[i // 11 % 7] << 24
            for i in range(98)
        ]
    if base == "pred":
        return [0, 1]
    if base == "f32":
        return F32_SHORT
    if base == "f64":
        return F64_SHORT
    if base == "f16":
        return F16_SHORT
    if base == "bf16":
        return BF16_SHORT
    if base == "f16x2":
        return _pairs(F16_SHORT)
    if base == "bf16x2":
        return _pairs(BF16_SHORT)
    if base in ("u16x2", "s16x2"):
        return _pairs([0, 1, 2, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0xFFFE, 0x1234, 0xABCD, 0x5555])
    bits = width(kind)
    top = 1 << bits
    return [
        0,
        1,
        2,
        3,
        7,
        top - 1,
        top - 2,
        top - 7,
        top // 2,
        top // 2 - 1,
        top // 2 + 1,
        top // 3,
        2 * (top // 3),
        1 << (bits // 2),
        (1 << (bits // 2)) - 1,
        0x80FF7F01_80FF7F01 & (top - 1),
        0x7F80FF00_8001FE02 & (top - 1),
        0x123456789ABCDEF0 & (top - 1),
    ]


def single(kind, rng):
    """The values for an operation of one operand."""
    purpose = kind.split("/")[1] if "/" in kind else ""
    base = kind.split("/")[0]
    bits = width(kind)
    if purpose == "angle":
        return _angles(rng)
    if purpose == "log":
        values = list(F32_MORE)
        values += [f32_bits(rng.uniform(0.5, 2.0)) for _ in range(200)]
        return values + [rng.getrandbits(31) for _ in range(300)]
    if purpose == "exp":
        values = list(F32_MORE) + [f32_bits(float(i)) for i in range(-150, 130, 9)]
        values += [f32_bits(rng.uniform(-150.0, 130.0)) for _ in range(250)]
        return values + [f32_bits(rng.uniform(-1.0, 1.0)) for _ in range(150)]
    if purpose == "tanh":
        values = list(F32_MORE) + [f32_bits(rng.uniform(-10.0, 10.0)) for _ in range(300)]
        return values + [f32_bits(rng.uniform(-0.1, 0.1)) for _ in range(100)]
    if base == "f32":
        values = list(F32_CONVERT) + [rng.getrandbits(32) for _ in range(64)]
        return (
            values
            + [f32_bits(rng.uniform(-70000.0, 70000.0)) for _ in range(32)]
            + [f32_bits(rng.uniform(-4.0, 4.0)) for _ in range(32)]
        )
    if base == "f64":
        values = list(F64_CONVERT) + [rng.getrandbits(64) for _ in range(64)]
        return (
            values
            + [f64_bits(rng.uniform(-70000.0, 70000.0)) for _ in range(32)]
            + [f64_bits(rng.uniform(-4.0, 4.0)) for _ in range(32)]
        )
    if base == "f16":
        return F16_MORE + [rng.getrandbits(16) for _ in range(96)]
    if base == "bf16":
        return BF16_MORE + [rng.getrandbits(16) for _ in range(96)]
    if base == "f16x2":
        return _pairs(F16_MORE) + [rng.getrandbits(32) for _ in range(64)]
    if base == "bf16x2":
        return _pairs(BF16_MORE) + [rng.getrandbits(32) for _ in range(64)]
    return integers(bits) + [rng.getrandbits(bits) >> rng.randrange(bits) for _ in range(64)]


def _random(kind, rng):
    """One random value: of all bits, or near the ordinary magnitudes."""
    base = kind.split("/")[0]
    bits = width(kind)
    if "/" in kind or base == "pred":
        return rng.choice(short(kind))
    if base == "f32" and rng.random() < 0.7:
        return rng.getrandbits(1) << 31 | rng.randrange(120, 136) << 23 | rng.getrandbits(23)
    if base == "f64" and rng.random() < 0.7:
        return rng.getrandbits(1) << 63 | rng.randrange(1000, 1048) << 52 | rng.getrandbits(52)
    return rng.getrandbits(bits)


def _related(kind, rng, count):
    """Float operands whose result cancels, ties, or falls near the ends of the range."""
    base = kind.split("/")[0]
    layout = {"f32": (8, 23), "f64": (11, 52), "f16": (5, 10), "bf16": (8, 7), "f16x2": (5, 10), "bf16x2": (8, 7)}
    if base not in layout:
        return []
    exponent_bits, mantissa_bits = layout[base]
    bias = (1 << (exponent_bits - 1)) - 1
    sign = 1 << (exponent_bits + mantissa_bits)

    def make(exponent):
        exponent = min(max(exponent, 0), 2 * bias)
        return rng.choice((0, sign)) | exponent << mantissa_bits | rng.getrandbits(mantissa_bits)

    tuples = []
    for index in range(48):
        a = make(rng.randrange(1, 2 * bias))
        exponent = a >> mantissa_bits & (2 * bias + 1)
        choice = index % 6
        if choice == 0:  # a - a', a few ulp apart
            b = (a ^ sign) + rng.randrange(0, 4)
            c = make(exponent)
        elif choice == 1:  # sum with a tie below the last place
            b = (max(exponent - mantissa_bits - 1, 0) << mantissa_bits) | rng.choice((0, 0, 1))
            c = b
        elif choice == 2:  # product near the smallest normal number
            b = make(bias + 1 - exponent + rng.randrange(-3, 3))
            c = make(rng.randrange(0, 3))
        elif choice == 3:  # product near the largest
            b = make(3 * bias - exponent + rng.randrange(-1, 2))
            c = make(2 * bias)
        elif choice == 4:  # the product's low half decides: c nearly cancels it
            a = make(bias)
            b = make(bias)
            product = (a & (sign - 1)) | 0
            c = (product ^ sign) if rng.random() < 0.5 else make(bias + 1)
        else:
            b = make(bias + rng.randrange(-2, 3))
            c = make(exponent + rng.randrange(-2, 3))
        tuples.append((a, b & (2 * sign - 1), c & (2 * sign - 1))[:count])
    if base.endswith("x2"):
        half = len(tuples) // 2
        tuples = [
            tuple(low | high << 16 for low, high in zip(tuples[i], tuples[i + half], strict=False)) for i in range(half)
        ]
    return tuples


def make_set(kinds):
    """The operand tuples of one set of kinds."""
    rng = random.Random("golden " + " ".join(kinds))
    if len(kinds) == 1:
        tuples = [(value,) for value in single(kinds[0], rng)]
    else:
        lists = [short(kind) for kind in kinds]
        if len(kinds) > 5 or any(
            kind.endswith(("/matrix", "/tf32")) for kind in kinds
        ):  # a matrix form: some warps of anything
            tuples = [tuple(rng.choice(values) for values in lists) for _ in range(128)]
            extra = 0
        elif len(kinds) == 2:
            tuples = [(a, b) for a in lists[0] for b in lists[1]]
            extra = 64
        else:  # all would be too many: each pair of values in neighbouring places, the others at random
            tuples = []
            for left in range(len(kinds)):
                right = (left + 1) % len(kinds)
                pairs = [(a, b) for a in lists[left] for b in lists[right]]
                rng.shuffle(pairs)
                for a, b in pairs[:140]:
                    row = [rng.choice(values) for values in lists]
                    row[left], row[right] = a, b
                    tuples.append(tuple(row))
            extra = 96
        tuples += [tuple(_random(kind, rng) for kind in kinds) for _ in range(extra)]
        if len({kind.split("/")[0] for kind in kinds}) == 1:
            tuples += _related(kinds[0], rng, len(kinds)) if len(kinds) <= 3 else []
            if kinds[0] in TINY and len(kinds) <= 3:
                a, b = TINY[kinds[0]]
                tuples += [(a, b, 0)[: len(kinds)], (b, a, 0)[: len(kinds)]]
    if any(kind.split("/")[-1] in ("lane", "clamp", "few") for kind in kinds):
        rng.shuffle(tuples)
    while len(tuples) % 32:
        tuples.append(tuples[len(tuples) % 7])
    return tuples
