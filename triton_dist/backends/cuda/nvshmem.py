# SPDX-License-Identifier: MIT
"""NVSHMEM's host library through nvshmem4py's low-level bindings, which are alike from 0.1 to 0.4.

Its higher level (`nvshmem.core`) is not used: it tracks each buffer, and fails when one is garbage-collected.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from triton_dist.errors import NvshmemError

UID_BYTES = 128
LIMITED_MPG = 3
"""init_status: several PEs share a GPU, and host collectives are not to be had."""
_INITIALIZED = 2


@functools.cache
def bindings() -> Any:
    """nvshmem4py's module of bindings, with NVSHMEM's host library loaded."""
    call = "shmem.init"
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib  # pyright: ignore[reportMissingImports]
        from nvshmem.bindings import nvshmem  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        fix = "Install it: pip install nvshmem4py-cu13 (or -cu12), the one for your CUDA version."
        raise NvshmemError(call=call, detail=f"nvshmem4py cannot be imported ({error}).", fix=fix) from error
    try:
        load_nvidia_dynamic_lib("nvshmem_host")
    except Exception as error:
        fix = "Install nvidia-nvshmem-cu13 (or -cu12), the one for your CUDA version."
        raise NvshmemError(call=call, detail=f"NVSHMEM's host library was not found ({error}).", fix=fix) from error
    return nvshmem


class Nvshmem:
    """What the adapter calls. Addresses and streams are integers; a call that fails raises NvshmemError."""

    def __init__(self, raw: Any = None) -> None:
        self._raw = raw if raw is not None else bindings()

    def __getattr__(self, name: str) -> Any:
        """A binding, whose errors name it."""
        function = getattr(self._raw, name)

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            try:
                return function(*args)
            except Exception as error:
                raise NvshmemError(call=f"nvshmem {name}", detail=f"{error}.", fix=_FIXES.get(name, "")) from error

        self.__dict__[name] = call
        return call

    def initialized(self) -> bool:
        """Whether someone else has initialised NVSHMEM in this process."""
        return self._raw.init_status() >= _INITIALIZED

    def new_uid(self) -> bytes:
        uid = self._raw.uniqueid()
        self.get_uniqueid(uid.ptr)
        return ctypes.string_at(uid.ptr, UID_BYTES)

    def init(self, pe: int, n_pes: int, uid: bytes) -> None:
        made, attributes = self._raw.uniqueid(), self._raw.InitAttr()
        ctypes.memmove(made.ptr, uid, UID_BYTES)
        self.set_attr_uniqueid_args(pe, n_pes, made.ptr, attributes.ptr)
        self.hostlib_init_attr(int(self._raw.Flags.INIT_WITH_UNIQUEID), attributes.ptr)

    def version(self) -> str:
        parts = [ctypes.c_int() for _ in range(3)]
        self.vendor_get_version_info(*(ctypes.addressof(part) for part in parts))
        return ".".join(str(part.value) for part in parts)


_FIXES = {
    "hostlib_init_attr": (
        "Usual reasons: the PEs do not find each other (NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME names the network "
        "interface, NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY the IP family); a remote transport fails on a single node "
        "(NVSHMEM_REMOTE_TRANSPORT=none); the heap does not fit (NVSHMEM_SYMMETRIC_SIZE). NVSHMEM_DEBUG=INFO tells."
    ),
    "get_uniqueid": "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME names the network interface to use.",
    "cumodule_init": "The kernel's device library and the host library must be of one version.",
    "ptr": "",
}
