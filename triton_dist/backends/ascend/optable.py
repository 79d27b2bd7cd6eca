# SPDX-License-Identifier: MIT
"""Which function of the library each `distributed` operation becomes: the table of the docs, made by the pass itself.

Each row is an operation as text. It is converted once for each element type that Triton has, and the row says what came
out: the symbol with the type's name as <T>, the types that have one, operands and result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from xdsl.ir import BlockArgument

from triton_dist import ir
from triton_dist.backends.ascend import symbols
from triton_dist.errors import UnsupportedOpError

_TYPES = ("bf16", "f16", "f32", "f64", "f8E4M3FN", "i1", "i8", "i16", "i32", "i64")
_NOTIFY = (
    '"distributed.notify"(%p, %v, %n) <{{{{sigOp = {op} : i32, commScope = 3 : i32{sign}}}}}> '
    ": (!tt.ptr<{{T}}>, i64, i32) -> ()"
)
_EXTERN = '{{libname = "", libpath = "", pure = false, symbol = "aclshmem_ptr"}}'
_ROWS = (
    ("get_rank", "%0 = distributed.get_rank %n : i32"),
    ("get_num_ranks", "%0 = distributed.get_num_ranks %n : i32"),
    ("symm_at", "%0 = distributed.symm_at %p, %n, : !tt.ptr<{T}>"),
    ("wait", "%0 = distributed.wait %p, %n, %x, scope = sys semantic = acquire : !tt.ptr<{T}>, i32, {T} -> i32"),
    ("consume_token of a value", "%0 = distributed.consume_token %x, %n, : {T}, i32 -> {T}"),
    ("consume_token of a pointer", "%0 = distributed.consume_token %p, %n, : !tt.ptr<{T}>, i32 -> !tt.ptr<{T}>"),
    (
        "consume_token of a tensor of pointers",
        "%0 = distributed.consume_token %t, %n, : tensor<2x2x!tt.ptr<{T}>>, i32 -> tensor<2x2x!tt.ptr<{T}>>",
    ),
    ("notify, set", _NOTIFY.format(op=1, sign="")),
    ("notify, add", _NOTIFY.format(op=2, sign="")),
    ("notify of an unsigned signal, set", _NOTIFY.format(op=1, sign=", sigUnsigned")),
    (
        "extern_call of `aclshmem_ptr`",
        f"%0 = distributed.extern_call %p, %n {_EXTERN} : (!tt.ptr<{{T}}>, i32) -> !tt.ptr<{{T}}>",
    ),
)
_OPERANDS = ("pointer", "T", "tensor of pointers", "i32", "i64")
"""The arguments of the function around it, in the table's words."""
_HEAD = ("`distributed.` op", "symbol", "element types", "operands", "result")
_UNTYPED = ("get_rank", "get_num_ranks")


@dataclass(frozen=True)
class _Made:
    """What one operation became: everything with the element type as <T>, and which type it was."""

    symbol: str
    operands: str
    result: str
    type: str


def op_table() -> str:
    """The table, as markdown."""
    rows = [_HEAD, ("---",) * len(_HEAD)]
    for name, line in _ROWS:
        # A 32-bit signal has no sign to the library.
        types = [type for type in _TYPES if "unsigned" not in name or type == "i64"]
        made = [found for type in types for found in _convert(line, type)]
        rows += [(name, *cells) for cells in _cells(made, name in _UNTYPED)]
    rows.append(("extern_call of another", "its own `symbol`", "", "its own; none for `my_pe` and `n_pes`", "its own"))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cells(made: list[_Made], untyped: bool) -> list[tuple[str, ...]]:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for one in made:
        groups.setdefault((one.symbol, one.operands, one.result), []).append(one.type)
    return [(f"`{s}`", "" if untyped else ", ".join(types), o, r) for (s, o, r), types in groups.items()]


def _convert(line: str, type: str) -> Iterator[_Made]:
    arguments = f"%p: !tt.ptr<{type}>, %x: {type}, %t: tensor<2x2x!tt.ptr<{type}>>, %n: i32, %v: i64"
    text = line.format(T=type)
    module = ir.parse(f"module {{ tt.func public @k({arguments}) {{ {text} tt.return }} }}")
    try:
        ir.run_passes(module, ["convert-triton-distributed-to-hivm"])
    except UnsupportedOpError:
        return
    call: Any = next(op for op in module.walk() if op.name == "hivm.hir.custom")
    operands = ", ".join(map(_shown, call.ins))
    yield _Made(_typeless(call.symbol, type), operands or "none", _result(call), type)


def _typeless(symbol: str, type: str) -> str:
    name = symbols.TYPE_NAMES.get(type, "")
    fixed = symbol.startswith("aclshmemx_") or symbol.endswith("_p")  # the type is part of what it does
    return symbol if fixed or not name else symbol.replace(f"_{name}", "_<T>", 1)


def _shown(value: Any) -> str:
    if isinstance(value, BlockArgument):
        return _OPERANDS[value.index]
    constant = f" {value.owner.value.value.data}" if value.owner.name == "arith.constant" else ""
    return f"{value.type}{constant}"


def _result(call: Any) -> str:
    if not call.results:
        return "none"
    same = call.ins and call.ins[0].type == call.results[0].type
    return _shown(call.ins[0]) if same else str(call.results[0].type)
