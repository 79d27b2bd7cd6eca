# SPDX-License-Identifier: MIT
"""Memory that the host lets PEs write into each other's, all in the order of streams."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from triton_dist import shmem


class Stage:
    """A symmetric buffer, and the signals by which its owner lends it to the others for one call.

    A call of an operation goes like this on every PE, by streams alone, so that a CUDA graph can hold it:

    - `lend`: what the last call left in the buffer is no longer needed. Others may write.
    - `await_lent(pe)`, write into `on(pe)`, then `tell(pe, slot)`: a PE that lent hears that it is written.
    - `await_told(slot)`: what another PE wrote is here.

    A signal is 1 from when it is sent until it was awaited. It cannot be sent again before that: the other PE lends
    again only in its next call, which follows its `await_told`; and what that awaits was sent after `await_lent`.
    """

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, slots: int) -> None:
        self._pe, self._pes = shmem.my_pe(), shmem.n_pes()
        self.buffer = shmem.create_tensor(shape, dtype)
        self._on = [shmem.peer_tensor(self.buffer, pe) for pe in range(self._pes)]
        self._signals = shmem.create_signals(self._pes + slots)
        # First a signal for each PE that may lend, then those that tell.
        adapter = shmem.adapter()
        self._waits = [adapter.signal_waiter(signal) for signal in self._signals]
        self._clears = [adapter.signal_sender(signal, self._pe) for signal in self._signals]
        self._sends = [
            [adapter.signal_sender(signal, pe) for signal in self._signals] for pe in range(self._pes)
        ]

    def on(self, pe: int) -> torch.Tensor:
        """The buffer of `pe`."""
        return self._on[pe]

    def lend(self) -> None:
        for step in range(1, self._pes):
            self._sends[(self._pe + step) % self._pes][self._pe](1)

    def await_lent(self, pe: int) -> None:
        self._await(pe)

    def tell(self, pe: int, slot: int) -> None:
        self._sends[pe][self._pes + slot](1)

    def await_told(self, slot: int) -> None:
        self._await(self._pes + slot)

    def _await(self, index: int) -> None:
        self._waits[index](1)
        self._clears[index](0)

    def free(self) -> None:
        """Collective; waits until no PE uses it."""
        shmem.barrier_all()
        for tensor in (self._signals, self.buffer):
            shmem.free_tensor(tensor)
