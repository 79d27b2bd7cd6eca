# SPDX-License-Identifier: MIT
"""Elementwise operations: one short function each, over scalars or vectors alike.

`OPS[name](ctx, args) -> value`. The context gives the builder, the operands' and the result's element types, and the
op. Integer arithmetic wraps; division truncates and never traps (a zero divisor gives what a GPU leaves undefined:
here the dividend); float operations on 16-bit types round once after each operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ir

from triton_dist.ir.dialects.arith import FLOAT_PREDICATES, INTEGER_PREDICATES

from . import floats, libdevice, mathlib
from .attrs import enum, get
from .build import Builder, Value, full, lanes_of, like
from .ltypes import F32, F64, Elem, named
from .outline import libm


@dataclass(frozen=True)
class Ctx:
    b: Builder
    op: Any
    ins: Sequence[Elem]
    out: Elem
    contract: tuple[str, ...] = ()


F32_ELEM = named("f32")
Handler = Callable[[Ctx, Sequence[Value]], Value]
OPS: dict[str, Handler] = {}
COST: dict[str, int] = {}


def handles(*names: str, cost: int = 1) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for name in names:
            OPS[name] = handler
            COST[name] = cost
        return handler

    return register


# Integers


def _plain(name: str, method: str) -> None:
    @handles(f"arith.{name}")
    def emit(c: Ctx, a: Sequence[Value]) -> Value:
        return getattr(c.b, method)(*a)


for _name, _method in {
    "addi": "add",
    "subi": "sub",
    "muli": "mul",
    "andi": "and_",
    "ori": "or_",
    "xori": "xor",
}.items():
    _plain(_name, _method)


def _shift(name: str, method: str) -> None:
    """A shift by the width or more is poison in LLVM; here it shifts everything out, as PTX does."""

    @handles(f"arith.{name}")
    def emit(c: Ctx, a: Sequence[Value]) -> Value:
        b, bits, t = c.b, c.out.bits, a[0].type
        if method == "ashr":
            return b.ashr(a[0], _unsigned_min(b, a[1], full(t, bits - 1)))
        safe = b.icmp_unsigned("<", a[1], full(t, bits))
        return b.select(safe, getattr(b, method)(a[0], b.select(safe, a[1], full(t, 0))), full(t, 0))


def _unsigned_min(b: Builder, x: Value, y: Value) -> Value:
    return b.select(b.icmp_unsigned("<", x, y), x, y)


for _name, _method in {"shli": "shl", "shrsi": "ashr", "shrui": "lshr"}.items():
    _shift(_name, _method)


@handles("arith.divsi", "arith.remsi", "arith.divui", "arith.remui", cost=6)
def divide(c: Ctx, a: Sequence[Value]) -> Value:
    b, (x, y), t = c.b, a, a[0].type
    signed, remainder = c.op.name.endswith("si"), "rem" in c.op.name
    divisor = _safe_divisor(b, x, y, signed)
    if lanes_of(x) and c.out.bits <= 32 and not _is_constant(y):
        quotient = _divide_in_f64(b, x, divisor, t, signed)
        return b.sub(x, b.mul(quotient, divisor)) if remainder else quotient
    method = {(True, False): b.sdiv, (True, True): b.srem, (False, False): b.udiv, (False, True): b.urem}
    return method[signed, remainder](x, divisor)


def _is_constant(value: Value) -> bool:
    return isinstance(value, ir.Constant)


def _safe_divisor(b: Builder, x: Value, y: Value, signed: bool) -> Value:
    """x86 traps on a zero divisor and on INT_MIN / -1: divide by one there."""
    t = y.type
    bits = (t.element if lanes_of(y) else t).width
    if _is_constant(y) and _nonzero_constant(y):
        return y
    bad = b.icmp_signed("==", y, full(t, 0))
    if signed:
        overflow = b.and_(b.icmp_signed("==", y, full(t, -1)), b.icmp_signed("==", x, full(t, -(1 << (bits - 1)))))
        bad = b.or_(bad, overflow)
    return b.select(bad, full(t, 1), y)


def _nonzero_constant(y: ir.Constant) -> bool:
    items = y.constant if isinstance(y.constant, list | tuple) else [y]
    return all(isinstance(i.constant, int) and i.constant not in (0, -1) for i in items)


def _divide_in_f64(b: Builder, x: Value, y: Value, t: ir.Type, signed: bool) -> Value:
    """Exact for 32-bit operands: a quotient that is not an integer is further from one than fp64 rounds."""
    wide = like(x, F64)
    if signed:
        return b.fptosi(b.fdiv(b.sitofp(x, wide), b.sitofp(y, wide)), t)
    return b.fptoui(b.fdiv(b.uitofp(x, wide), b.uitofp(y, wide)), t)


def _pick(name: str, signed: bool, op: str) -> None:
    @handles(f"arith.{name}")
    def emit(c: Ctx, a: Sequence[Value]) -> Value:
        compare = c.b.icmp_signed if signed else c.b.icmp_unsigned
        return c.b.select(compare(op, a[0], a[1]), a[0], a[1])


for _name, _signed, _op in (("minsi", True, "<"), ("maxsi", True, ">"), ("minui", False, "<"), ("maxui", False, ">")):
    _pick(_name, _signed, _op)


@handles("tt.mulhiui")
def mulhiui(c: Ctx, a: Sequence[Value]) -> Value:
    b, bits = c.b, c.out.bits
    wide = like(a[0], ir.IntType(2 * bits))
    product = b.mul(b.zext(a[0], wide), b.zext(a[1], wide))
    return b.trunc(b.lshr(product, full(wide, bits)), a[0].type)


CMPI = tuple(INTEGER_PREDICATES)
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@handles("arith.cmpi")
def cmpi(c: Ctx, a: Sequence[Value]) -> Value:
    predicate = enum(c.op, "predicate", CMPI)
    if predicate in ("eq", "ne"):
        return c.b.icmp_signed(_SIGNS[predicate], a[0], a[1])
    compare = c.b.icmp_signed if predicate[0] == "s" else c.b.icmp_unsigned
    return compare(_SIGNS[predicate[1:]], a[0], a[1])


@handles("arith.select", "arith.selecti")
def select(c: Ctx, a: Sequence[Value]) -> Value:
    return c.b.select(a[0], a[1], a[2])


@handles("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui")
def resize(c: Ctx, a: Sequence[Value]) -> Value:
    have, want, t = c.ins[0].bits, c.out.bits, like(a[0], c.out.reg)
    if have == want:
        return a[0]
    if have > want:
        return c.b.trunc(a[0], t)
    return c.b.zext(a[0], t) if c.op.name.endswith("ui") else c.b.sext(a[0], t)


# Floats


def _float_binary(name: str, method: str, cost: int) -> None:
    @handles(f"arith.{name}", cost=cost)
    def emit(c: Ctx, a: Sequence[Value]) -> Value:
        wide = [floats.widen(c.b, v, c.out) for v in a]
        flags = c.contract if method != "frem" else ()
        return floats.narrow(c.b, getattr(c.b, method)(*wide, flags=flags), c.out)


for _name, _method, _cost in (
    ("addf", "fadd", 1),
    ("subf", "fsub", 1),
    ("mulf", "fmul", 1),
    ("divf", "fdiv", 6),
    ("remf", "frem", 40),
):
    _float_binary(_name, _method, _cost)


@handles("tt.precise_divf", "tt.approx_divf", cost=6)
def exact_divf(c: Ctx, a: Sequence[Value]) -> Value:
    wide = [floats.widen(c.b, v, c.out) for v in a]
    return floats.narrow(c.b, c.b.fdiv(*wide), c.out)


@handles("arith.negf")
def negf(c: Ctx, a: Sequence[Value]) -> Value:
    return floats.narrow(c.b, c.b.fneg(floats.widen(c.b, a[0], c.out)), c.out)


def _minmax(name: str, intrinsic: str) -> None:
    """maximumf keeps a NaN and orders -0 below +0; maxnumf prefers the number."""

    @handles(f"arith.{name}")
    def emit(c: Ctx, a: Sequence[Value]) -> Value:
        if c.out.is_small_float:
            return c.b.select(_first_wins(c, a, intrinsic), *a)
        return c.b.math(intrinsic, *a)


def _first_wins(c: Ctx, a: Sequence[Value], intrinsic: str) -> Value:
    """Whether the first of two small floats is the larger (or smaller).

    The intrinsic on widened numbers will not do: LLVM makes one on halves of it, which x86 has not, lane by lane.
    """
    b, (x, y) = c.b, [floats.widen(c.b, v, c.out) for v in a]
    larger = intrinsic.startswith("max")
    beyond = b.fcmp_ordered(">" if larger else "<", x, y)
    if intrinsic.endswith("num"):
        return b.or_(beyond, b.fcmp_unordered("uno", y, y))
    signs = b.bitcast(x, like(x, ir.IntType(32)))
    right_zero = b.icmp_signed(">=" if larger else "<", signs, full(signs.type, 0))
    return b.or_(b.or_(beyond, b.fcmp_unordered("uno", x, x)), b.and_(b.fcmp_ordered("==", x, y), right_zero))


for _name, _method in (("maximumf", "maximum"), ("minimumf", "minimum"), ("maxnumf", "maxnum"), ("minnumf", "minnum")):
    _minmax(_name, _method)


@handles("tt.clampf")
def clampf(c: Ctx, a: Sequence[Value]) -> Value:
    b = c.b
    x, low, high = (floats.widen(b, v, c.out) for v in a)
    propagates = enum(c.op, "propagateNan", {0: "none", 0xFFFF: "all"}) == "all"
    bounded = b.select(b.fcmp_ordered(">", x, low), x, low)
    bounded = b.select(b.fcmp_ordered("<", bounded, high), bounded, high)
    if propagates:
        bounded = b.select(b.fcmp_unordered("uno", x, x), x, bounded)
    return floats.narrow(b, bounded, c.out)


CMPF = tuple(FLOAT_PREDICATES)


@handles("arith.cmpf")
def cmpf(c: Ctx, a: Sequence[Value]) -> Value:
    predicate = enum(c.op, "predicate", CMPF)
    x, y = (floats.widen(c.b, v, c.ins[0]) for v in a)
    if predicate in ("false", "true"):
        return full(like(x, ir.IntType(1)), int(predicate == "true"))
    if predicate in ("ord", "uno"):
        return (c.b.fcmp_ordered if predicate == "ord" else c.b.fcmp_unordered)(predicate, x, y)
    compare = c.b.fcmp_ordered if predicate[0] == "o" else c.b.fcmp_unordered
    return compare(_SIGNS[predicate[1:]], x, y)


@handles("arith.extf", "arith.truncf", "tt.fp_to_fp", cost=2)
def float_cast(c: Ctx, a: Sequence[Value]) -> Value:
    result = floats.cast(c.b, a[0], c.ins[0], c.out)
    if c.op.name == "tt.fp_to_fp" and _rounding(c.op) == "rtz":
        wide = floats.cast(c.b, a[0], c.ins[0], F32_ELEM)
        return floats.toward_zero(c.b, wide, result, c.out)
    return result


def _rounding(op: Any) -> str:
    return "rtne" if get(op, "rounding") is None else enum(op, "rounding", ("rtz", "rtne"))


@handles("arith.sitofp", "arith.uitofp", cost=2)
def int_to_float(c: Ctx, a: Sequence[Value]) -> Value:
    target = F64 if c.out.bits == 64 else F32
    method = c.b.sitofp if c.op.name == "arith.sitofp" else c.b.uitofp
    return floats.narrow(c.b, method(a[0], like(a[0], target)), c.out)


@handles("arith.fptosi", "arith.fptoui", cost=2)
def float_to_int(c: Ctx, a: Sequence[Value]) -> Value:
    """Saturating, NaN to 0: what PTX cvt does."""
    from .build import suffix

    x = floats.widen(c.b, a[0], c.ins[0])
    kind = "fptosi.sat" if c.op.name == "arith.fptosi" else "fptoui.sat"
    t = like(x, c.out.reg)
    return c.b.call_intrinsic(f"llvm.{kind}.{suffix(t)}.{suffix(x.type)}", t, [x])


@handles("tt.bitcast", "arith.bitcast")
def bitcast(c: Ctx, a: Sequence[Value]) -> Value:
    t = like(a[0], c.out.reg)
    return a[0] if a[0].type == t else c.b.bitcast(a[0], t)


@handles("tt.ptr_to_int", "tt.int_to_ptr")
def pointer_cast(c: Ctx, a: Sequence[Value]) -> Value:
    t = like(a[0], c.out.reg)
    if a[0].type == t:
        return a[0]
    return c.b.trunc(a[0], t) if c.ins[0].bits > c.out.bits else c.b.zext(a[0], t)


# Math


def _function(name: str, cost: int) -> None:
    @handles(f"math.{name}", cost=cost)
    def emit(c: Ctx, a: Sequence[Value]) -> Value:
        x = floats.widen(c.b, a[0], c.out)
        result = libm(c.b, name, [x]) if c.out.bits == 64 else mathlib.FUNCTIONS[name](c.b, x)
        return floats.narrow(c.b, result, c.out)


for _name in mathlib.FUNCTIONS:
    _function(_name, 12)


@handles("tt.extern_elementwise", cost=20)
def libdevice_call(c: Ctx, a: Sequence[Value]) -> Value:
    """A function of libdevice; other externs are calls of the host's template library (see extern)."""
    symbol = get(c.op, "symbol").data
    result = libdevice.emit(c.b, symbol, a)
    assert result is not None, symbol
    return result


