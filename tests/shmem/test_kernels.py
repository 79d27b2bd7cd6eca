# SPDX-License-Identifier: MIT
"""The runtime under kernels: shared memory, barriers of host and device, waits that end."""

from __future__ import annotations

import gc
import re
import time

import pytest
import torch
import triton
import triton.language as tl

from triton_dist import errors, knobs, shmem
from triton_dist.backends.cpu import state, trace
from triton_dist.language.extra import libshmem_device
from triton_dist.testing import PE_COUNTS, run_pes, run_processes

from . import kernels

pytestmark = pytest.mark.backends("cpu")


def expected(n: int) -> list[list[int]]:
    return [[100 * ((pe - 1) % n) + turn for turn in range(1, 6)] for pe in range(n)]


@pytest.mark.parametrize("n", PE_COUNTS)
def test_kernels_and_the_host_share_signals_and_barriers(n: int) -> None:
    assert run_pes(kernels.ring_in_kernels, n) == expected(n)


@pytest.mark.parametrize("op", ["set", "add"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_with_the_scope_of_a_device_the_signal_at_the_pointer_is_updated(dtype: torch.dtype, op: str) -> None:
    def signal(pe: int) -> int:
        signals = shmem.create_signals(1, dtype)
        signals.fill_(10 * pe)
        shmem.barrier_all()
        kernels.signal_there_kernel[(1,)](signals, (pe + 1) % 3, pe + 1, OP=op)
        shmem.barrier_all()
        return int(signals)

    came = [3, 1, 2]
    assert run_pes(signal, 3) == (came if op == "set" else [10 * pe + came[pe] for pe in range(3)])


@pytest.mark.parametrize("op", ["set", "add"])
def test_a_trace_has_the_signals_of_a_device(op: str) -> None:
    def signal(pe: int) -> list[tuple[str, bool]]:
        signals = shmem.create_signals(1)
        with trace.capture() as events:
            kernels.signal_there_kernel[(1,)](signals, 1 - pe, 1, OP=op)
        return [(event.kind, "kernels.py:" in event.site) for event in events if event.kind != "program"]

    assert run_pes(signal, 2) == [[("notify", True)]] * 2


@pytest.mark.processes
def test_between_processes() -> None:
    assert run_processes(kernels.ring_in_kernels, 3) == expected(3)


@pytest.mark.processes
def test_a_dead_pe_ends_the_kernels_of_the_others() -> None:
    outcomes = {o.pe: o for o in run_processes(kernels.end_one_in_kernels, 3, check=False)}
    assert outcomes[1].exitcode == -9
    for pe in (0, 2):
        assert not outcomes[pe].failed, outcomes[pe].describe()
        waited, message = outcomes[pe].result
        assert waited < 5
        assert message.startswith(f"PE {pe}: PE 1 is gone (")
        assert "wait_kernel" in message
        assert "kernels.py:" in message


def test_a_failing_pe_ends_the_kernels_of_the_others() -> None:
    seen: list[str] = []

    def fail(pe: int) -> None:
        signals = shmem.create_signals(1)
        if pe == 1:
            time.sleep(0.2)
            raise ValueError("oh no")
        try:
            kernels.wait_kernel[(3,)](signals, 7)
        except errors.PeerDied as error:
            seen.append(str(error))
            raise

    with pytest.raises(ValueError, match="oh no"):
        run_pes(fail, 3)
    assert len(seen) == 2
    assert all("PE 1 is gone (it raised ValueError: oh no), so wait_kernel" in message for message in seen)


def test_a_kernel_that_waits_for_ever_names_the_signal() -> None:
    def wait(pe: int) -> str:
        signals = shmem.create_signals(4)
        with pytest.raises(errors.WaitTimeout) as info:
            kernels.wait_kernel[(1,)](signals[2:], 7)
        return str(info.value)

    with knobs.scope(wait_timeout=0.3):
        for pe, message in enumerate(run_pes(wait, 2)):
            assert message.startswith(f"PE {pe}, program 0, ")
            assert "kernels.py:" in message
            assert " s for signal 2 of create_signals(4, torch.int64) at " in message
            assert "expected 7, present value 0" in message


def test_a_freed_tensor_is_refused_by_a_launch() -> None:
    def main(view: bool) -> None:
        signals = shmem.create_signals(2)
        kernels.wait_kernel[(1,)](signals, 0)
        shmem.free_tensor(signals)
        other = shmem.create_signals(2)  # at the same place
        kernels.wait_kernel[(1,)](signals[1:] if view else signals, 0)
        del other

    for view in (False, True):
        with pytest.raises(errors.FreedTensor) as caught:
            run_pes(lambda view=view: main(view), 2)
        text = str(caught.value)
        assert "test_kernels.py:" in text
        assert "the launch of wait_kernel: signal_ptr was freed: create_signals(2, torch.int64) at " in text
    # What was freed is forgotten with its PE: the ids of storages come again.
    gc.collect()
    assert not state.freed


def test_other_tensors_go_on_after_a_free() -> None:
    def main() -> None:
        first, second = shmem.create_signals(1), shmem.create_signals(1)
        shmem.free_tensor(first)
        kernels.wait_kernel[(1,)](second, 0)
        kernels.wait_kernel[(1,)](shmem.create_signals(1), 0)

    run_pes(main, 2)


@triton.jit
def transfer(data_ptr, own_ptr, bytes, peer, GET: tl.constexpr):
    if GET:
        libshmem_device.getmem_block(own_ptr, data_ptr, bytes, peer)
    else:
        libshmem_device.putmem_block(data_ptr, own_ptr, bytes, peer)


@pytest.mark.parametrize("get", [False, True])
@pytest.mark.parametrize("size", [-1, -(2**63), 2**62, 1 << 40])
def test_a_transfer_that_leaves_the_heap_is_an_error(size: int, get: bool) -> None:
    def pe() -> str:
        data, own = shmem.create_tensor((16,), torch.int32), torch.zeros(16, dtype=torch.int32)
        peer = 1 - shmem.my_pe()
        transfer[(1,)](data, own, 64, peer, GET=get)
        with pytest.raises(errors.TransferTooLongInKernel) as caught:
            transfer[(1,)](data, own, size, peer, GET=get)
        return str(caught.value)

    for number, message in enumerate(run_pes(pe, 2)):
        assert re.match(rf"PE {number}, program 0, .*test_kernels\.py:\d+: a transfer of {size} bytes", message)


@pytest.mark.parametrize("get", [False, True])
def test_the_checked_mode_looks_at_transfers(get: bool) -> None:
    def pe() -> str:
        data, own = shmem.create_tensor((16,), torch.int32), torch.zeros(8, dtype=torch.int32)
        with pytest.raises(errors.OutOfBounds) as caught:
            transfer[(1,)](data, own, 64, 1 - shmem.my_pe(), GET=get)
        return str(caught.value)

    with knobs.scope(check_bounds=True):
        for message in run_pes(pe, 2):
            assert f"{'write' if get else 'read'} of 64 bytes" in message
            assert "own_ptr" in message
