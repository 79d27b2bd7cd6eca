# SPDX-License-Identifier: MIT
"""Tutorials 1, 2, 4 and 7: element-wise kernels, softmax, dropout, functions of a device library."""

import triton
import triton.language as tl
from triton.language.extra import libdevice

from tests.corpus.registry import kernel


@kernel(x="*fp32/16", y="*fp32/16", out="*fp32/16", n="i32", BLOCK=1024)
@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, total, mask=mask)


@kernel(x="*bf16", out="*bf16", n="i32", scale="fp32", BLOCK=256)
@triton.jit
def scale_bf16(x, out, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    values = tl.load(x + offsets, mask=mask, other=1.0).to(tl.float32)
    tl.store(out + offsets, (values * scale).to(tl.bfloat16), mask=mask)


@kernel(out="*fp32", x="*fp32", x_stride="i32", out_stride="i32", rows="i32", columns="i32", BLOCK=512, STAGES=4)
@triton.jit
def fused_softmax(out, x, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    first, step = tl.program_id(0), tl.num_programs(0)
    for row in tl.range(first, rows, step, num_stages=STAGES):
        offsets = tl.arange(0, BLOCK)
        mask = offsets < columns
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * out_stride + offsets, powers / tl.sum(powers, axis=0), mask=mask)


@kernel(x="*fp16", out="*fp16", columns="i32", BLOCK=256)
@triton.jit
def softmax_half(x, out, columns, BLOCK: tl.constexpr):
    """-inf in fp16: one of the constants that must not become 64512.0."""
    offsets = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    values = tl.load(x + offsets, mask=mask, other=-float("inf"))
    powers = tl.exp((values - tl.max(values, 0)).to(tl.float32))
    tl.store(out + offsets, (powers / tl.sum(powers, 0)).to(tl.float16), mask=mask)


@kernel(x="*fp32", keep="*i1", out="*fp32", n="i32", p="fp32", BLOCK=256)
@triton.jit
def dropout_given(x, keep, out, n, p, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    kept = tl.load(keep + offsets, mask=mask)
    values = tl.load(x + offsets, mask=mask)
    tl.store(out + offsets, tl.where(kept, values / (1 - p), 0.0), mask=mask)


@kernel(x="*fp32", out="*fp32", n="i32", p="fp32", seed="i32", BLOCK=256)
@triton.jit
def dropout_seeded(x, out, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    kept = tl.rand(seed, offsets) > p
    values = tl.load(x + offsets, mask=mask)
    tl.store(out + offsets, tl.where(kept, values / (1 - p), 0.0), mask=mask)


@kernel(x="*fp32", out="*fp32", n="i32", BLOCK=256)
@triton.jit
def library_function(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    values = tl.load(x + offsets, mask=mask)
    tl.store(out + offsets, libdevice.asin(values) + libdevice.pow(values, 2.0), mask=mask)


@kernel(source="*kfp32", target="*fp32", BLOCK=64)
@triton.jit
def const_pointer(source, target, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(target + offsets, tl.load(source + offsets))
