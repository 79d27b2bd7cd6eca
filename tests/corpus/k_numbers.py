# SPDX-License-Identifier: MIT
"""Arithmetic, casts and constants of every type; output, assertions, assembly."""

import triton
import triton.language as tl

from tests.corpus.registry import kernel


@kernel(x="*fp32", out="*fp32", BLOCK=64)
@triton.jit
def float_functions(x, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    a = tl.load(x + offsets)
    b = tl.exp(a) + tl.exp2(a) + tl.log(a) + tl.log2(a) + tl.sin(a) + tl.cos(a) + tl.erf(a)
    b += tl.sqrt(a) + tl.rsqrt(a) + tl.floor(a) + tl.ceil(a) + tl.abs(a) + tl.sigmoid(a)
    b += tl.sqrt_rn(a) + tl.div_rn(a, b) + tl.fma(a, b, a) + a % b - (-a)
    b += tl.maximum(a, b) + tl.minimum(a, b) + tl.clamp(a, -1.0, 1.0)
    b += tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL) + tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + offsets, tl.clamp(b, -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL))


@kernel(x="*i32", u="*u32", out="*i32", n="i32", BLOCK=64)
@triton.jit
def integer_functions(x, u, out, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    a, b = tl.load(x + offsets), tl.load(u + offsets)
    c = a // 3 + a % 5 + (a >> 2) + (a << 3) + (a & 7) + (a | 8) + (a ^ 9) + ~a - (-a) + tl.abs(a)
    d = b // 3 + b % 5 + (b >> 2) + tl.umulhi(b, b) + tl.maximum(b, 7) + tl.minimum(b, 9)
    c += tl.maximum(a, n) + tl.minimum(a, n) + tl.clamp(a.to(tl.float32), 0.0, 9.0).to(tl.int32)
    c += ((a < n) & (a != 0)).to(tl.int32) + (b <= 4).to(tl.int32) + (b > 5).to(tl.int32) + (a >= 3).to(tl.int32)
    tl.store(out + offsets, c + d.to(tl.int32, bitcast=True))


@kernel(x="*fp32", out="*fp32", BLOCK=64)
@triton.jit
def float_comparisons(x, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    a, b = tl.load(x + offsets), tl.load(x + BLOCK + offsets)
    c = tl.where(a < b, a, 0.0) + tl.where(a <= b, b, 1.0) + tl.where(a == b, 2.0, 3.0) + tl.where(a != a, 1.0, 0.0)
    tl.store(out + offsets, tl.where((a > b) & ~(a >= 1.0), c, -c))


@kernel(x="*fp32", h="*fp16", b="*bf16", d="*fp64", i="*i8", u="*u8", w="*i64", out="*fp32", BLOCK=64)
@triton.jit
def casts(x, h, b, d, i, u, w, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    a = tl.load(x + offsets)
    total = tl.load(h + offsets).to(tl.float32) + tl.load(b + offsets).to(tl.float32)
    total += tl.load(d + offsets).to(tl.float32) + tl.load(i + offsets).to(tl.float32)
    total += tl.load(u + offsets).to(tl.float32) + tl.load(w + offsets).to(tl.float32)
    tl.store(h + offsets, a.to(tl.float16))
    tl.store(b + offsets, a.to(tl.bfloat16))
    tl.store(d + offsets, a.to(tl.float64) * 0.1)
    tl.store(i + offsets, a.to(tl.int8))
    tl.store(u + offsets, a.to(tl.uint8))
    tl.store(w + offsets, tl.load(i + offsets).to(tl.int64) + (a > 0).to(tl.int64))
    bits = a.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    tl.store(
        out + offsets, total + bits.to(tl.float32, bitcast=True) + tl.load(h + offsets).to(tl.bfloat16).to(tl.float32)
    )


@kernel(x="*fp32", out="*fp32", e5="*fp8e5", e4="*fp8e4nv", BLOCK=64)
@triton.jit
def fp8_casts(x, out, e5, e4, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    a = tl.load(x + offsets)
    tl.store(e5 + offsets, a.to(tl.float8e5))
    tl.store(e4 + offsets, a.to(tl.float8e4nv, fp_downcast_rounding="rtne"))
    half = a.to(tl.float16, fp_downcast_rounding="rtz").to(tl.float32)
    tl.store(out + offsets, tl.load(e5 + offsets).to(tl.float32) + tl.load(e4 + offsets).to(tl.float32) + half)


@kernel(f="*fp32", h="*fp16", b="*bf16", d="*fp64", i="*i32", w="*i64", c="*i8", t="*i1", BLOCK=128)
@triton.jit
def constants(f, h, b, d, i, w, c, t, BLOCK: tl.constexpr):
    """Infinities, negative zero, NaN, values no short decimal gives, and the largest integers."""
    offsets = tl.arange(0, BLOCK)
    tl.store(f + offsets, tl.full((BLOCK,), -float("inf"), tl.float32))
    tl.store(f + BLOCK + offsets, tl.full((BLOCK,), float("nan"), tl.float32))
    tl.store(f + 2 * BLOCK + offsets, tl.full((BLOCK,), 0.1, tl.float32))
    tl.store(f + 3 * BLOCK, -0.0)
    tl.store(f + 3 * BLOCK + 1, float("inf"))
    tl.store(h + offsets, tl.full((BLOCK,), -float("inf"), tl.float16))
    tl.store(h + BLOCK, 1e-7)
    tl.store(b + offsets, tl.full((BLOCK,), float("inf"), tl.bfloat16))
    tl.store(b + BLOCK + offsets, tl.full((BLOCK,), -1.001, tl.bfloat16))
    tl.store(d + offsets, tl.full((BLOCK,), 0.1, tl.float64))
    tl.store(d + BLOCK + offsets, tl.full((BLOCK,), -float("inf"), tl.float64))
    tl.store(i + offsets, tl.full((BLOCK,), -2147483648, tl.int32))
    tl.store(w + offsets, tl.full((BLOCK,), 9223372036854775807, tl.int64))
    tl.store(c + offsets, tl.full((BLOCK,), -128, tl.int8))
    tl.store(t + offsets, tl.full((BLOCK,), True, tl.int1))
    tl.store(t + BLOCK, False)


@kernel(seed="i32", out="*fp32", bits="*i32", BLOCK=64)
@triton.jit
def random_numbers(seed, out, bits, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.rand(seed, offsets))
    tl.store(out + BLOCK + offsets, tl.randn(seed, offsets))
    tl.store(bits + offsets, tl.randint(seed, offsets))


@kernel(x="*fp32", n="i32", BLOCK=64)
@triton.jit
def output_and_checks(x, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x + offsets)
    tl.device_print('values of "x":', values, n)
    tl.device_print("bits", n, hex=True)
    tl.device_print("here")
    tl.device_assert(values >= 0, "x must not be negative\n")
    tl.device_assert(n > 0)
    tl.store(x + offsets, values)


@kernel(x="*fp32", y="*i32", BLOCK=64)
@triton.jit
def inline_assembly(x, y, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    a = tl.load(x + offsets)
    b = tl.inline_asm_elementwise("add.f32 $0, $1, $2;", "=f,f,f", [a, a], dtype=tl.float32, is_pure=True, pack=1)
    c, d = tl.inline_asm_elementwise(
        "{ mov.b32 $0, $2;\n mov.b32 $1, $2; }", "=r,=f,f", [b], dtype=(tl.int32, tl.float32), is_pure=False, pack=1
    )
    tl.store(x + offsets, d)
    tl.store(y + offsets, c)
