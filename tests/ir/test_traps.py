# SPDX-License-Identifier: MIT
# ruff: noqa: E501  (a line of IR stays one line)
"""What xDSL's own definitions get wrong for TTIR, some of it silently. Each trap has a test."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triton_dist import ir


def value_of(literal: str):
    module = ir.parse(f"module {{ %c = arith.constant {literal} }}")
    return next(iter(module.body.block.ops)).properties["value"]


@pytest.mark.parametrize("type", ["f32", "tensor<8xf32>", "tensor<2x2xf32>"])
def test_hexadecimal_floats_are_bit_patterns(type: str):
    literal = f"0xFF800000 : {type}" if type == "f32" else f"dense<0xFF800000> : {type}"
    assert ir.dense_splat(value_of(literal)) == -math.inf


@pytest.mark.parametrize(
    ("type", "literal", "value"),
    [
        ("f16", "0xFC00", -math.inf),
        ("f16", "0x7C00", math.inf),
        ("bf16", "0xFF80", -math.inf),
        ("bf16", "0x7F80", math.inf),
        ("f64", "0xFFF0000000000000", -math.inf),
        ("f32", "0x3F800000", 1.0),
        ("f8E5M2", "0x7C", math.inf),
    ],
)
def test_hexadecimal_floats_of_every_type(type: str, literal: str, value: float):
    assert ir.dense_splat(value_of(f"dense<{literal}> : tensor<4x{type}>")) == value
    assert ir.dense_splat(value_of(f"{literal} : {type}")) == value


def test_lists_of_hexadecimal_floats():
    attr = value_of("dense<[0xFF800000, 1.0, 0x7F800000, -0.0]> : tensor<4xf32>")
    assert ir.dense_splat(attr) is None
    values = ir.dense_values(attr)
    np.testing.assert_array_equal(values, np.array([-np.inf, 1.0, np.inf, 0.0], np.float32))
    assert np.signbit(values[3])


@pytest.mark.parametrize(
    "literal", ["0x7FC00001 : f32", "dense<0x7FC00001> : tensor<2xf32>", "dense<0x7F800001> : tensor<2xf32>"]
)
def test_a_nan_stays_a_nan(literal: str):
    assert math.isnan(ir.dense_splat(value_of(literal)) or 0.0)
    text = ir.print_module(ir.parse(f"module {{ %c = arith.constant {literal} }}"), debuginfo=False)
    if literal.startswith("dense"):
        assert literal in text


WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


@given(st.sampled_from(sorted(WIDTHS)), st.data())
@settings(max_examples=200, deadline=None)
def test_every_float_keeps_its_bits(type: str, data: st.DataObject):
    bits = data.draw(st.integers(0, 2 ** WIDTHS[type] - 1))
    literal = f"0x{bits:0{WIDTHS[type] // 4}X}"
    for text in (
        f"{literal} : {type}",
        f"dense<{literal}> : tensor<2x{type}>",
        f"dense<[{literal}, 1.0]> : tensor<2x{type}>",
    ):
        module = ir.parse(f"module {{ %c = arith.constant {text} }}")
        printed = ir.print_module(module, debuginfo=False)
        again = next(iter(ir.parse(printed).body.block.ops)).properties["value"]
        value = ir.dense_splat(value_of(f"{literal} : {type}"))
        # A scalar NaN is a Python float on the way, and only stays a NaN; all else keeps its bits.
        if "dense" not in text and math.isnan(value or 0.0):
            assert math.isnan(ir.dense_splat(again) or 0.0)
        else:
            assert again == value_of(text)


@pytest.mark.parametrize("literal", ["dense<7>", "dense<true>", "dense<0.5>"])
@pytest.mark.parametrize("shape", ["128x256", "1024x1024"])
def test_splats_are_not_expanded_element_by_element(literal: str, shape: str):
    type = {"7": "i32", "true": "i1", "0.5": "f32"}[literal[6:-1]]
    text = f"module {{ %c = arith.constant {literal} : tensor<{shape}x{type}> }}"
    ir.parse(text)
    start = time.perf_counter()
    module = ir.parse(text)
    assert ir.dense_splat(next(iter(module.body.block.ops)).properties["value"]) in (7, 1, 0.5)
    assert literal.rstrip(">") in ir.print_module(module).replace("5.000000e-01", "0.5")
    assert time.perf_counter() - start < 0.1


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("true", 1),
        ("false", 0),
        ("dense<true> : tensor<4xi1>", 1),
        ("dense<false> : tensor<4xi1>", 0),
        ("dense<-128> : tensor<4xi8>", -128),
        ("-2147483648 : i32", -2147483648),
        ("dense<9223372036854775807> : tensor<2xi64>", 9223372036854775807),
    ],
)
def test_integers(literal: str, value: int):
    assert ir.dense_splat(value_of(literal)) == value


def test_packed_bits():
    attr = value_of('dense<"0x0D"> : tensor<8xi1>')
    np.testing.assert_array_equal(ir.dense_values(attr), [True, False, True, True, False, False, False, False])


def test_raw_bytes():
    attr = value_of('dense<"0x0000803F00000040"> : tensor<2xf32>')
    np.testing.assert_array_equal(ir.dense_values(attr), np.array([1.0, 2.0], np.float32))


@pytest.mark.parametrize(
    "bad",
    [
        "dense<[1, 2]> : tensor<3xi32>",
        "dense<[[1, 2], [3]]> : tensor<2x2xi32>",
        "dense<300> : tensor<3xi8>",
        "dense<0x1FF800000> : tensor<3xf32>",
        "dense<1.5> : tensor<3xi32>",
        'dense<"0x00"> : tensor<2xf32>',
        'dense<"0xZZ"> : tensor<2xf32>',
        "dense<> : tensor<2xf32>",
        "dense<0> : tensor<4294967296xi32>",
        'dense<"0x00000000"> : tensor<4294967296xi32>',
        f"{'9' * 5000} : i32",
        f"dense<0x{'9' * 5000}> : tensor<2xi32>",
        "array<i65536: 1>",
    ],
)
def test_bad_constants_are_errors(bad: str):
    from triton_dist.errors import IRParseError

    with pytest.raises(IRParseError, match="<ttir>:1"):
        value_of(bad)


@pytest.mark.parametrize(
    "text",
    [
        f'module {{ }} loc("a.py":{"9" * 5000}:1)',
        f"%x = arith.constant 1 : i32\n%y = arith.addi %x#{'9' * 5000}, %x : i32",
        f"%x = arith.constant 1 : i{'9' * 5000}",
        'module { tt.func @f() {\n ^12:\n tt.return\n } }',
        'module { tt.func @f() {\n cf.br ^_0\n ^_0:\n tt.return\n } }',
        'module { tt.func @f() { ' + "scf.execute_region { " * 3000,
        "module attributes {a = " + "[" * 3000,
        "%x = arith.constant 1 : " + "tensor<" * 3000,
    ],
    ids=["line", "operand", "type", "block", "branch", "regions", "list", "tensor"],
)
def test_what_xdsl_gives_up_on_is_an_error_with_a_place(text: str):
    """Found by fuzzing: each ended as one of Python's own errors."""
    from triton_dist.errors import IRParseError

    with pytest.raises(IRParseError) as error:
        ir.parse(text, "kernel.mlir")
    assert str(error.value.fields["where"]).startswith("kernel.mlir")


