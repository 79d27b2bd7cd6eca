# SPDX-License-Identifier: MIT
"""PEs as threads: results, errors, deadlines, and nothing left afterwards."""

from __future__ import annotations

import contextvars
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from triton_dist import errors, knobs, platform, shmem
from triton_dist.backends.cpu import state
from triton_dist.shmem.host import world
from triton_dist.testing import PE_COUNTS, run_pes, run_script, threads


@pytest.mark.parametrize("n", PE_COUNTS)
def test_results_by_pe(n: int) -> None:
    assert run_pes(lambda pe: pe * pe, n) == [pe * pe for pe in range(n)]
    assert run_pes(lambda: "x", n) == ["x"] * n
    assert run_pes(lambda scale=3: scale, n) == [3] * n
    assert run_pes(partial(pow, 2), n) == [2**pe for pe in range(n)]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_an_error_is_raised_as_it_is_and_names_the_pe(n: int) -> None:
    def fail(pe: int) -> None:
        if pe == n - 1:
            raise KeyError("lost")
        shmem.barrier_all()

    with pytest.raises(KeyError, match="lost") as info:
        run_pes(fail, n)
    assert f"in PE {n - 1} of {n}" in getattr(info.value, "__notes__", [str(info.value.__cause__)])[0]


def test_without_notes_the_cause_names_the_pe() -> None:
    class Old(Exception):
        add_note: Any = property()  # hasattr is False, as in Python 3.10

    error, cause = Old("x"), ValueError("first")
    error.__cause__ = cause
    threads.name_pe(error, 2, 4)
    assert isinstance(cause.__cause__, errors.PeFailed)
    assert "PE 2 of 4" in str(cause.__cause__)


@pytest.mark.parametrize("wait", ["barrier", "signal", "create", "word"])
def test_an_error_ends_the_waits_of_the_others(wait: str) -> None:
    seen: list[BaseException] = []

    def fail(pe: int) -> None:
        signals = shmem.create_signals(1)
        if pe == 1:
            time.sleep(0.05)
            raise ValueError("oh no")
        try:
            if wait == "barrier":
                shmem.barrier_all()
            elif wait == "create":
                shmem.create_tensor((4,), torch.int8)
            elif wait == "signal":
                shmem.wait_signal(signals[0], 1)
            else:  # as a kernel does
                device = state.current()
                while state.c_int64.from_address(device.abort).value == state.RUNNING:
                    time.sleep(0.001)
                assert device.dead_pe == 1
                raise errors.PeerDied(pe=pe, dead=1, detail=shmem.adapter().death_of(1), what="a kernel")  # type: ignore[attr-defined]
        except errors.TritonDistError as error:
            seen.append(error)
            raise

    start = time.monotonic()
    with pytest.raises(ValueError, match="oh no"):
        run_pes(fail, 3)
    assert time.monotonic() - start < 5
    assert len(seen) == 2
    for error in seen:
        assert isinstance(error, errors.PeerDied)
        assert "PE 1 is gone (it raised ValueError: oh no)" in str(error)


def test_an_exit_counts_as_leaving() -> None:
    def leave(pe: int) -> str:
        if pe == 0:
            sys.exit(0)
        with pytest.raises(errors.PeerDied, match="it exited before its function returned"):
            shmem.barrier_all()
        return "saw it"

    assert run_pes(leave, 2) == [None, "saw it"]
    with pytest.raises(SystemExit):
        run_pes(lambda: sys.exit(3), 1)


def test_a_run_that_takes_too_long_says_where_each_pe_is() -> None:
    def hang(pe: int) -> None:
        if pe == 1:
            shmem.wait_signal(shmem.create_signals(1)[0], 1)
        shmem.create_signals(1)
        shmem.barrier_all()

    with pytest.raises(errors.PesStillRunning) as info:
        run_pes(hang, 2, timeout=0.5)
    message = str(info.value)
    assert "after 0.5 s these PEs still run" in message
    assert "shmem.wait_signal(" in message
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("PE ")]


