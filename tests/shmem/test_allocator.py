# SPDX-License-Identifier: MIT
"""Offsets: no overlap, aligned, the same on every PE, and whole again when all is freed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from triton_dist.shmem.allocator import ALIGNMENT, Allocator

START, END = 100, 100_000


class Heap(RuleBasedStateMachine):
    """Any sequence of calls, made on two allocators as two PEs would."""

    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = Allocator(START, END), Allocator(START, END)
        self.used: dict[int, int] = {}

    @rule(nbytes=st.integers(0, 30_000), power=st.integers(0, 12))
    def allocate(self, nbytes: int, power: int) -> None:
        offset = self.here.allocate(nbytes, 1 << power)
        assert self.there.allocate(nbytes, 1 << power) == offset
        if offset is None:
            assert self.here.largest_free < self.here.rounded(nbytes) + (1 << power)
            return
        assert offset % max(ALIGNMENT, 1 << power) == 0
        self.used[offset] = nbytes

    @precondition(lambda self: self.used)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from(sorted(self.used)))
        self.here.free(offset)
        self.there.free(offset)
        del self.used[offset]

    @invariant()
    def ranges_are_apart_and_inside(self) -> None:
        end = START
        for offset, size in self.here.ranges.items():
            assert offset >= end
            assert size >= max(self.used[offset], 1)
            end = offset + size
        assert end <= END

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.here.free_bytes + sum(self.here.ranges.values()) == self.here.capacity
        assert self.here.ranges == self.there.ranges

    def teardown(self) -> None:
        for offset in list(self.used):
            self.here.free(offset)
        assert self.here.largest_free == self.here.free_bytes == self.here.capacity


TestHeap = Heap.TestCase
TestHeap.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(st.permutations(range(6)))
def test_neighbours_join_whatever_the_order(order: list[int]) -> None:
    heap = Allocator(0, 6 * ALIGNMENT)
    offsets = [heap.allocate(ALIGNMENT) for _ in range(6)]
    assert heap.allocate(1) is None
    for index in order:
        offset = offsets[index]
        assert offset is not None
        heap.free(offset)
    assert heap.allocate(6 * ALIGNMENT) == 0


def test_first_fit_takes_the_lowest_hole() -> None:
    heap = Allocator(0, 1 << 12)
    a, _b, c = (heap.allocate(200) for _ in range(3))
    assert a is not None
    assert c is not None
    heap.free(c)
    heap.free(a)
    assert heap.allocate(64) == a


def test_freeing_what_is_not_there_raises() -> None:
    heap = Allocator(0, 1 << 12)
    with pytest.raises(KeyError):
        heap.free(64)


@pytest.mark.parametrize(("nbytes", "alignment"), [(-1, 64), (1, 0), (1, 48)])
def test_nonsense_is_refused(nbytes: int, alignment: int) -> None:
    with pytest.raises(ValueError, match="bad allocation"):
        Allocator(0, 1 << 12).allocate(nbytes, alignment)


def test_an_empty_heap_has_no_room() -> None:
    assert Allocator(100, 100).allocate(1) is None
    assert Allocator(100, 100).capacity == 0
