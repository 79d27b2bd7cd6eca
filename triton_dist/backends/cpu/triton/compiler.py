# SPDX-License-Identifier: MIT
"""Triton's compiler interface for the host engine: stages ttir, distributed, llir, asm, obj."""

from __future__ import annotations

import functools
import importlib.metadata
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from triton import knobs as triton_knobs
from triton.backends.compiler import BaseBackend, GPUTarget

from triton_dist.compiler.garbage import uncollected
from triton_dist.errors import ContradictoryKnobs

FP8 = ("fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16", "fp8e4b15")


@dataclass(frozen=True)
class CpuOptions:
    """What a launch may say.

    Warps, stages, and what else NVIDIA's and AMD's back ends are told, are accepted, so that kernels written for GPUs
    run, and mean nothing here.
    """

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 2
    warp_size: int = 1
    cluster_dims: tuple[int, int, int] = (1, 1, 1)
    debug: bool = False
    sanitize_overflow: bool = False
    arch: str = ""
    enable_fp_fusion: bool = True
    launch_cooperative_grid: bool = False
    extern_libs: tuple[tuple[str, str], ...] = ()
    supported_fp8_dtypes: tuple[str, ...] = FP8
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    backend_name: str = "cpu"
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    ir_override: str | None = None
    maxnreg: int | None = None
    num_buffers_warp_spec: int = 0
    # NVIDIA's
    launch_pdl: bool = False
    ptx_version: int | None = None
    ptx_options: str | None = None
    enable_reflect_ftz: bool = True
    sched4reg: bool = False
    clc: bool = False
    min_shared_mem: int | None = None
    # AMD's
    waves_per_eu: int = 0
    matrix_instr_nonkdim: int = 0
    kpack: int = 1
    allow_flush_denorm: bool = False
    schedule_hint: str = ""
    llvm_fn_attrs: str = ""
    wgp_cu_mode: str = ""

    def hash(self) -> str:
        import hashlib

        text = "_".join(f"{k}-{v}" for k, v in sorted(self.__dict__.items()))
        return hashlib.sha256(text.encode()).hexdigest()


@functools.lru_cache(1)
def _backend_hash() -> str:
    from triton_dist import __version__
    from triton_dist.backends.cpu.native.runtime import cpu_key, generator_key

    versions = [importlib.metadata.version(p) for p in ("llvmlite", "xdsl")]
    return "-".join(["triton_dist", __version__, *versions, cpu_key(), generator_key()])


class CpuCompiler(BaseBackend):
    """TTIR to native code of this machine."""

    binary_ext = "obj"

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        self.binary_ext = "obj"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "cpu"

    def hash(self) -> str:
        from triton_dist import knobs, platform

        chosen = platform.current()
        return f"{_backend_hash()}-{chosen.backend}-{chosen.mode}-{knobs.simd}-{knobs.check_bounds}"

    def parse_options(self, options: dict[str, Any]) -> CpuOptions:
        known = {k: v for k, v in options.items() if k in CpuOptions.__dataclass_fields__ and v is not None}
        known["arch"] = str(self.target.arch)
        if "enable_fp_fusion" not in known:
            known["enable_fp_fusion"] = _fp_fusion_default()
        if isinstance(libs := known.get("extern_libs"), dict):
            known["extern_libs"] = tuple(libs.items())
        return CpuOptions(**known)

    def pack_metadata(self, metadata: Any) -> tuple[()]:
        del metadata
        return ()

    def get_codegen_implementation(self, options: CpuOptions) -> dict[str, Any]:
        del options
        from .float8 import convert

        return {"min_dot_size": lambda lhs, rhs: (1, 1, 1), "convert_custom_types": convert}

    def get_module_map(self) -> dict[str, ModuleType]:
        # Its functions call `__nv_*` symbols, which the host's template library defines.
        from triton.language.extra.cuda import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context: Any) -> None:
        """Stock Triton's own dialects are enough."""

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any = None) -> None:
        if triton_knobs.compilation.store_binary_only:
            detail = "TRITON_STORE_BINARY_ONLY is set; Triton then keeps binaries of NVIDIA's and AMD's back ends only."
            raise ContradictoryKnobs(detail=detail, fix="Unset it to compile for the host engine.")
        stages["ttir"] = lambda src, metadata: make_ttir(src, metadata)
        stages["distributed"] = lambda src, metadata: make_distributed(src, metadata)
        stages["llir"] = lambda src, metadata: make_llir(src, metadata, options)
        stages["asm"] = lambda src, metadata: make_asm(src, metadata)
        stages["obj"] = lambda src, metadata: make_obj(src, metadata)
        hook: Any = triton_knobs.runtime.add_stages_inspection_hook
        if hook is not None:
            hook(self, stages, options, language, None)


