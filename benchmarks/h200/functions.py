# SPDX-License-Identifier: MIT
"""Every function of `libshmem_device` that NVSHMEM has, called round after round with other data, its effects checked.

A kernel is generated for each. Right neighbours are written to, left ones are heard from; what must be there after a
round is computed apart, on the device, and differences are counted there.
"""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from triton_dist import shmem
from triton_dist.language.extra.records import Record, records

SKIPPED = {"remote_mc_ptr": "NVLink multicast is off: it can put GPUs out of service"}
_TORCH = {
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "u32": torch.int32,
    "i64": torch.int64, "u64": torch.int64, "f32": torch.float32, "f64": torch.float64,
}  # fmt: skip
_ARGUMENTS = {
    "team": "lib.TEAM_WORLD", "src_team": "lib.TEAM_WORLD", "dest_team": "lib.TEAM_WORLD", "dest": "dest",
    "source": "source", "pe": "peer", "pe_in_src_team": "peer", "pe_root": "r % pes", "sig_addr": "sig", "signal": "6",
    "sig_op": "lib.SIGNAL_ADD", "local_ptr": "source",
}  # fmt: skip
_HEADER = """\
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra import libshmem_device as lib


"""
_BARRIERS = ("barrier", "sync", "team_sync")


def names() -> list[str]:
    """The functions that are tested."""
    return [name for name, record in records().items() if record.symbol("cuda") and name not in SKIPPED]


def _is_barrier(record: Record) -> bool:
    return record.family.removesuffix("_all") in _BARRIERS


def _is_wait(record: Record) -> bool:
    return "_wait_until" in record.name


def _call(record: Record) -> str:
    arguments = [_argument(record, o.name, o.kind) for o in record.operands if not o.optional]
    return f"lib.{record.name}({', '.join(arguments)})"


def _argument(record: Record, name: str, kind: str) -> str:
    if kind in ("bytes", "count"):
        return "24" if kind == "bytes" else "3"
    if name in ("value", "val") and not _is_wait(record):
        return f"(r % 50 + 7).to(tl.float{kind[1:]})" if kind[0] == "f" else "r % 50 + 7"
    return _ARGUMENTS[name]


def _body(record: Record) -> list[str]:
    """The lines of the kernel."""
    if _is_wait(record):
        return _wait_body(record)
    if _is_barrier(record):
        # Written before the barrier, read after it.
        return [
            "tl.store(dl.symm_at(dest, peer), 100 * me + r)", "tl.debug_barrier()", "lib.quiet()", _call(record),
            "tl.store(out, tl.load(dest))", "tl.debug_barrier()", "lib.barrier_all_block()",
        ]  # fmt: skip
    if record.name in ("quiet", "fence"):
        return [
            "lib.putmem_nbi_block(dest, source, 24, peer)", _call(record),
            "lib.signal_op(sig, 6, lib.SIGNAL_ADD, peer)", *_await_signal(),
        ]  # fmt: skip
    lines = [{"void": _call(record), "same": f"tl.store(out, tl.load({_call(record)}))"}.get(record.result, "")]
    if not lines[0]:
        lines = [f"tl.store(out, {_call(record)}.to(tl.int64))"]
    return lines + (_await_signal() if any(o.name == "sig_addr" for o in record.operands) else [])


def _await_signal() -> list[str]:
    """What a signal announces is there when it is seen."""
    wait = "lib.signal_wait_until(sig, lib.CMP_GE, 6 * (r + 1))"
    return [wait, "tl.debug_barrier()", "tl.store(out + 1, tl.load(dest))"]


def _wait_body(record: Record) -> list[str]:
    kind = next(o.kind for o in record.operands if o.is_pointer)
    greater = "greater" in record.name
    value = "r" if greater else "r + 1"
    if record.name == "signal_wait_until":
        return [
            "lib.signal_op(sig, r + 1, lib.SIGNAL_SET, peer)",
            "tl.store(out, lib.signal_wait_until(sig, lib.CMP_EQ, r + 1).to(tl.int64))",
        ]
    width = "64" if kind.startswith(("signal", "i64", "u64")) else "32"
    return [f"lib.int{width}_p(word, r + 1, peer)", f"lib.{record.name}(word, {value})", "tl.store(out, r + 1)"]


def kernel_text(record: Record) -> str:
    body = "".join(f"    {line}\n" for line in _body(record))
    return (
        f'@triton_dist.jit(do_not_specialize=["r"])\ndef {record.name}(dest, source, sig, word, out, r):\n'
        f"    me, pes = dl.rank(), dl.num_ranks()\n    peer = (me + 1) % pes\n{body}\n\n"
    )


