# SPDX-License-Identifier: MIT
"""Every cast between two element types."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.corpus.registry import VERSION
from tests.engine import harness

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
FP8 = {
    "float8_e4m3fn": ("float8e4nv", 448.0), "float8_e5m2": ("float8e5", 57344.0),
    "float8_e4m3fnuz": ("float8e4b8", 240.0), "float8_e5m2fnuz": ("float8e5b16", 57344.0),
}  # fmt: skip
ALL = (*INTEGERS, "bool", *FLOATS, *FP8)
COUNT = 1024


def _triton(name: str) -> str:
    return FP8[name][0] if name in FP8 else "int1" if name == "bool" else name


def _torch(name: str) -> torch.dtype:
    return getattr(torch, name)


def _allowed(source: str, target: str) -> bool:
    """Triton's front end casts 8-bit floats to and from floats only."""
    if source == target or (source in FP8 and target in FP8):
        return False
    return not (target in FP8 and source not in FLOATS) and not (source in FP8 and target not in FLOATS)


@cache
def _operand(name: str) -> torch.Tensor:
    if name in INTEGERS:
        return harness.integers(name, COUNT, 1)
    if name == "bool":
        return torch.arange(COUNT) % 3 == 0
    if name in FP8:
        return torch.arange(COUNT).to(torch.uint8).view(_torch(name))
    if name == "bfloat16":
        return _plain("float32").bfloat16()
    return _plain(name)


