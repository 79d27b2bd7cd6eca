# SPDX-License-Identifier: MIT
"""Loads, stores, and turning a lazy tensor into a buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import llvmlite.ir as ir

from . import affine
from .bounds import Guard
from .build import Builder, Value, full, i64, known
from .domain import Chunk, Lanes, Loop, Plan, nest, plan
from .ltypes import I1, Elem
from .tensor import (
    Buffer,
    Node,
    Table,
    from_memory,
    gather,
    masked_load,
    masked_store,
    pointer_of,
    prefetch,
    scatter,
    to_memory,
)

if TYPE_CHECKING:
    from .ahead import Hint
    from .kernel import Kernel

AHEAD = 2048
"""Bytes ahead that kernels which only move memory ask for: the hardware's own prefetcher stops at each page's end."""

WIDTH = 32
"""Lanes of a chunk: a few machine vectors at once keep the execution ports busy."""


class Load(Node):
    """A load that has not happened yet. Masked-off lanes give `other` (zero without one)."""

    def __init__(
        self, pointer: Node, mask: Node | None, other: Node | None, elem: Elem, guard: Guard | None = None
    ) -> None:
        parts = tuple(n for n in (pointer, mask, other) if n is not None)
        super().__init__(
            pointer.shape,
            elem,
            varies=frozenset().union(*(n.varies for n in parts)),
            cost=4 + sum(n.cost for n in parts),
            sources=parts,
        )
        self.reads = frozenset({self}).union(*(n.reads for n in parts))
        self.pointer, self.mask, self.other, self.guard = pointer, mask, other, guard

    def lanes(self, loop: Loop, chunk: Chunk) -> Lanes:
        b, size = loop.b, self.elem.size
        if self.guard is not None:
            return self._guarded(loop, chunk, self.guard)
        address, kind = locate(loop, self.pointer, chunk, size)
        mask = None if loop.fast or self.mask is None else loop.value(self.mask, chunk)
        if kind == "uniform" and (mask is None or mask.uniform):
            other = None if mask is None else self._other(loop, chunk, 1)
            return Lanes(from_memory(b, _load_one(b, address, mask, other, self.elem), self.elem), True)
        vector = ir.VectorType(self.elem.mem, chunk.width)
        bits = None if mask is None else (b.splat(mask.value, chunk.width) if mask.uniform else mask.value)
        other = None if bits is None else self._other(loop, chunk, chunk.width)
        if kind == "contiguous":
            if loop.ahead:
                prefetch(b, b.add(address, i64(loop.ahead)), chunk.width * size)
            pointer = pointer_of(b, address)
            if bits is None:
                got = b.load(pointer, typ=vector, align=size)
            else:
                got = masked_load(b, pointer, bits, other, size)
        else:
            wide = b.splat(address, chunk.width) if kind == "uniform" else address
            got = gather(b, pointer_of(b, wide), bits, other, vector, size)
        return Lanes(from_memory(b, got, self.elem), False)

    def _guarded(self, loop: Loop, chunk: Chunk, guard: Guard) -> Lanes:
        """Each lane's address is checked, then the lanes are gathered."""
        b, size = loop.b, self.elem.size
        address = loop.vector(self.pointer, chunk)
        bits = None if self.mask is None else loop.vector(self.mask, chunk)
        safe = guard.check(b, address, bits, size, write=False)
        other = self._other(loop, chunk, chunk.width)
        if chunk.width == 1:
            mask = None if bits is None else Lanes(bits, True)
            return Lanes(from_memory(b, _load_one(b, safe, mask, other, self.elem), self.elem), True)
        vector = ir.VectorType(self.elem.mem, chunk.width)
        got = gather(b, pointer_of(b, safe), bits, other if bits is not None else None, vector, size)
        return Lanes(from_memory(b, got, self.elem), False)

    def _other(self, loop: Loop, chunk: Chunk, width: int) -> Value:
        if self.other is None:
            return full(ir.VectorType(self.elem.mem, width) if width > 1 else self.elem.mem, 0)
        value = loop.value(self.other, chunk)
        wide = loop.b.splat(value.value, width) if value.uniform and width > 1 else value.value
        return to_memory(loop.b, wide, self.elem)


