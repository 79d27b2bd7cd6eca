# SPDX-License-Identifier: MIT
"""Element types, and what Triton's arithmetic gives for them, in numpy: written from the tables in docs/host_engine.md.

A bf16 lives in a float32 array whose numbers are all bf16 numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

Array = Any


@dataclass(frozen=True)
class Type:
    """An element type: its name in `tl` and in torch, and the numpy type that holds it."""

    name: str
    torch: torch.dtype
    numpy: Any
    kind: str
    bits: int

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        return self.kind in ("int", "uint")


def _type(name: str, kind: str, bits: int, numpy: Any, of_torch: str | None = None) -> Type:
    return Type(name, getattr(torch, of_torch or name), np.dtype(numpy), kind, bits)


BOOL = _type("int1", "bool", 1, bool, "bool")
INT8, INT16, INT32, INT64 = (_type(f"int{n}", "int", n, f"i{n // 8}") for n in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (_type(f"uint{n}", "uint", n, f"u{n // 8}") for n in (8, 16, 32, 64))
FP16, FP32, FP64 = (_type(f"float{n}", "float", n, f"f{n // 8}") for n in (16, 32, 64))
BF16 = _type("bfloat16", "float", 16, "f4")
INTEGERS = (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)
FLOATS = (FP16, BF16, FP32, FP64)
TYPES = (BOOL, *INTEGERS, *FLOATS)

FP8 = {"float8e4nv": (3, -6, 448.0), "float8e5": (2, -14, 57344.0)}
"""8-bit formats: bits of the mantissa, the smallest exponent, the largest number."""


def round_to(x: Array, mantissa: int, smallest: int) -> Array:
    """Doubles rounded to nearest even with so many bits behind the leading one; not bounded above."""
    x = np.asarray(x, np.float64)
    _, exponent = np.frexp(x)
    unit = np.maximum(exponent - 1, smallest) - mantissa
    finite = np.isfinite(x)
    units = np.rint(np.ldexp(np.where(finite, x, 0.0), np.where(finite, -unit, 0)))
    return np.where(finite, np.ldexp(units, np.where(finite, unit, 0)), x)


def to_bf16(x: Array) -> Array:
    rounded = round_to(x, 7, -126)
    # What is too large becomes infinity on the way to float32.
    return np.where(np.abs(rounded) >= 2.0**128, np.copysign(np.inf, rounded), rounded).astype(np.float32)


def through_fp8(x: Array, name: str) -> Array:
    """To an 8-bit float, saturating, and back."""
    mantissa, smallest, largest = FP8[name]
    rounded = round_to(np.asarray(x, np.float64), mantissa, smallest)
    return np.clip(rounded, -largest, largest)


def cast(x: Array, source: Type, target: Type) -> Array:
    """`x.to(target)`."""
    if source == target:
        return x
    if target is BOOL:
        return x != 0
    if target.is_int:
        return float_to_int(x, target) if source.is_float else x.astype(target.numpy)
    if source.is_int and target in (FP16, BF16):
        x = x.astype(np.float32)
    return to_bf16(x) if target is BF16 else np.asarray(x).astype(target.numpy)


def float_to_int(x: Array, target: Type) -> Array:
    """Toward zero, saturating, NaN to 0."""
    info = np.iinfo(target.numpy)
    x = np.asarray(x, np.float64)
    low, high = float(info.min), float(info.max)
    inside = np.trunc(np.where(np.isnan(x) | (x >= high) | (x <= low), 0.0, x)).astype(target.numpy)
    inside = np.where(x >= high, info.max, inside)
    return np.where(x <= low, info.min, inside).astype(target.numpy)


def rounded(x: Array, type: Type) -> Array:
    """The result of an operation in a type's numpy type, as that type has it."""
    return to_bf16(x) if type is BF16 else np.asarray(x, type.numpy)


def divide(a: Array, b: Array, type: Type) -> Array:
    """`//` of integers: toward zero; by zero it is the dividend; INT_MIN // -1 is INT_MIN."""
    safe = np.where(b == 0, 1, b).astype(type.numpy)
    if type.kind == "uint":
        return np.asarray(a // safe, type.numpy)
    minus = safe == -1
    quotient = np.asarray(a // np.where(minus, 1, safe), type.numpy)
    rest = a - quotient * safe
    # numpy rounds down: up again where the signs differ and something is left.
    toward = quotient + ((rest != 0) & ((a < 0) != (safe < 0))).astype(type.numpy)
    return np.where(minus, np.negative(a), toward).astype(type.numpy)


def remainder(a: Array, b: Array, type: Type) -> Array:
    if type.is_float:
        return np.fmod(a, b)
    return np.where(b == 0, 0, a - divide(a, b, type) * b).astype(type.numpy)


def shift(a: Array, b: Array, type: Type, left: bool) -> Array:
    """By the width or more (a negative number is a large one): all bits are shifted out, the sign stays."""
    amount = b.astype(np.dtype(f"u{max(type.bits // 8, 1)}"))
    inside = amount < type.bits
    safe = np.where(inside, amount, 0).astype(type.numpy)
    out = np.where(a < 0, -1, 0) if type.kind == "int" and not left else 0
    return np.where(inside, a << safe if left else a >> safe, out).astype(type.numpy)


def bits_of(x: Array, source: Type, target: Type) -> Array:
    """`x.to(target, bitcast=True)` for types of one width."""
    x = np.array(x)
    raw = (x.view(np.uint32) >> 16).astype(np.uint16) if source is BF16 else x
    if target is BF16:
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return raw.view(target.numpy)


def upper_half(a: Array, b: Array, type: Type) -> Array:
    """`tl.umulhi`."""
    mask = 2**type.bits - 1
    wide = (np.asarray(a).astype(object) & mask) * (np.asarray(b).astype(object) & mask)
    return np.asarray((wide >> type.bits) & mask, dtype=object).astype(np.uint64).astype(type.numpy)


def tensor(x: Array, type: Type) -> torch.Tensor:
    """A torch tensor of these numbers."""
    return torch.from_numpy(np.array(x)).to(type.torch)


def array(x: torch.Tensor, type: Type) -> Array:
    """The numbers of a torch tensor."""
    return x.float().numpy() if type is BF16 else x.numpy()


SPECIAL = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.5, -1.5, 2.0, 65504.0, 3e38, 1e-40, 1e-7)


def data(type: Type, count: int, seed: int) -> Array:
    """Numbers that meet the edges: small ones, any bits, the ends of the type, special values."""
    random = np.random.default_rng(seed)
    if type is BOOL:
        return random.integers(0, 2, count).astype(bool)
    if type.is_int:
        info = np.iinfo(type.numpy)
        found = random.integers(info.min, info.max, count, dtype=type.numpy, endpoint=True)
        small = random.integers(max(-9, info.min), 10, count).astype(type.numpy)
        ends = random.choice(np.array([info.min, info.max, 0, 1], type.numpy), count)
        return np.where(random.random(count) < 0.6, small, np.where(random.random(count) < 0.3, ends, found))
    found = random.normal(0, 3, count)
    wide = found * 10.0 ** random.uniform(-12, 12, count)
    special = random.choice(np.array(SPECIAL), count)
    kind = random.random(count)
    with np.errstate(all="ignore"):
        return cast(np.where(kind < 0.6, found, np.where(kind < 0.8, wide, special)), FP64, type)
