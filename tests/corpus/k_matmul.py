# SPDX-License-Identifier: MIT
"""Tutorials 3, 8, 9 and 10: matrix products, tiled, grouped, persistent and block scaled."""

import triton
import triton.language as tl

from tests.corpus.registry import kernel


@triton.jit
def leaky(x):
    return tl.where(x >= 0, x, 0.01 * x)


@kernel(
    a="*fp16/16", b="*fp16/16", c="*fp16/16", M="i32", N="i32", K="i32", stride_am="i32/16", stride_ak=1,
    stride_bk="i32/16", stride_bn=1, stride_cm="i32", stride_cn=1, BM=64, BN=64, BK=32, GROUP=8, ACTIVATE=True,
)  # fmt: skip
@triton.jit
def matmul(
    a, b, c, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACTIVATE: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = pid // (GROUP * tiles_n)
    first = group * GROUP
    size = min(tiles_m - first, GROUP)
    pid_m = first + ((pid % (GROUP * tiles_n)) % size)
    pid_n = (pid % (GROUP * tiles_n)) // size
    rows = (pid_m * BM + tl.arange(0, BM)) % M
    columns = (pid_n * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    a_ptrs = a + (rows[:, None] * stride_am + inner[None, :] * stride_ak)
    b_ptrs = b + (inner[:, None] * stride_bk + columns[None, :] * stride_bn)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = tl.load(a_ptrs, mask=inner[None, :] < K - k * BK, other=0.0)
        right = tl.load(b_ptrs, mask=inner[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(left, right, acc)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    if ACTIVATE:
        acc = leaky(acc)
    out_rows = pid_m * BM + tl.arange(0, BM)
    out_columns = pid_n * BN + tl.arange(0, BN)
    c_ptrs = c + stride_cm * out_rows[:, None] + stride_cn * out_columns[None, :]
    tl.store(c_ptrs, acc.to(tl.float16), mask=(out_rows[:, None] < M) & (out_columns[None, :] < N))


@kernel(a="*fp32", b="*fp32", c="*fp32", K="i32", BLOCK=32)
@triton.jit
def matmul_exact(a, b, c, K, BLOCK: tl.constexpr):
    """One tile in fp32, with IEEE precision."""
    offsets = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        left = tl.load(a + offsets[:, None] * K + (k + offsets)[None, :])
        right = tl.load(b + (k + offsets)[:, None] * BLOCK + offsets[None, :])
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.store(c + offsets[:, None] * BLOCK + offsets[None, :], acc)


@kernel(a="*i8", b="*i8", c="*i32", BLOCK=64)
@triton.jit
def matmul_int8(a, b, c, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tile = offsets[:, None] * BLOCK + offsets[None, :]
    tl.store(c + tile, tl.dot(tl.load(a + tile), tl.load(b + tile).T))


@kernel(a="*fp8e5", b="*fp8e5", c="*fp32", BLOCK=64)
@triton.jit
def matmul_fp8(a, b, c, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tile = offsets[:, None] * BLOCK + offsets[None, :]
    tl.store(c + tile, tl.dot(tl.load(a + tile), tl.load(b + tile), max_num_imprecise_acc=32))


@kernel(
    a_ptrs="*i64", b_ptrs="*i64", c_ptrs="*i64", sizes="*i32", strides="*i32", groups="i32", SMS=4, BM=32, BN=32, BK=32
)
@triton.jit
def grouped_matmul(
    a_ptrs, b_ptrs, c_ptrs, sizes, strides, groups,
    SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Pointers come from memory; a loop inside a loop hands out the tiles."""
    tile = tl.program_id(0)
    end = 0
    for g in range(groups):
        m, n, k = tl.load(sizes + g * 3), tl.load(sizes + g * 3 + 1), tl.load(sizes + g * 3 + 2)
        tiles_n = tl.cdiv(n, BN)
        count = tl.cdiv(m, BM) * tiles_n
        while tile >= end and tile < end + count:
            a = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float16))
            b = tl.load(b_ptrs + g).to(tl.pointer_type(tl.float16))
            c = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float16))
            lda, ldb, ldc = tl.load(strides + g * 3), tl.load(strides + g * 3 + 1), tl.load(strides + g * 3 + 2)
            index = tile - end
            rows = (index // tiles_n) * BM + tl.arange(0, BM)
            columns = (index % tiles_n) * BN + tl.arange(0, BN)
            inner = tl.arange(0, BK)
            left = a + rows[:, None] * lda + inner[None, :]
            right = b + inner[:, None] * ldb + columns[None, :]
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for _ in range(0, tl.cdiv(k, BK)):
                tl.multiple_of(left, [16, 16])
                tl.multiple_of(right, [16, 16])
                acc += tl.dot(tl.load(left), tl.load(right))
                left += BK
                right += BK * ldb
            tl.store(c + rows[:, None] * ldc + columns[None, :], acc.to(tl.float16))
            tile += SMS
        end += count


@kernel(a="*fp16", b="*fp16", c="*fp16", M="i32", N="i32", K="i32", SMS=4, BM=64, BN=64, BK=64)
@triton.jit
def persistent_matmul(a, b, c, M, N, K, SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    total = tl.cdiv(M, BM) * tiles_n
    for tile in tl.range(tl.program_id(0), total, SMS, flatten=True):
        start_m, start_n = (tile // tiles_n) * BM, (tile % tiles_n) * BN
        rows, columns = start_m + tl.arange(0, BM), start_n + tl.arange(0, BN)
        rows = tl.max_contiguous(tl.multiple_of(tl.where(rows < M, rows, 0), BM), BM)
        columns = tl.max_contiguous(tl.multiple_of(tl.where(columns < N, columns, 0), BN), BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            inner = k * BK + tl.arange(0, BK)
            left = tl.load(a + rows[:, None] * K + inner[None, :], mask=inner[None, :] < K, other=0.0)
            right = tl.load(b + inner[:, None] * N + columns[None, :], mask=inner[:, None] < K, other=0.0)
            acc = tl.dot(left, right, acc)
        out_rows, out_columns = start_m + tl.arange(0, BM), start_n + tl.arange(0, BN)
        mask = (out_rows[:, None] < M) & (out_columns[None, :] < N)
        tl.store(c + out_rows[:, None] * N + out_columns[None, :], acc.to(tl.float16), mask=mask)


@kernel(a="*fp16", b="*fp16", c="*fp16", M="i32", N="i32", K="i32", BM=64, BN=64, BK=64)
@triton.jit
def descriptor_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    right = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    out = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    start_m, start_n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        acc = tl.dot(left.load([start_m, k * BK]), right.load([start_n, k * BK]).T, acc)
    out.store([start_m, start_n], acc.to(tl.float16))


@kernel(a="*u8", a_scale="*u8", b="*u8", b_scale="*u8", c="*fp32", K="i32", BM=128, BN=128, BK=128)
@triton.jit
def block_scaled_matmul(a, a_scale, b, b_scale, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Two fp4 numbers a byte; a scale for each 32 of them."""
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    inner, scales = tl.arange(0, BK // 2), tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * (K // 2) + (k // 2 + inner)[None, :])
        right = tl.load(b + (k // 2 + inner)[:, None] * BN + columns[None, :])
        left_scale = tl.load(a_scale + rows[:, None] * (K // 32) + (k // 32 + scales)[None, :])
        right_scale = tl.load(b_scale + columns[:, None] * (K // 32) + (k // 32 + scales)[None, :])
        acc = tl.dot_scaled(left, left_scale, "e2m1", right, right_scale, "e2m1", acc)
    tl.store(c + rows[:, None] * BN + columns[None, :], acc)


@kernel(a="*fp8e5", b="*fp8e4nv", scale="*u8", c="*fp32", BLOCK=64)
@triton.jit
def half_scaled_matmul(a, b, scale, c, BLOCK: tl.constexpr):
    """One operand has scales, the other has none."""
    offsets = tl.arange(0, BLOCK)
    tile = offsets[:, None] * BLOCK + offsets[None, :]
    scales = tl.load(scale + offsets[:, None] * 2 + tl.arange(0, 2)[None, :])
    product = tl.dot_scaled(tl.load(a + tile), scales, "e5m2", tl.load(b + tile), None, "e4m3")
    tl.store(c + tile, product)
