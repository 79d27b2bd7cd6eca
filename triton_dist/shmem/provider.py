# SPDX-License-Identifier: MIT
"""Symmetric memory that others own: the contract by which a back end accepts it.

torch's symmetric memory, NVSHMEM, rocSHMEM and aclshmem tensors are all a pointer plus a table of where that memory is
mapped for each peer. A back end whose kernels look up remote addresses per tensor (or whose library already knows the
tensor) takes objects of this protocol.

The host engine does not: its device state has one base a PE, and a kernel's `symm_at` computes with that one. Memory
from elsewhere would need a second lookup in every remote access, and on a CPU there is nobody else to own symmetric
memory. Such a tensor is an ordinary tensor there, and `shmem` says so (`NotSymmetric`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class SymmetricMemory(Protocol):
    """A range of memory that every PE has, and where this process sees each PE's."""

    @property
    def address(self) -> int:
        """Where this PE's range starts."""
        ...

    @property
    def nbytes(self) -> int:
        """Its length, equal on every PE."""
        ...

    @property
    def peer_addresses(self) -> Sequence[int]:
        """Where each PE's range starts in this process's address space, by PE; 0: not mapped, remote access needs
        the library's own calls."""
        ...
