# SPDX-License-Identifier: MIT
"""Collective calls that do not fit together: an error on every PE that shows what each called."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from triton_dist import knobs, shmem
from triton_dist.errors import BadAllocation, CollectiveMismatch, HeapExhausted, MissingPe, OutOfStep, TritonDistError
from triton_dist.testing import run_pes

counts = pytest.mark.parametrize("n", [2, 3, 4])


class Settled:
    """Counts the PEs that have their result, so that another can wait for them rather than for some time."""

    def __init__(self) -> None:
        self._condition, self._count = threading.Condition(), 0

    def add(self) -> None:
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def wait_for(self, count: int) -> None:
        with self._condition:
            assert self._condition.wait_for(lambda: self._count >= count, timeout=30)


def errors_of(
    fn: Callable[..., Any], n: int, wait_timeout: float = 20.0, settled: Settled | None = None
) -> list[TritonDistError | None]:
    """Run on threads; each PE's error is its result, so that none ends the others."""
    counter = settled or Settled()

    def caught(pe: int) -> TritonDistError | None:
        try:
            fn(pe)
        except TritonDistError as error:
            return error
        finally:
            counter.add()
            counter.wait_for(n)  # nobody comes to the end, which is collective, before all have their result
        return None

    with knobs.scope(wait_timeout=wait_timeout):
        return run_pes(caught, n, timeout=60)


@counts
@pytest.mark.parametrize(
    ("odd", "texts"),
    [
        (lambda: shmem.create_tensor((5,), torch.int32), ["create_tensor((5,), torch.int32)"]),
        (lambda: shmem.create_tensor((4,), torch.int64), ["create_tensor((4,), torch.int64)"]),
        (lambda: shmem.create_signals(4), ["create_signals(4, torch.int64)"]),
    ],
    ids=["shape", "dtype", "kind"],
)
def test_unequal_arguments(n: int, odd: Callable[[], Any], texts: list[str]) -> None:
    def create(pe: int) -> None:
        if pe == 1:
            odd()
        else:
            shmem.create_tensor((4,), torch.int32)

    errors = errors_of(create, n)
    line = create.__code__.co_firstlineno
    for pe, error in enumerate(errors):
        assert isinstance(error, CollectiveMismatch)
        message = str(error)
        assert message.startswith(f"PE {pe}: the PEs do not agree")
        assert re.search(rf"PEs? 0.*: create_tensor\(\(4,\), torch.int32\) at .*test_collective.py:{line + 4}", message)
        assert "PE 1: " + texts[0] in message
        assert f"test_collective.py:{odd.__code__.co_firstlineno}" in message


@counts
def test_a_mismatch_changes_nothing(n: int) -> None:
    def go_on(pe: int) -> int:
        with pytest.raises(CollectiveMismatch):
            shmem.create_tensor((pe + 1,), torch.int8)
        shmem.barrier_all()
        return shmem.offset_of(shmem.create_tensor((4,), torch.int8))

    assert len(set(run_pes(go_on, n))) == 1


@counts
def test_freeing_different_tensors(n: int) -> None:
    def free(pe: int) -> None:
        tensors = [shmem.create_tensor((4,), torch.int8) for _ in range(2)]
        shmem.free_tensor(tensors[pe % 2])

    errors = errors_of(free, n)
    assert all(isinstance(error, CollectiveMismatch) for error in errors)
    assert "free_tensor(tensor 0: (4,) int8)" in str(errors[1])
    assert "free_tensor(tensor 1: (4,) int8)" in str(errors[0])


@counts
def test_another_order(n: int) -> None:
    def swap(pe: int) -> None:
        if pe == n - 1:
            shmem.barrier_all()
            shmem.create_tensor((4,), torch.int8)
        else:
            shmem.create_tensor((4,), torch.int8)
            shmem.barrier_all()

    start = time.monotonic()
    errors = errors_of(swap, n)
    assert time.monotonic() - start < 10  # seen, not waited for
    for error in errors:
        assert isinstance(error, OutOfStep)
    for error in (errors[0], errors[n - 1]):
        assert "create_tensor((4,), torch.int8)" in str(error)
        assert "barrier_all()" in str(error)
        assert len(set(re.findall(r"test_collective.py:\d+", str(error)))) == 2


@counts
def test_a_missing_pe_is_named_at_the_deadline(n: int) -> None:
    settled = Settled()

    def come(pe: int) -> None:
        if pe != 1:
            shmem.create_tensor((4,), torch.int8)
        else:
            settled.wait_for(n - 1)

    errors = errors_of(come, n, 0.3, settled)
    assert errors[1] is None
    for pe, error in enumerate(errors):
        # Who comes to its deadline a moment later may see that another PE has given up already.
        assert pe == 1 or isinstance(error, (MissingPe, OutOfStep))
    message = next(str(error) for error in errors if isinstance(error, MissingPe))
    assert re.search(r"create_tensor\(\(4,\), torch.int8\) waited 0.\d s for PE.*1.*, which did not call it", message)
    assert "PE 1 runs; its last collective call was init(" in message


