# SPDX-License-Identifier: MIT
"""Memory that PEs write into each other's, call after call, without a barrier between the calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from triton_dist import shmem


@dataclass(frozen=True)
class Turn:
    """What one call uses: its copy of the buffer and of the signals, and the value that its signals take."""

    buffer: torch.Tensor
    signals: torch.Tensor
    epoch: int


class Exchange:
    """A symmetric buffer with its signals, twice, used in turn by call after call of one kernel.

    The kernel must obey one rule: on every PE a call ends only after that PE has seen a signal of the same call from
    every PE. Then nothing is ever reset, and no call needs a barrier:

    - A PE in call k + 1 has finished call k. So it has seen that every PE began call k, and thus finished call k - 1.
      Call k + 1 writes the copy that call k - 1 used, and nobody uses that one any more.
    - A signal's value is the number of the call. Its slot takes the next value two calls later, when every waiter of
      this call has left. So a wait for equality cannot miss its value.

    The result of call k may be read until the same PE begins call k + 1. Every PE makes the same calls in the same
    order.
    """

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, signals: int) -> None:
        self._buffers = shmem.create_tensor((2, *shape), dtype)
        self._signals = [shmem.create_signals(signals) for _ in range(2)]
        self._calls = 0

    @property
    def device(self) -> torch.device:
        return self._buffers.device

    def turn(self) -> Turn:
        """Begin the next call."""
        self._calls += 1
        half = self._calls % 2
        return Turn(self._buffers[half], self._signals[half], self._calls)

    def free(self) -> None:
        """Give the memory back. Collective; waits until no PE uses it."""
        shmem.barrier_all()
        for signals in self._signals:
            shmem.free_tensor(signals)
        shmem.free_tensor(self._buffers)
