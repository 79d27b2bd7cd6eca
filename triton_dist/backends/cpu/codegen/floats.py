# SPDX-License-Identifier: MIT
"""Small floats (fp16, bf16) are computed in fp32, and rounded to nearest even on the way back."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import llvmlite.ir as ir

from .build import Builder, Value, full, like
from .ltypes import F16, F32, F64, I8, I16, I32, Elem


def widen(b: Builder, value: Value, elem: Elem) -> Value:
    """To fp32 (fp64 stays)."""
    if elem.name in ("f32", "f64"):
        return value
    if elem.name == "f16":
        return b.fpext(value, like(value, F32))
    if elem.name == "bf16":
        bits = b.shl(b.zext(value, like(value, I32)), full(like(value, I32), 16))
        return b.bitcast(bits, like(value, F32))
    return _from_fp8(b, value, FP8[elem.name])


def narrow(b: Builder, value: Value, elem: Elem) -> Value:
    """From fp32, round to nearest even; NaN stays NaN."""
    if elem.name in ("f32", "f64"):
        return value
    if elem.name == "f16":
        return b.fptrunc(value, like(value, F16))
    if elem.name == "bf16":
        return _to_bf16(b, value)
    return _to_fp8(b, value, FP8[elem.name])


@dataclass(frozen=True)
class Fp8:
    """An 8-bit format: mantissa bits, exponent bias, largest finite code, NaN code; `unsigned_zero`: 0x80 is NaN."""

    mantissa: int
    bias: int
    largest: int
    nan: int
    infinity: int | None = None
    unsigned_zero: bool = False


FP8 = {
    "f8E4M3FN": Fp8(3, 7, 0x7E, 0x7F),
    "f8E5M2": Fp8(2, 15, 0x7B, 0x7E, infinity=0x7C),
    "f8E4M3FNUZ": Fp8(3, 8, 0x7F, 0x80, unsigned_zero=True),
    "f8E5M2FNUZ": Fp8(2, 16, 0x7F, 0x80, unsigned_zero=True),
}
"""OCP 8-bit floating point 1.0; the FNUZ ones are AMD's."""


def _from_fp8(b: Builder, value: Value, form: Fp8) -> Value:
    """Shift the code into fp32's fields and correct the bias by a multiplication, which normalises subnormals too."""
    wide = like(value, I32)
    t = like(value, F32)
    code = b.zext(value, wide)
    magnitude = b.shl(b.and_(code, full(wide, 0x7F)), full(wide, 23 - form.mantissa))
    number = b.fmul(b.bitcast(magnitude, t), full(t, 2.0 ** (127 - form.bias)))
    low = b.and_(code, full(wide, 0x7F))
    if form.infinity is not None:
        number = b.select(b.icmp_signed("==", low, full(wide, form.infinity)), full(t, float("inf")), number)
        number = b.select(b.icmp_signed(">", low, full(wide, form.infinity)), full(t, float("nan")), number)
    else:
        odd, which = (code, form.nan) if form.unsigned_zero else (low, form.nan)
        number = b.select(b.icmp_signed("==", odd, full(wide, which)), full(t, float("nan")), number)
    sign = b.shl(b.and_(code, full(wide, 0x80)), full(wide, 24))
    return b.bitcast(b.or_(b.bitcast(number, wide), sign), t)


def _to_fp8(b: Builder, value: Value, form: Fp8) -> Value:
    """Round to nearest even, saturating to the largest finite number (PTX cvt.rn.satfinite); NaN stays NaN."""
    wide, t = like(value, I32), value.type
    bits = b.bitcast(value, wide)
    low = b.and_(bits, full(wide, 0x7FFFFFFF))
    magnitude = b.bitcast(low, t)
    shift = 23 - form.mantissa
    odd = b.and_(b.lshr(low, full(wide, shift)), full(wide, 1))
    normal = b.lshr(b.add(b.add(low, full(wide, (1 << (shift - 1)) - 1)), odd), full(wide, shift))
    normal = b.sub(normal, full(wide, (127 - form.bias) << form.mantissa))
    # Below the least normal number: adding a power of two whose last bit weighs one subnormal step rounds for us.
    magic = full(t, 2.0 ** (23 + 1 - form.bias - form.mantissa))
    tiny = b.sub(b.bitcast(b.fadd(magnitude, magic), wide), b.bitcast(magic, wide))
    code = b.select(b.fcmp_ordered("<", magnitude, full(t, 2.0 ** (1 - form.bias))), tiny, normal)
    over = b.icmp_signed(">", code, full(wide, form.largest))
    code = b.select(over, full(wide, form.largest), code)
    sign = b.and_(b.lshr(bits, full(wide, 24)), full(wide, 0x80))
    if form.unsigned_zero:
        sign = b.select(b.icmp_signed("==", code, full(wide, 0)), full(wide, 0), sign)
    code = b.or_(code, sign)
    code = b.select(b.fcmp_unordered("uno", value, value), full(wide, form.nan), code)
    return b.trunc(code, like(value, I8))


