# SPDX-License-Identifier: MIT
"""Mutated TTIR into the code generator and LLVM: what Triton's own parser takes must become code, or be refused."""

from __future__ import annotations

import faulthandler
import os
import re
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st
from triton._C.libtriton import ir as triton_ir
from xdsl.utils.exceptions import VerifyException

from tests.corpus import build
from tests.corpus.registry import entries
from tests.fuzz.mutate import MUTATIONS, NUMBER, TOKEN, mutated
from triton_dist import ir
from triton_dist.backends.cpu.native.llvm import assembly
from triton_dist.backends.cpu.native.target import host
from triton_dist.backends.cpu.triton.compiler import CpuOptions, make_distributed, make_llir, make_ttir
from triton_dist.errors import CompilerFault, TritonDistError

GENTLE = ("0", "1", "2", "3", "4", "8", "16", "64", "-1")
TYPES = ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN")
JOURNAL = "FUZZ_JOURNAL"


LOCATION = re.compile(r" loc\((?:[^()]|\([^()]*\))*\)|^#loc.*\n", re.MULTILINE)


@cache
def texts() -> tuple[str, ...]:
    """The corpus as the code generator gets it, without locations: they would be most of what is hit."""
    return tuple(LOCATION.sub("", _optimised(build.ttir(entry, optimise=False))) for entry in entries())


def _optimised(text: str) -> str:
    return str(make_ttir(_parse(text), {}))


def mutants() -> st.SearchStrategy[str]:
    """A text with one to three small mistakes."""
    return mutated(texts, _CHANGES, 3)


def _one_of(tokens: list[str], random: Random, wanted: Any, new: Any) -> None:
    places = [n for n, token in enumerate(tokens) if wanted(token)]
    if places:
        at = random.choice(places)
        tokens[at] = new(tokens[at])


def _value(tokens: list[str], random: Random) -> None:
    """Another operand, of the same type as far as a line tells."""
    types = {m[1]: m[2] for m in RESULT.finditer("".join(tokens))}
    operands = [n for n, t in enumerate(tokens) if t in types and not _defines(tokens, n)]
    if operands:
        at = random.choice(operands)
        tokens[at] = random.choice([name for name, type_ in types.items() if type_ == types[tokens[at]]])


RESULT = re.compile(r"(%\w+) = .*?([^ ]+)$", re.MULTILINE)


def _defines(tokens: list[str], at: int) -> bool:
    return "".join(tokens[at + 1 : at + 4]).startswith(" = ")


def _number(tokens: list[str], random: Random) -> None:
    _one_of(tokens, random, NUMBER.fullmatch, lambda t: random.choice(GENTLE))


def _type(tokens: list[str], random: Random) -> None:
    """One type becomes another one everywhere: what is made is often valid."""
    old, new = random.choice(TYPES), random.choice(TYPES)
    tokens[:] = [t.removesuffix(old) + new if t == old or t.endswith("x" + old) else t for t in tokens]


def _extent(tokens: list[str], random: Random) -> None:
    """One extent of tiles becomes another one everywhere."""
    extents = sorted({n for t in tokens if SHAPE.fullmatch(t) for n in t.split("x")[:-1]})
    if extents:
        old, new = random.choice(extents), random.choice(("1", "2", "4", "8", "16", "32", "128"))
        each = re.compile(rf"(?<![0-9]){old}(?=x)")
        tokens[:] = [each.sub(new, t) if SHAPE.fullmatch(t) else new if t == old else t for t in tokens]


SHAPE = re.compile(r"(?:[0-9]+x)+\w+")


def _operation(tokens: list[str], random: Random) -> None:
    names = [t for t in tokens if t.startswith(("arith.", "math.", "tt."))]
    _one_of(tokens, random, lambda t: t in names, lambda t: random.choice(names))


def _line(tokens: list[str], random: Random) -> None:
    """A line goes, or comes twice, or stands elsewhere."""
    lines = "".join(tokens).splitlines(keepends=True)
    at, to = random.randrange(len(lines)), random.randrange(len(lines))
    line = lines[at] if random.random() < 0.3 else lines.pop(at)
    if random.random() < 0.7:
        lines.insert(to, line)
    tokens[:] = TOKEN.findall("".join(lines))


def _predicate(tokens: list[str], random: Random) -> None:
    _one_of(tokens, random, lambda t: t in PREDICATES, lambda t: random.choice(PREDICATES))


PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge", "oeq", "olt", "une", "uno", "ord")
_CHANGES = {
    **{name: MUTATIONS[name] for name in ("delete", "swap", "replace")}, "value": _value, "another": _value,
    "number": _number, "type": _type, "type too": _type, "extent": _extent, "extent too": _extent,
    "operation": _operation, "line": _line, "predicate": _predicate,
}  # fmt: skip


def check(text: str) -> str:
    """Compile a text. Nothing but an error of ours may come of it; and of what Triton takes, no `CompilerFault`."""
    if journal := os.environ.get(JOURNAL):
        Path(journal).write_text(text)
    try:
        ir.parse(text).verify()
        metadata: dict[str, Any] = {}
        assembly(make_llir(make_distributed(text, metadata), metadata, CpuOptions()), host())
    except CompilerFault as fault:
        if valid(text):
            raise AssertionError(f"Triton takes this\n{text}") from fault
        return "Triton refuses it too"
    except VerifyException:
        return "refused by the verifier"
    except TritonDistError:
        return "refused"
    return "compiled"


def valid(text: str) -> bool:
    """Whether Triton's own parser and verifier take it; in a child, for they crash on some."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        status = 1
        try:
            _parse(text)
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _parse(text: str) -> Any:
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "module.ttir"
        path.write_text(text)
        module = triton_ir.parse_mlir_module(str(path), context)
        module.context = context
        return module
