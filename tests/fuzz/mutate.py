# SPDX-License-Identifier: MIT
"""Texts of the corpus with mistakes in them, and what the parser may do with such a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import TypeAlias

from hypothesis import strategies as st
from xdsl.utils.exceptions import VerifyException

from tests.corpus import build
from tests.corpus.registry import entries
from triton_dist import ir
from triton_dist.errors import IRParseError

TOKEN = re.compile(r'\s+|"(?:[^"\\\n]|\\.)*"|[#%@^!]?[\w.$]+|->|::|.', re.DOTALL)
NUMBER = re.compile(r"\d+")
NUMBERS = ("0", "1", "2", "-1", "7", "64", "65536", "4294967296", "9" * 30, "9" * 5000, "0x7F800000", "1.5", "1e999")
STRANGE = (
    "", " ", "\n", '"', "'", "\\", "{", "}", "(", ")", "<", ">", "[", "]", ",", ":", "=", "->", "?", "*", "@", "%", "#",
    "!", "^", "//", "\0", "é", "%x", "%0#9", "#loc1", "loc(", "dense<", "tensor<", "!tt.ptr<", "x", "i1", "i0", "f32",
    "bf16", "f8E5M2", "true", "none", "index", "affine_map<", "unit", "{-#", "#-}", "tt.load", "scf.for", "^bb0", "^12",
    "^_0", "%_0", "^-", "#map", "array<", "!", "opaque<", "loc(unknown)", "cf.br ^bb1",
)  # fmt: skip
DEEP = 3000
Changes: TypeAlias = Mapping[str, Callable[[list[str], Random], None]]
"""By name: what is done to the tokens of a text."""


@cache
def texts() -> tuple[str, ...]:
    """What the parser takes: the corpus before and after Triton's passes, and the modules of the FileCheck tests."""
    found = [build.ttir(entry, optimise) for entry in entries() for optimise in (True, False)]
    folder = Path(__file__).parents[1] / "filecheck"
    found += [path.read_text() for path in sorted(folder.rglob("*.mlir"))]
    return tuple(found)


def mutants() -> st.SearchStrategy[str]:
    """A text with one to six mistakes."""
    return mutated(texts, MUTATIONS, 6)


@st.composite
def mutated(draw: st.DrawFn, texts: Callable[[], Sequence[str]], changes: Changes, most: int) -> str:
    """One of these texts with one to `most` of these changes to its tokens."""
    random = draw(st.randoms(use_true_random=False))
    tokens = TOKEN.findall(draw(st.sampled_from(texts())))
    for _ in range(draw(st.integers(1, most))):
        changes[draw(st.sampled_from(sorted(changes)))](tokens, random)
    return "".join(tokens)


def _delete(tokens: list[str], random: Random) -> None:
    at = random.randrange(len(tokens) + 1)
    del tokens[at : at + random.choice((1, 1, 1, 2, 5, 40))]


def _duplicate(tokens: list[str], random: Random) -> None:
    at, count = random.randrange(len(tokens) + 1), random.choice((1, 1, 2, 5, 40))
    tokens[at:at] = tokens[at : at + count]


def _swap(tokens: list[str], random: Random) -> None:
    if len(tokens) > 1:
        a, b = random.sample(range(len(tokens)), 2)
        tokens[a], tokens[b] = tokens[b], tokens[a]


def _replace(tokens: list[str], random: Random) -> None:
    if tokens:
        tokens[random.randrange(len(tokens))] = random.choice(tokens)


def _move(tokens: list[str], random: Random) -> None:
    at, count = random.randrange(len(tokens) + 1), random.choice((1, 3, 10, 60))
    part = tokens[at : at + count]
    del tokens[at : at + count]
    to = random.randrange(len(tokens) + 1)
    tokens[to:to] = part


def _number(tokens: list[str], random: Random) -> None:
    places = [n for n, token in enumerate(tokens) if NUMBER.search(token)]
    if places:
        at = random.choice(places)
        tokens[at] = NUMBER.sub(lambda match: random.choice((*NUMBERS, match[0])), tokens[at])


def _strange(tokens: list[str], random: Random) -> None:
    tokens.insert(random.randrange(len(tokens) + 1), random.choice(STRANGE))


def _cut(tokens: list[str], random: Random) -> None:
    del tokens[random.randrange(len(tokens) + 1) :]


def _characters(tokens: list[str], random: Random) -> None:
    """Inside a token, so that names are misspelt and numbers get letters."""
    if tokens:
        at = random.randrange(len(tokens))
        letters = list(tokens[at])
        letters.insert(random.randrange(len(letters) + 1), random.choice('x0_.-#%<>"\\é'))
        tokens[at] = "".join(letters)


def _nest(tokens: list[str], random: Random) -> None:
    """One token many times: what is nested too deeply must be an error too."""
    at = random.randrange(len(tokens) + 1)
    tokens[at:at] = tokens[at : at + random.choice((1, 2, 3))] * DEEP


MUTATIONS = {
    "delete": _delete, "duplicate": _duplicate, "swap": _swap, "replace": _replace, "move": _move, "number": _number,
    "strange": _strange, "cut": _cut, "characters": _characters, "nest": _nest,
}  # fmt: skip


def check(text: str) -> str:
    """Parse a text. It is refused with our error and a place, or what it says can be printed and parsed again."""
    try:
        module = ir.parse(text, "mutant.mlir")
    except IRParseError as error:
        if not str(error.fields["where"]).startswith("mutant.mlir"):
            raise AssertionError("an error without its place") from error
        return "refused by the parser"
    try:
        module.verify()
    except VerifyException:
        return "refused by the verifier"
    again = ir.parse(ir.print_module(module))
    # xDSL lets an operand be defined after its use, but does not compare such modules.
    if module.is_structurally_equivalent(module.clone()):
        assert again.is_structurally_equivalent(module), "what was printed says something else"
    return "taken"
