# SPDX-License-Identifier: MIT
"""Custom ops become placeholders: `tt.extern_elementwise` of scalars."""

from __future__ import annotations

import re
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr, TensorType, UnitAttr, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from triton_dist.backends.ascend.convert import unsupported
from triton_dist.backends.ascend.placeholders.flow import choose_addresses
from triton_dist.ir.dialects._syntax import int_attr
from triton_dist.ir.dialects.annotation import MarkOp
from triton_dist.ir.dialects.arith import AddiOp, ConstantOp, ExtSIOp, MuliOp
from triton_dist.ir.dialects.hivm import CustomOp, index_array
from triton_dist.ir.dialects.tensor import EmptyOp
from triton_dist.ir.dialects.tt import AddPtrOp, BitcastOp, ExternElementwiseOp, IntToPtrOp, PointerType, PtrToIntOp
from triton_dist.ir.printer import print_text

LIBRARY = "hivm.custom"
POINTERS = "placeholder.pointers"
"""Attribute of a placeholder: the pointees of its operands and results, "" for what is no pointer."""
_SHAPING = frozenset({"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.addptr", "tt.reshape"})


def replaced(module: ModuleOp) -> str:
    """TTIR in which every custom op is a placeholder, as text. The module is changed."""
    for op in list(module.walk()):
        if isinstance(op, CustomOp) and (op.outs or _is_moved(op)):
            _move_to_base(op)
    for op in list(module.walk()):
        if isinstance(op, CustomOp):
            _replace(op)
    choose_addresses(module)
    for op in list(module.walk()):
        base = op.operands[0].owner if op.operands else None
        if isinstance(base, IntToPtrOp) and isinstance(op.operands[0].type, PointerType):
            _from_address(op, base)
    _fold_casts(module)
    return print_text(module)


def _from_address(op: Operation, base: IntToPtrOp) -> None:
    """What the program does wrong, or not at all, with a pointer that was an address."""
    if isinstance(op, AddPtrOp):
        _add_in_integers(op, base)
    elif isinstance(op, BitcastOp):
        cast = IntToPtrOp.create(operands=base.operands, result_types=op.result_types, location=op.location)
        Rewriter.replace_op(op, cast, cast.results)
    elif op.name == "tt.make_tensor_ptr":
        detail = "triton-ascend 3.2 makes no block pointer of what symm_at or consume_token gives; use tl.arange"
        raise unsupported(op, detail)


def _fold_casts(module: ModuleOp) -> None:
    """An address made a pointer and again an address is itself, and that of a pointer that was cast is the pointer's;
    pointers that nobody uses go."""
    for op in list(module.walk()):
        if not isinstance(op, PtrToIntOp):
            continue
        while isinstance(op.operands[0].owner, BitcastOp):
            op.operands[0] = op.operands[0].owner.operands[0]
        if isinstance(op.operands[0].owner, IntToPtrOp):
            Rewriter.replace_op(op, [], [op.operands[0].owner.operands[0]])
    for op in reversed(list(module.walk())):
        if isinstance(op, IntToPtrOp | PtrToIntOp | BitcastOp) and not op.results[0].uses:
            Rewriter.erase_op(op)


# consume_token of a computed pointer


def _is_moved(op: CustomOp) -> bool:
    """A scalar pointer's result has the descriptor of its operand, whose offset the next step would lose."""
    return op.symbol.endswith("_ptr_1d") and isinstance(op.ins[0].owner, AddPtrOp)


def _move_to_base(op: CustomOp) -> None:
    """consume_token of computed pointers, one or a tensor, is done to the pointer that they are computed from."""
    tensor, token = op.ins
    chain = _chain(op, tensor)
    base = chain[-1].operands[0]
    call = _scalar_consume(op, base, token)
    Rewriter.insert_op(call, InsertPoint.before(op))
    value: SSAValue = call.results[0]
    for link in reversed(chain):
        copy = link.clone()
        copy.operands[0] = value
        Rewriter.insert_op(copy, InsertPoint.before(op))
        value = copy.results[0]
    _erase_with_mark(op, value)


def _chain(op: CustomOp, tensor: SSAValue) -> list[Operation]:
    """The ops that make a tensor of pointers of one pointer, the last first."""
    chain: list[Operation] = []
    value = tensor
    while isinstance(value.type, TensorType) or isinstance(value.owner, AddPtrOp):
        owner = value.owner
        if not isinstance(owner, Operation) or owner.name not in _SHAPING:
            detail = "triton-ascend 3.2 takes a token for pointers that are made of one pointer; consume that one"
            raise unsupported(op, detail)
        chain.append(owner)
        value = owner.operands[0]
    return chain


