# SPDX-License-Identifier: MIT
"""Every device function of Ascend runs in a kernel on several PEs, under each of its names, and does what it says.

The kernels are generated: what is called is taken from their text and compared with what there is to call.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from triton_dist import knobs, shmem
from triton_dist.backends.ascend import simulated, symbols
from triton_dist.language.extra.ascend import libaclshmem_device as acl
from triton_dist.language.extra.records import supported
from triton_dist.testing import run_pes

TORCH = {
    "half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32, "int8": torch.int8, "char": torch.int8,
    "int16": torch.int16, "int32": torch.int32, "int64": torch.int64, "uint8": torch.uint8, "uint16": torch.uint16,
    "uint32": torch.uint32, "uint64": torch.uint64,
}  # fmt: skip
HEAD = """\
import triton.language as tl

import triton_dist
from triton_dist.language.extra import libshmem_device as lib
from triton_dist.language.extra.ascend import libaclshmem_device as acl


@triton_dist.jit
def kernel(dest, source, back, sig, wide, slots, out, size, team):
    me, n = {module}.my_pe(), {module}.n_pes()
    right = (me + 1) % n
"""
# dest: 8 places for 4 elements, written by the left neighbour; back: the same read from the right one.
TYPED = """\
    acl.{T}putmem(dest, source, size, right)
    acl.{T}putmem_nbi(dest + 4, source, size, right)
    acl.quiet()
    acl.{T}p(dest + 8, tl.load(source), right)
    acl.barrier_all()
    acl.{T}getmem(back, dest, size, right)
    acl.{T}getmem_nbi(back + 4, dest + 4, size, right)
    acl.fence()
    tl.store(back + 8, tl.load(acl.{ptr}(dest + 8, right)))
"""
SIGNALLED = """\
    acl.{T}putmem_signal(dest + 12, source, size, sig, 1, acl.SIGNAL_ADD, right)
    acl.{T}putmem_signal_nbi(dest + 16, source, size, sig, 1, acl.SIGNAL_ADD, right)
    acl.signal_wait_until(sig, acl.CMP_EQ, 2)
"""
COMPARED = "    acl.{wait_until}(dest + 8, acl.CMP_EQ, {value})\n"
WAITED = "    tl.store(out, acl.{wait}(slots, 3, 7))\n"
FIXED = """\
    acl.signal_op(sig, 5, acl.SIGNAL_SET, right)
    tl.store(out + 1, acl.signal_wait_until(sig, acl.CMP_EQ, 5))
    acl.barrier_all_vec()
    tl.store(out + 2, acl.team_n_pes(team) * 100 + acl.team_translate_pe(0, 1, team) * 10 + acl.team_my_pe(team))
    if acl.team_my_pe(team) >= 0:
        acl.barrier(team)
        acl.barrier_vec(team)
    tl.store(out + 3, tl.load(acl.remote_ptr(dest, me)).to(tl.int32))
"""
PORTABLE = """\
    lib.putmem(dest, source, size, right)
    lib.putmem_nbi(dest + 4, source, size, right)
    lib.quiet()
    lib.float_p(dest + 8, tl.load(source), right)
    lib.putmem_signal(dest + 12, source, size, sig, 1, lib.SIGNAL_ADD, right)
    lib.putmem_signal_nbi(dest + 16, source, size, sig, 1, lib.SIGNAL_ADD, right)
    tl.store(out + 1, lib.signal_wait_until(sig, lib.CMP_GE, 2).to(tl.int32))
    lib.barrier_all()
    lib.getmem(back, dest, size, right)
    lib.getmem_nbi(back + 4, dest + 4, size, right)
    lib.fence()
    tl.store(back + 8, tl.load(lib.remote_ptr(dest + 8, right)))
    lib.signal_op(sig + 16, 7, lib.SIGNAL_SET, right)
    lib.int_p(sig + 32, 8, right)
    lib.int32_p(sig + 48, -9, right)
    lib.uint32_p(sig + 64, 10, right)
    lib.int64_p(wide, -11, right)
    lib.uint64_p(wide + 8, (1 << 64) - 12, right)
    lib.barrier(lib.TEAM_WORLD)
    lib.barrier_all_vec()
    tl.store(out, lib.team_my_pe(lib.TEAM_WORLD) + 10 * lib.team_n_pes(team) + 100 * lib.team_translate_pe(0, 1, team))
