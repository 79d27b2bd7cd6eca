# SPDX-License-Identifier: MIT
"""What was parsed, verified and printed before: kernels consist of the same few operations over and over.

The *form* of an operation without regions and successors is all of it but which values it takes and gives, and where it
stands: its class, the types, the properties, the attributes. Parsing, verifying and printing it depend on nothing else,
so that what came of it once holds for the next one of that form.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import OpResult, SSAValues
from xdsl.irdl import IRDLOperation
from xdsl.traits import OpTrait

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from xdsl.dialects.builtin import LocationAttr
    from xdsl.ir import Attribute, Operation, SSAValue

_T = TypeVar("_T")
_MOST = 1 << 13


class VerifiedInPlace(OpTrait):
    """An operation whose verifier looks at what stands around it."""


class Remembered(Generic[_T]):
    """Values by key: at most so many, then all are forgotten. A process that compiles for ever does not grow."""

    def __init__(self, most: int = _MOST) -> None:
        self._values: dict[Hashable, _T] = {}
        self._most = most

    def get(self, key: Hashable) -> _T | None:
        return self._values.get(key)

    def clear(self) -> None:
        self._values.clear()

    def put(self, key: Hashable, value: _T) -> None:
        if len(self._values) >= self._most:
            self._values.clear()
        self._values[key] = value


class Forms(Generic[_T]):
    """Values by the form of an operation."""

    def __init__(self) -> None:
        self._known: Remembered[tuple[_T, list[Attribute]]] = Remembered()

    def get(self, form: Form) -> _T | None:
        found = self._known.get(form.key)
        return None if found is None else found[0]

    def put(self, form: Form, value: _T) -> None:
        # The attributes are kept, so that no other can have their identities.
        self._known.put(form.key, (value, form.attributes))


class Form:
    """The form of one operation. Attributes count as equal if they are the same object: comparing them takes longer."""

    __slots__ = ("attributes", "key")

    def __init__(self, op: Operation) -> None:
        # Their public name is a view that is slow to go through.
        operands = [value.type for value in op._operands]  # pyright: ignore[reportPrivateUsage]
        results = [value.type for value in op.results]
        self.attributes = [*operands, *results, *op.properties.values(), *op.attributes.values()]
        self.key = (
            type(op), len(operands), len(results), *op.properties, None, *op.attributes, *map(id, self.attributes)
        )  # fmt: skip


def is_flat(op: Operation) -> bool:
    """Whether a form says all that there is to the operation."""
    return not op.regions and _is_defined(type(op)) and not op.successor_uses


@functools.cache
def _is_defined(kind: type[Operation]) -> bool:
    return issubclass(kind, IRDLOperation)


@functools.cache
def is_verified_alone(kind: type[Operation]) -> bool:
    """Whether what stands around an operation of this class does not matter to its verifier."""
    traits = list(kind.traits)
    looks = any(isinstance(trait, VerifiedInPlace) or type(trait).verify is not OpTrait.verify for trait in traits)
    return not looks


@dataclass(frozen=True)
class Line:
    """An operation as a line of text says it, but for its values and its location."""

    kind: type[Operation]
    operands: tuple[Attribute, ...]
    results: tuple[Attribute, ...]
    properties: dict[str, Attribute]
    attributes: dict[str, Attribute]

    def make(self, operands: Sequence[SSAValue], location: LocationAttr | None) -> Operation:
        """The operation, of these values."""
        return made(self.kind, operands, self.results, self.properties, self.attributes, location)


def made(
    kind: type[Operation],
    operands: Sequence[SSAValue],
    results: Sequence[Attribute],
    properties: Mapping[str, Attribute],
    attributes: Mapping[str, Attribute],
    location: LocationAttr | None,
) -> Operation:
    """An operation without regions and successors; as `kind.create`, which would look for them, and for defaults."""
    op = kind.__new__(kind)
    op.operands = operands
    op.results = SSAValues([OpResult(type, op, index) for index, type in enumerate(results)])
    op.properties = dict(properties)
    op.attributes = dict(attributes)
    op.location = UNKNOWN_LOC if location is None else location
    return op


class Named(NamedTuple):
    """An argument in the head of a function: its type, where its name stands, and from where to where its location."""

    type: Attribute
    begin: int
    end: int
    location: tuple[int, int] | None

    def moved(self, by: int) -> Named:
        location = None if self.location is None else (self.location[0] + by, self.location[1] + by)
        return Named(self.type, self.begin + by, self.end + by, location)


class Head(NamedTuple):
    """A function as its text says it, up to its body."""

    arguments: tuple[Named, ...]
    properties: dict[str, Attribute]
    attributes: dict[str, Attribute]

    def moved(self, by: int) -> Head:
        """The same, in another place of a text."""
        return self._replace(arguments=tuple([argument.moved(by) for argument in self.arguments]))

    def without_locations(self, text: str) -> str:
        """The head's text but for the locations of arguments."""
        pieces, end = [], 0
        for start, stop in filter(None, [argument.location for argument in self.arguments]):
            pieces.append(text[end:start])
            end = stop
        return "".join([*pieces, text[end:]])


@dataclass
class Texts:
    """What the texts of a context's types, dictionaries of attributes, lines and heads of functions stand for."""

    types: Remembered[Any] = field(default_factory=Remembered)
    dictionaries: Remembered[Any] = field(default_factory=Remembered)
    lines: Remembered[Line] = field(default_factory=Remembered)
    heads: Remembered[Head] = field(default_factory=Remembered)
