# SPDX-License-Identifier: MIT
"""`libshmem_device` on Ascend: the portable functions over aclshmem's, with its numbers and types.

A transfer is typed by its destination's pointee. Signals are int32 to aclshmem; an int64 or uint64 one can be set (a
store of one value) and waited for. A team is a number that the host's library gave; of the portable names there is
TEAM_WORLD only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton.language as tl

from triton_dist.backends.ascend import symbols
from triton_dist.errors import NotConstexpr, UnknownChoice, UnsupportedSignal
from triton_dist.language import checks
from triton_dist.language.extra.ascend.libaclshmem_device import AclCall, as_bytes, element_type, emit, team
from triton_dist.language.extra.declare import declare
from triton_dist.language.extra.operands import COMPARISONS, SIGNAL_OPS, Call
from triton_dist.language.extra.records import Operand, Record

BACKEND = "ascend"

_Translate = Callable[["_Portable"], Any]


class _Portable(AclCall):
    """One call of a portable function."""

    def __init__(self, record: Record, symbol: str, semantic: Any, args: Any, kwargs: Any) -> None:
        super().__init__(record, semantic)
        self.symbol = symbol
        self.operands(args, kwargs)
        self.given = self._bind(args, kwargs)
        # Queue pairs belong to other vendors' networks.
        self.made.pop("qp_id", None)

    def maker(self, kind: str) -> Callable[[Call, Operand, Any], Any]:
        return _portable_team if kind == "team" else super().maker(kind)

    def constant(self, name: str) -> int:
        """An operand that must be known at compile time."""
        number = checks.unwrap(self.given[name])
        if not checks.is_int(number):
            raise NotConstexpr(op=self.op, argument=name, expected="a number", got=checks.describe(number))
        return number

    def emit(self, symbol: str, *operands: Any, result: tl.dtype | None = None) -> Any:
        return emit(self.semantic, symbol, operands, result, self.record.pure)

    def i32(self, number: int) -> Any:
        return self.semantic.scalar_constant(number, tl.int32)


def _portable_team(call: Call, operand: Operand, value: Any) -> Any:
    """A team's number. NVSHMEM's other names are numbers too, which mean another team here, or none."""
    from triton_dist.language.extra import libshmem_device as portable

    if value is not portable.TEAM_WORLD and value is not portable.TEAM_INVALID and (
        names := [name for name, known in vars(portable).items() if known is value and name.startswith("TEAM_")]
    ):
        valid = "TEAM_WORLD, or a number that team_split_strided gave on the host"
        raise UnknownChoice(op=call.op, argument=operand.name, got=names[0], hint=" to aclshmem", valid=valid)
    return team(call, operand, value)


def _plain(call: _Portable) -> Any:
    return call.emit(call.symbol, *call.made.values(), result=call.result())


def _barrier(call: _Portable) -> Any:
    call.emit(call.symbol, *call.made.values())
    return tl.tensor(call.i32(0).handle, tl.int32)


def _remote_ptr(call: _Portable) -> Any:
    pointer = call.made["local_ptr"]
    name = element_type(pointer)
    if name is not None:
        return call.emit(f"aclshmem_ptr_{name}", pointer, call.made["pe"], result=pointer.type)
    typed, _, name = as_bytes(pointer, pointer, call.semantic)
    found = call.emit(f"aclshmem_ptr_{name}", typed, call.made["pe"], result=typed.type)
    return call.semantic.cast(found, pointer.type)


def _transfer(call: _Portable) -> Any:
    made = call.made
    dest, source, name = as_bytes(made["dest"], made["source"], call.semantic)
    return call.emit(call.symbol.replace("<T>", name), dest, source, made["bytes"], made["pe"])


def _put_signal(call: _Portable) -> Any:
    if _is_narrow(call):
        made = call.made
        dest, source, name = as_bytes(made["dest"], made["source"], call.semantic)
        signal = call.semantic.cast(made["signal"], tl.int32)
        rest = (made["sig_addr"], signal, _signal_number(call), made["pe"])
        return call.emit(call.symbol.replace("<T>", name), dest, source, made["bytes"], *rest)
    # aclshmem's has int32 signals: the copy, complete, then the store of the signal.
    symbol = call.symbol
    call.symbol = "aclshmem_<T>_putmem"
    _transfer(call)
    call.symbol = symbol
    return _store_signal(call)


def _signal_op(call: _Portable) -> Any:
    if not _is_narrow(call):
        return _store_signal(call)
    made = call.made
    signal = call.semantic.cast(made["signal"], tl.int32)
    return call.emit(call.symbol, made["sig_addr"], signal, _signal_number(call), made["pe"])


def _store_signal(call: _Portable) -> Any:
    made = call.made
    type_ = checks.pointee(made["sig_addr"])
    if SIGNAL_OPS.get(call.constant("sig_op")) != "set":
        raise UnsupportedSignal(op=call.op, backend=BACKEND, sig_op="add", got=type_, valid="add to int32 signals")
    return call.emit(f"aclshmem_{type_}_p", made["sig_addr"], made["signal"], made["pe"])


def _is_narrow(call: _Portable) -> bool:
    return checks.pointee(call.made["sig_addr"]).primitive_bitwidth == 32


def _signal_number(call: _Portable) -> Any:
    """aclshmem's number: 0 sets, 1 adds."""
    number = checks.unwrap(call.given["sig_op"])
    if checks.is_int(number):
        return call.i32(symbols.SIGNAL_ADD if SIGNAL_OPS[number] == "add" else symbols.SIGNAL_SET)
    return call.semantic.sub(call.made["sig_op"], call.i32(min(SIGNAL_OPS)), True)


def _wait_until(call: _Portable) -> Any:
    made, pointer = call.made, call.made["sig_addr"]
    compare = call.i32(symbols.COMPARISONS[COMPARISONS[call.constant("cmp_")]])
    type_ = checks.pointee(pointer)
    if _is_narrow(call):
        value = call.semantic.cast(made["cmp_val"], tl.int32)
        seen = call.emit(call.symbol, pointer, compare, value, result=tl.int32)
    else:
        call.emit(f"aclshmem_wait_until_{type_}", pointer, compare, made["cmp_val"])
        seen = tl.load(pointer, volatile=True, _semantic=call.semantic)
    return call.semantic.cast(seen, tl.uint64)


_SPECIAL: dict[str, _Translate] = {
    "barrier": _barrier,
    "remote_ptr": _remote_ptr,
    "signal_op": _signal_op,
    "signal_wait_until": _wait_until,
    **dict.fromkeys(("putmem", "putmem_nbi", "getmem", "getmem_nbi"), _transfer),
    **dict.fromkeys(("putmem_signal", "putmem_signal_nbi"), _put_signal),
}


def _function(record: Record, symbol: str) -> Any:
    translate = _SPECIAL.get(record.name, _plain)

    def function(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        return translate(_Portable(record, symbol, _semantic, args, kwargs))

    return function


declare(BACKEND, globals(), _function)


def __getattr__(name: str) -> Any:
    """Functions that only aclshmem has, such as `barrier_vec`, under its own names and with its own numbers."""
    if name.startswith("_"):
        raise AttributeError(name)
    from triton_dist.language.extra.ascend import libaclshmem_device

    return getattr(libaclshmem_device, name)
