# SPDX-License-Identifier: MIT
"""The vendor's own `bishengir-opt`, of both chip families, accepts what our pass makes of every op, type and rank."""

from __future__ import annotations

import re

import pytest

from triton_dist import ir
from triton_dist.backends.ascend import symbols, tools
from triton_dist.ir.printer import print_text

PASS = ["convert-triton-distributed-to-hivm"]
TYPES = tuple(symbols.TYPE_NAMES)
pytestmark = pytest.mark.usefixtures("bishengir")


def _symm_at(type: str) -> str:
    return f"%0 = distributed.symm_at %p, %n, : !tt.ptr<{type}>"


def _wait(type: str) -> str:
    return f"%0 = distributed.wait %p, %n, %x, scope = gpu semantic = acquire : !tt.ptr<{type}>, i32, {type} -> i32"


def _consume(value: str, type: str) -> str:
    return f"%0 = distributed.consume_token {value}, %n, : {type}, i32 -> {type}"


def _notify(type: str, op: int, flag: str = "") -> str:
    attributes = f"<{{commScope = 2 : i32, sigOp = {op} : i32{flag}}}>"
    return f'"distributed.notify"(%p, %v, %n) {attributes} : (!tt.ptr<{type}>, i64, i32) -> ()'


def _extern(symbol: str, arguments: str = "", types: str = "", result: str = "()", pure: str = "false") -> str:
    attributes = f'{{libname = "l", libpath = "", pure = {pure}, symbol = "{symbol}"}}'
    named = "" if result == "()" else "%0 = "
    return f"{named}distributed.extern_call {arguments} {attributes} : ({types}) -> {result}"


def _tensors(type: str) -> list[str]:
    return [f"tensor<{shape}x!tt.ptr<{type}>>" for shape in ("64", "8x16", "2x4x8", "2x2x2x2", "2x2x2x2x2")]


def lines_of(type: str) -> list[str]:
    """Every op that there is for a type, in every rank. %p points to it, %x is of it."""
    name = symbols.TYPE_NAMES[type]
    pointer = f"!tt.ptr<{type}>"
    lines = [_symm_at(type), _consume("%x", type), _consume("%p", pointer)]
    lines += [_consume(f"%t{rank}", tensor) for rank, tensor in enumerate(_tensors(type), 1)]
    lines += [
        _extern(f"aclshmem_{name}_putmem", "%p, %p, %n, %n", f"{pointer}, {pointer}, i32, i32"),
        _extern("aclshmem_ptr", "%p, %n", f"{pointer}, i32", pointer),
    ]
    if name in symbols.WAIT_TYPES:
        lines.append(_wait(type))
    if type == "i32":
        lines += [_notify("i32", 1), _notify("i32", 2)]
    if type == "i64":
        lines += [_notify("i64", 1), _notify("i64", 1, ", sigUnsigned")]
    return lines


OTHERS = [
    "%0 = distributed.get_rank %n : i32",
    "%0 = distributed.get_num_ranks %n : i32",
    _extern("aclshmem_barrier_all"),
    _extern("aclshmem_team_my_pe", "%n", "i32", "i32", "true"),
]
CASES = {"others": OTHERS, **{type: lines_of(type) for type in TYPES}}
DOT = [
    "%t = arith.constant dense<0.0> : tensor<16x16xf32>",
    "%d = tt.dot %t, %t, %t : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>",
]


def module_of(type: str, lines: list[str]) -> str:
    tensors = ", ".join(f"%t{rank}: {tensor}" for rank, tensor in enumerate(_tensors(type), 1))
    arguments = f"%p: !tt.ptr<{type}>, %x: {type}, {tensors}, %n: i32, %v: i64"
    numbered = [re.sub("^%0 =", f"%r{i} =", line) for i, line in enumerate(lines)]
    return f"module {{ tt.func public @k({arguments}) {{ {' '.join(numbered)} tt.return }} }}"


@pytest.mark.parametrize("dot", [[], DOT], ids=["", "dot"])
@pytest.mark.parametrize("case", CASES)
def test_both_tools_accept(case: str, dot: list[str]) -> None:
    lines = CASES[case]
    module = ir.parse(module_of("i32" if case == "others" else case, [*lines, *dot]))
    ir.run_passes(module, PASS)
    assert not any(op.name.startswith("distributed.") for op in module.walk())
    pretty = tools.opt(print_text(module, debuginfo=False))
    assert pretty.count("hivm.hir.custom") == len(lines)
    # Their pretty form, their generic form, and back.
    generic = tools.opt(pretty, "--mlir-print-op-generic")
    assert tools.opt(generic) == pretty
    # Through our parser and printer, in both forms.
    ours = print_text(ir.parse(generic), debuginfo=False)
    assert tools.opt(ours) == pretty
    again = print_text(ir.parse(pretty), debuginfo=False, print_generic_format=True)
    assert tools.opt(print_text(ir.parse(again), debuginfo=False)) == pretty
    # The tool of the other chips knows no tt dialect: generic form, unregistered.
    text = print_text(module, debuginfo=False, print_generic_format=True)
    shown = tools.opt(text, "--allow-unregistered-dialect", tool="bishengir-opt")
    assert shown.count("hivm.hir.custom") == len(lines)


def test_what_is_pure_is_merged_and_what_is_not_stays() -> None:
    lines = [
        "%a = distributed.get_rank %n : i32",
        "%b = distributed.get_rank %n : i32",
        "%c = distributed.wait %p, %a, %b, scope = gpu semantic = acquire : !tt.ptr<i32>, i32, i32 -> i32",
        "%d = distributed.wait %p, %a, %b, scope = gpu semantic = acquire : !tt.ptr<i32>, i32, i32 -> i32",
        "%e = distributed.consume_token %p, %d, : !tt.ptr<i32>, i32 -> !tt.ptr<i32>",
    ]
    module = ir.parse(module_of("i32", lines))
    ir.run_passes(module, PASS)
    left = tools.opt(print_text(module, debuginfo=False), "--cse", "--canonicalize")
    assert left.count('"dist.aclshmem_my_pe"') == 1
    assert left.count('"dist.aclshmem_wait_int32"') == 2
    assert "consume_token" not in left
