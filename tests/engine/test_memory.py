# SPDX-License-Identifier: MIT
"""Loads and stores: masks, strides of every sign, views that overlap, and the order of reads and writes."""

from __future__ import annotations

import mmap
import sys
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus.registry import VERSION
from tests.engine import harness

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64", "bool")


def _values(dtype: str, count: int, seed: int = 0) -> torch.Tensor:
    numbers = torch.randint(-100, 100, (count,), generator=torch.Generator().manual_seed(seed))
    return numbers > 0 if dtype == "bool" else numbers.to(getattr(torch, dtype))


@triton.jit
def copy_masked(x, o, n, low, N: tl.constexpr, OTHER: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    inside = (i < n) & (i >= low)
    if OTHER is None:  # noqa: SIM108 (constexpr)
        value = tl.load(x + i, mask=inside)
    else:
        value = tl.load(x + i, mask=inside, other=OTHER)
    tl.store(o + i, value)


@pytest.mark.parametrize("other", [None, 1])
@pytest.mark.parametrize(("n", "low"), [(64, 0), (63, 0), (1, 0), (0, 0), (64, 63), (100, 7), (33, 16)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_load(dtype: str, n: int, low: int, other: int | None) -> None:
    """Masked lanes read nothing (the tensor ends at n) and give `other`, or zero."""
    count = 64 if n <= 64 else 128
    x, o = _values(dtype, max(n, 1)), torch.empty(count, dtype=getattr(torch, dtype))
    copy_masked[(count // 64,)](x, o, n, low, N=64, OTHER=other)
    expected = torch.full_like(o, other or 0)
    expected[low:n] = x[low:n]
    assert torch.equal(o, expected)


@triton.jit
def store_masked(x, o, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i), mask=(i < n) & (i % 3 != 1))


@pytest.mark.parametrize("n", [0, 1, 31, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_store(dtype: str, n: int) -> None:
    x, o = _values(dtype, 64), torch.zeros(64, dtype=getattr(torch, dtype))
    store_masked[(1,)](x, o, n, N=64)
    i = torch.arange(64)
    assert torch.equal(o, torch.where((i < n) & (i % 3 != 1), x, torch.zeros_like(x)))


@triton.jit
def scalar_masked(x, o, yes):
    tl.store(o, tl.load(x, mask=yes, other=7))
    tl.store(o + 1, tl.load(x + 1), mask=yes)


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars(dtype: str, yes: bool) -> None:
    x, o = _values(dtype, 2), torch.zeros(2, dtype=getattr(torch, dtype))
    scalar_masked[(1,)](x, o, yes)
    expected = x.clone() if yes else torch.tensor([7, 0]).to(o.dtype)
    assert torch.equal(o, expected)


@triton.jit
def strided_copy(x, o, sx0, sx1, so0, so1, m, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    j = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    inside = (i < m) & (j < n)
    tl.store(o + i * so0 + j * so1, tl.load(x + i * sx0 + j * sx1, mask=inside), mask=inside)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_strides(data: st.DataObject) -> None:
    """Any view: steps, transposition, reversed axes, broadcast inputs; ragged sizes."""
    m, n = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    steps = [data.draw(st.sampled_from([1, 2, 3])) for _ in range(2)]
    base = torch.arange(m * steps[0] * n * steps[1], dtype=torch.float32).reshape(m * steps[0], n * steps[1])
    x = base[:: steps[0], :: steps[1]]
    o = torch.zeros(n, m).T if data.draw(st.booleans()) else torch.zeros(m, n)
    pointer, strides, expected = x, list(x.stride()), x
    for axis in range(2):
        change = data.draw(st.sampled_from(["none", "reverse", "broadcast"]))
        if change == "reverse":
            last = pointer.select(axis, pointer.shape[axis] - 1)
            pointer = last.unsqueeze(axis).expand(pointer.shape)
            strides[axis] = -strides[axis]
            expected = expected.flip(axis)
        elif change == "broadcast":
            strides[axis] = 0
            expected = expected.select(axis, 0).unsqueeze(axis).expand(m, n)
    block = (data.draw(st.sampled_from([1, 8, 32])), data.draw(st.sampled_from([1, 16, 64])))
    grid = (triton.cdiv(m, block[0]), triton.cdiv(n, block[1]))
    # The start of the view, as a tensor of one element: its strides are passed by hand.
    start = torch.as_strided(pointer, (1,), (1,), pointer.storage_offset())
    strided_copy[grid](start, o, *strides, *o.stride(), m, n, M=block[0], N=block[1])
    assert torch.equal(o, expected)


# Overlap: all loads of a store's value come before any of its writes


@triton.jit
def shift_in_place(x, by, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i + by, tl.load(x + i))


@triton.jit
def reverse_in_place(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + N - 1 - i))


@triton.jit
def transpose_in_place(x, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(x + i * N + j, tl.load(x + j * N + i))


@triton.jit
def swap(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(x + i, b)
    tl.store(y + i, a)


@triton.jit
def shift_masked(x, by, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i + by, tl.load(x + i, mask=i < n) + tl.load(x + i + 1, mask=i < n), mask=i < n)


@triton.jit
def permute_in_place(x, index, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + tl.load(index + i), tl.load(x + i))


@pytest.mark.parametrize("by", [0, 1, 3, 16, 64, 100, 200])
@pytest.mark.parametrize("dtype", ["int8", "float32", "int64"])
def test_shift_in_place(dtype: str, by: int) -> None:
    x = _values(dtype, 512)
    expected = x.clone()
    expected[by : by + 128] = x[:128]
    shift_in_place[(1,)](x, by, N=128)
    assert torch.equal(x, expected)


@pytest.mark.parametrize("count", [2, 32, 64, 1024])
def test_reverse_in_place(count: int) -> None:
    x = _values("float32", count)
    expected = x.flip(0)
    reverse_in_place[(1,)](x, N=count)
    assert torch.equal(x, expected)


@pytest.mark.parametrize("count", [2, 16, 64])
def test_transpose_in_place(count: int) -> None:
    x = _values("int32", count * count).reshape(count, count)
    expected = x.T.clone()
    transpose_in_place[(1,)](x, N=count)
    assert torch.equal(x, expected)


@pytest.mark.parametrize("shift", [0, 1, 8, 64, 128])
def test_swap(shift: int) -> None:
    """Also where the two overlap: the second store comes last, with what was loaded before the first."""
    memory = _values("float32", 512)
    expected = memory.clone()
    a, b = expected[:128].clone(), expected[shift : shift + 128].clone()
    expected[:128] = b
    expected[shift : shift + 128] = a
    swap[(1,)](memory, memory[shift:], N=128)
    assert torch.equal(memory, expected)


@pytest.mark.parametrize("n", [1, 17, 64, 128])
@pytest.mark.parametrize("by", [0, 1, 2, 32])
def test_shift_masked(by: int, n: int) -> None:
    x = _values("float32", 256)
    expected = x.clone()
    expected[by : by + n] = x[:n] + x[1 : n + 1]
    shift_masked[(1,)](x, by, n, N=128)
    assert torch.equal(x, expected)


@triton.jit
def count_up(x, rows, columns, limit, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    places = x + i * rows + j * columns
    tl.store(places, tl.load(places, mask=i + j < limit) + 1, mask=i + j < limit)


STRIDES = (
    (0, 1), (1, 0), (0, 0), (1, 1), (2, 1), (8, 1), (-1, 1), (4, 8), (1, 64), (64, 1), (-64, -1), (65, 2), (2, 3),
)  # fmt: skip


@pytest.mark.parametrize(("rows", "columns"), STRIDES)
@pytest.mark.parametrize(("m", "n"), [(8, 16), (64, 8), (1, 64), (256, 1)])
@pytest.mark.parametrize("limit", [10, 1000])
def test_a_tile_that_overlaps_itself_is_read_before_it_is_written(
    rows: int, columns: int, m: int, n: int, limit: int
) -> None:
    memory = torch.zeros(40_000)
    count_up[(1,)](memory[20_000:], rows, columns, limit, M=m, N=n)
    i, j = np.mgrid[:m, :n]
    expected = np.zeros(40_000)
    expected[(20_000 + i * rows + j * columns)[i + j < limit]] = 1
    np.testing.assert_array_equal(memory, expected)


def test_permute_in_place() -> None:
    x, index = _values("float32", 256), torch.randperm(256)
    expected = torch.empty_like(x)
    expected[index] = x
    permute_in_place[(1,)](x, index, N=256)
    assert torch.equal(x, expected)


@triton.jit
def same_address(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i // 2, tl.load(x + i // 2))
    tl.store(o + N + i * 0, tl.load(x))


def test_many_lanes_at_one_address() -> None:
    x, o = _values("int32", 64), torch.zeros(256, dtype=torch.int32)
    same_address[(1,)](x, o, N=128)
    assert torch.equal(o[:64], x)
    assert o[128] == x[0]


# Pointers


@triton.jit
def pointer_forms(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    pointers = x + i
    pointers += N
    tl.store(o + i, tl.load(pointers))
    chosen = tl.where(i % 2 == 0, x + i, x + 2 * N - 1 - i)
    tl.store(o + N + i, tl.load(chosen))
    distance = (pointers.to(tl.int64) - x.to(tl.int64)) // 4
    tl.store(o + 2 * N + i, distance.to(tl.float32))
    table = tl.load(x + 2 * N + i).to(tl.int32)
    tl.store(o + 3 * N + i, tl.load(x + table))


def test_pointer_forms() -> None:
    x = torch.arange(96, dtype=torch.float32)
    x[64:] = torch.randint(0, 64, (32,)).float()
    o = torch.empty(128)
    pointer_forms[(1,)](x, o, N=32)
    i = torch.arange(32)
    expected = torch.cat([x[32:64], torch.where(i % 2 == 0, x[i], x[63 - i]), i + 32.0, x[x[64:].long()]])
    assert torch.equal(o, expected)


@triton.jit
def pointer_table(pointers, o, N: tl.constexpr):
    i = tl.arange(0, N)
    for n in range(3):
        x = tl.load(pointers + n).to(tl.pointer_type(tl.float32))
        tl.store(o + n * N + i, tl.load(x + i))


def test_pointers_in_memory() -> None:
    tensors = [torch.randn(16) for _ in range(3)]
    pointers, o = torch.tensor([t.data_ptr() for t in tensors]), torch.empty(48)
    pointer_table[(1,)](pointers, o, N=16)
    assert torch.equal(o, torch.cat(tensors))


@triton.jit
def large_offsets(x, o, stride, N: tl.constexpr):
    i = tl.arange(0, N).to(tl.int64)
    tl.store(o + i, tl.load(x + i * stride))


@pytest.mark.skipif(sys.platform != "linux", reason="needs memory that is not reserved")
def test_offsets_beyond_32_bits() -> None:
    """A view of little memory with a stride that overflows 32 bits in bytes and elements alike."""
    no_reserve = 0x4000
    memory = mmap.mmap(-1, (1 << 32) + 4096, flags=mmap.MAP_PRIVATE | no_reserve | mmap.MAP_ANONYMOUS)
    x: Any = torch.frombuffer(memory, dtype=torch.int8)
    x[0], x[1 << 32] = 1, 2
    o = torch.zeros(2, dtype=torch.int8)
    large_offsets[(1,)](x, o, 1 << 32, N=2)
    assert o.tolist() == [1, 2]


# Descriptors and block pointers


@triton.jit
def through_descriptor(x, o, m, n, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    target = tl.make_tensor_descriptor(o, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    target.store([i, j], source.load([i, j]) * 2)


@pytest.mark.parametrize(("m", "n"), [(32, 32), (17, 48), (1, 16), (40, 100)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_descriptor(dtype: str, m: int, n: int) -> None:
    """Outside the tensor: zeros are read, nothing is written."""
    x = _values(dtype, m * n).reshape(m, n)
    o = torch.zeros_like(x)
    through_descriptor[(triton.cdiv(m, 16), triton.cdiv(n, 32))](x, o, m, n, M=16, N=32)
    assert torch.equal(o, x * 2)


@triton.jit
def outside_descriptor(x, o, i, j, m, n, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    value = source.load([i, j])
    tl.store(o + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], value)


@pytest.mark.parametrize(("i", "j"), [(0, 0), (10, 20), (-3, 0), (0, -5), (100, 0), (-16, -16)])
def test_descriptor_outside(i: int, j: int) -> None:
    x, o = torch.randn(16, 24), torch.full((8, 16), 9.0)
    outside_descriptor[(1,)](x, o, i, j, 16, 24, M=8, N=16)
    padded = torch.zeros(16 + 400, 24 + 400)
    padded[200:216, 200:224] = x
    assert torch.equal(o, padded[200 + i : 208 + i, 200 + j : 216 + j])


@cache
def _block_pointer_kernel() -> Any:
    return harness.module(
        """@triton.jit
def kernel(x, o, m, n, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_block_ptr(x, (m, n), (n, 1), (0, 0), (M, N), (1, 0))
    target = tl.make_block_ptr(o, (n, m), (1, n), (0, 0), (N, M), (0, 1))
    for _ in range(tl.cdiv(n, N)):
        tile = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, tl.trans(tile) + 1, boundary_check=(0, 1))
        source = tl.advance(source, (0, N))
        target = tl.advance(target, (N, 0))
"""
    ).kernel


@pytest.mark.skipif(VERSION >= (3, 9), reason="Triton 3.9 has no block pointers")
@pytest.mark.parametrize(("m", "n"), [(16, 32), (9, 50), (1, 1)])
def test_block_pointer(m: int, n: int) -> None:
    x, o = torch.randn(m, n), torch.zeros(m, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _block_pointer_kernel()[(1,)](x, o, m, n, M=16, N=16)
    assert torch.equal(o, x + 1)


@pytest.mark.parametrize("hint", ["multiple_of", "max_contiguous", "cache", "evict", "volatile"])
def test_hints(hint: str) -> None:
    load = {
        "multiple_of": "tl.load(x + tl.multiple_of(i, 8))", "max_contiguous": "tl.load(x + tl.max_contiguous(i, 32))",
        "cache": "tl.load(x + i, cache_modifier='.cg')", "evict": "tl.load(x + i, eviction_policy='evict_last')",
        "volatile": "tl.load(x + i, volatile=True)",
    }[hint]  # fmt: skip
    kernel = harness.module(
        f"@triton.jit\ndef kernel(x, o):\n    i = tl.arange(0, 32)\n    tl.store(o + i, {load})\n"
    ).kernel
    x, o = torch.randn(32), torch.empty(32)
    kernel[(1,)](x, o)
    assert torch.equal(x, o)
