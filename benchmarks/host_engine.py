# SPDX-License-Identifier: MIT
"""The host engine against torch on the CPU and against Triton's interpreter, in one run.

    python benchmarks/host_engine.py                # one thread each, then all cores
    python benchmarks/host_engine.py --no-interpreter

Each figure is the median over rounds in which the two sides take turns; a ratio is torch's time over ours (above 1: we
are faster). Compile times are taken with a cache of their own, in fresh processes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# torch's workers spin after each operation and would take the core of whoever runs next.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
import triton
import triton.language as tl
from rich.console import Console
from rich.table import Table


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@triton.jit
def softmax_kernel(out, x, stride_x, stride_out, rows, columns, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        offsets = tl.arange(0, BLOCK)
        mask = offsets < columns
        values = tl.load(x + row * stride_x + offsets, mask=mask, other=-float("inf"))
        exps = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * stride_out + offsets, exps / tl.sum(exps, axis=0), mask=mask)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
                  BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * columns
    first = pid // in_group * GROUP
    size = min(rows - first, GROUP)
    pid_m = first + pid % in_group % size
    pid_n = pid % in_group // size
    offs_m = (pid_m * BM + tl.arange(0, BM)) % M
    offs_n = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_ptrs = a + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BK, other=0.0)
        right = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    out_m, out_n = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    c_ptrs = c + stride_cm * out_m[:, None] + stride_cn * out_n[None, :]
    tl.store(c_ptrs, total.to(c.dtype.element_ty), mask=(out_m[:, None] < M) & (out_n[None, :] < N))


@dataclass
class Case:
    """One kernel at one size, and what torch does for the same result."""

    name: str
    ours: Callable[[], Any]
    torchs: Callable[[], Any]
    work: float
    unit: str
    tolerance: float = 1e-5


def add_case() -> Case:
    n = 1 << 24
    x, y = torch.randn(n), torch.randn(n)
    out, expected = torch.empty(n), torch.empty(n)

    def ours() -> torch.Tensor:
        add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
        return out

    return Case("vector add, 1<<24 fp32", ours, lambda: torch.add(x, y, out=expected), 12 * n / 1e9, "GB/s")


def softmax_case() -> Case:
    rows, columns = 4096, 1024
    x = torch.randn(rows, columns)
    out, expected = torch.empty_like(x), torch.empty_like(x)

    def ours() -> torch.Tensor:
        softmax_kernel[(64,)](out, x, columns, columns, rows, columns, BLOCK=1024)
        return out

    return Case("softmax 4096x1024 fp32", ours, lambda: torch.softmax(x, 1, out=expected), 8 * x.numel() / 1e9, "GB/s")


def matmul_case(size: int, dtype: torch.dtype, blocks: tuple[int, int, int]) -> Case:
    a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    out, expected = torch.empty_like(a), torch.empty_like(a)
    bm, bn, bk = blocks
    grid = (triton.cdiv(size, bm) * triton.cdiv(size, bn),)

    def ours() -> torch.Tensor:
        matmul_kernel[grid](a, b, out, size, size, size, size, 1, size, 1, size, 1, BM=bm, BN=bn, BK=bk, GROUP=8)
        return out

    name = f"matmul {size}^3 {str(dtype).removeprefix('torch.')}, {bm}x{bn}x{bk}"
    tolerance = 1e-3 if dtype == torch.float32 else 0.5
    return Case(name, ours, lambda: torch.matmul(a, b, out=expected), 2 * size**3 / 1e9, "GFLOP/s", tolerance)


def cases(quick: bool) -> list[Case]:
    found = [add_case(), softmax_case()]
    found += [matmul_case(1024, torch.float32, blocks) for blocks in ((128, 128, 64), (64, 64, 32))]
    if not quick:
        found.append(matmul_case(512, torch.float16, (128, 128, 64)))
        found.append(matmul_case(512, torch.bfloat16, (128, 128, 64)))
    return found


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def compare(case: Case, rounds: int) -> tuple[float, float]:
    """Median seconds of ours and of torch's, taken in turns; the results are checked first."""
    torch.testing.assert_close(case.ours(), case.torchs(), atol=case.tolerance, rtol=case.tolerance)
    ours, torchs = [], []
    for _ in range(rounds):
        ours.append(timed(case.ours))
        torchs.append(timed(case.torchs))
    return statistics.median(ours), statistics.median(torchs)


def measure(threads: int, rounds: int) -> list[dict[str, Any]]:
    torch.set_num_threads(threads)
    rows = []
    for case in cases(quick=False):
        ours, torchs = compare(case, 5 if "float16" in case.name else rounds)
        rows.append({"name": case.name, "ours": ours, "torch": torchs, "rate": case.work / ours, "unit": case.unit})
    return rows


