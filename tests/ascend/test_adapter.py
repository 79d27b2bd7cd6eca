# SPDX-License-Identifier: MIT
"""Our runtime adapter over `import shmem as ash`: on the stand-in, and on fakes where a call's arguments count."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch

from triton_dist import knobs, shmem
from triton_dist.backends import ascend
from triton_dist.backends.ascend import adapter as module
from triton_dist.backends.ascend import standin
from triton_dist.backends.ascend.adapter import AscendAdapter, library
from triton_dist.errors import (
    AclshmemFailed,
    AclshmemMissing,
    BadAllocation,
    BadSignal,
    CollectiveMismatch,
    EngineNeedsAddress,
    NotInitialized,
    NotSymmetric,
    PartOfTensor,
    PeOutOfRange,
    ShmemConfigError,
    UnequalTensors,
    WaitTimeout,
)
from triton_dist.shmem import session
from triton_dist.shmem.config import Rendezvous, ShmemConfig
from triton_dist.testing import run_pes


@pytest.fixture(autouse=True)
def simulated():
    with knobs.scope(backend="ascend", engine=None):
        yield
    module.use_no_tls()


@pytest.fixture
def ash():
    yield standin.install()
    standin.uninstall()


def config(pe: int, n: int, **changes: Any) -> ShmemConfig:
    fields = {"pe": pe, "n_pes": n, "heap_size": 1 << 20, "wait_timeout": 20.0, "rendezvous": None, "unique_id": None}
    return ShmemConfig.model_construct(**{**fields, **changes})


def on_pes(ash: Any, function: Any, n: int) -> list:
    """Run `function(adapter)` on an adapter of each PE, between init and finalize."""

    def run(pe: int) -> Any:
        adapter = AscendAdapter(ash, device="cpu")
        adapter.init(config(pe, n))
        result = function(adapter)
        adapter.barrier_all()
        adapter.finalize()
        return result

    return run_pes(run, n)


def test_adapter(ash) -> None:
    def use(pe: int):
        adapter = AscendAdapter(ash, device="cpu")
        adapter.init(config(pe, 3))
        data = adapter.create_tensor((2, 3), torch.float32)
        signals = adapter.create_signals(4, torch.int32)
        assert data.count_nonzero() == 0
        assert signals.stride() == (16,)
        adapter.barrier_all()
        right = (pe + 1) % 3
        adapter.put(data, torch.full((2, 3), 1.0 + pe), right)
        adapter.signal(signals[1], 3, "set", right)
        adapter.wait_signal(signals[1], 3, "ge")
        adapter.signal(signals[1], 4, "add", right)
        assert adapter.wait_signal(signals[1], 5, "ge") == 7
        back = torch.zeros(3, 2).t()
        adapter.get(back, data, pe)
        assert adapter.peer_tensor(data[1:], right).shape == (1, 3)
        assert adapter.offset_of(data[1:]) - adapter.offset_of(data) == 12
        assert adapter.is_symmetric(data)
        assert not adapter.is_symmetric(back)
        assert adapter.info()["tensors"] == 2
        errors(adapter, data, signals)
        adapter.barrier_all()
        adapter.free_tensor(signals)
        adapter.finalize()
        with pytest.raises(NotInitialized):
            adapter.finalize()
        return back.tolist()

    assert run_pes(use, 3) == [[[float(v)] * 3] * 2 for v in (3, 1, 2)]


def errors(adapter: AscendAdapter, data: torch.Tensor, signals: torch.Tensor) -> None:
    with pytest.raises(NotSymmetric, match="dest is not in this PE's symmetric heap"):
        adapter.put(torch.zeros(1), torch.zeros(1), 0)
    with pytest.raises(PeOutOfRange, match="there is no PE 7"):
        adapter.put(data, data.clone(), 7)
    with pytest.raises(UnequalTensors):
        adapter.get(torch.zeros(1), data, 0)
    with pytest.raises(WaitTimeout, match="eq 9"):
        adapter.wait_signal(signals[0], 9, timeout=0.1)


def test_adapter_turns_codes_into_exceptions(ash) -> None:
    adapter = AscendAdapter(ash, device="cpu")
    with pytest.raises(NotInitialized):
        adapter.my_pe()
    with pytest.raises(AclshmemFailed, match="aclshmem_init of aclshmem returned -1: a parameter is invalid"):
        adapter.init(config(2, 2))
    with pytest.raises(AclshmemFailed, match="init_using_unique_id"):
        adapter.init_with_unique_id(config(0, 1), b"short")
    assert len(adapter.unique_id()) == 128


@pytest.mark.parametrize("engine", ["MTE", "SDMA", "ROCE", "UDMA"])
def test_adapter_passes_the_engine(engine: str) -> None:
    seen: dict[str, Any] = {}
    with knobs.scope(engine=engine):
        ash = fake(seen)
        AscendAdapter(ash, device="cpu").init(config(1, 4))
    assert seen["my_rank"] == 1
    assert seen["n_ranks"] == 4
    assert seen["option_attr"].data_op_engine_type == getattr(ash.OpEngineType, engine)


def test_a_missing_library_is_a_clear_error() -> None:
    with pytest.raises(AclshmemMissing, match="TRITON_DIST_SIMULATE=1"):
        library()


# Calls that all PEs make alike


def test_pes_that_allocate_unequal_memory(ash) -> None:
    """The library looks in debug builds only; elsewhere the PEs' addresses would be no longer alike."""

    def use(adapter: AscendAdapter) -> list[str]:
        me = adapter.my_pe()
        first, second = (adapter.create_tensor((8,), torch.int32) for _ in range(2))
        calls = (
            lambda: adapter.create_tensor((4 + 4 * (me == 1),), torch.float32),
            lambda: adapter.free_tensor(first if me else second),
            lambda: adapter.agree("a" if me else "b"),
        )
        told = []
        for call in calls:
            with pytest.raises(CollectiveMismatch) as raised:
                call()
            told.append(str(raised.value))
        adapter.free_tensor(second)
        assert adapter.info()["tensors"] == 1
        return told

    for create, free, agree in on_pes(ash, use, 3):
        assert "PEs 0 and 2: create_tensor((4,), torch.float32) at " in create
        assert "PE 1: create_tensor((8,), torch.float32) at " in create
        assert free.count("free_tensor(byte ") == 2
        assert "PEs 1 and 2: a at " in agree


