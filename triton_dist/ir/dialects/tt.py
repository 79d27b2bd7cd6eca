# SPDX-License-Identifier: MIT
"""Triton's own dialect, as Triton 3.6 to 3.9 print it.

Enumerations are integers, as in MLIR, and are written as their keywords; the tables are below. The definitions are
permissive: libtriton has verified the module already, and what we verify is what our own passes could break.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i32,
)
from xdsl.ir import (
    Attribute,
    Data,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    TypeAttribute,
)
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.irdl.declarative_assembly_format import AttributeVariable, ParsingState, PrintingState
from xdsl.traits import (
    EffectInstance,
    IsolatedFromAbove,
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from triton_dist.ir.dialects._syntax import (
    PROPS,
    KeywordDirective,
    attribute_of,
    i1_like,
    int_attr,
    irdl_custom_directive,
    keyword_of,
    parse_keyword,
    print_repeated,
    print_types,
)
from triton_dist.ir.seen import Head, Named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self
    from xdsl.ir import SSAValue
    from xdsl.parser import AttrParser, Parser, UnresolvedOperand
    from xdsl.printer import Printer

    from triton_dist.ir.parser import TritonParser


def _numbered(words: str, start: int) -> dict[str, int]:
    return {word: number for number, word in enumerate(words.split(), start)}


CACHE_MODIFIERS = _numbered("none ca cg wb cs wt cv", 1)
EVICTION_POLICIES = _numbered("evict_normal evict_first evict_last", 1)
PADDING_OPTIONS = _numbered("pad_zero pad_nan", 1)
ATOMIC_OPS = _numbered("and or xor add fadd max min umax umin exch", 1)
MEM_SEMANTICS = _numbered("relaxed acquire release acq_rel", 1)
MEM_SYNC_SCOPES = _numbered("gpu cta sys", 1)
ROUNDING_MODES = _numbered("rtz rtne rs", 0)
PROPAGATE_NAN = {"none": 0, "all": 0xFFFF}
PROGRAM_DIMS = _numbered("x y z", 0)
INPUT_PRECISIONS = _numbered("tf32 tf32x3 ieee bf16x3 bf16x6", 0)
SCALE_ELEM_TYPES = _numbered("e4m3 e5m2 e2m3 e3m2 e2m1 bf16 fp16", 0)
DESCRIPTOR_REDUCE_KINDS = {"none": 0, **_numbered("add min max and or xor", 1)}


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """`!tt.ptr<pointee>`, `!tt.ptr<pointee, 3>`, or (3.9, pointers to const) `!tt.ptr<pointee, "constant">`."""

    name = "tt.ptr"
    pointee_type: Attribute = param_def()
    address_space: IntegerAttr | StringAttr = param_def()

    @classmethod
    def of(cls, pointee: Attribute, address_space: int = 1) -> PointerType:
        return cls(pointee, int_attr(address_space))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            pointee = parser.parse_type()
            if parser.parse_optional_punctuation(",") is None:
                return (pointee, int_attr(1))
            named = parser.parse_optional_str_literal()
            if named is not None:
                return (pointee, StringAttr(named))
            return (pointee, int_attr(parser.parse_integer(allow_boolean=False, allow_negative=False)))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.pointee_type)
            space = self.address_space
            if isinstance(space, StringAttr):
                printer.print_string(f', "{space.data}"')
            elif space.value.data != 1:
                printer.print_string(f", {space.value.data}")


@irdl_attr_definition
class TensorDescType(ParametrizedAttribute, TypeAttribute):
    """`!tt.tensordesc<tensor<64x64xf16>>` (to 3.7) or `!tt.tensordesc<64x64xf16>`.

    The two spell the same type; the spelling is kept for the printer.
    """

    name = "tt.tensordesc"
    block_type: TensorType = param_def()
    spelling: StringAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            type = parser.parse_optional_type()
            if isinstance(type, TensorType):
                return (type, StringAttr("tensor"))
            if type is not None:
                return (TensorType(type, ()), StringAttr("shape"))
            shape, element = parser.parse_ranked_shape()
            return (TensorType(element, shape), StringAttr("shape"))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            if self.spelling.data == "tensor":
                printer.print_attribute(self.block_type)
                return
            for extent in self.block_type.get_shape():
                printer.print_string(f"{extent}x")
            printer.print_attribute(self.block_type.element_type)


@irdl_attr_definition
class CachePolicyAttr(Data[tuple[tuple[str, str], ...]]):
    """`#tt.cache_policy<cache_modifier = ca, eviction_policy = evict_first>` of Triton 3.9."""

    name = "tt.cache_policy"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, str], ...]:
        def entry() -> tuple[str, str]:
            key = parser.parse_identifier()
            parser.parse_punctuation("=")
            return key, parser.parse_identifier()

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, entry))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{', '.join(f'{key} = {word}' for key, word in self.data)}>")


@irdl_custom_directive
class Keyword(KeywordDirective):
    TABLES: ClassVar = {
        "axis": PROGRAM_DIMS,
        "rounding": ROUNDING_MODES,
        "propagateNan": PROPAGATE_NAN,
        "inputPrecision": INPUT_PRECISIONS,
        "atomic_rmw_op": ATOMIC_OPS,
        "sem": MEM_SEMANTICS,
        "scope": MEM_SYNC_SCOPES,
        "kind": DESCRIPTOR_REDUCE_KINDS,
        "a_elem_type": SCALE_ELEM_TYPES,
        "b_elem_type": SCALE_ELEM_TYPES,
    }
    attr: AttributeVariable


@irdl_custom_directive
class CacheFlags(KeywordDirective):
    """`cacheModifier = ca evictionPolicy = evict_first`: any, in any order, defaults left out."""

    TABLES: ClassVar = {"cacheModifier": CACHE_MODIFIERS, "evictionPolicy": EVICTION_POLICIES}
    NAMES: ClassVar = {"cacheModifier": "cache", "evictionPolicy": "evict"}
    attr: AttributeVariable
    evict: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        while (keyword := parser.parse_optional_keyword_in(self.TABLES)) is not None:
            parser.parse_punctuation("=")
            state.properties[self.NAMES[keyword]] = parse_keyword(parser, self.TABLES[keyword])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        for keyword, table in self.TABLES.items():
            word = keyword_of(table, attribute_of(op, self.NAMES[keyword]))
            if word is not None and table[word] != 1:
                state.print_whitespace(printer)
                printer.print_string(f"{keyword} = {word}")


T = VarConstraint("T", AnyAttr())


# Functions


def _parse_argument(parser: Parser) -> tuple[Named, DictionaryAttr]:
    argument = parser.parse_argument()
    attributes = DictionaryAttr(parser.parse_optional_dictionary_attr_dict())
    place = parser.pos
    location = None if parser.parse_optional_location() is None else (place, parser.pos)
    return Named(argument.type, argument.name.start, argument.name.end, location), attributes


def _parse_result(parser: Parser) -> tuple[Attribute, DictionaryAttr]:
    return parser.parse_type(), DictionaryAttr(parser.parse_optional_dictionary_attr_dict())


def _parse_declared(parser: Parser) -> tuple[Attribute, DictionaryAttr]:
    """An argument of a function with no body: a type, named or not."""
    if (named := parser.parse_optional_argument()) is not None:
        type: Attribute = named.type
    else:
        type = parser.parse_type()
    attributes = DictionaryAttr(parser.parse_optional_dictionary_attr_dict())
    parser.parse_optional_location()
    return type, attributes


def _parse_results(parser: Parser) -> list[tuple[Attribute, DictionaryAttr]]:
    if parser.parse_optional_punctuation("->") is None:
        return []
    listed = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_result(parser))
    # Without parentheses a dictionary would be the body.
    return [(parser.parse_type(), DictionaryAttr({}))] if listed is None else listed


def _attribute_list(dictionaries: Sequence[DictionaryAttr]) -> ArrayAttr | None:
    return ArrayAttr(dictionaries) if any(dictionary.data for dictionary in dictionaries) else None


def _parse_head(parser: Parser) -> Head:
    properties: dict[str, Attribute] = {}
    if (visibility := parser.parse_optional_visibility_keyword()) is not None:
        properties["sym_visibility"] = visibility
    properties["sym_name"] = parser.parse_symbol_name()
    arguments: list[tuple[Named, DictionaryAttr]] = []
    declared: list[tuple[Attribute, DictionaryAttr]] = []

    def argument() -> None:
        if parser.lexer.input.at(parser.pos) == "%":
            arguments.append(_parse_argument(parser))
        else:
            declared.append(_parse_declared(parser))

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
    if arguments and declared:
        parser.raise_error("either all arguments are named or none is")
    unnamed = bool(declared)
    declared = declared or [(named.type, attributes) for named, attributes in arguments]
    results = _parse_results(parser)
    attributes = parser.parse_optional_attr_dict_with_keyword()
    if unnamed and parser.lexer.input.at(parser.pos) == "{":
        parser.raise_error("the arguments of a function with a body have names")
    properties["function_type"] = FunctionType.from_lists([type for type, _ in declared], [type for type, _ in results])
    for name, listed in (("arg_attrs", declared), ("res_attrs", results)):
        if (list_attr := _attribute_list([dictionary for _, dictionary in listed])) is not None:
            properties[name] = list_attr
    return Head(tuple(named for named, _ in arguments), properties, {} if attributes is None else dict(attributes.data))


@irdl_op_definition
class FuncOp(IRDLOperation):
    """`tt.func public @name(%a: type {attributes}) -> type attributes {...} {...}`."""

    name = "tt.func"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    sym_visibility = opt_prop_def(StringAttr)
    arg_attrs = opt_prop_def(ArrayAttr)
    res_attrs = opt_prop_def(ArrayAttr)
    body = region_def()
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        head, arguments = cast("TritonParser", parser).parse_head(lambda: _parse_head(parser))
        region = parser.parse_optional_region(arguments) or Region()
        return cls.create(properties=head.properties, attributes=head.attributes, regions=(region,))

    def print(self, printer: Printer) -> None:
        visibility = "" if self.sym_visibility is None else f"{self.sym_visibility.data} "
        printer.print_string(f" {visibility}")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string("(")
        self._print_arguments(printer)
        printer.print_string(")")
        self._print_results(printer)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        if self.body.blocks:
            printer.print_string(" ")
            printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def _print_arguments(self, printer: Printer) -> None:
        block = self.body.blocks.first
        for index, type in enumerate(self.function_type.inputs.data):
            printer.print_string(", " if index else "")
            if block is not None:
                printer.print_ssa_value(block.args[index])
                printer.print_string(": ")
            _print_typed(printer, type, self.arg_attrs, index)
            if block is not None and printer.print_debuginfo:
                printer.print_string(" ")
                printer.print_attribute(block.args[index].location)

    def _print_results(self, printer: Printer) -> None:
        types = self.function_type.outputs.data
        if not types:
            return
        printer.print_string(" -> ")
        parens = len(types) > 1 or self.res_attrs is not None
        printer.print_string("(" if parens else "")
        for index, type in enumerate(types):
            printer.print_string(", " if index else "")
            _print_typed(printer, type, self.res_attrs, index)
        printer.print_string(")" if parens else "")

    def verify_(self) -> None:
        block = self.body.blocks.first
        inputs = list(self.function_type.inputs.data)
        if block is not None and [argument.type for argument in block.args] != inputs:
            raise VerifyException("tt.func: the entry block takes the arguments of the function type")
        for name, types in (("arg_attrs", inputs), ("res_attrs", self.function_type.outputs.data)):
            listed = self.properties.get(name)
            if isinstance(listed, ArrayAttr) and len(listed.data) != len(types):
                raise VerifyException(f"tt.func: {name} has one dictionary for each")


def _print_typed(printer: Printer, type: Attribute, attributes: ArrayAttr | None, index: int) -> None:
    """A type, and what `attributes` say of it."""
    dictionary = None if attributes is None else attributes.data[index]

    def write() -> None:
        printer.print_attribute(type)
        if isinstance(dictionary, DictionaryAttr):
            printer.print_op_attributes(dictionary.data)

    print_repeated(printer, (type,) if dictionary is None else (type, dictionary), write)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    name = "tt.return"
    srcs = var_operand_def()
    assembly_format = "attr-dict ($srcs^ `:` type($srcs))?"
    traits = traits_def(IsTerminator())

    def verify_(self) -> None:
        function = self.parent_op()
        if not isinstance(function, FuncOp):
            return
        if [operand.type for operand in self.srcs] != list(function.function_type.outputs.data):
            raise VerifyException("tt.return: the operands have the result types of the function")


@irdl_op_definition
class CallOp(IRDLOperation):
    """`tt.call @callee(%a, ...) : (types) -> types`."""

    name = "tt.call"
    callee = prop_def(SymbolRefAttr)
    args = var_operand_def()
    res = var_result_def()
    arg_attrs = opt_prop_def(ArrayAttr)
    res_attrs = opt_prop_def(ArrayAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        callee = parser.parse_symbol_name()
        operands = parser.parse_op_args_list()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        signature = parser.parse_function_type()
        return cls.create(
            operands=parser.resolve_operands(operands, signature.inputs.data, parser.pos),
            result_types=signature.outputs.data,
            properties={"callee": SymbolRefAttr(callee)},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.callee.root_reference.data)
        printer.print_operands(self.args)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)


# Values made or moved


@irdl_op_definition
class GetProgramIdOp(IRDLOperation):
    name = "tt.get_program_id"
    axis = prop_def(IntegerAttr)
    result = result_def()
    assembly_format = "custom<Keyword>($axis) attr-dict `:` type($result)"
    custom_directives = (Keyword,)
    traits = traits_def(Pure())


@irdl_op_definition
class GetNumProgramsOp(IRDLOperation):
    name = "tt.get_num_programs"
    axis = prop_def(IntegerAttr)
    result = result_def()
    assembly_format = "custom<Keyword>($axis) attr-dict `:` type($result)"
    custom_directives = (Keyword,)
    traits = traits_def(Pure())


@irdl_op_definition
class MakeRangeOp(IRDLOperation):
    name = "tt.make_range"
    start = prop_def(IntegerAttr)
    end = prop_def(IntegerAttr)
    result = result_def(TensorType)
    irdl_options = (PROPS,)
    assembly_format = "attr-dict `:` type($result)"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        type = self.result.type
        extent = self.end.value.data - self.start.value.data
        if not isinstance(type, TensorType) or type.get_shape() != (extent,):
            raise VerifyException(f"tt.make_range: the result has {extent} elements")


class _UnaryOp(IRDLOperation):
    """`op %a : type -> type`."""

    src = operand_def()
    result = result_def()
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"
    traits = traits_def(Pure())


# The elements of one tensor, in another shape or of another type


@irdl_op_definition
class SplatOp(IRDLOperation):
    name = "tt.splat"
    src = operand_def()
    result = result_def(TensorType)
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        type = self.result.type
        if isinstance(type, TensorType) and type.element_type != self.src.type:
            raise VerifyException("tt.splat: the result's elements have the operand's type")


@irdl_op_definition
class UnsplatOp(IRDLOperation):
    name = "tt.unsplat"
    src = operand_def(TensorType)
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        if not isinstance(type, TensorType):
            parser.raise_error("a tensor expected")
        return cls.create(
            operands=(parser.resolve_operand(operand, type),),
            result_types=(type.get_element_type(),),
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.src)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.src.type)

    def verify_(self) -> None:
        type = self.src.type
        if isinstance(type, TensorType) and type.get_element_type() != self.result.type:
            raise VerifyException("tt.unsplat: the result has the type of the operand's elements")


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    name = "tt.broadcast"
    src = operand_def(TensorType)
    result = result_def(TensorType)
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"
    traits = traits_def(Pure())


@irdl_op_definition
class ExpandDimsOp(IRDLOperation):
    name = "tt.expand_dims"
    src = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    result = result_def(TensorType)
    irdl_options = (PROPS,)
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"
    traits = traits_def(Pure())


@irdl_op_definition
class ReshapeOp(IRDLOperation):
    name = "tt.reshape"
    src = operand_def(TensorType)
    allow_reorder = opt_prop_def(UnitAttr)
    efficient_layout = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    assembly_format = (
        "$src (`allow_reorder` $allow_reorder^)? (`efficient_layout` $efficient_layout^)?"
        " attr-dict `:` type($src) `->` type($result)"
    )
    traits = traits_def(Pure())


@irdl_op_definition
class TransOp(IRDLOperation):
    name = "tt.trans"
    src = operand_def(TensorType)
    order = prop_def(DenseArrayBase)
    result = result_def(TensorType)
    irdl_options = (PROPS,)
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"
    traits = traits_def(Pure())


@irdl_op_definition
class CatOp(IRDLOperation):
    name = "tt.cat"
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def()
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"
    traits = traits_def(Pure())


@irdl_op_definition
class JoinOp(IRDLOperation):
    name = "tt.join"
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def()
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"
    traits = traits_def(Pure())


@irdl_op_definition
class SplitOp(IRDLOperation):
    name = "tt.split"
    src = operand_def(TensorType)
    outLHS = result_def(T)
    outRHS = result_def(T)
    assembly_format = "$src attr-dict `:` type($src) `->` type($outLHS)"
    traits = traits_def(Pure())


@irdl_op_definition
class GatherOp(IRDLOperation):
    name = "tt.gather"
    src = operand_def(TensorType)
    indices = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    efficient_layout = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    irdl_options = (PROPS,)
    assembly_format = "$src `[` $indices `]` attr-dict `:` functional-type(operands, results)"
    traits = traits_def(Pure())


@irdl_op_definition
class BitcastOp(_UnaryOp):
    name = "tt.bitcast"


@irdl_op_definition
class IntToPtrOp(_UnaryOp):
    name = "tt.int_to_ptr"


@irdl_op_definition
class PtrToIntOp(_UnaryOp):
    name = "tt.ptr_to_int"


@irdl_op_definition
class FpToFpOp(IRDLOperation):
    name = "tt.fp_to_fp"
    src = operand_def()
    rounding = opt_prop_def(IntegerAttr)
    result = result_def()
    assembly_format = (
        "$src (`,` `rounding` `=` custom<Keyword>($rounding)^)? attr-dict `:` type($src) `->` type($result)"
    )
    custom_directives = (Keyword,)
    traits = traits_def(Pure())


# Arithmetic that `arith` and `math` lack


@irdl_op_definition
class AddPtrOp(IRDLOperation):
    name = "tt.addptr"
    ptr = operand_def(T)
    offset = operand_def()
    result = result_def(T)
    assembly_format = "$ptr `,` $offset attr-dict `:` type($result) `,` type($offset)"
    traits = traits_def(Pure())


class _BinaryOp(IRDLOperation):
    x = operand_def(T)
    y = operand_def(T)
    result = result_def(T)
    assembly_format = "$x `,` $y attr-dict `:` type($x)"
    traits = traits_def(Pure())


@irdl_op_definition
class MulhiUIOp(_BinaryOp):
    name = "tt.mulhiui"


@irdl_op_definition
class PreciseDivFOp(_BinaryOp):
    name = "tt.precise_divf"


@irdl_op_definition
class ApproxDivFOp(_BinaryOp):
    name = "tt.approx_divf"


@irdl_op_definition
class PreciseSqrtOp(IRDLOperation):
    name = "tt.precise_sqrt"
    x = operand_def(T)
    result = result_def(T)
    assembly_format = "$x attr-dict `:` type($x)"
    traits = traits_def(Pure())


@irdl_op_definition
class ClampFOp(IRDLOperation):
    name = "tt.clampf"
    x = operand_def(T)
    min = operand_def(T)
    max = operand_def(T)
    propagateNan = prop_def(IntegerAttr)
    result = result_def(T)
    assembly_format = (
        "$x `,` $min `,` $max `,` `propagateNan` `=` custom<Keyword>($propagateNan) attr-dict `:` type($result)"
    )
    custom_directives = (Keyword,)
    traits = traits_def(Pure())


@irdl_op_definition
class DotOp(IRDLOperation):
    name = "tt.dot"
    a = operand_def()
    b = operand_def()
    c = operand_def(T)
    inputPrecision = opt_prop_def(IntegerAttr)
    maxNumImpreciseAcc = opt_prop_def(IntegerAttr)
    d = result_def(T)
    irdl_options = (PROPS,)
    assembly_format = (
        "$a `,` $b `,` $c (`,` `inputPrecision` `=` custom<Keyword>($inputPrecision)^)?"
        " attr-dict `:` type($a) `*` type($b) `->` type($d)"
    )
    custom_directives = (Keyword,)
    traits = traits_def(Pure())


@irdl_op_definition
class DotScaledOp(IRDLOperation):
    name = "tt.dot_scaled"
    a = operand_def()
    b = operand_def()
    c = operand_def(T)
    a_scale = opt_operand_def()
    b_scale = opt_operand_def()
    a_elem_type = prop_def(IntegerAttr)
    b_elem_type = prop_def(IntegerAttr)
    fastMath = opt_prop_def()
    lhs_k_pack = opt_prop_def()
    rhs_k_pack = opt_prop_def()
    d = result_def(T)
    irdl_options = (PROPS, AttrSizedOperandSegments(as_property=True))
    assembly_format = (
        "$a (`scale` $a_scale^)? `,` $b (`scale` $b_scale^)? `,` $c"
        " `lhs` `=` custom<Keyword>($a_elem_type) `rhs` `=` custom<Keyword>($b_elem_type)"
        " attr-dict `:` type($a) (`,` type($a_scale)^)? `*` type($b) (`,` type($b_scale)^)? `->` type($d)"
    )
    custom_directives = (Keyword,)
    traits = traits_def(Pure())


@irdl_op_definition
class HistogramOp(IRDLOperation):
    name = "tt.histogram"
    src = operand_def(TensorType)
    mask = opt_operand_def()
    result = result_def(TensorType)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        parser.parse_punctuation("->")
        types = (type, i1_like(type))[: len(unresolved)]
        return cls.create(
            operands=parser.resolve_operands(unresolved, types, parser.pos),
            result_types=(parser.parse_type(),),
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.src.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)


# Memory


def pointee_of(type: Attribute) -> Attribute:
    """What a pointer, or each pointer of a tensor, points to."""
    if isinstance(type, TensorType):
        pointer = type.element_type
        return TensorType(pointee_of(pointer), type.get_shape(), type.encoding)
    if not isinstance(type, PointerType):
        raise VerifyException(f"pointer expected, found {type}")
    return type.pointee_type


class _MemoryOp(IRDLOperation):
    """Operands whose types all follow from the pointer's: `op %ptr, ... flags {...} : pointer type`."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        properties: dict[str, Attribute] = {}
        while (keyword := parser.parse_optional_keyword_in(_CACHE_KEYWORDS)) is not None:
            parser.parse_punctuation("=")
            name, table = _CACHE_KEYWORDS[keyword]
            properties[name] = parse_keyword(parser, table)
        attributes = parser.parse_optional_attr_dict()
        known = cls.get_irdl_definition().properties
        properties |= {name: attributes.pop(name) for name in list(attributes) if name in known}
        parser.parse_punctuation(":")
        position = parser.pos
        type = parser.parse_type()
        try:
            pointee = pointee_of(type)
        except VerifyException as error:
            parser.raise_error(str(error), position)
        types, results = cls.types_from(type, pointee)
        if len(unresolved) > len(types):
            parser.raise_error(f"{cls.name} takes {len(types)} operands at most")
        operands = parser.resolve_operands(unresolved, types[: len(unresolved)], position)
        properties |= cls.segments(len(unresolved))
        return cls.create(operands=operands, result_types=results, properties=properties, attributes=attributes)

    @classmethod
    def types_from(cls, pointer: Attribute, pointee: Attribute) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        """The types of all operands and of the results."""
        raise NotImplementedError

    @classmethod
    def segments(cls, count: int) -> dict[str, Attribute]:
        """The property that says which optional operands are there."""
        return {}

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        for keyword, (name, table) in _CACHE_KEYWORDS.items():
            word = keyword_of(table, self.properties.get(name))
            if word is not None and table[word] != 1:
                printer.print_string(f" {keyword} = {word}")
        shown = {name: attr for name, attr in self.properties.items() if name not in _NOT_SHOWN}
        if shown.get("isVolatile") == int_attr(0, 1):
            del shown["isVolatile"]
        printer.print_op_attributes({**shown, **self.attributes})
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)


