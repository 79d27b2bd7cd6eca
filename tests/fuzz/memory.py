# SPDX-License-Identifier: MIT
"""Loads, stores and atomics of random kernels: strides, masks, overlapping tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tests.fuzz import numbers
from tests.fuzz.maker import Maker, axis_text, flat_text
from tests.fuzz.numbers import (
    BF16,
    BOOL,
    FP16,
    FP32,
    FP64,
    INT8,
    INT32,
    INT64,
    TYPES,
    UINT32,
    UINT64,
    Array,
    Type,
)
from tests.fuzz.operations import _small, integral, operation
from tests.fuzz.program import Memory, Shape, State, Touch, Var

SIZE = 1024
"""Elements of an input, and of each program's part of a buffer that is written."""


def axis_values(shape: Shape, axis: int) -> Array:
    return np.arange(shape[axis], dtype=np.int32).reshape([-1 if d == axis else 1 for d in range(len(shape))])


@dataclass
class Place:
    """Offsets of a tile, as text and as numbers, and the mask without which some of them lie outside."""

    text: str
    reads: tuple[Var, ...]
    offsets: Callable[..., Array]
    inside: bool


def _base(m: Maker) -> tuple[str, tuple[Var, ...], Callable[..., Array], int]:
    """Where a tile starts: text, variables, value, and the largest value."""
    kind = m.number(0, 3)
    start = m.pick((0, 0, 1, 7, 16, 100))
    if kind == 0:
        return str(start), (), lambda: np.int32(start), start
    scalar = m.any(lambda v: v.shape == () and v.type is INT32)
    most, factor = m.pick((1, 7, 63)), m.pick((1, 2, 16))
    text = f"{start} + ({scalar.name} & {most}) * {factor}"
    return text, (scalar,), lambda s: np.int32(start + int(s & most) * factor), start + most * factor


def strided(m: Maker, shape: Shape, size: int = SIZE) -> Place:
    """Any strides: rows, columns, repeated elements, backwards, gaps."""
    text, reads, start, top = _base(m)
    strides = _packed(m, shape) if m.chance(2) else [m.pick((0, 1, 1, 2, 3, -1, 16, 33, -2)) for _ in shape]
    low = sum(min(0, s * (n - 1)) for s, n in zip(strides, shape, strict=True))
    high = top + sum(max(0, s * (n - 1)) for s, n in zip(strides, shape, strict=True))
    terms = [f"{axis_text(shape, d)} * {s}" for d, s in enumerate(strides)]

    def offsets(*values: Array) -> Array:
        found = np.full(shape, start(*values), np.int32)
        for d, s in enumerate(strides):
            found = found + axis_values(shape, d) * np.int32(s)
        return found

    return Place(" + ".join([text, *terms]), reads, offsets, low >= 0 and high < size)


def _packed(m: Maker, shape: Shape) -> list[int]:
    """Strides of a dense tile whose dimensions lie in any order, perhaps with gaps: no element twice."""
    order = list(range(len(shape)))
    if m.chance(2):
        order.reverse()
    strides, step = [0] * len(shape), m.pick((1, 1, 1, 2))
    for d in order[::-1]:
        strides[d] = step
        step *= shape[d]
    return strides


def computed(m: Maker, shape: Shape) -> Place:
    """Offsets that the kernel has computed."""
    v = m.like(m.pick((INT32, INT32, INT64)), shape)
    return Place(f"({v.name} & {SIZE - 1})", (v,), lambda a: a & (SIZE - 1), True)


@dataclass
class Mask:
    text: str
    reads: tuple[Var, ...]
    compute: Callable[[Array, tuple[Array, ...]], Array]
    """From the offsets and the variables read."""


def _bounded(m: Maker, place: Place, shape: Shape, size: int) -> Mask | None:
    """A mask: needed if the tile reaches outside; else perhaps."""
    if not place.inside:
        text = f"({place.text} >= 0) & ({place.text} < {size})"
        return Mask(text, (), lambda offsets, _: (offsets >= 0) & (offsets < size))
    kind = m.number(0, 3)
    if kind == 0 and shape:
        return _edge(m, shape)
    if kind == 1:
        bits = m.like(BOOL, shape)
        return Mask(bits.name, (bits,), lambda _, values: values[0])
    return None


