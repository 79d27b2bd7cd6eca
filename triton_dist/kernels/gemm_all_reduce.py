# SPDX-License-Identifier: MIT
# What a kernel receives is not what Python passes to it.
# pyright: reportArgumentType=false
"""One-shot GEMM-AllReduce: every PE pushes its partial tiles to every PE, and each sums all of them itself."""

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
def _push_tile(partial_ptr, signal_ptr, tile, tiles, partial, offsets, mask, size, epoch):
    """Write a partial tile into every PE's buffer, the own one too: each PE then sums the very same numbers."""
    me, pes = dl.rank(), dl.num_ranks()
    mine_ptr = partial_ptr + tl.cast(me, tl.int64) * size
    for step in range(1, pes + 1):
        peer = (me + step) % pes
        tl.store(dl.symm_at(mine_ptr, peer) + offsets, partial, mask=mask)
        slot = dl.signal_slot(signal_ptr, me * tiles + tile)
        dl.notify(slot, peer, signal=epoch, sig_op="set", comm_scope="inter_node")


@triton.jit
def _sum_tile(
    partial_ptr, signal_ptr, tile, tiles, offsets, mask, size, epoch,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """Sum the tile of all PEs, in the order of the PEs."""
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for source in range(dl.num_ranks()):
        slot = dl.signal_slot(signal_ptr, source * tiles + tile)
        token = dl.wait(slot, 1, "sys", "acquire", waitValue=epoch)
        source_ptr = dl.consume_token(partial_ptr + tl.cast(source, tl.int64) * size, token)
        total += tl.load(source_ptr + offsets, mask=mask, other=0.0)
    return total


@triton_dist.jit(do_not_specialize=["epoch"])
def gemm_all_reduce_kernel(
    a_ptr, b_ptr, c_ptr, partial_ptr, signal_ptr, M, N, K, epoch,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """C = sum over the PEs of A @ B.

    A program first computes and pushes all its tiles, then sums them: it waits for programs of other PEs that never
    wait before they have pushed. So programs of one PE need not run at the same time.
    """
    program, programs = tl.program_id(0), tl.num_programs(0)
    column_blocks = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * column_blocks
    for tile in range(program, tiles, programs):
        rows = tile // column_blocks * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tile % column_blocks * BLOCK_N + tl.arange(0, BLOCK_N)
        offsets = rows[:, None] * N + columns[None, :]
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        partial = dot_tile(a_ptr, b_ptr, rows, columns, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K)
        _push_tile(partial_ptr, signal_ptr, tile, tiles, partial, offsets, mask, M * N, epoch)
    for tile in range(program, tiles, programs):
        rows = tile // column_blocks * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tile % column_blocks * BLOCK_N + tl.arange(0, BLOCK_N)
        offsets = rows[:, None] * N + columns[None, :]
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        total = _sum_tile(
            partial_ptr, signal_ptr, tile, tiles, offsets, mask, M * N, epoch, BLOCK_M, BLOCK_N
        )
        tl.store(c_ptr + offsets, total.to(c_ptr.dtype.element_ty), mask=mask)


class GemmAllReduce(Collective):
    """C = the sum of A @ B over all PEs, for results of m x n. All PEs get the same bits.

    Every PE makes the same calls in the same order. The result is an ordinary tensor, the caller's own. The host
    numbers the calls, so a CUDA graph cannot hold them. It sends every partial tile to every PE: best for small
    results.

    Args:
        m, n: rows and columns of the result; m * n below 2^31. Its type is that of the operands: fp32, bf16, fp16 or an
            fp8 type; tiles are sent and summed in fp32.
        programs: of the kernel. They need not run at once.
        blocks: rows, columns and depth of a tile, powers of two.

    Raises:
        ArgumentError: a number is none.
        CollectiveMismatch: the PEs ask for different ones.
    """

    def __init__(self, m: int, n: int, *, programs: int = 4, blocks: tuple[int, int, int] = (64, 64, 32)) -> None:
        check_counts("GemmAllReduce", programs=programs)
        check_tile("GemmAllReduce", blocks)
        check_elements("GemmAllReduce", **{"the result": m * n})
        self.m, self.n = m, n
        self.programs, self.blocks = programs, blocks
        pes = shmem.n_pes()
        tiles = triton.cdiv(m, blocks[0]) * triton.cdiv(n, blocks[1])
        self._exchange = Exchange((pes, m, n), torch.float32, pes * tiles)

    @one_at_a_time
    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply this PE's `a` (m x k) by its `b` (k x n) and sum over the PEs; the result has the type of `a`.

        Raises:
            ArgumentError: an operand has another shape, type or device, or requires a gradient.
        """
        check_operand("GemmAllReduce", "a", a, (self.m, None), None, self._exchange.device)
        check_operand("GemmAllReduce", "b", b, (a.shape[1], self.n), a.dtype, self._exchange.device)
        check_type("GemmAllReduce", a.dtype, "MatmulAllReduce")
        check_elements("GemmAllReduce", a=a.numel(), b=b.numel())
        turn = self._exchange.turn()
        c = torch.empty((self.m, self.n), dtype=a.dtype, device=a.device)
        block_m, block_n, block_k = self.blocks
        gemm_all_reduce_kernel[(self.programs,)](
            laid_out(a), laid_out(b), c, turn.buffer, turn.signals, self.m, self.n, a.shape[1], turn.epoch,
            BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
        )
        return c

    def _release(self) -> None:
        self._exchange.free()
