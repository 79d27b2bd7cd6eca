# SPDX-License-Identifier: MIT
"""From the arguments of a `libshmem_device` call to checked operands, by the kinds of its record."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import triton.language as tl

from triton_dist import backends
from triton_dist.errors import BadCall, NotANumber, NotConstexpr, UnknownChoice, WrongPointee
from triton_dist.language import checks
from triton_dist.language.extra.records import Operand, Record

TYPES: dict[str, tl.dtype] = {
    "i8": tl.int8,
    "i16": tl.int16,
    "i32": tl.int32,
    "i64": tl.int64,
    "u32": tl.uint32,
    "u64": tl.uint64,
    "f32": tl.float32,
    "f64": tl.float64,
}

SIGNAL_OPS = {9: "set", 10: "add"}
COMPARISONS = ("EQ", "NE", "GT", "LE", "LT", "GE")
TEAMS = {0: "TEAM_WORLD", 1: "TEAM_SHARED", 2: "TEAM_NODE"}
"""The teams whose members are all PEs of one machine, in the same order."""

# Operands that are written: a pointer to const is an error.
_WRITTEN = frozenset({"dest", "sig_addr"})


class Call:
    """One call being checked: the record, the name for errors, and the operands made so far."""

    def __init__(self, record: Record, semantic: Any) -> None:
        self.record, self.semantic = record, semantic
        self.op = f"libshmem_device.{record.name}"
        self.made: dict[str, Any] = {}

    def operands(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The checked operands by name, those left out (qp_id) missing."""
        given = self._bind(args, kwargs)
        for operand in self.record.operands:
            if operand.name in given:
                self.made[operand.name] = self.maker(operand.kind)(self, operand, given[operand.name])
        self._same_pointees()
        return self.made

    def maker(self, kind: str) -> Callable[[Call, Operand, Any], Any]:
        """What checks and makes an operand of this kind."""
        return _MAKERS.get(kind) or _typed(kind)

    def result(self) -> tl.dtype | None:
        if self.record.result == "void":
            return None
        if self.record.result == "same":
            return next(self.made[o.name].type for o in self.record.operands if o.is_pointer)
        return TYPES[self.record.result]

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        empty = inspect.Parameter.empty
        parameters = [inspect.Parameter(o.name, kind, default=0 if o.optional else empty) for o in self.record.operands]
        try:
            return dict(inspect.Signature(parameters).bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise BadCall(op=self.op, detail=error, signature=self.record.signature) from None

    def _same_pointees(self) -> None:
        # A typed transfer counts elements: both ends must have the same.
        if any(o.kind == "count" for o in self.record.operands) and "source" in self.made:
            dest, source = (checks.pointee(self.made[name]) for name in ("dest", "source"))
            if dest != source:
                raise WrongPointee(op=self.op, argument="source", expected=f"{dest}, as dest does", got=source)


def _pointer(call: Call, operand: Operand, value: Any) -> Any:
    return checks.scalar_pointer(call.op, operand.name, value, writes=operand.name in _WRITTEN)


def _signal_pointer(call: Call, operand: Operand, value: Any) -> Any:
    pointer = _pointer(call, operand, value)
    checks.signal_type(call.op, operand.name, pointer, backends.active().limits.signal_ops)
    return pointer


def _signal(call: Call, operand: Operand, value: Any) -> Any:
    type_ = checks.pointee(call.made["sig_addr"])
    wide = tl.uint64 if type_.is_int_unsigned() else tl.int64
    return checks.fits(call.op, operand.name, value, type_, wide, call.semantic)


def _size(call: Call, operand: Operand, value: Any) -> Any:
    return checks.count(call.op, operand.name, value, tl.int64, call.semantic)


def _pe(call: Call, operand: Operand, value: Any) -> Any:
    return checks.rank(call.op, operand.name, value, call.semantic)


def code_of(valid: dict[int, str]) -> Callable[[Call, Operand, Any], Any]:
    """A number with a name: checked if it is known at compile time, otherwise passed on."""

    def make(call: Call, operand: Operand, value: Any) -> Any:
        number = checks.unwrap(value)
        if checks.is_int(number):
            if number not in valid:
                names = ", ".join(f"{name} ({n})" for n, name in valid.items())
                raise UnknownChoice(op=call.op, argument=operand.name, got=number, hint="", valid=names)
            return call.semantic.scalar_constant(number, tl.int32)
        return call.semantic.cast(checks.integer(call.op, operand.name, value), tl.int32)

    return make


def _signal_op(call: Call, operand: Operand, value: Any) -> Any:
    made = code_of({n: f"SIGNAL_{name.upper()}" for n, name in SIGNAL_OPS.items()})(call, operand, value)
    number = checks.unwrap(value)
    if checks.is_int(number):
        checks.signal_op(call.op, checks.pointee(call.made["sig_addr"]), SIGNAL_OPS[number])
    return made


def _team(call: Call, operand: Operand, value: Any) -> Any:
    # Not at run time: a team that does not exist would go unseen.
    if not checks.is_int(checks.unwrap(value)):
        expected = "one of the TEAM_... names"
        raise NotConstexpr(op=call.op, argument=operand.name, expected=expected, got=checks.describe(value))
    return code_of(TEAMS)(call, operand, value)


def _typed(kind: str) -> Callable[[Call, Operand, Any], Any]:
    """The maker of "i32*" or "i32": a pointer to that type, whatever its sign, or a value of it."""
    type_ = TYPES[kind.removesuffix("*")]

    def pointer(call: Call, operand: Operand, value: Any) -> Any:
        made = _pointer(call, operand, value)
        got = checks.pointee(made)
        same_class = got.is_int() == type_.is_int() and got.is_floating() == type_.is_floating()
        if not same_class or got.primitive_bitwidth != type_.primitive_bitwidth:
            raise WrongPointee(op=call.op, argument=operand.name, expected=type_, got=got)
        return made

    def scalar(call: Call, operand: Operand, value: Any) -> Any:
        return value_of(call, operand, value, type_)

    return pointer if kind.endswith("*") else scalar


def value_of(call: Call, operand: Operand, value: Any, type_: tl.dtype) -> Any:
    """A scalar of a type; a number must fit it."""
    number = checks.unwrap(value)
    if type_.is_int():
        if checks.is_int(number):
            return checks.fits(call.op, operand.name, value, type_, type_, call.semantic, of="")
        # As the vendors' C functions do: a wider integer is cut.
        return call.semantic.cast(checks.integer(call.op, operand.name, value), type_)
    if isinstance(number, float) or checks.is_int(number):
        return call.semantic.scalar_constant(float(number), type_)
    if checks.is_tensor(value) and not value.type.is_block() and value.dtype.is_floating():
        return call.semantic.cast(value, type_)
    raise NotANumber(op=call.op, argument=operand.name, expected=f"a {type_} scalar", got=checks.describe(value))


_MAKERS: dict[str, Callable[[Call, Operand, Any], Any]] = {
    "symmetric*": _pointer,
    "local*": _pointer,
    "signal*": _signal_pointer,
    "signal": _signal,
    "bytes": _size,
    "count": _size,
    "pe": _pe,
    "team": _team,
    "sig_op": _signal_op,
    "cmp": code_of({n: f"CMP_{name}" for n, name in enumerate(COMPARISONS)}),
}
