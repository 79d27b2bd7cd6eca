# SPDX-License-Identifier: MIT
"""Events as a Chrome trace, which Perfetto and chrome://tracing open: a process a PE, a thread a lane."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .events import Event
from .lanes import Lane, assign_lanes


def trace_json(events: Iterable[Event]) -> str:
    """The text of a Chrome trace (JSON object format); times in microseconds from the first event."""
    lanes = assign_lanes(events)
    origin = min((e.start_ns for lane in lanes for e in lane.programs + lane.details), default=0)
    records: list[dict[str, Any]] = []
    for pe in sorted({lane.pe for lane in lanes}):
        records.append({"ph": "M", "name": "process_name", "pid": pe, "args": {"name": f"PE {pe}"}})
    for tid, lane in enumerate(lanes):
        records += _lane_records(lane, tid, origin)
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": records})


def write_trace(path: str | Path, events: Iterable[Event]) -> Path:
    """Write a Chrome trace to `path`, making its folder."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(trace_json(events), encoding="utf-8")
    return target


def _lane_records(lane: Lane, tid: int, origin: int) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "pid": lane.pe, "tid": tid, "args": {"name": lane.label}},
        {"ph": "M", "name": "thread_sort_index", "pid": lane.pe, "tid": tid, "args": {"sort_index": tid}},
    ]
    # Programs come first: a viewer nests a slice in one that began at the same time only if it came earlier.
    for event in lane.programs + lane.details:
        records.append(
            {
                "ph": "X",
                "name": f"program {event.program}" if event.kind == "program" else event.kind,
                "cat": event.kind,
                "pid": lane.pe,
                "tid": tid,
                "ts": (event.start_ns - origin) / 1e3,
                "dur": event.duration_ns / 1e3,
                "args": {"program": event.program, "worker": event.worker, "site": event.site},
            }
        )
    return records
