# SPDX-License-Identifier: MIT
"""The host's `libshmem_device` under TRITON_INTERPRET=1: what each function does, in Python.

Every transfer is complete when its call returns, so that quiet and fence have nothing to do. Collectives need all
PEs inside the same call; the interpreter runs one program at a time, so they are for one PE.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl

from triton_dist.backends.cpu import state
from triton_dist.errors import InterpretedLimit
from triton_dist.language.extra.operands import SIGNAL_OPS
from triton_dist.language.extra.records import Record, records
from triton_dist.language.interpreter import element_bytes, integer, peer_address, read

if TYPE_CHECKING:
    from triton_dist.language.interpreter import InterpretedOpBuilder

_COMPARE = (operator.eq, operator.ne, operator.gt, operator.le, operator.lt, operator.ge)


class Interpreted:
    """One call: its record and its operands by name."""

    def __init__(self, builder: InterpretedOpBuilder, record: Record, operands: Sequence[Any]) -> None:
        self.builder, self.record = builder, record
        self.op = f"libshmem_device.{record.name}"
        names = [o.name for o in record.operands if not o.optional]
        self.handles = dict(zip(names, operands, strict=True))

    def __getitem__(self, name: str) -> int:
        return integer(self.handles[name])

    def there(self, name: str) -> int:
        """The address on the target PE of a symmetric pointer."""
        return peer_address(self.op, self[name], self["pe"])

    def pointee(self, name: str) -> tl.dtype:
        return self.handles[name].dtype.element_ty


def call(builder: InterpretedOpBuilder, symbol: str, operands: Sequence[Any], result: tl.dtype | None) -> Any:
    """Run the function that a host symbol names; a TensorHandle of type `result` (or a dummy i32)."""
    from triton.runtime.interpreter import TensorHandle

    record = records().get(symbol.removeprefix("host_shmem_"))
    if record is None or record.symbols.get("cpu") != symbol:
        raise InterpretedLimit(op="dl.extern_call", detail=f"the library function {symbol} is not known to it")
    value = _run(Interpreted(builder, record, operands)) or 0
    type_ = result or tl.int32
    if type_.is_ptr():
        return TensorHandle(np.array([value], dtype=np.uint64), type_)
    bits = type_.primitive_bitwidth
    data = np.array([value & ((1 << bits) - 1)], dtype=f"uint{bits}")
    return TensorHandle(data if type_.is_int_unsigned() else data.view(f"int{bits}"), type_)


def _run(call: Interpreted) -> int | None:
    family = call.record.family
    if family in _FAMILIES:
        return _FAMILIES[family](call)
    if "_wait_until_" in family:
        compare = operator.eq if family.endswith("equals") else operator.gt
        return _wait(call, "addr", compare, call["val"])
    return _store(call)


def _my_pe(call: Interpreted) -> int:
    return state.current().my_pe


def _n_pes(call: Interpreted) -> int:
    return state.current().n_pes


def _remote_ptr(call: Interpreted) -> int:
    return peer_address(call.op, call["local_ptr"], call["pe"])


def _translate(call: Interpreted) -> int:
    pe = call["pe_in_src_team"]
    return pe if 0 <= pe < state.current().n_pes else -1


def _nothing(call: Interpreted) -> int:
    return 0


def _alone(call: Interpreted) -> int:
    if state.current().n_pes != 1:
        raise InterpretedLimit(op=call.op, detail="all PEs must be inside it at once; run it natively, or on one PE")
    return 0


def _put(call: Interpreted) -> None:
    ctypes.memmove(call.there("dest"), call["source"], _bytes(call))


def _get(call: Interpreted) -> None:
    ctypes.memmove(call["dest"], call.there("source"), _bytes(call))


def _put_signal(call: Interpreted) -> None:
    _put(call)
    _signal(call)


def _signal(call: Interpreted) -> None:
    add = SIGNAL_OPS.get(call["sig_op"]) == "add"
    call.builder.update(call.there("sig_addr"), call["signal"], add, call.pointee("sig_addr"))


def _collect(call: Interpreted) -> int:
    """Broadcast and all-gather of one PE: a copy."""
    _alone(call)
    ctypes.memmove(call["dest"], call["source"], _bytes(call))
    return 0


def _bytes(call: Interpreted) -> int:
    if "bytes" in call.handles:
        return call["bytes"]
    counted = next(o for o in call.record.operands if o.name == "nelems")
    return call["nelems"] * (1 if counted.kind == "bytes" else element_bytes(call.handles["dest"]))


def _add(call: Interpreted) -> int:
    return call.builder.update(call.there("dest"), call["val"], True, call.pointee("dest"))


def _store(call: Interpreted) -> None:
    data = np.asarray(call.handles["value"].data).reshape(-1)[:1].tobytes()
    ctypes.memmove(call.there("dest"), data, len(data))


def _signal_wait(call: Interpreted) -> int:
    return _wait(call, "sig_addr", _COMPARE[call["cmp_"]], call["cmp_val"])


def _wait(call: Interpreted, pointer: str, compare: Callable[[int, int], bool], wanted: int) -> int:
    address, type_ = call[pointer], call.pointee(pointer)
    dtype = np.dtype(str(type_))
    words = f"{compare.__name__} {wanted}"
    return call.builder.spin(address, lambda: read(address, dtype), lambda seen: compare(seen, wanted), words, call.op)


_FAMILIES: dict[str, Callable[[Interpreted], int | None]] = {
    "my_pe": _my_pe,
    "n_pes": _n_pes,
    "team_my_pe": _my_pe,
    "team_n_pes": _n_pes,
    "team_translate_pe": _translate,
    "remote_ptr": _remote_ptr,
    "quiet": _nothing,
    "quiet_pe": _nothing,
    "fence": _nothing,
    "fence_pe": _nothing,
    "putmem": _put,
    "putmem_rma": _put,
    "getmem": _get,
    "putmem_signal": _put_signal,
    "putmem_signal_rma": _put_signal,
    "ulong_put_signal": _put_signal,
    "signal_op": _signal,
    "signal_wait_until": _signal_wait,
    "broadcastmem": _collect,
    "broadcast": _collect,
    "fcollectmem": _collect,
    "fcollect": _collect,
    **dict.fromkeys(("barrier_all", "barrier_all_vec", "barrier", "sync_all", "team_sync", "sync"), _alone),
    **{f"atomic_{kind}_{type_}": _add for kind in ("add", "fetch_add") for type_ in ("int64", "uint64")},
}
