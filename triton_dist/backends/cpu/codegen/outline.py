# SPDX-License-Identifier: MIT
"""Functions of the module beside the kernel: long ones are emitted once and called, and libm is called lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from .build import Builder, Value, i64, lanes_of, scalar_type, suffix, widths
from .ltypes import F32, F64

Emit = Callable[[Builder, Sequence[Value]], Value]


def outlined(b: Builder, name: str, result: ir.Type, args: Sequence[Value], emit: Emit) -> Value:
    """Call an internal function `name` of these arguments' types; `emit` writes its body at the first call.

    `result` is the scalar type of what it returns; it is as wide as the arguments. Vectors go through in pieces that
    leave the function enough registers.
    """
    width, piece = lanes_of(args[0]), max(b.avx512_lanes, 8)
    if width is None or width <= piece:
        return _call(b, name, result, args, emit)
    parts = [
        _call(b, name, result, [b.shuffle(a, range(at, at + piece)) for a in args], emit)
        for at in range(0, width, piece)
    ]
    while len(parts) > 1:
        parts = [b.concat(x, y) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _call(b: Builder, name: str, result: ir.Type, args: Sequence[Value], emit: Emit) -> Value:
    width = lanes_of(args[0])
    wide = result if width is None else ir.VectorType(result, width)
    full_name = ".".join(["td", name, *(suffix(a.type) for a in args)])
    function = b.module.globals.get(full_name)
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(wide, [a.type for a in args]), full_name)
        function.linkage = "internal"
        for attribute in ("nounwind", "noinline"):
            function.attributes.add(attribute)
        # The same machine vectors as the caller's: vectors are passed in them.
        function.attributes.update(widths(b.function))
        inner = Builder(function.append_basic_block("entry"))
        inner.avx512_lanes, inner.lookup = b.avx512_lanes, b.lookup
        inner.ret(emit(inner, function.args))
    return b.call(function, args)


def libm(b: Builder, symbol: str, args: Sequence[Value], result: ir.Type = F64) -> Value:
    """A scalar function of the C library, for each lane. Floats are passed as fp64; fp32 results are rounded from that.

    `symbol` is the fp64 function. Its integer operands stay as they are.
    """
    narrow = scalar_type(args[0].type) == F32 or scalar_type(args[-1].type) == F32
    final = F32 if narrow and result == F64 else result

    def one(bb: Builder, scalars: Sequence[Value]) -> Value:
        wide = [bb.fpext(s, F64) if s.type == F32 else s for s in scalars]
        got = bb.call_intrinsic(symbol, result, wide)
        return bb.fptrunc(got, F32) if final != result else got

    return lane_by_lane(b, symbol, final, args, one)


def lane_by_lane(b: Builder, name: str, result: ir.Type, args: Sequence[Value], one: Emit) -> Value:
    """Apply a function of scalars to each lane, in a loop."""
    width = lanes_of(args[0])
    if width is None:
        return one(b, args)

    def body(bb: Builder, vectors: Sequence[Value]) -> Value:
        return _over_lanes(bb, vectors, ir.VectorType(result, width), one)

    return _call(b, f"lanes.{name}", result, args, body)


def _over_lanes(b: Builder, vectors: Sequence[Value], out: ir.VectorType, one: Emit) -> Value:
    cell = b.alloca(out.element, size=i64(out.count))

    def step(lane: Value) -> None:
        scalars = [b.extract_element(vector, lane) for vector in vectors]
        b.store(one(b, scalars), b.gep(cell, [lane], source_etype=out.element))

    b.counted(i64(0), i64(out.count), 1, step, "lane")
    return b.load(cell, typ=out, align=8 if out.element == F64 else 4)


def any_lane(b: Builder, bits: Value) -> Value:
    """Whether a bit is set in some lane."""
    if lanes_of(bits) is None:
        return bits
    return b.call_intrinsic(f"llvm.vector.reduce.or.{suffix(bits.type)}", ir.IntType(1), [bits])


__all__ = ["any_lane", "lane_by_lane", "libm", "outlined"]
