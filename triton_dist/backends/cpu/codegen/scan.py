# SPDX-License-Identifier: MIT
"""tt.scan: a running combination along an axis.

Where the axis is the one that lies closest in memory, a vector holds a run of it. The lanes are combined in log2(W)
steps, each with the lane 1, 2, 4, ... places before it (Hillis and Steele), then all of them with the last lane of the
run before. Otherwise the lanes are other dimensions, and the scan goes along the axis in order. The combine region is
taken to be associative, as on a GPU; operands keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import llvmlite.ir as ir

from .attrs import integer
from .build import Value, const, i64
from .domain import Chunk, Index, Loop, Plan, looped, nest, plan
from .ltypes import I1, I32
from .memory import choose, materialise
from .reduce import source
from .tensor import Buffer, Node

if TYPE_CHECKING:
    from .kernel import Kernel

ACROSS = 32
"""Lanes of other dimensions that are scanned at once."""


@dataclass
class Scan:
    """One tt.scan being emitted."""

    k: Kernel
    loop: Loop
    block: Any
    nodes: Sequence[Node]
    targets: Sequence[Buffer]
    axis: int
    reverse: bool

    @property
    def extent(self) -> int:
        return self.nodes[0].shape[self.axis]

    def combine(self, before: Sequence[Value], after: Sequence[Value]) -> list[Value]:
        return self.k.region(self.block, [*before, *after], [n.elem for n in self.nodes] * 2)

    def place(self, chunk: Chunk, index: Index) -> Chunk:
        """`chunk`, at another index of the axis."""
        return self.loop.chunk([index if d == self.axis else old for d, old in enumerate(chunk.dims)], chunk.width)

    def read(self, where: Chunk) -> list[Value]:
        return [self.loop.vector(n, where) for n in self.nodes]

    def write(self, where: Chunk, values: Sequence[Value]) -> None:
        for target, value in zip(self.targets, values, strict=True):
            target.store(self.loop, where, value)


def emit(k: Kernel, op: Any) -> None:
    axis, nodes = integer(op, "axis"), [source(k, v) for v in op.operands]
    shape = nodes[0].shape
    walk = choose(shape, nodes, _lanes(k, nodes))
    along = _along_the_axis(walk, axis)
    if not along:
        # In order, each line is met lane by lane of other dimensions; a load is cheaper in its own order.
        nodes = [materialise(k, n) if n.reads else n for n in nodes]
    targets = [k.allocate(n.shape, n.elem) for n in nodes]
    loop = Loop(k.b)
    loop.hoists = [k.b.block]
    scan = Scan(k, loop, op.regions[0].blocks[0], nodes, targets, axis, bool(integer(op, "reverse")))
    if along:
        _in_lanes(scan, plan(shape, _lanes(k, nodes), axis))
    else:
        _across(scan)
    for result, target in zip(op.results, targets, strict=True):
        k.bind(result, target)


def _lanes(k: Kernel, nodes: Sequence[Node]) -> int:
    """Lanes of a machine vector of the widest operand; small floats are computed in fp32."""
    return max(2, k.target.vector_bits // max(32, *(n.elem.bits for n in nodes)))


def _along_the_axis(walk: Plan, axis: int) -> bool:
    """Whether vectors hold runs of the axis: it is walked along, or the other dimensions do not fill vectors."""
    others = 1
    for d, n in enumerate(walk.shape):
        others *= 1 if d == axis else n
    return walk.order[-1] == axis or others < 4 <= walk.shape[axis]


# Vectors along the axis


def _in_lanes(scan: Scan, walk: Plan) -> None:
    run, extent = walk.covered[scan.axis], scan.extent
    if run == extent:
        nest(scan.loop, walk, lambda chunk: scan.write(chunk, _within(scan, scan.read(chunk), run)))
        return
    outer = plan([1 if d == scan.axis else n for d, n in enumerate(walk.shape)], 1)
    nest(scan.loop, outer, lambda line: _line(scan, line, run))


def _line(scan: Scan, line: Chunk, run: int) -> None:
    """One line along the axis, `run` elements at a time, the last one carried to the next run."""
    b, loop = scan.k.b, scan.loop
    lanes = tuple(range(run))
    last = const(I32, 0 if scan.reverse else run - 1)
    carry = [scan.k.local(n.elem.reg, "carry") for n in scan.nodes]

    def at(base: Value, level: int, carried: bool) -> None:
        index = Index(base, lanes, level)
        where = loop.chunk([index if d == scan.axis else old for d, old in enumerate(line.dims)], run)
        values = _within(scan, scan.read(where), run)
        if carried:
            have = [b.splat(b.load(cell, typ=n.elem.reg), run) for cell, n in zip(carry, scan.nodes, strict=True)]
            values = scan.combine(have, values)
        scan.write(where, values)
        for cell, value in zip(carry, values, strict=True):
            b.store(b.extract_element(value, last), cell)

    start = scan.extent - run if scan.reverse else 0
    at(i64(start), line.level, False)

    def step(counter: Index) -> None:
        base = b.sub(i64(start - run), counter.base) if scan.reverse else b.add(counter.base, i64(run))
        at(base, counter.level, True)

    looped(loop, scan.extent - run, run, None, step)


def _within(scan: Scan, values: list[Value], run: int) -> list[Value]:
    """Scan each group of `run` lanes."""
    if run == 1:
        return values
    b, count = scan.k.b, values[0].type.count
    distance = 1
    while distance < run:
        lanes = [lane % run for lane in range(count)]
        if scan.reverse:
            has = [place + distance < run for place in lanes]
            sources = [min(lane + distance, count - 1) for lane in range(count)]
        else:
            has = [place >= distance for place in lanes]
            sources = [max(lane - distance, 0) for lane in range(count)]
        combined = scan.combine([b.shuffle(v, sources) for v in values], values)
        chosen = b.lane_constant(I1, [int(h) for h in has])
        values = [b.select(chosen, new, old) for new, old in zip(combined, values, strict=True)]
        distance *= 2
    return values


# Vectors of other dimensions


def _across(scan: Scan) -> None:
    shape = [1 if d == scan.axis else n for d, n in enumerate(scan.nodes[0].shape)]
    others = [d for d, n in enumerate(shape) if n > 1]
    walk = plan(shape, min(ACROSS, shape[others[-1]]) if others else 1, others[-1] if others else None)
    nest(scan.loop, walk, lambda chunk: _in_order(scan, chunk))


def _in_order(scan: Scan, chunk: Chunk) -> None:
    b, extent = scan.k.b, scan.extent
    types = [ir.VectorType(n.elem.reg, chunk.width) if chunk.width > 1 else n.elem.reg for n in scan.nodes]
    cells = [scan.k.local(t, "running") for t in types]

    def put(where: Chunk, values: Sequence[Value]) -> None:
        for cell, value in zip(cells, values, strict=True):
            b.store(value, cell)
        scan.write(where, values)

    start = scan.place(chunk, Index(i64(extent - 1 if scan.reverse else 0)))
    put(start, scan.read(start))

    def step(counter: Index) -> None:
        one = b.add(counter.base, i64(1))
        where = scan.place(chunk, Index(b.sub(i64(extent - 1), one) if scan.reverse else one, None, counter.level))
        have = [b.load(c, typ=t) for c, t in zip(cells, types, strict=True)]
        put(where, scan.combine(have, scan.read(where)))

    if extent > 1:
        looped(scan.loop, extent - 1, 1, None, step)
