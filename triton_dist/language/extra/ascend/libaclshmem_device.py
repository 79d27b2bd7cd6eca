# SPDX-License-Identifier: MIT
"""aclshmem's device functions under their own names and with their own numbers.

Each function of the template library is here without its prefix: `half_putmem`, `wait_until_int32`, `int64_p`. Of a
family whose element type a pointer tells, the name without the type chooses: `putmem`, `wait_until`, `p`. Signals are
int32. The numbers of signal operations, comparisons and teams are the library's: a portable kernel calls
`libshmem_device`, which translates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import triton.language as tl

from triton_dist.backends.ascend import symbols
from triton_dist.errors import NotAnInteger, WrongPointee
from triton_dist.language import checks
from triton_dist.language.builtin import builtin, op_builder
from triton_dist.language.extra.operands import Call, code_of, value_of
from triton_dist.language.extra.records import Operand, Record

BACKEND = "ascend"
LIBRARY = "libshmem_device"

SIGNAL_SET = ACLSHMEM_SIGNAL_SET = tl.constexpr(symbols.SIGNAL_SET)
SIGNAL_ADD = ACLSHMEM_SIGNAL_ADD = tl.constexpr(symbols.SIGNAL_ADD)
CMP_EQ = ACLSHMEM_CMP_EQ = tl.constexpr(0)
CMP_NE = ACLSHMEM_CMP_NE = tl.constexpr(1)
CMP_GT = ACLSHMEM_CMP_GT = tl.constexpr(2)
CMP_GE = ACLSHMEM_CMP_GE = tl.constexpr(3)
CMP_LT = ACLSHMEM_CMP_LT = tl.constexpr(4)
CMP_LE = ACLSHMEM_CMP_LE = tl.constexpr(5)
TEAM_INVALID = ACLSHMEM_TEAM_INVALID = tl.constexpr(-1)
TEAM_WORLD = ACLSHMEM_TEAM_WORLD = tl.constexpr(0)

_DTYPES = {name: dtype for dtype, name in symbols.DTYPE_NAMES.items()} | {"char": "int8"}
_BY_WIDTH = {8: tl.int8, 16: tl.int16, 32: tl.int32, 64: tl.int64}
_RESULTS = {"i32": tl.int32, "void": None}
_PURE = frozenset({"my_pe", "n_pes", "team_my_pe", "team_n_pes", "team_translate_pe", "consume_token"})


class AclCall(Call):
    """A call being checked by aclshmem's rules: a team is any number, as the host makes them at run time, and bytes are
    counted in 32 bits."""

    def maker(self, kind: str) -> Callable[[Call, Operand, Any], Any]:
        return _MAKERS.get(kind) or super().maker(kind)


def team(call: Call, operand: Operand, value: Any) -> Any:
    """A team's number, known when compiling or not."""
    number = checks.unwrap(value)
    if checks.is_int(number):
        return call.semantic.scalar_constant(number, tl.int32)
    return call.semantic.cast(checks.integer(call.op, operand.name, value, "a team's number"), tl.int32)


_MOST_BYTES = (1 << 32) - 1


def _bytes(call: Call, operand: Operand, value: Any) -> Any:
    """A number of bytes, which the library takes as an unsigned 32-bit number. A larger one is an error, if not when
    compiling then when running: it becomes the largest, which no transfer can have, rather than its own low bits."""
    expected = f"an integer scalar, 0 to {_MOST_BYTES}: aclshmem counts the bytes of one transfer in 32 bits"
    semantic = call.semantic
    if checks.is_int(number := checks.unwrap(value)):
        if not 0 <= number <= _MOST_BYTES:
            raise NotAnInteger(op=call.op, argument=operand.name, expected=expected, got=number)
        return semantic.cast(semantic.scalar_constant(number, tl.int64), tl.int32)
    size = checks.integer(call.op, operand.name, value, "an integer scalar, 0 or more")
    if size.dtype.primitive_bitwidth > 32:
        most = semantic.scalar_constant(_MOST_BYTES, tl.uint64)
        size = semantic.minimum(semantic.cast(size, tl.uint64), most, tl.PropagateNan.NONE)
    return semantic.cast(size, tl.int32)