def _load_one(b: Builder, address: Value, mask: Lanes | None, other: Value | None, elem: Elem) -> Value:
    pointer = pointer_of(b, address)
    if mask is None or known(mask.value) == 1:
        return b.load(pointer, typ=elem.mem, align=elem.size)
    one = ir.VectorType(elem.mem, 1)
    zero = ir.Constant(ir.IntType(32), 0)
    lane = b.insert_element(ir.Constant(one, ir.Undefined), other, zero)
    bit = b.insert_element(ir.Constant(ir.VectorType(I1, 1), ir.Undefined), mask.value, zero)
    return b.extract_element(masked_load(b, pointer, bit, lane, elem.size), zero)


def locate(loop: Loop, pointer: Node, chunk: Chunk, size: int) -> tuple[Value, str]:
    """Where a chunk lies: (address, "uniform" | "contiguous"), or (vector of addresses, "scattered")."""
    form = pointer.affine
    if form is not None and not any(d.dynamic for d in chunk.dims):
        near = _closed(loop, pointer, chunk, size)
        if near is not None:
            return near
    got = loop.value(pointer, chunk)
    return got.value, "uniform" if got.uniform else "scattered"


def _closed(loop: Loop, pointer: Node, chunk: Chunk, size: int) -> tuple[Value, str] | None:
    b, form = loop.b, pointer.affine
    assert form is not None
    total, pattern = form.base, [0] * chunk.width
    for d, term in enumerate(form.terms):
        index = chunk.dims[d]
        stride = None
        if term is None or pointer.shape[d] == 1:
            continue
        if isinstance(term, Table):
            if index.lanes is None:
                total = b.iadd(total, loop.value(term.buffer, loop.chunk((index,), chunk.width)).value)
                continue
            if not loop.fast:
                return None
            total, stride = b.iadd(total, term.first), size
            total = b.iadd(total, b.imul(index.base, i64(size)))
        else:
            stride = known(term)
            if stride is None and index.lanes is not None:
                return None
            total = b.iadd(total, b.imul(term, index.base))
        if index.lanes is not None and stride is not None:
            pattern = [p + lane * stride for p, lane in zip(pattern, index.lanes, strict=True)]
    if not any(pattern):
        return total, "uniform"
    return (total, "contiguous") if pattern == [lane * size for lane in range(chunk.width)] else None


# Choosing how to walk a tile


def choose(shape: Sequence[int], nodes: Iterable[Node], width: int = WIDTH, slow: Sequence[int] = ()) -> Plan:
    """Walk along the dimension in which most accesses of the tree are contiguous."""
    votes = [0.0] * len(shape)
    for access in _accesses(nodes, len(shape)):
        for d, weight in _contiguous_dims(access):
            votes[d] += weight
    last = max((d for d, n in enumerate(shape) if n > 1), default=0)
    if last < len(votes):
        votes[last] += 0.1
    candidates = [d for d in range(len(shape)) if d not in slow]
    fastest = max(candidates, key=lambda d: (votes[d], d)) if candidates else None
    if fastest is not None and 8 <= shape[fastest] < width:
        width = shape[fastest]
    return plan(shape, width, fastest, slow)


def _contiguous_dims(access: Node) -> list[tuple[int, float]]:
    if isinstance(access, Buffer):
        return [(d, 0.5) for d, s in enumerate(access.strides) if s == 1 and access.shape[d] > 1]
    form = access.affine
    if form is None:
        return []
    size = access.elem.pointee.size if access.elem.pointee else 1
    found = [(d, 1.0) for d, t in enumerate(form.terms) if affine.lane_stride(t) == size and access.shape[d] > 1]
    return found + [(d, 0.6) for d, t in enumerate(form.terms) if isinstance(t, Table)]


