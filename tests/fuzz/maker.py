# SPDX-License-Identifier: MIT
"""Builds a random program: what is in scope, new variables, operands of a wanted type and shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from tests.fuzz import numbers
from tests.fuzz.numbers import BOOL, INT32, TYPES, Type
from tests.fuzz.program import Block, Let, Memory, Program, Shape, Statement, Var

MOST = (512, 512, 512, 512, 4096)
"""Elements of the largest tile, one of these for a program."""
T = TypeVar("T")


class Maker:
    """Adds statements to a program. Operations (see `operations`) call it."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.program = Program(grid=self.number(1, 3))
        self.most = self.pick(MOST)
        self.blocks: list[Block] = [self.program.body]
        self.scopes: list[list[Var]] = [[Var("pid", INT32, ())]]
        self.depth = 0
        """Loops and branches around what is being added."""
        self.counters: list[Var] = []
        """Of the `while` loops around what is being added."""
        self.inputs: set[str] = set()
        """Names of memories that are read only."""
        self.scratch: set[str] = set()
        """Names of memories that programs write to, each to its own part."""
        self._names = 0
        for _ in range(self.number(0, 2)):
            name = self.fresh("n")
            # Triton takes a one as a constant.
            self.program.scalars[name] = self.pick((0, 2, 3, 5, 16, 33, 64, 100))
            self.scopes[0].append(Var(name, INT32, ()))

    # Choosing

    def number(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)]

    def chance(self, one_in: int) -> bool:
        return self.number(0, one_in - 1) == one_in - 1

    def shape(self, most: int | None = None, rank: int | None = None) -> Shape:
        """Extents that are powers of two."""
        found: list[int] = []
        most = self.most if most is None else most
        for _ in range(self.number(1, 3) if rank is None else rank):
            room = most // prod(found)
            found.append(2 ** self.number(0, min(11, room.bit_length() - 1)))
        return tuple(found)

    # Variables

    def fresh(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def visible(self) -> Iterator[Var]:
        for scope in self.scopes:
            yield from scope

    def find(self, wanted: Callable[[Var], bool]) -> list[Var]:
        return [v for v in self.visible() if wanted(v)]

    def any(self, wanted: Callable[[Var], bool] = lambda v: True, exact: bool = True) -> Var:
        """A variable that fits, a late one more often; a new one if there is none."""
        found = self.find(lambda v: wanted(v) and (v.slack == 0 or not exact))
        if not found:
            fitting = [t for t in TYPES if wanted(Var("", t, (16,)))]
            type_ = self.pick(fitting or [INT32])
            for shape in ((16,), (4, 8), (2, 4, 2), ()):
                if wanted(Var("", type_, shape)):
                    return self.like(type_, shape)
            raise AssertionError("no variable can be like that")
        start = self.number(0, len(found) - 1)
        return found[max(start, self.number(0, len(found) - 1))]

    def tensor(self, wanted: Callable[[Var], bool] = lambda v: True, exact: bool = True) -> Var:
        return self.any(lambda v: v.shape != () and wanted(v), exact)

    def like(self, type_: Type, shape: Shape) -> Var:
        """An exact variable of this type and shape: one there is, a cast of one, or a constant."""
        same = self.find(lambda v: v.slack == 0 and v.shape == shape and v.type == type_)
        others = self.find(lambda v: v.slack == 0 and v.shape == shape and v.type != type_)
        if same and not self.chance(4):
            return self.pick(same)
        if others and not self.chance(4):
            return self.cast(self.pick(others), type_)
        return self.constant(type_, shape)

    def cast(self, x: Var, target: Type) -> Var:
        if x.type == target:
            return x
        return self.let(
            target, x.shape, f"{x.name}.to(tl.{target.name})", [x], lambda a: numbers.cast(a, x.type, target), x.slack
        )

    def constant(self, type_: Type, shape: Shape) -> Var:
        """The same number everywhere; more often numbers that differ, so that exchanged elements are seen."""
        if prod(shape) > 1 and not self.chance(4):
            return self._pattern(type_, shape)
        value: Any
        if type_ is BOOL:
            value = bool(self.number(0, 1))
        elif type_.is_int:
            info = np.iinfo(type_.numpy)
            value = int(self.pick((0, 1, 2, 3, 7, int(info.max), int(info.min), int(info.max) // 3)))
        else:
            value = self.pick((0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 100.0))
        filled = np.full(shape, value, type_.numpy)
        return self.let(type_, shape, f"tl.full({shape_text(shape)}, {value!r}, tl.{type_.name})", [], lambda: filled)

    def _pattern(self, type_: Type, shape: Shape) -> Var:
        """`(place * factor + start) & 255`, as the type."""
        factor, start = self.pick((1, 3, 7, 101)), self.pick((0, 1, -4, 250))
        places = np.arange(prod(shape), dtype=np.int32).reshape(shape)
        filled = numbers.cast((places * factor + start) & 255, INT32, type_)
        text = f"(({flat_text(shape).removeprefix(' + ')}) * {factor} + {start} & 255).to(tl.{type_.name})"
        return self.let(type_, shape, text, [], lambda: filled)

    # Statements

    def add(self, statement: Statement) -> None:
        self.blocks[-1].append(statement)

    def name(self, var: Var) -> None:
        self.scopes[-1].append(var)

    def let(
        self,
        type_: Type,
        shape: Shape,
        text: str,
        reads: Sequence[Var],
        compute: Callable[..., Any],
        slack: float = 0.0,
    ) -> Var:
        """`new = text`, perhaps by way of a function."""
        return self.lets([(type_, shape)], text, reads, compute, slack)[0]

    def lets(
        self,
        results: Sequence[tuple[Type, Shape]],
        text: str,
        reads: Sequence[Var],
        compute: Callable[..., Any],
        slack: float = 0.0,
    ) -> list[Var]:
        targets = tuple(Var(self.fresh("v"), type_, shape, slack) for type_, shape in results)
        reads = tuple(reads)
        given = len({r.name for r in reads}) == len(reads) and all(r.name[0] == "v" for r in reads)
        statement = Let(targets, text, reads, compute, bool(given and reads and self.chance(20)))
        if statement.outlined:
            self.program.helpers.append(statement)
        self.add(statement)
        for target in targets:
            self.name(target)
        return list(targets)

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Statements go into a block of their own, whose variables end with it."""
        self.blocks.append(block)
        self.scopes.append([])
        self.depth += 1
        yield
        self.depth -= 1
        self.scopes.pop()
        self.blocks.pop()

    def memory(self, type_: Type, content: Any, slack: float = 0.0) -> Memory:
        found = Memory(self.fresh("p"), type_, content, slack)
        self.program.memories.append(found)
        return found

    def seed(self) -> int:
        return self.number(0, 2**16)


def axis_text(shape: Shape, axis: int) -> str:
    """`tl.arange` along one dimension of a tile."""
    place = ", ".join(":" if d == axis else "None" for d in range(len(shape)))
    return f"tl.arange(0, {shape[axis]})" + (f"[{place}]" if len(shape) > 1 else "")


def flat_text(shape: Shape) -> str:
    """` + ` the row-major offsets of a tile."""
    terms, step = [], 1
    for d in reversed(range(len(shape))):
        terms.append(f" + {axis_text(shape, d)} * {step}")
        step *= shape[d]
    return "".join(terms)


def shape_text(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
