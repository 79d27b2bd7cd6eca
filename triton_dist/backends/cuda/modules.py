# SPDX-License-Identifier: MIT
"""Device modules that use NVSHMEM: each needs the library's state before its first launch.

Triton tells of every module that it loads, specialised variants and those from its cache among them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triton_dist.errors import NotInitialized

STATE = b"nvshmemi_device_state_d"
"""The variable that the host fills in; a module without it has nothing to do with NVSHMEM."""


class Modules:
    """The loaded modules that use NVSHMEM, of this process."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._library: Any = None
        self._lock = threading.Lock()

    def loaded(self, module: int, name: str, files: Mapping[str, str]) -> None:
        if not uses_nvshmem(files):
            return
        with self._lock:
            # Remembered even if this raises: the kernel is in Triton's cache now, and init will make up for it.
            self._names[module] = name
            if self._library is None:
                raise NotInitialized(call=f"The kernel {name}")
            self._library.cumodule_init(module)

    def unloaded(self, module: int) -> None:
        with self._lock:
            self._names.pop(module, None)

    def start(self, library: Any) -> None:
        """NVSHMEM is there: initialise what was loaded before."""
        with self._lock:
            self._library = library
            for module in self._names:
                library.cumodule_init(module)

    def stop(self) -> None:
        """NVSHMEM goes: its state in the modules with it. They are initialised again if it comes back."""
        with self._lock:
            for module in self._names:
                self._library.cumodule_finalize(module)
            self._library = None


def uses_nvshmem(files: Mapping[str, str]) -> bool:
    """Whether a kernel's artefacts hold NVSHMEM's state."""
    for name, path in files.items():
        if name.endswith(".ptx"):
            return STATE in Path(path).read_bytes()
    # Only binaries were kept; the variable's name is in them, too.
    return any(STATE in Path(path).read_bytes() for name, path in files.items() if name.endswith(".cubin"))


MODULES = Modules()
