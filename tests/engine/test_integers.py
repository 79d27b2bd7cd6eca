# SPDX-License-Identifier: MIT
"""Integer arithmetic: wrapping, division toward zero, shifts, comparisons, against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.engine import harness

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COUNT = 1024


def _quotient(x: int, y: int) -> int:
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def _ceiling(x: int, y: int) -> int:
    return _quotient(x + y - 1, y)


OPERATIONS: dict[str, tuple[str, Callable[..., int]]] = {
    "add": ("a + b", lambda x, y: x + y),
    "sub": ("a - b", lambda x, y: x - y),
    "mul": ("a * b", lambda x, y: x * y),
    "neg": ("-a", lambda x, y: -x),
    "and": ("a & b", lambda x, y: x & y),
    "or": ("a | b", lambda x, y: x | y),
    "xor": ("a ^ b", lambda x, y: x ^ y),
    "invert": ("~a", lambda x, y: ~x),
    "min": ("tl.minimum(a, b)", min),
    "max": ("tl.maximum(a, b)", max),
    "abs": ("tl.abs(a)", lambda x, y: abs(x)),
    "div": ("a // c", _quotient),
    "rem": ("a % c", lambda x, y: x - y * _quotient(x, y)),
    "div by a constant": ("a // 7", lambda x, y: _quotient(x, 7)),
    "rem by a constant": ("a % 10", lambda x, y: x - 10 * _quotient(x, 10)),
    "div by a power of two": ("a // 8", lambda x, y: _quotient(x, 8)),
    "shl": ("a << s", lambda x, y: x << y),
    "shr": ("a >> s", lambda x, y: x >> y),
    "where": ("tl.where(a < b, a, b)", min),
    "multiply and add": ("a * b + c", lambda x, y: x * y),
    "square": ("a * a", lambda x, y: x * x),
    "eq": ("a == b", lambda x, y: x == y),
    "ne": ("a != b", lambda x, y: x != y),
    "lt": ("a < b", lambda x, y: x < y),
    "le": ("a <= b", lambda x, y: x <= y),
    "gt": ("a > b", lambda x, y: x > y),
    "ge": ("a >= b", lambda x, y: x >= y),
    "clamp": ("tl.minimum(tl.maximum(a, b), 100)", lambda x, y: min(max(x, y), 100)),
}
WIDE = {"umulhi": ("tl.umulhi(a, b)", lambda x, y: x * y), "cdiv": ("tl.cdiv(a, c)", _ceiling)}
BOOLEAN = {"eq", "ne", "lt", "le", "gt", "ge"}


def _second(name: str) -> str:
    return "s" if name in ("shl", "shr") else "c" if name in ("div", "rem", "cdiv") else "b"


@cache
def _operands(dtype: str) -> dict[str, torch.Tensor]:
    a, b, c = (harness.integers(dtype, COUNT, seed) for seed in (1, 2, 3))
    info = np.iinfo(dtype)
    divisor, dividend = c.numpy(), a.numpy()
    divisor[divisor == 0] = 3
    # INT_MIN / -1 wraps, but is not what Python says: it has a test of its own.
    divisor[(divisor == info.min) & (dividend == info.min)] = 5
    if info.min < 0:
        divisor[divisor == -1] = -2
    shift = torch.arange(COUNT) % info.bits
    return {"a": a, "b": b, "c": c, "s": shift.to(getattr(torch, dtype))}


def _cases(dtype: str) -> dict[str, tuple[str, Callable[..., int]]]:
    found = dict(OPERATIONS)
    if dtype in ("int32", "uint32", "int64", "uint64"):
        found["cdiv"] = WIDE["cdiv"]
    if dtype in ("uint32", "uint64", "int32", "int64"):
        found["umulhi"] = WIDE["umulhi"]
    if dtype.startswith("uint"):
        del found["abs"]
        del found["neg"]
        del found["multiply and add"]
    return found


@cache
def _results(dtype: str) -> dict[str, torch.Tensor]:
    own = getattr(torch, dtype)
    types = {text: torch.bool if name in BOOLEAN else own for name, (text, _) in _cases(dtype).items()}
    return harness.evaluate(types, _operands(dtype))


def _expected(dtype: str, name: str) -> np.ndarray:
    operands = _operands(dtype)
    rows = [operands[n].tolist() for n in ("a", _second(name))]
    info = np.iinfo(dtype)
    if name == "umulhi":
        mask = (1 << info.bits) - 1
        values = [(x & mask) * (y & mask) >> info.bits for x, y in zip(*rows, strict=True)]
    else:
        values = [_cases(dtype)[name][1](x, y) for x, y in zip(*rows, strict=True)]
    if name == "multiply and add":
        values = [v + z for v, z in zip(values, operands["c"].tolist(), strict=True)]
    if name in BOOLEAN:
        return np.array(values)
    mask = (1 << info.bits) - 1
    wrapped = [(v & mask) - (1 << info.bits) if info.min < 0 and (v & mask) > info.max else v & mask for v in values]
    return np.array(wrapped, dtype=dtype)


@pytest.mark.parametrize(("dtype", "name"), [(d, n) for d in DTYPES for n in _cases(d)])
def test_operation(dtype: str, name: str) -> None:
    got = _results(dtype)[_cases(dtype)[name][0]]
    if name == "cdiv":
        # x + y - 1 wraps at the ends of the type.
        small = [
            abs(x) < 2**30 and 0 < y < 2**30 for x, y in zip(*(_operands(dtype)[n].tolist() for n in "ac"), strict=True)
        ]
        np.testing.assert_array_equal(got.numpy()[small], _expected(dtype, name)[small])
        return
    np.testing.assert_array_equal(got.numpy(), _expected(dtype, name))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", "int16", "int8"])
def test_shift_by_the_width_or_more(dtype: str) -> None:
    """Everything is shifted out; an arithmetic shift to the right leaves the sign."""
    own, bits = getattr(torch, dtype), np.iinfo(dtype).bits
    a = harness.integers(dtype, 64, 4)
    s = torch.tensor([bits, bits + 1, 100, 127] * 16).to(own)
    got = harness.evaluate({"a << s": own, "a >> s": own}, {"a": a, "s": s})
    assert not got["a << s"].any()
    sign = torch.tensor([-1 if v < 0 else 0 for v in a.tolist()]).to(own)
    assert got["a >> s"].tolist() == sign.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_division_never_traps(dtype: str) -> None:
    """A zero divisor gives some number; INT_MIN / -1 wraps to INT_MIN, with remainder 0."""
    own, info = getattr(torch, dtype), np.iinfo(dtype)
    a = torch.tensor([5, info.min, info.max, 0] * 16, dtype=torch.int64 if dtype != "uint64" else own).to(own)
    zero = torch.zeros(64, dtype=own)
    harness.evaluate({"a // b": own, "a % b": own}, {"a": a, "b": zero})
    if info.min < 0:
        got = harness.evaluate({"a // b": own, "a % b": own}, {"a": a, "b": torch.full((64,), -1, dtype=own)})
        assert got["a // b"].tolist() == [-5, info.min, -info.max, 0] * 16
        assert not got["a % b"].any()


@pytest.mark.parametrize(("left", "right"), [(x, y) for x in DTYPES for y in DTYPES if x < y])
def test_mixed_types(left: str, right: str) -> None:
    """Promotion to the wider type; of one width, to the unsigned one."""
    x, y = harness.integers(left, 64, 1), harness.integers(right, 64, 2)
    bits = {d: np.iinfo(d).bits for d in (left, right)}
    wider = max((left, right), key=lambda d: (bits[d], d.startswith("u")))
    own, n = getattr(torch, wider), bits[wider]
    got = harness.evaluate({"a + b": own, "a * b": own}, {"a": x, "b": y})
    for text, values in (("a + b", [p + q for p, q in zip(x.tolist(), y.tolist(), strict=True)]),
                         ("a * b", [p * q for p, q in zip(x.tolist(), y.tolist(), strict=True)])):  # fmt: skip
        assert [v & (2**n - 1) for v in got[text].tolist()] == [v & (2**n - 1) for v in values]


@triton.jit
def inside(out, first, limit, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = first + lanes
    tl.store(out + lanes, offsets < limit)
    tl.store(out + BLOCK + lanes, limit > offsets)
    tl.store(out + 2 * BLOCK + lanes, offsets >= limit)
    tl.store(out + 3 * BLOCK + lanes, offsets < limit, mask=offsets < limit)


LIMITS = (-(2**31), -1, 0, 1, 7, 63, 64, 65, 200, 2**31 - 1)
FIRSTS = (-(2**31), -100, -1, 0, 1, 60, 2**31 - 128)


@pytest.mark.parametrize("block", [8, 16, 64, 128])
def test_offsets_against_a_limit(block: int) -> None:
    """Counted, not compared: the number of lanes inside may be negative, or beyond the chunk, or beyond 32 bits."""
    for first in FIRSTS:
        for limit in LIMITS:
            out = torch.zeros(4, block, dtype=torch.bool)
            inside[(1,)](out, first, limit, BLOCK=block)
            expected = torch.arange(block) + first < limit
            assert torch.equal(out, torch.stack([expected, expected, ~expected, expected])), (first, limit)