_CACHE_KEYWORDS = {"cacheModifier": ("cache", CACHE_MODIFIERS), "evictionPolicy": ("evict", EVICTION_POLICIES)}
_NOT_SHOWN = ("cache", "evict", "operandSegmentSizes")


@irdl_op_definition
class LoadOp(_MemoryOp):
    name = "tt.load"
    ptr = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    boundaryCheck = opt_prop_def(DenseArrayBase)
    padding = opt_prop_def(IntegerAttr)
    cache = opt_prop_def(IntegerAttr)
    evict = opt_prop_def(IntegerAttr)
    cachePolicy = opt_prop_def(CachePolicyAttr)
    isVolatile = opt_prop_def()
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())

    @classmethod
    def types_from(cls, pointer: Attribute, pointee: Attribute) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        return (pointer, i1_like(pointee), pointee), (pointee,)

    @classmethod
    def segments(cls, count: int) -> dict[str, Attribute]:
        return {"operandSegmentSizes": _segments(1, count > 1, count > 2)}


@irdl_op_definition
class StoreOp(_MemoryOp):
    name = "tt.store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    boundaryCheck = opt_prop_def(DenseArrayBase)
    cache = opt_prop_def(IntegerAttr)
    evict = opt_prop_def(IntegerAttr)
    cachePolicy = opt_prop_def(CachePolicyAttr)
    traits = traits_def(MemoryWriteEffect())

    @classmethod
    def types_from(cls, pointer: Attribute, pointee: Attribute) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        return (pointer, pointee, i1_like(pointee)), ()


