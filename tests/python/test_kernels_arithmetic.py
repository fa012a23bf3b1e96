"""Mathematics, integers, conversions and halves in kernels, each with the tolerance that its arithmetic has."""

import math

import pytest
from support import random, units_in_the_last_place

np = pytest.importorskip("numpy")


# ---- mathematics ---------------------------------------------------------------------------------------------------

MATHEMATICS = """
__device__ float one(float x) { return FUNCTION(x); }
__device__ double one(double x) { return FUNCTION(x); }
template <typename T> __global__ void apply(const T *in, T *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = one(in[i]);
}
"""
# Bounds in units in the last place, of the CUDA programming guide's table of standard functions (full range); the test
# allows a little more, as the reference itself is rounded.
FUNCTIONS = [
    ("sin", (-100, 100), 2, 2), ("cos", (-100, 100), 2, 2), ("tan", (-1.5, 1.5), 4, 2), ("exp", (-80, 80), 2, 1),
    ("exp2", (-100, 100), 2, 1), ("exp10", (-30, 30), 2, 1), ("log", (1e-30, 1e30), 1, 1),
    ("log2", (1e-30, 1e30), 1, 1),
    ("log10", (1e-30, 1e30), 2, 1), ("log1p", (-0.9, 100), 1, 1), ("expm1", (-80, 80), 1, 1), ("sqrt", (0, 1e10), 0, 0),
    ("rsqrt", (1e-10, 1e10), 2, 1), ("cbrt", (-1e6, 1e6), 1, 1), ("sinh", (-10, 10), 3, 2), ("cosh", (-10, 10), 2, 1),
    ("tanh", (-5, 5), 2, 2), ("asin", (-1, 1), 4, 2), ("acos", (-1, 1), 2, 2), ("atan", (-100, 100), 2, 2),
    ("asinh", (-100, 100), 3, 3), ("acosh", (1, 100), 4, 3), ("atanh", (-0.99, 0.99), 3, 2), ("erf", (-4, 4), 2, 2),
    ("erfc", (-3, 8), 4, 5), ("tgamma", (0.5, 30), 6, 10), ("lgamma", (3, 100), 6, 4),
    ("fabs", (-9, 9), 0, 0), ("floor", (-9, 9), 0, 0),
    ("ceil", (-9, 9), 0, 0), ("trunc", (-9, 9), 0, 0), ("rint", (-9, 9), 0, 0), ("round", (-9, 9), 0, 0),
]  # fmt: skip


def reference(name, x):
    """Correctly rounded to double or nearly so; its own error is far below a float's last place."""
    if name == "exp10":
        return 10.0**x
    if name == "rsqrt":
        return 1 / math.sqrt(x)
    if name == "cbrt":
        return math.copysign(abs(x) ** (1 / 3), x)
    if name == "rint":
        return float(np.rint(x))
    if name == "round":
        return math.copysign(math.floor(abs(x) + 0.5), x)
    if name in ("tgamma", "lgamma", "fabs", "exp2", "erf", "erfc"):
        return {"tgamma": math.gamma, "exp2": lambda v: 2.0**v}.get(name, getattr(math, name, None))(x)
    return float(getattr(math, name)(x))


@pytest.mark.parametrize(("name", "range_", "single", "double"), FUNCTIONS, ids=[row[0] for row in FUNCTIONS])
def test_functions_of_float_and_double(run, name, range_, single, double):
    n = 1000
    for type_name, dtype, bound in (("float", "f4", single), ("double", "f8", double)):
        low, high = range_
        if low > 0 and high / low > 1e6:
            values = np.exp(random().uniform(math.log(low), math.log(high), n)).astype(dtype)
        else:
            values = random().uniform(low, high, n).astype(dtype)
        out = np.zeros(n, dtype=dtype)
        run(MATHEMATICS, f"apply<{type_name}>", 4, 256, values, out, n, define_macro=("FUNCTION", name))
        exact = np.array([reference(name, float(x)) for x in values])
        slack = 0.51 if bound else 0.5
        if dtype == "f8" and bound:
            slack = 2 + (8 if name in ("cbrt", "exp10", "tgamma", "lgamma", "erfc") else 0)  # the host's own error
        assert units_in_the_last_place(out, exact, dtype) <= bound + slack, name


TWO = """
extern "C" __global__ void two(const float *x, const float *y, float *out, double *wide, int n)
{
    int i = threadIdx.x;
    if (i >= n) return;
    float *o = out + 10 * i;
    o[0] = powf(x[i], y[i]); o[1] = atan2f(x[i], y[i]); o[2] = fmodf(x[i], y[i]); o[3] = hypotf(x[i], y[i]);
    o[4] = fminf(x[i], y[i]); o[5] = fmaxf(x[i], y[i]); o[6] = x[i] / y[i]; o[7] = copysignf(x[i], -y[i]);
    o[8] = fmaf(x[i], y[i], 1.0f); o[9] = remainderf(x[i], y[i]);
    wide[i] = pow((double)x[i], (double)y[i]);
}
"""


