# SPDX-License-Identifier: MIT
"""The picture and the trace of made-up events."""

from __future__ import annotations

import itertools
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from triton_dist.profile import Event, assign_lanes, draw_timeline, trace_json, write_timeline, write_trace

SVG = "{http://www.w3.org/2000/svg}"
START = 10**15
SITE = 'kernels/<a> & "b".py:12'


def run_of(pes: int, programs: int) -> list[Event]:
    """Every program of every PE computes 100 us, waits 50 us, computes 40 us and notifies."""
    events = []
    for pe in range(pes):
        for program in range(programs):
            t = START + 1000 * (pe + program)
            events.append(Event(pe, program, program, "wait", t + 100_000, t + 150_000, SITE))
            events.append(Event(pe, program, program, "notify", t + 190_000, t + 190_100, SITE))
            events.append(Event(pe, program, program, "program", t, t + 190_200, SITE))
    return events


def bars(svg: str, kind: str) -> list[ET.Element]:
    return [rect for rect in ET.fromstring(svg).iter(f"{SVG}rect") if rect.get("class") == kind]


def box(rect: ET.Element) -> tuple[float, float, float]:
    """Left, right and top."""
    x, y, w = (float(rect.attrib[name]) for name in ("x", "y", "width"))
    return x, x + w, y


@pytest.mark.parametrize(("pes", "programs"), [(1, 1), (2, 3), (4, 5), (8, 40)])
def test_every_event_is_one_bar(pes: int, programs: int) -> None:
    svg = draw_timeline(run_of(pes, programs), title="T")
    for kind in ("program", "wait", "notify"):
        assert len(bars(svg, kind)) == pes * programs


def test_bars_of_programs_never_overlap() -> None:
    # One worker with programs one after another, and one whose records overlap, as those of two launches may.
    events = [Event(0, i, 0, "program", START + 10 * i, START + 10 * i + 10) for i in range(20)]
    events += [Event(0, i, 1, "program", START + 10 * i, START + 10 * i + 25) for i in range(20)]
    boxes = sorted((box(b) for b in bars(draw_timeline(events, title="T"), "program")), key=lambda b: (b[2], b[0]))
    for (_, right, top), (left, _, next_top) in itertools.pairwise(boxes):
        assert top != next_top or right <= left + 0.011  # a hundredth of a pixel is the rounding


def test_waits_lie_within_their_program() -> None:
    svg = draw_timeline(run_of(3, 4), title="T")
    programs = [box(b) for b in bars(svg, "program")]
    for wait in map(box, bars(svg, "wait")):
        assert any(p[2] == wait[2] and p[0] <= wait[0] and wait[1] <= p[1] for p in programs)


def test_bars_stay_inside_the_picture() -> None:
    root = ET.fromstring(draw_timeline(run_of(8, 40), title="T"))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for rect in root.iter(f"{SVG}rect"):
        assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= width
        assert float(rect.attrib["y"]) + float(rect.attrib["height"]) <= height


def test_text_is_escaped_and_labels_are_there() -> None:
    events = run_of(2, 2)
    svg = draw_timeline(events, title="a < b & c", subtitle="<sub>", role=lambda e: "push" if e.program else "GEMM")
    texts = [t.text for t in ET.fromstring(svg).iter(f"{SVG}text")]
    assert {"a < b & c", "<sub>", "PE 0", "PE 1", "push", "GEMM", "wait", "notify", "program 1"} <= set(texts)
    assert "time (µs)" in texts
    tooltips = [t.text or "" for t in ET.fromstring(svg).iter(f"{SVG}title")]
    assert any(text.startswith("PE 1, program 1: wait\n50 µs, from ") and SITE in text for text in tooltips)


@pytest.mark.parametrize(
    ("span_ns", "unit"), [(50, "ns"), (1_500, "ns"), (90_000, "µs"), (3_000_000, "ms"), (5 * 10**9, "s")]
)
def test_axis_picks_its_unit(span_ns: int, unit: str) -> None:
    svg = draw_timeline([Event(0, 0, 0, "program", START, START + span_ns)], title="T")
    assert f"time ({unit})" in svg


def test_no_events_is_an_empty_picture() -> None:
    assert ET.fromstring(draw_timeline([], title="nothing")).tag == f"{SVG}svg"
    assert json.loads(trace_json([]))["traceEvents"] == []


def test_event_without_its_program_is_still_shown() -> None:
    events = [Event(0, 3, 1, "wait", START, START + 10)]
    (lane,) = assign_lanes(events)
    assert (lane.programs, lane.details, lane.label) == ([], events, "program 3")
    assert len(bars(draw_timeline(events, title="T"), "wait")) == 1


def test_the_lanes_of_a_pe_are_named_alike() -> None:
    """Some workers ran several programs, another one."""
    events = [Event(0, p, int(p == 2), "program", START + p * 10, START + p * 10 + 5) for p in range(3)]
    events += [Event(1, p, p, "program", START, START + 5) for p in range(2)]
    assert [lane.label for lane in assign_lanes(events)] == ["worker 0", "worker 1", "program 0", "program 1"]


def test_notifies_do_not_hide_their_program() -> None:
    events = [Event(0, 0, 0, "program", START, START + 1000)]
    events += [Event(0, 0, 0, "notify", START + i, START + i + 1) for i in range(0, 1000, 10)]
    picture = draw_timeline(events, title="T")
    (program,) = bars(picture, "program")
    for notify in bars(picture, "notify"):
        assert float(notify.get("y") or 0) > float(program.get("y") or 0)
        assert float(notify.get("height") or 0) < float(program.get("height") or 0)


def test_trace_has_a_process_a_pe_and_a_thread_a_lane() -> None:
    records = json.loads(trace_json(run_of(2, 3)))["traceEvents"]
    names = [r["args"]["name"] for r in records if r["name"] == "process_name"]
    assert names == ["PE 0", "PE 1"]
    slices = [r for r in records if r["ph"] == "X"]
    assert len(slices) == 2 * 3 * 3
    assert len({(r["pid"], r["tid"]) for r in slices}) == 2 * 3
    assert min(r["ts"] for r in slices) == 0
    wait = next(r for r in slices if r["name"] == "wait")
    assert wait["dur"] == 50.0
    assert wait["args"]["site"] == SITE


def test_files_are_written_with_their_folders(tmp_path: Path) -> None:
    picture = write_timeline(tmp_path / "a" / "t.svg", run_of(1, 1), title="T")
    trace = write_trace(tmp_path / "b" / "t.json", run_of(1, 1))
    assert ET.parse(picture).getroot().tag == f"{SVG}svg"
    assert json.loads(trace.read_text(encoding="utf-8"))["displayTimeUnit"] == "ns"
