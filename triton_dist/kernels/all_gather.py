# SPDX-License-Identifier: MIT
# What a kernel receives is not what Python passes to it.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportCallIssue=false
"""Push all-gather: every PE writes its shard into every other PE's memory and signals each piece."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist import shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels.counted import Plan, await_all, call_done, call_number, plan_for, slots_of, tell_all
from triton_dist.kernels.operands import check_operand
from triton_dist.kernels.packets import Packed, by_packets, packet_all_gather_kernel, word_aligned
from triton_dist.kernels.repeated import EACH_TIME

DIRECT_BYTES = 512 << 10
"""Shards of this size go straight into the result, at the price of a round of signals before."""


@triton.jit
def _push(shard_ptr, target_ptr, own_ptr, me, begin, piece, count, BLOCK: tl.constexpr, PES: tl.constexpr):
    """A piece to all PEs: read once, written to each; after the own one, everyone begins with another one."""
    for start in range(begin, begin + piece, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        values = tl.load(shard_ptr + offsets, mask=offsets < count)
        tl.store(own_ptr + offsets, values, mask=offsets < count)
        for step in tl.static_range(1, PES):
            tl.store(dl.symm_at(target_ptr, (me + step) % PES) + offsets, values, mask=offsets < count)


@triton.jit
def _copy(source_ptr, target_ptr, begin, piece, count, BLOCK: tl.constexpr):
    for start in range(begin, begin + piece, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        tl.store(target_ptr + offsets, tl.load(source_ptr + offsets, mask=offsets < count), mask=offsets < count)


@triton_dist.jit
def push_all_gather_kernel(
    shard_ptr, stage_ptr, out_ptr, signal_ptr, count_ptr, count, piece, pieces,
    DIRECT: tl.constexpr, BLOCK: tl.constexpr, PES: tl.constexpr,
):
    """Program i pushes pieces i, i + programs, ... of the shard to every PE, then waits for the same of every shard.

    DIRECT: into the others' results, once all are done with those. Otherwise into staging memory, from where each PE
    copies what has come.
    """
    number = call_number(count_ptr)
    me = dl.rank()
    program, programs = tl.program_id(0), tl.num_programs(0)
    mine = tl.cast(me, tl.int64) * count
    if DIRECT:
        ready = slots_of(signal_ptr, number, 1, 2, program, pieces, PES)
        tell_all(ready, number, me, PES)
        target_ptr = dl.consume_token(out_ptr + mine, await_all(ready, number, PES))
    else:
        stage_ptr += (number % 2) * PES * count
        target_ptr = stage_ptr + mine
    for index in range(program, pieces, programs):
        _push(shard_ptr, target_ptr, out_ptr + mine, me, index * piece, piece, count, BLOCK, PES)
        tell_all(slots_of(signal_ptr, number, 0, 2, index, pieces, PES), number, me, PES)
    for index in range(program, pieces, programs):
        token = await_all(slots_of(signal_ptr, number, 0, 2, index, pieces, PES), number, PES)
        if not DIRECT:
            came_ptr = dl.consume_token(stage_ptr, token)
            for step in tl.static_range(1, PES):
                theirs = tl.cast((me + step) % PES, tl.int64) * count
                _copy(came_ptr + theirs, out_ptr + theirs, index * piece, piece, count, BLOCK)
    call_done(count_ptr, number)


class AllGather(Packed):
    """Gathers a shard of `shape` from every PE. Every PE makes the same calls in the same order.

    `result` keeps its place, so a CUDA graph may hold a call and what reads it.

    Args:
        shape: of a shard; any, but fewer than 2^31 elements.
        dtype: any real type that Triton has.
        direct: whether shards are written straight into the others' results, after a round of signals, or into staging
            memory, from where each PE copies them. By default shards of 512 KiB or more are.
        packets: the data itself says when it has come (`packets.py`); a shard must be a multiple of 4 bytes. By default
            NVIDIA GPUs do so with small shards, unless `direct` or `plan` is given.
        plan: how the work is shared; by default by size.

    Raises:
        ArgumentError: the type, or what is asked for together, cannot be.
        CollectiveMismatch: the PEs ask for different ones.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: torch.dtype, *, direct: bool | None = None, packets: bool | None = None,
        plan: Plan | None = None,
    ) -> None:  # fmt: skip
        self.shape, pes, count = shape, shmem.n_pes(), math.prod(shape)
        told = direct is not None or plan is not None
        self.packets = by_packets(packets, count * dtype.itemsize, dtype, summed=False, told=told)
        if self.packets:
            if direct:
                detail = "packets come into staging memory: either packets or direct is True"
                raise ArgumentError(op="AllGather", detail=detail)
            self._pack(shape, dtype, plan, summed=False)
            kernel, before, sizes = packet_all_gather_kernel, [], [self._share, self._pieces]
        else:
            into = count * dtype.itemsize >= DIRECT_BYTES if direct is None else direct
            plan = plan or plan_for(count, dtype.itemsize, overlapped=False)
            super().__init__((1,) if into else (pes, *shape), dtype, count, 2, plan)
            kernel, before, sizes = push_all_gather_kernel, [self._signals], [count, plan.piece, self._pieces, into]
        self.result = self._make_symmetric((pes, *shape))
        arguments = [EACH_TIME, self._stage, self.result, *before, self._numbers, *sizes, self.plan.block, pes]
        self._launch = self._repeated(kernel, arguments, [self.result])

    def __call__(self, shard: torch.Tensor) -> torch.Tensor:
        """All shards, PE by PE: n_pes x shape; valid until the next call.

        Raises:
            ArgumentError: `shard` has another shape, type or device, or requires a gradient.
        """
        if self._again(shard):
            return self.result
        check_operand("AllGather", "shard", shard, self.shape, self.dtype, self.result.device)
        shard = shard.contiguous()
        self._launch(word_aligned(shard) if self.packets else shard)
        return self.result
