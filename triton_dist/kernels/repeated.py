# SPDX-License-Identifier: MIT
"""Launching one kernel again and again, at little cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
from triton.runtime import driver

from triton_dist import shmem

ALIGNMENT = 16
"""What Triton asks of a pointer: it compiles another variant for one that is not a multiple of it."""
EACH_TIME = object()
"""Stands for a tensor that every launch brings."""


class Repeated:
    """Launches of a kernel on `programs` that differ in a few tensors only: always of the same types.

    Triton looks at every argument of every launch to find the variant it needs. That takes longer than a small
    collective does. Here it looks once for each alignment of those tensors; other launches go to what it found.
    """

    def __init__(self, kernel: Any, programs: int, arguments: Sequence[Any], num_warps: int) -> None:
        self._kernel, self._programs, self._num_warps = kernel, programs, num_warps
        self._arguments = list(arguments)
        # To the compiled kernel addresses stand for tensors: its launcher need not ask for them.
        self._values = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]
        self._places = [i for i, argument in enumerate(arguments) if argument is EACH_TIME]
        # On the host a launch is cheap, and the engine adds arguments of its own. Triton without knobs (3.2, which
        # triton-ascend builds on) starts compiled kernels in another way.
        direct = shmem.device().type != "cpu" and hasattr(triton, "knobs")
        self._found: dict[tuple[bool, ...], Any] | None = {} if direct else None

    def __call__(self, *tensors: torch.Tensor) -> None:
        if self._found is None:
            self._launch(tensors)
            return
        addresses = [tensor.data_ptr() for tensor in tensors]
        known = tuple(address % ALIGNMENT == 0 for address in addresses)
        compiled = self._found.get(known)
        if compiled is None:
            self._found[known] = self._launch(tensors)
        elif _hooked():
            compiled[(self._programs, 1, 1)](*self._filled(self._values, addresses))
        else:
            compiled.run(
                self._programs, 1, 1, _stream(), compiled.function, compiled.packed_metadata, None, None, None,
                *self._filled(self._values, addresses),
            )  # fmt: skip

    def _filled(self, arguments: list[Any], brought: Sequence[Any]) -> list[Any]:
        filled = arguments.copy()
        for place, value in zip(self._places, brought, strict=True):
            filled[place] = value
        return filled

    def _launch(self, tensors: Sequence[torch.Tensor]) -> Any:
        """By Triton; returns the compiled kernel."""
        return self._kernel[(self._programs,)](*self._filled(self._arguments, tensors), num_warps=self._num_warps)


def _hooked() -> bool:
    """Whether somebody, a profiler say, wants to hear of launches."""
    from triton import knobs

    runtime = knobs.runtime
    return any(getattr(hook, "calls", hook) for hook in (runtime.launch_enter_hook, runtime.launch_exit_hook))


def _stream() -> int:
    active: Any = driver.active
    return active.get_current_stream(active.get_current_device())
