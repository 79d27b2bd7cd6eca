# SPDX-License-Identifier: MIT
# pyright: reportArgumentType=false
"""How long a signal takes to a peer and back."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton.language as tl
from common import Meeting, Table, doing, seconds

import triton_dist
import triton_dist.language as dl
from triton_dist import shmem
from triton_dist.language.extra.language_extra import atomic_add, ld, tid


@triton_dist.jit
def ping_pong_kernel(flag_ptr, rounds, SCOPE: tl.constexpr):
    """PEs 0 and 1 in turn: set the other's flag to the number of the round, wait for one's own."""
    me = dl.rank()
    for number in range(1, rounds + 1):
        if me == 0:
            dl.notify(flag_ptr, 1, signal=number, sig_op="set", comm_scope=SCOPE)
            dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=number)
        else:
            dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=number)
            dl.notify(flag_ptr, 0, signal=number, sig_op="set", comm_scope=SCOPE)


@triton_dist.jit
def spin_kernel(flag_ptr, rounds):
    """The same by hand, in one thread: a release addition, and loads until the value is there."""
    me = dl.rank()
    peer_flag = dl.symm_at(flag_ptr, 1 - me)
    if tid(0) == 0:
        for number in range(1, rounds + 1):
            if me == 0:
                atomic_add(peer_flag, 1, "sys", "release")
            seen = ld(flag_ptr, "sys", "acquire")
            while seen < number:
                seen = ld(flag_ptr, "sys", "acquire")
            if me == 1:
                atomic_add(peer_flag, 1, "sys", "release")


ROUNDS = 2000
IDLE_SECONDS = 0.05
PLACES = 16
"""Of the signals, a page and a bit apart: a round trip takes longer at some (a GPU's L2 cache has two halves)."""
APART = 528


def places() -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Signals, and those of them that are used."""
    signals = shmem.create_signals(PLACES * APART)
    return signals, [signals[i * APART :][:1] for i in range(PLACES)]


def ping_pong(meeting: Meeting) -> None:
    """Microseconds for a round trip between PEs 0 and 1."""
    rounds = ROUNDS
    signals, flags = places()
    ways: dict[str, Callable[[torch.Tensor], Any]] = {}
    for scope in ("intra_node", "inter_node"):
        for warps in (1, 4):
            ways[f"notify/wait, {scope}, {warps} warps"] = partial(
                lambda flag, scope, warps: ping_pong_kernel[(1,)](flag, rounds, SCOPE=scope, num_warps=warps),
                scope=scope, warps=warps,
            )  # fmt: skip
    ways["by hand, 1 warp"] = lambda flag: spin_kernel[(1,)](flag, rounds, num_warps=1)
    table = Table(f"Signal ping-pong, {rounds} rounds, us a round trip, of {PLACES} places of the signal")
    table.head(("way", "median", "least", "most"))
    for name, launch in ways.items():
        with doing("ping-pong", name):
            trip(meeting, signals, partial(launch, flags[0]))  # compiles
            times = [
                min(trip(meeting, signals, partial(launch, flag)) for _ in range(2)) / rounds * 1e6 for flag in flags
            ]
        table.row((name, statistics.median(times), min(times), max(times)))
    shmem.free_tensor(signals)


def trip(meeting: Meeting, signals: torch.Tensor, launch: Callable[[], Any]) -> float:
    """Seconds of all rounds, of the slower PE."""
    shmem.reset_signals(signals)
    return meeting.slowest(seconds(launch, 1) if shmem.my_pe() < 2 else idle())


def idle() -> float:
    """What PEs do meanwhile that only look on: nothing at all. A barrier of theirs would poll the same memory."""
    shmem.barrier_all()
    torch.cuda.synchronize()
    time.sleep(IDLE_SECONDS)
    return 0.0
