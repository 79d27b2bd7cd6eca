# SPDX-License-Identifier: MIT
"""What kernels use less often: random numbers, block scales, block pointers, tiles over themselves, printing."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tests.corpus.registry import VERSION
from tests.fuzz import numbers
from tests.fuzz.maker import Maker, axis_text
from tests.fuzz.memory import axis_values
from tests.fuzz.numbers import BOOL, FP16, FP32, INT8, INT32, INT64, UINT8, UINT32, UINT64, Array, Type
from tests.fuzz.operations import integral, operation
from tests.fuzz.program import Shape, State, Touch, Var

# Philox

KEYS, FACTORS = (0x9E3779B9, 0xBB67AE85), (0xD2511F53, 0xCD9E8D57)
LOW = np.uint64(0xFFFFFFFF)


def philox(seed: int, counter: Array, rounds: int) -> list[Array]:
    """Four words of 32 bits for each counter of up to 64 bits."""
    seed &= 2**64 - 1
    keys = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    whole = np.asarray(counter).astype(np.int64).astype(np.uint64)
    if np.asarray(counter).dtype.itemsize <= 4:
        whole = whole & LOW
    words = [whole & LOW, whole >> np.uint64(32), np.zeros_like(whole), np.zeros_like(whole)]
    for _ in range(rounds):
        first, second = words[0] * np.uint64(FACTORS[0]), words[2] * np.uint64(FACTORS[1])
        high = np.uint64(32)
        words = [
            ((second >> high) ^ words[1] ^ keys[0]) & LOW, second & LOW,
            ((first >> high) ^ words[3] ^ keys[1]) & LOW, first & LOW,
        ]  # fmt: skip
        keys = [(k + np.uint64(step)) & LOW for k, step in zip(keys, KEYS, strict=True)]
    return [w.astype(np.uint32) for w in words]


def _uniform(word: Array) -> Array:
    signed = word.view(np.int32)
    return np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(4.6566127342e-10)


SEEDS = (0, 1, 42, 2**31, 2**32 + 7, -1, -(2**63), 2**63 - 1)


@operation(3)
def random_numbers(m: Maker) -> Var:
    x = m.tensor(lambda v: v.type in (INT32, INT64, UINT32, UINT64))
    seed, rounds = m.pick(SEEDS), m.pick((10, 10, 7, 4))
    # A seed of more bits than 64 is none, and one without a sign is another type.
    given, by = f"tl.full((), {seed}, tl.int64)", "" if rounds == 10 else f", n_rounds={rounds}"
    if m.chance(2):
        return m.let(
            FP32, x.shape, f"tl.rand({given}, {x.name}{by})", [x], lambda a: _uniform(philox(seed, a, rounds)[0])
        )
    words = m.lets(
        [(UINT32, x.shape)] * 4, f"tl.randint4x({given}, {x.name}{by})", [x], lambda a: tuple(philox(seed, a, rounds))
    )
    return m.pick(words)


# Block scales

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
LARGEST = {"e4m3": 15, "e5m2": 7, "bf16": 15, "fp16": 15}
NAMES = {"e4m3": "float8e4nv", "e5m2": "float8e5", "bf16": "bfloat16", "fp16": "float16"}


def _operand(m: Maker, kind: str, shape: Shape, packed: int) -> tuple[str, Var, Callable[[Array], Array]]:
    """Text, the variable that it reads, and its numbers; `packed` is the axis along which two share a byte."""
    if kind != "e2m1":
        most = LARGEST[kind]
        x = m.like(INT32, shape)
        return f"({x.name} & {most}).to(tl.float32).to(tl.{NAMES[kind]})", x, lambda a: (a & most).astype(np.float64)
    halved = tuple(n // 2 if d == packed else n for d, n in enumerate(shape))
    x = m.like(INT32, halved)

    def of(a: Array) -> Array:
        return np.stack([E2M1[a & 15], E2M1[(a >> 4) & 15]], packed + 1).reshape(shape)

    return f"({x.name} & 255).to(tl.uint8)", x, of


@operation(3)
def scaled_dot(m: Maker) -> Var:
    rows, columns, inner = 2 ** m.number(1, 4), 2 ** m.number(1, 4), 32 * m.pick((1, 2))
    if max(rows, columns) * inner > m.most:
        rows = columns = 2
    kinds = [m.pick(("e2m1", "e2m1", "e4m3", "e5m2", "bf16", "fp16")) for _ in range(2)]
    along = [kind != "e2m1" or not m.chance(3) for kind in kinds]
    a, x, left = _operand(m, kinds[0], (rows, inner), 1 if along[0] else 0)
    b, y, right = _operand(m, kinds[1], (inner, columns), 0 if along[1] else 1)
    scales = [m.like(INT32, (n, inner // 32)) if not m.chance(4) else None for n in (rows, columns)]
    texts = ["None" if s is None else f"(126 + ({s.name} & 1)).to(tl.uint8)" for s in scales]
    packs = f"lhs_k_pack={along[0]}, rhs_k_pack={along[1]}"

    def factor(s: Array) -> Array:
        return np.repeat(2.0 ** ((s & 1) - 1), 32, 1)

    def of(x: Array, y: Array, *given: Array) -> Array:
        rest = list(given)
        p, q = left(x), right(y)
        p = p if scales[0] is None else p * factor(rest.pop(0))
        q = q if scales[1] is None else q * factor(rest.pop(0)).T
        # From +0, as the accumulator does.
        return (p @ q + 0.0).astype(np.float32)

    text = f"tl.dot_scaled({a}, {texts[0]}, '{kinds[0]}', {b}, {texts[1]}, '{kinds[1]}', {packs})"
    return m.let(FP32, (rows, columns), text, [x, y, *(s for s in scales if s is not None)], of)


# Tiles that overlap themselves


@operation(5)
def count_up_in_place(m: Maker) -> None:
    """Each element becomes what follows from its old number, however many elements of the tile it is."""
    type_ = m.pick((INT32, INT8, INT64, UINT8, FP32))
    shape = m.shape(256)
    strides = [m.pick((0, 1, 1, 2, 3, 16, shape[-1], shape[-1] + 1)) for _ in shape]
    reach = sum(s * (n - 1) for s, n in zip(strides, shape, strict=True))
    scalars: list[str] = []
    if m.chance(2):
        scalars = [m.fresh("n") for _ in strides]
        # Triton takes a one as a constant.
        m.program.scalars.update(zip(scalars, strides, strict=True))
    memory = m.memory(type_, numbers.data(type_, m.program.grid * (reach + 1), m.seed()))
    steps = scalars or [str(s) for s in strides]
    terms = [f"{axis_text(shape, d)} * {s}" for d, s in enumerate(steps)]
    limit = m.number(0, shape[0]) if m.chance(2) else None
    mask = "" if limit is None else f", mask={axis_text(shape, 0)} < {limit}"
    offsets = np.asarray(sum(axis_values(shape, d).astype(np.int64) * s for d, s in enumerate(strides)))
    bits = np.broadcast_to(True if limit is None else axis_values(shape, 0) < limit, shape)
    place = f"{memory.name} + pid * {reach + 1} + ({' + '.join(terms)})"
    one = "1.0" if type_.is_float else "1"

    def act(state: State) -> None:
        at = np.broadcast_to(offsets, shape)[bits] + (reach + 1) * int(state.values["pid"])
        content = state.memory[memory.name]
        content[at] = numbers.rounded(content[at] + np.asarray(1, type_.numpy), type_)

    whole = len(shape) == 1 or limit is None
    mask = mask if whole else f", mask=({axis_text(shape, 0)} < {limit}) & ({' + '.join(terms)} >= 0)"
    m.add(Touch(f"tl.store({place}, tl.load({place}{mask}) + {one}{mask})", act))


# Block pointers

if VERSION < (3, 9):

    @operation(4)
    def through_block_pointer(m: Maker) -> Var:
        """A block of a matrix, whose edges it may cross, moved once."""
        type_ = m.pick((INT32, FP32, FP16, INT8))
        rows, columns, gap = m.number(1, 40), m.number(1, 70), m.pick((0, 0, 3))
        shape = (2 ** m.number(0, 4), 2 ** m.number(0, 5))
        memory = m.memory(type_, numbers.data(type_, rows * (columns + gap), m.seed()))
        start, by = (m.pick((0, 3, 16)), m.pick((0, 1, 16))), (m.pick((0, 1, 4)), m.pick((0, 2, 32)))
        order = m.pick(("(1, 0)", "(0, 1)"))
        target = Var(m.fresh("v"), type_, shape)
        maker = (
            f"tl.make_block_ptr({memory.name}, ({rows}, {columns}), ({columns + gap}, 1), {start}, {shape}, {order})"
        )

        def act(state: State) -> Array:
            y, x = (start[d] + by[d] + axis_values(shape, d) for d in range(2))
            bits = (y < rows) & (x < columns)
            found = state.memory[memory.name][np.where(bits, y * (columns + gap) + x, 0)]
            return np.where(bits, found, np.zeros((), type_.numpy))

        text = f"tl.load(tl.advance({maker}, {by}), boundary_check=(0, 1), padding_option='zero')"
        m.add(Touch(text, act, target))
        m.name(target)
        return target


# Printing


@operation(1)
def printing(m: Maker) -> None:
    x = m.any(lambda v: (integral(v) or v.type is BOOL) and prod(v.shape) <= 32)
    label, hexadecimal = m.fresh("x"), m.chance(3)

    def act(state: State) -> None:
        values = np.asarray(state.values[x.name])
        for index in np.ndindex(values.shape):
            number = int(values[index])
            text = _hexadecimal(number, x.type) if hexadecimal else str(number)
            places = ", ".join(map(str, index))
            state.printed.append(f"pid ({int(state.values['pid'])}, 0, 0) idx ({places}) {label}: {text}")

    m.program.prints = True
    m.add(Touch(f"tl.device_print({label!r}, {x.name}, hex={hexadecimal})", act))


def _hexadecimal(number: int, type_: Type) -> str:
    bits = type_.bits
    return f"0x{number & (2**bits - 1):0{max(1, bits // 4)}x}"
