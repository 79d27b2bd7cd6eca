# SPDX-License-Identifier: MIT
"""A tensor descriptor that depends on a token.

A carrier cannot take a descriptor (Triton's verifier allows it numbers and pointers only). But what must come
after the wait is the descriptor's loads, and a load depends on its offsets: so the token goes into one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton.language as tl

from triton_dist.language import checks
from triton_dist.language.builtin import builtin, op_builder

_Type: Any = getattr(tl.core, "tensor_descriptor_type", object)
"""Triton before 3.4 (triton-ascend) makes no descriptors, and has no type for them."""


class ConsumedDescriptor(tl.tensor_descriptor):
    """`dl.consume_token(descriptor, token)`: the same descriptor, whose loads depend on the token."""

    def __init__(self, descriptor: Any, token: tl.tensor) -> None:
        super().__init__(descriptor.handle, list(descriptor.shape), list(descriptor.strides), descriptor.block_type)
        self.token = token
        self.type = _ConsumedType(self.type)

    @staticmethod
    def of(descriptor: Any, token: tl.tensor, semantic: Any) -> ConsumedDescriptor:
        """What depended on a token before, then depends on both."""
        if isinstance(descriptor, ConsumedDescriptor):
            builder = op_builder(semantic)
            both = builder.create_distributed_consume_token(token.handle, descriptor.token.handle)
            token = tl.tensor(both, tl.int32)
        return ConsumedDescriptor(descriptor, token)

    def _flatten_ir(self, handles: list[Any]) -> None:
        _plain(super()._flatten_ir)(handles)
        handles.append(self.token.handle)

    @builtin
    def load(self, offsets: Sequence[Any], _semantic: Any = None) -> tl.tensor:
        return _plain(super().load)(self._after_token("load", offsets, _semantic), _semantic=_semantic)

    @builtin
    def gather(self, *args: Any, _semantic: Any = None) -> tl.tensor:
        """`gather(x_offsets, y_offset)`."""
        return _plain(super().gather)(*self._after_token("gather", args, _semantic), _semantic=_semantic)

    def _after_token(self, op: str, offsets: Sequence[Any], semantic: Any) -> Sequence[Any]:
        if not offsets:  # Triton says what is missing
            return offsets
        *others, last = offsets
        offset = checks.offset(f"descriptor.{op}", last, semantic)
        handle = op_builder(semantic).create_distributed_consume_token(offset.handle, self.token.handle)
        return [*others, tl.tensor(handle, tl.int32)]


class _ConsumedType(_Type):
    """The token goes along into loops, branches and functions."""

    def __init__(self, type: Any) -> None:
        super().__init__(type.block_type, type.shape_type, type.strides_type)

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[ConsumedDescriptor, int]:
        descriptor, cursor = super()._unflatten_ir(handles, cursor)
        return ConsumedDescriptor(descriptor, tl.tensor(handles[cursor], tl.int32)), cursor + 1

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        super()._flatten_ir_types(builder, out)
        out.append(tl.int32.to_ir(builder))

    def __str__(self) -> str:
        """As Triton names it where a variable cannot be both: in branches."""
        return f"consumed {super().__str__()}"

    def mangle(self) -> str:
        """A function that is called with it is another one than that which is called with a plain descriptor."""
        return f"C{super().mangle()}"


def _plain(method: Any) -> Any:
    """A stock method, typed as a plain function."""
    return method
