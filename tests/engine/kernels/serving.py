# SPDX-License-Identifier: MIT
"""What serves a language model: attention over pages of keys and values, products with 4-bit weights, recurrences."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _paged(
    q, keys, values, pages, lengths, out, pages_most, scale, H: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr
):
    sequence, head = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths + sequence)
    d, j = tl.arange(0, D), tl.arange(0, PAGE)
    query = tl.load(q + (sequence * H + head) * D + d)
    most, total = -float("inf"), 0.0
    found = tl.zeros((D,), tl.float32)
    for n in range(tl.cdiv(length, PAGE)):
        page = tl.load(pages + sequence * pages_most + n).to(tl.int64)
        rows = ((page * PAGE + j[:, None]) * H + head) * D + d[None, :]
        scores = tl.sum(query[None, :] * tl.load(keys + rows), 1) * scale
        scores = tl.where(n * PAGE + j < length, scores, -float("inf"))
        new = tl.maximum(most, tl.max(scores, 0))
        weights, shrink = tl.exp(scores - new), tl.exp(most - new)
        found = found * shrink + tl.sum(weights[:, None] * tl.load(values + rows), 0)
        total = total * shrink + tl.sum(weights, 0)
        most = new
    tl.store(out + (sequence * H + head) * D + d, found / total)


def paged_attention(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, pages: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """q [sequence, head, d]; keys and values [page, place, head, d]; pages [sequence, n]."""
    out = torch.empty_like(q)
    count, heads, d = q.shape
    _paged[(count, heads)](
        q, keys, values, pages, lengths, out, pages.shape[1], d**-0.5, H=heads, D=d, PAGE=keys.shape[1]
    )
    return out


@triton.jit
def _int4(
    x, packed, scales, zeros, out, m, n, k,
    GROUP: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    wide = columns < n
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        left = tl.load(x + rows[:, None] * k + start + inner[None, :], mask=rows[:, None] < m, other=0.0)
        words = tl.load(packed + ((start + inner) // 8)[:, None] * n + columns[None, :], mask=wide[None, :], other=0)
        group = start // GROUP
        scale = tl.load(scales + group * n + columns, mask=wide, other=0.0)
        zero = tl.load(zeros + group * (n // 8) + columns // 8, mask=wide, other=0) >> ((columns % 8) * 4) & 15
        codes = words >> ((inner % 8) * 4)[:, None] & 15
        right = (codes - zero[None, :]).to(tl.float32) * scale[None, :]
        total = tl.dot(left, right, total)
    tl.store(out + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & wide[None, :])


def pack_int4(codes: torch.Tensor, axis: int) -> torch.Tensor:
    """Eight numbers of 0 to 15 to a word, the first one lowest."""
    eights = codes.long().unfold(axis, 8, 8)
    words = sum(eights[..., i] << (4 * i) for i in range(8))
    assert isinstance(words, torch.Tensor)
    return words.to(torch.int32).contiguous()


def int4_matmul(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    """x [m, k] times 4-bit weights: (code - zero) * scale, of groups along k."""
    (m, k), n = x.shape, packed.shape[1]
    out = torch.empty(m, n)
    group = k // scales.shape[0]
    _int4[(triton.cdiv(m, 16), triton.cdiv(n, 32))](
        x, packed, scales, zeros, out, m, n, k, GROUP=group, M=16, N=32, K=min(group, 32)
    )
    return out


@triton.jit
def _after(decay, state, decay_next, state_next):
    return decay * decay_next, state * decay_next + state_next


@triton.jit
def _recurrence(decays, inputs, states, T: tl.constexpr, D: tl.constexpr):
    places = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    _, found = tl.associative_scan((tl.load(decays + places), tl.load(inputs + places)), 0, _after)
    tl.store(states + places, found)


def recurrence(decays: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """h[t] = decay[t] * h[t - 1] + input[t]"""
    states = torch.empty_like(inputs)
    _recurrence[(1,)](decays, inputs, states, T=inputs.shape[0], D=inputs.shape[1])
    return states


@triton.jit
def _persistent(
    a, b, c, m, n, k,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PROGRAMS: tl.constexpr, HALVES: tl.constexpr,
):  # fmt: skip
    columns = tl.cdiv(n, N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, M) * columns, PROGRAMS, flatten=True):
        row, column = tile // columns * M, tile % columns * N
        total = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            total = tl.dot(a.load([row, start]), b.load([column, start]).T, total)
        if HALVES:
            left, right = tl.split(tl.permute(tl.reshape(total, (M, 2, N // 2)), (0, 2, 1)))
            c.store([row, column], left.to(c.dtype))
            c.store([row, column + N // 2], right.to(c.dtype))
        else:
            c.store([row, column], total.to(c.dtype))


def persistent_matmul(a: torch.Tensor, b: torch.Tensor, halves: bool) -> torch.Tensor:
    """a [m, k] times the transpose of b [n, k], through descriptors that the host makes."""
    (m, k), n = a.shape, b.shape[0]
    c = torch.zeros(m, n, dtype=a.dtype)
    given = (
        TensorDescriptor.from_tensor(t, block)
        for t, block in ((a, [64, 32]), (b, [32, 32]), (c, [64, 16 if halves else 32]))
    )
    _persistent[(3,)](*given, m, n, k, M=64, N=32, K=32, PROGRAMS=3, HALVES=halves)
    return c
