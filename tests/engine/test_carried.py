# SPDX-License-Identifier: MIT
"""Values carried around loops and branches, under every kind of rearrangement: buffers are updated in place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine import harness

SHAPE = (8, 16)
Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


HALF = "tl.split(tl.reshape({t}, (8, 8, 2)))[{n}]"


def _rolled(a: torch.Tensor) -> torch.Tensor:
    return a.gather(1, ((torch.arange(16) + 3) % 16).expand(8, 16))


# Each maps an 8 x 16 tile (and another one) to an 8 x 16 tile of int32.
STEPS: dict[str, tuple[str, Step]] = {
    "flip": ("tl.flip({a}, 1)", lambda a, b: a.flip(1)),
    "flip rows": ("tl.flip({a}, 0)", lambda a, b: a.flip(0)),
    "turn": ("tl.reshape(tl.trans({a}), (8, 16))", lambda a, b: a.T.reshape(8, 16)),
    "shuffle": ("tl.reshape(tl.permute(tl.reshape({a}, (4, 8, 4)), (2, 0, 1)), (8, 16))",
                lambda a, b: a.reshape(4, 8, 4).permute(2, 0, 1).reshape(8, 16)),
    "roll": ("tl.gather({a}, tl.broadcast_to((j + 3) % 16, (8, 16)), 1)", lambda a, b: _rolled(a)),
    "gather rows": ("tl.gather({a}, tl.broadcast_to((i * 3 + 1) % 8, (8, 16)), 0)",
                    lambda a, b: a[(torch.arange(8) * 3 + 1) % 8]),
    "gather by itself": ("tl.gather({a}, {a} & 15, 1)", lambda a, b: a.gather(1, (a & 15).long())),
    "swap halves": (
        "tl.reshape(tl.join(" + HALF.format(t="{a}", n=1) + ", " + HALF.format(t="{a}", n=0) + "), (8, 16))",
        lambda a, b: a.reshape(8, 8, 2).flip(2).reshape(8, 16),
    ),
    "halves of both": (
        "tl.reshape(tl.join(" + HALF.format(t="{a}", n=0) + ", " + HALF.format(t="{b}", n=1) + "), (8, 16))",
        lambda a, b: torch.stack([a.reshape(8, 8, 2)[..., 0], b.reshape(8, 8, 2)[..., 1]], -1).reshape(8, 16),
    ),
    "scan": ("tl.cumsum({a}, 1) % 1000", lambda a, b: a.cumsum(1).int() % 1000),
    "scan back": ("tl.cumsum({a}, 0, reverse=True) % 1000", lambda a, b: a.flip(0).cumsum(0).flip(0).int() % 1000),
    "sort": ("tl.sort({a})", lambda a, b: a.sort(1).values),
    "less the largest": ("tl.max({a}, 1, keep_dims=True) - {a}", lambda a, b: a.amax(1, keepdim=True) - a),
    "plus columns": ("({a} + tl.sum({b}, 0)[None, :]) % 1000", lambda a, b: (a + b.sum(0)[None, :].int()) % 1000),
    "plus the other, turned": ("({a} + tl.reshape(tl.trans({b}), (8, 16))) % 1000",
                               lambda a, b: (a + b.T.reshape(8, 16)) % 1000),
    "first row": ("({a} + tl.gather({b}, tl.zeros([8, 16], tl.int32), 0)) % 1000", lambda a, b: (a + b[:1]) % 1000),
    "pick": ("tl.where({a} > {b}, {a} - {b}, {b} + 1)", lambda a, b: torch.where(a > b, a - b, b + 1)),
    "product": ("tl.dot({a}.to(tl.float32), tl.full((16, 16), 1.0, tl.float32)).to(tl.int32) % 1000",
                lambda a, b: a.sum(1, keepdim=True).expand(8, 16).int() % 1000),
    "the other": ("{b}", lambda a, b: b),
    "plus one": ("{a} + 1", lambda a, b: a + 1),
}  # fmt: skip

HEAD = f"""@triton.jit
def kernel(x, y, o, n):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    at = {harness.index(SHAPE)}
    a, b = tl.load(x + at), tl.load(y + at)
