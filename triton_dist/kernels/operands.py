# SPDX-License-Identifier: MIT
"""What a call is given: a tensor that the operation's kernels can read, all of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.autograd import forward_ad

from triton_dist.errors import ArgumentError


def check_operand(
    op: str,
    name: str,
    operand: torch.Tensor,
    shape: Sequence[int | None],
    dtype: torch.dtype | None,
    device: torch.device,
) -> None:
    """Raise unless `operand` is an ordinary tensor of this shape and type, on this device; None stands for any.

    One that requires a gradient is refused where torch records: no operation here can be derived.

    An operation looks at all that its launches would refuse before it tells the other PEs of a call: they could not
    tell the next call from one that was begun and given up.
    """
    if not isinstance(operand, torch.Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(op=op, detail=f"{name} is a {type(operand).__name__}; it must be a torch.Tensor")
    if operand.is_nested:
        raise ArgumentError(op=op, detail=f"{name} is nested; it must be dense: {name}.to_padded_tensor(0)")
    if operand.layout is not torch.strided:
        raise ArgumentError(op=op, detail=f"{name} is {operand.layout}; it must be dense: {name}.to_dense()")
    if operand.requires_grad and torch.is_grad_enabled():
        detail = f"{name} requires a gradient, and none comes back: give {name}.detach(), or call under torch.no_grad()"
        raise ArgumentError(op=op, detail=detail)
    if operand.device != device:
        raise ArgumentError(op=op, detail=f"{name} is on {operand.device}; this PE is on {device}")
    check_content(op, name, operand)
    found = operand.shape
    if found == shape and operand.dtype == dtype:
        return
    fits = len(found) == len(shape) and all(want in (None, have) for want, have in zip(shape, found, strict=True))
    if fits and dtype in (None, operand.dtype):
        return
    wanted = " x ".join("any" if want is None else str(want) for want in shape)
    have = " x ".join(map(str, found))
    raise ArgumentError(op=op, detail=f"{name} is {have} {operand.dtype}; it must be {wanted} {dtype or ''}".rstrip())


def check_content(op: str, name: str, operand: torch.Tensor) -> None:
    """Raise where a kernel can read nothing, or not all; torch itself does for wrappers, of vmap say."""
    if not operand.data_ptr() and operand.numel():
        detail = f"{name} is a {type(operand).__name__} without memory; keep the call out of what is traced"
        raise ArgumentError(op=op, detail=detail)
    if forward_ad.unpack_dual(operand).tangent is not None:
        detail = f"{name} has a tangent, and none comes back: give forward_ad.unpack_dual({name}).primal"
        raise ArgumentError(op=op, detail=detail)
