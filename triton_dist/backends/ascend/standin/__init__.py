# SPDX-License-Identifier: MIT
"""A stand-in for the Python package `shmem` (aclshmem), on the host engine: names, signatures, return codes.

    from triton_dist.backends.ascend import standin

    standin.install()
    import shmem as ash

Scripts that `import shmem as ash` run unchanged with its folder on the path:

    export TRITON_DIST_BACKEND=ascend PYTHONPATH=$(python -m triton_dist.backends.ascend.standin)
    torchrun --nproc-per-node 2 script.py

It refuses to take the place of a `shmem` that is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from triton_dist.errors import StandinRefused

FOLDER = Path(__file__).parent / "site"
"""To be put on the path."""
_NAMES = ("shmem", "shmem._pyshmem", "shmem.core")


def install() -> ModuleType:
    """Make `import shmem` give the stand-in in this process; returns it."""
    present = sys.modules.get("shmem")
    if present is not None and not is_standin(present):
        raise StandinRefused(where=getattr(present, "__file__", "memory"))
    if present is None and (spec := importlib.util.find_spec("shmem")) and not _is_ours(spec.origin):
        raise StandinRefused(where=spec.origin)
    for name in _NAMES:
        module = importlib.import_module(f"triton_dist.backends.ascend.standin.site.{name}")
        sys.modules[name] = module
    return sys.modules["shmem"]


def uninstall() -> None:
    """Undo `install`."""
    if "shmem" in sys.modules and is_standin(sys.modules["shmem"]):
        for name in _NAMES:
            sys.modules.pop(name, None)


def is_standin(module: ModuleType) -> bool:
    return _is_ours(getattr(module, "__file__", None))


def _is_ours(origin: str | None) -> bool:
    return origin is not None and Path(origin).is_relative_to(FOLDER)
