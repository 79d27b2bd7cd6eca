# SPDX-License-Identifier: MIT
"""Settings: environment, code, scopes; misspelt names and bad values."""

from __future__ import annotations

import inspect
import threading
import typing

import pytest

from triton_dist import knobs
from triton_dist.errors import BadKnobValue, UnknownKnob


def test_defaults():
    assert (knobs.backend, knobs.simulate, knobs.num_threads) == (None, None, 0)
    assert (knobs.wait_timeout, knobs.heap_size, knobs.trace, knobs.debug_ir) == (60.0, 1 << 30, None, False)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("backend", " CUDA ", "cuda"),
        ("simulate", "on", True),
        ("simulate", "0", False),
        ("num_threads", "3", 3),
        ("wait_timeout", "0.5", 0.5),
        ("wait_timeout", "0", 0.0),
        ("heap_size", "512M", 512 << 20),
        ("heap_size", "2g", 2 << 30),
        ("heap_size", "4 KiB", 4096),
        ("heap_size", "65536", 65536),
        ("trace", "some/Folder", "some/Folder"),
        ("debug_ir", "yes", True),
        ("debug_ir", "No", False),
    ],
)
def test_environment(monkeypatch, name, text, value):
    monkeypatch.setenv(f"TRITON_DIST_{name.upper()}", text)
    assert getattr(knobs, name) == value
    assert knobs.all_knobs()[name].source() == "environment"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("backend", ""),
        ("simulate", "2"),
        ("num_threads", "-1"),
        ("num_threads", "two"),
        ("num_threads", "1.5"),
        ("wait_timeout", "-1"),
        ("wait_timeout", "inf"),
        ("wait_timeout", "nan"),
        ("wait_timeout", "1 s"),
        ("heap_size", "0"),
        ("heap_size", "1.5G"),
        ("heap_size", "G"),
        ("heap_size", "1E"),
        ("trace", ""),
        ("debug_ir", "yess"),
    ],
)
def test_bad_values_say_what_is_expected(monkeypatch, name, text):
    variable = f"TRITON_DIST_{name.upper()}"
    knob = knobs.all_knobs()[name]
    monkeypatch.setenv(variable, text)
    with pytest.raises(BadKnobValue) as error:
        getattr(knobs, name)
    assert str(error.value).startswith(f"{variable}={text!r}: expected {knob.kind.expected}")
    assert knob.meaning in str(error.value)
    with pytest.raises(BadKnobValue):
        setattr(knobs, name, text)


def test_misspelt_variable(monkeypatch):
    monkeypatch.setenv("TRITON_DIST_WAIT_TIMOUT", "3")
    with pytest.raises(UnknownKnob) as error:
        knobs.check_environment()
    assert "TRITON_DIST_WAIT_TIMOUT is not a setting" in str(error.value)
    assert "did you mean TRITON_DIST_WAIT_TIMEOUT?" in str(error.value)
    assert "TRITON_DIST_BACKEND" in str(error.value)


def test_misspelt_variable_is_seen_at_the_first_access(monkeypatch):
    monkeypatch.setenv("TRITON_DIST_XYZ", "3")
    monkeypatch.setattr(knobs, "_checked", False)
    with pytest.raises(UnknownKnob):
        _ = knobs.debug_ir


def test_other_peoples_variables_are_not_ours(monkeypatch):
    monkeypatch.setenv("TRITON_DISTRIBUTED", "1")
    monkeypatch.setenv("_TRITON_DIST_INTERNAL", "1")
    knobs.check_environment()


def test_code_wins_over_environment(monkeypatch):
    monkeypatch.setenv("TRITON_DIST_WAIT_TIMEOUT", "5")
    knobs.wait_timeout = 7
    assert knobs.wait_timeout == 7.0
    assert knobs.all_knobs()["wait_timeout"].source() == "code"
    del knobs.wait_timeout
    assert knobs.wait_timeout == 5.0


def test_scope_puts_back_what_was():
    knobs.num_threads = 2
    with knobs.scope(num_threads=3, wait_timeout=1):
        assert (knobs.num_threads, knobs.wait_timeout) == (3, 1.0)
        with knobs.scope(num_threads=4):
            assert knobs.num_threads == 4
        assert knobs.num_threads == 3
    assert (knobs.num_threads, knobs.wait_timeout) == (2, 60.0)


def test_scope_ends_with_an_exception():
    with pytest.raises(ZeroDivisionError), knobs.scope(debug_ir=True):
        _ = 1 / 0
    assert knobs.debug_ir is False


def test_scope_keeps_other_changes():
    with knobs.scope(debug_ir=True):
        knobs.num_threads = 5
    assert knobs.num_threads == 5


def test_scope_with_a_bad_value_changes_nothing():
    with pytest.raises(BadKnobValue), knobs.scope(debug_ir=True, num_threads="x"):
        pytest.fail("not entered")
    assert knobs.debug_ir is False


def test_scope_with_an_unknown_name():
    with pytest.raises(UnknownKnob, match=r"wait_timeot .*did you mean wait_timeout\?"), knobs.scope(wait_timeot=1):
        pytest.fail("not entered")


def test_scope_hides_the_environment(monkeypatch):
    monkeypatch.setenv("TRITON_DIST_BACKEND", "cuda")
    with knobs.scope(backend=None):
        assert knobs.backend is None
    assert knobs.backend == "cuda"


def test_scope_reaches_other_threads():
    seen = []
    with knobs.scope(num_threads=9):
        thread = threading.Thread(target=lambda: seen.append(knobs.num_threads))
        thread.start()
        thread.join()
    assert seen == [9]


def test_listing_has_every_setting(monkeypatch):
    monkeypatch.setenv("TRITON_DIST_DEBUG_IR", "1")
    lines = {line.variable: line for line in knobs.listing()}
    assert set(lines) == {knob.variable for knob in knobs.all_knobs().values()}
    assert (lines["TRITON_DIST_DEBUG_IR"].value, lines["TRITON_DIST_DEBUG_IR"].source) == (True, "environment")
    assert all(line.meaning for line in lines.values())


def test_declared_types_match_the_knobs():
    """The annotations under TYPE_CHECKING, for type checkers and editors, are the settings and nothing else."""
    source = inspect.getsource(knobs)
    block = source.split("if TYPE_CHECKING:\n")[1].split("\n\n\n")[0]
    declared = [line.split(":")[0].strip() for line in block.splitlines() if line.strip()]
    assert declared == list(knobs.all_knobs())
    assert typing.TYPE_CHECKING is False
