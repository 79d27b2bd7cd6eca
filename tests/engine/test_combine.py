# SPDX-License-Identifier: MIT
"""Combine functions as people write them: constants, casts, branches, loops, early returns, calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
import torch

from tests.engine import harness

FUNCTIONS = """
@triton.jit
def larger_by_branch(a, b):
    if a > b:
        found = a
    else:
        found = b
    return found


@triton.jit
def larger_by_return(a, b):
    if a > b:
        return a
    return b


@triton.jit
def sum_in_a_loop(a, b):
    for _ in range(4):
        a += b * 0.25
    return a


@triton.jit
def sum_in_a_while(a, b):
    n = 0
    while n < 2:
        a += b * 0.5
        n += 1
    return a


@triton.jit(noinline=True)
def sum_elsewhere(a, b):
    return a + b


@triton.jit
def sum_by_a_call(a, b):
    return sum_elsewhere(a, b)


@triton.jit
def length(a, b):
    return libdevice.hypot(a, b)


@triton.jit
def log_of_sum(a, b):
    largest = tl.maximum(a, b)
    return largest + tl.log(tl.exp(a - largest) + tl.exp(b - largest))


@triton.jit
def larger_under_a_cap(a, b):
    return tl.clamp(tl.maximum(a, b), -1.5, 1.5)


@triton.jit
def last_positive(a, b):
    return tl.where(b > 0.0, b, a)


@triton.jit
def sum_by_fma(a, b):
    return tl.fma(a, 1.0, b)


@triton.jit
def larger_whole(a, b):
    return tl.maximum((a * 4).to(tl.int32), (b * 4).to(tl.int32)).to(tl.float32) * 0.25


@triton.jit
def sum_and_larger(a, x, b, y):
    if x > y:
        found = x
    else:
        found = y
    return a + b, found
"""

MEANING: dict[str, Callable[[Any, Any], Any]] = {
    "larger_by_branch": max,
    "larger_by_return": max,
    "sum_in_a_loop": lambda a, b: a + b,
    "sum_in_a_while": lambda a, b: a + b,
    "sum_by_a_call": lambda a, b: a + b,
    "length": np.hypot,
    "log_of_sum": np.logaddexp,
    "larger_under_a_cap": lambda a, b: min(max(a, b, -1.5), 1.5),
    "last_positive": lambda a, b: b if b > 0 else a,
    "sum_by_fma": lambda a, b: a + b,
}
"""What the associative ones do. `reduce` may pair elements as it likes, but keeps no order that it need not."""

TILE = """
@triton.jit
def kernel(source, below, beside, along, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    tile = tl.load(source + i[:, None] * N + j[None, :])
    tl.store(below + j, tl.reduce(tile, 0, {0}))
    tl.store(beside + i, tl.reduce(tile, 1, {0}))
    tl.store(along + i[:, None] * N + j[None, :], tl.associative_scan(tile, 1, {0}))
"""


@pytest.mark.parametrize("shape", [(1, 1), (1, 16), (16, 1), (2, 4), (4, 64)], ids=str)
@pytest.mark.parametrize("name", sorted(MEANING))
def test_combine(name: str, shape: tuple[int, int]) -> None:
    rows, columns = shape
    source = torch.randn(shape)
    below, beside, along = torch.empty(columns), torch.empty(rows), torch.empty(shape)
    harness.module(FUNCTIONS + TILE.format(name)).kernel[(1,)](source, below, beside, along, M=rows, N=columns)
    of, numbers = MEANING[name], source.double().numpy()
    expected = np.array([list(accumulate(row, of)) for row in numbers])
    np.testing.assert_allclose(along, expected, rtol=1e-4, atol=1e-4)
    if name != "last_positive":  # A reduction may change places: it is taken to be commutative.
        np.testing.assert_allclose(beside, [reduce(of, row) for row in numbers], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(below, [reduce(of, column) for column in numbers.T], rtol=1e-4, atol=1e-4)


WHOLE = """
@triton.jit
def kernel(source, total, N: tl.constexpr):
    tl.store(total, tl.reduce(tl.load(source + tl.arange(0, N)), 0, larger_whole))
"""


@pytest.mark.parametrize("count", [2, 16, 128])
def test_a_combine_function_that_casts(count: int) -> None:
    source, total = torch.randint(-40, 40, (count,)).float() / 4, torch.empty(1)
    harness.module(FUNCTIONS + WHOLE).kernel[(1,)](source, total, N=count)
    assert total.item() == source.max().item()


PAIRS = """
@triton.jit
def kernel(source, sums, larger, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    tile = tl.load(source + i[:, None] * N + j[None, :])
    total, most = tl.reduce((tile.to(tl.float64), tile), 1, sum_and_larger)
    tl.store(sums + i, total)
    tl.store(larger + i, most)
"""


@pytest.mark.parametrize("shape", [(1, 8), (8, 2), (4, 128)], ids=str)
def test_several_operands_and_a_branch(shape: tuple[int, int]) -> None:
    source = torch.randn(shape)
    sums, larger = torch.empty(shape[0], dtype=torch.float64), torch.empty(shape[0])
    harness.module(FUNCTIONS + PAIRS).kernel[(1,)](source, sums, larger, M=shape[0], N=shape[1])
    torch.testing.assert_close(sums, source.double().sum(1))
    assert torch.equal(larger, source.max(1).values)
