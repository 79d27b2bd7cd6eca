# SPDX-License-Identifier: MIT
"""What kernels that multiply share."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_dist.errors import ArgumentError

TYPES = frozenset({
    torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
})  # fmt: skip
"""Numbers of which Triton makes products. Torch has others of a byte, which are exponents or pairs of numbers."""


def check_type(op: str, dtype: torch.dtype, instead: str) -> None:
    """Tiles are summed in fp32."""
    if dtype not in TYPES:
        detail = f"it multiplies floats of up to 32 bits, not {dtype}. {instead} multiplies whatever torch does"
        raise ArgumentError(op=op, detail=detail)


@triton.jit
def place_tile(tile, rows, columns, GROUP: tl.constexpr):
    """Row and column of a tile: neighbouring tiles share rows of A and columns of B, which then stay in the cache."""
    in_group = GROUP * columns
    group = tile // in_group
    first = group * GROUP
    size = tl.minimum(rows - first, GROUP)
    return first + tile % in_group % size, tile % in_group // size


@triton.jit
def dot_tile(
    a_ptr, b_ptr, rows, columns, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """One fp32 tile of A @ B; A is M x K and B is K x N, both row-major."""
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * N + columns[None, :], mask=b_mask, other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision="ieee")
    return accumulator
