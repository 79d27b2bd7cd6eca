# SPDX-License-Identifier: MIT
"""Events as one SVG picture: the programs of every PE over time, with what they waited for."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from .events import Event
from .lanes import Lane, assign_lanes

WIDTH = 1280
LEFT, RIGHT, TOP, BOTTOM = 140, 172, 92, 52
LANE_GAP, PE_GAP, PE_PAD = 3, 12, 7
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
INK, FAINT, GRID, BAND, TRACK = "#1f2933", "#6b7785", "#dde3ea", "#f5f7fa", "#c3ccd6"
WAIT, NOTIFY = "#f4b942", "#c8325a"
ROLES = ("#3d6fb4", "#2a9d8f", "#8e6bb8", "#6c8a3c")
LEAST = {"notify": 1.0, "wait": 0.2}
"""Pixels of the shortest bars: a notify has to be seen, a wait that was over at once must not look like one."""
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))

Role = Callable[[Event], str]


def draw_timeline(
    events: Iterable[Event], *, title: str, subtitle: str = "", role: Role = lambda event: "compute"
) -> str:
    """Draw `events` as a self-contained SVG document and return its text.

    Every PE is a band, every lane in it a worker's programs. `role` names what a program does; each name gets its
    colour, in order of appearance. Hovering over a bar shows its PE, program, times and source line.
    """
    return _Picture(assign_lanes(events), role).draw(title, subtitle)


def write_timeline(
    path: str | Path,
    events: Iterable[Event],
    *,
    title: str,
    subtitle: str = "",
    role: Role = lambda event: "compute",
) -> Path:
    """Write `draw_timeline`'s picture to `path`, making its folder."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(draw_timeline(events, title=title, subtitle=subtitle, role=role), encoding="utf-8")
    return target


@dataclass(frozen=True)
class _Axis:
    """Nanoseconds to pixels, and where the ticks are."""

    start_ns: int
    span_ns: int
    left: float
    width: float

    def x(self, time_ns: float) -> float:
        return self.left + self.width * (time_ns - self.start_ns) / self.span_ns

    @property
    def unit(self) -> tuple[float, str]:
        return next((u for u in _UNITS if self.span_ns >= 2 * u[0]), _UNITS[-1])

    def ticks(self) -> list[tuple[float, str]]:
        """Positions and labels of about eight ticks at steps of 1, 2 or 5 times a power of ten."""
        scale, _ = self.unit
        span = self.span_ns / scale
        step = _nice_step(span / 8)
        count = int(span / step + 1e-9)
        return [(self.x(self.start_ns + i * step * scale), f"{i * step:g}") for i in range(count + 1)]

    def text(self, duration_ns: float) -> str:
        scale, name = next((u for u in _UNITS if duration_ns >= u[0]), _UNITS[-1])
        return f"{duration_ns / scale:.3g} {name}"


def _nice_step(least: float) -> float:
    power = 10.0 ** int(f"{least:e}".split("e")[1])
    return next(m * power for m in (1, 2, 5, 10) if m * power >= least * 0.999)