def _edge(m: Maker, shape: Shape) -> Mask:
    """`arange < bound`, with a bound that may be known at run time only."""
    axis = m.number(0, len(shape) - 1)
    bound: Any = m.any(lambda v: v.shape == () and v.type is INT32) if m.chance(2) else None
    limit = m.number(0, shape[axis])
    text = f"{axis_text(shape, axis)} < {bound.name if bound else limit}"

    def compute(offsets: Array, values: tuple[Array, ...]) -> Array:
        return np.broadcast_to(axis_values(shape, axis) < (values[0] if bound else limit), offsets.shape)

    return Mask(text, (bound,) if bound else (), compute)


class Access:
    """A place and a mask in a memory: which elements, in one program."""

    def __init__(self, m: Maker, memory: Memory, place: Place, mask: Mask | None, shift: int) -> None:
        self.memory, self.place, self.mask, self.shift = memory, place, mask, shift
        base = f"{memory.name} + pid * {shift}" if shift else memory.name
        self.pointer = f"{base} + {place.text}" if m.chance(2) else f"({base}) + ({place.text})"
        self.where = f", mask={mask.text}" if mask else ""

    def resolve(self, state: State) -> tuple[Array, Array]:
        """Offsets in the memory (0 where masked off), and the mask."""
        offsets = np.asarray(self.place.offsets(*[state.values[v.name] for v in self.place.reads]))
        bits = np.ones(offsets.shape, bool)
        if self.mask:
            bits = np.asarray(self.mask.compute(offsets, tuple(state.values[v.name] for v in self.mask.reads)))
        return np.where(bits, offsets.astype(np.int64) + self.shift * int(state.values["pid"]), 0), bits


def _access(m: Maker, memory: Memory, shape: Shape, shift: int, place: Place | None = None) -> Access:
    if place is None:
        place = computed(m, shape) if m.chance(4) else strided(m, shape)
    return Access(m, memory, place, _bounded(m, place, shape, SIZE), shift)


def _load(m: Maker, access: Access, shape: Shape) -> Var:
    type_ = access.memory.type
    other = m.like(type_, ()) if access.mask and m.chance(2) else None
    target = Var(m.fresh("v"), type_, shape)
    text = f"tl.load({access.pointer}{access.where}{f', other={other.name}' if other else ''})"
    name = access.memory.name

    def act(state: State) -> Array:
        at, bits = access.resolve(state)
        rest = np.zeros((), type_.numpy) if other is None else state.values[other.name]
        return np.where(bits, state.memory[name][at], rest).astype(type_.numpy)

    m.add(Touch(text, act, target))
    m.name(target)
    return target


@operation(10)
def load(m: Maker) -> Var:
    """Of an input, a new one or one that was read before."""
    inputs = [p for p in m.program.memories if p.name in m.inputs]
    if inputs and m.chance(2):
        memory = m.pick(inputs)
    else:
        type_ = m.pick(TYPES)
        memory = m.memory(type_, numbers.data(type_, 3 * SIZE, m.seed()))
        m.inputs.add(memory.name)
    shape = () if m.chance(6) else m.shape()
    return _load(m, _access(m, memory, shape, m.pick((0, 0, 64, SIZE))), shape)


@operation(6)
def load_what_was_stored(m: Maker) -> Var:
    """From a buffer that this program also writes to."""
    memory = _scratch(m, m.pick(TYPES))
    shape = () if m.chance(8) else m.shape()
    return _load(m, _access(m, memory, shape, SIZE), shape)


def _scratch(m: Maker, type_: Type) -> Memory:
    """A buffer of this type that programs write to, each to its own part."""
    found = [p for p in m.program.memories if p.name in m.scratch]
    if found and m.chance(2):
        return m.pick(found)
    same = [p for p in found if p.type == type_]
    if same:
        return m.pick(same)
    memory = m.memory(type_, numbers.data(type_, m.program.grid * SIZE, m.seed()))
    m.scratch.add(memory.name)
    return memory


def _once(m: Maker, shape: Shape) -> Place:
    """A tile of which no two elements share an address."""
    text, reads, start, _ = _base(m)
    strides = _packed(m, shape)
    terms = [f"{axis_text(shape, d)} * {s}" for d, s in enumerate(strides)]

    def offsets(*values: Array) -> Array:
        found = np.full(shape, start(*values), np.int32)
        for d, s in enumerate(strides):
            found = found + axis_values(shape, d) * np.int32(s)
        return found

    # Wherever it starts, the mask keeps it inside. (Triton takes no mask that is known before it compiles.)
    return Place(" + ".join([text, *terms]), reads, offsets, shape == () and not reads)


