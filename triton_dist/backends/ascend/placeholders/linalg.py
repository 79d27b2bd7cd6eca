# SPDX-License-Identifier: MIT
"""Placeholders become custom ops again, in the text of the Linalg module.

In text, since what follows in triton-ascend reads that text with regular expressions and no tool but the vendor's can
print it. A line is one op; a name stands for its latest definition, as MLIR reuses a name only when it is out of scope.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from triton_dist.backends.ascend.placeholders.scalars import LIBRARY, POINTERS
from triton_dist.backends.ascend.symbols import NAME_PREFIX
from triton_dist.errors import PlaceholderError

_CALL = re.compile(
    rf'^(?P<indent>\s*)(?P<result>%\S+) = tt\.extern_elementwise\s+(?P<operands>.*?)\s*'
    rf'\{{libname = "{re.escape(LIBRARY)}", libpath = "(?P<attributes>(?:[^"\\]|\\.)*)", pure = \w+, '
    r'symbol = "(?P<symbol>[^"]*)"\} : \((?P<types>.*?)\) -> (?P<type>\S+)(?P<rest>.*)$'
)
_ADDRESS = re.compile(r"^\s*(%\S+) = memref\.extract_aligned_pointer_as_index (%\S+) : (.+) -> index")
_CAST = re.compile(r"^\s*(%\S+) = arith\.index_cast (%\S+) : index to i64")
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2})")


@dataclass(frozen=True)
class Memref:
    name: str
    type: str

    @property
    def element(self) -> str:
        """The element type: memref<4x?xf32, strided<..>> has f32."""
        return self.type.removeprefix("memref<").partition(",")[0].rstrip(">").rpartition("x")[2]


@dataclass
class _Restorer:
    """One pass over the lines; `origins` maps an address (index or i64) to the memref that it is of."""

    origins: dict[str, Memref] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    made: int = 0

    def take(self, line: str) -> None:
        if match := _CALL.match(line):
            self._call(match)
            return
        self.lines.append(line)
        if match := _ADDRESS.match(line):
            self.origins[match[1]] = Memref(match[2], match[3])
        elif (match := _CAST.match(line)) and match[2] in self.origins:
            self.origins[match[1]] = self.origins[match[2]]
        elif " = " in line:  # the name means something else from here on
            self.origins.pop(line.split(" = ", 1)[0].strip(), None)

    def _call(self, match: re.Match[str]) -> None:
        attributes, pointees = _decoded(match["attributes"])
        *inputs, output = pointees
        names = [name for name in match["operands"].split(", ") if name]
        types = [type_ for type_ in match["types"].split(", ") if type_]
        operands = [
            self._memref(match, name, pointee) if pointee else Memref(name, type_)
            for name, type_, pointee in zip(names, types, inputs, strict=True)
        ]
        ins = f" ins({', '.join(o.name for o in operands)} : {', '.join(o.type for o in operands)})" if operands else ""
        text = f'hivm.hir.custom {attributes} "{NAME_PREFIX}{match["symbol"]}"{ins}'
        self._finish(match, text, output)

    def _finish(self, match: re.Match[str], text: str, output: str) -> None:
        indent, result, rest = match["indent"], match["result"], match["rest"]
        if output == "none":
            self.lines.append(f"{indent}{text}{rest}")
            return
        if not output:
            self.lines.append(f"{indent}{result} = {text} -> {match['type']}{rest}")
            return
        made = Memref(self._fresh(), f"memref<?x{output}>")
        index = self._fresh()
        self.lines += [
            f"{indent}{made.name} = {text} -> {made.type}{rest}",
            f"{indent}{index} = memref.extract_aligned_pointer_as_index {made.name} : {made.type} -> index{rest}",
            f"{indent}{result} = arith.index_cast {index} : index to i64{rest}",
        ]
        self.origins[result] = made

    def _memref(self, match: re.Match[str], address: str, pointee: str) -> Memref:
        """The memref that an address is of, or one made of the address."""
        found = self.origins.get(address)
        if found is not None:
            if "consume_token" in match["symbol"] and "offset" in found.type:
                # Its result is the descriptor it is given, and an address taken of that would lose the offset.
                raise PlaceholderError(symbol=match["symbol"], detail=f"the pointer ({found.type}) has an offset")
            if found.element == pointee:
                return found
            # The pointer was cast: the function takes a memref of its own type, at the same address.
            if "offset" in found.type:
                detail = f"the pointer ({found.type}) is cast to {pointee} after an offset; cast it first"
                raise PlaceholderError(symbol=match["symbol"], detail=detail)
        indent, rest = match["indent"], match["rest"]
        size, made = self._fresh(), Memref(self._fresh(), f"memref<?x{pointee}>")
        self.lines += [
            f"{indent}{size} = arith.constant 1 : index{rest}",
            f"{indent}{made.name} = hivm.hir.pointer_cast({address}) [{size}] : {made.type}{rest}",
            f"{indent}annotation.mark {made.name} {{address_space = #hivm.address_space<gm>}} : {made.type}{rest}",
        ]
        return made

    def _fresh(self) -> str:
        self.made += 1
        return f"%custom_{self.made}"


def _decoded(encoded: str) -> tuple[str, list[str]]:
    """The dictionary of the custom op, in alphabetical order, and the pointees of operands and result."""
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), encoded).replace('\\"', '"')
    entries = {key: value for key, value in (_entry(part) for part in _split(text.strip()[1:-1]))}
    pointees = (entries.pop(POINTERS) or '""').strip('"').split(",")
    shown = [f"{key} = {value}" if value else key for key, value in sorted(entries.items())]
    return f"{{{', '.join(shown)}}}", pointees


def _entry(part: str) -> tuple[str, str]:
    key, _, value = part.partition(" = ")
    return key.strip().strip('"'), value.strip()


def _split(text: str) -> list[str]:
    """The entries of a dictionary: commas in strings, brackets and angle brackets do not separate."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif not quoted and character in "<[({":
            depth += 1
        elif not quoted and character in ">])}":
            depth -= 1
        elif character == "," and not quoted and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part for part in parts if part.strip()]


def restore(text: str) -> str:
    """The Linalg module with every placeholder a custom op again; without placeholders it is the same text."""
    restorer = _Restorer()
    for line in text.split("\n"):
        restorer.take(line)
    return "\n".join(restorer.lines)
