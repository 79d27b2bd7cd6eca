# SPDX-License-Identifier: MIT
"""The host's libshmem_device, compiled and run on two PEs: each function does what its record says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from triton_dist import knobs, shmem, testing
from triton_dist.language.extra.records import Record, records

ARGUMENTS = {
    "team": "lib.TEAM_WORLD",
    "dest": "dest",
    "source": "source",
    "pe": "peer",
    "pe_root": "1",
    "sig_addr": "sig",
    "signal": "6",
    "sig_op": "lib.SIGNAL_ADD",
    "value": "7",
    "val": "7",
    "local_ptr": "dest",
    "pe_in_src_team": "peer",
    "src_team": "lib.TEAM_WORLD",
    "dest_team": "lib.TEAM_NODE",
    "cmp_": "lib.CMP_EQ",
    "cmp_val": "0",
    "addr": "zero",
}
TORCH = {
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "u32": torch.uint32,
    "i64": torch.int64,
    "u64": torch.uint64,
    "f32": torch.float32,
    "f64": torch.float64,
}
HOST = {name: record for name, record in records().items() if "cpu" in record.symbols}
HEADER = """\
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as lib


"""


def argument(record: Record, name: str, kind: str) -> str:
    if kind in ("bytes", "count"):
        return "24" if kind == "bytes" else "3"
    if name in ("val", "cmp_val") and "_wait_until" in record.name:
        return "-1" if record.name.startswith("int") and "greater" in record.name else "0"
    return ARGUMENTS[name]


def kernel_text(record: Record) -> str:
    """A kernel that calls the function, for the peer if it has one, and stores what it returns."""
    values = ", ".join(argument(record, o.name, o.kind) for o in record.operands if not o.optional)
    call = f"lib.{record.name}({values})"
    result = {"void": call, "same": f"tl.store(out, tl.load({call}))"}.get(
        record.result, f"tl.store(out, {call}.to(tl.int64))"
    )
    return (
        f"@triton_dist.jit\ndef {record.name}(dest, source, sig, zero, out):\n"
        f"    peer = (dl.rank() + 1) % dl.num_ranks()\n    {result}\n\n\n"
    )


def pointee(record: Record, name: str) -> torch.dtype:
    kinds = {o.name: o.kind.removesuffix("*") for o in record.operands}
    return TORCH.get(kinds.get(name, ""), torch.int64)


def run_all(kernels: Any) -> dict[str, dict[str, list]]:
    """What each function leaves in a PE's memory."""
    me, seen = shmem.my_pe(), {}
    for name, record in HOST.items():
        # PEs of a greater_than on unsigned values see 1 where they wait for more than 0.
        start = 1 if "greater" in name and name.startswith("u") else 0
        dest = shmem.create_tensor((8,), pointee(record, "dest"))
        source = shmem.create_tensor((4,), pointee(record, "source"))
        sig = shmem.create_tensor((1,), torch.int64)
        zero = shmem.create_tensor((1,), pointee(record, "addr")).fill_(start)
        out = torch.full((1,), -9, dtype=torch.int64)
        dest.copy_(torch.arange(8) + 40 + me)
        source.copy_(torch.arange(4) + 10 * me + 1)
        sig.fill_(0)
        shmem.barrier_all()
        getattr(kernels, name)[(1,)](dest, source, sig, zero, out)
        shmem.barrier_all()
        seen[name] = {"dest": dest.tolist(), "sig": sig.tolist(), "out": out.tolist()}
        for tensor in (dest, source, sig, zero):
            shmem.free_tensor(tensor)
    return seen


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, list]]]:
    path: Path = tmp_path_factory.mktemp("host") / "host_kernels.py"
    path.write_text(HEADER + "".join(map(kernel_text, HOST.values())))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with knobs.scope(backend="cpu", simulate=None):
        return testing.run_pes(lambda: run_all(module), 2, timeout=100)


SOURCE = ([1, 2, 3], [11, 12, 13])


def expected_dest(record: Record, me: int) -> list[int]:
    names = {o.name for o in record.operands}
    before = [40 + me + i for i in range(8)]
    if "value" in names:
        return [7, *before[1:]]
    if record.name.startswith("atomic"):
        return [before[0] + 7, *before[1:]]
    if "source" not in names:
        return before
    if "pe_root" in names:
        return [*SOURCE[1], *before[3:]]
    if "pe" in names:
        return [*SOURCE[1 - me], *before[3:]]
    return [*SOURCE[0], *SOURCE[1], *before[6:]]


def expected_result(record: Record, me: int) -> int:
    if record.result == "void":
        return -9
    peers_dest = 40 + 1 - me
    values = {
        "my_pe": me,
        "n_pes": 2,
        "team_my_pe": me,
        "team_n_pes": 2,
        "team_translate_pe": 1 - me,
        "remote_ptr": peers_dest,
        "atomic_fetch_add_int64": peers_dest,
        "atomic_fetch_add_uint64": peers_dest,
    }
    return values.get(record.name, 0)


@pytest.mark.parametrize("me", [0, 1])
@pytest.mark.parametrize("name", HOST)
def test_what_it_leaves(seen, name, me):
    record = HOST[name]
    assert seen[me][name]["dest"] == expected_dest(record, me)
    updates = any(o.name == "signal" for o in record.operands)
    assert seen[me][name]["sig"] == [6 if updates else 0]
    assert seen[me][name]["out"] == [expected_result(record, me)]
