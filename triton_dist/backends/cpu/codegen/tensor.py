# SPDX-License-Identifier: MIT
"""Tensors as functions from a chunk of indices to lanes.

A node computes nothing until a loop asks for it. `Affine` carries what the engine knows of integer and pointer tensors:
a scalar base plus, for each dimension, a coefficient or a table; it decides which accesses are contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import llvmlite.ir as ir

from .build import Builder, Value, const, i64, known
from .domain import ZERO, Chunk, Index, Lanes, Loop
from .ltypes import I32, I64, PTR, Elem


@dataclass(eq=False)
class Table:
    """Offsets (in bytes) along one dimension, materialised; `step` is an i1: every entry is one element after the
    last.
    """

    buffer: Buffer
    step: Value
    first: Value


Term = Value | Table | None


@dataclass(eq=False)
class Affine:
    """`base + sum(term_d(i_d))`, in the element type's own width; a pointer counts bytes.

    32-bit arithmetic wraps in the base and in the coefficients; within a tile it is taken not to wrap, as Triton's own
    axis analysis does.
    """

    base: Value
    terms: tuple[Term, ...]

    @property
    def constant_over_tile(self) -> bool:
        return all(t is None for t in self.terms)

    @property
    def linear(self) -> bool:
        return not any(isinstance(t, Table) for t in self.terms)


@dataclass(eq=False)
class Node:
    """A lazy tensor. `varies` are the dimensions its value depends on; `cost` counts operations an element."""

    shape: tuple[int, ...]
    elem: Elem
    varies: frozenset[int] = frozenset()
    cost: int = 0
    reads: frozenset[Node] = frozenset()
    """Loads from memory not done yet: they must happen before the next side effect."""
    affine: Affine | None = None
    hoistable: bool = True
    sources: tuple[Node, ...] = ()
    op: str = ""
    """The arith op a Map stands for, or "view" for the same elements under other indices: what questions about masks
    and offsets look through."""
    predicate: str = ""
    """Of an arith.cmpi."""
    depth: int = field(init=False, default=1)
    """Nodes on the longest way down to one without sources."""
    moves: ClassVar[bool] = False
    """It reads its sources under other indices than its own."""

    def __post_init__(self) -> None:
        self.depth = 1 + max((s.depth for s in self.sources), default=0)

    def lanes(self, loop: Loop, chunk: Chunk) -> Lanes:
        raise NotImplementedError

    def __hash__(self) -> int:
        return id(self)


def every(shape: Sequence[int]) -> frozenset[int]:
    return frozenset(d for d, n in enumerate(shape) if n > 1)


def scalar_index(b: Builder, index: Index, type_: ir.IntType) -> Value:
    return b.resize(index.base, type_)


class AffineNode(Node):
    """An integer or pointer tensor known in closed form."""

    def __init__(self, shape: Sequence[int], elem: Elem, affine: Affine) -> None:
        varies = frozenset(d for d, t in enumerate(affine.terms) if t is not None and shape[d] > 1)
        super().__init__(tuple(shape), elem, varies, cost=0, affine=affine)

    def lanes(self, loop: Loop, chunk: Chunk) -> Lanes:
        affine = self.affine
        assert affine is not None
        total, vectors = affine.base, []
        for d, term in enumerate(affine.terms):
            if term is None or self.shape[d] == 1:
                continue
            scalar, vector = _term(loop, term, chunk, chunk.dims[d], self.elem.reg)
            total = loop.b.iadd(total, scalar)
            if vector is not None:
                vectors.append(vector)
        if not vectors:
            return Lanes(total, True)
        result = loop.b.splat(total, chunk.width)
        for vector in vectors:
            result = loop.b.add(result, vector)
        return Lanes(result, False)


def _term(loop: Loop, term: Value | Table, chunk: Chunk, index: Index, reg: Any) -> tuple[Value, Value | None]:
    """The part of a term that all lanes share, and the part that differs."""
    b = loop.b
    if isinstance(term, Table):
        probe = loop.chunk((index,), chunk.width)
        got = loop.value(term.buffer, probe)
        return (got.value, None) if got.uniform else (const(reg, 0), got.value)
    if index.dynamic is not None:
        vector = index.dynamic if reg.width == 64 else b.trunc(index.dynamic, ir.VectorType(reg, chunk.width))
        return const(reg, 0), b.mul(vector, b.splat(term, chunk.width))
    scalar = b.imul(term, scalar_index(b, index, reg))
    if index.lanes is None:
        return scalar, None
    number = known(term)
    if number is not None:
        return scalar, b.lane_constant(reg, [number * lane for lane in index.lanes])
    return scalar, b.mul(b.splat(term, chunk.width), b.lane_constant(reg, index.lanes))


class Splat(Node):
    """The same scalar everywhere."""

    def __init__(self, shape: Sequence[int], elem: Elem, value: Value) -> None:
        affine = None if elem.is_float or elem.bits == 1 else Affine(value, (None,) * len(shape))
        super().__init__(tuple(shape), elem, affine=affine)
        self.scalar = value

    def lanes(self, loop: Loop, chunk: Chunk) -> Lanes:
        return Lanes(self.scalar, True)


Emit = Callable[[Builder, Sequence[Value]], Value]


class Map(Node):
    """An elementwise operation: `emit` takes all scalars or all vectors."""

    def __init__(
        self,
        shape: Sequence[int],
        elem: Elem,
        sources: Sequence[Node],
        emit: Emit,
        cost: int = 1,
        hoistable: bool = True,
    ) -> None:
        super().__init__(
            tuple(shape),
            elem,
            varies=frozenset().union(*(s.varies for s in sources)),
            cost=cost + sum(s.cost for s in sources),
            reads=frozenset().union(*(s.reads for s in sources)),
            hoistable=hoistable,
            sources=tuple(sources),
        )
        self.emit = emit

    def lanes(self, loop: Loop, chunk: Chunk) -> Lanes:
        values = [loop.value(s, chunk) for s in self.sources]
        if all(v.uniform for v in values):
            return Lanes(self.emit(loop.b, [v.value for v in values]), True)
        wide = [loop.b.splat(v.value, chunk.width) if v.uniform else v.value for v in values]
        return Lanes(self.emit(loop.b, wide), False)


class View(Node):
    """Another node seen through a change of indices: broadcast, expand_dims, trans, reshape."""

    moves = True

    def __init__(
        self,
        shape: Sequence[int],
        source: Node,
        reindex: Callable[[Loop, Chunk], Chunk],
        varies: frozenset[int],
        affine: Affine | None = None,
    ) -> None:
        super().__init__(tuple(shape), source.elem, varies, source.cost, source.reads, affine, sources=(source,))
        self.reindex = reindex

    def lanes(self, loop: Loop, chunk: Chunk) -> Lanes:
        return loop.value(self.sources[0], self.reindex(loop, chunk))


@dataclass(eq=False)
class Buffer(Node):
    """A tensor in memory of the engine's own, in the thread's arena: never aliased by user pointers."""

    pointer: Value = field(default_factory=lambda: i64(0))
    strides: tuple[int, ...] = ()
    origin: Node | None = None
    """What it was computed from, where nothing else is ever written to it: what is known of that is known of it."""

    def __hash__(self) -> int:
        return id(self)

    def address(self, loop: Loop, chunk: Chunk) -> tuple[Value, tuple[int, ...] | None, Value | None]:
        """Element offset shared by all lanes, lane pattern of offsets, or a vector of dynamic offsets."""
        b, total, pattern, dynamic = loop.b, i64(0), None, None
        for d, stride in enumerate(self.strides):
            if self.shape[d] == 1:
                continue
            index = chunk.dims[d]
            if index.dynamic is not None:
                part = b.mul(index.dynamic, b.splat(i64(stride), chunk.width))
                dynamic = part if dynamic is None else b.add(dynamic, part)
                continue
            total = b.iadd(total, b.imul(index.base, i64(stride)))
            if index.lanes is not None:
                mine = tuple(lane * stride for lane in index.lanes)
                pattern = mine if pattern is None else tuple(x + y for x, y in zip(pattern, mine, strict=True))
        return total, pattern, dynamic

    def lanes(self, loop: Loop, chunk: Chunk) -> Lanes:
        b = loop.b
        offset, pattern, dynamic = self.address(loop, chunk)
        if pattern is None and dynamic is None:
            return Lanes(
                from_memory(b, b.load(self.at(b, offset), typ=self.elem.mem, align=self.elem.size), self.elem), True
            )
        vector = ir.VectorType(self.elem.mem, chunk.width)
        if dynamic is None and pattern == tuple(range(chunk.width)):
            return Lanes(from_memory(b, b.load(self.at(b, offset), typ=vector, align=self.elem.size), self.elem), False)
        return Lanes(from_memory(b, self._gather(loop, chunk, offset, pattern, dynamic), self.elem), False)

    def _gather(
        self, loop: Loop, chunk: Chunk, offset: Value, pattern: tuple[int, ...] | None, dynamic: Value | None
    ) -> Value:
        b, vector = loop.b, ir.VectorType(self.elem.mem, chunk.width)
        if dynamic is None and pattern is not None and _repeats(pattern):
            return _repeated(b, self, offset, pattern)
        offsets = b.splat(offset, chunk.width)
        if pattern is not None:
            offsets = b.add(offsets, b.lane_constant(I64, pattern))
        if dynamic is not None:
            offsets = b.add(offsets, dynamic)
        pointers = b.gep(b.splat(self.pointer, chunk.width), [offsets], source_etype=self.elem.mem)
        return gather(b, pointers, None, None, vector, self.elem.size)

    def at(self, b: Builder, offset: Value) -> Value:
        return b.gep(self.pointer, [offset], source_etype=self.elem.mem)

    def store(self, loop: Loop, chunk: Chunk, value: Value) -> None:
        """Write one chunk (a vector of chunk.width lanes, or a scalar for width 1)."""
        b = loop.b
        offset, pattern, _ = self.address(loop, chunk)
        value = to_memory(b, value, self.elem)
        if chunk.width == 1 or pattern is None or pattern == tuple(range(chunk.width)):
            b.store(value, self.at(b, offset), align=self.elem.size)
            return
        offsets = b.add(b.splat(offset, chunk.width), b.lane_constant(I64, pattern))
        pointers = b.gep(b.splat(self.pointer, chunk.width), [offsets], source_etype=self.elem.mem)
        scatter(b, value, pointers, None, self.elem.size)


def _repeats(pattern: tuple[int, ...]) -> bool:
    return max(pattern) < len(pattern)


def _repeated(b: Builder, buffer: Buffer, offset: Value, pattern: tuple[int, ...]) -> Value:
    """Lanes that repeat or permute a short run: one contiguous load and a shuffle."""
    run = max(pattern) + 1
    loaded = b.load(buffer.at(b, offset), typ=ir.VectorType(buffer.elem.mem, run), align=buffer.elem.size)
    return b.shuffle(loaded, pattern)


def buffer_node(shape: Sequence[int], elem: Elem, pointer: Value, strides: Sequence[int]) -> Buffer:
    return Buffer(tuple(shape), elem, every(shape), cost=1, pointer=pointer, strides=tuple(strides))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


# Memory helpers


def from_memory(b: Builder, value: Value, elem: Elem) -> Value:
    """i1 is kept in bytes."""
    if elem.bits != 1:
        return value
    return b.trunc(value, _narrow(value, ir.IntType(1)))


def to_memory(b: Builder, value: Value, elem: Elem) -> Value:
    if elem.bits != 1:
        return value
    return b.zext(value, _narrow(value, ir.IntType(8)))


def _narrow(value: Value, scalar: ir.Type) -> ir.Type:
    return ir.VectorType(scalar, value.type.count) if isinstance(value.type, ir.VectorType) else scalar


def _ones(b: Builder, count: int) -> Value:
    return b.lane_constant(ir.IntType(1), [1] * count)


def gather(
    b: Builder, pointers: Value, mask: Value | None, other: Value | None, type_: ir.VectorType, align: int
) -> Value:
    mask = _ones(b, type_.count) if mask is None else mask
    other = ir.Constant(type_, ir.Undefined) if other is None else other
    name = f"llvm.masked.gather.{_mangled(type_)}.v{type_.count}p0"
    return _aligned_call(b, name, type_, [pointers, mask, other], align, [const(ir.IntType(32), align)], 1)


def scatter(b: Builder, value: Value, pointers: Value, mask: Value | None, align: int) -> None:
    mask = _ones(b, value.type.count) if mask is None else mask
    name = f"llvm.masked.scatter.{_mangled(value.type)}.v{value.type.count}p0"
    _aligned_call(b, name, ir.VoidType(), [value, pointers, mask], align, [const(ir.IntType(32), align)], 2)


def masked_load(b: Builder, pointer: Value, mask: Value, other: Value, align: int) -> Value:
    name = f"llvm.masked.load.{_mangled(other.type)}.p0"
    return _aligned_call(b, name, other.type, [pointer, mask, other], align, [const(ir.IntType(32), align)], 1)


def masked_store(b: Builder, value: Value, pointer: Value, mask: Value, align: int) -> None:
    name = f"llvm.masked.store.{_mangled(value.type)}.p0"
    _aligned_call(b, name, ir.VoidType(), [value, pointer, mask], align, [const(ir.IntType(32), align)], 2)


def _aligned_call(
    b: Builder, name: str, result: ir.Type, args: list[Value], align: int, imm: list[Value], at: int
) -> Value:
    """LLVM's masked intrinsics take their alignment as an immediate operand at position `at`; newer LLVM upgrades
    this form.
    """
    del align
    return b.call_intrinsic(name, result, [*args[:at], *imm, *args[at:]])


def _mangled(type_: ir.VectorType) -> str:
    from .build import suffix

    return suffix(type_)


def pointer_of(b: Builder, address: Value) -> Value:
    """A machine pointer (or a vector of them) from i64."""
    if isinstance(address.type, ir.VectorType):
        return b.inttoptr(address, ir.VectorType(PTR, address.type.count))
    return b.inttoptr(address, PTR)


LINE = 64
"""Bytes of a cache line."""


def prefetch(b: Builder, address: Value, size: int, write: bool = False) -> None:
    """Ask for `size` bytes from an address on, to be kept near but not in the first cache: fewer of those can be under
    way.
    """
    flags = [const(I32, int(write)), const(I32, 2), const(I32, 1)]
    for at in range(0, size, LINE):
        b.call_intrinsic("llvm.prefetch.p0", ir.VoidType(), [pointer_of(b, b.iadd(address, i64(at))), *flags])


# Views


def broadcast(node: Node, shape: Sequence[int]) -> Node:
    """Repeat dimensions of extent 1."""
    grown = [d for d, (have, want) in enumerate(zip(node.shape, shape, strict=True)) if have != want]
    if not grown:
        return node
    if node.affine is not None and not node.reads:
        return _same(AffineNode(shape, node.elem, node.affine), node)

    def reindex(loop: Loop, chunk: Chunk) -> Chunk:
        return loop.chunk([ZERO if d in grown else index for d, index in enumerate(chunk.dims)], chunk.width)

    return View(shape, node, reindex, node.varies)


def _same(new: Node, old: Node) -> Node:
    return Splat(new.shape, old.elem, old.scalar) if isinstance(old, Splat) else new


def expand_dims(node: Node, axis: int) -> Node:
    shape = (*node.shape[:axis], 1, *node.shape[axis:])
    if isinstance(node, Splat):
        return Splat(shape, node.elem, node.scalar)
    affine = None
    if node.affine is not None:
        affine = Affine(node.affine.base, (*node.affine.terms[:axis], None, *node.affine.terms[axis:]))
        return AffineNode(shape, node.elem, affine)

    def reindex(loop: Loop, chunk: Chunk) -> Chunk:
        return loop.chunk([*chunk.dims[:axis], *chunk.dims[axis + 1 :]], chunk.width)

    return View(shape, node, reindex, frozenset(d if d < axis else d + 1 for d in node.varies))


def transpose(node: Node, order: Sequence[int]) -> Node:
    """Result dimension d is source dimension order[d]."""
    shape = tuple(node.shape[s] for s in order)
    if isinstance(node, Splat):
        return Splat(shape, node.elem, node.scalar)
    if isinstance(node, Buffer):
        return buffer_node(shape, node.elem, node.pointer, [node.strides[s] for s in order])
    if node.affine is not None:
        return AffineNode(shape, node.elem, Affine(node.affine.base, tuple(node.affine.terms[s] for s in order)))

    def reindex(loop: Loop, chunk: Chunk) -> Chunk:
        dims: list[Index] = [ZERO] * len(order)
        for d, s in enumerate(order):
            dims[s] = chunk.dims[d]
        return loop.chunk(dims, chunk.width)

    return View(shape, node, reindex, frozenset(d for d, s in enumerate(order) if s in node.varies))


def reshape(node: Node, shape: Sequence[int]) -> Node:
    """The same elements in row-major order under another shape (extents are powers of two, so index bits just move)."""
    if isinstance(node, Splat):
        return Splat(shape, node.elem, node.scalar)
    have, want = row_major(node.shape), row_major(shape)
    if isinstance(node, Buffer) and node.strides == have:
        return buffer_node(shape, node.elem, node.pointer, want)

    def reindex(loop: Loop, chunk: Chunk) -> Chunk:
        key = ("reshape", tuple(node.shape), tuple(id(d) for d in chunk.dims))
        linear = loop.derived(key, lambda: _linear(loop, chunk, want))
        dims = [
            loop.derived((*key, d), lambda d=d: _digit(loop, linear, have[d], node.shape[d]))
            if node.shape[d] > 1
            else ZERO
            for d in range(len(node.shape))
        ]
        return loop.chunk(dims, chunk.width)

    return View(shape, node, reindex, every(shape))


def _linear(loop: Loop, chunk: Chunk, strides: Sequence[int]) -> Index:
    b, total, lanes = loop.b, i64(0), (0,) * chunk.width
    for index, stride in zip(chunk.dims, strides, strict=True):
        total = b.iadd(total, b.imul(index.base, i64(stride)))
        if index.lanes is not None:
            lanes = tuple(x + lane * stride for x, lane in zip(lanes, index.lanes, strict=True))
    return Index(total, lanes if any(lanes) else None, chunk.level)


def _digit(loop: Loop, linear: Index, stride: int, extent: int) -> Index:
    b = loop.b
    base = linear.base
    if known(base) is not None:
        base = i64((known(base) or 0) // stride % extent)
    else:
        base = b.and_(b.lshr(base, i64(stride.bit_length() - 1)), i64(extent - 1))
    lanes = None if linear.lanes is None else tuple(x // stride % extent for x in linear.lanes)
    return Index(base, lanes if lanes and any(lanes) else None, linear.level)
