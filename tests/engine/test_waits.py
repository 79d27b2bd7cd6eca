# SPDX-License-Identifier: MIT
"""A wait ends: with its signal, at its deadline, or when the peer it waits for is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist import errors, knobs, shmem, testing
from triton_dist.language.extra import libshmem_device


@triton.jit
def wait_for(signals, value, out):
    token = dl.wait(signals, 1, "sys", "acquire", waitValue=value)
    tl.store(out, token + 1)


@triton.jit
def last_sets_the_flag(flag, out, n):
    pid = tl.program_id(0)
    if pid == n - 1:
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        dl.wait(flag, 1, "sys", "acquire", waitValue=1)
    tl.store(out + pid, pid)


@triton.jit
def wait_for_some(signals, n):
    dl.wait(signals, n, "sys", "acquire")


@triton.jit
def spin_on(flag, out):
    while tl.atomic_add(flag, 0) == 0:
        pass
    tl.store(out, 1)


@triton.jit
def look_at(pointer, out, pe):
    there = dl.symm_at(pointer, pe)
    tl.store(out, tl.load(there))


@triton.jit
def bad_signal(signals):
    libshmem_device.signal_op(signals, 1, 77, 0)


def wait_line() -> int:
    source = Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(source, 1) if "token = dl.wait" in line)


def test_a_wait_that_never_ends_names_everything() -> None:
    def main(pe: int) -> None:
        signals = shmem.create_signals(4)
        signals.view(-1)[0] = 5
        wait_for[(1,)](signals, 7, torch.zeros(1, dtype=torch.int32))

    with knobs.scope(wait_timeout=0.3), pytest.raises(errors.WaitTimeout) as caught:
        testing.run_pes(main, 2)
    text = str(caught.value)
    assert "PE 0, program 0" in text or "PE 1, program 0" in text
    assert f"test_waits.py:{wait_line()}" in text
    assert "expected 7" in text
    assert "present value 5" in text


def test_a_negative_number_of_signals() -> None:
    """It is known at run time only."""

    def main() -> None:
        signals = shmem.create_signals(4)
        wait_for_some[(1,)](signals, 0)
        with pytest.raises(errors.BadCountInKernel, match=r"test_waits\.py:\d+: dl\.wait on -3 signals"):
            wait_for_some[(1,)](signals, -3)

    testing.run_pes(main, 1)


def test_a_loop_of_the_users_own_ends_too() -> None:
    flag, out = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    with knobs.scope(wait_timeout=0.3), pytest.raises(errors.WaitTimeout, match=r"test_waits\.py"):
        testing.run_pes(lambda: spin_on[(1,)](flag, out), 1)


def test_a_spin_sees_another_threads_write() -> None:
    flag, out = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    timer = threading.Timer(0.2, lambda: flag.fill_(1))
    timer.start()
    spin_on[(1,)](flag, out)
    assert out.item() == 1


@pytest.mark.parametrize("programs", [1, 2, 20, 300])
def test_programs_of_a_grid_may_wait_for_the_last(programs: int) -> None:
    flag, out = torch.zeros(1, dtype=torch.int32), torch.full((programs,), -1, dtype=torch.int32)
    last_sets_the_flag[(programs,)](flag, out, programs)
    assert out.tolist() == list(range(programs))


@triton.jit
def chain(signals, out, n, UP: tl.constexpr, POLL: tl.constexpr):
    """Each program waits for its neighbour."""
    pid = tl.program_id(0)
    neighbour = pid + 1 if UP else pid - 1
    if (neighbour >= 0) & (neighbour < n):
        if POLL:
            while tl.atomic_add(signals + neighbour, 0) == 0:
                pass
        else:
            dl.wait(signals + neighbour, 1, "sys", "acquire", waitValue=3)
    tl.store(out + pid, pid)
    tl.atomic_xchg(signals + pid, 3, sem="release")


@pytest.mark.parametrize("poll", [False, True])
@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_thousands_of_programs_wait_in_a_chain(dtype: torch.dtype, up: bool, poll: bool) -> None:
    """One that sleeps and looks in each of the threads would take all the time there is: some milliseconds a link."""
    n = 2000
    signals, out = torch.zeros(n, dtype=dtype), torch.full((n,), -1, dtype=torch.int32)
    with knobs.scope(num_threads=2, wait_timeout=60):
        chain[(n,)](signals, out, n, UP=up, POLL=poll)
    assert torch.equal(out, torch.arange(n, dtype=torch.int32))
    assert bool((signals == 3).all())


@pytest.mark.parametrize("poll", [False, True])
def test_a_crowd_that_waits_in_vain_ends_at_the_deadline(poll: bool) -> None:
    signals, out = torch.zeros(400, dtype=torch.int32), torch.zeros(400, dtype=torch.int32)
    begin = time.monotonic()
    with knobs.scope(num_threads=2, wait_timeout=1.0), pytest.raises(errors.WaitTimeout):
        # One program too few: the last one's neighbour never runs.
        chain[(399,)](signals, out, 400, UP=True, POLL=poll)
    assert time.monotonic() - begin < 20


def test_kernels_run_after_a_timeout() -> None:
    flag, out = torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int32)

    def late() -> None:
        with pytest.raises(errors.WaitTimeout):
            wait_for[(1,)](flag, 1, out)
        flag.fill_(1)
        wait_for[(1,)](flag, 1, out)

    with knobs.scope(wait_timeout=0.2):
        testing.run_pes(late, 1)
    assert out.item() == 1


def test_a_pe_that_fails_ends_its_peers_kernels_at_once() -> None:
    def main(pe: int) -> None:
        signals, out = shmem.create_signals(1), torch.zeros(1, dtype=torch.int32)
        if pe == 0:
            raise RuntimeError("on purpose")
        wait_for[(1,)](signals, 1, out)

    start = time.monotonic()
    with pytest.raises(RuntimeError, match="on purpose"):
        testing.run_pes(main, 3)
    assert time.monotonic() - start < 20


@triton.jit
def which_pe(out):
    tl.store(out, dl.rank())


def test_a_helper_thread_inside_run_pes_is_no_pe() -> None:
    caught: list[BaseException] = []

    def helper() -> None:
        try:
            which_pe[(1,)](torch.zeros(1, dtype=torch.int32))
        except errors.NotInitialized as error:
            caught.append(error)

    def main() -> int:
        thread = threading.Thread(target=helper)
        thread.start()
        thread.join()
        out = torch.zeros(1, dtype=torch.int32)
        which_pe[(1,)](out)
        return int(out.item())

    assert testing.run_pes(main, 2) == [0, 1]
    assert len(caught) == 2
    assert "The kernel which_pe needs a PE" in str(caught[0])


def test_a_pe_out_of_range() -> None:
    def main(pe: int) -> None:
        tensor, out = shmem.create_tensor((4,), torch.float32), torch.zeros(1)
        look_at[(1,)](tensor, out, 9)

    with pytest.raises(errors.PeOutOfRangeInKernel, match=r"test_waits\.py:\d+: there is no PE 9: 2 PEs"):
        testing.run_pes(main, 2)


def test_an_address_outside_the_heap() -> None:
    def main(pe: int) -> None:
        out = torch.zeros(4)
        look_at[(1,)](out, out, 1 - pe)

    with pytest.raises(errors.ForeignAddressInKernel, match="none into the symmetric heap"):
        testing.run_pes(main, 2)


def test_the_address_of_a_tensor_without_elements() -> None:
    def main(pe: int) -> None:
        look_at[(1,)](shmem.create_tensor((0,), torch.float32), torch.zeros(4), 1 - pe)

    with pytest.raises(errors.NullAddressInKernel, match="the pointer is null, as that of a tensor"):
        testing.run_pes(main, 2)


KILLED = """
    import os, signal, sys, torch, triton, triton.language as tl
    import triton_dist.language as dl
    from triton_dist import shmem

    @triton.jit
    def wait_for(signals, out):
        token = dl.wait(signals, 1, "sys", "acquire", waitValue=1)
        tl.store(out, token)

    shmem.init()
    signals, out = shmem.create_signals(1), torch.zeros(1, dtype=torch.int32)
    shmem.barrier_all()
    if shmem.my_pe() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        wait_for[(1,)](signals, out)
    except Exception as error:
        print(f"PE {shmem.my_pe()} saw: {type(error).__name__}: {error}", flush=True)
        os._exit(3)