_MAKERS: dict[str, Callable[[Call, Operand, Any], Any]] = {"team": team, "bytes": _bytes}


# From checked operands to the call


def emit(
    semantic: Any, symbol: str, operands: Sequence[Any], result: tl.dtype | None = None, pure: bool = False
) -> Any:
    """The call of one function of the library."""
    handles = [operand.handle for operand in operands]
    handle = op_builder(semantic).create_distributed_extern_call(LIBRARY, "", symbol, handles, result, pure)
    return tl.tensor(handle, tl.void if result is None else result)


def element_type(pointer: Any) -> str | None:
    """The library's name of what a pointer points to, or None."""
    return symbols.DTYPE_NAMES.get(str(checks.pointee(pointer)))


def as_bytes(dest: Any, source: Any, semantic: Any) -> tuple[Any, Any, str]:
    """Both ends of a transfer as pointers to one type that the library has, and its name. Bits are copied, so that a
    type which it lacks goes as integers of its width."""
    type_ = checks.pointee(dest)
    if element_type(dest) is None:
        type_ = _BY_WIDTH[max(type_.primitive_bitwidth, 8)]
    pointer = tl.pointer_type(type_)
    ends = [end if checks.pointee(end) == type_ else semantic.cast(end, pointer) for end in (dest, source)]
    return ends[0], ends[1], symbols.DTYPE_NAMES[str(type_)]


# The functions


def _kinds(template: symbols.Template) -> tuple[Operand, ...]:
    """The operands as a record says them."""
    kinds = {"ptr": "symmetric*", "sig": "i32*", "value": template.type}
    names = _NAMES.get(template.family) or [f"{kind}{i}" for i, kind in enumerate(template.operands)]
    pairs = zip(names, template.operands, strict=True)
    # Of the plain numbers, these have names of their own.
    return tuple(Operand(name, _CODES.get(name) or kinds.get(kind, kind), False) for name, kind in pairs)


_CODES = {"sig_op": "acl_sig_op", "cmp": "acl_cmp", "num_barriers": "acl_count"}


_NAMES = {
    "putmem": ["dest", "source", "bytes", "pe"],
    "putmem_nbi": ["dest", "source", "bytes", "pe"],
    "getmem": ["dest", "source", "bytes", "pe"],
    "getmem_nbi": ["dest", "source", "bytes", "pe"],
    "putmem_signal": ["dest", "source", "bytes", "sig_addr", "signal", "sig_op", "pe"],
    "putmem_signal_nbi": ["dest", "source", "bytes", "sig_addr", "signal", "sig_op", "pe"],
    "p": ["dest", "value", "pe"],
    "ptr": ["ptr", "pe"],
    "wait_until": ["ptr", "cmp", "value"],
    "wait": ["ptr", "num_barriers", "value"],
    "signal_op": ["sig_addr", "signal", "sig_op", "pe"],
    "signal_wait_until": ["sig_addr", "cmp", "value"],
    "team_my_pe": ["team"],
    "team_n_pes": ["team"],
    "team_translate_pe": ["src_team", "src_pe", "dest_team"],
    "barrier": ["team"],
    "barrier_vec": ["team"],
    "consume_token": ["value", "token"],
}


