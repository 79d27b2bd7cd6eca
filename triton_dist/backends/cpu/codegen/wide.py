# SPDX-License-Identifier: MIT
"""fp32 functions computed in fp64: polynomials good to 2^-37 or better, then one rounding.

Every function here errs by less than 0.51 ulp on its whole range, special values included, as
tests/engine/test_libdevice.py measures. The polynomials are Chebyshev fits of our own; each constant says what it
approximates and how well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from .build import Builder, Value, full, like
from .ltypes import F32, F64, I64
from .outline import any_lane, lane_by_lane, outlined

MAGIC = 6755399441055744.0
"""1.5 * 2^52: added to a number below 2^51 it leaves the nearest integer in the low bits; NaN does no harm."""
MAGIC_BITS = 0x4338000000000000

# (e^r - 1) / r for |r| <= ln2 / 2, 2^-43
_EXPM1 = (
    2.7625237795740734e-06, 2.487631345479937e-05, 0.0001984120851210209, 0.0013888821408139453,
    0.008333333353839834, 0.041666666892307004, 0.16666666666648156, 0.49999999999796313, 1.0,
)  # fmt: skip
# 2 atanh(s) / s in s^2, for s = f / (2 + f), 1 + f in [sqrt(1/2), sqrt(2)], 2^-44
_ATANH = (
    0.196083949880862,
    0.22174230095376737,
    0.2857216659918376,
    0.3999999488766673,
    0.6666666667959237,
    1.9999999999999472,
)
# sin(r) / r and cos(r) in r^2, for |r| <= pi / 4, 2^-37 and 2^-44
_SIN = (2.717269367045458e-06, -0.00019839193964485497, 0.00833332875517132, -0.1666666663131027, 0.9999999999956297)
_COS = (
    -2.7172666562783097e-07, 2.479891815008481e-05, -0.0013888880342838477, 0.04166666654292815,
    -0.4999999999934461, 0.9999999999999437,
)  # fmt: skip
# atan(r) / r in r^2, for |r| <= tan(pi / 8), 2^-40
_ATAN = (
    -0.03761446424021413, 0.06971923003100482, -0.0899205548074736, 0.11103403312964605, -0.1428538361156962,
    0.19999992977334288, -0.3333333327619008, 0.9999999999992334,
)  # fmt: skip
# erf(x) / x in x^2, for |x| <= 1, 2^-40
_ERF = (
    1.058938064107502e-06, -1.3909340021874599e-05, 0.0001195656256820733, -0.0008542637997087229, 0.005223783477189248,
    -0.026866133235095593, 0.11283791308604582, -0.3761263888963531, 1.1283791670946768,
)  # fmt: skip
# (1 + 2x) e^(x^2) erfc(x) in t = (x - 3) / (x + 3), for all x >= 0, 2^-40
_ERFCX = (
    -2.922042419094913e-07, 4.7709739341796086e-08, 2.9396332798899584e-06, -3.1043616982676376e-07,
    -1.95971197170508e-05, 4.5905524865422285e-06, 0.00012481420799476434, -0.00010496867883025491,
    -0.0007797359952754262, 0.0018886282939550054, 0.0025293733921964872, -0.02377050333456983,
    0.06830802912087211, -0.11927366451542139, 0.12964515863647125, -0.047562294312741026,
    -0.1356211061241724, 1.253008058269479,
)  # fmt: skip
# pi / 2 in three parts
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.497384905065873e-33)
HUGE = 2.0**28
"""From here on sines go through the C library, which has all the bits of pi."""


def _c(x: Value, number: float) -> ir.Constant:
    return full(x.type, number)


def poly(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """Horner, highest power first."""
    result: Value = _c(x, coefficients[0])
    for c in coefficients[1:]:
        result = b.math("fma", result, x, _c(x, c))
    return result


def at_most(b: Builder, x: Value, limit: float) -> Value:
    """min(x, limit); NaN stays."""
    return b.select(b.fcmp_ordered(">", x, _c(x, limit)), _c(x, limit), x)


def at_least(b: Builder, x: Value, limit: float) -> Value:
    return b.select(b.fcmp_ordered("<", x, _c(x, limit)), _c(x, limit), x)


# Exponentials and logarithms, in fp64


def _two_to(b: Builder, bits: Value) -> Value:
    """2^n for the integer in the low bits of MAGIC + n."""
    n = b.shl(bits, full(bits.type, 52))
    return b.bitcast(b.add(n, full(bits.type, 1023 << 52)), like(bits, F64))


def _reduced(b: Builder, x: Value) -> tuple[Value, Value]:
    """(e^r - 1, 2^n) with x = n ln2 + r; x within +-700."""
    x = at_least(b, at_most(b, x, 700.0), -700.0)
    shifted = b.math("fma", x, _c(x, 1 / math.log(2)), _c(x, MAGIC))
    n = b.fsub(shifted, _c(x, MAGIC))
    r = b.math("fma", n, _c(x, -math.log(2)), x)
    r = b.math("fma", n, _c(x, -2.3190468138462996e-17), r)
    return b.fmul(r, poly(b, r, _EXPM1)), _two_to(b, b.bitcast(shifted, like(x, I64)))


def exp64(b: Builder, x: Value) -> Value:
    grown, scale = _reduced(b, x)
    return b.math("fma", grown, scale, scale)


def expm1_64(b: Builder, x: Value) -> Value:
    grown, scale = _reduced(b, x)
    return b.math("fma", grown, scale, b.fsub(scale, _c(x, 1.0)))


def exp2_64(b: Builder, x: Value) -> Value:
    x = at_least(b, at_most(b, x, 1000.0), -1000.0)
    shifted = b.fadd(x, _c(x, MAGIC))
    r = b.fmul(b.fsub(x, b.fsub(shifted, _c(x, MAGIC))), _c(x, math.log(2)))
    scale = _two_to(b, b.bitcast(shifted, like(x, I64)))
    return b.math("fma", b.fmul(r, poly(b, r, _EXPM1)), scale, scale)


def _log_parts(b: Builder, x: Value, near: Value | None = None) -> tuple[Value, Value]:
    """(ln m, e) with x = m 2^e. `near` is x - 1 where that is known better than x (log1p)."""
    wide = like(x, I64)
    bits = b.bitcast(x, wide)
    e = b.ashr(b.sub(bits, full(wide, 0x3FE6A09E667F3BCD)), full(wide, 52))
    m = b.bitcast(b.sub(bits, b.shl(e, full(wide, 52))), x.type)
    f = b.fsub(m, _c(x, 1.0))
    if near is not None:
        f = b.select(b.icmp_signed("==", e, full(wide, 0)), near, f)
    s = b.fdiv(f, b.fadd(f, _c(x, 2.0)))
    exponent = b.fsub(b.bitcast(b.add(e, full(wide, MAGIC_BITS)), x.type), _c(x, MAGIC))
    return b.fmul(s, poly(b, b.fmul(s, s), _ATANH)), exponent


def _log_edges(b: Builder, x: Value, result: Value) -> Value:
    inf = _c(x, math.inf)
    result = b.select(b.fcmp_ordered("==", x, inf), inf, result)
    result = b.select(b.fcmp_ordered("==", x, _c(x, 0.0)), _c(x, -math.inf), result)
    return b.select(b.fcmp_unordered("<", x, _c(x, 0.0)), _c(x, math.nan), result)


def log64(b: Builder, x: Value) -> Value:
    m, e = _log_parts(b, x)
    return _log_edges(b, x, b.math("fma", e, _c(x, math.log(2)), m))


def log2_64(b: Builder, x: Value) -> Value:
    m, e = _log_parts(b, x)
    return _log_edges(b, x, b.math("fma", m, _c(x, 1 / math.log(2)), e))


def log1p_64(b: Builder, x: Value) -> Value:
    u = b.fadd(x, _c(x, 1.0))
    m, e = _log_parts(b, u, x)
    return _log_edges(b, u, b.math("fma", e, _c(x, math.log(2)), m))


def _is_integer(b: Builder, y: Value) -> Value:
    return b.fcmp_ordered("==", y, b.math("trunc", y))


def pow64(b: Builder, x: Value, y: Value) -> Value:
    """C's pow, for operands that come from fp32 (or a 32-bit integer)."""
    one, zero, inf = _c(x, 1.0), _c(x, 0.0), _c(x, math.inf)
    a = b.math("fabs", x)
    unit = b.and_(b.fcmp_ordered("==", a, one), b.fcmp_ordered("ord", y, y))
    t = b.select(unit, zero, b.fmul(y, log2_64(b, a)))
    result = exp2_64(b, t)
    odd = b.and_(_is_integer(b, y), b.fcmp_unordered("!=", (h := b.fmul(y, _c(y, 0.5))), b.math("trunc", h)))
    negative = b.icmp_signed("<", b.bitcast(x, like(x, I64)), full(like(x, I64), 0))
    result = b.select(b.and_(odd, negative), b.fneg(result), result)
    number = b.and_(b.fcmp_ordered("<", x, zero), b.fcmp_ordered("!=", a, inf))
    result = b.select(
        b.and_(number, b.not_(b.or_(_is_integer(b, y), b.fcmp_unordered("uno", y, y)))), _c(x, math.nan), result
    )
    trivial = b.or_(b.fcmp_ordered("==", y, zero), b.fcmp_ordered("==", x, one))
    return b.select(trivial, one, result)


