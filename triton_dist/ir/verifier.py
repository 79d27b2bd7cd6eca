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
    if is_flat(op) and is_verified_alone(type(op)):
        _verify_form(op)
        return
    # With regions, or where it stands matters.
    for region in op.regions:
        for block in region.blocks:
            _verify_block(block)
    op.verify(verify_nested_ops=False)


def _verify_block(block: Block) -> None:
    last = block.last_op
    if last is None:
        block.verify()
    for op in block.ops:
        if op is last and not op.regions:
            # Where it stands matters.
            op.verify()
        else:
            verify(op)


def _verify_form(op: Operation) -> None:
    form = Form(op)
    if _valid.get(form) is None or any(isinstance(value, ErasedSSAValue) for value in op.operands):
        op.verify()
        _valid.put(form, True)
