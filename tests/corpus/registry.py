# SPDX-License-Identifier: MIT
"""The registry of the corpus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import triton

VERSION = tuple(int(part) for part in triton.__version__.split("+")[0].split(".")[:2])

_ENTRIES: dict[str, Entry] = {}


@dataclass(frozen=True)
class Entry:
    """One kernel and how to compile it."""

    name: str
    fn: Any
    """The `triton.jit` function."""
    signature: dict[str, str]
    """Argument -> Triton's type name ("*fp32", "i32"), or "constexpr"."""
    constexprs: dict[str, Any]
    attrs: dict[tuple[int, ...], list[list[Any]]]
    """Argument position -> attributes, as Triton's specialisation gives them."""
    since: tuple[int, int]
    """The first Triton that can express it."""
    until: tuple[int, int] | None
    """The last one, or None."""

    @property
    def expressible(self) -> bool:
        """Whether this Triton can express it."""
        return self.since <= VERSION and (self.until is None or self.until >= VERSION)


def kernel(
    since: tuple[int, int] = (3, 6), until: tuple[int, int] | None = None, **arguments: Any
) -> Callable[[Any], Any]:
    """Register a kernel. An argument given as a string is of that type; `/16` behind it means divisible by 16.

    Any other value is the argument's constexpr.
    """

    def register(fn: Any) -> Any:
        name = fn.fn.__name__
        if name in _ENTRIES:
            raise ValueError(f"two kernels of the corpus are called {name}")
        types = {key: value for key, value in arguments.items() if isinstance(value, str)}
        attrs = {
            (position,): [["tt.divisibility", 16]]
            for position, key in enumerate(fn.arg_names)
            if types.get(key, "").endswith("/16")
        }
        signature = {key: types.get(key, "constexpr").removesuffix("/16") for key in fn.arg_names}
        constexprs = {key: value for key, value in arguments.items() if key not in types}
        _ENTRIES[name] = Entry(name, fn, signature, constexprs, attrs, since, until)
        return fn

    return register


@cache
def _load() -> None:
    for path in sorted(Path(__file__).parent.glob("k_*.py")):
        import_module(f"tests.corpus.{path.stem}")


def entries() -> list[Entry]:
    """The kernels that this Triton can express, sorted by name."""
    _load()
    return [entry for _, entry in sorted(_ENTRIES.items()) if entry.expressible]


def get(name: str) -> Entry:
    """One kernel by name."""
    _load()
    return _ENTRIES[name]