def _accesses(nodes: Iterable[Node], rank: int) -> list[Node]:
    """Pointers and buffers of a tree whose dimensions are the tile's own (views that move dimensions are not
    followed).
    """
    found: list[Node] = []
    seen: set[Node] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node in seen or len(node.shape) != rank:
            continue
        seen.add(node)
        if isinstance(node, Load):
            found.append(node.pointer)
        elif isinstance(node, Buffer) or (node.elem.kind == "ptr" and node.affine is not None):
            found.append(node)
        stack.extend(node.sources)
    return found


def loads_in(loop_nodes: Iterable[Node]) -> list[Load]:
    """Every load of a tree that has not happened yet."""
    found: dict[Load, None] = {}
    for node in loop_nodes:
        for load in node.reads:
            if isinstance(load, Load):
                found[load] = None
    return list(found)


# Versions of a loop


def conditions(k: Kernel, accesses: Sequence[tuple[Node, Node | None]], walk: Plan) -> Value | None:
    """An i1 under which all masks are full and tables in the lane dimensions are contiguous; None if unknown."""
    b, total = k.b, ir.Constant(I1, 1)
    for pointer, mask in accesses:
        if mask is not None:
            full_mask = affine.always(b, mask)
            if full_mask is None:
                return None
            total = b.and_(total, full_mask)
        for d, term in enumerate(pointer.affine.terms if pointer.affine else ()):
            if isinstance(term, Table) and d < len(walk.covered) and walk.covered[d] > 1:
                total = b.and_(total, term.step)
    return total


def _has_lane_table(accesses: Sequence[tuple[Node, Node | None]], walk: Plan) -> bool:
    return any(
        isinstance(term, Table) and d < len(walk.covered) and walk.covered[d] > 1
        for pointer, _ in accesses
        for d, term in enumerate(pointer.affine.terms if pointer.affine else ())
    )


Body = Callable[[Loop, Chunk], None]


def run(k: Kernel, walk: Plan, body: Body, fast: bool = False, replaced: dict[Node, Node] | None = None) -> None:
    """Emit one loop nest."""
    loop = Loop(k.b, fast)
    loop.ahead = AHEAD if fast and k.streams else 0
    loop.replaced = replaced or {}
    loop.hoists = [k.b.block]
    nest(loop, walk, lambda chunk: body(loop, chunk))


Extra = Sequence[tuple[Node, Node | None]]
"""Accesses beside the loads of a tree: (pointer, mask)."""


def versioned(k: Kernel, walk: Plan, body: Body, nodes: Sequence[Node], extra: Extra = ()) -> None:
    """Emit a loop over lazy nodes, in a fast version for full tiles where that pays."""
    in_versions(k, walk, lambda fast: run(k, walk, body, fast), nodes, extra)


def in_versions(
    k: Kernel,
    walk: Plan,
    emit: Callable[[bool], None],
    nodes: Sequence[Node],
    extra: Extra = (),
    masks_cost: bool = False,
) -> None:
    """`emit(fast)` once, or twice under a condition: tiles with full masks and contiguous tables, and the others.

    `masks_cost`: a loop so light that even cheap masks slow it down.
    """
    loads = loads_in(nodes)
    accesses = [(load.pointer, load.mask) for load in loads] + list(extra)
    masked = any(m is not None for _, m in accesses)
    pays = _has_lane_table(accesses, walk) or (masked and (masks_cost or not k.target.cheap_masks))
    guarded = any(load.guard is not None for load in loads)
    condition = conditions(k, accesses, walk) if pays and not guarded else None
    if condition is None:
        emit(False)
        return
    with k.b.if_else(condition) as (then, otherwise):
        with then:
            emit(True)
        with otherwise:
            emit(False)


def materialise(k: Kernel, node: Node, target: Buffer | None = None, width: int = WIDTH) -> Buffer:
    """Compute a lazy tensor into the arena (or into `target`)."""
    if target is None and isinstance(node, Buffer):
        return node
    walk = choose(node.shape, [node], width)
    if target is None:
        target = k.allocate(node.shape, node.elem, walk.order)
        target.origin = node
    buffer = target
    versioned(k, walk, lambda loop, chunk: buffer.store(loop, chunk, loop.vector(node, chunk)), [node])
    return buffer


