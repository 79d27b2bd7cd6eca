# SPDX-License-Identifier: MIT
"""Launching one kernel again and again, at little cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
import triton
from torch.autograd import forward_ad
from triton.runtime import driver

from triton_dist import backends, shmem
from triton_dist.backends.base import Launch
from triton_dist.kernels.overlap import overlap

ALIGNMENT = 16
"""What Triton asks of a pointer: it compiles another variant for one that is not a multiple of it."""
EACH_TIME = object()
"""Stands for a tensor that every launch brings."""
MOST_SEEN = 64
"""Addresses whose tensors need no look; memory comes from an allocator's few blocks."""
Seen: TypeAlias = tuple[torch.Size, torch.dtype, Launch]
"""Of the first tensor of a launch its shape and type, and the way that launch went."""


class Repeated:
    """Launches of a kernel on `programs` that differ in a few tensors only: always of the same types.

    Triton looks at every argument of every launch to find the variant it needs. That takes longer than a small
    collective does. Here it looks once for each alignment of those tensors; other launches go to what it found.
    Not for several threads at once: `OneAtATime` says so on the host.

    `written`: what other PEs or programs write while the first of those tensors is read. If that one overlaps it, or
    another one of those tensors, a copy is read. None: it may overlap.
    """

    def __init__(
        self, kernel: Any, programs: int, arguments: Sequence[Any], num_warps: int,
        written: Sequence[torch.Tensor] | None = None,
    ) -> None:  # fmt: skip
        self._kernel, self._programs, self._num_warps, self._written = kernel, programs, num_warps, written
        self._arguments = list(arguments)
        # To the compiled kernel addresses stand for tensors: its launcher need not ask for them.
        self._values = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]
        self._places = [i for i, argument in enumerate(arguments) if argument is EACH_TIME]
        # On the host a launch is cheap, and the engine adds arguments of its own. Triton without knobs (3.2, which
        # triton-ascend builds on) starts compiled kernels in another way.
        device = shmem.device()
        self._direct = device.type != "cpu" and hasattr(triton, "knobs")
        self._found: dict[tuple[bool, ...], tuple[Any, Launch]] = {}
        self._seen: dict[tuple[int, ...], Seen] = {}
        if self._direct:
            self._index, self._hooks, self._stream = device.index, _hooks(), _streams()

    def again(self, first: torch.Tensor, *others: torch.Tensor) -> bool:
        """Launch, if tensors like these were launched before, and nothing in them has to be looked at: else False.

        `first` is what a caller was given, unseen. Of `others` only the address is asked.
        """
        try:
            addresses = (first.data_ptr(), *[other.data_ptr() for other in others]) if others else (first.data_ptr(),)
            shape, dtype, launch = self._seen[addresses]
            hooks = self._hooks
            # Torch's (private) number of levels of forward derivatives: within one, a tensor may have a tangent.
            if (
                first.shape != shape or first.dtype is not dtype or not first.is_contiguous()
                or first.requires_grad or first.is_neg() or forward_ad._current_level >= 0
                or hooks.launch_enter_hook.calls or hooks.launch_exit_hook.calls
            ):  # fmt: skip
                return False
        except (LookupError, AttributeError, RuntimeError):  # others than before, no tensor, or one without memory
            return False
        launch(self._stream(self._index), addresses)
        return True

    def __call__(self, *tensors: torch.Tensor) -> None:
        """Launch with tensors that were looked at (`check_operand`), and are contiguous."""
        tensors = (tensors[0].resolve_neg(), *tensors[1:])
        if self._written is not None and any(overlap(tensors[0], other) for other in (*self._written, *tensors[1:])):
            tensors = (tensors[0].clone(), *tensors[1:])
        if not self._direct:
            self._launch(tensors)
            return
        addresses = tuple([tensor.data_ptr() for tensor in tensors])
        known = tuple([address % ALIGNMENT == 0 for address in addresses])
        found = self._found.get(known)
        if found is None:
            compiled = self._launch(tensors)
            self._found[known] = compiled, self._way_of(compiled)
            return
        compiled, launch = found
        if self._heard():
            compiled[(self._programs, 1, 1)](*self._filled(self._values, addresses))
            return
        launch(self._stream(self._index), addresses)
        if len(self._seen) == MOST_SEEN:
            self._seen.clear()
        self._seen[addresses] = tensors[0].shape, tensors[0].dtype, launch

    def _heard(self) -> bool:
        """Whether somebody, a profiler say, wants to hear of launches."""
        enter, leave = self._hooks.launch_enter_hook, self._hooks.launch_exit_hook
        return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))

    def _way_of(self, compiled: Any) -> Launch:
        """The back end's own, or Triton's launcher."""
        own = backends.active().relaunch(compiled, self._programs, self._values, self._places)
        return own or (
            lambda stream, addresses: compiled.run(
                self._programs, 1, 1, stream, compiled.function, compiled.packed_metadata, None, None, None,
                *self._filled(self._values, addresses),
            )
        )  # fmt: skip

    def _filled(self, arguments: list[Any], brought: Sequence[Any]) -> list[Any]:
        filled = arguments.copy()
        for place, value in zip(self._places, brought, strict=True):
            filled[place] = value
        return filled

    def _launch(self, tensors: Sequence[torch.Tensor]) -> Any:
        """By Triton; returns the compiled kernel."""
        return self._kernel[(self._programs,)](*self._filled(self._arguments, tensors), num_warps=self._num_warps)


def _hooks() -> Any:
    from triton import knobs

    return knobs.runtime


def _streams() -> Callable[[int], int]:
    """The current stream of a device, as a number."""
    active: Any = driver.active
    return active.get_current_stream
