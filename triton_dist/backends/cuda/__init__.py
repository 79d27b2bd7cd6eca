# SPDX-License-Identifier: MIT
"""NVIDIA GPUs, through NVSHMEM, on Triton's own NVIDIA back end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from triton_dist.backends.base import SET_ADD, Backend, Launch, Limits, RuntimeAdapter

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


class CudaBackend(Backend):
    name = "cuda"
    title = "NVIDIA"
    smi = "nvidia-smi"
    device_module = "triton_dist.language.extra.cuda.libshmem_device"
    extra_module = "triton_dist.language.extra.cuda.language_extra"
    conversion_passes = ("convert-triton-distributed-to-nvshmem",)
    passes: ClassVar = {
        "convert-triton-distributed-to-nvshmem": (
            "triton_dist.backends.cuda.convert:ConvertTritonDistributedToNvshmem"
        ),
    }
    # Polling is by 32 or 64-bit loads; the vendor's signals are 64-bit.
    limits = Limits(
        signal_ops={"int64": SET_ADD, "uint64": SET_ADD},
        wait_dtypes=frozenset({"int32", "uint32", "int64", "uint64"}),
    )
    # On H200s, linked by NVLink or shared: with 2 and 4 PEs; from 1 MiB on a fence and a signal take less.
    packet_bytes = 768 << 10
    host_library = "triton_dist.backends.cuda.simulate"

    def device_libraries(self, module: ModuleOp, target: Any, given: Mapping[str, str]) -> Sequence[tuple[str, str]]:
        from triton_dist.backends.cuda.wrappers import device_libraries

        return device_libraries(module, int(target.arch), given)

    def spared_libraries(self, module: ModuleOp) -> frozenset[str]:
        from triton_dist.backends.cuda import libdevice

        return frozenset() if libdevice.may_be_needed(module) else frozenset({libdevice.KEY})

    def compile_key(self) -> str:
        from triton_dist.backends.cuda.library import identity

        return identity()

    def on_kernel_load(self, module: int, name: str, files: Mapping[str, str]) -> None:
        from triton_dist.backends.cuda.modules import MODULES

        MODULES.loaded(module, name, files)

    def on_kernel_unload(self, module: int) -> None:
        from triton_dist.backends.cuda.modules import MODULES

        MODULES.unloaded(module)

    def relaunch(
        self, compiled: Any, programs: int, values: Sequence[Any], places: Sequence[int]
    ) -> Launch | None:
        import ctypes

        import torch

        from triton_dist.backends.cuda.relaunch import relaunch

        # Called at every launch: torch's public function would call this one.
        capturing = torch._C._cuda_isCurrentStreamCapturing  # pyright: ignore[reportAttributeAccessIssue]
        return relaunch(compiled, programs, values, places, ctypes.CDLL("libcuda.so.1"), capturing)

    def adapter(self) -> RuntimeAdapter:
        from triton_dist.backends.cuda.adapter import CudaAdapter

        return CudaAdapter()
