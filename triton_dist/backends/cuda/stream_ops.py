# SPDX-License-Identifier: MIT
"""Signals sent and awaited by a stream itself. No kernel is launched, so none can keep them from being done.

A GPU that is full of programs which wait has no room for a kernel that would let them go on. Memory operations of the
stream need no room.
"""

from __future__ import annotations

from typing import Any

from triton_dist.errors import NvshmemError

WAITS = {"ge": 0, "eq": 1}
"""CUstreamWaitValue_flags of the comparisons that there are."""


class StreamOps:
    """CUDA's stream memory operations on 64-bit words."""

    def __init__(self) -> None:
        try:
            from cuda.bindings import driver  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            fix = "Install it: pip install nvshmem4py-cu13 (or -cu12), the one for your CUDA version."
            raise NvshmemError(call="shmem.init", detail=f"cuda-bindings is missing ({error}).", fix=fix) from error
        import torch

        self._driver: Any = driver
        # A raw handle: making torch's object takes longer than the memory operation.
        self._current = torch._C._cuda_getCurrentRawStream  # pyright: ignore
        self._device = torch.cuda.current_device()

    def current(self) -> int:
        """The current stream."""
        return self._current(self._device)

    def write(self, stream: int, address: int, value: int) -> None:
        """Store `value` once all that the stream did before is done and seen."""
        self._call("cuStreamWriteValue64", stream, address, value, 0)

    def wait(self, stream: int, address: int, value: int, cmp: str) -> None:
        """Hold the stream until the word compares to `value`."""
        self._call("cuStreamWaitValue64", stream, address, value, WAITS[cmp])

    def _call(self, name: str, *args: int) -> None:
        status = getattr(self._driver, name)(*args)[0]
        if status:
            fix = "Does the GPU have stream memory operations?"
            raise NvshmemError(call=name, detail=f"CUDA says {status!r}.", fix=fix)