# Circular functions


def _quadrant(b: Builder, x: Value) -> tuple[Value, Value]:
    """(r, n mod 4 in the low bits) with x = n pi/2 + r, for |x| < HUGE."""
    shifted = b.math("fma", x, _c(x, 2 / math.pi), _c(x, MAGIC))
    n = b.fneg(b.fsub(shifted, _c(x, MAGIC)))
    for part in _HALF_PI:
        x = b.math("fma", n, _c(x, part), x)
    return x, b.bitcast(shifted, like(x, I64))


def _sin_cos(b: Builder, r: Value) -> tuple[Value, Value]:
    z = b.fmul(r, r)
    return b.fmul(r, poly(b, z, _SIN)), poly(b, z, _COS)


def _turn(b: Builder, r: Value, n: Value, ahead: int) -> Value:
    """sin(r + (n + ahead) pi/2)."""
    if ahead:
        n = b.add(n, full(n.type, ahead))
    s, c = _sin_cos(b, r)
    odd = b.icmp_signed("!=", b.and_(n, full(n.type, 1)), full(n.type, 0))
    value = b.select(odd, c, s)
    sign = b.shl(b.and_(n, full(n.type, 2)), full(n.type, 62))
    return b.bitcast(b.xor(b.bitcast(value, n.type), sign), r.type)


