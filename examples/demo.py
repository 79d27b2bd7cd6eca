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
from triton_dist import knobs, shmem
from triton_dist.backends.cpu import trace
from triton_dist.kernels import AllGatherGemm
from triton_dist.profile import Event, write_timeline, write_trace
from triton_dist.testing import positive, run_pes

PUSHERS = 1
BLOCKS = (128, 256, 64)
WAYS = ("triton_dist, overlapped", "torch: gather, then matmul")


@dataclass(frozen=True)
class Problem:
    """A of m x k on every PE; B of k x n on every PE."""

    m: int
    n: int
    k: int
    threads: int
    """Threads that a PE computes with, both ways."""
    workers: int
    """Programs that multiply, on each PE."""
    repeats: int

    def flops(self, pes: int) -> float:
        """Of all PEs together."""
        return 2.0 * (pes * self.m) * self.n * self.k * pes


@dataclass(frozen=True)
class Report:
    """What one PE measured; times in seconds, the error relative to the largest element."""

    first_call: float
    times: list[tuple[float, float]]
    """Of each repeat: ours, torch's."""
    error: float
    events: list[Event]


def measure(problem: Problem) -> Report:
    """Run both ways on this PE: check them against each other, time them in turn, then trace one call of ours."""
    torch.set_num_threads(problem.threads)
    generator = torch.Generator().manual_seed(shmem.my_pe())
    shard = shmem.create_tensor((problem.m, problem.k), torch.float32)
    shard.copy_(torch.randn(problem.m, problem.k, generator=generator))
    b = torch.randn(problem.k, problem.n, generator=generator)
    settings = {"pushers": PUSHERS, "workers": problem.workers, "blocks": BLOCKS}
    with AllGatherGemm(problem.m, problem.k, shard.dtype, **settings) as multiply:
        began = time.perf_counter()
        result = multiply(shard, b)
        first_call = time.perf_counter() - began
        error = relative_error(result, gather_then_matmul(shard, b))
        ways = (lambda: multiply(shard, b), lambda: gather_then_matmul(shard, b))
        times = [(timed(ways[0]), timed(ways[1])) for _ in range(problem.repeats)]
        shmem.barrier_all()
        with trace.capture() as events:
            multiply(shard, b)
    shmem.free_tensor(shard)
    return Report(first_call, times, error, list(events))


def gather_then_matmul(shard: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The plain way: collect all shards, then multiply."""
    shmem.barrier_all()  # every PE's shard is there
    gathered = torch.cat([shmem.peer_tensor(shard, pe) for pe in range(shmem.n_pes())])
    return gathered @ b


def relative_error(result: torch.Tensor, expected: torch.Tensor) -> float:
    return ((result - expected).abs().max() / expected.abs().max()).item()


def largest_error(reports: list[Report]) -> float:
    """Of all PEs; nan, if one is."""
    return torch.tensor([report.error for report in reports]).max().item()


def timed(call: Callable[[], object]) -> float:
    shmem.barrier_all()
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def slowest(reports: list[Report], way: int) -> float:
    """The median over the repeats of the time of the slowest PE."""
    repeats = zip(*(report.times for report in reports), strict=True)
    return statistics.median(max(times[way] for times in repeat) for repeat in repeats)


def heading(problem: Problem, pes: int) -> str:
    shape = f"({pes} x {problem.m}) x {problem.k} times {problem.k} x {problem.n}"
    return f"AllGather-GEMM on {pes} PEs, fp32, {shape} on every PE"


def table(problem: Problem, reports: list[Report]) -> Table:
    pes = len(reports)
    result = Table()
    result.add_column("way")
    for name in ("time", "speed", "GFLOP/s", "relative error"):
        result.add_column(name, justify="right")
    seconds = [slowest(reports, way) for way in range(len(WAYS))]
    errors = (f"{largest_error(reports):.1e}", "reference")
    for way, took, error in zip(WAYS, seconds, errors, strict=True):
        speed = f"{seconds[1] / took:.2f}x"
        result.add_row(way, f"{took * 1e3:.1f} ms", speed, f"{problem.flops(pes) / took / 1e9:.1f}", error)
    return result


def cores() -> int:
    """What this process may use."""
    return len(os.sched_getaffinity(0))


def conditions(problem: Problem, pes: int) -> str:
    """What one must know to read the numbers."""
    each = "1 thread" if problem.threads == 1 else f"{problem.threads} threads"
    text = f"Both ways: {each} a PE, {pes} PEs on {cores()} cores; median of {problem.repeats} runs, slowest PE."
    if pes > cores():
        text += " PEs share cores: while one waits, another computes, so overlapping saves less than on devices."
    return text


def draw(folder: str, pes: int, problem: Problem, events: list[Event]) -> list[str]:
    """Write the timeline as a picture and as a trace; returns their paths."""
    size = f"{pes * problem.m} x {problem.n} x {problem.k} fp32 on every PE"
    host = f"{pes} PEs, {PUSHERS + problem.workers} programs each, on {cores()} cores"
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
    parser.add_argument("-n", "--pes", type=positive, default=4)
    parser.add_argument("--size", type=positive, nargs=3, default=(512, 256, 512), metavar=("M", "N", "K"))
    parser.add_argument("--workers", type=positive, help="programs that multiply, on each PE")
    parser.add_argument("--repeats", type=positive, default=15)
    parser.add_argument("--out", default="out", help="folder of the timeline")
    args = parser.parse_args()
    threads = knobs.num_threads or max(1, cores() // args.pes)
    problem = Problem(*args.size, threads, args.workers or max(2, threads), args.repeats)
    # On the host, whatever hardware there is, unless told otherwise.
    with knobs.scope(num_threads=threads, backend=knobs.backend or "cpu"):
        reports = run_pes(lambda: measure(problem), args.pes)
    console = Console()
    console.print(heading(problem, args.pes), soft_wrap=True)
    console.print(table(problem, reports))
    console.print(conditions(problem, args.pes))
    console.print(f"First call, with compilation: {max(r.first_call for r in reports):.2f} s.")
    paths = draw(args.out, args.pes, problem, [event for report in reports for event in report.events])
    console.print(f"Timeline: {paths[0]} (open it in a browser)", soft_wrap=True)
    console.print(f"Trace:    {paths[1]} (open it in Perfetto)", soft_wrap=True)
    worst = largest_error(reports)
    if not worst <= 1e-5:
        raise SystemExit(f"the result is wrong: relative error {worst:.1e}")


if __name__ == "__main__":
    main()
