# SPDX-License-Identifier: MIT
"""The demo: overlapped AllGather-GEMM on PEs of this CPU, against all-gather then matmul in torch, with a timeline.

python examples/demo.py -n 4
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

# Before torch is imported: its OpenMP workers spin after every operation and would take the cores from the PEs.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from rich.console import Console
from rich.table import Table

import triton_dist
from triton_dist import shmem
from triton_dist.backends.cpu import trace
from triton_dist.kernels import AllGatherGemm
from triton_dist.profile import Event, write_timeline, write_trace
from triton_dist.testing import run_pes

PUSHERS = 1


@dataclass(frozen=True)
class Problem:
    """A of m x k on every PE; B of k x n on every PE."""

    m: int
    n: int
    k: int
    workers: int
    repeats: int

    def flops(self, pes: int) -> float:
        """Of all PEs together."""
        return 2.0 * (pes * self.m) * self.n * self.k * pes


@dataclass(frozen=True)
class Report:
    """What one PE measured; times in seconds, the error relative to the largest element."""

    first_call: float
    ours: list[float]
    torchs: list[float]
    error: float
    events: list[Event]


def measure(problem: Problem) -> Report:
    """Run both ways on this PE: check them against each other, time them, then trace one call of ours."""
    me = shmem.my_pe()
    generator = torch.Generator().manual_seed(me)
    shard = shmem.create_tensor((problem.m, problem.k), torch.float32)
    shard.copy_(torch.randn(problem.m, problem.k, generator=generator))
    b = torch.randn(problem.k, problem.n, generator=generator)
    with AllGatherGemm(problem.m, problem.k, shard.dtype, pushers=PUSHERS, workers=problem.workers) as multiply:
        began = time.perf_counter()
        result = multiply(shard, b)
        first_call = time.perf_counter() - began
        error = relative_error(result, gather_then_matmul(shard, b))
        ours = [timed(lambda: multiply(shard, b)) for _ in range(problem.repeats)]
        torchs = [timed(lambda: gather_then_matmul(shard, b)) for _ in range(problem.repeats)]
        shmem.barrier_all()
        with trace.capture() as events:
            multiply(shard, b)
    shmem.free_tensor(shard)
    return Report(first_call, ours, torchs, error, list(events))


def gather_then_matmul(shard: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The plain way: collect all shards, then multiply."""
    shmem.barrier_all()  # every PE's shard is there
    gathered = torch.cat([shmem.peer_tensor(shard, pe) for pe in range(shmem.n_pes())])
    return gathered @ b


def relative_error(result: torch.Tensor, expected: torch.Tensor) -> float:
    return ((result - expected).abs().max() / expected.abs().max()).item()


def timed(call: Callable[[], object]) -> float:
    shmem.barrier_all()
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def slowest(runs: list[list[float]]) -> float:
    """The median over the runs of the time of the slowest PE."""
    return statistics.median(max(times) for times in zip(*runs, strict=True))


def table(problem: Problem, reports: list[Report]) -> Table:
    pes = len(reports)
    shape = f"({pes} x {problem.m}) x {problem.k} times {problem.k} x {problem.n}"
    result = Table(title=f"AllGather-GEMM on {pes} PEs, fp32, {shape} on every PE", title_justify="left")
    result.add_column("way")
    for name in ("time", "GFLOP/s", "largest error"):
        result.add_column(name, justify="right")
    rows = {
        "triton_dist: one kernel, overlapped": [report.ours for report in reports],
        "torch: all-gather, then matmul": [report.torchs for report in reports],
    }
    for way, runs in rows.items():
        seconds = slowest(runs)
        error = f"{max(report.error for report in reports):.1e}" if way.startswith("triton_dist") else "reference"
        result.add_row(way, f"{seconds * 1e3:.1f} ms", f"{problem.flops(pes) / seconds / 1e9:.1f}", error)
    return result


def draw(folder: str, pes: int, problem: Problem, events: list[Event]) -> list[str]:
    """Write the timeline as a picture and as a trace; returns their paths."""
    size = f"{pes * problem.m} x {problem.n} x {problem.k} fp32 on every PE"
    host = f"{pes} PEs, {PUSHERS + problem.workers} programs each, on {os.cpu_count()} cores"
    picture = write_timeline(
        os.path.join(folder, "demo_timeline.svg"),
        events,
        title=f"Overlapped AllGather-GEMM on {pes} PEs",
        subtitle=f"{size}; {host}; triton_dist {triton_dist.__version__}",
        role=lambda event: "push" if event.program < PUSHERS else "GEMM",
    )
    return [str(picture), str(write_trace(os.path.join(folder, "demo_trace.json"), events))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--pes", type=int, default=4)
    parser.add_argument("--size", type=int, nargs=3, default=(256, 1024, 512), metavar=("M", "N", "K"))
    parser.add_argument("--workers", type=int, default=3, help="programs that multiply, on each PE")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", default="out", help="folder of the timeline")
    args = parser.parse_args()
    problem = Problem(*args.size, args.workers, args.repeats)
    torch.set_num_threads(1)  # a PE is one thread in torch's way
    reports = run_pes(lambda: measure(problem), args.pes)
    console = Console()
    console.print(table(problem, reports))
    console.print(f"First call, with compilation: {max(r.first_call for r in reports):.2f} s.")
    paths = draw(args.out, args.pes, problem, [event for report in reports for event in report.events])
    console.print(f"Timeline: {paths[0]} (open it in a browser)", soft_wrap=True)
    console.print(f"Trace:    {paths[1]} (open it in Perfetto)", soft_wrap=True)
    worst = max(report.error for report in reports)
    if worst > 1e-5:
        raise SystemExit(f"the result is wrong: relative error {worst:.1e}")


if __name__ == "__main__":
    main()