"""


def test_a_killed_pe_is_named_at_once(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED))
    start = time.monotonic()
    command = [sys.executable, "-m", "triton_dist.cli", "run", "-n", "2", str(script)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, env=os.environ | {"TRITON_DIST_WAIT_TIMEOUT": "60"}
    )
    assert done.returncode != 0
    assert "PE 1" in done.stdout + done.stderr
    assert time.monotonic() - start < 40


COMPUTING = """
    import signal, sys, torch, triton, triton.language as tl
    import triton_dist

    @triton.jit
    def compute(out, rounds):
        value = tl.program_id(0)
        for i in range(rounds):
            value = value * 1664525 + 1013904223 + i
        tl.store(out + tl.program_id(0), value)

    class Enough(Exception):
        pass

    def enough(number, frame):
        raise Enough

    def run(programs, rounds):
        out = torch.zeros(programs, dtype=torch.int32)
        compute[(programs,)](out, rounds)
        return out

    run(10, 10)
    expected = Enough if sys.argv[1:] == ["own"] else KeyboardInterrupt
    if expected is Enough:
        signal.signal(signal.SIGINT, enough)
    print("computing", flush=True)
    try:
        run(100_000, 10_000_000)
    except expected:
        print("interrupted", flush=True)
    # The next one is not.
    assert run(1000, 3).count_nonzero() > 0
    print("went on", flush=True)
