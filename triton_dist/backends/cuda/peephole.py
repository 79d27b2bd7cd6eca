# SPDX-License-Identifier: MIT
"""Statements of PTX that say the same as others, and that ptxas compiles faster.

A small kernel takes ptxas 80 million instructions, and two look-ups of a peer's address took 11 million more: counted
by valgrind, ptxas of CUDA 12.8. Here they become 7 million.
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
_SKIPPED = re.compile(
    rf"{_BEGIN}mov\.b64 (?P<result>\w+), 0; @(?P<outside>\w+) bra (?P<end>\w+); (?P<body>[^@:{{|]*)"
    r"selp\.b64 (?P=result), 0, (?P<value>\w+), (?P<null>\w+); (?P=end): "
)
_ACTS = re.compile(r"\b(?:st|atom|red|bra|trap|fence|membar|div|rem)\b")
_WIDE = re.compile(rf"{_BEGIN}mad\.wide\.([su]32) (\w+), (\w+), (\d+), (?!\2\b)(\w+);")


def faster(statements: str, straight: bool) -> str:
    """The statements of a function. `straight`: its loads may be made although a branch would skip them."""
    statements = _compared_once(statements)
    return _multiplied_then_added(_straight(statements) if straight else statements)


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


def _straight(statements: str) -> str:
    """`x = 0; if (!outside) { ...; x = null ? 0 : value }` without the branch.

    The comparison takes the other condition in (`setp.eq.or`): with an `or` of its own ptxas gives an all-reduce of
    4 PEs 96 registers, not 48, and on one GPU it takes a fifth longer.
    """
    found = _SKIPPED.search(statements)
    if found is None or _ACTS.search(found["body"]):
        return statements
    words, made = Counter(_WORD.findall(statements)), Counter(_MADE.findall(statements))
    # What is made there is made nowhere else, the result only where it is seen to be, and nobody else jumps there.
    made_once = all(made[name] == 1 for name in _MADE.findall(found["body"]))
    result, null, value = found["result"], found["null"], found["value"]
    if not made_once or made[result] != 2 or result in _WORD.findall(found["body"]):
        return statements
    if words[null] != 2 or words[found["end"]] != 2:
        return statements
    compared = re.search(rf"{_BEGIN}setp\.eq\.b64 {null}, (\w+), 0; ", found["body"])
    if compared is None:
        return statements
    both = f"setp.eq.or.b64 {null}, {compared[1]}, 0, {found['outside']}; "
    body = found["body"].replace(compared[0], both)
    return statements.replace(found[0], f"{body}selp.b64 {result}, 0, {value}, {null}; ")


def _multiplied_then_added(statements: str) -> str:
    """`mad.wide` as a multiplication and an addition, as an index of a table has it."""
    return _WIDE.sub(r"mul.wide.\1 \2, \3, \4; add.s64 \2, \5, \2;", statements)
