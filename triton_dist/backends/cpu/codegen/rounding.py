# SPDX-License-Identifier: MIT
"""Arithmetic with a chosen rounding direction, exact: the nearest result, moved by one step where the error says so.

The sign of the error comes from fp64 (for fp32 operands) or from error-free transformations (Knuth's two-sum, Dekker's
product by fma, Boldo and Muller's error of an fma). For fp64, intermediate results are scaled away from the subnormals.
"""

from __future__ import annotations

import math

import llvmlite.ir as ir

from .build import Builder, Value, full, like, scalar_type
from .ltypes import F32, F64, I1, I32, I64

MODES = ("rn", "rz", "rd", "ru")
SMALL, UP = 2.0**-900, 2.0**200
"""Below SMALL, fp64 operands are scaled by UP to find the sign of an error."""


def _zero(x: Value) -> ir.Constant:
    return full(x.type, 0.0)


def _bits(x: Value) -> ir.Type:
    return like(x, I32 if scalar_type(x.type) == F32 else I64)


def width(type_: ir.Type) -> int:
    """Bits of an integer, or of a vector's elements."""
    scalar = scalar_type(type_)
    assert isinstance(scalar, ir.IntType)
    return scalar.width


def step(b: Builder, x: Value, upward: bool) -> Value:
    """The next number up or down; infinities that lie beyond stay."""
    t = _bits(x)
    raw = b.bitcast(x, t)
    negative = b.icmp_signed("<", raw, full(t, 0))
    grows = b.not_(negative) if upward else negative
    moved = b.select(grows, b.add(raw, full(t, 1)), b.sub(raw, full(t, 1)))
    sign = full(t, 0 if upward else -(1 << (width(t) - 1)))
    least = b.or_(full(t, 1), sign)
    moved = b.select(b.fcmp_ordered("==", x, _zero(x)), b.bitcast(least, x.type), b.bitcast(moved, x.type))
    limit = full(x.type, math.inf if upward else -math.inf)
    return b.select(b.fcmp_ordered("==", x, limit), x, moved)


def directed(b: Builder, nearest: Value, error: Value, mode: str) -> Value:
    """`nearest` rounded in direction `mode`, given a number with the sign of (exact - nearest)."""
    if mode == "rn":
        return nearest
    below, above = b.fcmp_ordered("<", error, _zero(error)), b.fcmp_ordered(">", error, _zero(error))
    if mode == "rz":
        positive = b.icmp_signed(">=", b.bitcast(nearest, _bits(nearest)), full(_bits(nearest), 0))
        down = b.select(b.and_(below, positive), step(b, nearest, False), nearest)
        return b.select(b.and_(above, b.not_(positive)), step(b, nearest, True), down)
    if mode == "rd":
        return b.select(below, step(b, nearest, False), nearest)
    return b.select(above, step(b, nearest, True), nearest)


def _overflowed(b: Builder, nearest: Value, error: Value, operands: list[Value]) -> Value:
    """An infinity from finite operands is beyond the exact result."""
    bad = b.fcmp_ordered("==", b.math("fabs", nearest), full(nearest.type, math.inf))
    for x in operands:
        bad = b.and_(bad, b.fcmp_ordered("!=", b.math("fabs", x), full(x.type, math.inf)))
    back = b.fneg(b.math("copysign", full(error.type, 1.0), _as(b, nearest, error)))
    return b.select(bad, back, error)


def _as(b: Builder, x: Value, other: Value) -> Value:
    return x if x.type == other.type else b.fpext(x, other.type)


