# SPDX-License-Identifier: MIT
"""A second stream, for copies that run beside a multiplication."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from triton_dist import shmem


class SideStream:
    """A stream that follows the current one at `fork`, and that the current one follows at `join`.

    Its work comes before that of the current stream where both compete. On the host there are no streams: what is
    done beside is done at once.
    """

    def __init__(self) -> None:
        device = shmem.device()
        self._module: Any = None if device.type == "cpu" else torch.get_device_module(device)
        self._stream = None if self._module is None else self._module.Stream(device, priority=-1)
        self._forked = False

    @contextlib.contextmanager
    def fork(self) -> Iterator[None]:
        """What is inside runs on the side, after what the current stream has by now."""
        if self._stream is None:
            yield
            return
        self._forked = True
        self._stream.wait_stream(self._module.current_stream())
        with self._module.stream(self._stream):
            yield

    def join(self) -> None:
        """The current stream goes on when the side is done."""
        # What did not fork from a stream that is being recorded is no part of the graph, and must not be waited for.
        if self._stream is not None and self._forked:
            self._forked = False
            self._module.current_stream().wait_stream(self._stream)
