# SPDX-License-Identifier: MIT
"""The stand-in for `import shmem as ash`: names, return codes, exceptions."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

import triton_dist
from triton_dist import knobs
from triton_dist.backends.ascend import codes, standin
from triton_dist.errors import StandinRefused
from triton_dist.language.extra.ascend import libaclshmem_device as acl
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


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("tcp://127.0.0.1:8666", "127.0.0.1", 8666),
        ("10.0.0.1:1", "10.0.0.1", 1),
        ("tcp6://[::1]:65535", "::1", 65535),
        ("tcp://node-7.cluster:29500", "node-7.cluster", 29500),
    ],
)
def test_addresses(ash, address: str, host: str, port: int) -> None:
    from triton_dist.backends.ascend.standin import host as functions

    meeting = functions._meeting(address)
    assert meeting is not None
    assert (meeting.host, meeting.port) == (host, port)


NO_ADDRESSES = ("", "tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://127.0.0.1:99999", "udp://a:1", "::1:5")


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_what_is_no_address_is_a_code(ash, address: str, capsys) -> None:
    assert ash.aclshmem_init(attributes(ash, 0, 2, ip_port=address)) == codes.INVALID_VALUE
    assert f"{address!r} is no address" in capsys.readouterr().err


def test_more_pes_than_the_host_engine_has_is_a_code(ash, capsys) -> None:
    assert ash.aclshmem_init(attributes(ash, 0, 5000)) == codes.INVALID_VALUE
    assert "4096" in capsys.readouterr().err


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


def test_tls_is_taken_and_said_not_to_be_used(ash, capsys) -> None:
    """Scripts run unchanged: the PEs meet inside one machine. That nothing is encrypted is said, not hidden."""
    assert ash.set_conf_store_tls(False, "") == codes.OK
    assert capsys.readouterr().err == ""
    assert ash.set_conf_store_tls(True, "tlsCaPath: /certs") == codes.OK
    assert "not encrypted" in capsys.readouterr().err
    assert ash.set_conf_store_tls_key("key", "password", lambda text: text) == codes.OK
    assert ash.set_conf_store_tls(True, None) == codes.INVALID_PARAM
    assert ash.set_conf_store_tls_key("key", "password", "no function") == codes.INVALID_PARAM


def test_attributes_are_those_of_a_compiled_class(ash) -> None:
    made = ash.InitAttr()
    with pytest.raises(AttributeError, match="no attribute 'my_rnk'; it has my_rank"):
        made.my_rnk = 1
    for name, value in (("my_rank", None), ("n_ranks", 1.5), ("ip_port", 8666), ("option_attr", "MTE")):
        with pytest.raises(TypeError, match=f"InitAttr.{name} must be"):
            setattr(made, name, value)
    with pytest.raises(TypeError, match="data_op_engine_type"):
        made.option_attr.data_op_engine_type = "SDMA"
    made.ip_port = "x" * 100
    assert made.ip_port == "x" * 63
    with pytest.raises(TypeError, match="must be bytes"):
        ash.aclshmem_init_using_unique_id(0, 1, 1 << 20, "text" * 32)
    assert ash.aclshmem_init_using_unique_id(0, 2, 1 << 20, b"\xff" * 128) == codes.INVALID_VALUE


def test_init_and_finalize_twice(ash) -> None:
    def use(pe: int) -> list[int]:
        first = [ash.aclshmem_init(attributes(ash, pe, 2)), ash.aclshmem_finalize(), ash.aclshmem_finalize()]
        return [*first, ash.aclshmem_init(attributes(ash, pe, 2)), ash.my_pe(), ash.aclshmem_finalize()]

    assert run_pes(use, 2) == [[0, 0, codes.NOT_INITED, 0, pe, 0] for pe in range(2)]


def test_what_would_be_corruption_is_an_error(ash) -> None:
    def use(pe: int) -> None:
        here, source = ash.aclshmem_malloc(64), torch.ones(64, dtype=torch.uint8)
        other, data = 1 - pe, source.data_ptr()
        refused = {
            "-1 bytes cannot be copied": lambda: ash.aclshmem_putmem(here, data, -1, other),
            "run past the symmetric heap": lambda: ash.aclshmem_putmem(here, data, 1 << 40, other),
            "bytes at .* run past": lambda: ash.aclshmem_getmem(data, here, 1 << 40, other),
            "PE 2 or address": lambda: ash.aclshmem_getmem(data, here, 4, 2),
            "not in the symmetric heap": lambda: ash.aclshmem_putmem(data, here, 4, other),
            "aclshmem_putmem: the address is null": lambda: ash.aclshmem_putmem(here, 0, 4, other),
            "signal operation 7 is none": lambda: ash.aclshmemx_putmem_signal(here, data, 4, here, 1, 7, other),
            "is no address of one": lambda: ash.aclshmemx_putmem_signal(here, data, 4, here + 2, 1, 0, other),
            "there is no tensor of shape": lambda: ash.construct_tensor_from_ptr(0, (4,), torch.int32),
            "has no elements": lambda: ash.aclshmem_create_tensor((0, 3)),
            "negative size": lambda: ash.aclshmem_create_tensor((-1,)),
            "aclshmem_calloc: 0 bytes": lambda: ash.aclshmem_calloc(-4, -4),
            "alignment is 3": lambda: ash.aclshmem_align(3, 64),
        }
        for message, call in refused.items():
            with pytest.raises(RuntimeError, match=message):
                call()
        for message, compare, address in (("comparison 9", 9, here), ("no memory", 0, data), ("int32", 0, here + 1)):
            with pytest.raises(ValueError, match=message):
                ash.aclshmem_signal_wait_until(address, compare, 0)
        peer = ash.construct_tensor_from_ptr(ash.aclshmem_ptr(here, other), 16, torch.int32)
        assert peer.count_nonzero() == 0
        assert ash.construct_tensor_from_ptr(here, (0, 4), torch.int32).shape == (0, 4)
        assert [ash.aclshmem_align(size, 10) % size for size in (64, 256, 4096)] == [0, 0, 0]

    started(ash, use, 2)


@pytest.mark.parametrize("n", [2, 3])
def test_unequal_allocation_is_an_error_on_every_pe(ash, n: int) -> None:
    def use(pe: int) -> str:
        assert ash.aclshmem_init(attributes(ash, pe, n)) == 0
        with pytest.raises(RuntimeError, match=r"aclshmem_malloc: .*do not agree") as caught:
            ash.aclshmem_malloc(64 * (pe + 1))
        return str(caught.value)

    assert all("(64,)" in text and f"({64 * n},)" in text for text in run_pes(use, n))


def test_teams_of_teams(ash) -> None:
    def use(pe: int):
        half = max([ash.team_split_strided(0, at, 1, 4) for at in (0, 4)])
        pair = ash.team_split_strided(half, 1, 2, 2)
        row, column = ash.team_split_2d(half, 3)
        sizes = [ash.team_n_pes(team) for team in (half, pair, row, column)]
        numbers = [ash.team_my_pe(team) for team in (half, pair, row, column)]
        world = [ash.team_translate_pe(pair, i, 0) for i in range(2)] if pair > 0 else []
        assert ash.team_split_strided(pair if pair > 0 else 31, 0, 1, 3) < 0
        return sizes, numbers, world

    found = started(ash, use, 8)
    for pe, (sizes, numbers, world) in enumerate(found):
        at, first = pe % 4, pe // 4 * 4
        odd = at % 2
        assert sizes == [4, 2 if odd else -1, 3 if at < 3 else 1, 2 if at % 3 == 0 else 1]
        assert numbers == [at, at // 2 if odd else -1, at % 3, at // 3]
        assert world == ([first + 1, first + 3] if odd else [])


def test_teams_can_be_made_again_and_again(ash) -> None:
    """More often than there are numbers, with the slots of earlier ones; kernels wait in them at once."""

    def use(pe: int) -> list[int]:
        counts = []
        for _ in range(40):
            team = ash.team_split_strided(0, 1, 1, 2)
            counts.append(ash.team_n_pes(team))
            if team > 0:
                team_barrier_kernel[(2,)](team)
            ash.team_destroy(team)
        return counts

    assert started(ash, use, 3) == [[-1] * 40, [2] * 40, [2] * 40]


@triton_dist.jit
def team_barrier_kernel(team):
    acl.barrier(team)
    acl.barrier_vec(team)


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
        for wrong in (
            lambda: core.put(buffer, buffer, 2),
            lambda: core.put(buffer, core.Buffer(buffer.addr, 65), 0),
            lambda: core.signal_op(signal, 1, 5, 0),
            lambda: core.signal_wait(signal, 9, 0),
            lambda: core.free(core.Buffer(buffer.addr + 32, 32)),
        ):
            with pytest.raises(core.AclshmemInvalid):
                wrong()
        core.free(signal)
        core.free(buffer)
        core.finalize()
        return pe

    assert run_pes(use, 2) == [0, 1]


def test_typed_values(ash) -> None:
    import shmem._pyshmem as inner  # type: ignore[import-not-found]

    extremes = {
        "int8": -128, "uint8": 255, "int16": -32768, "uint16": 65535, "int32": -(1 << 31), "uint32": (1 << 32) - 1,
        "int64": -(1 << 63), "uint64": (1 << 64) - 1, "float": 0.5, "char": 127,
    }  # fmt: skip

    def use(pe: int) -> None:
        here = ash.aclshmem_malloc(64)
        for name, value in extremes.items():
            put, get = getattr(inner, f"aclshmem_{name}_p"), getattr(inner, f"aclshmem_{name}_g")
            put(here, value, 1 - pe)
            ash.aclshmem_free(ash.aclshmem_malloc(16))
            assert get(here, pe) == get(here, 1 - pe) == value
            ash.aclshmem_free(ash.aclshmem_malloc(16))
            if name != "float":
                with pytest.raises(TypeError, match="does not fit"):
                    put(here, 1 << 64, 1 - pe)
        end = ash.aclshmemx_get_heap_base() + (1 << 40)
        for call in (lambda: inner.aclshmem_int64_g(end, 0), lambda: inner.aclshmem_int64_p(here, 1, 2)):
            with pytest.raises(RuntimeError, match="symmetric heap"):
                call()

    started(ash, use, 2)


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


TRANSFERS = """\
import os, sys
import torch
import triton
import triton.language as tl
import shmem as ash
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device

