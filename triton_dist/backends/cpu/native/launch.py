# SPDX-License-Identifier: MIT
"""Running a compiled kernel: arguments into slots, the grid onto the pool, faults into exceptions."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, cast

from triton_dist import errors, knobs

from .. import state
from ..trace import keep, note_sites
from .abi import Launch
from .arguments import Argument, Packer
from .library import simulated
from .ranges import Ranges
from .record import give, take
from .runtime import Runtime, runtime

if TYPE_CHECKING:
    from types import GeneratorType

_serial = itertools.count(1)
MOST_WORKERS = 1 << 16
LARGEST = 2**31 - 1
"""Programs along one axis of a grid."""
MOST_PROGRAMS = 2**63 - 1
UNKNOWN = 16
"""Programs that are done between two looks at whether to go on, where a loop may make each of them long."""
HEAVY = 1 << 26
"""Elements, over all operations and programs, that are done between two such looks: some 50 ms."""
LIGHT = 1 << 16
"""Elements, over all operations and programs, that one thread is done with before another has woken up (10 us)."""


_raised: list[BaseException] = []
"""By a signal's handler while a kernel of the main thread ran."""


def _asking() -> Generator[int, None, None]:
    """At each step, whether a signal's handler raises, Ctrl-C's say: the native runtime asks now and then.

    A generator, as Python runs handlers when a function begins, before its `try`. This one goes on inside of it.
    """
    stop = 0
    while True:
        try:
            yield stop
            ctypes.pythonapi.PyErr_CheckSignals()
            stop = 0
        except GeneratorExit:
            return
        except BaseException as error:
            _raised.append(error)
            stop = 1


_asked = cast("GeneratorType[int, None, None]", _asking())
next(_asked)
_ask = ctypes.CFUNCTYPE(ctypes.c_int32)(_asked.__next__)
_ask_address = ctypes.cast(_ask, ctypes.c_void_p).value or 0


class _Memory(threading.local):
    """Arenas of the threads that launch kernels."""

    def __init__(self) -> None:
        self.keep: Any = None
        self.address = self.size = 0

    def at_least(self, size: int) -> int:
        if self.size < size:
            self.size = max(size, 1 << 16)
            self.keep = ctypes.create_string_buffer(self.size + 64)
            self.address = (ctypes.addressof(self.keep) + 63) // 64 * 64
        return self.address


_memory = _Memory()


class _Pool:
    """The idle workers of this process; a forked child starts with none."""

    def __init__(self) -> None:
        self.words = (ctypes.c_int64 * 3)()
        self.address = ctypes.addressof(self.words)


_pool = _Pool()


def _after_fork() -> None:
    global _pool
    _pool = _Pool()


os.register_at_fork(after_in_child=_after_fork)


def threads() -> int:
    """Threads that a PE's grids start with: `TRITON_DIST_NUM_THREADS`, or one for each core."""
    return knobs.num_threads or len(os.sched_getaffinity(0))


# Launching