class _Picture:
    def __init__(self, lanes: Sequence[Lane], role: Role) -> None:
        self.lanes = lanes
        self.role = role
        every = [event for lane in lanes for event in (*lane.programs, *lane.details)]
        start = min((e.start_ns for e in every), default=0)
        end = max((e.end_ns for e in every), default=1)
        self.axis = _Axis(start, max(end - start, 1), LEFT, WIDTH - LEFT - RIGHT)
        names = dict.fromkeys(role(e) for e in sorted(every, key=_order) if e.kind == "program")
        self.colours = {name: ROLES[i % len(ROLES)] for i, name in enumerate(names)}
        self.lane_height = max(3.0, min(18.0, 640 / max(len(lanes), 1) - LANE_GAP))

    def draw(self, title: str, subtitle: str) -> str:
        svg = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": FONT})
        height = self._height()
        svg.attrib.update(width=str(WIDTH), height=_n(height), viewBox=f"0 0 {WIDTH} {_n(height)}")
        ET.SubElement(svg, "title").text = title
        _rect(svg, 0, 0, WIDTH, height, fill="#ffffff")
        _text(svg, 24, 36, title, size=20, weight="600")
        _text(svg, 24, 58, subtitle, size=12.5, fill=FAINT)
        self._legend(svg)
        bottom = height - BOTTOM
        y = float(TOP)
        for pe, group in groupby(self.lanes, key=lambda lane: lane.pe):
            y = self._band(svg, pe, list(group), y)
        self._grid(svg, bottom)
        y = float(TOP)
        for _, group in groupby(self.lanes, key=lambda lane: lane.pe):
            y = self._bars(svg, list(group), y)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(svg, encoding="unicode") + "\n"

    def _height(self) -> float:
        pes = len({lane.pe for lane in self.lanes})
        return TOP + BOTTOM + pes * (2 * PE_PAD + PE_GAP) + len(self.lanes) * (self.lane_height + LANE_GAP)

    def _band_height(self, lanes: Sequence[Lane]) -> float:
        return 2 * PE_PAD + len(lanes) * (self.lane_height + LANE_GAP) - LANE_GAP

    def _legend(self, svg: ET.Element) -> None:
        entries = [*self.colours.items(), ("wait", WAIT), ("notify", NOTIFY)]
        x = WIDTH - 24 - sum(_entry_width(name) for name, _ in entries)
        group = ET.SubElement(svg, "g", {"class": "legend"})
        for name, colour in entries:
            wide = 3 if name == "notify" else 14
            _rect(group, x + (14 - wide) / 2, 25, wide, 14, fill=colour, rx="2" if wide > 3 else "0")
            _text(group, x + 20, 36.5, name, size=12.5)
            x += _entry_width(name)

    def _grid(self, svg: ET.Element, bottom: float) -> None:
        group = ET.SubElement(svg, "g", {"class": "axis"})
        for x, label in self.axis.ticks():
            line = {"x1": _n(x), "x2": _n(x), "y1": _n(TOP - 6), "y2": _n(bottom)}
            ET.SubElement(group, "line", {**line, "stroke": GRID, "stroke-width": "1"})
            _text(group, x, bottom + 16, label, size=11.5, fill=FAINT, anchor="middle")
        middle = self.axis.left + self.axis.width / 2
        _text(group, middle, bottom + 36, f"time ({self.axis.unit[1]})", size=12, fill=FAINT, anchor="middle")

    def _band(self, svg: ET.Element, pe: int, lanes: list[Lane], y: float) -> float:
        """The background, name and summary of one PE; returns where the next one begins."""
        height = self._band_height(lanes)
        group = ET.SubElement(svg, "g", {"class": "pe"})
        _rect(group, 16, y, WIDTH - 32, height, fill=BAND, rx="6")
        _text(group, 28, y + height / 2 + 5, f"PE {pe}", size=15, weight="600")
        if self.lane_height >= 9:
            for i, lane in enumerate(lanes):
                baseline = y + PE_PAD + i * (self.lane_height + LANE_GAP) + self.lane_height / 2 + 3.5
                _text(group, LEFT - 8, baseline, lane.label, size=10, fill=FAINT, anchor="end")
        self._summary(group, lanes, y + height / 2)
        return y + height + PE_GAP

    def _summary(self, group: ET.Element, lanes: list[Lane], middle: float) -> None:
        total = sum(e.duration_ns for lane in lanes for e in lane.programs)
        waits = [e for lane in lanes for e in lane.details if e.kind == "wait"]
        share = min(sum(e.duration_ns for e in waits) / total, 1.0) if total else 0.0
        x, wide = WIDTH - RIGHT + 18, RIGHT - 52
        _text(group, x, middle - 4, f"waits {share:.0%} of the time", size=10.5, fill=FAINT)
        _rect(group, x, middle + 3, wide, 6, fill=TRACK, rx="3")
        if share:
            _rect(group, x + wide * (1 - share), middle + 3, wide * share, 6, fill=WAIT, rx="3")

    def _bars(self, svg: ET.Element, lanes: list[Lane], y: float) -> float:
        group = ET.SubElement(svg, "g", {"class": "lanes"})
        for i, lane in enumerate(lanes):
            top = y + PE_PAD + i * (self.lane_height + LANE_GAP)
            for event in lane.programs:
                self._bar(group, event, top, self.colours[self.role(event)], rx="2")
            for event in sorted(lane.details, key=lambda e: (e.kind == "notify", e.start_ns)):
                self._bar(group, event, top, WAIT if event.kind == "wait" else NOTIFY)
        return y + self._band_height(lanes) + PE_GAP

    def _bar(self, group: ET.Element, event: Event, top: float, colour: str, **extra: str) -> None:
        x, end = self.axis.x(event.start_ns), self.axis.x(event.end_ns)
        least, height = LEAST.get(event.kind, 0.6), self.lane_height
        if event.kind == "notify":  # many in a row must not hide the program that they are in
            top, height = top + height / 2, height / 2
        rect = _rect(group, x, top, max(end - x, least), height, fill=colour, **extra)
        rect.set("class", event.kind)
        ET.SubElement(rect, "title").text = self._tooltip(event)

    def _tooltip(self, event: Event) -> str:
        name = self.role(event) if event.kind == "program" else event.kind
        begin = self.axis.text(event.start_ns - self.axis.start_ns)
        lines = [f"PE {event.pe}, program {event.program}: {name}"]
        lines.append(f"{self.axis.text(event.duration_ns)}, from {begin}")
        return "\n".join([*lines, event.site] if event.site else lines)


def _entry_width(name: str) -> float:
    """Of a legend entry; no text can be measured here, so letters count by their usual width."""
    return 38 + sum(9.2 if c.isupper() else 7.2 for c in name)


def _order(event: Event) -> tuple[int, int]:
    return event.program, event.pe


def _n(value: float) -> str:
    """A number as SVG has it, to a hundredth of a pixel."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _rect(parent: ET.Element, x: float, y: float, w: float, h: float, **extra: str) -> ET.Element:
    box = {"x": _n(x), "y": _n(y), "width": _n(w), "height": _n(h)}
    return ET.SubElement(parent, "rect", {**box, **extra})


def _text(
    parent: ET.Element,
    x: float,
    y: float,
    text: str,
    *,
    size: float,
    fill: str = INK,
    weight: str = "400",
    anchor: str = "start",
) -> None:
    attributes = {"x": _n(x), "y": _n(y), "font-size": _n(size), "fill": fill}
    attributes |= {"font-weight": weight, "text-anchor": anchor}
    ET.SubElement(parent, "text", attributes).text = text
