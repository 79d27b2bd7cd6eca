# SPDX-License-Identifier: MIT
"""What PEs that are processes run in the tests."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist import backends, errors, shmem
from triton_dist.backends.cpu import state
from triton_dist.kernels import AllReduce


def ring() -> tuple[int, int, str]:
    me, n = shmem.my_pe(), shmem.n_pes()
    data, ready = shmem.create_tensor((4,), torch.int64), shmem.create_signals(1)
    for turn in range(1, 30):
        right = (me + 1) % n
        shmem.put(data, torch.full((4,), 100 * me + turn), right)
        shmem.signal(ready[0], turn, "set", right)
        shmem.wait_signal(ready[0], turn)
        assert data.tolist() == [(me - 1) % n * 100 + turn] * 4
        shmem.barrier_all()
    shmem.free_tensor(data)
    again = shmem.create_tensor((4,), torch.int64)
    assert not again.any()
    return int(shmem.peer_tensor(ready, (me + 1) % n)[0]), shmem.offset_of(again), shmem.info().pes_are


def any_calls(seed: int) -> list[int]:
    """A random but equal sequence of calls on every PE; returns the offsets that tensors got."""
    rng, me, n = random.Random(seed), shmem.my_pe(), shmem.n_pes()
    signals, live, offsets = shmem.create_signals(n), [], []
    for step in range(1, 150):
        call = rng.choice(["create", "create", "create", "free", "barrier", "signal"])
        if call == "create":
            data = shmem.create_tensor((rng.randrange(1, 5000),), torch.int32)
            assert not data.any()
            data.fill_(me + step)
            live.append((data, step))
            offsets.append(shmem.offset_of(data))
        elif call == "free" and live:
            shmem.free_tensor(live.pop(rng.randrange(len(live)))[0])
        elif call == "barrier":
            shmem.barrier_all()
            peer = rng.randrange(n)
            assert all(int(shmem.peer_tensor(data, peer)[-1]) == peer + made for data, made in live)
            shmem.barrier_all()
        elif call == "signal":
            shmem.signal(signals[me], step, "set", (me + step) % n)
            shmem.wait_signal(signals[(me - step) % n], step, "ge")
    return offsets


def unequal() -> str:
    me = shmem.my_pe()
    try:
        shmem.create_tensor((me + 1,), torch.int8)
    except errors.CollectiveMismatch as error:
        return str(error)
    return ""


def again_and_again() -> list[int]:
    shmem.finalize()
    totals = []
    for _ in range(3):
        shmem.init(heap_size=1 << 16)
        # Of the kind that the active back end adds to.
        ops = backends.active().limits.signal_ops
        counter = shmem.create_signals(1, torch.int64 if "add" in ops["int64"] else torch.int32)
        shmem.signal(counter[0], 1, "add", 0)
        if shmem.my_pe() == 0:
            totals.append(shmem.wait_signal(counter[0], shmem.n_pes()))
        shmem.finalize()
    return totals


def end_one(how: str, wait: str) -> Any:
    """PE 1 ends in some way while the others wait in some way; they tell what they saw, and after how long."""
    signals = shmem.create_signals(1)
    if shmem.my_pe() == 1:
        time.sleep(0.1)
        _end(how)
    start = time.monotonic()
    try:
        _wait(wait, signals)
    except errors.PeerDied as error:
        return time.monotonic() - start, str(error)
    return None


def _end(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "_exit":
        os._exit(5)
    raise ValueError("oh no")


def _wait(how: str, signals: torch.Tensor) -> None:
    if how == "signal":
        shmem.wait_signal(signals[0], 1)
    elif how == "barrier":
        shmem.barrier_all()
    elif how == "create":
        shmem.create_tensor((4,), torch.int8)
    else:  # as a kernel does
        device = state.current()
        while state.c_int64.from_address(device.abort).value == state.RUNNING:
            time.sleep(0.001)
        assert (state.c_int64.from_address(device.abort).value, device.dead_pe) == (state.PEER_DIED, 1)
        raise errors.PeerDied(pe=device.my_pe, dead=1, detail=shmem.adapter().death_of(1), what="a kernel")  # type: ignore[attr-defined]


def finalize_early_and_work_on() -> str:
    """PEs that finalized and ended are not dead: the last one to work on sees nothing of it."""
    shmem.create_tensor((4,), torch.int8)
    me = shmem.my_pe()
    device = state.current()
    shmem.finalize()
    if me == 0:
        time.sleep(0.5)
    return f"{device.dead_pe}"


def resources() -> dict[str, Any]:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        shmem.create_tensor((1 << 20,), torch.int8).fill_(1)
    shm = sorted(os.listdir("/dev/shm"))
    shmem.finalize()
    maps = [line for line in Path("/proc/self/maps").read_text().splitlines() if "triton_dist_heap" in line]
    return {"fds": len(os.listdir("/proc/self/fd")) - before, "maps": len(maps), "shm": shm, "pid": os.getpid()}


def die_with_touched_memory() -> int:
    shmem.create_tensor((8 << 20,), torch.int8).fill_(1)
    shmem.barrier_all()
    if shmem.my_pe() == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(3)


def only_own(value: int) -> tuple[int, str]:
    return value * shmem.my_pe(), os.environ["EXTRA"]


def another_heap_size() -> str:
    me = shmem.my_pe()
    shmem.finalize()
    try:
        shmem.init(heap_size=(1 + me) << 16)
    except errors.ShmemConfigError as error:
        return str(error)
    return ""


def sleep() -> None:
    time.sleep(60)


@triton.jit
def _rank_into(out):
    tl.store(out, dl.rank())


def launch_after_finalize() -> list[str]:
    """What a kernel says there, and which PE it is once there is a world again."""
    out = torch.zeros(1, dtype=torch.int32)
    _rank_into[(1,)](out)
    seen = [str(out.item())]
    shmem.finalize()
    try:
        _rank_into[(1,)](out)
    except errors.NotInitialized as error:
        seen.append(str(error))
    shmem.init()
    _rank_into[(1,)](out)
    return [*seen, str(out.item())]


def forked() -> list[str]:
    """What a child of a PE says to three calls; the PE itself goes on."""
    op, out = AllReduce((4,), torch.int32), torch.zeros(1, dtype=torch.int32)
    x = torch.full((4,), shmem.my_pe() + 1, dtype=torch.int32)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = [_refused(call) for call in (shmem.barrier_all, lambda: op(x), lambda: _rank_into[(1,)](out))]
        os.write(write, "\n".join(said).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        return [*pipe.read().splitlines(), str(op(x).tolist())]


def _refused(call: Callable[[], object]) -> str:
    try:
        return f"done: {call()}"
    except errors.NotInitialized as error:
        return str(error)
