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
        self._lent, self._told = shmem.create_signals(self._pes), shmem.create_signals(slots)

    def on(self, pe: int) -> torch.Tensor:
        """The buffer of `pe`."""
        return self._on[pe]

    def lend(self) -> None:
        for step in range(1, self._pes):
            shmem.signal(self._lent[self._pe], 1, "set", (self._pe + step) % self._pes)

    def await_lent(self, pe: int) -> None:
        self._await(self._lent[pe])

    def tell(self, pe: int, slot: int) -> None:
        shmem.signal(self._told[slot], 1, "set", pe)

    def await_told(self, slot: int) -> None:
        self._await(self._told[slot])

    def _await(self, signal: torch.Tensor) -> None:
        shmem.stream_wait_signal(signal, 1, "eq")
        shmem.signal(signal, 0, "set", self._pe)

    def free(self) -> None:
        """Collective; waits until no PE uses it."""
        shmem.barrier_all()
        for tensor in (self._told, self._lent, self.buffer):
            shmem.free_tensor(tensor)