"""


@pytest.mark.parametrize("handler", ["default", "own"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c_reaches_a_kernel_that_computes(tmp_path: Path, handler: str, threads: str) -> None:
    script = tmp_path / "computing.py"
    script.write_text(textwrap.dedent(COMPUTING))
    env = {**os.environ, "TRITON_DIST_NUM_THREADS": threads}
    child = subprocess.Popen([sys.executable, str(script), handler], stdout=subprocess.PIPE, text=True, env=env)
    assert child.stdout is not None
    assert child.stdout.readline() == "computing\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    try:
        out, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert out == "interrupted\nwent on\n"


INTERRUPTED = """
    import torch, triton, triton.language as tl
    import triton_dist.language as dl

    @triton.jit
    def wait_for(flag, out):
        token = dl.wait(flag, 1, "sys", "acquire", waitValue=1)
        tl.store(out, token)

    flag, out = torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int32)
    print("waiting", flush=True)
    try:
        wait_for[(1,)](flag, out)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_ctrl_c_reaches_a_waiting_kernel(tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(textwrap.dedent(INTERRUPTED))
    child = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "waiting\n"
    time.sleep(3)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=30)
    assert "interrupted" in out


@pytest.mark.parametrize("n", [1 << 40, (1 << 32) + 1, -(1 << 40)])
def test_more_signals_than_32_bits_count_are_not_taken_for_fewer(n: int) -> None:
    """What was cut off would leave none to wait for, or one."""

    def pe() -> None:
        signals = shmem.create_signals(1)
        signals.fill_(1)
        with knobs.scope(wait_timeout=0.3):
            wait_for_some[(1,)](signals, n)

    with pytest.raises(errors.BadCountInKernel if n < 0 else errors.KernelAborted):
        testing.run_pes(pe, 1)