def test_calls_are_compared_by_what_they_ask_for(ash) -> None:
    def use(adapter: AscendAdapter) -> str:
        me = adapter.my_pe()
        for shapes in ((4, [4]), ((2, 2), torch.Size([2, 2]))):
            adapter.create_tensor(shapes[me], torch.float32)
        with pytest.raises(CollectiveMismatch) as raised:
            adapter.create_signals(4, torch.int64) if me else adapter.create_tensor(32, torch.int64)
        return str(raised.value)

    for told in on_pes(ash, use, 2):
        assert "PE 0: create_tensor((32,), torch.int64) at " in told
        assert "PE 1: create_signals(4, torch.int64) at " in told


# Parts of tensors


def test_transfers_of_parts_touch_those_parts_only(ash) -> None:
    """The library copies bytes in a row; a column, or every 16th signal, is not that."""

    def use(adapter: AscendAdapter) -> None:
        me, n = adapter.my_pe(), adapter.n_pes()
        right, left = (me + 1) % n, (me - 1) % n
        data = adapter.create_tensor((3, 4), torch.float32)
        adapter.put(data[:, 1:3], torch.full((3, 2), 1.0 + me), right)
        adapter.put(data.t()[3], torch.full((3,), 5.0 + me), right)
        adapter.barrier_all()
        wanted = torch.zeros(3, 4)
        wanted[:, 1:3], wanted[:, 3] = 1 + left, 5 + left
        assert torch.equal(data, wanted)
        back = torch.zeros(2, 3)
        adapter.get(back.t(), data[:, 1:3], right)
        assert torch.equal(back, torch.full((2, 3), 1.0 + me))
        signals = adapter.create_signals(3, torch.int64)
        adapter.barrier_all()
        adapter.put(signals, torch.tensor([1, 2, 3]), right)
        adapter.barrier_all()
        assert signals.tolist() == [1, 2, 3]
        assert signals.as_strided((24,), (1,)).count_nonzero() == 3
        empty = adapter.create_tensor((0, 4), torch.float32)
        adapter.put(empty, torch.zeros(0, 4), right)
        assert adapter.peer_tensor(empty, right).shape == (0, 4)
        adapter.free_tensor(empty)
        scalar = adapter.create_tensor((), torch.float32)
        adapter.put(scalar, torch.tensor(2.5), me)
        assert float(scalar) == 2.5

    on_pes(ash, use, 3)


