# SPDX-License-Identifier: MIT
"""GEMMs with communication, ours in several ways, beside what torch does with NCCL and with NVSHMEM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import gemm
import torch
import torch.distributed as dist
import vendors
from common import Clock, Meeting, Table, doing, graph_of, median_of, medians, say

from triton_dist import shmem
from triton_dist.kernels import AllGatherMatmul, GemmReduceScatter, MatmulAllReduce, MatmulReduceScatter

DTYPE = torch.bfloat16
M = 8192
WEIGHTS = ((4096, 11008), (4096, 14336), (8192, 28672), (16384, 53248), (8192, 29568), (12288, 49152))
"""K x N of AllGather-GEMM, shared out by columns; N x K of GEMM-ReduceScatter, by rows."""
ON_ONE_GPU = WEIGHTS[:3]
Call = Callable[[], object]
Ways = dict[str, Call]


def random(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, device=shmem.device(), dtype=DTYPE)


def compare(
    title: str, rivals: tuple[str, ...], measure: Callable[..., dict[str, float]], meeting: Meeting, clock: Clock
) -> None:
    """A row for each weight; the last columns hold ours, as it comes, against torch.matmul alone and the rivals."""
    table = Table(f"{title}, bf16, M = {M}, {shmem.n_pes()} PEs on {torch.cuda.device_count()} GPUs; ms")
    for number, (k, n) in enumerate(WEIGHTS if vendors.alone_on_gpus() else ON_ONE_GPU):
        if clock.late():
            table.row((f"{k} x {n}", "no time"))
            continue
        with doing(title, k, n):
            times = measure(meeting, k, n)
        if number == 0:
            table.head(("weight", *times, "ours / torch.matmul", *(f"({name}) / ours" for name in rivals)))
        figures = [f"{took * 1e3:.3f}" for took in times.values()]
        ratios = [f"{times[name] / times['ours']:.3f}" if name in times else "-" for name in rivals]
        table.row((f"{k} x {n}", *figures, f"{times['ours'] / times['torch.matmul']:.3f}", *ratios))


def timed(meeting: Meeting, ways: Ways) -> dict[str, float]:
    return medians(meeting, ways, 9, 4, ahead=True)


def all_gather_gemm(meeting: Meeting, k: int, wide: int) -> dict[str, float]:
    pes, n = shmem.n_pes(), wide // shmem.n_pes()
    m = M // pes
    a, b, c = random(m, k), random(k, n), random(M, n)
    shard, whole = shmem.create_tensor((m, k), DTYPE), shmem.create_tensor((M, k), DTYPE)
    shard.copy_(a)
    peers = [shmem.peer_tensor(shard, pe) for pe in range(pes)]
    gathered = whole.view(pes, m, k)
    fcollect = vendors.nvshmem_ways("all-gather", shard.view(-1), whole.view(-1))
    multiply = partial(torch.matmul, whole, b, out=c)

    def pull() -> None:
        for place, peer in zip(gathered, peers, strict=True):
            place.copy_(peer)

    fused = {f"one kernel, {p} pushers": gemm.AllGatherGemm(m, k, DTYPE, p) for p in PUSHERS[pes > 2]}
    matmuls = {"ours": AllGatherMatmul(m, k, DTYPE)}
    matmuls |= {f"ours, {first} first": AllGatherMatmul(m, k, DTYPE, first=first) for first in firsts(m)}
    ways: Ways = {"torch.matmul": multiply, "Triton alone": lambda: gemm.gemm(whole, b, c)}
    if dist.is_initialized():
        ways["NCCL, matmul"] = lambda: (dist.all_gather_into_tensor(whole, shard), multiply())
    ways["NVSHMEM, matmul"] = lambda: (fcollect(), multiply())
    ways["copies, matmul"] = lambda: (pull(), multiply())
    ways |= {name: partial(op, a, b, c) for name, op in {**matmuls, **fused}.items()}
    times = timed(meeting, ways)
    for op in (*fused.values(), *matmuls.values()):
        op.free()
    shmem.free_tensor(whole)
    shmem.free_tensor(shard)
    return times


PUSHERS = ((8, 16), (4, 8))
"""Programs that communicate, of the fused kernel; for two PEs, for more."""


def firsts(m: int) -> tuple[int, ...]:
    """Rows of the own shard to multiply first, beside all of them."""
    return (m * 3 // 4, m // 2) if shmem.n_pes() == 2 else ()


def gemm_reduce_scatter(meeting: Meeting, n: int, wide: int) -> dict[str, float]:
    pes, k, me = shmem.n_pes(), wide // shmem.n_pes(), shmem.my_pe()
    m = M // pes
    a, b, c, part = random(M, k), random(k, n), random(M, n), random(m, n)
    full, out = shmem.create_tensor((M, n), DTYPE), shmem.create_tensor((pes, m, n), DTYPE)
    scatter = vendors.nvshmem_ways("reduce-scatter", full.view(-1), out[0].view(-1))
    targets = [shmem.peer_tensor(out, pe)[me] for pe in range(pes)]
    multiply = partial(torch.matmul, a, b, out=full)

    def push_and_add() -> None:
        for target, rows in zip(targets, full.view(pes, m, n), strict=True):
            target.copy_(rows)
        shmem.barrier_all()
        torch.sum(out, 0, out=part)

    fused = {
        "one kernel": GemmReduceScatter(m, n, DTYPE),
        "one kernel, small tiles": GemmReduceScatter(m, n, DTYPE, tiles=gemm.SMALL),
    }
    matmuls = {"ours": MatmulReduceScatter(m, n, DTYPE)}
    matmuls |= {f"ours, {pieces} pieces": MatmulReduceScatter(m, n, DTYPE, pieces=pieces) for pieces in (0, 1, 2, 4)}
    ways: Ways = {"torch.matmul": lambda: torch.matmul(a, b, out=c), "Triton alone": lambda: gemm.gemm(a, b, c)}
    if dist.is_initialized():
        ways["matmul, NCCL"] = lambda: (multiply(), dist.reduce_scatter_tensor(part, full))
    ways["matmul, NVSHMEM"] = lambda: (multiply(), scatter())
    ways["matmul, copies, sum"] = lambda: (multiply(), push_and_add())
    ways |= {name: partial(op, a, b) for name, op in {**matmuls, **fused}.items()}
    times = timed(meeting, ways)
    for op in (*fused.values(), *matmuls.values()):
        op.free()
    shmem.free_tensor(out)
    shmem.free_tensor(full)
    return times


def gemm_all_reduce(meeting: Meeting) -> None:
    """Few rows, as when a model generates: from a CUDA graph, and as called."""
    pes = shmem.n_pes()
    table = Table(f"GEMM-AllReduce, bf16, {pes} PEs on {torch.cuda.device_count()} GPUs; us")
    names = ("torch.matmul", "NCCL", "ours")
    table.head(("M", "weight", *names, "NCCL / ours", *(f"called: {name}" for name in names), "NCCL / ours"))
    for n, wide in (WEIGHTS[0], WEIGHTS[2]):
        k = wide // pes
        b = random(k, n)
        for m in (1, 16, 128, 1024, 4096):
            with doing("GEMM-AllReduce", m, n, wide):
                table.row((m, f"{n} x {wide}", *few_rows(meeting, names, b, random(m, k))))


def few_rows(meeting: Meeting, names: tuple[str, ...], b: torch.Tensor, a: torch.Tensor) -> list[float | str]:
    """Of torch.matmul, with NCCL, and ours: microseconds; and how much faster ours is than with NCCL."""
    m, n = a.shape[0], b.shape[1]
    c = random(m, n)
    ways: Ways = {"torch.matmul": lambda: torch.matmul(a, b, out=c)}
    if dist.is_initialized():
        ways["NCCL"] = lambda: dist.all_reduce(torch.matmul(a, b, out=c))
    op = MatmulAllReduce(m, n, DTYPE)
    ways["ours"] = lambda: op(a, b)
    found: list[float | str] = []
    for graph in (True, False):
        times: dict[str, float | str] = dict.fromkeys(names, "-")
        for name, call in ways.items():
            run = graph_of(call, 20) if graph else lambda call=call: [call() for _ in range(20)]
            times[name] = median_of(meeting, run) / 20 * 1e6
        nccl, ours = times["NCCL"], times["ours"]
        ratio = nccl / ours if isinstance(nccl, float) and isinstance(ours, float) else "-"
        found += [*times.values(), ratio]
    op.free()
    return found


def check() -> None:
    found = gemm.check(512, 1376, 512, DTYPE, 50)
    say(f"GEMMs with communication in one kernel, 50 rounds: relative error {found:.1e}")
    assert found < 1e-2
