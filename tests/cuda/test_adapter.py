# SPDX-License-Identifier: MIT
"""The runtime adapter against a stand-in for NVSHMEM: what it calls, in which order, and what it refuses."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import torch

from tests.cuda.fake_nvshmem import FakeBindings
from triton_dist import knobs
from triton_dist.backends.agreement import Agreement
from triton_dist.backends.cuda import adapter as module
from triton_dist.backends.cuda import library, nvshmem
from triton_dist.backends.cuda.adapter import CudaAdapter
from triton_dist.backends.cuda.modules import MODULES, Modules
from triton_dist.backends.cuda.stream_ops import StreamOps
from triton_dist.errors import (
    BadSignal,
    CollectiveMismatch,
    NotInitialized,
    NotSymmetric,
    NvshmemError,
    NvshmemMismatch,
    PartOfTensor,
    PeOutOfRange,
    WaitTimeout,
)
from triton_dist.shmem.config import ShmemConfig

F32 = torch.float32
_check = Agreement.check
agreed: list[str] = []
"""The calls that the other PEs, which are not there, were to agree on."""


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's CUDA calls do nothing, and its device is the CPU."""
    monkeypatch.setattr(module, "_choose_device", lambda: torch.device("cpu"))
    monkeypatch.setattr(module, "_shared_uid", lambda config, library: library.new_uid())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
    stream = SimpleNamespace(cuda_stream=5, synchronize=int)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: stream)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device=None: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(library, "installed", lambda: library.Installed(library.Path("/nowhere"), "3.4.5"))
    monkeypatch.setattr(Agreement, "check", lambda self, call, where: agreed.append(call))
    monkeypatch.setattr(CudaAdapter, "_heap_size", None)
    agreed.clear()
    for name in ("NVSHMEM_SYMMETRIC_SIZE", "NVSHMEM_DISABLE_LOCAL_ONLY_PROXY", "NVSHMEM_REMOTE_TRANSPORT"):
        monkeypatch.setenv(name, "")  # so that what init sets is taken back
        monkeypatch.delenv(name)


class FakeStreamOps:
    """Does at once what a stream would do."""

    def __init__(self, raw: FakeBindings) -> None:
        self.calls = raw.calls

    def current(self) -> int:
        return 5

    def write(self, stream: int, address: int, value: int) -> None:
        self.calls.append(("write", stream, value))
        ctypes.c_uint64.from_address(address).value = value

    def wait(self, stream: int, address: int, value: int, cmp: str) -> None:
        self.calls.append(("wait", stream, ctypes.c_uint64.from_address(address).value, value, cmp))


@pytest.fixture
def raw() -> FakeBindings:
    return FakeBindings()


@pytest.fixture
def pe(raw: FakeBindings) -> Iterator[CudaAdapter]:
    made = start(raw, heap_size=1 << 16)
    yield made
    if made._nvshmem is not None:
        made.finalize()


def start(raw: FakeBindings, **asked: int) -> CudaAdapter:
    made = CudaAdapter(nvshmem.Nvshmem(raw), FakeStreamOps(raw))  # type: ignore[arg-type]
    made.init(ShmemConfig(pe=0, n_pes=raw.n_pes(), **asked))  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(
    ("transport", "given", "proxy"), [("none", None, "1"), ("None", "0", "0"), (None, None, None), ("ibrc", None, None)]
)
def test_no_thread_polls_where_there_is_no_network(
    raw: FakeBindings, monkeypatch: pytest.MonkeyPatch, transport: str | None, given: str | None, proxy: str | None
) -> None:
    for name, value in (("NVSHMEM_REMOTE_TRANSPORT", transport), ("NVSHMEM_DISABLE_LOCAL_ONLY_PROXY", given)):
        if value is not None:
            monkeypatch.setenv(name, value)
    start(raw).finalize()
    assert os.environ.get("NVSHMEM_DISABLE_LOCAL_ONLY_PROXY") == proxy


def test_init_by_unique_id(raw: FakeBindings, pe: CudaAdapter) -> None:
    assert ("set_attr_uniqueid_args", 0, 2, b"\x07" * 128) in raw.calls
    assert (pe.my_pe(), pe.n_pes()) == (0, 2)
    assert pe.info()["heap_bytes"] == 1 << 16


