# SPDX-License-Identifier: MIT
"""The bounds-checked mode names the access instead of crashing or corrupting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
import torch
import triton
import triton.language as tl

import triton_dist.language as dl
from tests.engine import harness
from triton_dist import errors, knobs, platform, shmem, testing
from triton_dist.language.extra import libshmem_device


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    with knobs.scope(check_bounds=True):
        yield


@triton.jit
def copy(source, target, n, shift, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + offsets + shift, mask=offsets < n)
    tl.store(target + offsets, values, mask=offsets < n)


@triton.jit
def scatter_scalar(target, at):
    tl.store(target + at, 1.0)


@triton.jit
def add_to(counter, at):
    tl.atomic_add(counter + at, 1)


@triton.jit
def row_sums(source, target, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    values = tl.load(source + row * columns + tl.arange(0, BLOCK))
    tl.store(target + row, tl.sum(values, axis=0))


@triton.jit
def to_the_right(inbox, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    there = dl.symm_at(inbox, (dl.rank() + 1) % dl.num_ranks())
    tl.store(there + offsets, offsets.to(tl.float32), mask=offsets < n)


@triton.jit
def pair_copy(pair, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(pair[1] + offsets, tl.load(pair[0] + offsets * n))


@triton.jit(noinline=True)
def read_one(pointer, at):
    return tl.load(pointer + at)


@triton.jit
def moved(first, second, rounds, step, BLOCK: tl.constexpr):
    """`first` by way of a loop, a branch and a call."""
    pointers = first + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(rounds):
        total += tl.load(pointers)
        pointers += BLOCK
    place = first if rounds > 1 else first + step
    tl.store(second + tl.arange(0, BLOCK), total + read_one(place, step))


@triton.jit
def follow(addresses, target):
    tl.store(target, tl.load(tl.load(addresses).to(tl.pointer_type(tl.float32))))


@triton.jit
def signal_at(signals, at, OP: tl.constexpr, SCOPE: tl.constexpr):
    dl.notify(signals + at, dl.rank(), signal=7, sig_op=OP, comm_scope=SCOPE)


@triton.jit
def wait_at(signals, at):
    dl.wait(signals + at, 2, "sys", "acquire", waitValue=0)


@triton.jit
def host_functions_at(signals, at, WHICH: tl.constexpr):
    if WHICH == "wait":
        libshmem_device.signal_wait_until(signals + at, libshmem_device.NVSHMEM_CMP_EQ, 0)
    elif WHICH == "signal":
        libshmem_device.signal_op(signals + at, 1, libshmem_device.NVSHMEM_SIGNAL_ADD, dl.rank())
    else:
        libshmem_device.int_p(signals.to(tl.pointer_type(tl.int32)) + 2 * at, 1, dl.rank())


on_the_host = pytest.mark.backends("cpu", "cuda")  # Ascend has signals, functions and distances of its own


@on_the_host
@pytest.mark.parametrize("op", ["set", "add"])
@pytest.mark.parametrize("scope", ["gpu", "intra_node"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_a_signal_outside_leaves_memory_alone(dtype: torch.dtype, scope: str, op: str) -> None:
    if dtype is torch.int32 and platform.current().backend == "cuda":
        pytest.skip("NVSHMEM has no such signals")
    memory = torch.zeros(16, dtype=dtype)
    signal_at[(1,)](memory[:4].clone(), 3, OP=op, SCOPE=scope)
    text = f"write of {dtype.itemsize} bytes at element 4 of argument 'signals', past the end of its memory"
    with pytest.raises(errors.OutOfBounds, match=text):
        signal_at[(1,)](memory[:4].clone(), 4, OP=op, SCOPE=scope)


@on_the_host
def test_a_wait_outside() -> None:
    """The second of two signals."""
    signals = torch.zeros(4, dtype=torch.int64)
    wait_at[(1,)](signals, 2)
    with pytest.raises(errors.OutOfBounds, match="read of 8 bytes at element 4 of argument 'signals', past the end"):
        wait_at[(1,)](signals, 3)


@on_the_host
@pytest.mark.parametrize(("which", "access"), [("wait", "read of 8"), ("signal", "write of 8"), ("p", "write of 4")])
def test_a_host_function_outside(which: str, access: str) -> None:
    signals = torch.zeros(4, dtype=torch.int64)
    host_functions_at[(1,)](signals, 3, WHICH=which)
    with pytest.raises(errors.OutOfBounds, match=f"{access} bytes at element [48] of argument 'signals', past the end"):
        host_functions_at[(1,)](signals, 4, WHICH=which)


@on_the_host
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("scope", ["gpu", "intra_node"])
@pytest.mark.parametrize("op", ["set", "add"])
def test_signals_at_null(op: str, scope: str, *, checked: bool) -> None:
    nothing = torch.zeros(0, dtype=torch.int64)
    launches = [lambda: signal_at[(1,)](nothing, 0, OP=op, SCOPE=scope), lambda: wait_at[(1,)](nothing, 0)]
    launches += [lambda w=which: host_functions_at[(1,)](nothing, 0, WHICH=w) for which in ("wait", "signal", "p")]
    with knobs.scope(check_bounds=checked):
        for launch in launches:
            with pytest.raises(errors.NullPointerInKernel, match="the pointer is null, as that of a tensor without"):
                launch()


def test_masked_lanes_are_not_looked_at() -> None:
    source, target = torch.randn(100), torch.zeros(100)
    copy[(4,)](source, target, 100, 0, BLOCK=32)
    assert torch.equal(source, target)


@pytest.mark.parametrize(("shift", "element", "side"), [(1, 100, "past the end"), (-3, -3, "before the beginning")])
def test_a_load_outside(shift: int, element: int, side: str) -> None:
    source, target = torch.randn(100), torch.zeros(100)
    with pytest.raises(errors.OutOfBounds) as caught:
        copy[(4,)](source, target, 100, shift, BLOCK=32)
    text = str(caught.value)
    assert f"read of 4 bytes at element {element} of argument 'source', {side}" in text
    assert "copy, program" in text
    assert "test_bounds.py:" in text


def test_a_store_outside_leaves_memory_alone() -> None:
    memory = torch.zeros(64)
    target = memory[:32].clone()
    with pytest.raises(errors.OutOfBounds, match=r"write of 4 bytes at element 40 of argument 'target', past the end"):
        scatter_scalar[(1,)](target, 40)
    assert target.abs().sum() == 0


@pytest.mark.parametrize("element", [0, 3, -2])
def test_a_tensor_without_elements(element: int) -> None:
    """A view of a larger one, too."""
    for target in (torch.zeros(0), torch.zeros(64)[8:8]):
        with pytest.raises(errors.OutOfBounds) as caught:
            scatter_scalar[(1,)](target, element)
        assert f"element {element} of argument 'target', which is a tensor without elements" in str(caught.value)


def test_an_atomic_outside() -> None:
    with pytest.raises(errors.OutOfBounds, match="element 7 of argument 'counter'"):
        add_to[(1,)](torch.zeros(4, dtype=torch.int32), 7)


def test_a_reduction_reads_outside() -> None:
    with pytest.raises(errors.OutOfBounds, match="argument 'source'"):
        row_sums[(3,)](torch.ones(3, 20), torch.zeros(3), 20, BLOCK=32)


def test_a_view_may_reach_its_storage() -> None:
    storage, target = torch.randn(100), torch.zeros(100)
    copy[(1,)](storage[10:20], target, 30, -10, BLOCK=32)
    assert torch.equal(target[:30], storage[:30])


def test_the_symmetric_heap_is_allowed_on_every_pe() -> None:
    def main(pe: int) -> list[float]:
        inbox = shmem.create_tensor((32,), torch.float32)
        to_the_right[(1,)](inbox, 32, BLOCK=32)
        shmem.barrier_all()
        return inbox.tolist()

    assert testing.run_pes(main, 2) == [list(range(32))] * 2


class Pair(NamedTuple):
    source: torch.Tensor
    target: torch.Tensor


def test_arguments_in_tuples_are_named() -> None:
    source, target = torch.zeros(16), torch.zeros(8)
    with pytest.raises(errors.OutOfBounds, match=r"element 16 of argument 'pair\[0\]', past the end"):
        pair_copy[(1,)]((source, target), 2, BLOCK=16)
    with pytest.raises(errors.OutOfBounds, match=r"element 8 of argument 'pair.target', past the end"):
        pair_copy[(1,)](Pair(source, target), 1, BLOCK=16)


def test_an_address_far_away_is_named_by_what_it_was_computed_from() -> None:
    memory, source = torch.zeros(1 << 20), torch.zeros(32)
    # Where the other argument does not happen to lie.
    begin, end = memory.data_ptr() - source.nbytes, memory.data_ptr() + memory.nbytes
    start = next(n for n in (1 << 20, 1 << 21) if not begin < source.data_ptr() + 4 * n < end)
    with pytest.raises(errors.OutOfBounds, match=f"element {start} of argument 'source', past the end"):
        copy[(1,)](source, memory, 32, start, BLOCK=32)


@pytest.mark.parametrize(("rounds", "step", "element"), [(5, 0, 64), (2, 70, 70), (1, 40, 80), (2, -1, -1)])
def test_the_argument_behind_loops_branches_and_calls(rounds: int, step: int, element: int) -> None:
    first, second = torch.zeros(64), torch.zeros(16)
    with pytest.raises(errors.OutOfBounds, match=f"element {element} of argument 'first'"):
        moved[(1,)](first, second, rounds, step, BLOCK=16)
    moved[(1,)](first, second, 4, 5, BLOCK=16)


@pytest.mark.parametrize("address", [0, 1, 4096, 1 << 47, -(1 << 47), -4, -1], ids=hex)
def test_an_address_out_of_nowhere(address: int) -> None:
    with pytest.raises(errors.OutOfBounds, match="far from every tensor"):
        follow[(1,)](torch.tensor([address]), torch.zeros(1))


OPERATIONS = {
    "load": "tl.store(o + i, tl.load(p + i))",
    "volatile load": "tl.load(p + i, volatile=True)",
    "store": "tl.store(p + i, i)",
    "add": "tl.atomic_add(p + i, i)",
    "exchange, masked": "tl.atomic_xchg(p + i, i, mask=i != 1)",
    "compare and swap": "tl.atomic_cas(p + i, i, i)",
    "sort": "tl.store(o + i, tl.sort(tl.load(p + i)))",
    "scan": "tl.store(o + i, tl.cumsum(tl.load(p + i), 0))",
    "histogram": "tl.store(o + i, tl.histogram(tl.load(p + i), 4))",
    "gather": "tl.store(o + i, tl.gather(tl.load(p + i), i, 0))",
    "assert": "tl.device_assert(tl.load(p + i) == 0, 'not zero')",
    "reduce": "tl.store(o, tl.sum(tl.load(p + i), 0))",
    "scalar load": "tl.store(o, tl.load(p))",
    "scalar store": "tl.store(p, 1)",
    "scalar add": "tl.atomic_add(p, 1)",
}
NEWER = {
    "atomic load": "tl.store(o + i, tl.atomic_load(p + i))",
    "atomic store": "tl.atomic_store(p + i, i)",
    "poll": "tl.store(o + i, tl.atomic_poll(p + i, i, timeout_ns=1000))",
    "scalar atomic load": "tl.store(o, tl.atomic_load(p))",
    "scalar atomic store": "tl.atomic_store(p, 1)",
    "scalar poll": "tl.store(o, tl.atomic_poll(p, 1))",
}


@pytest.mark.parametrize("start", [64, -4])
@pytest.mark.parametrize("name", [*OPERATIONS, *NEWER])
def test_each_operation(name: str, start: int) -> None:
    if name in NEWER and not hasattr(tl, "atomic_poll"):
        pytest.skip("this Triton has no such operation")
    text = {**OPERATIONS, **NEWER}[name]
    lines = "@triton.jit\ndef kernel(q, o, n):\n    p, i = q + n, tl.arange(0, 4)\n    " + text
    memory = torch.zeros(64, dtype=torch.int32)
    side = "past the end" if start > 0 else "before the beginning"
    with pytest.raises(errors.OutOfBounds, match=f"of 4 bytes at element {start} of argument 'q', {side}"):
        harness.module(lines).kernel[(1,)](memory, torch.zeros(4, dtype=torch.int32), start, debug=True)
    assert not memory.any()
