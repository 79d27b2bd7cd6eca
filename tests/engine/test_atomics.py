# SPDX-License-Identifier: MIT
"""Atomics: every operation and type, scalars and tiles, masks, the old value, and contention of many programs."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.corpus.registry import VERSION
from tests.engine import harness

INTEGERS = ("int32", "int64", "uint32", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16")
OPERATIONS = {
    "add": (*INTEGERS, *FLOATS), "max": (*INTEGERS, "float32", "float64"), "min": (*INTEGERS, "float32", "float64"),
    "and": INTEGERS, "or": INTEGERS, "xor": INTEGERS, "xchg": (*INTEGERS, "float32", "float64"),
}  # fmt: skip
CASES = [(name, dtype) for name, types in OPERATIONS.items() for dtype in types]


@cache
def _kernel(name: str, form: str, extra: str = "") -> Any:
    body = {
        "tile": f"tl.atomic_{name}(x + i, tl.load(y + i){extra})",
        "masked": f"tl.atomic_{name}(x + i, tl.load(y + i), mask=i % 3 != 0{extra})",
    }.get(form)
    text = f"""@triton.jit
def kernel(x, y, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, {body})
"""
    if form == "scalar":
        text = f"""@triton.jit
def kernel(x, y, o, N: tl.constexpr):
    for n in range(N):
        tl.store(o + n, tl.atomic_{name}(x + n, tl.load(y + n){extra}))
"""
    return harness.module(text).kernel


def _numbers(dtype: str, count: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    low = 0 if dtype.startswith("uint") else -50
    return torch.randint(low, 50, (count,), generator=generator).to(getattr(torch, dtype))


def _combined(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    functions: dict[str, Any] = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
                                 "or": np.bitwise_or, "xor": np.bitwise_xor, "xchg": lambda p, q: q}  # fmt: skip
    return functions[name](x, y)


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.float().numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()


@pytest.mark.parametrize("form", ["tile", "masked", "scalar"])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_operation(name: str, dtype: str, form: str) -> None:
    x, y = _numbers(dtype, 64, 1), _numbers(dtype, 64, 2)
    before, o = x.clone(), torch.zeros_like(x)
    _kernel(name, form)[(1,)](x, y, o, N=64)
    on = np.arange(64) % 3 != 0 if form == "masked" else np.ones(64, bool)
    a, b = _array(before), _array(y)
    np.testing.assert_array_equal(_array(x), np.where(on, _combined(name, a, b), a))
    np.testing.assert_array_equal(_array(o)[on], a[on])


@pytest.mark.parametrize("sem", ["acquire", "release", "acq_rel", "relaxed"])
@pytest.mark.parametrize("scope", ["gpu", "cta", "sys"])
@pytest.mark.parametrize("name", ["add", "xchg"])
def test_orders(name: str, sem: str, scope: str) -> None:
    x, y, o = (
        torch.zeros(64, dtype=torch.int32),
        torch.arange(64, dtype=torch.int32),
        torch.empty(64, dtype=torch.int32),
    )
    _kernel(name, "tile", f", sem='{sem}', scope='{scope}'")[(1,)](x, y, o, N=64)
    assert torch.equal(x, y)


@cache
def _contention(name: str) -> Any:
    return harness.module(
        f"""@triton.jit
def kernel(x, o, N: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, N)
    tl.atomic_{name}(x + i % 4, (p * N + i + 1).to(x.dtype.element_ty))
    tl.store(o + p, tl.atomic_add(x + 4, 1).to(tl.int64))
