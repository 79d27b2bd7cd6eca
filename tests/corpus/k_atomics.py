# SPDX-License-Identifier: MIT
"""Atomics and waiting."""

import triton
import triton.language as tl

from tests.corpus.registry import kernel


@kernel(x="*i32", out="*i32", n="i32", BLOCK=64)
@triton.jit
def integer_atomics(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    values = tl.load(x + offsets, mask=mask, other=0)
    tl.atomic_add(out, tl.sum(values), sem="relaxed", scope="sys")
    tl.atomic_add(out + 1 + offsets, values, mask=mask, sem="release")
    tl.atomic_max(out + 1 + offsets, values, mask=mask)
    tl.atomic_min(out + 1 + offsets, values.to(tl.uint32, bitcast=True).to(tl.int32, bitcast=True))
    tl.atomic_and(out, 255)
    tl.atomic_or(out, 1, sem="acquire")
    tl.atomic_xor(out, 3, scope="cta")
    tl.store(x + offsets, tl.atomic_xchg(out + 1 + offsets, values, mask=mask))


@kernel(x="*u32", out="*u32", BLOCK=64)
@triton.jit
def unsigned_atomics(x, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.atomic_max(out + offsets, tl.load(x + offsets))
    tl.atomic_min(out + offsets, tl.load(x + offsets) >> 1)


@kernel(x="*fp32", half="*fp16", out="*fp32", BLOCK=64)
@triton.jit
def float_atomics(x, half, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x + offsets)
    tl.atomic_add(out + offsets, values)
    tl.atomic_add(half + offsets, values.to(tl.float16))
    tl.atomic_max(out + offsets, values)
    tl.atomic_min(out, tl.min(values, 0))


@kernel(lock="*i32", counter="*i64")
@triton.jit
def spin_lock(lock, counter):
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    tl.store(counter, tl.load(counter) + 1)
    tl.atomic_xchg(lock, 0, sem="release")


@kernel(flag="*i32", data="*fp32", out="*fp32", BLOCK=64)
@triton.jit
def spin_on_flag(flag, data, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        tl.store(data + offsets, offsets.to(tl.float32))
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        while tl.load(flag, volatile=True) != 1:
            pass
        tl.store(out + offsets, tl.load(data + offsets))


if hasattr(tl, "atomic_poll"):

    @kernel(since=(3, 9), flag="*i32", wide="*i64", out="*i32")
    @triton.jit
    def polled_flag(flag, wide, out):
        tl.atomic_store(flag, tl.atomic_load(flag, sem="relaxed") + 1, scope="sys")
        seen = tl.atomic_poll(flag, 1)
        in_time = tl.atomic_poll(wide, 2, sem="relaxed", scope="sys", timeout_ns=1000)
        tl.store(out, seen.to(tl.int32) + in_time.to(tl.int32))
