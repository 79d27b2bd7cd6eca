# SPDX-License-Identifier: MIT
"""What benchmarks/host_engine.py measures: kernels as users of Triton write them, each beside torch's function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from torch.nn import functional


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@triton.jit
def softmax_kernel(out, x, stride_x, stride_out, rows, columns, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        offsets = tl.arange(0, BLOCK)
        mask = offsets < columns
        values = tl.load(x + row * stride_x + offsets, mask=mask, other=-float("inf"))
        exps = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * stride_out + offsets, exps / tl.sum(exps, axis=0), mask=mask)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
                  BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * columns
    first = pid // in_group * GROUP
    size = min(rows - first, GROUP)
    pid_m = first + pid % in_group % size
    pid_n = pid % in_group // size
    offs_m = (pid_m * BM + tl.arange(0, BM)) % M
    offs_n = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_ptrs = a + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BK, other=0.0)
        right = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    out_m, out_n = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    c_ptrs = c + stride_cm * out_m[:, None] + stride_cn * out_n[None, :]
    tl.store(c_ptrs, total.to(c.dtype.element_ty), mask=(out_m[:, None] < M) & (out_n[None, :] < N))


@triton.jit
def gelu_kernel(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    values = tl.load(x + offsets, mask=mask)
    tl.store(out + offsets, 0.5 * values * (1 + tl.erf(values * 0.7071067811865476)), mask=mask)


@triton.jit
def silu_kernel(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    values = tl.load(x + offsets, mask=mask)
    tl.store(out + offsets, values * tl.sigmoid(values), mask=mask)


@triton.jit
def row_sum_kernel(x, out, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    values = tl.load(x + row * columns + offsets, mask=offsets < columns, other=0.0)
    tl.store(out + row, tl.sum(values, axis=0))


@triton.jit
def layer_norm_kernel(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    start = tl.program_id(0) * columns
    values = tl.load(x + start + offsets, mask=mask, other=0.0)
    values = tl.where(mask, values - tl.sum(values, axis=0) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(values * values, axis=0) / columns + eps)
    scaled = values * scale * tl.load(weight + offsets, mask=mask) + tl.load(bias + offsets, mask=mask)
    tl.store(out + start + offsets, scaled, mask=mask)


@triton.jit
def attention_kernel(q, k, v, out, length, scale, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Flash attention, forward, (heads, length, D)."""
    head = tl.program_id(1) * length * D
    row, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    query = tl.load(q + head + row[:, None] * D + d[None, :], mask=row[:, None] < length, other=0.0)
    # exp2 of scores in units of ln 2
    query *= scale * 1.4426950408889634
    top = tl.full([M], float("-inf"), tl.float32)
    norm = tl.zeros([M], tl.float32)
    total = tl.zeros([M, D], tl.float32)
    for start in range(0, length, N):
        column = start + tl.arange(0, N)
        there = column < length
        key = tl.load(k + head + column[None, :] * D + d[:, None], mask=there[None, :], other=0.0)
        scores = tl.where(there[None, :], tl.dot(query, key, input_precision="ieee"), float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        norm = norm * shrink + tl.sum(weights, 1)
        value = tl.load(v + head + column[:, None] * D + d[None, :], mask=there[:, None], other=0.0)
        total = tl.dot(weights, value, total * shrink[:, None], input_precision="ieee")
        top = higher
    tl.store(out + head + row[:, None] * D + d[None, :], total / norm[:, None], mask=row[:, None] < length)


@dataclass
class Case:
    """One kernel at one size, and what torch does for the same result."""

    name: str
    ours: Callable[[], Any]
    torchs: Callable[[], Any]
    work: float
    unit: str
    tolerance: float = 1e-5


def add_case() -> Case:
    n = 1 << 24
    x, y = torch.randn(n), torch.randn(n)
    out, expected = torch.empty(n), torch.empty(n)

    def ours() -> torch.Tensor:
        add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
        return out

    return Case("vector add, 1<<24 fp32", ours, lambda: torch.add(x, y, out=expected), 12 * n / 1e9, "GB/s")


def softmax_case() -> Case:
    rows, columns = 4096, 1024
    x = torch.randn(rows, columns)
    out, expected = torch.empty_like(x), torch.empty_like(x)

    def ours() -> torch.Tensor:
        softmax_kernel[(64,)](out, x, columns, columns, rows, columns, BLOCK=1024)
        return out

    return Case("softmax 4096x1024 fp32", ours, lambda: torch.softmax(x, 1, out=expected), 8 * x.numel() / 1e9, "GB/s")


def matmul_case(size: int, dtype: torch.dtype, blocks: tuple[int, int, int]) -> Case:
    a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    out, expected = torch.empty_like(a), torch.empty_like(a)
    bm, bn, bk = blocks
    grid = (triton.cdiv(size, bm) * triton.cdiv(size, bn),)

    def ours() -> torch.Tensor:
        matmul_kernel[grid](a, b, out, size, size, size, size, 1, size, 1, size, 1, BM=bm, BN=bn, BK=bk, GROUP=8)
        return out

    name = f"matmul {size}^3 {str(dtype).removeprefix('torch.')}, {bm}x{bn}x{bk}"
    tolerance = 1e-3 if dtype == torch.float32 else 0.5
    return Case(name, ours, lambda: torch.matmul(a, b, out=expected), 2 * size**3 / 1e9, "GFLOP/s", tolerance)


def unary_case(name: str, kernel: Any, torchs: Callable[..., Any], n: int = 1 << 22) -> Case:
    x = torch.randn(n)
    out, expected = torch.empty(n), torch.empty(n)

    def ours() -> torch.Tensor:
        kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
        return out

    return Case(f"{name}, 1<<22 fp32", ours, lambda: torchs(x, out=expected), 8 * n / 1e9, "GB/s")


def row_sum_case() -> Case:
    x, out, expected = torch.randn(4096, 1024), torch.empty(4096), torch.empty(4096)

    def ours() -> torch.Tensor:
        row_sum_kernel[(4096,)](x, out, 1024, BLOCK=1024)
        return out

    work = 4 * x.numel() / 1e9
    return Case("row sum 4096x1024 fp32", ours, lambda: torch.sum(x, 1, out=expected), work, "GB/s", 1e-4)


def layer_norm_case() -> Case:
    x, weight, bias = torch.randn(4096, 1024), torch.randn(1024), torch.randn(1024)
    out, expected = torch.empty_like(x), torch.empty_like(x)
    means = torch.empty(4096, 1), torch.empty(4096, 1)

    def ours() -> torch.Tensor:
        layer_norm_kernel[(4096,)](x, weight, bias, out, 1024, 1e-5, BLOCK=1024)
        return out

    def torchs() -> torch.Tensor:
        torch.ops.aten.native_layer_norm.out(
            x, [1024], weight, bias, 1e-5, out0=expected, out1=means[0], out2=means[1]
        )
        return expected

    return Case("layer norm 4096x1024 fp32", ours, torchs, 8 * x.numel() / 1e9, "GB/s", 1e-4)


def attention_case(heads: int = 8, length: int = 1024, d: int = 64) -> Case:
    q, k, v = (torch.randn(heads, length, d) for _ in range(3))
    out = torch.empty_like(q)

    def ours() -> torch.Tensor:
        attention_kernel[(triton.cdiv(length, 128), heads)](q, k, v, out, length, d**-0.5, D=d, M=128, N=64)
        return out

    def torchs() -> torch.Tensor:
        return functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]

    work = 4 * heads * length**2 * d / 1e9
    return Case("flash attention 8x1024x64 fp32, 128x64", ours, torchs, work, "GFLOP/s", 1e-4)