"""
UNSIGNED = ("uint16", "uint32", "uint64")
"""Torch neither fills nor compares these: their bits are looked at as signed numbers."""
FAMILIES = ("", *symbols.ALL)


def typed_text(name: str) -> str:
    """The kernel of a type, or ("") of the functions that take their type from a pointer."""
    prefix = f"{name}_" if name else ""
    has = {family: f"{family}_{name}" if name else family for family in ("ptr", "wait", "wait_until")}
    text = HEAD.format(module="acl") + TYPED.format(T=prefix, ptr=has["ptr"])
    if not name or f"{name}_putmem_signal" in acl.names():
        text += SIGNALLED.format(T=prefix)
    if has["wait_until"] in acl.names():
        one = "1.0" if name == "float" else "1"
        text += COMPARED.format(wait_until=has["wait_until"], value=f"{one} + (n + me - 1) % n")
    if has["wait"] in acl.names():
        text += WAITED.format(wait=has["wait"])
    return text


def called(module: str, text: str) -> set[str]:
    return set(re.findall(rf"\b{module}\.([a-z]\w*)\(", text))


def load(folder: Path, name: str, text: str) -> Any:
    """The kernel of a text; Triton reads the source of a file."""
    path = folder / f"every_{name or 'family'}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(f"ascend_every_{name or 'family'}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.fixture(autouse=True)
def on_ascend():
    with knobs.scope(backend="ascend", simulate=None, engine=None):
        yield


def test_no_function_is_left_out() -> None:
    texts = "".join(map(typed_text, FAMILIES)) + FIXED
    assert set(acl.names()) - called("acl", texts) == set()
    assert set(supported("ascend")) - called("lib", HEAD.format(module="lib") + PORTABLE) == set()


def launch(kernel: Any, dtype: torch.dtype) -> dict[str, Any]:
    """Run a kernel on this PE between its barriers; returns what it left in the tensors."""
    pe, n = shmem.my_pe(), shmem.n_pes()
    signed = getattr(torch, str(dtype).removeprefix("torch.u")) if str(dtype)[6:] in UNSIGNED else dtype
    dest, sig = shmem.create_tensor((20,), signed), shmem.create_signals(6, torch.int32)
    wide, slots = shmem.create_signals(2, torch.int64), torch.full((256,), 7, dtype=signed)
    team_slots = shmem.create_tensor((8 * 64,), torch.uint8)
    device = shmem.adapter().device_state  # type: ignore[attr-defined]
    simulated.enter(device)
    npu = simulated.npu_of(device)
    assert npu is not None
    npu.add_team(3, list(range(1, n)) or [0], team_slots.data_ptr())
    source, back = torch.full((4,), pe + 1, dtype=signed), torch.zeros(12, dtype=signed)
    out = torch.full((4,), -1, dtype=torch.int32)
    views = [tensor.view(dtype) for tensor in (dest, source, back)]
    shmem.barrier_all()
    kernel[(1,)](*views, sig, wide, slots.view(dtype), out, 4 * dtype.itemsize, 3)
    shmem.barrier_all()
    left = {"dest": dest.tolist(), "back": back.tolist(), "out": out.tolist(), "sig": sig.tolist()}
    return {**left, "wide": wide.tolist(), "team": npu.team(3).my_pe}  # type: ignore[union-attr]


@pytest.mark.parametrize("pes", [2, 3])
@pytest.mark.parametrize("name", FAMILIES)
def test_typed(name: str, pes: int, tmp_path: Path) -> None:
    text = typed_text(name)
    kernel = load(tmp_path, name, text)
    for pe, left in enumerate(run_pes(lambda: launch(kernel, TORCH[name or "int32"]), pes)):
        theirs, mine = (pe - 1) % pes + 1, pe + 1
        signalled = "putmem_signal" in text
        assert left["dest"] == [theirs] * 9 + [0] * 3 + [theirs if signalled else 0] * 8
        assert left["back"] == [mine] * 9 + [0] * 3
        assert left["out"][0] == (0 if "tl.store(out, acl." in text else -1)


@pytest.mark.parametrize("pes", [2, 3])
def test_fixed(pes: int, tmp_path: Path) -> None:
    kernel = load(tmp_path, "fixed", HEAD.format(module="acl") + FIXED)
    for pe, left in enumerate(run_pes(lambda: launch(kernel, torch.float32), pes)):
        assert left["sig"][0] == 5
        assert left["out"][1:] == [5, (pes - 1) * 100 + 0 + pe - 1, 0]


@pytest.mark.parametrize("engine", ["MTE", "SDMA", "UDMA"])
@pytest.mark.parametrize("pes", [2, 3])
def test_portable(pes: int, engine: str, tmp_path: Path) -> None:
    kernel = load(tmp_path, "portable", HEAD.format(module="lib") + PORTABLE)
    with knobs.scope(engine=engine):
        found = run_pes(lambda: launch(kernel, torch.float32), pes)
    for pe, left in enumerate(found):
        theirs, mine = (pe - 1) % pes + 1, pe + 1
        assert left["dest"] == [theirs] * 9 + [0] * 3 + [theirs] * 8
        assert left["back"] == [mine] * 9 + [0] * 3
        assert left["sig"] == [2, 7, 8, -9, 10, 0]
        assert left["wide"] == [-11, -12]
        assert left["out"][:2] == [pe + 10 * (pes - 1), 2]