def _intrinsic(op: str, name: str, cost: int) -> None:
    @handles(op, cost=cost)
    def emit(c: Ctx, a: Sequence[Value]) -> Value:
        wide = [floats.widen(c.b, v, c.out) for v in a]
        return floats.narrow(c.b, c.b.math(name, *wide), c.out)


for _op, _name, _cost in (
    ("math.sqrt", "sqrt", 6), ("tt.precise_sqrt", "sqrt", 6), ("math.absf", "fabs", 1), ("math.floor", "floor", 1),
    ("math.ceil", "ceil", 1), ("math.trunc", "trunc", 1), ("math.round", "round", 2), ("math.roundeven", "rint", 1),
    ("math.fma", "fma", 1), ("math.copysign", "copysign", 1),
):  # fmt: skip
    _intrinsic(_op, _name, _cost)


@handles("math.rsqrt", cost=8)
def rsqrt(c: Ctx, a: Sequence[Value]) -> Value:
    x = floats.widen(c.b, a[0], c.out)
    return floats.narrow(c.b, mathlib.rsqrt(c.b, x), c.out)


@handles("math.absi")
def absi(c: Ctx, a: Sequence[Value]) -> Value:
    t = a[0].type
    return c.b.select(c.b.icmp_signed("<", a[0], full(t, 0)), c.b.sub(full(t, 0), a[0]), a[0])
