# SPDX-License-Identifier: MIT
"""One script for every way to start it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from triton_dist import platform, shmem
from triton_dist.testing.threads import run_pes


def positive(text: str) -> int:
    """A type of `argparse`: a whole number, 1 or more."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return number


def run_script(fn: Callable[[], Any], n: int) -> None:
    """Run `fn` on every PE.

    Under a launcher (`triton-dist run`, torchrun) this process is one PE of those that the launcher started, and `n`
    does not matter. Started by itself, the script runs `n` PEs as threads; on a back end's hardware it is one PE.
    """
    launched = "RANK" in os.environ or "WORLD_SIZE" in os.environ
    if not launched and platform.current().mode != "hardware":
        run_pes(fn, n)
        return
    shmem.init()
    fn()
    # Not in a `finally`: a PE that failed must not wait for the others, who see its end at once.
    shmem.finalize()
