# SPDX-License-Identifier: MIT
"""A kernel's arguments: what Triton's signature makes of Python's values, one by one, and 8 bytes for each."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from triton_dist import errors


def _pointer(value: Any) -> int:
    if getattr(value, "is_cpu", False):
        return value.data_ptr()
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    device = getattr(value, "device", None)
    if device is not None and getattr(device, "type", "cpu") != "cpu":
        raise errors.WrongDevice(device=device)
    return value.data_ptr()


FORMATS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "fp32": ("f4x", float),
    "fp64": ("d", float),
    "fp16": ("e6x", float),
    "u64": ("Q", lambda v: int(v) & (2**64 - 1)),
}


def _bf16(value: Any) -> int:
    (bits,) = struct.unpack("<I", struct.pack("<f", float(value)))
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def slot(type_: str) -> tuple[str, Callable[[Any], Any]]:
    """struct format (8 bytes) and conversion of an argument of Triton's type name."""
    if type_.startswith("*"):
        return "Q", _pointer
    if type_ == "bf16":
        return "Q", _bf16
    return FORMATS.get(type_, ("q", int))


Argument = tuple[str, str, Any]
"""Name, Triton's type name, value."""


def is_descriptor(type_: Any) -> bool:
    return isinstance(type_, str) and type_.startswith("tensordesc")


def flatten(names: Iterable[str], signature: Iterable[Any], values: Iterable[Any]) -> list[Argument]:
    """The arguments of the compiled function: tuples taken apart, descriptors too, constants left out."""
    found: list[Argument] = []
    for name, type_, value in zip(names, signature, values, strict=True):
        if isinstance(type_, tuple):
            fields = getattr(value, "_fields", None)
            inner = [f"{name}.{f}" for f in fields] if fields else [f"{name}[{i}]" for i in range(len(type_))]
            found += flatten(inner, type_, tuple(value))
        elif is_descriptor(type_):
            found += _descriptor(name, type_, value)
        elif type_ != "constexpr":
            found.append((name, type_, value))
    return found


def _descriptor(name: str, type_: str, value: Any) -> list[Argument]:
    """As Triton's pass that turns descriptors into pointers wants them: shape and strides come twice."""
    element = type_[type_.index("<") + 1 : type_.index("[")]
    flags = [value.padding == "nan"]
    if hasattr(value, "round_f32_to_tf32"):
        flags.append(value.round_f32_to_tf32)
    sizes = [*value.shape, *value.strides]
    numbers = [("i64", n) for n in sizes] + [("i1", f) for f in flags] + [("i64", n) for n in sizes]
    return [(name, f"*{element}", value.base), *((name, t, n) for t, n in numbers)]


def _rounded(form: str, convert: Callable[[Any], Any], value: Any) -> bytes:
    """One slot; a float that is too large for its type becomes infinity, as a conversion on a device makes it."""
    try:
        return struct.pack("<" + form, convert(value))
    except OverflowError:
        if not isinstance(value, float):
            raise
        return struct.pack("<" + form, convert(math.copysign(math.inf, value)))


class Packer:
    """Arguments of one signature into the slots that the kernel reads."""

    def __init__(self, names: Sequence[str], signature: Sequence[Any]) -> None:
        self.names, self.signature = names, signature
        self._flat: Any = None
        if not any(isinstance(t, tuple) or is_descriptor(t) for t in signature):
            used = [(i, *slot(t)) for i, t in enumerate(signature) if t != "constexpr"]
            self._flat = (struct.Struct("<" + "".join(f for _, f, _ in used)), [(i, c) for i, _, c in used])

    def __call__(self, args: Sequence[Any]) -> bytes:
        try:
            if self._flat is not None:
                packer, used = self._flat
                return packer.pack(*[convert(args[i]) for i, convert in used])
            slots = [(slot(t), v) for _, t, v in self.flatten(args)]
            return struct.pack("<" + "".join(f for (f, _), _ in slots), *[c(v) for (_, c), v in slots])
        except OverflowError:
            return b"".join(_rounded(*slot(t), v) for _, t, v in self.flatten(args))

    def flatten(self, args: Sequence[Any]) -> list[Argument]:
        return flatten(self.names, self.signature, args)
