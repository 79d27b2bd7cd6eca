# SPDX-License-Identifier: MIT
"""The context that knows our dialects; each is imported when its first op is parsed."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin

from triton_dist.ir.dialects import DIALECTS, factory
from triton_dist.ir.seen import Texts


class TritonContext(Context):
    """A context that remembers what it parsed."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = Texts()


def context() -> TritonContext:
    """A context with `builtin` and every dialect of `triton_dist.ir.dialects`."""
    ctx = TritonContext()
    ctx.load_dialect(Builtin)
    for name in DIALECTS:
        ctx.register_dialect(name, factory(name))
    return ctx
