# SPDX-License-Identifier: MIT
"""The symmetric heap from the host: one API over the active back end's library.

    import torch
    from triton_dist import shmem

    shmem.init()
    data = shmem.create_tensor((1024,), torch.float32)    # collective: all PEs, same arguments, same order
    ready = shmem.create_signals(shmem.n_pes())
    right = (shmem.my_pe() + 1) % shmem.n_pes()
    shmem.put(data, torch.ones(1024), pe=right)
    shmem.signal(ready[0], 1, "set", pe=right)
    shmem.wait_signal(ready[0], 1)                        # now the left neighbour's data is in `data`
    shmem.finalize()

Start it with `triton-dist run -n 4 script.py` or `torchrun --nproc-per-node 4 script.py`, or alone for one PE. In
tests, `triton_dist.testing.run_pes(fn, 4)` runs a function on four PEs of one process.

**Collective**: `init`, `finalize`, `create_tensor`, `create_signals`, `free_tensor`, `reset_signals`, `barrier_all`.
All PEs call them, in the same order and with equal arguments. A difference raises on every PE, and a PE that does not
come raises on those that wait, after the deadline (TRITON_DIST_WAIT_TIMEOUT) or, if it died, at once. Calls of one
kind or the other may come from any thread of a PE, but collective ones from one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from triton_dist.shmem import session as _session

if TYPE_CHECKING:
    import torch

    from triton_dist.backends.base import RuntimeAdapter
    from triton_dist.shmem.config import ShmemConfig
    from triton_dist.shmem.report import Info

__all__ = [
    "adapter",
    "barrier_all",
    "create_signals",
    "create_tensor",
    "death_of",
    "describe_address",
    "device",
    "finalize",
    "free_tensor",
    "get",
    "info",
    "init",
    "initialized",
    "is_symmetric",
    "my_pe",
    "n_pes",
    "offset_of",
    "peer_tensor",
    "put",
    "reset_signals",
    "signal",
    "signal_wait_until",
    "stream_wait_signal",
    "wait_signal",
]


def init(config: ShmemConfig | None = None, **settings: Any) -> None:
    """Make this process a PE. Collective.

    Args:
        config: all settings; or give fields of `ShmemConfig` as `settings`, such as `heap_size=1 << 28`. What is
            not given comes from the environment that a launcher sets, and from the settings (`triton_dist.knobs`).

    A second call counts, and needs a `finalize` of its own; it must not ask for other settings. Under `run_pes` the
    PE is there already, so a script's main function runs unchanged.
    """
    from triton_dist.errors import ShmemConfigError
    from triton_dist.shmem.config import resolve

    if config is not None:
        settings = {**config.model_dump(exclude_unset=True), "rendezvous": config.rendezvous, **settings}
    current = _session.current()
    if current is not None:
        current.enter_again(settings)
        return
    resolved = resolve(**settings)
    made = _session.make_adapter()
    if resolved.unique_id is not None and not made.takes_unique_id:
        raise ShmemConfigError(detail=f"unique_id is for Ascend's library, not for {type(made).__name__}: leave it out")
    made.init(resolved)
    _session.bind_process(_session.Session(made, resolved))


def finalize() -> None:
    """Leave the world of PEs. Collective, unless a PE is dead: then it returns at once. Frees what was not freed."""
    current = _session.require("finalize()")
    if current.depth > 1:
        current.depth -= 1
        return
    _session.unbind(current)
    current.adapter.finalize()


def initialized() -> bool:
    """Whether the calling thread belongs to a PE."""
    return _session.current() is not None


def adapter() -> RuntimeAdapter:
    """The runtime adapter of the calling thread's PE."""
    return _session.require("adapter()").adapter


def my_pe() -> int:
    """This PE's number, from 0."""
    return _session.require("my_pe()").adapter.my_pe()


def n_pes() -> int:
    """How many PEs there are."""
    return _session.require("n_pes()").adapter.n_pes()


def device() -> torch.device:
    """Where this PE's tensors live: its GPU, or the CPU on the host and where a back end is simulated."""
    return _session.require("device()").adapter.device()


def create_tensor(shape: Sequence[int] | int, dtype: torch.dtype) -> torch.Tensor:
    """A tensor of zeros in the symmetric heap. Collective.

    It is an ordinary torch tensor. Keep it until `free_tensor`: dropping it does not free it, as freeing is collective.
    """
    return _session.require("create_tensor()").adapter.create_tensor(shape, dtype)


