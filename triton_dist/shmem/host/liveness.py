# SPDX-License-Identifier: MIT
"""Seeing peers die.

A PE is **dead** when its process ended without having finalized: it was killed, it raised, or its script ended early.
Then this PE's abort word is set, which every wait reads, on the host and in kernels: they end at once and name the PE.
A wait whose value is already there still succeeds, for it never reads the abort word.

A PE that **finalized** and then ended is not dead. Finalizing is collective, so nobody can be in a kernel or wait for
a signal then, and all it sent has arrived: signals and data are stores into memory that outlives it. Only where a PE
was left to finalize alone (after an error) can another wait for it: a collective call then raises `OutOfStep` at
once, and a wait for its signal raises `WaitTimeout` at the deadline, as for any signal that nobody sends.

A **hung** PE is not dead; the deadline of the wait finds it.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import select
import signal
import struct
import threading
import time
from collections.abc import Callable, Mapping

BOARD_VARIABLE = "_TRITON_DIST_BOARD"
"""Where `triton-dist run` writes the exit codes of its PEs: a path of a memfd. Not a setting, hence the underscore."""



def launched() -> int:
    """How many of this process a launcher started; 1 if none did."""
    by_one = BOARD_VARIABLE in os.environ or "TORCHELASTIC_RUN_ID" in os.environ
    pes = os.environ.get("WORLD_SIZE", "")
    return int(pes) if by_one and pes.isdecimal() else 1


_POLL_SECONDS = 0.05
_CODE_SECONDS = 0.25
"""How long to wait for the exit code of a process that ended: its parent must have collected it."""


class ExitBoard:
    """An int64 a PE: 0 while it runs, else its exit code (negative: a signal) plus `_BIAS`."""

    _BIAS = 1 << 16

    def __init__(self, fd: int, n_pes: int) -> None:
        self._mapping = mmap.mmap(fd, n_pes * 8)
        self._codes = (ctypes.c_int64 * n_pes).from_buffer(self._mapping)

    @classmethod
    def from_environment(cls, n_pes: int) -> ExitBoard | None:
        """The launcher's board, if one started us and its memory can be read."""
        path = os.environ.get(BOARD_VARIABLE)
        if not path:
            return None
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return cls(fd, n_pes)
        except (OSError, ValueError):
            return None
        finally:
            os.close(fd)

    def set(self, pe: int, code: int) -> None:
        self._codes[pe] = code + self._BIAS

    def get(self, pe: int) -> int | None:
        return self._codes[pe] - self._BIAS if self._codes[pe] else None


def describe_exit(code: int | None) -> str:
    """ "killed by SIGKILL (signal 9)", "exited with code 3", or "its process ended"."""
    if code is None:
        return "its process ended"
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        return f"killed by signal {-code}"
    return f"killed by {name} (signal {-code})"


class Watchdog:
    """One daemon thread that calls `on_death(pe, exit code or None)` for each peer process that ends."""

    def __init__(
        self, pids: Mapping[int, int], on_death: Callable[[int, int | None], None], board: ExitBoard | None
    ) -> None:
        self._on_death, self._board = on_death, board
        self._by_fd: dict[int, int] = {}
        self._by_pid: dict[int, int] = {}  # where the system has no pidfd: looked at now and then
        self._gone: list[int] = []
        for pe, pid in pids.items():
            self._add(pe, pid)
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._watch, name="triton_dist watchdog", daemon=True)
        self._thread.start()

    def _add(self, pe: int, pid: int) -> None:
        try:
            self._by_fd[os.pidfd_open(pid)] = pe
        except ProcessLookupError:
            self._gone.append(pe)
        except (OSError, AttributeError):
            self._by_pid[pid] = pe

    def stop(self) -> None:
        os.write(self._wake_write, b"x")
        self._thread.join()
        for fd in (*self._by_fd, self._wake_read, self._wake_write):
            os.close(fd)

    def _watch(self) -> None:
        for pe in self._gone:
            self._report(pe, None)
        poll = select.poll()
        for fd in (self._wake_read, *self._by_fd):
            poll.register(fd, select.POLLIN)
        while True:
            events = poll.poll(_POLL_SECONDS * 1000 if self._by_pid else None)
            for fd, _ in events:
                if fd == self._wake_read:
                    return
                poll.unregister(fd)
                self._report(self._by_fd[fd], fd)
            self._look_at_pids()

    def _look_at_pids(self) -> None:
        for pid, pe in list(self._by_pid.items()):
            if not runs(pid):
                del self._by_pid[pid]
                self._report(pe, None)

    def _report(self, pe: int, pidfd: int | None) -> None:
        deadline = time.monotonic() + _CODE_SECONDS
        code = self._code_of(pe, pidfd)
        while code is None and time.monotonic() < deadline:
            time.sleep(0.002)
            code = self._code_of(pe, pidfd)
        self._on_death(pe, code)

    def _code_of(self, pe: int, pidfd: int | None) -> int | None:
        code = self._board.get(pe) if self._board is not None else None
        return code if code is not None or pidfd is None else _exit_code(pidfd)


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


# struct pidfd_info of linux/pidfd.h, in its first size: mask, cgroupid, 11 ids, exit code. Linux 6.15 and later fill in
# the exit code of a process that its parent has collected, for anyone who holds a pidfd of it.
_INFO = struct.Struct("=QQ11Ii")
_PIDFD_GET_INFO = 3 << 30 | _INFO.size << 16 | 0xFF << 8 | 11
_INFO_EXIT = 1 << 3


def _exit_code(pidfd: int) -> int | None:
    """The exit code of an ended process as Popen gives it, where the system tells."""
    request = bytearray(_INFO.pack(_INFO_EXIT, *[0] * 13))
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, request)
    except OSError:
        return None
    fields = _INFO.unpack(request)
    if not fields[0] & _INFO_EXIT:
        return None
    status = fields[-1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
