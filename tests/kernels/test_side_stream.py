# SPDX-License-Identifier: MIT
"""When the side stream and the current one wait for each other."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from triton_dist import shmem
from triton_dist.kernels.side_stream import SideStream


class Stream:
    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes

    def wait_stream(self, other: Stream) -> None:
        self.notes.append(f"{self.name} after {other.name}")


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []

    @contextlib.contextmanager
    def stream(which: Stream) -> Any:
        made.append(f"on {which.name}")
        yield

    module = SimpleNamespace(
        Stream=lambda device, priority: Stream("side", made),
        current_stream=lambda: Stream("main", made),
        stream=stream,
    )
    monkeypatch.setattr(shmem, "device", lambda: torch.device("cuda", 0))
    monkeypatch.setattr(torch, "get_device_module", lambda device: module)
    return made


def test_forks_are_joined_once(notes: list[str]) -> None:
    side = SideStream()
    for _ in range(2):
        with side.fork():
            notes.append("copy")
    side.join()
    side.join()
    assert notes == ["side after main", "on side", "copy"] * 2 + ["main after side"]


def test_what_did_not_fork_is_not_waited_for(notes: list[str]) -> None:
    """A stream that is being recorded must not wait for one outside of the graph."""
    SideStream().join()
    assert notes == []
