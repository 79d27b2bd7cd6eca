# SPDX-License-Identifier: MIT
"""Compiling kernels to TTIR with stock Triton and no GPU, and interpreting them."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Triton 3.9 warns where it is not set, and warnings are errors here.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend

from tests.corpus.build import stock_stages
from triton_dist import knobs

ARGUMENTS = {
    "sig": "*i64",
    "usig": "*u64",
    "sig32": "*i32",
    "sig8": "*i8",
    "fixed": "*ki64",
    "data": "*fp32",
    "out": "*fp32",
    "half": "*fp16",
    "desc": "tensordesc<fp32[16, 16]>",
    "n": "i32",
    "big": "i64",
    "unsigned": "u32",
    "small": "i8",
    "x": "fp32",
    "yes": "i1",
}
"""The arguments of every kernel that `kernel_of` makes, with their types."""

HEADER = """\
import triton.language as tl
import triton_dist
import triton_dist.language as dl
from triton_dist.language.extra import language_extra, libshmem_device as lib


"""


@pytest.fixture(autouse=True)
def on_the_host() -> Iterator[None]:
    """Tests that need another back end say so with a scope of their own."""
    with knobs.scope(backend="cpu", simulate=None):
        yield


@pytest.fixture
def ttir() -> Callable[..., str]:
    """`ttir(kernel, signature, constexprs)`: the TTIR that the front end makes, or with `optimize` Triton's passes
    too."""
    return compile_to_ttir


def compile_to_ttir(
    kernel: Any, signature: dict[str, str], constexprs: dict[str, Any] | None = None, *, optimize: bool = False
) -> str:
    constexprs = constexprs or {}
    types = {**signature, **dict.fromkeys(constexprs, "constexpr")}
    target = GPUTarget("cuda", 80, 32)
    backend = make_backend(target)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(kernel, types, constexprs)
    functions = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, functions, backend.get_module_map(), context)
    if optimize:
        module = stock_stages(backend, options, source.language)["ttir"](module, {})
    return module.str_nodebug()


@pytest.fixture
def kernel_of(tmp_path: Path) -> Callable[..., Any]:
    """`kernel_of(body)`: a kernel with these lines and the ARGUMENTS, in a file of its own."""

    def make(body: str, arguments: str = ", ".join(ARGUMENTS), before: str = "") -> Any:
        path = tmp_path / f"kernel_{len(list(tmp_path.iterdir()))}.py"
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        path.write_text(f"{HEADER}{before}@triton_dist.jit\ndef kernel({arguments}):\n{lines}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.kernel

    return make


@pytest.fixture
def lower(kernel_of: Callable[..., Any]) -> Callable[..., str]:
    """`lower(body)`: the TTIR of a kernel with these lines."""
    return lambda body, before="", **options: compile_to_ttir(kernel_of(body, before=before), ARGUMENTS, **options)


@pytest.fixture
def reject(kernel_of: Callable[..., Any]) -> Callable[..., tuple[BaseException, str]]:
    """`reject(body)`: the error of ours behind Triton's, and Triton's message; checks that the caret stands under
    the last line, or `last`."""

    def run(body: str, last: str = "") -> tuple[BaseException, str]:
        with pytest.raises(triton.CompilationError) as caught:
            compile_to_ttir(kernel_of(body), ARGUMENTS)
        message = str(caught.value)
        lines = message.splitlines()
        caret = next(i for i, line in enumerate(lines) if line.strip() == "^")
        assert lines[caret - 1].strip() == (last or body.splitlines()[-1].strip())
        return caught.value.__cause__ or caught.value, message

    return run


@pytest.fixture
def interpret(kernel_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`interpret(body, grid, name=tensor, ...)`: run a kernel with these lines in Triton's interpreter."""

    def run(body: str, grid: tuple[int, ...] = (1,), **arguments: Any) -> None:
        monkeypatch.setattr(triton.knobs.runtime, "interpret", True)
        kernel_of(body, ", ".join(arguments))[grid](*arguments.values())

    return run