def toward_zero(b: Builder, value: Value, rounded: Value, elem: Elem) -> Value:
    """What `rounded` (nearest even) is when rounded toward zero instead: one step back if it grew."""
    wide = widen(b, rounded, elem)
    grew = b.fcmp_ordered(">", b.math("fabs", wide), b.math("fabs", value))
    number = like(rounded, ir.IntType(elem.bits))
    bits = rounded if rounded.type == number else b.bitcast(rounded, number)
    back = b.select(grew, b.sub(bits, full(number, 1)), bits)
    return back if rounded.type == number else b.bitcast(back, rounded.type)


def _to_bf16(b: Builder, value: Value) -> Value:
    wide = like(value, I32)
    bits = b.bitcast(value, wide)
    odd = b.and_(b.lshr(bits, full(wide, 16)), full(wide, 1))
    rounded = b.add(b.add(bits, full(wide, 0x7FFF)), odd)
    quiet = b.or_(bits, full(wide, 0x400000))
    chosen = b.select(b.fcmp_unordered("uno", value, value), quiet, rounded)
    return b.trunc(b.lshr(chosen, full(wide, 16)), like(value, I16))


def cast(b: Builder, value: Value, have: Elem, want: Elem) -> Value:
    """Any float to any float, rounded once."""
    if have.name == want.name:
        return value
    if want.name == "f64":
        return b.fpext(widen(b, value, have), like(value, F64))
    if have.name == "f64":
        nearest = b.fptrunc(value, like(value, F32))
        return nearest if want.name == "f32" else narrow(b, _to_odd(b, value, nearest), want)
    return narrow(b, widen(b, value, have), want)


def _to_odd(b: Builder, value: Value, nearest: Value) -> Value:
    """An fp64 number to fp32 rounded to odd: a second rounding, to fewer bits, then comes out as if it were the only
    one."""
    t = like(value, I32)
    back = b.fpext(nearest, value.type)
    grew = b.fcmp_ordered(">", b.math("fabs", back), b.math("fabs", value))
    bits = b.bitcast(nearest, t)
    toward = b.sub(bits, b.zext(grew, t))
    inexact = b.fcmp_ordered("!=", back, value)
    return b.bitcast(b.or_(toward, b.zext(inexact, t)), nearest.type)


def constant(elem: Elem, number: float) -> ir.Constant:
    """A float constant in the register type of `elem`."""
    if elem.name == "bf16":
        (bits,) = struct.unpack("<I", struct.pack("<f", number))
        if number != number:
            return ir.Constant(elem.reg, 0x7FC0)
        return ir.Constant(elem.reg, ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF)
    if elem.name in FP8:
        return ir.Constant(elem.reg, encode(FP8[elem.name], number))
    return ir.Constant(elem.reg, number)


def encode(form: Fp8, number: float) -> int:
    """The 8-bit code of a number, as `_to_fp8` gives it."""
    if number != number:
        return form.nan
    sign = 0x80 if math.copysign(1.0, number) < 0 else 0
    magnitude = abs(number)
    # Codes of one sign are in the order of their values; of two equally near ones the even one is wanted.
    code = min(range(form.largest + 1), key=lambda c: (abs(_decode(form, c) - magnitude), c & 1))
    return 0 if form.unsigned_zero and code == 0 else sign | code


def _decode(form: Fp8, code: int) -> float:
    exponent, fraction = code >> form.mantissa, code & ((1 << form.mantissa) - 1)
    if exponent == 0:
        return math.ldexp(fraction, 1 - form.bias - form.mantissa)
    return math.ldexp(fraction + (1 << form.mantissa), exponent - form.bias - form.mantissa)