def test_functions_of_two_numbers(run):
    n = 256
    x, y = random().uniform(0.1, 50, n).astype("f4"), random(2).uniform(0.5, 10, n).astype("f4")
    out, wide = np.zeros((n, 10), dtype="f4"), np.zeros(n, dtype="f8")
    run(TWO, "two", 1, n, x, y, out, wide, n)
    a, b = x.astype("f8"), y.astype("f8")
    assert units_in_the_last_place(out[:, 0], a**b) <= 4.5
    assert units_in_the_last_place(out[:, 1], np.arctan2(a, b)) <= 3.5
    assert np.array_equal(out[:, 2], np.fmod(x, y))
    assert units_in_the_last_place(out[:, 3], np.hypot(a, b)) <= 3.5
    assert np.array_equal(out[:, 4], np.minimum(x, y))
    assert np.array_equal(out[:, 5], np.maximum(x, y))
    assert np.array_equal(out[:, 6], x / y)  # division is correctly rounded
    assert np.array_equal(out[:, 7], -x)
    assert np.array_equal(out[:, 8], (a * b + 1).astype("f4"))
    assert np.array_equal(
        out[:, 9], [np.float32(math.remainder(float(p), float(q))) for p, q in zip(x, y, strict=True)]
    )
    assert units_in_the_last_place(wide, a**b, "f8") <= 4


SPECIAL = """
extern "C" __global__ void special(float *out, const float *in)
{
    float zero = in[0], one = in[1], big = in[2], negative = in[3];
    out[0] = one / zero; out[1] = -one / zero; out[2] = zero / zero; out[3] = sqrtf(negative); out[4] = logf(zero);
    out[5] = expf(big); out[6] = expf(-big); out[7] = fminf(zero / zero, one); out[8] = powf(zero, zero);
    out[9] = sinf(one / zero); out[10] = floorf(negative); out[11] = (float)(int)(one / zero);
    out[12] = (float)(int)negative;
    out[13] = isnan(zero / zero) ? 1.f : 0.f; out[14] = signbit(-zero) ? 1.f : 0.f; out[15] = atan2f(zero, -one);
}
"""


def test_special_values(run):
    out = np.zeros(16, dtype="f4")
    run(SPECIAL, "special", 1, 1, out, np.array([0, 1, 1000, -2.5], dtype="f4"))
    expected = np.array(
        [math.inf, -math.inf, math.nan, math.nan, -math.inf, math.inf, 0, 1, 1, math.nan, -3, 2**31, -2, 1, 1, math.pi],
        dtype="f4",
    )
    assert np.array_equal(out, expected, equal_nan=True)


FAST = """
extern "C" __global__ void fast(const float *x, float *out)
{
    int i = threadIdx.x;
    float *o = out + 6 * i;
    o[0] = __sinf(x[i]); o[1] = __cosf(x[i]); o[2] = __expf(x[i]); o[3] = __logf(x[i]); o[4] = __fdividef(1.0f, x[i]);
    o[5] = __powf(x[i], 1.5f);
}
"""


def test_fast_approximations(run):
    x = random().uniform(0.5, 3.0, 128).astype("f4")
    out = np.zeros((128, 6), dtype="f4")
    run(FAST, "fast", 1, 128, x, out)
    a = x.astype("f8")
    assert np.allclose(out[:, 0], np.sin(a), rtol=0, atol=2**-20)
    assert np.allclose(out[:, 1], np.cos(a), rtol=0, atol=2**-20)
    assert np.allclose(out[:, 2], np.exp(a), rtol=1e-6)
    assert np.allclose(out[:, 3], np.log(a), rtol=1e-5, atol=2**-20)
    assert np.allclose(out[:, 4], 1 / a, rtol=3e-7)
    assert np.allclose(out[:, 5], a**1.5, rtol=1e-5)


# ---- integers ------------------------------------------------------------------------------------------------------

INTEGERS = """
extern "C" __global__ void integers(const long long *a, const long long *b, long long *out, unsigned int *small)
{
    int i = threadIdx.x;
    long long x = a[i], y = b[i];
    long long *o = out + 12 * i;
    o[0] = x * y; o[1] = x / y; o[2] = x % y; o[3] = x >> 7; o[4] = (unsigned long long)x >> 7; o[5] = x ^ y;
    o[6] = __mul64hi(x, y); o[7] = x < y;
    o[8] = (unsigned long long)x / (unsigned long long)y;
    o[9] = llabs(x); o[10] = min(x, y); o[11] = x << 5;
    unsigned int *s = small + 8 * i, u = (unsigned int)x, v = (unsigned int)y;
    s[0] = __popc(u); s[1] = __clz(u); s[2] = __brev(u); s[3] = __ffs(u); s[4] = __umulhi(u, v);
    s[5] = __byte_perm(u, v, 0x5140); s[6] = __funnelshift_l(u, v, 9); s[7] = __popcll(x) * 100 + __clzll(x);
}
"""


