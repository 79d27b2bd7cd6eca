# SPDX-License-Identifier: MIT
"""Where a value comes from: through block arguments, loops, branches and calls, back to what made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .attrs import get

MOVES = frozenset({
    "tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.bitcast", "tt.unsplat",
    "tt.split", "tt.gather",
})  # fmt: skip
"""The first operand is a pointer, and so is the result."""
CHOICES = {"arith.select": (1, 2), "tt.join": (0, 1), "tt.cat": (0, 1)}
"""Operations whose result is one of these operands, or holds them all."""


def copied_from(value: Any, functions: Mapping[str, Any]) -> list[Any]:
    """The values that control flow may have put here; none if an operation computes it."""
    owner = value.owner
    if not hasattr(owner, "ops"):
        return _into_result(owner, value.index, functions)
    parent = owner.parent_op()
    if parent is None:
        return []
    if parent.name == "tt.func":
        return _into_function(owner, parent, value.index)
    return _into_region(owner, parent, value.index)


def _yielded(region: Any, index: int) -> Any:
    return region.blocks[0].last_op.operands[index]


def _into_result(op: Any, index: int, functions: Mapping[str, Any]) -> list[Any]:
    if op.name == "scf.for":
        return [op.operands[3 + index], _yielded(op.regions[0], index)]
    if op.name == "scf.if":
        return [_yielded(r, index) for r in op.regions if r.blocks]
    if op.name == "scf.while":
        return [_yielded(op.regions[0], 1 + index)]
    if op.name == "tt.call":
        callee = functions.get(get(op, "callee").root_reference.data)
        returns = [] if callee is None else [o for o in callee.walk() if o.name == "tt.return"]
        return [o.operands[index] for o in returns]
    return []


def _into_region(block: Any, parent: Any, index: int) -> list[Any]:
    if parent.name == "scf.for":
        return [] if index == 0 else [parent.operands[2 + index], _yielded(parent.regions[0], index - 1)]
    if parent.name == "scf.while":
        before, after = parent.regions
        if block is before.blocks[0]:
            return [parent.operands[index], _yielded(after, index)]
        return [_yielded(before, 1 + index)]
    return []


def _into_function(block: Any, function: Any, index: int) -> list[Any]:
    if block is function.body.blocks[0]:
        module = function.parent_op()
        name = function.sym_name.data
        calls = [] if module is None else [o for o in module.walk() if o.name == "tt.call"]
        return [o.operands[index] for o in calls if get(o, "callee").root_reference.data == name]
    found = []
    for op in (b.last_op for b in function.body.blocks):
        start = 1 if op.name == "cf.cond_br" else 0
        for successor in op.successors:
            if successor is block:
                found.append(op.operands[start + index])
            start += len(successor.args)
    return found


def argument_of(pointer: Any, kernel: Any, functions: Mapping[str, Any]) -> int | None:
    """Which argument of the kernel a pointer was made of; None if that is not one."""
    entry, found, seen, stack = kernel.body.blocks[0], set[int](), set[Any](), [pointer]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.owner is entry:
            found.add(value.index)
            continue
        before = list(_pointers_under(value)) or copied_from(value, functions)
        if not before:
            return None
        stack.extend(before)
    return found.pop() if len(found) == 1 else None


def _pointers_under(value: Any) -> Iterable[Any]:
    op = value.owner
    name = getattr(op, "name", "")
    if name in MOVES:
        return [op.operands[0]]
    return [op.operands[i] for i in CHOICES.get(name, ())]
