# SPDX-License-Identifier: MIT
"""Loops and branches of random kernels: variables from outside get new values inside."""

from __future__ import annotations

import numpy as np

from tests.fuzz.maker import Maker
from tests.fuzz.numbers import BOOL, INT32
from tests.fuzz.operations import OPERATIONS, WEIGHTS, operation
from tests.fuzz.program import Block, For, If, Let, Return, Var, While

DEEPEST = 2


def statement(m: Maker) -> None:
    """One operation by chance."""
    at = m.number(0, sum(WEIGHTS) - 1)
    for choice, weight in zip(OPERATIONS, WEIGHTS, strict=True):
        at -= weight
        if at < 0:
            choice(m)
            return


def _scalar(m: Maker) -> Var:
    return m.any(lambda v: v.shape == () and v.type is INT32)


def _carried(m: Maker) -> list[Var]:
    """Variables of around that get new values."""
    found = [v for v in m.visible() if v.slack == 0 and v.name[0] == "v" and v not in m.counters]
    return [m.pick(found) for _ in range(m.number(1, 3))] if found else []


def _fill(m: Maker, block: Block, carried: list[Var]) -> None:
    with m.inside(block):
        for _ in range(m.number(1, 3)):
            statement(m)
        for v in dict.fromkeys(carried):
            new = m.like(v.type, v.shape)
            if new != v:
                m.add(Let((v,), new.name, (new,), lambda a: a))


@operation(5)
def branch(m: Maker) -> None:
    if m.depth >= DEEPEST:
        return
    a, b = _scalar(m), _scalar(m)
    greater = m.chance(2)
    of = np.greater if greater else np.not_equal
    condition = m.let(BOOL, (), f"{a.name} {'>' if greater else '!='} {b.name}", [a, b], of)
    carried = _carried(m)
    then: Block = []
    otherwise: Block = []
    _fill(m, then, carried)
    if m.chance(2):
        _fill(m, otherwise, carried)
    m.add(If(condition, then, otherwise))


@operation(5)
def counted_loop(m: Maker) -> None:
    if m.depth >= DEEPEST:
        return
    index, body = Var(m.fresh("i"), INT32, ()), []
    step = m.pick((1, 1, 2, 3))
    start = m.number(0, 3)
    iterator, stop = "range", start + m.number(0, 5)
    if m.chance(4):
        bounds = (start, stop, step)
        iterator = m.pick(("tl.static_range", "tl.range"))
    elif m.chance(4):
        bounds = (stop, start, -step)
    else:
        limit = _scalar(m)
        end = m.let(INT32, (), f"{limit.name} & 7", [limit], lambda a: a & np.int32(7))
        bounds = (start, end, step)
    carried = _carried(m)
    # The index of a static_range is no tensor.
    m.scopes.append([] if iterator == "tl.static_range" else [index])
    _fill(m, body, carried)
    m.scopes.pop()
    m.add(For(index, bounds, body, iterator))


@operation(3)
def while_loop(m: Maker) -> None:
    if m.depth >= DEEPEST:
        return
    limit = _scalar(m)
    counter = m.let(INT32, (), f"{limit.name} & 3", [limit], lambda a: a & np.int32(3))
    body: Block = []
    # Given another value inside, however deep, it might never come to zero.
    m.counters.append(counter)
    _fill(m, body, _carried(m))
    m.counters.pop()
    m.add(While(counter, body))


@operation(1)
def leave_early(m: Maker) -> None:
    if m.depth:
        return
    pid, chosen = Var("pid", INT32, ()), m.number(0, 3)
    condition = m.let(BOOL, (), f"pid == {chosen}", [pid], lambda a: a == chosen)
    m.add(If(condition, [Return()], []))
