# SPDX-License-Identifier: MIT
"""The context that knows our dialects; each is imported when its first op is parsed."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin

from triton_dist.ir.dialects import DIALECTS, factory


def context() -> Context:
    """A context with `builtin` and every dialect of `triton_dist.ir.dialects`."""
    ctx = Context()
    ctx.load_dialect(Builtin)
    for name in DIALECTS:
        ctx.register_dialect(name, factory(name))
    return ctx
