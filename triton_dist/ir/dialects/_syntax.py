# SPDX-License-Identifier: MIT
"""What several dialects share: keyword enums and flag lists in the declarative format, and shape helpers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, TensorType
from xdsl.ir import Attribute, Data
from xdsl.irdl import ParsePropInAttrDict
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)

if TYPE_CHECKING:
    from typing_extensions import Self
    from xdsl.irdl import IRDLOperation
    from xdsl.parser import AttrParser, Parser
    from xdsl.printer import Printer

PROPS = ParsePropInAttrDict()
I1 = IntegerType(1)


@lru_cache(maxsize=256)
def int_attr(value: int, width: int = 32) -> IntegerAttr:
    return IntegerAttr(value, IntegerType(width))


@lru_cache(maxsize=256)
def string_attr(text: str) -> StringAttr:
    return StringAttr(text)


def keyword_of(table: Mapping[str, int], attr: Attribute | None) -> str | None:
    """The keyword that `table` gives the integer of `attr`."""
    if not isinstance(attr, IntegerAttr):
        return None
    value = attr.value.data
    return next((word for word, number in table.items() if number == value), None)


def parse_keyword(parser: Parser, table: Mapping[str, int], width: int = 32) -> IntegerAttr:
    word = parser.parse_optional_identifier()
    if word is None or word not in table:
        parser.raise_error(f"expected one of {', '.join(table)}")
    return int_attr(table[word], width)


def attribute_of(op: IRDLOperation, name: str) -> Attribute | None:
    # Not `or`: an integer attribute of value 0 is false.
    return op.properties[name] if name in op.properties else op.attributes.get(name)


class KeywordDirective(CustomDirective):
    """An enum attribute, kept as MLIR keeps it (an integer), written as its keyword.

    A subclass gives the tables: attribute name -> keyword -> number.
    """

    TABLES: ClassVar[Mapping[str, Mapping[str, int]]]
    attr: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        state.properties[self.attr.name] = parse_keyword(parser, self.TABLES[self.attr.name])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        table = self.TABLES[self.attr.name]
        printer.print_string(keyword_of(table, attribute_of(op, self.attr.name)) or "?")

    def is_present(self, op: IRDLOperation) -> bool:
        return self.attr.name in op.properties

    def is_anchorable(self) -> bool:
        return True


class FlagsAttr(Data[tuple[str, ...]]):
    """A set of flags, written `<a,b>`."""

    FLAGS: ClassVar[frozenset[str]]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, ...]:
        with parser.in_angle_brackets():
            return cls.parse_flags(parser)

    @classmethod
    def parse_flags(cls, parser: AttrParser) -> tuple[str, ...]:
        found = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_identifier)
        if unknown := [flag for flag in found if flag not in cls.FLAGS]:
            parser.raise_error(f"unknown flag {unknown[0]}")
        return tuple(found)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{','.join(self.data)}>")

    @classmethod
    def parse_optional(cls, parser: Parser, keyword: str) -> Self | None:
        """`keyword<a,b>`, if present."""
        if parser.parse_optional_keyword(keyword) is None:
            return None
        return cls(cls.parse_parameter(parser))


def i1_like(type: Attribute) -> Attribute:
    """i1, in the shape of `type`."""
    if isinstance(type, TensorType):
        return TensorType(I1, type.get_shape(), type.encoding)
    return I1


def print_flags(printer: Printer, keyword: str, attr: Attribute | None) -> None:
    if isinstance(attr, FlagsAttr) and attr.data != ("none",):
        printer.print_string(f" {keyword}")
        attr.print_parameter(printer)


def print_repeated(printer: Printer, attributes: Sequence[Attribute], write: Callable[[], object]) -> None:
    """What `write` prints of just these attributes. xDSL's own printer, as messages use it, remembers nothing."""
    repeated = getattr(printer, "print_repeated", None)
    if repeated is None:
        write()
    else:
        repeated(attributes, write)


def print_types(printer: Printer, types: Sequence[Attribute]) -> None:
    printer.print_list(types, printer.print_attribute)


__all__ = [
    "I1",
    "PROPS",
    "FlagsAttr",
    "KeywordDirective",
    "attribute_of",
    "i1_like",
    "int_attr",
    "irdl_custom_directive",
    "keyword_of",
    "parse_keyword",
    "print_flags",
    "print_types",
    "string_attr",
]