@pytest.mark.parametrize("shape", [(), (5,), (1, 5), (2, 3, 4), (3, 1, 4)])
def test_runs_of_neighbours_cover_a_tensor(shape: tuple[int, ...]) -> None:
    count = int(torch.tensor(shape).prod()) if shape else 1
    whole = torch.arange(count).view(shape)
    for part in (whole, whole.t() if whole.dim() == 2 else whole.transpose(0, -1) if whole.dim() else whole):
        runs = list(module._runs(part))
        flat = [part.storage_offset() + offset + i for offset, _, length in runs for i in range(length)]
        assert flat == part.flatten().tolist()
        assert [position for _, position, _ in runs] == [i * runs[0][2] for i in range(len(runs))]
    assert len(list(module._runs(whole))) == 1


def test_only_a_whole_tensor_is_freed(ash) -> None:
    def use(adapter: AscendAdapter) -> None:
        data, signals = adapter.create_tensor((4, 2), torch.float32), adapter.create_signals(4, torch.int32)
        for part in (data[:1], data[1:], data.view(-1)[1:], signals[0], signals[:2], signals[1:]):
            with pytest.raises(PartOfTensor, match="pass the whole tensor that was created"):
                adapter.free_tensor(part)
        for part in (data[:0], data.view(-1)[::2], data.view(-1)[::8], signals[:0], signals[::2]):
            with pytest.raises(PartOfTensor, match="pass the whole tensor that was created"):
                adapter.free_tensor(part)
        adapter.free_tensor(data.view(8))
        adapter.free_tensor(signals)
        with pytest.raises(NotSymmetric):
            adapter.free_tensor(data)

    on_pes(ash, use, 2)


def test_wrong_arguments_are_the_hosts_errors(ash) -> None:
    def use(adapter: AscendAdapter) -> None:
        signals, wide = adapter.create_signals(2, torch.int32), adapter.create_signals(1, torch.int64)
        for call, message in (
            (lambda: adapter.signal(signals[0], 1, "xor", 0), "op = 'xor' is unknown; valid: set, add"),
            (lambda: adapter.signal(signals, 1, "set", 0), "a signal is one element"),
            (lambda: adapter.signal(signals[0], 1 << 40, "set", 0), "does not fit 32 bits"),
            (lambda: adapter.signal(signals[0], 1.5, "set", 0), "is no whole number"),
            (lambda: adapter.signal(wide[0], 1, "add", 0), "cannot add to a signal of type int64; 'add' is for: int32"),
            (lambda: adapter.wait_signal(signals[0], 1, "is"), "cmp = 'is' is unknown"),
            (lambda: adapter.create_signals(2, torch.float32), "cannot be float32; valid: int32, int64, uint64"),
        ):
            with pytest.raises(BadSignal, match=message):
                call()
        for call in (
            lambda: adapter.create_tensor((-1,), torch.int32),
            lambda: adapter.create_tensor((1,), "int32"),
            lambda: adapter.create_signals((2, 3), torch.int64),
        ):
            with pytest.raises(BadAllocation):
                call()
        with pytest.raises(NotSymmetric, match="not a tensor"):
            adapter.put(None, signals, 0)  # type: ignore[arg-type]
        with pytest.raises(PeOutOfRange):
            adapter.peer_tensor(signals, -1)
        unsigned = adapter.create_signals(1, torch.uint64)
        adapter.signal(unsigned[0], (1 << 64) - 1, "set", adapter.my_pe())
        assert adapter.wait_signal(unsigned[0], (1 << 64) - 1) == (1 << 64) - 1

    on_pes(ash, use, 2)


