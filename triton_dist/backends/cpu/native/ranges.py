# SPDX-License-Identifier: MIT
"""The memory that a launch was given, for the bounds-checked mode."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

EVERYTHING = (0, 2**64 - 1)
"""Of a pointer passed as a number: nobody knows what lies behind it."""
FAR = 1 << 16
"""Bytes from a tensor beyond which an address that was computed from something else is not taken to be meant for it."""


@dataclass(frozen=True)
class Span:
    """The memory behind one pointer argument."""

    name: str
    first: int
    last: int
    """Past the end."""
    size: int
    """Bytes of an element."""
    start: int
    """Where the argument's own first element lies (a view need not begin where its storage does)."""

    def describe(self, address: int) -> str:
        """How far an address outside is off."""
        if not self.start:
            offset = ctypes.c_int64(address).value // self.size
            return f"element {offset} of argument {self.name!r}, which is a tensor without elements"
        offset = (address - self.start) // self.size
        count = (self.last - self.start) // self.size
        side = "before the beginning" if address < self.first else "past the end"
        return f"element {offset} of argument {self.name!r}, {side} of its memory ({count} elements from its start)"


@dataclass(frozen=True)
class Ranges:
    """The memory behind the pointers passed, by the place of each among the kernel's arguments."""

    spans: dict[int, Span]
    table: Any

    @classmethod
    def of(cls, arguments: Sequence[tuple[str, str, Any]]) -> Ranges:
        """From (name, Triton type, value) of each of the kernel's arguments."""
        spans = {i: _span(n, v) for i, (n, t, v) in enumerate(arguments) if t[0] == "*" and v is not None}
        flat = [number for span in spans.values() for number in (span.first, span.last)]
        return cls(spans, (ctypes.c_uint64 * max(1, len(flat)))(*flat))

    def describe(self, address: int, argument: int | None) -> str:
        """An address outside, by the argument that the access goes by; by the nearest one if that is not known."""
        span = None if argument is None else self.spans.get(argument)
        if span is not None and not span.first <= address <= span.last - span.size:
            return span.describe(address)
        nearest = min(self.spans.values(), key=lambda s: _distance(address, s), default=None)
        if nearest is None or _distance(address, nearest) > FAR:
            return f"address {address:#x}, far from every tensor that was passed"
        return nearest.describe(address)


def _distance(address: int, span: Span) -> int:
    return max(span.first - address, address - span.last, 0)


def _span(name: str, value: Any) -> Span:
    if isinstance(value, int):
        return Span(name, *EVERYTHING, 1, value)
    start, size = value.data_ptr(), value.element_size() if hasattr(value, "element_size") else 1
    if hasattr(value, "untyped_storage"):
        storage = value.untyped_storage()
        return Span(name, storage.data_ptr(), storage.data_ptr() + storage.nbytes(), size, start)
    return Span(name, *EVERYTHING, size, start)
