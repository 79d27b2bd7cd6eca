# SPDX-License-Identifier: MIT
"""GEMM-ReduceScatter by the vendor's own matrix multiplication, with copies beside it.

The rows of other PEs are multiplied first, and are on their way while the next ones are computed. The product of the
own rows is added to what has come in the last step of the multiplication, so that there is no sum of its own.
"""

from __future__ import annotations

import torch

from triton_dist import shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels.collective import Collective, one_at_a_time
from triton_dist.kernels.gemm_reduce_scatter import GemmReduceScatter
from triton_dist.kernels.operands import check_operand
from triton_dist.kernels.overlap import apart
from triton_dist.kernels.side_stream import SideStream
from triton_dist.kernels.stage import Stage


class MatmulReduceScatter(Collective):
    """C = this PE's m rows of the sum over the PEs of A @ B. Every PE makes the same calls in the same order.

    A CUDA graph may hold the calls. PEs that share a GPU get `GemmReduceScatter` instead, for types of two bytes and
    unless `pieces` are given: copies would take from the products what they compute with.

    Args:
        m, n: rows and columns of the result.
        dtype: whatever torch.matmul multiplies on this device.
        pieces: how many products, each copied when it is done, make up the rows of one PE. By default two, or one where
            m is odd. 0: a product is stored into the memory of the other PE at once, and nothing is copied; slower over
            NVLink, but it needs no memory for products.

    Raises:
        ArgumentError: `pieces` does not divide m.
        CollectiveMismatch: the PEs ask for different ones.
    """

    def __init__(self, m: int, n: int, dtype: torch.dtype, *, pieces: int | None = None) -> None:
        shares = pieces is None and dtype.itemsize == 2 and shmem.adapter().shares_device()
        self.m, self.n, self.dtype = m, n, dtype
        self._fused = GemmReduceScatter(m, n, dtype) if shares else None
        if self._fused is not None:
            return
        self._pieces = (1 if m % 2 else 2) if pieces is None else pieces
        if self._pieces < 0 or (self._pieces and m % self._pieces):
            raise ArgumentError(op="MatmulReduceScatter", detail=f"pieces is {pieces}; it must be 0 or divide {m}")
        others = max(1, shmem.n_pes() - 1)
        self._stage = Stage((others, m, n), dtype, others * max(1, self._pieces))
        self._push = SideStream()
        self._products = torch.empty((others if self._pieces else 0, m, n), dtype=dtype, device=shmem.device())
        # Where there are several products of others to sum. A single one is where the own one is added.
        self._sums = others > 1
        total = torch.empty((m, n), dtype=dtype, device=shmem.device()) if self._sums else None
        self._result = self._stage.buffer[0] if total is None else total

    @one_at_a_time
    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply this PE's `a` (n_pes * m x k) by its `b` (k x n), sum over the PEs; valid until the next call.

        Raises:
            ArgumentError: an operand has another shape, type or device, or requires a gradient.
        """
        if self._fused is not None:
            return self._fused(a, b)
        pes, m, me = shmem.n_pes(), self.m, shmem.my_pe()
        check_operand("MatmulReduceScatter", "a", a, (pes * m, None), self.dtype, self._result.device)
        check_operand("MatmulReduceScatter", "b", b, (a.shape[1], self.n), self.dtype, self._result.device)
        # What the last call returned is written from here on.
        a, b = apart(a, self._result), apart(b, self._result)
        if pes == 1:
            return torch.matmul(a, b, out=self._result)
        self._stage.lend()
        for step in range(1, pes):
            target = (me + step) % pes
            self._product(a[target * m : (target + 1) * m], b, step - 1, target)
        result = self._sum(a[me * m : (me + 1) * m], b)
        self._push.join()
        return result

    def _product(self, a: torch.Tensor, b: torch.Tensor, slot: int, target: int) -> None:
        """To slot number `slot` of the PE that it belongs to."""
        there = self._stage.on(target)[slot]
        if not self._pieces:
            self._stage.await_lent(target)
            torch.matmul(a, b, out=there)
            self._stage.tell(target, slot)
            return
        for piece, rows in enumerate(self._rows()):
            product = torch.matmul(a[rows], b, out=self._products[slot, rows])
            with self._push.fork():
                if piece == 0:
                    self._stage.await_lent(target)
                there[rows].copy_(product)
                self._stage.tell(target, slot * self._pieces + piece)

    def _sum(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        pieces, stage = max(1, self._pieces), self._stage
        for slot in range(pieces, len(stage.buffer) * pieces):
            stage.await_told(slot)
        for piece, rows in enumerate(self._rows()):
            # The first pieces of the neighbour are here while its last are still on their way.
            stage.await_told(piece)
            if self._sums:
                torch.sum(stage.buffer[:, rows], 0, out=self._result[rows])
            self._result[rows].addmm_(a[rows], b)
        return self._result

    def _rows(self) -> list[slice]:
        pieces = max(1, self._pieces)
        height = self.m // pieces
        return [slice(piece * height, (piece + 1) * height) for piece in range(pieces)]

    def _release(self) -> None:
        (self._fused or self._stage).free()
