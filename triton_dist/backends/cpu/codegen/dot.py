# SPDX-License-Identifier: MIT
"""tt.dot: a register-tiled micro-kernel over operands in the arena.

The operands are materialised in the accumulator's type (fp32, fp64 or i32), B with its columns contiguous. A tile of
MR rows by NR vectors of C stays in registers while k runs; products are accumulated in order of k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import llvmlite.ir as ir

from . import floats, upcoming
from .build import Builder, Value, i64, like
from .domain import Index, Loop, looped, nest, plan
from .ltypes import Elem, named
from .memory import choose, in_versions, versioned
from .tensor import Buffer, Map, Node
from .upcoming import Upcoming

if TYPE_CHECKING:
    from .kernel import Kernel


def emit(k: Kernel, op: Any) -> None:
    a, b, c = (k.node(v) for v in op.operands[:3])
    multiply(k, op, a, b, c, op.operands[2])


def multiply(k: Kernel, op: Any, a: Node, b: Node, c: Node, addend: Any) -> None:
    """op's result = a @ b + c; `addend` is the SSA value of c."""
    compute = _compute_type(c.elem)
    # The accumulator outlives the packed operands, so it is allocated before them.
    target = k.accumulator(addend, c, compute)
    with k.scratch():
        left = _operand(k, a, compute, len(a.shape) - 1)
        right = _operand(k, b, compute, len(b.shape) - 1, contiguous=True)
        batches = a.shape[:-2]
        if not batches:
            _matmul(k, left, right, target, [], upcoming.of_operands(k, [a, b]))
        else:
            loop = Loop(k.b)
            loop.hoists = [k.b.block]
            nest(loop, plan(batches, 1), lambda chunk: _matmul(k, left, right, target, list(chunk.dims)))
    k.bind(op.results[0], _rounded(target, c.elem))


def _compute_type(elem: Elem) -> Elem:
    if elem.is_float:
        return named("f64") if elem.bits == 64 else named("f32")
    return elem


def _rounded(target: Buffer, elem: Elem) -> Node:
    """A 16-bit accumulator is kept in fp32 and rounded when read."""
    if target.elem.name == elem.name:
        return target
    return Map(target.shape, elem, (target,), lambda b, a: floats.narrow(b, a[0], elem))


def convert(node: Node, want: Elem) -> Node:
    """A lazy conversion to the type the dot computes in."""
    have = node.elem
    if have.name == want.name:
        return node
    if have.is_float and want.is_float:
        return Map(node.shape, want, (node,), lambda b, a: floats.cast(b, a[0], have, want))
    return Map(node.shape, want, (node,), lambda b, a: b.sext(a[0], like(a[0], want.reg)))


def _operand(k: Kernel, node: Node, compute: Elem, fastest: int, contiguous: bool = False) -> Buffer:
    node = convert(node, compute)
    if isinstance(node, Buffer) and (not contiguous or node.strides[fastest] == 1):
        return node
    walk = choose(node.shape, [node])
    order = [d for d in walk.order if d != fastest] + [fastest] if contiguous else walk.order
    buffer = k.allocate(node.shape, compute, order, padded=True)
    if _transposes(walk.order, order, node, compute):
        in_versions(k, walk, lambda fast: _pack_transposed(k, node, buffer, fast), [node])
        return buffer
    versioned(k, walk, lambda loop, chunk: buffer.store(loop, chunk, loop.vector(node, chunk)), [node])
    return buffer


SQUARE = 16
"""Side of the blocks that are transposed in registers."""


def _transposes(read: Sequence[int], write: Sequence[int], node: Node, elem: Elem) -> bool:
    """A matrix read along one dimension and wanted along the other, large enough for blocks."""
    return len(node.shape) == 2 and read[-1] != write[-1] and elem.bits == 32 and min(node.shape) >= SQUARE


