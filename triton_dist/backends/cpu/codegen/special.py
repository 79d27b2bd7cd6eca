# SPDX-License-Identifier: MIT
"""The special functions that neither the C library nor the fp64 polynomials give: inverses, Bessel I, scaled erfc.

They run lane by lane in fp64. fp32 operands are widened before and the result is rounded after.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from . import wide
from .build import Builder, Value, full, i64, like, scalar_type
from .ltypes import F32, F64, I32
from .outline import lane_by_lane, outlined

Emit = Callable[[Builder, Sequence[Value]], Value]


def _call(b: Builder, name: str, *args: Value) -> Value:
    return b.call_intrinsic(name, F64, args)


def _c(number: float) -> ir.Constant:
    return ir.Constant(F64, number)


def _is(b: Builder, x: Value, number: float) -> Value:
    return b.fcmp_ordered("==", x, full(x.type, number))


# Inverses of the error function


def _first_guess(b: Builder, y: Value) -> Value:
    """Winitzki's closed form for erfcinv on (0, 1]: within 2e-3 of the answer."""
    a = 0.147
    log = _call(b, "log", b.fmul(y, b.fsub(_c(2.0), y)))
    half = b.fadd(_c(2 / (math.pi * a)), b.fmul(log, _c(0.5)))
    inner = b.math("sqrt", b.fsub(b.fmul(half, half), b.fmul(log, _c(1 / a))))
    difference = b.fsub(inner, half)
    return b.math("sqrt", b.select(b.fcmp_ordered(">", difference, _c(0.0)), difference, _c(0.0)))


def _improve_tail(b: Builder, w: Value, y: Value) -> Value:
    """Newton on log erfc(w) = log y, which is nearly a parabola."""
    c = _call(b, "erfc", w)
    gap = _call(b, "log", b.fdiv(c, y))
    slope = b.fdiv(b.fmul(c, _c(math.sqrt(math.pi) / 2)), _call(b, "exp", b.fneg(b.fmul(w, w))))
    return b.fadd(w, b.fmul(gap, slope))


def _improve_middle(b: Builder, w: Value, x: Value) -> Value:
    """Halley on erf(w) = x."""
    gap = b.fsub(_call(b, "erf", w), x)
    u = b.fdiv(b.fmul(gap, _c(math.sqrt(math.pi) / 2)), _call(b, "exp", b.fneg(b.fmul(w, w))))
    return b.fsub(w, b.fdiv(u, b.fadd(_c(1.0), b.fmul(w, u))))


def _right(b: Builder, x: Value, y: Value) -> Value:
    """w >= 0 with erf(w) = x and erfc(w) = y = 1 - x; whichever of the two is small is the exact one."""
    start = _first_guess(b, y)
    middle = tail = start
    for _ in range(4):
        middle, tail = _improve_middle(b, middle, x), _improve_tail(b, tail, y)
    result = b.select(b.fcmp_ordered("<", y, _c(0.5)), tail, middle)
    result = b.select(_is(b, y, 0.0), _c(math.inf), result)
    return b.select(_is(b, x, 0.0), _c(0.0), result)


def _erfinv(b: Builder, a: Sequence[Value]) -> Value:
    x = b.math("fabs", a[0])
    result = b.math("copysign", _right(b, x, b.fsub(_c(1.0), x)), a[0])
    return b.select(b.fcmp_ordered(">", x, _c(1.0)), _c(math.nan), result)


def _erfcinv_core(b: Builder, y: Value) -> Value:
    upper = b.fcmp_ordered(">", y, _c(1.0))
    near = b.select(upper, b.fsub(_c(2.0), y), y)
    w = _right(b, b.fsub(_c(1.0), near), near)
    result = b.select(upper, b.fneg(w), w)
    outside = b.or_(b.fcmp_ordered("<", y, _c(0.0)), b.fcmp_ordered(">", y, _c(2.0)))
    return b.select(outside, _c(math.nan), result)


def _erfcinv(b: Builder, a: Sequence[Value]) -> Value:
    return _erfcinv_core(b, a[0])


def _normcdfinv(b: Builder, a: Sequence[Value]) -> Value:
    return b.fmul(_c(-math.sqrt(2)), _erfcinv_core(b, b.fmul(_c(2.0), a[0])))


# Modified Bessel functions of the first kind

