# SPDX-License-Identifier: MIT
"""The library's collectives and GEMMs over many rounds against torch, on small whole numbers: sums are exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from triton_dist import shmem
from triton_dist.kernels import (
    AllGather,
    AllGatherMatmul,
    AllReduce,
    GemmReduceScatter,
    MatmulAllReduce,
    MatmulReduceScatter,
    ReduceScatter,
)
from triton_dist.kernels.counted import Plan

PIECES = Plan(programs=4, piece=1024, block=512, warps=4)
"""Several pieces a program, several blocks a piece, whatever the size."""


VARIANTS = 13
"""Data repeats after so many rounds: it is made once, for what takes time is to be what is checked."""


def data_of(pe: int, number: int, count: int) -> torch.Tensor:
    return ((torch.arange(count, device=shmem.device()) * (pe + 3) + number) % VARIANTS).float()


class Recorded:
    """An operation's call, recorded in a CUDA graph at the first one and replayed with other data ever after."""

    def __init__(self, op: Callable[..., torch.Tensor]) -> None:
        self._op, self._graph = op, torch.cuda.CUDAGraph()
        self._operands: list[torch.Tensor] = []

    def __call__(self, *operands: torch.Tensor) -> torch.Tensor:
        if not self._operands:
            self._record(operands)
        for held, operand in zip(self._operands, operands, strict=True):
            held.copy_(operand)
        self._graph.replay()
        return self._result

    def _record(self, operands: Sequence[torch.Tensor]) -> None:
        self._operands = [operand.clone() for operand in operands]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._op(*self._operands)
        stream.synchronize()
        with torch.cuda.graph(self._graph, stream=stream, capture_error_mode="thread_local"):
            self._result = self._op(*self._operands)


Wrap = Callable[[Callable[..., torch.Tensor]], Callable[..., torch.Tensor]]


