# SPDX-License-Identifier: MIT
"""Measuring on several PEs at once."""

from __future__ import annotations

import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Sequence

import torch

from triton_dist import shmem

DEBUG = os.environ.get("H200_DEBUG") == "1"
"""Wait for the device after every call, so that a fault is told by the call that made it; no graphs."""


class Meeting:
    """Figures of all PEs, on all PEs."""

    def __init__(self) -> None:
        self._table = shmem.create_tensor((shmem.n_pes(),), torch.float64)

    def all(self, value: float) -> list[float]:
        mine = torch.full((1,), value, dtype=torch.float64, device=shmem.device())
        shmem.barrier_all()
        for pe in range(shmem.n_pes()):
            shmem.put(self._table[shmem.my_pe() : shmem.my_pe() + 1], mine, pe)
        shmem.barrier_all()
        return self._table.tolist()

    def slowest(self, value: float) -> float:
        return max(self.all(value))


AHEAD = 2_000_000
"""Cycles, about 1 ms, in which the host gets ahead of the device."""


def seconds(call: Callable[[], object], calls: int, ahead: bool = False) -> float:
    """Of one call, on the device, all PEs at once; `calls` of them follow each other.

    `ahead`: the device begins late, so that the host's time for its calls is not in the device's.
    """
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    if ahead:
        torch.cuda._sleep(AHEAD)
    shmem.barrier_all()
    start.record()
    for _ in range(calls):
        call()
        if DEBUG:
            torch.cuda.synchronize()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / calls / 1e3


def medians(
    meeting: Meeting, ways: dict[str, Callable[[], object]], repeats: int, calls: int, ahead: bool = False
) -> dict[str, float]:
    """The median time of each way, taken in turn; of the slowest PE each time."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for name, call in ways.items():
        with doing(name):
            call()
            call()
            torch.cuda.synchronize()
    for _ in range(repeats):
        for name, call in ways.items():
            with doing(name):
                times[name].append(meeting.slowest(seconds(call, calls, ahead)))
    return {name: statistics.median(values) for name, values in times.items()}


def median_of(meeting: Meeting, run: Callable[[], object]) -> float:
    """The median time of `run`; of the slowest PE each time."""
    run()
    first = meeting.slowest(seconds(run, 1))
    # What takes long, does not vary much.
    return statistics.median(meeting.slowest(seconds(run, 1)) for _ in range(7 if first < 0.1 else 1))


def say(text: str) -> None:
    if shmem.my_pe() == 0:
        print(text, flush=True)


def graph_of(call: Callable[[], object], calls: int) -> Callable[[], object]:
    """A CUDA graph of `calls` calls: no time of the host's between them."""
    if DEBUG:
        return lambda: [(call(), torch.cuda.synchronize()) for _ in range(calls)]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    # Other threads, NCCL's watchdog among them, go on calling CUDA.
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        for _ in range(calls):
            call()
    return graph.replay


class doing:
    """A `with` that names what failed in it. A fault of the device cannot be recovered from: this ends the process."""

    def __init__(self, *words: object) -> None:
        self.text = " ".join(map(str, words))

    def __enter__(self) -> None:
        if DEBUG:
            print(f"PE {shmem.my_pe()}: {self.text}", file=sys.stderr, flush=True)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or getattr(error, "told", False):
            return
        error.told = True  # pyright: ignore[reportAttributeAccessIssue]
        print(f"FAILED PE {shmem.my_pe()}: {self.text}: {type(error).__name__}: {error}".splitlines()[0], flush=True)


def run_main(main: Callable[[], int]) -> None:
    """Exit at once if it fails: NVSHMEM and torch would wait for peers or a device that are gone."""
    try:
        status = main()
    except BaseException as error:
        status = error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1
        if status:
            traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    if os.environ.get("RANK") == "0":
        # It serves torch's store, which threads of the others go on asking.
        time.sleep(1)
    os._exit(status)


class Clock:
    """Whether a limit is reached; all PEs say the same."""

    def __init__(self, meeting: Meeting, limit: float) -> None:
        self.meeting, self.limit, self.began = meeting, limit, time.monotonic()

    def late(self) -> bool:
        return self.meeting.slowest(time.monotonic() - self.began) > self.limit


class Table:
    """A markdown table on PE 0, a row as it comes: what was measured is not lost if something fails later."""

    def __init__(self, title: str) -> None:
        self._title, self._columns = title, 0

    def head(self, head: Sequence[str]) -> None:
        self._columns = len(head)
        self._say(f"\n{self._title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")

    def row(self, row: Sequence[object]) -> None:
        cells = (f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row)
        self._say(f"| {' | '.join(cells)} |")

    def _say(self, text: str) -> None:
        if shmem.my_pe() == 0:
            print(text, flush=True)
