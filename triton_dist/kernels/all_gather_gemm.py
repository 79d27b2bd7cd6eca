# SPDX-License-Identifier: MIT
# What a kernel receives is not what Python passes to it.
# pyright: reportArgumentType=false
"""AllGather-GEMM in one launch: some programs push the shard of A, the others multiply what has arrived."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist import shmem
from triton_dist.kernels.collective import Collective, one_at_a_time
from triton_dist.kernels.exchange import Exchange
from triton_dist.kernels.gemm import check_type, dot_tile
from triton_dist.kernels.operands import check_operand
from triton_dist.kernels.overlap import laid_out
from triton_dist.kernels.sizes import check_counts, check_elements, check_tile


@triton.jit
def _push_shard(
    a_ptr, gathered_ptr, signal_ptr, M, K, epoch, pusher,
    PUSHERS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """Push rows to every other PE, first to the one that needs them first, and signal each block of rows."""
    me, pes = dl.rank(), dl.num_ranks()
    row_blocks = tl.cdiv(M, BLOCK_M)
    for step in range(1, pes):
        peer = (me + pes - step) % pes
        target_ptr = dl.symm_at(gathered_ptr + tl.cast(me, tl.int64) * M * K, peer)
        for block in range(pusher, row_blocks, PUSHERS):
            rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
            for start in range(0, K, BLOCK_K):
                columns = start + tl.arange(0, BLOCK_K)
                offsets = rows[:, None] * K + columns[None, :]
                mask = (rows[:, None] < M) & (columns[None, :] < K)
                tl.store(target_ptr + offsets, tl.load(a_ptr + offsets, mask=mask), mask=mask)
            slot = dl.signal_slot(signal_ptr, me * row_blocks + block)
            dl.notify(slot, peer, signal=epoch, sig_op="set", comm_scope="inter_node")


@triton.jit
def _multiply(
    a_ptr, b_ptr, c_ptr, gathered_ptr, signal_ptr, M, N, K, epoch, worker, workers,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """Compute every `workers`-th tile: those of the own shard first, then in the order in which shards arrive."""
    me, pes = dl.rank(), dl.num_ranks()
    # A PE without columns waits too.
    row_blocks, column_blocks = tl.cdiv(M, BLOCK_M), tl.maximum(tl.cdiv(N, BLOCK_N), 1)
    tiles = row_blocks * column_blocks
    for tile in range(worker, pes * tiles, workers):
        step = tile // tiles
        source = (me + step) % pes
        row_block, column_block = (tile % tiles) // column_blocks, tile % column_blocks
        shard_ptr = a_ptr
        if step > 0:
            slot = dl.signal_slot(signal_ptr, source * row_blocks + row_block)
            token = dl.wait(slot, 1, "sys", "acquire", waitValue=epoch)
            shard_ptr = dl.consume_token(gathered_ptr + tl.cast(source, tl.int64) * M * K, token)
        rows = row_block * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = column_block * BLOCK_N + tl.arange(0, BLOCK_N)
        result = dot_tile(shard_ptr, b_ptr, rows, columns, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K)
        offsets = (source * M + rows[:, None]).to(tl.int64) * N + columns[None, :]
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        tl.store(c_ptr + offsets, result.to(c_ptr.dtype.element_ty), mask=mask)


@triton_dist.jit(do_not_specialize=["epoch"])
def all_gather_gemm_kernel(
    a_ptr, b_ptr, c_ptr, gathered_ptr, signal_ptr, M, N, K, epoch,
    PUSHERS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """C = (the shards of A of all PEs) @ B. M counts the rows of one shard.

    The first PUSHERS programs push, and never wait. The others multiply; a tile of another PE's shard waits for the
    signal of its block of rows. Every block of rows of every shard is waited for, as `Exchange` demands.
    """
    program = tl.program_id(0)
    if program < PUSHERS:
        _push_shard(a_ptr, gathered_ptr, signal_ptr, M, K, epoch, program, PUSHERS, BLOCK_M, BLOCK_K)
    else:
        worker, workers = program - PUSHERS, tl.num_programs(0) - PUSHERS
        _multiply(
            a_ptr, b_ptr, c_ptr, gathered_ptr, signal_ptr, M, N, K, epoch, worker, workers,
            BLOCK_M, BLOCK_N, BLOCK_K,
        )


class AllGatherGemm(Collective):
    """C = all_gather(A) @ B for shards A of m x k, where the gathering hides behind the multiplication.

    Every PE makes the same calls in the same order. The result is an ordinary tensor, the caller's own. The host
    numbers the calls, so a CUDA graph cannot hold them.

    Args:
        m, k: rows and columns of a shard; m * k below 2^31.
        dtype: fp32, bf16, fp16 or an fp8 type; summed in fp32.
        pushers: programs that send the shard.
        workers: programs that multiply, and wait for the shards of others.
        blocks: rows, columns and depth of a tile, powers of two.

    Raises:
        ArgumentError: the type or a number is none.
        CollectiveMismatch: the PEs ask for different ones.
    """

    def __init__(
        self,
        m: int,
        k: int,
        dtype: torch.dtype,
        *,
        pushers: int = 1,
        workers: int = 3,
        blocks: tuple[int, int, int] = (64, 64, 32),
    ) -> None:
        check_type("AllGatherGemm", dtype, "AllGatherMatmul")
        check_counts("AllGatherGemm", pushers=pushers, workers=workers)
        check_tile("AllGatherGemm", blocks)
        check_elements("AllGatherGemm", a=m * k)
        self.m, self.k, self.dtype = m, k, dtype
        self.pushers, self.workers, self.blocks = pushers, workers, blocks
        pes = shmem.n_pes()
        self._exchange = Exchange((pes, m, k), dtype, pes * triton.cdiv(m, blocks[0]))

    @one_at_a_time
    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply all PEs' `a` (each m x k, PE by PE) by this PE's `b` (k x n): n_pes * m x n.

        Raises:
            ArgumentError: an operand has another shape, type or device, or requires a gradient.
        """
        check_operand("AllGatherGemm", "a", a, (self.m, self.k), self.dtype, self._exchange.device)
        check_operand("AllGatherGemm", "b", b, (self.k, None), self.dtype, self._exchange.device)
        check_elements("AllGatherGemm", b=b.numel())
        n = b.shape[1]
        c = torch.empty((shmem.n_pes() * self.m, n), dtype=a.dtype, device=a.device)
        if not a.numel():  # on no PE
            return c.zero_()
        turn = self._exchange.turn()
        block_m, block_n, block_k = self.blocks
        all_gather_gemm_kernel[(self.pushers + self.workers,)](
            laid_out(a), laid_out(b), c, turn.buffer, turn.signals, self.m, n, self.k, turn.epoch,
            PUSHERS=self.pushers, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
        )
        return c

    def _release(self) -> None:
        self._exchange.free()
