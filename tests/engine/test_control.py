# SPDX-License-Identifier: MIT
"""Control flow, functions, specialisation and grids."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from tests.engine import harness


@triton.jit
def count_loop(o, start, stop, step, N: tl.constexpr):
    total = 0
    rounds = 0
    last = -1000
    for i in range(start, stop, step):
        total += i
        rounds += 1
        last = i
    tl.store(o, total)
    tl.store(o + 1, rounds)
    tl.store(o + 2, last)


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 10, 1), (0, 0, 1), (5, 3, 1), (-7, 20, 3), (0, 1, 100), (3, 4, 1), (2, 100, 7), (-10, -3, 2)],
)
def test_range(start: int, stop: int, step: int) -> None:
    o = torch.zeros(3, dtype=torch.int64)
    count_loop[(1,)](o, start, stop, step, N=1)
    rounds = range(start, stop, step)
    assert o.tolist() == [sum(rounds), len(rounds), rounds[-1] if len(rounds) else -1000]


@pytest.mark.parametrize(("start", "stop", "step"), [(10, 0, -1), (10, -5, -3), (0, 5, -1), (7, 6, -1)])
def test_range_down(start: int, stop: int, step: int) -> None:
    kernel = harness.module(
        f"""@triton.jit
def kernel(o, start, stop):
    n = 0
    for i in range(start, stop, {step}):
        tl.store(o + n, i)
        n += 1
    tl.store(o + 31, n)
"""
    ).kernel
    o = torch.zeros(32, dtype=torch.int32)
    kernel[(1,)](o, start, stop)
    rounds = list(range(start, stop, step))
    assert o[: len(rounds)].tolist() == rounds
    assert o[31] == len(rounds)


RANGES = (
    "tl.range(0, n)", "tl.range(0, n, num_stages=3)", "tl.range(0, n, loop_unroll_factor=4)", "tl.static_range(0, 7)",
    "range(7)", "tl.range(0, n, flatten=True)", "tl.range(0, n, warp_specialize=True)",
    "tl.range(0, n, disable_licm=True)", "tl.range(0, n, disallow_acc_multi_buffer=True)",
)  # fmt: skip


@pytest.mark.parametrize("form", RANGES)
def test_kinds_of_range(form: str) -> None:
    kernel = harness.module(
        f"""@triton.jit
