# SPDX-License-Identifier: MIT
"""tt.dot_scaled: microscaled operands (OCP MX) decoded to fp32, then an ordinary dot.

An element of a block along K (32 of them, or as many as the scale's shape says) is multiplied by 2^(scale - 127); scale
255 is NaN. A scale may be an 8-bit float too: that is the factor then. fp4 (e2m1) comes two to a byte, the lower half
first (OCP Microscaling Formats 1.0, sections 5.2-5.4): two neighbours along K, or along the operand's other dimension.
"""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir

from . import dot
from .attrs import enum, get
from .build import Builder, Value, const, full, i64, like
from .domain import Chunk, Index, Lanes, Loop
from .kernel import Kernel, handles
from .ltypes import F32, I32, named
from .tensor import Map, Node, broadcast, expand_dims, reshape

KINDS = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "bf16", "fp16")
WIDTHS = {kind: 16 if kind in ("bf16", "fp16") else 8 for kind in KINDS}


@handles("tt.dot_scaled")
def dot_scaled(k: Kernel, op: Any) -> None:
    sizes = [int(n) for n in get(op, "operandSegmentSizes").get_values()]
    values = list(op.operands)
    a, b, c = (k.node(v) for v in values[:3])
    rest = values[3:]
    a_scale = k.node(rest[0]) if sizes[3] else None
    b_scale = k.node(rest[-1]) if sizes[4] else None
    left = _decode(k, op, a, a_scale, "a", len(a.shape) - 1)
    right = _decode(k, op, b, b_scale, "b", len(b.shape) - 2)
    dot.multiply(k, op, left, right, c, op.operands[2])


def _decode(k: Kernel, op: Any, node: Node, scale: Node | None, which: str, axis: int) -> Node:
    """An operand as fp32; `axis` is its K."""
    kind = enum(op, f"{which}_elem_type", KINDS)
    if kind in ("e2m3", "e3m2"):
        raise k.unsupported(op, f"operands of type {kind}")
    if node.elem.bits != WIDTHS[kind] or (scale is not None and scale.elem.bits != 8):
        raise k.unsupported(op, f"{node.elem.name} as operands of type {kind}, or scales that have not 8 bits")
    if kind == "e2m1":
        pack = get(op, "lhs_k_pack" if which == "a" else "rhs_k_pack")
        along_k = pack is None or _truth(pack)
        node = Fp4(node, axis if along_k else 2 * len(node.shape) - 3 - axis)
    elif not node.elem.is_float:
        elem = named({"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}[kind])
        node = Map(node.shape, elem, (node,), lambda b, a: a[0], 0)
    wide = dot.convert(node, named("f32"))
    if scale is None:
        return wide
    factor = _spread(scale, wide.shape, axis)
    return Map(wide.shape, named("f32"), (wide, factor), lambda b, a: b.fmul(a[0], a[1]), 1)


def _truth(attr: Any) -> bool:
    return bool(getattr(getattr(attr, "value", attr), "data", True))


def _spread(scale: Node, shape: tuple[int, ...], axis: int) -> Node:
    """Scales [.., blocks] repeated over their blocks; for the right operand the scale's rows are its columns."""
    if scale.elem.is_float:
        factor = dot.convert(scale, named("f32"))
    else:
        factor = Map(scale.shape, named("f32"), (scale,), lambda b, a: _power(b, a[0]), 3)
    grown = broadcast(expand_dims(factor, len(scale.shape)), (*scale.shape, shape[axis] // scale.shape[-1]))
    lines = reshape(grown, (*scale.shape[:-1], shape[axis]))
    if axis == len(shape) - 1:
        return lines
    from .tensor import transpose

    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    return transpose(lines, order)


def _power(b: Builder, scale: Value) -> Value:
    """2^(scale - 127); scale 0 is the subnormal 2^-127."""
    wide = like(scale, I32)
    number = b.zext(scale, wide)
    bits = b.shl(number, full(wide, 23))
    bits = b.select(b.icmp_signed("==", number, full(wide, 0)), full(wide, 1 << 22), bits)
    bits = b.select(b.icmp_signed("==", number, full(wide, 255)), full(wide, 0x7FC00000), bits)
    return b.bitcast(bits, like(scale, F32))


class Fp4(Node):
    """e2m1 numbers out of bytes: the tensor is twice as long along `axis`."""

    moves = True

    def __init__(self, source: Node, axis: int) -> None:
        shape = tuple(2 * n if d == axis else n for d, n in enumerate(source.shape))
        super().__init__(shape, named("f32"), source.varies | {axis}, source.cost + 8, source.reads, sources=(source,))
        self.axis = axis

    def lanes(self, loop: Loop, chunk: Chunk) -> Lanes:
        b, index = loop.b, chunk.dims[self.axis]
        dims = list(chunk.dims)
        lanes = None if index.lanes is None else tuple(lane // 2 for lane in index.lanes)
        dims[self.axis] = loop.derived(
            ("fp4", id(index)), lambda: Index(b.lshr(index.base, i64(1)), lanes, index.level)
        )
        byte = loop.vector(self.sources[0], loop.chunk(dims, chunk.width))
        wide = like(byte, I32)
        number = b.zext(byte, wide)
        odd = b.resize(b.and_(index.base, i64(1)), I32)
        shift: Value = b.shl(odd, const(I32, 2))
        if chunk.width > 1:
            shift = b.splat(shift, chunk.width)
            if index.lanes is not None:
                shift = b.or_(shift, b.lane_constant(I32, [4 * (lane & 1) for lane in index.lanes]))
        return Lanes(_e2m1(b, b.and_(b.lshr(number, shift), full(wide, 15)), wide), chunk.width == 1)


def _e2m1(b: Builder, code: Value, wide: ir.Type) -> Value:
    """Sign, two bits of exponent (bias 1), one of mantissa: 0, .5, 1, 1.5, 2, 3, 4, 6."""
    sign = b.shl(b.and_(code, full(wide, 8)), full(wide, 28))
    magnitude = b.shl(b.and_(code, full(wide, 7)), full(wide, 22))
    number = b.fmul(b.bitcast(magnitude, like(code, F32)), full(like(code, F32), 2.0**126))
    return b.bitcast(b.or_(b.bitcast(number, wide), sign), like(code, F32))
