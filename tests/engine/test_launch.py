# SPDX-License-Identifier: MIT
"""What a launch hands to the native runtime."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import triton
import triton.language as tl

from triton_dist import knobs
from triton_dist.backends.cpu.native import record
from triton_dist.backends.cpu.native.abi import Launch, packer


def test_fields_lie_where_the_structure_has_them() -> None:
    given = ("function", "grid_z", "chunk", "limit", "id")
    packed = packer(*given).pack(1, 2, 3, 4, 5)
    assert len(packed) == ctypes.sizeof(Launch)
    launch = Launch.from_buffer_copy(packed)
    numbers = {name: getattr(launch, name) for name, *_ in Launch._fields_ if name != "spare"}
    assert {name: n for name, n in numbers.items() if n} == dict(zip(given, range(1, 6), strict=True))


@pytest.mark.parametrize("size", [0, 8, record.SIZE - record.AT, record.SIZE - record.AT + 8, 3 * record.SIZE])
def test_a_record_has_room_for_all_arguments(size: int) -> None:
    args = bytes(i % 251 for i in range(size))
    mine = record.take(args)
    mine.fill(7, args, *range(2, 15))
    launch = Launch.from_address(mine.address)
    assert (launch.function, launch.grid_x, launch.status, launch.id, launch.ask) == (7, 2, 0, 13, 14)
    assert ctypes.string_at(launch.args, size) == args
    record.give(mine)


def test_nobody_else_has_a_record_that_is_out() -> None:
    first, second = record.take(b""), record.take(b"")
    assert first.address != second.address
    record.give(first)
    assert record.take(b"").address == first.address


@triton.jit
def fill(out, n, value, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, value + at, mask=at < n)


def test_launches_from_many_threads_do_not_meet() -> None:
    def one(value: int) -> bool:
        out = torch.empty(1000, dtype=torch.int32)
        for _ in range(20):
            fill[(32,)](out, 1000, value, BLOCK=32)
        return torch.equal(out, torch.arange(value, value + 1000, dtype=torch.int32))

    with knobs.scope(num_threads=2), ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(0, 64000, 1000)))
