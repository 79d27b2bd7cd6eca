# SPDX-License-Identifier: MIT
"""Source locations: libtriton's `#loc` aliases, and the user's line of an operation.

libtriton prints most `#loc` aliases after the module that uses them. They are taken out of the text before it is
parsed, and each is resolved when the first operation needs it.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar

from xdsl.dialects.builtin import (
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdsl.ir import Attribute, Operation

_ALIAS_LINE = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_TOKEN = re.compile(
    r'\s*(?:(#[\w$.-]+)|"((?:[^"\\]|\\.)*)"(?::(\d{1,18}):(\d{1,18}))?|(callsite|fused|unknown)|(\()|(\))|(\])|(,)|(at\b)|(\[)|(<))'
)
_PLACE = re.compile(r'"([^"\\]*)":(\d{1,18}):(\d{1,18})', re.ASCII)
_ALIAS = re.compile(r'(?:"([^"\\]*)"\()?(#loc\d*)(?(1)\))', re.ASCII)
"""An alias, or a name of one."""
_ESCAPE = re.compile(r'\\([0-9a-fA-F]{2}|[nt\\"])')
_UNKNOWN = UnknownLoc()
_MAX_DEPTH = 200
_Location = TypeVar("_Location", FileLineColLoc, NameLoc)


class LocationAliases:
    """The `#loc` aliases of one module, resolved lazily and once each."""

    def __init__(self) -> None:
        self._bodies: dict[str, re.Match[str]] = {}
        self._resolved: dict[str, LocationAttr] = {}
        self._written: dict[str, LocationAttr] = {}
        self._source = Input("", "")

    def take_from(self, text: str, name: str) -> str:
        """Remember the alias definitions of `text` and return it without them, its line numbers unchanged."""
        self._source = Input(text, name)
        for match in _ALIAS_LINE.finditer(text):
            self._bodies.setdefault(match[1], match)
        return _ALIAS_LINE.sub("", text) if self._bodies else text

    def resolve(self, alias: str) -> LocationAttr | None:
        found = self._resolved.get(alias)
        if found is None and (body := self._bodies.get(alias)) is not None:
            # A definition that refers to itself must end as an error, not as a recursion.
            del self._bodies[alias]
            if (place := _PLACE.fullmatch(body[2])) is not None:
                found = _place(*place.groups())
            elif (match := _ALIAS.fullmatch(body[2])) is not None:
                found = self._of_alias(match)
            if found is None:
                found = _LocationReader(self, self._source, *body.span(2)).whole()
            self._resolved[alias] = found
        return found

    def _of_alias(self, match: re.Match[str]) -> LocationAttr | None:
        """What a match of `_ALIAS` says; None if there is no such alias."""
        name, alias = match.groups()
        found = self.resolve(alias)
        return found if found is None or name is None else _unverified(NameLoc, _string(name), found)

    def read(self, input: Input[str], pos: int) -> tuple[LocationAttr, int]:
        """The location that starts at `pos` (after `loc(`), and the position after its closing parenthesis."""
        match = _ALIAS.match(input.content, pos)
        if match is not None and input.content.startswith(")", match.end()):
            # What is written alike is one location.
            found = self._written.get(match[0]) or self._of_alias(match)
            if found is not None:
                self._written[match[0]] = found
                return found, match.end() + 1
        reader = _LocationReader(self, input, pos)
        found = reader.location()
        text = input.content[pos : reader.pos]
        reader.expect(7, "')'")
        return self._written.setdefault(text, found), reader.pos


class _LocationReader:
    """Recursive descent over the text of a location."""

    def __init__(self, aliases: LocationAliases, input: Input[str], pos: int, end: int | None = None) -> None:
        self.aliases = aliases
        self.input = input
        self.pos = pos
        self.end = input.len if end is None else end
        self.depth = 0

    def fail(self, message: str) -> NoReturn:
        raise ParseError(Span(self.pos, min(self.pos + 1, self.end), self.input), message)

    def next(self) -> re.Match[str]:
        match = _TOKEN.match(self.input.content, self.pos, self.end)
        if match is None:
            self.fail("location expected")
        self.pos = match.end()
        return match

    def peek(self, group: int) -> bool:
        match = _TOKEN.match(self.input.content, self.pos, self.end)
        return match is not None and match.lastindex == group

    def expect(self, group: int, what: str) -> None:
        if not self.peek(group):
            self.fail(f"{what} expected in location")
        self.next()

    def whole(self) -> LocationAttr:
        found = self.location()
        if self.input.content[self.pos : self.end].strip():
            self.fail("unexpected text after location")
        return found

    def location(self) -> LocationAttr:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.fail("location nested too deeply")
        match = self.next()
        if (alias := match.group(1)) is not None:
            found = self._alias(alias)
        elif (text := match.group(2)) is not None:
            found = self._file_or_name(text, match)
        elif (keyword := match.group(5)) is not None:
            found = self._keyword(keyword)
        else:
            self.fail("location expected")
        self.depth -= 1
        return found

    def _alias(self, alias: str) -> LocationAttr:
        found = self.aliases.resolve(alias)
        if found is None:
            self.fail(f"undefined location alias '{alias}'")
        return found

    def _file_or_name(self, text: str, match: re.Match[str]) -> LocationAttr:
        text = _unescape(text)
        if match.group(3) is not None:
            return _place(text, match.group(3), match.group(4))
        name = _string(text)
        if not self.peek(6):
            return NameLoc(name, NoneAttr())
        self.next()
        child = self.location()
        self.expect(7, "')'")
        return _unverified(NameLoc, name, child)

    def _keyword(self, keyword: str) -> LocationAttr:
        if keyword == "unknown":
            return _UNKNOWN
        if keyword == "fused":
            return self._fused()
        self.expect(6, "'('")
        callee = self.location()
        self.expect(10, "'at'")
        caller = self.location()
        self.expect(7, "')'")
        return CallSiteLoc(callee, caller)

    def _fused(self) -> LocationAttr:
        if self.peek(12):
            self.fail("metadata of fused locations is not supported")
        self.expect(11, "'['")
        found = [self.location()]
        while self.peek(9):
            self.next()
            found.append(self.location())
        self.expect(8, "']'")
        return FusedLoc(tuple(found), NoneAttr())


@functools.lru_cache(1 << 12)
def _place(file: str, line: str, column: str) -> FileLineColLoc:
    """A line of a file: most locations are. A tuner compiles the same lines over and over."""
    return _unverified(FileLineColLoc, _string(file), IntAttr(int(line)), IntAttr(int(column)))


@functools.lru_cache(1 << 10)
def _string(text: str) -> StringAttr:
    return StringAttr(text)


def _unverified(kind: type[_Location], *parameters: Attribute) -> _Location:
    """A location of parts that are right; to verify it would take longer than to parse it."""
    made = object.__new__(kind)
    for (name, _), value in zip(kind.get_irdl_definition().parameters, parameters, strict=True):
        object.__setattr__(made, name, value)
    return made


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = {"n": b"\n", "t": b"\t", "\\": b"\\", '"': b'"'}
    raw = re.sub(
        _ESCAPE.pattern.encode(),
        lambda m: plain.get(m[1].decode()) or bytes.fromhex(m[1].decode()),
        text.encode(),
    )
    return raw.decode(errors="replace")


@dataclass(frozen=True)
class SourceLocation:
    """A place in the user's source."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def location(op: Operation) -> SourceLocation | None:
    """The innermost line of the kernel's own file that `op` stems from, or None if its location is unknown.

    An operation of a library function (`tl.cdiv`, `tl.sum`) has a call-site location; the line wanted is the
    caller's, in the file that holds the kernel.
    """
    frames = list(_frames(op.location))
    if not frames:
        return None
    kernel_file = _file_of_function(op)
    for frame in frames:
        if frame.file == kernel_file:
            return frame
    return frames[-1] if kernel_file is None else frames[0]


def _file_of_function(op: Operation) -> str | None:
    node: Operation | None = op
    while node is not None:
        if node.name == "tt.func":
            frame = next(_frames(node.location), None)
            return frame.file if frame else None
        node = node.parent_op()
    return None


def _frames(loc: Attribute) -> Iterator[SourceLocation]:
    """File locations of `loc`, the innermost frame first."""
    if isinstance(loc, FileLineColLoc):
        yield SourceLocation(loc.filename.data, loc.line.data, loc.column.data)
    elif isinstance(loc, NameLoc):
        yield from _frames(loc.location)
    elif isinstance(loc, CallSiteLoc):
        yield from _frames(loc.callee)
        yield from _frames(loc.caller)
    elif isinstance(loc, FusedLoc):
        for part in loc.locations:  # pyright: ignore[reportGeneralTypeIssues]
            yield from _frames(part)
