# SPDX-License-Identifier: MIT
"""The printer: text that libtriton reads back as the same module."""

from __future__ import annotations

import functools
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.dialects.builtin import (
    AnyFloat,
    CallSiteLoc,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FusedLoc,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import BuiltinAttribute, Operation
from xdsl.printer import Printer

from triton_dist.ir.constants import element_literal, float_literal, splat_bytes
from triton_dist.ir.seen import Form, Forms, Remembered, is_flat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, SSAValue

_LOCATIONS = frozenset({CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc})


class TritonPrinter(Printer):
    """xDSL's printer, with exact floats and dense constants, locations as aliases, and names that never clash."""

    def __init__(self, stream: Any = None, **options: Any) -> None:
        super().__init__(stream, **options)
        # By identity: comparing locations takes longer than printing them.
        self._aliases: dict[int, tuple[str, Attribute]] = {}
        self._recording: _Recording | None = None

    def print_attribute(self, attribute: Attribute) -> None:
        kind = type(attribute)
        if kind in _LOCATIONS:
            self.print_string(self._alias(attribute) if self.printing_location else f"loc({self._alias(attribute)})")
        elif kind is UnknownLoc:
            self.print_string("unknown" if self.printing_location else "loc(unknown)")
        elif isinstance(attribute, DenseIntOrFPElementsAttr):
            self._print_dense(attribute)
        else:
            super().print_attribute(attribute)

    def _alias(self, loc: Attribute) -> str:
        if self._recording is not None:
            self._recording.give_up()
        found = self._aliases.get(id(loc))
        if found is None:
            found = self._aliases[id(loc)] = (f"#loc{len(self._aliases) or ''}", loc)
        return found[0]

    # Operations that are a line each

    def print_op(self, op: Operation) -> None:
        plain = self.print_generic_format or self.print_properties_as_attributes
        if plain or not is_flat(op) or type(op).print is Operation.print:
            super().print_op(op)
            return
        if op.results:
            self.print_list(op.results, self.print_ssa_value)
            self.print_string(" = ")
        self.print_string(op.name)
        form = Form(op)
        text = _texts.get(form)
        if text is None:
            self._print_and_remember(op, form)
        else:
            self.stream.write(text.of([self._name(value) for value in op._operands]))  # pyright: ignore
        if self.print_debuginfo:
            self.stream.write(f" loc({self._reference(op.location)})")

    def _reference(self, loc: Attribute) -> str:
        """The location inside `loc(`...`)`."""
        return self._alias(loc) if type(loc) in _LOCATIONS else "unknown"

    def _print_and_remember(self, op: Operation, form: Form) -> None:
        text, recording = self._recorded(lambda: op.print(self))
        if (found := recording.text_of(text, op.operands)) is not None:
            _texts.put(form, found)

    def print_repeated(self, attributes: Sequence[Attribute], write: Callable[[], object]) -> None:
        """What `write` prints of just these attributes, or has printed of the same objects before."""
        key = tuple(map(id, attributes))
        known = _repeated.get(key)
        if known is not None:
            self.stream.write(known[0])
            return
        text, recording = self._recorded(write)
        if recording.usable:
            # The attributes are kept, so that no other can have their identities.
            _repeated.put(key, (text, attributes))

    def _recorded(self, write: Callable[[], object]) -> tuple[str, _Recording]:
        """Print, and what was printed."""
        stream, self.stream = self.stream, StringIO()
        self._recording = recording = _Recording(self.stream)
        try:
            write()
        finally:
            text = self.stream.getvalue()
            self.stream, self._recording = stream, None
        self.stream.write(text)
        return text, recording

    def print_location_aliases(self) -> None:
        """The definitions of the aliases used so far, each on a line, and before those that use it."""
        self.printing_location = True
        defined: set[int] = set()
        for _, loc in list(self._aliases.values()):
            self._define(loc, defined)
        self.printing_location = False

    def _define(self, loc: Attribute, defined: set[int]) -> None:
        kind: Any = type(loc)
        if id(loc) in defined or kind not in _LOCATIONS:
            return
        defined.add(id(loc))
        if kind is FileLineColLoc:
            self.stream.write(f"\n{self._alias(loc)} = loc({_place(loc)})")  # pyright: ignore[reportArgumentType]
            return
        for part in _parts(loc):
            self._define(part, defined)
        if isinstance(loc, NameLoc) and not isinstance(loc.location, NoneAttr):
            name = loc.parameters[0]
            assert isinstance(name, StringAttr)
            text = f"{_quoted(name.data)}({self._reference(loc.location)})"
        else:
            self.stream.write(f"\n{self._alias(loc)} = loc(")
            assert isinstance(loc, BuiltinAttribute)
            loc.print_builtin(self)
            self.stream.write(")")
            return
        self.stream.write(f"\n{self._alias(loc)} = loc({text})")

    def _print_dense(self, attr: DenseIntOrFPElementsAttr) -> None:
        element = attr.type.element_type
        raw = splat_bytes(attr)
        self.print_string("dense<")
        if raw is not None:
            self.print_string(element_literal(element, raw))
        else:
            size = element.compile_time_size
            data = attr.data.data
            literals = [element_literal(element, data[at : at + size]) for at in range(0, len(data), size)]
            self._print_nested(literals, attr.get_shape())
        self.print_string("> : ")
        self.print_attribute(attr.type)

    def _print_nested(self, literals: list[str], shape: tuple[int, ...]) -> None:
        if not literals:
            return
        if not shape:
            self.print_string(literals[0])
            return
        step = len(literals) // shape[0]
        rows = [literals[at : at + step] for at in range(0, len(literals), step)]
        with self.in_square_brackets():
            self.print_list(rows, lambda row: self._print_nested(row, shape[1:]))

    def print_float(self, value: float, type: AnyFloat) -> None:
        self.print_string(float_literal(value, type))

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        # The column is for messages in the midst of the text, of which there are none.
        if "\n" in text:
            super().print_string(text, indent=indent)
        else:
            self.stream.write(text)

    def print_bytes_literal(self, bytestring: bytes) -> None:
        self.print_string(_quoted_bytes(bytestring))

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self._name(value)
        if self._recording is not None:
            self._recording.value(value, name)
        self.print_string(f"%{name}")
        return name

    def _name(self, value: SSAValue) -> str:
        name = self._ssa_values.get(value)
        if name is None:
            name = self._ssa_values[value] = self._new_name(value.name_hint)
        return name

    def _new_name(self, hint: str | None) -> str:
        """A name not given yet in this function; `x_1` may be the hint of one value and the second name of another."""
        if not hint:
            return self._get_new_valid_name_id()
        name, count = hint, self.ssa_names.get(hint, 0)
        while name in self.ssa_names and count:
            name = f"{hint}_{count}"
            count += 1
        self.ssa_names[hint] = max(count, 1)
        self.ssa_names.setdefault(name, 1)
        return name


_ESCAPES = {
    code: f"\\{code:02X}" for code in range(256) if not 0x20 <= code <= 0x7E or chr(code) == '"'
} | {ord("\\"): "\\\\"}  # fmt: skip


def _quoted_bytes(data: bytes) -> str:
    return f'"{data.decode("latin-1").translate(_ESCAPES)}"'


def _place(loc: FileLineColLoc) -> str:
    return f"{_quoted(loc.filename.data)}:{loc.line.data}:{loc.column.data}"


@functools.lru_cache(1 << 10)
def _quoted(text: str) -> str:
    return _quoted_bytes(text.encode())


class _Text(NamedTuple):
    """What the printer writes after an operation's name, and which operands it names where."""

    template: str
    operands: tuple[int, ...]

    def of(self, names: Sequence[str]) -> str:
        return self.template % tuple([names[index] for index in self.operands])


class _Recording:
    """Where in a text values are named."""

    def __init__(self, stream: StringIO) -> None:
        self._stream = stream
        self._values: list[tuple[int, int, SSAValue]] = []
        self.usable = True

    def give_up(self) -> None:
        """The text depends on more than what is printed."""
        self.usable = False

    def value(self, value: SSAValue, name: str) -> None:
        start = self._stream.tell() + 1
        self._values.append((start, start + len(name), value))

    def text_of(self, text: str, operands: Sequence[SSAValue]) -> _Text | None:
        """None if the text cannot be used again."""
        index_of = {value: index for index, value in enumerate(operands)}
        known = all(value in index_of for _, _, value in self._values)
        if not self.usable or not known or len(index_of) != len(operands) or "\n" in text:
            return None
        pieces, end = [], 0
        for start, stop, _ in self._values:
            pieces += [text[end:start].replace("%", "%%"), "%s"]
            end = stop
        pieces.append(text[end:].replace("%", "%%"))
        return _Text("".join(pieces), tuple(index_of[value] for _, _, value in self._values))


_texts: Forms[_Text] = Forms()
_repeated: Remembered[tuple[str, Sequence[Attribute]]] = Remembered()


def _parts(loc: Attribute) -> tuple[Attribute, ...]:
    if isinstance(loc, NameLoc):
        return (loc.location,)
    if isinstance(loc, CallSiteLoc):
        return (loc.callee, loc.caller)
    if isinstance(loc, FusedLoc):
        return tuple(loc.locations)  # pyright: ignore[reportGeneralTypeIssues, reportArgumentType]
    return ()


def print_text(module: ModuleOp, debuginfo: bool = True, **options: bool) -> str:
    """The module as text, with its locations if `debuginfo`. The options are those of xDSL's printer."""
    stream = StringIO()
    printer = TritonPrinter(stream, print_debuginfo=debuginfo, **options)
    printer.print_op(module)
    # An attribute may be one, whatever is printed of the operations' own.
    printer.print_location_aliases()
    stream.write("\n")
    return stream.getvalue()
