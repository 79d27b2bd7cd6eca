# SPDX-License-Identifier: MIT
"""Operations that move elements, sorting, and counting, for every element size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus.registry import VERSION
from tests.engine import harness

DTYPES = ("int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool")
# Until Triton 3.9 `cat` demands leave to reorder; the engine keeps the order all the same.
REORDER = ", can_reorder=True" if VERSION < (3, 9) else ""
Move = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _interleave(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.stack([x, y], -1).flatten(-2)


MOVES: dict[str, tuple[str, Move]] = {
    "trans": ("tl.trans(a)", lambda a, b: a.T),
    "permute": ("tl.permute(a, (1, 0))", lambda a, b: a.T),
    "reshape": ("tl.reshape(a, (16, 8))", lambda a, b: a.reshape(16, 8)),
    "flatten": ("tl.reshape(a, (128,))", lambda a, b: a.flatten()),
    "ravel": ("tl.ravel(a)", lambda a, b: a.flatten()),
    "reshape of trans": ("tl.reshape(tl.trans(a), (4, 32))", lambda a, b: a.T.reshape(4, 32)),
    "reshape to rank 4": ("tl.reshape(a, (2, 4, 4, 4))", lambda a, b: a.reshape(2, 4, 4, 4)),
    "permute of reshape": (
        "tl.permute(tl.reshape(a, (2, 4, 16)), (2, 0, 1))",
        lambda a, b: a.reshape(2, 4, 16).permute(2, 0, 1),
    ),
    "permute back": (
        "tl.permute(tl.permute(tl.reshape(a, (2, 4, 16)), (1, 2, 0)), (2, 0, 1))",
        lambda a, b: a.reshape(2, 4, 16),
    ),
    "expand_dims": ("tl.expand_dims(a, 1)", lambda a, b: a.unsqueeze(1)),
    "broadcast": ("tl.broadcast_to(a[:, None, :], (8, 4, 16))", lambda a, b: a.unsqueeze(1).expand(8, 4, 16)),
    "broadcast of a column": (
        "tl.broadcast_to(tl.reshape(a, (128, 1)), (128, 2))",
        lambda a, b: a.reshape(128, 1).expand(128, 2),
    ),
    "join": ("tl.join(a, b)", lambda a, b: torch.stack([a, b], -1)),
    "join of joins": (
        "tl.join(tl.join(a, b), tl.join(b, a))",
        lambda a, b: torch.stack([torch.stack([a, b], -1), torch.stack([b, a], -1)], -1),
    ),
    "split, first": ("tl.split(tl.reshape(a, (8, 8, 2)))[0]", lambda a, b: a.reshape(8, 8, 2)[..., 0]),
    "split, second": ("tl.split(tl.reshape(a, (8, 8, 2)))[1]", lambda a, b: a.reshape(8, 8, 2)[..., 1]),
    "join of a split": (
        "tl.join(tl.split(tl.join(a, b))[1], tl.split(tl.join(a, b))[0])",
        lambda a, b: torch.stack([b, a], -1),
    ),
    "interleave": ("tl.interleave(a, b)", _interleave),
    "cat": (f"tl.cat(tl.ravel(a), tl.ravel(b){REORDER})", lambda a, b: torch.cat([a.flatten(), b.flatten()])),
    "flip": ("tl.flip(a, 1)", lambda a, b: a.flip(1)),
    "flip of the first axis": ("tl.flip(a, 0)", lambda a, b: a.flip(0)),
    "where of views": (
        "tl.where((tl.arange(0, 16) % 2 == 0)[None, :], a, b)",
        lambda a, b: torch.where(torch.arange(16) % 2 == 0, a, b),
    ),
    "where of a transposed one": (
        "tl.where((tl.arange(0, 8) > 3)[None, :], tl.trans(a), tl.trans(b))",
        lambda a, b: torch.where(torch.arange(8) > 3, a.T, b.T),
    ),
}


def _values(dtype: str, shape: Sequence[int], seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randint(-100, 100, tuple(shape), generator=generator)
    return numbers > 0 if dtype == "bool" else numbers.to(getattr(torch, dtype))


def _moved(dtype: str) -> tuple[torch.Tensor, torch.Tensor]:
    return _values(dtype, (8, 16)), _values(dtype, (8, 16), 1)


@cache
def _results(dtype: str) -> dict[str, torch.Tensor]:
    a, b = _moved(dtype)
    wanted = {text: (tuple(move(a, b).shape), a.dtype) for name, (text, move) in MOVES.items() if _has(dtype, name)}
    return harness.tiles(wanted, {"a": a, "b": b})


def _has(dtype: str, name: str) -> bool:
    return not (dtype == "bool" and name.startswith("flip"))


@pytest.mark.parametrize(("dtype", "name"), [(d, n) for d in DTYPES for n in MOVES if _has(d, n)])
def test_move(dtype: str, name: str) -> None:
    text, move = MOVES[name]
    assert torch.equal(_results(dtype)[text], move(*_moved(dtype)))


# Sorting


@pytest.mark.parametrize("shape", [(1,), (2,), (16,), (256,), (4, 32), (32, 2), (2, 4, 8)])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float16", "bfloat16"])
def test_sort(dtype: str, shape: tuple[int, ...]) -> None:
    a = _values(dtype, shape)
    wanted: dict[str, harness.Result] = {
        "tl.sort(a)": (shape, a.dtype),
        "tl.sort(a, descending=True)": (shape, a.dtype),
    }
    got = harness.tiles(wanted, {"a": a})
    assert torch.equal(got["tl.sort(a)"], a.sort(-1).values)
    assert torch.equal(got["tl.sort(a, descending=True)"], a.sort(-1, descending=True).values)


@pytest.mark.parametrize("k", [1, 2, 8, 32])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_topk(dtype: str, k: int) -> None:
    a = _values(dtype, (4, 32))
    got = harness.tiles({f"tl.topk(a, {k})": ((4, k), a.dtype)}, {"a": a})[f"tl.topk(a, {k})"]
    assert torch.equal(got, a.topk(k, -1).values)


# Gather and histogram


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_gather(dtype: str, axis: int) -> None:
    a = _values(dtype, (8, 16))
    shape = (32, 16) if axis == 0 else (8, 4)
    index = torch.randint(0, a.shape[axis], shape, dtype=torch.int32, generator=torch.Generator().manual_seed(axis))
    got = harness.tiles({f"tl.gather(a, i, {axis})": (shape, a.dtype)}, {"a": a, "i": index})[
        f"tl.gather(a, i, {axis})"
    ]
    assert torch.equal(got, a.gather(axis, index.long()))


def test_gather_of_a_computed_tile() -> None:
    a, index = torch.randn(64), torch.randint(0, 64, (128,), dtype=torch.int64)
    text = "tl.gather(tl.exp(a) + 1, i, 0)"
    got = harness.tiles({text: ((128,), torch.float32)}, {"a": a, "i": index})[text]
    torch.testing.assert_close(got, (a.exp() + 1)[index])


@pytest.mark.parametrize("bins", [1, 2, 16, 128])
@pytest.mark.parametrize("count", [1, 32, 1024])
def test_histogram(bins: int, count: int) -> None:
    a = torch.randint(0, bins, (count,), dtype=torch.int32)
    plain, masked = f"tl.histogram(a, {bins})", f"tl.histogram(a, {bins}, mask=m)"
    mask = torch.arange(count) % 3 != 0
    got = harness.tiles({plain: ((bins,), torch.int32), masked: ((bins,), torch.int32)}, {"a": a, "m": mask})
    assert torch.equal(got[plain].long(), torch.bincount(a, minlength=bins))
    assert torch.equal(got[masked].long(), torch.bincount(a[mask], minlength=bins))


def test_histogram_of_values_outside() -> None:
    a = torch.tensor([-1, 0, 1, 2, 3, 4, 100, 1], dtype=torch.int32)
    got = harness.tiles({"tl.histogram(a, 4)": ((4,), torch.int32)}, {"a": a})["tl.histogram(a, 4)"]
    assert got.tolist() == [1, 2, 1, 1]


# Chains of moves


STEPS: dict[str, tuple[Callable[[str, tuple[int, ...]], str], Callable[[torch.Tensor], torch.Tensor]]] = {
    "reverse": (
        lambda t, s: f"tl.permute({t}, {tuple(reversed(range(len(s))))})",
        lambda a: a.permute(*reversed(range(a.dim()))),
    ),
    "rotate": (lambda t, s: f"tl.permute({t}, {(*range(1, len(s)), 0)})", lambda a: a.permute(*range(1, a.dim()), 0)),
    "flat": (lambda t, s: f"tl.reshape({t}, ({_size(s)},))", lambda a: a.reshape(-1)),
    "square": (lambda t, s: f"tl.reshape({t}, (8, {_size(s) // 8}))", lambda a: a.reshape(8, -1)),
    "cube": (lambda t, s: f"tl.reshape({t}, (4, {_size(s) // 8}, 2))", lambda a: a.reshape(4, -1, 2)),
    "add": (lambda t, s: f"({t} + 1)", lambda a: a + 1),
    "scale": (lambda t, s: f"({t} * 3)", lambda a: a * 3),
    "flip": (lambda t, s: f"tl.flip({t}, {len(s) - 1})", lambda a: a.flip(-1)),
    "sum": (
        lambda t, s: f"({t} + tl.sum({t}, {len(s) - 1}, keep_dims=True))",
        lambda a: a + a.sum(-1, keepdim=True).to(a.dtype),
    ),
    "scan": (lambda t, s: f"tl.cumsum({t}, {len(s) - 1})", lambda a: a.cumsum(-1).to(a.dtype)),
}  # fmt: skip


def _size(shape: tuple[int, ...]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=6))
def test_chain(names: list[str]) -> None:
    a = torch.arange(64, dtype=torch.int32).reshape(4, 16) % 17
    text, expected = "a", a
    lines = []
    for n, name in enumerate(names):
        write, step = STEPS[name]
        lines.append(f"    v{n} = {write(text, tuple(expected.shape))}")
        text, expected = f"v{n}", step(expected)
    shape = tuple(expected.shape)
    body = f"@triton.jit\ndef kernel(x, o):\n    a = tl.load(x + {harness.index((4, 16))})\n" + "\n".join(lines)
    kernel = harness.module(f"{body}\n    tl.store(o + {harness.index(shape)}, {text})\n").kernel
    out = torch.empty(shape, dtype=torch.int32)
    kernel[(1,)](a, out)
    assert torch.equal(out, expected.to(torch.int32))
