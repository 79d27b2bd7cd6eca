# SPDX-License-Identifier: MIT
"""Reductions and scans: every operation, element type, axis; ties, several operands, combine functions of one's own."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.engine import harness
from triton_dist import knobs

SHAPES = ((1,), (2,), (64,), (1024,), (8, 32), (64, 4), (1, 16), (4, 8, 16), (2, 4, 2, 8))
CASES = [(shape, axis) for shape in SHAPES for axis in range(len(shape))]
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint32")
PRELUDE = """
@triton.jit
def multiply(x, y):
    return x * y

@triton.jit
def last(x, y):
    return y

@triton.jit
def welford(m1, s1, n1, m2, s2, n2):
    n = n1 + n2
    d = m2 - m1
    return m1 + d * n2 / n, s1 + s2 + d * d * n1 * n2 / n, n

@triton.jit
def linear(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2

@triton.jit
def best(v1, i1, v2, i2):
    keep = (v1 > v2) | ((v1 == v2) & (i1 > i2))
    return tl.where(keep, v1, v2), tl.where(keep, i1, i2)

"""


def _values(dtype: str, shape: tuple[int, ...], seed: int = 0) -> torch.Tensor:
    """Small numbers with many ties, so that every sum is exact."""
    random = np.random.default_rng(seed)
    low = 0 if dtype.startswith("uint") else -4
    return torch.from_numpy(random.integers(low, 5, shape)).to(getattr(torch, dtype))


def _wider(dtype: str) -> torch.dtype:
    """Sums of narrow integers are 32 bits wide."""
    return {"int8": torch.int32, "int16": torch.int32, "uint8": torch.uint32}.get(dtype, getattr(torch, dtype))


def _rest(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(n for d, n in enumerate(shape) if d != axis)


@cache
def _reduced(dtype: str, shape: tuple[int, ...], axis: int) -> dict[str, torch.Tensor]:
    own, wide, out = getattr(torch, dtype), _wider(dtype), _rest(shape, axis)
    # Narrow floats are promoted to fp32 by max and min.
    promoted = torch.float32 if dtype in ("float16", "bfloat16") else wide
    wanted: dict[str, harness.Result] = {
        f"tl.sum(a, {axis})": (out, wide),
        f"tl.max(a, {axis})": (out, promoted),
        f"tl.min(a, {axis})": (out, promoted),
        f"tl.argmax(a, {axis})": (out, torch.int32),
        f"tl.argmin(a, {axis})": (out, torch.int32),
        f"tl.max(a, {axis}, return_indices=True)[0]": (out, promoted),
        f"tl.max(a, {axis}, return_indices=True)[1]": (out, torch.int32),
        f"tl.sum(a, {axis}, keep_dims=True)": (tuple(1 if d == axis else n for d, n in enumerate(shape)), wide),
        f"tl.reduce(a, {axis}, multiply)": (out, own),
    }
    if not own.is_floating_point:
        wanted[f"tl.xor_sum(a, {axis})"] = (out, wide)
    return harness.tiles(wanted, {"a": _values(dtype, shape)}, PRELUDE, batch=12)


@pytest.mark.parametrize(("shape", "axis"), CASES)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_reduce(dtype: str, shape: tuple[int, ...], axis: int) -> None:
    got = _reduced(dtype, shape, axis)
    wide = _values(dtype, shape).double().numpy()
    expected = {
        f"tl.sum(a, {axis})": wide.sum(axis),
        f"tl.max(a, {axis})": wide.max(axis),
        f"tl.min(a, {axis})": wide.min(axis),
        f"tl.argmax(a, {axis})": wide.argmax(axis),
        f"tl.argmin(a, {axis})": wide.argmin(axis),
        f"tl.max(a, {axis}, return_indices=True)[0]": wide.max(axis),
        f"tl.max(a, {axis}, return_indices=True)[1]": wide.argmax(axis),
        f"tl.sum(a, {axis}, keep_dims=True)": wide.sum(axis, keepdims=True),
    }
    if f"tl.xor_sum(a, {axis})" in got:
        expected[f"tl.xor_sum(a, {axis})"] = np.bitwise_xor.reduce(wide.astype(np.int64), axis).astype(np.float64)
    for text, value in expected.items():
        np.testing.assert_array_equal(got[text].double().numpy(), value, err_msg=text)
    product = got[f"tl.reduce(a, {axis}, multiply)"]
    if dtype in INTEGERS:
        bits = np.iinfo(dtype).bits
        exact = np.multiply.reduce(wide.astype(np.int64), axis) & (2 ** min(bits, 63) - 1)
        np.testing.assert_array_equal(product.to(torch.int64).numpy() & (2 ** min(bits, 63) - 1), exact)


@pytest.mark.parametrize(("shape", "axis"), CASES)
def test_tie_break(shape: tuple[int, ...], axis: int) -> None:
    """Left is the first of equals; without it, one of them."""
    a = _values("float32", shape)
    out = _rest(shape, axis)
    left, fast = (f"tl.argmax(a, {axis}, tie_break_left={t})" for t in (True, False))
    got = harness.tiles({left: (out, torch.int32), fast: (out, torch.int32)}, {"a": a})
    assert torch.equal(got[left].long(), torch.as_tensor(np.asarray(a.numpy().argmax(axis))))
    chosen = a.gather(axis, got[fast].long().unsqueeze(axis)).squeeze(axis)
    assert torch.equal(chosen, a.amax(axis))


@pytest.mark.parametrize("text", ["tl.max(a, 0)", "tl.min(a, 0)", "tl.sum(a, 0)"])
@pytest.mark.parametrize("special", ["nan", "inf", "-inf", "-0.0"])
@pytest.mark.parametrize("count", [2, 64, 1024])
def test_special_values(text: str, special: str, count: int) -> None:
    """max and min pass over NaN, as the hardware's do; a sum keeps it."""
    a = torch.linspace(-1, 1, count)
    a[count // 2] = float(special)
    got = harness.tiles({text: ((), torch.float32)}, {"a": a})[text]
    finite = a[~a.isnan()].double()
    expected = {"max": finite.max(), "min": finite.min(), "sum": a.double().sum()}[text[3:6]]
    torch.testing.assert_close(got, expected.float(), equal_nan=True, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 16, 512])
@pytest.mark.parametrize("value", ["nan", "-inf", "-0.0"])
def test_all_alike(count: int, value: str) -> None:
    a = torch.full((count,), float(value))
    got = harness.tiles(dict.fromkeys(["tl.max(a, 0)", "tl.min(a, 0)", "tl.sum(a, 0)"], ((), torch.float32)), {"a": a})
    for text, result in got.items():
        expected = torch.tensor(float(value))
        torch.testing.assert_close(result, expected, equal_nan=True)
        if value == "-0.0" and "sum" not in text:
            assert torch.signbit(result)


@pytest.mark.parametrize("shape", [(16,), (256,), (4, 64), (64, 4)])
def test_several_operands(shape: tuple[int, ...]) -> None:
    """Welford's mean and variance."""
    axis = len(shape) - 1
    a = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    zero, one = torch.zeros(shape), torch.ones(shape)
    out = _rest(shape, axis)
    texts = [f"tl.reduce((a, z, n), {axis}, welford)[{i}]" for i in range(3)]
    got = harness.tiles({t: (out, torch.float32) for t in texts}, {"a": a, "z": zero, "n": one}, PRELUDE)
    mean, squares, count = (got[t] for t in texts)
    torch.testing.assert_close(mean, a.mean(axis), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(squares / count, a.var(axis, correction=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(64,), (8, 16), (16, 8)])
@pytest.mark.parametrize("axis", [0, 1])
def test_own_argmax(shape: tuple[int, ...], axis: int) -> None:
    """A float and an integer operand; the last of equals wins."""
    if axis >= len(shape):
        axis = 0
    a = _values("float32", shape)
    i = torch.arange(a.numel(), dtype=torch.int32).reshape(shape)
    out = _rest(shape, axis)
    texts = [f"tl.reduce((a, i), {axis}, best)[{n}]" for n in range(2)]
    got = harness.tiles({texts[0]: (out, torch.float32), texts[1]: (out, torch.int32)}, {"a": a, "i": i}, PRELUDE)
    assert torch.equal(got[texts[0]], a.amax(axis))
    last = np.where(a.numpy() == a.numpy().max(axis, keepdims=True), i.numpy(), -1).max(axis)
    np.testing.assert_array_equal(got[texts[1]].numpy(), last)


@pytest.mark.parametrize("kind", ["any", "all"])
@pytest.mark.parametrize("shape", [(32,), (8, 16)])
def test_truth(kind: str, shape: tuple[int, ...]) -> None:
    a = _values("int32", shape)
    text = {
        "any": "tl.reduce_or(a > 3, 1)" if len(shape) > 1 else "tl.reduce_or(a > 3, 0)",
        "all": "tl.min((a > -4).to(tl.int32), 0)",
    }[kind]
    out = _rest(shape, 1 if kind == "any" and len(shape) > 1 else 0)
    got = harness.tiles({text: (out, torch.int32)}, {"a": a})[text]
    expected = (a > 3).any(-1) if kind == "any" else (a > -4).all(0)
    assert torch.equal(got.bool(), expected)


@triton.jit
def extremes(x, o, n, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i = tl.arange(0, A)[:, None, None] * B * C + tl.arange(0, B)[None, :, None] * C + tl.arange(0, C)[None, None, :]
    i += tl.program_id(0) * A * B * C
    tl.store(o + tl.program_id(0), tl.max(tl.load(x + i, mask=i < n, other=0), axis=None))


@pytest.mark.parametrize("shape", [(1, 4, 64), (4, 4, 4), (2, 1, 128), (8, 8, 1)], ids=str)
def test_a_tile_is_loaded_and_reduced_as_a_whole(shape: tuple[int, int, int]) -> None:
    """The loop of the reduction sees the load in another shape."""
    a, b, c = shape
    x, o = torch.randint(0, 1000, (3, a * b * c), dtype=torch.int32), torch.empty(3, dtype=torch.int32)
    extremes[(3,)](x, o, x.numel(), A=a, B=b, C=c)
    assert torch.equal(o, x.max(1).values)


def test_whole_tile() -> None:
    """axis=None."""
    a = torch.randn(8, 16, 4)
    got = harness.tiles(dict.fromkeys(["tl.sum(a)", "tl.max(a)"], ((), torch.float32)), {"a": a})
    torch.testing.assert_close(got["tl.sum(a)"], a.sum(), rtol=1e-5, atol=1e-5)
    assert got["tl.max(a)"] == a.max()


@pytest.mark.parametrize("count", [128, 4096, 32768])
def test_accuracy_of_a_long_sum(count: int) -> None:
    """Partial sums over many lanes: better than adding in order."""
    a = torch.rand(count, generator=torch.Generator().manual_seed(2)) + 1
    got = harness.tiles({"tl.sum(a, 0)": ((), torch.float32)}, {"a": a})["tl.sum(a, 0)"]
    assert abs(got.double() - a.double().sum()) <= 1e-6 * a.double().sum()


# Scans

SCANS = [(shape, axis) for shape in ((1,), (8,), (256,), (8, 32), (64, 4), (4, 8, 2)) for axis in range(len(shape))]


@cache
def _scanned(dtype: str, shape: tuple[int, ...], axis: int, reverse: bool) -> dict[str, torch.Tensor]:
    wide = _wider(dtype)
    own = getattr(torch, dtype)
    sums = torch.float32 if dtype == "bfloat16" else wide
    return harness.tiles(
        {
            f"tl.cumsum(a, {axis}, reverse={reverse})": (shape, sums),
            f"tl.cumprod(b, {axis}, reverse={reverse})": (shape, sums),
            f"tl.associative_scan(a, {axis}, last, reverse={reverse})": (shape, own),
        },
        {"a": _values(dtype, shape), "b": _values(dtype, shape, 3).clamp(0, 2)},
        PRELUDE,
    )  # fmt: skip


def _along(array: np.ndarray, axis: int, reverse: bool, function: np.ufunc) -> np.ndarray:
    if reverse:
        array = np.flip(array, axis)
    result = function.accumulate(array, axis)
    return np.flip(result, axis) if reverse else result


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SCANS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "int64", "int8"])
def test_scan(dtype: str, shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    got = _scanned(dtype, shape, axis, reverse)
    sums, products, lasts = got.values()
    a = _values(dtype, shape).double().numpy()
    b = _values(dtype, shape, 3).clamp(0, 2).double().numpy()
    np.testing.assert_array_equal(sums.double().numpy(), _along(a, axis, reverse, np.add))
    expected = _along(b if dtype.startswith(("float", "bf")) else b.astype(np.int64), axis, reverse, np.multiply)
    if dtype == "int32":
        expected = expected.astype(np.int32)
    if dtype in ("float32", "float64", "int32", "int64") and np.abs(expected).max(initial=0) < 2**31:
        np.testing.assert_array_equal(products.double().numpy(), expected.astype(np.float64))
    # "Keep the later one" leaves every element what it is.
    np.testing.assert_array_equal(lasts.double().numpy(), a)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(128,), (8, 16)])
