# SPDX-License-Identifier: MIT
"""The tensors of one PE's heap: which there are, which there were, and what lies at an address."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from triton_dist.backends.cpu import state

if TYPE_CHECKING:
    import torch

_REMEMBERED = 1024
"""Freed tensors kept, to tell a freed tensor from a foreign one."""


@dataclass(frozen=True)
class Allocation:
    """A tensor in the heap. `serial` counts creations, alike on every PE."""

    serial: int
    offset: int
    nbytes: int
    tensor: torch.Tensor
    created: str
    """The call that created it, with its call site."""
    freed: str | None = None

    def describe(self, byte: int) -> str:
        """Name the place `byte` bytes into it."""
        itemsize = self.tensor.element_size()
        shape, strides = self.tensor.shape, self.tensor.stride()
        index, rest = [], byte // itemsize
        for stride, _ in zip(strides, shape, strict=True):
            index.append(rest // stride if stride else 0)
            rest %= stride or 1
        if rest or byte % itemsize:
            return f"byte {byte} of {self.created}"
        if self.created.startswith("create_signals"):
            return f"signal {index[0]} of {self.created}"
        return f"element {index} of {self.created}"


def storage_id(tensor: torch.Tensor) -> int:
    """Tells storages apart, also two that lie at one address one after the other; unique while the storage lives."""
    return tensor.untyped_storage()._cdata


class Tensors:
    """Allocations by place and by storage."""

    def __init__(self) -> None:
        self._live: dict[int, Allocation] = {}
        self._freed: deque[Allocation] = deque()
        # A remembered allocation keeps its tensor, and so its storage: no other storage can have the same id.
        self._by_storage: dict[int, Allocation] = {}
        self._serial = 0
        self._told: set[int] = set()
        # Once this is gone, a storage's id may be another one's.
        weakref.finalize(self, _forget, self._told)

    def __len__(self) -> int:
        return len(self._live)

    def add(self, offset: int, nbytes: int, tensor: torch.Tensor, created: str) -> Allocation:
        allocation = Allocation(self._serial, offset, nbytes, tensor, created)
        self._serial += 1
        self._live[offset] = self._by_storage[storage_id(tensor)] = allocation
        return allocation

    def remove(self, allocation: Allocation, freed: str) -> None:
        del self._live[allocation.offset]
        storage = storage_id(allocation.tensor)
        self._by_storage[storage] = gone = replace(allocation, freed=freed)
        self._freed.append(gone)
        # For launches, which must be quick to see that nothing was freed.
        self._told.add(storage)
        state.freed[storage] = f"{allocation.created}, freed by {freed}"
        if len(self._freed) > _REMEMBERED:
            oldest = storage_id(self._freed.popleft().tensor)
            del self._by_storage[oldest]
            _forget({oldest})
            self._told.discard(oldest)

    def of_storage(self, tensor: torch.Tensor) -> Allocation | None:
        """The allocation, live or freed, that `tensor` is or is a view of."""
        return self._by_storage.get(storage_id(tensor))

    def live_at(self, offset: int) -> Allocation | None:
        """The tensor that `offset` lies in."""
        return _at(self._live.values(), offset)

    def freed_at(self, offset: int) -> Allocation | None:
        """The last freed tensor that `offset` lay in."""
        return _at(reversed(self._freed), offset)


def _forget(storages: set[int]) -> None:
    for storage in storages:
        state.freed.pop(storage, None)


def _at(allocations: Iterable[Allocation], offset: int) -> Allocation | None:
    for allocation in allocations:
        if allocation.offset <= offset < allocation.offset + max(allocation.nbytes, 1):
            return allocation
    return None
