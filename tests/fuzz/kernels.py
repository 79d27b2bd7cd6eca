# SPDX-License-Identifier: MIT
"""Random kernels: made, run on the host engine, compared with what they do in numpy."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.engine import harness
from tests.fuzz import control, corners, memory, numbers
from tests.fuzz.maker import Maker
from tests.fuzz.numbers import Array
from tests.fuzz.operations import PRELUDE
from tests.fuzz.program import Memory, Program
from triton_dist import knobs

MOST_RESULTS = 12
assert corners  # It adds its operations.
JOURNAL = "FUZZ_JOURNAL"
"""A file that always holds the source of the kernel being run: what is left of one that ends the process."""


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A kernel of a few to some dozen statements."""
    m = Maker(draw)
    for _ in range(m.number(0, 3)):
        memory.load(m)
    for _ in range(m.number(1, 12)):
        control.statement(m)
    # Not all: what is used once only takes other ways through the code generator than what is used again here.
    kept = [v for v in m.visible() if v.name[0] == "v" and not m.chance(3)]
    for v in kept[-MOST_RESULTS:]:
        memory.output(m, v)
    return m.program


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    """The ways in which code is generated."""
    return {"simd": draw(st.sampled_from([None, "avx2"])), "check_bounds": draw(st.sampled_from([False, False, True]))}


def run(program: Program, **how: Any) -> None:
    """Run a kernel on the host engine and compare all of its memory with numpy's."""
    source = program.source(PRELUDE)
    _note(source)
    kernel = harness.module(source).kernel
    tensors = {m.name: numbers.tensor(m.content, m.type) for m in program.memories}
    expected, lines = program.expected()
    with knobs.scope(**how), _output() if program.prints else nullcontext([]) as printed:
        kernel[(program.grid,)](*tensors.values(), *program.scalars.values(), enable_fp_fusion=False)
    # Programs run in any order.
    assert sorted(printed) == sorted(lines), f"printed {printed}, expected {lines}\n{source}"
    for m in program.memories:
        _compare(m, numbers.array(tensors[m.name], m.type), expected[m.name], source)


@contextmanager
def _output() -> Iterator[list[str]]:
    """The lines that are written to standard output, by native code too."""
    sys.stdout.flush()
    lines: list[str] = []
    keep = os.dup(1)
    with tempfile.TemporaryFile("w+") as file:
        os.dup2(file.fileno(), 1)
        try:
            yield lines
        finally:
            os.dup2(keep, 1)
            os.close(keep)
        file.seek(0)
        lines += file.read().splitlines()


def _note(source: str) -> None:
    if path := os.environ.get(JOURNAL):
        Path(path).write_text(source)


def _compare(m: Memory, got: Array, expected: Array, source: str) -> None:
    same = _same(got, expected, m.slack)
    if not same.all():
        at = int(np.argmin(same))
        raise AssertionError(
            f"{m.name} ({m.type.name}) differs at {at} and {(~same).sum() - 1} more: "
            f"{got[at]!r}, expected {expected[at]!r}\n{source}"
        )


def _same(got: Array, expected: Array, slack: float) -> Array:
    if got.dtype.kind != "f":
        return got == expected
    both_nan = np.isnan(got) & np.isnan(expected)
    if not slack:
        return both_nan | ((got == expected) & (np.signbit(got) == np.signbit(expected)))
    with np.errstate(all="ignore"):
        near = np.abs(got.astype(np.float64) - expected) <= slack * np.maximum(np.abs(expected), 1.0)
        # Next to the largest number one may be infinite.
        huge = (np.abs(got) > 3e38) & (np.abs(expected) > 3e38) & (np.signbit(got) == np.signbit(expected))
    return both_nan | (got == expected) | near | huge
