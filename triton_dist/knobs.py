# SPDX-License-Identifier: MIT
"""Every `TRITON_DIST_*` setting: its type, its default, what it means, in one place.

A setting is read late (at each access), can be set in code, and for a while by a context manager:

    from triton_dist import knobs

    knobs.wait_timeout                      # the environment's value, or the default
    knobs.wait_timeout = 5.0                # from here on, in every thread of this process
    with knobs.scope(wait_timeout=1.0):     # only inside
        ...
    del knobs.wait_timeout                  # the environment counts again

A misspelt `TRITON_DIST_*` variable and a value that makes no sense raise; nothing is ignored.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from triton_dist.errors import BadKnobValue, UnknownKnob

T = TypeVar("T")

PREFIX = "TRITON_DIST_"

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d+)\s*([KMGT]?)(?:iB|B)?", re.IGNORECASE)


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError


def _parse_count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def _parse_seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


LEAST_SIZE = 4096
"""Bytes of the smallest symmetric heap: a page."""


def _parse_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    size = 0 if match is None else int(match[1]) * _UNITS[match[2].upper()]
    if size < LEAST_SIZE:
        raise ValueError
    return size


def _parse_engine(text: str) -> str:
    name = text.strip().upper()
    if name not in ("MTE", "SDMA", "ROCE", "UDMA"):
        raise ValueError
    return name


def _parse_cores(text: str) -> str:
    word = text.strip().lower()
    if word not in ("vector", "both", "table"):
        raise ValueError
    return word


def _parse_path(text: str) -> str:
    if not text.strip():
        raise ValueError
    return text


def _parse_name(text: str) -> str:
    name = text.strip().lower()
    if not name:
        raise ValueError
    return name


@dataclass(frozen=True)
class Kind(Generic[T]):
    """How a setting's text becomes a value, and what to tell a user whose text does not."""

    parse: Callable[[str], T]
    expected: str


BOOL = Kind(_parse_bool, "1 or 0 (also true/false, yes/no, on/off)")
COUNT = Kind(_parse_count, "a whole number, 0 or more")
SECONDS = Kind(_parse_seconds, "seconds as a number, 0 or more")
SIZE = Kind(_parse_size, "a number of bytes, 4096 or more, with K, M, G or T if you like (512M)")
ENGINE = Kind(_parse_engine, "MTE, SDMA, ROCE or UDMA")
CORES = Kind(_parse_cores, "vector, both or table")
PATH = Kind(_parse_path, "a path")
NAME = Kind(_parse_name, "a name")


class Knob(Generic[T]):
    """One setting: a descriptor that reads what was set in code, else the environment, else the default."""

    def __init__(self, kind: Kind[Any], default: T, meaning: str) -> None:
        self.kind, self.default, self.meaning = kind, default, meaning
        self._last: tuple[Any, Any] = (None, None)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.variable = PREFIX + name.upper()
        self.key = os.fsencode(self.variable)

    @overload
    def __get__(self, obj: None, owner: type | None = None) -> Knob[T]: ...
    @overload
    def __get__(self, obj: object, owner: type | None = None) -> T: ...
    def __get__(self, obj: object | None, owner: type | None = None) -> T | Knob[T]:
        if obj is None:
            return self
        # What value() does, in as few steps as can be: each launch of a kernel comes here several times.
        if _checked and _RAW is not None and self.name not in _set:
            text = _RAW.get(self.key)
            return self.default if text is None else self._understood(text)
        return self.value()

    def __set__(self, obj: object, value: T) -> None:
        _set[self.name] = self._accept(value)

    def __delete__(self, obj: object) -> None:
        _set.pop(self.name, None)

    def value(self) -> T:
        if self.name not in _set:
            _check_environment_once()
        return self.read()

    def read(self) -> T:
        """The value, with no look at the other settings in the environment."""
        if self.name in _set:
            return _set[self.name]
        text = os.environ.get(self.variable)
        return self.default if text is None else self._accept(text)

    def _understood(self, text: Any) -> T:
        """The meaning of what the environment holds; the last one is remembered."""
        last = self._last
        if last[0] != text:
            last = self._last = (text, self._accept(os.fsdecode(text)))
        return last[1]

    def source(self) -> str:
        """Where the present value comes from: "code", "environment" or "default"."""
        if self.name in _set:
            return "code"
        return "environment" if self.variable in os.environ else "default"

    def _accept(self, value: Any) -> T:
        # The default (None: "not said") must stay settable, so that a scope can hide the environment.
        if value is None and self.default is None:
            return self.default
        try:
            return self.kind.parse(value if isinstance(value, str) else str(value))
        except ValueError:
            raise BadKnobValue(
                name=self.variable, value=value, expected=self.kind.expected, meaning=self.meaning
            ) from None


