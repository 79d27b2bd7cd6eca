# SPDX-License-Identifier: MIT
"""The `ub` dialect: values that are never read."""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, result_def, traits_def
from xdsl.traits import IsTerminator, Pure


@irdl_op_definition
class PoisonOp(IRDLOperation):
    name = "ub.poison"
    result = result_def()
    assembly_format = "attr-dict `:` type($result)"
    traits = traits_def(Pure())


@irdl_op_definition
class UnreachableOp(IRDLOperation):
    name = "ub.unreachable"
    assembly_format = "attr-dict"
    traits = traits_def(IsTerminator())


Ub = Dialect("ub", [PoisonOp, UnreachableOp], [])
