# SPDX-License-Identifier: MIT
"""A pytest plugin: tests by back end. Name it in a conftest: `pytest_plugins = ["triton_dist.testing.plugin"]`.

The back end is what TRITON_DIST_BACKEND says (`TRITON_DIST_BACKEND=ascend pytest` tests ascend, simulated where there
is no NPU), else what this machine has.
"""

from __future__ import annotations

import pytest

from triton_dist import platform
from triton_dist.testing import PE_COUNTS


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "backends(*names): run the test only where one of these back ends is active")


def pytest_runtest_setup(item: pytest.Item) -> None:
    names = [name for marker in item.iter_markers("backends") for name in marker.args]
    if names and (active := platform.current().backend) not in names:
        pytest.skip(f"needs the back end {' or '.join(names)}; active is {active}")


@pytest.fixture
def backend() -> str:
    """The name of the active back end."""
    return platform.current().backend


@pytest.fixture(params=PE_COUNTS, ids=lambda n: f"{n}pe")
def n_pes(request: pytest.FixtureRequest) -> int:
    """Every world size in turn."""
    return request.param
