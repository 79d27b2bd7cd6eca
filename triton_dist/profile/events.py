# SPDX-License-Identifier: MIT
"""The record of one thing that a program did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["program", "wait", "notify"]


@dataclass(frozen=True)
class Event:
    """One interval of one program of a grid, on one PE. Times are of one clock that all PEs share."""

    pe: int
    program: int
    """Linear program id."""
    worker: int
    """The thread that ran it, counted within its PE."""
    kind: Kind
    """`program` covers a program from its start to its end; `wait` and `notify` lie within one."""
    start_ns: int
    end_ns: int
    site: str = ""
    """The user's file:line."""

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns
