# SPDX-License-Identifier: MIT
"""The host engine against torch on the CPU and against Triton's interpreter, in one run.

    python benchmarks/host_engine.py                # one thread each, all cores, one thread with AVX2 only
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
from host_kernels import Case, cases, compile_cases, launch_case, matmul_case
from rich.console import Console
from rich.table import Table


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


def cold_compile() -> dict[str, Any]:
    """Milliseconds of all stages after Triton's front end, our libraries imported: each kernel at a new size."""
    stages: list[dict[str, float]] = []

    def listen(*, times: Any, **_: Any) -> None:
        stages.append({name: micro / 1000 for name, micro in times.lowering_stages})

    triton.knobs.compilation.listener = listen
    matmul_case(128, torch.float32, (32, 32, 32)).ours()
    first, rows = sum(stages[0].values()), []
    for name, sizes in compile_cases().items():
        stages.clear()
        compiled = [ours() for ours in sizes]
        typical = {k: statistics.median(s[k] for s in stages) for k in stages[0]}
        rows.append({"name": name, "ops": operations(compiled[0]), "ms": sum(typical.values()), "stages": typical})
    return {"first": first, "rows": rows}


def operations(kernel: Any) -> int:
    """Lines of TTIR that are operations."""
    return sum(" loc(" in line and not line.startswith("#") for line in kernel.asm["ttir"].splitlines())


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
    matmul_case(128, torch.float32, (32, 32, 32)).ours()
    assert "llvmlite" not in sys.modules, "the cached path imported llvmlite"
    assert "xdsl" not in sys.modules, "the cached path imported xdsl"
    return {"load": spent[0]}


def launch() -> dict[str, float]:
    """Microseconds of a call of a kernel with 16 small programs, and of Triton's part of it (our launcher empty)."""
    from triton_dist.backends.cpu.native.launch import Launcher

    call, original = launch_case(), Launcher.__call__
    parts: dict[str, list[float]] = {"all": [], "dispatch": []}
    for _ in range(9):
        for part, launcher in (("all", original), ("dispatch", lambda self, *args: None)):
            Launcher.__call__ = launcher
            parts[part].append(timed(lambda: [call() for _ in range(2000)]) / 2000 * 1e6)
    return {part: statistics.median(times) for part, times in parts.items()}


MODES: dict[str, Callable[..., Any]] = {
    "interpret": interpret, "compile": cold_compile, "reuse": reuse, "launch": launch,
}  # fmt: skip


def child(*arguments: str, **env: str) -> Any:
    """Run this script in another process for one kind of measurement."""
    command = [sys.executable, __file__, *arguments]
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


@dataclass
class Run:
    """One table: how many threads both sides have, and what vector instructions."""

    title: str
    threads: int
    env: dict[str, str]

    def measure(self, rounds: int) -> list[dict[str, Any]]:
        threads = {"TRITON_DIST_NUM_THREADS": str(self.threads), "OMP_NUM_THREADS": str(self.threads)}
        return child("--threads", str(self.threads), "--rounds", str(rounds), **threads, **self.env)


AVX2 = {
    "TRITON_DIST_SIMD": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
}  # fmt: skip


def runs() -> list[Run]:
    cores = len(os.sched_getaffinity(0))
    found = [Run("one thread each", 1, {})]
    if cores > 1:
        found.append(Run(f"{cores} threads each", cores, {}))
    return [*found, Run("one thread each, both with AVX2 only", 1, AVX2)]


def show(run: Run, rows: list[dict[str, Any]], alone: dict[str, float], interpreted: dict[str, float]) -> None:
    """Print a table; `alone`: our seconds on one thread, by kernel."""
    table = Table(title=run.title)
    last = "interpreter / ours" if interpreted else "one thread / ours" if run.threads > 1 else ""
    for column in ("kernel", "ours ms", "torch ms", "torch / ours", "rate", *([last] if last else [])):
        table.add_column(column, justify="left" if column == "kernel" else "right")
    for row in rows:
        times = (f"{row[side] * 1e3:.2f}" for side in ("ours", "torch"))
        slow = (interpreted or alone).get(row["name"])
        factor = [f"{slow / row['ours']:.{0 if interpreted else 2}f}" if slow else "-"] if last else []
        ratio = f"{row['torch'] / row['ours']:.2f}"
        table.add_row(row["name"], *times, ratio, f"{row['rate']:.1f} {row['unit']}", *factor)
    Console(width=140).print(table)


def show_compile(cold: dict[str, Any], warm: dict[str, float], started: dict[str, float]) -> None:
    for row in cold["rows"]:
        parts = ", ".join(f"{k} {v:.0f}" for k, v in row["stages"].items())
        print(f"cold compile of {row['name']}, {row['ops']} operations of TTIR: {row['ms']:.0f} ms ({parts})")
    print(f"the first kernel of a process, our imports included: {cold['first']:.0f} ms")
    print(f"loading object code in another process: {warm['load']:.1f} ms")
    ours = started["all"] - started["dispatch"]
    print(f"launching 16 small programs: {started['all']:.1f} us, of which Triton's dispatch takes all but {ours:.1f}")


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
    print(machine())
    tables = [(run, run.measure(options.rounds)) for run in runs()]
    alone = {row["name"]: row["ours"] for row in tables[0][1]}
    interpreted = {}
    if not options.no_interpreter:
        interpreted = {r["name"]: r["interpreter"] for r in child("--mode", "interpret", TRITON_INTERPRET="1")}
    for run, rows in tables:
        show(run, rows, alone, interpreted if run is tables[0][0] else {})
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (child("--mode", mode, TRITON_CACHE_DIR=cache) for mode in ("compile", "reuse"))
    show_compile(cold, warm, child("--mode", "launch"))


if __name__ == "__main__":
    main()
