# SPDX-License-Identifier: MIT
"""Which events share a line of a picture: programs that never overlap, with what happened within them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

from .events import Event


@dataclass
class Lane:
    """One line: programs of one worker, in order, none overlapping another."""

    pe: int
    worker: int
    programs: list[Event] = field(default_factory=list)
    details: list[Event] = field(default_factory=list)
    """Waits and notifies, in order."""
    label: str = ""

    @property
    def free_from(self) -> int:
        return self.programs[-1].end_ns if self.programs else 0

    @property
    def ids(self) -> list[int]:
        """The programs in it."""
        return sorted({event.program for event in self.programs or self.details})


def assign_lanes(events: Iterable[Event]) -> list[Lane]:
    """Sort events into lanes, by PE and worker. A worker whose programs overlap gets a lane for each at once."""
    ordered = sorted(events, key=lambda e: (e.pe, e.worker, e.start_ns, -e.end_ns))
    lanes: dict[tuple[int, int], list[Lane]] = defaultdict(list)
    homes: dict[tuple[int, int], list[tuple[Event, Lane]]] = defaultdict(list)
    for event in ordered:
        if event.kind == "program":
            lane = _free_lane(lanes[event.pe, event.worker], event)
            lane.programs.append(event)
            homes[event.pe, event.program].append((event, lane))
    for event in ordered:
        if event.kind != "program":
            _lane_of(event, homes, lanes).details.append(event)
    found = [lane for key in sorted(lanes) for lane in lanes[key]]
    for _, group in groupby(found, key=lambda lane: lane.pe):
        _name(list(group))
    return found


def _name(lanes: list[Lane]) -> None:
    """Name the lanes of a PE: all by their program, or where a worker ran several, all by worker."""
    single = all(len(lane.ids) == 1 for lane in lanes)
    for lane in lanes:
        lane.label = f"program {lane.ids[0]}" if single else f"worker {lane.worker}"


def _free_lane(lanes: list[Lane], event: Event) -> Lane:
    for lane in lanes:
        if lane.free_from <= event.start_ns:
            return lane
    lanes.append(Lane(event.pe, event.worker))
    return lanes[-1]


def _lane_of(
    event: Event,
    homes: dict[tuple[int, int], list[tuple[Event, Lane]]],
    lanes: dict[tuple[int, int], list[Lane]],
) -> Lane:
    for program, lane in homes[event.pe, event.program]:
        if program.start_ns <= event.start_ns <= program.end_ns:
            return lane
    # Its program is missing: the trace was cut off, or the program never ended.
    orphans = lanes[event.pe, event.worker]
    if not orphans:
        orphans.append(Lane(event.pe, event.worker))
    return orphans[-1]
