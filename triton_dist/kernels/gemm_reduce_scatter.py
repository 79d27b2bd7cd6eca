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
from triton_dist.kernels.collective import Collective, one_at_a_time
from triton_dist.kernels.counted import call_done, call_number
from triton_dist.kernels.device import multiprocessors_of, properties_of
from triton_dist.kernels.gemm import check_type, place_tile
from triton_dist.kernels.operands import check_operand
from triton_dist.kernels.overlap import apart, laid_out
from triton_dist.kernels.sizes import check_blocks, check_counts, make_plain


@triton.jit
def _dot(
    a_ptr, b_ptr, row, column, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EVEN_M: tl.constexpr, EVEN_K: tl.constexpr,
):
    """A tile of A @ B. Rows and columns past the end are computed from others; who stores leaves them out."""
    rows, columns = row + tl.arange(0, BLOCK_M), column + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptr += (rows if EVEN_M else rows % M)[:, None].to(tl.int64) * K + inner[None, :]
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
def _dot_described(a, b, row, column, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """The same by tensor descriptors: copied in bulk, with no register spent on addresses."""
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        total = tl.dot(a.load([row, start]), b.load([start, column]), total, input_precision="ieee")
    return total


@triton.jit
def _add_up(
    c_ptr, came_ptr, row, column, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, OTHERS: tl.constexpr
):
    """To a tile of the own product, those of the others; some rows at a time, as registers are few."""
    ADD_M: tl.constexpr = tl.constexpr(min(64, BLOCK_M))
    columns = column + tl.arange(0, BLOCK_N)
    for part in range(0, BLOCK_M, ADD_M):
        rows = row + part + tl.arange(0, ADD_M)
        offsets = rows[:, None].to(tl.int64) * N + columns[None, :]
        inside = (rows[:, None] < M) & (columns[None, :] < N)
        sums = tl.load(c_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        for other in tl.static_range(OTHERS):  # all loads are on their way at once
            theirs_ptr = came_ptr + tl.cast(other, tl.int64) * M * N
            sums += tl.load(theirs_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        tl.store(c_ptr + offsets, sums.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _store(ptr, values, row, column, M, N):
    rows, columns = row + tl.arange(0, values.shape[0]), column + tl.arange(0, values.shape[1])
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(ptr + rows[:, None].to(tl.int64) * N + columns[None, :], values.to(ptr.dtype.element_ty), mask=inside)


@triton.jit
def _product(
    a, b, pe, tile, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    EVEN_M: tl.constexpr, EVEN_K: tl.constexpr, DESCRIBED: tl.constexpr,
):
    """A tile of the rows that belong to `pe`, and its first row and column."""
    row, column = place_tile(tile, tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP)
    row, column = row * BLOCK_M, column * BLOCK_N
    if DESCRIBED:
        total = _dot_described(a, b, pe * M + row, column, K, BLOCK_M, BLOCK_N, BLOCK_K)
    else:
        a_ptr = a + tl.cast(pe, tl.int64) * M * K
        total = _dot(a_ptr, b, row, column, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, EVEN_M, EVEN_K)
    return total, row, column


@triton.jit
def _tell(slots, tile, target, number, OTHERS: tl.constexpr, NEAR: tl.constexpr):
    """That a tile has come. `slots`: of the first tile; the target's own where it is near."""
    slot = dl.signal_slot(slots, tile * OTHERS)
    dl.notify(slot, target, signal=number, sig_op="set", comm_scope="gpu" if NEAR else "intra_node")


@triton.jit
def _give(
    a, b, stage_ptr, signal_ptr, number, step, first, tiles, chunks, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    EVEN_M: tl.constexpr, EVEN_K: tl.constexpr, OTHERS: tl.constexpr, DESCRIBED: tl.constexpr, NEAR: tl.constexpr,
):
    """Tiles `first`, `first` + `chunks`, ... of what the PE that is `step` + 1 places on is to sum."""
    target = (dl.rank() + 1 + step) % (OTHERS + 1)
    # A PE's product number `step` has the same number where it is summed.
    there_ptr = dl.symm_at(stage_ptr + tl.cast(step, tl.int64) * M * N, target)
    slots = dl.signal_slot(signal_ptr, step)
    if NEAR:
        slots = dl.symm_at(slots, target)
    for tile in range(first, tiles, chunks):
        total, row, column = _product(
            a, b, target, tile, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP, EVEN_M, EVEN_K, DESCRIBED
        )
        # That the tile before has come is said only now: its stores are done, and nothing waits for them.
        if tile != first:
            _tell(slots, tile - chunks, target, number, OTHERS, NEAR)
        _store(there_ptr, total, row, column, M, N)
    _tell(slots, first + (tiles - 1 - first) // chunks * chunks, target, number, OTHERS, NEAR)


@triton.jit
def _sum(
    a, b, came, c_ptr, stage_ptr, slots, number, tile, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, SUMS: tl.constexpr,
    EVEN_M: tl.constexpr, EVEN_K: tl.constexpr, OTHERS: tl.constexpr, DESCRIBED: tl.constexpr, NEAR: tl.constexpr,
):
    """A tile of the own rows. `slots`: its signals, of the others."""
    total, row, column = _product(
        a, b, dl.rank(), tile, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP, EVEN_M, EVEN_K, DESCRIBED
    )
    token = dl.wait_slots(slots, OTHERS, "gpu" if NEAR else "sys", "acquire", waitValue=number)
    if DESCRIBED:
        theirs = dl.consume_token(came, token)
        row_there = (number % 2).to(tl.int32) * OTHERS * M + row
        for other in tl.range(0, OTHERS, num_stages=SUMS):
            total += theirs.load([row_there + other * M, column]).to(tl.float32)
        _store(c_ptr, total, row, column, M, N)
    else:
        _store(c_ptr, total, row, column, M, N)
        came_ptr = dl.consume_token(stage_ptr, token)
        tl.debug_barrier()  # the tile is read by other threads than wrote it
        _add_up(c_ptr, came_ptr, row, column, M, N, BLOCK_M, BLOCK_N, OTHERS)


@triton_dist.jit
def gemm_reduce_scatter_kernel(
    a, b, came, c_ptr, stage_ptr, signal_ptr, count_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, CHUNK: tl.constexpr,
    SUMS: tl.constexpr, EVEN_M: tl.constexpr, EVEN_K: tl.constexpr, OTHERS: tl.constexpr, DESCRIBED: tl.constexpr,
    NEAR: tl.constexpr,
):
    """C = this PE's M rows of the sum over the PEs of A @ B: tiles of other PEs first, some a program; then the own.

    Only programs with tiles of the own rows wait, and only for programs that never do, on any PE; so programs of a PE
    need not run at the same time. `DESCRIBED`: A, B and what came are tensor descriptors, not pointers. `NEAR`: all
    PEs are on one device.
    """
    number = call_number(count_ptr)
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    chunks = tl.cdiv(tiles, CHUNK)
    half = number % 2
    stage_ptr += half * OTHERS * M * N
    signal_ptr = dl.signal_slot(signal_ptr, half * tiles * OTHERS)
    program = tl.program_id(0)
    step = program // chunks
    if step < OTHERS:
        _give(
            a, b, stage_ptr, signal_ptr, number, step, program % chunks, tiles, chunks, M, N, K,
            BLOCK_M, BLOCK_N, BLOCK_K, GROUP, EVEN_M, EVEN_K, OTHERS, DESCRIBED, NEAR,
        )  # fmt: skip
    else:
        tile = program - OTHERS * chunks
        slots = dl.signal_slot(signal_ptr, tile * OTHERS)
        _sum(
            a, b, came, c_ptr, stage_ptr, slots, number, tile, M, N, K,
            BLOCK_M, BLOCK_N, BLOCK_K, GROUP, SUMS, EVEN_M, EVEN_K, OTHERS, DESCRIBED, NEAR,
        )  # fmt: skip
    call_done(count_ptr, number)


@dataclass(frozen=True)
class Tiles:
    """How the product is cut. The default is for Hopper and types of two bytes.

    Raises:
        ArgumentError: m, n, k or warps is no power of two, or another number below 1.
    """

    m: int = 128
    n: int = 256
    k: int = 64
    """Rows, columns and depth of a tile."""
    group: int = 16
    """Rows of tiles that are done together, column by column, so that what they share stays in the cache."""
    warps: int = 8
    """Of a program."""
    stages: int = 4
    """Depths of a tile that are on their way at once."""
    sums: int = 3
    """Tiles of others that are on their way at once, where they are summed."""
    chunk: int = 4
    """Tiles of others that a program does one after the other."""

    def __post_init__(self) -> None:
        make_plain(self)
        check_blocks("Tiles", m=self.m, n=self.n, k=self.k, warps=self.warps)
        check_counts("Tiles", group=self.group, stages=self.stages, sums=self.sums, chunk=self.chunk)

    def fitting(self, device: torch.device, itemsize: int) -> Tiles:
        """With as many stages as the shared memory of a program holds; at least one."""
        shared = getattr(properties_of(device), "shared_memory_per_block_optin", 0)
        stages = shared // (self.k * (self.m + self.n) * itemsize)
        sums = shared // (self.m * self.n * itemsize)
        return replace(self, stages=max(1, min(self.stages, stages)), sums=max(1, min(self.sums, sums)))

    def spread(self, device: torch.device, count: int) -> Tiles:
        """With chunks so small that `count` tiles keep all multiprocessors busy."""
        return replace(self, chunk=max(1, min(self.chunk, count // multiprocessors_of(device))))


HOST = Tiles(64, 64, 32, chunk=1)


def _copies_in_bulk(device: torch.device) -> bool:
    """Whether descriptors are more than pointers to it: Hopper and later."""
    return device.type == "cuda" and torch.version.hip is None and properties_of(device).major >= 9


class GemmReduceScatter(Collective):
    """C = this PE's m rows of the sum over the PEs of A @ B; what is sent has the type of the result.

    Every PE makes the same calls in the same order. A CUDA graph may hold the calls. PEs that share a GPU do better
    with this than with `MatmulReduceScatter`'s copies.

    Args:
        m, n: rows and columns of the result.
        dtype: fp32, bf16, fp16 or an fp8 type; multiplied and summed in fp32.
        tiles: how the product is cut; by default for the device.
        descriptors: load tiles by tensor descriptors where operands allow it (rows of a multiple of 16 bytes); None: on
            Hopper and later.

    Raises:
        ArgumentError: the type is none.
        CollectiveMismatch: the PEs ask for different ones.
    """

    def __init__(
        self, m: int, n: int, dtype: torch.dtype, *, tiles: Tiles | None = None, descriptors: bool | None = None
    ) -> None:
        check_type("GemmReduceScatter", dtype, "MatmulReduceScatter")
        self.m, self.n, self.dtype = m, n, dtype
        device, others = shmem.device(), shmem.n_pes() - 1
        on_host = device.type == "cpu"
        wanted = _copies_in_bulk(device) if descriptors is None else descriptors
        # Loading by pointers, a program takes longer for several tiles than several programs do.
        best = HOST if on_host else Tiles() if wanted else Tiles(chunk=1)
        tiles = tiles or (best if on_host else best.fitting(device, dtype.itemsize))
        count = triton.cdiv(m, tiles.m) * triton.cdiv(n, tiles.n)
        self.tiles = tiles if on_host else tiles.spread(device, others * count)
        self._others, self._near = others, shmem.adapter().on_one_device()
        self._programs = others * triton.cdiv(count, self.tiles.chunk) + count
        self._stage = shmem.create_tensor((2, max(1, others), m, n), dtype)
        self._signals = shmem.create_signals(2 * count * max(1, others))
        self._numbers = torch.zeros(self._programs, dtype=torch.int64, device=device)
        self._result = torch.empty((m, n), dtype=dtype, device=device)
        self._came = _described(self._stage.flatten(0, 2), tiles.m, tiles.n) if wanted else None

    @one_at_a_time
    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply this PE's `a` (n_pes * m x k) by its `b` (k x n), sum over the PEs; valid until the next call.

        Raises:
            ArgumentError: an operand has another shape, type or device, or requires a gradient.
        """
        check_operand("GemmReduceScatter", "a", a, (shmem.n_pes() * self.m, None), self.dtype, self._result.device)
        check_operand("GemmReduceScatter", "b", b, (a.shape[1], self.n), self.dtype, self._result.device)
        # Programs store their tiles while others still read.
        a, b = (laid_out(apart(operand, self._result)) for operand in (a, b))
        tiles, k = self.tiles, a.shape[1]
        operands = self._as_descriptors(a, b)
        gemm_reduce_scatter_kernel[(self._programs,)](
            *(operands or (a, b, self._stage)), self._result, self._stage, self._signals, self._numbers,
            self.m, self.n, k, BLOCK_M=tiles.m, BLOCK_N=tiles.n, BLOCK_K=tiles.k, GROUP=tiles.group,
            CHUNK=tiles.chunk, SUMS=tiles.sums, EVEN_M=self.m % tiles.m == 0, EVEN_K=k % tiles.k == 0,
            OTHERS=self._others, DESCRIBED=operands is not None, NEAR=self._near,
            num_warps=tiles.warps, num_stages=tiles.stages,
        )  # fmt: skip
        return self._result

    def _as_descriptors(self, a: torch.Tensor, b: torch.Tensor) -> tuple[Any, Any, Any] | None:
        """Of A, B and what comes; None if one of them cannot be described."""
        if self._came is None:
            return None
        tiles = self.tiles
        found = _described(a, tiles.m, tiles.k), _described(b, tiles.k, tiles.n)
        return None if None in found else (*found, self._came)

    def _release(self) -> None:
        """Give the memory back. Collective; waits until no PE uses it."""
        shmem.barrier_all()
        for tensor in (self._signals, self._stage):
            shmem.free_tensor(tensor)


def _described(matrix: torch.Tensor, rows: int, columns: int) -> Any:
    """A descriptor of a contiguous matrix for tiles of so many rows and columns; None if it can have none.

    CUDA's driver wants an address and strides of whole 16 bytes (cuTensorMapEncodeTiled); Triton, tiles as wide.
    """
    height, width = matrix.shape
    whole = not (matrix.data_ptr() % 16 or width * matrix.itemsize % 16 or columns * matrix.itemsize % 16)
    if not matrix.numel() or not whole:
        return None
    from triton.tools.tensor_descriptor import TensorDescriptor

    # A matrix of one row counts as contiguous whatever its strides are.
    return TensorDescriptor(matrix, [height, width], [width, 1], [rows, columns])
