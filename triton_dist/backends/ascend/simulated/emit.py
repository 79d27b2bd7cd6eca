# SPDX-License-Identifier: MIT
"""How the host engine's code generator emits what the conversion to `hivm` makes."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as llvm
from xdsl.dialects.builtin import TensorType

from triton_dist.backends.ascend import symbols
from triton_dist.backends.ascend.convert import unsupported
from triton_dist.backends.cpu.codegen.build import Value
from triton_dist.backends.cpu.codegen.extern import call
from triton_dist.backends.cpu.codegen.kernel import Kernel, handles
from triton_dist.backends.cpu.codegen.ltypes import I32, I64, shape_of
from triton_dist.ir.dialects.tt import PointerType

_CONSUME = "aclshmem_consume_token_"


@handles("tensor.empty", "annotation.mark")
def nothing(k: Kernel, op: Any) -> None:
    """Destinations and marks are for the device's compiler: a tensor of pointers is computed, not stored."""
    del k, op


@handles("hivm.hir.get_sub_block_idx")
def sub_block_idx(k: Kernel, op: Any) -> None:
    """A program is one core here."""
    k.bind(op.results[0], llvm.Constant(I64, 0))


@handles("hivm.hir.get_sub_block_num")
def sub_block_num(k: Kernel, op: Any) -> None:
    k.bind(op.results[0], llvm.Constant(I64, 1))


@handles("hivm.hir.custom")
def custom(k: Kernel, op: Any) -> None:
    """A call of the template library under its link name."""
    template = symbols.templates().get(op.symbol)
    if template is None:
        raise unsupported(op, f"the template library has no function {op.symbol!r}")
    _check(op, template)
    if op.symbol.startswith(_CONSUME):
        k.bind(op.results[0], k.env[op.ins[0]])
        return
    from triton_dist.backends.ascend.simulated.library import symbols as native

    symbol = native()[op.symbol]
    got = call(k, op, symbol.native, _result_type(template), _operands(k, op, template))
    if symbol.may_end:
        k.check_abort()
    k.blocking |= symbol.may_block
    if op.results:
        k.bind(op.results[0], got)


def _result_type(template: symbols.Template) -> llvm.Type:
    """Functions without a result return an i32 that nobody reads; so does a wait_until."""
    if template.family == "wait_until":
        return llvm.IntType(8 * symbols.BYTES[template.type])
    return I64 if template.result == "ptr" else I32


def _check(op: Any, template: symbols.Template) -> None:
    """The types of the call, which came as the kernel wrote them: the device would take their bits for others."""
    if len(op.ins) != len(template.operands):
        raise unsupported(op, f"{op.symbol} takes {len(template.operands)} operands, not {len(op.ins)}")
    for i, (value, kind) in enumerate(zip(op.ins, template.operands, strict=True)):
        # A token may be for a tensor of pointers.
        type = value.type if template.family != "consume_token" or i else _scalar(value.type)
        if shape_of(type) is not None:
            raise unsupported(op, f"{op.symbol} takes scalars, not tensors")
        if not _is(type, kind, template):
            raise unsupported(op, f"operand {i} of {op.symbol} is {_wanted(kind, template)}, not {type}")
    _check_result(op, template)


def _check_result(op: Any, template: symbols.Template) -> None:
    got = [str(result.type) for result in op.results]
    wanted = {"void": [], "i32": ["i32"]}.get(template.result)
    if wanted is None:
        wanted = [str(op.ins[0].type)]
    if got != wanted:
        raise unsupported(op, f"{op.symbol} gives {', '.join(wanted) or 'nothing'}, not {', '.join(got) or 'nothing'}")


def _scalar(type: Any) -> Any:
    return type.element_type if isinstance(type, TensorType) else type


def _is(type: Any, kind: str, template: symbols.Template) -> bool:
    if kind in ("ptr", "sig"):
        return isinstance(type, PointerType) and (kind == "ptr" or str(type.pointee_type) == "i32")
    return str(type) == _wanted(kind, template)


def _wanted(kind: str, template: symbols.Template) -> str:
    """The MLIR type of an operand, or what it is called."""
    if kind in ("ptr", "sig"):
        return "a pointer" if kind == "ptr" else "a pointer to i32"
    if kind != "value":
        return "i32"
    floats = {name: type for type, name in symbols.TYPE_NAMES.items() if not type.startswith("i")}
    return floats.get(template.type, f"i{8 * symbols.BYTES[template.type]}")


def _operands(k: Kernel, op: Any, template: symbols.Template) -> list[Value]:
    return [_operand(k, value, kind, template) for value, kind in zip(op.ins, template.operands, strict=True)]


def _operand(k: Kernel, value: Any, kind: str, template: symbols.Template) -> Value:
    given = k.scalar(value)
    if kind == "bytes":
        return k.b.resize(given, I64, signed=False)
    if kind == "value":
        wanted = llvm.IntType(8 * symbols.BYTES[template.type])
        return given if given.type == wanted else k.b.bitcast(given, wanted)
    return given
