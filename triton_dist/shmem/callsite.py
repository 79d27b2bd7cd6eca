# SPDX-License-Identifier: MIT
"""Where a user called us: the innermost stack frame outside the code of the runtime and of ready-made operations."""

from __future__ import annotations

import os
import sys
import threading

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OWN = tuple(_PACKAGE + part + os.sep for part in ("shmem", "testing", "backends", "kernels"))


def call_site(launch: bool = False) -> str:
    """`file:line` of the caller, the file relative to the working directory where that is shorter.

    `launch`: the caller launched a kernel, so Triton's frames are between.
    """
    frame, own = sys._getframe(1), _OWN
    if launch:
        own = (*own, os.path.dirname(str(sys.modules["triton"].__file__)) + os.sep)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(own):
        frame = frame.f_back
    if frame.f_code.co_filename == threading.__file__:  # a PE that is a thread, finalized by run_pes
        return "the end of its function"
    return f"{_short(frame.f_code.co_filename)}:{frame.f_lineno}"


_names: dict[str, str] = {}


def _short(path: str) -> str:
    # Once a file: an allocation takes tens of microseconds, and relpath would be half of it.
    if path not in _names:
        try:
            _names[path] = min(path, os.path.relpath(path), key=len)
        except (ValueError, OSError):  # another drive; no working directory any more
            _names[path] = path
    return _names[path]
