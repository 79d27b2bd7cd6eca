# SPDX-License-Identifier: MIT
"""Asking for memory ahead of time.

A kernel that works on rows reads a row, computes, and writes a row: while it computes, memory idles, and while it
reads or writes, it waits for lines that no hardware prefetcher could guess, since the next row is elsewhere. So the
last reduction of a block also asks for the lines that stores behind it will write, and the store for those that the
next round of the loop (or the next program) will read: a core can wait for some twenty lines at a time. Earlier
reductions ask for a line of each, so that where its page lies is known by then. A reduction with nothing behind it
asks for a line of a page further on, for the same reason. These are hints: a wrong address costs bandwidth and nothing
else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llvmlite.ir import instructions

from .build import Builder, Value, i64
from .domain import Chunk, Index, Loop
from .ltypes import shape_of
from .memory import loads_in, locate
from .tensor import LINE, Affine, AffineNode, Node, Splat, prefetch

if TYPE_CHECKING:
    from .kernel import Kernel

LEAST = 16 * LINE
"""Tiles smaller than this are left to the hardware."""

PAGE = 4096
PAGES = 4
"""How many pages further on a loop that only reads asks for a line (measured: 1, 2 and 8 gain less)."""

ADDRESSES = frozenset({
    "arith.addi", "arith.andi", "arith.cmpi", "arith.constant", "arith.extsi", "arith.muli", "arith.subi",
    "tt.addptr", "tt.broadcast", "tt.expand_dims", "tt.get_program_id", "tt.make_range", "tt.splat",
})  # fmt: skip
"""Operations that may be emitted before their turn: they compute where something is, and cannot fail."""

Shift = Callable[[Value], Value | None]
"""What a scalar is in the next round; None if that cannot be told, or is the same."""


@dataclass(eq=False)
class Hint:
    """A tile to be asked for; `mask` says which of it is used."""

    pointer: Node
    mask: Node | None
    size: int
    write: bool

    def emit(self, loop: Loop, chunk: Chunk) -> None:
        """Ask for the lines of one chunk."""
        address, kind = locate(loop, self.pointer, chunk, self.size)
        if kind != "contiguous" or chunk.width * self.size < LINE:
            return
        b = loop.b
        if self.mask is not None:
            wanted = loop.scalar(self.mask, loop.chunk([_first(loop, d) for d in chunk.dims], 1))
            assert self.pointer.affine is not None
            address = b.select(wanted, address, self.pointer.affine.base)
        prefetch(b, address, chunk.width * self.size, self.write)


@dataclass(eq=False)
class Pages:
    """A tile that is being read: always the same line of each page to come, so that this costs no bandwidth."""

    pointer: Node
    size: int

    def emit(self, loop: Loop, chunk: Chunk) -> None:
        address, kind = locate(loop, self.pointer, chunk, self.size)
        if kind == "contiguous":
            b = loop.b
            prefetch(b, b.and_(b.add(address, i64(PAGES * PAGE)), i64(-PAGE)), LINE)


def _first(loop: Loop, index: Index) -> Index:
    """The index of a chunk's first lane."""
    return loop.derived(("first", index), lambda: Index(index.base, None, index.level))


# Which tiles


def of_reduce(k: Kernel, op: Any, nodes: Sequence[Node]) -> Sequence[Hint | Pages]:
    """What the loop of a reduction should ask for, if it is the last of its shape: what will be written; if nothing
    will, what comes next, or the pages to come if it reads itself.
    """
    shape = shape_of(op.operands[0].type)
    if k.checked or shape is None:
        return []
    stores, last = _stores_after(op, shape)
    written = [hint for store in stores if (hint := _of_store(k, store)) is not None]
    if last:
        return written if stores else _next_reads(k, op, shape, nodes) or _pages(k, nodes)
    shift = next_round(k, op.parent_block())
    for hint in written + ([] if shift is None else _moved_loads(k, op, shape, shift)):
        assert hint.pointer.affine is not None
        prefetch(k.b, hint.pointer.affine.base, LINE, hint.write)
    return []


def of_store(k: Kernel, op: Any, nodes: Sequence[Node]) -> list[Hint]:
    """What the loop of a store should ask for, if it is the last after a reduction of its shape: what comes next."""
    shape = shape_of(op.operands[0].type)
    if k.checked or shape is None or not _reduced_before(op, shape) or _stores_after(op, shape)[0]:
        return []
    return _next_reads(k, op, shape, nodes)


def _next_reads(k: Kernel, op: Any, shape: tuple[int, ...], nodes: Sequence[Node]) -> list[Hint]:
    """The tiles that the next round will read, unless this loop itself reads what has not been read before: then it
    already reads as fast as it can.
    """
    shift = next_round(k, op.parent_block())
    if shift is None or not k.read_before.issuperset(loads_in(nodes)):
        return []
    return _moved_loads(k, op, shape, shift)


def _pages(k: Kernel, nodes: Sequence[Node]) -> list[Pages]:
    """The tiles that this loop is the first to read; not those that it sees in another shape."""
    shape = nodes[0].shape
    fresh = [load for load in loads_in(nodes) if load not in k.read_before and load.shape == shape]
    hints = (_hint(load.pointer, None, write=False) for load in fresh)
    return [Pages(hint.pointer, hint.size) for hint in hints if hint is not None]


