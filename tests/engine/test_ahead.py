# SPDX-License-Identifier: MIT
"""Asking for memory ahead of time, and loops in two versions: what is emitted, and that results stay the same."""

from __future__ import annotations

import re

import pytest
import torch
import triton
import triton.language as tl

from triton_dist import knobs
from triton_dist.backends.cpu.codegen import dot
from triton_dist.backends.cpu.native import target

WRITE, READ = r"@\"llvm\.prefetch\.p0\"\(.*i32 1, i32 2", r"@\"llvm\.prefetch\.p0\"\(.*i32 0, i32 2"


@triton.jit
def softmax(out, x, stride_x, stride_out, rows, columns, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        offsets = tl.arange(0, BLOCK)
        mask = offsets < columns
        values = tl.load(x + row * stride_x + offsets, mask=mask, other=-float("inf"))
        exps = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * stride_out + offsets, exps / tl.sum(exps, axis=0), mask=mask)


@triton.jit
def centre(out, x, columns, BLOCK: tl.constexpr):
    """One row a program."""
    offsets = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    values = tl.load(x + offsets, mask=mask, other=0.0)
    tl.store(out + offsets, values - tl.sum(values, axis=0) / columns, mask=mask)


def versions() -> int:
    """How often the loops of a tile with a mask are emitted: twice where masks cost something."""
    return 1 if target.host().cheap_masks else 2


def softmaxed(rows: int, columns: int, block: int) -> tuple[torch.Tensor, triton.compiler.CompiledKernel]:
    x = torch.randn(rows, columns)
    out = torch.full_like(x, float("nan"))
    kernel = softmax[(3,)](out, x, columns, columns, rows, columns, BLOCK=block)
    torch.testing.assert_close(out, torch.softmax(x, 1), rtol=1e-5, atol=1e-6)
    return out, kernel


@pytest.mark.parametrize(("rows", "columns"), [(7, 512), (5, 501), (1, 300), (64, 257)])
def test_rows_and_results_are_asked_for_ahead(rows: int, columns: int) -> None:
    _, kernel = softmaxed(rows, columns, 512)
    text = kernel.asm["llir"]
    # The result, from the exponentials' loop: four lines a chunk of 64 elements. The next row, from the store's: two
    # lines a chunk of 32. And one line of each ahead of the maximum's loop.
    assert len(re.findall(WRITE, text)) == 1 + 4 * versions()
    assert len(re.findall(READ, text)) == 1 + 2 * versions()
    first, later = text.index("llvm.prefetch"), [m.start() for m in re.finditer(READ, text)][-1]
    assert first < text.index("llvm.masked.load") < later


def test_small_tiles_are_left_to_the_hardware() -> None:
    _, kernel = softmaxed(5, 64, 64)
    assert "prefetch" not in kernel.asm["llir"]


def test_the_checked_mode_asks_for_nothing() -> None:
    knobs.check_bounds = True
    try:
        _, kernel = softmaxed(5, 500, 512)
    finally:
        knobs.check_bounds = False
    assert "prefetch" not in kernel.asm["llir"]


def test_a_loop_that_reads_does_not_ask_for_more_to_read() -> None:
    x = torch.randn(9, 1000)
    out = torch.empty_like(x)
    kernel = centre[(9,)](out, x, 1000, BLOCK=1024)
    torch.testing.assert_close(out, x - x.mean(1, keepdim=True))
    text = kernel.asm["llir"]
    summing, storing = text.split("extractelement", 1)
    assert re.search(WRITE, summing)
    assert not re.search(READ, summing), "it reads already"
    assert re.search(READ, storing)


@triton.jit
def normalise(out, x, columns, BLOCK: tl.constexpr):
    """One row a program, in three loops."""
    offsets = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    values = tl.load(x + offsets, mask=mask, other=0.0)
    values = tl.where(mask, values - tl.sum(values, axis=0) / columns, 0.0)
    tl.store(out + offsets, values / tl.sqrt(tl.sum(values * values, axis=0) / columns), mask=mask)


