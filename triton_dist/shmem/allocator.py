# SPDX-License-Identifier: MIT
"""Offsets in a symmetric heap. Deterministic: the same calls give the same offsets on every PE."""

from __future__ import annotations

from bisect import bisect_left, insort

ALIGNMENT = 64
"""The least alignment of an allocation, a cache line: two tensors never share one."""


class Allocator:
    """First fit over a sorted list of free ranges, which join with their neighbours when a range comes back.

    First fit by lowest offset keeps the heap's used part short, and depends on nothing but the sequence of calls.
    """

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = _up(start, ALIGNMENT), end // ALIGNMENT * ALIGNMENT
        self._free: list[tuple[int, int]] = [(self.start, self.end)] if self.start < self.end else []
        self._used: dict[int, int] = {}

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> int | None:
        """The offset of a new range of at least `nbytes` (and at least one byte), or None if there is none."""
        if nbytes < 0 or alignment <= 0 or alignment & (alignment - 1):
            raise ValueError(f"bad allocation: {nbytes} bytes, aligned to {alignment}")
        size, alignment = self.rounded(nbytes), max(alignment, ALIGNMENT)
        for index, (begin, end) in enumerate(self._free):
            offset = _up(begin, alignment)
            if offset + size <= end:
                rest = [(begin, offset), (offset + size, end)]
                self._free[index : index + 1] = [(a, b) for a, b in rest if a < b]
                self._used[offset] = size
                return offset
        return None

    def free(self, offset: int) -> None:
        """Give a range back; raises KeyError if none starts there."""
        begin, end = offset, offset + self._used.pop(offset)
        index = bisect_left(self._free, (begin, end))
        if index < len(self._free) and self._free[index][0] == end:
            end = self._free.pop(index)[1]
        if index > 0 and self._free[index - 1][1] == begin:
            begin = self._free.pop(index - 1)[0]
        insort(self._free, (begin, end))

    @staticmethod
    def rounded(nbytes: int) -> int:
        """What an allocation of `nbytes` takes of the heap."""
        return _up(max(nbytes, 1), ALIGNMENT)

    @property
    def capacity(self) -> int:
        return max(self.end - self.start, 0)

    @property
    def free_bytes(self) -> int:
        return sum(end - begin for begin, end in self._free)

    @property
    def largest_free(self) -> int:
        return max((end - begin for begin, end in self._free), default=0)

    @property
    def ranges(self) -> dict[int, int]:
        """Used ranges: offset -> size, sorted by offset."""
        return dict(sorted(self._used.items()))


def _up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment
