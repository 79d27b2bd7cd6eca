# SPDX-License-Identifier: MIT
"""Tensors that share memory."""

from __future__ import annotations

import torch


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether they may: gaps between the elements of one count as its own."""
    begin, end = _extent(one)
    start, stop = _extent(other)
    return begin < stop and start < end


def apart(operand: torch.Tensor, *written: torch.Tensor) -> torch.Tensor:
    """`operand`, or a copy where it would change under those who read it."""
    return operand.clone() if any(overlap(operand, other) for other in written) else operand


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    begin = tensor.data_ptr()
    if tensor.is_contiguous() or not tensor.numel():
        return begin, begin + tensor.nbytes
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return begin, begin + (last + 1) * tensor.itemsize
