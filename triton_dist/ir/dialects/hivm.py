# SPDX-License-Identifier: MIT
"""The part of Ascend's `hivm` dialect that a distributed operation becomes: `hivm.hir.custom` and its attributes.

The text is what the vendor's `bishengir-opt` prints and reads; the checks are its own, in its order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, StringAttr, TensorType, UnitAttr, i32, i64
from xdsl.ir import Attribute, Data, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Pure
from xdsl.utils.exceptions import VerifyException

from triton_dist.ir.seen import VerifiedInPlace

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from typing_extensions import Self
    from xdsl.parser import AttrParser, Parser, UnresolvedOperand
    from xdsl.printer import Printer


class _Word(Data[str]):
    """An enumeration, written as its keyword in angle brackets."""

    WORDS: ClassVar[tuple[str, ...]]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            word = parser.parse_identifier()
        if word not in cls.WORDS:
            parser.raise_error(f"{cls.name} is one of {', '.join(cls.WORDS)}, not {word}")
        return word

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


@irdl_attr_definition
class TCoreTypeAttr(_Word):
    """On which core an operation runs: the matrix unit, the vector unit, either, or both."""

    name = "hivm.tcore_type"
    WORDS = ("CUBE", "VECTOR", "CUBE_OR_VECTOR", "CUBE_AND_VECTOR")


@irdl_attr_definition
class PipeAttr(_Word):
    """In which pipeline of its core."""

    name = "hivm.pipe"
    WORDS = (
        "PIPE_S", "PIPE_V", "PIPE_M", "PIPE_MTE1", "PIPE_MTE2", "PIPE_MTE3", "PIPE_ALL", "PIPE_MTE4", "PIPE_MTE5",
        "PIPE_V2", "PIPE_FIX", "VIRTUAL_PIPE_MTE2_L1A", "VIRTUAL_PIPE_MTE2_L1B", "PIPE_NUM", "PIPE_UNASSIGNED",
    )  # fmt: skip


@irdl_attr_definition
class VFModeAttr(_Word):
    """How a vector function runs."""

    name = "hivm.vf_mode"
    WORDS = ("SIMD", "SIMT", "MIX")


class _EffectsUnlessMarked(MemoryEffect):
    """It reads and writes, unless it carries `no_side_effect`."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        if "no_side_effect" in op.properties:
            return frozenset()
        return frozenset({EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)})


_Group = tuple[list["UnresolvedOperand"], list[Attribute]]
_HIDDEN = ("name", "operandSegmentSizes")
"""Properties that the pretty form says elsewhere."""