SERIES, ASYMPTOTIC, SPLIT = 80, 30, 30.0


def _summed(b: Builder, count: int, first: Value, ratio: Callable[[Value], Value]) -> Value:
    """first * (1 + r(1) + r(1) r(2) + ...), `count` terms."""
    term, total = b.alloca(F64), b.alloca(F64)
    b.store(first, term)
    b.store(first, total)

    def step(n: Value) -> None:
        here = b.fmul(b.load(term, typ=F64), ratio(b.sitofp(n, F64)))
        b.store(here, term)
        b.store(b.fadd(b.load(total, typ=F64), here), total)

    b.counted(i64(1), i64(count), 1, step, "term")
    return b.load(total, typ=F64)


def _bessel_i(order: int) -> Emit:
    """The power series, whose terms are all positive, or from SPLIT on the asymptotic one."""

    def emit(b: Builder, a: Sequence[Value]) -> Value:
        x = b.math("fabs", a[0])
        quarter = b.fmul(b.fmul(x, x), _c(0.25))
        first = b.fmul(x, _c(0.5)) if order else _c(1.0)
        near = _summed(b, SERIES, first, lambda k: b.fdiv(quarter, b.fmul(k, b.fadd(k, _c(float(order))))))

        def ratio(k: Value) -> Value:
            odd = b.fsub(b.fmul(k, _c(2.0)), _c(1.0))
            return b.fdiv(b.fsub(b.fmul(odd, odd), _c(4.0 * order)), b.fmul(b.fmul(k, x), _c(8.0)))

        tail = _summed(b, ASYMPTOTIC, _c(1.0), ratio)
        root = _call(b, "exp", b.fmul(x, _c(0.5)))
        far = b.fmul(root, b.fmul(root, b.fdiv(tail, b.math("sqrt", b.fmul(x, _c(2 * math.pi))))))
        value = b.select(b.fcmp_ordered("<", x, _c(SPLIT)), near, far)
        value = b.select(_is(b, x, math.inf), x, value)
        return b.math("copysign", value, a[0]) if order else value

    return emit


def _scalar(name: str, emit: Emit) -> Emit:
    def of_lanes(b: Builder, a: Sequence[Value]) -> Value:
        single = scalar_type(a[0].type) == F32

        def one(bb: Builder, scalars: Sequence[Value]) -> Value:
            got = emit_called(bb, [bb.fpext(s, F64) if single else s for s in scalars])
            return bb.fptrunc(got, F32) if single else got

        def emit_called(bb: Builder, scalars: Sequence[Value]) -> Value:
            return outlined(bb, f"scalar.{name}", F64, scalars, emit)

        return lane_by_lane(b, name, F32 if single else F64, a, one)

    return of_lanes


SCALAR: dict[str, Emit] = {
    "erfinv": _scalar("erfinv", _erfinv),
    "erfcinv": _scalar("erfcinv", _erfcinv),
    "normcdfinv": _scalar("normcdfinv", _normcdfinv),
    "cyl_bessel_i0": _scalar("cyl_bessel_i0", _bessel_i(0)),
    "cyl_bessel_i1": _scalar("cyl_bessel_i1", _bessel_i(1)),
}


# fp64 functions in terms of the C library's


def _erfcx(b: Builder, a: Sequence[Value]) -> Value:
    """e^(x^2) erfc(x): the square's rounding error is put back; from 25 on the asymptotic series."""
    x = a[0]
    square = b.fmul(x, x)
    lost = b.math("fma", x, x, b.fneg(square))
    near = b.fmul(_call(b, "exp", square), _call(b, "erfc", x))
    near = b.math("fma", near, lost, near)
    inverse = b.fdiv(_c(0.5), square)
    tail = _c(1.0)
    for n in (15, 13, 11, 9, 7, 5, 3, 1):
        tail = b.fsub(_c(1.0), b.fmul(b.fmul(inverse, _c(float(n))), tail))
    far = b.fdiv(b.fmul(tail, _c(1 / math.sqrt(math.pi))), x)
    result = b.select(b.fcmp_ordered("<", x, _c(25.0)), near, far)
    return b.select(b.fcmp_ordered("<", x, _c(-27.0)), _c(math.inf), result)


