# SPDX-License-Identifier: MIT
"""AllGather-GEMM by the vendor's own matrix multiplication, with copies beside it.

`AllGatherGemm` is one kernel. This one is several launches: each PE copies its shard to the others on a second stream,
by copy engines where the hardware has them, and multiplies what it has meanwhile. Best for large matrices.
"""

from __future__ import annotations

import torch

from triton_dist import shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels.collective import Collective, one_at_a_time
from triton_dist.kernels.operands import check_operand
from triton_dist.kernels.overlap import apart
from triton_dist.kernels.side_stream import SideStream
from triton_dist.kernels.stage import Stage


class AllGatherMatmul(Collective):
    """C = all_gather(A) @ B for shards A of m x k. Every PE makes the same calls in the same order.

    A CUDA graph may hold the calls. The result is the caller's own.

    Args:
        m, k: rows and columns of a shard.
        dtype: whatever torch.matmul multiplies on this device.
        first: how many rows of the own shard are multiplied before those of others are needed; by default all. On two
            PEs the rest of it can share a multiplication with the other shard, which may leave fewer tiles over.

    Raises:
        ArgumentError: `first` is out of range.
        CollectiveMismatch: the PEs ask for different ones.
    """

    def __init__(self, m: int, k: int, dtype: torch.dtype, *, first: int | None = None) -> None:
        pes = shmem.n_pes()
        self.m, self.k, self.dtype = m, k, dtype
        self.first = m if first is None else first
        if not min(1, m) <= self.first <= m or (self.first < m and pes != 2):
            wanted = f"from 1 to {m}" if pes == 2 else f"{m}, or left out: less is for two PEs"
            detail = f"first is {self.first}; it must be {wanted}"
            raise ArgumentError(op="AllGatherMatmul", detail=detail)
        self._stage = Stage((pes, m, k), dtype, pes)
        self._push, self._keep = SideStream(), SideStream()

    @one_at_a_time
    def __call__(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """Multiply all PEs' `a` (each m x k, PE by PE) by this PE's `b` (k x n): n_pes * m x n, in `out` if given.

        Raises:
            ArgumentError: an operand or `out` has another shape, type or device, or requires a gradient.
        """
        check_operand("AllGatherMatmul", "a", a, (self.m, self.k), self.dtype, self._stage.buffer.device)
        check_operand("AllGatherMatmul", "b", b, (self.k, None), self.dtype, self._stage.buffer.device)
        pes, me, n = shmem.n_pes(), shmem.my_pe(), b.shape[1]
        c = torch.empty((pes * self.m, n), dtype=a.dtype, device=a.device) if out is None else out
        check_operand("AllGatherMatmul", "out", c, (pes * self.m, n), self.dtype, self._stage.buffer.device)
        if c.numel() and any(stride == 0 and size > 1 for size, stride in zip(c.shape, c.stride(), strict=True)):
            raise ArgumentError(op="AllGatherMatmul", detail="out is expanded: several of its elements are one")
        a, b = apart(a, c), apart(b, c)
        self._stage.lend()
        with self._push.fork():
            for step in range(1, pes):  # first to the one that needs it first
                peer = (me - step) % pes
                self._stage.await_lent(peer)
                self._stage.on(peer)[me].copy_(a)
                self._stage.tell(peer, me)
        if self.first < self.m:
            with self._keep.fork():
                self._stage.buffer[me].copy_(a)
        self._multiply(a, b, c)
        self._push.join()
        return c

    def _multiply(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        me, pes, m = shmem.my_pe(), shmem.n_pes(), self.m
        # The own rows that come first are the outermost ones: those that remain are next to the other shard.
        begin = 0 if me == 0 else m - self.first
        torch.matmul(a[begin : begin + self.first], b, out=c[me * m + begin : me * m + begin + self.first])
        gathered = self._stage.buffer.view(pes * m, self.k)
        for step in range(1, pes):
            source = (me + step) % pes
            self._stage.await_told(source)
            rows = slice(source * m, (source + 1) * m)
            if self.first < m:
                self._keep.join()
                rows = slice(self.first, 2 * m) if me == 0 else slice(0, 2 * m - self.first)
            torch.matmul(gathered[rows], b, out=c[rows])

    def _release(self) -> None:
        self._stage.free()
