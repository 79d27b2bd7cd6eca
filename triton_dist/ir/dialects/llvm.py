# SPDX-License-Identifier: MIT
"""What TTIR has of `llvm`: the op of `tl.assume`, and the attributes of a loop from which nothing may be moved out."""

from __future__ import annotations

from xdsl.ir import Attribute, Data, Dialect
from xdsl.irdl import IRDLOperation, irdl_attr_definition, irdl_op_definition, operand_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from triton_dist.ir.dialects._syntax import I1


@irdl_op_definition
class AssumeOp(IRDLOperation):
    name = "llvm.intr.assume"
    cond = operand_def(I1)
    assembly_format = "$cond attr-dict `:` type($cond)"


class Fields(Data[tuple[tuple[str, Attribute], ...]]):
    """`<name = attribute, ...>`: LLVM's attributes of loops are records."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, Attribute], ...]:
        def entry() -> tuple[str, Attribute]:
            key = parser.parse_identifier()
            parser.parse_punctuation("=")
            return key, parser.parse_attribute()

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, entry))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        for i, (key, value) in enumerate(self.data):
            printer.print_string(f"{', ' if i else ''}{key} = ")
            printer.print_attribute(value)
        printer.print_string(">")


@irdl_attr_definition
class LoopLicmAttr(Fields):
    """`#llvm.loop_licm<disable = true, versioningDisable = true>`"""

    name = "llvm.loop_licm"


@irdl_attr_definition
class LoopAnnotationAttr(Fields):
    """`#llvm.loop_annotation<licm = #llvm.loop_licm<...>>`, by `tl.range(..., disable_licm=True)`"""

    name = "llvm.loop_annotation"


Llvm = Dialect("llvm", [AssumeOp], [LoopLicmAttr, LoopAnnotationAttr])