def _plain(name: str) -> torch.Tensor:
    """Random patterns, special values, and numbers of the size that integers and 8-bit floats have."""
    values = harness.floats(name, COUNT, 1)
    random = np.random.default_rng(5)
    scaled = random.normal(0, 1, COUNT // 4) * 10.0 ** random.uniform(-6, 5, COUNT // 4)
    values[COUNT // 2 : 3 * COUNT // 4] = torch.from_numpy(scaled).to(values.dtype)
    edges = [
        127.5,
        128.0,
        -128.5,
        -129.0,
        255.5,
        2.0**31,
        -(2.0**31),
        2.0**63,
        2.0**64,
        -0.5,
        447.0,
        464.0,
        57343.0,
        61440.0,
        65504.0,
    ]
    values[COUNT // 2 : COUNT // 2 + len(edges)] = torch.tensor(edges, dtype=torch.float64).to(values.dtype)
    return values


@cache
def _results(source: str) -> dict[str, torch.Tensor]:
    wanted = {f"a.to(tl.{_triton(t)})": _torch(t) for t in ALL if _allowed(source, t)}
    return harness.evaluate(wanted, {"a": _operand(source)}, batch=8)


def _to_integer(values: torch.Tensor, target: str) -> np.ndarray:
    """Toward zero, saturating, NaN to 0."""
    info = np.iinfo(target)

    def one(x: float) -> int:
        if x != x:
            return 0
        return info.max if x > info.max else info.min if x < info.min else int(x)

    return np.array([one(x) for x in values.double().tolist()], dtype=target)


def _expected(source: str, target: str) -> torch.Tensor:
    a = _operand(source)
    if target == "bool":
        return a.double() != 0 if source in (*FLOATS, *FP8) else a != 0
    if target in INTEGERS:
        if source in (*FLOATS, *FP8):
            return torch.from_numpy(_to_integer(a, target))
        mask = 2 ** np.iinfo(target).bits - 1
        return torch.from_numpy(np.array([int(v) & mask for v in a.tolist()], dtype=np.uint64).astype(target))
    wide = _widened(a, source, target)
    if target in FP8:
        limit = FP8[target][1]
        return wide.float().clamp(-limit, limit).to(_torch(target))
    return wide.to(_torch(target))


def _widened(a: torch.Tensor, source: str, target: str) -> torch.Tensor:
    """The operand in the type that the cast goes through: fp32 for the small floats, else the target's own."""
    if source in INTEGERS:
        through = "float64" if target == "float64" else "float32"
        return torch.from_numpy(a.numpy().astype(through))
    if source == "bool" or source in FP8:
        return a.float()
    return a


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Comparable: NaN becomes one value, -0 stays -0."""
    if tensor.dtype.is_floating_point:
        wide = tensor.double()
        wide[wide.isnan()] = 12345.678
        return wide.view(torch.int64)
    return tensor


@pytest.mark.parametrize(("source", "target"), [(s, t) for s in ALL for t in ALL if _allowed(s, t)])
def test_cast(source: str, target: str) -> None:
    got, expected = _results(source)[f"a.to(tl.{_triton(target)})"], _expected(source, target)
    wrong = (_bits(got) != _bits(expected)).nonzero().flatten()
    first = int(wrong[0]) if len(wrong) else 0
    assert not len(wrong), f"{len(wrong)} wrong; {_operand(source)[first]} became {got[first]}, not {expected[first]}"


SAME_WIDTH = [
    ("int32", "float32"), ("float32", "int32"), ("int64", "float64"), ("float64", "int64"), ("int16", "float16"),
    ("float16", "int16"), ("int16", "bfloat16"), ("bfloat16", "uint16"), ("float16", "bfloat16"), ("uint8", "int8"),
    ("uint8", "float8_e4m3fn"), ("float8_e5m2", "int8"), ("uint32", "float32"), ("uint64", "int64"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), SAME_WIDTH)
def test_bitcast(source: str, target: str) -> None:
    a = _operand(source)
    text = f"a.to(tl.{_triton(target)}, bitcast=True)"
    got = harness.evaluate({text: _torch(target)}, {"a": a})[text]
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    assert torch.equal(got.view(width), a.view(width))


@pytest.mark.parametrize("target", ["float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_downcast_toward_zero(target: str) -> None:
    a = harness.floats("float32", 1024, 3, -400, 400)
    a[:512] *= 1e-4
    text = f"a.to(tl.{_triton(target)}, fp_downcast_rounding='rtz')"
    got = harness.evaluate({text: _torch(target)}, {"a": a})[text].float()
    nearest = a.to(_torch(target)).float()
    assert bool((got.abs() <= a.abs()).all())
    # One step at most from the nearest, and the nearest itself where that is not larger.
    fits = nearest.abs() <= a.abs()
    assert torch.equal(got[fits], nearest[fits])


@pytest.mark.parametrize("name", FP8)
def test_every_8_bit_code_survives(name: str) -> None:
    """To fp32 and back, and through fp16 where that holds it."""
    a = torch.arange(256).to(torch.uint8).view(_torch(name))
    texts = [f"a.to(tl.float32).to(tl.{_triton(name)})", f"a.to(tl.float64).to(tl.{_triton(name)})"]
    for got in harness.evaluate(dict.fromkeys(texts, _torch(name)), {"a": a}).values():
        inside = a.float().isfinite()
        assert torch.equal(got.view(torch.uint8)[inside], a.view(torch.uint8)[inside])
        assert bool(got.float()[a.float().isnan()].isnan().all())


@pytest.mark.skipif(VERSION < (3, 9), reason="Triton's front end makes no such constants")
@pytest.mark.parametrize("name", FP8)
@pytest.mark.parametrize(
    "number", [0.0, -0.0, 1.0, -1.5, 0.3, 1e-3, 1e-9, 447.0, 464.0, 1e6, -1e6, float("nan"), 17.0, 19.0]
)
def test_8_bit_constant(name: str, number: float) -> None:
    """A constant is what a number of that value becomes when cast."""
    kind = _triton(name)
    literal = f'float("{number}")'
    a = torch.full((64,), number)
    constant, cast = f"tl.full([N], {literal}, tl.{kind})", f"a.to(tl.{kind})"
    got = harness.evaluate({constant: _torch(name), cast: _torch(name)}, {"a": a})
    assert torch.equal(got[constant].view(torch.uint8), got[cast].view(torch.uint8))


# float8e4b15, which MLIR does not have


@triton.jit
def from_e4b15(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i).to(tl.float8e4b15, bitcast=True).to(tl.float32))


@triton.jit
def to_e4b15(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i).to(tl.float8e4b15).to(tl.uint8, bitcast=True))


@triton.jit
def dot_e4b15(x, o, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + i).to(tl.float8e4b15)
    tl.store(o + i, tl.dot(tile, tile))


@triton.jit
def scalar_e4b15(x, o):
    tl.store(o, tl.load(x).to(tl.float8e4b15).to(tl.float16))


def test_e4b15() -> None:
    codes, numbers, back = torch.arange(256, dtype=torch.uint8), torch.empty(256), torch.empty(256, dtype=torch.uint8)
    from_e4b15[(1,)](codes, numbers, N=256)
    n = np.arange(256)
    exponent, mantissa, sign = n >> 3 & 15, n & 7, np.where(n & 128, -1, 1)
    expected = np.where(exponent > 0, 2.0 ** (exponent - 15.0) * (1 + mantissa / 8), mantissa / 8 * 2.0**-14) * sign
    np.testing.assert_array_equal(numbers, expected)
    to_e4b15[(1,)](numbers, back, N=256)
    # The largest, 1.875, becomes 1.75.
    np.testing.assert_array_equal(back, np.where(n & 127 == 127, n - 1, n))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_to_e4b15(dtype: torch.dtype) -> None:
    x = torch.tensor([6e4, -3.0, float("inf"), 1.8, 0.99, 1.03, 1.0625, -0.0]).to(dtype)
    codes, numbers = torch.empty(8, dtype=torch.uint8), torch.empty(8)
    to_e4b15[(1,)](x, codes, N=8)
    from_e4b15[(1,)](codes, numbers, N=8)
    assert numbers.tolist() == [1.75, -1.75, 1.75, 1.75, 1.0, 1.0, 1.125, -0.0]


def test_dot_of_e4b15() -> None:
    x, o = torch.randint(-8, 9, (16, 16)) / 8, torch.empty(16, 16)
    dot_e4b15[(1,)](x, o, N=16)
    assert torch.equal(o, x @ x)
    scalar = torch.empty(1, dtype=torch.float16)
    scalar_e4b15[(1,)](torch.tensor([0.625]), scalar)
    assert scalar.item() == 0.625