@lru_cache(maxsize=64)
def _segments(*sizes: int) -> DenseArrayBase:
    return DenseArrayBase.from_list(i32, [int(size) for size in sizes])


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    name = "tt.atomic_rmw"
    atomic_rmw_op = prop_def(IntegerAttr)
    ptr = operand_def()
    val = operand_def()
    mask = opt_operand_def()
    sem = prop_def(IntegerAttr)
    scope = prop_def(IntegerAttr)
    result = result_def()
    assembly_format = (
        "custom<Keyword>($atomic_rmw_op) `,` custom<Keyword>($sem) `,` custom<Keyword>($scope) `,`"
        " $ptr `,` $val (`,` $mask^)? attr-dict `:` functional-type(operands, $result)"
    )
    custom_directives = (Keyword,)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class AtomicCASOp(IRDLOperation):
    name = "tt.atomic_cas"
    ptr = operand_def()
    cmp = operand_def()
    val = operand_def()
    sem = prop_def(IntegerAttr)
    scope = prop_def(IntegerAttr)
    result = result_def()
    assembly_format = (
        "custom<Keyword>($sem) `,` custom<Keyword>($scope) `,` $ptr `,` $cmp `,` $val"
        " attr-dict `:` functional-type(operands, $result)"
    )
    custom_directives = (Keyword,)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class AtomicLoadOp(IRDLOperation):
    name = "tt.atomic_load"
    ptr = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    sem = prop_def(IntegerAttr)
    scope = prop_def(IntegerAttr)
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties = _parse_order(parser)
        unresolved = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        signature = parser.parse_function_type()
        count = len(unresolved)
        properties["operandSegmentSizes"] = _segments(1, count > 1, count > 2)
        return cls.create(
            operands=parser.resolve_operands(unresolved, signature.inputs.data, parser.pos),
            result_types=signature.outputs.data,
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        _print_order(printer, self)
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)


