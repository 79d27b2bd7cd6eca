# SPDX-License-Identifier: MIT
"""Measuring on several PEs at once."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import torch

from triton_dist import shmem


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


def seconds(call: Callable[[], object], calls: int) -> float:
    """Of one call, on the device, all PEs at once; `calls` of them follow each other."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    shmem.barrier_all()
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / calls / 1e3


def medians(meeting: Meeting, ways: dict[str, Callable[[], object]], repeats: int, calls: int) -> dict[str, float]:
    """The median time of each way, taken in turn; of the slowest PE each time."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for call in ways.values():
        call()
        call()
    for _ in range(repeats):
        for name, call in ways.items():
            times[name].append(meeting.slowest(seconds(call, calls)))
    return {name: statistics.median(values) for name, values in times.items()}


def graph_of(call: Callable[[], object], calls: int) -> Callable[[], object]:
    """A CUDA graph of `calls` calls: no time of the host's between them."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(calls):
            call()
    return graph.replay


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A markdown table, on PE 0."""
    if shmem.my_pe() != 0:
        return
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(f'{cell:.4g}' if isinstance(cell, float) else str(cell) for cell in row)} |")
    print(flush=True)