def two_sum(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """The rounded sum and what rounding lost."""
    s = b.fadd(x, y)
    t = b.fsub(s, x)
    return s, b.fadd(b.fsub(x, b.fsub(s, t)), b.fsub(y, t))


def narrow(b: Builder, x: Value, mode: str, lost: Value | None = None) -> Value:
    """fp64 (plus what it lost) to fp32."""
    nearest = b.fptrunc(x, like(x, F32))
    error = b.fsub(x, b.fpext(nearest, x.type))
    if lost is not None:
        error = b.select(b.fcmp_ordered("==", error, _zero(error)), lost, error)
    return directed(b, nearest, _overflowed(b, nearest, error, [x]), mode)


def _is_single(x: Value) -> bool:
    return scalar_type(x.type) == F32


def _wide(b: Builder, x: Value) -> Value:
    return b.fpext(x, like(x, F64))


def _signed_zero(b: Builder, result: Value, x: Value, y: Value, mode: str) -> Value:
    """x + y that is exactly zero, of operands of different signs, is -0 only when rounding down."""
    if mode != "rd":
        return result
    t = _bits(x)
    differ = b.icmp_signed("<", b.xor(b.bitcast(x, t), b.bitcast(y, t)), full(t, 0))
    return b.select(b.and_(differ, b.fcmp_ordered("==", result, _zero(result))), full(result.type, -0.0), result)


def add(b: Builder, x: Value, y: Value, mode: str) -> Value:
    if _is_single(x):
        s, lost = two_sum(b, _wide(b, x), _wide(b, y))
        exact_zero = narrow(b, s, mode, lost)
        return _signed_zero(b, exact_zero, x, y, mode)
    s, lost = two_sum(b, x, y)
    return _signed_zero(b, directed(b, s, _overflowed(b, s, lost, [x, y]), mode), x, y, mode)


def sub(b: Builder, x: Value, y: Value, mode: str) -> Value:
    return add(b, x, b.fneg(y), mode)


def mul(b: Builder, x: Value, y: Value, mode: str) -> Value:
    if _is_single(x):
        return narrow(b, b.fmul(_wide(b, x), _wide(b, y)), mode)
    p = b.fmul(x, y)
    u, v, scale = _scaled_factors(b, x, y, p)
    error = b.math("fma", u, v, b.fneg(b.fmul(p, scale)))
    error = b.select(b.fcmp_ordered("==", p, _zero(p)), _sign_of_product(b, x, y), error)
    return directed(b, p, _overflowed(b, p, error, [x, y]), mode)


def _scaled_factors(b: Builder, x: Value, y: Value, p: Value) -> tuple[Value, Value, Value]:
    """Factors of p, or of a larger product if that is tiny, and the scale.

    The smaller factor of a tiny product is below 2^-450, so it can be scaled up.
    """
    up, one = full(p.type, UP), full(p.type, 1.0)
    tiny = b.fcmp_ordered("<", b.math("fabs", p), full(p.type, SMALL))
    x_smaller = b.fcmp_ordered("<", b.math("fabs", x), b.math("fabs", y))
    u = b.fmul(x, b.select(b.and_(tiny, x_smaller), up, one))
    v = b.fmul(y, b.select(b.and_(tiny, b.not_(x_smaller)), up, one))
    return u, v, b.select(tiny, up, one)


def _sign_of_product(b: Builder, x: Value, y: Value) -> Value:
    """1, -1 or 0."""
    one, zero = full(x.type, 1.0), _zero(x)
    sign = b.fmul(b.math("copysign", one, x), b.math("copysign", one, y))
    nothing = b.or_(b.fcmp_ordered("==", x, zero), b.fcmp_ordered("==", y, zero))
    return b.select(nothing, zero, sign)


def div(b: Builder, x: Value, y: Value, mode: str) -> Value:
    q = b.fdiv(x, y)
    if _is_single(x):
        u, v, w = _wide(b, x), _wide(b, y), _wide(b, q)
    else:
        u, v, w = _scaled_division(b, x, y, q)
    residual = b.math("fma", b.fneg(w), v, u)
    by_zero = b.fcmp_ordered("==", q, _zero(q))
    residual = b.select(by_zero, u, residual)
    sign = b.math("copysign", full(v.type, 1.0), v)
    error = b.fmul(residual, sign)
    # x / 0 and x / inf are exact.
    inf = full(v.type, math.inf)
    exact = b.or_(b.fcmp_ordered("==", v, _zero(v)), b.fcmp_ordered("==", b.math("fabs", v), inf))
    error = b.select(exact, _zero(error), error)
    bad = b.and_(b.fcmp_ordered("==", b.math("fabs", w), inf), b.fcmp_ordered("!=", v, _zero(v)))
    bad = b.and_(bad, b.fcmp_ordered("!=", b.math("fabs", u), inf))
    error = b.select(bad, b.fneg(b.math("copysign", full(w.type, 1.0), w)), error)
    return directed(b, q, error, mode)


def _scaled_division(b: Builder, x: Value, y: Value, q: Value) -> tuple[Value, Value, Value]:
    """The division with a dividend, or a quotient, that is far from the subnormals."""
    one = full(x.type, 1.0)
    low = b.fcmp_ordered("<", b.math("fabs", x), full(x.type, SMALL))
    x = b.fmul(x, b.select(low, full(x.type, 2.0**180), one))
    # Scale the quotient if it is small, else the divisor.
    in_quotient = b.fcmp_ordered("<", b.math("fabs", q), one)
    scale = b.select(low, full(x.type, 2.0**180), one)
    q = b.fmul(q, b.select(in_quotient, scale, one))
    return x, b.fmul(y, b.select(in_quotient, one, scale)), q


def sqrt(b: Builder, x: Value, mode: str) -> Value:
    r = b.math("sqrt", x)
    if _is_single(x):
        u, w = _wide(b, x), _wide(b, r)
    else:
        low, one = b.fcmp_ordered("<", x, full(x.type, SMALL)), full(x.type, 1.0)
        u = b.fmul(x, b.select(low, full(x.type, 2.0**180), one))
        w = b.fmul(r, b.select(low, full(x.type, 2.0**90), one))
    error = b.math("fma", b.fneg(w), w, u)
    infinite = b.fcmp_ordered("==", u, full(u.type, math.inf))
    return directed(b, r, b.select(infinite, _zero(error), error), mode)


def fma(b: Builder, x: Value, y: Value, z: Value, mode: str) -> Value:
    if mode == "rn":
        return b.math("fma", x, y, z)
    if _is_single(x):
        p = b.fmul(_wide(b, x), _wide(b, y))
        s, lost = two_sum(b, p, _wide(b, z))
        return _fma_zero(b, narrow(b, s, mode, lost), p, _wide(b, z), mode)
    r, p = b.math("fma", x, y, z), b.fmul(x, y)
    error = _fma_error(b, x, y, z, r, p)
    return _fma_zero(b, directed(b, r, _overflowed(b, r, error, [x, y, z]), mode), p, z, mode)


def _fma_error(b: Builder, x: Value, y: Value, z: Value, r: Value, p: Value) -> Value:
    """The sign of x y + z - r. Of a product too small to matter only its sign is left."""
    u, v, scale = _scaled_factors(b, x, y, p)
    scaled_p, scaled_z = b.fmul(u, v), b.fmul(z, scale)
    low = b.math("fma", u, v, b.fneg(scaled_p))
    c, d = two_sum(b, scaled_z, low)
    e, f = two_sum(b, scaled_p, c)
    g, h = two_sum(b, b.fadd(b.fsub(e, b.fmul(r, scale)), f), d)
    error = b.select(b.fcmp_ordered("==", g, _zero(g)), h, g)
    scaled = b.fcmp_ordered(">", scale, full(scale.type, 1.0))
    far = b.fcmp_ordered(">=", b.math("fabs", z), full(z.type, 2.0**-700))
    lost = b.and_(scaled, b.or_(far, b.fcmp_ordered("<", b.math("fabs", scaled_p), full(p.type, SMALL))))
    return b.select(lost, _sign_of_product(b, x, y), error)


def _fma_zero(b: Builder, result: Value, p: Value, z: Value, mode: str) -> Value:
    return _signed_zero(b, result, p, z, mode) if mode == "rd" else result


def from_integer(b: Builder, x: Value, target: ir.Type, signed: bool, mode: str) -> Value:
    """An integer to fp32 or fp64: its leading bits exactly, then one step away from zero if the direction says so."""
    t, bits = x.type, width(x.type)
    wide = like(x, target)
    if mode == "rn":
        return (b.sitofp if signed else b.uitofp)(x, wide)
    negative = b.icmp_signed("<", x, full(t, 0)) if signed else full(like(x, I1), 0)
    magnitude = b.select(negative, b.sub(full(t, 0), x), x)
    spare = bits - (24 if target == F32 else 53)
    if spare <= 0:
        return (b.sitofp if signed else b.uitofp)(x, wide)
    zeros = b.call_intrinsic(f"llvm.ctlz.{_spelled(t)}", t, [magnitude, ir.Constant(I1, 0)])
    drop = b.sub(full(t, spare), zeros)
    drop = b.select(b.icmp_signed(">", drop, full(t, 0)), drop, full(t, 0))
    kept = b.shl(b.lshr(magnitude, drop), drop)
    number = b.uitofp(kept, wide)
    inexact = b.icmp_signed("!=", kept, magnitude)
    away = {"rz": full(like(x, I1), 0), "rd": negative, "ru": b.not_(negative)}[mode]
    number = b.select(b.and_(inexact, away), step(b, number, True), number)
    return b.select(negative, b.fneg(number), number)


def _spelled(t: ir.Type) -> str:
    from .build import suffix

    return suffix(t)


ROUND = {"rn": "rint", "rz": "trunc", "rd": "floor", "ru": "ceil"}


def to_integer(b: Builder, x: Value, target: ir.IntType, signed: bool, mode: str) -> Value:
    """A float to an integer: saturating, NaN to 0."""
    whole = b.math(ROUND[mode], x)
    t = like(x, target)
    kind = "fptosi.sat" if signed else "fptoui.sat"
    return b.call_intrinsic(f"llvm.{kind}.{_spelled(t)}.{_spelled(x.type)}", t, [whole])
