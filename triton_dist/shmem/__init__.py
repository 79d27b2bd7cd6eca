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
All PEs call them, in the same order and with equal arguments. A difference in what is created or freed raises
`CollectiveMismatch` on every PE. Calls of one kind or the other may come from any thread of a PE, but collective ones
from one at a time.

**Waits.** On the host, and where a back end is simulated, a PE that does not come raises on those that wait, after the
deadline (TRITON_DIST_WAIT_TIMEOUT) or, if it died, at once. On CUDA and Ascend collective calls wait without a
deadline; only `wait_signal` has one.

**Streams.** On CUDA `put`, `get`, `signal`, `stream_wait_signal` and `barrier_all` return before they are done, and are
done in the order of torch's current stream. Everywhere else calls are done when they return.

docs/host_api.md says more, and what differs between the back ends.
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
    """Leave the world of PEs. Collective; frees what was not freed. On the host it returns at once if a PE is dead."""
    current = _session.require("finalize()")
    if current.depth > 1:
        current.depth -= 1
        return
    current.end()
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

    It is an ordinary torch tensor on `device()`. Dropping it does not free it, as freeing is collective.

    Raises:
        BadAllocation: the shape or the dtype is none.
        CollectiveMismatch: the PEs do not make the same call.
        HeapExhausted: on the host; on CUDA it is NvshmemError, on Ascend AclshmemFailed.
    """
    return _session.require("create_tensor()").adapter.create_tensor(shape, dtype)


def free_tensor(tensor: torch.Tensor) -> None:
    """Give back what `create_tensor` or `create_signals` returned. Collective; no PE may use it any more, anywhere.

    Raises:
        NotSymmetric, FreedTensor, PartOfTensor: it is not such a tensor, or not any more, or only a part of one.
    """
    _session.require("free_tensor()").adapter.free_tensor(tensor)


def peer_tensor(tensor: torch.Tensor, pe: int) -> torch.Tensor:
    """The same tensor, or part of a tensor, in the heap of `pe`; for this PE itself, `tensor`.

    On CUDA and Ascend an error if loads and stores do not reach that PE (another node).
    """
    return _session.require("peer_tensor()").adapter.peer_tensor(tensor, pe)


def barrier_all() -> None:
    """Wait until all PEs are here; what they wrote before is seen after. Collective.

    On the host it counts together with the barriers that kernels do, so both may be used in any order. On CUDA it is
    done in the order of the current stream: what follows there follows what all PEs had on theirs.
    """
    _session.require("barrier_all()").adapter.barrier_all()


def create_signals(n: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """`n` signals of zero. Collective.

    Args:
        n: how many; `signals[i]` is one of them.
        dtype: one that `dl.notify` takes on the active back end: int64 (the default) and uint64 everywhere, int32 on
            the host and on Ascend. Another one raises `BadSignal`.

    Returns:
        A tensor of shape (n,). Its stride is 64 bytes on the host and on Ascend, and one element on CUDA; the same
        where the back end is simulated. A kernel steps with `dl.signal_slot`, which knows it.
    """
    import torch

    return _session.require("create_signals()").adapter.create_signals(n, dtype or torch.int64)


def reset_signals(signals: torch.Tensor) -> None:
    """Set this PE's `signals` to zero between two barriers, so that no other PE's signal is lost. Collective.

    Raises:
        NotSymmetric: they are not of this PE's heap.
    """
    from triton_dist.shmem.host.checks import Call, require_symmetric

    adapter = _session.require("reset_signals()").adapter
    require_symmetric(signals, adapter.is_symmetric(signals), "the tensor", Call(adapter.my_pe(), "reset_signals"))
    barrier_all()
    signals.zero_()
    barrier_all()


def put(dest: torch.Tensor, source: torch.Tensor, pe: int) -> None:
    """Copy `source` into `dest` (symmetric, or part of one) of `pe`. A `signal` sent after it is seen after the data.

    On the host `source` is any tensor, and the copy is done on return. On CUDA it is done in the order of the current
    stream; over the network `dest` must be contiguous. On Ascend `source` is on the NPU, and it is done on return.

    Raises:
        NotSymmetric, UnequalTensors (shape or dtype), PeOutOfRange.
    """
    _session.require("put()").adapter.put(dest, source, pe)


def get(dest: torch.Tensor, source: torch.Tensor, pe: int) -> None:
    """Copy `source` (symmetric, or part of one) of `pe` into `dest`.

    On the host `dest` is any tensor, and the copy is done on return. On CUDA it is done in the order of the current
    stream; over the network both must be contiguous, and `dest` on the GPU. On Ascend `dest` is on the NPU, and it is
    done on return. Errors are those of `put`.
    """
    _session.require("get()").adapter.get(dest, source, pe)


def signal(signal: torch.Tensor, value: int, op: str, pe: int) -> None:
    """Set (`op="set"`) or atomically add to (`"add"`) one signal of `pe`, with release order.

    Args:
        signal: one element of a symmetric tensor, of a type that `create_signals` takes: `signals[i]`.
        op: "add" is for int32 only on Ascend, and for all types elsewhere.

    On CUDA it is sent in the order of the current stream, after what that stream wrote.

    Raises:
        BadSignal: the type, the value or `op` is none of the back end's.
    """
    _session.require("signal()").adapter.signal(signal, value, op, pe)


def wait_signal(signal: torch.Tensor, value: int, cmp: str = "eq", timeout: float | None = None) -> int:
    """Wait until one signal of this PE compares to `value`, with acquire order; returns the value seen.

    Args:
        cmp: "eq", "ne", "gt", "ge", "lt" or "le".
        timeout: seconds, 0 for none; the default is TRITON_DIST_WAIT_TIMEOUT.

    On CUDA it looks from a stream of its own, so not behind what the current stream still has to do.

    Raises:
        WaitTimeout: when the time is over.
        PeerDied: on the host, at once when a peer is gone. CUDA and Ascend do not see that.
    """
    return _session.require("wait_signal()").adapter.wait_signal(signal, value, cmp, timeout)


def signal_wait_until(signal: torch.Tensor, cmp: str, value: int) -> int:
    """`wait_signal` with the arguments in the order of the device function of this name."""
    return wait_signal(signal, value, cmp)


def stream_wait_signal(signal: torch.Tensor, value: int, cmp: str = "ge") -> None:
    """Let what follows on the current stream wait until one signal of this PE compares to `value`: "ge" or "eq".

    On CUDA it returns at once, and there is no deadline. On the host, where nothing runs in the background, and on
    Ascend it is `wait_signal`.
    """
    _session.require("stream_wait_signal()").adapter.stream_wait_signal(signal, value, cmp)


def is_symmetric(tensor: torch.Tensor) -> bool:
    """Whether a tensor is (part of) a live tensor of this PE's symmetric heap."""
    return _session.require("is_symmetric()").adapter.is_symmetric(tensor)


def offset_of(tensor: torch.Tensor) -> int:
    """Where in the heap a symmetric tensor starts, in bytes; alike on every PE."""
    return _session.require("offset_of()").adapter.offset_of(tensor)


def death_of(pe: int) -> str:
    """How a PE that is gone ended, as words: for the report of a wait that its death ended. Known on the host only."""
    return _session.require("death_of()").adapter.death_of(pe)


def describe_address(address: int) -> str:
    """What lies at an address of any PE's heap, as words."""
    return _session.require("describe_address()").adapter.describe_address(address)


def info() -> Info:
    """Facts about this PE and its heap."""
    from triton_dist.shmem.report import info_of

    return info_of(_session.require("info()").adapter)