def _parse_order(parser: Parser) -> dict[str, Attribute]:
    """`sem, scope,`."""
    sem = parse_keyword(parser, MEM_SEMANTICS)
    parser.parse_punctuation(",")
    scope = parse_keyword(parser, MEM_SYNC_SCOPES)
    parser.parse_punctuation(",")
    return {"sem": sem, "scope": scope}


def _print_order(printer: Printer, op: IRDLOperation) -> None:
    sem = keyword_of(MEM_SEMANTICS, attribute_of(op, "sem"))
    scope = keyword_of(MEM_SYNC_SCOPES, attribute_of(op, "scope"))
    printer.print_string(f" {sem}, {scope}, ")


@irdl_op_definition
class AtomicStoreOp(_MemoryOp):
    name = "tt.atomic_store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    sem = prop_def(IntegerAttr)
    scope = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        order = _parse_order(parser)
        op = super().parse(parser)
        op.properties.update(order)
        return op

    @classmethod
    def types_from(cls, pointer: Attribute, pointee: Attribute) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        return (pointer, pointee, i1_like(pointee)), ()

    def print(self, printer: Printer) -> None:
        _print_order(printer, self)
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.ptr.type)


@irdl_op_definition
class AtomicPollOp(IRDLOperation):
    name = "tt.atomic_poll"
    ptr = operand_def()
    expected = operand_def()
    timeout = opt_operand_def(IntegerType(64))
    sem = prop_def(IntegerAttr)
    scope = prop_def(IntegerAttr)
    result = result_def()
    assembly_format = (
        "custom<Keyword>($sem) `,` custom<Keyword>($scope) `,` $ptr `,` $expected (`timeout` $timeout^)?"
        " attr-dict `:` type($ptr) `,` type($expected) `->` type($result)"
    )
    custom_directives = (Keyword,)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


