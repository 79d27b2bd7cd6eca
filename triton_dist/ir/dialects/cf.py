# SPDX-License-Identifier: MIT
"""The `cf` dialect: the branches of functions with several blocks (an early `return` in a kernel)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, StringAttr, i32
from xdsl.ir import Block, Dialect, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    successor_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from triton_dist.ir.dialects._syntax import I1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self
    from xdsl.parser import Parser
    from xdsl.printer import Printer


def _parse_target(parser: Parser) -> tuple[Block, Sequence[SSAValue]]:
    """`^block`, or `^block(%a, %b : type, type)`."""
    block = parser.parse_successor()
    if parser.parse_optional_punctuation("(") is None:
        return block, ()
    unresolved = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return block, parser.resolve_operands(unresolved, types, parser.pos)


def _print_target(printer: Printer, block: Block, operands: Sequence[SSAValue]) -> None:
    printer.print_block_name(block)
    if operands:
        printer.print_string("(")
        printer.print_list(operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list([operand.type for operand in operands], printer.print_attribute)
        printer.print_string(")")


def _verify_target(op: IRDLOperation, block: Block, operands: Sequence[SSAValue]) -> None:
    if [operand.type for operand in operands] != [argument.type for argument in block.args]:
        raise VerifyException(f"{op.name}: operands differ from the arguments of the block they go to")


@irdl_op_definition
class BranchOp(IRDLOperation):
    name = "cf.br"
    arguments = var_operand_def()
    dest = successor_def()
    traits = traits_def(Pure(), IsTerminator())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        block, operands = _parse_target(parser)
        attributes = parser.parse_optional_attr_dict()
        return cls.create(operands=operands, successors=(block,), attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_target(printer, self.dest, self.operands)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        _verify_target(self, self.dest, self.operands)


@irdl_op_definition
class ConditionalBranchOp(IRDLOperation):
    name = "cf.cond_br"
    cond = operand_def(I1)
    then_arguments = var_operand_def()
    else_arguments = var_operand_def()
    branch_weights = opt_prop_def(DenseArrayBase[IntegerType])
    then_block = successor_def()
    else_block = successor_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure(), IsTerminator())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        cond = parser.parse_unresolved_operand()
        properties = {}
        if parser.parse_optional_keyword("weights") is not None:
            parser.parse_punctuation("(")
            weights = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            parser.parse_punctuation(")")
            properties["branch_weights"] = DenseArrayBase.from_list(i32, weights)
        parser.parse_punctuation(",")
        then_block, then_operands = _parse_target(parser)
        parser.parse_punctuation(",")
        else_block, else_operands = _parse_target(parser)
        sizes = (1, len(then_operands), len(else_operands))
        properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes)
        return cls.create(
            operands=(parser.resolve_operand(cond, I1), *then_operands, *else_operands),
            successors=(then_block, else_block),
            properties=properties,
            attributes=parser.parse_optional_attr_dict(),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.cond)
        if self.branch_weights is not None:
            weights = ", ".join(str(weight) for weight in self.branch_weights.get_values())
            printer.print_string(f" weights([{weights}])")
        printer.print_string(", ")
        _print_target(printer, self.then_block, self.then_arguments)
        printer.print_string(", ")
        _print_target(printer, self.else_block, self.else_arguments)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        _verify_target(self, self.then_block, self.then_arguments)
        _verify_target(self, self.else_block, self.else_arguments)


@irdl_op_definition
class AssertOp(IRDLOperation):
    name = "cf.assert"
    arg = operand_def(I1)
    msg = prop_def(StringAttr)
    assembly_format = "$arg `,` $msg attr-dict"


Cf = Dialect("cf", [BranchOp, ConditionalBranchOp, AssertOp], [])
