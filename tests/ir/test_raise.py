# SPDX-License-Identifier: MIT
# ruff: noqa: E501  (a line of IR stays one line)
"""`raise-distributed-carriers`: from the front end's carriers, and what a malformed one says."""

from __future__ import annotations

import pytest

from tests import corpus
from tests.corpus import build
from triton_dist import ir
from triton_dist.errors import CarrierError

PASS = ["raise-distributed-carriers"]


def names(module) -> list[str]:
    return [op.name for op in module.walk() if op.name.startswith("distributed.")]


def raised(name: str):
    module = ir.parse(build.ttir(corpus.get(name)))
    ir.run_passes(module, PASS)
    return module


def test_from_the_front_end():
    module = raised("pull_from_right")
    assert set(names(module)) == {
        "distributed.get_rank",
        "distributed.get_num_ranks",
        "distributed.notify",
        "distributed.wait",
        "distributed.symm_at",
        "distributed.consume_token",
    }
    assert "tt.extern_elementwise" not in ir.print_module(module)


def test_attributes_and_locations():
    module = raised("count_arrivals")
    notifies = [op for op in module.walk() if op.name == "distributed.notify"]
    assert [op.properties["sigOp"].value.data for op in notifies] == [2, 1]
    assert [op.properties["commScope"].value.data for op in notifies] == [2, 1]
    assert ["sigUnsigned" in op.properties for op in notifies] == [False, True]
    assert not any(op.results for op in notifies)
    source = corpus.get("count_arrivals").fn.fn.__code__.co_filename
    for op in notifies:
        where = ir.location(op)
        assert where is not None
        assert where.file == source


def test_an_unconsumed_wait_survives():
    assert "distributed.wait" in names(raised("count_arrivals"))


def test_other_kernels_stay_as_they_are():
    module = ir.parse(build.ttir(corpus.get("library_function")))
    before = ir.print_module(module)
    ir.run_passes(module, PASS)
    assert ir.print_module(module) == before


def carrier(
    symbol: str, operands: str, types: str, result: str, libpath: str = "", pure: bool = True, use: str = ""
) -> str:
    return f"""
    module {{
      tt.func public @f(%p: !tt.ptr<i32>, %t: tensor<4x!tt.ptr<i32>>, %i: i32, %w: i64, %f: f32) {{
        %r = tt.extern_elementwise {operands} {{libname = "distributed", libpath = "{libpath}", pure = {str(pure).lower()},
            symbol = "{symbol}"}} : ({types}) -> {result} loc("kernel.py":7:3)
        {use}
        tt.return
      }} loc("kernel.py":1:1)
    }}
    """


WAIT = "{scope = 1 : i32, semantic = 2 : i32}"
NOTIFY = "{sigOp = 1 : i32, commScope = 3 : i32}"
CALL = "{libname = \\22l\\22, libpath = \\22\\22, symbol = \\22s\\22, pure = false%s}"
P = "!tt.ptr<i32>"
MALFORMED = {
    "no such op": carrier("distributed.barrier", "%i", "i32", "i32"),
    "2 operands expected, found 1": carrier("distributed.symm_at", "%p", P, P),
    "operand ptr is of type tensor": carrier("distributed.symm_at", "%t, %i", f"tensor<4x{P}>, i32", f"tensor<4x{P}>"),
    "operand rank is of type i64": carrier("distributed.symm_at", "%p, %w", f"{P}, i64", P),
    "result is of type !tt.ptr<f32>": carrier("distributed.symm_at", "%p, %i", f"{P}, i32", "!tt.ptr<f32>"),
    "result is of type i64, not i32": carrier("distributed.get_rank", "%i", "i32", "i64"),
    "marked impure": carrier("distributed.get_rank", "%i", "i32", "i32", pure=False),
    "marked pure": carrier("distributed.wait", "%p, %i, %i", f"{P}, i32, i32", "i32", WAIT),
    "attribute semantic is missing": carrier(
        "distributed.wait", "%p, %i, %i", f"{P}, i32, i32", "i32", "{scope = 1 : i32}", pure=False
    ),
    "attribute scope is": carrier(
        "distributed.wait", "%p, %i, %i", f"{P}, i32, i32", "i32", "{scope = 1 : i64, semantic = 2 : i32}", pure=False
    ),
    "attribute scope is missing": carrier("distributed.wait", "%p, %i, %i", f"{P}, i32, i32", "i32", pure=False),
    "operand waitValue is of type f32": carrier("distributed.wait", "%p, %i, %f", f"{P}, i32, f32", "i32", WAIT, pure=False),
    "unknown attribute colour": carrier(
        "distributed.wait", "%p, %i, %i", f"{P}, i32, i32", "i32", WAIT[:-1] + ", colour = 1 : i32}", pure=False
    ),
    "attributes do not parse": carrier("distributed.wait", "%p, %i, %i", f"{P}, i32, i32", "i32", "{scope = }", pure=False),
    "are no dictionary": carrier("distributed.wait", "%p, %i, %i", f"{P}, i32, i32", "i32", "scope", pure=False),
    "are no dictionary: '{}": carrier("distributed.get_rank", "%i", "i32", "i32", "{} more"),
    "unknown attribute scope": carrier("distributed.get_rank", "%i", "i32", "i32", WAIT),
    "operand token is of type f32": carrier("distributed.consume_token", "%p, %f", f"{P}, f32", P),
    "result is of type i64": carrier("distributed.consume_token", "%i, %i", "i32, i32", "i64"),
    "operand signal is of type i32": carrier("distributed.notify", "%p, %i, %i", f"{P}, i32, i32", "i32", NOTIFY, pure=False),
    "sigUnsigned is a flag": carrier(
        "distributed.notify", "%p, %w, %i", f"{P}, i64, i32", "i32", NOTIFY[:-1] + ", sigUnsigned = 1 : i32}", pure=False
    ),
    "stands for none, and is used": carrier(
        "distributed.notify", "%p, %w, %i", f"{P}, i64, i32", "i32", NOTIFY, pure=False, use="tt.store %p, %r : !tt.ptr<i32>"
    ),
    "attribute libname is missing": carrier("distributed.extern_call", "%i", "i32", "i32", "{pure = false}", pure=False),
    "marked pure (call)": carrier("distributed.extern_call", "%i", "i32", "i32", CALL % ""),
    "not i32": carrier("distributed.extern_call", "%i", "i32", "f32", CALL % ", void", pure=False),
}  # fmt: skip


@pytest.mark.parametrize(("what", "text"), MALFORMED.items())
def test_malformed_carriers(what: str, text: str):
    module = ir.parse(text)
    with pytest.raises(CarrierError) as caught:
        ir.run_passes(module, PASS)
    message = str(caught.value)
    assert message.startswith("kernel.py:7: malformed carrier of distributed.")
    assert what.removesuffix(" (call)") in message


def test_extern_calls():
    module = ir.parse(carrier("distributed.extern_call", "%i", "i32", "i32", CALL % ", void", pure=False))
    ir.run_passes(module, PASS)
    call = next(op for op in module.walk() if op.name == "distributed.extern_call")
    assert not call.results
    assert "void" not in call.properties
    module = ir.parse(carrier("distributed.extern_call", "%i", "i32", "f32", CALL % "", pure=False))
    ir.run_passes(module, PASS)
    call = next(op for op in module.walk() if op.name == "distributed.extern_call")
    assert [str(result.type) for result in call.results] == ["f32"]
