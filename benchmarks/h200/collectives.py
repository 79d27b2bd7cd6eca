# SPDX-License-Identifier: MIT
# pyright: reportArgumentType=false
"""All-gather, reduce-scatter, one-shot and two-shot all-reduce, each one launch.

The number of the call is kept on the device, so calls can be captured in a CUDA graph. Every program does one piece,
and talks only to the programs of its own number on the other PEs. All programs of all PEs must run at the same time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist import shmem


@triton.jit
def _begin(count_ptr):
    """The number of this call, from 1; every program counts for itself."""
    slot = count_ptr + tl.program_id(0)
    number = tl.load(slot) + 1
    # All threads have read it.
    tl.debug_barrier()
    tl.store(slot, number)
    return number


@triton.jit
def _signals(signal_ptr, number, phase: tl.constexpr, PHASES: tl.constexpr):
    """The slots of this program for one phase of this call: one a PE. Two calls that follow each other use others."""
    first = (((number % 2) * PHASES + phase) * tl.num_programs(0) + tl.program_id(0)) * dl.num_ranks()
    return signal_ptr + first


@triton.jit
def _tell_all(slots, number):
    me, pes = dl.rank(), dl.num_ranks()
    for step in range(pes):
        dl.notify(slots + me, (me + step) % pes, signal=number, sig_op="set", comm_scope="intra_node")


@triton.jit
def _await_all(slots, number):
    return dl.wait(slots, dl.num_ranks(), "sys", "acquire", waitValue=number)


@triton.jit
def _spread(source_ptr, target_ptr, me, begin, end, BLOCK: tl.constexpr, PES: tl.constexpr):
    """Elements from `begin` to `end` to all PEs, the own one first."""
    for start in range(begin, end, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        values = tl.load(source_ptr + offsets, mask=offsets < end)
        for step in tl.static_range(PES):
            tl.store(dl.symm_at(target_ptr, (me + step) % PES) + offsets, values, mask=offsets < end)


@triton.jit
def _sum_of_all(ptr, offsets, end, me, BLOCK: tl.constexpr, PES: tl.constexpr):
    """The sum over the PEs of what they have at `ptr`. The loads do not wait for each other."""
    total = tl.zeros((BLOCK,), tl.float32)
    for step in tl.static_range(PES):
        source = dl.symm_at(ptr, (me + step) % PES)
        total += tl.load(source + offsets, mask=offsets < end, other=0.0).to(tl.float32)
    return total


@triton_dist.jit
def all_gather_kernel(shard_ptr, out_ptr, signal_ptr, count_ptr, count, chunk, BLOCK: tl.constexpr, PES: tl.constexpr):
    """`out` has two copies, used in turn. What was read once is written to all."""
    number = _begin(count_ptr)
    me = dl.rank()
    begin = tl.program_id(0) * chunk
    end = tl.minimum(begin + chunk, count)
    out_ptr += (number % 2) * PES * count + me * count
    slots = _signals(signal_ptr, number, 0, 1)
    _spread(shard_ptr, out_ptr, me, begin, end, BLOCK, PES)
    _tell_all(slots, number)
    _await_all(slots, number)


@triton_dist.jit
def reduce_scatter_kernel(in_ptr, out_ptr, signal_ptr, count_ptr, count, chunk, BLOCK: tl.constexpr, PES: tl.constexpr):
    """`in` is symmetric: pes x count elements; `out` is the sum of everyone's part of this PE. Pulls."""
    number = _begin(count_ptr)
    me = dl.rank()
    begin = tl.program_id(0) * chunk
    end = tl.minimum(begin + chunk, count)
    ready, done = _signals(signal_ptr, number, 0, 2), _signals(signal_ptr, number, 1, 2)
    _tell_all(ready, number)
    mine = dl.consume_token(in_ptr + me * count, _await_all(ready, number))
    for start in range(begin, end, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total = _sum_of_all(mine, offsets, end, me, BLOCK, PES)
        tl.store(out_ptr + offsets, total.to(out_ptr.dtype.element_ty), mask=offsets < end)
    # Nobody writes its input again before all have read it.
    _tell_all(done, number)
    _await_all(done, number)


@triton_dist.jit
def one_shot_kernel(
    in_ptr, stage_ptr, out_ptr, signal_ptr, count_ptr, count, chunk, BLOCK: tl.constexpr, PES: tl.constexpr
):
    """Every PE sends all it has to all, and sums. `stage` has two copies of pes x count elements."""
    number = _begin(count_ptr)
    me = dl.rank()
    begin = tl.program_id(0) * chunk
    end = tl.minimum(begin + chunk, count)
    stage_ptr += (number % 2) * PES * count
    slots = _signals(signal_ptr, number, 0, 1)
    _spread(in_ptr, stage_ptr + me * count, me, begin, end, BLOCK, PES)
    _tell_all(slots, number)
    stage_ptr = dl.consume_token(stage_ptr, _await_all(slots, number))
    for start in range(begin, end, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        for source in tl.static_range(PES):
            total += tl.load(stage_ptr + source * count + offsets, mask=offsets < end, other=0.0).to(tl.float32)
        tl.store(out_ptr + offsets, total.to(out_ptr.dtype.element_ty), mask=offsets < end)


@triton_dist.jit
def two_shot_kernel(in_ptr, out_ptr, signal_ptr, count_ptr, count, chunk, BLOCK: tl.constexpr, PES: tl.constexpr):
    """`in` and `out` are symmetric, pes x count elements. Every PE sums its part, and sends the sum to all."""
    number = _begin(count_ptr)
    me = dl.rank()
    begin = tl.program_id(0) * chunk
    end = tl.minimum(begin + chunk, count)
    ready, done = _signals(signal_ptr, number, 0, 2), _signals(signal_ptr, number, 1, 2)
    _tell_all(ready, number)
    mine = dl.consume_token(in_ptr + me * count, _await_all(ready, number))
    for start in range(begin, end, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total = _sum_of_all(mine, offsets, end, me, BLOCK, PES)
        reduced = total.to(out_ptr.dtype.element_ty)
        for step in tl.static_range(PES):
            target = dl.symm_at(out_ptr + me * count, (me + step) % PES)
            tl.store(target + offsets, reduced, mask=offsets < end)
    # All have read the inputs, and all parts of the output are here.
    _tell_all(done, number)
    _await_all(done, number)


class Collective(ABC):
    """One collective of `count` elements a PE; its buffers are its own. `programs`: how many share the work."""

    phases = 1
    name = ""

    def __init__(self, count: int, dtype: torch.dtype, programs: int, block: int, warps: int) -> None:
        pes = shmem.n_pes()
        self.count, self.dtype = count, dtype
        self.programs = max(1, min(programs, count // 16))
        self.chunk = triton.cdiv(triton.cdiv(count, self.programs), 16) * 16
        self.block, self.warps = block, warps
        self.numbers = torch.zeros(self.programs, dtype=torch.int64, device=shmem.device())
        self.signals = shmem.create_signals(2 * self.phases * self.programs * pes)
        self.symmetric = [shmem.create_tensor(shape, dtype) for shape in self.shapes(pes)]

    @abstractmethod
    def shapes(self, pes: int) -> list[tuple[int, ...]]:
        """Of its symmetric buffers."""

    def launch(self, kernel: triton.JITFunction, *tensors: torch.Tensor) -> None:
        kernel[(self.programs,)](
            *tensors, self.signals, self.numbers, self.count, self.chunk,
            BLOCK=self.block, PES=shmem.n_pes(), num_warps=self.warps,
        )  # fmt: skip

    def free(self) -> None:
        shmem.barrier_all()
        for tensor in (*self.symmetric, self.signals):
            shmem.free_tensor(tensor)


class AllGather(Collective):
    """Input: count elements. Output: pes x count; of the copy of the last call."""

    name = "all-gather"

    def shapes(self, pes: int) -> list[tuple[int, ...]]:
        return [(2, pes, self.count)]

    def __call__(self, shard: torch.Tensor) -> None:
        self.launch(all_gather_kernel, shard, self.symmetric[0])

    def result(self) -> torch.Tensor:
        return self.symmetric[0][int(self.numbers[0]) % 2]


class ReduceScatter(Collective):
    """Input: `symmetric[0]`, pes x count. Output: count."""

    name, phases = "reduce-scatter", 2

    def shapes(self, pes: int) -> list[tuple[int, ...]]:
        return [(pes, self.count)]

    def __call__(self, out: torch.Tensor) -> None:
        self.launch(reduce_scatter_kernel, self.symmetric[0], out)


class OneShot(Collective):
    """Input and output: count elements."""

    name = "one-shot all-reduce"

    def shapes(self, pes: int) -> list[tuple[int, ...]]:
        return [(2, pes, self.count)]

    def __call__(self, source: torch.Tensor, out: torch.Tensor) -> None:
        self.launch(one_shot_kernel, source, self.symmetric[0], out)


class TwoShot(Collective):
    """Input `symmetric[0]` and output `symmetric[1]`: pes x count."""

    name, phases = "two-shot all-reduce", 2

    def shapes(self, pes: int) -> list[tuple[int, ...]]:
        return [(pes, self.count), (pes, self.count)]

    def __call__(self) -> None:
        self.launch(two_shot_kernel, *self.symmetric)


def data_of(pe: int, number: int, count: int) -> torch.Tensor:
    """Small whole numbers: sums are exact, in any order."""
    return (torch.arange(count, device=shmem.device()) * (pe + 3) + number) % 13


def check_all(rounds: int, say: Callable[[str], None], count: int = 5000) -> int:
    """Each collective over many rounds; how many are wrong."""
    wrong = 0
    for check in (check_all_gather, check_reduce_scatter, check_one_shot, check_two_shot):
        bad = int(check(rounds, count).item())
        wrong += bad != 0
        say(f"{check.__name__.removeprefix('check_')}: {rounds} rounds: {'right' if not bad else f'{bad} WRONG'}")
    return wrong


def check_all_gather(rounds: int, count: int) -> torch.Tensor:
    op, bad = AllGather(count, torch.float32, 4, 1024, 4), 0
    for number in range(rounds):
        op(data_of(shmem.my_pe(), number, count).float())
        expected = torch.stack([data_of(pe, number, count) for pe in range(shmem.n_pes())])
        bad += (op.symmetric[0][(number + 1) % 2] != expected).sum()
    op.free()
    return torch.as_tensor(bad)


def check_reduce_scatter(rounds: int, count: int) -> torch.Tensor:
    op, bad, pes, me = ReduceScatter(count, torch.float32, 4, 1024, 4), 0, shmem.n_pes(), shmem.my_pe()
    out = torch.empty(count, device=shmem.device())
    for number in range(rounds):
        op.symmetric[0].copy_(data_of(me, number, pes * count).view(pes, count))
        op(out)
        parts = [data_of(pe, number, pes * count).view(pes, count)[me] for pe in range(pes)]
        bad += (out != torch.stack(parts).sum(0)).sum()
    op.free()
    return torch.as_tensor(bad)


def check_one_shot(rounds: int, count: int) -> torch.Tensor:
    op, bad = OneShot(count, torch.float32, 4, 1024, 4), 0
    out = torch.empty(count, device=shmem.device())
    for number in range(rounds):
        op(data_of(shmem.my_pe(), number, count).float(), out)
        bad += (out != torch.stack([data_of(pe, number, count) for pe in range(shmem.n_pes())]).sum(0)).sum()
    op.free()
    return torch.as_tensor(bad)


def check_two_shot(rounds: int, count: int) -> torch.Tensor:
    op, bad, pes = TwoShot(count, torch.float32, 4, 1024, 4), 0, shmem.n_pes()
    for number in range(rounds):
        op.symmetric[0].copy_(data_of(shmem.my_pe(), number, pes * count).view(pes, count))
        op()
        total = torch.stack([data_of(pe, number, pes * count) for pe in range(pes)]).sum(0)
        bad += (op.symmetric[1].view(-1) != total).sum()
        # The next round writes the outputs of others, which they may still compare.
        shmem.barrier_all()
    op.free()
    return torch.as_tensor(bad)
