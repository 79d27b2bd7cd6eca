# SPDX-License-Identifier: MIT
"""The device's template library: the name, operands and result of each function, and where it runs.

One table for all who need it: the conversion pass, `libaclshmem_device`, the simulated library, the docs. A function is
linked as `_mlir_ciface_` plus its name.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LINK_PREFIX = "_mlir_ciface_"
NAME_PREFIX = "dist."
"""The name of a custom operation is this plus the symbol. The compiler knows some operations by their name."""

TYPE_NAMES: Mapping[str, str] = {
    "bf16": "bfloat16", "f16": "half", "f32": "float", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
}  # fmt: skip
"""MLIR type -> the library's name of it."""

DTYPE_NAMES: Mapping[str, str] = {
    "bf16": "bfloat16", "fp16": "half", "fp32": "float", "int8": "int8", "int16": "int16", "int32": "int32",
    "int64": "int64", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
}  # fmt: skip
"""Triton's dtype -> the library's name of it. Unlike MLIR's types these have a sign."""

BYTES: Mapping[str, int] = {
    "half": 2, "float": 4, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4,
    "uint64": 8, "char": 1, "bfloat16": 2,
}  # fmt: skip
"""The library's types and their sizes."""

ALL = tuple(BYTES)
WAIT_TYPES = ("int8", "int16", "int32", "int64")
TOKEN_TYPES = ("int8", "int16", "int32", "int64", "half", "float", "char", "bfloat16")
_SIGNAL_TYPES = tuple(t for t in ALL if t != "char")
_COMPARED_TYPES = tuple(t for t in ALL if t not in ("half", "bfloat16"))
MOST_DIMENSIONS = 5
"""Tensors of pointers have at most this rank in the library."""
SLOT_BYTES = 64
"""Distance of the barriers of one wait: a cache line that several cores write is not coherent."""

SIGNAL_SET, SIGNAL_ADD = 0, 1
"""The library's numbers. The `distributed` dialect says 1 and 2, `libshmem_device` NVSHMEM's 9 and 10."""
COMPARISONS = {"EQ": 0, "NE": 1, "GT": 2, "GE": 3, "LT": 4, "LE": 5}
"""The library's numbers, which are not NVSHMEM's."""


@dataclass(frozen=True)
class Template:
    """One function of the library. Kinds: "ptr" (to `type`), "sig" (a pointer to int32), "value" (of `type`),
    "bytes", "pe", "team", "i32", "token", "i64"; the result is one of them or "void"."""

    symbol: str
    operands: tuple[str, ...]
    result: str
    family: str
    type: str = ""
    """The library's name of the element type, for a typed function."""
    meaning: str = ""

    @property
    def link_name(self) -> str:
        """What the linker looks for."""
        return LINK_PREFIX + self.symbol


_FIXED = {
    "aclshmem_my_pe": ("", "i32", "number of this PE"),
    "aclshmem_n_pes": ("", "i32", "number of PEs"),
    "aclshmem_team_my_pe": ("team", "i32", "number of this PE in a team, -1 outside it"),
    "aclshmem_team_n_pes": ("team", "i32", "size of a team, -1 for none"),
    "aclshmem_team_translate_pe": ("team pe team", "i32", "a PE of one team in another, -1 if it is not in it"),
    "aclshmem_barrier": ("team", "void", "barrier of a team, cube and vector cores"),
    "aclshmem_barrier_all": ("", "void", "barrier of all PEs, cube and vector cores"),
    "aclshmemx_barrier_vec": ("team", "void", "barrier of a team, vector cores only"),
    "aclshmemx_barrier_all_vec": ("", "void", "barrier of all PEs, vector cores only"),
    "aclshmem_quiet": ("", "void", "wait for the own transfers"),
    "aclshmem_fence": ("", "void", "order the own transfers"),
    "aclshmemx_signal_op": ("sig i32 i32 pe", "void", "set (0) or add to (1) an int32 signal of a PE"),
    "aclshmem_signal_wait_until": ("sig i32 i32", "i32", "wait for an int32 signal of this PE"),
}  # fmt: skip

