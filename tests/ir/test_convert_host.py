# SPDX-License-Identifier: MIT
# ruff: noqa: E501  (a line of IR stays one line)
"""`convert-triton-distributed-to-host`: each op becomes its symbol, where it stood."""

from __future__ import annotations

import pytest

from tests import corpus
from tests.corpus import build
from triton_dist import ir
from triton_dist.errors import UnsupportedOpError

PASSES = ["raise-distributed-carriers", "convert-triton-distributed-to-host"]


def converted(body: str):
    arguments = ", ".join(f"%p{width}: !tt.ptr<i{width}>, %v{width}: i{width}" for width in (1, 8, 16, 32, 64))
    module = ir.parse(f'module {{ tt.func @f({arguments}, %q: !tt.ptr<f16>) {{ {body} tt.return }} loc("k.py":1:1) }}')
    ir.run_passes(module, PASSES[1:])
    return module


def calls(module) -> list[tuple[str, list[str], str, bool]]:
    """Symbol, operand types, result type and purity of each call."""
    return [
        (
            op.properties["symbol"].data,
            [str(type) for type in op.operand_types],
            str(op.results[0].type),
            bool(op.properties["pure"].value.data),
        )
        for op in module.walk()
        if op.name == "tt.extern_elementwise"
    ]


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_wait(width: int):
    module = converted(
        f"%t = distributed.wait %p{width}, %v32, %v{width}, scope = sys semantic = acquire :"
        f" !tt.ptr<i{width}>, i32, i{width} -> i32"
    )
    assert calls(module) == [(f"host_shmem_wait_i{width}", [f"!tt.ptr<i{width}>", "i32", f"i{width}"], "i32", False)]


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize(("number", "word"), [(1, "set"), (2, "add")])
def test_notify(width: int, number: int, word: str):
    module = converted(
        f'"distributed.notify"(%p{width}, %v64, %v32) <{{sigOp = {number} : i32, commScope = 3 : i32}}> :'
        f" (!tt.ptr<i{width}>, i64, i32) -> ()"
    )
    symbol = f"host_shmem_signal_{word}_i{width}"
    assert calls(module) == [(symbol, [f"!tt.ptr<i{width}>", f"i{width}", "i32"], "i32", False)]


def test_pure_ops():
    module = converted(
        "%a = distributed.get_rank %v32 : i32 %b = distributed.get_num_ranks %v32 : i32"
        " %c = distributed.symm_at %q, %a, : !tt.ptr<f16>"
    )
    assert calls(module) == [
        ("host_shmem_my_pe", [], "i32", True),
        ("host_shmem_n_pes", [], "i32", True),
        ("host_shmem_ptr", ["!tt.ptr<f16>", "i32"], "!tt.ptr<f16>", True),
    ]


def test_consume_token_is_its_input():
    module = converted(
        "%c = distributed.consume_token %q, %v32, : !tt.ptr<f16>, i32 -> !tt.ptr<f16> %x = tt.load %c : !tt.ptr<f16>"
    )
    load = next(op for op in module.walk() if op.name == "tt.load")
    assert load.operands[0].name_hint == "q"


def test_extern_call_keeps_its_names():
    module = converted(
        'distributed.extern_call %q, %v32 {libname = "l", libpath = "p", pure = false, symbol = "s"} :'
        " (!tt.ptr<f16>, i32) -> ()"
        ' %r = distributed.extern_call {libname = "l", libpath = "p", pure = true, symbol = "s2"} : () -> f32'
    )
    assert calls(module) == [("s", ["!tt.ptr<f16>", "i32"], "i32", False), ("s2", [], "f32", True)]
    call = next(op for op in module.walk() if op.name == "tt.extern_elementwise")
    assert (call.properties["libname"].data, call.properties["libpath"].data) == ("l", "p")


@pytest.mark.parametrize(
    "body",
    [
        '"distributed.notify"(%p8, %v64, %v32) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i8>, i64, i32) -> ()',
        '"distributed.notify"(%q, %v64, %v32) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<f16>, i64, i32) -> ()',
        "%t = distributed.wait %p1, %v32, %v1, scope = sys semantic = acquire : !tt.ptr<i1>, i32, i1 -> i32",
        '%a, %b = distributed.extern_call {libname = "", libpath = "", pure = true, symbol = "s"} : () -> (i32, i32)',
    ],
)  # fmt: skip
def test_what_the_host_cannot_do_is_an_error(body: str):
    with pytest.raises(UnsupportedOpError, match="the cpu back end does not support distributed"):
        converted(body)


@pytest.mark.parametrize("name", ["pull_from_right", "count_arrivals", "consume_blocks"])
def test_kernels_convert_and_libtriton_takes_the_result(name: str):
    module = ir.parse(build.ttir(corpus.get(name)))
    ir.run_passes(module, PASSES)
    assert not any(op.name.startswith("distributed.") for op in module.walk())
    source = corpus.get(name).fn.fn.__code__.co_filename
    for op in module.walk():
        if op.name == "tt.extern_elementwise":
            where = ir.location(op)
            assert where is not None
            assert where.file == source
    assert build.normalise(ir.print_module(module))


def test_an_unconsumed_wait_survives():
    module = ir.parse(build.ttir(corpus.get("count_arrivals")))
    ir.run_passes(module, PASSES)
    assert any(call[0] == "host_shmem_wait_i64" for call in calls(module))