def kernel(x, o, n, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros([N], tl.float32)
    for r in {form}:
        total = total * 2 + tl.load(x + r * N + i)
    tl.store(o + i, total)
"""
    ).kernel
    x, o = torch.randn(7, 16), torch.empty(16)
    kernel[(1,)](x, o, 7, N=16)
    expected = torch.zeros(16)
    for row in x:
        expected = expected * 2 + row
    torch.testing.assert_close(o, expected)


@triton.jit
def halve(o, n):
    rounds = 0
    while tl.condition(n > 1, disable_licm=True):
        n = n // 2
        rounds += 1
    tl.store(o, rounds)


@pytest.mark.parametrize("n", [2, 37, 64])
def test_while_with_a_hint(n: int) -> None:
    o = torch.zeros(1, dtype=torch.int32)
    halve[(1,)](o, n)
    assert o.item() == n.bit_length() - 1


@triton.jit
def collatz(x, o, N: tl.constexpr):
    p = tl.program_id(0)
    n = tl.load(x + p)
    steps = 0
    while n != 1:
        if n % 2 == 0:  # noqa: SIM108 (a branch is wanted)
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(o + p, steps)


def test_while() -> None:
    x, o = torch.arange(1, 33), torch.empty(32, dtype=torch.int64)
    collatz[(32,)](x, o, N=1)

    def steps(n: int) -> int:
        count = 0
        while n != 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    assert o.tolist() == [steps(n) for n in range(1, 33)]


@triton.jit
def newton(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    r = a
    error = tl.max(tl.abs(r * r - a), 0)
    rounds = 0
    while (error > 1e-6) & (rounds < 30):
        r = 0.5 * (r + a / r)
        error = tl.max(tl.abs(r * r - a) / a, 0)
        rounds += 1
    tl.store(o + i, r)


def test_while_with_tiles() -> None:
    x, o = torch.rand(64) * 100 + 0.1, torch.empty(64)
    newton[(1,)](x, o, N=64)
    torch.testing.assert_close(o, x.sqrt(), rtol=1e-5, atol=0)


@triton.jit
def rotate_three(x, o, rounds, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c = tl.load(x + i), tl.load(x + N + i), tl.load(x + 2 * N + i)
    for _ in range(rounds):
        a, b, c = b, c, a + b
    tl.store(o + i, a)
    tl.store(o + N + i, b)
    tl.store(o + 2 * N + i, c)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 7])
def test_carried_tiles_change_places(rounds: int) -> None:
    x, o = torch.randn(3, 64), torch.empty(3, 64)
    rotate_three[(1,)](x, o, rounds, N=64)
    a, b, c = x
    for _ in range(rounds):
        a, b, c = b, c, a + b
    torch.testing.assert_close(o, torch.stack([a, b, c]))


@triton.jit
def carried_views(x, o, rounds, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(x + i * N + j)
    for r in range(rounds):
        a = tl.trans(a) * 2 + a
        if r % 2 == 1:
            a = tl.flip(a, 1)
    tl.store(o + i * N + j, a)


@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_carried_tile_read_under_other_indices(rounds: int) -> None:
    x, o = torch.randn(16, 16), torch.empty(16, 16)
    carried_views[(1,)](x, o, rounds, N=16)
    for r in range(rounds):
        x = x.T * 2 + x
        x = x.flip(1) if r % 2 == 1 else x
    torch.testing.assert_close(o, x)


@triton.jit
def branches(x, o, kind, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    scale = 1.0
    if kind == 0:
        a = a + 1
        scale = 2.0
    elif kind == 1:
        a = tl.flip(a, 0)
    else:
        if kind > 5:
            a = tl.cumsum(a, 0)
        else:
            a = a * a
            scale = tl.sum(a, 0)
    tl.store(o + i, a * scale)


@pytest.mark.parametrize("kind", [0, 1, 2, 6])
def test_branches_with_tiles(kind: int) -> None:
    x, o = torch.randn(32), torch.empty(32)
    branches[(1,)](x, o, kind, N=32)
    expected = {0: (x + 1) * 2, 1: x.flip(0), 2: x * x * (x * x).sum(), 6: x.cumsum(0)}[kind]
    torch.testing.assert_close(o, expected, rtol=1e-5, atol=1e-5)


@triton.jit
def early_return(x, o, n, N: tl.constexpr):
    p = tl.program_id(0)
    if p >= n:
        return
    i = tl.arange(0, N)
    value = tl.load(x + p * N + i)
    if tl.sum(value, 0) < 0:
        tl.store(o + p * N + i, -value)
        return
    tl.store(o + p * N + i, value + 1)


@pytest.mark.parametrize("n", [0, 1, 5, 8])
def test_early_return(n: int) -> None:
    x, o = torch.randn(8, 16), torch.zeros(8, 16)
    early_return[(8,)](x, o, n, N=16)
    expected = torch.where(x.sum(1, keepdim=True) < 0, -x, x + 1)
    expected[n:] = 0
    torch.testing.assert_close(o, expected)


@triton.jit
def load_then_store_in_a_branch(x, o, yes, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i)
    if yes:
        tl.store(x + i, value * 0)
    tl.store(o + i, value)


@pytest.mark.parametrize("yes", [0, 5])
def test_load_before_a_branch_that_overwrites(yes: int) -> None:
    x, o = torch.randn(32), torch.empty(32)
    before = x.clone()
    load_then_store_in_a_branch[(1,)](x, o, yes, N=32)
    assert torch.equal(o, before)
    assert torch.equal(x, before * 0 if yes else before)


@triton.jit
def store_in_a_loop(x, o, rounds, N: tl.constexpr):
    i = tl.arange(0, N)
    first = tl.load(x + i)
    for _ in range(rounds):
        now = tl.load(x + i)
        tl.store(x + i, now + first)
    tl.store(o + i, first)


def test_load_before_a_loop_that_overwrites() -> None:
    x, o = torch.randn(32), torch.empty(32)
    before = x.clone()
    store_in_a_loop[(1,)](x, o, 3, N=32)
    assert torch.equal(o, before)
    torch.testing.assert_close(x, before * 4)


# Functions


@triton.jit
def two_results(a, b):
    return a + b, a * b


@triton.jit
def polynomial(a, n):
    result = a * 0 + 1
    for i in range(n):
        result = result * a + i
    return result


@triton.jit(noinline=True)
def scalar_polynomial(a, n):
    result = a * 0 + 1
    for i in range(n):
        result = result * a + i
    return result


@triton.jit
def store_twice(o, value, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, value)
    tl.store(o + N + i, value * 2)


@triton.jit
def chosen(a, KIND: tl.constexpr):
    if KIND == "double":
        return a * 2
    else:
        return a.to(tl.int32).to(tl.float32)


@triton.jit
def functions(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    total, product = two_results(a, 3.0)
    tl.store(o + i, total)
    tl.store(o + N + i, product)
    tl.store(o + 2 * N + i, polynomial(a, 3))
    tl.store(o + 3 * N + i, polynomial(total, 2))
    store_twice(o + 4 * N, chosen(a, "double"), N)
    tl.store(o + 6 * N + i, chosen(a, "other"))
    tl.store(o + 7 * N, scalar_polynomial(2.0, 4))
    tl.store(o + 7 * N + 1, scalar_polynomial(tl.load(x), 3))


def test_functions() -> None:
    x, o = torch.randn(32), torch.empty(8 * 32)
    functions[(1,)](x, o, N=32)

    def value(a: torch.Tensor, n: int) -> torch.Tensor:
        result = torch.ones_like(a)
        for i in range(n):
            result = result * a + i
        return result

    expected = [x + 3, x * 3, value(x, 3), value(x + 3, 2), x * 2, x * 4, x.trunc()]
    torch.testing.assert_close(o[: 7 * 32], torch.cat(expected), rtol=1e-5, atol=1e-5)
    assert o[7 * 32] == value(torch.tensor(2.0), 4)
    torch.testing.assert_close(o[7 * 32 + 1], value(x[0], 3), rtol=1e-5, atol=1e-5)


@triton.jit(noinline=True)
def returns_early(a, limit):
    if limit > 3:
        return a * 2
    return a + limit


@triton.jit
def calls_one_that_returns_early(x, o, N: tl.constexpr):
    a = tl.load(x)
    for n in range(N):
        tl.store(o + n, returns_early(a, n))


def test_early_return_of_a_called_function() -> None:
    x, o = torch.tensor([1.5]), torch.empty(8)
    calls_one_that_returns_early[(1,)](x, o, N=8)
    assert o.tolist() == [1.5, 2.5, 3.5, 4.5, 3.0, 3.0, 3.0, 3.0]


@triton.jit
def tuples(x, o, strides, N: tl.constexpr):
    i = tl.arange(0, N)
    pair = (tl.load(x + i * strides[0]), tl.load(x + i * strides[1]))
    total = pair[0]
    for k in tl.static_range(len(pair)):
        total += pair[k] * (k + 1)
    tl.store(o + i, total)


def test_tuples() -> None:
    x, o = torch.randn(64), torch.empty(16)
    tuples[(1,)](x, o, (1, 3), N=16)
    i = torch.arange(16)
    torch.testing.assert_close(o, x[i] * 2 + x[i * 3] * 2)


# Grids


@triton.jit
def grid_kernel(o, W: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    at = (z * ny + y) * nx + x
    tl.store(o + at * W, x)
    tl.store(o + at * W + 1, y)
    tl.store(o + at * W + 2, z)
    tl.store(o + at * W + 3, nx * 10000 + ny * 100 + nz)


@pytest.mark.parametrize("grid", [(1,), (7,), (3, 5), (1, 9), (2, 3, 4), (5, 1, 2), (64, 2, 1)])
def test_grid(grid: tuple[int, ...]) -> None:
    nx, ny, nz = (*grid, 1, 1)[:3]
    o = torch.full((nz, ny, nx, 4), -1, dtype=torch.int32)
    grid_kernel[grid](o, W=4)
    z, y, x = torch.meshgrid(torch.arange(nz), torch.arange(ny), torch.arange(nx), indexing="ij")
    total = torch.full_like(x, nx * 10000 + ny * 100 + nz)
    assert torch.equal(o.long(), torch.stack([x, y, z, total], -1))


def test_empty_grid() -> None:
    o = torch.zeros(4, dtype=torch.int32)
    grid_kernel[(0,)](o, W=4)
    assert not o.any()


def test_grid_from_meta() -> None:
    o = torch.zeros(12, dtype=torch.int32)
    grid_kernel[lambda meta: (meta["W"] - 1,)](o, W=4)
    assert o.reshape(3, 4)[:, 0].tolist() == [0, 1, 2]


# Arguments


@triton.jit
def arguments(o, i8, f, n, b, none, N: tl.constexpr, FLAG: tl.constexpr = True):
    value = f * 2 + n
    if b:
        value += 100
    if none is None:
        value += 1000
    if FLAG:
        value += 10000
    tl.store(o, value)
    tl.store(o + 1, i8)


@pytest.mark.parametrize("n", [0, 1, 16, -1, 2**31 - 1, 2**31, 2**40])
@pytest.mark.parametrize("flag", [True, False])
def test_arguments(n: int, flag: bool) -> None:
    """1 and multiples of 16 are specialised, large integers are 64 bits wide."""
    o = torch.zeros(2, dtype=torch.float64)
    arguments[(1,)](o, -5, 0.25, n, True, None, N=4, FLAG=flag)
    expected = torch.tensor(0.5 + n).float().double() + 1100 + 10000 * flag
    torch.testing.assert_close(o[0], expected, rtol=1e-6, atol=0)
    assert o[1] == -5


@triton.jit(do_not_specialize=["n"])
def not_specialised(o, n):
    tl.store(o, n + 1)


def test_do_not_specialise() -> None:
    o = torch.zeros(1, dtype=torch.int64)
    for n in (1, 16, 17):
        not_specialised[(1,)](o, n)
        assert o.item() == n + 1
    device = triton.runtime.driver.active.get_current_device()
    assert len(not_specialised.device_caches[device][0]) == 1


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
)
def test_zero_dimensional_tensor(dtype: str) -> None:
    kernel = harness.module("@triton.jit\ndef kernel(x, o):\n    tl.store(o, tl.load(x))\n").kernel
    x = torch.tensor(1).to(getattr(torch, dtype))
    o = torch.zeros((), dtype=x.dtype)
    kernel[(1,)](x, o)
    assert torch.equal(x, o)


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("stages", [1, 3])
def test_launch_options_mean_nothing_here(warps: int, stages: int) -> None:
    o = torch.zeros(12, dtype=torch.int32)
    grid_kernel[(3,)](o, W=4, num_warps=warps, num_stages=stages)
    assert o.reshape(3, 4)[:, 0].tolist() == [0, 1, 2]


FOREIGN = (
    {"launch_pdl": True}, {"num_ctas": 2, "maxnreg": 128}, {"waves_per_eu": 2, "matrix_instr_nonkdim": 16, "kpack": 2},
    {"schedule_hint": "none", "allow_flush_denorm": True}, {"launch_cooperative_grid": True},
)  # fmt: skip


@pytest.mark.parametrize("options", FOREIGN, ids=str)
def test_options_of_a_vendors_back_end_mean_nothing_here(options: dict[str, Any]) -> None:
    o = torch.zeros(12, dtype=torch.int32)
    grid_kernel[(3,)](o, W=4, **options)
    assert o.reshape(3, 4)[:, 0].tolist() == [0, 1, 2]


def test_an_option_that_nobody_has_is_an_error() -> None:
    with pytest.raises(KeyError, match="wraps"):
        grid_kernel[(3,)](torch.zeros(12, dtype=torch.int32), W=4, wraps=4)


NUMBERS = (0.1, -1e-50, 65519.0, 65520.0, -3.4028236e38, 1e300, float("-inf"), float("nan"))


KINDS = [("float16", False), ("bfloat16", False), ("float32", False), ("float64", False), ("float32", True)]


@pytest.mark.parametrize("given", NUMBERS)
@pytest.mark.parametrize(("kind", "in_a_tuple"), KINDS)
def test_a_float_argument_is_rounded_to_its_type(kind: str, in_a_tuple: bool, given: float) -> None:
    parameters = "o, t" if in_a_tuple else f"o, x: tl.{kind}"
    text = f"@triton.jit\ndef kernel({parameters}):\n    tl.store(o, {'t[0]' if in_a_tuple else 'x'})\n"
    o = torch.empty(1, dtype=getattr(torch, kind))
    harness.module(text).kernel[(1,)](o, (given, 2) if in_a_tuple else given)
    expected = torch.tensor([given], dtype=torch.float64).to(o.dtype)
    torch.testing.assert_close(o, expected, rtol=0, atol=0, equal_nan=True)
