# SPDX-License-Identifier: MIT
"""The `arith` dialect as TTIR uses it: on scalars and tensors, with the flags that LLVM's version prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException

from triton_dist.ir.dialects._syntax import (
    FlagsAttr,
    i1_like,
    int_attr,
    keyword_of,
    parse_keyword,
    print_flags,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self
    from xdsl.parser import Parser
    from xdsl.printer import Printer

INTEGER_PREDICATES = {
    word: number for number, word in enumerate(["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
}
FLOAT_PREDICATES = {
    word: number
    for number, word in enumerate(
        [
            "false",
            "oeq",
            "ogt",
            "oge",
            "olt",
            "ole",
            "one",
            "ord",
            "ueq",
            "ugt",
            "uge",
            "ult",
            "ule",
            "une",
            "uno",
            "true",
        ]
    )
}
ROUNDING_MODES = {
    word: number
    for number, word in enumerate(["to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away"])
}


@irdl_attr_definition
class FastMathFlagsAttr(FlagsAttr):
    name = "arith.fastmath"
    FLAGS: ClassVar = frozenset(["none", "reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "fast"])


@irdl_attr_definition
class IntegerOverflowFlagsAttr(FlagsAttr):
    name = "arith.overflow"
    FLAGS: ClassVar = frozenset(["none", "nsw", "nuw"])


def element_type(type: Attribute) -> Attribute:
    return type.get_element_type() if isinstance(type, TensorType) else type


def shape_of(type: Attribute) -> tuple[int, ...] | None:
    return type.get_shape() if isinstance(type, TensorType) else None


@irdl_op_definition
class ConstantOp(IRDLOperation):
    name = "arith.constant"
    value = prop_def()
    result = result_def()
    traits = traits_def(Pure(), ConstantLike())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        attributes = parser.parse_optional_attr_dict()
        value = parser.parse_attribute()
        if not isinstance(value, IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr):
            parser.raise_error("a constant is an integer, a float or a dense attribute")
        return cls.create(result_types=(value.get_type(),), properties={"value": value}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_attribute(self.value)

    def verify_(self) -> None:
        value = self.value
        if not isinstance(value, IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr):
            raise VerifyException("arith.constant takes an integer, a float or a dense attribute")
        if value.get_type() != self.result.type:
            raise VerifyException(f"value of type {value.get_type()}, result of type {self.result.type}")


class _SameTypeOp(IRDLOperation):
    """Operands and result of one type: `op %a, %b flag<..> : type`."""

    FLAG: ClassVar[tuple[str, str, type[FlagsAttr]] | None] = None
    """Property, keyword and attribute class of the op's flags."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        count = len(cls.get_irdl_definition().operands)
        unresolved = [parser.parse_unresolved_operand()]
        for _ in range(1, count):
            parser.parse_punctuation(",")
            unresolved.append(parser.parse_unresolved_operand())
        properties = cls._parse_flags(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        return cls.create(
            operands=[parser.resolve_operand(operand, type) for operand in unresolved],
            result_types=(type,),
            properties=properties,
            attributes=attributes,
        )

    @classmethod
    def _parse_flags(cls, parser: Parser) -> dict[str, Attribute]:
        if "isExact" in cls.get_irdl_definition().properties:
            return {} if parser.parse_optional_keyword("exact") is None else {"isExact": UnitAttr()}
        if cls.FLAG is None:
            return {}
        name, keyword, attr = cls.FLAG
        flags = attr.parse_optional(parser, keyword)
        return {} if flags is None else {name: flags}

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        if "isExact" in self.properties:
            printer.print_string(" exact")
        if self.FLAG is not None:
            print_flags(printer, self.FLAG[1], self.properties.get(self.FLAG[0]))
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.results[0].type)

    def verify_(self) -> None:
        type = self.results[0].type
        if any(operand.type != type for operand in self.operands):
            raise VerifyException(f"{self.name}: operands and result have one type")


class IntegerBinaryOp(_SameTypeOp):
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())


class OverflowBinaryOp(IntegerBinaryOp):
    overflowFlags = opt_prop_def(IntegerOverflowFlagsAttr)
    FLAG: ClassVar = ("overflowFlags", "overflow", IntegerOverflowFlagsAttr)