def test_zeros_are_everywhere_before_anyone_goes_on(raw: FakeBindings, pe: CudaAdapter) -> None:
    raw.calls.clear()
    made = pe.create_tensor((4, 8), torch.bfloat16)
    assert [call[0] for call in raw.calls] == ["malloc", "barrier_all"]
    assert made.shape == (4, 8)
    assert not made.any()


def test_pes_agree_before_memory_is_taken_or_given_back(
    raw: FakeBindings, pe: CudaAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = pe.create_tensor((4, 8), torch.bfloat16)
    assert pe.info()["tensors"] == 1
    pe.free_tensor(pe.create_signals(3, torch.int64))
    offset = pe.offset_of(made) + 512
    assert agreed == [
        "create_tensor((4, 8), torch.bfloat16)",
        "create_signals(3, torch.int64)",
        f"free_tensor(byte {offset} of the heap, 24 bytes)",
    ]
    before = raw.calls.copy()

    def differ(self: Agreement, call: str, where: str) -> None:
        raise CollectiveMismatch(pe=0, calls=call)

    monkeypatch.setattr(Agreement, "check", differ)
    for call in (lambda: pe.create_tensor((1,), torch.int8), lambda: pe.free_tensor(made)):
        with pytest.raises(CollectiveMismatch, match=r"create_tensor|free_tensor"):
            call()
    assert raw.calls == before


def test_pes_agree_by_the_peers_memory(raw: FakeBindings, pe: CudaAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Agreement, "check", _check)
    same = True

    def barrier(stream: int) -> None:
        """PE 1 has written the same as PE 0, or nothing."""
        for turn in pe._agreement._tables if same else ():
            turn[1].copy_(pe.peer_tensor(turn, 1)[0])

    monkeypatch.setattr(raw, "barrier_all_on_stream", barrier)
    for _ in range(3):
        pe.agree("a")
        pe.barrier_all()
    same = False
    with pytest.raises(CollectiveMismatch, match=r"PE 0: a at \S*test_adapter\.py:\d+\n  PE 1: no call"):
        pe.agree("a")


@pytest.mark.parametrize(
    ("variable", "given", "expected"), [(None, None, "4M"), ("2M", None, "2M"), ("2M", 1 << 20, str(1 << 20))]
)
def test_whose_word_the_size_of_the_heap_is(
    raw: FakeBindings, monkeypatch: pytest.MonkeyPatch, variable: str | None, given: int | None, expected: str
) -> None:
    if variable:
        monkeypatch.setenv("NVSHMEM_SYMMETRIC_SIZE", variable)
    asked = {} if given is None else {"heap_size": given}
    with knobs.scope(heap_size=4 << 20):
        for _ in range(2):
            made = start(raw, **asked)
            assert made.info()["heap_bytes"] == module._bytes_of(expected)
            made.finalize()
    if not variable:  # what the first init wrote does not bind the next
        made = start(raw, heap_size=8 << 20)
        assert made.info()["heap_bytes"] == 8 << 20
        made.finalize()
        with knobs.scope(heap_size=16 << 20):
            made = start(raw)
        assert made.info()["heap_bytes"] == 16 << 20
        made.finalize()


def test_mixed_packages_are_said_at_init(raw: FakeBindings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NVSHMEM_HOME", raising=False)
    versions = {"nvidia-nvshmem-cu13": "3.8.0", "nvidia-nvshmem-cu12": "3.4.5"}
    monkeypatch.setattr(library.importlib.metadata, "version", versions.__getitem__)
    with pytest.raises(NvshmemMismatch, match="Uninstall both"):
        start(raw)


def test_put_and_get_reach_the_peer(pe: CudaAdapter) -> None:
    made = pe.create_tensor((16,), torch.float32)
    pe.put(made[4:8], torch.arange(4.0), 1)
    assert pe.peer_tensor(made, 1)[4:8].tolist() == [0, 1, 2, 3]
    assert not made.any()
    back = torch.empty(2)
    pe.get(back, made[5:7], 1)
    assert back.tolist() == [1, 2]
    assert pe.peer_tensor(made, 0) is made


def test_parts_with_gaps_of_a_peers_tensor(pe: CudaAdapter) -> None:
    made = pe.create_tensor((4, 6), torch.int32)
    pe.put(made[:, 1:3], torch.ones(4, 2, dtype=torch.int32), 1)
    assert pe.peer_tensor(made, 1).sum() == 8
    assert pe.peer_tensor(made[:, 1], 1).tolist() == [1, 1, 1, 1]


def test_a_peer_that_is_far_away_is_reached_by_nvshmem() -> None:
    raw = FakeBindings(reachable=False)
    pe = start(raw)
    made = pe.create_tensor((16,), torch.float32)
    pe.put(made, torch.ones(16), 1)
    assert ("putmem_on_stream", 64, 1, 5) in raw.calls
    assert raw.calls[-1] == ("quiet_on_stream", 5)
    pe.get(torch.empty(16), made, 1)
    assert ("getmem_on_stream", 64, 1, 5) in raw.calls
    flag = pe.create_signals(1, torch.int64)
    for signal in (lambda: pe.signal(flag, 3, "set", 1), lambda: pe.signal_sender(flag, 1)(3)):
        raw.calls.clear()
        signal()
        assert raw.calls == [("signal_op_on_stream", 3, 9, 1, 5)]
    with pytest.raises(NvshmemError, match=r"cannot be reached by loads and stores.*shmem\.put"):
        pe.peer_tensor(made, 1)
    with pytest.raises(NvshmemError, match="must be contiguous"):
        pe.put(made.view(4, 4)[:, 0], torch.ones(4), 1) or pe.get(torch.ones(4, 4)[:, 0], made[:4], 1)
    pe.finalize()


def test_signals(raw: FakeBindings, pe: CudaAdapter) -> None:
    flags = pe.create_signals(3, torch.int64)
    assert flags.stride(0) == 1
    pe.signal(flags[1], -1, "set", 1)
    assert raw.calls[-1] == ("write", 5, (1 << 64) - 1)
    assert pe.peer_tensor(flags, 1).tolist() == [0, -1, 0]
    pe.signal(flags[1], 2, "add", 1)
    assert raw.calls[-1] == ("signal_op_on_stream", 2, 10, 1, 5)
    flags[0] = 4
    assert pe.wait_signal(flags[0], 3, "gt") == 4
    with pytest.raises(WaitTimeout, match="byte 8 of create_signals"):
        pe.wait_signal(flags[1], 1, timeout=0.01)
    with pytest.raises(BadSignal, match="a signal of the cuda back end cannot be int32; valid: int64, uint64"):
        pe.create_signals(1, torch.int32)
    with pytest.raises(BadSignal, match="a signal is one element"):
        pe.signal(flags, 1, "set", 1)


def test_a_stream_waits_for_a_signal(raw: FakeBindings, pe: CudaAdapter) -> None:
    flags = pe.create_signals(2, torch.int64)
    flags[1] = 7
    pe.stream_wait_signal(flags[1], 6)
    assert raw.calls[-1] == ("wait", 5, 7, 6, "ge")
    pe.stream_wait_signal(flags[1], 7, "eq")
    assert raw.calls[-1] == ("wait", 5, 7, 7, "eq")
    with pytest.raises(BadSignal, match=r"cmp = 'ne' is unknown; valid: ge, eq"):
        pe.stream_wait_signal(flags[1], 7, "ne")
    with pytest.raises(NotSymmetric):
        pe.stream_wait_signal(torch.zeros(1, dtype=torch.int64), 7)


def test_signals_that_are_checked_once(raw: FakeBindings, pe: CudaAdapter) -> None:
    flags = pe.create_signals(2, torch.int64)
    send, clear, wait = pe.signal_sender(flags[1], 1), pe.signal_sender(flags[1], 0), pe.signal_waiter(flags[1])
    raw.calls.clear()
    send(3)
    assert pe.peer_tensor(flags, 1).tolist() == [0, 3]
    flags[1] = 4
    wait(4)
    clear(0)
    assert raw.calls == [("write", 5, 3), ("wait", 5, 4, 4, "eq"), ("write", 5, 0)]
    assert flags.tolist() == [0, 0]
    with pytest.raises(PeOutOfRange):
        pe.signal_sender(flags[1], 2)
    with pytest.raises(NotSymmetric):
        pe.signal_waiter(torch.zeros(1, dtype=torch.int64))


class FakeDriver:
    def __init__(self, status: int) -> None:
        self.status, self.calls = status, []

    def __getattr__(self, name: str) -> Callable[..., tuple[int]]:
        def call(*args: int) -> tuple[int]:
            self.calls.append((name, *args))
            return (self.status,)

        return call


def test_memory_operations_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    ops = StreamOps.__new__(StreamOps)
    ops._driver = FakeDriver(0)
    ops.write(5, 64, 3)
    ops.wait(5, 64, 3, "ge")
    ops.wait(5, 64, 3, "eq")
    write, *waits = ops._driver.calls
    assert write == ("cuStreamWriteValue64", 5, 64, 3, 0)
    assert waits == [("cuStreamWaitValue64", 5, 64, 3, flag) for flag in (0, 1)]
    ops._driver = FakeDriver(801)
    with pytest.raises(NvshmemError, match="cuStreamWriteValue64: CUDA says 801"):
        ops.write(5, 64, 3)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(NvshmemError, match=r"cuda-bindings is missing .*pip install"):
        StreamOps()


def test_barrier_on_the_stream_and_on_the_host(raw: FakeBindings, pe: CudaAdapter) -> None:
    pe.barrier_all()
    assert raw.calls[-1] == ("barrier_all_on_stream", 5)
    raw.status = nvshmem.LIMITED_MPG
    pe.barrier_all()
    assert raw.calls[-1] == ("barrier_all",)


@pytest.mark.parametrize(
    ("uuids", "shares", "one"), [("aaa", True, True), ("aab", True, False), ("baa", True, False), ("abc", False, False)]
)
def test_pes_that_share_gpus(monkeypatch: pytest.MonkeyPatch, uuids: str, shares: bool, one: bool) -> None:
    """Each writes its device's UUID to all others, and comes to the same answer; the others have written theirs."""
    monkeypatch.setattr(module, "_uuid_of", lambda device: uuids[0].encode() * 16)
    raw = FakeBindings(n_pes=3)
    pe = start(raw)

    def barrier() -> None:
        for other in (1, 2):
            ctypes.memmove(pe._ranges[-1].address + 16 * other, uuids[other].encode() * 16, 16)

    monkeypatch.setattr(pe, "barrier_all", barrier)
    before = len(pe._ranges)
    for _ in range(2):
        assert (pe.shares_device(), pe.on_one_device()) == (shares, one)
    assert len(pe._ranges) == before
    assert agreed.count("create_tensor((3, 16), torch.uint8)") == 1
    pe.finalize()


def test_a_pe_alone_shares_with_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_uuid_of", lambda device: b"a" * 16)
    pe = start(FakeBindings(n_pes=1))
    assert not pe.shares_device()
    assert not pe.on_one_device()
    pe.finalize()


def test_tensors_without_elements_are_symmetric_too(raw: FakeBindings, pe: CudaAdapter) -> None:
    """Torch says that they are at 0."""
    before = pe.info()["tensors"]
    empty, none = pe.create_tensor((0, 3), torch.int8), pe.create_signals(0, torch.int64)
    whole = pe.create_tensor(4, F32)
    for tensor in (empty, none, whole[:0], whole[4:]):
        assert pe.is_symmetric(tensor)
        pe.put(tensor, tensor.clone(), 1)
        pe.get(tensor.clone(), tensor, 1)
        assert pe.peer_tensor(tensor, 1).shape == tensor.shape
    assert pe.offset_of(whole[4:]) == pe.offset_of(whole) + 16
    with pytest.raises(PartOfTensor):
        pe.free_tensor(whole[:0])
    for tensor in (empty, none, whole):
        pe.free_tensor(tensor)
    assert pe.info()["tensors"] == before
    assert not pe.is_symmetric(empty)


def test_copies_are_not_recorded(pe: CudaAdapter) -> None:
    made = pe.create_tensor(4, F32)
    for other in range(2):
        pe.put(made, torch.ones(4, requires_grad=True), other)
    target = torch.zeros(4, requires_grad=True)
    pe.get(target, made, 1)
    assert target.tolist() == made.tolist() == [1.0] * 4
    assert not made.requires_grad


def test_finalize_in_order(raw: FakeBindings) -> None:
    pe = start(raw)
    pe.create_tensor((4,), torch.float32)
    MODULES._names[77] = "kernel"
    raw.calls.clear()
    pe.finalize()
    MODULES._names.clear()
    names = [call[0] for call in raw.calls]
    assert names == ["barrier_all", "cumodule_finalize", *["free"] * 3, "hostlib_finalize"]
    with pytest.raises(NotInitialized):
        pe.my_pe()


def test_an_nvshmem_that_others_initialised_is_left_to_them(raw: FakeBindings) -> None:
    raw.status = 2
    pe = start(raw)
    pe.finalize()
    assert not [call for call in raw.calls if call[0] in ("hostlib_init_attr", "hostlib_finalize")]


def test_memory_of_others_is_adopted(pe: CudaAdapter) -> None:
    mine, theirs = torch.zeros(8), torch.zeros(8)
    memory = SimpleNamespace(address=mine.data_ptr(), nbytes=32, peer_addresses=(mine.data_ptr(), theirs.data_ptr()))
    with pytest.raises(NotSymmetric):
        pe.put(mine, torch.ones(8), 1)
    pe.adopt(memory)
    pe.put(mine[2:4], torch.ones(2), 1)
    assert theirs.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    assert pe.offset_of(mine[3:]) == 12
    with pytest.raises(NotSymmetric, match="somebody else owns"):
        pe.free_tensor(mine)


def test_mistakes(raw: FakeBindings, pe: CudaAdapter) -> None:
    made = pe.create_tensor((8,), torch.float32)
    with pytest.raises(PeOutOfRange):
        pe.peer_tensor(made, 2)
    with pytest.raises(PartOfTensor):
        pe.free_tensor(made[2:])
    with pytest.raises(NvshmemError, match=r"no \d+ bytes are left.*TRITON_DIST_HEAP_SIZE"):
        pe.create_tensor((1 << 20,), torch.float32)
    pe.free_tensor(made)
    assert not pe.is_symmetric(made)


@pytest.mark.parametrize("name", ["hostlib_init_attr", "get_uniqueid"])
def test_a_failure_says_what_to_look_at(raw: FakeBindings, name: str) -> None:
    raw.fail.add(name)
    with pytest.raises(NvshmemError, match="NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME"):
        start(raw)


def test_device_and_host_library_of_different_releases() -> None:
    with pytest.raises(NvshmemMismatch, match=r"the device library is 3\.4\.5 .* the host library 3\.8\.0"):
        start(FakeBindings(version=(3, 8, 0)))


def test_modules(tmp_path, raw: FakeBindings) -> None:
    ptx = tmp_path / "k.ptx"
    ptx.write_text(".visible .const .align 8 .b8 nvshmemi_device_state_d[776];")
    plain = tmp_path / "p.ptx"
    plain.write_text(".visible .entry p")
    modules = Modules()
    modules.loaded(1, "p", {"p.ptx": str(plain)})
    with pytest.raises(NotInitialized, match="The kernel k"):
        modules.loaded(2, "k", {"k.ptx": str(ptx)})
    modules.start(raw)
    modules.loaded(3, "k", {"k.ptx": str(ptx)})
    modules.unloaded(2)
    modules.stop()
    assert raw.calls == [("cumodule_init", 2), ("cumodule_init", 3), ("cumodule_finalize", 3)]


def test_torchs_symmetric_memory_is_a_provider() -> None:
    from triton_dist.backends.cuda.torch_memory import TorchSymmetricMemory
    from triton_dist.shmem.provider import SymmetricMemory

    memory = TorchSymmetricMemory(SimpleNamespace(rank=1, buffer_size=64, buffer_ptrs=[4096, 8192]))
    assert isinstance(memory, SymmetricMemory)
    assert (memory.address, memory.nbytes, list(memory.peer_addresses)) == (8192, 64, [4096, 8192])
