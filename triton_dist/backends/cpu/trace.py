# SPDX-License-Identifier: MIT
"""Recording what a PE's programs do: the native runtime writes into a buffer that the device state points to."""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_int64
from typing import Any

from triton_dist import errors
from triton_dist.profile.events import Event, Kind

from . import state

KINDS: tuple[Kind, ...] = ("program", "wait", "notify")
HEADER, WORDS = 8, 8
"""Words of the header, and of an event: kind, program, worker, site, start, end, launch, 0 (see native/runtime.ll)."""

_sites: dict[int, list[str]] = {}
_kept: dict[int, tuple[Any, state.DeviceState]] = {}


def note_sites(launch: int, sites: list[str]) -> None:
    """Remember a launch's source lines while a trace is being taken."""
    _sites[launch] = sites


def keep(device: state.DeviceState, folder: str, capacity: int = 1 << 18) -> None:
    """Record a PE's kernels from here on, and write them into `folder` when the process ends (`TRITON_DIST_TRACE`)."""
    if device.trace:
        return
    _check_folder(folder)
    if not _kept:
        atexit.register(_write, folder)
    buffer = _buffer(capacity)
    _kept[ctypes.addressof(device)] = buffer, device
    device.trace = ctypes.addressof(buffer)


def _check_folder(folder: str) -> None:
    """Now rather than when the process ends, where nobody would see it."""
    try:
        os.makedirs(folder, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        raise errors.BadKnobValue(
            name="TRITON_DIST_TRACE",
            value=folder,
            expected="a folder that can be written",
            meaning="where each PE writes its timeline",
        )


def _write(folder: str) -> None:
    """One file a PE: pe<number>.json for Perfetto, and the picture beside it."""
    from triton_dist.profile import write_timeline, write_trace

    for buffer, device in _kept.values():
        events = _read(buffer, device.my_pe)
        if events:
            write_trace(f"{folder}/pe{device.my_pe}.json", events)
            write_timeline(f"{folder}/pe{device.my_pe}.svg", events, title=f"Programs of PE {device.my_pe}")


def _buffer(capacity: int) -> Any:
    buffer = (c_int64 * (HEADER + WORDS * capacity))()
    buffer[0] = capacity
    return buffer


def _read(buffer: Any, pe: int) -> list[Event]:
    count = min(buffer[1], buffer[0])
    return _events([tuple(buffer[HEADER + WORDS * i : HEADER + WORDS * (i + 1)]) for i in range(count)], pe)


@contextmanager
def capture(capacity: int = 1 << 16) -> Iterator[list[Event]]:
    """Record the calling PE's kernels; the list is full when the block ends. Times are CLOCK_MONOTONIC nanoseconds.

    Events beyond `capacity` are dropped. The notes of a launch's waits carry the worker of the program they belong to.
    """
    device = state.current()
    buffer = _buffer(capacity)
    before, device.trace = device.trace, ctypes.addressof(buffer)
    events: list[Event] = []
    try:
        yield events
    finally:
        device.trace = before
        events.extend(_read(buffer, device.my_pe))


def _events(raw: list[tuple[int, ...]], pe: int) -> list[Event]:
    workers = {(launch, program): worker for kind, program, worker, _, _, _, launch, _ in raw if kind == 0}
    found = []
    for kind, program, _, site, start, end, launch, _ in raw:
        sites = _sites.get(launch, [])
        where = sites[site] if 0 <= site < len(sites) else ""
        worker = workers.get((launch, program), 0)
        found.append(Event(pe, program, worker, KINDS[kind], start, end, where))
    for launch in {r[6] for r in raw}:
        _sites.pop(launch, None)
    return sorted(found, key=lambda e: (e.start_ns, -e.end_ns))