def free_tensor(tensor: torch.Tensor) -> None:
    """Give back what `create_tensor` or `create_signals` returned. Collective; no PE may use it any more, anywhere."""
    _session.require("free_tensor()").adapter.free_tensor(tensor)


def peer_tensor(tensor: torch.Tensor, pe: int) -> torch.Tensor:
    """The same tensor, or part of a tensor, in the heap of `pe`; for this PE itself, `tensor`."""
    return _session.require("peer_tensor()").adapter.peer_tensor(tensor, pe)


def barrier_all() -> None:
    """Wait until all PEs are here; what they wrote before is seen after. Collective.

    It counts together with the barriers that kernels do, so both may be used in any order.
    """
    _session.require("barrier_all()").adapter.barrier_all()


def create_signals(n: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """`n` signals of zero, each in a cache line of its own. Collective.

    Args:
        n: how many; `signals[i]` is one of them.
        dtype: int64 (the default), int32, uint64 or uint32.

    Returns:
        A tensor of shape (n,) whose stride is 64 bytes. A kernel steps by `signals.stride(0)` elements.
    """
    import torch

    return _session.require("create_signals()").adapter.create_signals(n, dtype or torch.int64)


def reset_signals(signals: torch.Tensor) -> None:
    """Set this PE's `signals` to zero between two barriers, so that no other PE's signal is lost. Collective."""
    barrier_all()
    signals.zero_()
    barrier_all()


def put(dest: torch.Tensor, source: torch.Tensor, pe: int) -> None:
    """Copy `source` (any tensor) into `dest` (symmetric, or part of one) of `pe`.

    Returns when it is done; a `signal` sent after it is seen after the data.
    """
    _session.require("put()").adapter.put(dest, source, pe)


def get(dest: torch.Tensor, source: torch.Tensor, pe: int) -> None:
    """Copy `source` (symmetric, or part of one) of `pe` into `dest` (any tensor)."""
    _session.require("get()").adapter.get(dest, source, pe)


def signal(signal: torch.Tensor, value: int, op: str, pe: int) -> None:
    """Set (`op="set"`) or atomically add to (`"add"`) one signal of `pe`, with release order.

    Args:
        signal: one element of a symmetric tensor: `signals[i]`.
    """
    _session.require("signal()").adapter.signal(signal, value, op, pe)


def wait_signal(signal: torch.Tensor, value: int, cmp: str = "eq", timeout: float | None = None) -> int:
    """Wait until one signal of this PE compares to `value`, with acquire order; returns the value seen.

    Args:
        cmp: "eq", "ne", "gt", "ge", "lt" or "le".
        timeout: seconds, 0 for none; the default is TRITON_DIST_WAIT_TIMEOUT. Raises `WaitTimeout` then, and `PeerDied`
            at once when a peer is gone.
    """
    return _session.require("wait_signal()").adapter.wait_signal(signal, value, cmp, timeout)


def signal_wait_until(signal: torch.Tensor, cmp: str, value: int) -> int:
    """`wait_signal` with the arguments in the order of the device function of this name."""
    return wait_signal(signal, value, cmp)


def stream_wait_signal(signal: torch.Tensor, value: int, cmp: str = "ge") -> None:
    """Let what follows on the current stream wait until one signal of this PE compares to `value`: "ge" or "eq".

    On a GPU it returns at once, and there is no deadline. On the host, where nothing runs in the background, it is
    `wait_signal`.
    """
    _session.require("stream_wait_signal()").adapter.stream_wait_signal(signal, value, cmp)


def is_symmetric(tensor: torch.Tensor) -> bool:
    """Whether a tensor is (part of) a live tensor of this PE's symmetric heap."""
    return _session.require("is_symmetric()").adapter.is_symmetric(tensor)


def offset_of(tensor: torch.Tensor) -> int:
    """Where in the heap a symmetric tensor starts, in bytes; alike on every PE."""
    return _session.require("offset_of()").adapter.offset_of(tensor)


def death_of(pe: int) -> str:
    """How a PE that is gone ended, as words: for the report of a wait that its death ended."""
    return _session.require("death_of()").adapter.death_of(pe)


def describe_address(address: int) -> str:
    """What lies at an address of any PE's heap, as words."""
    return _session.require("describe_address()").adapter.describe_address(address)


def info() -> Info:
    """Facts about this PE and its heap."""
    from triton_dist.shmem.report import info_of

    return info_of(_session.require("info()").adapter)