def test_a_loop_that_only_computes_asks_for_the_next_program() -> None:
    x = torch.randn(9, 1000)
    out = torch.empty_like(x)
    kernel = normalise[(9,)](out, x, 1000, BLOCK=1024)
    torch.testing.assert_close(out, torch.nn.functional.layer_norm(x, (1000,), eps=0), rtol=1e-4, atol=1e-5)
    assert re.search(READ, kernel.asm["llir"])
    assert re.search(WRITE, kernel.asm["llir"])


@triton.jit
def rows_by_index(out, index, x, columns, BLOCK: tl.constexpr):
    """Where a row goes is read from memory between two stores: that cannot be known ahead."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(x + row * columns + offsets, mask=mask, other=0.0)
    total = tl.sum(values, axis=0)
    tl.store(index + row, (row + 1) % tl.num_programs(0))
    target = tl.load(index + row + tl.zeros((BLOCK,), tl.int32))
    tl.store(out + target * columns + offsets, values + total, mask=mask)


def test_addresses_that_come_from_memory_wait_their_turn() -> None:
    x, index = torch.randn(6, 500), torch.zeros(6, dtype=torch.int32)
    out = torch.empty_like(x)
    rows_by_index[(6,)](out, index, x, 500, BLOCK=512)
    torch.testing.assert_close(out, (x + x.sum(1, keepdim=True)).roll(1, 0), rtol=1e-4, atol=1e-4)


@triton.jit(noinline=True)
def add_total(out, x, row, columns, BLOCK: tl.constexpr):
    offsets = row * columns + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    values = tl.load(x + offsets, mask=mask, other=0.0)
    tl.store(out + offsets, values + tl.sum(values, axis=0), mask=mask)


@triton.jit
def twice(out, x, columns, BLOCK: tl.constexpr):
    if tl.program_id(0) == 0:
        add_total(out, x, 0, columns, BLOCK)
    else:
        add_total(out, x, 2, columns, BLOCK)
    add_total(out, x, 2 * tl.program_id(0) + 1, columns, BLOCK)


def test_a_function_called_twice_has_its_own_addresses_each_time() -> None:
    x = torch.randn(4, 500)
    out = torch.full_like(x, float("nan"))
    twice[(2,)](out, x, 500, BLOCK=512)
    torch.testing.assert_close(out, x + x.sum(1, keepdim=True), rtol=1e-4, atol=1e-4)


@triton.jit
def wrapped(out, x, n, k, BLOCK: tl.constexpr):
    """Columns modulo n, as Triton's matmul has them, under a mask that a scalar of the loop decides."""
    columns = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) % n
    rows = tl.arange(0, 16)
    total = tl.zeros((16, BLOCK), tl.float32)
    for first in range(0, k, 16):
        mask = rows[:, None] < k - first
        total += tl.load(x + (first + rows)[:, None] * n + columns[None, :], mask=mask, other=0.0)
    tl.store(out + rows[:, None] * n + columns[None, :], total)


@pytest.mark.parametrize(("n", "k"), [(128, 32), (100, 32), (128, 37), (64, 5)])
def test_wrapped_columns_are_gathered_only_where_they_wrap(n: int, k: int) -> None:
    x, out = torch.randn(k, n), torch.zeros(16, n)
    kernel = wrapped[(triton.cdiv(n, 64),)](out, x, n, k, BLOCK=64)
    padded = torch.cat([x, torch.zeros(-k % 16, n)]).view(-1, 16, n)
    torch.testing.assert_close(out, padded.sum(0), rtol=1e-5, atol=1e-5)
    text = kernel.asm["llir"]
    assert "llvm.masked.gather" in text
    loop = text[text.index("for.body:") :]
    assert re.search(r"= load <32 x float>, ptr", loop), "no version for columns that follow each other"


@triton.jit
def negate(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, -tl.load(x + offsets, mask=mask), mask=mask)


