# SPDX-License-Identifier: MIT
"""Names of the functions that converted kernels call: NVSHMEM's own, and our wrappers of them.

A scalar call in Triton is made by every thread. NVSHMEM's functions say who may call them: one thread, a warp, or the
whole block. A wrapper keeps that promise: `triton_dist_one_nvshmem_putmem` lets one thread of the program put.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

VENDOR = "libnvshmem_device"
"""NVSHMEM's library, as existing kernels name it."""
WRAPPERS = "triton_dist_nvshmem"
"""The library of wrappers that is made for a module."""

MODES = ("one", "warp", "block", "each")
"""Who calls the function: thread 0, warp 0, all threads together; or each thread for itself, with no guard."""
NOTIFY = {"set": "notify_set", "add": "notify_add"}
"""Signals anywhere; ours, made of NVSHMEM's."""
NOTIFY_THERE = {"set": "notify_there_set", "add": "notify_there_add"}
"""The same, for a signal whose address on the peer was looked up before."""
BETWEEN = {1 << shift: f"between{1 << shift}" for shift in range(5)}
"""Size -> how a function of `POINTERS` is asked for the distance to a counterpart, in elements of that size."""
DIRECT = frozenset({"nvshmem_my_pe", "nvshmem_n_pes"})
"""What any thread may call and all agree about: called without a wrapper."""
POINTERS = frozenset({"nvshmem_ptr", "nvshmemx_mc_ptr"})

_NAME = re.compile(rf"triton_dist_({'|'.join((*MODES, *BETWEEN.values()))})_(\w+)")

TYPES = {
    "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
    "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
    "fp16": "half", "bf16": "bfloat16", "fp32": "float", "fp64": "double",
}  # fmt: skip
"""Triton's name of an element type -> NVSHMEM's."""


@dataclass(frozen=True)
class WrapperName:
    """How the function `symbol` is called; what the wrapper does is in `wrappers.py`."""

    mode: str
    symbol: str

    @property
    def text(self) -> str:
        return f"triton_dist_{self.mode}_{self.symbol}"

    @staticmethod
    def of(name: str) -> WrapperName | None:
        found = _NAME.fullmatch(name)
        return WrapperName(found[1], found[2]) if found else None


@functools.cache
def scopes() -> dict[str, str]:
    """NVSHMEM symbol -> "thread", "warp" or "block": who calls it together; "any" for pure functions."""
    from triton_dist.language.extra.records import records

    found: dict[str, str] = {}
    for record in records().values():
        for symbol in symbols_of(record.symbol("cuda")):
            found[symbol] = "any" if record.pure else record.scope
    return found


def symbols_of(pattern: str | None) -> list[str]:
    """The symbols that a cell of the table stands for: `<T>` is each element type."""
    if not pattern:
        return []
    pattern = available(pattern)
    return [pattern.replace("<T>", name) for name in TYPES.values()] if "<T>" in pattern else [pattern]


def available(symbol: str) -> str:
    """What the released libraries have in place of functions that only a self-built one has.

    The `_rma` functions force a transfer onto the network; the plain ones choose the way themselves.
    """
    if match := re.fullmatch(r"nvshmemi_transfer_(?:rma_)?put(_signal)?(_nbi)?(_block|_warp)?", symbol):
        signal, nbi, scope = (group or "" for group in match.groups())
        return f"nvshmem{'x' if scope else ''}_putmem{signal}{nbi}{scope}"
    return symbol


def mode_of(symbol: str, divergent: bool) -> str:
    """How a call of `symbol` is made: as its scope demands, unless the kernel chooses its threads itself."""
    if divergent:
        return "each"
    # A function that the table does not know is called as it is.
    return {"thread": "one", "warp": "warp", "block": "block"}.get(scopes().get(symbol, "any"), "each")
