# SPDX-License-Identifier: MIT
"""Tests of the vendor's tools are skipped where the package ascendnpu-ir, which has few wheels, is not installed."""

from __future__ import annotations

import pytest

from triton_dist.backends.ascend import tools


@pytest.fixture(scope="session")
def bishengir() -> None:
    """Needs the vendor's tools."""
    missing = [name for name in tools.TOOLS if tools.find(name) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: the package ascendnpu-ir is not installed")
