# SPDX-License-Identifier: MIT
"""Small floats (fp16, bf16) are computed in fp32, and rounded to nearest even on the way back."""

from __future__ import annotations

import llvmlite.ir as ir

from .build import Builder, Value, full, like
from .ltypes import F16, F32, F64, I16, I32, Elem


def widen(b: Builder, value: Value, elem: Elem) -> Value:
    """To fp32 (fp64 stays)."""
    if elem.name in ("f32", "f64"):
        return value
    if elem.name == "f16":
        return b.fpext(value, like(value, F32))
    if elem.name == "bf16":
        bits = b.shl(b.zext(value, like(value, I32)), full(like(value, I32), 16))
        return b.bitcast(bits, like(value, F32))
    raise KeyError(elem.name)


def narrow(b: Builder, value: Value, elem: Elem) -> Value:
    """From fp32, round to nearest even; NaN stays NaN."""
    if elem.name in ("f32", "f64"):
        return value
    if elem.name == "f16":
        return b.fptrunc(value, like(value, F16))
    if elem.name == "bf16":
        return _to_bf16(b, value)
    raise KeyError(elem.name)


def _to_bf16(b: Builder, value: Value) -> Value:
    wide = like(value, I32)
    bits = b.bitcast(value, wide)
    odd = b.and_(b.lshr(bits, full(wide, 16)), full(wide, 1))
    rounded = b.add(b.add(bits, full(wide, 0x7FFF)), odd)
    quiet = b.or_(bits, full(wide, 0x400000))
    chosen = b.select(b.fcmp_unordered("uno", value, value), quiet, rounded)
    return b.trunc(b.lshr(chosen, full(wide, 16)), like(value, I16))


def cast(b: Builder, value: Value, have: Elem, want: Elem) -> Value:
    """Any float to any float. From fp64 to 16 bits goes through fp32 (double rounding, as in Triton's own path)."""
    if have.name == want.name:
        return value
    if want.name == "f64":
        return b.fpext(widen(b, value, have), like(value, F64))
    if have.name == "f64":
        if want.name == "f16":
            return b.fptrunc(value, like(value, F16))
        value = b.fptrunc(value, like(value, F32))
    else:
        value = widen(b, value, have)
    return narrow(b, value, want)


def constant(elem: Elem, number: float) -> ir.Constant:
    """A float constant in the register type of `elem`."""
    import struct

    if elem.name == "bf16":
        (bits,) = struct.unpack("<I", struct.pack("<f", number))
        if number != number:
            return ir.Constant(elem.reg, 0x7FC0)
        return ir.Constant(elem.reg, ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF)
    return ir.Constant(elem.reg, number)