def interpret() -> list[dict[str, Any]]:
    """Seconds of Triton's interpreter, one run each (this process runs with TRITON_INTERPRET=1)."""
    return [{"name": case.name, "interpreter": timed(case.ours)} for case in cases(quick=True)]


def cold_compile() -> dict[str, float]:
    """Milliseconds of the matmul's stages after Triton's front end: with our libraries imported, and from nothing."""
    stages: list[dict[str, float]] = []

    def listen(*, times: Any, **_: Any) -> None:
        stages.append({name: micro / 1000 for name, micro in times.lowering_stages})

    triton.knobs.compilation.listener = listen
    for blocks in ((32, 32, 32), (128, 128, 64), (64, 64, 32), (64, 128, 32)):
        matmul_case(128, torch.float32, blocks).ours()
    rest = [sum(s.values()) for s in stages[1:]]
    typical = {k: statistics.median(s[k] for s in stages[1:]) for k in stages[0]}
    return {"first": sum(stages[0].values()), "compile": statistics.median(rest), **typical}


def reuse() -> dict[str, float]:
    """Milliseconds to load a cached kernel's object code in a process that has compiled nothing."""
    from triton_dist.backends.cpu.triton.driver import Utils

    spent = []
    original = Utils.load_binary

    def load(self: Utils, *args: Any) -> Any:
        start = time.perf_counter()
        try:
            return original(self, *args)
        finally:
            spent.append((time.perf_counter() - start) * 1000)

    Utils.load_binary = load
    matmul_case(128, torch.float32, (128, 128, 64)).ours()
    assert "llvmlite" not in sys.modules, "the cached path imported llvmlite"
    assert "xdsl" not in sys.modules, "the cached path imported xdsl"
    return {"load": spent[0]}


MODES: dict[str, Callable[..., Any]] = {"interpret": interpret, "compile": cold_compile, "reuse": reuse}


def child(mode: str, **env: str) -> Any:
    """Run this script in another process for one kind of measurement."""
    command = [sys.executable, __file__, "--mode", mode]
    done = subprocess.run(command, env=os.environ | env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def machine() -> str:
    model = next(
        (ln.split(":")[1].strip() for ln in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in ln), ""
    )
    cores = len(os.sched_getaffinity(0))
    versions = f"triton {triton.__version__}, torch {torch.__version__}, Python {platform.python_version()}"
    return f"{model or platform.machine()}, {cores} cores; {versions}"


def show(results: dict[int, list[dict[str, Any]]], interpreted: dict[str, float]) -> None:
    console = Console(width=120)
    console.print(machine())
    for threads, rows in results.items():
        table = Table(title=f"{threads} thread{'s' if threads > 1 else ''} each")
        for column in ("kernel", "ours ms", "torch ms", "torch / ours", "rate", "interpreter / ours"):
            table.add_column(column, justify="left" if column == "kernel" else "right")
        for row in rows:
            slow = interpreted.get(row["name"]) if threads == 1 else None
            times = (f"{row[side] * 1e3:.2f}" for side in ("ours", "torch"))
            ratios = f"{row['torch'] / row['ours']:.2f}", f"{slow / row['ours']:.0f}" if slow else "-"
            table.add_row(row["name"], *times, ratios[0], f"{row['rate']:.1f} {row['unit']}", ratios[1])
        console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-interpreter", action="store_true")
    parser.add_argument("--mode", choices=sorted(MODES), help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mode:
        print(json.dumps(MODES[options.mode]()))
        return
    if options.threads:
        print(json.dumps(measure(options.threads, options.rounds)))
        return
    results = {}
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        env = os.environ | {"TRITON_DIST_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
        command = [sys.executable, __file__, "--threads", str(threads), "--rounds", str(options.rounds)]
        results[threads] = json.loads(
            subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
        )
    interpreted = (
        {}
        if options.no_interpreter
        else {r["name"]: r["interpreter"] for r in child("interpret", TRITON_INTERPRET="1")}
    )
    show(results, interpreted)
    with tempfile.TemporaryDirectory() as cache:
        cold = child("compile", TRITON_CACHE_DIR=cache)
        warm = child("reuse", TRITON_CACHE_DIR=cache)
    parts = ", ".join(f"{k} {v:.0f}" for k, v in cold.items() if k not in ("first", "compile"))
    print(f"matmul, cold compile beyond Triton's front end: {cold['compile']:.0f} ms ({parts})")
    print(f"the first in a process, our imports included: {cold['first']:.0f} ms")
    print(f"loading its object code in another process: {warm['load']:.1f} ms")


if __name__ == "__main__":
    main()
