# SPDX-License-Identifier: MIT
"""Memory that PEs lend each other by the host, and the wait of a stream, where there are no streams."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from triton_dist import knobs, shmem
from triton_dist.errors import BadSignal, WaitTimeout
from triton_dist.kernels.stage import Stage
from triton_dist.testing import run_pes


@pytest.fixture(params=["cpu", "cuda"], autouse=True)
def backend(request: pytest.FixtureRequest) -> Iterator[None]:
    with knobs.scope(backend=request.param, simulate=request.param != "cpu"):
        yield


@pytest.mark.parametrize("pes", [1, 2, 3])
def test_what_is_lent_is_written_and_told(pes: int) -> None:
    def exchange() -> list[list[float]]:
        me, seen = shmem.my_pe(), []
        stage = Stage((pes,), torch.float32, pes)
        others = [(me + step) % pes for step in range(1, pes)]
        for call in range(5):
            stage.lend()
            for peer in others:
                stage.await_lent(peer)
                stage.on(peer)[me].fill_(10 * call + me)
                stage.tell(peer, me)
            stage.buffer[me] = 10 * call + me
            for source in others:
                stage.await_told(source)
            seen.append(stage.buffer.tolist())
        stage.free()
        return seen

    assert run_pes(exchange, pes) == [[[10.0 * call + pe for pe in range(pes)] for call in range(5)]] * pes


def test_a_streams_wait_waits_on_the_host() -> None:
    def run(pe: int) -> int:
        signals = shmem.create_signals(2)
        if pe == 0:
            shmem.signal(signals[0], 5, "set", 1)
            return 0
        shmem.stream_wait_signal(signals[0], 4)
        shmem.stream_wait_signal(signals[0], 5, "eq")
        return int(signals[0])

    assert run_pes(run, 2) == [0, 5]


def test_mistakes_are_named() -> None:
    def run() -> None:
        signals = shmem.create_signals(1)
        for cmp in "==", "ne":
            with pytest.raises(BadSignal, match=f"stream_wait_signal: cmp = '{cmp}' is unknown; valid: ge, eq"):
                shmem.stream_wait_signal(signals[0], 1, cmp)
        with knobs.scope(wait_timeout=0.2), pytest.raises(WaitTimeout):
            shmem.wait_signal(signals[0], 1, "ge", timeout=0.2)

    run_pes(run, 1)
