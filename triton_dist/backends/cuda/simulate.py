# SPDX-License-Identifier: MIT
"""NVSHMEM's functions and our PTX templates on the host engine, for simulated runs.

The wrappers' modes (one thread, a warp, the block, each thread) are all the same here: a program is one thread.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import resources
from string import Template
from typing import TYPE_CHECKING

from triton_dist.backends.cuda import symbols as names
from triton_dist.backends.cuda import templates

if TYPE_CHECKING:
    from triton_dist.backends.cpu.native.library import Symbol
    from triton_dist.language.extra.records import Record

_BYTES = {"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "half": 2, "bfloat16": 2, "int32": 4, "uint32": 4, "float": 4}
_COLLECTIVE = re.compile(r"nvshmemx?_(\w+?)_(broadcast|fcollect)(_block|_warp)?")
_WAIT = re.compile(r"nvshmem_(u?)int(32|64)_wait_until|nvshmem_(signal)_wait_until")
_COMPARE = ("eq", "ne", "gt", "le", "lt", "ge")
_HIDDEN = "ptr %launch, i32 %program, i32 %site"


@functools.cache
def symbols() -> dict[str, Symbol]:
    """Every symbol and every template of a converted module, and how the host does it."""
    from triton_dist.backends.cpu.native.library import Symbol
    from triton_dist.language.extra.records import records

    found = {"nvshmem_ptr": Symbol("host_ptr")}
    for asm in templates.every():
        found[asm.text] = Symbol(asm.native, not asm.pure, asm.may_block, result=asm.result)
    for record in records().values():
        for symbol in names.symbols_of(record.symbol("cuda")):
            if (host := _host(record, symbol)) is not None:
                found[symbol] = host
    for action, symbol in names.NOTIFY.items():
        found[symbol] = Symbol(f"host_signal_{action}_i64")
        found[names.NOTIFY_THERE[action]] = Symbol(f"cuda_signal_{action}")
    wrapped = {names.WrapperName(mode, symbol).text: host for symbol, host in found.items() for mode in names.MODES}
    between = {
        names.WrapperName(mode, "nvshmem_ptr").text: Symbol(f"cuda_between_{size}", result="i64")
        for size, mode in names.BETWEEN.items()
    }
    return found | wrapped | between


def _host(record: Record, symbol: str) -> Symbol | None:
    """The host's function for NVSHMEM's `symbol`: that of the portable name, or one of ours where operands differ."""
    from triton_dist.backends.cpu.native.library import Symbol, own_symbols

    if (match := _COLLECTIVE.fullmatch(symbol)) and match[1] in names.TYPES.values():
        return Symbol(f"cuda_{match[2]}_{_BYTES.get(match[1], 8)}", may_block=True)
    if match := _WAIT.fullmatch(symbol):
        bits = match[2] or "64"
        return Symbol(f"cuda_until_{_sign(match)}i{bits}", may_block=True, result=f"i{bits}")
    if symbol == "nvshmem_ulong_put_signal":
        return Symbol("cuda_ulong_put_signal")
    return own_symbols().get(record.symbol("cpu") or "")


def _sign(match: re.Match[str]) -> str:
    return "u" if match[1] == "u" or match[3] else ""


def ir() -> str:
    """The LLVM IR of all that is not among the host's own functions."""
    folder = resources.files("triton_dist.backends.cuda")
    word = Template(folder.joinpath("simulate_word.ll").read_text())
    words = [word.substitute(t=f"i{bits}", size=bits // 8) for bits in templates.WIDTHS]
    return "\n".join([folder.joinpath("simulate.ll").read_text(), *words, *_made()])


def _made() -> Iterator[str]:
    for shift in range(5):
        yield (
            f"define i64 @cuda_between_{1 << shift}({_HIDDEN}, i64 %at, i32 %pe) alwaysinline nounwind {{\n"
            f"  %remote = call i64 @host_ptr({_HIDDEN}, i64 %at, i32 %pe)\n"
            f"  %d = sub i64 %remote, %at\n  %r = ashr i64 %d, {shift}\n  ret i64 %r\n}}"
        )
    for size in (1, 2, 4, 8):
        yield _collective("broadcast", size, ", i32 %root")
        yield _collective("fcollect", size, "")
    for action in ("set", "add"):
        # The peer's address, looked up ahead, is not needed here.
        yield (
            f"define i32 @cuda_signal_{action}({_HIDDEN}, i64 %at, i64 %remote, i64 %value, i32 %pe) nounwind {{\n"
            f"  %r = call i32 @host_signal_{action}_i64({_HIDDEN}, i64 %at, i64 %value, i32 %pe)\n  ret i32 %r\n}}"
        )
    yield from (_until(sign, bits) for sign in ("", "u") for bits in templates.WIDTHS)
    operands = "i64 %sig, i64 %value, i32 %op, i32 %pe"
    yield (
        f"define i32 @cuda_ulong_put_signal({_HIDDEN}, i64 %dest, i64 %source, i64 %count, {operands}) nounwind {{\n"
        f"  %bytes = shl i64 %count, 3\n"
        f"  %r = call i32 @host_putmem_signal({_HIDDEN}, i64 %dest, i64 %source, i64 %bytes, {operands})\n"
        f"  ret i32 %r\n}}"
    )


def _collective(name: str, size: int, more: str) -> str:
    return (
        f"define i32 @cuda_{name}_{size}({_HIDDEN}, i32 %team, i64 %dest, i64 %source, i64 %count{more}) nounwind {{\n"
        f"  %bytes = mul i64 %count, {size}\n"
        f"  %r = call i32 @host_{name}mem({_HIDDEN}, i32 %team, i64 %dest, i64 %source, i64 %bytes{more})\n"
        f"  ret i32 %r\n}}"
    )


def _until(sign: str, bits: int) -> str:
    """A wait whose comparison is an operand."""
    from triton_dist.backends.cpu.native.faults import BAD_CMP

    t = f"i{bits}"
    cases = " ".join(f"i32 {code}, label %{word}" for code, word in enumerate(_COMPARE))
    lines = [
        f"define {t} @cuda_until_{sign}{t}({_HIDDEN}, i64 %at, i32 %cmp, {t} %value) nounwind {{",
        f"  switch i32 %cmp, label %none [ {cases} ]",
        "none:",
        "  %got = sext i32 %cmp to i64",
        f"  call void @td_fault(ptr %launch, i64 {BAD_CMP}, i32 %program, i32 %site, i64 %at, i64 0, i64 %got, i64 0)",
        f"  ret {t} 0",
    ]
    for word in _COMPARE:
        native = f"host_until_{'' if word in ('eq', 'ne') else sign}{word}_{t}"
        call = f"%r_{word} = call {t} @{native}({_HIDDEN}, i64 %at, {t} %value)"
        lines.append(f"{word}:\n  {call}\n  ret {t} %r_{word}")
    return "\n".join([*lines, "}"])
