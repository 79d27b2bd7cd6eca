# SPDX-License-Identifier: MIT
"""Loops that wait for memory, however they are written, let others run; loops that only read it are not slowed down."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from triton_dist import errors, knobs

PROGRAMS = 24


@triton.jit
def with_a_store(flags, out, progress):
    me = tl.num_programs(0) - 1 - tl.program_id(0)
    rounds = 0
    while tl.atomic_cas(flags + me, 1, 1) == 0:
        rounds += 1
        tl.store(progress + me, rounds)
    tl.atomic_xchg(flags + me + 1, 1)
    tl.store(out + me, 1)


@triton.jit(noinline=True)
def read(flag):
    return tl.atomic_add(flag, 0, sem="acquire")


@triton.jit
def with_a_call(flags, out, progress):
    me = tl.num_programs(0) - 1 - tl.program_id(0)
    while read(flags + me) != 1:
        pass
    tl.atomic_xchg(flags + me + 1, 1)
    tl.store(out + me, 1)


@triton.jit
def with_a_reduction(flags, out, progress):
    me = tl.num_programs(0) - 1 - tl.program_id(0)
    nothing = tl.zeros((4,), tl.int32)
    while tl.max(tl.atomic_add(flags + me + nothing, nothing), 0) != 1:
        pass
    tl.atomic_xchg(flags + me + 1, 1)
    tl.store(out + me, 1)


@triton.jit
def for_all_of_a_tile(flags, out, progress, N: tl.constexpr):
    me = tl.num_programs(0) - 1 - tl.program_id(0)
    each = tl.arange(0, N)
    while tl.sum(tl.load(flags + each, mask=each <= me, other=0, volatile=True), 0) <= me:
        pass
    tl.atomic_xchg(flags + me + 1, 1)
    tl.store(out + me, 1)


@triton.jit
def with_a_loop_inside(flags, out, progress):
    me = tl.num_programs(0) - 1 - tl.program_id(0)
    done = 0
    while done == 0:
        done = 1
        for slot in range(me + 1):
            if tl.atomic_add(flags + slot, 0) == 0:
                done = 0
    tl.atomic_xchg(flags + me + 1, 1)
    tl.store(out + me, 1)


@triton.jit
def with_a_float(flags, out, progress):
    me = tl.num_programs(0) - 1 - tl.program_id(0)
    word = flags.to(tl.pointer_type(tl.float32))
    while tl.load(word + me, volatile=True) == 0.0:
        pass
    tl.atomic_xchg(flags + me + 1, 1)
    tl.store(out + me, 1)


@triton.jit
def with_a_limit(flags, out, progress):
    me = tl.num_programs(0) - 1 - tl.program_id(0)
    rounds = 0
    while (tl.atomic_add(flags + me, 0) == 0) & (rounds < 2000000000):
        rounds += 1
    tl.atomic_xchg(flags + me + 1, 1)
    tl.store(out + me, 1)


FORMS: dict[str, tuple[Any, dict[str, int]]] = {
    "store": (with_a_store, {}),
    "call": (with_a_call, {}),
    "reduction": (with_a_reduction, {}),
    "tile": (for_all_of_a_tile, {"N": 32}),
    "loop": (with_a_loop_inside, {}),
    "float": (with_a_float, {}),
    "limit": (with_a_limit, {}),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_program_waits_for_one_that_starts_later(form: str) -> None:
    kernel, constants = FORMS[form]
    flags, out, progress = (torch.zeros(PROGRAMS + 1, dtype=torch.int32) for _ in range(3))
    flags[0] = 1
    kernel[(PROGRAMS,)](flags, out, progress, **constants)
    assert out[:PROGRAMS].all()


@pytest.mark.parametrize("form", ["store", "call", "reduction", "tile", "loop", "limit"])
def test_it_sees_the_deadline(form: str) -> None:
    kernel, constants = FORMS[form]
    flags, out, progress = (torch.zeros(4, dtype=torch.int32) for _ in range(3))
    with knobs.scope(wait_timeout=0.2), pytest.raises(errors.PollTimeout, match="in a loop of the kernel"):
        kernel[(2,)](flags, out, progress, **constants)


# Loops that do not wait

ROUNDS = 50_000
"""So many that a waiting loop would not come to its end before the deadline."""


@triton.jit
def total(values, out, n):
    i = 0
    found = 0.0
    while i < n:
        found += tl.load(values + i)
        i += 1
    tl.store(out, found)


@triton.jit
def length_of_list(following, out, n):
    i = tl.load(following)
    count = 1
    while i >= 0:
        i = tl.load(following + i)
        count += 1
    tl.store(out, count)


@triton.jit
def queue(counter, out, n):
    item = tl.atomic_add(counter, 1)
    while item < n:
        tl.atomic_add(out, 1)
        item = tl.atomic_add(counter, 1)


@triton.jit
def up_to_a_limit_in_memory(values, out, limit):
    i = 0
    found = 0.0
    while i < tl.load(limit):
        found += tl.load(values + i)
        i += 1
    tl.store(out, found)


def test_a_loop_whose_limit_is_read_every_round() -> None:
    out = torch.zeros(1)
    with knobs.scope(wait_timeout=0.5):
        up_to_a_limit_in_memory[(1,)](torch.ones(ROUNDS), out, torch.tensor([ROUNDS], dtype=torch.int32))
    assert out.item() == ROUNDS


def test_a_loop_over_elements() -> None:
    out = torch.zeros(1)
    with knobs.scope(wait_timeout=0.5):
        compiled = total[(1,)](torch.ones(ROUNDS), out, ROUNDS)
    assert out.item() == ROUNDS
    assert not compiled.metadata.blocking


def test_a_loop_along_a_list() -> None:
    following, out = torch.arange(1, ROUNDS + 1, dtype=torch.int32), torch.zeros(1)
    following[-1] = -1
    with knobs.scope(wait_timeout=0.5):
        length_of_list[(1,)](following, out, ROUNDS)
    assert out.item() == ROUNDS


def test_a_queue_of_work() -> None:
    counter, out = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    with knobs.scope(wait_timeout=0.5):
        queue[(4,)](counter, out, ROUNDS)
    assert out.item() == ROUNDS
