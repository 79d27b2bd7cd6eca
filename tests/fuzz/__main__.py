# SPDX-License-Identifier: MIT
"""Many examples, in child processes: `make fuzz`, or `python -m tests.fuzz [--count N] [--seed S] [WHAT...]`.

A child that crashes or hangs is seen here, and the kernel that it was running is shown. Children of one seed always
run the same examples.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch

from tests.fuzz.examples import examples

BATCH = {"kernels": 250, "parser": 5000, "code": 500}
"""Examples of one child: machine code stays in memory until it ends."""
FACTOR = {"kernels": 1, "parser": 10, "code": 1}
"""Texts are quicker than kernels."""
SECONDS = {"kernels": 4.0, "parser": 0.5, "code": 2.0}
"""How long an example may take on the average; a child over it hangs."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("what", nargs="*", choices=[[], *BATCH], help="kernels, parser, code; all without")
    parser.add_argument("--count", type=int, default=2000, help="kernels; ten times as many texts (%(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="default: the time, so that each run is another one")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    seed = int(time.time()) if given.seed is None else given.seed
    if given.child:
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        examples(given.what[0], given.count, seed)
        return 0
    failed = [what for what in given.what or BATCH if not _batches(what, given.count * FACTOR[what], seed)]
    return 1 if failed else 0


def _batches(what: str, count: int, seed: int) -> bool:
    """Run `count` examples, child by child; false if one failed."""
    good, begin, done = True, time.monotonic(), 0
    while done < count:
        size = min(BATCH[what], count - done)
        good &= child(what, size, seed + done)
        done += size
    verdict = "no fault" if good else "FAULTS, see above"
    print(f"{what}: {done} examples in {time.monotonic() - begin:.0f} s from seed {seed}: {verdict}", flush=True)
    return good


def child(what: str, count: int, seed: int) -> bool:
    """Run `count` examples of a seed in a process; false if it failed, which it says."""
    with tempfile.TemporaryDirectory(prefix="triton-dist-fuzz-") as folder:
        journal = Path(folder) / "kernel.py"
        environment = {**os.environ, "TRITON_CACHE_DIR": f"{folder}/cache", "FUZZ_JOURNAL": str(journal)}
        command = [sys.executable, "-m", "tests.fuzz", "--child", "--count", str(count), "--seed", str(seed), what]
        try:
            status = subprocess.run(command, env=environment, timeout=60 + count * SECONDS[what]).returncode
        except subprocess.TimeoutExpired:
            status = "a hang"
        if status not in (0, 1):
            last = journal.read_text() if journal.exists() else "(nothing was run yet)"
            print(f"{what}, seed {seed}: the process ended with {status}, in\n{last}", flush=True)
        return status == 0


if __name__ == "__main__":
    sys.exit(main())
