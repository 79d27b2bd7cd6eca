# SPDX-License-Identifier: MIT
"""Ascend NPUs, through aclshmem: distributed operations become `hivm.hir.custom`, which the device's compiler links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triton_dist.backends.base import SET, SET_ADD, Backend, Limits, RuntimeAdapter
from triton_dist.errors import NoTritonAscend

if TYPE_CHECKING:
    from collections.abc import Callable


def use_tls(info: str, key: str = "", password: str = "", decrypt: Callable[[str], str] | None = None) -> None:
    """Encrypt the bootstrap of `shmem.init` on NPUs; see `adapter.use_tls`."""
    from triton_dist.backends.ascend import adapter

    adapter.use_tls(info, key, password, decrypt)


class AscendBackend(Backend):
    name = "ascend"
    title = "Ascend"
    smi = "npu-smi"
    device_module = "triton_dist.language.extra.ascend.libshmem_device"
    extra_module = "triton_dist.language.extra.ascend.language_extra"
    conversion_passes = ("convert-triton-distributed-to-hivm",)
    passes = {
        "convert-triton-distributed-to-hivm": "triton_dist.backends.ascend.convert:ConvertTritonDistributedToHivm",
    }
    # A cache line written by several cores at once is not coherent: one signal a line of 64 bytes, in `dl.wait`
    # too. Only 32-bit signals have an atomic add; 64-bit ones are written with aclshmem_<T>_p.
    host_library = "triton_dist.backends.ascend.simulated"
    limits = Limits(
        signal_ops={"int32": SET_ADD, "int64": SET, "uint64": SET},
        wait_dtypes=frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}),
        wait_stride_bytes=64,
        slot_bytes=64,
        engines=("MTE", "SDMA", "ROCE", "UDMA"),
    )

    def adapter(self) -> RuntimeAdapter:
        from triton_dist.backends.ascend import hook
        from triton_dist.backends.ascend.adapter import AscendAdapter

        if not hook.install():
            # Said here, at init: without it no kernel can run, and Triton only says that it has no driver.
            raise NoTritonAscend()
        return AscendAdapter()
