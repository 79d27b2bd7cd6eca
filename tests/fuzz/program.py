# SPDX-License-Identifier: MIT
"""A random kernel: statements that know their source text and what they do in numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fuzz.numbers import Array, Type

Shape = tuple[int, ...]
INDENT = "    "


@dataclass(frozen=True)
class Var:
    """A variable of the kernel; a shape of () is a scalar."""

    name: str
    type: Type
    shape: Shape
    slack: float = 0.0
    """0 if its numbers are known exactly; else how far they may be off, relative to the number and to 1."""


class Returned(Exception):
    """The program has left the kernel."""


@dataclass
class State:
    """One program as it runs in numpy: its variables, and the memory that all programs share."""

    values: dict[str, Array]
    memory: dict[str, Array]
    printed: list[str] = field(default_factory=list)


@dataclass
class Let:
    """`target = text`, over the variables that it reads."""

    targets: tuple[Var, ...]
    text: str
    reads: tuple[Var, ...]
    compute: Callable[..., Any]
    outlined: bool = False
    """As a call of a function of its own."""

    def lines(self) -> list[str]:
        left = ", ".join(t.name for t in self.targets)
        if not self.outlined:
            return [f"{left} = {self.text}"]
        return [f"{left} = f_{self.targets[0].name}({', '.join(r.name for r in self.reads)})"]

    def run(self, state: State) -> None:
        got = self.compute(*[state.values[r.name] for r in self.reads])
        for target, value in zip(self.targets, got if len(self.targets) > 1 else (got,), strict=True):
            value = np.asarray(value)
            exact = target.slack == 0 and value.dtype != target.type.numpy
            if exact or value.shape != target.shape:
                raise TypeError(f"{self.text}: {value.dtype} {value.shape}, not {target}")
            state.values[target.name] = value

    def helper(self) -> list[str]:
        """The function that an outlined one calls."""
        # Triton takes tensors to functions that it inlines only.
        scalars = all(v.shape == () for v in (*self.reads, *self.targets))
        head = f"def f_{self.targets[0].name}({', '.join(r.name for r in self.reads)}):"
        return [f"@triton.jit{'(noinline=True)' if scalars else ''}", head, f"{INDENT}return {self.text}", "", ""]


@dataclass
class Touch:
    """Memory is read or written: `text` as a statement (or the value of `target`), `act` in numpy."""

    text: str
    act: Callable[[State], Any]
    target: Var | None = None

    def lines(self) -> list[str]:
        return [self.text if self.target is None else f"{self.target.name} = {self.text}"]

    def run(self, state: State) -> None:
        got = self.act(state)
        if self.target is not None:
            state.values[self.target.name] = got


Statement = Any
Block = list[Statement]


def _indented(block: Block) -> list[str]:
    return [INDENT + line for statement in block for line in statement.lines()] or [INDENT + "pass"]


def _run(block: Block, state: State) -> None:
    for statement in block:
        statement.run(state)


@dataclass
class If:
    condition: Var
    then: Block
    otherwise: Block

    def lines(self) -> list[str]:
        found = [f"if {self.condition.name}:", *_indented(self.then)]
        return [*found, "else:", *_indented(self.otherwise)] if self.otherwise else found

    def run(self, state: State) -> None:
        _run(self.then if bool(state.values[self.condition.name]) else self.otherwise, state)


@dataclass
class For:
    """A loop over `range(*bounds)`, each bound a number or a scalar."""

    index: Var
    bounds: tuple[int | Var, ...]
    body: Block
    iterator: str = "range"

    def lines(self) -> list[str]:
        bounds = ", ".join(b.name if isinstance(b, Var) else str(b) for b in self.bounds)
        return [f"for {self.index.name} in {self.iterator}({bounds}):", *_indented(self.body)]

    def run(self, state: State) -> None:
        for index in range(*[int(state.values[b.name]) if isinstance(b, Var) else b for b in self.bounds]):
            state.values[self.index.name] = np.asarray(index, self.index.type.numpy)
            _run(self.body, state)


@dataclass
class While:
    """Counts a variable down to zero."""

    counter: Var
    body: Block

    def lines(self) -> list[str]:
        name = self.counter.name
        return [f"while {name} > 0:", *_indented(self.body), f"{INDENT}{name} = {name} - 1"]

    def run(self, state: State) -> None:
        while state.values[self.counter.name] > 0:
            _run(self.body, state)
            state.values[self.counter.name] = state.values[self.counter.name] - np.int32(1)


@dataclass
class Return:
    def lines(self) -> list[str]:
        return ["return"]

    def run(self, state: State) -> None:
        del state
        raise Returned


@dataclass
class Memory:
    """A buffer that the kernel is given."""

    name: str
    type: Type
    content: Array
    slack: float = 0.0


@dataclass(repr=False)
class Program:
    """A kernel, what it is launched with, and what it must leave in memory."""

    grid: int
    memories: list[Memory] = field(default_factory=list)
    scalars: dict[str, Any] = field(default_factory=dict)
    body: Block = field(default_factory=list)
    helpers: list[Let] = field(default_factory=list)
    prints: bool = False
    """Whether it writes to standard output."""

    def __repr__(self) -> str:
        return f"<a kernel of {len(self.body)} statements>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """As hypothesis prints it: an error shows the source, which is all that is wanted."""
        del cycle
        printer.text(repr(self))

    def source(self, prelude: Sequence[str]) -> str:
        names = [*(m.name for m in self.memories), *self.scalars]
        functions = [line for helper in self.helpers for line in helper.helper()]
        lines = [f"def kernel({', '.join(names)}):", f"{INDENT}pid = tl.program_id(0)", *_indented(self.body)]
        return "\n".join([*prelude, *functions, "@triton.jit", *lines, ""])

    def expected(self) -> tuple[dict[str, Array], list[str]]:
        """The memory after all programs have run in numpy, one after the other, and the lines that they print."""
        memory = {m.name: m.content.copy() for m in self.memories}
        printed: list[str] = []
        with np.errstate(all="ignore"):
            for pid in range(self.grid):
                values = {"pid": np.asarray(pid, np.int32)}
                values.update({name: np.asarray(v, np.int32) for name, v in self.scalars.items()})
                with suppress(Returned):
                    _run(self.body, State(values, memory, printed))
        return memory, printed
