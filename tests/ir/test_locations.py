# SPDX-License-Identifier: MIT
"""Locations survive parsing and printing, and name the user's line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import corpus
from tests.corpus import build
from triton_dist import ir
from triton_dist.errors import IRParseError

AFTER = """
module {
  tt.func public @f(%x: !tt.ptr<f32> loc("x"(#loc))) {
    %a = tt.load %x : !tt.ptr<f32> loc(#loc4)
    tt.store %x, %a : !tt.ptr<f32> loc(#loc5)
    %b = arith.constant 1 : i32 loc(unknown)
    %c = arith.constant 2 : i32 loc("kernel.py":9:3)
    %d = arith.constant 3 : i32 loc(fused["other.py":1:1, "kernel.py":8:1])
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc("kernel.py":3:1)
#loc1 = loc("library.py":40:2)
#loc2 = loc("kernel.py":5:7)
#loc3 = loc("a \\"quoted\\" name"(#loc1))
#loc4 = loc(callsite(#loc3 at #loc2))
#loc5 = loc("b"(#loc6))
#loc6 = loc(callsite("other.py":1:1 at callsite("kernel.py":6:2 at "kernel.py":7:2)))
"""


def lines(text: str) -> dict[str, str]:
    return {op.name: str(ir.location(op)) for op in ir.parse(text).walk()}


def test_the_innermost_line_of_the_kernels_file():
    found = lines(AFTER)
    assert found["tt.load"] == "kernel.py:5"
    assert found["tt.store"] == "kernel.py:6"
    assert found["tt.return"] == "kernel.py:3"


def test_other_forms():
    ops = [op for op in ir.parse(AFTER).walk() if op.name == "arith.constant"]
    assert [str(ir.location(op)) for op in ops] == ["None", "kernel.py:9", "kernel.py:8"]


def test_aliases_before_and_after_the_module_are_the_same():
    head, tail = AFTER.split("\n#loc = ")
    assert ir.print_module(ir.parse(f"#loc = {tail}{head}")) == ir.print_module(ir.parse(AFTER))


def test_every_op_of_a_kernel_has_its_line():
    entry = corpus.get("matmul")
    source = Path(entry.fn.fn.__code__.co_filename)
    text = source.read_text().splitlines()
    module = ir.parse(build.ttir(entry))
    dots = [op for op in module.walk() if op.name == "tt.dot"]
    where = ir.location(dots[0])
    assert where is not None
    assert where.file == str(source)
    assert "tl.dot(left, right, acc)" in text[where.line - 1]
    # `tl.cdiv` is a library function; the line wanted is the kernel's.
    divisions = [op for op in module.walk() if op.name == "arith.divsi"]
    assert all((found := ir.location(op)) and found.file == str(source) for op in divisions)


@pytest.mark.parametrize(
    "alias",
    [
        "#loc = loc(#loc)",
        "#loc = loc(callsite(#loc1 at #loc1))\n#loc1 = loc(#loc)",
        "#loc = loc(callsite(unknown at ))",
        "#loc = loc(nowhere)",
        '#loc = loc("a":1:1) junk)',
        "#loc = loc(fused<1 : i32>[unknown])",
        "#loc = loc(" + "callsite(" * 5000 + "unknown" + " at unknown)" * 5000 + ")",
        "#loc1 = loc(unknown)",
    ],
)
def test_bad_locations_are_errors(alias: str):
    with pytest.raises(IRParseError) as error:
        ir.parse(f"module {{ }} loc(#loc)\n{alias}\n", "kernel.mlir")
    # The place is the one in the text, whichever alias it is in.
    assert str(error.value.fields["where"]).startswith("kernel.mlir:")
