# SPDX-License-Identifier: MIT
"""Calls of host symbols: the template library that distributed ops and `libshmem_device` functions resolve to.

A symbol of the library is called as `symbol(launch, program, site, operands...)`; if it ends the launch (a wait past
its deadline, a dead peer, a PE out of range) the program leaves the kernel right after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import llvmlite.ir as ir

from . import libdevice
from .attrs import get
from .build import Value, known
from .kernel import Kernel, handles
from .ltypes import I32, PTR, elem_of, shape_of
from .simple import elementwise

if TYPE_CHECKING:
    from ..native.library import Symbol


@handles("tt.extern_elementwise")
def extern(k: Kernel, op: Any) -> None:
    """A pure function of libdevice, or a call of the host's template library."""
    from ..native.library import symbols

    name = get(op, "symbol").data
    if libdevice.knows(name):
        elementwise(k, op)
        return
    symbol = symbols().get(name)
    if symbol is None:
        raise k.unsupported(op, f"the host's template library has no symbol {name!r}")
    _call_symbol(k, op, name, symbol)


@handles("tt.elementwise_inline_asm")
def inline_asm(k: Kernel, op: Any) -> None:
    """A template that the simulated back end's own lowering emits; other assembly means nothing to a CPU."""
    from ..native.library import symbols

    text = get(op, "asm_string").data
    symbol = symbols().get(text)
    if symbol is None:
        raise k.unsupported(op, f"inline assembly for a device cannot run on the host: {text.strip()!r}")
    _call_symbol(k, op, "the inline assembly", symbol)


def _call_symbol(k: Kernel, op: Any, name: str, symbol: Symbol) -> None:
    if any(shape_of(v.type) is not None for v in op.operands):
        raise k.unsupported(op, f"{name} takes scalars, not tensors")
    result = op.results[0]
    out = elem_of(result.type)
    native, operands = _resolve(k, op, symbol)
    got = call(k, op, native, _result_type(symbol, out.reg), operands)
    if symbol.may_end:
        k.check_abort()
    k.blocking |= symbol.may_block
    k.bind(result, k.b.resize(got, out.reg) if out.kind == "int" else got)


def _result_type(symbol: Symbol, wanted: ir.Type) -> ir.Type:
    """Functions without a result return an i32 that nobody reads."""
    if symbol.result:
        return ir.IntType(int(symbol.result.removeprefix("i")))
    valued = symbol.native == "host_ptr" or symbol.native.startswith(("host_until", "host_fetch_add"))
    if not valued:
        return I32
    if symbol.native.endswith(("_i32", "_i64")):
        return ir.IntType(int(symbol.native[-2:]))
    return wanted if symbol.native == "host_ptr" else ir.IntType(64)


def _resolve(k: Kernel, op: Any, symbol: Symbol) -> tuple[str, list[Value]]:
    """The native function, and its operands: element counts become bytes, a comparison code chooses the function."""
    from ..native.library import COMPARE

    operands = [k.scalar(v) for v in op.operands]
    if symbol.count_of is not None:
        pointee = elem_of(op.operands[symbol.pointee_of].type).pointee
        assert pointee is not None
        at = symbol.count_of
        operands[at] = k.b.imul(k.b.resize(operands[at], ir.IntType(64)), ir.Constant(ir.IntType(64), pointee.size))
    if not symbol.compares:
        return symbol.native, operands
    code = known(operands[1])
    if code is None or not 0 <= code < len(COMPARE):
        raise k.unsupported(op, "the comparison must be known at compile time, one of EQ, NE, GT, LE, LT, GE")
    word = COMPARE[code]
    unsigned = "" if word in ("eq", "ne") else "u"
    return f"host_until_{unsigned}{word}_i64", [operands[0], operands[2]]


def call(k: Kernel, op: Any, symbol: str, result: ir.Type, operands: list[Value]) -> Value:
    hidden = [k.launch, program(k), k.site(op)]
    k.distributed |= not symbol.startswith(("td_", "host_poll"))
    function = k.module.globals.get(symbol)
    if function is None:
        types = [PTR, I32, I32, *[v.type for v in operands]]
        function = ir.Function(k.module, ir.FunctionType(result, types), symbol)
    return k.b.call(function, [*hidden, *operands])


def program(k: Kernel) -> Value:
    """The linear program id, x fastest."""
    from ..native.abi import offset

    b = k.b
    grid = [
        b.load(b.gep(k.launch, [ir.Constant(ir.IntType(64), offset(f"grid_{a}"))], source_etype=ir.IntType(8)), typ=I32)
        for a in "xy"
    ]
    return b.add(k.pid[0], b.mul(grid[0], b.add(k.pid[1], b.mul(grid[1], k.pid[2]))))
