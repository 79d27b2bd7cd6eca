# SPDX-License-Identifier: MIT
"""The host's symbols: which native function each stands for, and the LLVM IR of all of them.

`SYMBOLS` is what the code generator resolves `tt.extern_elementwise` against. Scope variants (block, warp, wave, wg)
and non-blocking ones share a function: a program is one thread here, and a put completes at once.
"""

from __future__ import annotations

import functools
import platform
import re
from dataclasses import dataclass
from importlib import import_module, resources
from string import Template
from types import ModuleType, SimpleNamespace

from ..state import DeviceState, Fault
from .abi import Launch


@dataclass(frozen=True)
class Symbol:
    """How a host symbol is called."""

    native: str
    may_end: bool = True
    """It may end the launch, so the program checks afterwards."""
    may_block: bool = False
    count_of: int | None = None
    """Operand that counts elements of the pointee of operand `pointee_of`; the native function takes bytes."""
    pointee_of: int = 1
    compares: bool = False
    """Operand 1 is a comparison code that chooses the native function."""
    result: str = ""
    """The integer type that the native function returns; empty: its name says so."""


_PREFIX = "host_shmem_"
_VARIANT = re.compile(r"(_rma|_nbi|_block|_warp|_wave|_wg|_vec)+$")
_P_TYPES = {
    "int": "i32", "float": "float", "double": "double", "char": "i8", "short": "i16", "uint": "i32", "ulong": "i64",
    "int32": "i32", "int64": "i64", "uint32": "i32", "uint64": "i64",
}  # fmt: skip
COMPARE = ("eq", "ne", "gt", "le", "lt", "ge")
"""Comparison codes 0 to 5 (NVSHMEM's numbers)."""
_BLOCKS = frozenset(
    {"barrier_all", "barrier", "sync_all", "sync", "team_sync", "broadcastmem", "broadcast", "fcollectmem", "fcollect"}
)
_SAME = {"sync_all": "barrier_all", "sync": "barrier", "team_sync": "barrier", "fence": "quiet", "fence_pe": "quiet_pe"}
_PURE = frozenset({"my_pe", "n_pes", "team_my_pe", "team_n_pes", "team_translate_pe", "quiet", "quiet_pe"})


def _by_name(name: str) -> Symbol | None:
    """The symbol for a portable `libshmem_device` name; None if it is none of the regular ones."""
    if match := re.fullmatch(r"(\w+)_p", name):
        return Symbol(f"host_p_{_P_TYPES[match[1]]}") if match[1] in _P_TYPES else None
    if match := re.fullmatch(r"(u?)int(32|64)_wait_until_(equals|greater_than)", name):
        compare = "eq" if match[3] == "equals" else f"{match[1]}gt"
        return Symbol(f"host_until_{compare}_i{match[2]}", may_block=True)
    if match := re.fullmatch(r"atomic_(fetch_)?add_u?int64", name):
        return Symbol("host_fetch_add_i64")
    base = _VARIANT.sub("", name)
    native = _SAME.get(base, base)
    if base in ("broadcast", "fcollect"):
        return Symbol(f"host_{base}mem", may_block=True, count_of=3)
    return Symbol(f"host_{native}", may_end=native not in _PURE, may_block=base in _BLOCKS)


_SPECIAL = {
    "remote_ptr": Symbol("host_ptr"),
    "signal_wait_until": Symbol("host_until", may_block=True, compares=True),
    "ulong_put_signal": Symbol("host_putmem_signal", count_of=2, pointee_of=0),
}


def _symbols() -> dict[str, Symbol]:
    from triton_dist.language.extra.records import records

    found = {_PREFIX + "ptr": Symbol("host_ptr")}
    for bits in (8, 16, 32, 64):
        found[f"{_PREFIX}wait_i{bits}"] = Symbol(f"host_wait_i{bits}", may_block=True)
    for action in ("set", "add"):
        for bits in (32, 64):
            found[f"{_PREFIX}signal_{action}_i{bits}"] = Symbol(f"host_signal_{action}_i{bits}")
            found[f"{_PREFIX}signal_here_{action}_i{bits}"] = Symbol(f"host_signal_here_{action}_i{bits}")
    for record in records().values():
        symbol = record.symbol("cpu")
        if symbol:
            chosen = _SPECIAL.get(record.name) or _by_name(record.name)
            assert chosen is not None, record.name
            found[symbol] = chosen
    return found


def simulated() -> ModuleType | None:
    """The host implementations of the chosen back end's symbols, when that back end runs simulated."""
    from triton_dist import backends, platform

    path = backends.get(platform.current().backend).host_library
    return import_module(path) if path else None


@functools.lru_cache(1)
def own_symbols() -> dict[str, Symbol]:
    """The host's own symbols."""
    return _symbols()


def symbols() -> dict[str, Symbol]:
    """Symbol -> how it is called: the host's own, and those of the back end that is being simulated."""
    vendor = simulated()
    return own_symbols() if vendor is None else own_symbols() | vendor.symbols()


# The IR


class _Dotted(Template):
    """A template whose names may hold a dot (state.my_pe)."""

    idpattern = r"[a-z_]+(?:\.[a-z_]+)?"


def _offsets(structure: type) -> SimpleNamespace:
    return SimpleNamespace(**{name: getattr(structure, name).offset for name, _ in structure._fields_})


def _text(name: str) -> str:
    return resources.files("triton_dist.backends.cpu.native").joinpath(name).read_text()


def _fill(file: str, **values: object) -> str:
    x86 = platform.machine() in ("x86_64", "AMD64")
    values["pause"] = 'call void asm sideeffect "pause", ""()' if x86 else 'call void asm sideeffect "yield", ""()'
    values["futex"] = 202 if x86 else 98
    values["crowd"] = CROWD
    for prefix, structure in (("state", DeviceState), ("fault", Fault), ("launch", Launch)):
        for field, at in vars(_offsets(structure)).items():
            values[f"{prefix}.{field}"] = at
    return _Dotted(_text(file)).substitute(values)


CROWD = 32
"""Workers of a launch above which programs that wait long are parked."""


def _extend(type_: str, value: str, signed: bool = True) -> str:
    if type_ == "i64":
        return f"add i64 {value}, 0"
    return f"{'sext' if signed else 'zext'} {type_} {value} to i64"


def runtime_ir() -> str:
    """LLVM IR of the whole native runtime."""
    parts = [_fill("runtime.ll"), _fill("park.ll"), _fill("shmem.ll")]
    for bits in (8, 16, 32, 64):
        t = f"i{bits}"
        values = {"t": t, "size": bits // 8, "ext_value": _extend(t, "%value"), "ext_seen": _extend(t, "%seen")}
        parts.append(_fill("wait.ll", **values))
        if bits >= 32:
            parts.append(_fill("typed.ll", **values, ext=""))
            parts += [_fill("until.ll", **values, name=n, compare=c) for n, c in _COMPARES]
    narrow = "define i32 @host_p_"
    for t, size in (("i8", 1), ("i16", 2), ("float", 4), ("double", 8)):
        text = _fill("typed.ll", t=t, size=size, ext="")
        parts.append(text[text.index(narrow) :])
    vendor = simulated()
    if vendor is not None:
        parts.append(vendor.ir())
    return "\n".join(parts)


_COMPARES = [("eq", "eq"), ("ne", "ne")] + [
    (p + c, f"{s}{c}") for p, s in (("", "s"), ("u", "u")) for c in ("gt", "ge", "lt", "le")
]