def _normcdf(b: Builder, a: Sequence[Value]) -> Value:
    """erfc(t + d) / 2 for t = -x / sqrt(2) rounded and d its error."""
    x, root = b.fneg(a[0]), math.sqrt(0.5)
    t = b.fmul(x, _c(root))
    d = b.math("fma", x, _c(-4.833646656726457e-17), b.math("fma", x, _c(root), b.fneg(t)))
    slope = b.fmul(_call(b, "exp", b.fneg(b.fmul(t, t))), _c(-1 / math.sqrt(math.pi)))
    value = b.math("fma", slope, d, b.fmul(_c(0.5), _call(b, "erfc", t)))
    infinite = _is(b, b.math("fabs", t), math.inf)
    return b.select(infinite, b.select(b.fcmp_ordered("<", t, _c(0.0)), _c(1.0), _c(0.0)), value)


def _turns(cosine: bool) -> Emit:
    """sin or cos of pi x: an exact reduction to [-1/4, 1/4]."""

    def emit(b: Builder, a: Sequence[Value]) -> Value:
        x = a[0]
        x = b.fsub(x, b.fmul(b.math("rint", b.fmul(x, _c(0.5))), _c(2.0)))
        n = b.math("rint", b.fmul(x, _c(2.0)))
        r = b.fmul(b.math("fma", n, _c(-0.5), x), _c(math.pi))
        number = b.call_intrinsic("llvm.fptosi.sat.i32.f64", I32, [n])
        quarter = b.add(number, ir.Constant(I32, int(cosine)))
        odd = b.icmp_signed("!=", b.and_(quarter, ir.Constant(I32, 1)), ir.Constant(I32, 0))
        value = b.select(odd, _call(b, "cos", r), _call(b, "sin", r))
        negative = b.icmp_signed("!=", b.and_(quarter, ir.Constant(I32, 2)), ir.Constant(I32, 0))
        return b.select(negative, b.fneg(value), value)

    return emit


def _norm(b: Builder, a: Sequence[Value]) -> Value:
    total = a[0]
    for leg in a[1:]:
        total = _call(b, "hypot", total, leg)
    return total


def _inverse_norm(b: Builder, a: Sequence[Value]) -> Value:
    """Legs so long that the norm would overflow are quartered first."""
    scale: Value = _c(1.0)
    for leg in a:
        scale = b.select(b.fcmp_ordered(">", b.math("fabs", leg), _c(2.0**1000)), _c(0.25), scale)
    return b.fmul(b.fdiv(_c(1.0), _norm(b, [b.fmul(leg, scale) for leg in a])), scale)


def _inverse(name: str) -> Emit:
    return lambda b, a: b.fdiv(_c(1.0), _call(b, name, a[0]))


DOUBLE: dict[str, Emit] = {
    name: _scalar(f"{name}64", emit)
    for name, emit in {
        "sinpi": _turns(False), "cospi": _turns(True), "erfcx": _erfcx, "normcdf": _normcdf, "rhypot": _inverse_norm,
        "norm3d": _norm, "norm4d": _norm, "rnorm3d": _inverse_norm, "rnorm4d": _inverse_norm, "rcbrt": _inverse("cbrt"),
    }.items()
}  # fmt: skip
DOUBLE["rsqrt"] = lambda b, a: b.fdiv(full(a[0].type, 1.0), b.math("sqrt", a[0]))


# fp32 with an integer exponent


def power_of_single(b: Builder, x: Value, exponent: Value) -> Value:
    """x ** n for fp32 x and an fp64 n that holds a 32-bit integer."""

    def emit(bb: Builder, a: Sequence[Value]) -> Value:
        return bb.fptrunc(wide.pow64(bb, bb.fpext(a[0], like(a[0], F64)), a[1]), a[0].type)

    return outlined(b, "powi", F32, [x, exponent], emit)


def scale_single(b: Builder, x: Value, n: Value) -> Value:
    """x * 2^n: exact in fp64 for |n| up to 400, then one rounding."""
    t = n.type
    low, high = full(t, -400), full(t, 400)
    n = b.select(b.icmp_signed("<", n, low), low, b.select(b.icmp_signed(">", n, high), high, n))
    long = b.sext(n, like(n, ir.IntType(64)))
    power = b.bitcast(b.shl(b.add(long, full(long.type, 1023)), full(long.type, 52)), like(x, F64))
    return b.fptrunc(b.fmul(b.fpext(x, power.type), power), x.type)
