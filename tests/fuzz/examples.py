# SPDX-License-Identifier: MIT
"""So many examples of a seed: the same ones each time."""

from __future__ import annotations

from typing import Any

import hypothesis
from hypothesis import HealthCheck, given

from tests.fuzz import code, kernels, mutate

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
"""What hypothesis complains of, and what is meant here: an example takes long, and is large."""


def examples(what: str, count: int, seed: int) -> None:
    """Run `kernels`, `parser` or `code`; the first fault is made as small as it gets and raised."""
    settings = hypothesis.settings(max_examples=count, deadline=None, database=None, suppress_health_check=SLOW)
    hypothesis.seed(seed)(settings(_TESTS[what]()))()


def _kernels() -> Any:
    @given(program=kernels.programs(), how=kernels.settings())
    def test(program: kernels.Program, how: dict[str, Any]) -> None:
        kernels.run(program, **how)

    return test


def _parser() -> Any:
    @given(text=mutate.mutants())
    def test(text: str) -> None:
        mutate.check(text)

    return test


def _code() -> Any:
    @given(text=code.mutants())
    def test(text: str) -> None:
        code.check(text)

    return test


_TESTS = {"kernels": _kernels, "parser": _parser, "code": _code}
