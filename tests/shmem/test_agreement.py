# SPDX-License-Identifier: MIT
"""PEs that agree on a call by the memory that they share, where the library does not look."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from triton_dist import shmem
from triton_dist.backends.agreement import ROW_BYTES, Agreement
from triton_dist.errors import CollectiveMismatch
from triton_dist.testing import run_pes


def agreed(calls: Callable[[int], list[str]], pes: int = 3) -> list[list[str]]:
    """What each PE was told of each of its calls: the lines of a mismatch, or nothing."""

    def run() -> list[str]:
        agreement = Agreement(shmem.adapter(), shmem.create_tensor)
        me, told = shmem.my_pe(), []
        for call in calls(me):
            try:
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
    long = "x" * 2 * ROW_BYTES
    for first, second in agreed(lambda pe: [f"{long}{pe}", long + "é"]):
        assert first.splitlines()[1:] == [f"  PEs 0, 1 and 2: {'x' * (ROW_BYTES - 16)}"]
        assert second == ""


def test_a_pe_that_is_elsewhere_said_nothing_of_this_call() -> None:
    """It meets the others in a barrier of its own."""

    def run() -> str:
        agreement = Agreement(shmem.adapter(), shmem.create_tensor)
        for _ in range(3):
            agreement.check("a", "a.py")
        if shmem.my_pe() == 1:
            shmem.barrier_all()
            return ""
        with pytest.raises(CollectiveMismatch) as raised:
            agreement.check("a", "b.py")
        return str(raised.value)

    said, _ = run_pes(run, 2)
    assert said.splitlines()[1:] == ["  PE 0: a at b.py", "  PE 1: a at a.py"]
