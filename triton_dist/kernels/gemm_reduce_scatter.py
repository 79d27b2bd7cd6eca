# SPDX-License-Identifier: MIT
# What a kernel receives is not what Python passes to it.
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
"""GEMM-ReduceScatter in one kernel: a program stores its tile where it belongs; the last ones add up what has come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist import shmem
from triton_dist.kernels.counted import call_done, call_number
from triton_dist.kernels.exchange import Collective, check_operand, one_at_a_time
from triton_dist.kernels.gemm import check_type, place_tile
from triton_dist.kernels.overlap import apart


@triton.jit
def _dot(
    a_ptr, b_ptr, rows, columns, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EVEN_M: tl.constexpr, EVEN_K: tl.constexpr,
):
    """A tile of A @ B. Rows and columns past the end are computed from others; who stores leaves them out."""
    inner = tl.arange(0, BLOCK_K)
    a_ptr += (rows if EVEN_M else rows % M)[:, None] * K + inner[None, :]
    b_ptr += inner[:, None] * N + (columns % N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        if EVEN_K:
            a, b = tl.load(a_ptr), tl.load(b_ptr)
        else:
            a = tl.load(a_ptr, mask=start + inner[None, :] < K, other=0.0)
            b = tl.load(b_ptr, mask=start + inner[:, None] < K, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
        a_ptr += BLOCK_K
        b_ptr += BLOCK_K * N
    return total


@triton.jit
def _add_up(
    c_ptr, came_ptr, row, column, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, OTHERS: tl.constexpr
):
    """To a tile of the own product, those of the others; some rows at a time, as registers are few."""
    ADD_M: tl.constexpr = tl.constexpr(min(64, BLOCK_M))
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    for part in range(0, BLOCK_M, ADD_M):
        rows = row * BLOCK_M + part + tl.arange(0, ADD_M)
        offsets = rows[:, None].to(tl.int64) * N + columns[None, :]
        inside = (rows[:, None] < M) & (columns[None, :] < N)
        sums = tl.load(c_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        for other in tl.static_range(OTHERS):  # all loads are on their way at once
            theirs_ptr = came_ptr + tl.cast(other, tl.int64) * M * N
            sums += tl.load(theirs_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        tl.store(c_ptr + offsets, sums.to(c_ptr.dtype.element_ty), mask=inside)


@triton_dist.jit
def gemm_reduce_scatter_kernel(
    a_ptr, b_ptr, c_ptr, stage_ptr, signal_ptr, count_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    EVEN_M: tl.constexpr, EVEN_K: tl.constexpr, OTHERS: tl.constexpr,
):
    """C = this PE's M rows of the sum over the PEs of A @ B: a program a tile, those of other PEs first.

    Only programs with tiles of the own rows wait, and only for programs that never do, on any PE; so programs of a PE
    need not run at the same time.
    """
    number = call_number(count_ptr)
    me = dl.rank()
    row_blocks, column_blocks = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    tiles = row_blocks * column_blocks
    step, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    target = (me + 1 + step) % (OTHERS + 1)
    row, column = place_tile(tile, row_blocks, column_blocks, GROUP)
    rows, columns = row * BLOCK_M + tl.arange(0, BLOCK_M), column * BLOCK_N + tl.arange(0, BLOCK_N)
    offsets = rows[:, None].to(tl.int64) * N + columns[None, :]
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    half = number % 2
    stage_ptr += half * OTHERS * M * N
    signal_ptr = dl.signal_slot(signal_ptr, (half * tiles + tile) * OTHERS)
    theirs_ptr = a_ptr + tl.cast(target, tl.int64) * M * K
    total = _dot(theirs_ptr, b_ptr, rows, columns, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, EVEN_M, EVEN_K)
    values = total.to(c_ptr.dtype.element_ty)
    if step < OTHERS:
        # A PE's product number `step` has the same number where it is summed.
        there_ptr = dl.symm_at(stage_ptr + tl.cast(step, tl.int64) * M * N, target)
        tl.store(there_ptr + offsets, values, mask=inside)
        dl.notify(dl.signal_slot(signal_ptr, step), target, signal=number, sig_op="set", comm_scope="intra_node")
    else:
        tl.store(c_ptr + offsets, values, mask=inside)
        came_ptr = dl.consume_token(stage_ptr, dl.wait_slots(signal_ptr, OTHERS, "sys", "acquire", waitValue=number))
        tl.debug_barrier()  # the tile is read by other threads than wrote it
        _add_up(c_ptr, came_ptr, row, column, M, N, BLOCK_M, BLOCK_N, OTHERS)
    call_done(count_ptr, number)


@dataclass(frozen=True)
class Tiles:
    """How the product is cut. The default is for Hopper and types of two bytes."""

    m: int = 128
    n: int = 256
    k: int = 64
    group: int = 16
    warps: int = 8
    stages: int = 4

    def fitting(self, device: torch.device, itemsize: int) -> Tiles:
        """With as many stages as the shared memory of a program holds; at least one."""
        properties: Any = torch.get_device_module(device).get_device_properties(device)
        room = getattr(properties, "shared_memory_per_block_optin", 0) // (self.k * (self.m + self.n) * itemsize)
        return replace(self, stages=max(1, min(self.stages, room)))


HOST = Tiles(64, 64, 32)


class GemmReduceScatter(Collective):
    """C = this PE's m rows of the sum over the PEs of A @ B; what is sent has the type of the result.

    Every PE makes the same calls in the same order. A CUDA graph may hold the calls. PEs that share a GPU do better
    with this than with `MatmulReduceScatter`'s copies.
    """

    def __init__(self, m: int, n: int, dtype: torch.dtype, *, tiles: Tiles | None = None) -> None:
        check_type("GemmReduceScatter", dtype, "MatmulReduceScatter")
        self.m, self.n, self.dtype = m, n, dtype
        device = shmem.device()
        self.tiles = tiles or (HOST if device.type == "cpu" else Tiles().fitting(device, dtype.itemsize))
        others = self._others = shmem.n_pes() - 1
        count = triton.cdiv(m, self.tiles.m) * triton.cdiv(n, self.tiles.n)
        self._programs = (others + 1) * count
        self._stage = shmem.create_tensor((2, max(1, others), m, n), dtype)
        self._signals = shmem.create_signals(2 * count * max(1, others))
        self._numbers = torch.zeros(self._programs, dtype=torch.int64, device=device)
        self._result = torch.empty((m, n), dtype=dtype, device=device)

    @one_at_a_time
    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply this PE's `a` (n_pes * m x k) by its `b` (k x n), sum over the PEs; valid until the next call."""
        check_operand("GemmReduceScatter", "a", a, (shmem.n_pes() * self.m, None), self.dtype, self._result.device)
        check_operand("GemmReduceScatter", "b", b, (a.shape[1], self.n), self.dtype, self._result.device)
        # Programs store their tiles while others still read.
        a, b = (apart(operand, self._result).contiguous() for operand in (a, b))
        tiles, k = self.tiles, a.shape[1]
        gemm_reduce_scatter_kernel[(self._programs,)](
            a, b, self._result, self._stage, self._signals, self._numbers, self.m, self.n, k,
            BLOCK_M=tiles.m, BLOCK_N=tiles.n, BLOCK_K=tiles.k, GROUP=tiles.group,
            EVEN_M=self.m % tiles.m == 0, EVEN_K=k % tiles.k == 0, OTHERS=self._others,
            num_warps=tiles.warps, num_stages=tiles.stages,
        )  # fmt: skip
        return self._result

    def free(self) -> None:
        """Give the memory back. Collective; waits until no PE uses it."""
        shmem.barrier_all()
        for tensor in (self._signals, self._stage):
            shmem.free_tensor(tensor)
