# SPDX-License-Identifier: MIT
"""A machine of the test's choosing: no settings in the environment, and only the vendors' tools it asks for on PATH."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from triton_dist import backends, knobs, platform


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [n for n in os.environ if n.startswith(knobs.PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(knobs, "_set", {})
    platform.reset()
    yield
    platform.reset()
    backends.reset()


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`tools("npu-smi", ...)` makes PATH a folder with just these programs."""

    def make(*names: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).write_text("#!/bin/sh\nexit 0\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        platform.reset()
        return folder

    return make
