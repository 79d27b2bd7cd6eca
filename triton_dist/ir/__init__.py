# SPDX-License-Identifier: MIT
"""The intermediate representation: TTIR and `distributed` in xDSL.

xDSL is imported by the first call, not by importing this package.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from triton_dist.forks import PARSING, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from xdsl.context import Context
    from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
    from xdsl.ir import Attribute, Operation

    from triton_dist.ir.locations import SourceLocation

__all__ = ["context", "dense_splat", "dense_values", "location", "parse", "print_module", "run_passes"]

_shared: list[Context] = []
_lock = guarded(PARSING, threading.RLock())
"""A context loads dialects when they are first met, and that is not safe between threads (PEs may be threads)."""


def context() -> Context:
    """A context that knows all our dialects."""
    from triton_dist.ir.registry import context as new_context

    return new_context()


def _context() -> Context:
    """The context that `parse` uses: dialects loaded once stay loaded."""
    if not _shared:
        _shared.append(context())
    return _shared[0]


def parse(text: str, name: str = "<ttir>") -> ModuleOp:
    """The module that `text` says (TTIR as libtriton prints it), with its locations; `IRParseError` if it is none."""
    from triton_dist.ir.parser import parse_text

    with _lock:
        return parse_text(_context(), text, name)


def print_module(module: ModuleOp, debuginfo: bool = True) -> str:
    """Text that libtriton parses back, with locations unless `debuginfo` is false."""
    from triton_dist.ir.printer import print_text

    return print_text(module, debuginfo)


def run_passes(module: ModuleOp, names: Sequence[str], verify: bool = True) -> None:
    """Run the passes in order, in place. Without `verify`, whoever takes what they made must verify it."""
    from triton_dist.compiler.pipeline import run

    with _lock:
        run(_context(), module, names, verify)


def location(op: Operation) -> SourceLocation | None:
    """The innermost line of the kernel's own file that `op` stems from."""
    from triton_dist.ir.locations import location as find

    return find(op)


def dense_splat(attr: Attribute) -> int | float | None:
    """The value of a scalar constant or of a splat, exactly (i1 as 0 or 1); None if elements differ."""
    from triton_dist.ir.constants import dense_splat as find

    return find(attr)


def dense_values(attr: DenseIntOrFPElementsAttr) -> np.ndarray:
    """The elements of a dense constant as a numpy array; bf16 and f8 come as float32."""
    from triton_dist.ir.constants import dense_values as find

    return find(attr)