def test_scan_of_two_operands(shape: tuple[int, ...], reverse: bool) -> None:
    """x -> a x + b composed along the axis."""
    axis = len(shape) - 1
    generator = torch.Generator().manual_seed(4)
    a, b = torch.rand(shape, generator=generator), torch.randn(shape, generator=generator)
    texts = [f"tl.associative_scan((a, b), {axis}, linear, reverse={reverse})[{i}]" for i in range(2)]
    got = harness.tiles({t: (shape, torch.float32) for t in texts}, {"a": a, "b": b}, PRELUDE)
    x, y = (t.flip(axis) if reverse else t for t in (a.double(), b.double()))
    state, factors, values = (
        torch.zeros(x.shape[:-1], dtype=torch.float64),
        torch.ones(x.shape[:-1], dtype=torch.float64),
        [],
    )
    products = []
    for n in range(x.shape[-1]):
        state, factors = state * x[..., n] + y[..., n], factors * x[..., n]
        values.append(state)
        products.append(factors)
    expected = [torch.stack(products, -1), torch.stack(values, -1)]
    for text, value in zip(texts, expected, strict=True):
        torch.testing.assert_close(got[text], (value.flip(axis) if reverse else value).float(), rtol=1e-4, atol=1e-5)


ORDERED = [
    ((2,), 0), ((16,), 0), ((64,), 0), ((4096,), 0), ((1024, 2), 0), ((16, 2), 1), ((2, 16), 1), ((32, 64), 0),
    ((32, 64), 1), ((4, 2, 8), 0), ((4, 2, 8), 1), ((4, 2, 8), 2), ((1, 64), 0), ((64, 1), 0),
]  # fmt: skip
COMPOSE = """
@triton.jit
def compose(a, b, c, d):
    return a * c, b * c + d


"""


