# SPDX-License-Identifier: MIT
"""What kernels say about the threads of a program, and the plain atomics: `from ...extra.language_extra import
tid, ld, st`.

A program on the host is one thread: `tid` is 0 and `ntid` is 1. Code that loops `for i in range(tid(0), n,
ntid(0))` is portable; code that gives each thread one item (`if tid(0) < n`) is not.
"""

from __future__ import annotations

from typing import Any

from triton_dist import backends
from triton_dist.knobs import did_you_mean
from triton_dist.language.builtin import builtin
from triton_dist.language.extra.dispatch import ActiveModule

_DOCS = {
    "tid": "tid(axis): this thread's index in its program.",
    "ntid": "ntid(axis): the number of threads of a program.",
    "laneid": "laneid(): this thread's index in its warp.",
    "__syncthreads": "__syncthreads(): wait for all threads of this program.",
    "ld": 'ld(ptr, scope="gpu", semantic="relaxed"): an atomic load; "relaxed" or "acquire".',
    "st": 'st(ptr, val, scope="gpu", semantic="relaxed"): an atomic store; "relaxed" or "release".',
    "ld_acquire": 'ld_acquire(ptr, scope="gpu"): ld with "acquire".',
    "red_release": 'red_release(ptr, val, scope="gpu"): add with "release", no result.',
    "atomic_add": 'atomic_add(ptr, val, scope="gpu", semantic="relaxed"): add, and return the value before.',
    "atomic_cas": (
        'atomic_cas(ptr, value, target_value, scope="gpu", semantic="relaxed"): '
        "store target_value if value is there; return the value before."
    ),
}


def _nearest(name: str, backend: str) -> str | None:
    return did_you_mean(name, list(_DOCS)).removeprefix(" (did you mean ").removesuffix("?)") or None


active_module = ActiveModule("extra_module", _nearest)


def _declare(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any: ...

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = __name__, _DOCS[name]
    return active_module.dispatch(function)


for _name in _DOCS:
    globals()[_name] = _declare(_name)


def declare_pending(backend: str, namespace: dict[str, Any]) -> None:
    """Fill the module of a back end that has none of these functions yet: each is an error where a kernel calls
    it."""

    def pending(name: str) -> Any:
        def function(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
            raise backends.get(backend).not_yet(f"language_extra.{name}")

        function.__name__, function.__module__ = name, namespace["__name__"]
        return builtin(function)

    namespace.update({name: pending(name) for name in _DOCS})


def __getattr__(name: str) -> Any:
    """A function that only the active back end has, or the error that says it has none."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(active_module(), name)
