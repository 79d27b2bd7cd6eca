# SPDX-License-Identifier: MIT
"""Tutorials 5 and 6: layer norm forward and backward, flash attention."""

import triton
import triton.language as tl

from tests.corpus.registry import kernel


@kernel(
    x="*fp16", y="*fp16", w="*fp16", b="*fp16", mean="*fp32", rstd="*fp32", stride="i32", N="i32", eps="fp32", BLOCK=256
)
@triton.jit
def layer_norm(x, y, w, b, mean, rstd, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * stride
    y += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x + columns, mask=columns < N, other=0.0).to(tl.float32)
    average = tl.sum(total, axis=0) / N
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        values = tl.load(x + columns, mask=columns < N, other=0.0).to(tl.float32)
        centred = tl.where(columns < N, values - average, 0.0)
        squares += centred * centred
    inverse = 1 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(mean + row, average)
    tl.store(rstd + row, inverse)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < N
        values = tl.load(x + columns, mask=mask, other=0.0).to(tl.float32)
        normal = (values - average) * inverse
        tl.store(y + columns, normal * tl.load(w + columns, mask=mask) + tl.load(b + columns, mask=mask), mask=mask)


@kernel(
    dx="*fp16", dy="*fp16", dw="*fp32", db="*fp32", x="*fp16", w="*fp16", mean="*fp32", rstd="*fp32", lock="*i32",
    stride="i32", N="i32", GROUPS=8, BLOCK=256,
)  # fmt: skip
@triton.jit
def layer_norm_backward(dx, dy, dw, db, x, w, mean, rstd, lock, stride, N, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """Partial sums under a spin lock: a while loop over a compare-and-swap."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < N
    group = row % GROUPS
    lock += group
    count = lock + GROUPS
    values = tl.load(x + row * stride + columns, mask=mask, other=0).to(tl.float32)
    grads = tl.load(dy + row * stride + columns, mask=mask, other=0).to(tl.float32)
    weights = tl.load(w + columns, mask=mask).to(tl.float32)
    inverse = tl.load(rstd + row)
    normal = tl.where(mask, (values - tl.load(mean + row)) * inverse, 0.0)
    weighted = tl.where(mask, weights * grads, 0.0)
    c1 = tl.sum(normal * weighted, axis=0) / N
    c2 = tl.sum(weighted, axis=0) / N
    tl.store(dx + row * stride + columns, (weighted - (normal * c1 + c2)) * inverse, mask=mask)
    partial_w, partial_b = grads * normal, grads
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        partial_w += tl.load(dw + group * N + columns, mask=mask)
        partial_b += tl.load(db + group * N + columns, mask=mask)
    tl.store(dw + group * N + columns, partial_w, mask=mask)
    tl.store(db + group * N + columns, partial_b, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def attend(
    acc,
    norm,
    top,
    q,
    k,
    v,
    low,
    high,
    start,
    scale,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    rows = start * BM + tl.arange(0, BM)
    channels = tl.arange(0, D)
    for first in tl.range(low, high, BN):
        first = tl.multiple_of(first, BN)
        columns = first + tl.arange(0, BN)
        scores = tl.dot(q, tl.load(k + columns[None, :] * D + channels[:, None])) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= columns[None, :], scores, -1.0e6)
        new_top = tl.maximum(top, tl.max(scores, 1))
        powers = tl.math.exp2(scores - new_top[:, None])
        shrink = tl.math.exp2(top - new_top)
        norm = norm * shrink + tl.sum(powers, 1)
        acc = acc * shrink[:, None]
        acc = tl.dot(powers.to(tl.float16), tl.load(v + columns[:, None] * D + channels[None, :]), acc)
        top = new_top
    return acc, norm, top


@kernel(
    q="*fp16", k="*fp16", v="*fp16", out="*fp16", lse="*fp32", scale="fp32", S="i32", D=64, BM=64, BN=32, CAUSAL=True
)
@triton.jit
def flash_attention(
    q, k, v, out, lse, scale, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr
):
    start, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    q += head * S * D
    k += head * S * D
    v += head * S * D
    out += head * S * D
    rows, channels = start * BM + tl.arange(0, BM), tl.arange(0, D)
    queries = tl.load(q + rows[:, None] * D + channels[None, :])
    top = tl.zeros([BM], dtype=tl.float32) - float("inf")
    norm = tl.zeros([BM], dtype=tl.float32) + 1.0
    acc = tl.zeros([BM, D], dtype=tl.float32)
    scale *= 1.44269504
    acc, norm, top = attend(acc, norm, top, queries, k, v, 0, start * BM, start, scale, D, BM, BN, False)
    if CAUSAL:
        acc, norm, top = attend(
            acc, norm, top, queries, k, v, start * BM, (start + 1) * BM, start, scale, D, BM, BN, True
        )
    top += tl.math.log2(norm)
    tl.store(lse + head * S + rows, top)
    tl.store(out + rows[:, None] * D + channels[None, :], (acc / norm[:, None]).to(tl.float16))
