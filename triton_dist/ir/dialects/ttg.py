# SPDX-License-Identifier: MIT
"""The one op of `ttg` that TTIR has: the barrier of `tl.debug_barrier`, from Triton 3.7 on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def

if TYPE_CHECKING:
    from typing_extensions import Self
    from xdsl.parser import Parser
    from xdsl.printer import Printer


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """`ttg.barrier all`; the address spaces are kept as they are written (`local|global_read`)."""

    name = "ttg.barrier"
    addrSpace = prop_def(StringAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        words = [parser.parse_identifier()]
        while parser.parse_optional_punctuation("|") is not None:
            words.append(parser.parse_identifier())
        attributes = parser.parse_optional_attr_dict()
        return cls.create(properties={"addrSpace": StringAttr("|".join(words))}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.addrSpace.data}")
        printer.print_op_attributes(self.attributes)


Ttg = Dialect("ttg", [BarrierOp], [])
