# SPDX-License-Identifier: MIT
"""Locks under which no other thread forks this process.

A child of `fork` has one thread. A lock that another thread of its parent held stays locked there for ever, and what it
guards is left half done. So a fork waits until these locks are free, and has them itself meanwhile.
"""

from __future__ import annotations

import os
import threading
from typing import Any, TypeVar

_T = TypeVar("_T")

COMPILING, ATOMICS, PARSING, LOADING, ASSEMBLING = range(5)
"""The order in which a thread may take them, one inside another."""
PATIENCE = 300.0
"""Seconds after which a fork goes on without a lock."""

_locks: dict[int, Any] = {}
_held = threading.local()


def guarded(order: int, lock: _T) -> _T:
    """`lock`, which from now on no fork happens under."""
    _locks[order] = lock
    return lock


def _before() -> None:
    _held.locks = [lock for _, lock in sorted(_locks.items()) if lock.acquire(timeout=PATIENCE)]


def _after() -> None:
    for lock in reversed(_held.__dict__.pop("locks", [])):
        lock.release()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
