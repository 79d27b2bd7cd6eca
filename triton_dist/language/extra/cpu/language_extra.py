# SPDX-License-Identifier: MIT
"""`language_extra` on the host, over Triton's own atomics. A program is one thread."""

from __future__ import annotations

from typing import Any

import triton.language as tl

from triton_dist.errors import NotConstexpr, UnknownChoice
from triton_dist.language import checks
from triton_dist.language.builder import SCOPES, SEMANTICS
from triton_dist.language.builtin import builtin

BACKEND = "cpu"

_LOADS = {"relaxed": 1, "acquire": 2}
_STORES = {"relaxed": 1, "release": 3}


def _axis(op: str, axis: Any) -> None:
    number = checks.unwrap(axis)
    if not checks.is_int(number):
        raise NotConstexpr(op=op, argument="axis", expected="an integer", got=checks.describe(axis))
    if number not in (0, 1, 2):
        raise UnknownChoice(op=op, argument="axis", got=number, hint="", valid="0, 1, 2")


def _order(op: str, scope: Any, semantic: Any, table: dict[str, int]) -> dict[str, str]:
    checks.choice(op, "scope", scope, SCOPES)
    checks.choice(op, "semantic", semantic, table)
    return {"sem": checks.unwrap(semantic), "scope": checks.unwrap(scope)}


def _atomic_pointer(op: str, ptr: Any) -> tuple[Any, tl.dtype]:
    """A pointer to 32 or 64 bits, and the integer type that an atomic load or store of them uses."""
    pointer = checks.scalar_pointer(op, "ptr", ptr)
    types = {32: tl.int32, 64: tl.int64}
    type_ = checks.pointee(pointer)
    if type_.primitive_bitwidth not in types:
        raise UnknownChoice(op=op, argument="the pointee of ptr", got=str(type_), hint="", valid="32 or 64 bits")
    return pointer, type_ if type_.is_int() else types[type_.primitive_bitwidth]


def _bits(pointer: Any, type_: tl.dtype, semantic: Any) -> Any:
    return semantic.cast(pointer, tl.pointer_type(type_)) if checks.pointee(pointer) != type_ else pointer


@builtin
def tid(axis: Any, _semantic: Any = None) -> Any:
    _axis("language_extra.tid", axis)
    return _semantic.to_tensor(0)


@builtin
def ntid(axis: Any, _semantic: Any = None) -> Any:
    _axis("language_extra.ntid", axis)
    return _semantic.to_tensor(1)


@builtin
def laneid(_semantic: Any = None) -> Any:
    return _semantic.to_tensor(0)


@builtin
def __syncthreads(_semantic: Any = None) -> None:
    """Nothing to wait for: the program is one thread."""


@builtin
def ld(ptr: Any, scope: Any = "gpu", semantic: Any = "relaxed", _semantic: Any = None) -> Any:
    op = "language_extra.ld"
    order = _order(op, scope, semantic, _LOADS)
    pointer, type_ = _atomic_pointer(op, ptr)
    # An atomic load is an "or" with 0: every supported Triton has it, and no pass takes it out of a polling loop.
    zero = _semantic.scalar_constant(0, type_)
    seen = tl.atomic_or(_bits(pointer, type_, _semantic), zero, **order, _semantic=_semantic)
    return _semantic.bitcast(seen, checks.pointee(pointer))


@builtin
def st(ptr: Any, val: Any, scope: Any = "gpu", semantic: Any = "relaxed", _semantic: Any = None) -> None:
    op = "language_extra.st"
    order = _order(op, scope, semantic, _STORES)
    pointer, type_ = _atomic_pointer(op, ptr)
    value = _semantic.cast(_semantic.to_tensor(val), checks.pointee(pointer))
    bits = _semantic.bitcast(value, type_)
    tl.atomic_xchg(_bits(pointer, type_, _semantic), bits, **order, _semantic=_semantic)


@builtin
def ld_acquire(ptr: Any, scope: Any = "gpu", _semantic: Any = None) -> Any:
    return ld(ptr, scope, "acquire", _semantic=_semantic)


@builtin
def red_release(ptr: Any, val: Any, scope: Any = "gpu", _semantic: Any = None) -> None:
    atomic_add(ptr, val, scope, "release", _semantic=_semantic)


@builtin
def atomic_add(ptr: Any, val: Any, scope: Any = "gpu", semantic: Any = "relaxed", _semantic: Any = None) -> Any:
    op = "language_extra.atomic_add"
    order = _order(op, scope, semantic, SEMANTICS)
    pointer = checks.scalar_pointer(op, "ptr", ptr, writes=True)
    return tl.atomic_add(pointer, val, **order, _semantic=_semantic)


@builtin
def atomic_cas(
    ptr: Any, value: Any, target_value: Any, scope: Any = "gpu", semantic: Any = "relaxed", _semantic: Any = None
) -> Any:
    op = "language_extra.atomic_cas"
    order = _order(op, scope, semantic, SEMANTICS)
    pointer = checks.scalar_pointer(op, "ptr", ptr, writes=True)
    type_ = checks.pointee(pointer)
    old, new = (_semantic.cast(_semantic.to_tensor(x), type_) for x in (value, target_value))
    return tl.atomic_cas(pointer, old, new, **order, _semantic=_semantic)
