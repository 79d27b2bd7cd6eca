# SPDX-License-Identifier: MIT
"""The host: kernels run natively on this machine's CPU, PEs are its processes or threads."""

from __future__ import annotations

from triton_dist.backends.base import SET_ADD, Backend, Limits, RuntimeAdapter


class CpuBackend(Backend):
    name = "cpu"
    title = "the host"
    smi = None
    device_module = "triton_dist.language.extra.cpu.libshmem_device"
    extra_module = "triton_dist.language.extra.cpu.language_extra"
    conversion_passes = ("convert-triton-distributed-to-host",)
    passes = {"convert-triton-distributed-to-host": "triton_dist.backends.cpu.convert:ConvertTritonDistributedToHost"}
    # Signals get a cache line each, so that PEs do not share one; `dl.wait` steps by one element, as on GPUs.
    limits = Limits(
        signal_ops={"int32": SET_ADD, "int64": SET_ADD, "uint64": SET_ADD},
        wait_dtypes=frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}),
        slot_bytes=64,
    )

    def adapter(self) -> RuntimeAdapter:
        from triton_dist.backends.cpu.adapter import CpuAdapter

        return CpuAdapter()
