# SPDX-License-Identifier: MIT
"""The operations that random kernels are made of: each picks operands, and adds a statement with its numpy meaning."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tests.corpus.registry import VERSION
from tests.fuzz import numbers
from tests.fuzz.maker import Maker, shape_text
from tests.fuzz.numbers import (
    BF16,
    BOOL,
    FLOATS,
    FP8,
    FP16,
    FP32,
    FP64,
    INT8,
    INT32,
    INT64,
    INTEGERS,
    TYPES,
    UINT32,
    UINT64,
    Array,
    Type,
)  # fmt: skip
from tests.fuzz.program import Shape, Var

OPERATIONS: list[Callable[[Maker], Any]] = []
WEIGHTS: list[int] = []

PRELUDE = """
@triton.jit
def _plus(a, b):
    return a + b


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def _exclusive_or(a, b):
    return a ^ b


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def _smaller(a, b):
    return tl.where(a < b, a, b)


@triton.jit
def _first(a, b):
    return a


@triton.jit
def _last(a, b):
    return b


@triton.jit
def _then(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def _both(a, b, c, d):
    return a + c, tl.minimum(b, d)


@triton.jit
def _larger_by_return(a, b):
    if a > b:
        return a
    return b


@triton.jit
def _plus_in_a_loop(a, b):
    for _ in range(2):
        a = a + b
    return a - b


@triton.jit
def _branchy(a, b):
    if a > b:
        found = a - b
    else:
        found = a + b
    return found


""".splitlines()


def operation(weight: int = 4) -> Callable[[Any], Any]:
    """Register an operation; a heavier one is drawn more often."""

    def register(function: Any) -> Any:
        OPERATIONS.append(function)
        WEIGHTS.append(weight)
        return function

    return register


def numeric(v: Var) -> bool:
    return v.type is not BOOL


def integral(v: Var) -> bool:
    return v.type.is_int


def floating(v: Var) -> bool:
    return v.type.is_float


def wide_float(v: Var) -> bool:
    return v.type in (FP32, FP64)


# Elementwise


def _partner(m: Maker, x: Var) -> Var:
    """A second operand: of the same shape, a scalar, or one that broadcasts."""

    def fits(v: Var) -> bool:
        same = v.slack == 0 and v.type == x.type and len(v.shape) == len(x.shape) and v.shape != x.shape
        return same and all(1 in (a, b) or a == b for a, b in zip(v.shape, x.shape, strict=True))

    if (found := m.find(fits)) and m.chance(2):
        found = [v for v in found if prod(np.broadcast_shapes(v.shape, x.shape)) <= m.most]
        if found:
            return m.pick(found)
    return m.like(x.type, () if m.chance(5) else x.shape)


def _pair(m: Maker, x: Var) -> tuple[Var, Var, Shape]:
    y = _partner(m, x)
    shape = np.broadcast_shapes(x.shape, y.shape)
    return (y, x, shape) if m.chance(2) else (x, y, shape)


ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {"+": np.add, "-": np.subtract, "*": np.multiply}
BITWISE: dict[str, Callable[[Array, Array], Array]] = {
    "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
}  # fmt: skip
COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


@operation(10)
def arithmetic(m: Maker) -> Var:
    a, b, shape = _pair(m, m.any(numeric))
    sign = m.pick(sorted(ARITHMETIC))
    of = ARITHMETIC[sign]
    return m.let(a.type, shape, f"{a.name} {sign} {b.name}", [a, b], lambda x, y: numbers.rounded(of(x, y), a.type))


@operation(6)
def bitwise(m: Maker) -> Var:
    a, b, shape = _pair(m, m.any(lambda v: not v.type.is_float))
    sign = m.pick(sorted(BITWISE))
    of = BITWISE[sign]
    return m.let(a.type, shape, f"{a.name} {sign} {b.name}", [a, b], of)


@operation()
def shifts(m: Maker) -> Var:
    a, b, shape = _pair(m, m.any(integral))
    left = m.chance(2)
    # Often by more than the width. (Triton makes 0 of x >> x, so the amount is never the number itself.)
    most = (2 if m.chance(3) else 1) * a.type.bits - 1
    return m.let(
        a.type, shape, f"{a.name} {'<<' if left else '>>'} ({b.name} & {most})", [a, b],
        lambda x, y: numbers.shift(x, np.asarray(y & np.asarray(most, a.type.numpy)), a.type, left),
    )  # fmt: skip


@operation()
def division(m: Maker) -> Var:
    a, b, shape = _pair(m, m.any(numeric))
    result = FP32 if a.type in (FP16, BF16) else a.type
    if a.type.is_float and m.chance(2):
        return m.let(
            result, shape, f"{a.name} / {b.name}", [a, b], lambda x, y: np.asarray(np.divide(x, y, dtype=result.numpy))
        )
    if a.type.is_float or m.chance(2):
        return m.let(
            result, shape, f"{a.name} % {b.name}", [a, b],
            lambda x, y: numbers.remainder(x.astype(result.numpy), y.astype(result.numpy), a.type),
        )  # fmt: skip
    # Never by zero: Triton makes 1 of x // x whatever x is.
    return m.let(
        a.type, shape, f"{a.name} // ({b.name} | 1)", [a, b],
        lambda x, y: numbers.divide(x, np.asarray(y | np.ones((), a.type.numpy)), a.type),
    )  # fmt: skip


@operation(6)
def comparison(m: Maker) -> Var:
    a, b, shape = _pair(m, m.any(numeric))
    sign = m.pick(sorted(COMPARE))
    return m.let(BOOL, shape, f"{a.name} {sign} {b.name}", [a, b], COMPARE[sign])


@operation()
def larger_or_smaller(m: Maker) -> Var:
    a, b, shape = _pair(m, m.any(numeric))
    larger, propagate = m.chance(2), m.chance(2) and a.type.is_float
    name = "maximum" if larger else "minimum"
    if not a.type.is_float:
        of: Any = np.maximum if larger else np.minimum
    elif propagate:
        of = _propagating(larger)
    else:
        # Which zero it is is left open.
        of = (lambda x, y: np.fmax(x, y) + 0.0) if larger else (lambda x, y: np.fmin(x, y) + 0.0)
    text = f"tl.{name}({a.name}, {b.name}{', tl.PropagateNan.ALL' if propagate else ''})"
    text += "" if propagate or not a.type.is_float else " + 0.0"
    return m.let(a.type, shape, text, [a, b], lambda x, y: numbers.rounded(of(x, y), a.type))


def _propagating(larger: bool) -> Callable[[Array, Array], Array]:
    def of(x: Array, y: Array) -> Array:
        """NaN wins, and -0 is below +0."""
        plain = np.maximum(x, y) if larger else np.minimum(x, y)
        zero = np.copysign(0.0, np.where(np.signbit(x) == larger, y, x)).astype(plain.dtype)
        return np.where((x == 0) & (y == 0), zero, plain)

    return of


UNARY: dict[str, tuple[str, Callable[[Var], bool], Callable[[Array], Array]]] = {
    "minus": ("-{}", lambda v: v.type.is_int, np.negative),
    "invert": ("~{}", lambda v: not v.type.is_float, np.invert),
    "abs": ("tl.abs({})", numeric, np.abs),
    "floor": ("tl.floor({})", wide_float, np.floor),
    "ceil": ("tl.ceil({})", wide_float, np.ceil),
    "sqrt": ("tl.sqrt({})", wide_float, np.sqrt),
    "sqrt_rn": ("tl.sqrt_rn({})", lambda v: v.type is FP32, np.sqrt),
    "negated float": ("0.0 - {}", floating, lambda x: np.asarray(0.0, x.dtype) - x),
    "is a number": ("({0} == {0})", floating, lambda x: x == x),
}


@operation(6)
def unary(m: Maker) -> Var:
    text, wanted, of = UNARY[m.pick(sorted(UNARY))]
    a = m.any(wanted)
    result = BOOL if "==" in text else a.type
    return m.let(result, a.shape, text.format(a.name), [a], lambda x: np.asarray(of(x)))


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return lambda x: np.vectorize(function, otypes=[np.float64])(x)


APPROXIMATE: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos,
    "erf": _each(math.erf), "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


@operation()
def function(m: Maker) -> Var:
    name = m.pick(sorted(APPROXIMATE))
    a = m.any(wide_float)
    of = APPROXIMATE[name]
    slack = 1e-6 if a.type is FP32 else 1e-14
    return m.let(a.type, a.shape, f"tl.{name}({a.name})", [a], lambda x: np.asarray(of(x.astype(np.float64))), slack)


@operation(8)
def casting(m: Maker) -> Var:
    return m.cast(m.any(), m.pick(TYPES))


@operation(2)
def small_floats(m: Maker) -> Var:
    """By way of an 8-bit float."""
    a, name = m.any(floating), m.pick(sorted(FP8))
    return m.let(
        a.type, a.shape, f"{a.name}.to(tl.{name}).to(tl.{a.type.name})", [a],
        lambda x: numbers.cast(numbers.through_fp8(x, name), FP64, a.type),
    )  # fmt: skip


@operation()
def bitcast(m: Maker) -> Var:
    a = m.any(numeric)
    target = m.pick([t for t in TYPES if t.bits == a.type.bits])
    if target == a.type:
        return a
    if a.type.is_float:
        # Which NaN it is is left open.
        a = m.let(a.type, a.shape, f"tl.where({a.name} == {a.name}, {a.name}, 0.0)", [a], _no_nan)
    return m.let(
        target, a.shape, f"{a.name}.to(tl.{target.name}, bitcast=True)", [a],
        lambda x: numbers.bits_of(x, a.type, target),
    )  # fmt: skip


def _no_nan(x: Array) -> Array:
    return np.where(x == x, x, np.asarray(0, x.dtype))


@operation(8)
def where(m: Maker) -> Var:
    x = m.any(exact=False)
    y = m.like(x.type, x.shape)
    c = m.like(BOOL, () if m.chance(8) else x.shape)
    text = f"tl.where({c.name}, {x.name}, {y.name})"
    return m.let(x.type, x.shape, text, [c, x, y], lambda p, a, b: np.where(p, a, b), x.slack)


@operation(2)
def clamp(m: Maker) -> Var:
    x = m.any(lambda v: v.type in (FP16, FP32, FP64))
    low, high = m.pick((-2.0, 0.5, 1.0)), m.pick((1.0, 3.0, 100.0))
    propagate = m.chance(2)

    def of(a: Array) -> Array:
        kept = np.where(np.isnan(a), a if propagate else np.asarray(low, a.dtype), np.clip(a, low, high))
        return kept.astype(a.dtype)

    # Before Triton 3.9 bounds that are numbers make fp32 of fp16.
    text = f"tl.clamp({x.name}, {low}, {high}{', tl.PropagateNan.ALL' if propagate else ''}).to(tl.{x.type.name})"
    return m.let(x.type, x.shape, text, [x], of)


@operation(2)
def upper_half(m: Maker) -> Var:
    a, b, shape = _pair(m, m.any(lambda v: v.type in (INT32, UINT32, UINT64, INT64)))
    return m.let(
        a.type, shape, f"tl.umulhi({a.name}, {b.name})", [a, b],
        lambda x, y: numbers.upper_half(x, y, a.type),
    )  # fmt: skip


@operation(2)
def mapped(m: Maker) -> Var:
    """A function with a branch, run for each element."""
    x = m.tensor(lambda v: v.type in (INT32, FP32))
    y = m.like(x.type, x.shape)
    return m.let(
        x.type, x.shape, f"tl.map_elementwise(_branchy, {x.name}, {y.name})", [x, y],
        lambda a, b: np.where(a > b, a - b, a + b),
    )  # fmt: skip


@operation()
def counting(m: Maker) -> Var:
    start, count = m.number(0, 5), 2 ** m.number(0, 8)
    return m.let(
        INT32, (count,), f"tl.arange({start}, {start + count})", [],
        lambda: np.arange(start, start + count, dtype=np.int32),
    ) if start == 0 else m.let(
        INT32, (count,), f"tl.arange(0, {count}) + {start}", [],
        lambda: np.arange(start, start + count, dtype=np.int32),
    )  # fmt: skip


# Moves


def _move(m: Maker, x: Var, shape: Shape, text: str, of: Callable[[Array], Array]) -> Var:
    return m.let(x.type, shape, text, [x], of, x.slack)


@operation(6)
def reshape(m: Maker) -> Var:
    x = m.tensor(exact=False)
    left, shape = prod(x.shape), []
    for _ in range(m.number(0, 3)):
        part = 2 ** m.number(0, left.bit_length() - 1)
        shape.append(part)
        left //= part
    shape = (*shape, left)
    return _move(m, x, shape, f"tl.reshape({x.name}, {shape_text(shape)})", lambda a: a.reshape(shape))


@operation(6)
def permute(m: Maker) -> Var:
    x = m.tensor(lambda v: len(v.shape) > 1, exact=False)
    order = list(range(len(x.shape)))
    for at in range(len(order) - 1, 0, -1):
        other = m.number(0, at)
        order[at], order[other] = order[other], order[at]
    shape = tuple(x.shape[d] for d in order)
    return _move(m, x, shape, f"tl.permute({x.name}, {shape_text(tuple(order))})", lambda a: a.transpose(order))


@operation(6)
def expand(m: Maker) -> Var:
    x = m.tensor(lambda v: len(v.shape) < 4, exact=False)
    axis = m.number(0, len(x.shape))
    grown = (*x.shape[:axis], 1, *x.shape[axis:])
    x = _move(m, x, grown, f"tl.expand_dims({x.name}, {axis})", lambda a: np.expand_dims(a, axis))
    count = 2 ** m.number(0, max(0, (m.most // prod(grown)).bit_length() - 1))
    shape = (*grown[:axis], count, *grown[axis + 1 :])
    if count == 1 or m.chance(3):
        return x
    return _move(m, x, shape, f"tl.broadcast_to({x.name}, {shape_text(shape)})", lambda a: np.broadcast_to(a, shape))


@operation()
def join(m: Maker) -> Var:
    x = m.any(lambda v: prod(v.shape) * 2 <= m.most and len(v.shape) < 4)
    y = m.like(x.type, x.shape)
    if x.shape and m.chance(3):
        shape = (*x.shape[:-1], x.shape[-1] * 2)
        return m.let(
            x.type, shape, f"tl.interleave({x.name}, {y.name})", [x, y],
            lambda a, b: np.stack([a, b], -1).reshape(shape),
        )  # fmt: skip
    return m.let(x.type, (*x.shape, 2), f"tl.join({x.name}, {y.name})", [x, y], lambda a, b: np.stack([a, b], -1))


@operation()
def split(m: Maker) -> Var:
    x = m.tensor(lambda v: prod(v.shape) > 1)
    rest = (prod(x.shape) // 2,)
    if len(x.shape) == 2 and x.shape[0] > 1:
        rest = (x.shape[0] // 2, x.shape[1])
    if rest == (1,):
        rest = ()
    pairs = (*rest, 2)
    return m.lets(
        [(x.type, rest)] * 2, f"tl.split(tl.reshape({x.name}, {shape_text(pairs)}))", [x],
        lambda a: (a.reshape(pairs)[..., 0], a.reshape(pairs)[..., 1]),
    )[m.number(0, 1)]  # fmt: skip


@operation(2)
def flip(m: Maker) -> Var:
    x = m.tensor(lambda v: numeric(v) and prod(v.shape) > 1)
    axis = m.number(0, len(x.shape) - 1)
    return _move(m, x, x.shape, f"tl.flip({x.name}, {axis})", lambda a: np.flip(a, axis))


@operation(2)
def cat(m: Maker) -> Var:
    x = m.tensor(lambda v: len(v.shape) == 1 and v.shape[0] * 2 <= m.most)
    y = m.like(x.type, x.shape)
    leave = ", can_reorder=True" if VERSION < (3, 9) else ""
    return m.let(
        x.type, (x.shape[0] * 2,), f"tl.cat({x.name}, {y.name}{leave})", [x, y], lambda a, b: np.concatenate([a, b])
    )


@operation()
def gather(m: Maker) -> Var:
    x = m.tensor()
    axis = m.number(0, len(x.shape) - 1)
    count = m.pick((x.shape[axis], 1, 2, 8))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if prod(shape) > m.most:
        shape = x.shape
    index = m.like(m.pick((INT32, INT64)), shape)
    last = x.shape[axis] - 1
    return m.let(
        x.type, shape, f"tl.gather({x.name}, {index.name} & {last}, {axis})", [x, index],
        lambda a, i: np.take_along_axis(a, (i & last).astype(np.int64), axis),
    )  # fmt: skip


# Along an axis


def _axis(m: Maker, x: Var) -> int:
    return m.number(0, len(x.shape) - 1)


def _without(shape: Shape, axis: int | None, keep: bool) -> Shape:
    if axis is None:
        return (1,) * len(shape) if keep else ()
    return (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :])


@operation(8)
def reduce_numbers(m: Maker) -> Var:
    x = m.tensor(numeric)
    axis, keep = (None if m.chance(3) else _axis(m, x)), m.chance(3)
    kind = m.pick(("max", "min") if x.type.is_float else ("sum", "max", "min", "xor_sum", "times"))
    where = f"axis={axis}, keep_dims={keep}"
    shape, name = _without(x.shape, axis, keep), x.type.name
    if kind == "times":
        text = f"tl.reduce({x.name}, {axis}, _times, keep_dims={keep})"
    else:
        text = f"tl.{kind}({x.name}, {where}).to(tl.{name}){' + 0.0' if x.type.is_float else ''}"
    of: Any = {"sum": np.add, "xor_sum": np.bitwise_xor, "times": np.multiply}.get(kind)
    if of is None:
        of = (np.fmax if kind == "max" else np.fmin) if x.type.is_float else np.maximum if kind == "max" else np.minimum

    def along(a: Array) -> Array:
        found = of.reduce(a, axis=axis, keepdims=keep, dtype=x.type.numpy)
        return np.asarray(found + np.asarray(0, x.type.numpy) if x.type.is_float else found)

    return m.let(x.type, shape, text, [x], along)


def _small(m: Maker, x: Var, type_: Type, most: int = 15) -> Var:
    """Small whole numbers of a float type: their sums are exact in any order."""
    x = m.cast(x, INT32)
    return m.let(
        type_, x.shape, f"({x.name} & {most}).to(tl.{type_.name})", [x],
        lambda a: numbers.cast(np.asarray(a & most), INT32, type_),
    )  # fmt: skip


@operation()
def sum_of_floats(m: Maker) -> Var:
    type_ = m.pick((FP32, FP64))
    x = m.tensor()
    axis = None if m.chance(3) else _axis(m, x)
    if x.type != type_ or m.chance(2):
        x = _small(m, x, type_)
        return m.let(
            type_, _without(x.shape, axis, False), f"tl.sum({x.name}, axis={axis})", [x], lambda a: np.sum(a, axis)
        )
    count = prod(x.shape)
    slack = 8.0 * count * count * float(np.finfo(type_.numpy).eps)
    bounded = f"tl.where(tl.abs({x.name}) < 8.0, {x.name}, 1.0)"
    return m.let(
        type_, _without(x.shape, axis, False), f"tl.sum({bounded}, axis={axis})", [x],
        lambda a: np.asarray(np.sum(np.where(np.abs(a) < 8, a, 1).astype(np.float64), axis)), slack,
    )  # fmt: skip


@operation()
def place_of_extreme(m: Maker) -> Var:
    x = m.tensor(numeric)
    axis, largest = _axis(m, x), m.chance(2)
    if x.type.is_float:
        x = m.let(x.type, x.shape, f"tl.where({x.name} == {x.name}, {x.name}, 0.0)", [x], _no_nan)
    of = np.argmax if largest else np.argmin
    name = "argmax" if largest else "argmin"
    return m.let(
        INT32, _without(x.shape, axis, False), f"tl.{name}({x.name}, axis={axis})", [x],
        lambda a: np.asarray(of(a, axis), np.int32),
    )  # fmt: skip


@operation(2)
def reduce_by_function(m: Maker) -> Var:
    name = m.pick(("_plus", "_times", "_larger", "_smaller", "_larger_by_return", "_plus_in_a_loop"))
    x = m.tensor(integral)
    axis, keep, of = _axis(m, x), m.chance(3), COMBINE[name][1]
    return m.let(
        x.type, _without(x.shape, axis, keep), f"tl.reduce({x.name}, {axis}, {name}, keep_dims={keep})", [x],
        lambda a: np.asarray(getattr(of, "reduce")(a, axis=axis, keepdims=keep, dtype=x.type.numpy)),  # noqa: B009
    )  # fmt: skip


@operation(2)
def reduce_pairs(m: Maker) -> Var:
    x = m.tensor(integral)
    y = m.like(x.type, x.shape)
    axis = _axis(m, x)
    shape = _without(x.shape, axis, False)
    return m.lets(
        [(x.type, shape)] * 2, f"tl.reduce(({x.name}, {y.name}), {axis}, _both)", [x, y],
        lambda a, b: (np.add.reduce(a, axis, x.type.numpy), np.minimum.reduce(b, axis)),
    )[0]  # fmt: skip


COMBINE: dict[str, tuple[Callable[[Var], bool], Callable[[Array, Array], Array]]] = {
    "_plus": (integral, np.add),
    "_times": (integral, np.multiply),
    "_exclusive_or": (lambda v: not v.type.is_float, np.bitwise_xor),
    "_larger": (integral, np.maximum),
    "_smaller": (integral, np.minimum),
    "_larger_by_return": (integral, np.maximum),
    "_plus_in_a_loop": (integral, np.add),
    "_first": (lambda v: True, lambda a, b: a),
    "_last": (lambda v: True, lambda a, b: b),
}


def _running(of: Callable[[Any, Any], Any], parts: list[Array], axis: int, reverse: bool) -> list[Array]:
    """A scan of several operands, step by step."""
    lines = [np.moveaxis(np.flip(p, axis) if reverse else p, axis, 0) for p in parts]
    outs = [np.empty_like(line) for line in lines]
    have: Any = None
    for step in range(lines[0].shape[0]):
        new = [line[step] for line in lines]
        have = new if have is None else of(have, new)
        for out, value in zip(outs, have, strict=True):
            out[step] = value
    back = [np.moveaxis(out, 0, axis) for out in outs]
    return [np.flip(b, axis) if reverse else b for b in back]


@operation(8)
def scan(m: Maker) -> Var:
    name = m.pick(sorted(COMBINE))
    wanted, of = COMBINE[name]
    x = m.tensor(wanted)
    axis, reverse = _axis(m, x), m.chance(2)
    plain = {"_plus": "cumsum", "_times": "cumprod"}.get(name)
    if plain and m.chance(2):
        text = f"tl.{plain}({x.name}, {axis}, reverse={reverse}).to(tl.{x.type.name})"
    else:
        text = f"tl.associative_scan({x.name}, {axis}, {name}, reverse={reverse})"
    return m.let(
        x.type, x.shape, text, [x],
        lambda a: _running(lambda p, q: [of(p[0], q[0])], [a], axis, reverse)[0],
    )  # fmt: skip


@operation(3)
def scan_pairs(m: Maker) -> Var:
    """Composition of a * x + b: the order matters."""
    x = m.tensor(integral)
    y = m.like(x.type, x.shape)
    axis, reverse = _axis(m, x), m.chance(2)
    return m.lets(
        [(x.type, x.shape)] * 2, f"tl.associative_scan(({x.name}, {y.name}), {axis}, _then, reverse={reverse})", [x, y],
        lambda a, b: tuple(_running(lambda p, q: [p[0] * q[0], p[1] * q[0] + q[1]], [a, b], axis, reverse)),
    )[1]  # fmt: skip


@operation(3)
def scan_floats(m: Maker) -> Var:
    type_ = m.pick((FP32, FP64, FP16, BF16))
    x = m.tensor(lambda v: len(v.shape) > 0 and max(v.shape) <= 64)
    x = _small(m, x, type_, 1)
    axis, reverse = _axis(m, x), m.chance(2)
    return m.let(
        # Triton 3.6 makes fp32 of bf16 here.
        type_, x.shape, f"tl.cumsum({x.name}, {axis}, reverse={reverse}).to(tl.{type_.name})", [x],
        lambda a: _running(lambda p, q: [p[0] + q[0]], [a], axis, reverse)[0],
    )  # fmt: skip


@operation(2)
def sort(m: Maker) -> Var:
    x = m.tensor(lambda v: v.type in (*INTEGERS, *FLOATS) and prod(v.shape) <= 64)
    if x.type.is_float:
        text = f"tl.where({x.name} == {x.name}, {x.name}, 0.0) + 0.0"
        x = m.let(x.type, x.shape, text, [x], lambda a: _no_nan(a) + np.asarray(0, a.dtype))
    if m.chance(2):
        # Triton 3.6 fails where one of a line is all that is left.
        least = 1 if len(x.shape) == 1 < x.shape[0] and VERSION < (3, 9) else 0
        k = 2 ** m.number(least, x.shape[-1].bit_length() - 1)
        shape = (*x.shape[:-1], k)
        text = f"tl.topk({x.name}, {k}).to(tl.{x.type.name})"
        return _move(m, x, shape, text, lambda a: np.flip(np.sort(a, -1), -1)[..., :k])
    down = m.chance(2)
    text = f"tl.sort({x.name}, descending={down}).to(tl.{x.type.name})"
    return _move(m, x, x.shape, text, lambda a: np.flip(np.sort(a, -1), -1) if down else np.sort(a, -1))


@operation(2)
def histogram(m: Maker) -> Var:
    x = m.tensor(lambda v: v.type is INT32 and len(v.shape) == 1)
    bins = 2 ** m.number(0, 6)
    return m.let(
        INT32, (bins,), f"tl.histogram({x.name} & {2 * bins - 1}, {bins})", [x],
        lambda a: np.bincount(a & (2 * bins - 1), minlength=2 * bins)[:bins].astype(np.int32),
    )  # fmt: skip


@operation(4)
def dot(m: Maker) -> Var:
    type_ = m.pick((INT8, FP16, BF16, FP32, FP64))
    rank = m.pick((2, 2, 3))
    shape = m.shape(256, rank)
    batch, (rows, inner) = shape[:-2], shape[-2:]
    columns = 2 ** m.number(0, 4)
    if rows * columns * prod(batch) > m.most or inner * columns * prod(batch) > m.most:
        columns = 1
    x = _small(m, m.like(INT32, shape), type_)
    y = _small(m, m.like(INT32, (*batch, inner, columns)), type_)
    result = INT32 if type_ is INT8 else FP64 if type_ is FP64 else FP32
    out = (*batch, rows, columns)
    z = _small(m, m.like(INT32, out), result) if m.chance(2) else None
    text = f"tl.dot({x.name}, {y.name}{f', {z.name}' if z else ''}, out_dtype=tl.{result.name})"

    def of(a: Array, b: Array, c: Array | None = None) -> Array:
        found = np.matmul(a.astype(np.float64), b.astype(np.float64)) + (0 if c is None else c)
        return found.astype(result.numpy)

    return m.let(result, out, text, [x, y, *([z] if z else [])], of)
