# SPDX-License-Identifier: MIT
"""MetaX GPUs, through mxshmem. So far: the rules that its kernels must keep; no lowering yet."""

from __future__ import annotations

from triton_dist.backends.base import SET_ADD, Backend, Limits, RuntimeAdapter


class MacaBackend(Backend):
    name = "maca"
    title = "MetaX"
    smi = "mx-smi"
    device_module = "triton_dist.language.extra.maca.libshmem_device"
    extra_module = "triton_dist.language.extra.maca.language_extra"
    conversion_passes = ("convert-triton-distributed-to-maca",)
    # Polling is by 32 or 64-bit loads; the vendor's signals are 64-bit.
    limits = Limits(
        signal_ops={"int64": SET_ADD, "uint64": SET_ADD},
        wait_dtypes=frozenset({"int32", "uint32", "int64", "uint64"}),
    )

    def adapter(self) -> RuntimeAdapter:
        raise self.not_yet("the runtime adapter")
