# SPDX-License-Identifier: MIT
"""One compilation, and one loading of a kernel, at a time in a process.

PEs that are threads reach a kernel's first launch together. CPython's `ast.parse` keeps its recursion depth for all
threads in one place and fails when they meet ("AST constructor recursion depth mismatch"); and one of them compiling
for all is quicker than each for itself.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from triton_dist.errors import CacheFolderUnusable
from triton_dist.forks import COMPILING, guarded

_lock = guarded(COMPILING, threading.RLock())


def install() -> None:
    """Wrap `JITFunction._do_compile` and `CompiledKernel.run`, once."""
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime.jit import JITFunction

    if hasattr(JITFunction._do_compile, "__wrapped__"):
        return
    JITFunction._do_compile = _compile_once(JITFunction._do_compile)
    setattr(CompiledKernel, "run", property(_loaded_run))  # noqa: B010 - a property has no setter of its own


def _compile_once(original: Any) -> Any:
    @functools.wraps(original)
    def compile_once(self: Any, key: Any, signature: Any, device: Any, *args: Any, **kwargs: Any) -> Any:
        with _lock:
            done = self.device_caches[device][0].get(key)
            if done is not None:
                return done
            try:
                return original(self, key, signature, device, *args, **kwargs)
            except OSError as error:
                if (folder := _cache_folder(error)) is None:
                    raise
                raise CacheFolderUnusable(folder=folder, detail=error.strerror) from error

    return compile_once


def _cache_folder(error: OSError) -> str | None:
    """The folder of Triton's cache, if that is what the system's error is about."""
    from triton import knobs

    folder = str(knobs.cache.dir)
    return folder if str(error.filename or "").startswith(folder) else None


def _loaded_run(self: Any) -> Any:
    """The kernel's launcher. Stock Triton shows it to other threads before the function it launches is loaded."""
    if self.function is None:
        with _lock:
            self._init_handles()
    return self._run
