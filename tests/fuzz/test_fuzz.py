# SPDX-License-Identifier: MIT
"""A fixed few hundred examples; `make fuzz` runs more, and others each time.

In processes of their own: hypothesis draws from the constants of all modules that are imported, and here those are
others in every run.
"""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import child


@pytest.mark.parametrize("seed", range(5))
def test_random_kernels_do_what_they_do_in_numpy(seed: int) -> None:
    assert child("kernels", 40, seed)


@pytest.mark.parametrize("seed", range(2))
def test_a_mutated_text_is_refused_or_taken(seed: int) -> None:
    assert child("parser", 300, seed)


@pytest.mark.parametrize("seed", range(2))
def test_a_mutated_text_becomes_code_or_is_refused(seed: int) -> None:
    assert child("code", 100, seed)
