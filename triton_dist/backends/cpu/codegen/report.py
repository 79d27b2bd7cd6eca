# SPDX-License-Identifier: MIT
"""device_print and device_assert."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir

from . import floats
from .attrs import get, integer
from .build import Value, const, i64
from .domain import Chunk, Loop, plan
from .extern import program
from .kernel import Kernel, handles
from .ltypes import F64, I8, I32, I64, PTR, Elem, elem_of
from .memory import materialise, run
from .tensor import Node

ASSERTION = 7
"""Fault code of a failed device_assert (native/faults.py)."""


def _text(k: Kernel, text: str) -> Value:
    """A zero-terminated constant."""
    data = bytearray(text.encode() + b"\0")
    return k.global_constant(ir.Constant(ir.ArrayType(I8, len(data)), data), "text")


def _printf(k: Kernel, text: str, values: list[Value]) -> None:
    function = k.module.globals.get("dprintf")
    if function is None:
        function = ir.Function(k.module, ir.FunctionType(I32, [I32, PTR], var_arg=True), "dprintf")
    k.b.call(function, [const(I32, 1), _text(k, text), *values])


@handles("tt.print")
def device_print(k: Kernel, op: Any) -> None:
    """One line an element: `pid (x, y, z) idx (i, j) prefix: value`, as on a GPU."""
    prefix, hexadecimal = get(op, "prefix").data, bool(integer(op, "hex"))
    escaped = prefix.replace("%", "%%")
    if not op.operands:
        _printf(k, f"pid (%d, %d, %d){escaped}\n", list(k.pid))
        return
    signs = list(get(op, "isSigned").get_values())
    for number, operand in enumerate(op.operands):
        elem = elem_of(operand.type)
        value = k.env[operand]
        if isinstance(value, Node):
            _print_tensor(k, value, elem, escaped, hexadecimal, bool(signs[number]))
        else:
            form, argument = _formatted(k, value, elem, hexadecimal, bool(signs[number]))
            _printf(k, f"pid (%d, %d, %d) idx (){escaped}{form}\n", [*k.pid, argument])


def _print_tensor(k: Kernel, node: Node, elem: Elem, prefix: str, hexadecimal: bool, signed: bool) -> None:
    source = materialise(k, node)

    def body(loop: Loop, chunk: Chunk) -> None:
        form, argument = _formatted(k, loop.scalar(source, chunk), elem, hexadecimal, signed)
        places = ", ".join("%lld" for _ in chunk.dims)
        _printf(
            k, f"pid (%d, %d, %d) idx ({places}){prefix}{form}\n", [*k.pid, *[d.base for d in chunk.dims], argument]
        )

    run(k, plan(source.shape, 1), body)


def _formatted(k: Kernel, value: Value, elem: Elem, hexadecimal: bool, signed: bool) -> tuple[str, Value]:
    if elem.is_float:
        wide = floats.widen(k.b, value, elem)
        return "%f", wide if wide.type == F64 else k.b.fpext(wide, F64)
    number = k.b.resize(value, I64, signed and elem.bits > 1 and not hexadecimal) if elem.kind == "int" else value
    if hexadecimal or elem.kind == "ptr":
        return f"0x%0{max(1, elem.bits // 4)}llx", number
    return ("%lld" if signed else "%llu"), number


@handles("tt.assert")
def device_assert(k: Kernel, op: Any) -> None:
    """Ends the launch with the message if any element is false."""
    condition = k.env[op.operands[0]]
    message = get(op, "message").data
    site = k.site_of(f"{k.where(op)}: {message}")
    if not isinstance(condition, Node):
        _unless(k, condition, site)
    else:
        source = materialise(k, condition) if condition.reads else condition
        run(k, plan(source.shape, 1), lambda loop, chunk: _unless(k, loop.scalar(source, chunk), site))
    k.check_abort()


def _unless(k: Kernel, good: Value, site: Value) -> None:
    function = k.module.globals.get("td_fault")
    if function is None:
        types = [PTR, I64, I32, I32, I64, I64, I64, I64]
        function = ir.Function(k.module, ir.FunctionType(ir.VoidType(), types), "td_fault")
    truth = good if good.type.width == 1 else k.b.icmp_signed("!=", good, const(good.type, 0))
    with k.b.if_then(k.b.not_(truth), likely=False):
        k.b.call(function, [k.launch, i64(ASSERTION), program(k), site, i64(0), i64(1), i64(0), i64(0)])
