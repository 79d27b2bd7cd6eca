# SPDX-License-Identifier: MIT
"""Whether a module may need CUDA's libdevice, which Triton links as soon as any function is undefined.

A kernel that calls NVSHMEM has undefined functions. Reading libdevice takes tens of milliseconds for each variant of
it, and most need nothing of it. Those are told by what they consist of; any operation that is not known here counts as
one that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr

from triton_dist.backends.cuda import symbols

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

KEY = "libdevice"
"""Triton's name of it."""
PREFIX = "__nv_"
"""Of its functions. Triton's `libdevice` module calls them without a library's name."""
_DIALECTS = frozenset({"arith", "builtin", "cf", "scf"})
_CALLING = frozenset({"arith.remf"})
"""What is compiled to a call of libdevice, though its dialect is not."""
_TRITON = frozenset(
    f"tt.{name}"
    for name in (
        "addptr", "assert", "atomic_cas", "atomic_rmw", "bitcast", "broadcast", "call", "cat", "descriptor_load",
        "descriptor_store", "dot", "elementwise_inline_asm", "expand_dims", "func", "get_num_programs",
        "get_program_id", "int_to_ptr", "join", "load", "make_range", "make_tensor_descriptor", "ptr_to_int", "reduce",
        "reduce.return", "reshape", "return", "splat", "split", "store", "trans", "unsplat",
    )
)  # fmt: skip


def may_be_needed(module: ModuleOp) -> bool:
    return not all(_needs_nothing(op) for op in module.walk())


def _needs_nothing(op: Operation) -> bool:
    if op.name == "tt.extern_elementwise":
        library = op.properties.get("libname")
        # NVSHMEM's functions were looked through for what they call.
        return isinstance(library, StringAttr) and library.data in (symbols.VENDOR, symbols.WRAPPERS)
    if op.name in _CALLING:
        return False
    return op.name in _TRITON or op.name == "gpu.barrier" or op.name.split(".")[0] in _DIALECTS