def test_a_name_that_is_all_suffix_can_be_copied():
    """xDSL makes an empty name of `_0`, which it refuses when an operation is cloned."""
    module = ir.parse("module { %_0 = arith.constant 4 : i32 }")
    assert module.is_structurally_equivalent(module.clone())


FUNCTION = """
module {{
  tt.func public @f(%c: i1, %m: tensor<4xi1>, %i: i32, %t: tensor<4xi32>, %x: tensor<4xf32>, %s: f32) {{
    {line}
    tt.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("line", "type"),
    [
        ("%r = arith.cmpi slt, %t, %t : tensor<4xi32>", "tensor<4xi1>"),
        ("%r = arith.cmpf ogt, %x, %x : tensor<4xf32>", "tensor<4xi1>"),
        ("%r = arith.cmpf ogt, %x, %x fastmath<nnan> : tensor<4xf32>", "tensor<4xi1>"),
        ("%r = arith.cmpi eq, %i, %i : i32", "i1"),
        ("%r = arith.select %m, %x, %x : tensor<4xi1>, tensor<4xf32>", "tensor<4xf32>"),
        ("%r = arith.select %c, %x, %x : tensor<4xf32>", "tensor<4xf32>"),
        ("%r = arith.extui %t nneg : tensor<4xi32> to tensor<4xi64>", "tensor<4xi64>"),
        ("%r = arith.uitofp %i nneg : i32 to f32", "f32"),
        ("%r = arith.shrsi %t, %t exact : tensor<4xi32>", "tensor<4xi32>"),
        ("%r = arith.divui %i, %i exact : i32", "i32"),
        ("%r = arith.truncf %x fastmath<contract> : tensor<4xf32> to tensor<4xf16>", "tensor<4xf16>"),
        ("%r = arith.truncf %x to_nearest_even : tensor<4xf32> to tensor<4xf16>", "tensor<4xf16>"),
        ("%r = arith.truncf %s downward fastmath<fast> : f32 to f16", "f16"),
        ("%r = arith.trunci %t overflow<nsw> : tensor<4xi32> to tensor<4xi8>", "tensor<4xi8>"),
        ("%r = arith.addi %t, %t overflow<nsw, nuw> : tensor<4xi32>", "tensor<4xi32>"),
        ("%r = arith.remf %x, %x : tensor<4xf32>", "tensor<4xf32>"),
        ("%r = arith.negf %x : tensor<4xf32>", "tensor<4xf32>"),
        ("%r = math.fma %x, %x, %x : tensor<4xf32>", "tensor<4xf32>"),
        ("%r = ub.poison : tensor<4xf32>", "tensor<4xf32>"),
        ("%r = tt.fp_to_fp %x, rounding = rtne : tensor<4xf32> -> tensor<4xf8E5M2>", "tensor<4xf8E5M2>"),
        ("%r = scf.for unsigned %k = %i to %i step %i iter_args(%a = %x) -> (tensor<4xf32>)  : i32 { scf.yield %a : tensor<4xf32> }", "tensor<4xf32>"),
    ],
)  # fmt: skip
def test_forms_that_xdsl_rejects(line: str, type: str):
    from tests.corpus.build import normalise

    module = ir.parse(FUNCTION.format(line=line))
    module.verify()
    op = next(iter(module.body.block.ops)).regions[0].block.first_op
    assert op is not None
    assert str(op.results[0].type) == type
    text = ir.print_module(module, debuginfo=False)
    assert ir.print_module(ir.parse(text), debuginfo=False) == text
    try:
        expected = normalise(FUNCTION.format(line=line), debuginfo=False)
    except RuntimeError:
        # The flags `nneg` and `exact` are newer than Triton 3.6.
        return
    # libtriton reads what we print as it reads what was written.
    assert normalise(text, debuginfo=False) == expected


def test_flags_are_kept():
    text = FUNCTION.format(line="%r = arith.addi %t, %t overflow<nsw> : tensor<4xi32>")
    assert "overflow<nsw>" in ir.print_module(ir.parse(text))
    text = FUNCTION.format(line="%r = arith.extui %t nneg : tensor<4xi32> to tensor<4xi64>")
    assert "extui %t nneg" in ir.print_module(ir.parse(text))


def test_names_never_clash():
    """`x_1` may be a name of its own, and the second name of a value called `x`; `_0` is all suffix."""
    text = """
    module {
      %x_1 = arith.constant 1 : i32
      %x = arith.constant 2 : i32
      %x_2 = arith.constant 3 : i32
      %_0 = arith.constant 4 : i32
      %y = arith.addi %x_1, %x : i32
      %z = arith.addi %x_2, %_0 : i32
    }
    """
    printed = ir.print_module(ir.parse(text), debuginfo=False)
    names = [line.split("=")[0].strip() for line in printed.splitlines() if "=" in line]
    assert len(names) == len(set(names)) == 6
    assert ir.print_module(ir.parse(printed), debuginfo=False) == printed


def test_strings_are_utf_8():
    """xDSL takes a string of other than ASCII characters for bytes."""
    line = 'tt.assert %c, "gr\\C3\\B6\\C3\\9Fer" : i1'
    module = ir.parse(FUNCTION.format(line=line))
    check = next(op for op in module.walk() if op.name == "tt.assert")
    assert check.properties["message"].data == "größer"
    assert line in ir.print_module(module)