def _composed(a: np.ndarray, b: np.ndarray, axis: int, reverse: bool) -> tuple[np.ndarray, np.ndarray]:
    """x -> a x + b composed step by step, wrapping."""
    lines = [np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0).copy() for x in (a, b)]
    with np.errstate(over="ignore"):
        for n in range(1, len(lines[0])):
            lines[1][n] += lines[1][n - 1] * lines[0][n]
            lines[0][n] *= lines[0][n - 1]
    back = [np.moveaxis(x, 0, axis) for x in lines]
    first, second = [np.flip(x, axis) if reverse else x for x in back]
    return first, second


@pytest.mark.parametrize("simd", [None, "avx2"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), ORDERED)
@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
def test_scan_keeps_the_order(dtype: str, shape: tuple[int, ...], axis: int, reverse: bool, simd: str | None) -> None:
    """A combination whose operands must not be exchanged, exactly: in vectors along the axis and across it."""
    random = np.random.default_rng(7)
    a, b = (random.integers(-5, 6, shape).astype(dtype) for _ in range(2))
    text = f"tl.associative_scan((a, b), {axis}, compose, reverse={reverse})"
    wanted = {f"{text}[{i}]": (shape, getattr(torch, dtype)) for i in range(2)}
    with knobs.scope(simd=simd):
        got = harness.tiles(wanted, {"a": torch.from_numpy(a), "b": torch.from_numpy(b)}, COMPOSE)
    for found, expected in zip(got.values(), _composed(a, b, axis, reverse), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_of_special_values(dtype: str, reverse: bool) -> None:
    """A NaN or an infinity reaches what comes after it, and nothing before."""
    a = torch.ones(64, dtype=getattr(torch, dtype))
    a[20], a[40] = math.inf, math.nan
    got = harness.tiles({f"tl.cumsum(a, 0, reverse={reverse})": ((64,), torch.float32)}, {"a": a})
    expected = (a.float().flip(0).cumsum(0).flip(0)) if reverse else a.float().cumsum(0)
    torch.testing.assert_close(next(iter(got.values())), expected, equal_nan=True, rtol=0, atol=0)


@triton.jit
def scan_in_place(x, n, BLOCK: tl.constexpr):
    """The values are read as the scan goes, under a mask, and written where the next ones lie."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=1)
    tl.store(x + 1 + i, tl.cumsum(v, 0), mask=i < n)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("simd", [None, "avx2"])
def test_scan_in_place(simd: str | None, checked: bool) -> None:
    x = torch.arange(100, dtype=torch.int32)
    expected = torch.cat([x[:1], x[:99].cumsum(0).int()])
    with knobs.scope(simd=simd, check_bounds=checked):
        scan_in_place[(1,)](x, 99, BLOCK=128)
    assert torch.equal(x, expected)
