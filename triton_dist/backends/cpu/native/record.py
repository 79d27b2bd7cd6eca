# SPDX-License-Identifier: MIT
"""The memory in which a launch and its arguments are handed to the native runtime.

It is used again by later launches: to make a structure, a buffer and their addresses takes as long as a small grid.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .abi import Launch, packer

SIZE = 4096
AT = ctypes.sizeof(Launch)
"""Where the arguments begin."""

_launch = packer(
    "function", "args", "grid_x", "grid_y", "grid_z", "total", "chunk", "state", "arena_size", "pool", "limit",
    "ranges", "range_count", "id", "ask",
)  # fmt: skip


class Record:
    """One launch's, until it is given back."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self._memory = bytearray(size)
        self._pinned = (ctypes.c_char * size).from_buffer(self._memory)
        self.address = ctypes.addressof(self._pinned)

    def fill(self, function: int, args: bytes, *rest: Any) -> None:
        """`rest`: the other fields of a Launch that are not zero, in order."""
        _launch.pack_into(self._memory, 0, function, self.address + AT, *rest)
        self._memory[AT : AT + len(args)] = args


_free: list[Record] = []


def take(args: bytes) -> Record:
    """One with room for these arguments, that nobody else has."""
    if len(args) > SIZE - AT:
        return Record(AT + len(args))
    try:
        return _free.pop()
    except IndexError:
        return Record()


def give(record: Record) -> None:
    """Nobody reads this record any more."""
    if record.size == SIZE:
        _free.append(record)
