# SPDX-License-Identifier: MIT
"""Kernels of thousands of operations: long chains of tensors, of masks, of views."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def halves(x, o, ROUNDS: tl.constexpr):
    i = tl.arange(0, 64)
    value = tl.load(x + i)
    for _ in tl.static_range(ROUNDS):
        value = value * 0.5 + 1.0
    tl.store(o + i, value)


@triton.jit
def choices(x, o, ROUNDS: tl.constexpr):
    i = tl.arange(0, 64)
    value = tl.load(x + i)
    for n in tl.static_range(ROUNDS):
        value = tl.where(value > n % 7, value - 3.0, value + 2.0)
    tl.store(o + i, value)


@triton.jit
def masks(x, o, ROUNDS: tl.constexpr):
    i = tl.arange(0, 64)
    mask = i < 60
    for n in tl.static_range(ROUNDS):
        mask = mask & (mask & (i < 61 + n))
    tl.store(o + i, tl.load(x + i, mask=mask, other=5.0) + 1.0, mask=mask)


@triton.jit
def places(x, o, ROUNDS: tl.constexpr):
    i = tl.arange(0, 64)
    at = i
    for n in tl.static_range(ROUNDS):
        at = (at * 5 + n) % 64
    tl.store(o + i, tl.load(x + at))


@triton.jit
def transposes(x, o, ROUNDS: tl.constexpr):
    i = tl.arange(0, 64)
    value = tl.load(x + i)
    for _ in tl.static_range(ROUNDS):
        value = tl.reshape(tl.trans(tl.reshape(value, (4, 16))), (64,)) + 1.0
    tl.store(o + i, value)


@triton.jit
def accumulators(x, o, ROUNDS: tl.constexpr):
    i = tl.arange(0, 8)
    tile = tl.load(x + i[:, None] * 8 + i[None, :])
    total = tl.zeros((8, 8), tl.float32)
    for _ in range(2):
        start = total
        for _ in tl.static_range(ROUNDS):
            start = start * 0.25 + start * 0.5
        total = tl.dot(tile, tile, start)
    tl.store(o + i[:, None] * 8 + i[None, :], total)


def _halves(x: torch.Tensor, rounds: int) -> torch.Tensor:
    for _ in range(rounds):
        x = x * 0.5 + 1.0
    return x


def _choices(x: torch.Tensor, rounds: int) -> torch.Tensor:
    for n in range(rounds):
        x = torch.where(x > n % 7, x - 3.0, x + 2.0)
    return x


def _masks(x: torch.Tensor, rounds: int) -> torch.Tensor:
    return torch.where(torch.arange(64) < 60, x + 1, 0)


def _places(x: torch.Tensor, rounds: int) -> torch.Tensor:
    at = torch.arange(64)
    for n in range(rounds):
        at = (at * 5 + n) % 64
    return x[at]


def _transposes(x: torch.Tensor, rounds: int) -> torch.Tensor:
    for _ in range(rounds):
        x = x.reshape(4, 16).T.reshape(64) + 1
    return x


def _accumulators(x: torch.Tensor, rounds: int) -> torch.Tensor:
    square = x.reshape(8, 8) @ x.reshape(8, 8)
    return (square + square * 0.75**rounds).reshape(64)


KERNELS: dict[str, tuple[Any, Any]] = {
    "halves": (halves, _halves),
    "choices": (choices, _choices),
    "masks": (masks, _masks),
    "places": (places, _places),
    "transposes": (transposes, _transposes),
    "accumulators": (accumulators, _accumulators),
}


@pytest.mark.parametrize("rounds", [40, 300, 1000])
@pytest.mark.parametrize("name", KERNELS)
def test_chain(name: str, rounds: int) -> None:
    kernel, meaning = KERNELS[name]
    x, o = torch.randint(-4, 5, (64,)).float(), torch.zeros(64)
    kernel[(1,)](x, o, ROUNDS=rounds)
    torch.testing.assert_close(o, meaning(x, rounds), rtol=1e-5, atol=1e-5)
