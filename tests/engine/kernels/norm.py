# SPDX-License-Identifier: MIT
"""Layer norm and RMS norm, forward and backward, rows of any length."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_forward(x, w, b, y, mean, rstd, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < n
    value = tl.load(x + row * n + column, mask=inside, other=0.0).to(tl.float32)
    average = tl.sum(value, 0) / n
    centred = tl.where(inside, value - average, 0.0)
    inverse = tl.rsqrt(tl.sum(centred * centred, 0) / n + eps)
    tl.store(mean + row, average)
    tl.store(rstd + row, inverse)
    result = centred * inverse * tl.load(w + column, mask=inside) + tl.load(b + column, mask=inside)
    tl.store(y + row * n + column, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def layer_norm_backward(dy, x, w, mean, rstd, dx, dw, db, n, BLOCK: tl.constexpr):
    """The weights' gradients are summed over rows with atomics."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < n
    at = row * n + column
    grad = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    normal = tl.where(inside, (value - tl.load(mean + row)) * tl.load(rstd + row), 0.0)
    scaled = grad * tl.load(w + column, mask=inside, other=0.0)
    c1 = tl.sum(normal * scaled, 0) / n
    c2 = tl.sum(scaled, 0) / n
    tl.store(dx + at, ((scaled - normal * c1 - c2) * tl.load(rstd + row)).to(dx.dtype.element_ty), mask=inside)
    tl.atomic_add(dw + column, grad * normal, mask=inside)
    tl.atomic_add(db + column, grad, mask=inside)


@triton.jit
def rms_norm_forward(x, w, y, n, eps, BLOCK: tl.constexpr):
    """Two passes over a row in pieces."""
    row = tl.program_id(0)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * n + column, mask=column < n, other=0.0).to(tl.float32)
        squares += value * value
    inverse = tl.rsqrt(tl.sum(squares, 0) / n + eps)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < n
        value = tl.load(x + row * n + column, mask=inside).to(tl.float32) * inverse
        tl.store(y + row * n + column, (value * tl.load(w + column, mask=inside)).to(y.dtype.element_ty), mask=inside)


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float = 1e-5) -> tuple[torch.Tensor, ...]:
    """(y, mean, 1 / standard deviation)."""
    rows, n = x.shape
    y, mean, rstd = torch.empty_like(x), torch.empty(rows), torch.empty(rows)
    layer_norm_forward[(rows,)](x, w, b, y, mean, rstd, n, eps, BLOCK=triton.next_power_of_2(n))
    return y, mean, rstd


def layer_norm_gradients(
    dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    rows, n = x.shape
    dx, dw, db = torch.empty_like(x), torch.zeros(n), torch.zeros(n)
    layer_norm_backward[(rows,)](dy, x, w, mean, rstd, dx, dw, db, n, BLOCK=triton.next_power_of_2(n))
    return dx, dw, db


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    y = torch.empty_like(x)
    rms_norm_forward[(x.shape[0],)](x, w, y, x.shape[1], eps, BLOCK=256)
    return y
