# SPDX-License-Identifier: MIT
# pyright: reportArgumentType=false
"""AllGather-GEMM in one launch, tiled for Hopper, and the same GEMM alone. (GEMM-ReduceScatter: the library has it.)

Programs that communicate and programs that multiply are of one launch, so the ones can never keep the others from
running. What never waits comes first in the grid.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist import shmem
from triton_dist.kernels import GemmReduceScatter
from triton_dist.kernels.gemm import place_tile
from triton_dist.kernels.gemm_reduce_scatter import Tiles


@triton.jit
def _dot(a_ptr, b_ptr, row, column, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A tile of A @ B. The rows fill the tile; columns past the end are computed from others, and not stored."""
    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (column * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    inner = tl.arange(0, BLOCK_K)
    a = a_ptr + rows[:, None] * K + inner[None, :]
    b = b_ptr + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        total = tl.dot(tl.load(a), tl.load(b), total)
        a += BLOCK_K
        b += BLOCK_K * N
    return total


@triton.jit
def _store(c_ptr, total, row, column, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    offsets = rows[:, None] * N + columns[None, :]
    tl.store(c_ptr + offsets, total.to(c_ptr.dtype.element_ty), mask=columns[None, :] < N)


@triton.jit
def gemm_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    """No communication: what the others are measured against."""
    row, column = place_tile(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP)
    total = _dot(a_ptr, b_ptr, row, column, N, K, BLOCK_M, BLOCK_N, BLOCK_K)
    _store(c_ptr, total, row, column, N, BLOCK_M, BLOCK_N)


@triton.jit
def _push(
    a_ptr, gathered_ptr, signal_ptr, M, K, epoch, pusher,
    PUSHERS: tl.constexpr, BLOCK_M: tl.constexpr, COPY: tl.constexpr,
):
    """Push rows, a block at a time, to every other PE; first to the one that needs them first."""
    me, pes = dl.rank(), dl.num_ranks()
    blocks = M // BLOCK_M
    for step in range(1, pes):
        peer = (me + pes - step) % pes
        target = dl.symm_at(gathered_ptr + me * M * K, peer)
        for block in range(pusher, blocks, PUSHERS):
            begin = block * BLOCK_M * K
            for start in range(0, BLOCK_M * K, COPY):
                offsets = begin + start + tl.arange(0, COPY)
                tl.store(target + offsets, tl.load(a_ptr + offsets))
            dl.notify(signal_ptr + me * blocks + block, peer, signal=epoch, sig_op="set", comm_scope="intra_node")


@triton_dist.jit(do_not_specialize=["epoch"])
def all_gather_gemm_kernel(
    a_ptr, b_ptr, c_ptr, gathered_ptr, signal_ptr, M, N, K, epoch,
    PUSHERS: tl.constexpr, COPY: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    """C = (the shards of A of all PEs) @ B; M counts the rows of one shard."""
    program = tl.program_id(0)
    if program < PUSHERS:
        _push(a_ptr, gathered_ptr, signal_ptr, M, K, epoch, program, PUSHERS, BLOCK_M, COPY)
    else:
        me, pes = dl.rank(), dl.num_ranks()
        blocks = M // BLOCK_M
        tiles = blocks * tl.cdiv(N, BLOCK_N)
        tile = program - PUSHERS
        step = tile // tiles
        source = (me + step) % pes
        row, column = place_tile(tile % tiles, blocks, tl.cdiv(N, BLOCK_N), GROUP)
        shard = a_ptr
        if step > 0:
            token = dl.wait(signal_ptr + source * blocks + row, 1, "sys", "acquire", waitValue=epoch)
            shard = dl.consume_token(gathered_ptr + source * M * K, token)
        total = _dot(shard, b_ptr, row, column, N, K, BLOCK_M, BLOCK_N, BLOCK_K)
        _store(c_ptr, total, source * blocks + row, column, N, BLOCK_M, BLOCK_N)


TILE = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP": 8}
LAUNCH = {"num_warps": 8, "num_stages": 3}
SMALL = Tiles(n=128, warps=4)
"""Two programs fit a multiprocessor: one multiplies while the other communicates."""


def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, tile: dict[str, int] = TILE) -> None:
    (m, k), n = a.shape, b.shape[1]
    grid = triton.cdiv(m, tile["BLOCK_M"]) * triton.cdiv(n, tile["BLOCK_N"])
    gemm_kernel[(grid,)](a, b, c, m, n, k, **tile, **LAUNCH)


class AllGatherGemm:
    """For shards of m x k. Its memory is used in turn by two calls: see triton_dist.kernels.Exchange."""

    def __init__(self, m: int, k: int, dtype: torch.dtype, pushers: int = 8, tile: dict[str, int] = TILE) -> None:
        pes = shmem.n_pes()
        self.m, self.k, self.pushers, self.tile = m, k, pushers if pes > 1 else 0, tile
        self.blocks = m // tile["BLOCK_M"]
        self.gathered = shmem.create_tensor((2, pes, m, k), dtype)
        self.signals = shmem.create_signals(2 * pes * self.blocks).view(2, -1)
        self.epoch = 0

    def __call__(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        self.epoch += 1
        half, n = self.epoch % 2, b.shape[1]
        grid = self.pushers + shmem.n_pes() * self.blocks * triton.cdiv(n, self.tile["BLOCK_N"])
        all_gather_gemm_kernel[(grid,)](
            a, b, c, self.gathered[half], self.signals[half], self.m, n, self.k, self.epoch,
            PUSHERS=self.pushers, COPY=min(16384, self.tile["BLOCK_M"] * self.k), **self.tile, **LAUNCH,
        )

    def free(self) -> None:
        shmem.barrier_all()
        shmem.free_tensor(self.signals.view(-1))
        shmem.free_tensor(self.gathered)


def check(m: int, n: int, k: int, dtype: torch.dtype, rounds: int, tiles: Tiles | None = None) -> float:
    """Both in one kernel against torch; the largest relative error. Shards of m rows; sizes fit the tile, but for n."""
    me, pes, errors = shmem.my_pe(), shmem.n_pes(), [torch.zeros((), device=shmem.device())]
    tile = {"BLOCK_M": tiles.m, "BLOCK_N": tiles.n, "BLOCK_K": tiles.k, "GROUP": tiles.group} if tiles else TILE
    gather, scatter = AllGatherGemm(m, k, dtype, tile=tile), GemmReduceScatter(m, n, dtype, tiles=tiles)
    for number in range(rounds):
        shards = [random(m, k, dtype, 100 * number + pe) for pe in range(pes)]
        b = random(k, n, dtype, 7 + me)
        c = torch.empty(pes * m, n, dtype=dtype, device=shmem.device())
        gather(shards[me], b, c)
        errors.append(error(c, torch.cat(shards).float() @ b.float()))
        wide = [random(pes * m, k, dtype, 100 * number + 50 + pe) for pe in range(pes)]
        tall = [random(k, n, dtype, 100 * number + 70 + pe) for pe in range(pes)]
        mine = slice(me * m, (me + 1) * m)
        total = sum(x[mine].float() @ y.float() for x, y in zip(wide, tall, strict=True))
        errors.append(error(scatter(wide[me], tall[me]), torch.as_tensor(total)))
    gather.free()
    scatter.free()
    return torch.stack(errors).max().item()  # nan, if one is


def random(rows: int, columns: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)).to(shmem.device(), dtype)


def error(result: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    return (result.float() - expected).norm() / expected.norm()
