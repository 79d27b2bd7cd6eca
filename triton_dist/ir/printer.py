# SPDX-License-Identifier: MIT
"""The printer: text that libtriton reads back as the same module."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import (
    AnyFloat,
    CallSiteLoc,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FusedLoc,
    NameLoc,
    UnknownLoc,
)
from xdsl.printer import Printer

from triton_dist.ir.constants import element_literal, float_literal, splat_bytes

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, SSAValue

_LOCATIONS = (CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc)


class TritonPrinter(Printer):
    """xDSL's printer, with exact floats and dense constants, locations as aliases, and names that never clash."""

    def __init__(self, stream: Any = None, **options: Any) -> None:
        super().__init__(stream, **options)
        self._aliases: dict[Attribute, str] = {}

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, _LOCATIONS):
            self.print_string(self._alias(attribute) if self.printing_location else f"loc({self._alias(attribute)})")
        elif isinstance(attribute, UnknownLoc):
            self.print_string("unknown" if self.printing_location else "loc(unknown)")
        elif isinstance(attribute, DenseIntOrFPElementsAttr):
            self._print_dense(attribute)
        else:
            super().print_attribute(attribute)

    def _alias(self, loc: Attribute) -> str:
        return self._aliases.setdefault(loc, f"#loc{len(self._aliases) or ''}")

    def print_location_aliases(self) -> None:
        """The definitions of the aliases used so far, each on a line, and before those that use it."""
        self.printing_location = True
        defined: set[Attribute] = set()
        for loc in list(self._aliases):
            self._define(loc, defined)
        self.printing_location = False

    def _define(self, loc: Attribute, defined: set[Attribute]) -> None:
        if loc in defined or not isinstance(loc, _LOCATIONS):
            return
        defined.add(loc)
        for part in _parts(loc):
            self._define(part, defined)
        self.print_string(f"\n{self._alias(loc)} = loc(")
        loc.print_builtin(self)
        self.print_string(")")

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

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self._ssa_values.get(value)
        if name is None:
            name = self._ssa_values[value] = self._new_name(value.name_hint)
        self.print_string(f"%{name}")
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
    if debuginfo:
        printer.print_location_aliases()
    stream.write("\n")
    return stream.getvalue()