# What init tells the library


def fake(seen: dict[str, Any], **changes: Any) -> Any:
    """The library's part that init uses."""

    def tls(enable: bool, info: str) -> int:
        seen["tls"] = (enable, info)
        return 0

    def key(*arguments: Any) -> int:
        seen["key"] = arguments
        return 0

    def by_id(*arguments: Any) -> int:
        seen["id"] = arguments
        return 0

    parts = {
        "InitAttr": lambda: types.SimpleNamespace(option_attr=types.SimpleNamespace()),
        "OpEngineType": types.SimpleNamespace(MTE=1, SDMA=2, ROCE=4, UDMA=8),
        "set_conf_store_tls": tls,
        "set_conf_store_tls_key": key,
        "aclshmem_init": lambda attributes: seen.update(vars(attributes)) or 0,
        "aclshmem_init_using_unique_id": by_id,
        "aclshmem_malloc": lambda size: 64,
        "aclshmem_create_tensor": lambda shape, dtype, device_id: torch.ones(shape, dtype=dtype),
        "aclshmem_barrier_all": lambda: None,
        "aclshmem_finalize": lambda: seen.update(ended=True) or 0,
        "my_pe": lambda: 0,
        "pe_count": lambda: 1,
    }
    return types.SimpleNamespace(**{**parts, **changes})


def test_tls_is_off_unless_it_was_asked_for() -> None:
    """By init itself: it must not take back what the user chose."""
    seen: dict[str, Any] = {}
    AscendAdapter(fake(seen), device="cpu").init(config(0, 1))
    assert seen["tls"] == (False, "")
    assert "key" not in seen
    ascend.use_tls("tlsCaPath: /certs")
    AscendAdapter(fake(seen), device="cpu").init(config(0, 1))
    assert seen["tls"] == (True, "tlsCaPath: /certs")
    assert "key" not in seen
    ascend.use_tls("tlsCaPath: /certs", key="k", password="p", decrypt=str.upper)
    AscendAdapter(fake(seen), device="cpu").init_with_unique_id(config(0, 1), b"id")
    assert seen["key"] == ("k", "p", str.upper)
    with pytest.raises(AclshmemFailed, match="set_conf_store_tls of aclshmem returned -3"):
        AscendAdapter(fake(seen, set_conf_store_tls=lambda *_: -3), device="cpu").init(config(0, 1))


def test_tls_with_the_stand_in(ash, capsys) -> None:
    ascend.use_tls("tlsCaPath: /certs", key="k", password="p")
    on_pes(ash, lambda adapter: adapter.barrier_all(), 2)
    assert "not encrypted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("127.0.0.1", 29500, "tcp://127.0.0.1:29501"),
        ("localhost", 65535, "tcp://127.0.0.1:65534"),
        ("::1", 29500, "tcp6://[::1]:29501"),
        ("no.such.host.invalid", 8000, "tcp://no.such.host.invalid:8001"),
    ],
)
def test_the_address_of_the_bootstrap(host: str, port: int, expected: str) -> None:
    seen: dict[str, Any] = {}
    AscendAdapter(fake(seen), device="cpu").init(config(0, 1, rendezvous=Rendezvous(host=host, port=port)))
    assert seen["ip_port"] == expected


