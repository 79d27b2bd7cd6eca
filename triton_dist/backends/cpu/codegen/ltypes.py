# SPDX-License-Identifier: MIT
"""Element types: how a TTIR scalar type lies in memory and in an LLVM register."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import llvmlite.ir as ir

I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
PTR = ir.PointerType()

Kind = Literal["int", "float", "ptr"]


@dataclass(frozen=True, eq=False)
class Elem:
    """A scalar type. `reg` is its type in LLVM registers, `mem` in memory (they differ for i1)."""

    name: str
    kind: Kind
    bits: int
    reg: Any
    mem: Any
    pointee: Elem | None = None

    @property
    def size(self) -> int:
        """Bytes an element takes in memory."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_small_float(self) -> bool:
        """Computed in fp32: no x86 unit (before AVX512-FP16) adds these."""
        return self.kind == "float" and self.bits < 32


# bf16 and fp8 have no LLVM type in llvmlite: they live in integers of their width.
_FLOATS: dict[str, tuple[int, ir.Type]] = {
    "f16": (16, F16),
    "bf16": (16, I16),
    "f32": (32, F32),
    "f64": (64, F64),
    "f8E4M3FN": (8, I8),
    "f8E5M2": (8, I8),
    "f8E4M3FNUZ": (8, I8),
    "f8E5M2FNUZ": (8, I8),
    "f8E4M3B11FNUZ": (8, I8),
    "f8E4M3": (8, I8),
}

_cache: dict[str, Elem] = {}


def _make(name: str) -> Elem:
    if name in _FLOATS:
        bits, reg = _FLOATS[name]
        return Elem(name, "float", bits, reg, reg)
    if name[0] == "i" and name[1:].isdigit():
        bits = int(name[1:])
        return Elem(name, "int", bits, ir.IntType(bits), ir.IntType(max(bits, 8)))
    if name == "index":
        return Elem(name, "int", 64, I64, I64)
    raise KeyError(name)


def named(name: str) -> Elem:
    """The element type with MLIR's spelling `name`; KeyError if the engine has none."""
    if name not in _cache:
        _cache[name] = _make(name)
    return _cache[name]


def elem_of(type_: Any) -> Elem:
    """The element type of an xDSL scalar or tensor type."""
    inner = getattr(type_, "element_type", None)
    if inner is not None and type_.name == "tensor":
        return elem_of(inner)
    if type_.name == "tt.ptr":
        pointee = _pointee(type_.pointee_type)
        key = f"ptr<{pointee.name if pointee else '?'}>"
        if key not in _cache:
            _cache[key] = Elem(key, "ptr", 64, I64, I64, pointee)
        return _cache[key]
    if type_.name == "integer_type":
        return named(f"i{type_.width.data}")
    return named(type_.name)


def _pointee(type_: Any) -> Elem | None:
    return None if type_.name == "tensor" else elem_of(type_)


def tensor_shape(type_: Any) -> tuple[int, ...]:
    """The shape of a type known to be a tensor's."""
    return tuple(type_.get_shape())


def shape_of(type_: Any) -> tuple[int, ...] | None:
    """The shape of a tensor type; None for a scalar."""
    return tuple(type_.get_shape()) if type_.name == "tensor" else None
