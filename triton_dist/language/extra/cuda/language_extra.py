# SPDX-License-Identifier: MIT
"""`language_extra` on NVIDIA GPUs: the registers of a thread, and atomics on memory of 32 and 64 bits as PTX.

What depends on `tid` or `laneid` is code of single threads: calls of `libshmem_device` in it are made by each thread
that comes to them.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl

from triton_dist.backends.cuda import templates
from triton_dist.backends.cuda.templates import Asm
from triton_dist.errors import NotConstexpr, UnknownChoice
from triton_dist.language import checks
from triton_dist.language.builder import SCOPES, SEMANTICS
from triton_dist.language.builtin import builtin

BACKEND = "cuda"

_LOADS = {"relaxed": 1, "acquire": 2}
_STORES = {"relaxed": 1, "release": 3}


def _emit(asm: Asm, operands: list[Any], type_: tl.dtype, semantic: Any) -> tl.tensor:
    handles = [operand.handle for operand in operands]
    types = [type_.to_ir(semantic.builder)]
    made = semantic.builder.create_inline_asm(asm.text, asm.constraints, handles, types, asm.pure, 1)
    return tl.tensor(made.get_result(0), type_)


def _axis(op: str, axis: Any) -> str:
    number = checks.unwrap(axis)
    if not checks.is_int(number):
        raise NotConstexpr(op=op, argument="axis", expected="an integer", got=checks.describe(axis))
    if number not in (0, 1, 2):
        raise UnknownChoice(op=op, argument="axis", got=number, hint="", valid="0, 1, 2")
    return "xyz"[number]


def _order(op: str, scope: Any, semantic: Any, table: dict[str, int]) -> tuple[str, str]:
    checks.choice(op, "scope", scope, SCOPES)
    checks.choice(op, "semantic", semantic, table)
    return checks.unwrap(scope), checks.unwrap(semantic)


def _word(op: str, ptr: Any, semantic: Any, integer: bool = False) -> tuple[Any, int, tl.dtype]:
    """The address as an integer, the width of what is there, and its type."""
    pointer = checks.scalar_pointer(op, "ptr", ptr)
    type_ = checks.pointee(pointer)
    width = type_.primitive_bitwidth
    if width not in templates.WIDTHS or (integer and not type_.is_int()):
        valid = "integers of 32 or 64 bits" if integer else "32 or 64 bits"
        raise UnknownChoice(op=op, argument="the pointee of ptr", got=str(type_), hint="", valid=valid)
    return semantic.cast(pointer, tl.int64), width, type_


def _bits(value: Any, type_: tl.dtype, width: int, semantic: Any) -> Any:
    """A value of a type as the integer with the same bits."""
    made = semantic.cast(semantic.to_tensor(value), type_)
    return semantic.bitcast(made, _integer(width))


def _integer(width: int) -> tl.dtype:
    return tl.int64 if width == 64 else tl.int32


@builtin
def tid(axis: Any, _semantic: Any = None) -> Any:
    return _emit(templates.register(f"tid.{_axis('language_extra.tid', axis)}"), [], tl.int32, _semantic)


@builtin
def ntid(axis: Any, _semantic: Any = None) -> Any:
    return _emit(templates.register(f"ntid.{_axis('language_extra.ntid', axis)}"), [], tl.int32, _semantic)


@builtin
def laneid(_semantic: Any = None) -> Any:
    return _emit(templates.register("laneid"), [], tl.int32, _semantic)


@builtin
def __syncthreads(_semantic: Any = None) -> None:
    tl.debug_barrier(_semantic=_semantic)


@builtin
def ld(ptr: Any, scope: Any = "gpu", semantic: Any = "relaxed", _semantic: Any = None) -> Any:
    op = "language_extra.ld"
    order = _order(op, scope, semantic, _LOADS)
    address, width, type_ = _word(op, ptr, _semantic)
    seen = _emit(templates.load(width, *order), [address], _integer(width), _semantic)
    return _semantic.bitcast(seen, type_)


@builtin
def st(ptr: Any, val: Any, scope: Any = "gpu", semantic: Any = "relaxed", _semantic: Any = None) -> None:
    op = "language_extra.st"
    order = _order(op, scope, semantic, _STORES)
    address, width, type_ = _word(op, ptr, _semantic)
    _emit(templates.store(width, *order), [address, _bits(val, type_, width, _semantic)], tl.int32, _semantic)


@builtin
def ld_acquire(ptr: Any, scope: Any = "gpu", _semantic: Any = None) -> Any:
    return ld(ptr, scope, "acquire", _semantic=_semantic)


@builtin
def red_release(ptr: Any, val: Any, scope: Any = "gpu", _semantic: Any = None) -> None:
    op = "language_extra.red_release"
    checks.choice(op, "scope", scope, SCOPES)
    address, width, type_ = _word(op, ptr, _semantic, integer=True)
    asm = templates.reduce(width, checks.unwrap(scope))
    _emit(asm, [address, _bits(val, type_, width, _semantic)], tl.int32, _semantic)


@builtin
def atomic_add(ptr: Any, val: Any, scope: Any = "gpu", semantic: Any = "relaxed", _semantic: Any = None) -> Any:
    op = "language_extra.atomic_add"
    order = _order(op, scope, semantic, SEMANTICS)
    address, width, type_ = _word(op, ptr, _semantic, integer=True)
    value = _bits(val, type_, width, _semantic)
    return _semantic.bitcast(
        _emit(templates.fetch_add(width, *order), [address, value], _integer(width), _semantic), type_
    )


@builtin
def atomic_cas(
    ptr: Any, value: Any, target_value: Any, scope: Any = "gpu", semantic: Any = "relaxed", _semantic: Any = None
) -> Any:
    op = "language_extra.atomic_cas"
    order = _order(op, scope, semantic, SEMANTICS)
    address, width, type_ = _word(op, ptr, _semantic)
    words = [_bits(x, type_, width, _semantic) for x in (value, target_value)]
    seen = _emit(templates.compare_and_swap(width, *order), [address, *words], _integer(width), _semantic)
    return _semantic.bitcast(seen, type_)