def load_kernels() -> Any:
    """A module with a kernel for each function; its file is kept, since Triton reads sources again."""
    text = _HEADER + "".join(kernel_text(records()[name]) for name in names())
    folder = tempfile.mkdtemp(prefix="triton-dist-functions-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "kernels.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Memory:
    """What a kernel is given. `dest` has room for an all-gather."""

    dest: torch.Tensor
    source: torch.Tensor
    sig: torch.Tensor
    word: torch.Tensor
    out: torch.Tensor

    @staticmethod
    def of(record: Record) -> Memory:
        dest, source, addr = (_pointee(record, name) for name in ("dest", "source", "addr"))
        return Memory(
            shmem.create_tensor((3 * shmem.n_pes() + 2,), dest),
            shmem.create_tensor((4,), source),
            shmem.create_signals(1, torch.int64),
            shmem.create_tensor((1,), addr),
            torch.zeros(4, dtype=torch.int64, device=shmem.device()),
        )

    def free(self) -> None:
        shmem.barrier_all()
        for tensor in (self.dest, self.source, self.sig, self.word):
            shmem.free_tensor(tensor)


def _pointee(record: Record, name: str) -> torch.dtype:
    kinds = {o.name: o.kind.removesuffix("*") for o in record.operands}
    return _TORCH.get(kinds.get(name, ""), torch.int64)


def _source_of(pe: int, number: int) -> int:
    return 10 * pe + number % 7


def check(kernels: Any, name: str, rounds: int) -> int:
    """Differences in all rounds, on this PE."""
    record, memory = records()[name], Memory.of(records()[name])
    ramp = torch.arange(max(4, 3 * shmem.n_pes() + 2), device=shmem.device())
    bad = torch.zeros((), dtype=torch.int64, device=shmem.device())
    expect = Expected(record, ramp)
    for number in range(rounds):
        memory.dest.copy_(ramp[: memory.dest.numel()] % 40)
        memory.source.copy_(ramp[:4] + _source_of(shmem.my_pe(), number))
        shmem.barrier_all()
        getattr(kernels, name)[(1,)](memory.dest, memory.source, memory.sig, memory.word, memory.out, number)
        shmem.barrier_all()
        bad += expect.differences(memory, number)
        shmem.barrier_all()
    total = int(bad.item())
    memory.free()
    return total


class Expected:
    """What a round leaves behind."""

    def __init__(self, record: Record, ramp: torch.Tensor) -> None:
        self.record, self.ramp = record, ramp
        self.me, self.pes = shmem.my_pe(), shmem.n_pes()
        self.left, self.right = (self.me - 1) % self.pes, (self.me + 1) % self.pes
        self.operands = {o.name for o in record.operands}

    def differences(self, memory: Memory, number: int) -> torch.Tensor:
        dest = self._dest(memory.dest, number)
        count = (memory.dest != dest).sum()
        if (value := self._out(number)) is not None:
            count = count + (memory.out[0] != value)
        if "sig_op" in self.operands:
            count = count + (memory.sig[0] != 6 * (number + 1))
        if "sig_op" in self.operands and "dest" in self.operands:
            count = count + (memory.out[1] != dest[0])
        return count

    def _dest(self, dest: torch.Tensor, number: int) -> torch.Tensor:
        result = (self.ramp[: dest.numel()] % 40).to(dest.dtype)
        if _is_barrier(self.record):
            result[0] = 100 * self.left + number
        elif self.record.name.startswith("atomic"):
            result[0] += number % 50 + 7
        elif "value" in self.operands:
            result[0] = number % 50 + 7
        elif "source" in self.operands or self.record.name in ("quiet", "fence"):
            self._received(result, number)
        return result

    def _received(self, result: torch.Tensor, number: int) -> None:
        if "fcollect" in self.record.name:
            for pe in range(self.pes):
                result[3 * pe : 3 * pe + 3] = self.ramp[:3] + _source_of(pe, number)
            return
        sender = self.right if self.record.name.startswith("getmem") else self.left
        sender = number % self.pes if "pe_root" in self.operands else sender
        result[:3] = self.ramp[:3] + _source_of(sender, number)

    def _out(self, number: int) -> int | None:
        if _is_barrier(self.record):
            return 100 * self.left + number
        if _is_wait(self.record):
            return number + 1
        known: dict[str, Callable[[], int]] = {
            "my_pe": lambda: self.me,
            "n_pes": lambda: self.pes,
            "team_my_pe": lambda: self.me,
            "team_n_pes": lambda: self.pes,
            "team_translate_pe": lambda: self.right,
            "remote_ptr": lambda: _source_of(self.right, number),
            "atomic_fetch_add_int64": lambda: 0,
            "atomic_fetch_add_uint64": lambda: 0,
        }
        if self.record.name in known:
            return known[self.record.name]()
        return 0 if self.record.result == "i32" else None
