# SPDX-License-Identifier: MIT
"""TTIR of the corpus' kernels, from Triton's own front end and passes, without a GPU."""

from __future__ import annotations

import os
import tempfile
import warnings
from typing import Any

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend

from tests.corpus.registry import Entry
from triton_dist import knobs

TARGET = GPUTarget("cuda", 90, 32)


def _backend() -> tuple[Any, Any, Any]:
    backend = make_backend(TARGET)
    with warnings.catch_warnings():
        # Options whose default is about to change; they do not change TTIR.
        warnings.simplefilter("ignore")
        options = backend.parse_options({"debug": True})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return backend, options, context


def ttir(entry: Entry, optimise: bool = True) -> str:
    """The module of a kernel as libtriton prints it, after its "ttir" passes if `optimise`."""
    # The host's signals are of any width, so the front end takes all of the corpus for it.
    with warnings.catch_warnings(), knobs.scope(backend="cpu"):
        # Some versions warn of what others cannot do without.
        warnings.simplefilter("ignore")
        return _ttir(entry, optimise)


def _ttir(entry: Entry, optimise: bool) -> str:
    backend, options, context = _backend()
    source = ASTSource(entry.fn, entry.signature, entry.constexprs, entry.attrs)
    implementation = backend.get_codegen_implementation(options)
    module = source.make_ir(TARGET, options, implementation, backend.get_module_map(), context)
    if optimise:
        module = stock_stages(backend, options, source.language)["ttir"](module, {})
    return str(module)


def stock_stages(backend: Any, options: Any, language: Any) -> dict[str, Any]:
    """The back end's stages without our hook, which would lower the carriers."""
    stages: dict[str, Any] = {}
    runtime = triton.knobs.runtime
    hook, runtime.add_stages_inspection_hook = runtime.add_stages_inspection_hook, None
    try:
        backend.add_stages(stages, options, language)
    finally:
        runtime.add_stages_inspection_hook = hook
    return stages


def normalise(text: str, debuginfo: bool = True) -> str:
    """What libtriton prints of the module it parses from `text`. Raises RuntimeError if it does not parse."""
    _, _, context = _backend()
    handle, path = tempfile.mkstemp(suffix=".mlir")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        module = ir.parse_mlir_module(path, context)
    finally:
        os.unlink(path)
    # The module's Python object does not keep its context alive.
    module.context = context
    return str(module) if debuginfo else module.str_nodebug()
