# SPDX-License-Identifier: MIT
"""Pointers that a branch chooses become addresses: triton-ascend 3.2 takes no pointer out of `scf.if` or a select."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from triton_dist.ir.dialects.scf import IfOp
from triton_dist.ir.dialects.tt import IntToPtrOp, PointerType, PtrToIntOp


def choose_addresses(module: ModuleOp) -> None:
    """Rewrite each `scf.if` and `arith.select` of scalar pointers; inner ones first."""
    for op in reversed(list(module.walk())):
        if isinstance(op, IfOp) and any(isinstance(type, PointerType) for type in op.result_types):
            _rewrite_if(op)
        elif op.name == "arith.select" and isinstance(op.results[0].type, PointerType):
            _rewrite_select(op)


def _rewrite_if(op: IfOp) -> None:
    types = list(op.result_types)
    positions = [i for i, type in enumerate(types) if isinstance(type, PointerType)]
    for region in op.regions:
        _yield_addresses(region, positions)
    regions = [op.detach_region(region) for region in list(op.regions)]
    new = IfOp.create(
        operands=op.operands,
        result_types=[i64 if i in positions else type for i, type in enumerate(types)],
        attributes=op.attributes,
        regions=regions,
        location=op.location,
    )
    Rewriter.insert_op(new, InsertPoint.before(op))
    values = _pointers_again(op, new.results)
    Rewriter.replace_op(op, [], values)


def _yield_addresses(region: Region, positions: Sequence[int]) -> None:
    terminator = region.blocks[-1].last_op
    assert terminator is not None
    for position in positions:
        terminator.operands[position] = _address(terminator, terminator.operands[position])


def _rewrite_select(op: Operation) -> None:
    condition, yes, no = op.operands
    operands = (condition, _address(op, yes), _address(op, no))
    new = type(op).create(operands=operands, result_types=(i64,), location=op.location)
    Rewriter.insert_op(new, InsertPoint.before(op))
    Rewriter.replace_op(op, [], _pointers_again(op, new.results))


def _address(before: Operation, pointer: SSAValue) -> SSAValue:
    cast = PtrToIntOp.create(operands=(pointer,), result_types=(i64,), location=before.location)
    Rewriter.insert_op(cast, InsertPoint.before(before))
    return cast.results[0]


def _pointers_again(old: Operation, values: Sequence[SSAValue]) -> list[SSAValue]:
    """The new results in the types of the old ones; the casts stand before `old`."""
    found: list[SSAValue] = []
    for result, value in zip(old.results, values, strict=True):
        if isinstance(result.type, PointerType):
            cast = IntToPtrOp.create(operands=(value,), result_types=(result.type,), location=old.location)
            Rewriter.insert_op(cast, InsertPoint.before(old))
            value = cast.results[0]
        found.append(value)
    return found
