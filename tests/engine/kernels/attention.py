# SPDX-License-Identifier: MIT
"""Flash attention, forward and backward, with rotary embedding of its operands beside it."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(
    q, k, v, o, lse, length, scale, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr
):
    head = tl.program_id(1) * length * D
    row = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    query = tl.load(q + head + row[:, None] * D + d[None, :], mask=row[:, None] < length, other=0.0)
    top = tl.full([M], float("-inf"), tl.float32)
    norm = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, D], tl.float32)
    stop = tl.minimum((tl.program_id(0) + 1) * M, length) if CAUSAL else length
    for start in range(0, stop, N):
        column = start + tl.arange(0, N)
        there = column < length
        key = tl.load(k + head + column[None, :] * D + d[:, None], mask=there[None, :], other=0.0)
        scores = tl.dot(query, key) * scale
        visible = there[None, :]
        if CAUSAL:
            visible = visible & (row[:, None] >= column[None, :])
        scores = tl.where(visible, scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(top - higher)
        norm = norm * shrink + tl.sum(weights, 1)
        value = tl.load(v + head + column[:, None] * D + d[None, :], mask=there[:, None], other=0.0)
        acc = tl.dot(weights.to(value.dtype), value, acc * shrink[:, None])
        top = higher
    tl.store(lse + tl.program_id(1) * length + row, top + tl.log(norm), mask=row < length)
    result = (acc / norm[:, None]).to(o.dtype.element_ty)
    tl.store(o + head + row[:, None] * D + d[None, :], result, mask=row[:, None] < length)


@triton.jit
def backward_kernel(
    q,
    k,
    v,
    do,
    lse,
    delta,
    dq,
    dk,
    dv,
    length,
    scale,
    D: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """One program a block of keys; the queries' gradient is summed with atomics."""
    head = tl.program_id(1) * length * D
    column = tl.program_id(0) * N + tl.arange(0, N)
    d = tl.arange(0, D)
    there = column < length
    keys = column[:, None] * D + d[None, :]
    key = tl.load(k + head + keys, mask=there[:, None], other=0.0)
    value = tl.load(v + head + keys, mask=there[:, None], other=0.0)
    grad_key, grad_value = tl.zeros([N, D], tl.float32), tl.zeros([N, D], tl.float32)
    first = tl.program_id(0) * N // M * M if CAUSAL else 0
    for start in range(first, length, M):
        row = start + tl.arange(0, M)
        inside = row < length
        rows = row[:, None] * D + d[None, :]
        query = tl.load(q + head + rows, mask=inside[:, None], other=0.0)
        grad = tl.load(do + head + rows, mask=inside[:, None], other=0.0)
        scores = tl.dot(query, tl.trans(key)) * scale
        visible = there[None, :] & inside[:, None]
        if CAUSAL:
            visible = visible & (row[:, None] >= column[None, :])
        norm = tl.load(lse + tl.program_id(1) * length + row, mask=inside, other=0.0)
        weights = tl.where(visible, tl.exp(scores - norm[:, None]), 0.0)
        grad_value = tl.dot(tl.trans(weights).to(grad.dtype), grad, grad_value)
        mean = tl.load(delta + tl.program_id(1) * length + row, mask=inside, other=0.0)
        inner = weights * (tl.dot(grad, tl.trans(value)) - mean[:, None]) * scale
        grad_key = tl.dot(tl.trans(inner).to(query.dtype), query, grad_key)
        tl.atomic_add(dq + head + rows, tl.dot(inner.to(key.dtype), key), mask=inside[:, None])
    tl.store(dk + head + keys, grad_key, mask=there[:, None])
    tl.store(dv + head + keys, grad_value, mask=there[:, None])


@triton.jit
def rotary_kernel(x, cos, sin, y, HALF: tl.constexpr, HEADS: tl.constexpr):
    """Pairs (i, i + HALF) of each head are turned by the position's angle; all heads of a position in one program."""
    position = tl.program_id(0)
    head, i = tl.arange(0, HEADS)[:, None], tl.arange(0, HALF)[None, :]
    c, s = tl.load(cos + position * HALF + i), tl.load(sin + position * HALF + i)
    at = (position * HEADS + head) * 2 * HALF + i
    first, second = tl.load(x + at), tl.load(x + at + HALF)
    tl.store(y + at, first * c - second * s)
    tl.store(y + at + HALF, second * c + first * s)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """(output, logarithm of the weights' sum) for (heads, length, channels)."""
    heads, length, d = q.shape
    o, lse = torch.empty_like(q), torch.empty(heads, length)
    grid = (triton.cdiv(length, 32), heads)
    forward_kernel[grid](q, k, v, o, lse, length, d**-0.5, D=d, M=32, N=16, CAUSAL=causal)
    return o, lse


def attention_gradients(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    causal: bool,
) -> tuple[torch.Tensor, ...]:
    heads, length, d = q.shape
    delta = (o.float() * do.float()).sum(-1)
    dq, dk, dv = (torch.zeros(q.shape) for _ in range(3))
    grid = (triton.cdiv(length, 32), heads)
    backward_kernel[grid](q, k, v, do, lse, delta, dq, dk, dv, length, d**-0.5, D=d, M=16, N=32, CAUSAL=causal)
    return dq, dk, dv


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    length, heads, d = x.shape
    y = torch.empty_like(x)
    rotary_kernel[(length,)](x, cos, sin, y, HALF=d // 2, HEADS=heads)
    return y
