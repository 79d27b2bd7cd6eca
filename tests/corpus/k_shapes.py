# SPDX-License-Identifier: MIT
"""Shapes, pointers and memory: what moves elements around."""

import triton
import triton.language as tl

from tests.corpus.registry import kernel


@kernel(x="*fp32", out="*fp32", R=16, C=32)
@triton.jit
def transposes(x, out, R: tl.constexpr, C: tl.constexpr):
    tile = tl.load(x + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    tl.store(out + tl.arange(0, C)[:, None] * R + tl.arange(0, R)[None, :], tl.trans(tile))
    cube = tl.permute(tl.reshape(tile, (R, C // 4, 4)), (2, 0, 1))
    tl.store(out + R * C + tl.arange(0, R * C), tl.reshape(cube, (R * C,)))


@kernel(x="*fp32", y="*fp32", out="*fp32", N=64)
@triton.jit
def joins_and_splits(x, y, out, N: tl.constexpr):
    offsets = tl.arange(0, N)
    pair = tl.join(tl.load(x + offsets), tl.load(y + offsets))
    even, odd = tl.split(tl.reshape(pair, (N, 2)) * 2.0)
    tl.store(out + tl.arange(0, 2 * N), tl.interleave(odd, even))
    tl.store(out + 2 * N + tl.arange(0, 2 * N), tl.cat(even, odd, can_reorder=True))


@kernel(x="*fp32", out="*fp32", n="i32", BLOCK=64)
@triton.jit
def broadcasts(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    row = tl.load(x + offsets, mask=offsets < n, other=0.0)
    tile = tl.broadcast_to(row[None, :], (4, BLOCK)) + tl.full((4, 1), 3.0, tl.float32)
    tl.store(out + tl.arange(0, 4)[:, None] * BLOCK + offsets[None, :], tile)
    one = tl.load(x + tl.arange(0, 1))
    tl.store(out + 4 * BLOCK, tl.sum(one * 2.0, 0))
    tl.store(out + 4 * BLOCK + 1, tl.reshape(one, ()))


@kernel(x="*fp32", out="*fp32", n="i32", BLOCK=128)
@triton.jit
def cache_hints(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    first = tl.load(x + offsets, mask=mask, other=0.0, cache_modifier=".ca", eviction_policy="evict_first")
    second = tl.load(x + BLOCK + offsets, cache_modifier=".cg", eviction_policy="evict_last")
    third = tl.load(x + offsets, mask=mask, volatile=True)
    scalar = tl.load(x, cache_modifier=".cv")
    tl.store(
        out + offsets, first + second + third + scalar, mask=mask, cache_modifier=".wt", eviction_policy="evict_last"
    )
    tl.store(out + BLOCK, scalar)


@kernel(x="*i64", n="i32", out="*fp32")
@triton.jit
def pointers_as_integers(x, n, out):
    base = tl.load(x + n).to(tl.pointer_type(tl.float32))
    tl.store(out, tl.load(base))
    distance = (base + 4).to(tl.int64) - base.to(tl.int64)
    tl.store(out + 1, distance.to(tl.float32))
    words = base.to(tl.pointer_type(tl.int32), bitcast=True)
    tl.store(words, 7)


@kernel(x="*fp16", out="*fp16", M="i32", N="i32", R=32, C=64)
@triton.jit
def descriptors(x, out, M, N, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [R, C])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [R, C], padding_option="nan")
    for column in range(0, N, C):
        tile = source.load([tl.program_id(0) * R, column])
        target.store([tl.program_id(0) * R, column], tile + target.load([0, column]))
        target.atomic_add([0, column], tile)


@kernel(x="*fp16", index="*i32", out="*fp16", M="i32", N="i32", R=32, C=64)
@triton.jit
def descriptor_rows(x, index, out, M, N, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, C])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [1, C])
    rows = tl.load(index + tl.arange(0, R))
    target.scatter(source.gather(rows, 0), rows, 0)


@kernel(source="tensordesc<fp16[32,64]>", target="tensordesc<fp16[32,64]>", rows="i32")
@triton.jit
def host_descriptors(source, target, rows):
    for row in range(0, rows, 32):
        target.store([row, 0], source.load([row, 0]) * 2.0)


@kernel(x="*fp16", M="i32", N="i32", until=(3, 8), R=32, C=64)
@triton.jit
def block_pointers(x, M, N, R: tl.constexpr, C: tl.constexpr):
    block = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (R, C), (1, 0))
    for _ in range(0, M, R):
        tile = tl.load(block, boundary_check=(0, 1), padding_option="nan")
        tl.store(block, tile * 2.0, boundary_check=(0,))
        block = tl.advance(block, (R, 0))
