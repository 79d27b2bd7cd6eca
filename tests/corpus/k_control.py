# SPDX-License-Identifier: MIT
"""Control flow: loops, branches, early returns, functions."""

import triton
import triton.language as tl

from tests.corpus.registry import kernel


@triton.jit(noinline=True)
def outlined(a, n):
    if n > 3:
        return a + 1.0
    return a * 2.0


@triton.jit(noinline=True)
def outlined_store(p, a):
    tl.store(p, a)


@triton.jit(noinline=True)
def outlined_pair(a, b):
    return a + b, a - b


@kernel(x="*fp32", n="i32")
@triton.jit
def device_functions(x, n):
    value = outlined(tl.load(x), n)
    total, difference = outlined_pair(value, tl.load(x + 1))
    outlined_store(x, total * difference)


@kernel(x="*fp32", n="i32", BLOCK=64)
@triton.jit
def early_return(x, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid * BLOCK >= n:
        return
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets) + 1.0, mask=offsets < n)


@kernel(x="*fp32", n="i32", out="*i32")
@triton.jit
def scalar_while(x, n, out):
    steps = 0
    value = n
    while value > 1:
        if value % 2 == 0:  # noqa: SIM108 (a branch, and not a select, is wanted)
            value = value // 2
        else:
            value = 3 * value + 1
        steps += 1
    tl.store(out, steps)
    tl.store(x, value.to(tl.float32))


@kernel(x="*fp32", out="*fp32", limit="fp32", BLOCK=64)
@triton.jit
def tensor_while(x, out, limit, BLOCK: tl.constexpr):
    """Tensors carried by a while loop, and one picked by a branch."""
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x + offsets)
    rounds = 0
    while tl.max(values, 0) > limit:
        values = values * 0.5
        rounds += 1
    if rounds > 3:
        result = values + 1.0
        scale = 2.0
    else:
        result = values
        scale = 0.5
    tl.store(out + offsets, result * scale)


@kernel(out="*i64", n="u32", m="u64")
@triton.jit
def unsigned_loops(out, n, m):
    total = m * 0
    for i in tl.range(0, n):
        total += i
    for j in range(m):
        total += j
    tl.store(out, total.to(tl.int64))


@kernel(x="*fp32", n="i32", BLOCK=64)
@triton.jit
def loop_hints(x, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for i in tl.range(0, n, num_stages=3, loop_unroll_factor=2, disallow_acc_multi_buffer=True):
        tl.store(x + i * BLOCK + offsets, tl.load(x + i * BLOCK + offsets) * 2.0)
    for i in tl.static_range(3):
        tl.store(x + i, 0.0)
    for i in tl.range(n, 0, -1, warp_specialize=False):
        tl.store(x + i, 1.0)
    for i in tl.range(0, n, flatten=True, warp_specialize=True, disable_licm=True):
        tl.store(x + i, 2.0)
    while tl.condition(n > 0, disable_licm=True):
        n = tl.load(x + n).to(tl.int32)


@kernel(x="*fp32", n="i32", m="i32")
@triton.jit
def nested_loops(x, n, m):
    total = 0.0
    for i in range(n):
        row = 0.0
        for j in range(i, m):
            if (i + j) % 2 == 0:
                row += tl.load(x + i * m + j)
        if row > 0:
            total += row
    tl.store(x, total)


@kernel(x="*fp32", n="i32", FLAG=True, NOTHING=None)
@triton.jit
def static_branches(x, n, FLAG: tl.constexpr, NOTHING: tl.constexpr):
    if FLAG and NOTHING is None:
        tl.store(x, 1.0)
    else:
        tl.store(x, 2.0)
    for axis in tl.static_range(3):
        tl.store(x + axis, tl.program_id(axis).to(tl.float32) / tl.num_programs(axis))
    tl.assume(n > 0)
    tl.store(x + n, tl.where(n > 4, 1.0, 2.0))