def cases(quick: bool) -> list[Case]:
    """All of them; `quick` leaves out what takes the interpreter, or torch, too long."""
    found = [
        add_case(),
        unary_case("gelu", gelu_kernel, torch.ops.aten.gelu.out),
        unary_case("silu", silu_kernel, torch.ops.aten.silu.out),
        row_sum_case(),
        softmax_case(),
        layer_norm_case(),
        attention_case(),
    ]
    found += [matmul_case(1024, torch.float32, blocks) for blocks in ((128, 128, 64), (64, 64, 32))]
    if not quick:
        found += [matmul_case(512, dtype, (128, 128, 64)) for dtype in (torch.float16, torch.bfloat16)]
    return found


def launch_case() -> Callable[[], Any]:
    """Sixteen programs that do next to nothing."""
    x, y, out = (torch.randn(1024) for _ in range(3))
    return lambda: add_kernel[(16,)](x, y, out, 1024, BLOCK=64)


def compile_cases() -> dict[str, list[Callable[[], Any]]]:
    """Launches that each compile a kernel anew, at sizes that no other measurement uses; each returns the kernel."""
    a, b, c = (torch.randn(128, 128) for _ in range(3))
    q, k, v, out = (torch.randn(2, 64, 32) for _ in range(4))

    def matmul(bm: int, bn: int, bk: int) -> Any:
        grid = (triton.cdiv(128, bm) * triton.cdiv(128, bn),)
        return matmul_kernel[grid](a, b, c, 128, 128, 128, 128, 1, 128, 1, 128, 1, BM=bm, BN=bn, BK=bk, GROUP=8)

    return {
        "vector add": [partial(add_kernel[(1,)], a, b, c, 1024, BLOCK=size) for size in (32, 64, 128)],
        "softmax": [partial(softmax_kernel[(1,)], c, a, 128, 128, 8, 128, BLOCK=size) for size in (128, 256, 512)],
        "matmul": [partial(matmul, *blocks) for blocks in ((128, 128, 64), (64, 64, 32), (64, 128, 32))],
        "flash attention": [
            partial(attention_kernel[(1, 2)], q, k, v, out, 64, 0.2, D=32, M=m, N=n)
            for m, n in ((32, 16), (32, 32), (64, 16))
        ],
    }