def _tangent(b: Builder, r: Value, n: Value) -> Value:
    s, c = _sin_cos(b, r)
    odd = b.icmp_signed("!=", b.and_(n, full(n.type, 1)), full(n.type, 0))
    return b.fdiv(b.select(odd, b.fneg(c), s), b.select(odd, s, c))


def _circular(symbol: str, of_quadrant: Callable[[Builder, Value, Value], Value]) -> Callable[[Builder, Value], Value]:
    """Few terms while pi/2 in three parts does; the C library for a piece that has a huge number in it."""

    def core(b: Builder, x: Value) -> Value:
        huge = any_lane(b, b.fcmp_ordered(">=", b.math("fabs", x), _c(x, HUGE)))
        slow, done = b.append_basic_block("huge"), b.append_basic_block("done")
        near = of_quadrant(b, *_quadrant(b, x))
        before = b.block
        b.cbranch(huge, slow, done)
        b.position_at_end(slow)
        far = lane_by_lane(b, symbol, F64, [x], lambda bb, a: bb.call_intrinsic(symbol, F64, a))
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(x.type)
        result.add_incoming(near, before)
        result.add_incoming(far, slow)
        return result

    return core


def _half_turns(b: Builder, x: Value) -> tuple[Value, Value]:
    """(r, n) with pi x = n pi/2 + r, exactly reduced."""
    x = b.fsub(x, b.fmul(b.math("rint", b.fmul(x, _c(x, 0.5))), _c(x, 2.0)))
    shifted = b.math("fma", x, _c(x, 2.0), _c(x, MAGIC))
    r = b.math("fma", b.fsub(shifted, _c(x, MAGIC)), _c(x, -0.5), x)
    return b.fmul(r, _c(x, math.pi)), b.bitcast(shifted, like(x, I64))


