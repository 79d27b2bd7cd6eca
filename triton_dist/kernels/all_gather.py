# SPDX-License-Identifier: MIT
# What a kernel receives is not what Python passes to it.
# pyright: reportArgumentType=false
"""Push all-gather: every PE writes its shard into every other PE's memory and signals each piece."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist import shmem
from triton_dist.kernels.exchange import Collective, Exchange, check_operand


@triton_dist.jit(do_not_specialize=["epoch"])
def push_all_gather_kernel(
    shard_ptr, gathered_ptr, signal_ptr, count, chunk, epoch,
    BLOCK: tl.constexpr,
):
    """Program i pushes piece i of the shard to every PE, then waits for piece i of every shard.

    `chunk` elements make a piece. Piece i of PE s has signal s * programs + i on the PE that receives it.
    """
    me, pes = dl.rank(), dl.num_ranks()
    program, programs = tl.program_id(0), tl.num_programs(0)
    begin = program * chunk
    end = tl.minimum(begin + chunk, count)
    mine = gathered_ptr + tl.cast(me, tl.int64) * count
    for step in range(pes):
        peer = (me + step) % pes  # everyone begins with another peer: no PE receives from all at once
        target = dl.symm_at(mine, peer)
        for start in range(begin, end, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            x = tl.load(shard_ptr + offsets, mask=offsets < end)
            tl.store(target + offsets, x, mask=offsets < end)
        slot = dl.signal_slot(signal_ptr, me * programs + program)
        dl.notify(slot, peer, signal=epoch, sig_op="set", comm_scope="inter_node")
    for source in range(pes):
        dl.wait(dl.signal_slot(signal_ptr, source * programs + program), 1, "sys", "acquire", waitValue=epoch)


class AllGather(Collective):
    """Gathers a shard of `shape` from every PE. Contract of the calls: see `Exchange`."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, *, programs: int = 4, block: int = 4096) -> None:
        self.shape, self.dtype = shape, dtype
        self.programs, self.block = programs, block
        pes = shmem.n_pes()
        self._exchange = Exchange((pes, *shape), dtype, pes * programs)

    def __call__(self, shard: torch.Tensor) -> torch.Tensor:
        """All shards, PE by PE: n_pes x shape, in symmetric memory; valid until the next call."""
        check_operand("AllGather", "shard", shard, self.shape, self.dtype)
        turn = self._exchange.turn()
        count = shard.numel()
        push_all_gather_kernel[(self.programs,)](
            shard.contiguous(), turn.buffer, turn.signals, count, triton.cdiv(count, self.programs), turn.epoch,
            BLOCK=self.block,
        )
        return turn.buffer

    def free(self) -> None:
        self._exchange.free()
