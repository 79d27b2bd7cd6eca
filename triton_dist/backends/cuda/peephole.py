# SPDX-License-Identifier: MIT
"""Statements of PTX that say the same as others, and that ptxas compiles faster.

What did not stand: without the branch round the load of a peer's address ptxas is faster by as much again, but it takes
96 registers in place of 48 for an all-reduce of 4 PEs, which on one GPU then takes a fifth longer.
"""

from __future__ import annotations

import re
from collections import Counter

_WORD = re.compile(r"\w+")
_BEGIN = r"(?:^|(?<=[;:] ))"
"""Of a statement that is always done: no predicate stands before it."""
_MADE = re.compile(rf"{_BEGIN}(?:@!?\w+ )?[a-z][\w.]* (\w+),")
_SEVERAL = re.compile(r"[{|]")
"""In a statement that makes more than one value."""
_EITHER = re.compile(rf"{_BEGIN}or\.pred (\w+), (\w+), (\w+); ")
_WIDE = re.compile(rf"{_BEGIN}mad\.wide\.([su]32) (\w+), (\w+), (\d+), (?!\2\b)(\w+);")


def faster(statements: str) -> str:
    """The statements of a function."""
    return _multiplied_alone(_compared_once(statements))


def _compared_once(statements: str) -> str:
    """`at < start or at - start >= size` as the second alone, which ptxas compiles faster.

    No memory reaches round the end of the address space: what lies before `start` is further from it than `size`.
    """
    if _SEVERAL.search(statements):
        return statements
    for outside, *sides in _EITHER.findall(statements):
        for below, beyond in (sides, sides[::-1]):
            low = re.search(rf"{_BEGIN}setp\.lt\.u64 {below}, (\w+), (\w+); ", statements)
            high = re.search(rf"{_BEGIN}setp\.ge\.u64 {beyond}, (\w+), (\w+); ", statements)
            if low is None or high is None:
                continue
            if re.search(rf"{_BEGIN}sub\.s64 {high[1]}, {low[1]}, {low[2]}; ", statements) is None:
                continue
            words, made = Counter(_WORD.findall(statements)), Counter(_MADE.findall(statements))
            same = all(made[name] == 1 for name in (*low.groups(), high[1], outside))
            # Neither side is looked at elsewhere, and both are of the same values.
            if same and words[below] == words[beyond] == 2:
                statements = statements.replace(f"or.pred {outside}, {', '.join(sides)}; ", "").replace(low[0], "")
                statements = statements.replace(high[0], f"setp.ge.u64 {outside}, {high[1]}, {high[2]}; ")
    return statements


def _multiplied_alone(statements: str) -> str:
    """`mad.wide` as a multiplication and an addition, as an index of a table has it."""
    return _WIDE.sub(r"mul.wide.\1 \2, \3, \4; add.s64 \2, \5, \2;", statements)
