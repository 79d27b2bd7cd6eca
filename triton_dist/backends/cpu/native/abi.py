# SPDX-License-Identifier: MIT
"""What generated kernels, the native runtime and the launcher agree on: the launch record and the kernel's signature.

A kernel is `i32 kernel(ptr args, i32 x, i32 y, i32 z, ptr launch, ptr arena, i32 count)`: `args` are 8-byte slots in
order of the TTIR function's arguments, `arena` is this thread's scratch memory. It runs `count` programs, the first of
them (x, y, z), the next (x + 1, y, z): a call for each would be a large share of a small program. The result is
non-zero if a program ended early.
"""

from __future__ import annotations

import ctypes
import struct
from ctypes import c_int32, c_int64, c_uint64


class Launch(ctypes.Structure):
    """One grid in flight."""

    _fields_ = [
        ("function", c_uint64),
        ("args", c_uint64),
        ("grid_x", c_int32),
        ("grid_y", c_int32),
        ("grid_z", c_int32),
        ("status", c_int32),  # non-zero: end early
        ("total", c_int64),  # programs
        ("counter", c_int64),  # next program to start
        ("chunk", c_int64),  # programs a worker takes at a time
        ("state", c_uint64),  # DeviceState
        ("arena_size", c_int64),
        ("active", c_int64),  # workers at it, besides the caller
        ("pool", c_uint64),
        ("workers", c_int64),  # workers started so far
        ("limit", c_int64),  # workers that may be started in all
        ("ranges", c_uint64),  # bounds-checked mode: pairs of first and past-the-end address
        ("range_count", c_int64),
        ("spare", c_uint64 * 8),  # where accesses to bad addresses go instead
        ("id", c_int64),  # serial number, for traces
        ("parked", c_uint64),  # waiters that sleep: see park.ll
        ("park_lock", c_int64),
        ("watched", c_int64),  # one waiter looks at the signals of those that sleep
        ("ask", c_uint64),  # the caller's function that says whether to end early, if it wants to be asked
        ("asked", c_int64),  # when, last
    ]


def offset(field: str) -> int:
    """Byte offset of a field of Launch."""
    return getattr(Launch, field).offset


_CODES = {c_uint64: "Q", c_int64: "q", c_int32: "i"}


def packer(*given: str) -> struct.Struct:
    """Packs a Launch from the fields named, in their order; the others become 0."""
    fields = ((_CODES[kind] if name in given else f"{ctypes.sizeof(kind)}x") for name, kind, *_ in Launch._fields_)
    return struct.Struct("<" + "".join(fields))
