# SPDX-License-Identifier: MIT
"""Vector math functions in IR: LLVM has no vector math library, and its intrinsics would become scalar libm calls.

Each takes and returns fp32 (a scalar or a vector). Errors were measured against fp64 over the whole range by
`tests/engine/test_floats.py`; the bound stated is in units in the last place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from . import pieces, wide
from .build import Builder, Value, full, in_pieces, lanes_of, like
from .ltypes import F32, I32

LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.693145751953125, 1.4286068203094172e-06


def _poly(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """Horner, highest power first."""
    result = full(x.type, coefficients[0])
    for c in coefficients[1:]:
        result = b.math("fma", result, x, full(x.type, c))
    return result


def _scale_by_power(b: Builder, value: Value, exponent: Value, steps: int = 2) -> Value:
    """value * 2^exponent for an integral fp32 `exponent` of at most 126 `steps` in magnitude; subnormal results are
    exact.
    """
    if b.avx512_lanes and (lanes_of(value) or 1) % b.avx512_lanes == 0:
        return _scalef(b, value, exponent)
    wide = like(value, I32)
    whole = b.fptosi(exponent, wide)
    half = b.ashr(whole, full(wide, 1))
    for part in (whole,) if steps == 1 else (half, b.sub(whole, half)):
        bits = b.shl(b.add(part, full(wide, 127)), full(wide, 23))
        value = b.fmul(value, b.bitcast(bits, value.type))
    return value


def _scalef(b: Builder, value: Value, exponent: Value) -> Value:
    """AVX-512's own scaling instruction."""
    rounding = [ir.Constant(I32, 4)] if b.avx512_lanes == 16 else []
    return _by_machine_vectors(b, "mask.scalef.ps", [value, exponent], rounding)


def _by_machine_vectors(b: Builder, name: str, values: Sequence[Value], more: Sequence[Value] = ()) -> Value:
    """An instruction of AVX-512 on fp32, with zeros to merge into and a full mask, a machine vector at a time."""
    n = b.avx512_lanes
    piece = ir.VectorType(F32, n)
    rest = [full(piece, 0.0), ir.Constant(ir.IntType(n), -1), *more]
    whole = f"llvm.x86.avx512.{name}.{32 * n}"
    return in_pieces(b, n, values, lambda args: b.call_intrinsic(whole, piece, [*args, *rest]))


def rsqrt(b: Builder, x: Value) -> Value:
    """1 / sqrt(x), 1.5 ulp: AVX-512's estimate, good to 2^-14, and one step of Newton's; else two exact operations."""
    t = x.type
    if t != like(x, F32) or not b.avx512_lanes or (lanes_of(x) or 1) % b.avx512_lanes:
        return b.fdiv(full(t, 1.0), b.math("sqrt", x))
    y = _by_machine_vectors(b, "rsqrt14.ps", [x])
    gap = b.math("fma", b.fneg(b.fmul(x, y)), y, full(t, 1.0))
    better = b.math("fma", b.fmul(y, gap), full(t, 0.5), y)
    # The estimates of 0 and infinity are right, and Newton's step is NaN there.
    return b.select(b.fcmp_ordered("ord", gap, gap), better, y)


# exp(r) on |r| <= ln2/2, highest power first: 1 + r + r^2 p(r), p good to 2^-24 (so exp to 2^-27)
_EXP = (1.3926213466332444e-3, 8.363202971575855e-3, 4.166655443768594e-2, 0.16666576845993977, 0.5, 1.0, 1.0)


def exp(b: Builder, x: Value) -> Value:
    """e^x, 1 ulp; 0 below -103.97, inf above 88.72, NaN for NaN."""
    t = x.type
    x = _clamp(b, x, -104.0, 89.0)
    n = b.math("rint", b.fmul(x, full(t, LOG2E)))
    r = b.math("fma", n, full(t, -LN2_HIGH), x)
    r = b.math("fma", n, full(t, -LN2_LOW), r)
    return _scale_by_power(b, _poly(b, r, _EXP), n)


# 2^r on |r| <= 0.5
_EXP2 = (1.5353362e-4, 1.33989e-3, 9.618437e-3, 5.550332e-2, 2.402264791e-1, 6.931472028e-1, 1.0)


def exp2(b: Builder, x: Value) -> Value:
    """2^x, 1 ulp."""
    return _exp2_within(b, _clamp(b, x, -150.0, 129.0))


def _exp2_within(b: Builder, x: Value, steps: int = 2) -> Value:
    """2^x for x that is known to be within the bounds of `exp2` (within +-126 if one step is to do)."""
    n = b.math("rint", x)
    return _scale_by_power(b, _poly(b, b.fsub(x, n), _EXP2), n, steps)


