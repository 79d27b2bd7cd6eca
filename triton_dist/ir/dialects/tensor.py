# SPDX-License-Identifier: MIT
"""The one op of the `tensor` dialect that TTIR for Ascend holds: a destination without contents."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class EmptyOp(IRDLOperation):
    """A tensor to be written. Its shape is known, as all shapes in TTIR are."""

    name = "tensor.empty"
    tensor = result_def(TensorType)
    assembly_format = "`(` `)` attr-dict `:` type($tensor)"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        type = self.tensor.type
        if isinstance(type, TensorType) and not type.has_static_shape():
            raise VerifyException("tensor.empty: a shape that is known is expected")


Tensor = Dialect("tensor", [EmptyOp], [])
