# SPDX-License-Identifier: MIT
"""torch's symmetric memory as a provider (`shmem.provider.SymmetricMemory`): a pointer and the peers' addresses.

    handle = torch.distributed._symmetric_memory.rendezvous(tensor, group)
    shmem.adapter().adopt(TorchSymmetricMemory(handle))

Then `shmem.peer_tensor`, `put`, `get` and `signal` know the tensor. In kernels `dl.symm_at` knows it only if torch's
NVSHMEM back end allocated it; otherwise pass the addresses to the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TorchSymmetricMemory:
    """The range behind one of torch's handles; ranks of the handle's group must be the PEs, in order."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @property
    def address(self) -> int:
        return self.peer_addresses[self._handle.rank]

    @property
    def nbytes(self) -> int:
        return int(self._handle.buffer_size)

    @property
    def peer_addresses(self) -> Sequence[int]:
        return [int(pointer) for pointer in self._handle.buffer_ptrs]