"""
    ).kernel


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("name", ["add", "max", "min"])
def test_contention(name: str, dtype: str) -> None:
    """200 programs at the same five words; the tickets they draw are all different."""
    programs, count = 200, 16
    x = torch.zeros(5, dtype=getattr(torch, dtype))
    o = torch.empty(programs, dtype=torch.int64)
    _contention(name)[(programs,)](x, o, N=count)
    given = torch.arange(1, programs * count + 1).reshape(-1, 4)
    expected = {"add": given.sum(0), "max": given.amax(0), "min": torch.zeros(4)}[name]
    assert torch.equal(x[:4].double(), expected.double())
    assert torch.equal(o.sort().values, torch.arange(programs))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_contention_of_narrow_floats(dtype: str) -> None:
    x, o = torch.zeros(5, dtype=getattr(torch, dtype)), torch.empty(8, dtype=torch.int64)
    _contention("add")[(8,)](x, o, N=4)
    assert x[:4].tolist() == [sum(4 * p + n + 1 for p in range(8)) for n in range(4)]


@triton.jit
def many_lanes(x, N: tl.constexpr):
    tl.atomic_add(x + tl.zeros([N], tl.int32), 1)


def test_lanes_at_one_address() -> None:
    x = torch.zeros(1, dtype=torch.int32)
    many_lanes[(10,)](x, N=256)
    assert x.item() == 2560


# Compare and swap


@triton.jit
def compare_and_swap(x, expected, value, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.atomic_cas(x + i, tl.load(expected + i), tl.load(value + i)))


@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64", "int16", "float16"])
def test_compare_and_swap(dtype: str) -> None:
    x, value = _numbers(dtype, 32, 1), _numbers(dtype, 32, 2)
    expected = torch.where(torch.arange(32) % 2 == 0, x.long(), x.long() + 1).to(x.dtype)
    before, o = x.clone(), torch.zeros_like(x)
    compare_and_swap[(1,)](x, expected, value, o, N=32)
    assert torch.equal(o, before)
    assert torch.equal(x.double(), torch.where(torch.arange(32) % 2 == 0, value.double(), before.double()))


@triton.jit
def locked_increment(lock, counter, ROUNDS: tl.constexpr):
    for _ in range(ROUNDS):
        while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
            pass
        tl.store(counter, tl.load(counter) + 1)
        tl.atomic_xchg(lock, 0, sem="release")


def test_spin_lock() -> None:
    lock, counter = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int64)
    locked_increment[(16,)](lock, counter, ROUNDS=5)
    assert counter.item() == 80


@triton.jit
def last_program_sums(x, o, ticket, P: tl.constexpr):
    p = tl.program_id(0)
    tl.store(x + p, p + 1)
    if tl.atomic_add(ticket, 1, sem="acq_rel") == P - 1:
        tl.store(o, tl.sum(tl.load(x + tl.arange(0, P)), 0))


def test_last_program_sees_all() -> None:
    x, o, ticket = (
        torch.zeros(64, dtype=torch.int32),
        torch.zeros(1, dtype=torch.int32),
        torch.zeros(1, dtype=torch.int32),
    )
    last_program_sums[(64,)](x, o, ticket, P=64)
    assert o.item() == 64 * 65 // 2


@pytest.mark.parametrize("value", ["inf", "-0.0", "-inf"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_float_extremes(name: str, value: str) -> None:
    """NaN is left out: Triton compares bit patterns, in which a positive one is above infinity."""
    x = torch.tensor([1.0, -1.0, float("-inf"), float("inf")] * 8)
    before = x.clone()
    y, o = torch.full((32,), float(value)), torch.empty(32)
    _kernel(name, "tile")[(1,)](x, y, o, N=32)
    assert torch.equal(o, before)
    expected = (np.fmax if name == "max" else np.fmin)(before.numpy(), y.numpy())
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.skipif(VERSION < (3, 9), reason="atomic_load came with Triton 3.9")
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_load_and_store(dtype: str) -> None:
    kernel = harness.module(
        """@triton.jit
def kernel(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_store(o + i, tl.atomic_load(x + i, sem="acquire"), sem="release")
    tl.atomic_store(o + N, tl.atomic_load(x), sem="relaxed")
"""
    ).kernel
    x = _numbers(dtype, 16, 1)
    o = torch.zeros(17, dtype=x.dtype)
    kernel[(1,)](x, o, N=16)
    assert torch.equal(o, torch.cat([x, x[:1]]))
