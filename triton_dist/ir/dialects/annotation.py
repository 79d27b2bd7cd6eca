# SPDX-License-Identifier: MIT
"""The `annotation` dialect of Ascend's compiler: a mark on a value."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def

from triton_dist.ir.dialects._syntax import PROPS

WRITES = ArrayAttr([StringAttr("write")])


@irdl_op_definition
class MarkOp(IRDLOperation):
    """Says something about `src`, in attributes. What it leaves out: values that go with the keys."""

    name = "annotation.mark"
    src = operand_def()
    keys = opt_prop_def(ArrayAttr)
    effects = prop_def(ArrayAttr, default_value=WRITES)
    """What the mark counts as, so that no pass takes it for dead; only the generic form shows it."""
    irdl_options = (PROPS,)
    assembly_format = "$src attr-dict `:` type($src)"


Annotation = Dialect("annotation", [MarkOp], [])