def test_kernels_that_only_move_memory_read_ahead_in_half_vectors() -> None:
    x, out = torch.randn(1000), torch.empty(1000)
    text = negate[(4,)](x, out, 1000, BLOCK=256).asm["llir"]
    assert torch.equal(out, -x)
    # Of 32 lanes, two lines; only where no masks are: where they are dear, that is also where x and out overlap.
    assert len(re.findall(READ, text)) == 2 * versions()


@triton.jit
def total(out, x, columns, BLOCK: tl.constexpr):
    """One row a program, read once."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + offsets, mask=offsets < columns, other=0.0)
    tl.store(out + row, tl.sum(values, axis=0))


@pytest.mark.parametrize(("columns", "block", "asks"), [(1000, 1024, True), (512, 512, True), (100, 128, False)])
def test_a_loop_that_only_reads_asks_for_a_line_of_a_later_page(columns: int, block: int, asks: bool) -> None:
    x = torch.randn(9, columns)
    out = torch.empty(9)
    kernel = total[(9,)](out, x, columns, BLOCK=block)
    torch.testing.assert_close(out, x.sum(1), rtol=1e-4, atol=1e-4)
    text = kernel.asm["llir"]
    # One in the version with masks, one in that without.
    assert len(re.findall(READ, text)) == (2 if asks else 0)
    assert len(re.findall(r"and i64 .*, -4096", text)) == (2 if asks else 0)


def test_what_memory_decides_has_half_vectors() -> None:
    """A sum of rows is faster so; exponentials are not."""
    x, out = torch.randn(9, 512), torch.empty(9)
    narrow = '"prefer-vector-width"="256"'
    wide = target.host().vector_bits == 512
    assert (narrow in total[(9,)](out, x, 512, BLOCK=512).asm["llir"]) == wide
    assert narrow not in softmaxed(5, 512, 512)[1].asm["llir"]


@triton.jit
def product(a, b, out, n, stride, K: tl.constexpr, BLOCK: tl.constexpr, CARRIED: tl.constexpr, WRAP: tl.constexpr):
    """Tiles of a (BLOCK, n) and b (n, BLOCK) along n: by pointers that move on, or by pointers made in each round."""
    rows, depth = tl.arange(0, BLOCK), tl.arange(0, K)
    if WRAP:
        rows = rows % n
    left, right = a + rows[:, None] * n + depth[None, :], b + depth[:, None] * stride + rows[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, n, K):
        if CARRIED:
            x, y = tl.load(left), tl.load(right)
            left += K
            right += K * stride
        else:
            x, y = tl.load(left + start), tl.load(right + start * stride)
        total = tl.dot(x, y, total, input_precision="ieee")
    tl.store(out + tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :], total)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize(("block", "depth"), [(64, 32), (32, 64), (16, 32)])
def test_a_dot_asks_for_what_it_multiplies_next(block: int, depth: int, carried: bool, wrap: bool) -> None:
    n = 4 * depth
    a, b, out = torch.randn(block, n), torch.randn(n, block), torch.empty(block, block)
    kernel = product[(1,)](a, b, out, n, block, K=depth, BLOCK=block, CARRIED=carried, WRAP=wrap)
    torch.testing.assert_close(out, a @ b, rtol=1e-4, atol=1e-4)
    text = kernel.asm["llir"]
    heights = len(dot.row_spans(block, 6)) if target.host().vector_registers == 16 else 1
    assert len(re.findall(READ, text)) == 2 * heights, "one for each operand and each height of a register tile"
    assert text.index("ask:") < text.index("fma"), "before it multiplies"


def test_a_dot_of_small_tiles_asks_for_nothing() -> None:
    a, b, out = torch.randn(8, 64), torch.randn(64, 8), torch.empty(8, 8)
    kernel = product[(1,)](a, b, out, 64, 8, K=16, BLOCK=8, CARRIED=True, WRAP=False)
    torch.testing.assert_close(out, a @ b, rtol=1e-4, atol=1e-4)
    assert "prefetch" not in kernel.asm["llir"]