"""
TAIL = """
    tl.store(o + at, a)
    tl.store(o + 128 + at, b)
"""


def _body(names: tuple[str, str], indent: str) -> str:
    first, second = (STEPS[n][0] for n in names)
    return f"{indent}a, b = {first.format(a='a', b='b')}, {second.format(a='b', b='a')}\n"


def _step(names: tuple[str, str], a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return STEPS[names[0]][1](a, b), STEPS[names[1]][1](b, a)


def _operands() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randint(0, 100, SHAPE, dtype=torch.int32, generator=generator) for _ in range(2))
    return x, y


def _check(text: str, rounds: int, expected: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, y = _operands()
    o = torch.empty(2, *SHAPE, dtype=torch.int32)
    harness.module(text).kernel[(1,)](x, y, o, rounds)
    assert torch.equal(o, torch.stack(expected).int())


@pytest.mark.parametrize("name", STEPS)
def test_loop(name: str) -> None:
    """A step in a loop, the other value staying; and the step for both."""
    for names in ((name, "plus one"), (name, name)):
        a, b = _operands()
        for _ in range(3):
            a, b = _step(names, a, b)
        _check(HEAD + "    for _ in range(n):\n" + _body(names, " " * 8) + TAIL, 3, (a, b))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.lists(st.tuples(*[st.sampled_from(sorted(STEPS))] * 2), min_size=1, max_size=3))
def test_mixed(pairs: list[tuple[str, str]]) -> None:
    """Several steps a round, one of them in a branch."""
    text = HEAD + "    for r in range(n):\n" + "".join(_body(p, " " * 8) for p in pairs)
    text += "        if r % 2 == 1:\n" + _body(pairs[0], " " * 12)
    a, b = _operands()
    for r in range(4):
        for names in pairs:
            a, b = _step(names, a, b)
        if r % 2 == 1:
            a, b = _step(pairs[0], a, b)
    _check(text + TAIL, 4, (a, b))


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.tuples(*[st.sampled_from(sorted(STEPS))] * 2), st.tuples(*[st.sampled_from(sorted(STEPS))] * 2))
def test_branches(yes: tuple[str, str], no: tuple[str, str]) -> None:
    text = HEAD + "    if n > 3:\n" + _body(yes, " " * 8) + "    else:\n" + _body(no, " " * 8) + TAIL
    for n, names in ((2, no), (5, yes)):
        _check(text, n, _step(names, *_operands()))


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.tuples(*[st.sampled_from(sorted(STEPS))] * 2))
def test_while(names: tuple[str, str]) -> None:
    text = (
        HEAD
        + "    r = 0\n    while (tl.max(tl.max(a, 1), 0) < 100000) & (r < n):\n"
        + _body(names, " " * 8)
        + "        r += 1\n"
        + TAIL
    )
    a, b = _operands()
    r = 0
    while a.max() < 100000 and r < 3:
        a, b = _step(names, a, b)
        r += 1
    _check(text, 3, (a, b))


@pytest.mark.parametrize("name", STEPS)
def test_through_memory(name: str) -> None:
    """In place in the user's memory: what is read comes before what is written, round by round."""
    text = HEAD.replace("a, b = tl.load(x + at), tl.load(y + at)", "").rstrip() + f"""
    for _ in range(n):
        a, b = tl.load(x + at), tl.load(y + at)
        tl.store(x + at, {STEPS[name][0].format(a="a", b="b")})
        tl.store(y + at, b + a)
    tl.store(o + at, tl.load(x + at))
    tl.store(o + 128 + at, tl.load(y + at))
"""  # fmt: skip
    a, b = _operands()
    for _ in range(3):
        a, b = STEPS[name][1](a, b), b + a
    _check(text, 3, (a, b))
