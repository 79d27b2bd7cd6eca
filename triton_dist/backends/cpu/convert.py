# SPDX-License-Identifier: MIT
"""`convert-triton-distributed-to-host`: `distributed` ops become calls of the host's symbols.

The symbols are the engine's (`host_shmem_*`); it gives each its code. Everything else in the module stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from triton_dist.errors import UnsupportedOpError
from triton_dist.ir.dialects import distributed as d
from triton_dist.ir.dialects._syntax import int_attr, keyword_of
from triton_dist.ir.dialects.arith import TruncIOp
from triton_dist.ir.dialects.tt import ExternElementwiseOp
from triton_dist.ir.locations import location

LIBRARY = "host_shmem"
WAIT_WIDTHS = (8, 16, 32, 64)
SIGNAL_WIDTHS = (32, 64)


@dataclass(frozen=True)
class ConvertTritonDistributedToHost(ModulePass):
    """Valid TTIR with `distributed` ops in, valid TTIR without any out."""

    name = "convert-triton-distributed-to-host"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # No greedy driver: it erases what it finds unused, and an unconsumed wait only reads.
        for old in list(op.walk()):
            if (convert := _CONVERSIONS.get(type(old))) is not None:
                new, values = convert(old)
                Rewriter.replace_op(old, new, values)


Converted = tuple[list[Operation], list[SSAValue]]
"""The new ops, in order, and the values that take the place of the old results."""


def _call(
    old: Operation,
    symbol: str,
    operands: Sequence[SSAValue],
    result: Attribute,
    pure: bool,
    library: tuple[str, str] = (LIBRARY, ""),
) -> ExternElementwiseOp:
    """A call of `symbol` at the place of `old`."""
    return ExternElementwiseOp.create(
        operands=operands,
        result_types=(result,),
        properties={
            "libname": StringAttr(library[0]),
            "libpath": StringAttr(library[1]),
            "symbol": StringAttr(symbol),
            "pure": int_attr(int(pure), 1),
        },
        attributes=old.attributes,
        location=old.location,
    )


def _integer_width(op: Operation, type: Attribute | None, widths: Sequence[int]) -> int:
    if isinstance(type, IntegerType) and type.width.data in widths:
        return type.width.data
    known = ", ".join(f"i{width}" for width in widths)
    detail = f"the signal is of type {type}; it can be {known}"
    raise UnsupportedOpError(where=location(op) or "unknown location", backend="cpu", op=op.name, detail=detail)


def _whole(call: ExternElementwiseOp) -> Converted:
    return [call], [call.result]


def _get_rank(op: d.GetRankOp) -> Converted:
    return _whole(_call(op, "host_shmem_my_pe", (), i32, pure=True))


def _get_num_ranks(op: d.GetNumRanksOp) -> Converted:
    return _whole(_call(op, "host_shmem_n_pes", (), i32, pure=True))


def _symm_at(op: d.SymmAtOp) -> Converted:
    # The table of bases does not change while a kernel runs, so the call may move.
    return _whole(_call(op, "host_shmem_ptr", op.operands, op.remoteAddr.type, pure=True))


def _wait(op: d.WaitOp) -> Converted:
    width = _integer_width(op, d.pointee(op.barrierPtr.type), WAIT_WIDTHS)
    return _whole(_call(op, f"host_shmem_wait_i{width}", op.operands, op.token.type, pure=False))


def _notify(op: d.NotifyOp) -> Converted:
    """Memory of the host is coherent, and each update is a release: the scope only says whose signal it is."""
    width = _integer_width(op, d.pointee(op.sigAddr.type), SIGNAL_WIDTHS)
    new: list[Operation] = []
    value: SSAValue = op.signalVal
    if width < 64:
        narrow = TruncIOp.create(operands=(value,), result_types=(IntegerType(width),), location=op.location)
        new.append(narrow)
        value = narrow.results[0]
    action = (keyword_of(d.SIGNAL_OPS, op.sigOp) or "").lower()
    if keyword_of(d.COMM_SCOPES, op.commScope) == "GPU":
        new.append(_call(op, f"host_shmem_signal_here_{action}_i{width}", (op.sigAddr, value), i32, pure=False))
    else:
        new.append(_call(op, f"host_shmem_signal_{action}_i{width}", (op.sigAddr, value, op.rank), i32, pure=False))
    return new, []


def _consume_token(op: d.ConsumeTokenOp) -> Converted:
    """Its input: the engine keeps loads behind an impure call in program order."""
    return [], [op.input]


def _extern_call(op: d.ExternCallOp) -> Converted:
    if len(op.results) > 1:
        detail = f"{op.symbol.data} has {len(op.results)} results; one at most"
        where = location(op) or "unknown location"
        raise UnsupportedOpError(where=where, backend="cpu", op=op.name, detail=detail)
    result = op.results[0].type if op.results else i32
    library = (op.libname.data, op.libpath.data)
    call = _call(op, op.symbol.data, op.operands, result, bool(op.pure.value.data), library)
    return [call], list(call.results[: len(op.results)])


_CONVERSIONS: dict[type[Operation], Callable[..., Converted]] = {
    d.GetRankOp: _get_rank,
    d.GetNumRanksOp: _get_num_ranks,
    d.SymmAtOp: _symm_at,
    d.WaitOp: _wait,
    d.NotifyOp: _notify,
    d.ConsumeTokenOp: _consume_token,
    d.ExternCallOp: _extern_call,
}
