# SPDX-License-Identifier: MIT
"""One record a `libshmem_device` function: what it takes, gives and means, and which vendor has it under which
name.

The table is `libshmem_device.csv`. The front end's checks, the dispatch, the host's functions, the simulators and
`docs/device_library.md` (by `docs/generate.py`) read it, so that there is no second list. Columns:

- operands: `name:kind`, in the order of the call. `name?` is an operand that only some libraries take, and
optional.
- result: a type, "same" (as the pointer that goes in) or "void".
- scope: who calls it together: a "thread", a "warp" or a "block". A program on the host is all three.
- cpu ... ascend: the symbol, empty where the library lacks the function. `<T>` stands for the element type, `A|B`
for a choice by
  argument, `A+B` for a call of A, then of B. AMD has two libraries: hip is rocSHMEM, hip_mori is mori.

Kinds of operands: `symmetric*`, `local*` (any pointee), `signal*`, `i32*` and so on: pointers, and where they must
point; `bytes`, `count`, `pe`, `team`, `signal` (a signal's value), `sig_op`, `cmp` (how to compare), `i32` and so
on: a value.
"""

from __future__ import annotations

import csv
import difflib
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

LIBRARIES = {
    "cpu": "cpu",
    "cuda": "cuda (NVSHMEM)",
    "hip": "hip (rocSHMEM)",
    "hip_mori": "hip (mori)",
    "maca": "maca (mxshmem)",
    "ascend": "ascend (aclshmem)",
}
"""Column of the table -> its title for people."""

BACKENDS = ("cpu", "cuda", "ascend", "hip", "maca")
_OF_BACKEND = {"hip": ("hip", "hip_mori")}
_SCOPE_SUFFIXES = {"_block": "block", "_wg": "block", "_warp": "warp", "_wave": "warp"}


@dataclass(frozen=True)
class Operand:
    name: str
    kind: str
    optional: bool

    @property
    def is_pointer(self) -> bool:
        return self.kind.endswith("*")


@dataclass(frozen=True)
class Record:
    """One function of `libshmem_device`."""

    name: str
    operands: tuple[Operand, ...]
    result: str
    scope: str
    pure: bool
    symbols: Mapping[str, str]
    """Library (a column of the table) -> symbol; a library that lacks the function is not in it."""
    meaning: str

    @property
    def signature(self) -> str:
        """The call, as a user writes it: putmem(dest, source, bytes, pe)."""
        names = [f"{o.name}=0" if o.optional else o.name for o in self.operands]
        return f"{self.name}({', '.join(names)})"

    @property
    def family(self) -> str:
        """The name without scope and `_nbi`: what it does, whoever calls it and however it completes."""
        name = self.name
        for suffix in _SCOPE_SUFFIXES:
            name = name.removesuffix(suffix)
        return name.removesuffix("_nbi")

    @property
    def blocking(self) -> bool:
        """Whether the operation is complete when the call returns."""
        return "_nbi" not in self.name

    def symbol(self, backend: str) -> str | None:
        """Its name in the back end's library (in the first that has it), or None."""
        found = (self.symbols.get(library) for library in _OF_BACKEND.get(backend, (backend,)))
        return next(filter(None, found), None)


@functools.cache
def records() -> Mapping[str, Record]:
    """All functions by name, in the order of the table."""
    text = (files("triton_dist.language.extra") / "libshmem_device.csv").read_text(encoding="utf-8")
    return {row["name"]: _record(row) for row in csv.DictReader(text.splitlines())}


def _record(row: dict[str, str]) -> Record:
    return Record(
        name=row["name"],
        operands=tuple(_operand(word) for word in row["operands"].split()),
        result=row["result"],
        scope=row["scope"],
        pure=row["pure"] == "yes",
        symbols={library: row[library] for library in LIBRARIES if row[library]},
        meaning=row["meaning"],
    )


def _operand(word: str) -> Operand:
    name, kind = word.split(":")
    return Operand(name.removesuffix("?"), kind, name.endswith("?"))


def supported(backend: str) -> list[str]:
    """The names of the functions that a back end's library has."""
    return [name for name, record in records().items() if record.symbol(backend)]


def nearest(name: str, backend: str) -> str | None:
    """What to call instead of a function that the back end lacks: the same operation in another scope, else the
    closest name."""
    has = supported(backend)
    wanted = records().get(name)
    if wanted is not None:
        same = [other for other in has if records()[other].family == wanted.family]
        same.sort(key=lambda other: records()[other].blocking != wanted.blocking)
        if same:
            return same[0]
    close = difflib.get_close_matches(name, has, n=1, cutoff=0.6)
    return close[0] if close else None


def function_table() -> str:
    """What each function does and where it is, as a markdown table for the docs."""
    rows = [["call", "what it does", "result", "by a", "back ends"]]
    for record in records().values():
        backends = [name for name in BACKENDS if record.symbol(name)]
        result = {"void": "", "same": "a pointer"}.get(record.result, record.result)
        rows.append([f"`{record.signature}`", record.meaning, result, record.scope, ", ".join(backends)])
    return _table(rows)


def support_table() -> str:
    """Under which name each library has a function, as a markdown table for the docs."""
    rows = [["function", *LIBRARIES.values()]]
    for record in records().values():
        rows.append([f"`{record.name}`", *(_code(record.symbols.get(lib, "")) for lib in LIBRARIES)])
    totals = [str(sum(lib in record.symbols for record in records().values())) for lib in LIBRARIES]
    return _table([*rows, [f"{len(records())} functions", *totals]])


def _code(symbol: str) -> str:
    return f"`{symbol}`" if symbol else ""


def _table(rows: list[list[str]]) -> str:
    head, *body = rows
    return "\n".join(map(_row, [head, ["---"] * len(head), *body]))


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def stub() -> str:
    """The text of `libshmem_device.pyi`: its functions and constants, for editors and type checkers.

    `python -m triton_dist.language.extra.records > triton_dist/language/extra/libshmem_device.pyi` writes it.
    """
    import triton.language as tl

    from triton_dist.language.extra import libshmem_device

    constants = [name for name, value in vars(libshmem_device).items() if isinstance(value, tl.constexpr)]
    lines = [_STUB_HEAD, *(f"{name}: constexpr\n" for name in constants), *map(_stub, records().values())]
    return "".join(lines)


_STUB_HEAD = """\
# SPDX-License-Identifier: MIT
# Generated from libshmem_device.csv by records.stub(); a test compares them.
# ruff: noqa: E501
# fmt: off
from typing import Any

from triton.language import constexpr

from triton_dist.language.extra.dispatch import ActiveModule

active_module: ActiveModule
"""


def _stub(record: Record) -> str:
    parameters = [f"{o.name}: Any{' = 0' if o.optional else ''}" for o in record.operands]
    result = "None" if record.result == "void" else "Any"
    return f'def {record.name}({", ".join(parameters)}) -> {result}:\n    """{record.meaning}"""\n'


if __name__ == "__main__":
    print(stub(), end="")