def test_everything_is_as_before() -> None:
    fds = len(os.listdir("/proc/self/fd"))
    before = state.current()
    run_pes(lambda: shmem.create_tensor((1 << 16,), torch.int8), 4)
    with pytest.raises(ZeroDivisionError):
        run_pes(lambda: 1 // 0, 4)
    assert state.current() is before
    assert not shmem.initialized()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("PE ")]
    assert len(os.listdir("/proc/self/fd")) <= fds


def test_memory_is_given_back() -> None:
    def resident() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def touch() -> None:
        shmem.create_tensor((32 << 20,), torch.int8).fill_(1)

    run_pes(touch, 2)
    before = resident()
    for _ in range(5):
        run_pes(touch, 2)
    assert resident() - before < 100 << 20


def test_the_callers_context_holds() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")
    variable.set(7)
    assert run_pes(variable.get, 2) == [7, 7]


def test_worlds_one_after_the_other_and_beside_each_other() -> None:
    found: list[Any] = []

    def world(n: int) -> None:
        found.append(run_pes(lambda: [shmem.barrier_all() for _ in range(20)] and shmem.n_pes(), n))

    beside = [threading.Thread(target=world, args=(n,)) for n in (2, 3)]
    for thread in beside:
        thread.start()
    for thread in beside:
        thread.join()
    assert sorted(found) == [[2, 2], [3, 3, 3]]


def test_refusals() -> None:
    with pytest.raises(errors.ShmemConfigError, match="one PE or more, not 0"):
        run_pes(lambda: None, 0)
    with pytest.raises(errors.ShmemConfigError, match="cannot be nested"):
        run_pes(lambda: run_pes(lambda: None, 2), 2)


def test_hardware_is_not_simulated_by_accident(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "current", lambda: platform.Selection("hip", "hardware", "rocm-smi is on PATH"))
    with pytest.raises(errors.ShmemConfigError, match=r"hip on its hardware .*TRITON_DIST_SIMULATE=1"):
        run_pes(lambda: None, 2)


def test_a_thread_of_a_pe_is_no_pe() -> None:
    def spawn() -> None:
        caught: list[bool] = []
        thread = threading.Thread(target=lambda: caught.append(shmem.initialized()))
        thread.start()
        thread.join()
        assert caught == [False]

    run_pes(spawn, 2)


def test_run_script_uses_threads_when_started_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    seen: list[tuple[int, int]] = []
    run_script(lambda: seen.append((shmem.my_pe(), shmem.n_pes())), 3)
    assert sorted(seen) == [(0, 3), (1, 3), (2, 3)]


def test_run_script_is_one_pe_under_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    seen: list[Any] = []
    run_script(lambda: seen.append(shmem.info().pes_are), 3)
    assert seen == ["processes"]
    assert not shmem.initialized()


def test_a_process_may_be_a_pe_several_times() -> None:
    for _ in range(3):
        shmem.init(heap_size=1 << 16)
        assert state.current().heap_base
        shmem.init()  # counts
        shmem.free_tensor(shmem.create_tensor((4,), torch.int8))
        shmem.finalize()
        assert shmem.initialized()
        shmem.finalize()
        assert not shmem.initialized()
        assert state.current().heap_base == 0


def test_a_kernel_before_init_does_not_hide_the_pe() -> None:
    lone = state.current()
    shmem.init(heap_size=1 << 16)
    assert state.current() is not lone
    shmem.finalize()
    assert state.current() is lone


def test_interrupting_a_run(tmp_path: Path) -> None:
    script = tmp_path / "hang.py"
    script.write_text(
        "from triton_dist import shmem\nfrom triton_dist.testing import run_pes\n"
        "def hang():\n    signals = shmem.create_signals(1)\n    print('ready', flush=True)\n"
        "    shmem.wait_signal(signals[0], 1)\n"
        "run_pes(hang, 2)\n"
    )
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(2)
    _, err = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in err
    assert process.returncode != 0


