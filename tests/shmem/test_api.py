# SPDX-License-Identifier: MIT
"""The host API on threads, at every world size."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from triton_dist import backends, errors, knobs, platform, shmem
from triton_dist.backends.cpu import state
from triton_dist.testing import PE_COUNTS, run_pes

pytestmark = pytest.mark.parametrize("n", PE_COUNTS)


def neighbours() -> tuple[int, int, int]:
    me, n = shmem.my_pe(), shmem.n_pes()
    return me, (me + 1) % n, (me - 1) % n


def test_identity(n: int) -> None:
    assert run_pes(lambda: (shmem.my_pe(), shmem.n_pes()), n) == [(pe, n) for pe in range(n)]
    assert not shmem.initialized()


def test_put_signal_wait(n: int) -> None:
    def ring() -> list[int]:
        me, right, _ = neighbours()
        data, ready = shmem.create_tensor((5,), torch.int64), shmem.create_signals(1)
        for turn in range(1, 20):
            shmem.put(data, torch.full((5,), me * 100 + turn), right)
            shmem.signal(ready[0], turn, "set", right)
            assert shmem.wait_signal(ready[0], turn) == turn
            assert data.tolist() == [(me - 1) % n * 100 + turn] * 5
            shmem.barrier_all()
        return data.tolist()

    assert [got[0] for got in run_pes(ring, n)] == [(pe - 1) % n * 100 + 19 for pe in range(n)]


def test_get_and_peer_tensor(n: int) -> None:
    def read(pe: int) -> None:
        data = shmem.create_tensor((2, 3), torch.float32)
        data.fill_(pe)
        shmem.barrier_all()
        for peer in range(n):
            here = torch.empty(2, 3)
            shmem.get(here, data, peer)
            assert (here == peer).all()
            assert torch.equal(shmem.peer_tensor(data, peer), here)
        assert shmem.peer_tensor(data, pe) is data

    run_pes(read, n)


def test_parts_of_tensors(n: int) -> None:
    def gather(pe: int) -> list[int]:
        data = shmem.create_tensor((n, 4), torch.int32)
        for peer in range(n):
            shmem.put(data[pe], torch.full((4,), pe + 1, dtype=torch.int32), peer)
        shmem.barrier_all()
        right = (pe + 1) % n
        column = shmem.peer_tensor(data[:, 1], right)
        assert column.tolist() == list(range(1, n + 1))
        assert shmem.peer_tensor(data.t(), right).shape == (4, n)
        shmem.barrier_all()
        return data[:, 3].tolist()

    assert run_pes(gather, n) == [list(range(1, n + 1))] * n


@pytest.mark.parametrize("name", ["int32", "int64", "uint64"])
def test_signals_add_up(n: int, name: str) -> None:
    if "add" not in backends.active().limits.signal_ops.get(name, ()):
        pytest.skip("refused; see test_signals_are_those_that_kernels_notify")
    dtype = getattr(torch, name)

    def add() -> int:
        counter = shmem.create_signals(3, dtype)
        for _ in range(50):
            for peer in range(n):
                shmem.signal(counter[2], 2, "add", peer)
        return shmem.signal_wait_until(counter[2], "ge", 100 * n)

    assert run_pes(add, n) == [100 * n] * n


def test_signals_have_a_cache_line_each(n: int) -> None:
    def layout() -> tuple[Any, ...]:
        signals = shmem.create_signals(4)
        return tuple(signals.shape), signals.stride(0) * 8, signals.data_ptr() % 64, int(signals.sum())

    # NVSHMEM's are as dense as any other memory.
    distance = 8 if platform.current().backend == "cuda" else 64
    assert set(run_pes(layout, n)) == {((4,), distance, 0, 0)}


def test_unsigned_signals_compare_unsigned(n: int) -> None:
    def big() -> int:
        signals = shmem.create_signals(1, torch.uint64)
        shmem.signal(signals[0], (1 << 64) - 3, "set", shmem.my_pe())
        op, value = ("add", 1) if "add" in backends.active().limits.signal_ops["uint64"] else ("set", (1 << 64) - 2)
        shmem.signal(signals[0], value, op, shmem.my_pe())
        return shmem.wait_signal(signals[0], 1 << 63, "gt")

    assert run_pes(big, n) == [(1 << 64) - 2] * n


def test_reset_signals(n: int) -> None:
    def reset() -> int:
        _, right, _ = neighbours()
        signals = shmem.create_signals(2)
        shmem.signal(signals[1], 9, "set", right)
        shmem.wait_signal(signals[1], 9)
        shmem.reset_signals(signals)
        return int(signals.sum())

    assert run_pes(reset, n) == [0] * n


def test_memory_is_zero_also_the_second_time(n: int) -> None:
    def reuse() -> bool:
        first = shmem.create_tensor((100_000,), torch.int8)
        where = shmem.offset_of(first)
        first.fill_(1)
        shmem.free_tensor(first)
        second = shmem.create_tensor((100_000,), torch.int8)
        assert shmem.offset_of(second) == where
        return bool(second.any())

    assert run_pes(reuse, n) == [False] * n


def test_offsets_are_equal_and_aligned(n: int) -> None:
    def offsets() -> list[int]:
        shapes: list[Any] = [(3,), 7, (), (0, 4), torch.Size([2, 2])]
        tensors = [shmem.create_tensor(shape, torch.float16) for shape in shapes]
        assert [tuple(t.shape) for t in tensors] == [(3,), (7,), (), (0, 4), (2, 2)]
        return [shmem.offset_of(tensor) for tensor in tensors]

    results = run_pes(offsets, n)
    assert all(result == results[0] for result in results)
    assert len(set(results[0])) == 5
    assert all(offset % 64 == 0 for offset in results[0])


def test_barriers_keep_pes_together(n: int) -> None:
    arrived, lock = [0] * n, threading.Lock()

    def step(pe: int) -> None:
        for turn in range(1, 40):
            with lock:
                arrived[pe] = turn
            shmem.barrier_all()
            assert all(turn <= other <= turn + 1 for other in arrived)

    run_pes(step, n)


def test_the_device_state_of_a_thread(n: int) -> None:
    def look(pe: int) -> None:
        device = state.current()
        assert (device.my_pe, device.n_pes, device.dead_pe) == (pe, n, -1)
        bases = (state.c_uint64 * n).from_address(device.peer_base)
        assert bases[pe] == device.heap_base
        assert len(set(bases)) == n
        data = shmem.create_tensor((4,), torch.int32)
        assert device.heap_base <= data.data_ptr() < device.heap_base + device.heap_size
        for _ in range(3):
            shmem.barrier_all()
        assert device.sync_count == 3
        slot = device.heap_base + device.sync_offset + 64 * pe
        assert state.c_int64.from_address(slot).value == 3

    run_pes(look, n)
    assert state.current().heap_base == 0


def test_host_and_device_barriers_alternate(n: int) -> None:
    def device_barrier() -> None:
        """What a kernel does, in Python."""
        device = state.current()
        device.sync_count += 1
        bases = (state.c_uint64 * n).from_address(device.peer_base)
        slots = [state.c_int64.from_address(base + device.sync_offset + 64 * i) for i, base in enumerate(bases)]
        slots[device.my_pe].value = device.sync_count
        while not all(slot.value - device.sync_count in (0, 1) for slot in slots):
            pass

    def alternate(pe: int) -> int:
        for turn in range(6):
            if turn % 2:
                device_barrier()
            else:
                shmem.barrier_all()
        return state.current().sync_count

    assert run_pes(alternate, n) == [6] * n


def test_info(n: int) -> None:
    def facts() -> Any:
        shmem.create_tensor((1000,), torch.float32)
        return shmem.info()

    info = run_pes(facts, n, heap_size=1 << 20)[-1]
    assert (info.pe, info.n_pes, info.pes_are, info.tensors) == (n - 1, n, "threads", 1)
    assert info.heap_bytes == 1 << 20
    assert info.heap_bytes - info.free_bytes == 4032


def test_an_address_has_a_name(n: int) -> None:
    def names(pe: int) -> None:
        matrix, signals = shmem.create_tensor((4, 8), torch.float32), shmem.create_signals(4)
        right = (pe + 1) % n
        remote = shmem.peer_tensor(matrix, right)
        place = shmem.describe_address(remote[2, 3:].data_ptr())
        assert place.startswith("element [2, 3] of create_tensor((4, 8), torch.float32) at ")
        assert f"test_api.py:{names.__code__.co_firstlineno + 1}" in place
        assert place.endswith(f"(PE {right}, heap offset {shmem.offset_of(matrix) + 76:#x})")
        assert shmem.describe_address(signals[3].data_ptr()).startswith("signal 3 of create_signals(4, torch.int64) at")
        assert shmem.describe_address(matrix.data_ptr() + 1).startswith("byte 1 of create_tensor")
        base = state.current().heap_base
        assert shmem.describe_address(base + 8).startswith("the control block")
        sync = base + state.current().sync_offset
        assert shmem.describe_address(sync + 64 * (n - 1)).startswith(f"barrier slot {n - 1}")
        assert shmem.describe_address(base + (1 << 20)).startswith("free space")
        assert "outside every PE's symmetric heap" in shmem.describe_address(torch.zeros(1).data_ptr())
        shmem.free_tensor(matrix)
        assert "freed by free_tensor" in shmem.describe_address(matrix.data_ptr())

    run_pes(names, n)


def test_is_symmetric(n: int) -> None:
    def check(pe: int) -> None:
        data = shmem.create_tensor((4, 4), torch.float32)
        assert shmem.is_symmetric(data)
        assert shmem.is_symmetric(data[1:, 2])
        assert shmem.is_symmetric(data.view(-1).detach())
        assert not shmem.is_symmetric(data.clone())
        assert not shmem.is_symmetric(torch.zeros(3))
        if n > 1:
            assert not shmem.is_symmetric(shmem.peer_tensor(data, (pe + 1) % n))
        shmem.free_tensor(data)
        assert not shmem.is_symmetric(data)

    run_pes(check, n)


def test_init_and_finalize_may_be_written_or_not(n: int) -> None:
    def with_both() -> int:
        shmem.init()
        shmem.create_tensor((4,), torch.int8)
        pe = shmem.my_pe()
        shmem.finalize()
        assert shmem.initialized()  # run_pes made it, and ends it
        return pe

    def with_finalize() -> None:
        shmem.finalize()
        assert not shmem.initialized()

    assert run_pes(with_both, n) == list(range(n))
    run_pes(with_finalize, n)


def test_a_tensor_outlives_its_world(n: int) -> None:
    def make(pe: int) -> torch.Tensor:
        data = shmem.create_tensor((3,), torch.int32)
        data.fill_(pe)
        return data

    assert [int(data.sum()) for data in run_pes(make, n)] == [3 * pe for pe in range(n)]


def test_no_deadline(n: int) -> None:
    with knobs.scope(wait_timeout=0):
        run_pes(lambda: [shmem.barrier_all() for _ in range(3)], n)


def test_a_simulated_back_end_has_its_own_distance_of_signals(n: int) -> None:
    def stride() -> tuple[int, str]:
        return shmem.create_signals(3).stride(0), shmem.info().mode

    with knobs.scope(backend="cuda", simulate=True):
        assert run_pes(stride, n) == [(1, "simulated")] * n
    with knobs.scope(backend="ascend", simulate=True):
        assert run_pes(stride, n) == [(8, "simulated")] * n


SIGNALS = {
    "cpu": {"int32": ("set", "add"), "int64": ("set", "add"), "uint64": ("set", "add")},
    "cuda": {"int64": ("set", "add"), "uint64": ("set", "add")},
    "ascend": {"int32": ("set", "add"), "int64": ("set",), "uint64": ("set",)},
}


@pytest.mark.parametrize("name", SIGNALS)
def test_signals_are_those_that_kernels_notify(n: int, name: str) -> None:
    """A back end that is simulated takes what its device does, and the host API what `dl.notify` does."""

    def taken() -> dict[str, list[str]]:
        found = {}
        for dtype in ("int16", "int32", "int64", "uint32", "uint64", "float32"):
            refusal, signals = refused(lambda dtype=dtype: shmem.create_signals(2, getattr(torch, dtype)))
            if signals is None:
                assert f"a signal of the {name} back end cannot be {dtype}; valid: {', '.join(valid)}" in refusal
            else:
                found[dtype] = [op for op in ("set", "add") if sent(signals[1], op)]
        return found

    def sent(signal: torch.Tensor, op: str) -> bool:
        refusal, _ = refused(lambda: shmem.signal(signal, 1, op, shmem.my_pe()))
        told = f"the ascend back end cannot {op} to a signal of type {str(signal.dtype).removeprefix('torch.')}"
        assert not refusal or (told in refusal and refusal.endswith("'add' is for: int32"))
        return not refusal

    def plain_memory_as_signal() -> str:
        memory = shmem.create_tensor((1,), torch.uint32)
        return refused(lambda: shmem.wait_signal(memory[0], 0))[0]

    valid = SIGNALS[name]
    with knobs.scope(backend=name, simulate=None if name == "cpu" else True):
        limits = backends.active().limits.signal_ops
        assert {dtype: {*ops} for dtype, ops in limits.items()} == {dtype: {*ops} for dtype, ops in valid.items()}
        assert run_pes(taken, n) == [{dtype: [*ops] for dtype, ops in valid.items()}] * n
        assert all("cannot be uint32; valid" in message for message in run_pes(plain_memory_as_signal, n))


def refused(call: Callable[[], Any]) -> tuple[str, Any]:
    """Why the host API refuses the signal, and what the call returned."""
    try:
        return "", call()
    except errors.BadSignal as error:
        return str(error), None
