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
WARNING, _ERROR = 2, 3
"""Levels of the package's log."""


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


def log(text: str, level: int = _ERROR) -> None:
    """Where the package writes its errors."""
    if logger is not None:
        logger(level, text)
    else:
        print(text, file=sys.stderr)


def allocate(call: str, size: int, alignment: int = ALIGNMENT) -> int:
    """Collective. The heaps start on pages, so that an offset is aligned on every PE alike."""
    import torch

    pe = require(call)
    if size <= 0:
        raise RuntimeError(f"{call}: {size} bytes cannot be had")
    spare = alignment - ALIGNMENT if alignment > ALIGNMENT else 0
    try:
        tensor = shmem.create_tensor((size + spare,), torch.uint8)
    except ShmemError as error:
        raise RuntimeError(f"{call}: {error}") from error
    address = -(-tensor.data_ptr() // alignment) * alignment if spare else tensor.data_ptr()
    pe.tensors[address] = tensor
    return address


def release(address: int) -> bool:
    pe = current()
    tensor = pe.tensors.pop(address, None) if pe is not None else None
    if tensor is None:
        return False
    shmem.free_tensor(tensor)
    return True


def peer_address(call: str, address: int, peer: int, size: int = 1) -> int:
    """Where `size` bytes of this PE's heap lie at a peer."""
    from triton_dist.backends.ascend.standin.host import aclshmem_ptr

    here = require(call).device
    if size < 0:
        raise RuntimeError(f"{call}: {size} bytes cannot be copied")
    found = aclshmem_ptr(address, peer)
    if not found:
        raise RuntimeError(f"{call}: PE {peer} or address {address:#x} is not in the symmetric heap")
    left = here.heap_base + here.heap_size - address
    if size > left:
        raise RuntimeError(f"{call}: {size} bytes at {address:#x} run past the symmetric heap, with {left} left")
    return found


def source(call: str, address: int) -> int:
    """An address of this PE's memory, in the heap or not."""
    if not address:
        raise RuntimeError(f"{call}: the address is null")
    return address


def signal_address(call: str, address: int, op: int, peer: int) -> int:
    """Where a signal lies at a peer; raises unless it can be set or added to."""
    if op not in (0, 1):
        raise RuntimeError(f"{call}: signal operation {op} is none: 0 sets, 1 adds")
    if address % 4:
        raise RuntimeError(f"{call}: a signal is an int32, and {address:#x} is no address of one")
    return peer_address(call, address, peer, 4)


def send(there: int, value: int, op: int) -> None:
    """Set or add to an int32 at a PE."""
    word = atomics.word(32)
    number = (value + (1 << 31)) % (1 << 32) - (1 << 31)
    if op == 0:
        word.store(there, number)
    else:
        word.add(there, number)


_COMPARE = ("eq", "ne", "gt", "ge", "lt", "le")


def wait_until(address: int, cmp: int, value: int) -> None:
    """Wait with the host engine's deadline and watch over peers."""
    import torch

    call = "aclshmem_signal_wait_until"
    pe = require(call)
    if not 0 <= cmp < len(_COMPARE):
        names = ", ".join(f"{number} {name.upper()}" for number, name in enumerate(_COMPARE))
        raise ValueError(f"{call}: comparison {cmp} is none: {names}")
    if address % 4:
        raise ValueError(f"{call}: a signal is an int32, and {address:#x} is no address of one")
    own = next((tensor for tensor in pe.tensors.values() if _holds(tensor, address)), None)
    if own is None:
        raise ValueError(f"{call}: address {address:#x} is in no memory that this PE allocated")
    words = own.view(-1).view(torch.uint8)[address - own.data_ptr() :][:4].view(torch.int32)
    pe.adapter.wait_signal(words[0], value, _COMPARE[cmp])


def _holds(tensor: torch.Tensor, address: int) -> bool:
    return tensor.data_ptr() <= address <= tensor.data_ptr() + tensor.numel() * tensor.element_size() - 4
