# SPDX-License-Identifier: MIT
"""Every example, and every function of `libshmem_device`, over many rounds. Fails if anything differs."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType

import collectives
import functions
import torch
from common import Meeting

from triton_dist import shmem

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
        way(example(name).check)
        say(f"example {name}: {rounds} rounds, {time.perf_counter() - began:.1f} s: right")


def device_functions(rounds: int, meeting: Meeting, only: list[str] | None) -> int:
    wrong = 0
    found = functions.run(rounds, only)
    for name, (bad, took) in found.items():
        everywhere = meeting.all(bad)
        if any(everywhere):
            wrong += 1
            say(f"WRONG {name}: differences by PE {[int(n) for n in everywhere]} ({took:.1f} s)")
    slow = sorted(found, key=lambda name: found[name][1])[-3:]
    total = sum(took for _, took in found.values())
    say(f"{len(found) - wrong} of {len(found)} functions right over {rounds} rounds, {total:.0f} s (slowest: {slow})")
    for name, why in functions.SKIPPED.items():
        say(f"not run: {name}: {why}")
    return wrong


def say(text: str) -> None:
    if shmem.my_pe() == 0:
        print(f"[{shmem.n_pes()} PEs] {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--parts", nargs="+", default=["examples", "functions", "collectives"])
    parser.add_argument("--only", nargs="+")
    args = parser.parse_args()
    shmem.init()
    if shmem.device().type == "cuda":
        sms = torch.cuda.get_device_properties(shmem.device()).multi_processor_count
        say(f"{torch.cuda.get_device_name()}, {sms} SMs a PE")
    meeting, wrong = Meeting(), 0
    if "examples" in args.parts:
        examples(args.rounds)
    if "functions" in args.parts:
        wrong += device_functions(args.rounds, meeting, args.only)
    if "collectives" in args.parts:
        wrong += collectives.check_all(args.rounds, say)
    shmem.finalize()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
