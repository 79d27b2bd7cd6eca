# SPDX-License-Identifier: MIT
"""Loops of the user's own that wait for memory to change: they must yield, and see the deadline.

Such a loop goes on because of what it read: its condition comes from a load or an atomic inside it. As long as what it
compares stays the same from round to round, it waits; when that changes, its patience begins anew. So a loop that takes
work from a queue, or follows a list, is not slowed down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import llvmlite.ir as ir

from .attrs import get
from .build import Value, i64, known
from .ltypes import I32, I64, elem_of, shape_of
from .origins import copied_from

if TYPE_CHECKING:
    from .kernel import Kernel

POLLS = frozenset({"tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.load"})
MASK = {"tt.atomic_rmw": 2, "tt.atomic_cas": 3, "tt.atomic_load": 1, "tt.load": 1}
"""Which operand is the mask. (A compare-and-swap has none.)"""
WORK = frozenset({"tt.store", "tt.dot", "tt.dot_scaled", "tt.atomic_store"})
"""A loop with one of these does something else meanwhile."""
LOGIC = frozenset({"arith.andi", "arith.ori", "arith.xori", "arith.extui", "arith.trunci"})
COMPARE = frozenset({"arith.cmpi", "arith.cmpf"})
FRESH = ir.Constant(ir.ArrayType(I64, 2), [0, 0])


@dataclass
class Wait:
    """A polling loop being emitted."""

    loop: Any
    compared: list[Any]
    patience: Value
    """What the runtime's back-off remembers between two rounds: {rounds, start time}."""
    seen: Value
    """What was compared in the last round."""

    def relax(self, k: Kernel) -> None:
        """At the end of a round that was not the last one."""
        from .extern import call

        self._begin_anew_after_a_change(k)
        call(k, self.loop, "td_relax", I32, [self.patience, *_polled(k, self.loop)])
        k.check_abort()

    def _begin_anew_after_a_change(self, k: Kernel) -> None:
        b = k.b
        seen: Value = i64(0)
        for value in self.compared:
            seen = b.add(b.mul(seen, i64(31)), _bits(k, k.scalar(value)))
        changed = b.icmp_signed("!=", seen, b.load(self.seen, typ=I64))
        b.store(seen, self.seen)
        with b.if_then(changed):
            b.store(FRESH, self.patience)


def _bits(k: Kernel, value: Value) -> Value:
    if isinstance(value.type, ir.IntType):
        return k.b.resize(value, I64)
    if isinstance(value.type, ir.DoubleType):
        return k.b.bitcast(value, I64)
    return k.b.resize(k.b.bitcast(value, ir.IntType(32 if isinstance(value.type, ir.FloatType) else 16)), I64)


def wait_of(k: Kernel, op: Any) -> Wait | None:
    """What an scf.while waits with; None if it does not wait for memory."""
    condition = op.regions[0].blocks[0].last_op.operands[0]
    compared: list[Any] = []
    polls: list[Any] = []
    for values in _comparisons(op, condition):
        behind = [poll for value in values for poll in _polls_behind(k, op, value)]
        if behind:
            compared += values
            polls += behind
    works = any(inner.name in WORK for inner in op.walk())
    if not polls or (works and not any(_meant_to_change(poll) for poll in polls)):
        return None
    k.blocking = True
    wait = Wait(op, compared, k.local(FRESH.type, "patience"), k.local(I64, "seen"))
    k.b.store(FRESH, wait.patience)
    k.b.store(i64(0), wait.seen)
    return wait


def _meant_to_change(poll: Any) -> bool:
    """A read of memory that others write meanwhile: not a plain load."""
    if poll.name != "tt.load":
        return True
    volatile = get(poll, "isVolatile")
    return volatile is not None and bool(getattr(getattr(volatile, "value", volatile), "data", True))


def _comparisons(op: Any, condition: Any) -> Iterator[list[Any]]:
    """What each comparison in a loop's condition looks at."""
    block = op.regions[0].blocks[0]
    owner = condition.owner
    name = getattr(owner, "name", "")
    if name in LOGIC and owner.parent_block() is block:
        for value in owner.operands:
            yield from _comparisons(op, value)
    elif name in COMPARE and owner.parent_block() is block:
        yield list(owner.operands)
    else:
        yield [condition]


def _polls_behind(k: Kernel, loop: Any, value: Any) -> Iterator[Any]:
    """Loads and atomics of the loop that a value depends on."""
    home = _function_of(loop)
    seen, stack = set[Any](), [value]
    while stack:
        value = stack.pop()
        if value in seen or not _inside(loop, home, value):
            continue
        seen.add(value)
        owner = value.owner
        if getattr(owner, "name", "") in POLLS:
            yield owner
        if not hasattr(owner, "ops"):
            stack.extend(owner.operands)
        stack.extend(copied_from(value, k.functions))


def _function_of(op: Any) -> Any:
    while op is not None and op.name != "tt.func":
        op = op.parent_op()
    return op


def _inside(loop: Any, home: Any, value: Any) -> bool:
    """Made in the loop, or in a function that it calls."""
    owner = value.owner
    at = owner.parent_op() if hasattr(owner, "ops") else owner
    while at is not None and at is not loop and at.name != "tt.func":
        at = at.parent_op()
    return owner is not loop if at is loop else at is not home


def _polled(k: Kernel, op: Any) -> list[Value]:
    """Address, size and value seen of the one word that a polling loop looks at; zeros if that is not so simple."""
    polls = [inner for inner in op.walk() if inner.name in POLLS]
    if len(polls) == 1 and polls[0].parent_block() is op.regions[0].blocks[0]:
        result = polls[0].results[0]
        elem, mask = elem_of(result.type), k.optional(polls[0], MASK[polls[0].name])
        number = shape_of(result.type) is None and elem.kind == "int" and elem.bits >= 8
        if number and (mask is None or known(mask) == 1):
            return [k.scalar(polls[0].operands[0]), i64(elem.size), k.b.resize(k.scalar(result), I64)]
    return [i64(0)] * 3
