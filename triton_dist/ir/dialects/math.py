# SPDX-License-Identifier: MIT
"""The `math` dialect: functions of one to three operands, all of the result's type."""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, result_def, traits_def
from xdsl.traits import Pure

from triton_dist.ir.dialects.arith import FastMathFlagsAttr, FloatBinaryOp, _SameTypeOp


class FloatUnaryOp(_SameTypeOp):
    operand = operand_def()
    result = result_def()
    fastmath = opt_prop_def(FastMathFlagsAttr)
    traits = traits_def(Pure())
    FLAG: ClassVar = ("fastmath", "fastmath", FastMathFlagsAttr)


class IntegerUnaryOp(_SameTypeOp):
    operand = operand_def()
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class FmaOp(_SameTypeOp):
    name = "math.fma"
    a = operand_def()
    b = operand_def()
    c = operand_def()
    result = result_def()
    fastmath = opt_prop_def(FastMathFlagsAttr)
    traits = traits_def(Pure())
    FLAG: ClassVar = ("fastmath", "fastmath", FastMathFlagsAttr)


def _define(base: type[_SameTypeOp], mnemonic: str) -> type[IRDLOperation]:
    """The op `math.<mnemonic>`: these differ in nothing but the name."""
    body = {"name": f"math.{mnemonic}", "__module__": __name__, "__doc__": f"`math.{mnemonic}`."}
    return irdl_op_definition(type(f"{mnemonic.capitalize()}Op", (base,), body))


_FLOAT_UNARY = (
    "absf acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor log log10 log1p log2"
    " round roundeven rsqrt sin sinh sqrt tan tanh trunc"
)
_INTEGER_UNARY = "absi ctlz ctpop cttz"
_FLOAT_BINARY = "atan2 copysign powf"

Math = Dialect(
    "math",
    [
        FmaOp,
        *(_define(FloatUnaryOp, mnemonic) for mnemonic in _FLOAT_UNARY.split()),
        *(_define(IntegerUnaryOp, mnemonic) for mnemonic in _INTEGER_UNARY.split()),
        *(_define(FloatBinaryOp, mnemonic) for mnemonic in _FLOAT_BINARY.split()),
    ],
    [],
)