def _scalar_consume(op: CustomOp, base: SSAValue, token: SSAValue) -> CustomOp:
    symbol = f"{op.symbol.rpartition('_')[0]}_1d"
    attributes = {k: v for k, v in op.attributes.items() if k != "SrcPtrIndex"} | {"symbol": StringAttr(symbol)}
    properties = dict(op.properties)
    properties["name"] = StringAttr(f"dist.{symbol}")
    properties["operandSegmentSizes"] = index_array([2, 0, 0])
    return CustomOp.create(
        operands=(base, token),
        result_types=(base.type,),
        properties=properties,
        attributes=attributes,
        location=op.location,
    )


def _erase_with_mark(op: CustomOp, value: SSAValue) -> None:
    for use in list(op.results[0].uses):
        if isinstance(use.operation, MarkOp):
            Rewriter.erase_op(use.operation)
    outs = [out.owner for out in op.outs]
    Rewriter.replace_op(op, [], [value])
    for out in outs:
        if isinstance(out, EmptyOp) and not out.tensor.uses:
            Rewriter.erase_op(out)


# One op


def _replace(op: CustomOp) -> None:
    if op.outs or any(isinstance(value.type, TensorType) for value in op.operands):
        raise unsupported(op, f"triton-ascend 3.2 has no way for tensors through {op.symbol}")
    before: list[Operation] = []
    operands = [_as_integer(value, op, before) for value in op.ins]
    results = list(op.result_types)
    call = ExternElementwiseOp.create(
        operands=operands,
        result_types=(_scalar_type(results[0]) if results else i32,),
        properties={
            "libname": StringAttr(LIBRARY),
            "libpath": StringAttr(_encoded(op)),
            "symbol": StringAttr(op.symbol),
            "pure": int_attr(int("no_side_effect" in op.properties), 1),
        },
        location=op.location,
    )
    after, values = _as_pointer(call, results)
    Rewriter.replace_op(op, [*before, call, *after], values)


def _as_integer(value: SSAValue, op: Operation, before: list[Operation]) -> SSAValue:
    if not isinstance(value.type, PointerType):
        return value
    cast = PtrToIntOp.create(operands=(value,), result_types=(i64,), location=op.location)
    before.append(cast)
    return cast.results[0]


def _as_pointer(call: Operation, results: list[Attribute]) -> tuple[list[Operation], list[SSAValue]]:
    if not results:
        return [], []
    if not isinstance(results[0], PointerType):
        return [], [call.results[0]]
    cast = IntToPtrOp.create(operands=call.results, result_types=results, location=call.location)
    return [cast], [cast.results[0]]


def _add_in_integers(op: AddPtrOp, base: IntToPtrOp) -> None:
    """Pointer arithmetic on what a placeholder gave: the program miscounts a constant offset from such a pointer."""
    pointer, offset = base.operands[0], op.offset
    size = _bytes(_pointee(op.ptr.type))
    new: list[Operation] = []
    if offset.type != i64:
        new.append(ExtSIOp.create(operands=(offset,), result_types=(i64,), location=op.location))
        offset = new[-1].results[0]
    scale = ConstantOp.create(properties={"value": int_attr(size, 64)}, result_types=(i64,), location=op.location)
    scaled = MuliOp.create(operands=(offset, scale.results[0]), result_types=(i64,), location=op.location)
    total = AddiOp.create(operands=(pointer, scaled.results[0]), result_types=(i64,), location=op.location)
    cast = IntToPtrOp.create(operands=total.results, result_types=(op.ptr.type,), location=op.location)
    Rewriter.replace_op(op, [*new, scale, scaled, total, cast], cast.results)


def _bytes(type: str) -> int:
    """Bytes of a pointee: i1, f64, bf16, f8E4M3FN."""
    bits = re.match(r"\D+(\d+)", type)
    assert bits is not None, type
    return max(int(bits[1]) // 8, 1)


def _scalar_type(type: Attribute) -> Attribute:
    return i64 if isinstance(type, PointerType) else type


def _encoded(op: CustomOp) -> str:
    """The op's attributes as text, with what the placeholder's types do not say."""
    pointees = [_pointee(value.type) for value in op.ins]
    result = _pointee(op.result_types[0]) if op.results else "none"
    extra: dict[str, Any] = {POINTERS: StringAttr(",".join([*pointees, result]))}
    if "no_side_effect" in op.properties:
        extra["no_side_effect"] = UnitAttr()
    return str(DictionaryAttr(op.attributes | extra))


def _pointee(type: Attribute) -> str:
    return str(type.pointee_type) if isinstance(type, PointerType) else ""
