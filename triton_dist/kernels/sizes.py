# SPDX-License-Identifier: MIT
"""Numbers that an operation is made with."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

from triton_dist.errors import ArgumentError


def check_counts(op: str, least: int = 1, **numbers: int) -> None:
    """Raise unless they are whole numbers of `least` or more."""
    for name, number in numbers.items():
        kind = "" if _is_whole(number) else "a whole number, "
        if kind or number < least:
            raise ArgumentError(op=op, detail=f"{name} is {number!r}; it must be {kind}{least} or more")


def check_blocks(op: str, **numbers: int) -> None:
    """Raise unless Triton has blocks of so many elements, or programs of so many warps."""
    for name, number in numbers.items():
        if not _is_whole(number) or number < 1 or number & (number - 1):
            raise ArgumentError(op=op, detail=f"{name} is {number!r}; it must be a power of two")


def check_tile(op: str, blocks: tuple[int, int, int]) -> None:
    """Raise unless a product can be cut like that."""
    if not isinstance(blocks, tuple | list) or len(blocks) != 3:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(op=op, detail=f"blocks is {blocks!r}; it must be three numbers, for m, n and k")
    check_blocks(op, **{f"blocks[{i}]": block for i, block in enumerate(blocks)})


MOST_ELEMENTS = (1 << 31) - 1
"""Of what a kernel counts in 32 bits."""


def check_elements(op: str, more: int = 0, **sizes: int) -> None:
    """Raise unless each counts in 32 bits, and `more` elements beyond it. Before any memory is asked for."""
    for name, size in sizes.items():
        if size > MOST_ELEMENTS - more:
            detail = f"{name} has {size} elements; a call takes at most {MOST_ELEMENTS - more}, so make several"
            raise ArgumentError(op=op, detail=detail)


def whole(number: Any) -> int | None:
    """As Python's own, if it is a whole number of any type, numpy's say: kernels take no other."""
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        return None
    try:
        return operator.index(number)
    except TypeError:  # an array of several
        return None


def make_plain(made: Any) -> None:
    """The whole numbers of a (frozen) dataclass become Python's own."""
    for field in dataclasses.fields(made):
        number = whole(getattr(made, field.name))
        if number is not None:
            object.__setattr__(made, field.name, number)


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
