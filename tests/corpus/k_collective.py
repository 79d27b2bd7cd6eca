# SPDX-License-Identifier: MIT
"""Reductions, scans, sorting, histograms: what looks at all elements of a block."""

import triton
import triton.language as tl

from tests.corpus.registry import kernel


@triton.jit
def larger_magnitude(a, b):
    return tl.where(tl.abs(a) > tl.abs(b), a, b)


@triton.jit
def running_mean(mean_a, weight_a, mean_b, weight_b):
    weight = weight_a + weight_b
    return (mean_a * weight_a + mean_b * weight_b) / weight, weight


@triton.jit
def linear_recurrence(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@kernel(x="*fp32", out="*fp32", R=32, C=64)
@triton.jit
def reductions(x, out, R: tl.constexpr, C: tl.constexpr):
    rows, columns = tl.arange(0, R), tl.arange(0, C)
    tile = tl.load(x + rows[:, None] * C + columns[None, :])
    tl.store(out + rows, tl.sum(tile, 1))
    tl.store(out + R + rows, tl.max(tile, 1))
    tl.store(out + 2 * R + columns, tl.min(tile, 0))
    tl.store(out + 2 * R + C, tl.sum(tile))
    tl.store(out + 2 * R + C + 1 + rows, tl.reduce(tile, 1, larger_magnitude))


@kernel(x="*fp32", best="*fp32", where="*i32", R=16, C=128)
@triton.jit
def arg_reductions(x, best, where, R: tl.constexpr, C: tl.constexpr):
    rows, columns = tl.arange(0, R), tl.arange(0, C)
    tile = tl.load(x + rows[:, None] * C + columns[None, :])
    largest, index = tl.max(tile, 1, return_indices=True)
    tl.store(best + rows, largest)
    tl.store(where + rows, index)
    tl.store(where + R + rows, tl.argmin(tile, 1, tie_break_left=False))


@kernel(x="*fp32", w="*fp32", mean="*fp32", weight="*fp32", N=256)
@triton.jit
def reduce_two(x, w, mean, weight, N: tl.constexpr):
    offsets = tl.arange(0, N)
    average, total = tl.reduce((tl.load(x + offsets), tl.load(w + offsets)), 0, running_mean)
    tl.store(mean, average)
    tl.store(weight, total)


@kernel(x="*i64", out="*i64", N=64)
@triton.jit
def integer_reductions(x, out, N: tl.constexpr):
    values = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.sum(values))
    tl.store(out + 1, tl.max(values, 0))
    tl.store(out + 2, tl.xor_sum(values, 0))
    tl.store(out + 3, tl.min(values.to(tl.uint64, bitcast=True), 0).to(tl.int64, bitcast=True))


@kernel(x="*fp32", out="*fp32", R=8, C=64)
@triton.jit
def scans(x, out, R: tl.constexpr, C: tl.constexpr):
    tile = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    values = tl.load(x + tile)
    tl.store(out + tile, tl.cumsum(values, 1))
    tl.store(out + R * C + tile, tl.cumprod(values, 0, reverse=True))


@kernel(a="*fp32", b="*fp32", out="*fp32", N=128)
@triton.jit
def scan_two(a, b, out, N: tl.constexpr):
    offsets = tl.arange(0, N)
    pair = (tl.load(a + offsets), tl.load(b + offsets))
    _, states = tl.associative_scan(pair, 0, linear_recurrence)
    tl.store(out + offsets, states)


@kernel(x="*fp32", out="*fp32", R=4, N=32)
@triton.jit
def sort_rows(x, out, R: tl.constexpr, N: tl.constexpr):
    tile = tl.arange(0, R)[:, None] * N + tl.arange(0, N)[None, :]
    values = tl.load(x + tile)
    tl.store(out + tile, tl.sort(values, descending=True))
    tl.store(out + R * N + tile, tl.flip(values, 1))


@kernel(x="*i32", out="*i32", n="i32", N=128, BINS=16)
@triton.jit
def histograms(x, out, n, N: tl.constexpr, BINS: tl.constexpr):
    offsets = tl.arange(0, N)
    mask = offsets < n
    values = tl.load(x + offsets, mask=mask)
    tl.store(out + tl.arange(0, BINS), tl.histogram(values, BINS, mask=mask))
    tl.store(out + BINS + tl.arange(0, BINS), tl.histogram(values % BINS, BINS))


@kernel(x="*fp32", index="*i32", out="*fp32", R=16, C=32)
@triton.jit
def gathers(x, index, out, R: tl.constexpr, C: tl.constexpr):
    tile = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    values, places = tl.load(x + tile), tl.load(index + tile)
    tl.store(out + tile, tl.gather(values, places, axis=1))
    tl.store(out + R * C + tile, tl.gather(values, places % R, axis=0))


@triton.jit
def wide_and_narrow(a, b):
    if a > b:
        return a, b
    else:
        return b, a


@kernel(x="*fp32", y="*fp32", high="*fp32", low="*fp32", N=64)
@triton.jit
def mapped_elements(x, y, high, low, N: tl.constexpr):
    offsets = tl.arange(0, N)
    upper, lower = tl.map_elementwise(wide_and_narrow, tl.load(x + offsets), tl.load(y + offsets))
    tl.store(high + offsets, upper)
    tl.store(low + offsets, lower)
