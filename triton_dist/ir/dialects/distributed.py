# SPDX-License-Identifier: MIT
"""The `distributed` dialect: seven ops that say what a multi-device kernel does, and nothing of any vendor.

It knows Triton's types and depends on no back end's dialect; that is what lets it lower to all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects.builtin import (
    AnyFloat,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AttrConstraint,
    IRDLOperation,
    VarConstraint,
    VerificationContext,
    irdl_op_definition,
    irdl_to_attr_constraint,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import (
    ConditionallySpeculatable,
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoMemoryEffect,
    OpTrait,
    Pure,
)
from xdsl.utils.exceptions import VerifyException

from triton_dist.ir.dialects._syntax import int_attr, keyword_of, parse_keyword
from triton_dist.ir.dialects.tt import MEM_SEMANTICS, MEM_SYNC_SCOPES, PointerType, TensorDescType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from typing_extensions import Self
    from xdsl.parser import Parser
    from xdsl.printer import Printer

SIGNAL_OPS = {"SET": 1, "ADD": 2}
"""SET stores the value in the signal; ADD adds it to the signal's value."""
COMM_SCOPES = {"GPU": 1, "INTRA_NODE": 2, "INTER_NODE": 3}
"""How far the signal's PE is: this device, this node, any node."""


# Type constraints, by the names that Triton gives them


def is_integer(type: Attribute) -> bool:
    """TT_Int: a scalar integer without sign."""
    return isinstance(type, IntegerType)


def is_pointer(type: Attribute) -> bool:
    """TT_Ptr: a scalar pointer."""
    return isinstance(type, PointerType)


def _of_elements(type: Attribute, test: Any) -> bool:
    return test(type.get_element_type() if isinstance(type, TensorType) else type)


def is_integer_like(type: Attribute) -> bool:
    """TT_IntLike: an integer or a tensor of them."""
    return _of_elements(type, is_integer)


def is_pointer_like(type: Attribute) -> bool:
    """TT_PtrLike: a pointer or a tensor of them."""
    return _of_elements(type, is_pointer)


def is_value(type: Attribute) -> bool:
    """TT_Type or TT_TensorDescType: anything that a Triton value can be."""
    if isinstance(type, TensorDescType):
        return True
    return _of_elements(type, lambda element: isinstance(element, AnyFloat | IntegerType | PointerType))


class _TypeConstraint(AttrConstraint):
    """A type for which `test` is true."""

    def __init__(self, test: Any, what: str) -> None:
        self.test = test
        self.what = what

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        if not self.test(attr):
            raise VerifyException(f"{self.what} expected, found {attr}")

    def mapping_type_vars(self, type_var_mapping: Mapping[Any, Any]) -> AttrConstraint:
        return self


INT = _TypeConstraint(is_integer, "an integer")
INT_LIKE = _TypeConstraint(is_integer_like, "an integer or a tensor of integers")
PTR = _TypeConstraint(is_pointer, "a scalar pointer")
PTR_LIKE = _TypeConstraint(is_pointer_like, "a pointer or a tensor of pointers")
VALUE = _TypeConstraint(is_value, "a number, a pointer, a tensor of either, or a tensor descriptor")


# Traits


class Elementwise(OpTrait):
    """The op acts on each element of its tensors alone."""


