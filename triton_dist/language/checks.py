# SPDX-License-Identifier: MIT
"""What the arguments of `dl.*` and `libshmem_device.*` must be. Each check raises one class of triton_dist.errors.

An error raised here reaches the user as Triton's CompilationError, with the kernel's line and a caret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import triton.language as tl

from triton_dist import backends
from triton_dist.errors import (
    BadSignalType,
    DoesNotFit,
    NotAnInteger,
    NotAScalarPointer,
    NotAToken,
    NotConstexpr,
    ReadOnlyPointer,
    UnknownChoice,
    UnsupportedSignal,
)
from triton_dist.knobs import did_you_mean

# Triton's own annotations promise less than its values have (`tensor.type` is a base type without `is_block`).
Tensor: TypeAlias = Any
DType: TypeAlias = Any

DESCRIPTORS: Any = getattr(tl.core, "tensor_descriptor_base", ())
"""The class of tensor descriptors, for isinstance; Triton before 3.4 has none."""


def is_tensor(value: Any) -> bool:
    return isinstance(value, tl.tensor)


def unwrap(value: Any) -> Any:
    """The Python value of a constexpr; anything else as it is."""
    return value.value if isinstance(value, tl.constexpr) else value


def describe(value: Any) -> str:
    """What a user passed, in words: "a [64] block of int32", "pointer<fp32>", "'sys'"."""
    value = unwrap(value)
    if is_tensor(value):
        return describe_type(value.type)
    if isinstance(value, DESCRIPTORS):
        return "a tensor descriptor"
    return repr(value)


def describe_type(type_: Any) -> str:
    if type_.is_block():
        return f"a [{', '.join(str(unwrap(n)) for n in type_.shape)}] block of {type_.scalar}"
    if type_.is_ptr() and type_.element_ty.is_block():
        return "a block pointer"
    return str(type_)


def scalar_pointer(op: str, argument: str, value: Any, *, writes: bool = False) -> Tensor:
    """A pointer, not a block of them; not one to const where the op writes."""
    hint = ""
    if is_tensor(value) and value.type.is_ptr() and not value.type.element_ty.is_block():
        if writes and getattr(value.type, "const", False):
            raise ReadOnlyPointer(op=op, argument=argument)
        return value
    if is_tensor(value) and value.type.is_block() and value.type.scalar.is_ptr():
        hint = ": pass the base pointer plus one offset, not a block made with tl.arange"
    raise NotAScalarPointer(op=op, argument=argument, got=describe(value), hint=hint)


def pointee(pointer: Tensor) -> DType:
    return pointer.type.element_ty


def choice(op: str, argument: str, value: Any, table: Mapping[str, int]) -> int:
    """The number of a keyword that is known at compile time."""
    word = unwrap(value)
    valid = ", ".join(table)
    if not isinstance(word, str):
        raise NotConstexpr(op=op, argument=argument, expected=f"one of {valid}", got=describe(value))
    if word not in table:
        raise UnknownChoice(op=op, argument=argument, got=word, hint=did_you_mean(word, list(table)), valid=valid)
    return table[word]


def text(op: str, argument: str, value: Any) -> str:
    """A string that is known at compile time."""
    if not isinstance(word := unwrap(value), str):
        raise NotConstexpr(op=op, argument=argument, expected="a string", got=describe(value))
    return word


def flag(op: str, argument: str, value: Any) -> bool:
    """True or False, known at compile time."""
    if not isinstance(word := unwrap(value), bool):
        raise NotConstexpr(op=op, argument=argument, expected="True or False", got=describe(value))
    return word


def is_int(value: Any) -> bool:
    """Whether it is a Python integer; True and False are not meant as numbers."""
    return isinstance(value, int) and not isinstance(value, bool)


def axis(op: str, value: Any) -> int:
    """The axis of a rank: the world has one dimension, so -1 (all of it) and 0 say the same."""
    number = unwrap(value)
    if not is_int(number):
        raise NotConstexpr(op=op, argument="axis", expected="an integer", got=describe(value))
    if number not in (-1, 0):
        raise UnknownChoice(op=op, argument="axis", got=number, hint="", valid="-1, 0 (the PEs have one dimension)")
    return number


def count(op: str, argument: str, value: Any, type_: DType, semantic: Any) -> Tensor:
    """A number of things: 0 or more, a scalar integer of any width, made `type_`."""
    expected = "an integer scalar, 0 or more"
    if is_int(number := unwrap(value)):
        if not 0 <= number < 1 << (type_.primitive_bitwidth - 1):
            raise NotAnInteger(op=op, argument=argument, expected=expected, got=number)
        return semantic.scalar_constant(number, type_)
    return semantic.cast(_kept_large(integer(op, argument, value, expected), type_, semantic), type_)


def _kept_large(number: Tensor, type_: DType, semantic: Any) -> Tensor:
    """A number that `type_` may be too narrow for, as its nearest there: what is cut off could leave nothing."""
    if number.dtype.primitive_bitwidth <= type_.primitive_bitwidth:
        return number
    most = semantic.scalar_constant((1 << (type_.primitive_bitwidth - 1)) - 1, number.dtype)
    number = semantic.minimum(number, most, tl.PropagateNan.NONE)
    if number.dtype.is_int_signed():  # below 0 is an error of its own
        number = semantic.maximum(number, semantic.scalar_constant(-1, number.dtype), tl.PropagateNan.NONE)
    return number


def rank(op: str, argument: str, value: Any, semantic: Any) -> Tensor:
    """A PE: an integer scalar of at most 32 bits. (A 64-bit one is likely an offset in the wrong place.)"""
    expected = "a PE's number, an int32 scalar of 0 or more"
    if is_int(number := unwrap(value)):
        if not 0 <= number < 1 << 31:
            raise NotAnInteger(op=op, argument=argument, expected=expected, got=number)
        return semantic.scalar_constant(number, tl.int32)
    tensor = integer(op, argument, value, expected)
    if tensor.dtype.primitive_bitwidth > 32:
        raise NotAnInteger(op=op, argument=argument, expected=expected, got=f"{tensor.dtype} (use .to(tl.int32))")
    return semantic.cast(tensor, tl.int32)


def offset(op: str, value: Any, semantic: Any) -> Tensor:
    """Where a tile begins in what a tensor descriptor describes."""
    expected = "an int32 scalar"
    if is_int(number := unwrap(value)):
        if not -(1 << 31) <= number < 1 << 31:
            raise NotAnInteger(op=op, argument="an offset", expected=expected, got=number)
        return semantic.scalar_constant(number, tl.int32)
    tensor = integer(op, "an offset", value, expected)
    if tensor.dtype.primitive_bitwidth > 32:
        raise NotAnInteger(op=op, argument="an offset", expected=expected, got=f"{tensor.dtype} (use .to(tl.int32))")
    return semantic.cast(tensor, tl.int32)


def integer(op: str, argument: str, value: Any, expected: str = "an integer scalar") -> Tensor:
    """A runtime integer that is no block."""
    if is_tensor(value) and not value.type.is_block() and value.dtype.is_int():
        return value
    raise NotAnInteger(op=op, argument=argument, expected=expected, got=describe(value))


def fits(
    op: str, argument: str, value: Any, type_: DType, to: DType, semantic: Any, of: str = ", the type of the signal"
) -> Tensor:
    """An integer that a signal (or what `of` says) of `type_` can hold, as a scalar of type `to`."""
    if is_int(number := unwrap(value)):
        low, high = int_range(type_)
        if not low <= number <= high:
            hint = f" ({low} to {high})"
            raise DoesNotFit(op=op, argument=argument, got=number, type=type_, of=of, hint=hint)
        return semantic.scalar_constant(number, to)
    tensor = integer(op, argument, value)
    if tensor.dtype.primitive_bitwidth > type_.primitive_bitwidth:
        hint = f": make it narrower with .to(tl.{type_})"
        raise DoesNotFit(op=op, argument=argument, got=tensor.dtype, type=type_, of=of, hint=hint)
    return semantic.cast(tensor, to)


def int_range(type_: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    bits = type_.primitive_bitwidth
    return (0, (1 << bits) - 1) if type_.is_int_unsigned() else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def signal_type(op: str, argument: str, pointer: Tensor, valid: Iterable[str]) -> DType:
    """The pointee of a signal pointer, if the active back end has signals of that type."""
    type_ = pointee(pointer)
    if type_.name not in valid:
        backend = backends.active().name
        raise BadSignalType(op=op, argument=argument, got=type_, backend=backend, valid=", ".join(sorted(valid)))
    return type_


def signal_op(op: str, type_: DType, sig_op: str) -> None:
    """Whether the active back end can do this to a signal of this type."""
    backend = backends.active()
    table = backend.limits.signal_ops
    if sig_op not in table[type_.name]:
        valid = "; ".join(f"{' or '.join(sorted(ops))} {name}" for name, ops in table.items())
        raise UnsupportedSignal(op=op, backend=backend.name, sig_op=sig_op, got=type_, valid=valid)


def token(op: str, value: Any) -> Tensor:
    """What a wait returned: an int32 scalar of the running program."""
    if is_tensor(value) and not value.type.is_block() and value.dtype in (tl.int32, tl.uint32):
        return value
    raise NotAToken(op=op, got=describe(value))
