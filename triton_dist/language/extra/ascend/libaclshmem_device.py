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
from triton_dist.errors import WrongPointee
from triton_dist.language import checks
from triton_dist.language.builtin import builtin, op_builder
from triton_dist.language.extra.operands import Call
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
    """A call being checked by aclshmem's rules: a team is any number, as the host makes them at run time."""

    def maker(self, kind: str) -> Callable[[Call, Operand, Any], Any]:
        return _team if kind == "team" else super().maker(kind)


def _team(call: Call, operand: Operand, value: Any) -> Any:
    number = checks.unwrap(value)
    if checks.is_int(number):
        return call.semantic.scalar_constant(number, tl.int32)
    return call.semantic.cast(checks.integer(call.op, operand.name, value, "a team's number"), tl.int32)


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


def byte_count(size: Any, semantic: Any) -> Any:
    """The library counts bytes in 32 bits."""
    return semantic.cast(size, tl.int32)


# The functions


def _kinds(template: symbols.Template, type: str) -> tuple[Operand, ...]:
    """The operands as a record says them."""
    kinds = {"ptr": "symmetric*", "sig": "i32*", "value": _scalar_kind(type), "token": "i32"}
    names = _NAMES.get(template.family) or [f"{kind}{i}" for i, kind in enumerate(template.operands)]
    pairs = zip(names, template.operands, strict=True)
    return tuple(Operand(name, kinds.get(kind, kind), False) for name, kind in pairs)


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


def _scalar_kind(type: str) -> str:
    """The kind of a value of a type in records: "i32", "u64", "f32"; "any" is a float of 16 bits."""
    if type in ("half", "bfloat16"):
        return "any"
    if type == "float":
        return "f32"
    return f"{'u' if type.startswith('u') else 'i'}{8 * symbols.BYTES[type]}" if type else ""


class _Native(AclCall):
    """A call of one template. A value of 16 bits is cast to the template's type."""

    def __init__(self, template: symbols.Template, name: str, semantic: Any) -> None:
        record = Record(name, _kinds(template, template.type), template.result, "thread", False, {}, template.meaning)
        super().__init__(record, semantic)
        self.op = f"libaclshmem_device.{name}"
        self.template = template

    def maker(self, kind: str) -> Callable[[Call, Operand, Any], Any]:
        if kind == "any" or kind not in _KNOWN_KINDS:
            return self._cast
        return super().maker(kind)

    def _cast(self, call: Call, operand: Operand, value: Any) -> Any:
        type_ = getattr(tl, _TL_NAMES.get(_DTYPES[self.template.type], _DTYPES[self.template.type]))
        return call.semantic.cast(call.semantic.to_tensor(value), type_)

    def check_pointee(self, pointer: Any) -> None:
        """A typed function takes pointers to its type."""
        wanted, got = self.template.type, element_type(pointer)
        if wanted and got not in (wanted, _SAME_BITS.get(wanted)):
            raise WrongPointee(op=self.op, argument="the pointer", expected=wanted, got=checks.pointee(pointer))


_KNOWN_KINDS = frozenset({"symmetric*", "i32*", "i32", "i64", "u32", "u64", "f32", "bytes", "pe", "team"})
_TL_NAMES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_SAME_BITS = {"char": "int8"}


def _typed_function(template: symbols.Template, name: str) -> Any:
    def function(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        return _run(template, name, args, kwargs, _semantic)

    return function


def _run(template: symbols.Template, name: str, args: Any, kwargs: Any, semantic: Any) -> Any:
    call = _Native(template, name, semantic)
    made = call.operands(args, kwargs)
    pointers = [made[o.name] for o in call.record.operands if o.kind == "symmetric*"]
    for pointer in pointers:
        call.check_pointee(pointer)
    if "bytes" in made:
        made["bytes"] = byte_count(made["bytes"], semantic)
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
        op = f"libaclshmem_device.{family}"
        first = next(iter([*args, *kwargs.values()]), None)
        pointer = checks.scalar_pointer(op, "the first argument", first)
        name = element_type(pointer)
        if name not in members:
            known = ", ".join(members)
            raise WrongPointee(op=op, argument="the pointer", expected=f"one of {known}", got=checks.pointee(pointer))
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