@operation(8)
def shift_in_place(m: Maker) -> Var:
    """A row is read, and something written a few places further in the same buffer; then it is read again."""
    memory, shape = _scratch(m, m.pick(TYPES)), (2 ** m.number(3, 9),)
    places = [_row(shape, m.pick((4, 0, 3, 5, 8))) for _ in range(3)]
    before = _load(m, _access(m, memory, shape, SIZE, places[0]), shape)
    written = other = m.like(memory.type, shape)
    if m.chance(2):
        sign, of = ("^", np.bitwise_xor) if memory.type is BOOL else ("+", np.add)
        written = m.let(
            memory.type, shape, f"{before.name} {sign} {other.name}", [before, other],
            lambda a, b: numbers.rounded(of(a, b), memory.type),
        )  # fmt: skip
    _store(m, memory, written, places[1])
    return _load(m, _access(m, memory, shape, SIZE, places[2]), shape)


def _row(shape: Shape, start: int) -> Place:
    offsets = start + np.arange(shape[0], dtype=np.int32)
    return Place(f"{start} + {axis_text(shape, 0)}", (), lambda: offsets, True)


@operation(8)
def store(m: Maker) -> None:
    x = m.any()
    if 2 * prod(x.shape) > m.most:
        return
    memory = _scratch(m, x.type)
    _store(m, memory, m.cast(x, memory.type))


def _store(m: Maker, memory: Memory, x: Var, place: Place | None = None) -> None:
    access = _access(m, memory, x.shape, SIZE, place or _once(m, x.shape))

    def act(state: State) -> None:
        at, bits = access.resolve(state)
        state.memory[memory.name][at[bits]] = np.broadcast_to(state.values[x.name], bits.shape)[bits]

    m.add(Touch(f"tl.store({access.pointer}, {x.name}{access.where})", act))


ATOMICS: dict[str, tuple[tuple[Type, ...], Callable[[Array, Array], Array]]] = {
    "atomic_add": ((INT32, INT64, UINT32, UINT64, FP32, FP64, FP16, BF16), np.add),
    "atomic_max": ((INT32, INT64, UINT32, UINT64), np.maximum),
    "atomic_min": ((INT32, INT64, UINT32, UINT64), np.minimum),
    "atomic_and": ((INT32, INT64, UINT32), np.bitwise_and),
    "atomic_or": ((INT32, INT64, UINT32), np.bitwise_or),
    "atomic_xor": ((INT32, INT64, UINT32), np.bitwise_xor),
    "atomic_xchg": ((INT32, INT64, FP32), lambda a, b: b),
}


@operation(3)
def atomic(m: Maker) -> Var | None:
    """On elements of its own, so that what was there before is known."""
    name = m.pick(sorted(ATOMICS))
    types, of = ATOMICS[name]
    type_ = m.pick(types)
    x = m.any(lambda v: v.shape == () or prod(v.shape) * 2 <= m.most)
    value = _small(m, x, type_, 3) if type_.is_float else m.cast(x, type_)
    memory = m.memory(type_, np.zeros(m.program.grid * SIZE, type_.numpy))
    access = _access(m, memory, x.shape, SIZE, _once(m, x.shape))
    target = Var(m.fresh("v"), type_, x.shape)

    def act(state: State) -> Array:
        at, bits = access.resolve(state)
        content, new = state.memory[memory.name], np.broadcast_to(state.values[value.name], bits.shape)
        old = np.where(bits, content[at], np.zeros((), type_.numpy))
        content[at[bits]] = of(old, new)[bits]
        return old

    m.add(Touch(f"tl.{name}({access.pointer}, {value.name}{access.where})", act, target))
    if access.mask is None:
        # What a masked-off lane gives is left open.
        m.name(target)
        return target
    return None


@operation(2)
def crowded_atomic(m: Maker) -> None:
    """Many elements, and all programs, onto a few addresses: the order does not matter."""
    name = m.pick(("atomic_add", "atomic_max", "atomic_min", "atomic_xor"))
    x = m.tensor(integral)
    value = m.cast(x, m.pick((INT32, INT64, UINT32)))
    memory = m.memory(value.type, np.zeros(8, value.type.numpy))
    index = m.like(INT32, x.shape)
    of = ATOMICS[name][1]

    def act(state: State) -> None:
        content = state.memory[memory.name]
        for at, v in zip((state.values[index.name] & 7).flat, state.values[value.name].flat, strict=True):
            content[at] = of(content[at], v)

    m.add(Touch(f"tl.{name}({memory.name} + ({index.name} & 7), {value.name})", act))


