# SPDX-License-Identifier: MIT
"""Triton's driver for the host engine."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

NAME = "cpu"


def _forced() -> bool:
    """The user's override asks for kernels to run on this machine's CPU."""
    if not any(k in os.environ for k in ("TRITON_DIST_BACKEND", "TRITON_DIST_SIMULATE")):
        return False
    from triton_dist.platform import current

    return current().mode != "hardware"


# Triton 3.9 reads this when it chooses a driver; older versions ask every driver, and ours is the last to answer.
if _forced():
    os.environ.setdefault("TRITON_DEFAULT_BACKEND", NAME)


class Utils:
    """What Triton asks of a loaded device."""

    def __init__(self) -> None:
        self._images: dict[int, Any] = {}

    def get_device_properties(self, device: int) -> dict[str, int]:
        del device
        return {
            "max_shared_mem": 2**31 - 1,
            "multiprocessor_count": len(os.sched_getaffinity(0)),
            "warpSize": 1,
            "max_num_regs": 2**31 - 1,
        }

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """(module, function, registers, spills, threads) of an object file, loaded."""
        from triton_dist.backends.cpu.native.loader import load
        from triton_dist.backends.cpu.native.runtime import runtime

        del name, shared, device
        image = load(kernel, runtime().image.symbols)
        function = image["kernel"]
        self._images[function] = image
        return function, function, 0, 0, 2**31 - 1

    def unload_module(self, module: int) -> None:
        self._images.pop(module, None)


class CpuDriver(DriverBase):
    """Active where no GPU's driver is, or where the override says so."""

    def __init__(self) -> None:
        super().__init__()
        from triton_dist import knobs
        from triton_dist.backends.cpu.native.launch import Launcher
        from triton_dist.backends.cpu.triton import serial
        from triton_dist.platform import current

        serial.install()
        self.utils = Utils()
        self._devices: dict[tuple[object, ...], int] = {}
        self._launcher = Launcher
        self._knobs, self._selection = knobs, current

    def launcher_cls(self, src: Any, metadata: Any) -> Any:
        launcher = self._launcher(src, metadata)
        launcher.bind(list(src.signature.values()))
        return launcher

    @classmethod
    def is_active(cls) -> bool:  # type: ignore[override]
        if _forced():
            return True
        from triton.backends import backends

        return not any(b.driver.is_active() for name, b in backends.items() if name != NAME)

    def map_python_to_cpp_type(self, ty: str) -> str:
        if ty.startswith("*"):
            return "void*"
        return {"i1": "int8_t", "fp32": "float", "fp64": "double", "fp16": "double", "bf16": "double"}.get(
            ty, f"{'u' if ty[0] == 'u' else ''}int{ty.lstrip('iu')}_t"
        )

    def get_current_target(self) -> GPUTarget:  # type: ignore[override]
        return GPUTarget("cpu", platform.machine(), 1)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_current_device(self) -> int:
        """A number for the settings that kernels are compiled under: Triton keeps compiled kernels by device."""
        settings = (self._selection().backend, self._knobs.simd, self._knobs.check_bounds)
        return self._devices.setdefault(settings, len(self._devices))

    def set_current_device(self, device: int) -> None:
        del device

    def get_current_stream(self, device: int) -> int:
        del device
        return 0

    def get_device_interface(self) -> Any:
        from triton_dist.backends.cpu.triton.interface import CpuInterface

        return CpuInterface

    def get_empty_cache_for_benchmark(self) -> Any:
        import torch

        return torch.empty(64 * 1024 * 1024, dtype=torch.int8)

    def clear_cache(self, cache: Any) -> None:
        cache.zero_()

    def get_benchmarker(self) -> Callable[..., Any]:
        from triton.testing import do_bench

        return do_bench

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        del tensormaps_info
        return args
