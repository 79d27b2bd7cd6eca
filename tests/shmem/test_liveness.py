# SPDX-License-Identifier: MIT
"""The watchdog over processes that end, by pidfd and without."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from triton_dist.backends.cpu.heap import anonymous_file
from triton_dist.errors import RendezvousError
from triton_dist.shmem.config import ShmemConfig
from triton_dist.shmem.host import liveness, world
from triton_dist.shmem.host.liveness import ExitBoard, Watchdog, runs


def spawn(code: str = "import time; time.sleep(60)") -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", code])


@pytest.fixture(params=["pidfd", "polling"])
def watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Watch one process as PE 3; gives the process and what the watchdog says."""
    if request.param == "polling":

        def missing(pid: int) -> int:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(liveness.os, "pidfd_open", missing)
    said: queue.Queue[tuple[int, int | None]] = queue.Queue()
    process = spawn()
    board = ExitBoard(anonymous_file("board", 64), 8)
    watchdog = Watchdog({3: process.pid}, lambda pe, code: said.put((pe, code)), board)
    yield process, said, board
    watchdog.stop()
    process.kill()
    process.wait()


def test_a_death_is_seen_with_its_code(watched: Any) -> None:
    process, said, board = watched
    process.kill()
    board.set(3, process.wait())
    assert said.get(timeout=5) == (3, -9)


def test_nothing_is_said_of_a_process_that_runs(watched: Any) -> None:
    process, said, _ = watched
    with pytest.raises(queue.Empty):
        said.get(timeout=0.2)
    assert runs(process.pid)


def test_a_process_that_is_gone_already() -> None:
    process = spawn("pass")
    process.wait()
    said: queue.Queue[tuple[int, int | None]] = queue.Queue()
    watchdog = Watchdog({1: process.pid}, lambda pe, code: said.put((pe, code)), None)
    assert said.get(timeout=5) == (1, None)
    watchdog.stop()
    assert not runs(process.pid)


def test_a_zombie_does_not_run() -> None:
    process = spawn("pass")
    deadline = time.monotonic() + 10
    while runs(process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not runs(process.pid)
    process.wait()


def test_the_watchdog_leaves_no_descriptor_behind() -> None:
    process = spawn()
    before = sorted(os.listdir("/proc/self/fd"))
    Watchdog({0: process.pid}, lambda pe, code: None, None).stop()
    assert sorted(os.listdir("/proc/self/fd")) == before
    process.kill()
    process.wait()


def test_the_board_says_nothing_until_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fd = anonymous_file("board", 32)
    monkeypatch.setenv(liveness.BOARD_VARIABLE, f"/proc/self/fd/{fd}")
    ours, theirs = ExitBoard(fd, 4), ExitBoard.from_environment(4)
    assert theirs is not None
    assert theirs.get(2) is None
    for code in (0, 7, -15):
        ours.set(2, code)
        assert theirs.get(2) == code
    monkeypatch.setenv(liveness.BOARD_VARIABLE, "/proc/self/fd/99999")
    assert ExitBoard.from_environment(4) is None
    monkeypatch.delenv(liveness.BOARD_VARIABLE)
    assert ExitBoard.from_environment(4) is None
    os.close(fd)


def test_a_peer_that_died_before_its_memory_was_mapped() -> None:
    process = spawn("pass")
    process.wait()
    card = world.Card(format=1, machine="", pid=process.pid, fd=5, server="none", n_pes=2, heap_size=4096)
    attach: Callable[..., Any] = world._attach
    for how in ("auto", "proc", "socket"):
        config = ShmemConfig(pe=0, n_pes=2, fd_passing=how)
        with pytest.raises(RendezvousError, match=rf"PE 1 \(process {process.pid}\) died meanwhile"):
            attach(config, 1, card, 4096)