class ExactBinaryOp(IntegerBinaryOp):
    """`op %a, %b exact : type`."""

    isExact = opt_prop_def(UnitAttr)


class FloatBinaryOp(_SameTypeOp):
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    fastmath = opt_prop_def(FastMathFlagsAttr)
    traits = traits_def(Pure())
    FLAG: ClassVar = ("fastmath", "fastmath", FastMathFlagsAttr)


@irdl_op_definition
class AddiOp(OverflowBinaryOp):
    name = "arith.addi"


@irdl_op_definition
class SubiOp(OverflowBinaryOp):
    name = "arith.subi"


@irdl_op_definition
class MuliOp(OverflowBinaryOp):
    name = "arith.muli"


@irdl_op_definition
class ShLIOp(OverflowBinaryOp):
    name = "arith.shli"


@irdl_op_definition
class ShRSIOp(ExactBinaryOp):
    name = "arith.shrsi"


@irdl_op_definition
class ShRUIOp(ExactBinaryOp):
    name = "arith.shrui"


@irdl_op_definition
class DivSIOp(ExactBinaryOp):
    name = "arith.divsi"


@irdl_op_definition
class DivUIOp(ExactBinaryOp):
    name = "arith.divui"


@irdl_op_definition
class CeilDivSIOp(IntegerBinaryOp):
    name = "arith.ceildivsi"


@irdl_op_definition
class CeilDivUIOp(IntegerBinaryOp):
    name = "arith.ceildivui"


@irdl_op_definition
class FloorDivSIOp(IntegerBinaryOp):
    name = "arith.floordivsi"


@irdl_op_definition
class RemSIOp(IntegerBinaryOp):
    name = "arith.remsi"


@irdl_op_definition
class RemUIOp(IntegerBinaryOp):
    name = "arith.remui"


@irdl_op_definition
class AndIOp(IntegerBinaryOp):
    name = "arith.andi"


@irdl_op_definition
class OrIOp(IntegerBinaryOp):
    name = "arith.ori"


@irdl_op_definition
class XOrIOp(IntegerBinaryOp):
    name = "arith.xori"


@irdl_op_definition
class MinSIOp(IntegerBinaryOp):
    name = "arith.minsi"


@irdl_op_definition
class MaxSIOp(IntegerBinaryOp):
    name = "arith.maxsi"


@irdl_op_definition
class MinUIOp(IntegerBinaryOp):
    name = "arith.minui"


@irdl_op_definition
class MaxUIOp(IntegerBinaryOp):
    name = "arith.maxui"


@irdl_op_definition
class AddfOp(FloatBinaryOp):
    name = "arith.addf"


@irdl_op_definition
class SubfOp(FloatBinaryOp):
    name = "arith.subf"


@irdl_op_definition
class MulfOp(FloatBinaryOp):
    name = "arith.mulf"


@irdl_op_definition
class DivfOp(FloatBinaryOp):
    name = "arith.divf"


@irdl_op_definition
class RemfOp(FloatBinaryOp):
    name = "arith.remf"


@irdl_op_definition
class MaximumfOp(FloatBinaryOp):
    name = "arith.maximumf"


@irdl_op_definition
class MaxnumfOp(FloatBinaryOp):
    name = "arith.maxnumf"


@irdl_op_definition
class MinimumfOp(FloatBinaryOp):
    name = "arith.minimumf"


@irdl_op_definition
class MinnumfOp(FloatBinaryOp):
    name = "arith.minnumf"


@irdl_op_definition
class NegfOp(_SameTypeOp):
    name = "arith.negf"
    operand = operand_def()
    result = result_def()
    fastmath = opt_prop_def(FastMathFlagsAttr)
    traits = traits_def(Pure())
    FLAG: ClassVar = ("fastmath", "fastmath", FastMathFlagsAttr)