_TYPED = (
    ("ptr", "aclshmem_ptr_<T>", ALL, "ptr pe", "ptr", "the address at a PE of what is at this address here"),
    ("putmem", "aclshmem_<T>_putmem", ALL, "ptr ptr bytes pe", "void", "copy to a PE"),
    ("putmem_nbi", "aclshmem_<T>_putmem_nbi", ALL, "ptr ptr bytes pe", "void", "copy to a PE, complete after quiet"),
    ("getmem", "aclshmem_<T>_getmem", ALL, "ptr ptr bytes pe", "void", "copy from a PE"),
    ("getmem_nbi", "aclshmem_<T>_getmem_nbi", ALL, "ptr ptr bytes pe", "void", "copy from a PE, complete after quiet"),
    ("putmem_signal", "aclshmem_<T>_putmem_signal", _SIGNAL_TYPES, "ptr ptr bytes sig i32 i32 pe", "void",
     "copy to a PE, then signal it"),
    ("putmem_signal_nbi", "aclshmem_<T>_putmem_signal_nbi", _SIGNAL_TYPES, "ptr ptr bytes sig i32 i32 pe", "void",
     "copy to a PE, then signal it, in order"),
    ("p", "aclshmem_<T>_p", ALL, "ptr value pe", "void", "store one value at a PE"),
    ("wait_until", "aclshmem_wait_until_<T>", _COMPARED_TYPES, "ptr i32 value", "void", "wait for a value"),
    ("wait", "aclshmem_wait_<T>", WAIT_TYPES, "ptr i32 value", "i32", "wait until n slots of 64 bytes hold a value"),
    ("consume_token", "aclshmem_consume_token_<T>", TOKEN_TYPES, "value token", "value", "its first operand"),
)  # fmt: skip


def _templates() -> Iterator[Template]:
    for symbol, (operands, result, meaning) in _FIXED.items():
        family = re.sub("^aclshmemx?_", "", symbol)
        yield Template(symbol, tuple(operands.split()), result, family, meaning=meaning)
    for family, pattern, types, operands, result, meaning in _TYPED:
        for name in types:
            yield Template(pattern.replace("<T>", name), tuple(operands.split()), result, family, name, meaning)
    for name in TOKEN_TYPES:
        for rank in range(1, MOST_DIMENSIONS + 1):
            symbol = f"aclshmem_consume_token_{name}_ptr_{rank}d"
            yield Template(symbol, ("ptr", "token"), "ptr", "consume_token", name, "its first operand")


@functools.cache
def templates() -> Mapping[str, Template]:
    """Every function of the library, by symbol."""
    return {template.symbol: template for template in _templates()}


# Where a function runs

CORES = (
    ("aclshmem_barrier_all", "CUBE_AND_VECTOR"),
    ("aclshmemx_barrier_all_vec", "VECTOR"),
    ("aclshmem_putmem", "VECTOR"),
    ("aclshmem_getmem", "VECTOR"),
    ("aclshmem_putmem_nbi", "VECTOR"),
    ("aclshmem_getmem_nbi", "VECTOR"),
    ("aclshmem_putmem_signal", "VECTOR"),
    ("aclshmem_putmem_signal_nbi", "VECTOR"),
)
"""Beginning of a symbol -> the cores. The element type in the middle of a name (aclshmem_half_putmem) is left out."""

PIPES: Mapping[str, str] = {}
"""Name of a custom operation -> its pipeline. Empty so far, so every operation is in the scalar one."""
DEFAULT_PIPE = "PIPE_S"

_INFIX = re.compile(rf"^aclshmem_(?:{'|'.join(ALL)})_(?=(?:put|get)mem)")


def listed_cores(symbol: str) -> str | None:
    """The cores that the table gives a symbol: those of the longest beginning that fits."""
    plain = _INFIX.sub("aclshmem_", symbol)
    fitting = [(len(prefix), cores) for prefix, cores in CORES if plain.startswith(prefix)]
    return max(fitting)[1] if fitting else None


def pipe(symbol: str) -> str:
    return PIPES.get(NAME_PREFIX + symbol, DEFAULT_PIPE)


def library_table() -> str:
    """The families of the library, as a markdown table for the docs."""
    rows: dict[str, tuple[str, list[str], Template]] = {}
    for template in templates().values():
        shown = template.symbol.replace(f"_{template.type}", "_<T>", 1) if template.type else template.symbol
        rows.setdefault(shown, (shown, [], template))[1].append(template.type)
    lines = ["| function | element types | operands | result | what it does |\n", "|---|---|---|---|---|\n"]
    for shown, types, template in rows.values():
        cells = (f"`{shown}`", ", ".join(filter(None, types)), ", ".join(template.operands), template.result)
        lines.append(f"| {' | '.join(cells)} | {template.meaning} |\n")
    return "".join(lines)
