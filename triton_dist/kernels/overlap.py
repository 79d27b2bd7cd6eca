# SPDX-License-Identifier: MIT
"""Tensors that share memory, or do not have in it what they stand for."""

from __future__ import annotations

import torch


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether they may: gaps between the elements of one count as its own."""
    begin, end = _extent(one)
    start, stop = _extent(other)
    return begin < stop and start < end


def laid_out(operand: torch.Tensor) -> torch.Tensor:
    """`operand` as kernels read it: row by row, with the signs that torch may leave for later (`torch._neg_view`)."""
    return operand.resolve_neg().contiguous()


def apart(operand: torch.Tensor, *written: torch.Tensor) -> torch.Tensor:
    """`operand`, or a copy where it would change under those who read it."""
    return operand.clone() if any(overlap(operand, other) for other in written) else operand


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    begin = tensor.data_ptr()
    if tensor.is_contiguous() or not tensor.numel():
        return begin, begin + tensor.nbytes
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return begin, begin + (last + 1) * tensor.itemsize