class EffectsUnlessPure(MemoryEffect):
    """No effect if the op's `pure` is true, else it reads and writes."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        if _is_pure(op):
            return frozenset()
        return frozenset({EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)})


class SpeculatableIfPure(ConditionallySpeculatable):
    """The op may run where the program would not have run it, if its `pure` is true."""

    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        return _is_pure(op)


def _is_pure(op: Operation) -> bool:
    pure = op.properties.get("pure")
    return isinstance(pure, IntegerAttr) and pure.value.data != 0


def pointee(type: Attribute) -> Attribute | None:
    """What a pointer, or each pointer of a tensor, points to."""
    element = type.get_element_type() if isinstance(type, TensorType) else type
    return element.pointee_type if isinstance(element, PointerType) else None


def _verify_enum(op: IRDLOperation, name: str, table: Mapping[str, int]) -> None:
    if keyword_of(table, op.properties.get(name)) is None:
        known = ", ".join(f"{word} = {number}" for word, number in table.items())
        raise VerifyException(f"{op.name}: {name} is one of {known}")


@irdl_op_definition
class WaitOp(IRDLOperation):
    """Spin until each of `numBarriers` signals from `barrierPtr` on holds `waitValue`; the result is a token.

    It only reads, so a pass that erases dead code takes an unconsumed wait for dead: run none between raising and
    lowering (the carrier is impure and survives Triton's passes). What it leaves out: other comparisons than
    equality, and the distance between signals, which is the back end's (one element on the host and on GPUs, 64
    bytes on Ascend). A deadline is the back end's too.
    """

    name = "distributed.wait"
    barrierPtr = operand_def(PTR_LIKE)
    numBarriers = operand_def(INT_LIKE)
    waitValue = operand_def(INT)
    scope = prop_def(IntegerAttr, default_value=int_attr(MEM_SYNC_SCOPES["gpu"]))
    semantic = prop_def(IntegerAttr, default_value=int_attr(MEM_SEMANTICS["acquire"]))
    token = result_def(INT_LIKE)
    traits = traits_def(MemoryReadEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved = [parser.parse_unresolved_operand()]
        for _ in range(2):
            parser.parse_punctuation(",")
            unresolved.append(parser.parse_unresolved_operand())
        properties: dict[str, Attribute] = {"scope": int_attr(1), "semantic": int_attr(2)}
        if parser.parse_optional_punctuation(",") is not None:
            for name, table in (("scope", MEM_SYNC_SCOPES), ("semantic", MEM_SEMANTICS)):
                parser.parse_keyword(name)
                parser.parse_punctuation("=")
                properties[name] = parse_keyword(parser, table)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        parser.parse_punctuation("->")
        return cls.create(
            operands=parser.resolve_operands(unresolved, types, parser.pos),
            result_types=(parser.parse_type(),),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        scope, semantic = keyword_of(MEM_SYNC_SCOPES, self.scope), keyword_of(MEM_SEMANTICS, self.semantic)
        printer.print_string(f", scope = {scope} semantic = {semantic}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_attribute(self.token.type)

    def verify_(self) -> None:
        _verify_enum(self, "scope", MEM_SYNC_SCOPES)
        _verify_enum(self, "semantic", MEM_SEMANTICS)
        expected = pointee(self.barrierPtr.type)
        if self.waitValue.type != expected:
            raise VerifyException(
                f"distributed.wait: waitValue has the pointee's type, {expected}, not {self.waitValue.type}"
            )


@irdl_op_definition
class ConsumeTokenOp(IRDLOperation):
    """The first operand, made to depend on the wait that gave the token. An anchor in the IR: no effect, no code.

    What it leaves out: order by itself. What is loaded through the result comes after the wait; nothing else does.
    """

    name = "distributed.consume_token"
    T: ClassVar = VarConstraint("T", irdl_to_attr_constraint(VALUE))
    input = operand_def(T)
    token = operand_def(INT_LIKE)
    result = result_def(T)
    assembly_format = "$input `,` $token `,` attr-dict `:` type($input) `,` type($token) `->` type($result)"
    traits = traits_def(Elementwise(), NoMemoryEffect())


@irdl_op_definition
class GetRankOp(IRDLOperation):
    """The number of this PE. The world has one dimension; the axis is kept for those who give it more."""

    name = "distributed.get_rank"
    axis = operand_def(i32)
    result = result_def(i32)
    assembly_format = "$axis attr-dict `:` type($axis)"
    traits = traits_def(Pure())


@irdl_op_definition
class GetNumRanksOp(IRDLOperation):
    """The number of PEs along the axis."""

    name = "distributed.get_num_ranks"
    axis = operand_def(i32)
    result = result_def(i32)
    assembly_format = "$axis attr-dict `:` type($axis)"
    traits = traits_def(Pure())


@irdl_op_definition
class SymmAtOp(IRDLOperation):
    """The address on PE `rank` of what `symmAddr` is on this PE.

    It reads (the table of the PEs' bases). What it leaves out: whether that address can be loaded from; on GPUs it is
    null for a PE that has no direct path.
    """

    name = "distributed.symm_at"
    T: ClassVar = VarConstraint("T", irdl_to_attr_constraint(PTR))
    symmAddr = operand_def(T)
    rank = operand_def(i32)
    remoteAddr = result_def(T)
    assembly_format = "$symmAddr `,` $rank `,` attr-dict `:` type($symmAddr)"
    traits = traits_def(MemoryReadEffect())


@irdl_op_definition
class NotifyOp(IRDLOperation):
    """Update the signal at `sigAddr` on PE `rank`, after all that this program wrote before.

    What it leaves out: a signal's sign, which Triton's types do not have and which `sigUnsigned` keeps; and what a back
    end cannot do, which the front end refuses (Ascend adds to i32 signals only).
    """

    name = "distributed.notify"
    sigAddr = operand_def(PTR)
    signalVal = operand_def(i64)
    rank = operand_def(i32)
    sigOp = prop_def(IntegerAttr)
    commScope = prop_def(IntegerAttr)
    sigUnsigned = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def verify_(self) -> None:
        _verify_enum(self, "sigOp", SIGNAL_OPS)
        _verify_enum(self, "commScope", COMM_SCOPES)


@irdl_op_definition
class ExternCallOp(IRDLOperation):
    """A call of a function of the vendor's device library.

    What it leaves out: any check of the symbol and its types; the front end's table of the library has them.
    """

    name = "distributed.extern_call"
    srcs = var_operand_def()
    libname = prop_def(StringAttr)
    libpath = prop_def(StringAttr)
    symbol = prop_def(StringAttr)
    pure = prop_def(IntegerAttr)
    result = var_result_def()
    traits = traits_def(EffectsUnlessPure(), SpeculatableIfPure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved: Sequence[Any] = ()
        if parser.lexer.input.at(parser.pos) == "%":
            unresolved = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        signature = parser.parse_function_type()
        known = cls.get_irdl_definition().properties
        properties = {name: attributes.pop(name) for name in list(attributes) if name in known}
        return cls.create(
            operands=parser.resolve_operands(unresolved, signature.inputs.data, parser.pos),
            result_types=signature.outputs.data,
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        if self.srcs:
            printer.print_string(" ")
        printer.print_list(self.srcs, printer.print_ssa_value)
        printer.print_op_attributes({**self.properties, **self.attributes})
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)

    def verify_(self) -> None:
        for value in (*self.srcs, *self.result):
            _verify_value(self, value)
        if self.pure.type != IntegerType(1):
            raise VerifyException("distributed.extern_call: pure is true or false")


def _verify_value(op: IRDLOperation, value: SSAValue) -> None:
    if not is_value(value.type):
        raise VerifyException(f"{op.name}: {VALUE.what} expected, found {value.type}")


Distributed = Dialect(
    "distributed",
    [WaitOp, ConsumeTokenOp, GetRankOp, GetNumRanksOp, SymmAtOp, NotifyOp, ExternCallOp],
    [],
)