def _pack_transposed(k: Kernel, node: Node, buffer: Buffer, fast: bool) -> None:
    """B lies along k in memory: blocks are read that way, transposed, and written with columns contiguous."""
    loop = Loop(k.b, fast)
    loop.hoists = [k.b.block]
    lanes = tuple(range(SQUARE))

    def block(row: Index, column: Index, lines: Sequence[Index]) -> None:
        b, along = k.b, Index(row.base, lanes, row.level)
        read = [loop.vector(node, loop.chunk((along, line), SQUARE)) for line in lines]
        across = Index(column.base, lanes, column.level)
        for i, vector in enumerate(_transpose(b, read)):
            line = Index(b.add(row.base, i64(i)), None, row.level)
            buffer.store(loop, loop.chunk((line, across), SQUARE), vector)

    def strip(column: Index) -> None:
        lines = [Index(k.b.add(column.base, i64(i)), None, column.level) for i in range(SQUARE)]
        looped(loop, rows, SQUARE, None, lambda row: block(row, column, lines))

    rows, columns = node.shape
    looped(loop, columns, SQUARE, None, strip)


def _transpose(b: Builder, vectors: list[Value]) -> list[Value]:
    """An n x n block of n vectors, by exchanging halves, quarters, eighths, ..."""
    n = len(vectors)
    step = n // 2
    while step:
        upper = [lane if not lane & step else n + lane - step for lane in range(n)]
        lower = [lane + step if not lane & step else n + lane for lane in range(n)]
        for i in (i for i in range(n) if not i & step):
            x, y = vectors[i], vectors[i + step]
            vectors[i], vectors[i + step] = b.shuffle_pair(x, y, upper), b.shuffle_pair(x, y, lower)
        step //= 2
    return vectors


def initialise(k: Kernel, target: Buffer, c: Node) -> None:
    """Write the dot's third operand into the accumulator (unless it is there already)."""
    source = convert(c, target.elem)
    if source is target:
        return
    walk = choose(source.shape, [source, target])
    versioned(k, walk, lambda loop, chunk: target.store(loop, chunk, loop.vector(source, chunk)), [source])


