# SPDX-License-Identifier: MIT
"""Operations that rearrange elements: join, split, cat, gather, histogram, scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ir

from . import scan
from .attrs import integer
from .build import const, full, i64
from .domain import ZERO, Chunk, Index, Lanes, Loop, looped, plan
from .kernel import Kernel, handles
from .ltypes import I1, I64, elem_of, tensor_shape
from .memory import loads_in, materialise, run
from .tensor import Buffer, Node, View, buffer_node, every, row_major


class Join(Node):
    """Two tensors along a new last dimension."""

    moves = True

    def __init__(self, left: Node, right: Node) -> None:
        sources = (left, right)
        shape = (*left.shape, 2)
        varies = left.varies | right.varies | {len(left.shape)}
        super().__init__(
            shape, left.elem, varies, left.cost + right.cost + 1, left.reads | right.reads, sources=sources
        )

    def lanes(self, loop: Loop, chunk: Chunk) -> Lanes:
        b, last = loop.b, chunk.dims[-1]
        inner = loop.chunk(chunk.dims[:-1], chunk.width)
        first = b.icmp_signed("==", last.base, i64(0))
        if last.lanes is None:
            values = [loop.value(s, inner) for s in self.sources]
            if all(v.uniform for v in values):
                return Lanes(b.select(first, values[0].value, values[1].value), True)
            wide = [loop.vector(s, inner) for s in self.sources]
            return Lanes(b.select(b.splat(first, chunk.width), *wide), False)
        left, right = (loop.vector(s, inner) for s in self.sources)
        chosen = b.lane_constant(I1, [1 - lane for lane in last.lanes])
        return Lanes(b.select(chosen, left, right), False)


@handles("tt.join")
def join(k: Kernel, op: Any) -> None:
    k.bind(op.results[0], Join(k.node(op.operands[0]), k.node(op.operands[1])))


@handles("tt.split")
def split(k: Kernel, op: Any) -> None:
    source = k.node(op.operands[0])
    for which, result in enumerate(op.results):
        k.bind(result, _half(source, which))


def _half(source: Node, which: int) -> Node:
    index = Index(i64(which))

    def reindex(loop: Loop, chunk: Chunk) -> Chunk:
        return loop.chunk([*chunk.dims, index if which else ZERO], chunk.width)

    return View(source.shape[:-1], source, reindex, source.varies - {len(source.shape) - 1})


@handles("tt.cat")
def cat(k: Kernel, op: Any) -> None:
    """The halves of a new buffer."""
    left, right = (k.node(v) for v in op.operands)
    shape = tensor_shape(op.results[0].type)
    target = k.allocate(shape, left.elem)
    materialise(k, left, _part(k, target, left.shape, 0))
    materialise(k, right, _part(k, target, right.shape, left.shape[0]))
    k.bind(op.results[0], target)


def _part(k: Kernel, target: Buffer, shape: Sequence[int], row: int) -> Buffer:
    return buffer_node(shape, target.elem, target.at(k.b, i64(row * target.strides[0])), target.strides)


class Gather(Node):
    """Elements picked by an index tensor along one axis. Indices wrap at the extent, so that none leaves the tensor."""

    moves = True

    def __init__(self, source: Buffer, indices: Node, axis: int) -> None:
        super().__init__(
            indices.shape, source.elem, every(indices.shape), indices.cost + 3, indices.reads, sources=(source, indices)
        )
        self.axis = axis

    def lanes(self, loop: Loop, chunk: Chunk) -> Lanes:
        b, source = loop.b, self.sources[0]
        picked = loop.value(self.sources[1], chunk)
        dims = list(chunk.dims)
        value = picked.value
        wide = I64 if picked.uniform else ir.VectorType(I64, chunk.width)
        value = value if value.type == wide else b.sext(value, wide)
        value = b.and_(value, full(wide, source.shape[self.axis] - 1))
        dims[self.axis] = Index(value, None, chunk.level) if picked.uniform else Index(i64(0), None, chunk.level, value)
        return loop.value(source, loop.chunk(dims, chunk.width))


@handles("tt.gather")
def gather(k: Kernel, op: Any) -> None:
    source = materialise(k, k.node(op.operands[0]))
    k.bind(op.results[0], Gather(source, k.node(op.operands[1]), k.axis(op)))


@handles("tt.histogram")
def histogram(k: Kernel, op: Any) -> None:
    source, mask = k.node(op.operands[0]), k.optional(op, 1)
    result = op.results[0]
    counts = k.allocate(tensor_shape(result.type), elem_of(result.type))
    from .tensor import Splat

    materialise(k, Splat(counts.shape, counts.elem, const(counts.elem.reg, 0)), counts)
    nodes = [n for n in (source, mask) if n is not None]
    nodes = [materialise(k, n) if loads_in([n]) else n for n in nodes]

    def body(loop: Loop, chunk: Chunk) -> None:
        b = k.b
        number = loop.scalar(nodes[0], chunk)
        good = b.icmp_unsigned("<", number, const(number.type, counts.shape[0]))
        if mask is not None:
            good = b.and_(good, loop.scalar(nodes[1], chunk))
        with b.if_then(good):
            at = counts.at(b, b.resize(number, I64, signed=False))
            b.store(b.add(b.load(at, typ=counts.elem.reg), const(counts.elem.reg, 1)), at)

    run(k, plan(source.shape, 1), body)
    k.bind(result, counts)


# Scans


@handles("tt.scan")
def scan_op(k: Kernel, op: Any) -> None:
    k.axis(op)
    scan.emit(k, op)


# Any function, element by element


@handles("tt.map_elementwise")
def map_elementwise(k: Kernel, op: Any) -> None:
    """A region with control flow of its own, run for each element (or each pack of neighbours)."""
    pack = integer(op, "pack")
    nodes = [_dense(k, k.node(v)) for v in op.operands]
    targets = [k.allocate(tensor_shape(r.type), elem_of(r.type)) for r in op.results]
    shape = nodes[0].shape
    flat = [_flat(n) for n in nodes]
    out = [_flat(t) for t in targets]
    count = 1
    for n in shape:
        count *= n
    loop = Loop(k.b)
    loop.hoists = [k.b.block]

    def each(index: Index) -> None:
        _map_pack(k, loop, op, flat, out, index, pack)

    if count == pack:
        each(ZERO)
    else:
        looped(loop, count, pack, None, each)
    for result, target in zip(op.results, targets, strict=True):
        k.bind(result, target)


def _dense(k: Kernel, node: Node) -> Buffer:
    """The tensor in row-major order without gaps."""
    found = materialise(k, node)
    if found.strides == row_major(found.shape):
        return found
    copy = k.allocate(found.shape, found.elem)
    return materialise(k, found, copy)


def _flat(buffer: Buffer) -> Buffer:
    count = 1
    for n in buffer.shape:
        count *= n
    return buffer_node((count,), buffer.elem, buffer.pointer, (1,))


def _map_pack(
    k: Kernel, loop: Loop, op: Any, sources: Sequence[Buffer], targets: Sequence[Buffer], index: Index, pack: int
) -> None:
    from .control import run_region

    places = [loop.chunk((Index(k.b.add(index.base, i64(p)), None, index.level),), 1) for p in range(pack)]
    arguments = [loop.scalar(source, place) for source in sources for place in places]
    values = run_region(k, op.regions[0], arguments)
    for i, target in enumerate(targets):
        for p, place in enumerate(places):
            target.store(loop, place, values[i * pack + p])