def test_integer_arithmetic(run):
    n = 64
    values = random().integers(-(2**63), 2**63 - 1, (2, n), dtype="i8")
    values[0, :4] = [0, -1, 2**63 - 1, 1]
    values[1, :4] = [1, -7, 3, -(2**63)]
    out, small = np.zeros((n, 12), dtype="i8"), np.zeros((n, 8), dtype="u4")
    run(INTEGERS, "integers", 1, n, values[0].copy(), values[1].copy(), out, small)

    def signed(x):
        return (x + 2**63) % 2**64 - 2**63

    for i in range(n):
        x, y = int(values[0, i]), int(values[1, i])
        ux, uy, u, v = x % 2**64, y % 2**64, x % 2**32, y % 2**32
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        assert out[i].tolist() == [
            signed(x * y), quotient, x - quotient * y, x >> 7, signed(ux >> 7), x ^ y, x * y >> 64, int(x < y),
            signed(ux // uy), signed(abs(x)), min(x, y), signed(x << 5),
        ]  # fmt: skip
        bytes_ = [u >> 8 * k & 255 for k in range(4)] + [v >> 8 * k & 255 for k in range(4)]
        permuted = bytes_[0] | bytes_[4] << 8 | bytes_[1] << 16 | bytes_[5] << 24
        assert small[i].tolist() == [
            u.bit_count(), 32 - u.bit_length(), int(f"{u:032b}"[::-1], 2), (u & -u).bit_length(), u * v >> 32, permuted,
            ((v << 32 | u) << 9 >> 32) % 2**32, ux.bit_count() * 100 + 64 - ux.bit_length(),
        ]  # fmt: skip


CONVERSIONS = """
extern "C" __global__ void conversions(const double *in, int *i, unsigned *u, long long *l, float *f, unsigned char *c)
{
    int t = threadIdx.x;
    double x = in[t];
    i[t] = (int)x; u[t] = (unsigned)x; l[t] = (long long)x; f[t] = (float)x; c[t] = (unsigned char)(int)x;
}
"""


def test_conversions(run):
    x = np.array(
        [0.0, -0.0, 1.5, -1.5, 2.5, 1e9, -1e9, 3.7e9, 1e12, -1e12, 255.9, 256.1, 0.1, 1e-300, 1e300, 123456789.123]
    )
    n = len(x)
    i, u, l, f, c = (np.zeros(n, dtype=d) for d in ("i4", "u4", "i8", "f4", "u1"))  # noqa: E741
    run(CONVERSIONS, "conversions", 1, n, x, i, u, l, f, c)

    def saturated(v, low, high):
        return min(max(math.trunc(v), low), high)

    assert i.tolist() == [saturated(v, -(2**31), 2**31 - 1) for v in x]
    assert u.tolist() == [saturated(v, 0, 2**32 - 1) for v in x]
    assert l.tolist() == [saturated(v, -(2**63), 2**63 - 1) for v in x]
    with np.errstate(over="ignore"):
        assert np.array_equal(f, x.astype("f4"))
    assert c.tolist() == [saturated(v, -(2**31), 2**31 - 1) % 256 for v in x]


# ---- half precision ------------------------------------------------------------------------------------------------

HALF = """
#include <cuda_fp16.h>
extern "C" __global__ void half_axpy(__half a, const __half *x, const __half *y, __half *sum,
                                      __half *fused, float *wide)
{
    int i = threadIdx.x;
    sum[i] = __hadd(x[i], y[i]);
    fused[i] = __hfma(a, x[i], y[i]);
    wide[i] = __half2float(x[i]) * 2.0f;
}
extern "C" __global__ void pairs(const __half2 *x, __half2 *y)
{
    y[threadIdx.x] = __hmul2(x[threadIdx.x], x[threadIdx.x]);
}
extern "C" __global__ void narrow(const float *x, __half *y) { y[threadIdx.x] = __float2half(x[threadIdx.x]); }
"""


def test_half(run):
    n = 128
    x, y = random().normal(size=n).astype("f2"), random(2).normal(size=n).astype("f2")
    total, fused, wide = np.zeros(n, "f2"), np.zeros(n, "f2"), np.zeros(n, "f4")
    run(HALF, "half_axpy", 1, n, np.float16(1.5), x, y, total, fused, wide)
    assert np.array_equal(total, x + y)
    assert np.array_equal(fused, (1.5 * x.astype("f8") + y.astype("f8")).astype("f2"))
    assert np.array_equal(wide, 2 * x.astype("f4"))
    squares = np.zeros(n, "f2")
    run(HALF, "pairs", 1, n // 2, x, squares)
    assert np.array_equal(squares, x * x)
    values = np.array([0, 1, -1, 65504, 65520, 1e-8, 6e-8, 0.1, math.inf, 1 / 3], dtype="f4")
    narrow = np.zeros(len(values), "f2")
    run(HALF, "narrow", 1, len(values), values, narrow)
    with np.errstate(over="ignore"):
        assert np.array_equal(narrow, values.astype("f2"))
