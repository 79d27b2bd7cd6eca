# SPDX-License-Identifier: MIT
"""Floating-point arithmetic, comparisons and math, with NaN, infinities, -0 and subnormals among the operands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.corpus.registry import VERSION
from tests.engine import harness
from triton_dist.backends.cpu.native import target

DTYPES = ("float16", "bfloat16", "float32", "float64")
COUNT = 1024
Binary = Callable[[np.ndarray, np.ndarray], np.ndarray]
LD = np.longdouble


# Correctly rounded operations: the reference is exact or nearly so before its one rounding.
ARITHMETIC: dict[str, tuple[str, Binary]] = {
    "add": ("a + b", np.add),
    "sub": ("a - b", np.subtract),
    "mul": ("a * b", np.multiply),
    "div": ("a / b", np.divide),
    "neg": ("-a", lambda x, y: -x),
    "abs": ("tl.abs(a)", lambda x, y: np.abs(x)),
    "add a constant": ("a + 1.5", lambda x, y: x + 1.5),
    "max": ("tl.maximum(a, b)", np.fmax),
    "min": ("tl.minimum(a, b)", np.fmin),
    "max with NaN": ("tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)", np.maximum),
    "min with NaN": ("tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)", np.minimum),
    "where": ("tl.where(a < b, a, b)", lambda x, y: np.where(x < y, x, y)),
    "clamp": ("tl.clamp(a, -1.0, 2.0)", lambda x, y: np.where(np.isnan(x), LD(-1), np.clip(x, -1, 2))),
    "clamp with NaN": ("tl.clamp(a, -1.0, 2.0, propagate_nan=tl.PropagateNan.ALL)", lambda x, y: np.clip(x, -1, 2)),
}
COMPARISONS: dict[str, tuple[str, Binary]] = {
    "lt": ("a < b", np.less),
    "le": ("a <= b", np.less_equal),
    "gt": ("a > b", np.greater),
    "ge": ("a >= b", np.greater_equal),
    "eq": ("a == b", np.equal),
    "ne": ("a != b", np.not_equal),
    "is NaN": ("a != a", lambda x, y: np.isnan(x)),
    "not less": ("(a < b) == 0", lambda x, y: ~(x < y)),
    "same": ("a == a", lambda x, y: ~np.isnan(x)),
}
# Name -> (expression, reference, ulps in fp32, ulps in fp64)
MATH: dict[str, tuple[str, Binary, float, float]] = {
    "exp": ("tl.exp(a)", lambda x, y: np.exp(x), 1, 1),
    "exp2": ("tl.exp2(a)", lambda x, y: np.exp2(x), 1, 1),
    "log": ("tl.log(a)", lambda x, y: np.log(x), 1, 1),
    "log2": ("tl.log2(a)", lambda x, y: np.log2(x), 2, 1),
    "sin": ("tl.sin(a)", lambda x, y: np.sin(x), 0.51, 1),
    "cos": ("tl.cos(a)", lambda x, y: np.cos(x), 0.51, 1),
    "sqrt": ("tl.sqrt(a)", lambda x, y: np.sqrt(x), 0.5001, 0.5001),
    "rsqrt": ("tl.rsqrt(a)", lambda x, y: 1 / np.sqrt(x), 1.5, 1.5),
    "floor": ("tl.floor(a)", lambda x, y: np.floor(x), 0, 0),
    "ceil": ("tl.ceil(a)", lambda x, y: np.ceil(x), 0, 0),
    "fma": ("tl.fma(a, b, a)", lambda x, y: x * y + x, 0.51, 0.51),
    "remainder": ("a % b", lambda x, y: np.fmod(x, y), 0, 0),
}
PRECISE: dict[str, tuple[str, Binary]] = {
    "div_rn": ("tl.div_rn(a, b)", np.divide),
    "sqrt_rn": ("tl.sqrt_rn(a)", lambda x, y: np.sqrt(x)),
    "fdiv": ("tl.fdiv(a, b)", np.divide),
}
if "approx" in inspect.signature(triton.language.fdiv).parameters:  # Triton 3.9
    PRECISE["approximate"] = ("tl.fdiv(a, b, approx=True)", np.divide)


@cache
def _operands(dtype: str) -> dict[str, torch.Tensor]:
    if dtype == "bfloat16":
        return {n: harness.floats("float32", COUNT, s).bfloat16() for n, s in (("a", 1), ("b", 2))}
    made = {n: harness.floats(dtype, COUNT, s) for n, s in (("a", 1), ("b", 2))}
    made["b"][32:64] = made["a"][32:64]
    return made


def _exact(tensor: torch.Tensor) -> np.ndarray:
    return tensor.double().numpy().astype(LD)


@cache
def _results(dtype: str, family: str) -> dict[str, torch.Tensor]:
    own = getattr(torch, dtype)
    table = {"arithmetic": ARITHMETIC, "comparison": COMPARISONS, "math": MATH, "precise": PRECISE}[family]
    return harness.evaluate(
        {entry[0]: torch.bool if family == "comparison" else own for entry in table.values()}, _operands(dtype)
    )


def _rounded(values: np.ndarray, dtype: str) -> torch.Tensor:
    """To the type. 16-bit results are rounded from fp32 values of fp64 references: innocuous for single operations."""
    with np.errstate(all="ignore"):
        tensor = torch.from_numpy(values.astype(np.float64))
    return tensor.to(getattr(torch, dtype)) if dtype != "float64" else tensor


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic(dtype: str, name: str) -> None:
    text, reference = ARITHMETIC[name]
    operands = _operands(dtype).values()
    # numpy's fp64 rounds once; a long double would round twice.
    a, b = (t.numpy() if dtype == "float64" else _exact(t) for t in operands)
    with np.errstate(all="ignore"):
        expected = _rounded(reference(a, b), dtype)
    torch.testing.assert_close(_results(dtype, "arithmetic")[text], expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_comparison(dtype: str, name: str) -> None:
    text, reference = COMPARISONS[name]
    a, b = (_exact(t) for t in _operands(dtype).values())
    assert _results(dtype, "comparison")[text].tolist() == reference(a, b).tolist()


@pytest.mark.parametrize("name", MATH)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_math(dtype: str, name: str) -> None:
    text, reference, single, double = MATH[name]
    operands = _operands(dtype)
    a, b = (_exact(t) for t in operands.values())
    with np.errstate(all="ignore"):
        expected = reference(a, b)
    got = _results(dtype, "math")[text].numpy()
    error, where = harness.worst(got, expected, *[t.numpy() for t in operands.values()])
    assert error <= (single if dtype == "float32" else double), f"{error} ulp {where}"


@pytest.mark.parametrize("name", PRECISE)
def test_precise(name: str) -> None:
    text, reference = PRECISE[name]
    a, b = (t.numpy() for t in _operands("float32").values())
    with np.errstate(all="ignore"):
        expected = reference(a, b)
    np.testing.assert_array_equal(_results("float32", "precise")[text].numpy(), expected)


SWEEPS = {"exp": 1.0, "exp2": 1.0, "log": 1.0, "log2": 2.0, "sin": 0.501, "cos": 0.501}


@pytest.mark.parametrize("name", SWEEPS)
def test_sweep(name: str) -> None:
    """65536 numbers of every exponent, and as many where the function is not trivial."""
    a = torch.cat([harness.floats("float32", 1 << 16, 7), harness.floats("float32", 1 << 16, 8, -100, 100)])
    if name.startswith("log"):
        a = a.abs()
    got = harness.evaluate({f"tl.{name}(a)": torch.float32}, {"a": a})[f"tl.{name}(a)"].numpy()
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a.numpy().astype(LD))
    error, where = harness.worst(got, expected, a.numpy())
    assert error <= SWEEPS[name], f"{error} ulp {where}"


def test_erf() -> None:
    a = torch.cat([harness.floats("float32", 4096, 1), harness.floats("float32", 4096, 2, -5, 5)])
    got = harness.evaluate({"tl.erf(a)": torch.float32}, {"a": a})["tl.erf(a)"]
    torch.testing.assert_close(got, torch.erf(a.double()).float(), rtol=1.2e-7, atol=1e-45, equal_nan=True)


def test_erf_is_within_its_bound() -> None:
    """Every exponent, and densely where it is neither a line nor 1; elsewhere than on x86 the bound is 1.25."""
    a = torch.cat([harness.floats("float32", 1 << 16, 3), torch.linspace(-4.5, 4.5, 1 << 19)])
    got = harness.evaluate({"tl.erf(a)": torch.float32}, {"a": a})["tl.erf(a)"].numpy()
    error, where = harness.worst(got, torch.erf(a.double()).numpy().astype(LD), a.numpy())
    assert error <= (0.95 if target.host().vector_bits >= 256 else 1.25), f"{error} ulp {where}"
    number = ~np.isnan(a.numpy())
    assert np.array_equal(np.signbit(got)[number], np.signbit(a.numpy())[number])


def test_sigmoid() -> None:
    a = harness.floats("float32", 1024, 2, -80, 80)
    got = harness.evaluate({"tl.sigmoid(a)": torch.float32}, {"a": a})["tl.sigmoid(a)"]
    torch.testing.assert_close(got, torch.sigmoid(a.double()).float(), rtol=5e-7, atol=0)


@pytest.mark.parametrize("value", [0.0, -0.0])
@pytest.mark.parametrize("text", ["a + b", "a * 1.0", "-a", "tl.abs(a)", "a - 0.0"])
def test_signs_of_zero(text: str, value: float) -> None:
    if text == "-a" and VERSION < (3, 9):
        pytest.skip("Triton negates by subtracting from +0")
    a = torch.full((64,), value)
    b = torch.full((64,), -0.0)
    got = harness.evaluate({text: torch.float32}, {"a": a, "b": b})[text]
    expected = {"a + b": value, "a * 1.0": value, "-a": -value, "tl.abs(a)": 0.0, "a - 0.0": value}[text]
    assert torch.equal(torch.signbit(got), torch.signbit(torch.full((64,), expected)))


def test_contraction_may_be_switched_off() -> None:
    """Without fusion, a * b + c is two roundings; with it, one."""
    x = torch.full((64,), 1.0 + 2.0**-12)
    kernel = harness.module(
        """@triton.jit
def kernel(x, o):
    i = tl.arange(0, 64)
    a = tl.load(x + i)
    tl.store(o + i, a * a - 1.0)
"""
    ).kernel
    exact = (1.0 + 2.0**-12) ** 2 - 1.0
    for fused in (True, False):
        out = torch.empty(64)
        kernel[(1,)](x, out, enable_fp_fusion=fused)
        expected = torch.tensor(exact).float() if fused else torch.tensor(x[0].item() ** 2).float() - 1
        assert out[0] == expected


@triton.jit
def two_halves(x, y, o, LARGER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(o + i, tl.maximum(a, b) if LARGER else a + b)


def test_maxima_of_halves_are_taken_in_vectors() -> None:
    """LLVM makes a maximum of halves of one in fp32 that is rounded, and x86 goes lane by lane there."""
    x = torch.randn(1024).half()
    lines = [
        len(two_halves[(1,)](x, x, x.clone(), LARGER=larger, BLOCK=1024).asm["asm"].splitlines())
        for larger in (False, True)
    ]
    assert lines[1] < 2 * lines[0]
