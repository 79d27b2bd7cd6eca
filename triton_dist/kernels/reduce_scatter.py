# SPDX-License-Identifier: MIT
# Launching takes more arguments than the kernel has.
# pyright: reportCallIssue=false
"""Reduce-scatter: every PE gets the sum, over all PEs, of its part of the input."""

from __future__ import annotations

import math

import torch

from triton_dist import shmem
from triton_dist.kernels.counted import Counted, Plan
from triton_dist.kernels.exchange import check_operand
from triton_dist.kernels.reduction import SCATTER, accumulator_of, reduction_kernel


class ReduceScatter(Counted):
    """Sums parts of `shape`. Every PE makes the same calls in the same order; a CUDA graph may hold them."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, *, plan: Plan | None = None) -> None:
        self.shape, self._count = shape, math.prod(shape)
        super().__init__((shmem.n_pes(), *shape), dtype, self._count, 1, plan)
        self.result = torch.empty(shape, dtype=dtype, device=shmem.device())

    def __call__(self, parts: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """The sum of everyone's `parts[my_pe]`; `parts` is n_pes x shape. In `out`, or valid until the next call."""
        pes = shmem.n_pes()
        check_operand("ReduceScatter", "parts", parts, (pes, *self.shape), self.dtype)
        out = self.result if out is None else out
        check_operand("ReduceScatter", "out", out, self.shape, self.dtype)
        plan, count = self.plan, self._count
        reduction_kernel[(self._programs,)](
            parts.contiguous(), self._stage, out, self._signals, self._numbers, pes * count, count, plan.piece,
            self._pieces, KIND=SCATTER, ACCUMULATOR=accumulator_of(self.dtype), BLOCK=plan.block, PES=pes,
            num_warps=plan.warps,
        )  # fmt: skip
        return out
