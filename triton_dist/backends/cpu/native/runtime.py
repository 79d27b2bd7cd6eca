# SPDX-License-Identifier: MIT
"""The native runtime, compiled once for a machine and kept beside Triton's cache."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton_dist.forks import LOADING, guarded

from .loader import Image, load

_loaded: dict[str, Runtime] = {}
_loading = guarded(LOADING, threading.Lock())


@dataclass
class Runtime:
    """The runtime's functions, callable from Python; each call releases the GIL."""

    image: Image
    launch: Any
    start: Any
    join: Any

    @classmethod
    def of(cls, image: Image) -> Runtime:
        address = ctypes.c_uint64
        return cls(
            image,
            ctypes.CFUNCTYPE(ctypes.c_int32, address, address, ctypes.c_int64)(image["td_launch"]),
            ctypes.CFUNCTYPE(ctypes.c_int32, address, ctypes.c_int64)(image["td_start"]),
            ctypes.CFUNCTYPE(ctypes.c_int32, address, ctypes.c_int64)(image["td_join"]),
        )


def cache_dir() -> Path:
    """Where Triton keeps compiled kernels."""
    from triton import knobs

    return Path(knobs.cache.dir)


@functools.lru_cache(1)
def cpu_key() -> str:
    """What decides whether machine code runs here: processor model and features, read without LLVM."""
    import platform

    wanted = ("model name", "flags", "Features", "CPU part")
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        lines = []
    found = [line for line in lines if line.split("\t")[0].strip() in wanted]
    return "|".join([platform.machine(), *found])


@functools.lru_cache(1)
def generator_key() -> str:
    """Changes with any source of the code generator, so that an edit does not find old machine code.

    Every back end counts, for simulation; and the front end, as Triton's key of a kernel has no builtins in it. Sizes
    and times, not contents: reading them all would cost each process 6 ms.
    """
    root = Path(__file__).resolve().parents[3]
    digest = hashlib.sha256()
    folders = [root / name for name in ("backends", "ir", "language", "compiler")]
    for path in sorted(path for folder in folders for kind in ("*.py", "*.ll", "*.csv") for path in folder.rglob(kind)):
        found = path.stat()
        digest.update(f"{path.name} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _build() -> bytes:
    from .library import runtime_ir
    from .llvm import compile_object
    from .target import native

    return compile_object(runtime_ir(), native())


def _path(backend: str) -> Path:
    key = hashlib.sha256(f"{cpu_key()}\n{generator_key()}\n{backend}".encode()).hexdigest()[:32]
    return cache_dir() / f"triton_dist_runtime_{key}.o"


def _write(path: Path, code: bytes) -> None:
    """Atomically: several processes may start at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "wb") as file:
        file.write(code)
    os.replace(name, path)


def runtime() -> Runtime:
    """The runtime with the symbols of the back end being simulated, loaded once and for ever: kernels hold
    addresses in it.
    """
    from triton_dist import platform

    backend = platform.current().backend
    if backend not in _loaded:
        with _loading:  # PEs that are threads all come here at once
            if backend not in _loaded:
                _loaded[backend] = _load(backend)
    return _loaded[backend]


def _load(backend: str) -> Runtime:
    """From the file, building it on the first use on this machine."""
    path = _path(backend)
    try:
        code = path.read_bytes()
    except OSError:
        code = _build()
        with contextlib.suppress(OSError):  # A read-only cache costs the next process a rebuild, nothing else.
            _write(path, code)
    return Runtime.of(load(code))