def test_an_address_that_the_library_would_cut_is_an_error() -> None:
    meeting = Rendezvous(host="a" * 50 + ".invalid", port=29500)
    with pytest.raises(ShmemConfigError, match="63 characters"):
        AscendAdapter(fake({}), device="cpu").init(config(0, 1, rendezvous=meeting))


def test_a_unique_id_goes_through_shmem_init(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    free = {name: lambda *_: None for name in ("aclshmem_free", "aclshmem_free_tensor")}
    ash = fake(seen, my_pe=lambda: 1, pe_count=lambda: 2, **free)
    monkeypatch.setattr(session, "make_adapter", lambda: AscendAdapter(ash, device="cpu"))
    shmem.init(pe=1, n_pes=2, heap_size=1 << 20, unique_id=b"i" * 128)
    assert shmem.device() == torch.device("cpu")
    shmem.finalize()
    assert seen["id"] == (1, 2, 1 << 20, b"i" * 128)
    assert seen["ended"]
    with knobs.scope(engine="SDMA"), pytest.raises(EngineNeedsAddress, match="takes no engine"):
        shmem.init(pe=1, n_pes=2, heap_size=1 << 20, unique_id=b"i" * 128)


def test_a_unique_id_is_for_npus() -> None:
    with pytest.raises(ShmemConfigError, match="unique_id is for Ascend's library"):
        shmem.init(pe=0, n_pes=1, heap_size=1 << 20, unique_id=b"i" * 128)
    assert not shmem.initialized()


@pytest.mark.parametrize("part", ["aclshmem_malloc", "aclshmem_create_tensor"])
def test_a_heap_without_room_for_what_init_needs_is_an_exception(part: str) -> None:
    def none(*_: object, **__: object) -> int:
        raise RuntimeError("no room")

    seen: dict[str, Any] = {}
    adapter = AscendAdapter(fake(seen, **{part: none}), device="cpu")
    with pytest.raises(AclshmemFailed, match=rf"{part} .*no room"):
        adapter.init(config(0, 1))
    assert seen["ended"]
    with pytest.raises(NotInitialized):
        adapter.my_pe()


def test_streams_are_done_before_the_library_is_called(ash, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its host calls know nothing of torch's streams."""
    calls: list[str] = []
    npu = types.SimpleNamespace(
        device_count=lambda: 2, set_device=lambda index: calls.append(f"device {index}"),
        synchronize=lambda: calls.append("synchronize"),
    )  # fmt: skip
    monkeypatch.setattr(torch, "npu", npu, raising=False)

    def named(name: str, real: Any) -> Any:
        return lambda *arguments: (calls.append(name), real(*arguments))[1]

    for name in ("aclshmem_putmem", "aclshmem_getmem", "aclshmemx_putmem_signal", "aclshmem_free_tensor"):
        monkeypatch.setattr(ash, name, named(name, getattr(ash, name)))

    def use(pe: int) -> None:
        adapter = AscendAdapter(ash)
        adapter.init(config(pe, 1))
        assert calls[0] == "device 0"
        data, signals = adapter.create_tensor((4,), torch.float32), adapter.create_signals(1, torch.int32)
        calls.clear()  # by creating the PEs agreed on it
        adapter.put(data, torch.ones(4), 0)
        adapter.get(torch.zeros(4), data, 0)
        adapter.signal(signals[0], 1, "set", 0)
        adapter.signal(signals[0], 1, "add", 0)
        adapter.finalize()

    run_pes(use, 1)
    freed = calls.index("aclshmem_free_tensor")  # the first, by finalize
    transfers = [i for i, call in enumerate(calls[:freed]) if call.startswith("aclshmem")]
    assert len(transfers) == 4
    assert all(calls[i - 1] == "synchronize" for i in (*transfers, freed))
