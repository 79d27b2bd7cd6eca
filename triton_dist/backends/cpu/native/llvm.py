# SPDX-License-Identifier: MIT
"""From LLVM IR text to an object file in memory."""

from __future__ import annotations

import functools
import threading
from typing import Any

from triton_dist.errors import CompilerFault
from triton_dist.forks import ASSEMBLING, guarded

from .target import Target, native

_lock = guarded(ASSEMBLING, threading.Lock())


@functools.lru_cache(4)
def _machine(target: Target) -> Any:
    import llvmlite.binding as llvm

    native()
    found = llvm.Target.from_triple(target.triple)
    return found.create_target_machine(cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small")


def _optimise(module: Any, machine: Any) -> None:
    import llvmlite.binding as llvm

    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_loop_rotate_pass()
    passes.add_aggressive_dce_pass()
    passes.add_simplify_cfg_pass()
    passes.add_new_gvn_pass()
    passes.run(module, builder)


def compile_object(text: str, target: Target) -> bytes:
    """Machine code of one module. LLVM contexts are not thread-safe, so one compilation runs at a time."""
    import llvmlite.binding as llvm

    with _lock:
        machine = _machine(target)
        module = llvm.parse_assembly(text)
        module.verify()
        _optimise(module, machine)
        return machine.emit_object(module)


def assemble(text: str, target: Target) -> bytes:
    """Machine code of assembly text: LLVM's assembler takes it as a module that holds nothing else."""
    import llvmlite.binding as llvm

    special = {ord(c): f"\\{ord(c):02X}" for c in '\\"\n\t'}
    lines = text.encode().decode("latin-1").translate(special)
    with _lock:
        machine = _machine(target)
        return machine.emit_object(llvm.parse_assembly(f'target triple = "{target.triple}"\nmodule asm "{lines}"\n'))


def assembly(text: str, target: Target) -> str:
    """Assembly of one module, after clean-up passes."""
    import llvmlite.binding as llvm

    with _lock:
        machine = _machine(target)
        try:
            module = llvm.parse_assembly(text)
            module.verify()
        except RuntimeError as error:
            raise CompilerFault(where="a kernel", what="LLVM's verifier", cause=error) from error
        _optimise(module, machine)
        return machine.emit_assembly(module)
