# SPDX-License-Identifier: MIT
"""GEMM-ReduceScatter by the vendor's own matrix multiplication, which writes into the memory of others.

The rows of other PEs are multiplied first: the product's last step stores them where they are summed. The product of
the own rows is added to what has come, in its last step too. So nothing is copied, and there is no sum of its own.
"""

from __future__ import annotations

import torch

from triton_dist import shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels.exchange import Collective, Exchange, Turn, check_operand
from triton_dist.kernels.side_stream import SideStream


class MatmulReduceScatter(Collective):
    """C = this PE's m rows of the sum over the PEs of A @ B. Contract of the calls: see `Exchange`.

    `pieces`: 0 to store products into the memory of others; else each is stored here and copied, in so many pieces.
    """

    def __init__(self, m: int, n: int, dtype: torch.dtype, *, pieces: int = 0) -> None:
        if pieces < 0 or (pieces and m % pieces):
            raise ArgumentError(op="MatmulReduceScatter", detail=f"pieces is {pieces}; it must be 0 or divide {m}")
        self.m, self.n, self.dtype = m, n, dtype
        self._pieces, others = pieces, max(1, shmem.n_pes() - 1)
        self._exchange = Exchange((others, m, n), dtype, others * max(1, pieces))
        self._peers = self._exchange.on_peers()
        self._push = SideStream()
        self._products = torch.empty((others if pieces else 0, m, n), dtype=dtype, device=shmem.device())
        # Where there are several products of others to sum. A single one is where the own one is added.
        self._total = torch.empty((m if others > 1 else 0, n), dtype=dtype, device=shmem.device())

    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply this PE's `a` (n_pes * m x k) by its `b` (k x n), sum over the PEs; valid until the next call."""
        pes, m, me = shmem.n_pes(), self.m, shmem.my_pe()
        check_operand("MatmulReduceScatter", "a", a, (pes * m, None), self.dtype)
        check_operand("MatmulReduceScatter", "b", b, (a.shape[1], self.n), self.dtype)
        turn = self._exchange.turn()
        if pes == 1:
            return torch.matmul(a, b, out=turn.buffer[0])
        for step in range(1, pes):
            target = (me + step) % pes
            self._product(turn, a[target * m : (target + 1) * m], b, step - 1, target)
        result = self._sum(turn, a[me * m : (me + 1) * m], b)
        self._push.join()
        return result

    def _product(self, turn: Turn, a: torch.Tensor, b: torch.Tensor, slot: int, target: int) -> None:
        """To slot number `slot` of the PE that it belongs to."""
        there = self._peers[turn.half][target][slot]
        if not self._pieces:
            torch.matmul(a, b, out=there)
            shmem.signal(turn.signals[slot], turn.epoch, "set", target)
            return
        for piece, rows in enumerate(self._rows()):
            product = torch.matmul(a[rows], b, out=self._products[slot, rows])
            with self._push.fork():
                there[rows].copy_(product)
                shmem.signal(turn.signals[slot * self._pieces + piece], turn.epoch, "set", target)

    def _sum(self, turn: Turn, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        pieces = max(1, self._pieces)
        for signal in turn.signals[pieces:]:
            shmem.stream_wait_signal(signal, turn.epoch)
        total = self._total if self._total.numel() else turn.buffer[0]
        for piece, rows in enumerate(self._rows()):
            # Of two PEs the other's first pieces are there while its last are still on their way.
            shmem.stream_wait_signal(turn.signals[piece], turn.epoch)
            if self._total.numel():
                torch.sum(turn.buffer[:, rows], 0, out=total[rows])
            total[rows].addmm_(a[rows], b)
        return total

    def _rows(self) -> list[slice]:
        height = self.m // max(1, self._pieces)
        return [slice(begin, begin + height) for begin in range(0, self.m, height)]

    def free(self) -> None:
        self._exchange.free()
