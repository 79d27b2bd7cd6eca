# SPDX-License-Identifier: MIT
"""Iterating over a tile: chunks of W lanes, loop nests, and what is computed at which loop level.

Every extent of a Triton tensor is a power of two. A chunk covers, in the dimension that runs fastest, W consecutive
elements; if that dimension is shorter than W, the next ones join in. The index of a dimension is `base + lanes[lane]`
with a constant lane pattern below the covered extent and a base that is a multiple of it: so the bits of the two never
meet, and reshapes can split them separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import llvmlite.ir as ir

from .build import Builder, Value, i64

if TYPE_CHECKING:
    from .tensor import Node


@dataclass(eq=False)
class Index:
    """The index of one dimension over the lanes of a chunk."""

    base: Value
    lanes: tuple[int, ...] | None = None
    level: int = 0
    dynamic: Value | None = None
    """A vector of i64 indices (gather); replaces base and lanes."""

    @property
    def uniform(self) -> bool:
        return self.lanes is None and self.dynamic is None


ZERO = Index(i64(0))


@dataclass(eq=False)
class Chunk:
    """W elements of a tensor, one Index a dimension."""

    dims: tuple[Index, ...]
    width: int
    level: int = field(init=False)
    uniform: bool = field(init=False)

    def __post_init__(self) -> None:
        self.level = max((d.level for d in self.dims), default=0)
        self.uniform = all(d.uniform for d in self.dims)


@dataclass(frozen=True)
class Lanes:
    """A node's value over a chunk: one scalar if it is the same in every lane, else a vector."""

    value: Value
    uniform: bool


class Loop:
    """Evaluates lazy nodes inside one loop nest; remembers what it has computed, and hoists what an outer level
    allows.
    """

    def __init__(self, builder: Builder, parent_fast: bool = False) -> None:
        self.b = builder
        self.fast = parent_fast
        """In the fast version of a loop every mask is full, and tables in the lane dimension are contiguous."""
        self.ahead = 0
        """Bytes ahead of what is read now that are asked for; 0: none."""
        self.level = 0
        self.hoists: list[ir.Block] = []
        self.replaced: dict[Node, Node] = {}
        self._values: dict[tuple[Node, Chunk], Lanes] = {}
        self._chunks: dict[tuple[int, tuple[int, ...]], Chunk] = {}
        self._keep: list[object] = []

    def chunk(self, dims: Sequence[Index], width: int) -> Chunk:
        """The chunk with these dimensions, one object for equal ones: values are remembered by it."""
        key = (width, tuple(id(d) for d in dims))
        found = self._chunks.get(key)
        if found is None:
            found = self._chunks[key] = Chunk(tuple(dims), width)
        return found

    def derived(self, key: tuple, make: Callable[[], Index]) -> Index:
        """An index made from another one, once for each key."""
        memo = self.__dict__.setdefault("_derived", {})
        if key not in memo:
            memo[key] = make()
            self._keep.append(key)
        return memo[key]

    def value(self, node: Node, chunk: Chunk) -> Lanes:
        node = self.replaced.get(node, node)
        key = (node, chunk)
        found = self._values.get(key)
        if found is None:
            if chunk.level < self.level and node.hoistable:
                with self.b.at_end_of(self.hoists[chunk.level]):
                    here, self.level = self.level, chunk.level
                    found = node.lanes(self, chunk)
                    self.level = here
            else:
                found = node.lanes(self, chunk)
            self._values[key] = found
        return found

    def vector(self, node: Node, chunk: Chunk) -> Value:
        """The node's value with one element a lane (a scalar when the chunk has one lane)."""
        got = self.value(node, chunk)
        return self.b.splat(got.value, chunk.width) if got.uniform and chunk.width > 1 else got.value

    def scalar(self, node: Node, chunk: Chunk) -> Value:
        """The node's value over a uniform chunk."""
        return self.value(node, chunk).value


@dataclass(frozen=True)
class Plan:
    """How a tile is walked: dimensions from slowest to fastest, and the lanes covered of each."""

    shape: tuple[int, ...]
    order: tuple[int, ...]
    covered: tuple[int, ...]
    width: int

    @property
    def iterations(self) -> int:
        total = 1
        for n, k in zip(self.shape, self.covered, strict=True):
            total *= n // k
        return total


def plan(shape: Sequence[int], width: int, fastest: int | None = None, slow: Sequence[int] = ()) -> Plan:
    """Cover `shape` in chunks of at most `width` lanes; dimensions in `slow` are never spread over lanes."""
    rank = len(shape)
    order = [d for d in range(rank) if d != fastest]
    if fastest is not None:
        order.append(fastest)
    covered, room = [1] * rank, width
    for d in reversed(order):
        if d in slow:
            continue
        covered[d] = min(room, shape[d])
        room //= covered[d]
        if room <= 1 or covered[d] < shape[d]:
            break
    return Plan(tuple(shape), tuple(order), tuple(covered), _product(covered))


def _product(numbers: Sequence[int]) -> int:
    result = 1
    for n in numbers:
        result *= n
    return result


def _patterns(walk: Plan) -> list[tuple[int, ...] | None]:
    patterns: list[tuple[int, ...] | None] = [None] * len(walk.shape)
    stride = 1
    for d in reversed(walk.order):
        k = walk.covered[d]
        if k > 1:
            patterns[d] = tuple((lane // stride) % k for lane in range(walk.width))
        stride *= k
    return patterns


def nest(loop: Loop, walk: Plan, body: Callable[[Chunk], None], outer: Sequence[Index | None] | None = None) -> None:
    """Emit the loops of `walk` and `body` for each chunk. `outer[d]` fixes the index of dimension d instead."""
    patterns = _patterns(walk)
    dims: list[Index] = [ZERO] * len(walk.shape)
    pending = [d for d in walk.order if not (outer and outer[d] is not None)]
    for d, fixed in enumerate(outer or ()):
        if fixed is not None:
            dims[d] = fixed

    def descend(at: int) -> None:
        if at == len(pending):
            body(loop.chunk(dims, walk.width))
            return
        d = pending[at]
        if walk.shape[d] == walk.covered[d]:
            dims[d] = ZERO if patterns[d] is None else Index(i64(0), patterns[d])
            descend(at + 1)
        else:
            looped(loop, walk.shape[d], walk.covered[d], patterns[d], lambda index: enter(d, index, at + 1))

    def enter(d: int, index: Index, at: int) -> None:
        dims[d] = index
        descend(at)

    descend(0)


def looped(loop: Loop, extent: int, step: int, lanes: tuple[int, ...] | None, body: Callable[[Index], None]) -> None:
    """One loop level: `body` sees the index of the dimension it runs over."""

    def inside(iv: Value) -> None:
        loop.level += 1
        body(Index(iv, lanes, loop.level))
        loop.level -= 1

    loop.hoists[loop.level :] = [loop.b.block]
    loop.b.counted(i64(0), i64(extent), step, inside, f"d{extent}")