@counts
def test_a_barrier_misses_a_pe(n: int) -> None:
    settled = Settled()

    def come(pe: int) -> None:
        if pe:
            shmem.barrier_all()
        else:
            settled.wait_for(n - 1)

    errors = errors_of(come, n, 0.3, settled)
    assert errors[0] is None
    assert any(isinstance(error, MissingPe) and "PE 0 runs" in str(error) for error in errors[1:])


@counts
def test_who_comes_late_learns_that_the_others_gave_up(n: int) -> None:
    settled = Settled()

    def late(pe: int) -> None:
        if pe == 0:
            settled.wait_for(n - 1)
        shmem.create_tensor((4,), torch.int8)

    errors = errors_of(late, n, 0.3, settled)
    assert isinstance(errors[0], OutOfStep)
    assert re.search(r"gave up: it w.* in create_tensor\(\(4,\), torch.int8\) at .*:\d+", str(errors[0]))


def test_a_call_that_a_pe_refused_is_reported_to_the_others() -> None:
    settled = Settled()

    def refuse(pe: int) -> None:
        try:
            shmem.create_tensor((-1 if pe else 4,), torch.int8)
        finally:
            settled.wait_for(pe)

    missing, refused = errors_of(refuse, 2, 0.3, settled)
    assert isinstance(missing, MissingPe)
    assert isinstance(refused, BadAllocation)
    assert "PE 1 raised PE 1, " in str(missing)
    assert "has a negative size" in str(missing)


@counts
def test_a_heap_that_is_full_is_full_on_every_pe(n: int) -> None:
    def fill(pe: int) -> None:
        shmem.create_tensor((3000,), torch.int8)
        with pytest.raises(
            HeapExhausted,
            match=rf"PE {pe}, .*test_collective.py:\d+: create_tensor\(\(1000,\), torch.int64\) needs 8000 bytes, "
            r"but of the symmetric heap's 8192 bytes 5184 are free.*TRITON_DIST_HEAP_SIZE",
        ):
            shmem.create_tensor((1000,), torch.int64)
        shmem.create_tensor((5184,), torch.int8)

    run_pes(fill, n, heap_size=8192)


@counts
def test_finalize_is_collective_too(n: int) -> None:
    def leave(pe: int) -> None:
        if pe == 0:
            shmem.create_tensor((4,), torch.int8)
        else:
            shmem.finalize()

    errors = errors_of(leave, n)
    assert all(isinstance(error, CollectiveMismatch) for error in errors)
    assert "finalize() at" in str(errors[0])


def test_long_arguments_still_differ() -> None:
    def create(pe: int) -> None:
        shmem.create_tensor((*[1] * 400, pe), torch.int8)

    assert all(isinstance(error, CollectiveMismatch) for error in errors_of(create, 2))


def test_an_allocation_costs_microseconds() -> None:
    def allocate() -> float:
        start = time.perf_counter()
        for _ in range(200):
            shmem.free_tensor(shmem.create_tensor((16,), torch.float32))
        return (time.perf_counter() - start) / 400

    assert run_pes(allocate, 1)[0] < 1e-3


def test_what_tells_long_calls_apart_is_shown_and_who_makes_which() -> None:
    """Only the beginnings were: of both PEs, in one line."""
    sizes = (1,) * 400

    def call(shape: tuple[int, ...]) -> list[str]:
        with pytest.raises(CollectiveMismatch) as raised:
            shmem.create_tensor(shape, torch.float32)
        return str(raised.value).splitlines()[1:]

    for first, second in run_pes(lambda pe: call((*sizes, pe + 1)), 2):
        assert re.search(r"^  PE 0: create_tensor\(\(1, 1, .* \.\.\. .*1, 1, 1\), torch\.float32\) at ", first)
        assert re.search(r"^  PE 1: create_tensor\(\(1, 1, .* \.\.\. .*1, 1, 2\), torch\.float32\) at ", second)
    for first, second in run_pes(lambda pe: call((*sizes, pe + 1, *sizes)), 2):
        assert (first[:8], second[:8]) == ("  PE 0: ", "  PE 1: ")


def test_sizes_are_alike_whatever_they_came_as() -> None:
    number: Any = type("Number", (), {"__index__": lambda self: 4})()
    shapes: tuple[Any, ...] = 4, (4,), [4], torch.Size([4]), (number,), number

    def create(pe: int) -> None:
        for first in (0, 3):
            shape = shapes[first + pe]
            made = shmem.create_tensor(shape, torch.float32), shmem.create_signals((4, 4, number)[pe])
            assert [tensor.shape for tensor in made] == [(4,)] * 2

    run_pes(create, 3)
