# SPDX-License-Identifier: MIT
"""What kernels say about the threads of a program, and the plain atomics: `from ...language_extra import tid, ld,
st`.

Each function is looked up in the active back end's module when it is called. A program on the host is one thread:
`tid` is 0 and `ntid` is 1. Code that loops `for i in range(tid(0), n, ntid(0))` is portable; code that gives each
thread one item (`if tid(0) < n`) is not.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl

from triton_dist import backends
from triton_dist.knobs import did_you_mean
from triton_dist.language.builtin import builtin
from triton_dist.language.extra.dispatch import ActiveModule


def _nearest(name: str, backend: str) -> str | None:
    return did_you_mean(name, _names()).removeprefix(" (did you mean ").removesuffix("?)") or None


active_module = ActiveModule("extra_module", _nearest)
"""The ModuleProxy of the active back end's `language_extra` module."""


@active_module.dispatch
def tid(axis: Any) -> Any:
    """This thread's index in its program, along axis 0, 1 or 2."""


@active_module.dispatch
def ntid(axis: Any) -> Any:
    """The number of threads of a program, along axis 0, 1 or 2."""


@active_module.dispatch
def laneid() -> Any:
    """This thread's index in its warp."""


@active_module.dispatch
def __syncthreads() -> None:
    """Wait for all threads of this program."""


@active_module.dispatch
def ld(ptr: Any, scope: Any = "gpu", semantic: Any = "relaxed") -> Any:
    """An atomic load of 32 or 64 bits. `semantic`: "relaxed" or "acquire"; `scope`: "cta", "gpu" or "sys"."""


@active_module.dispatch
def st(ptr: Any, val: Any, scope: Any = "gpu", semantic: Any = "relaxed") -> None:
    """An atomic store of 32 or 64 bits. `semantic`: "relaxed" or "release"; `scope`: "cta", "gpu" or "sys"."""


@active_module.dispatch
def ld_acquire(ptr: Any, scope: Any = "gpu") -> Any:
    """`ld` with "acquire"."""


@active_module.dispatch
def red_release(ptr: Any, val: Any, scope: Any = "gpu") -> None:
    """Add with "release", without a result."""


@active_module.dispatch
def atomic_add(ptr: Any, val: Any, scope: Any = "gpu", semantic: Any = "relaxed") -> Any:
    """Add, and return the value before. `semantic`: "relaxed", "acquire", "release" or "acq_rel"."""


@active_module.dispatch
def atomic_cas(ptr: Any, value: Any, target_value: Any, scope: Any = "gpu", semantic: Any = "relaxed") -> Any:
    """Store `target_value` if `value` is there; return the value before. `semantic` as in `atomic_add`."""


def _names() -> list[str]:
    # `builtin`, which is imported, is no such function, and dispatchers are marked by it.
    return [name for name, value in globals().items() if tl.core.is_builtin(value)]


def declare_pending(backend: str, namespace: dict[str, Any]) -> None:
    """Fill the module of a back end that has none of these functions yet: each is an error where a kernel calls
    it."""

    def pending(name: str) -> Any:
        def function(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
            raise backends.get(backend).not_yet(f"language_extra.{name}")

        function.__name__, function.__module__ = name, namespace["__name__"]
        return builtin(function)

    namespace.update({name: pending(name) for name in _names()})


def __getattr__(name: str) -> Any:
    """A function that only the active back end has, or the error that says it has none."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(active_module(), name)