def _sinpi(b: Builder, x: Value) -> Value:
    return _turn(b, *_half_turns(b, x), 0)


def _cospi(b: Builder, x: Value) -> Value:
    return _turn(b, *_half_turns(b, x), 1)


def atan2_64(b: Builder, y: Value, x: Value) -> Value:
    """Three cases of |y| / |x|, told apart at tan(pi/8) and its inverse: the polynomial sees at most tan(pi/8)."""
    a, c = (at_most(b, b.math("fabs", v), 1e300) for v in (y, x))
    steep = b.fcmp_ordered(">", a, b.fmul(c, _c(x, 2.414213562373095)))
    middle = b.fcmp_ordered(">", a, b.fmul(c, _c(x, 0.41421356237309503)))
    top = b.select(steep, b.fneg(c), b.select(middle, b.fsub(a, c), a))
    bottom = b.select(steep, a, b.select(middle, b.fadd(a, c), c))
    bottom = b.select(b.fcmp_ordered("==", bottom, _c(x, 0.0)), _c(x, 1.0), bottom)
    base = b.select(steep, _c(x, math.pi / 2), b.select(middle, _c(x, math.pi / 4), _c(x, 0.0)))
    r = b.fdiv(top, bottom)
    angle = b.math("fma", r, poly(b, b.fmul(r, r), _ATAN), base)
    left = b.icmp_signed("<", b.bitcast(x, like(x, I64)), full(like(x, I64), 0))
    angle = b.select(left, b.fsub(_c(x, math.pi), angle), angle)
    return b.math("copysign", angle, y)


def _other_leg(b: Builder, x: Value) -> Value:
    """sqrt(1 - x^2)."""
    one = _c(x, 1.0)
    return b.math("sqrt", b.fmul(b.fsub(one, x), b.fadd(one, x)))


# Hyperbolic functions


def _sinh(b: Builder, x: Value) -> Value:
    e = expm1_64(b, b.math("fabs", x))
    return b.math("copysign", b.fmul(_c(x, 0.5), b.fadd(e, b.fdiv(e, b.fadd(e, _c(x, 1.0))))), x)


def _cosh(b: Builder, x: Value) -> Value:
    e = exp64(b, b.math("fabs", x))
    return b.fmul(_c(x, 0.5), b.fadd(e, b.fdiv(_c(x, 1.0), e)))


def _tanh(b: Builder, x: Value) -> Value:
    e = expm1_64(b, b.fmul(_c(x, 2.0), at_most(b, b.math("fabs", x), 20.0)))
    return b.math("copysign", b.fdiv(e, b.fadd(e, _c(x, 2.0))), x)


def _asinh(b: Builder, x: Value) -> Value:
    a = b.math("fabs", x)
    z = b.fmul(a, a)
    root = b.math("sqrt", b.fadd(z, _c(x, 1.0)))
    result = log1p_64(b, b.fadd(a, b.fdiv(z, b.fadd(root, _c(x, 1.0)))))
    return b.math("copysign", b.select(b.fcmp_ordered("==", a, _c(x, math.inf)), a, result), x)


def _acosh(b: Builder, x: Value) -> Value:
    t = b.fsub(x, _c(x, 1.0))
    return log1p_64(b, b.fadd(t, b.fmul(b.math("sqrt", t), b.math("sqrt", b.fadd(x, _c(x, 1.0))))))


def _atanh(b: Builder, x: Value) -> Value:
    a = b.math("fabs", x)
    ratio = b.fdiv(b.fmul(_c(x, 2.0), a), b.fsub(_c(x, 1.0), a))
    return b.math("copysign", b.fmul(_c(x, 0.5), log1p_64(b, ratio)), x)


# Error functions


def _erfcx_right(b: Builder, a: Value) -> Value:
    """e^(a^2) erfc(a) for a >= 0."""
    a = at_most(b, a, 1e60)
    t = b.fdiv(b.fsub(a, _c(a, 3.0)), b.fadd(a, _c(a, 3.0)))
    return b.fdiv(poly(b, t, _ERFCX), b.math("fma", a, _c(a, 2.0), _c(a, 1.0)))


