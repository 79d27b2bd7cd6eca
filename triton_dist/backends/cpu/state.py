# SPDX-License-Identifier: MIT
"""The device state of a PE: what a kernel reads of its PE, found through the launcher's hidden argument.

The layout is shared by the host engine's native runtime (`runtime/*.ll` reads these offsets) and by the symmetric heap
(`shmem` fills it in). Every field is 8 bytes, so an offset is 8 times the field's index.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from ctypes import c_int64, c_uint64

STATE_VERSION = 1

# Values of the abort word (`DeviceState.abort` points to it): a kernel that sees non-zero leaves at its next wait.
RUNNING, INTERRUPTED, PEER_DIED = 0, 1, 2


class Fault(ctypes.Structure):
    """Why a kernel ended early; written once, by the first program that fails."""

    _fields_ = [
        ("code", c_int64),  # 0 none, 1 wait timed out, 2 aborted, 3 PE out of range, 4 address outside the heap, 5 trap
        ("pe", c_int64),
        ("program", c_int64),  # linear program id
        ("site", c_int64),  # index into the kernel's table of source locations
        ("slot", c_uint64),  # address waited on or touched
        ("expected", c_int64),
        ("seen", c_int64),
        ("detail", c_int64),
    ]


class DeviceState(ctypes.Structure):
    """One per PE. `peer_base[pe] + (p - heap_base)` is the address of symmetric address `p` on `pe`."""

    _fields_ = [
        ("version", c_int64),
        ("my_pe", c_int64),
        ("n_pes", c_int64),
        ("heap_base", c_uint64),  # address of this PE's heap in this process
        ("heap_size", c_uint64),  # bytes
        ("peer_base", c_uint64),  # address of a table of n_pes uint64
        ("abort", c_uint64),  # address of an int64 abort word
        ("timeout_ns", c_int64),  # deadline of one wait; 0: none
        ("fault", c_uint64),  # address of a Fault
        (
            "sync_offset",
            c_uint64,
        ),  # heap offset of the barrier's slots: n_pes slots of 64 bytes, one per PE, own slot at index my_pe
        ("sync_count", c_int64),  # barriers passed so far by this PE
        ("trace", c_uint64),  # address of a trace buffer, or 0
        ("dead_pe", c_int64),  # set with the abort word PEER_DIED, else -1
        ("vendor", c_uint64),  # address of a simulated vendor's own device state, or 0
        ("reserved", c_uint64 * 2),
    ]


_leaving: dict[int, Callable[[], None]] = {}


def on_leave(device: DeviceState, callback: Callable[[], None]) -> None:
    """Have `callback` called when the PE of this state ends, whatever back end is chosen then."""
    _leaving[ctypes.addressof(device)] = callback


def leave(device: DeviceState) -> None:
    """The PE of this state ends."""
    if (callback := _leaving.pop(ctypes.addressof(device), None)) is not None:
        callback()


def nanoseconds(seconds: float) -> int:
    """A deadline as DeviceState holds it; what does not fit in 64 bits is as good as for ever."""
    return int(min(seconds * 1e9, 2.0**62))


class LocalState:
    """Owns a DeviceState and what it points to, for a PE without a symmetric heap (a plain Triton kernel)."""

    def __init__(self) -> None:
        self.abort = c_int64(RUNNING)
        self.fault = Fault()
        self.bases = (c_uint64 * 1)(0)
        self.state = DeviceState(
            version=STATE_VERSION,
            my_pe=0,
            n_pes=1,
            heap_base=0,
            heap_size=0,
            peer_base=ctypes.addressof(self.bases),
            abort=ctypes.addressof(self.abort),
            timeout_ns=60_000_000_000,
            fault=ctypes.addressof(self.fault),
            dead_pe=-1,
        )


class _Current(threading.local):
    """What the calling thread acts for. (Defaults of the class are found faster than a missing attribute is missed.)"""

    state: DeviceState | None = None
    owner: LocalState | None = None


_current = _Current()


def current() -> DeviceState:
    """The state of the PE that the calling thread belongs to: set by `shmem.init` or `testing.run_pes`."""
    state = _current.state or _process_state
    if state is not None:
        return state
    # Kept apart from `state`: a thread that ran a kernel before `shmem.init` must see the PE's state after it.
    owner = _current.owner
    if owner is None:
        owner = _current.owner = LocalState()
    return owner.state


_process_state: DeviceState | None = None


def bind_process(state: DeviceState | None) -> None:
    """Make `state` the default of every thread of this process (a PE that is a process)."""
    global _process_state, _left
    among_others = _process_state is not None and _process_state.n_pes > 1
    _process_state, _left = state, state is None and (_left or among_others)


_left = False
"""This process was one of several PEs, and is none now."""

_threads: set[int] = set()
"""Threads that are PEs."""


def bind_thread(state: DeviceState | None) -> None:
    """Make `state` the calling thread's (a PE that is a thread)."""
    _current.state = state
    if state is None:
        _threads.discard(threading.get_ident())
    else:
        _threads.add(threading.get_ident())


def _after_fork() -> None:
    """The child is no PE (`shmem/session.py`), and has none of the parent's threads."""
    bind_process(None)
    _current.state = None
    _threads.clear()


os.register_at_fork(after_in_child=_after_fork)

freed: dict[int, str] = {}
"""Storages of freed tensors of the symmetric heap, as long as their PE remembers them, and how they were freed."""


def stray() -> bool:
    """Nobody can say which PE the calling thread acts for: the PEs of this process are threads, and it is none of them;
    or there are several PEs, which this process has left, or a launcher started it as one and it has not joined.
    (Without init and launcher, a kernel is the only PE.)"""
    if _current.state is not None or _process_state is not None:
        return False
    from triton_dist.shmem.host.liveness import launched

    return bool(_threads) or _left or launched() != 1
