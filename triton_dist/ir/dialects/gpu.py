# SPDX-License-Identifier: MIT
"""The one op of `gpu` that TTIR has: the barrier of `tl.debug_barrier`."""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition


@irdl_op_definition
class BarrierOp(IRDLOperation):
    name = "gpu.barrier"
    assembly_format = "attr-dict"


Gpu = Dialect("gpu", [BarrierOp], [])
