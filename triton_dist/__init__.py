# SPDX-License-Identifier: MIT
"""Multi-device kernels written once in Triton.

    import triton_dist
    import triton_dist.language as dl

    @triton_dist.jit
    def kernel(...): ...

Importing this package imports nothing else: its parts, Triton among them, are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from triton import jit as jit

    from triton_dist import backends as backends
    from triton_dist import errors as errors
    from triton_dist import knobs as knobs
    from triton_dist import language as language
    from triton_dist import platform as platform
    from triton_dist import shmem as shmem
    from triton_dist import testing as testing

_MODULES = ("backends", "errors", "knobs", "language", "platform", "shmem", "testing")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "jit":
        # `triton_dist.jit` is `triton.jit`: kernels need no decorator of ours.
        return importlib.import_module("triton").jit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES, "jit"])