class Launcher:
    """Triton's `launcher_cls`: called with grid, stream, function, metadata, hooks and the kernel's arguments."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self.names = list(getattr(src.fn, "arg_names", ())) if hasattr(src, "fn") else []
        self.distributed = bool(getattr(metadata, "distributed", False))
        self.checked = bool(getattr(metadata, "checked", False))
        self.arena = (int(metadata.arena_size) + 4095) // 4096 * 4096
        self.blocking = bool(metadata.blocking)
        self.weight = metadata.weight
        self._at_a_time = UNKNOWN if self.weight is None else max(1, HEAVY // max(1, self.weight))
        self.sites, self.roots = list(metadata.sites), list(metadata.roots)
        self.name = metadata.name
        self._pack = Packer((), ())
        self._native: Runtime | None = None
        # What gives a PE its device state in the form of the vendor that is being simulated.
        vendor = simulated()
        self._enter = getattr(vendor, "enter", None)
        # What keeps the arguments of a launch for as long as that vendor's engines may touch them.
        self._keep = getattr(vendor, "keep", None)

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: Any,
        function: int,
        packed: Any,
        launch_metadata: Any,
        enter: Any,
        leave: Any,
        *args: Any,
    ) -> None:
        total = grid_x * grid_y * grid_z
        if not 0 < total <= LARGEST or (grid_x | grid_y | grid_z) < 0:
            if total <= 0:
                return
            self._check_grid(grid_x, grid_y, grid_z)
        if enter is not None:
            enter(launch_metadata)
        if state.freed:
            self._refuse_freed(args)
        ranges = self._ranges(args) if self.checked else None
        try:
            self._run(function, (grid_x, grid_y, grid_z), total, self._pack(args), ranges)
        finally:
            if self._keep is not None:
                self._keep(state.current(), args)
        if leave is not None:
            leave(launch_metadata)
        del stream, packed

    def bind(self, signature: Sequence[Any]) -> None:
        """Prepare packing for a kernel's signature (Triton type names, in order)."""
        names = self.names or ["?"] * len(signature)
        self._pack = Packer(names, tuple(signature))

    def _check_grid(self, *grid: int) -> None:
        if min(grid) < 0 or max(grid) > LARGEST or grid[0] * grid[1] * grid[2] > MOST_PROGRAMS:
            raise errors.BadGrid(kernel=self.name, grid=grid, largest=LARGEST)

    def _ranges(self, args: Sequence[Any]) -> Ranges:
        """The memory that a checked kernel may touch: the storage of each tensor passed, beside the symmetric heap."""
        return Ranges.of(self._pack.flatten(args))

    def _pointers(self, args: Sequence[Any]) -> list[Argument]:
        """Name, type and value of each argument that is a pointer."""
        return [a for a in self._pack.flatten(args) if a[1][0] == "*"]

    def _refuse_freed(self, args: Sequence[Any]) -> None:
        """Raise if an argument is a tensor of the symmetric heap that was freed: its memory may be another one's."""
        for name, _, value in self._pointers(args):
            storage = getattr(value, "untyped_storage", None)
            freed = None if storage is None else state.freed.get(storage()._cdata)
            if freed is not None:
                from triton_dist.shmem.callsite import call_site

                call = f"the launch of {self.name}"
                where = call_site(launch=True)
                raise errors.FreedTensor(pe=state.current().my_pe, where=where, call=call, argument=name, freed=freed)

    def _run(
        self, function: int, grid: tuple[int, int, int], total: int, args: bytes, ranges: Ranges | None = None
    ) -> None:
        if self.distributed and state.stray():
            raise errors.NotInitialized(call=f"The kernel {self.name}")
        device = state.current()
        if self._enter is not None and not device.vendor:
            self._enter(device)
        light = self.weight is not None and self.weight * total < LIGHT
        workers = 1 if light else min(threads(), total)
        chunk = 1 if self.blocking else max(1, min(total // (workers * 8), self._at_a_time))
        spans = (0, 0) if ranges is None else (ctypes.addressof(ranges.table), len(ranges.spans))
        pe, serial, record = ctypes.addressof(device), next(_serial), take(args)
        pool = _pool.address
        main = not light and threading.current_thread() is threading.main_thread()
        # Those that wait are watched; a handler that launches a kernel is one that was asked for.
        ask = _ask_address if main and not self.blocking and not _asked.gi_running else 0
        record.fill(function, args, *grid, total, chunk, pe, self.arena, pool, MOST_WORKERS, *spans, serial, ask)
        if self.blocking:
            device.timeout_ns = state.nanoseconds(knobs.wait_timeout)
        if knobs.trace:
            keep(device, knobs.trace)
        if device.trace:
            note_sites(serial, self.sites)
        native = self._native
        if native is None:
            native = self._native = runtime()
        if self.blocking and main:
            status = self._watch(native, record.address, device, workers)
        else:
            status = native.launch(record.address, _memory.at_least(self.arena), workers)
        give(record)
        if status:
            if main and _raised:
                state.Fault.from_address(device.fault).code = 0
                raise _raised.pop()
            raise self._fault(device, grid, ranges)

    def _watch(self, native: Runtime, launch: int, device: state.DeviceState, workers: int) -> int:
        """Wait in slices, so that Ctrl-C reaches a kernel that waits for a signal."""
        if not native.start(launch, workers):
            return native.launch(launch, _memory.at_least(self.arena), 1)
        status = ctypes.c_int32.from_address(launch + Launch.status.offset)
        try:
            while not native.join(launch, 100_000_000):
                pass
        except KeyboardInterrupt:
            status.value = 1
            while not native.join(launch, 100_000_000):
                pass
            state.Fault.from_address(device.fault).code = 0
            raise
        return status.value

    def _fault(self, device: state.DeviceState, grid: tuple[int, int, int], ranges: Ranges | None) -> Exception:
        fault = state.Fault.from_address(device.fault)
        copy = state.Fault.from_buffer_copy(fault)
        fault.code = 0
        from .faults import explain

        return explain(copy, device, self.name, self.sites, grid, ranges, self.roots)
