# SPDX-License-Identifier: MIT
"""The one op of `llvm` that TTIR has: `tl.assume`."""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def

from triton_dist.ir.dialects._syntax import I1


@irdl_op_definition
class AssumeOp(IRDLOperation):
    name = "llvm.intr.assume"
    cond = operand_def(I1)
    assembly_format = "$cond attr-dict `:` type($cond)"


Llvm = Dialect("llvm", [AssumeOp], [])
