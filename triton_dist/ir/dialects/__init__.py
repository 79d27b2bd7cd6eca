# SPDX-License-Identifier: MIT
"""The dialects of TTIR, one file each. Where xDSL has a dialect of the same name, ours takes its place: TTIR uses
ops on tensors, flags and forms that xDSL's definitions reject.

Each is imported when a context first needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.ir import Dialect

DIALECTS: dict[str, tuple[str, str]] = {
    "annotation": ("triton_dist.ir.dialects.annotation", "Annotation"),
    "arith": ("triton_dist.ir.dialects.arith", "Arith"),
    "cf": ("triton_dist.ir.dialects.cf", "Cf"),
    "distributed": ("triton_dist.ir.dialects.distributed", "Distributed"),
    "gpu": ("triton_dist.ir.dialects.gpu", "Gpu"),
    "hivm": ("triton_dist.ir.dialects.hivm", "Hivm"),
    "llvm": ("triton_dist.ir.dialects.llvm", "Llvm"),
    "math": ("triton_dist.ir.dialects.math", "Math"),
    "scf": ("triton_dist.ir.dialects.scf", "Scf"),
    "tensor": ("triton_dist.ir.dialects.tensor", "Tensor"),
    "tt": ("triton_dist.ir.dialects.tt", "Tt"),
    "ttg": ("triton_dist.ir.dialects.ttg", "Ttg"),
    "ub": ("triton_dist.ir.dialects.ub", "Ub"),
}
"""Dialect name -> module and object that define it."""


def factory(name: str) -> Callable[[], Dialect]:
    """A function that imports the dialect `name`."""
    module, attribute = DIALECTS[name]
    return lambda: getattr(import_module(module), attribute)
