# SPDX-License-Identifier: MIT
"""What `triton.testing.do_bench` expects of a device module: events and synchronisation, on the host's clock."""

from __future__ import annotations

import time


class Event:
    """A point in time; kernels on the host are finished when their launch returns."""

    def __init__(self, enable_timing: bool = True) -> None:
        del enable_timing
        self.at = 0

    def record(self, stream: object = None) -> None:
        del stream
        self.at = time.perf_counter_ns()

    def elapsed_time(self, other: Event) -> float:
        """Milliseconds from here to `other`."""
        return (other.at - self.at) / 1e6

    def synchronize(self) -> None:
        """Nothing is in flight."""


class CpuInterface:
    """The device module."""

    Event = Event

    @staticmethod
    def synchronize() -> None:
        """Nothing is in flight."""

    @staticmethod
    def current_device() -> int:
        return 0
