# SPDX-License-Identifier: MIT
"""Every example, and every function of `libshmem_device`, over many rounds. Fails if anything differs."""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path
from types import ModuleType

import collectives
import functions
import torch
from common import Clock, Meeting, doing, run_main

from triton_dist import shmem
from triton_dist.errors import CollectiveMismatch
from triton_dist.kernels import AllReduce

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def examples(rounds: int) -> None:
    ways = {
        "all_gather": lambda check: check(5001, rounds),
        "producer_consumer": lambda check: check(31, 700, 4, rounds),
        "all_gather_gemm": lambda check: check(70, 90, 50, torch.float32, rounds),
        "gemm_all_reduce": lambda check: check(70, 90, 50, torch.float32, rounds),
    }
    for name, way in ways.items():
        began = time.perf_counter()
        with doing("example", name):
            way(example(name).check)
        say(f"example {name}: {rounds} rounds, {time.perf_counter() - began:.1f} s: right")


def mistakes() -> int:
    """Calls in which PE 0 differs: how many go unnoticed by a PE."""
    first = shmem.my_pe() == 0
    ones, others = (shmem.create_tensor((16,), torch.float32) for _ in range(2))
    calls = {
        "create_tensor": lambda: shmem.create_tensor((4 if first else 8,), torch.float32),
        "free_tensor": lambda: shmem.free_tensor(ones if first else others),
        "an operation": lambda: AllReduce((8,), torch.float32 if first else torch.int32),
    }
    unnoticed = 0
    for name, call in calls.items():
        try:
            call()
            unnoticed += 1
        except CollectiveMismatch as error:
            say(f"{name}, PE 0 another than the others: right: {str(error).splitlines()[1].strip()}")
    for tensor in (ones, others):
        shmem.free_tensor(tensor)
    return unnoticed


FEW = 20
"""Rounds of what is left when time is over."""


def device_functions(rounds: int, meeting: Meeting, only: list[str] | None, clock: Clock) -> int:
    """How many are wrong; each is said at once."""
    kernels, wrong, took, short = functions.load_kernels(), 0, {}, []
    for name in only or functions.names():
        given = min(rounds, FEW) if clock.late() else rounds
        began = time.perf_counter()
        with doing("function", name):
            everywhere = meeting.all(functions.check(kernels, name, given))
        took[name] = time.perf_counter() - began
        if given < rounds:
            short.append(name)
        if any(everywhere):
            wrong += 1
            say(f"WRONG {name}: differences by PE {[int(n) for n in everywhere]}")
    slow = sorted(took, key=lambda name: took[name])[-3:]
    say(
        f"{len(took) - wrong} of {len(took)} functions right: {len(took) - len(short)} over {rounds} rounds, "
        f"{len(short)} over {FEW}, {sum(took.values()):.0f} s (slowest: {slow})"
    )
    for name, why in functions.SKIPPED.items():
        say(f"not run: {name}: {why}")
    return wrong


def say(text: str) -> None:
    if shmem.my_pe() == 0:
        print(f"[{shmem.n_pes()} PEs] {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--parts", nargs="+", default=["mistakes", "examples", "functions", "collectives"])
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--seconds", type=float, default=1e6, help=f"{FEW} rounds for functions after these")
    args = parser.parse_args()
    shmem.init()
    if shmem.device().type == "cuda":
        sms = torch.cuda.get_device_properties(shmem.device()).multi_processor_count
        say(f"{torch.cuda.get_device_name()}, {sms} SMs a PE")
    meeting, wrong = Meeting(), 0
    clock = Clock(meeting, args.seconds)
    if "mistakes" in args.parts and shmem.n_pes() > 1:
        with doing("mistakes"):
            wrong += mistakes()
    if "collectives" in args.parts:
        with doing("collectives"):
            wrong += collectives.check_all(args.rounds, say)
    if "examples" in args.parts:
        examples(args.rounds)
    if "functions" in args.parts:
        wrong += device_functions(args.rounds, meeting, args.only, clock)
    shmem.finalize()
    return 1 if wrong else 0


if __name__ == "__main__":
    run_main(main)
