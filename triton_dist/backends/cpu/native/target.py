# SPDX-License-Identifier: MIT
"""The machine that code is generated for."""

from __future__ import annotations

import functools
import platform
from dataclasses import dataclass

from triton_dist import errors, knobs


@dataclass(frozen=True)
class Target:
    """`features` is LLVM's feature string; the rest is what the code generator decides by."""

    triple: str
    cpu: str
    features: str
    vector_bits: int
    vector_registers: int
    cheap_masks: bool
    """Masked loads and stores cost what plain ones do (AVX-512, SVE)."""

    @property
    def key(self) -> str:
        return f"{self.triple}/{self.cpu}/{self.features}"


def _describe(triple: str, cpu: str, features: str) -> Target:
    on = {f[1:] for f in features.split(",") if f.startswith("+")}
    if "avx512f" in on and "avx512vl" in on and "avx512bw" in on and "avx512dq" in on:
        return Target(triple, cpu, features, 512, 32, True)
    if "avx2" in on:
        return Target(triple, cpu, features, 256, 16, False)
    return Target(triple, cpu, features, 128, 32 if platform.machine() == "aarch64" else 16, False)


def host() -> Target:
    """The machine to generate code for: this one, or as much of it as `TRITON_DIST_SIMD` allows."""
    wanted = knobs.simd
    if wanted is None:
        return native()
    if wanted != "avx2":
        raise errors.BadKnobValue(
            name="TRITON_DIST_SIMD", value=wanted, expected="avx2, or unset", meaning="the vector instructions to use"
        )
    return without_avx512(native())


LAST_LLVM = 22
"""Known to have the options that are set here; LLVM ends a process that sets another one."""


@functools.lru_cache(1)
def native() -> Target:
    """This machine, as LLVM sees it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    if platform.machine() in ("x86_64", "AMD64") and llvm.llvm_version_info[0] <= LAST_LLVM:
        # Its pass X86AvoidStoreForwardingBlocks asks a part of a masked load how long it is, and ends the process as
        # nobody knows: where there is no AVX-512, and the mask of that part is of ones and a variable.
        llvm.set_option("triton_dist", "-x86-disable-avoid-SFB")
    return _describe(llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


def without_avx512(target: Target) -> Target:
    """The same machine restricted to AVX2 (tests of the other code path)."""
    kept = [f for f in target.features.split(",") if not f.startswith("+avx512") and not f.startswith("+evex512")]
    dropped = [f"-{f[1:]}" for f in target.features.split(",") if f.startswith("+avx512")]
    return _describe(target.triple, "haswell", ",".join(kept + dropped))
