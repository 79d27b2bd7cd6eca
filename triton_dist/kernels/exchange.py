# SPDX-License-Identifier: MIT
"""Memory that PEs write into each other's, call after call, without a barrier between the calls."""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import torch
from torch.autograd import forward_ad

from triton_dist import shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels.given import made_alike

if TYPE_CHECKING:
    from typing_extensions import Self

C = TypeVar("C", bound="Collective")
P = ParamSpec("P")
R = TypeVar("R")


class OneAtATime:
    """Held by a call. Calls of two threads at once would mix up their signals, and both wait for ever."""

    def __init__(self, op: str) -> None:
        self._op, self._lock = op, threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            detail = "another thread is in a call of it. Let calls follow each other, or make an operation a thread"
            raise ArgumentError(op=self._op, detail=detail)

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def one_at_a_time(call: Callable[Concatenate[C, P], R]) -> Callable[Concatenate[C, P], R]:
    """Of a collective's `__call__`."""

    @functools.wraps(call)
    def guarded(op: C, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with op._alone:  # pyright: ignore[reportPrivateUsage]
            return call(op, *args, **kwargs)

    return guarded


class Gone(OneAtATime):
    """Takes its place when the memory is gone: by then it may be another's."""

    def __init__(self, op: str, why: str) -> None:
        super().__init__(op)
        self._why = why

    def __enter__(self) -> None:
        raise ArgumentError(op=self._op, detail=self._why)


class Collective(AbstractContextManager["Collective"], ABC):
    """An operation that owns symmetric memory. Making and freeing it are collective, as are its calls."""

    _alone: OneAtATime

    def __init_subclass__(cls) -> None:
        if "__init__" in vars(cls):
            setattr(cls, "__init__", made_alike(cls.__init__))  # noqa: B010

    def __new__(cls, *_: object, **__: object) -> Self:
        made = super().__new__(cls)
        made._alone = OneAtATime(cls.__name__)
        return made

    def free(self) -> None:
        """Give the memory back. Collective; waits until no PE uses it."""
        with self._alone:
            self._release()
        self._lose("it was freed. Make another one, or free it after its last call")

    def finalized(self) -> None:
        """`shmem.finalize` has given the memory back."""
        if not isinstance(self._alone, Gone):
            self._lose("shmem.finalize() took its memory. Make another one after shmem.init()")

    def _lose(self, why: str) -> None:
        """No call of it is made from here on."""
        self._alone = Gone(type(self).__name__, why)

    @abstractmethod
    def _release(self) -> None:
        """What `free` does, once."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:  # after an error the other PEs may never come to a collective call
            self.free()


def check_operand(
    op: str,
    name: str,
    operand: torch.Tensor,
    shape: Sequence[int | None],
    dtype: torch.dtype | None,
    device: torch.device | None = None,
) -> None:
    """Raise unless `operand` is an ordinary tensor of this shape and type, on this device; None stands for any.

    One that requires a gradient is refused where torch records: no operation here can be derived.

    An operation looks at all that its launches would refuse before it tells the other PEs of a call: they could not
    tell the next call from one that was begun and given up.
    """
    if not isinstance(operand, torch.Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(op=op, detail=f"{name} is a {type(operand).__name__}; it must be a torch.Tensor")
    found = operand.shape
    if operand.layout is not torch.strided:
        raise ArgumentError(op=op, detail=f"{name} is {operand.layout}; it must be dense: {name}.to_dense()")
    if operand.requires_grad and torch.is_grad_enabled():
        detail = f"{name} requires a gradient, and none comes back: give {name}.detach(), or call under torch.no_grad()"
        raise ArgumentError(op=op, detail=detail)
    if device is not None:  # otherwise `Repeated` looks, but not at what it has seen before
        if operand.device != device:
            raise ArgumentError(op=op, detail=f"{name} is on {operand.device}; this PE is on {device}")
        check_content(op, name, operand)
    if found == shape and operand.dtype == dtype:
        return
    fits = len(found) == len(shape) and all(want in (None, have) for want, have in zip(shape, found, strict=True))
    if fits and dtype in (None, operand.dtype):
        return
    wanted = " x ".join("any" if want is None else str(want) for want in shape)
    have = " x ".join(map(str, found))
    raise ArgumentError(op=op, detail=f"{name} is {have} {operand.dtype}; it must be {wanted} {dtype or ''}".rstrip())


def check_content(op: str, name: str, operand: torch.Tensor) -> None:
    """Raise where a kernel can read nothing, or not all; torch itself does for wrappers, of vmap say."""
    if not operand.data_ptr() and operand.numel():
        detail = f"{name} is a {type(operand).__name__} without memory; keep the call out of what is traced"
        raise ArgumentError(op=op, detail=detail)
    if forward_ad.unpack_dual(operand).tangent is not None:
        detail = f"{name} has a tangent, and none comes back: give forward_ad.unpack_dual({name}).primal"
        raise ArgumentError(op=op, detail=detail)


@dataclass(frozen=True)
class Turn:
    """What one call uses: its copy of the buffer and of the signals, and the value that its signals take."""

    buffer: torch.Tensor
    signals: torch.Tensor
    epoch: int


class Exchange:
    """A symmetric buffer with its signals, twice, used in turn by call after call of one kernel.

    The kernel must obey one rule: on every PE a call ends only after that PE has seen a signal of the same call from
    every PE. Then nothing is ever reset, and no call needs a barrier:

    - A PE in call k + 1 has finished call k. So it has seen that every PE began call k, and thus finished call k - 1.
      Call k + 1 writes the copy that call k - 1 used, and nobody uses that one any more.
    - A signal's value is the number of the call. Its slot takes the next value two calls later, when every waiter of
      this call has left. So a wait for equality cannot miss its value.

    The result of call k may be read until the same PE begins call k + 1. Every PE makes the same calls in the same
    order.
    """

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, signals: int) -> None:
        self._buffers = shmem.create_tensor((2, *shape), dtype)
        self._signals = [shmem.create_signals(signals) for _ in range(2)]
        self._calls = 0

    @property
    def device(self) -> torch.device:
        return self._buffers.device

    def turn(self) -> Turn:
        """Begin the next call."""
        self._calls += 1
        half = self._calls % 2
        return Turn(self._buffers[half], self._signals[half], self._calls)

    def free(self) -> None:
        """Give the memory back. Collective; waits until no PE uses it."""
        shmem.barrier_all()
        for signals in self._signals:
            shmem.free_tensor(signals)
        shmem.free_tensor(self._buffers)