@triton.jit
def shift(dest, source, bytes):
    right = (dl.rank() + 1) % dl.num_ranks()
    libshmem_device.putmem_nbi(dest, source, bytes, right)
    libshmem_device.quiet()
    libshmem_device.barrier_all()

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
right, left = (rank + 1) % size, (rank - 1) % size

def meet():
    ash.aclshmem_free(ash.aclshmem_malloc(16))

for turn in range(2):
    assert ash.set_conf_store_tls(True, "tlsCaPath: /certs") == 0
    attributes = ash.InitAttr()
    attributes.my_rank, attributes.n_ranks, attributes.local_mem_size = rank, size, 1 << 24
    attributes.ip_port = sys.argv[1]
    attributes.option_attr.data_op_engine_type = ash.OpEngineType.SDMA
    assert ash.aclshmem_init(attributes) == 0
    assert ash.aclshmem_init(attributes) == -4
    data = ash.aclshmem_create_tensor((1000,), dtype=torch.float16, device_id=rank)
    mine = torch.full((1000,), 10.0 * turn + rank, dtype=torch.float16)
    meet()
    ash.aclshmem_putmem_nbi(data.data_ptr(), mine.data_ptr(), 2000, right)
    meet()
    assert data.tolist() == [10 * turn + left] * 1000
    back = torch.zeros(1000, dtype=torch.float16)
    ash.aclshmem_getmem(back.data_ptr() + 2, data.data_ptr() + 2, 1998, right)
    assert back.tolist() == [0] + [10 * turn + rank] * 999
    meet()
    shift[(1,)](data, mine + 100, 2000)
    assert data.tolist() == [100 + 10 * turn + left] * 1000
    ash.aclshmem_free_tensor(data)
    assert ash.aclshmem_finalize() == 0
    assert ash.aclshmem_finalize() == -5
print("rank", rank, "done")
"""


@pytest.mark.processes
@pytest.mark.parametrize(("text", "n"), [(SCRIPT, 2), (TRANSFERS, 3)], ids=["reference", "transfers"])
def test_a_script_runs_unchanged(text: str, n: int, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(text)
    where = "tcp://" + _free_address()
    command = [sys.executable, "-m", "triton_dist.backends.ascend.standin"]
    folder = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    path = os.pathsep.join([folder, str(Path(__file__).parents[2])])
    environment = {**os.environ, "TRITON_DIST_BACKEND": "ascend", "PYTHONPATH": path, "WORLD_SIZE": str(n)}
    command = [sys.executable, str(script), where]
    ranks = [{**environment, "RANK": str(pe)} for pe in range(n)]
    pes = [subprocess.Popen(command, env=rank, stdout=subprocess.PIPE, text=True) for rank in ranks]
    assert [pe.communicate(timeout=90)[0].strip() for pe in pes] == [f"rank {pe} done" for pe in range(n)]


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
