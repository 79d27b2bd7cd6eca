# SPDX-License-Identifier: MIT
"""The stand-in for `import shmem as ash`, and our adapter over it: names, return codes, exceptions."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

from triton_dist import knobs
from triton_dist.backends.ascend import codes, standin
from triton_dist.backends.ascend.adapter import AscendAdapter, library
from triton_dist.errors import (
    AclshmemFailed,
    AclshmemMissing,
    NotInitialized,
    NotSymmetric,
    PeOutOfRange,
    StandinRefused,
    UnequalTensors,
    WaitTimeout,
)
from triton_dist.shmem.config import ShmemConfig
from triton_dist.testing import run_pes


@pytest.fixture(autouse=True)
def simulated():
    with knobs.scope(backend="ascend", engine=None):
        yield


@pytest.fixture
def ash():
    yield standin.install()
    standin.uninstall()


def attributes(ash, pe: int, n: int, **changes: object):
    made = ash.InitAttr()
    made.my_rank, made.n_ranks, made.local_mem_size = pe, n, 1 << 20
    made.ip_port = "tcp://127.0.0.1:8666"
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def started(ash, function, n: int) -> list:
    """Run `function(pe)` between init and finalize."""

    def run(pe: int):
        assert ash.set_conf_store_tls(False, "") == 0
        assert ash.aclshmem_init(attributes(ash, pe, n)) == 0
        result = function(pe)
        assert ash.aclshmem_finalize() == 0
        return result

    return run_pes(run, n)


def test_the_public_names_are_there(ash) -> None:
    names = (
        "set_conf_store_tls set_conf_store_tls_key InitAttr OptionalAttr OpEngineType InitStatus aclshmem_init "
        "aclshmem_get_unique_id aclshmem_init_using_unique_id aclshmem_finalize aclshmem_global_exit "
        "aclshmemx_init_status aclshmem_malloc aclshmem_calloc aclshmem_align aclshmem_free aclshmem_ptr "
        "aclshmemx_get_heap_base aclshmem_create_tensor aclshmem_free_tensor my_pe pe_count team_my_pe team_n_pes "
        "team_split_strided team_split_2d team_translate_pe team_destroy aclshmem_team_get_config aclshmem_putmem "
        "aclshmem_getmem aclshmem_putmem_nbi aclshmem_getmem_nbi aclshmemx_putmem_signal aclshmemx_putmem_signal_nbi "
        "aclshmem_signal_wait_until aclshmem_info_get_version aclshmem_info_get_name get_ffts_config set_log_level "
        "set_extern_logger construct_tensor_from_ptr"
    )
    assert [name for name in names.split() if name not in ash.__all__] == []
    assert ash.aclshmem_finialize is ash.aclshmem_finalize
    assert "aclshmem_finialize" not in ash.__all__


def test_memory_and_transfers(ash) -> None:
    def use(pe: int):
        assert (ash.my_pe(), ash.pe_count()) == (pe, 3)
        tensor = ash.aclshmem_create_tensor((4,), dtype=torch.int32, device_id=pe)
        address = ash.aclshmem_malloc(64)
        assert address % 16 == 0
        source = torch.full((4,), pe + 1, dtype=torch.int32)
        right = (pe + 1) % 3
        ash.aclshmemx_putmem_signal(tensor.data_ptr(), source.data_ptr(), 16, address, 5, 1, right)
        ash.aclshmem_signal_wait_until(address, 0, 5)
        got = tensor.tolist()
        assert ash.aclshmem_ptr(tensor.data_ptr(), 9) == 0
        assert ash.aclshmem_ptr(source.data_ptr(), right) == 0
        peer = ash.construct_tensor_from_ptr(ash.aclshmem_ptr(address, right), (1,), torch.int32)
        assert peer.tolist() == [5]
        ash.aclshmem_free(address)
        ash.aclshmem_free_tensor(tensor)
        return got

    assert started(ash, use, 3) == [[3] * 4, [1] * 4, [2] * 4]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"my_rank": 2}, codes.INVALID_PARAM),
        ({"my_rank": -1}, codes.INVALID_VALUE),
        ({"n_ranks": codes.MAX_PES + 1}, codes.INVALID_VALUE),
        ({"local_mem_size": 0}, codes.INVALID_VALUE),
        ({"local_mem_size": codes.MAX_LOCAL_BYTES + 1}, codes.INVALID_VALUE),
    ],
)
def test_wrong_attributes_are_codes(ash, changes: dict[str, int], code: int, capsys) -> None:
    assert ash.aclshmem_init(attributes(ash, 0, 2, **changes)) == code
    assert "aclshmem_init" in capsys.readouterr().err


def test_calls_out_of_place(ash, capsys) -> None:
    assert ash.aclshmem_finalize() == codes.NOT_INITED
    assert ash.aclshmemx_init_status() == ash.InitStatus.NOT_INITIALIZED
    assert ash.aclshmemx_get_heap_base() == 0
    assert ash.my_pe() == -1
    for call in (lambda: ash.aclshmem_malloc(64), lambda: ash.aclshmem_create_tensor((1,))):
        with pytest.raises(RuntimeError, match="not initialised"):
            call()
    with pytest.raises(ValueError, match="null"):
        ash.aclshmem_signal_wait_until(0, 0, 0)
    assert ash.set_conf_store_tls(True, "x") == codes.UNSUPPORTED
    assert ash.aclshmem_init_using_unique_id(0, 1, 1 << 20, b"short") == codes.INVALID_PARAM

    def use(pe: int) -> None:
        assert ash.aclshmem_init(attributes(ash, pe, 2)) == codes.INNER
        assert ash.aclshmemx_init_status() == ash.InitStatus.INITIALIZED
        for size in (0, 1 << 50):
            with pytest.raises(RuntimeError, match="aclshmem_malloc"):
                ash.aclshmem_malloc(size)
        ash.aclshmem_free(12345)

    started(ash, use, 2)
    assert "was not allocated" in capsys.readouterr().err


def test_teams(ash) -> None:
    def use(pe: int):
        odd = ash.team_split_strided(0, 1, 2, 2)
        assert ash.team_split_strided(0, 3, 2, 2) == codes.INVALID_VALUE
        row, column = ash.team_split_2d(0, 2)
        facts = (ash.team_my_pe(odd), ash.team_n_pes(odd), ash.team_translate_pe(0, 3, odd) if odd > 0 else None)
        ash.team_destroy(row)
        assert ash.team_my_pe(row) == -1
        return facts, ash.team_n_pes(column)

    found = started(ash, use, 4)
    assert [facts for facts, _ in found] == [(-1, -1, None), (0, 2, 1), (-1, -1, None), (1, 2, 1)]
    assert {size for _, size in found} == {2}


def test_core(ash) -> None:
    import shmem.core as core  # type: ignore[import-not-found]

    def use(pe: int) -> int:
        assert ash.aclshmem_init(attributes(ash, pe, 2)) == 0
        buffer, signal = core.buffer(64), core.buffer(64)
        core.put_signal(buffer, buffer, signal, 1, 0, 1 - pe)
        core.signal_wait(signal, 0, 1)
        assert core.get_peer_buffer(buffer, 1 - pe).length == 64
        with pytest.raises(core.AclshmemInvalid):
            core.get_peer_buffer(buffer, 2)
        core.free(signal)
        core.free(buffer)
        core.finalize()
        return pe

    assert run_pes(use, 2) == [0, 1]


SCRIPT = """\
import os, sys
import torch
import shmem as ash
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
assert ash.set_conf_store_tls(False, "") == 0
attributes = ash.InitAttr()
attributes.my_rank = rank
attributes.n_ranks = size
attributes.local_mem_size = 1024 * 1024
attributes.ip_port = sys.argv[1]
attributes.option_attr.data_op_engine_type = ash.OpEngineType.MTE
assert ash.aclshmem_init(attributes) == 0
peer_mem = ash.aclshmem_create_tensor((4,), dtype=torch.float16, device_id=rank)
peer_mem.fill_(rank)
ash.aclshmem_free(ash.aclshmem_malloc(16))
there = ash.construct_tensor_from_ptr(ash.aclshmem_ptr(peer_mem.data_ptr(), 1 - rank), (4,), torch.float16)
assert there.tolist() == [1 - rank] * 4
ash.aclshmem_free(ash.aclshmem_malloc(16))
ash.aclshmem_free_tensor(peer_mem)
assert ash.aclshmem_finalize() == 0
print("rank", rank, "done")
"""


@pytest.mark.processes
def test_a_script_runs_unchanged(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    where = "tcp://" + _free_address()
    command = [sys.executable, "-m", "triton_dist.backends.ascend.standin"]
    folder = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    path = os.pathsep.join([folder, str(Path(__file__).parents[2])])
    environment = {**os.environ, "TRITON_DIST_BACKEND": "ascend", "PYTHONPATH": path, "WORLD_SIZE": "2"}
    command = [sys.executable, str(script), where]
    ranks = [{**environment, "RANK": str(pe)} for pe in range(2)]
    pes = [subprocess.Popen(command, env=rank, stdout=subprocess.PIPE, text=True) for rank in ranks]
    assert [pe.communicate(timeout=90)[0].strip() for pe in pes] == ["rank 0 done", "rank 1 done"]


def _free_address() -> str:
    from triton_dist.backends.ascend.standin import host

    return host.aclshmem_get_unique_id().rstrip(b"\0").decode()


def test_it_does_not_hide_the_real_package(monkeypatch: pytest.MonkeyPatch) -> None:
    real = types.ModuleType("shmem")
    real.__file__ = "/somewhere/shmem/__init__.py"
    monkeypatch.setitem(sys.modules, "shmem", real)
    with pytest.raises(StandinRefused, match="somewhere"):
        standin.install()
    standin.uninstall()
    assert sys.modules["shmem"] is real


# Our adapter over it


def config(pe: int, n: int) -> ShmemConfig:
    return ShmemConfig.model_construct(pe=pe, n_pes=n, heap_size=1 << 20, wait_timeout=20.0, rendezvous=None)


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
        adapter.init(ShmemConfig.model_construct(pe=2, n_pes=2, heap_size=1 << 20, rendezvous=None))
    with pytest.raises(AclshmemFailed, match="set_conf_store_tls of aclshmem returned -100"):
        adapter.use_tls("tls")
    with pytest.raises(AclshmemFailed, match="init_using_unique_id"):
        adapter.init_with_unique_id(config(0, 1), b"short")
    assert len(adapter.unique_id()) == 128


@pytest.mark.parametrize("engine", ["MTE", "SDMA", "ROCE", "UDMA"])
def test_adapter_passes_the_engine(engine: str) -> None:
    seen = {}
    ash = types.SimpleNamespace(
        InitAttr=lambda: types.SimpleNamespace(option_attr=types.SimpleNamespace()),
        OpEngineType=types.SimpleNamespace(MTE=1, SDMA=2, ROCE=4, UDMA=8),
        set_conf_store_tls=lambda enable, info: 0,
        aclshmem_init=lambda attributes: seen.update(vars(attributes)) or 0,
        aclshmem_malloc=lambda size: 64,
    )
    with knobs.scope(engine=engine):
        AscendAdapter(ash, device="cpu").init(config(1, 4))
    assert seen["my_rank"] == 1
    assert seen["n_ranks"] == 4
    assert seen["option_attr"].data_op_engine_type == getattr(ash.OpEngineType, engine)


def test_a_missing_library_is_a_clear_error() -> None:
    with pytest.raises(AclshmemMissing, match="TRITON_DIST_SIMULATE=1"):
        library()
