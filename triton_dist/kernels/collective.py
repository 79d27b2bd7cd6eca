# SPDX-License-Identifier: MIT
"""What every ready-made operation is: it owns memory that PEs share, and its calls follow each other."""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, NoReturn, ParamSpec, TypeVar

from triton_dist.errors import ArgumentError
from triton_dist.kernels.given import Life, made_alike

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
    _life = Life.BEFORE

    def __init_subclass__(cls) -> None:
        if "__init__" in vars(cls):
            setattr(cls, "__init__", made_alike(cls.__init__))  # noqa: B010

    def __new__(cls, *_: object, **__: object) -> Self:
        made = super().__new__(cls)
        made._alone = OneAtATime(cls.__name__)
        return made

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Neither copied nor pickled: a copy would use the memory after this one is freed."""
        detail = "it owns memory of the PEs, so it cannot be copied or pickled; make another one"
        raise ArgumentError(op=type(self).__name__, detail=detail)

    def __enter__(self) -> Self:  # of its own type, which can be called
        return self

    def free(self) -> None:
        """Give the memory back. Collective; waits until no PE uses it."""
        with self._alone:
            try:
                self._release()
            except BaseException as error:  # a part of it may be gone: a call would read what was never written
                self._lose(f"its free() failed with {type(error).__name__}. Make another one, if the PEs can go on")
                raise
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
