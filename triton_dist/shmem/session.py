# SPDX-License-Identifier: MIT
"""Which PE the calling thread is, for the host API: a PE that is a thread, else this process's."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from triton_dist.errors import AlreadyInitialized, NotInitialized

if TYPE_CHECKING:
    from triton_dist.backends.base import RuntimeAdapter
    from triton_dist.shmem.config import ShmemConfig


class Owner(Protocol):
    def finalized(self) -> None:
        """The memory is gone."""


@dataclass
class Session:
    """An initialised PE. `depth` counts inits, so that a library may init what its caller has."""

    adapter: RuntimeAdapter
    config: ShmemConfig
    depth: int = 1
    owners: WeakValueDictionary[int, Owner] = field(default_factory=WeakValueDictionary)
    """Whoever owns symmetric memory, and is to hear when it is gone; by `id`, as they need not be hashable."""

    def own(self, owner: Owner) -> None:
        self.owners[id(owner)] = owner

    def end(self) -> None:
        """`finalize`: for the thread or the process that it belongs to, and for those who own memory."""
        unbind(self)
        for owner in list(self.owners.values()):
            owner.finalized()

    def enter_again(self, given: dict[str, Any]) -> None:
        """A nested init: it may repeat the settings in force, not change them."""
        from triton_dist.shmem.config import check_known

        check_known(given)
        for name, value in given.items():
            if getattr(self.config, name) != value:
                raise AlreadyInitialized(pe=self.config.pe, n_pes=self.config.n_pes, what=name)
        self.depth += 1


def make_adapter() -> RuntimeAdapter:
    """A new adapter of the active back end: its own on its hardware, the host engine's where it is simulated."""
    from triton_dist import backends, platform

    backends.active().pipeline()  # raises where no kernel can be compiled
    if platform.current().mode == "hardware":
        return backends.active().adapter()
    from triton_dist.backends.cpu.adapter import CpuAdapter

    return CpuAdapter()


_thread = threading.local()
_process: Session | None = None


def current() -> Session | None:
    """The calling thread's session, or None outside of init ... finalize."""
    return getattr(_thread, "session", None) or _process


def require(call: str) -> Session:
    """The calling thread's session; raises NotInitialized, which names `call`."""
    session = current()
    if session is None:
        raise NotInitialized(call=call)
    return session


def bind_process(session: Session | None) -> None:
    global _process
    _process = session


def bind_thread(session: Session | None) -> None:
    _thread.session = session


def _after_fork() -> None:
    """A forked child shares the heap with its parent, but not what counts calls and signals: it is no PE."""
    bind_process(None)
    bind_thread(None)


os.register_at_fork(after_in_child=_after_fork)


def unbind(session: Session) -> None:
    """The session is over, for the thread or the process that it belongs to."""
    if getattr(_thread, "session", None) is session:
        bind_thread(None)
    elif _process is session:
        bind_process(None)
