# SPDX-License-Identifier: MIT
"""The `scf` dialect as TTIR uses it: `for` (also unsigned), `if` and `while`, on any values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Attribute, Block, Dialect, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from triton_dist.ir.dialects._syntax import I1, print_types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self
    from xdsl.parser import UnresolvedOperand
    from xdsl.printer import Printer


@irdl_op_definition
class YieldOp(IRDLOperation):
    name = "scf.yield"
    arguments = var_operand_def()
    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"
    traits = traits_def(Pure(), IsTerminator())


@irdl_op_definition
class ConditionOp(IRDLOperation):
    name = "scf.condition"
    condition = operand_def(I1)
    arguments = var_operand_def()
    assembly_format = "`(` $condition `)` attr-dict ($arguments^ `:` type($arguments))?"
    traits = traits_def(Pure(), IsTerminator())


def _parse_types(parser: Parser) -> list[Attribute]:
    """`type`, or `(type, ...)`."""
    types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return [parser.parse_type()] if types is None else list(types)


def _print_types(printer: Printer, types: Sequence[Attribute], always_parens: bool) -> None:
    if len(types) == 1 and not always_parens:
        printer.print_attribute(types[0])
        return
    with printer.in_parens():
        print_types(printer, types)


def _parse_assignments(parser: Parser) -> tuple[list[Parser.UnresolvedArgument], list[UnresolvedOperand]]:
    """`(%argument = %operand, ...)`."""

    def assignment() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        return argument, parser.parse_unresolved_operand()

    pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, assignment)
    return [argument for argument, _ in pairs], [operand for _, operand in pairs]


def _print_assignments(printer: Printer, arguments: Sequence[SSAValue], operands: Sequence[SSAValue]) -> None:
    def assignment(pair: tuple[SSAValue, SSAValue]) -> None:
        printer.print_ssa_value(pair[0])
        printer.print_string(" = ")
        printer.print_ssa_value(pair[1])

    with printer.in_parens():
        printer.print_list(zip(arguments, operands, strict=True), assignment)


def _ensure_yield(region: Region) -> None:
    """Give the region the terminator that the text leaves out when it has no operands."""
    block = region.blocks.last
    if block is None:
        region.add_block(block := Block())
    if not isinstance(block.last_op, YieldOp | ConditionOp):
        block.add_op(YieldOp.create())


def _print_body(printer: Printer, region: Region, implicit: bool, arguments: bool = False) -> None:
    printer.print_string(" ")
    printer.print_region(
        region,
        print_entry_block_args=arguments,
        print_empty_block=False,
        print_block_terminators=not implicit,
    )


def _terminator_types(region: Region) -> list[Attribute] | None:
    block = region.blocks.last
    last = None if block is None else block.last_op
    if not isinstance(last, YieldOp):
        return None
    return [operand.type for operand in last.operands]


@irdl_op_definition
class ForOp(IRDLOperation):
    """`scf.for [unsigned] %i = %lb to %ub step %s [iter_args(...) -> (...)] [: type] {...}`."""

    name = "scf.for"
    lb = operand_def()
    ub = operand_def()
    step = operand_def()
    iter_args = var_operand_def()
    unsignedCmp = opt_prop_def(UnitAttr)
    res = var_result_def()
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unsigned = parser.parse_optional_keyword("unsigned")
        induction = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        bounds = [parser.parse_unresolved_operand()]
        for keyword in ("to", "step"):
            parser.parse_keyword(keyword)
            bounds.append(parser.parse_unresolved_operand())
        arguments: list[Parser.UnresolvedArgument] = []
        operands: list[UnresolvedOperand] = []
        types: list[Attribute] = []
        if parser.parse_optional_keyword("iter_args") is not None:
            arguments, operands = _parse_assignments(parser)
            parser.parse_punctuation("->")
            types = _parse_types(parser)
        if len(types) != len(arguments):
            parser.raise_error(f"{len(arguments)} iteration arguments, but {len(types)} types")
        index = IndexType() if parser.parse_optional_punctuation(":") is None else parser.parse_type()
        named = [
            argument.resolve(type) for argument, type in zip([induction, *arguments], [index, *types], strict=True)
        ]
        region = parser.parse_region(named)
        _ensure_yield(region)
        return cls.create(
            operands=parser.resolve_operands([*bounds, *operands], [index] * 3 + types, parser.pos),
            result_types=types,
            properties={} if unsigned is None else {"unsignedCmp": UnitAttr()},
            attributes=parser.parse_optional_attr_dict(),
            regions=(region,),
        )

    def print(self, printer: Printer) -> None:
        block = self.body.block
        printer.print_string(" unsigned " if "unsignedCmp" in self.properties else " ")
        for value, separator in zip(
            (block.args[0], self.lb, self.ub, self.step), (" = ", " to ", " step ", ""), strict=True
        ):
            printer.print_ssa_value(value)
            printer.print_string(separator)
        if self.iter_args:
            printer.print_string(" iter_args")
            _print_assignments(printer, block.args[1:], self.iter_args)
            printer.print_string(" -> ")
            _print_types(printer, self.result_types, always_parens=True)
        if not isinstance(self.lb.type, IndexType):
            printer.print_string(" : ")
            printer.print_attribute(self.lb.type)
        _print_body(printer, self.body, implicit=not self.res)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        index = self.lb.type
        if self.ub.type != index or self.step.type != index:
            raise VerifyException("scf.for: bounds and step have one type")
        types = [operand.type for operand in self.iter_args]
        arguments = [argument.type for argument in self.body.block.args]
        if arguments != [index, *types] or list(self.result_types) != types:
            raise VerifyException("scf.for: iteration arguments, body arguments and results have the same types")
        if _terminator_types(self.body) != types:
            raise VerifyException("scf.for: the body yields the types of the iteration arguments")


@irdl_op_definition
class IfOp(IRDLOperation):
    """`scf.if %c [-> (types)] {...} [else {...}]`."""

    name = "scf.if"
    cond = operand_def(I1)
    output = var_result_def()
    true_region = region_def()
    false_region = region_def()
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        cond = parser.parse_unresolved_operand()
        types = [] if parser.parse_optional_punctuation("->") is None else _parse_types(parser)
        true_region = parser.parse_region()
        _ensure_yield(true_region)
        false_region = Region()
        if parser.parse_optional_keyword("else") is not None:
            false_region = parser.parse_region()
            _ensure_yield(false_region)
        return cls.create(
            operands=(parser.resolve_operand(cond, I1),),
            result_types=types,
            attributes=parser.parse_optional_attr_dict(),
            regions=(true_region, false_region),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.cond)
        if self.output:
            printer.print_string(" -> ")
            _print_types(printer, self.result_types, always_parens=True)
        _print_body(printer, self.true_region, implicit=not self.output)
        if self.false_region.blocks:
            printer.print_string(" else")
            _print_body(printer, self.false_region, implicit=not self.output)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        types = list(self.result_types)
        if _terminator_types(self.true_region) != types:
            raise VerifyException("scf.if: the first region yields the types of the results")
        if (self.false_region.blocks or types) and _terminator_types(self.false_region) != types:
            raise VerifyException("scf.if: the else region yields the types of the results")


@irdl_op_definition
class WhileOp(IRDLOperation):
    """`scf.while (%a = %init, ...) : (types) -> types {...} do {...}`."""

    name = "scf.while"
    arguments = var_operand_def()
    res = var_result_def()
    before_region = region_def("single_block")
    after_region = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        arguments: list[Parser.UnresolvedArgument] = []
        operands: list[UnresolvedOperand] = []
        if parser.pos < parser.lexer.input.len and parser.lexer.input.at(parser.pos) == "(":
            arguments, operands = _parse_assignments(parser)
        parser.parse_punctuation(":")
        signature = parser.parse_function_type()
        inputs = signature.inputs.data
        if len(inputs) != len(arguments):
            parser.raise_error(f"{len(arguments)} arguments, but {len(inputs)} types")
        named = [argument.resolve(type) for argument, type in zip(arguments, inputs, strict=True)]
        before = parser.parse_region(named)
        parser.parse_keyword("do")
        after = parser.parse_region()
        _ensure_yield(after)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        return cls.create(
            operands=parser.resolve_operands(operands, inputs, parser.pos),
            result_types=signature.outputs.data,
            attributes={} if attributes is None else attributes.data,
            regions=(before, after),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self.arguments:
            _print_assignments(printer, self.before_region.block.args, self.arguments)
        printer.print_string(" : ")
        printer.print_function_type([operand.type for operand in self.arguments], self.result_types)
        _print_body(printer, self.before_region, implicit=False)
        printer.print_string(" do")
        _print_body(printer, self.after_region, implicit=False, arguments=True)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    def verify_(self) -> None:
        types = [operand.type for operand in self.arguments]
        if [argument.type for argument in self.before_region.block.args] != types:
            raise VerifyException("scf.while: the first region takes the types of the operands")
        if [argument.type for argument in self.after_region.block.args] != list(self.result_types):
            raise VerifyException("scf.while: the second region takes the types of the results")
        condition = self.before_region.block.last_op
        if not isinstance(condition, ConditionOp):
            raise VerifyException("scf.while: the first region ends with scf.condition")
        if [operand.type for operand in condition.arguments] != list(self.result_types):
            raise VerifyException("scf.while: scf.condition passes on the types of the results")
        if _terminator_types(self.after_region) != types:
            raise VerifyException("scf.while: the second region yields the types of the operands")


Scf = Dialect("scf", [ForOp, IfOp, WhileOp, ConditionOp, YieldOp], [])
