# SPDX-License-Identifier: MIT
"""Reduce-scatter: every PE gets the sum, over all PEs, of its part of the input."""

from __future__ import annotations

import math

import torch

from triton_dist import shmem
from triton_dist.kernels.counted import Counted, Plan
from triton_dist.kernels.exchange import check_operand
from triton_dist.kernels.reduction import SCATTER, accumulator_of, reduction_kernel
from triton_dist.kernels.repeated import EACH_TIME


class ReduceScatter(Counted):
    """Sums parts of `shape`. Every PE makes the same calls in the same order; a CUDA graph may hold them."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, *, plan: Plan | None = None) -> None:
        count, pes = math.prod(shape), shmem.n_pes()
        self.shape, self._whole = shape, (pes, *shape)
        super().__init__((pes, *shape), dtype, count, 1, plan)
        self.result = torch.empty(shape, dtype=dtype, device=shmem.device())
        self._launch = self._repeated(reduction_kernel, [
            EACH_TIME, self._stage, EACH_TIME, self._signals, self._numbers, pes * count, count, self.plan.piece,
            self._pieces, SCATTER, accumulator_of(dtype), self.plan.block, pes,
        ])  # fmt: skip

    def __call__(self, parts: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """The sum of everyone's `parts[my_pe]`; `parts` is n_pes x shape. In `out`, or valid until the next call."""
        check_operand("ReduceScatter", "parts", parts, self._whole, self.dtype)
        out = self.result if out is None else out
        check_operand("ReduceScatter", "out", out, self.shape, self.dtype)
        self._launch(parts.contiguous(), out)
        return out