class _Native(AclCall):
    """A call of one template, or of a family of them whose first pointer tells which."""

    def __init__(self, template: symbols.Template, name: str, semantic: Any) -> None:
        record = Record(name, _kinds(template), template.result, "thread", False, {}, template.meaning)
        super().__init__(record, semantic)
        self.op = f"libaclshmem_device.{name}"
        self.template = template

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, not looked at."""
        return self._bind(args, kwargs)

    def maker(self, kind: str) -> Callable[[Call, Operand, Any], Any]:
        return _NATIVE_MAKERS.get(kind) or super().maker(kind)

    def check_pointee(self, operand: Operand, pointer: Any) -> None:
        """A typed function takes pointers to its type."""
        wanted, got = self.template.type, element_type(pointer)
        if wanted and got not in (wanted, _SAME_BITS.get(wanted)):
            raise WrongPointee(op=self.op, argument=operand.name, expected=wanted, got=checks.pointee(pointer))


_SAME_BITS = {"char": "int8"}


def _tl_type(name: str) -> tl.dtype:
    """Triton's type of one of the library's."""
    dtype = _DTYPES[name]
    return getattr(tl, _TL_NAMES.get(dtype, dtype))


_TL_NAMES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


def _scalar(type_: tl.dtype) -> Callable[[Call, Operand, Any], Any]:
    return lambda call, operand, value: value_of(call, operand, value, type_)


def _count(call: Call, operand: Operand, value: Any) -> Any:
    return checks.count(call.op, operand.name, value, tl.int32, call.semantic)


_NATIVE_MAKERS: dict[str, Callable[[Call, Operand, Any], Any]] = {
    **{name: _scalar(_tl_type(name)) for name in symbols.ALL},
    "acl_sig_op": code_of({symbols.SIGNAL_SET: "SIGNAL_SET", symbols.SIGNAL_ADD: "SIGNAL_ADD"}),
    "acl_cmp": code_of({number: f"CMP_{name}" for name, number in symbols.COMPARISONS.items()}),
    "acl_count": _count,
}


def _typed_function(template: symbols.Template, name: str) -> Any:
    def function(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        return _run(template, name, args, kwargs, _semantic)

    return function


def _run(template: symbols.Template, name: str, args: Any, kwargs: Any, semantic: Any) -> Any:
    call = _Native(template, name, semantic)
    made = call.operands(args, kwargs)
    for operand in call.record.operands:
        if operand.kind == "symmetric*":
            call.check_pointee(operand, made[operand.name])
    return emit(semantic, template.symbol, list(made.values()), _result(template, made), template.family in _PURE)


def _result(template: symbols.Template, made: dict[str, Any]) -> tl.dtype | None:
    if template.result == "ptr":
        return next(iter(made.values())).type
    if template.result == "value":
        return made["value"].type
    return _RESULTS[template.result]


def _family_function(family: str, members: dict[str, symbols.Template]) -> Any:
    """The function that takes its element type from its first pointer."""

    def function(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        call = _Native(next(iter(members.values())), family, _semantic)
        first = call.record.operands[0]
        pointer = checks.scalar_pointer(call.op, first.name, call.given(args, kwargs)[first.name])
        name = element_type(pointer)
        if name not in members:
            expected = f"one of {', '.join(members)}"
            raise WrongPointee(op=call.op, argument=first.name, expected=expected, got=checks.pointee(pointer))
        return _run(members[name], family, args, kwargs, _semantic)

    return function


def _declare(namespace: dict[str, Any]) -> None:
    families: dict[str, dict[str, symbols.Template]] = {}
    for symbol, template in symbols.templates().items():
        if template.family == "consume_token":
            continue  # dl.consume_token
        name = symbol.removeprefix("aclshmemx_").removeprefix("aclshmem_")
        _add(namespace, name, _typed_function(template, name), template.meaning)
        if template.type and template.type != "char":
            families.setdefault(template.family, {})[template.type] = template
    for family, members in families.items():
        meaning = next(iter(members.values())).meaning
        _add(namespace, family, _family_function(family, members), f"{meaning}; the pointer tells the type")


def _add(namespace: dict[str, Any], name: str, function: Any, meaning: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = namespace["__name__"], f"{meaning}."
    namespace[name] = builtin(function)


_declare(globals())
remote_ptr = globals()["ptr"]


@functools.cache
def names() -> tuple[str, ...]:
    """All functions of this module that kernels can call."""
    return tuple(sorted(name for name, value in globals().items() if tl.core.is_builtin(value) and name != "builtin"))
