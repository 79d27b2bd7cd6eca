# SPDX-License-Identifier: MIT
"""The bounds-checked mode names the access instead of crashing or corrupting."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist import errors, knobs, shmem, testing


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    with knobs.scope(check_bounds=True):
        yield


@triton.jit
def copy(source, target, n, shift, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + offsets + shift, mask=offsets < n)
    tl.store(target + offsets, values, mask=offsets < n)


@triton.jit
def scatter_scalar(target, at):
    tl.store(target + at, 1.0)


@triton.jit
def add_to(counter, at):
    tl.atomic_add(counter + at, 1)


@triton.jit
def row_sums(source, target, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    values = tl.load(source + row * columns + tl.arange(0, BLOCK))
    tl.store(target + row, tl.sum(values, axis=0))


@triton.jit
def to_the_right(inbox, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    there = dl.symm_at(inbox, (dl.rank() + 1) % dl.num_ranks())
    tl.store(there + offsets, offsets.to(tl.float32), mask=offsets < n)


def test_masked_lanes_are_not_looked_at() -> None:
    source, target = torch.randn(100), torch.zeros(100)
    copy[(4,)](source, target, 100, 0, BLOCK=32)
    assert torch.equal(source, target)


@pytest.mark.parametrize(("shift", "element", "side"), [(1, 100, "past the end"), (-3, -3, "before the beginning")])
def test_a_load_outside(shift: int, element: int, side: str) -> None:
    source, target = torch.randn(100), torch.zeros(100)
    with pytest.raises(errors.OutOfBounds) as caught:
        copy[(4,)](source, target, 100, shift, BLOCK=32)
    text = str(caught.value)
    assert f"read of 4 bytes at element {element} of argument 'source', {side}" in text
    assert "copy, program" in text
    assert "test_bounds.py:" in text


def test_a_store_outside_leaves_memory_alone() -> None:
    memory = torch.zeros(64)
    target = memory[:32].clone()
    with pytest.raises(errors.OutOfBounds, match=r"write of 4 bytes at element 40 of argument 'target', past the end"):
        scatter_scalar[(1,)](target, 40)
    assert target.abs().sum() == 0


def test_an_atomic_outside() -> None:
    with pytest.raises(errors.OutOfBounds, match="element 7 of argument 'counter'"):
        add_to[(1,)](torch.zeros(4, dtype=torch.int32), 7)


def test_a_reduction_reads_outside() -> None:
    with pytest.raises(errors.OutOfBounds, match="argument 'source'"):
        row_sums[(3,)](torch.ones(3, 20), torch.zeros(3), 20, BLOCK=32)


def test_a_view_may_reach_its_storage() -> None:
    storage, target = torch.randn(100), torch.zeros(100)
    copy[(1,)](storage[10:20], target, 30, -10, BLOCK=32)
    assert torch.equal(target[:30], storage[:30])


def test_the_symmetric_heap_is_allowed_on_every_pe() -> None:
    def main(pe: int) -> list[float]:
        inbox = shmem.create_tensor((32,), torch.float32)
        to_the_right[(1,)](inbox, 32, BLOCK=32)
        shmem.barrier_all()
        return inbox.tolist()

    assert testing.run_pes(main, 2) == [list(range(32))] * 2
