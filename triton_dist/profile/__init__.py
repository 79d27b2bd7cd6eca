# SPDX-License-Identifier: MIT
"""What happened when: events of a run, drawn as a picture or written for a trace viewer."""

from .events import Event, Kind
from .lanes import Lane, assign_lanes
from .perfetto import trace_json, write_trace
from .timeline import draw_timeline, write_timeline

__all__ = [
    "Event",
    "Kind",
    "Lane",
    "assign_lanes",
    "draw_timeline",
    "trace_json",
    "write_timeline",
    "write_trace",
]
