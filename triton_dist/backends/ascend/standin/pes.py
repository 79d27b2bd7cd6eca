# SPDX-License-Identifier: MIT
"""The stand-in's state of each PE: what it allocated, and the host engine's PE beneath."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from triton_dist import shmem
from triton_dist.backends.cpu import atomics, state
from triton_dist.errors import ShmemError
from triton_dist.shmem import session as shmem_session

if TYPE_CHECKING:
    import torch

    from triton_dist.shmem.config import ShmemConfig

ALIGNMENT = 64
"""The host's heap gives no more."""
TEAM_SLOTS = 32
"""How many teams can have a barrier at a time."""

logger: Callable[[int, str], None] | None = None
_ERROR = 3


class Pe:
    """One PE between init and finalize."""

    def __init__(self, engine: str) -> None:
        import torch

        from triton_dist.backends.ascend import simulated

        self.adapter: Any = shmem.adapter()
        self.device: state.DeviceState = self.adapter.device_state
        self.tensors: dict[int, torch.Tensor] = {}
        # Which team numbers each PE uses, and the slots of the teams' barriers.
        self.used = shmem.create_tensor((TEAM_SLOTS,), torch.int64)
        self.slots = shmem.create_tensor((TEAM_SLOTS, shmem.n_pes() * 64), torch.uint8)
        simulated.enter(self.device, engine)
        npu = simulated.npu_of(self.device)
        assert npu is not None
        self.npu = npu


_pes: weakref.WeakKeyDictionary[Any, Pe] = weakref.WeakKeyDictionary()
"""The host engine's adapter of a PE -> the stand-in's state of it."""


def current() -> Pe | None:
    """The calling thread's PE."""
    session = shmem_session.current()
    return None if session is None else _pes.get(session.adapter)


def require(call: str) -> Pe:
    pe = current()
    if pe is None:
        raise RuntimeError(f"{call}: the library is not initialised")
    return pe


def device() -> state.DeviceState | None:
    pe = current()
    return None if pe is None else pe.device


def start(config: ShmemConfig) -> None:
    """Collective: make this process a PE of the host engine. The attributes alone say which, not a launcher's
    environment."""
    adapter = shmem_session.make_adapter()
    adapter.init(config)
    shmem_session.bind_process(shmem_session.Session(adapter, config))


def bind(engine: str) -> None:
    """Collective: make the stand-in's state for the PE that the host engine has."""
    _pes[shmem.adapter()] = Pe(engine)


def unbind() -> None:
    """Collective, as the heap's memory is given back."""
    pe = require("aclshmem_finalize")
    shmem.free_tensor(pe.slots)
    shmem.free_tensor(pe.used)
    del _pes[pe.adapter]


def log(text: str) -> None:
    """Where the package writes its errors."""
    if logger is not None:
        logger(_ERROR, text)
    else:
        print(text, file=sys.stderr)


def allocate(call: str, size: int) -> int:
    import torch

    pe = require(call)
    if size <= 0:
        raise RuntimeError(f"{call}: {size} bytes")
    try:
        tensor = shmem.create_tensor((size,), torch.uint8)
    except ShmemError as error:
        raise RuntimeError(f"{call}: {error}") from error
    pe.tensors[tensor.data_ptr()] = tensor
    return tensor.data_ptr()


def release(address: int) -> bool:
    pe = current()
    tensor = pe.tensors.pop(address, None) if pe is not None else None
    if tensor is None:
        return False
    shmem.free_tensor(tensor)
    return True


def peer_address(call: str, address: int, peer: int) -> int:
    from triton_dist.backends.ascend.standin.host import aclshmem_ptr

    require(call)
    found = aclshmem_ptr(address, peer)
    if not found:
        raise RuntimeError(f"{call}: PE {peer} or address {address:#x} is not in the symmetric heap")
    return found


def signal(address: int, value: int, op: int, peer: int) -> None:
    """Set or add to an int32 at a PE."""
    word = atomics.word(32)
    there = peer_address("signal", address, peer)
    if op == 0:
        word.store(there, value)
    else:
        word.add(there, value)


_COMPARE = ("eq", "ne", "gt", "ge", "lt", "le")


def wait_until(address: int, cmp: int, value: int) -> None:
    """Wait with the host engine's deadline and watch over peers."""
    import torch

    pe = require("aclshmem_signal_wait_until")
    own = next((t for at, t in pe.tensors.items() if at <= address < at + t.numel() * t.element_size()), None)
    if own is None or not 0 <= cmp < len(_COMPARE):
        raise ValueError(f"aclshmem_signal_wait_until: address {address:#x}, comparison {cmp}")
    words = own.view(-1).view(torch.uint8)[address - own.data_ptr() :][:4].view(torch.int32)
    pe.adapter.wait_signal(words[0], value, _COMPARE[cmp])