_set: dict[str, Any] = {}
_RAW: dict[Any, Any] | None = getattr(os.environ, "_data", None) if os.name == "posix" else None
"""What os.environ keeps: ten times faster to look a name up in than os.environ, which raises and catches an exception
for one that is not there.
"""


class _Knobs(ModuleType):
    """The class of this module, so that `knobs.wait_timeout` reads and writes a descriptor."""

    backend = Knob[str | None](
        NAME, None, "the back end to use, whatever tools are on PATH; without its hardware it is simulated"
    )
    simulate = Knob[bool | None](
        BOOL, None, "1: run the back end simulated even where its hardware is; 0: never simulate"
    )
    num_threads = Knob[int](COUNT, 0, "threads a PE of the host engine uses; 0: all cores")
    wait_timeout = Knob[float](SECONDS, 60.0, "seconds after which a wait on the host raises; 0: never")
    engine = Knob[str | None](ENGINE, None, "transport engine of Ascend's library; without: MTE")
    dot_free_cores = Knob[str](
        CORES, "vector", "on which of Ascend's cores the operations of a kernel without a dot run; see docs/ascend.md"
    )
    heap_size = Knob[int](SIZE, 1 << 30, "bytes of symmetric heap a PE has")
    trace = Knob[str | None](PATH, None, "a folder where each PE of the host engine writes its timeline")
    simd = Knob[str | None](NAME, None, "avx2: the host engine leaves AVX-512 unused, to compare or to test")
    check_bounds = Knob[bool](BOOL, False, "1: the host engine checks every address that a kernel reads or writes")
    debug_ir = Knob[bool](
        BOOL,
        False,
        "1: print the IR of each kernel that is compiled after every pass, to stderr; with TRITON_ALWAYS_COMPILE=1, of "
        "kernels in Triton's cache too",
    )


if TYPE_CHECKING:
    backend: str | None
    simulate: bool | None
    num_threads: int
    wait_timeout: float
    engine: str | None
    dot_free_cores: str
    heap_size: int
    trace: str | None
    simd: str | None
    check_bounds: bool
    debug_ir: bool


def all_knobs() -> dict[str, Knob[Any]]:
    """Every setting by its name in Python, in the order of declaration."""
    return {name: value for name, value in vars(_Knobs).items() if isinstance(value, Knob)}


@dataclass(frozen=True)
class Listing:
    """One line of `triton-dist doctor`."""

    variable: str
    value: object
    source: str
    meaning: str


def listing() -> list[Listing]:
    """Each setting with its present value and where that comes from; raises where a value is wrong."""
    return [Listing(k.variable, k.value(), k.source(), k.meaning) for k in all_knobs().values()]


@contextmanager
def scope(**values: Any) -> Iterator[None]:
    """Set some settings inside a `with` block, for all threads of the process, and put them back after it."""
    knobs = {name: _find(name) for name in values}
    before = dict(_set)
    try:
        for name, value in values.items():
            knobs[name].__set__(None, value)
        yield
    finally:
        # Only our own names: another setting changed meanwhile keeps its new value.
        for name in values:
            _set.pop(name, None)
            if name in before:
                _set[name] = before[name]


def check_environment() -> None:
    """Raise if a `TRITON_DIST_*` variable is misspelt or has a value that makes no sense."""
    known = {knob.variable: knob for knob in all_knobs().values()}
    for name in sorted(os.environ):
        if not name.startswith(PREFIX):
            continue
        if name not in known:
            raise _unknown(name, list(known))
        known[name]._accept(os.environ[name])


_checked = False


def _check_environment_once() -> None:
    global _checked
    if not _checked:
        check_environment()
        _checked = True


def _find(name: str) -> Knob[Any]:
    knobs = all_knobs()
    if name not in knobs:
        raise _unknown(name, list(knobs))
    return knobs[name]


def _unknown(name: str, valid: list[str]) -> UnknownKnob:
    return UnknownKnob(name=name, hint=did_you_mean(name, valid), valid=", ".join(valid))


def did_you_mean(name: str, valid: list[str]) -> str:
    """The hint " (did you mean X?)" with the closest spelling, or nothing."""
    close = difflib.get_close_matches(name, valid, n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""


sys.modules[__name__].__class__ = _Knobs
