# SPDX-License-Identifier: MIT
"""The library's collectives and GEMMs over many rounds against torch, on small whole numbers: sums are exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from triton_dist import shmem
from triton_dist.kernels import (
    AllGather,
    AllGatherMatmul,
    AllReduce,
    MatmulAllReduce,
    MatmulReduceScatter,
    ReduceScatter,
)
from triton_dist.kernels.counted import Plan

PIECES = Plan(programs=4, piece=1024, block=512, warps=4)
"""Several pieces a program, several blocks a piece, whatever the size."""


def data_of(pe: int, number: int, count: int) -> torch.Tensor:
    return ((torch.arange(count, device=shmem.device()) * (pe + 3) + number) % 13).float()


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
            kind = f"{count} elements{', in pieces' * (plan is not None)}"
            for direct in (False, True):
                yield (
                    f"all-gather, {'direct' if direct else 'staged'}, {kind}",
                    lambda rounds, c=count, p=plan, d=direct: all_gather(rounds, c, p, d),
                )
            for pull in (False, True):
                name = f"reduce-scatter, {'pull, ' * pull}{kind}"
                yield name, lambda rounds, c=count, p=plan, pull=pull: reduce_scatter(rounds, c, p, pull)
            for way in ("one-shot", "two-shot"):
                yield (
                    f"all-reduce, {way}, {kind}",
                    lambda rounds, c=count, p=plan, w=way: all_reduce(rounds, c, p, w),
                )
    for pieces in (0, 2):
        name = f"MatmulReduceScatter, {pieces} pieces"
        yield name, lambda rounds, pieces=pieces: matmul_reduce_scatter(rounds, pieces)
    for first in (256, 100) if shmem.n_pes() == 2 else (256,):
        yield f"AllGatherMatmul, {first} of 256 rows first", lambda rounds, f=first: all_gather_matmul(rounds, f)
    yield "MatmulAllReduce", matmul_all_reduce


def everyones(number: int, count: int) -> list[torch.Tensor]:
    return [data_of(pe, number, count) for pe in range(shmem.n_pes())]


def all_gather(rounds: int, count: int, plan: Plan | None, direct: bool) -> torch.Tensor | int:
    bad: torch.Tensor | int = 0
    with AllGather((count,), torch.float32, direct=direct, plan=plan) as op:
        for number in range(rounds):
            shards = everyones(number, count)
            bad += (op(shards[shmem.my_pe()]) != torch.stack(shards)).sum()
    return bad


def reduce_scatter(rounds: int, count: int, plan: Plan | None, pull: bool) -> torch.Tensor | int:
    bad: torch.Tensor | int = 0
    pes, me = shmem.n_pes(), shmem.my_pe()
    with ReduceScatter((count,), torch.float32, pull=pull, plan=plan) as op:
        for number in range(rounds):
            parts = torch.stack(everyones(number, pes * count)).view(pes, pes, count)
            bad += (op(parts[me]) != parts[:, me].sum(0)).sum()
    return bad


def all_reduce(rounds: int, count: int, plan: Plan | None, algorithm: str) -> torch.Tensor | int:
    bad: torch.Tensor | int = 0
    with AllReduce((count,), torch.float32, algorithm=algorithm, plan=plan) as op:  # pyright: ignore[reportArgumentType]
        for number in range(rounds):
            inputs = everyones(number, count)
            bad += (op(inputs[shmem.my_pe()]) != torch.stack(inputs).sum(0)).sum()
    return bad


def matrix(rows: int, columns: int, number: int) -> torch.Tensor:
    return (data_of(0, number, rows * columns) % 5 - 2).view(rows, columns).bfloat16()


M, N, K = 256, 320, 32
ROWS = 48


def all_gather_matmul(rounds: int, first: int) -> torch.Tensor | int:
    bad: torch.Tensor | int = 0
    with AllGatherMatmul(M, K, torch.bfloat16, first=first) as op:
        for number in range(rounds):
            shards = [matrix(M, K, number + 3 * pe) for pe in range(shmem.n_pes())]
            b = matrix(K, N, number + shmem.my_pe())
            bad += (op(shards[shmem.my_pe()], b) != torch.cat(shards) @ b).sum()
    return bad


def products(number: int, rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """This PE's matrices, and the sum of everyone's products: whole numbers below 256, exact in bf16."""
    pes, me = shmem.n_pes(), shmem.my_pe()
    wide = [matrix(rows, K, number + pe) for pe in range(pes)]
    tall = [matrix(K, N, number + 5 * pe) for pe in range(pes)]
    total = sum(a.float() @ b.float() for a, b in zip(wide, tall, strict=True))
    return wide[me], tall[me], torch.as_tensor(total)


def matmul_reduce_scatter(rounds: int, pieces: int) -> torch.Tensor | int:
    bad: torch.Tensor | int = 0
    pes, me = shmem.n_pes(), shmem.my_pe()
    with MatmulReduceScatter(M, N, torch.bfloat16, pieces=pieces) as op:
        for number in range(rounds):
            a, b, total = products(number, pes * M)
            bad += ((op(a, b).float() - total[me * M : (me + 1) * M]).abs() > TOLERANCE).sum()
    return bad


def matmul_all_reduce(rounds: int) -> torch.Tensor | int:
    bad: torch.Tensor | int = 0
    with MatmulAllReduce(ROWS, N, torch.bfloat16) as op:
        for number in range(rounds):
            a, b, total = products(number, ROWS)
            bad += ((op(a, b).float() - total).abs() > TOLERANCE).sum()
    return bad


TOLERANCE = 2.0
"""Sums up to 512 at 4 PEs: neighbours among bf16 numbers are 2 apart there."""