def _fp_fusion_default() -> bool:
    # Read the variable itself: asking Triton 3.9's knob warns about a default that is about to change.
    import os

    return os.environ.get("TRITON_DEFAULT_FP_FUSION", "1").lower() in ("1", "true", "yes", "on", "y")


def make_ttir(module: Any, metadata: dict[str, Any]) -> Any:
    """Triton's own target-independent passes."""
    from triton._C.libtriton import ir, passes

    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    passes.common.add_inliner(manager)
    _optional(passes.ttir, "add_rewrite_tensor_pointer", manager)
    passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    passes.common.add_canonicalizer(manager)
    passes.ttir.add_combine(manager)
    passes.ttir.add_reorder_broadcast(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    passes.ttir.add_loop_unroll(manager)
    passes.common.add_canonicalizer(manager)
    try:
        manager.run(module, "make_ttir")
    except TypeError:  # before Triton 3.5
        manager.run(module)
    metadata.setdefault("shared", 0)
    return module


def _optional(namespace: Any, name: str, manager: Any) -> None:
    """A pass that only some versions of Triton have."""
    if hasattr(namespace, name):
        getattr(namespace, name)(manager)


def make_distributed(module: Any, metadata: dict[str, Any]) -> str:
    """Carriers become `distributed` ops; a kernel without any passes through as it is."""
    del metadata
    text = str(module)
    if '"distributed"' not in text:
        return text
    from triton_dist import ir

    parsed = ir.parse(text)
    ir.run_passes(parsed, ["raise-distributed-carriers"])
    return ir.print_module(parsed)


@uncollected()
def make_llir(text: str, metadata: dict[str, Any], options: CpuOptions) -> str:
    """The back end's conversion, then LLVM IR."""
    from triton_dist import backends, ir, knobs, platform
    from triton_dist.backends.cpu.codegen.kernel import compile_module
    from triton_dist.backends.cpu.native.target import host

    module = ir.parse(text)
    if "distributed." in text:
        ir.run_passes(module, backends.get(platform.current().backend).pipeline())
    code = compile_module(module, host(), options.enable_fp_fusion, knobs.check_bounds)
    metadata["checked"], metadata["distributed"] = knobs.check_bounds, code.distributed
    metadata["arena_size"], metadata["blocking"] = code.arena_size, code.blocking
    metadata["sites"], metadata["roots"] = code.sites, code.roots
    metadata["weight"] = code.weight
    metadata["name"] = _public_name(text)
    metadata["tmem_size"], metadata["global_scratch_size"], metadata["profile_scratch_size"] = None, 0, 0
    metadata["shared"] = 0
    return code.llvm_ir


def _public_name(text: str) -> str:
    found = re.search(r"tt\.func public @(\S+?)\(", text)
    return found[1].strip('"') if found else "kernel"


def make_asm(text: str, metadata: dict[str, Any]) -> str:
    """Assembly, to be read: `kernel.asm["asm"]`."""
    del metadata
    from triton_dist.backends.cpu.native.llvm import assembly
    from triton_dist.backends.cpu.native.target import host

    return assembly(text, host())


def make_obj(text: str, metadata: dict[str, Any]) -> bytes:
    """Machine code."""
    del metadata
    from triton_dist.backends.cpu.native.llvm import assemble
    from triton_dist.backends.cpu.native.target import host

    return assemble(text, host())
