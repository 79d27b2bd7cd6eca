# SPDX-License-Identifier: MIT
"""tt.reduce: vector accumulators along the axis, then a halving tree over the lanes.

The combine region is taken to be associative and commutative, as on a GPU; the order of a floating-point sum is ours
(lane-wise partial sums), and is the same on every run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import llvmlite.ir as ir

from . import ahead, floats
from .affine import lane_stride
from .ahead import Hint, Pages
from .attrs import integer
from .build import Value, i64
from .domain import ZERO, Chunk, Index, Lanes, Loop, Plan, nest, plan
from .ltypes import Elem, elem_of
from .memory import Load, choose, in_versions, loads_in, materialise
from .tensor import Buffer, Node

if TYPE_CHECKING:
    from .kernel import Kernel

WIDTH = 64


def emit(k: Kernel, op: Any) -> None:
    axis = integer(op, "axis")
    nodes = [source(k, v) for v in op.operands]
    block = op.regions[0].blocks[0]
    shape = nodes[0].shape
    rest = tuple(n for d, n in enumerate(shape) if d != axis)
    # A result of rank 0 is a scalar; anything else goes to buffers.
    targets = [k.allocate(rest, n.elem) for n in nodes] if rest else []
    cells = [] if rest else [k.local(n.elem.reg, "reduced") for n in nodes]
    walk, hints = choose(shape, nodes, WIDTH), ahead.of_reduce(k, op, nodes)

    def version(fast: bool) -> None:
        results = _reduce(k, nodes, axis, block, targets, hints, walk, fast)
        for cell, result in zip(cells, results, strict=False):
            k.b.store(result, cell)

    loads = loads_in(nodes)
    in_versions(k, walk, version, nodes, masks_cost=not k.read_before.issuperset(loads))
    k.read_before.update(loads)
    for i, result in enumerate(op.results):
        k.bind(result, targets[i] if rest else k.b.load(cells[i], typ=nodes[i].elem.reg))


def source(k: Kernel, value: Any) -> Node:
    """An operand as the loop of a reduce or scan reads it. One that is to be kept is written to memory by that loop."""
    node = k.node(value)
    if isinstance(node, Buffer):
        return node
    if _scattered(node):
        k.env[value] = node = materialise(k, node)
        k.pending.pop(value, None)
        return node
    if value not in k.uses.once or node.affine is not None or _cheap_to_read_again(node):
        return node
    kept = Kept(node, k.allocate(node.shape, node.elem, choose(node.shape, [node], WIDTH).order))
    k.env[value] = kept.buffer
    k.pending.pop(value, None)
    return kept


def _cheap_to_read_again(node: Node) -> bool:
    """A load of consecutive elements: they are in the cache by then, and a copy would have to be written first."""
    if not isinstance(node, Load) or node.pointer.affine is None:
        return False
    return [lane_stride(t) for t in node.pointer.affine.terms][-1] == node.elem.size


class Kept(Node):
    """A lazy tensor that is stored as it is computed; for a loop that visits each element once."""

    def __init__(self, node: Node, buffer: Buffer) -> None:
        super().__init__(node.shape, node.elem, node.varies, node.cost, node.reads, hoistable=False, sources=(node,))
        self.buffer = buffer

    def lanes(self, loop: Loop, chunk: Chunk) -> Lanes:
        value = loop.vector(self.sources[0], chunk)
        self.buffer.store(loop, chunk, value)
        return Lanes(value, chunk.width == 1)


def _scattered(node: Node) -> bool:
    """Loads that need two versions of their loop are done first."""
    from .tensor import Table

    return any(
        isinstance(t, Table) for ld in loads_in([node]) for t in (ld.pointer.affine.terms if ld.pointer.affine else ())
    )


def _reduce(
    k: Kernel,
    nodes: Sequence[Node],
    axis: int,
    block: Any,
    targets: Sequence[Buffer],
    hints: Sequence[Hint | Pages],
    walk: Plan,
    fast: bool,
) -> list[Value]:
    shape = nodes[0].shape
    lanes_on_axis = walk.covered[axis] > 1 or shape[axis] == 1 or walk.width == 1
    outer_shape = tuple(1 if d == axis else n for d, n in enumerate(shape))
    loop = Loop(k.b, fast)
    loop.hoists = [k.b.block]
    if lanes_on_axis:
        outer = plan(outer_shape, 1)
        inner_width = min(walk.width, shape[axis])
    else:
        fastest = walk.order[-1]
        outer = plan(outer_shape, min(WIDTH // 2, shape[fastest]), fastest)
        inner_width = 1
    out: list[list[Value]] = []

    def body(chunk: Chunk) -> None:
        totals = _along(k, loop, nodes, axis, block, chunk, inner_width, hints)
        if lanes_on_axis:
            totals = _across(k, totals, nodes, block)
        if targets:
            where = loop.chunk([d for i, d in enumerate(chunk.dims) if i != axis], chunk.width)
            for target, total in zip(targets, totals, strict=True):
                target.store(loop, where, total)
        out.append(totals)

    nest(loop, outer, body)
    return out[0]


def _along(
    k: Kernel,
    loop: Loop,
    nodes: Sequence[Node],
    axis: int,
    block: Any,
    chunk: Chunk,
    step: int,
    hints: Sequence[Hint | Pages],
) -> list[Value]:
    """Accumulate along the axis, `step` of its elements at a time."""
    extent = nodes[0].shape[axis]
    pattern = tuple(range(step)) if step > 1 else None
    width = step if step > 1 else chunk.width

    def at(index: Index) -> list[Value]:
        dims = list(chunk.dims)
        dims[axis] = index
        here = loop.chunk(dims, width)
        for hint in hints:
            hint.emit(loop, here)
        return [loop.vector(n, here) for n in nodes]

    if extent == step:
        return at(Index(i64(0), pattern) if pattern else ZERO)
    cells = [k.local(_wide(n.elem, width), "acc") for n in nodes]
    start = _identity(block, nodes, width)
    first = 0
    if start is None:
        start, first = at(Index(i64(0), pattern)), step
    for cell, value in zip(cells, start, strict=True):
        k.b.store(value, cell)
    if first < extent:
        _accumulate(k, loop, nodes, block, cells, (first, extent, step), pattern, at)
    return [k.b.load(cell, typ=_wide(n.elem, width)) for cell, n in zip(cells, nodes, strict=True)]


def _accumulate(
    k: Kernel,
    loop: Loop,
    nodes: Sequence[Node],
    block: Any,
    cells: Sequence[Value],
    span: tuple[int, int, int],
    pattern: tuple[int, ...] | None,
    at: Any,
) -> None:
    first, extent, step = span

    def inside(iv: Value) -> None:
        loop.level += 1
        values = at(Index(iv, pattern, loop.level))
        have = [k.b.load(c, typ=v.type) for c, v in zip(cells, values, strict=True)]
        for cell, value in zip(cells, k.region(block, [*have, *values], [n.elem for n in nodes] * 2), strict=True):
            k.b.store(value, cell)
        loop.level -= 1

    loop.hoists[loop.level :] = [k.b.block]
    k.b.counted(i64(first), i64(extent), step, inside, "reduce")


def _across(k: Kernel, totals: list[Value], nodes: Sequence[Node], block: Any) -> list[Value]:
    """Halve the vectors until one lane is left."""
    b = k.b
    while isinstance(totals[0].type, ir.VectorType) and totals[0].type.count > 1:
        half = totals[0].type.count // 2
        low = [b.shuffle(t, range(half)) for t in totals]
        high = [b.shuffle(t, range(half, 2 * half)) for t in totals]
        totals = k.region(block, [*low, *high], [n.elem for n in nodes] * 2)
    zero = ir.Constant(ir.IntType(32), 0)
    return [b.extract_element(t, zero) if isinstance(t.type, ir.VectorType) else t for t in totals]


def _wide(elem: Elem, width: int) -> ir.Type:
    return ir.VectorType(elem.reg, width) if width > 1 else elem.reg


def _identity(block: Any, nodes: Sequence[Node], width: int) -> list[Value] | None:
    """The neutral element of a region that is one known operation; None otherwise."""
    ops = list(block.ops)
    if len(nodes) != 1 or len(ops) != 2 or set(ops[0].operands) != set(block.args):
        return None
    elem, name = elem_of(ops[0].results[0].type), ops[0].name
    number = _NEUTRAL.get(name, lambda e: None)(elem)
    if number is None:
        return None
    scalar = floats.constant(elem, number) if elem.is_float else ir.Constant(elem.reg, number)
    return [ir.Constant(ir.VectorType(elem.reg, width), [scalar] * width) if width > 1 else scalar]


_NEUTRAL = {
    "arith.addf": lambda e: -0.0,
    "arith.mulf": lambda e: 1.0,
    "arith.maxnumf": lambda e: math.nan,
    "arith.minnumf": lambda e: math.nan,
    "arith.maximumf": lambda e: -math.inf,
    "arith.minimumf": lambda e: math.inf,
    "arith.addi": lambda e: 0,
    "arith.muli": lambda e: 1,
    "arith.andi": lambda e: -1,
    "arith.ori": lambda e: 0,
    "arith.xori": lambda e: 0,
    "arith.maxsi": lambda e: -(1 << (e.bits - 1)),
    "arith.minsi": lambda e: (1 << (e.bits - 1)) - 1,
    "arith.maxui": lambda e: 0,
    "arith.minui": lambda e: -1,
}
