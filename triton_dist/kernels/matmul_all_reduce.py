# SPDX-License-Identifier: MIT
"""GEMM-AllReduce by the vendor's own matrix multiplication. How the products are summed, the size decides."""

from __future__ import annotations

from typing import Literal

import torch

from triton_dist import shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels.all_reduce import AllReduce
from triton_dist.kernels.exchange import Collective, check_operand
from triton_dist.kernels.matmul_reduce_scatter import MatmulReduceScatter
from triton_dist.kernels.side_stream import SideStream
from triton_dist.kernels.stage import Stage

Way = Literal["kernel", "copies"]
COPIES_BYTES = 8 << 20
"""Of a PE's part of the result: above this a multiplication by parts fills the GPU, and hides the copies."""


class MatmulAllReduce(Collective):
    """C = the sum of A @ B over all PEs, for results of m x n. Every PE makes the same calls in the same order.

    `way`, chosen by size unless given: "kernel", one multiplication, then the kernel of `AllReduce`; or "copies", a
    `MatmulReduceScatter` whose result is copied to all.
    """

    def __init__(self, m: int, n: int, dtype: torch.dtype, *, way: Way | None = None) -> None:
        self.m, self.n, self.dtype, pes = m, n, dtype, shmem.n_pes()
        parts = m % pes == 0
        if way == "copies" and not parts:
            detail = f"m is {m}; for copies it must be a multiple of the number of PEs, {pes}"
            raise ArgumentError(op="MatmulAllReduce", detail=detail)
        large = parts and pes > 1 and m * n * dtype.itemsize >= COPIES_BYTES * pes
        self.way: Way = way or ("copies" if large else "kernel")
        made = _Copies(m, n, dtype) if self.way == "copies" else _Kernel(m, n, dtype)
        self._made: _Copies | _Kernel = made

    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply this PE's `a` (m x k) by its `b` (k x n) and sum over the PEs; valid until the next call."""
        check_operand("MatmulAllReduce", "a", a, (self.m, None), self.dtype)
        check_operand("MatmulAllReduce", "b", b, (a.shape[1], self.n), self.dtype)
        return self._made(a, b)

    def free(self) -> None:
        self._made.free()


class _Kernel:
    def __init__(self, m: int, n: int, dtype: torch.dtype) -> None:
        self._product = torch.empty((m, n), dtype=dtype, device=shmem.device())
        self._all_reduce = AllReduce((m, n), dtype)

    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self._all_reduce(torch.matmul(a, b, out=self._product))

    def free(self) -> None:
        self._all_reduce.free()


class _Copies:
    def __init__(self, m: int, n: int, dtype: torch.dtype) -> None:
        pes = shmem.n_pes()
        self._scatter = MatmulReduceScatter(m // pes, n, dtype, pieces=1)
        self._whole = Stage((pes, m // pes, n), dtype, pes)
        self._keep = SideStream()

    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        pes, me, whole = shmem.n_pes(), shmem.my_pe(), self._whole
        part = self._scatter(a, b)
        with self._keep.fork():
            whole.buffer[me].copy_(part)
        # Others need not lend: that they sent their products says that they do not need the last result any more.
        for step in range(1, pes):
            peer = (me + step) % pes
            whole.on(peer)[me].copy_(part)
            whole.tell(peer, me)
        for step in range(1, pes):
            whole.await_told((me + step) % pes)
        self._keep.join()
        return whole.buffer.view(a.shape[0], -1)

    def free(self) -> None:
        self._whole.free()
        self._scatter.free()
