# SPDX-License-Identifier: MIT
"""The contract of a back end.

A back end is found through the entry-point group `triton_dist.backends`; ours are too, so a vendor can ship one
without touching this repository. Nothing outside `backends/<name>/` (and its device module in
`language/extra/<name>/`) knows a vendor's symbol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Limits:
    """What the front end must know of a back end to reject a kernel early."""

    signal_ops: dict[str, frozenset[str]] = field(default_factory=dict)
    """`dl.notify`: signal dtype ("int32", "int64", "uint64") -> operations ("set", "add") it supports."""
    wait_stride_bytes: int | None = None
    """Distance of consecutive barriers in `dl.wait`, or None: one element."""


class Backend(ABC):
    """One vendor (or the host): what the compiler and the runtime need of it."""

    name: ClassVar[str]
    smi: ClassVar[str | None]
    """The vendor's smi tool, whose presence on PATH means hardware; None for the host."""
    device_module: ClassVar[str]
    """Import path of its `libshmem_device` module."""
    conversion_passes: ClassVar[tuple[str, ...]]
    """Names of the passes that turn `distributed.*` into what its compiler understands, in order."""
    limits: ClassVar[Limits]

    @abstractmethod
    def adapter(self) -> RuntimeAdapter:
        """The runtime adapter over the vendor's library (or its simulation); raises if the library is missing."""


class RuntimeAdapter(ABC):
    """Symmetric heap and PE identity over a vendor's host library. All allocation calls are collective."""

    @abstractmethod
    def init(self, config: Any) -> None: ...
    @abstractmethod
    def finalize(self) -> None: ...
    @abstractmethod
    def my_pe(self) -> int: ...
    @abstractmethod
    def n_pes(self) -> int: ...
    @abstractmethod
    def create_tensor(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor: ...
    @abstractmethod
    def free_tensor(self, tensor: torch.Tensor) -> None: ...
    @abstractmethod
    def peer_tensor(self, tensor: torch.Tensor, pe: int) -> torch.Tensor: ...
    @abstractmethod
    def barrier_all(self) -> None: ...
    @abstractmethod
    def put(self, dest: torch.Tensor, source: torch.Tensor, pe: int) -> None: ...
    @abstractmethod
    def get(self, dest: torch.Tensor, source: torch.Tensor, pe: int) -> None: ...
    @abstractmethod
    def signal(self, signal: torch.Tensor, value: int, op: str, pe: int) -> None: ...

    def on_module_load(self, module: int) -> None:
        """What a freshly loaded device module needs before its first launch; nothing, by default."""
        del module
