# SPDX-License-Identifier: MIT
"""Kernels are compiled to PTX for a Hopper GPU, which needs no GPU; NVSHMEM's library is a stub of LLVM IR."""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel
from triton.compiler import compile as triton_compile

from triton_dist import knobs
from triton_dist.backends.cuda import library
from triton_dist.compiler import hook

STUB = Path(__file__).parent / "nvshmem_stub.ll"
TARGET = GPUTarget("cuda", 90, 32)

Compile = Callable[..., CompiledKernel]


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation whose only library is the stub."""
    folder = tmp_path / "lib"
    folder.mkdir()
    path = folder / "libnvshmem_device.ll"
    shutil.copy(STUB, path)
    monkeypatch.setattr(library.Installed, "file_for", lambda self, arch: path)
    monkeypatch.setattr(library, "installed", lambda: library.Installed(folder, "3.4.5"))
    return path


@pytest.fixture
def cuda() -> Iterator[None]:
    with knobs.scope(backend="cuda", simulate=True):
        yield


@pytest.fixture
def compiled(cuda: None, stub: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Compile:
    """Compiles a kernel from the types of its arguments; constants are those given by name in `constants`."""
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NVSHMEM_REMOTE_TRANSPORT", "none")
    hook._key.cache_clear()

    def compile(kernel: Any, *types: str, constants: dict[str, Any] | None = None, **options: Any) -> CompiledKernel:
        given = constants or {}
        names = kernel.arg_names
        runtime = dict(zip([name for name in names if name not in given], types, strict=True))
        signature = {name: runtime.get(name, "constexpr") for name in names}
        places = {name: (i,) for i, name in enumerate(names)}
        # As a launch does: pointers are aligned, and integers are multiples of 16.
        attributes = {places[name]: [["tt.divisibility", 16]] for name, kind in runtime.items() if kind != "i64"}
        source = ASTSource(kernel, signature, {places[name]: value for name, value in given.items()}, attributes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return triton_compile(source, target=TARGET, options=options)

    return compile


def instructions(kernel: CompiledKernel) -> list[str]:
    """The PTX of the kernel's code, without labels, declarations and line numbers."""
    body = kernel.asm["ptx"].split(".file")[0]
    lines = (line.strip() for line in body.splitlines())
    return [line for line in lines if line and not line.startswith((".", "$", "//", "{\t", "}"))]


def count(kernel: CompiledKernel, pattern: str) -> int:
    return sum(bool(re.search(pattern, line)) for line in instructions(kernel))


def position(kernel: CompiledKernel, pattern: str) -> int:
    """Of the first instruction that matches."""
    return next(i for i, line in enumerate(instructions(kernel)) if re.search(pattern, line))
