# SPDX-License-Identifier: MIT
"""The simulated template library as LLVM IR: one function under each link name."""

from __future__ import annotations

import functools
from importlib import resources
from string import Template as Text
from typing import Any

from triton_dist.backends.ascend import symbols as names
from triton_dist.backends.ascend.simulated import state
from triton_dist.backends.cpu.native.abi import Launch
from triton_dist.backends.cpu.native.library import Symbol
from triton_dist.backends.cpu.state import DeviceState

UNREACHABLE, BAD_OP, BAD_TEAM, BAD_CMP, TOO_LONG, NO_AGENT = range(101, 107)
"""Fault codes of their own; the engine's are below 100."""

_BLOCKING = frozenset({
    "barrier", "barrier_all", "barrier_vec", "barrier_all_vec", "signal_wait_until", "wait", "wait_until", "quiet",
    "fence", "putmem", "getmem", "putmem_nbi", "getmem_nbi", "signal_op", "putmem_signal", "putmem_signal_nbi",
})  # fmt: skip
_FILES = resources.files("triton_dist.backends.ascend.simulated") / "native"
_SAME = {
    "barrier_vec": "barrier", "barrier_all_vec": "barrier_all", "fence": "quiet", "putmem_signal_nbi": "putmem_signal",
}  # fmt: skip
_PURE = frozenset({"my_pe", "n_pes", "team_my_pe", "team_n_pes", "team_translate_pe"})


def native(template: names.Template) -> str:
    """The function of the native runtime behind a function of the library."""
    family = _SAME.get(template.family, template.family)
    bits = names.BYTES[template.type] * 8 if template.type else 0
    if family in ("p", "wait"):
        return f"asc_{family}_i{bits}"
    if family == "wait_until":
        return f"asc_until_{sign(template.type)}_i{bits}"
    return f"asc_{family}"


def sign(type: str) -> str:
    """How values of a type compare: as floats, signed or unsigned."""
    if type == "float":
        return "f"
    return "u" if type.startswith("u") else "s"


@functools.cache
def symbols() -> dict[str, Symbol]:
    """Every function of the library: its link name, and whether it may wait or end the kernel."""
    return {
        symbol: Symbol(
            template.link_name, may_end=template.family not in _PURE, may_block=template.family in _BLOCKING
        )
        for symbol, template in names.templates().items()
        if template.family != "consume_token"
    }


# The IR


class _Dotted(Text):
    """A template whose names may hold a dot (team.my_pe)."""

    idpattern = r"[a-z_0-9]+(?:\.[a-z_0-9]+)?"


_STRUCTURES = {
    "state": DeviceState,
    "launch": Launch,
    "asc": state.AscendState,
    "queue": state.Queue,
    "entry": state.Entry,
    "team": state.Team,
    "core": state.CoreSync,
}


@functools.cache
def _constants() -> dict[str, Any]:
    offsets = {
        f"{prefix}.{field[0]}": getattr(structure, field[0]).offset
        for prefix, structure in _STRUCTURES.items()
        for field in structure._fields_
    }
    faults = {
        "unreachable": UNREACHABLE, "bad_op": BAD_OP, "bad_team": BAD_TEAM, "bad_cmp": BAD_CMP, "too_long": TOO_LONG,
        "no_agent": NO_AGENT,
    }  # fmt: skip
    return {
        **offsets,
        **{f"fault_{name}": code for name, code in faults.items()},
        "most_teams": state.MOST_TEAMS,
        "stride": names.SLOT_BYTES,
        "mte": state.MTE,
        "sdma": state.SDMA,
        "udma": state.UDMA,
    }


def _fill(file: str, **values: Any) -> str:
    text = (_FILES / file).read_text(encoding="utf-8")
    return _Dotted(text).substitute(_constants() | values)


def _typed(bits: int) -> dict[str, Any]:
    def extended(value: str) -> str:
        return f"add i64 {value}, 0" if bits == 64 else f"sext i{bits} {value} to i64"

    return {
        "t": f"i{bits}",
        "size": bits // 8,
        "ext_value": extended("%value"),
        "ext_seen": extended("%seen"),
    }


def _until(bits: int, kind: str) -> str:
    t = f"i{bits}"
    if kind == "f":
        seen, value = f"bitcast {t} %seen_bits to float", f"bitcast {t} %value_bits to float"
        compare = {w: f"fcmp {'une' if w == 'ne' else 'o' + w} float" for w in ("eq", "ne", "gt", "ge", "lt", "le")}
    else:
        seen, value = f"add {t} %seen_bits, 0", f"add {t} %value_bits, 0"
        compare = {w: f"icmp {w} {t}" for w in ("eq", "ne")}
        compare |= {w: f"icmp {kind}{w} {t}" for w in ("gt", "ge", "lt", "le")}
    return _fill("until.ll", **_typed(bits), **compare, s=kind, seen_as=seen, value_as=value)


def _aliases() -> list[str]:
    """Each link name, as another name of the function behind it."""
    known = symbols()
    return [
        f"@{template.link_name} = alias i32 (), ptr @{native(template)}"
        for symbol, template in names.templates().items()
        if symbol in known
    ]


def ir() -> str:
    """LLVM IR of the library, to follow the engine's own runtime."""
    parts = [_fill(f"{name}.ll") for name in ("state", "queue", "transfer", "signal", "barrier")]
    parts += [_until(bits, kind) for bits in (8, 16, 32, 64) for kind in ("s", "u")]
    parts.append(_until(32, "f"))
    for bits in (8, 16, 32, 64):
        parts += [_fill("store.ll", **_typed(bits)), _fill("wait.ll", **_typed(bits))]
    return "\n".join([*parts, *_aliases()])