def _moved_loads(k: Kernel, op: Any, shape: tuple[int, ...], shift: Shift) -> list[Hint]:
    """The tiles of a shape that loads of the op's block will read in the next round."""
    loads = [o for o in op.parent_block().ops if o.name == "tt.load" and shape_of(o.results[0].type) == shape]
    return [hint for load in loads if (hint := _of_load(k, load, shift)) is not None]


def _reduced_before(op: Any, shape: tuple[int, ...]) -> bool:
    while (op := op.prev_op) is not None:
        if op.name == "tt.reduce" and shape_of(op.operands[0].type) == shape:
            return True
    return False


def _stores_after(op: Any, shape: tuple[int, ...]) -> tuple[list[Any], bool]:
    """The stores of that shape that follow in the block, and whether no reduction of it does."""
    found, last = [], True
    while (op := op.next_op) is not None:
        if op.name == "tt.reduce" and shape_of(op.operands[0].type) == shape:
            last = False
        if op.name == "tt.store" and shape_of(op.operands[0].type) == shape:
            found.append(op)
    return found, last


def _of_store(k: Kernel, op: Any) -> Hint | None:
    mask = early(k, op.operands[2]) if len(op.operands) > 2 else None
    return _hint(early(k, op.operands[0]), mask, write=True)


def _of_load(k: Kernel, op: Any, shift: Shift) -> Hint | None:
    pointer = k.env.get(op.operands[0])
    if not isinstance(pointer, Node) or pointer.affine is None:
        return None
    base = shift(pointer.affine.base)
    if base is None:
        return None
    moved = AffineNode(pointer.shape, pointer.elem, Affine(base, pointer.affine.terms))
    mask = k.env.get(op.operands[1]) if len(op.operands) > 1 else None
    return _hint(moved, mask, write=False)


def _hint(pointer: Node | Value | None, mask: Node | Value | None, write: bool) -> Hint | None:
    if not isinstance(pointer, Node) or pointer.affine is None or not pointer.affine.linear:
        return None
    size = pointer.elem.pointee.size if pointer.elem.pointee else 1
    told = isinstance(mask, Node) and not mask.reads and not isinstance(mask, Splat)
    return Hint(pointer, mask if told else None, size, write) if size * math.prod(pointer.shape) >= LEAST else None


def early(k: Kernel, value: Any) -> Node | Value | None:
    """What an address is, emitted before its turn if need be; None if that would take more than address arithmetic."""
    if value in k.env:
        return k.env[value]
    wanted: list[Any] = []
    if not _gather(k, value, wanted):
        return None
    k.emit_early(wanted)
    return k.env[value]


def _gather(k: Kernel, value: Any, wanted: list[Any]) -> bool:
    """The operations that `value` still needs, in order."""
    op = value.owner
    if value in k.env:
        return not (isinstance(found := k.env[value], Node) and found.reads)
    if op in wanted:
        return True
    if getattr(op, "name", "") not in ADDRESSES or op.parent_block() is not k.block:
        return False
    if not all(_gather(k, operand, wanted) for operand in op.operands):
        return False
    wanted.append(op)
    return True


# The next round's addresses


def next_round(k: Kernel, block: Any) -> Shift | None:
    """How a scalar changes from this round of the innermost loop (or this program) to the next one."""
    rounds = k.rounds.get(block)
    return None if rounds is None else lambda value: shifted(k.b, value, rounds)


def shifted(b: Builder, value: Value, rounds: Sequence[tuple[Value, Callable[[], Value | None]]]) -> Value | None:
    """`value` computed again with what comes in place of each value of `rounds`; None if it does not depend on any, or
    not only by adding and multiplying.
    """
    memo: dict[Value, Value | None] = {old: following() for old, following in rounds if _depends(value, old)}
    return _recomputed(b, value, memo, list(memo)) if memo else None


def _recomputed(b: Builder, value: Value, memo: dict[Value, Value | None], olds: Sequence[Value]) -> Value | None:
    if value in memo:
        return memo[value]
    if not isinstance(value, instructions.Instruction):
        return value
    if not any(_depends(value, old) for old in olds):
        return value
    memo[value] = None
    operands = [_recomputed(b, operand, memo, olds) for operand in value.operands]
    if value.opname in AGAIN and not any(operand is None for operand in operands):
        memo[value] = AGAIN[value.opname](b, operands, value.type)
    return memo[value]


AGAIN: dict[str, Callable[[Builder, list[Value], Any], Value]] = {
    "add": lambda b, v, t: b.iadd(v[0], v[1]),
    "sub": lambda b, v, t: b.isub(v[0], v[1]),
    "mul": lambda b, v, t: b.imul(v[0], v[1]),
    "sext": lambda b, v, t: b.resize(v[0], t),
    "trunc": lambda b, v, t: b.resize(v[0], t),
    "zext": lambda b, v, t: b.resize(v[0], t, signed=False),
}


def _depends(value: Value, on: Value) -> bool:
    stack, seen = [value], set()
    while stack:
        here = stack.pop()
        if here is on:
            return True
        if here in seen or not isinstance(here, instructions.Instruction):
            continue
        seen.add(here)
        stack.extend(here.operands)
    return False
