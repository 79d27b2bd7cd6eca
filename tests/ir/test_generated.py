# SPDX-License-Identifier: MIT
"""Generated modules and broken text: what holds for all of them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import corpus
from tests.corpus import build
from triton_dist import ir
from triton_dist.errors import IRParseError
from triton_dist.ir.dialects.distributed import COMM_SCOPES, SIGNAL_OPS
from triton_dist.ir.dialects.tt import MEM_SEMANTICS, MEM_SYNC_SCOPES

PASS = ["raise-distributed-carriers"]
CALM = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

WIDTHS = [8, 16, 32, 64]
symbols = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)


def carrier(result: str, op: str, operands: str, types: str, type: str, libpath: str, pure: bool) -> str:
    flag = str(pure).lower()
    return (
        f'%{result} = tt.extern_elementwise {operands} {{libname = "distributed", libpath = "{libpath}", '
        f'pure = {flag}, symbol = "distributed.{op}"}} : ({types}) -> {type} loc("k.py":{len(result)}:1)'
    )


@st.composite
def lines(draw: st.DrawFn, index: int) -> str:
    width = draw(st.sampled_from(WIDTHS))
    pointer = f"!tt.ptr<i{width}>"
    name = f"r{index}"
    kind = draw(st.sampled_from(["wait", "notify", "symm_at", "consume_token", "get_rank", "get_num_ranks", "call"]))
    if kind == "wait":
        scope = draw(st.sampled_from(list(MEM_SYNC_SCOPES.values())))
        semantic = draw(st.sampled_from(list(MEM_SEMANTICS.values())))
        attributes = f"{{scope = {scope} : i32, semantic = {semantic} : i32}}"
        return carrier(name, kind, f"%p{width}, %v32, %v{width}", f"{pointer}, i32, i{width}", "i32", attributes, False)
    if kind == "notify":
        action = draw(st.sampled_from(list(SIGNAL_OPS.values())))
        scope = draw(st.sampled_from(list(COMM_SCOPES.values())))
        unsigned = draw(st.sampled_from(["", ", sigUnsigned"]))
        attributes = f"{{sigOp = {action} : i32, commScope = {scope} : i32{unsigned}}}"
        return carrier(name, kind, f"%p{width}, %v64, %v32", f"{pointer}, i64, i32", "i32", attributes, False)
    if kind in ("symm_at", "consume_token"):
        return carrier(name, kind, f"%p{width}, %v32", f"{pointer}, i32", pointer, "", True)
    if kind != "call":
        return carrier(name, kind, "%v32", "i32", "i32", "", True)
    pure = draw(st.booleans())
    text = "".join(f"\\5C{byte:02X}" for byte in draw(symbols).encode())
    void = "" if pure else draw(st.sampled_from(["", ", void"]))
    attributes = (
        f"{{libname = \\22l\\22, libpath = \\22\\22, symbol = \\22{text}\\22, pure = {str(pure).lower()}{void}}}"
    )
    return carrier(name, "extern_call", f"%p{width}", pointer, "i32", attributes, pure)


@st.composite
def modules(draw: st.DrawFn) -> str:
    count = draw(st.integers(0, 6))
    body = "\n".join(draw(lines(index)) for index in range(count))
    arguments = ", ".join(f"%p{width}: !tt.ptr<i{width}>, %v{width}: i{width}" for width in WIDTHS)
    return f'module {{ tt.func public @f({arguments}) {{ {body}\n tt.return }} loc("k.py":1:1) }}'


@CALM
@given(modules())
def test_raised_modules_print_and_parse(text: str):
    module = ir.parse(text)
    count = sum(op.name == "tt.extern_elementwise" for op in module.walk())
    ir.run_passes(module, PASS)
    raised = [op for op in module.walk() if op.name.startswith("distributed.")]
    assert len(raised) == count
    printed = ir.print_module(module)
    again = ir.parse(printed)
    again.verify()
    assert ir.print_module(again) == printed
    assert module.is_structurally_equivalent(again)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    chosen = ["fused_softmax", "float_atomics", "early_return", "tensor_while", "pull_from_right", "descriptors"]
    return [build.ttir(corpus.get(name)) for name in chosen if name in {e.name for e in corpus.entries()}]


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_broken_text_is_a_parse_error(texts: list[str], data: st.DataObject):
    """A cut, a deletion, a repetition, or characters that do not belong: a module or a clean error, nothing else."""
    text = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, len(text) - 1))
    end = min(len(text), start + data.draw(st.integers(0, 40)))
    junk = data.draw(st.text(st.sampled_from('%#!^@<>(){}[]:,="\\ \n0xa1.-+*/?|tensor'), max_size=12))
    broken = data.draw(
        st.sampled_from(
            [text[:start], text[:start] + text[end:], text[:end] + text[start:], text[:start] + junk + text[end:]]
        )
    )
    try:
        module = ir.parse(broken)
    except IRParseError:
        return
    ir.print_module(module)


@pytest.mark.parametrize(
    "text",
    [
        'module { %a = "op"() {a = "' + "x" * 5000 + "\\q",
        "module {" + " " * 50000 + "$",
        "module {" + "//\n" * 20000 + "$",
        "module { %a = arith.constant 0 : i99999999999 }",
        "module { %a = arith.constant dense<0> : tensor<4xi332> }",
        "module { tt.func @f() { cf.br ^b ^b: cf.br ^b ^b: tt.return } }",
        "module {" * 3000,
        "",
        "\x00",
    ],
    ids=["string", "spaces", "comments", "integer", "dense", "blocks", "nesting", "empty", "nul"],
)
def test_what_took_for_ever_or_crashed(text: str):
    with pytest.raises(IRParseError):
        ir.parse(text)
