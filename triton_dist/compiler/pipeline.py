# SPDX-License-Identifier: MIT
"""Passes by name: ours, and those that back ends bring."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from triton_dist import backends, knobs
from triton_dist.errors import PassError, TritonDistError, UnknownPass
from triton_dist.ir import print_module
from triton_dist.ir.transforms import PASSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass


@cache
def available() -> dict[str, str]:
    """All passes, name -> "module:Class": the shared ones and those of every back end that can be imported."""
    found = dict(PASSES)
    for backend in backends.names():
        try:
            brought = backends.get(backend).passes
        except TritonDistError:
            # A back end that is broken must not take the others' passes away; using it says what is wrong.
            continue
        found.update(brought)
    return found


def load(name: str) -> type[ModulePass]:
    """The pass of this name, imported; `UnknownPass` lists those there are."""
    target = PASSES.get(name) or available().get(name)
    if target is None:
        raise UnknownPass(name=name, valid=", ".join(sorted(available())))
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def run(ctx: Context, module: ModuleOp, names: Sequence[str], check: bool = True) -> None:
    """Run the passes in order, in place, and `check` the module at the end; after each if somebody looks on."""
    from xdsl.utils.exceptions import VerifyException

    from triton_dist.ir.verifier import verify

    watched = knobs.debug_ir
    for name in names:
        try:
            load(name)().apply(ctx, module)
            if watched or (check and name == names[-1]):
                verify(module)
        except VerifyException as error:
            raise PassError(name=name, detail=str(error)) from error
        if watched:
            print(f"// after {name}\n{print_module(module, debuginfo=False)}", file=sys.stderr)
