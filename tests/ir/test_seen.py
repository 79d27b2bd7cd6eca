# SPDX-License-Identifier: MIT
"""What was parsed, verified or printed before is not done again; what differs in anything is."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import StringAttr, i32, i64
from xdsl.utils.exceptions import VerifyException

from triton_dist import ir
from triton_dist.errors import IRParseError
from triton_dist.ir import _context, seen, verifier
from triton_dist.ir.dialects._syntax import int_attr
from triton_dist.ir.dialects.arith import AddiOp, ConstantOp
from triton_dist.ir.registry import TritonContext
from triton_dist.ir.seen import Remembered


def kernel(*lines: str, arguments: str = "%a: i32, %b: i32, %c: i64, %p: !tt.ptr<f32>") -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"module {{\n  tt.func public @k({arguments}) {{\n{body}\n    tt.return\n  }}\n}}\n"


def printed(*lines: str) -> list[str]:
    """The lines as they come out again."""
    text = ir.print_module(ir.parse(kernel(*lines)), debuginfo=False)
    return [line.strip() for line in text.splitlines()[2:-3]]


@pytest.mark.parametrize("turn", [1, 2])
def test_lines_that_differ_in_names(turn: int):
    lines = ["%x = arith.addi %a, %b : i32", "%y = arith.addi %x, %a : i32", "tt.store %p, %f : !tt.ptr<f32>"]
    lines.insert(2, "%f = arith.sitofp %y : i32 to f32")
    assert printed(*lines) == lines


def test_twice_the_same_name():
    lines = ["%x = arith.subi %a, %b : i32", "%y = arith.subi %a, %a : i32", "%z = arith.subi %b, %a : i32"]
    assert printed(*lines) == printed(*lines) == lines


def test_the_same_line_with_a_value_of_another_type():
    ir.parse(kernel("%x = arith.addi %a, %b : i32"))
    with pytest.raises(IRParseError, match="operand is used with type i32"):
        ir.parse(kernel("%x = arith.addi %a, %c : i32"))


def test_the_same_line_with_a_value_that_is_not_there():
    ir.parse(kernel("%x = arith.addi %a, %b : i32"))
    with pytest.raises(IRParseError, match="nowhere"):
        ir.parse(kernel("%x = arith.addi %a, %nowhere : i32"))


@pytest.mark.parametrize(
    "line", ["%x = arith.muli %a, % : i32", "%x = arith.muli %, %b : i32", "% = arith.muli %a, %b : i32"]
)
def test_a_name_that_is_missing(line: str):
    ir.parse(kernel("%x = arith.muli %a, %b : i32"))
    with pytest.raises(IRParseError):
        ir.parse(kernel(line))


def test_a_name_that_is_there_already():
    ir.parse(kernel("%x = arith.addi %a, %b : i32"))
    with pytest.raises(IRParseError, match="%x is already defined"):
        ir.parse(kernel("%x = arith.addi %a, %b : i32", "%x = arith.addi %b, %a : i32"))


@pytest.mark.parametrize("rest", ['loc("k.py":7:1)', "{made = 1 : i32}"])
def test_a_line_that_the_next_goes_on_with(rest: str):
    ir.parse(kernel("gpu.barrier"))
    module = ir.parse(kernel("gpu.barrier", rest))
    barrier = next(op for op in module.walk() if op.name == "gpu.barrier")
    assert (str(ir.location(barrier)) == "k.py:7") != ("made" in barrier.attributes)


def test_a_line_is_not_remembered_with_what_the_next_goes_on_with():
    context = _context()
    assert isinstance(context, TritonContext)
    context.texts.lines.clear()
    ir.parse(kernel("gpu.barrier", "{made = 1 : i32}"))
    assert printed("gpu.barrier") == ["gpu.barrier"]


def test_an_error_is_in_its_own_line():
    ir.parse(kernel("%x = arith.addi %a, %b : i32"))
    with pytest.raises(IRParseError) as error:
        ir.parse(kernel("%x = arith.addi %a, %b : i32", "%y = arith.addi %x, %c : i32"))
    assert str(error.value.fields["where"]).startswith("<ttir>:4:")


@pytest.mark.parametrize("turn", [1, 2])
def test_an_operation_that_takes_the_next_line_for_its_operands(turn: int):
    text = kernel("tt.return", "%x = arith.addi %a, %b : i32")
    for before in ("", kernel("%x = arith.addi %a, %b : i32")):
        if before:
            ir.parse(before)
        with pytest.raises(IRParseError, match="Expected ':'"):
            ir.parse(text)


def test_an_error_is_at_its_own_result():
    lines = [f"%{low}, %{high} = arith.mului_extended %a, %b : i32" for low, high in ("lh", "mn", "oh")]
    with pytest.raises(IRParseError, match="%h is already defined") as error:
        ir.parse(kernel(*lines))
    assert str(error.value.fields["where"]) == "<ttir>:5:9"


def in_terms_of(alias: str, line: str) -> str:
    return f"{alias}\n{kernel(line)}"


@pytest.mark.parametrize("line", ["%x = arith.constant 1 : !t", "%x = arith.constant dense<1> : tensor<4x!t>"])
def test_an_alias_means_what_its_module_says(line: str):
    for width in (32, 64):
        assert f"i{width}" in ir.print_module(ir.parse(in_terms_of(f"!t = i{width}", line))).split("arith.constant")[1]
    with pytest.raises(IRParseError, match="undefined symbol alias '!t'"):
        ir.parse(kernel(line))


def assembly(name: str, text: str) -> str:
    attributes = 'constraints = "=r,r", packed_element = 1 : i32, pure = true'
    return f'{name} = tt.elementwise_inline_asm "{text}" {{{attributes}}} %a : i32 -> i32'


@pytest.mark.parametrize("turn", [1, 2])
def test_strings_with_what_looks_like_values(turn: int):
    texts = ["mov.u32 $0, %tid.x; // 1", "mov.u32 $0, %tid.x; // 2", "mov.u32 $0, %a;"]
    assert printed(*(assembly(f"%x{i}", text) for i, text in enumerate(texts))) == [
        assembly(f"%x{i}", text) for i, text in enumerate(texts)
    ]


@pytest.mark.parametrize("turn", [1, 2])
def test_percent_signs_are_text(turn: int):
    line = assembly("%x", "%s %d %% %")
    assert printed(line) == [line]


@pytest.mark.parametrize("turn", [1, 2])
def test_each_line_keeps_its_location(turn: int):
    text = kernel(
        '%x = arith.addi %a, %b : i32 loc("k.py":1:1)',
        "%y = arith.addi %x, %b : i32 loc(#loc1)",
        "%z = arith.addi %y, %b : i32 loc(#loc2)",
        "%w = arith.addi %z, %b : i32",
    )
    text += '#loc1 = loc("k.py":2:2)\n#loc2 = loc("z"(#loc1))\n'
    module = ir.parse(ir.print_module(ir.parse(text)))
    found = [str(ir.location(op)) for op in module.walk() if op.name == "arith.addi"]
    assert found == ["k.py:1", "k.py:2", "k.py:2", "None"]


def test_a_location_that_is_not_there():
    ir.parse(kernel("%x = arith.addi %a, %b : i32"))
    with pytest.raises(IRParseError, match="undefined location alias '#loc7'"):
        ir.parse(kernel("%x = arith.addi %a, %b : i32 loc(#loc7)"))


def test_what_was_parsed_belongs_to_its_module():
    """A pass that changes an operation changes no other of the same text."""
    line = "%x = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>"
    op = next(op for op in ir.parse(kernel(line)).walk() if op.name == "tt.make_range")
    op.properties["start"] = int_attr(32)
    op.attributes["made"] = StringAttr("here")
    again = next(op for op in ir.parse(kernel(line)).walk() if op.name == "tt.make_range")
    assert again.properties["start"] == int_attr(0)
    assert not again.attributes


def test_what_is_changed_is_verified_again():
    module = ir.parse(kernel("%x = arith.addi %a, %b : i32"))
    verifier.verify(module)
    verifier.verify(module)
    add = next(op for op in module.walk() if op.name == "arith.addi")
    function = next(op for op in module.walk() if op.name == "tt.func")
    add.operands[1] = function.regions[0].block.args[2]
    with pytest.raises(VerifyException, match=r"arith\.addi"):
        verifier.verify(module)
    # And was not learnt as valid.
    with pytest.raises(VerifyException, match=r"arith\.addi"):
        verifier.verify(module)


def test_where_a_terminator_stands_matters():
    module = ir.parse(kernel("%x = arith.addi %a, %b : i32"))
    block = next(op for op in module.walk() if op.name == "tt.func").regions[0].block
    assert block.last_op is not None
    block.last_op.detach()
    with pytest.raises(VerifyException, match="is not a terminator"):
        verifier.verify(module)


def test_forms_are_not_confused():
    """A result is no operand, and a property no attribute."""
    value = ConstantOp.create(result_types=(i32,), properties={"value": int_attr(1)}).results[0]
    kinds = [
        AddiOp.create(operands=(value,), result_types=(i32,)),
        AddiOp.create(operands=(value, value)),
        AddiOp.create(result_types=(i32, i32)),
        AddiOp.create(properties={"a": i32, "b": i64}),
        AddiOp.create(properties={"a": i32}, attributes={"b": i64}),
        AddiOp.create(attributes={"a": i32, "b": i64}),
    ]
    assert len({seen.Form(op).key for op in kinds}) == len(kinds)


def test_a_limited_number_is_remembered():
    few: Remembered[int] = Remembered(most=3)
    for key in range(10):
        few.put(key, key)
    assert few.get(9) == 9
    assert sum(few.get(key) is not None for key in range(10)) <= 3


# Heads of functions

HEAD = 'tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %n: i32 loc(#loc)) {'


def with_head(line: int, head: str = HEAD) -> str:
    return f'#loc = loc("k.py":{line}:0)\nmodule {{\n  {head}\n    tt.return loc(#loc)\n  }} loc(#loc)\n}} loc(#loc)\n'


def arguments_of(text: str) -> list[str]:
    function = next(op for op in ir.parse(text).walk() if op.name == "tt.func")
    return [str(argument.location) for argument in function.regions[0].blocks[0].args]


def test_the_same_head_at_another_line_of_the_source():
    first, second = (arguments_of(with_head(line)) for line in (11, 12))
    assert [text.replace(":11:", ":12:") for text in first] == second
    assert all(":12:" in text for text in second)


def test_the_same_head_elsewhere_in_the_text():
    moved = "\n\n" + with_head(11).replace("  tt.func", "        tt.func")
    assert arguments_of(moved) == arguments_of(with_head(11))
    assert ir.print_module(ir.parse(moved)) == ir.print_module(ir.parse(with_head(11)))


def test_a_head_whose_location_is_not_there():
    ir.parse(with_head(11))
    with pytest.raises(IRParseError, match="#loc"):
        ir.parse(with_head(11).replace("#loc = ", "#loc7 = "))


def test_an_argument_that_is_used_twice_is_named_in_its_own_place():
    head = HEAD.replace("%n", "%x")
    places = []
    for before in ("", "\n", "\n"):
        with pytest.raises(IRParseError, match="%x is already defined") as error:
            ir.parse(before + with_head(11, head))
        places.append(str(error.value.fields["where"]))
    assert places[0].startswith("<ttir>:3:")
    assert places[1] == places[2] == places[0].replace(":3:", ":4:")


@pytest.mark.parametrize("turn", [1, 2])
def test_a_head_that_goes_on_in_the_next_line(turn: int):
    head = 'tt.func public @k(%x: i32) attributes {\n made = "here"} {'
    assert 'made = "here"' in ir.print_module(ir.parse(with_head(11, head)))


def test_arguments_that_differ_in_what_is_said_of_them():
    heads = [HEAD, HEAD.replace("16 : i32", "8 : i32"), HEAD.replace("{tt.divisibility = 16 : i32} ", ""), HEAD]
    for head in heads:
        assert head.split("{")[1].split("loc")[0] in ir.print_module(ir.parse(with_head(11, head)))


def test_a_message_shows_a_function():
    function = next(op for op in ir.parse(with_head(11)).walk() if op.name == "tt.func")
    assert "tt.divisibility = 16" in str(function)


ALIASES = [
    ("#loc1 = loc", "tt.func @k(%x: i32 {a = loc(#loc1)}) {"),
    ("#loc1 = loc", "tt.func @k(%x: i32) -> (i32 {a = loc(#loc1)}) {"),
    ("#loc1 = loc", "tt.func @k(%x: i32 loc(#loc1)) attributes {a = loc(#loc1)} {"),
    ("#a = ", "tt.func @k(%x: i32 {a = #a}) {"),
    ("!a = ", "tt.func @k(%x: !a) {"),
]


@pytest.mark.parametrize(("alias", "head"), ALIASES)
def test_a_head_that_says_what_is_written_elsewhere(alias: str, head: str):
    values = {"#loc1 = loc": ('("k.py":3:1)', '("k.py":4:1)'), "#a = ": ('"one"', '"two"'), "!a = ": ("i16", "i64")}
    for value in values[alias]:
        assert value.strip("()") in ir.print_module(ir.parse(f"{alias}{value}\n{with_head(11, head)}"))
    with pytest.raises(IRParseError, match="undefined"):
        ir.parse(with_head(11, head))


@pytest.mark.parametrize("location", ["loc // (\n (#loc)", "loc( // #loc7\n #loc)", "loc\n(\n#loc)"])
def test_the_location_of_an_argument_round_comments(location: str):
    assert ":11:" in arguments_of(with_head(11, f"tt.func @k(%x: i32 {location}) {{"))[0]


def test_a_function_with_a_body_names_its_arguments():
    for location in ("#loc", "#loc", "#loc9"):
        with pytest.raises(IRParseError, match="names" if location == "#loc" else "undefined"):
            ir.parse(with_head(11, f"tt.func @k(i32 loc({location})) {{"))


def test_what_is_parsed_with_a_head_belongs_to_its_module():
    head = 'tt.func @k(%x: i32) attributes {a = "here"} {'
    for _ in range(2):
        function = next(op for op in ir.parse(with_head(11, head)).walk() if op.name == "tt.func")
        assert function.properties["sym_name"] == StringAttr("k")
        assert function.attributes == {"a": StringAttr("here")}
        function.properties["sym_name"] = function.attributes["a"] = StringAttr("other")


def test_attributes_that_are_locations_are_printed_without_others():
    """Operations' own locations may be left out; those are not."""
    text = with_head(11, 'tt.func @k(%x: i32 {a = loc("a.py":1:1)}) attributes {b = loc("b.py":2:2)} {')
    once = ir.print_module(ir.parse(text), debuginfo=False)
    assert ir.print_module(ir.parse(once), debuginfo=False) == once
    assert '"a.py":1:1' in once
    assert '"b.py":2:2' in once
    assert "k.py" not in once
