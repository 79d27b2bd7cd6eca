# SPDX-License-Identifier: MIT
"""TTIR of the corpus' kernels, from Triton's own front end and passes, without a GPU."""

from __future__ import annotations

import os
import tempfile
import warnings
from typing import Any

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend

from tests.corpus.registry import Entry

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
    with warnings.catch_warnings():
        # Some versions warn of what others cannot do without.
        warnings.simplefilter("ignore")
        return _ttir(entry, optimise)


def _ttir(entry: Entry, optimise: bool) -> str:
    backend, options, context = _backend()
    source = ASTSource(entry.fn, entry.signature, entry.constexprs, entry.attrs)
    implementation = backend.get_codegen_implementation(options)
    module = source.make_ir(TARGET, options, implementation, backend.get_module_map(), context)
    if optimise:
        stages: dict[str, Any] = {}
        backend.add_stages(stages, options, source.language)
        module = stages["ttir"](module, {})
    return str(module)


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
