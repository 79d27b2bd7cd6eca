# SPDX-License-Identifier: MIT
"""The memory that a launch was given, for the bounds-checked mode."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

EVERYTHING = (0, 2**64 - 1)
"""Of a pointer passed as a number: nobody knows what lies behind it."""


@dataclass(frozen=True)
class Ranges:
    """Address ranges of the tensors passed, with the names of their arguments."""

    names: list[str]
    spans: list[tuple[int, int]]
    sizes: list[int]
    """Bytes of an element of each."""
    starts: list[int]
    """Where each argument's own first element lies (a view need not begin where its storage does)."""
    table: Any

    @classmethod
    def of(cls, pointers: Sequence[tuple[str, str, Any]]) -> Ranges:
        """From (argument name, Triton type, value) of each pointer argument."""
        found = [(name, *_span(value)) for name, _, value in pointers if value is not None]
        flat = [number for _, span, _, _ in found for number in span]
        table = (ctypes.c_uint64 * max(1, len(flat)))(*flat)
        return cls([f[0] for f in found], [f[1] for f in found], [f[2] for f in found], [f[3] for f in found], table)

    def describe(self, address: int) -> str:
        """The argument nearest to an address, and how far off it is."""
        if not self.names:
            return f"{address:#x}, and no tensor was passed"
        distance = [_distance(address, span) for span in self.spans]
        near = distance.index(min(distance))
        first, last = self.spans[near]
        size, start = self.sizes[near], self.starts[near]
        offset = (address - start) // size
        count = (last - start) // size
        side = "past the end" if address >= last - size + 1 else "before the beginning"
        del first
        return (
            f"element {offset} of argument {self.names[near]!r}, {side} of its memory ({count} elements from its start)"
        )


def _distance(address: int, span: tuple[int, int]) -> int:
    return max(span[0] - address, address - span[1], 0)


def _span(value: Any) -> tuple[tuple[int, int], int, int]:
    """(range, bytes of an element, first element's address) of a tensor or a number."""
    if isinstance(value, int):
        return EVERYTHING, 1, value
    start, size = value.data_ptr(), value.element_size() if hasattr(value, "element_size") else 1
    if hasattr(value, "untyped_storage"):
        storage = value.untyped_storage()
        return (storage.data_ptr(), storage.data_ptr() + storage.nbytes()), size, start
    return EVERYTHING, size, start