class _ExtendedOp(IRDLOperation):
    """Two results: `op %a, %b : type`, or with the type of the second result after a comma."""

    lhs = operand_def()
    rhs = operand_def()
    traits = traits_def(Pure())
    SECOND_IS_BIT: ClassVar[bool] = False

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = second = parser.parse_type()
        if cls.SECOND_IS_BIT:
            parser.parse_punctuation(",")
            second = parser.parse_type()
        return cls.create(
            operands=parser.resolve_operands((lhs, rhs), (type, type), parser.pos),
            result_types=(type, second),
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        shown = self.result_types if self.SECOND_IS_BIT else self.result_types[:1]
        printer.print_list(shown, printer.print_attribute)


@irdl_op_definition
class MulSIExtendedOp(_ExtendedOp):
    name = "arith.mulsi_extended"
    low = result_def()
    high = result_def()


@irdl_op_definition
class MulUIExtendedOp(_ExtendedOp):
    name = "arith.mului_extended"
    low = result_def()
    high = result_def()


@irdl_op_definition
class AddUIExtendedOp(_ExtendedOp):
    name = "arith.addui_extended"
    sum = result_def()
    overflow = result_def()
    SECOND_IS_BIT: ClassVar = True


class _CompareOp(IRDLOperation):
    """`op predicate, %a, %b : operand type`; the result is i1 in the operands' shape."""

    PREDICATES: ClassVar[Mapping[str, int]]
    FASTMATH_ALLOWED: ClassVar[bool]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties: dict[str, Attribute] = {"predicate": parse_keyword(parser, cls.PREDICATES, 64)}
        parser.parse_punctuation(",")
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        if cls.FASTMATH_ALLOWED and (flags := FastMathFlagsAttr.parse_optional(parser, "fastmath")) is not None:
            properties["fastmath"] = flags
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        return cls.create(
            operands=(parser.resolve_operand(lhs, type), parser.resolve_operand(rhs, type)),
            result_types=(i1_like(type),),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        predicate = keyword_of(self.PREDICATES, self.properties.get("predicate"))
        printer.print_string(f" {predicate}, ")
        printer.print_list(self.operands, printer.print_ssa_value)
        print_flags(printer, "fastmath", self.properties.get("fastmath"))
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)

    def verify_(self) -> None:
        type = self.operands[0].type
        if self.operands[1].type != type:
            raise VerifyException(f"{self.name}: operands have one type")
        if self.results[0].type != i1_like(type):
            raise VerifyException(f"{self.name}: the result is {i1_like(type)}")
        if keyword_of(self.PREDICATES, self.properties.get("predicate")) is None:
            raise VerifyException(f"{self.name}: unknown predicate")


@irdl_op_definition
class CmpiOp(_CompareOp):
    name = "arith.cmpi"
    predicate = prop_def(IntegerAttr)
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    PREDICATES: ClassVar = INTEGER_PREDICATES
    FASTMATH_ALLOWED: ClassVar = False


@irdl_op_definition
class CmpfOp(_CompareOp):
    name = "arith.cmpf"
    predicate = prop_def(IntegerAttr)
    lhs = operand_def()
    rhs = operand_def()
    fastmath = opt_prop_def(FastMathFlagsAttr)
    result = result_def()
    traits = traits_def(Pure())
    PREDICATES: ClassVar = FLOAT_PREDICATES
    FASTMATH_ALLOWED: ClassVar = True


@irdl_op_definition
class SelectOp(IRDLOperation):
    """`arith.select %c, %a, %b : type`; a tensor condition is written before the type."""

    name = "arith.select"
    condition = operand_def()
    true_value = operand_def()
    false_value = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        condition, type = i1_like(int_attr(0).type), parser.parse_type()
        if parser.parse_optional_punctuation(",") is not None:
            condition, type = type, parser.parse_type()
        return cls.create(
            operands=parser.resolve_operands(unresolved, (condition, type, type), parser.pos),
            result_types=(type,),
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        if isinstance(self.condition.type, TensorType):
            printer.print_attribute(self.condition.type)
            printer.print_string(", ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        type = self.result.type
        if self.true_value.type != type or self.false_value.type != type:
            raise VerifyException("arith.select: both values have the result's type")
        if self.condition.type not in (i1_like(type), i1_like(int_attr(0).type)):
            raise VerifyException("arith.select: the condition is i1, or i1 in the result's shape")


class _CastOp(IRDLOperation):
    """`op %a : from to to`, with the flags that some casts have."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        properties = cls._parse_flags(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source = parser.parse_type()
        parser.parse_keyword("to")
        return cls.create(
            operands=(parser.resolve_operand(operand, source),),
            result_types=(parser.parse_type(),),
            properties=properties,
            attributes=attributes,
        )

    @classmethod
    def _parse_flags(cls, parser: Parser) -> dict[str, Attribute]:
        known = cls.get_irdl_definition().properties
        found: dict[str, Attribute] = {}
        if "nonNeg" in known and parser.parse_optional_keyword("nneg") is not None:
            found["nonNeg"] = UnitAttr()
        if "roundingmode" in known:
            word = parser.parse_optional_keyword_in(ROUNDING_MODES)
            if word is not None:
                found["roundingmode"] = int_attr(ROUNDING_MODES[word])
        if "overflowFlags" in known:
            flags = IntegerOverflowFlagsAttr.parse_optional(parser, "overflow")
            found |= {} if flags is None else {"overflowFlags": flags}
        if "fastmath" in known:
            flags = FastMathFlagsAttr.parse_optional(parser, "fastmath")
            found |= {} if flags is None else {"fastmath": flags}
        return found

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operands[0])
        if "nonNeg" in self.properties:
            printer.print_string(" nneg")
        if (mode := keyword_of(ROUNDING_MODES, self.properties.get("roundingmode"))) is not None:
            printer.print_string(f" {mode}")
        print_flags(printer, "overflow", self.properties.get("overflowFlags"))
        print_flags(printer, "fastmath", self.properties.get("fastmath"))
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)
        printer.print_string(" to ")
        printer.print_attribute(self.results[0].type)

    def verify_(self) -> None:
        if shape_of(self.operands[0].type) != shape_of(self.results[0].type):
            raise VerifyException(f"{self.name}: operand and result have one shape")


class PlainCastOp(_CastOp):
    in_ = operand_def()
    out = result_def()
    traits = traits_def(Pure())


class NonNegCastOp(PlainCastOp):
    nonNeg = opt_prop_def(UnitAttr)


class FloatCastOp(PlainCastOp):
    fastmath = opt_prop_def(FastMathFlagsAttr)


@irdl_op_definition
class ExtSIOp(PlainCastOp):
    name = "arith.extsi"


@irdl_op_definition
class ExtUIOp(NonNegCastOp):
    name = "arith.extui"


@irdl_op_definition
class TruncIOp(PlainCastOp):
    name = "arith.trunci"
    overflowFlags = opt_prop_def(IntegerOverflowFlagsAttr)


@irdl_op_definition
class ExtFOp(FloatCastOp):
    name = "arith.extf"


@irdl_op_definition
class TruncFOp(FloatCastOp):
    name = "arith.truncf"
    roundingmode = opt_prop_def()


@irdl_op_definition
class SIToFPOp(FloatCastOp):
    name = "arith.sitofp"


@irdl_op_definition
class UIToFPOp(NonNegCastOp):
    name = "arith.uitofp"
    fastmath = opt_prop_def(FastMathFlagsAttr)


@irdl_op_definition
class FPToSIOp(FloatCastOp):
    name = "arith.fptosi"


@irdl_op_definition
class FPToUIOp(FloatCastOp):
    name = "arith.fptoui"


@irdl_op_definition
class BitcastOp(PlainCastOp):
    name = "arith.bitcast"


@irdl_op_definition
class IndexCastOp(PlainCastOp):
    name = "arith.index_cast"


@irdl_op_definition
class IndexCastUIOp(NonNegCastOp):
    name = "arith.index_castui"


Arith = Dialect(
    "arith",
    [
        ConstantOp, AddiOp, SubiOp, MuliOp, ShLIOp, ShRSIOp, ShRUIOp, DivSIOp, DivUIOp, CeilDivSIOp, CeilDivUIOp,
        FloorDivSIOp, RemSIOp, RemUIOp, AndIOp, OrIOp, XOrIOp, MinSIOp, MaxSIOp, MinUIOp, MaxUIOp, AddfOp, SubfOp,
        MulfOp, DivfOp, RemfOp, MaximumfOp, MaxnumfOp, MinimumfOp, MinnumfOp, NegfOp, MulSIExtendedOp,
        MulUIExtendedOp, AddUIExtendedOp, CmpiOp, CmpfOp, SelectOp, ExtSIOp, ExtUIOp, TruncIOp, ExtFOp, TruncFOp,
        SIToFPOp, UIToFPOp, FPToSIOp, FPToUIOp, BitcastOp, IndexCastOp, IndexCastUIOp,
    ],
    [FastMathFlagsAttr, IntegerOverflowFlagsAttr],
)  # fmt: skip
