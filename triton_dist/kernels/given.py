# SPDX-License-Identifier: MIT
"""What an operation is made with: things of the kinds that its `__init__` declares, alike on every PE."""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import torch

from triton_dist.errors import ArgumentError
from triton_dist.kernels.sizes import whole
from triton_dist.shmem import session

Init = Callable[..., None]


def made_alike(init: Init) -> Init:
    """Of an operation's `__init__`: what it is given is looked at, then the PEs agree on it.

    PEs whose operations differ, but ask for as much memory, would add up numbers of different types, or wait for ever.
    """
    signature, name = inspect.signature(init), init.__qualname__.rpartition(".")[0]

    @functools.wraps(init)
    def make(op: Any, /, *args: Any, **kwargs: Any) -> None:
        # What is made in inference mode cannot be written outside of it, and calls may be anywhere.
        with torch.inference_mode(mode=False):
            # A user's class may have arguments that differ; what it passes on to ours must not. Our bases are given
            # what our classes make of it.
            if not init.__module__.startswith(_OURS) or op._life is Life.BEING_MADE:
                init(op, *args, **kwargs)
                return
            if op._life is Life.MADE:  # what it has would be lost, and not freed
                raise ArgumentError(op=name, detail="this one is made already; make another one")
            pe = session.require(name)
            given = _bound(name, signature, op, *args, **kwargs)
            _check(name, init, given)
            pe.adapter.agree(_call(name, given))
            pe.own(op)
            op._life = Life.BEING_MADE
            init(*given.args, **given.kwargs)
            op._life = Life.MADE

    return make


_OURS = __name__.rpartition(".")[0] + "."


class Life(Enum):
    """How far an operation's `__init__` is."""

    BEFORE, BEING_MADE, MADE = range(3)


def _bound(name: str, signature: inspect.Signature, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _check(op: str, init: Init, given: inspect.BoundArguments) -> None:
    """Raise where something is not of the kind that is declared; sizes and shapes become plain numbers."""
    hints = _hints(init)
    for name, value in given.arguments.items():
        hint = hints.get(name)
        if hint == tuple[int, ...]:
            given.arguments[name] = _shape(op, name, value)
        elif hint is int and given.signature.parameters[name].default is inspect.Parameter.empty:
            given.arguments[name] = _size(op, name, value)
        elif hint is not None:
            given.arguments[name] = plain = _plain(value)
            _check_kind(op, name, plain, hint)


@functools.cache
def _hints(init: Init) -> dict[str, Any]:
    return typing.get_type_hints(init)


def _shape(op: str, name: str, value: Any) -> tuple[int, ...]:
    sizes = [whole(size) for size in value] if _is_sequence(value) else [None]
    if any(size is None or size < 0 for size in sizes):
        raise ArgumentError(op=op, detail=f"{name} is {value!r}; it must be a tuple of whole numbers, 0 or more")
    return tuple(size for size in sizes if size is not None)


def _size(op: str, name: str, value: Any) -> int:
    size = whole(value)
    if size is None or size < 0:
        raise ArgumentError(op=op, detail=f"{name} is {value!r}; it must be a whole number, 0 or more")
    return size


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _plain(value: Any) -> Any:
    """Whole numbers of any type as Python's own, alone or several; other things as they are."""
    if _is_sequence(value):
        return tuple(_plain(part) for part in value)
    number = whole(value)
    return value if number is None else number


_WORDS = {torch.dtype: "a torch.dtype, torch.float32 say", int: "a whole number", bool: "True or False"}


def _check_kind(op: str, name: str, value: Any, hint: Any) -> None:
    optional = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    kinds = [kind for kind in (typing.get_args(hint) if optional else (hint,)) if kind is not types.NoneType]
    # Of several kinds, and of literals, the operation itself says which it takes; a number, in which range.
    if len(kinds) != 1 or not isinstance(kinds[0], type) or (optional and value is None) or hint is int:
        return
    if not isinstance(value, kinds[0]) or (kinds[0] is int and isinstance(value, bool)):
        wanted = _WORDS.get(kinds[0], f"a {kinds[0].__name__}") + (", or None" if optional else "")
        raise ArgumentError(op=op, detail=f"{name} is {value!r}; it must be {wanted}")


def _call(op: str, given: inspect.BoundArguments) -> str:
    """The words that the PEs compare."""
    given.apply_defaults()
    shown = []
    for name, value in [*given.arguments.items()][1:]:
        named = given.signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        if value is not None:
            shown.append(f"{name}={_shown(value)}" if named else _shown(value))
    return f"{op}({', '.join(shown)})"


def _shown(value: Any) -> str:
    """Without what differs between PEs though the things are equal: addresses, and the kind of a string."""
    return repr(str.__str__(value)) if isinstance(value, str) else re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