@irdl_op_definition
class CustomOp(IRDLOperation):
    """A call of a function of the device's template library, by name.

    `outs` are destinations: a result that is a tensor has one, a scalar or a pointer has none. What it leaves out: the
    per-argument dictionaries of newer compilers, which the published one rejects.
    """

    name = "hivm.hir.custom"
    custom_name = prop_def(StringAttr, prop_name="name")
    no_side_effect = opt_prop_def(UnitAttr)
    ins = var_operand_def()
    outs = var_operand_def()
    tmps = var_operand_def()
    result = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(_EffectsUnlessMarked(), VerifiedInPlace())

    @property
    def symbol(self) -> str:
        """The function that it calls."""
        attr = self.attributes.get("symbol")
        return attr.data if isinstance(attr, StringAttr) else ""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        attributes = parser.parse_optional_attr_dict()
        properties: dict[str, Attribute] = {"name": StringAttr(parser.parse_str_literal())}
        if (unit := attributes.pop("no_side_effect", None)) is not None:
            properties["no_side_effect"] = unit
        groups = [_parse_group(parser, keyword) for keyword in ("ins", "outs", "tmps")]
        properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [len(types) for _, types in groups])
        unresolved = [operand for operands, _ in groups for operand in operands]
        types = [type for _, listed in groups for type in listed]
        return cls.create(
            operands=parser.resolve_operands(unresolved, types, parser.pos),
            result_types=_parse_result_types(parser),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        shown = {**self.attributes, **{k: v for k, v in self.properties.items() if k not in _HIDDEN}}
        printer.print_op_attributes(dict(sorted(shown.items())))
        printer.print_string(" ")
        printer.print_string_literal(self.custom_name.data)
        for keyword, operands in (("ins", self.ins), ("outs", self.outs), ("tmps", self.tmps)):
            _print_group(printer, keyword, operands)
        types = self.result_types
        if types:
            printer.print_string(" -> (" if len(types) > 1 else " -> ")
            printer.print_list(types, printer.print_attribute)
            printer.print_string(")" if len(types) > 1 else "")

    def verify_(self) -> None:
        if not isinstance(core := self.attributes.get("hivm.tcore_type"), TCoreTypeAttr):
            raise VerifyException("Missing core type information")
        if core.data != "CUBE" and _is_regbased(self) and "hivm.vf_mode" not in self.attributes:
            raise VerifyException("Missing vf mode information")
        if not isinstance(self.attributes.get("hivm.pipe"), PipeAttr):
            raise VerifyException("Missing pipe information")
        if not self.symbol:
            raise VerifyException("Missing implementation function name")
        self._verify_destinations()

    def _verify_destinations(self) -> None:
        for out in self.outs:
            if not is_shaped(out.type):
                raise VerifyException(f"{self.name}: an operand in outs is a tensor or a memref, not {out.type}")
        tensors = [out.type for out in self.outs if isinstance(out.type, TensorType)]
        results = [type for type in self.result_types if isinstance(type, TensorType)]
        if tensors != results:
            raise VerifyException(f"{self.name}: each result that is a tensor has a tensor of its type in outs")


class _SubBlock(IRDLOperation):
    result = result_def(i64)
    assembly_format = "attr-dict `->` type($result)"
    traits = traits_def(Pure())


@irdl_op_definition
class GetSubBlockIdxOp(_SubBlock):
    """Which of the vector cores beside one cube core this is."""

    name = "hivm.hir.get_sub_block_idx"


@irdl_op_definition
class GetSubBlockNumOp(_SubBlock):
    """How many vector cores are beside one cube core."""

    name = "hivm.hir.get_sub_block_num"


def is_shaped(type: Attribute) -> bool:
    """A tensor or a memref: what a destination can be."""
    return isinstance(type, TensorType) or type.name == "memref"


def _is_regbased(op: Operation) -> bool:
    """Whether the module says that it is for a 950 chip, whose vector functions have modes."""
    at: Operation | None = op
    while at is not None:
        target = at.attributes.get("hacc.target")
        if target is not None:
            return "950" in str(target) or "910_95" in str(target)
        at = at.parent_op()
    return False


def _parse_group(parser: Parser, keyword: str) -> _Group:
    if parser.parse_optional_keyword(keyword) is None:
        return [], []
    parser.parse_punctuation("(")
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return operands, list(types)


def _print_group(printer: Printer, keyword: str, operands: Sequence[SSAValue]) -> None:
    if not operands:
        return
    printer.print_string(f" {keyword}(")
    printer.print_list(operands, printer.print_ssa_value)
    printer.print_string(" : ")
    printer.print_list([operand.type for operand in operands], printer.print_attribute)
    printer.print_string(")")


def _parse_result_types(parser: Parser) -> Sequence[Attribute]:
    if parser.parse_optional_punctuation("->") is None:
        return ()
    if parser.lexer.input.at(parser.pos) == "(":
        return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return (parser.parse_type(),)


def index_array(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    """`array<i32: ...>`: positions of operands."""
    return DenseArrayBase.from_list(i32, values)


Hivm = Dialect("hivm", [CustomOp, GetSubBlockIdxOp, GetSubBlockNumOp], [TCoreTypeAttr, PipeAttr, VFModeAttr])