@operation(2)
def compare_and_swap(m: Maker) -> Var:
    x = m.any(lambda v: v.type in (INT32, INT64) and prod(v.shape) <= m.most)
    y = m.like(x.type, x.shape)
    content = np.resize(np.arange(-2, 3), m.program.grid * prod(x.shape)).astype(x.type.numpy)
    memory, count = m.memory(x.type, content), prod(x.shape)
    target = Var(m.fresh("v"), x.type, x.shape)
    offsets = np.arange(count).reshape(x.shape)
    text = flat_text(x.shape)

    def act(state: State) -> Array:
        at = offsets + count * int(state.values["pid"])
        found = state.memory[memory.name][at]
        new = np.where(found == state.values[x.name], state.values[y.name], found)
        state.memory[memory.name][at] = new
        return np.asarray(found)

    m.add(Touch(f"tl.atomic_cas({memory.name} + pid * {count}{text}, {x.name}, {y.name})", act, target))
    m.name(target)
    return target


@operation(2)
def through_descriptor(m: Maker) -> Var:
    """A block of a matrix, whose edges it may cross."""
    type_ = m.pick((INT32, FP32, FP16, INT8))
    rows, columns = m.number(1, 40), 16 * m.number(1, 4)
    shape = (2 ** m.number(0, 4), 2 ** m.number(4, 5))
    memory = m.memory(type_, numbers.data(type_, rows * columns, m.seed()))
    width = m.number(1, columns)
    scalar = m.any(lambda v: v.shape == () and v.type is INT32)
    left = m.pick((0, 3, -2, 16))
    target = Var(m.fresh("v"), type_, shape)
    maker = f"tl.make_tensor_descriptor({memory.name}, [{rows}, {width}], [{columns}, 1], [{shape[0]}, {shape[1]}])"

    def act(state: State) -> Array:
        y = int(state.values[scalar.name] & 15) + axis_values(shape, 0)
        x = left + axis_values(shape, 1)
        bits = (y < rows) & (x >= 0) & (x < width)
        found = state.memory[memory.name][np.where(bits, y * columns + x, 0)]
        return np.where(bits, found, np.zeros((), type_.numpy))

    m.add(Touch(f"{maker}.load([{scalar.name} & 15, {left}])", act, target))
    m.name(target)
    return target


@operation(2)
def store_through_descriptor(m: Maker) -> None:
    """A block of a matrix; what crosses its edges is not written."""
    type_ = m.pick((INT32, FP32, FP16, INT8))
    shape = (2 ** m.number(0, 3), 2 ** m.number(4, 5))
    x = m.like(type_, shape)
    rows, columns = m.number(1, 12), 16 * m.number(1, 3)
    memory = m.memory(type_, numbers.data(type_, m.program.grid * rows * columns, m.seed()))
    width = m.number(1, columns)
    scalar = m.any(lambda v: v.shape == () and v.type is INT32)
    left = m.pick((0, 3, -2, 16))
    base = f"{memory.name} + pid * {rows * columns}"
    maker = f"tl.make_tensor_descriptor({base}, [{rows}, {width}], [{columns}, 1], [{shape[0]}, {shape[1]}])"

    def act(state: State) -> None:
        y = int(state.values[scalar.name] & 7) + axis_values(shape, 0)
        at = left + axis_values(shape, 1)
        bits = np.broadcast_to((y < rows) & (at >= 0) & (at < width), shape)
        where = y * columns + at + int(state.values["pid"]) * rows * columns
        state.memory[memory.name][where[bits]] = state.values[x.name][bits]

    m.add(Touch(f"{maker}.store([{scalar.name} & 7, {left}], {x.name})", act))


def output(m: Maker, x: Var) -> None:
    """Keep a variable for the comparison."""
    count = prod(x.shape)
    memory = m.memory(x.type, np.zeros(m.program.grid * count, x.type.numpy), x.slack)
    offsets = np.arange(count).reshape(x.shape)

    def act(state: State) -> None:
        at = offsets + count * int(state.values["pid"])
        state.memory[memory.name][at] = state.values[x.name]

    m.add(Touch(f"tl.store({memory.name} + pid * {count}{flat_text(x.shape)}, {x.name})", act))
