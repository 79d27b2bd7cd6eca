# SPDX-License-Identifier: MIT
"""Every function of `tl.extra.libdevice`, on scalars and tensors."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice

from tests.engine import harness
from tests.engine.libdevice_table import NUMPY, Case, cases
from triton_dist import errors
from triton_dist.backends.cpu.codegen import libdevice as table

TORCH = {
    "f": torch.float32,
    "d": torch.float64,
    "i": torch.int32,
    "u": torch.uint32,
    "l": torch.int64,
    "v": torch.uint64,
}
CASES = cases()
Group = tuple[str, tuple[float, float] | None, int]


def _group(case: Case) -> Group:
    return case.kinds, case.domain, case.count


@cache
def _operands(group: Group) -> dict[str, torch.Tensor]:
    kinds, domain, count = group
    made: dict[str, torch.Tensor] = {}
    for number, kind in enumerate(kinds):
        name = np.dtype(NUMPY[kind]).name
        if kind in "fd":
            made["abcd"[number]] = harness.floats(name, count, number, *(domain or (None, None)))
        elif domain is not None:
            made["abcd"[number]] = torch.arange(count, dtype=TORCH[kind]) % 6
        else:
            made["abcd"[number]] = harness.integers(name, count, number)
    if kinds in ("fi", "di"):
        # Exponents: small ones most of the time.
        made["b"][count // 8 :] %= 40
    return made


def _expression(case: Case) -> str:
    return f"libdevice.{case.name}({', '.join('abcd'[: len(case.kinds)])})"


@cache
def _results(group: Group) -> dict[str, torch.Tensor]:
    mine = {_expression(c): TORCH[c.result] for c in CASES if _group(c) == group}
    return harness.evaluate(mine, _operands(group))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_function(case: Case) -> None:
    operands = [o.numpy() for o in _operands(_group(case)).values()]
    with np.errstate(all="ignore"):
        widened = [o.astype(np.longdouble) if o.dtype.kind == "f" and "_as_" not in case.name else o for o in operands]
        reference = case.reference(*widened)
    got = _results(_group(case))[_expression(case)].numpy()
    if case.bound == 0:
        np.testing.assert_array_equal(got, reference.astype(got.dtype))
        return
    if case.floor:
        reference, got = _against_floor(got, reference, case.floor)
    error, where = harness.worst(got, reference, *operands)
    assert error <= case.bound, f"{error} ulp {where}"


def _against_floor(got: np.ndarray, reference: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Small results moved away from zero, with the same absolute error in ulps of the floor."""
    small = np.abs(reference) < floor
    unit = np.longdouble(np.spacing(got.dtype.type(floor)))
    steps = (got.astype(np.longdouble) - reference) / unit
    return np.where(small, np.longdouble(1), reference), np.where(
        small, (1 + steps * np.finfo(got.dtype).eps).astype(got.dtype), got
    )


def test_table_is_complete() -> None:
    text = Path(cuda_libdevice.__file__).read_text()
    symbols = set(re.findall(r'"(__nv_\w+)"', text))
    assert len(symbols) > 300
    assert symbols <= set(table.FUNCTIONS)
    names = set(re.findall(r"^def (\w+)\(", text, re.MULTILINE))
    assert names == {c.name for c in CASES}


@triton.jit
def of_scalars(x, n, out):
    value = tl.load(x)
    tl.store(out, libdevice.sin(value))
    tl.store(out + 1, libdevice.pow(value, n))
    tl.store(out + 2, libdevice.lgamma(value))
    tl.store(out + 3, libdevice.erfinv(value))
    tl.store(out + 4, libdevice.sin(value * 1e30))


def test_scalars() -> None:
    x, out = torch.tensor([0.3]), torch.empty(5)
    of_scalars[(1,)](x, 3, out)
    expected = torch.stack([x.sin(), x**3, x.lgamma(), x.erfinv(), (x * 1e30).double().sin().float()]).flatten()
    torch.testing.assert_close(out, expected, rtol=1e-6, atol=0)


@triton.jit
def broadcast_operands(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    rows = tl.load(x + i)[:, None]
    tl.store(out + i[:, None] * N + i[None, :], libdevice.atan2(rows, tl.load(x + i)[None, :]))


def test_broadcast_operands() -> None:
    x, out = torch.randn(32), torch.empty(32, 32)
    broadcast_operands[(1,)](x, out, N=32)
    torch.testing.assert_close(out, torch.atan2(x[:, None], x[None, :]), rtol=1e-6, atol=0)


@triton.jit
def _combine(a, b):
    return libdevice.hypot(a, b)


@triton.jit
def in_a_combine_region(x, out, N: tl.constexpr):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, N)), 0, _combine))


def test_in_a_combine_region() -> None:
    x, out = torch.randn(64), torch.empty(1)
    in_a_combine_region[(1,)](x, out, N=64)
    torch.testing.assert_close(out[0], x.norm())


@triton.jit
def used_twice_around_a_store(x, N: tl.constexpr):
    i = tl.arange(0, N)
    value = libdevice.exp(tl.load(x + i))
    tl.store(x + i, value)
    tl.store(x + N + i, value + 1)


def test_used_after_its_operand_changed() -> None:
    x = torch.randn(64)
    expected = x[:32].exp()
    used_twice_around_a_store[(1,)](x, N=32)
    torch.testing.assert_close(x, torch.cat([expected, expected + 1]))


def test_unknown_symbol(tmp_path: Path) -> None:
    del tmp_path
    kernel = harness.module(
        """from triton.language import core

@core.extern
def missing(a, _semantic=None):
    return core.extern_elementwise("", "", [a], {(core.dtype("fp32"),): ("__nv_missing", core.dtype("fp32"))},
                                   is_pure=True, _semantic=_semantic)

@triton.jit
def kernel(x):
    i = tl.arange(0, 8)
    tl.store(x + i, missing(tl.load(x + i)))
"""
    ).kernel
    with pytest.raises(errors.UnsupportedOpError, match="__nv_missing"):
        kernel[(1,)](torch.zeros(8))
