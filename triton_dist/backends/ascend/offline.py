# SPDX-License-Identifier: MIT
"""Compiling for an NPU on a machine without one: through triton-ascend's own stages, and the vendor's compiler as far
as it goes.

    dumps = offline.stages(kernel, {"x": "*fp32", "n": "i32"}, {"BLOCK": 64})
    dumps["linalg"]                          # what triton-ascend hands to the vendor's compiler
    offline.calls(dumps["linalg"])           # the calls in what that makes of it

The last step, `hivmc`, comes with the vendor's toolkit only. Needs the packages triton-ascend and ascendnpu-ir.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triton_dist.backends.ascend import hook, tools
from triton_dist.errors import UnknownTritonAscend, VendorToolFailed

ARCH = "Ascend910B4"
_OPTIONS = (
    "--mlir-disable-threading", "--enable-auto-multi-buffer=False", "--enable-triton-kernel-compile",
    "--enable-hfusion-compile", "--enable-hivm-compile", "--mlir-print-ir-after=convert-hivm-to-std",
)  # fmt: skip
TRIES = 6
_LAST_STEP = "Cannot find hivmc"


def stages(
    kernel: Any, signature: Mapping[str, str], constants: Mapping[str, Any] | None = None, arch: str = ARCH
) -> dict[str, str]:
    """The kernel's text after each step: "ttir" of triton-ascend, "distributed", "hivm", "linalg"."""
    from triton_dist import ir

    ttir, metadata, stage = _ttir(kernel, signature, constants or {}, arch)
    text = str(ttir)
    dumps = {"ttir": text}
    if hook.CARRIER in text:
        for name, passes in (("distributed", hook.PASSES[:1]), ("hivm", hook.PASSES)):
            module = ir.parse(text)
            ir.run_passes(module, passes)
            dumps[name] = ir.print_module(module, debuginfo=False)
    dumps["linalg"] = str(stage(ttir, metadata))
    return dumps


def _ttir(kernel: Any, signature: Mapping[str, str], constants: Mapping[str, Any], arch: str) -> Any:
    """The module after "ttir", and the stage that comes next."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    compiler = hook.compiler_class()
    if compiler is None:
        raise UnknownTritonAscend(version="(none)", detail="the package triton-ascend is not installed")
    hook.install()
    backend = compiler(GPUTarget("npu", arch, 64))
    source = ASTSource(kernel, dict(signature), dict(constants))
    options = backend.parse_options(dict(source.parse_options()))
    metadata: dict[str, Any] = {"target": backend.target, **options.__dict__}
    steps: dict[str, Any] = {}
    backend.add_stages(steps, options)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    make_ir: Any = source.make_ir  # of Triton 3.2, which takes no target
    module = make_ir(options, backend.get_codegen_implementation(), backend.get_module_map(), context)
    return steps["ttir"](module, metadata), metadata, steps[hook.STAGE]


def lowered(linalg: str, arch: str = ARCH) -> str:
    """What the vendor's compiler makes of a Linalg module, down to calls of library functions: its last output before
    hivmc. Raises if it ends before that."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.mlir"
        source.write_text(linalg)
        arguments = [f"--target={arch}", *_OPTIONS, str(source), "-o", str(Path(folder) / "kernel.o")]
        done = _run_until_it_lives(arguments)
    ended_early = done.status != 0 and _LAST_STEP not in done.err
    if ended_early or "IR Dump After" not in done.err:
        raise VendorToolFailed(tool="bishengir-compile", status=done.status, detail=done.err[:2000])
    return done.err


def _run_until_it_lives(arguments: list[str]) -> tools.Done:
    """ascendnpu-ir 1.2.0 crashes in one of about ten runs, in its pass hivm-infer-data-layout, on the same module with
    a dot and calls that give a memref; the next run goes through. A module that always crashes still does."""
    done = tools.run("bishengir-compile", arguments)
    for _ in range(TRIES - 1):
        if done.status >= 0:  # not ended by a signal
            break
        done = tools.run("bishengir-compile", arguments)
    return done


def calls(linalg: str, arch: str = ARCH) -> set[str]:
    """The functions of the template library that the compiled module calls, under the names that it links."""
    text = lowered(linalg, arch)
    called = set(re.findall(r"call @(\w*aclshmem\w*(?:\.\w+)?)\(", text))
    # With a memref among its operands a function is declared for the C interface, which adds the prefix.
    emitted = set(re.findall(r"func\.func private @(\w+(?:\.\w+)?)\(.*llvm\.emit_c_interface", text))
    return {f"_mlir_ciface_{name}" if name in emitted and not name.startswith("_mlir") else name for name in called}
