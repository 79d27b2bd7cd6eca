# SPDX-License-Identifier: MIT
"""`tl.float8e4b15`, an element type that MLIR does not have: Triton leaves its conversions to the back end.

Four bits of exponent with a bias of 15, no infinity, no NaN: the bits of an fp16 below 2 without the upper bit of the
exponent. As in Triton's NVIDIA back end, a conversion goes by way of fp16 (fp32 by rounding toward zero), saturates at
1.75, and rounds halves up.
"""

from __future__ import annotations

from typing import Any

from triton.language import core

MOST = 0x3F00
"""1.75 as fp16."""


@core.builtin
def convert(arg: Any, dst_ty: Any, fp_downcast_rounding: str | None = None, _semantic: Any = None) -> Any:
    """`arg` as `dst_ty`, one of which is float8e4b15 and the other fp16 or fp32."""
    del fp_downcast_rounding
    if arg.type.scalar.is_fp8e4b15():
        return _widened(arg, _semantic).to(dst_ty.scalar, _semantic=_semantic)
    if arg.type.scalar.is_fp32():
        arg = arg.to(core.float16, fp_downcast_rounding="rtz", _semantic=_semantic)
    return _narrowed(arg, _semantic)


def _widened(arg: Any, semantic: Any) -> Any:
    bits = _bits(arg, core.uint8, semantic).to(core.uint16, _semantic=semantic)
    sign = semantic.shl(_and(bits, 0x80, semantic), _like(bits, 8, semantic))
    magnitude = semantic.shl(_and(bits, 0x7F, semantic), _like(bits, 7, semantic))
    return _bits(semantic.or_(sign, magnitude), core.float16, semantic)


def _narrowed(arg: Any, semantic: Any) -> Any:
    bits = _bits(arg, core.uint16, semantic)
    magnitude = _and(bits, 0x7FFF, semantic)
    most = _like(bits, MOST, semantic)
    magnitude = semantic.where(semantic.less_than(magnitude, most), magnitude, most)
    # Twice the number, and half of what is dropped, so that halves go up.
    doubled = semantic.add(semantic.shl(magnitude, _like(bits, 1, semantic)), _like(bits, 0x80, semantic), False)
    found = semantic.or_(_and(doubled, 0x7F00, semantic), _and(bits, 0x8000, semantic))
    upper = semantic.lshr(found, _like(bits, 8, semantic)).to(core.uint8, _semantic=semantic)
    return _bits(upper, core.float8e4b15, semantic)


def _bits(arg: Any, dtype: Any, semantic: Any) -> Any:
    return arg.to(dtype, bitcast=True, _semantic=semantic)


def _like(arg: Any, number: int, semantic: Any) -> Any:
    return semantic.full(arg.type.get_block_shapes() if arg.type.is_block() else [], number, arg.dtype)


def _and(arg: Any, number: int, semantic: Any) -> Any:
    return semantic.and_(arg, _like(arg, number, semantic))