def same(op: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return op


def ways_to_call() -> Iterator[tuple[str, Wrap]]:
    yield "", same
    if shmem.device().type == "cuda":
        yield ", from a graph", Recorded


def check_all(rounds: int, say: Callable[[str], None]) -> int:
    """Each over many rounds; how many are wrong."""
    wrong = 0
    for name, check in checks():
        bad = int(torch.as_tensor(check(rounds)).item())
        wrong += bad != 0
        say(f"{name}: {rounds} rounds: {'right' if not bad else f'{bad} WRONG'}")
    return wrong


def checks() -> Iterator[tuple[str, Callable[[int], torch.Tensor | int]]]:
    """Sizes of one piece, of several, and of all multiprocessors."""
    for count in (5003, 300_001, 1_000_000):
        for plan in (None, PIECES) if count < 10_000 else (None,):
            for how, wrap in ways_to_call() if plan is None else [("", same)]:
                kind = f"{count} elements{', in pieces' * (plan is not None)}{how}"
                yield from collectives(kind, count, plan, wrap)
    for how, wrap in ways_to_call():
        for pieces in (0, 2):
            make = partial(MatmulReduceScatter, M, N, torch.bfloat16, pieces=pieces)
            yield f"MatmulReduceScatter, {pieces} pieces{how}", partial(reduced_product, make, wrap)
        make = partial(GemmReduceScatter, M, N, torch.bfloat16)
        yield f"GemmReduceScatter{how}", partial(reduced_product, make, wrap)
        for first in (256, 100) if shmem.n_pes() == 2 else (256,):
            yield f"AllGatherMatmul, {first} of 256 rows first{how}", partial(all_gather_matmul, first, wrap)
        yield f"MatmulAllReduce{how}", partial(matmul_all_reduce, wrap)


def collectives(
    kind: str, count: int, plan: Plan | None, wrap: Wrap
) -> Iterator[tuple[str, Callable[[int], torch.Tensor | int]]]:
    pes, me = shmem.n_pes(), shmem.my_pe()
    shards = [[data_of(pe, number, count) for pe in range(pes)] for number in range(VARIANTS)]
    gathered, summed = [torch.stack(those) for those in shards], [sum(those) for those in shards]
    mine = [those[me] for those in shards]
    for direct in (False, True):
        make = partial(AllGather, (count,), torch.float32, direct=direct, plan=plan)
        name = f"all-gather, {'direct' if direct else 'staged'}, {kind}"
        yield name, partial(compare, make, wrap, mine, gathered)
    for way in ("one-shot", "two-shot"):
        make = partial(AllReduce, (count,), torch.float32, algorithm=way, plan=plan)
        yield f"all-reduce, {way}, {kind}", partial(compare, make, wrap, mine, summed)
    make = partial(AllGather, (count,), torch.float32, packets=True, plan=plan)
    yield f"all-gather, packets, {kind}", partial(compare, make, wrap, mine, gathered)
    make = partial(AllReduce, (count,), torch.float32, packets=True, plan=plan)
    yield f"all-reduce, packets, {kind}", partial(compare, make, wrap, mine, summed)
    if plan is None:  # as it is chosen by size
        yield f"all-gather, {kind}", partial(compare, partial(AllGather, (count,), torch.float32), wrap, mine, gathered)
        yield f"all-reduce, {kind}", partial(compare, partial(AllReduce, (count,), torch.float32), wrap, mine, summed)
    del shards, gathered, summed, mine
    parts, sums = [], []
    for number in range(VARIANTS):
        everyones = torch.stack([data_of(pe, number, pes * count) for pe in range(pes)]).view(pes, pes, count)
        parts.append(everyones[me].clone())
        sums.append(everyones[:, me].sum(0))
    for pull in (False, True):
        make = partial(ReduceScatter, (count,), torch.float32, pull=pull, plan=plan)
        yield f"reduce-scatter, {'pull, ' * pull}{kind}", partial(compare, make, wrap, parts, sums)
    make = partial(ReduceScatter, (count,), torch.float32, packets=True, plan=plan)
    yield f"reduce-scatter, packets, {kind}", partial(compare, make, wrap, parts, sums)


def compare(
    make: Callable[[], Any], wrap: Wrap, given: list[torch.Tensor], expected: list[torch.Tensor], rounds: int
) -> torch.Tensor | int:
    """How many elements are wrong, over all rounds."""
    bad: torch.Tensor | int = 0
    with make() as op:
        call = wrap(op)
        for number in range(rounds):
            bad += (call(given[number % VARIANTS]) != expected[number % VARIANTS]).sum()
    return bad


def matrix(rows: int, columns: int, number: int) -> torch.Tensor:
    return (data_of(0, number, rows * columns) % 5 - 2).view(rows, columns).bfloat16()


M, N, K = 256, 320, 32
ROWS = 48


def all_gather_matmul(first: int, wrap: Wrap, rounds: int) -> torch.Tensor | int:
    bad: torch.Tensor | int = 0
    given = []
    for number in range(VARIANTS):
        shards = [matrix(M, K, number + 3 * pe) for pe in range(shmem.n_pes())]
        b = matrix(K, N, number + shmem.my_pe())
        given.append((shards[shmem.my_pe()], b, torch.cat(shards) @ b))
    with AllGatherMatmul(M, K, torch.bfloat16, first=first) as op:
        call = wrap(op)
        for number in range(rounds):
            shard, b, expected = given[number % VARIANTS]
            bad += (call(shard, b) != expected).sum()
    return bad


def products(number: int, rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """This PE's matrices, and the sum of everyone's products: whole numbers below 256, exact in bf16."""
    pes, me = shmem.n_pes(), shmem.my_pe()
    wide = [matrix(rows, K, number + pe) for pe in range(pes)]
    tall = [matrix(K, N, number + 5 * pe) for pe in range(pes)]
    total = sum(a.float() @ b.float() for a, b in zip(wide, tall, strict=True))
    return wide[me], tall[me], torch.as_tensor(total)


def reduced_product(make: Callable[[], Any], wrap: Wrap, rounds: int) -> torch.Tensor | int:
    bad: torch.Tensor | int = 0
    pes, me = shmem.n_pes(), shmem.my_pe()
    given = [products(number, pes * M) for number in range(VARIANTS)]
    with make() as op:
        call = wrap(op)
        for number in range(rounds):
            a, b, total = given[number % VARIANTS]
            bad += differing(call(a, b), total[me * M : (me + 1) * M])
    return bad


def matmul_all_reduce(wrap: Wrap, rounds: int) -> torch.Tensor | int:
    bad: torch.Tensor | int = 0
    given = [products(number, ROWS) for number in range(VARIANTS)]
    with MatmulAllReduce(ROWS, N, torch.bfloat16) as op:
        call = wrap(op)
        for number in range(rounds):
            a, b, total = given[number % VARIANTS]
            bad += differing(call(a, b), total)
    return bad


def differing(result: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """How many elements are not what they should be; what is not a number is not."""
    return (~((result.float() - expected).abs() <= TOLERANCE)).sum()


TOLERANCE = 2.0
"""Sums up to 512 at 4 PEs: neighbours among bf16 numbers are 2 apart there."""
