# SPDX-License-Identifier: MIT
"""Dense constants, exactly: bit patterns of floats, and splats that are never expanded element by element."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)

if TYPE_CHECKING:
    import numpy as np
    from xdsl.ir import Attribute


MOST_ELEMENTS = 1 << 26
"""Of a constant; it is held in memory. Triton's own limit for a tensor is lower."""


def _element_bytes(element: Any, literal: str) -> bytes:
    """The bytes of one element that the text `literal` stands for."""
    size: int = element.compile_time_size
    if isinstance(element, AnyFloat):
        if literal.lower().startswith("0x"):
            return int(literal, 16).to_bytes(size, "little")
        return element.pack((float(literal),))
    if literal in ("true", "false"):
        return int(literal == "true").to_bytes(size, "little")
    value = int(literal, 0)
    if isinstance(element, IntegerType):
        value = element.get_normalized_value(value)
        if value is None:
            raise ValueError(f"{literal} does not fit {element}")
        # A true i1 is -1 for xDSL; its bytes are still one.
        value &= (1 << element.width.data) - 1 if element.width.data == 1 else -1
    return value.to_bytes(size, "little", signed=value < 0)


def dense_from_literals(type: Any, literals: list[str], shape: list[int]) -> DenseIntOrFPElementsAttr:
    """The attribute `dense<...> : type`, from its literals; an empty `shape` is a splat."""
    expected = list(type.get_shape())
    if not literals and math.prod(expected):
        raise ValueError("at least one element expected")
    if literals and shape and shape != expected:
        raise ValueError(f"shape {expected} expected, found {shape}")
    if math.prod(expected) > MOST_ELEMENTS:
        raise ValueError(f"a constant of more than {MOST_ELEMENTS} elements")
    data = b"".join(_element_bytes(type.element_type, literal) for literal in literals)
    if literals and not shape:
        data *= math.prod(expected)
    return DenseIntOrFPElementsAttr(type, BytesAttr(data))


def dense_from_hex(type: Any, text: str) -> DenseIntOrFPElementsAttr:
    """The attribute `dense<"0x..."> : type`: raw bytes of the elements, bits for i1."""
    data = bytes.fromhex(text[2:])
    count = math.prod(type.get_shape())
    if count > MOST_ELEMENTS:
        raise ValueError(f"a constant of more than {MOST_ELEMENTS} elements")
    size = type.element_type.compile_time_size
    if isinstance(type.element_type, IntegerType) and type.element_type.width.data == 1:
        if len(data) == 1 and data in (b"\xff", b"\x00"):
            data = (b"\x01" if data == b"\xff" else b"\x00") * count
        elif len(data) == -(-count // 8):
            data = bytes((data[i // 8] >> (i % 8)) & 1 for i in range(count))
    elif len(data) == size:
        data *= count
    if len(data) != count * size:
        raise ValueError(f"{count} elements expected, found {len(data) // size}")
    return DenseIntOrFPElementsAttr(type, BytesAttr(data))


def splat_bytes(attr: DenseIntOrFPElementsAttr) -> bytes | None:
    """The bytes of the one element that `attr` repeats, or None."""
    data = attr.data.data
    size = attr.type.element_type.compile_time_size
    if not data:
        return None
    # Equal to itself shifted by one element means that all elements are equal, at the speed of memcmp.
    return data[:size] if data[size:] == data[:-size] else None


def dense_splat(attr: Attribute) -> int | float | None:
    """The value of a scalar constant or of a splat, exactly; None if elements differ.

    Integers come as signed, i1 as 0 or 1.
    """
    if isinstance(attr, IntegerAttr):
        return abs(attr.value.data) if attr.type == IntegerType(1) else attr.value.data
    if isinstance(attr, FloatAttr):
        return attr.value.data
    if isinstance(attr, DenseIntOrFPElementsAttr):
        element = splat_bytes(attr)
        if element is None:
            return None
        value = cast("int | float", attr.type.element_type.unpack(element, 1)[0])
        return abs(value) if attr.type.element_type == IntegerType(1) else value
    return None


_NUMPY = {"f16": "<f2", "f32": "<f4", "f64": "<f8"}


def dense_values(attr: DenseIntOrFPElementsAttr) -> np.ndarray:
    """The elements as a numpy array of the tensor's shape; types that numpy lacks (bf16, f8) come as float32."""
    import numpy as np

    element = attr.type.element_type
    shape = tuple(attr.get_shape())
    if isinstance(element, IntegerType):
        values = np.frombuffer(attr.data.data, f"<i{element.compile_time_size}")
        return values.astype(bool).reshape(shape) if element.width.data == 1 else values.reshape(shape)
    if (code := _NUMPY.get(element.name)) is not None:
        return np.frombuffer(attr.data.data, code).reshape(shape)
    return np.array(element.unpack(attr.data.data, len(attr)), dtype=np.float32).reshape(shape)


def float_literal(value: float, type: AnyFloat) -> str:
    """Text that MLIR reads back as exactly `value`: decimal when short and exact, else the bit pattern."""
    if math.isfinite(value):
        mantissa, exponent = f"{value:.6e}".split("e")
        short = f"{mantissa}e{exponent}"
        if type.unpack(type.pack((float(short),)), 1)[0] == value:
            return short
    return float_hex(type.pack((value,)))


def float_hex(raw: bytes) -> str:
    return f"0x{raw[::-1].hex().upper()}"


def element_literal(element: Any, raw: bytes) -> str:
    """Text of one element of a dense constant, from its bytes."""
    value = element.unpack(raw, 1)[0]
    if isinstance(element, AnyFloat):
        # Not all bit patterns survive a Python float: the payload of a NaN does not.
        return float_literal(value, element) if math.isfinite(value) else float_hex(raw)
    if isinstance(element, IntegerType) and element.width.data == 1:
        return "true" if value else "false"
    return str(value)