def _clamp(b: Builder, x: Value, low: float, high: float) -> Value:
    """Between the bounds; NaN stays (one machine instruction each: the second operand wins an unordered compare)."""
    t = x.type
    x = b.select(b.fcmp_ordered(">", full(t, low), x), full(t, low), x)
    return b.select(b.fcmp_ordered("<", full(t, high), x), full(t, high), x)


# log(1+f) - f + f^2/2 over f^3, for 1+f in [sqrt(1/2), sqrt(2))
_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
    1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip


def _split(b: Builder, x: Value) -> tuple[Value, Value]:
    """x = m * 2^e with m in [sqrt(1/2), sqrt(2)): returns m - 1 and e as fp32. Subnormals are scaled up first."""
    t, wide = x.type, like(x, I32)
    tiny = b.fcmp_ordered("<", x, full(t, 1.17549435e-38))
    x = b.select(tiny, b.fmul(x, full(t, 8388608.0)), x)
    bits = b.bitcast(x, wide)
    shifted = b.sub(bits, full(wide, 0x3F3504F3))
    e = b.ashr(shifted, full(wide, 23))
    m = b.bitcast(b.sub(bits, b.shl(e, full(wide, 23))), t)
    e = b.select(tiny, b.sub(e, full(wide, 23)), e)
    return b.fsub(m, full(t, 1.0)), b.sitofp(e, t)


def _log_core(b: Builder, f: Value) -> Value:
    t = f.type
    z = b.fmul(f, f)
    y = b.fmul(b.fmul(_poly(b, f, _LOG), f), z)
    return b.math("fma", z, full(t, -0.5), y)


def _log_edges(b: Builder, x: Value, result: Value) -> Value:
    t = x.type
    inf, nan = full(t, float("inf")), full(t, float("nan"))
    result = b.select(b.fcmp_ordered("==", x, inf), inf, result)
    result = b.select(b.fcmp_ordered("==", x, full(t, 0.0)), full(t, float("-inf")), result)
    return b.select(b.fcmp_unordered("<", x, full(t, 0.0)), nan, result)


def log(b: Builder, x: Value) -> Value:
    """Natural logarithm, 1 ulp; -inf at 0, NaN below."""
    f, e = _split(b, x)
    t = x.type
    y = b.math("fma", e, full(t, -2.12194440e-4), _log_core(b, f))
    result = b.math("fma", e, full(t, 0.693359375), b.fadd(f, y))
    return _log_edges(b, x, result)


def log2(b: Builder, x: Value) -> Value:
    """Base-2 logarithm, 2 ulp."""
    f, e = _split(b, x)
    t = x.type
    y = _log_core(b, f)
    low = full(t, 0.44269504088896340735992)
    result = b.math("fma", y, low, b.fmul(f, low))
    result = b.fadd(b.fadd(b.fadd(result, y), f), e)
    return _log_edges(b, x, result)


# erf(x) / x - 1 in x^2, for |x| <= 1, 2^-29
_ERF_SMALL = (
    7.889119297033176e-5, -8.020820841e-4, 5.189535208e-3, -2.6854444295e-2, 1.128360033e-1, -3.761262596e-1,
    1.283791661e-1,
)  # fmt: skip
# log2(erfc(x)) for 1 <= x <= 4, good to 2^-29 in erf(x)
_ERF_LARGE = (
    2.688896202e-4, -4.252584185e-3, 3.1505715102e-2, -1.4875170588e-1, -9.206482768e-1, -1.6260460615, -4.926985130e-4,
)  # fmt: skip


def erf(b: Builder, x: Value) -> Value:
    """The error function, 1.25 ulp, or 1 ulp where it comes in pieces; its sign is x's."""
    t = x.type
    if t != F32 and b.lookup and t.count % b.lookup == 0:
        return pieces.erf(b, x)
    a = b.math("fabs", x)
    small = b.math("fma", _poly(b, b.fmul(x, x), _ERF_SMALL), x, x)
    bounded = b.select(b.fcmp_ordered("<", full(t, 4.0), a), full(t, 4.0), a)
    rest = _exp2_within(b, _poly(b, bounded, _ERF_LARGE), steps=1)
    large = b.math("copysign", b.fsub(full(t, 1.0), rest), x)
    return b.select(b.fcmp_ordered("<", a, full(t, 1.0)), small, large)


Function = Callable[[Builder, Value], Value]


def _wide(name: str) -> Function:
    return lambda b, x: wide.function(b, name, x)


FUNCTIONS: dict[str, Function] = {"exp": exp, "exp2": exp2, "log": log, "log2": log2, "erf": erf}
"""By MLIR's names (dialect math)."""
for _name in ("sin", "cos", "tan", "log1p", "expm1", "log10", "atan", "sinh", "cosh", "tanh", "cbrt"):
    FUNCTIONS[_name] = _wide(_name)