def test_the_pytest_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_backend(backend): assert backend == 'cpu'\n"
        "def test_sizes(n_pes): assert n_pes in (1, 2, 3, 4)\n"
        "@pytest.mark.backends('ascend')\ndef test_elsewhere(): raise AssertionError\n"
        "@pytest.mark.backends('cpu', 'ascend')\ndef test_here(): pass\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "triton_dist.testing.plugin", "--strict-markers", tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "TRITON_DIST_BACKEND": "cpu"},
        cwd=tmp_path,
    )
    assert "6 passed, 1 skipped" in run.stdout, run.stdout + run.stderr
    assert "needs the back end ascend; active is cpu" in run.stdout


def test_scoped_settings_reach_the_pes() -> None:
    with knobs.scope(heap_size="128K"):
        assert run_pes(lambda: shmem.info().heap_bytes, 2) == [1 << 17] * 2


@pytest.mark.parametrize(("n", "heap_size"), [(1.5, None), (0, None), (2, 1), (2, -5), (2, 0)])
def test_arguments_that_make_no_sense(n, heap_size) -> None:
    with pytest.raises(errors.ShmemConfigError, match="run_pes needs"):
        run_pes(lambda: None, n, heap_size=heap_size)


def test_a_failed_run_gives_its_heaps_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the exception, not when Python's cyclic collector comes along."""
    made: list[weakref.ref[Any]] = []

    def spied(*arguments: Any) -> list[Any]:
        segments = world.thread_segments(*arguments)
        made.extend(weakref.ref(segment) for segment in segments)
        return segments

    def fail(pe: int) -> None:
        tensor = shmem.create_tensor((1000,), torch.float32)
        if pe == 1:
            raise ValueError(f"about {tensor.shape}")
        shmem.barrier_all()

    monkeypatch.setattr(threads, "thread_segments", spied)
    gc.collect()
    gc.disable()
    try:
        with suppress(ValueError):
            run_pes(fail, 3)
        assert len(made) == 3
        assert [segment() for segment in made] == [None] * 3
    finally:
        gc.enable()


DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.mark.parametrize("variable", ["_TRITON_DIST_BOARD", "TORCHELASTIC_RUN_ID"])
def test_under_a_launcher_it_says_who_starts_the_pes(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "x")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(errors.ShmemConfigError, match="a launcher has started this script 3 times already"):
        run_pes(lambda: None, 2)
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert run_pes(lambda: 5, 2) == [5, 5]


WITHOUT_INIT = """
import torch, triton, triton_dist, triton_dist.language as dl, triton.language as tl

@triton_dist.jit
def who(out_ptr):
    tl.store(out_ptr, dl.num_ranks())

@triton.jit
def plain(out_ptr):
    tl.store(out_ptr, 7)

out = torch.zeros(1, dtype=torch.int32)
plain[(1,)](out)
assert out.item() == 7
who[(1,)](out)
print("ran", out.item())
"""


def test_a_kernel_under_a_launcher_before_init(tmp_path: Path) -> None:
    """It is none of the PEs, and no PE 0 of 1 either, as it is without a launcher."""
    script = tmp_path / "who.py"
    script.write_text(WITHOUT_INIT)
    for command, code in (["-m", "triton_dist.cli", "run", "-n", "2"], 1), ([], 0):
        done = subprocess.run([sys.executable, *command, str(script)], capture_output=True, text=True, timeout=110)
        assert done.returncode == code, done.stderr
        assert ("The kernel who needs a PE" in done.stderr) == bool(code)
        assert ("ran 1" in done.stdout) != bool(code)


def test_the_demo_under_a_launcher() -> None:
    command = [sys.executable, "-m", "triton_dist.cli", "run", "-n", "2", str(DEMO)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 1
    assert "Start it with python alone" in done.stderr


ATOMICS = """
    import ctypes, threading
    from triton_dist.backends.cpu import atomics

    number, together = ctypes.c_int64(), threading.Barrier(8)

    def count():
        together.wait()
        for _ in range(1000):
            atomics.word(64).add(ctypes.addressof(number), 1)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(number.value)
"""


def test_threads_that_come_together_compile_the_atomics_once() -> None:
    """Code that another thread had compiled in vain was freed while it ran."""
    for _ in range(3):
        command = [sys.executable, "-c", textwrap.dedent(ATOMICS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, "8000"), done.stderr