def _gauss(b: Builder, a: Value) -> Value:
    a = at_most(b, a, 1e30)
    return exp64(b, b.fneg(b.fmul(a, a)))


def erfc64(b: Builder, x: Value) -> Value:
    a = b.math("fabs", x)
    right = b.fmul(_gauss(b, a), _erfcx_right(b, a))
    return b.select(b.fcmp_ordered("<", x, _c(x, 0.0)), b.fsub(_c(x, 2.0), right), right)


def _erf(b: Builder, x: Value) -> Value:
    a = b.math("fabs", x)
    small = b.fmul(x, poly(b, b.fmul(x, x), _ERF))
    large = b.math("copysign", b.fsub(_c(x, 1.0), b.fmul(_gauss(b, a), _erfcx_right(b, a))), x)
    return b.select(b.fcmp_ordered("<", a, _c(x, 1.0)), small, large)


def _erfcx(b: Builder, x: Value) -> Value:
    a = b.math("fabs", x)
    right = _erfcx_right(b, a)
    square = b.fmul(at_most(b, a, 1e30), at_most(b, a, 1e30))
    left = b.fsub(b.fmul(_c(x, 2.0), exp64(b, square)), right)
    return b.select(b.fcmp_ordered("<", x, _c(x, 0.0)), left, right)


def _normcdf(b: Builder, x: Value) -> Value:
    return b.fmul(_c(x, 0.5), erfc64(b, b.fmul(x, _c(x, -math.sqrt(0.5)))))


# Roots


def _cube(sign: float) -> Callable[[Builder, Value], Value]:
    def emit(b: Builder, x: Value) -> Value:
        third = b.fmul(log64(b, b.math("fabs", x)), _c(x, sign / 3))
        return b.math("copysign", exp64(b, third), x)

    return emit


def _norm(b: Builder, legs: Sequence[Value]) -> Value:
    total = b.fmul(legs[0], legs[0])
    for leg in legs[1:]:
        total = b.math("fma", leg, leg, total)
    root, inf = b.math("sqrt", total), _c(total, math.inf)
    for leg in legs:
        root = b.select(b.fcmp_ordered("==", b.math("fabs", leg), inf), inf, root)
    return root


def _one_over(b: Builder, x: Value) -> Value:
    return b.fdiv(_c(x, 1.0), x)


CORES: dict[str, Callable[..., Value]] = {
    "exp10": lambda b, x: exp2_64(b, b.fmul(x, _c(x, math.log2(10)))),
    "expm1": expm1_64,
    "log1p": log1p_64,
    "log10": lambda b, x: b.fmul(log64(b, x), _c(x, 1 / math.log(10))),
    "pow": pow64,
    "sin": _circular("sin", lambda b, r, n: _turn(b, r, n, 0)),
    "cos": _circular("cos", lambda b, r, n: _turn(b, r, n, 1)),
    "tan": _circular("tan", _tangent),
    "sinpi": _sinpi,
    "cospi": _cospi,
    "atan": lambda b, x: atan2_64(b, x, _c(x, 1.0)),
    "atan2": atan2_64,
    "asin": lambda b, x: atan2_64(b, x, _other_leg(b, x)),
    "acos": lambda b, x: atan2_64(b, _other_leg(b, x), x),
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
    "erf": _erf,
    "erfc": erfc64,
    "erfcx": _erfcx,
    "normcdf": _normcdf,
    "cbrt": _cube(1.0),
    "rcbrt": _cube(-1.0),
    "rsqrt": lambda b, x: _one_over(b, b.math("sqrt", x)),
    "hypot": lambda b, *x: _norm(b, x),
    "rhypot": lambda b, *x: _one_over(b, _norm(b, x)),
}


def function(b: Builder, name: str, *args: Value) -> Value:
    """An fp32 function of scalars or vectors."""

    def emit(bb: Builder, values: Sequence[Value]) -> Value:
        wide = [bb.fpext(v, like(v, F64)) for v in values]
        return bb.fptrunc(CORES[name](bb, *wide), like(values[0], F32))

    return outlined(b, f"{name}{len(args)}", F32, args, emit)
