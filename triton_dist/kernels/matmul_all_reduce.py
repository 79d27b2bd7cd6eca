# SPDX-License-Identifier: MIT
"""GEMM-AllReduce by the vendor's own matrix multiplication and one kernel that sums: best for few rows."""

from __future__ import annotations

import torch

from triton_dist import shmem
from triton_dist.kernels.all_reduce import AllReduce
from triton_dist.kernels.collective import Collective, one_at_a_time
from triton_dist.kernels.operands import check_operand


class MatmulAllReduce(Collective):
    """C = the sum of A @ B over all PEs, for results of m x n. All PEs get the same bits.

    Every PE makes the same calls in the same order; a CUDA graph may hold them.

    Args:
        m, n: rows and columns of the result; m * n below 2^31.
        dtype: what torch.matmul multiplies on this device and `AllReduce` sums.

    Raises:
        ArgumentError: the type cannot be summed.
        CollectiveMismatch: the PEs ask for different ones.
    """

    def __init__(self, m: int, n: int, dtype: torch.dtype) -> None:
        self.m, self.n, self.dtype = m, n, dtype
        self._product = torch.empty((m, n), dtype=dtype, device=shmem.device())
        self._all_reduce = AllReduce((m, n), dtype)

    @one_at_a_time
    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply this PE's `a` (m x k) by its `b` (k x n) and sum over the PEs; valid until the next call.

        Raises:
            ArgumentError: an operand has another shape, type or device, or requires a gradient.
        """
        check_operand("MatmulAllReduce", "a", a, (self.m, None), self.dtype, self._product.device)
        check_operand("MatmulAllReduce", "b", b, (a.shape[1], self.n), self.dtype, self._product.device)
        return self._all_reduce(torch.matmul(a, b, out=self._product))

    def _release(self) -> None:
        self._all_reduce.free()
