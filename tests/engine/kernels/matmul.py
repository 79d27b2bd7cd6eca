# SPDX-License-Identifier: MIT
"""Matrix products: quantised (int8, fp8), stream-K, and a mixture of experts with its routing."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def quantise_kernel(x, q, scale, n, LIMIT: tl.constexpr, BLOCK: tl.constexpr):
    """A row to 8 bits with one scale."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + column, mask=column < n, other=0.0)
    unit = tl.maximum(tl.max(tl.abs(value), 0), 1e-12) / LIMIT
    scaled = value / unit
    if q.dtype.element_ty == tl.int8:
        scaled = tl.floor(scaled + 0.5)
    tl.store(q + row * n + column, scaled.to(q.dtype.element_ty), mask=column < n)
    tl.store(scale + row, unit)


@triton.jit
def quantised_kernel(a, b, sa, sb, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c = (a * sa) @ (b * sb)^T; int8 operands are summed in int32, 8-bit floats in fp32."""
    row, column = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    total: tl.constexpr = tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32
    acc = tl.zeros([M, N], total)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        left = tl.load(a + row[:, None] * k + inner[None, :], mask=(row[:, None] < m) & (inner[None, :] < k), other=0.0)
        right = tl.load(
            b + column[None, :] * k + inner[:, None], mask=(column[None, :] < n) & (inner[:, None] < k), other=0.0
        )
        acc = tl.dot(left, right, acc, out_dtype=total)
    scale = (
        tl.load(sa + row, mask=row < m, other=0.0)[:, None] * tl.load(sb + column, mask=column < n, other=0.0)[None, :]
    )
    tl.store(
        c + row[:, None] * n + column[None, :],
        acc.to(tl.float32) * scale,
        mask=(row[:, None] < m) & (column[None, :] < n),
    )


@triton.jit
def stream_k_kernel(a, b, c, m, n, k, per_program, total, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Programs take equal runs of (tile, slice of k) steps; a tile shared by several is summed with atomics."""
    step = tl.program_id(0) * per_program
    stop = tl.minimum(step + per_program, total)
    slices, across = tl.cdiv(k, K), tl.cdiv(n, N)
    while step < stop:
        tile, first = step // slices, step % slices
        last = tl.minimum(slices, first + stop - step)
        row, column = tile // across * M + tl.arange(0, M), tile % across * N + tl.arange(0, N)
        acc = tl.zeros([M, N], tl.float32)
        for s in range(first, last):
            inner = s * K + tl.arange(0, K)
            left = tl.load(
                a + row[:, None] * k + inner[None, :], mask=(row[:, None] < m) & (inner[None, :] < k), other=0.0
            )
            right = tl.load(
                b + inner[:, None] * n + column[None, :], mask=(inner[:, None] < k) & (column[None, :] < n), other=0.0
            )
            acc = tl.dot(left, right, acc)
        target = c + row[:, None] * n + column[None, :]
        mask = (row[:, None] < m) & (column[None, :] < n)
        if last - first == slices:
            tl.store(target, acc, mask=mask)
        else:
            tl.atomic_add(target, acc, mask=mask)
        step += last - first


@triton.jit
def route_kernel(logits, weights, experts, counts, TOP: tl.constexpr, EXPERTS: tl.constexpr):
    """The TOP best experts of a token, the softmax over them, and how many tokens each expert has."""
    token = tl.program_id(0)
    expert = tl.arange(0, EXPERTS)
    score = tl.load(logits + token * EXPERTS + expert).to(tl.float32)
    best = tl.max(score, 0)
    total = 0.0
    for n in tl.static_range(TOP):
        value, index = tl.max(score, 0, return_indices=True)
        weight = tl.exp(value - best)
        total += weight
        tl.store(weights + token * TOP + n, weight)
        tl.store(experts + token * TOP + n, index)
        tl.atomic_add(counts + index, 1)
        score = tl.where(expert == index, float("-inf"), score)
    i = tl.arange(0, TOP)
    tl.debug_barrier()
    tl.store(weights + token * TOP + i, tl.load(weights + token * TOP + i) / total)


@triton.jit
def place_kernel(experts, starts, slots, TOP: tl.constexpr):
    """Each (token, choice) takes the next place of its expert."""
    token = tl.program_id(0)
    i = tl.arange(0, TOP)
    place = tl.atomic_add(starts + tl.load(experts + token * TOP + i), 1)
    tl.store(slots + place, token * TOP + i)


@triton.jit
def experts_kernel(
    x, w, weights, slots, owner, begin, end, y, d, TOP: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    """A block of places of one expert: gather tokens, multiply by its matrix, add the weighted rows to their tokens."""
    block = tl.program_id(0)
    expert = tl.load(owner + block)
    place = tl.load(begin + block) + tl.arange(0, M)
    used = place < tl.load(end + block)
    slot = tl.load(slots + place, mask=used, other=0.0)
    token = slot // TOP
    column = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros([M, N], tl.float32)
    for start in range(0, d, K):
        inner = start + tl.arange(0, K)
        left = tl.load(x + token[:, None] * d + inner[None, :], mask=used[:, None], other=0.0)
        acc = tl.dot(left, tl.load(w + expert * d * d + inner[:, None] * d + column[None, :]), acc)
    acc = acc * tl.load(weights + slot, mask=used, other=0.0)[:, None]
    tl.atomic_add(y + token[:, None] * d + column[None, :], acc, mask=used[:, None])


def quantise(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """(8-bit rows, their scales)."""
    rows, n = x.shape
    limit = 127.0 if dtype == torch.int8 else torch.finfo(dtype).max
    q, scale = torch.empty(rows, n, dtype=dtype), torch.empty(rows)
    quantise_kernel[(rows,)](x, q, scale, n, LIMIT=limit, BLOCK=triton.next_power_of_2(n))
    return q, scale


def quantised_matmul(a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """a @ b^T through 8 bits."""
    (qa, sa), (qb, sb) = quantise(a, dtype), quantise(b, dtype)
    (m, k), n = a.shape, b.shape[0]
    c = torch.empty(m, n)
    quantised_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](qa, qb, sa, sb, c, m, n, k, M=32, N=32, K=32)
    return c


def stream_k_matmul(a: torch.Tensor, b: torch.Tensor, programs: int) -> torch.Tensor:
    (m, k), n = a.shape, b.shape[1]
    total = triton.cdiv(m, 32) * triton.cdiv(n, 32) * triton.cdiv(k, 16)
    c = torch.zeros(m, n)
    stream_k_kernel[(programs,)](a, b, c, m, n, k, triton.cdiv(total, programs), total, M=32, N=32, K=16)
    return c


def mixture_of_experts(x: torch.Tensor, logits: torch.Tensor, w: torch.Tensor, top: int = 2) -> torch.Tensor:
    """Each token through its `top` best experts, weighted."""
    (tokens, d), count, block = x.shape, w.shape[0], 16
    weights, chosen = torch.empty(tokens, top), torch.empty(tokens, top, dtype=torch.int32)
    counts = torch.zeros(count, dtype=torch.int32)
    route_kernel[(tokens,)](logits, weights, chosen, counts, TOP=top, EXPERTS=count)
    starts = torch.cumsum(counts, 0).int() - counts
    slots = torch.empty(tokens * top, dtype=torch.int32)
    place_kernel[(tokens,)](chosen, starts.clone(), slots, TOP=top)
    blocks = [
        (e, int(s) + i, int(s) + int(n))
        for e, (s, n) in enumerate(zip(starts, counts, strict=True))
        for i in range(0, int(n), block)
    ]
    owner, begin, end = (torch.tensor(column, dtype=torch.int32) for column in zip(*blocks, strict=True))
    y = torch.zeros(tokens, d)
    experts_kernel[(len(blocks), d // 32)](x, w, weights, slots, owner, begin, end, y, d, TOP=top, M=block, N=32, K=32)
    return y
