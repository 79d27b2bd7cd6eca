# SPDX-License-Identifier: MIT
"""The operands that a dot will have in the next round of its loop.

To copy a tile into the arena takes as long as its lines take to arrive, and to multiply needs no memory: so each
register tile first asks for its share of the lines that the next round will copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .affine import lane_stride
from .ahead import LEAST, Shift, next_round
from .build import Builder, Value, i64
from .ltypes import I64
from .memory import Load
from .tensor import LINE, Affine, Buffer, Node, Table, Term, prefetch

if TYPE_CHECKING:
    from .kernel import Kernel


@dataclass(eq=False)
class Upcoming:
    """A matrix in memory whose elements follow each other along dimension `fast`."""

    place: Affine
    shape: tuple[int, ...]
    size: int
    fast: int

    @property
    def in_a_row(self) -> int:
        """Lines that a row has."""
        return max(1, self.shape[self.fast] * self.size // LINE)

    @property
    def lines(self) -> int:
        return self.shape[1 - self.fast] * self.in_a_row

    def ask(self, b: Builder, done: Value, share: int, whole: int) -> None:
        """Ask for the lines of `share` parts of `whole`, of which `done` have been asked for. All sizes are powers of
        two, but for `share`.
        """
        more, fewer = max(1, self.lines // whole), max(1, whole // self.lines)
        first = b.udiv(b.imul(done, i64(more)), i64(fewer))
        count = -(-share * more // fewer)
        b.counted(i64(0), i64(count), 1, lambda n: self._line(b, b.and_(b.add(first, n), i64(self.lines - 1))), "ask")

    def _line(self, b: Builder, number: Value) -> None:
        row = b.udiv(number, i64(self.in_a_row))
        column = b.imul(b.and_(number, i64(self.in_a_row - 1)), i64(LINE // self.size))
        across, along = self.place.terms[1 - self.fast], self.place.terms[self.fast]
        address = b.iadd(self.place.base, _offset(b, across, row))
        if isinstance(along, Table):
            # As if entries followed each other: mostly they do, and else these are hints.
            address = b.add(address, along.first)
        prefetch(b, b.add(address, b.mul(column, i64(self.size))), LINE)


def _offset(b: Builder, term: Term, index: Value) -> Value:
    if term is None:
        return i64(0)
    if isinstance(term, Table):
        return b.load(term.buffer.at(b, index), typ=I64)
    return b.imul(term, index)


def of_operands(k: Kernel, operands: Sequence[Node]) -> list[Upcoming]:
    """Those that come from memory, from elsewhere in each round."""
    shift = next_round(k, k.block)
    if shift is None or k.checked:
        return []
    loads = [load for node in operands for load in _loads(node)]
    return [found for load in loads if (found := _of_load(load, shift)) is not None]


def _of_load(load: Load, shift: Shift) -> Upcoming | None:
    form, size = load.pointer.affine, load.elem.size
    if form is None or len(load.shape) != 2 or math.prod(load.shape) * size < LEAST:
        return None
    contiguous = [d for d in (1, 0) if isinstance(form.terms[d], Table) or lane_stride(form.terms[d]) == size]
    known = [d for d in contiguous if not isinstance(form.terms[d], Table)] or contiguous
    base = shift(form.base)
    if not known or base is None:
        return None
    return Upcoming(Affine(base, form.terms), load.shape, size, known[0])


def _loads(node: Node) -> list[Load]:
    """Loads of a tree whose indices are the tree's own."""
    if isinstance(node, Buffer):
        return [] if node.origin is None else _loads(node.origin)
    if isinstance(node, Load):
        return [node]
    return [] if node.moves else [load for source in node.sources for load in _loads(source)]