def materialise_together(k: Kernel, pairs: Sequence[tuple[Node, Buffer]]) -> None:
    """Compute several tensors of one shape in one loop, each chunk read in full before any of it is written."""
    walk = choose(pairs[0][0].shape, [n for n, _ in pairs])

    def body(loop: Loop, chunk: Chunk) -> None:
        values = [loop.vector(node, chunk) for node, _ in pairs]
        for value, (_, buffer) in zip(values, pairs, strict=True):
            buffer.store(loop, chunk, value)

    versioned(k, walk, body, [n for n, _ in pairs])


# Stores


def store(
    k: Kernel, pointer: Node, value: Node, mask: Node | None, guard: Guard | None = None, hints: Sequence[Hint] = ()
) -> None:
    """Write a tile. All loads that feed it happen before any of its writes, as on a device."""
    trees = [n for n in (pointer, value, mask) if n is not None]
    walk = choose(value.shape, [pointer, value])
    loads = loads_in(trees)

    def body(loop: Loop, chunk: Chunk) -> None:
        for hint in hints:
            hint.emit(loop, chunk)
        if guard is None:
            _store_chunk(loop, chunk, pointer, value, mask)
        else:
            _store_guarded(loop, chunk, pointer, value, mask, guard)

    if guard is not None:
        run(k, walk, body, replaced=_read_first(k, loads))
        return
    if not loads:
        versioned(k, walk, body, trees, [(pointer, mask)])
        return
    condition = _fusable(k, walk, loads, pointer, value, mask)
    if condition is None:
        run(k, walk, body, replaced=_read_first(k, loads))
        return
    with k.b.if_else(condition) as (then, otherwise):
        with then:
            run(k, walk, body, fast=True)
        with otherwise, k.scratch():
            run(k, walk, body, replaced=_read_first(k, loads))


def _read_first(k: Kernel, loads: Sequence[Load]) -> dict[Node, Node]:
    return {load: materialise(k, load) for load in loads}


def _fusable(
    k: Kernel, walk: Plan, loads: Sequence[Load], pointer: Node, value: Node, mask: Node | None
) -> Value | None:
    """An i1: the loop may read and write chunk by chunk, with no masks."""
    condition = conditions(k, [(pointer, mask), *((ld.pointer, ld.mask) for ld in loads)], walk)
    if condition is None:
        return None
    for load in loads:
        apart = affine.disjoint_or_same(k.b, load.pointer, load.elem.size, pointer, value.elem.size)
        if apart is None:
            return None
        condition = k.b.and_(condition, apart)
    return condition


def _store_chunk(loop: Loop, chunk: Chunk, pointer: Node, value: Node, mask: Node | None) -> None:
    b, elem = loop.b, value.elem
    data = to_memory(b, loop.vector(value, chunk), elem)
    address, kind = locate(loop, pointer, chunk, elem.size)
    bits = None if mask is None or loop.fast else loop.vector(mask, chunk)
    if chunk.width == 1:
        _store_one(b, data, address, bits, elem)
        return
    if kind == "contiguous":
        target = pointer_of(b, address)
        if bits is None:
            b.store(data, target, align=elem.size)
        else:
            masked_store(b, data, target, bits, elem.size)
        return
    wide = b.splat(address, chunk.width) if kind == "uniform" else address
    scatter(b, data, pointer_of(b, wide), bits, elem.size)


def _store_guarded(loop: Loop, chunk: Chunk, pointer: Node, value: Node, mask: Node | None, guard: Guard) -> None:
    b, elem = loop.b, value.elem
    data = to_memory(b, loop.vector(value, chunk), elem)
    bits = None if mask is None else loop.vector(mask, chunk)
    safe = guard.check(b, loop.vector(pointer, chunk), bits, elem.size, write=True)
    if chunk.width == 1:
        _store_one(b, data, safe, bits, elem)
    else:
        scatter(b, data, pointer_of(b, safe), bits, elem.size)


def _store_one(b: Builder, data: Value, address: Value, bit: Value | None, elem: Elem) -> None:
    if bit is None:
        b.store(data, pointer_of(b, address), align=elem.size)
        return
    with b.if_then(bit):
        b.store(data, pointer_of(b, address), align=elem.size)
