# SPDX-License-Identifier: MIT
"""PEs that agree on a call by the memory that they share, where the library does not look."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from triton_dist import shmem
from triton_dist.backends.agreement import ROW_BYTES, Agreement
from triton_dist.errors import CollectiveMismatch
from triton_dist.testing import run_pes

BARRIER = "a barrier of the program"


def made() -> Agreement:
    return Agreement(shmem.adapter(), shmem.create_tensor, shmem.barrier_all)


def agreed(calls: Callable[[int], list[str]], pes: int = 3) -> list[list[str]]:
    """What each PE was told of each of its calls: the lines of a mismatch, or nothing."""

    def run() -> list[str]:
        agreement = made()
        me, told = shmem.my_pe(), []
        for call in calls(me):
            try:
                if call == BARRIER:
                    agreement.barrier_all()
                else:
                    agreement.check(call, f"a.py:{me}")
                told.append("")
            except CollectiveMismatch as error:
                told.append(str(error))
        return told

    return run_pes(run, pes)


@pytest.mark.parametrize("pes", [1, 2, 3])
def test_equal_calls_may_be_made_anywhere(pes: int) -> None:
    many = [f"create_tensor(({number % 2},))" for number in range(9)]
    assert agreed(lambda pe: many, pes) == [[""] * 9] * pes


def test_all_pes_are_told_what_each_calls() -> None:
    told = agreed(lambda pe: ["a", "b" if pe == 1 else "c", "d"])
    for pe, (first, second, third) in enumerate(told):
        assert first == third == ""
        head, *lines = second.splitlines()
        assert head.startswith(f"PE {pe}: the PEs do not agree on a collective call")
        assert lines == ["  PE 0: c at a.py:0", "  PE 1: b at a.py:1", "  PE 2: c at a.py:2"]


def test_long_calls_differ_past_what_is_shown() -> None:
    long = "x" * ROW_BYTES
    calls = (lambda pe: f"{long}{pe % 2}", lambda pe: f"{long}{pe}{long}", lambda pe: long + "é" + long)
    for ends, middles, equal in agreed(lambda pe: [call(pe) for call in calls]):
        for told, shown in (ends, "010"), (middles, "xxx"):
            for pe, line in enumerate(told.splitlines()[1:]):
                assert re.fullmatch(rf"  PE {pe}: x+ \.\.\. x+{shown[pe]} at a\.py:{pe}", line)
                assert ROW_BYTES - 32 < len(line) < ROW_BYTES
        assert equal == ""


def test_a_pe_that_is_elsewhere_said_nothing_of_this_call() -> None:
    """It meets the others in a barrier of its own."""

    for before in range(4):
        told = agreed(lambda pe: before * ["a"] + [BARRIER if pe == 1 else "a"])  # noqa: B023
        for said in (told[0][-1], told[2][-1]):
            elsewhere = "  PE 1: no call that PEs agree on; barrier_all, say"
            assert said.splitlines()[1:] == ["  PE 0: a at a.py:0", elsewhere, "  PE 2: a at a.py:2"]
        assert told[1] == [""] * (before + 1)


@pytest.mark.parametrize("before", range(3))
def test_a_call_is_not_taken_for_one_that_another_pe_gave_up(before: int) -> None:
    """One agreed with what was said while it was in a barrier, took memory, and had one tensor more than the others."""
    told = agreed(lambda pe: ["b"] * before + [BARRIER if pe == 0 else "a", "a", BARRIER, "c"], 2)
    assert told[0] == [""] * (before + 4)
    assert told[1][before] != ""
    assert told[1][before + 1 :] == [""] * 3


def test_a_place_whose_name_is_no_text() -> None:
    def run() -> str:
        agreement = made()
        for number in range(2):
            agreement.check("a\udce9", f"caf\udce9.py:{number}")
        with pytest.raises(CollectiveMismatch) as raised:
            agreement.check(f"{shmem.my_pe()}", "caf\udce9.py")
        return str(raised.value)

    assert run_pes(run, 2)[0].splitlines()[1] == r"  PE 0: 0 at caf\udce9.py"


@pytest.mark.parametrize("seed", range(4))
def test_any_sequence_of_calls_stays_in_step(seed: int) -> None:
    rng = random.Random(seed)
    steps = [rng.choices(("a", "b", BARRIER), k=3) if rng.random() < 0.5 else ["a"] * 3 for _ in range(60)]
    for pe, told in enumerate(agreed(lambda pe: [calls[pe] for calls in steps])):
        for calls, said in zip(steps, told, strict=True):
            assert bool(said) == (calls[pe] != BARRIER and len(set(calls)) > 1)