# Tensor pointers (to 3.8) and tensor descriptors


def _parse_bare(parser: Parser, cls: type[PointerType] | type[TensorDescType]) -> Attribute:
    """A type, or only its parameters: `<f16>` for `!tt.ptr<f16>`."""
    if parser.lexer.input.at(parser.pos) != "<":
        return parser.parse_type()
    return cls.new(cls.parse_parameters(parser))


def _parse_bracketed(parser: Parser) -> list[UnresolvedOperand]:
    return list(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand))


def _print_bracketed(printer: Printer, operands: Sequence[SSAValue]) -> None:
    with printer.in_square_brackets():
        printer.print_list(operands, printer.print_ssa_value)


@irdl_op_definition
class MakeTensorPtrOp(IRDLOperation):
    name = "tt.make_tensor_ptr"
    base = operand_def()
    shape = var_operand_def(IntegerType(64))
    strides = var_operand_def(IntegerType(64))
    offsets = var_operand_def(IntegerType(32))
    order = prop_def(DenseArrayBase)
    result = result_def(PointerType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        base = parser.parse_unresolved_operand()
        groups: list[list[UnresolvedOperand]] = []
        for _ in range(3):
            parser.parse_punctuation(",")
            groups.append(_parse_bracketed(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = _parse_bare(parser, PointerType)
        pointee = type.pointee_type if isinstance(type, PointerType) else None
        if not isinstance(pointee, TensorType):
            parser.raise_error("a pointer to a tensor expected")
        types: list[Attribute] = [PointerType.of(pointee.element_type)]
        for group, width in zip(groups, (64, 64, 32), strict=True):
            types += [IntegerType(width)] * len(group)
        properties = {"operandSegmentSizes": _segments(1, *map(len, groups))}
        properties |= {"order": attributes.pop("order")} if "order" in attributes else {}
        return cls.create(
            operands=parser.resolve_operands([base, *chain.from_iterable(groups)], types, parser.pos),
            result_types=(type,),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.base)
        for group in (self.shape, self.strides, self.offsets):
            printer.print_string(", ")
            _print_bracketed(printer, group)
        printer.print_op_attributes({"order": self.order, **self.attributes})
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class AdvanceOp(IRDLOperation):
    name = "tt.advance"
    ptr = operand_def(T)
    offsets = var_operand_def(IntegerType(32))
    result = result_def(T)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        pointer = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        offsets = _parse_bracketed(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = _parse_bare(parser, PointerType)
        types = [type, *[IntegerType(32)] * len(offsets)]
        return cls.create(
            operands=parser.resolve_operands([pointer, *offsets], types, parser.pos),
            result_types=(type,),
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.ptr)
        printer.print_string(", ")
        _print_bracketed(printer, self.offsets)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class MakeTensorDescOp(IRDLOperation):
    name = "tt.make_tensor_descriptor"
    base = operand_def(PointerType)
    shape = var_operand_def(IntegerType(32))
    strides = var_operand_def(IntegerType(64))
    padding = opt_prop_def(IntegerAttr)
    result = result_def(TensorDescType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        base = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        shape = _parse_bracketed(parser)
        parser.parse_punctuation(",")
        strides = _parse_bracketed(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pointer = _parse_bare(parser, PointerType)
        parser.parse_punctuation(",")
        type = _parse_bare(parser, TensorDescType)
        types = [pointer, *[IntegerType(32)] * len(shape), *[IntegerType(64)] * len(strides)]
        properties: dict[str, Attribute] = {"operandSegmentSizes": _segments(1, len(shape), len(strides))}
        properties |= {"padding": attributes.pop("padding")} if "padding" in attributes else {}
        return cls.create(
            operands=parser.resolve_operands([base, *shape, *strides], types, parser.pos),
            result_types=(type,),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.base)
        for group in (self.shape, self.strides):
            printer.print_string(", ")
            _print_bracketed(printer, group)
        shown = {} if self.padding is None else {"padding": self.padding}
        printer.print_op_attributes({**shown, **self.attributes})
        printer.print_string(" : ")
        print_types(printer, (self.base.type, self.result.type))


@irdl_op_definition
class DescriptorLoadOp(IRDLOperation):
    name = "tt.descriptor_load"
    desc = operand_def(TensorDescType)
    indices = var_operand_def(IntegerType(32))
    cache = opt_prop_def(IntegerAttr)
    evict = opt_prop_def(IntegerAttr)
    cachePolicy = opt_prop_def(CachePolicyAttr)
    result = result_def()
    irdl_options = (PROPS,)
    assembly_format = (
        "$desc `[` $indices `]` custom<CacheFlags>($cache, $evict) attr-dict `:` type($desc) `->` type($result)"
    )
    custom_directives = (CacheFlags,)
    traits = traits_def(MemoryReadEffect())


@irdl_op_definition
class DescriptorStoreOp(IRDLOperation):
    name = "tt.descriptor_store"
    desc = operand_def(TensorDescType)
    indices = var_operand_def(IntegerType(32))
    src = operand_def()
    assembly_format = "$desc `[` $indices `]` `,` $src attr-dict `:` type($desc) `,` type($src)"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class DescriptorReduceOp(IRDLOperation):
    name = "tt.descriptor_reduce"
    kind = prop_def(IntegerAttr)
    desc = operand_def(TensorDescType)
    indices = var_operand_def(IntegerType(32))
    src = operand_def()
    assembly_format = (
        "custom<Keyword>($kind) `,` $desc `[` $indices `]` `,` $src attr-dict `:` type($desc) `,` type($src)"
    )
    custom_directives = (Keyword,)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class DescriptorGatherOp(IRDLOperation):
    name = "tt.descriptor_gather"
    desc = operand_def(TensorDescType)
    x_offsets = operand_def()
    y_offset = operand_def()
    result = result_def()
    assembly_format = "$desc `[` $x_offsets `,` $y_offset `]` attr-dict `:` functional-type(operands, results)"
    traits = traits_def(MemoryReadEffect())


@irdl_op_definition
class DescriptorScatterOp(IRDLOperation):
    name = "tt.descriptor_scatter"
    desc = operand_def(TensorDescType)
    x_offsets = operand_def()
    y_offset = operand_def()
    src = operand_def()
    assembly_format = "$desc `[` $x_offsets `,` $y_offset `]` `,` $src attr-dict `:` type(operands)"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


# Ops with a region: printed in the generic form, by Triton too


class _RegionOp(IRDLOperation):
    srcs = var_operand_def()
    result = var_result_def()
    combine = region_def()
    traits = traits_def(RecursiveMemoryEffect())


@irdl_op_definition
class ReduceOp(_RegionOp):
    name = "tt.reduce"
    axis = prop_def(IntegerAttr)
    reduction_ordering = opt_prop_def()


@irdl_op_definition
class ScanOp(_RegionOp):
    name = "tt.scan"
    axis = prop_def(IntegerAttr)
    reverse = prop_def(IntegerAttr)


@irdl_op_definition
class MapElementwiseOp(_RegionOp):
    name = "tt.map_elementwise"
    pack = prop_def(IntegerAttr)


class _RegionReturnOp(IRDLOperation):
    result = var_operand_def()
    assembly_format = "$result attr-dict `:` type($result)"
    traits = traits_def(Pure(), IsTerminator())


@irdl_op_definition
class ReduceReturnOp(_RegionReturnOp):
    name = "tt.reduce.return"


@irdl_op_definition
class ScanReturnOp(_RegionReturnOp):
    name = "tt.scan.return"


@irdl_op_definition
class MapElementwiseReturnOp(_RegionReturnOp):
    name = "tt.map_elementwise.return"
    assembly_format = "attr-dict ($result^ `:` type($result))?"


# Code from elsewhere, and output


class _IfPure(MemoryEffect):
    """No effect if the op's `pure` says so; else it may read and write."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        pure = op.properties.get("pure")
        if isinstance(pure, IntegerAttr) and pure.value.data:
            return set()
        return {EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)}


@irdl_op_definition
class ExternElementwiseOp(IRDLOperation):
    name = "tt.extern_elementwise"
    srcs = var_operand_def()
    libname = prop_def(StringAttr)
    libpath = prop_def(StringAttr)
    symbol = prop_def(StringAttr)
    pure = prop_def(IntegerAttr)
    result = result_def()
    irdl_options = (PROPS,)
    assembly_format = "operands attr-dict `:` functional-type(operands, $result)"
    traits = traits_def(_IfPure())


@irdl_op_definition
class ElementwiseInlineAsmOp(IRDLOperation):
    name = "tt.elementwise_inline_asm"
    asm_string = prop_def(StringAttr)
    constraints = prop_def(StringAttr)
    pure = prop_def(IntegerAttr)
    packed_element = prop_def(IntegerAttr)
    args = var_operand_def()
    result = var_result_def()
    irdl_options = (PROPS,)
    assembly_format = "$asm_string attr-dict ($args^ `:` type($args))? `->` type($result)"
    traits = traits_def(_IfPure())


@irdl_op_definition
class PrintOp(IRDLOperation):
    name = "tt.print"
    prefix = prop_def(StringAttr)
    hex = prop_def(IntegerAttr)
    isSigned = prop_def(DenseArrayBase)
    args = var_operand_def()
    irdl_options = (PROPS,)
    assembly_format = "$prefix attr-dict (`:` $args^ `:` type($args))?"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class AssertOp(IRDLOperation):
    name = "tt.assert"
    condition = operand_def()
    message = prop_def(StringAttr)
    assembly_format = "$condition `,` $message attr-dict `:` type($condition)"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class GridDependencyWaitOp(IRDLOperation):
    name = "tt.grid_dependency_wait"
    assembly_format = "attr-dict"


@irdl_op_definition
class GridDependencyLaunchDependentsOp(IRDLOperation):
    name = "tt.grid_dependency_launch_dependents"
    assembly_format = "attr-dict"


Tt = Dialect(
    "tt",
    [
        FuncOp, ReturnOp, CallOp, GetProgramIdOp, GetNumProgramsOp, MakeRangeOp, SplatOp, UnsplatOp, BroadcastOp,
        ExpandDimsOp, ReshapeOp, TransOp, CatOp, JoinOp, SplitOp, GatherOp, BitcastOp, IntToPtrOp, PtrToIntOp,
        FpToFpOp, AddPtrOp, MulhiUIOp, PreciseDivFOp, ApproxDivFOp, PreciseSqrtOp, ClampFOp, DotOp, DotScaledOp,
        HistogramOp, LoadOp, StoreOp, AtomicRMWOp, AtomicCASOp, AtomicLoadOp, AtomicStoreOp, AtomicPollOp,
        MakeTensorPtrOp, AdvanceOp, MakeTensorDescOp, DescriptorLoadOp, DescriptorStoreOp, DescriptorReduceOp,
        DescriptorGatherOp, DescriptorScatterOp, ReduceOp, ScanOp, MapElementwiseOp, ReduceReturnOp, ScanReturnOp,
        MapElementwiseReturnOp, ExternElementwiseOp, ElementwiseInlineAsmOp, PrintOp, AssertOp,
        GridDependencyWaitOp, GridDependencyLaunchDependentsOp,
    ],
    [PointerType, TensorDescType, CachePolicyAttr],
)  # fmt: skip
