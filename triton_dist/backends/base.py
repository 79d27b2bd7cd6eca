# SPDX-License-Identifier: MIT
"""The contract of a back end.

A back end is found through the entry-point group `triton_dist.backends`; ours are too, so a vendor can ship one
without touching this repository. Nothing outside `backends/<name>/` (and its device module in
`language/extra/<name>/`) knows a vendor's symbol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from triton_dist import __version__
from triton_dist.errors import NoLowering, NotInThisVersion

if TYPE_CHECKING:
    import torch
    from xdsl.dialects.builtin import ModuleOp


Launch: TypeAlias = Callable[[int, Sequence[int]], None]
"""Launches one compiled kernel: takes a stream, and the addresses that this launch brings."""

SET = frozenset({"set"})
SET_ADD = frozenset({"set", "add"})


@dataclass(frozen=True)
class Limits:
    """What the front end must know of a back end to reject a kernel early."""

    signal_ops: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """`dl.notify`: signal dtype ("int32", "int64", "uint64") -> operations ("set", "add") it supports."""
    wait_dtypes: frozenset[str] = frozenset()
    """`dl.wait`: the signal dtypes it can wait on."""
    wait_stride_bytes: int | None = None
    """Distance of consecutive barriers in `dl.wait`, or None: one element."""
    slot_bytes: int | None = None
    """Distance of consecutive signals that the host API allocates, or None: one element. See `dl.signal_stride`."""
    engines: tuple[str, ...] = ()
    """Transport engines that its host library can be told to use; empty: it decides by itself."""


class Backend(ABC):
    """One vendor (or the host): what the compiler and the runtime need of it.

    A new back end subclasses this, names itself in the entry-point group `triton_dist.backends`, and imports its
    vendor's packages inside the methods, never at the top of the module.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """Its name for people: "NVIDIA", "the host"."""
    smi: ClassVar[str | None]
    """The vendor's smi tool, whose presence on PATH means hardware; None for the host."""
    device_module: ClassVar[str]
    """Import path of its `libshmem_device` module."""
    extra_module: ClassVar[str]
    """Import path of its `language_extra` module."""
    conversion_passes: ClassVar[tuple[str, ...]]
    """Names of the passes that turn `distributed.*` into what its compiler understands, in order."""
    passes: ClassVar[Mapping[str, str]] = {}
    """The passes it brings: name -> "module:Class", imported when used. Those of `conversion_passes` among them."""
    limits: ClassVar[Limits]
    packet_bytes: ClassVar[int] = 0
    """What a PE sends to all others at most for a collective to go by packets (`kernels/packets.py`) by itself: bytes.

    Measured, so 0 where nobody has; and of GPUs, not where it is simulated."""
    host_library: ClassVar[str | None] = None
    """Import path of the module with the host implementations of its symbols, for simulated runs: `symbols()` maps a
    symbol (or an inline-assembly template) to a `backends.cpu.native.library.Symbol`, `ir()` gives their LLVM IR."""

    @abstractmethod
    def adapter(self) -> RuntimeAdapter:
        """The runtime adapter over the vendor's library (or its simulation); raises if the library is missing."""

    def device_libraries(self, module: ModuleOp, target: Any, given: Mapping[str, str]) -> Sequence[tuple[str, str]]:
        """The libraries that a converted module needs, as Triton's (key, path) pairs in the order of linking.

        `given` are those that the user passed to the launch. A symbol that no library defines is an error here.
        """
        del module, target, given
        return ()

    def spared_libraries(self, module: ModuleOp) -> frozenset[str]:
        """Keys of the libraries that the compiler would link by itself, and that a converted module does not need."""
        del module
        return frozenset()

    def compile_key(self) -> str:
        """What of the vendor's installation decides how a kernel is compiled: the library's version and place."""
        return ""

    def on_kernel_load(self, module: int, name: str, files: Mapping[str, str]) -> None:
        """What freshly loaded device code needs before its first launch. `files`: Triton's artefacts of the kernel."""
        del module, name, files

    def on_kernel_unload(self, module: int) -> None:
        """Device code is about to go. Triton tells from 3.8 on."""
        del module

    def relaunch(
        self, compiled: Any, programs: int, values: Sequence[Any], places: Sequence[int]
    ) -> Launch | None:
        """A quicker way than Triton's to launch a compiled kernel that was launched before; None: there is none.

        `values` are those of all its arguments, addresses for tensors. Those at `places` differ from launch to launch.
        """
        del compiled, programs, values, places
        return None

    def pipeline(self) -> tuple[str, ...]:
        """`conversion_passes`; raises if this version does not have them all."""
        for name in self.conversion_passes:
            if name not in self.passes:
                raise NoLowering(backend=self.name, title=self.title, version=__version__)
        return self.conversion_passes

    def not_yet(self, what: str) -> NotInThisVersion:
        """The error for a part of this back end that is still to be written."""
        hint = "TRITON_DIST_BACKEND=cpu runs the same kernel on the host."
        return NotInThisVersion(what=what, backend=self.name, version=__version__, hint=hint)