def _matmul(k: Kernel, a: Buffer, b: Buffer, c: Buffer, batch: Sequence[Index], ahead: Sequence[Upcoming] = ()) -> None:
    rank = len(batch)
    m, n = c.shape[rank:]
    kk = a.shape[-1]
    lanes = k.target.vector_bits // c.elem.bits
    width = min(lanes, n)
    columns = min(2 * width, n)
    spans = row_spans(m, _rows(k.target.vector_registers, columns // width))
    tiles = [(span, _Tile(k, a, b, c, batch, span[2], columns, width, kk)) for span in spans]

    def one(tile: _Tile, i: Value, j: Value) -> None:
        for operand in ahead:
            operand.ask(k.b, k.b.iadd(k.b.imul(k.b.udiv(j, i64(columns)), i64(m)), i), tile.rows, m * n // columns)
        tile.emit(i, j)

    def over_rows(j: Value) -> None:
        for span, tile in tiles:
            _range(k.b, span, lambda i, tile=tile: one(tile, i, j))

    _range(k.b, (0, n, columns), over_rows)


MOST_SUMS = 16
"""Vectors of C in registers beyond which nothing is gained: a product takes four cycles, and two begin in each."""


def _rows(registers: int, vectors: int) -> int:
    """Rows of C in registers: as many as leave room for B and a broadcast of A."""
    return min(MOST_SUMS, registers - vectors - 1) // vectors


Span = tuple[int, int, int]
"""From, to, step."""


def row_spans(m: int, most: int) -> list[Span]:
    """All rows in tiles of nearly one height: first the higher ones, then those that are one lower."""
    tiles = -(-m // most)
    rows = -(-m // tiles)
    turn = (tiles - (tiles * rows - m)) * rows
    return [(0, turn, rows)] + ([(turn, m, rows - 1)] if turn < m else [])


def _range(b: Builder, span: Span, body: Callable[[Value], None]) -> None:
    start, end, step = span
    if end - start == step:
        body(i64(start))
    else:
        b.counted(i64(start), i64(end), step, body, "tile")


class _Tile:
    """One register tile of C, from its first k to its last."""

    def __init__(
        self,
        k: Kernel,
        a: Buffer,
        b: Buffer,
        c: Buffer,
        batch: Sequence[Index],
        rows: int,
        columns: int,
        width: int,
        depth: int,
    ) -> None:
        self.k, self.a, self.b, self.c, self.batch = k, a, b, c, batch
        self.rows, self.vectors, self.width, self.depth = rows, columns // width, width, depth
        self.type = ir.VectorType(c.elem.reg, width) if width > 1 else c.elem.reg

    def _offset(self, buffer: Buffer, i: Value, j: Value) -> Value:
        b, total = self.k.b, i64(0)
        for d, index in enumerate(self.batch):
            total = b.iadd(total, b.imul(index.base, i64(buffer.strides[d])))
        total = b.iadd(total, b.imul(i, i64(buffer.strides[-2])))
        return b.iadd(total, b.imul(j, i64(buffer.strides[-1])))

    def emit(self, i: Value, j: Value) -> None:
        b = self.k.b
        base_c = self._offset(self.c, i, j)
        base_a, base_b = self._offset(self.a, i, i64(0)), self._offset(self.b, i64(0), j)
        spots = [(r, v) for r in range(self.rows) for v in range(self.vectors)]
        at = [self.c.at(b, b.add(base_c, i64(r * self.c.strides[-2] + v * self.width))) for r, v in spots]
        start = [b.load(p, typ=self.type, align=self.c.elem.size) for p in at]
        before, head = b.block, b.append_basic_block("k")
        b.branch(head)
        b.position_at_end(head)
        index = b.phi(ir.IntType(64), "k")
        index.add_incoming(i64(0), before)
        sums = [b.phi(self.type) for _ in spots]
        for phi, value in zip(sums, start, strict=True):
            phi.add_incoming(value, before)
        unroll = 2 if self.depth % 2 == 0 else 1
        current: list[Value] = list(sums)
        for u in range(unroll):
            current = self._step(b.add(index, i64(u)) if u else index, base_a, base_b, current)
        following = b.add(index, i64(unroll), flags=("nsw",))
        index.add_incoming(following, b.block)
        for phi, value in zip(sums, current, strict=True):
            phi.add_incoming(value, b.block)
        done = b.append_basic_block("k.end")
        b.cbranch(b.icmp_signed("<", following, i64(self.depth)), head, done)
        b.position_at_end(done)
        for pointer, value in zip(at, current, strict=True):
            b.store(value, pointer, align=self.c.elem.size)

    def _step(self, index: Value, base_a: Value, base_b: Value, sums: list[Value]) -> list[Value]:
        b = self.k.b
        row_b = b.add(base_b, b.imul(index, i64(self.b.strides[-2])))
        right = [
            b.load(self.b.at(b, b.add(row_b, i64(v * self.width))), typ=self.type, align=self.b.elem.size)
            for v in range(self.vectors)
        ]
        column_a = b.add(base_a, b.imul(index, i64(self.a.strides[-1])))
        result = []
        for r in range(self.rows):
            one = b.load(
                self.a.at(b, b.add(column_a, i64(r * self.a.strides[-2]))), typ=self.a.elem.reg, align=self.a.elem.size
            )
            wide = b.splat(one, self.width) if self.width > 1 else one
            result += [self._multiply_add(wide, right[v], sums[r * self.vectors + v]) for v in range(self.vectors)]
        return result

    def _multiply_add(self, x: Value, y: Value, total: Value) -> Value:
        b = self.k.b
        return b.math("fma", x, y, total) if self.c.elem.is_float else b.add(b.mul(x, y), total)
