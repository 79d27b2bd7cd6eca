# SPDX-License-Identifier: MIT
"""Analysis of a function before code is emitted: which tensors are worth computing once into memory."""

from __future__ import annotations

import math
from typing import Any

from .elementwise import COST
from .ltypes import shape_of

EXPENSIVE = 5
"""Operations an element above which a value with several consumers is materialised."""

FREE = frozenset({
    "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape", "tt.make_range", "tt.addptr", "tt.unsplat",
    "arith.constant",
})  # fmt: skip
LOOPS = ("scf.for", "scf.while")


def is_tensor(value: Any) -> bool:
    return value.type.name == "tensor"


def lazy(op: Any) -> bool:
    """Ops whose tensor results are functions of the index, evaluated by their consumers."""
    if op.name == "tt.load":
        return bool(op.results) and is_tensor(op.results[0])
    return op.name in FREE or op.name in COST or op.name in ("tt.join", "tt.split", "tt.gather")


class Uses:
    """Costs forward, consumers backward; `once` holds the values to materialise where they are defined."""

    def __init__(self, function: Any) -> None:
        self.cost: dict[Any, int] = {}
        self.once: set[Any] = set()
        self._roots: dict[Any, set[Any]] = {}
        ops = list(function.walk())
        for op in ops:
            self._forward(op)
        for op in reversed(ops):
            self._backward(op)

    def _forward(self, op: Any) -> None:
        # Scalars are computed once, whatever reads them.
        if not op.results or not lazy(op) or not is_tensor(op.results[0]):
            return
        below = sum(self.cost.get(v, 0) for v in op.operands)
        own = 4 if op.name == "tt.load" else COST.get(op.name, 0)
        if op.name in ("arith.addi", "arith.subi", "arith.muli", "arith.extsi", "arith.cmpi"):
            own = 1
        for result in op.results:
            self.cost[result] = below + own

    def _backward(self, op: Any) -> None:
        if not lazy(op):
            return
        for result in op.results:
            if not is_tensor(result):
                continue
            roots = self._consumers(op, result)
            if self._worth(op, result, roots):
                self.once.add(result)
                roots = {op}
            self._roots[result] = roots

    def _consumers(self, op: Any, result: Any) -> set[Any]:
        roots: set[Any] = set()
        for use in result.uses:
            user = use.operation
            looped = self._deeper(op, user)
            if lazy(user) and user.results:
                for r in user.results:
                    roots |= self._roots.get(r, {user})
            else:
                roots.add(user)
            if looped:
                roots.add(("loop", looped))
        return roots

    def _worth(self, op: Any, result: Any, roots: set[Any]) -> bool:
        cost = self.cost.get(result, 0)
        if len(roots) >= 2 and cost >= EXPENSIVE - 1:
            return True
        repeats = any(u.operation.name == "tt.broadcast" for u in result.uses)
        return repeats and cost >= 3 and op.name not in FREE

    def rides(self, value: Any) -> bool:
        """A value to be kept whose first consumer is a reduce in the same block: that loop can write it on the way."""
        block = value.owner.parent_block()
        users = {u.operation for u in value.uses}
        op = value.owner.next_op
        while op is not None and op not in users:
            if has_effect(op) or op.regions:
                return False
            op = op.next_op
        return op is not None and op.name == "tt.reduce" and op.parent_block() is block

    def _deeper(self, op: Any, user: Any) -> Any:
        """The loop around `user` that does not hold `op`, if any."""
        home = op.parent_block()
        at = user
        found = None
        while at is not None and at.parent_block() is not home:
            at = at.parent_op()
            if at is not None and at.name in LOOPS:
                found = at
        return found if at is not None else None


STREAM = 24
"""Operations an element, a load counting four, below which memory decides how fast a kernel is."""


def streams(function: Any, cost: dict[Any, int]) -> bool:
    """A kernel that only copies tensors through cheap elementwise operations."""
    for op in function.walk():
        if not lazy(op) and op.name not in ("tt.func", "tt.store", "tt.return", "tt.get_program_id", "tt.assert"):
            return False
    return max(cost.values(), default=0) <= STREAM


def light(function: Any, cost: dict[Any, int]) -> bool:
    """A kernel that streams, or reduces what it reads with nothing dearer than a division on the way."""
    if streams(function, cost):
        return True
    for op in function.walk():
        if COST.get(op.name, 0) > COST["arith.divf"] or not (lazy(op) or op.name in LIGHT):
            return False
    return max(cost.values(), default=0) <= STREAM


LIGHT = frozenset({
    "tt.func", "tt.store", "tt.return", "tt.get_program_id", "tt.get_num_programs", "tt.assert", "tt.reduce",
    "tt.reduce.return", "scf.for", "scf.if", "scf.yield",
})  # fmt: skip


def weight(function: Any) -> int | None:
    """Elements that a program's tensor operations make in all; None where a loop, a dot, a call or a wait decides."""
    total = 0
    for op in function.walk():
        if op.name in NO_WEIGHT or (op.regions and op.name not in ("tt.func", "tt.reduce", "scf.if")):
            return None
        for result in op.results:
            total += math.prod(shape) if (shape := shape_of(result.type)) is not None else 0
    return total


NO_WEIGHT = frozenset({
    "tt.dot", "tt.dot_scaled", "tt.scan", "tt.call", "tt.extern_elementwise", "tt.atomic_poll", "hivm.hir.custom",
    "cf.br", "cf.cond_br", "tt.elementwise_inline_asm", "tt.map_elementwise",
})  # fmt: skip


EFFECTS = frozenset({
    "tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_poll", "tt.atomic_store", "tt.call", "tt.assert",
    "tt.print",
    "tt.descriptor_store", "tt.descriptor_scatter", "tt.descriptor_reduce",
})  # fmt: skip


def has_effect(op: Any) -> bool:
    """Whether the op, or one inside its regions, writes memory or waits."""
    for inner in op.walk():
        if inner.name in EFFECTS:
            return True
        if inner.name == "tt.extern_elementwise" and not _pure(inner):
            return True
        if inner.name == "hivm.hir.custom" and "no_side_effect" not in inner.properties:
            return True
        if inner.name == "tt.elementwise_inline_asm" and not _pure(inner):
            return True
    return False


def _pure(op: Any) -> bool:
    from .attrs import get

    attr = get(op, "pure")
    return attr is not None and bool(getattr(getattr(attr, "value", attr), "data", True))