class RuntimeAdapter(ABC):
    """Symmetric heap and PE identity over a vendor's host library. All allocation calls are collective."""

    takes_unique_id: ClassVar[bool] = False
    """Whether `init` can meet by `ShmemConfig.unique_id`."""

    @abstractmethod
    def init(self, config: Any) -> None: ...
    @abstractmethod
    def finalize(self) -> None: ...
    @abstractmethod
    def my_pe(self) -> int: ...
    @abstractmethod
    def n_pes(self) -> int: ...
    @abstractmethod
    def create_tensor(self, shape: Sequence[int] | int, dtype: torch.dtype) -> torch.Tensor: ...
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

    def agree(self, call: str) -> None:
        """Collective: raise on every PE unless all make this `call`. Here nobody is asked."""
        del call

    def create_signals(self, n: int, dtype: torch.dtype) -> torch.Tensor:
        """Collective: `n` signals of zero, at the distance that the back end's `Limits.slot_bytes` says."""
        raise self._not_yet("create_signals")

    def wait_signal(self, signal: torch.Tensor, value: int, cmp: str = "eq", timeout: float | None = None) -> int:
        """Wait on the host until `signal` of this PE compares to `value`; returns the value seen."""
        raise self._not_yet("wait_signal")

    def stream_wait_signal(self, signal: torch.Tensor, value: int, cmp: str = "ge") -> None:
        """What follows on the current stream follows `signal`; where there are no streams, waits."""
        self.wait_signal(signal, value, cmp)

    def signal_sender(self, signal: torch.Tensor, pe: int) -> Callable[[int], None]:
        """A function that sets `signal` of `pe` in order of the current stream: checked once, called often."""
        return lambda value: self.signal(signal, value, "set", pe)

    def signal_waiter(self, signal: torch.Tensor) -> Callable[[int], None]:
        """A function that lets the current stream wait until `signal` has a value: checked once, called often."""
        return lambda value: self.stream_wait_signal(signal, value, "eq")

    def is_symmetric(self, tensor: torch.Tensor) -> bool:
        """Whether `tensor` is, or is a view of, a live tensor of this PE's heap."""
        raise self._not_yet("is_symmetric")

    def offset_of(self, tensor: torch.Tensor) -> int:
        """Where in the heap a symmetric tensor starts, in bytes."""
        raise self._not_yet("offset_of")

    def abandon(self, why: str) -> None:
        """Leave alone, because of an error; where the library can, the peers are told `why`."""
        del why

    def death_of(self, pe: int) -> str:
        """How a PE that is gone ended, for a report."""
        return "its process or thread ended"

    def describe_address(self, address: int) -> str:
        """What lies at an address, for a report."""
        return f"address {address:#x}"

    def device(self) -> torch.device:
        """Where this PE's tensors live."""
        import torch

        return torch.device("cpu")

    def shares_device(self) -> bool:
        """Whether any PEs have one accelerator; a copy to another PE may take what they compute with. Alike on all PEs.

        Collective, as is `on_one_device`.
        """
        return False

    def on_one_device(self) -> bool:
        """Whether all PEs have the same accelerator: what is ordered for that device, is ordered for all of them."""
        return False

    def info(self) -> dict[str, Any]:
        """The fields of `shmem.report.Info` that the adapter knows."""
        raise self._not_yet("info")

    def _not_yet(self, what: str) -> NotInThisVersion:
        return NotInThisVersion(what=what, backend=type(self).__name__, version=__version__, hint="")
