# SPDX-License-Identifier: MIT
"""PEs as threads of one process: quick to start, easy to debug, the same heap and the same kernels."""

from __future__ import annotations

import contextvars
import inspect
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from triton_dist import backends, knobs, platform
from triton_dist.backends.cpu import atomics
from triton_dist.backends.cpu.adapter import CpuAdapter
from triton_dist.errors import PeFailed, PesStillRunning, RunPesRefused
from triton_dist.shmem import session
from triton_dist.shmem.config import ShmemConfig
from triton_dist.shmem.host.liveness import launched
from triton_dist.shmem.host.world import World, thread_segments

T = TypeVar("T")

_LEAVE_SECONDS = 5.0
"""How long PEs have to end after their waits were ended."""


def run_pes(fn: Callable[..., T], n: int, timeout: float | None = None, *, heap_size: int | None = None) -> list[T]:
    """Run `fn` on `n` PEs, each a thread of this process, and return each PE's result.

    Args:
        fn: called with the PE's number if it has a parameter without a default, else with nothing.
        n: the number of PEs.
        timeout: seconds for the whole run, after which `PesStillRunning` shows where each PE is. The waits inside
            have their own deadline (TRITON_DIST_WAIT_TIMEOUT).
        heap_size: bytes of each PE's heap; the default is TRITON_DIST_HEAP_SIZE.

    An exception in one PE ends the waits of the others, on the host and in kernels, and is raised here; a note on it
    names the PE. `shmem.init` and `shmem.finalize` may be called in `fn`, and need not be.
    """
    size = knobs.heap_size if heap_size is None else heap_size
    _check_runnable(n, size)
    atomics.word(64)  # compiled once here, rather than by all threads at once
    team = _Team(fn, n, size)
    team.start()
    try:
        team.join(timeout)
    except BaseException:
        team.interrupt()
        raise
    team.raise_first_error()
    return team.results


def _check_runnable(n: int, heap_size: int) -> None:
    if not isinstance(n, int) or n < 1:
        raise RunPesRefused(detail=f"run_pes needs one PE or more, not {n!r}.")
    if not isinstance(heap_size, int) or heap_size < knobs.LEAST_SIZE:
        raise RunPesRefused(detail=f"run_pes needs a heap of {knobs.LEAST_SIZE} bytes or more, not {heap_size!r}.")
    if session.current() is not None:
        raise RunPesRefused(detail="run_pes was called by a PE: worlds of PEs cannot be nested.")
    _check_no_launcher()
    selection = platform.current()
    if selection.mode == "hardware":
        raise RunPesRefused(
            detail="run_pes: PEs as threads run on the host engine, but the back end is "
            f"{selection.backend} on its hardware ({selection.reason}). TRITON_DIST_SIMULATE=1 simulates it, "
            "TRITON_DIST_BACKEND=cpu is the host."
        )
    backends.active().pipeline()


def _check_no_launcher() -> None:
    """Under a launcher each process would start PEs of its own."""
    if (pes := launched()) != 1:
        raise RunPesRefused(
            detail=f"run_pes starts PEs of its own, but a launcher has started this script {pes} times already. Start "
            "it with python alone; or, for PEs that are processes, call shmem.init in it instead of run_pes."
        )


class _Team(Generic[T]):
    """The PEs of one run."""

    def __init__(self, fn: Callable[..., T], n: int, heap_size: int) -> None:
        self._fn, self._takes_pe, self.n = fn, _takes_pe(fn), n
        self.results: list[Any] = [None] * n
        self._errors: list[tuple[int, BaseException]] = []
        self._lock = threading.Lock()
        segments = thread_segments(n, heap_size)
        self._configs = [ShmemConfig(pe=pe, n_pes=n, heap_size=heap_size) for pe in range(n)]
        self._adapters = [CpuAdapter(World(pe, segments, {})) for pe in range(n)]
        # The caller's context variables hold in the PEs too.
        self._threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(self._run, pe), name=f"PE {pe}", daemon=True)
            for pe in range(n)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def _run(self, pe: int) -> None:
        adapter = self._adapters[pe]
        try:
            adapter.init(self._configs[pe])
            session.bind_thread(session.Session(adapter, self._configs[pe]))
            self.results[pe] = self._fn(pe) if self._takes_pe else self._fn()
            if session.current() is not None:  # unless `fn` finalized by itself
                adapter.finalize()
        except BaseException as error:
            if isinstance(error, SystemExit) and not error.code:
                self._end(pe, "it exited before its function returned")
                return
            self._fail(pe, error)
        finally:
            if (over := session.current()) is not None:
                over.end()

    def _fail(self, pe: int, error: BaseException) -> None:
        with self._lock:
            self._errors.append((pe, error))
        self._end(pe, f"it raised {type(error).__name__}: {error}")

    def _end(self, pe: int, how: str) -> None:
        self._adapters[pe].abandon(how)
        for other, adapter in enumerate(self._adapters):
            if other != pe:
                adapter.peer_failed(pe, how)

    def join(self, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            # In slices: a join without a limit cannot be interrupted everywhere.
            while thread.is_alive():
                thread.join(0.2 if deadline is None else max(0.0, min(0.2, deadline - time.monotonic())))
                if thread.is_alive() and deadline is not None and time.monotonic() >= deadline:
                    raise PesStillRunning(seconds=timeout, states=self._where())

    def _where(self) -> str:
        frames = sys._current_frames()
        lines = []
        for pe, thread in enumerate(self._threads):
            frame = frames.get(thread.ident or 0)
            if thread.is_alive() and frame is not None:
                lines.append(f"PE {pe}:\n{''.join(traceback.format_stack(frame)[-6:]).rstrip()}")
        return "\n".join(lines)

    def interrupt(self) -> None:
        """End all waits; PEs that run on regardless are left to end with the process."""
        for adapter in self._adapters:
            adapter.interrupt()
        deadline = time.monotonic() + _LEAVE_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def raise_first_error(self) -> None:
        """The first error is the cause: the others' waits end only after it."""
        if not self._errors:
            return
        pe, error = self._errors[0]
        name_pe(error, pe, self.n)
        # Its traceback refers to this team and to this frame. If these referred to it, the heaps would stay until
        # Python's cyclic collector runs.
        self._errors.clear()
        try:
            raise error
        finally:
            del error


def name_pe(error: BaseException, pe: int, n: int) -> None:
    """Say on an exception which PE raised it, keeping its type."""
    text = f"in PE {pe} of {n}"
    if hasattr(error, "add_note"):
        error.add_note(text)  # type: ignore[attr-defined]
        return
    # Python 3.10 has no notes: make it the first cause of all, which a traceback shows first.
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    root.__cause__ = PeFailed(pe=pe, n_pes=n, detail=text)


def _takes_pe(fn: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # a builtin
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(p.kind in positional and p.default is inspect.Parameter.empty for p in parameters)
