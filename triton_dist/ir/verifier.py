# SPDX-License-Identifier: MIT
"""The verifier: xDSL's, which is not asked again about a form that it has found valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import ErasedSSAValue

from triton_dist.ir.seen import Form, Forms, is_flat, is_verified_alone

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation

_valid: Forms[bool] = Forms()


def verify(op: Operation) -> None:
    """As `op.verify()`."""
    for region in op.regions:
        for block in region.blocks:
            _verify_block(block)
    op.verify(verify_nested_ops=False)


def _verify_block(block: Block) -> None:
    last = block.last_op
    if last is None:
        block.verify()
    for op in block.ops:
        if op is last or not is_flat(op) or not is_verified_alone(type(op)):
            verify(op)
        elif not _is_valid(form := Form(op)) or _uses_what_is_erased(op):
            op.verify()
            _valid.put(form, True)


def _is_valid(form: Form) -> bool:
    return _valid.get(form) is not None


def _uses_what_is_erased(op: Operation) -> bool:
    return any(isinstance(value, ErasedSSAValue) for value in op.operands)
