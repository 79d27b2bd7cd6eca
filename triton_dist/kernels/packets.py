# SPDX-License-Identifier: MIT
# What a kernel receives is not what Python passes to it.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false, reportOperatorIssue=false
"""Collectives of packets: 32 bits of data and the number of the call in one word, which is written and read at once.

Who reads a packet of this call has its data: no fence keeps the data before a signal, and no signal follows it, at the
price of twice the bytes. NCCL calls that its LL protocol.

Staging memory exists twice, used in turn, and a call ends on a PE only when all its packets have come there. So:

- No packet is overwritten before it is read. A PE in call k + 1 has packets of call k from every PE. So every PE began
  call k, and thus finished call k - 1, which read the half that call k + 1 writes.
- No older packet is taken for one of this call. Until that comes, its word holds the packet of call k - 2 (which came:
  that call ended), or 0 if k is 1 or 2: memory is zeroed when it is made, before any PE may write to it. Neither equals
  k in the lower 31 bits, which are the flag. So the number may wrap, and the memory may have been another operation's.
- When a PE has ended its last call no packet is on its way to it: whoever gets the memory next is not written to.

Packets may come in any order.

In PTX each packet is stored and loaded by a half of a 128-bit access. The loads are volatile, the stores are plain
ones: that an aligned word comes at once is so in hardware, PTX says it of stronger stores only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist import backends, shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels.counted import Counted, Plan, call_done, call_number, plan_for
from triton_dist.kernels.device import multiprocessors_of
from triton_dist.kernels.reduction import ONE_SHOT, accumulator_of
from triton_dist.kernels.repeated import EACH_TIME
from triton_dist.language.extra.language_extra import __syncthreads

WORD = 4
"""Bytes of data in a packet."""
SUMMED = (2, 4)
"""Bytes of the numbers that are summed by packets."""
WARP_WORDS = 128
"""What a warp does at a time."""


@triton.jit
def _send(word, mask, flag, target_ptr, peer, offsets):
    """The words as packets into the memory of a peer. Each of 64 bits, aligned: it comes whole or not at all."""
    packets = (word.to(tl.int64) & 0xFFFFFFFF) | flag
    tl.store(dl.symm_at(target_ptr, peer) + offsets, packets, mask=mask)


@triton.jit
def _receive(ptr, offsets, mask, flag):
    """The words of the packets of this call, when they have come."""
    packets = tl.load(ptr + offsets, mask=mask, other=flag, volatile=True)
    while tl.sum(((packets >> 32) != (flag >> 32)).to(tl.int32)) > 0:
        packets = tl.load(ptr + offsets, mask=mask, other=flag, volatile=True)
    return packets.to(tl.int32)


@triton.jit
def _words(ptr):
    return ptr.to(tl.pointer_type(tl.int32), bitcast=True)


@triton.jit
def _flag_of(number):
    """The number of the call, in the upper half. Packets that are still there are of the last call but one."""
    return (number & 0x7FFFFFFF) << 32


@triton.jit
def _done(count_ptr, number):
    """The sum of a block that one warp holds has no barrier: other warps might not have read the number yet."""
    __syncthreads()
    call_done(count_ptr, number)


@triton_dist.jit
def packet_all_gather_kernel(
    shard_ptr, stage_ptr, out_ptr, count_ptr, words, pieces, BLOCK: tl.constexpr, PES: tl.constexpr
):
    """Program i sends pieces i, i + programs, ... of the shard to every PE, then takes the same of every shard."""
    number = call_number(count_ptr)
    flag, me = _flag_of(number), dl.rank()
    program, programs = tl.program_id(0), tl.num_programs(0)
    shard_ptr, out_ptr = _words(shard_ptr), _words(out_ptr)
    stage_ptr += (number % 2) * PES * words
    mine = tl.cast(me, tl.int64) * words
    for index in range(program, pieces, programs):
        offsets = index * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < words
        word = tl.load(shard_ptr + offsets, mask=mask)
        for step in tl.static_range(1, PES):
            _send(word, mask, flag, stage_ptr + mine, (me + step) % PES, offsets)
        tl.store(out_ptr + mine + offsets, word, mask=mask)
    for index in range(program, pieces, programs):
        offsets = index * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < words
        for step in tl.static_range(1, PES):
            theirs = tl.cast((me + step) % PES, tl.int64) * words
            tl.store(out_ptr + theirs + offsets, _receive(stage_ptr + theirs, offsets, mask, flag), mask=mask)
    _done(count_ptr, number)


@triton.jit
def _low(word, TYPE: tl.constexpr, ACCUMULATOR: tl.constexpr):
    """The first number in a word: all of it, or its lower half."""
    bits = word if TYPE.primitive_bitwidth == 32 else word.to(tl.int16)
    return bits.to(TYPE, bitcast=True).to(ACCUMULATOR)


@triton.jit
def _bits(sums, TYPE: tl.constexpr):
    """Numbers of the type that is summed, as bits in the lower end of a word."""
    if TYPE.primitive_bitwidth == 32:
        bits = sums.to(TYPE).to(tl.int32, bitcast=True)
    else:  # without its sign in the upper half
        bits = sums.to(TYPE).to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
    return bits


@triton.jit
def _word_of(first, second, TYPE: tl.constexpr):
    word = _bits(first, TYPE)
    if TYPE.primitive_bitwidth == 16:
        word |= _bits(second, TYPE) << 16
    return word


@triton_dist.jit
def packet_reduction_kernel(
    in_ptr, stage_ptr, out_ptr, count_ptr, words, pieces,
    KIND: tl.constexpr, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr, PES: tl.constexpr,
):
    """Program i sends its pieces of each PE's part there, and sums what comes, in the order of the PEs.

    A part is `words` words; of a one-shot all-reduce everyone's part is all of the input.
    """
    TYPE: tl.constexpr = out_ptr.dtype.element_ty
    number = call_number(count_ptr)
    flag, me = _flag_of(number), dl.rank()
    program, programs = tl.program_id(0), tl.num_programs(0)
    in_ptr, out_ptr = _words(in_ptr), _words(out_ptr)
    stage_ptr += (number % 2) * PES * words
    part = tl.cast(0 if KIND == ONE_SHOT else words, tl.int64)
    mine = tl.cast(me, tl.int64) * words
    for index in range(program, pieces, programs):
        offsets = index * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < words
        for step in tl.static_range(1, PES):
            peer = (me + step) % PES
            word = tl.load(in_ptr + peer * part + offsets, mask=mask)
            _send(word, mask, flag, stage_ptr + mine, peer, offsets)
    for index in range(program, pieces, programs):
        offsets = index * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < words
        first = tl.zeros((BLOCK,), ACCUMULATOR)
        second = tl.zeros((BLOCK,), ACCUMULATOR)
        for source in tl.static_range(PES):
            if source == me:
                word = tl.load(in_ptr + me * part + offsets, mask=mask, other=0)
            else:
                word = _receive(stage_ptr + tl.cast(source, tl.int64) * words, offsets, mask, flag)
            first += _low(word, TYPE, ACCUMULATOR)
            if TYPE.primitive_bitwidth == 16:
                second += _low(word >> 16, TYPE, ACCUMULATOR)
        word = _word_of(first, second, TYPE)
        tl.store(out_ptr + offsets, word, mask=mask)
    _done(count_ptr, number)


class Packed(Counted):
    """A counted collective that may go by packets."""

    def _pack(self, shape: tuple[int, ...], dtype: torch.dtype, plan: Plan | None, summed: bool) -> None:
        """Instead of `Counted.__init__`: no signals, and packets in staging memory."""
        words = words_of(type(self).__name__, shape, dtype, summed)
        super().__init__((shmem.n_pes(), words), dtype, words, 0, packet_plan(words, plan), torch.int64)

    @property
    def _share(self) -> int:
        """Packets from each PE."""
        return self._stage.shape[-1]

    def _sum_packets(self, out: object, kind: tl.constexpr, written: Sequence[torch.Tensor] | None = None) -> None:
        """Let calls add up what every PE sends, into `out`."""
        self._launch = self._repeated(packet_reduction_kernel, [
            EACH_TIME, self._stage, out, self._numbers, self._share, self._pieces, kind, accumulator_of(self.dtype),
            self.plan.block, shmem.n_pes(),
        ], written)  # fmt: skip


def words_of(op: str, shape: tuple[int, ...], dtype: torch.dtype, summed: bool) -> int:
    """How many packets a PE's share of this shape is; an `ArgumentError` if it is not a whole number of them.

    `summed`: numbers that are added up must not lie across two packets.
    """
    nbytes = math.prod(shape) * dtype.itemsize
    if detail := _obstacle(nbytes, dtype, summed):
        raise ArgumentError(op=op, detail=f"{detail}; {shape} of {dtype} is {nbytes} bytes")
    return nbytes // WORD


def _obstacle(nbytes: int, dtype: torch.dtype, summed: bool) -> str:
    """Why that cannot go by packets; empty if it can."""
    if nbytes % WORD:
        return f"packets=True is for a multiple of {WORD} bytes"
    return "packets=True sums numbers of 16 or 32 bits" if summed and dtype.itemsize not in SUMMED else ""


def by_packets(asked: bool | None, nbytes: int, dtype: torch.dtype, *, summed: bool, told: bool) -> bool:
    """Whether a collective goes by packets: as `asked`, or if that is None, by the bytes that go to all other PEs.

    `nbytes`: to each of them. `told`: it was told of another way, or of a plan, which counts in elements where packets
    count in words.
    """
    if asked is not None:
        return asked
    most = 0 if shmem.device().type == "cpu" else backends.active().packet_bytes
    small = 0 < (shmem.n_pes() - 1) * nbytes <= most
    return small and not told and not _obstacle(nbytes, dtype, summed)


def packet_plan(words: int, plan: Plan | None) -> Plan:
    """Each piece is a block: there is nothing to begin while it is on its way."""
    if plan is None and shmem.device().type != "cpu":
        # One warp sums what it looks for without a barrier.
        programs = min(triton.cdiv(words, WARP_WORDS), 4 * multiprocessors_of(shmem.device()))
        return Plan(programs, WARP_WORDS, WARP_WORDS, warps=1)
    plan = plan or plan_for(words, WORD)
    return replace(plan, piece=plan.block)


def word_aligned(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy of it where words can be read."""
    return tensor.clone() if tensor.data_ptr() % WORD else tensor
