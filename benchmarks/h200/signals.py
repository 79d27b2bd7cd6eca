# SPDX-License-Identifier: MIT
# pyright: reportArgumentType=false
"""How long a signal takes to a peer and back."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
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
def ping_pong_kernel(flag_ptr, first, second, rounds, SCOPE: tl.constexpr):
    """Two PEs in turn: set the other's flag to the number of the round, wait for one's own."""
    me = dl.rank()
    for number in range(1, rounds + 1):
        if me == first:
            dl.notify(flag_ptr, second, signal=number, sig_op="set", comm_scope=SCOPE)
            dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=number)
        else:
            dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=number)
            dl.notify(flag_ptr, first, signal=number, sig_op="set", comm_scope=SCOPE)


@triton_dist.jit
def spin_kernel(flag_ptr, first, second, rounds):
    """The same by hand, in one thread: a release addition, and loads until the value is there."""
    me = dl.rank()
    peer_flag = dl.symm_at(flag_ptr, first + second - me)
    if tid(0) == 0:
        for number in range(1, rounds + 1):
            if me == first:
                atomic_add(peer_flag, 1, "sys", "release")
            seen = ld(flag_ptr, "sys", "acquire")
            while seen < number:
                seen = ld(flag_ptr, "sys", "acquire")
            if me == second:
                atomic_add(peer_flag, 1, "sys", "release")


ROUNDS = 2000
IDLE_SECONDS = 0.05
PLACES = 16
"""Of the signals, a page and a bit apart: a round trip takes longer at some (a GPU's L2 cache has two halves)."""
FEW_PLACES = 4
APART = 528


def places() -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Signals, and those of them that are used."""
    signals = shmem.create_signals(PLACES * APART)
    return signals, [signals[i * APART :][:1] for i in range(PLACES)]


Pair = tuple[int, int]
Way = Callable[[torch.Tensor, Pair], Any]


def ways() -> dict[str, Way]:
    def ours(flag: torch.Tensor, pair: Pair, scope: str, warps: int) -> None:
        ping_pong_kernel[(1,)](flag, *pair, ROUNDS, SCOPE=scope, num_warps=warps)

    found: dict[str, Way] = {
        f"notify/wait, {scope}, {warps} warps": partial(ours, scope=scope, warps=warps)
        for scope in ("intra_node", "inter_node")
        for warps in (1, 4)
    }
    return {**found, "by hand, 1 warp": lambda flag, pair: spin_kernel[(1,)](flag, *pair, ROUNDS, num_warps=1)}


def ping_pong(meeting: Meeting) -> None:
    """Microseconds for a round trip: between PEs 0 and 1 in every way, then between all PEs in two of them."""
    signals, flags = places()

    def row(name: str, launch: Way, pair: Pair, flags: Sequence[torch.Tensor]) -> tuple[object, ...]:
        with doing("ping-pong", name, *map(str, pair)):
            trip(meeting, signals, partial(launch, flags[0], pair), pair)  # compiles
            times = [
                min(trip(meeting, signals, partial(launch, flag, pair), pair) for _ in range(2)) / ROUNDS * 1e6
                for flag in flags
            ]
        return statistics.median(times), min(times), max(times)

    table = Table(f"Signal ping-pong, {ROUNDS} rounds, us a round trip, of {PLACES} places of the signal")
    table.head(("way", "median", "least", "most"))
    for name, launch in ways().items():
        table.row((name, *row(name, launch, (0, 1), flags)))
    if shmem.n_pes() > 2:
        table = Table(f"The same between any two PEs, of {FEW_PLACES} places, one warp")
        table.head(("PEs", "notify/wait: median", "least", "most", "by hand: median", "least", "most"))
        first, *_, last = ways().items()
        for pair in itertools.combinations(range(shmem.n_pes()), 2):
            times = (row(*way, pair, flags[:: PLACES // FEW_PLACES]) for way in (first, last))
            table.row((f"{pair[0]} and {pair[1]}", *itertools.chain(*times)))
    shmem.free_tensor(signals)


def trip(meeting: Meeting, signals: torch.Tensor, launch: Callable[[], Any], pair: Pair) -> float:
    """Seconds of all rounds, of the slower PE."""
    shmem.reset_signals(signals)
    return meeting.slowest(seconds(launch, 1) if shmem.my_pe() in pair else idle())


def idle() -> float:
    """What PEs do meanwhile that only look on: nothing at all. A barrier of theirs would poll the same memory."""
    shmem.barrier_all()
    torch.cuda.synchronize()
    time.sleep(IDLE_SECONDS)
    return 0.0
