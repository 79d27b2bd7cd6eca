# SPDX-License-Identifier: MIT
"""PEs that are threads launch the same kernels at the same moment: one of them compiles, the others take its result."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any


class CompileOnce:
    """Stands where Triton's AsyncCompileMode stands, and compiles at once, in the thread that asks first."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._kernels: dict[str, Any] = {}

    def submit(
        self,
        key: str,
        compile_kernel: Callable[[], Any],
        finalize: Callable[[Any], None],
        cleanup: Callable[[Any], None] | None = None,
    ) -> Any:
        """The kernel that `key` (a hash of source, options and target) stands for."""
        del cleanup  # only for kernels that are still being compiled when this returns
        with self._lock:
            if key not in self._kernels:
                self._kernels[key] = compile_kernel()
        finalize(self._kernels[key])
        return self._kernels[key]

    def use(self) -> None:
        """Make the calling thread's launches compile here, unless the user has already chosen a mode."""
        if "triton" not in sys.modules:
            return  # a PE without kernels need not wait for Triton's import
        try:
            from triton.runtime._async_compile import active_mode
        except ImportError:  # another Triton: every PE compiles for itself
            return
        if active_mode.get() is None:
            active_mode.set(self)  # type: ignore[arg-type]
