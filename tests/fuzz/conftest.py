# SPDX-License-Identifier: MIT
"""These tests are of the host engine and of what knows no vendor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from triton_dist import knobs


@pytest.fixture(autouse=True)
def on_the_host() -> Iterator[None]:
    """The front end accepts what the active back end has; the corpus needs one that has everything."""
    with knobs.scope(backend="cpu", simulate=None):
        yield
