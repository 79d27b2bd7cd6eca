# SPDX-License-Identifier: MIT
"""Tensor descriptors that the host makes: `triton.tools.tensor_descriptor.TensorDescriptor` as an argument."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from triton_dist import errors, knobs


@triton.jit
def double(source, target, rows, column):
    at = tl.program_id(0) * rows
    target.store([at, column], source.load([at, column]) * 2)


@triton.jit
def in_a_tuple(first, pair, last):
    first.store([0, 0], pair[0].load([0, 0]) * pair[1] + last)


@triton.jit
def line(source, target, at, N: tl.constexpr):
    tl.store(target + tl.arange(0, N), source.load([at]))


@triton.jit
def shapes(source, target):
    tl.store(target, source.shape[0])
    tl.store(target + 1, source.shape[1])
    tl.store(target + 2, source.strides[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int64])
@pytest.mark.parametrize("column", [-3, 0, 3, 30])
def test_load_and_store(dtype: torch.dtype, column: int) -> None:
    source, target = torch.randint(-50, 50, (20, 32)).to(dtype), torch.zeros(20, 32, dtype=dtype)
    given = TensorDescriptor(source, [20, 22], [32, 1], [8, 16])
    double[(3,)](given, TensorDescriptor.from_tensor(target, [8, 16]), 8, column)
    expected = torch.zeros_like(target)
    seen = slice(max(column, 0), max(column + 16, 0))
    expected[:, seen] = torch.where(torch.arange(32) < 22, source, 0).to(dtype)[:, seen] * 2
    assert torch.equal(target, expected)


def test_in_a_tuple() -> None:
    source, target = torch.randn(16, 16), torch.zeros(16, 16)
    to, of = (TensorDescriptor.from_tensor(t, [8, 16]) for t in (target, source))
    in_a_tuple[(1,)](to, (of, 3), 5)
    torch.testing.assert_close(target[:8], source[:8] * 3 + 5)
    assert not target[8:].any()


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_padding(padding: str) -> None:
    source, target = torch.arange(10.0), torch.empty(16)
    line[(1,)](TensorDescriptor(source, [10], [1], [16], padding), target, 6, N=16)
    outside = 0.0 if padding == "zero" else float("nan")
    expected = torch.tensor([6.0, 7, 8, 9, *[outside] * 12])
    torch.testing.assert_close(target, expected, equal_nan=True, rtol=0, atol=0)


def test_shape_and_strides() -> None:
    target = torch.zeros(3, dtype=torch.int64)
    shapes[(1,)](TensorDescriptor(torch.zeros(12, 32), [11, 7], [32, 1], [8, 8]), target)
    assert target.tolist() == [11, 7, 32]


def test_rounding_to_tf32() -> None:
    descriptor: Any = TensorDescriptor
    if "round_f32_to_tf32" not in descriptor.__dataclass_fields__:
        pytest.skip("this Triton has no such option")
    source, target = torch.full((16,), 1 + 2.0**-12), torch.empty(16)
    line[(1,)](descriptor(source, [16], [1], [16], "zero", True), target, 0, N=16)
    assert torch.equal(target, torch.ones(16))


def test_a_descriptor_larger_than_its_tensor() -> None:
    with knobs.scope(check_bounds=True), pytest.raises(errors.OutOfBounds, match="element 10 of argument 'source'"):
        line[(1,)](TensorDescriptor(torch.zeros(10), [12], [1], [16]), torch.empty(16), 0, N=16)
